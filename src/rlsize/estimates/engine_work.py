"""One replica of an engine, as it is asked about."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from rlsize.facts.inference_engines import inference_engine
from rlsize.facts.layout import Layout
from rlsize.facts.quantisation import WIDTHS, native
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from rlsize.equations._ops import Real
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model
    from rlsize.facts.quantisation import WeightTypes

_EIGHT, _FOUR = 1.5, 0.75  # bytes of a weight above which it has 16 bits, or 8


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineQuestion:
    """
    One replica of an engine.

    Args:
        model: The model.
        gpu: The GPU.
        layout: Tensor, pipeline and data (attention) ranks of one replica; experts lie over tensor x data.
        engine: vllm, sglang or tensorrt-llm; any text that holds one of them.
        version: Its version; empty counts as a recent one.
        weights: Number types of the weights; as published where None.
        kv_dtype: Number type of the cache.
        memory_fraction: Share of the memory that it plans with; its default where None. [1]
        max_sequences: Most sequences of a step on one attention rank; its default where None. [1]
        batched_tokens: Most tokens of a step, for which it keeps memory free; its default where None. [token]
        promised_tokens: Longest sequence that it promises to hold, and does not start without room for; 0 for the
            longest that there is. [token]
        chunk_tokens: Tokens that one step prefills at most. [token]
        served: Whether requests come through its server, which streams tokens.
        graphs_counted: Whether CUDA graphs are taken off before the cache is sized (vLLM since 0.19).
        graphs: Whether decode steps are CUDA graphs, not launched kernel by kernel.
        drafts: Tokens that a drafter of one layer proposes for each sequence and step; 0 without one. [token]
        draft_acceptance: Share of them that the model accepts. [1]
        windows_whole: Whether sliding layers keep every token (engines without a cache per kind of layer).
        unseen: Whether no published record of its kind stands behind the constants; as `constants_rollout.SEEN` says
            where None.
    """

    model: Model
    gpu: Gpu
    layout: Layout = field(default_factory=Layout)
    engine: str = "vllm"
    version: str = ""
    weights: WeightTypes | None = None
    kv_dtype: str = "bf16"
    memory_fraction: Real | None = None
    max_sequences: Real | None = None
    batched_tokens: Real | None = None
    promised_tokens: float = 0.0
    chunk_tokens: float = 8192.0
    served: bool = False
    graphs_counted: bool = True
    graphs: bool = True
    drafts: float = 0.0
    draft_acceptance: float = 0.0
    windows_whole: bool = False
    unseen: bool | None = None

    @property
    def kind(self) -> tuple[str, str, str, str]:
        """What records of one kind share: engine, generation of the GPU, width of the weights, dense or MoE."""
        types, moe = self.weights or native(self.model.name), self.model.architecture.moe is not None
        width = WIDTHS[types.experts if moe else types.dense]
        bits = "16 bits" if width > _EIGHT else "8 bits" if width > _FOUR else "4 bits"
        shape = "MoE" if moe else "dense"
        return inference_engine(self.engine).key, self.gpu.generation, bits, shape
