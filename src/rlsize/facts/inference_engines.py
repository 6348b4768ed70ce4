"""Inference engines and trainer backends: what each takes where nobody says otherwise, and what sets it apart."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

Budget = Literal["profiled", "static", "leftover"]
Admission = Literal["optimistic", "reserving"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceEngine:
    """
    One engine.

    Args:
        name: The engine, in lower case.
        key: Of its constants, and of its all-reduce in a GPU's kernels.
        budget: How it sizes its KV cache: from a profiling run, as a share fixed in advance, or from what is left.
        memory_fraction: Share of the memory that it plans with; 0 where it sets aside what a step needs. [1]
        block_tokens: Tokens of a cache block. [token]
        large_memory: Memory from which it takes the larger sizes. [B]
        batched_tokens: Most tokens of a step, on small and on large GPUs. [token]
        sequences: Most sequences of a step, on small and on large GPUs. [1]
        aside: Bytes set aside whatever the step, and for each of its tokens. [B]
        counted_small: GPUs that it takes for small whatever their memory.
        admission: optimistic (starts samples while their present tokens fit, and preempts) or reserving (starts one
            only if its longest response would fit).
        static_scales: Whether fp8 checkpoints have one scale a tensor, and the cast is part of what runs before.
        tensor_scales: Whether its fp8 mixtures of experts have one scale a tensor, not one a block.
        tuned_fp8_cache: Whether attention reads an fp8 cache at the share of bandwidth of a bf16 one.
        joint_steps: Whether prompts ride in decode steps, rather than in steps of their own.
        overlaps_since: First version that schedules the next step while the GPU works; empty where all do, and its
            constants hold only what the GPU waits for.
        rack_exchange: Whether tokens go only to ranks with an expert for them where a network joins more than a node.
        front_end: Whether its server's own limit has been seen in published measurements.
        source: Who says so of the defaults.
        timing_source: Who says so of the rest.
    """

    name: str
    key: str
    budget: Budget
    memory_fraction: float
    block_tokens: int
    large_memory: float
    batched_tokens: tuple[int, int]
    sequences: tuple[int, int]
    aside: tuple[float, float] = (0.0, 0.0)
    counted_small: str = ""
    admission: Admission
    static_scales: bool = False
    tensor_scales: bool = False
    tuned_fp8_cache: bool = False
    joint_steps: bool = True
    overlaps_since: tuple[int, ...] = ()
    rack_exchange: bool = False
    front_end: bool = False
    source: str
    timing_source: str

    def hides_host(self, version: str) -> bool:
        """
        Whether part of its host work lies behind the GPU's in that version; an unknown one counts as recent.

        >>> vllm = inference_engine("vllm")
        >>> vllm.hides_host("0.12.0"), vllm.hides_host(""), vllm.hides_host("0.18.0")
        (False, True, True)
        """
        numbers = []
        for part in version.lstrip("vV").split(".")[:2]:
            digits = "".join(character for character in part if character.isdigit())
            if not digits:
                break
            numbers.append(int(digits[:6]))
        return bool(self.overlaps_since) and (not numbers or tuple(numbers) >= self.overlaps_since)


_LARGE = 70.0 * 2**30
_ENGINES = (
    InferenceEngine(
        name="vllm",
        key="vllm",
        budget="profiled",
        memory_fraction=0.9,
        block_tokens=16,
        large_memory=_LARGE,
        batched_tokens=(2048, 8192),
        sequences=(256, 1024),
        counted_small="a100",
        admission="optimistic",
        static_scales=True,
        overlaps_since=(0, 14),
        source="vLLM 0.32, engine/arg_utils.py (API server; an A100 counts as small); 0.9 until it became 0.92",
        timing_source="vLLM release notes (asynchronous scheduling by default), recalled; scheduler preempts when full",
    ),
    InferenceEngine(
        name="sglang",
        key="sglang",
        budget="static",
        memory_fraction=0.0,
        block_tokens=1,
        large_memory=60.0 * 2**30,
        batched_tokens=(2048, 8192),
        sequences=(1024, 2048),
        aside=(1.125 * 2**30, 1.5 * 2**20),
        admission="optimistic",
        joint_steps=False,
        source="SGLang, server_args.py, as recalled: mem_fraction_static from prefill chunk and CUDA graphs",
        timing_source="SGLang: overlapped scheduler by default since 0.4; new-token ratio in its admission; chunks of "
        "prompts are not mixed with decode unless enable_mixed_chunk is set",
    ),
    InferenceEngine(
        name="tensorrt-llm",
        key="trtllm",
        budget="leftover",
        memory_fraction=0.9,
        block_tokens=32,
        large_memory=_LARGE,
        batched_tokens=(8192, 8192),
        sequences=(2048, 2048),
        admission="reserving",
        static_scales=True,
        tensor_scales=True,
        tuned_fp8_cache=True,
        rack_exchange=True,
        front_end=True,
        source="TensorRT-LLM, as recalled: 0.9 of the free memory, max_num_tokens 8192, max_batch_size 2048",
        timing_source="TensorRT-LLM: guaranteed-no-evict scheduler, static scales of ModelOpt checkpoints; experts "
        "under data-parallel attention, as recalled: all-to-all over multi-node NVLink, else gathered and scattered",
    ),
)

WITHOUT = "transformers"
"""What stands for an engine where the trainer's own model generates."""
ENGINES: Mapping[str, InferenceEngine] = MappingProxyType({engine.name: engine for engine in _ENGINES})
"""The engines by name."""

_ALIASES = (("vllm", "vllm"), ("sgl", "sglang"), ("tensorrt", "tensorrt-llm"), ("trt", "tensorrt-llm"))


def inference_engine(name: str) -> InferenceEngine:
    """An engine by how its name reads; vLLM where it is none of them."""
    text = name.lower()
    return ENGINES[next((engine for part, engine in _ALIASES if part in text), "vllm")]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerBackend:
    """
    One backend.

    Args:
        name: The name that a scenario uses.
        own_master: Whether the parameters that it shards are the optimizer's master copy themselves, so that gradients
            and moments have their width, and a narrow copy exists only while a layer is gathered.
        states_at_start: Whether optimizer states are allocated when the trainer is built, not by its first step.
        gradient_buffer: Whether gradients have a buffer of their own that outlives a step.
        step_copies: Copies of a parameter, in the width of its master, that the optimizer's step holds at once. [1]
        sync_copies: Copies of the shard, as it is kept, that a weight sync holds beside it. [1]
        source: Who says so.
    """

    name: str
    own_master: bool
    states_at_start: bool = False
    gradient_buffer: bool = False
    step_copies: float = 0.0
    sync_copies: float = 0.0
    source: str


_FOREACH = "torch.optim.AdamW takes foreach kernels on GPUs, which hold one more copy of the parameters"
_BACKENDS = (
    TrainerBackend(name="fsdp", own_master=True, step_copies=1.0, sync_copies=1.0,
                   source=f"PyTorch FSDP (arXiv:2304.11277); {_FOREACH}; its sharded state_dict copies the parameters, "
                          "in verl 0.3 and 0.4 before the engine wakes up (sharding_manager/fsdp_vllm.py)"),
    TrainerBackend(name="fsdp2", own_master=True, step_copies=1.0,
                   source=f"PyTorch documentation, fully_shard; {_FOREACH}"),
    TrainerBackend(name="ddp", own_master=True, step_copies=1.0,
                   source=f"PyTorch documentation, DistributedDataParallel; {_FOREACH}"),
    TrainerBackend(name="deepspeed", own_master=False, states_at_start=True, gradient_buffer=True,
                   source="DeepSpeed, stage_1_and_2.py and stage3.py: fp32 partitions, and moments by a first empty "
                          "step"),
    TrainerBackend(name="megatron", own_master=False, states_at_start=True, gradient_buffer=True,
                   source="Megatron Core, distrib_optimizer.py and param_and_grad_buffer.py"),
)  # fmt: skip

TRAINER_BACKENDS: Mapping[str, TrainerBackend] = MappingProxyType({entry.name: entry for entry in _BACKENDS})
"""The backends by name."""

UNSAID = TrainerBackend(name="", own_master=False, source="nobody says: bf16 weights beside an fp32 copy")
"""What is taken where nobody says."""
