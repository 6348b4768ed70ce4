"""The constants of memory predictions: what a GPU shows, what an engine loses before its cache, what training adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.estimates.constants import Constant, Stage
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Mapping

GIB = 2.0**30

VISIBLE_SHARE = Constant(
    name="memory_visible_share",
    value=0.987,
    spread=0.005,
    unit="1",
    meaning="share of a GPU's memory that driver and error correction leave to processes",
    basis="published",
    source="total_gpu_memory in vLLM logs: 39.38 of 40 GiB (vllm-project/vllm issue 16570), 23.55 of 24 GiB (13061)",
)
PROCESS_BYTES = Constant(
    name="memory_process_bytes",
    value=0.1 * GIB,
    spread=0.6,
    unit="B",
    meaning="workspaces of libraries on a GPU, beside weights and activations",
    basis="published",
    source="non_torch_memory in vLLM logs: 0.03 GiB on one GPU (vllm-project/vllm issue 13882); prior 0.05 to 0.35 GiB",
)
CONTEXT_BYTES = Constant(
    name="memory_context_bytes",
    value=0.7 * GIB,
    spread=0.4,
    unit="B",
    meaning="CUDA context and libraries, for engines that count them against their share",
    basis="assumed",
    source="0.4 to 1.1 GiB as nvidia-smi shows for an idle PyTorch process; not measured here",
)
COMMUNICATOR_BYTES = Constant(
    name="memory_communicator_bytes",
    value=0.28 * GIB,
    spread=0.35,
    unit="B",
    meaning="buffers of NCCL and custom collectives on each GPU of an instance with several",
    basis="published",
    source="vLLM logs: 0.25 GiB on 2 GPUs (13061), 0.34 to 0.43 on 4 (16570); aiconfigurator: 342 to 392 MiB",
)
GRAPH_BYTES = Constant(
    name="memory_graph_bytes",
    value=0.6 * GIB,
    spread=0.6,
    unit="B",
    meaning="CUDA graphs of an engine, where its version counts them before it sizes the cache",
    basis="assumed",
    source="0.3 to 1.3 GiB in vLLM's own logs of graph capture; not measured here",
)
STREAM_COPIES = Constant(
    name="memory_stream_copies",
    value=5.0,
    spread=0.35,
    unit="1",
    meaning="tensors of the residual stream's width that a layer holds at once in the profiling run",
    basis="assumed",
    source="counted: residual, norm's output, queries with keys and values, attention's output, projection",
)
LOGIT_BYTES = Constant(
    name="memory_sampler_bytes",
    value=32.0,
    spread=0.35,
    unit="B",
    meaning="bytes of an engine's sampler for each sequence and entry of the vocabulary",
    basis="assumed",
    source="counted: bf16 and fp32 logits 6, sorted 4, places 8, probabilities 8; vLLM issues 13882 and 13061 imply 39",
)
WEIGHT_OVERHEAD = Constant(
    name="memory_weight_overhead",
    value=1.009,
    spread=0.007,
    unit="1",
    meaning="weights as loaded over parameters times width: padding, rotary tables, scales",
    basis="published",
    source="vLLM logs of two checkpoints (issues 16570 and 6746) within 1 to 3 % of their parameter counts",
)

TRAINING_OVERHEAD = Constant(
    name="memory_training_overhead",
    value=1.05,
    spread=0.06,
    unit="1",
    meaning="memory that the allocator reserves in training over what tensors take at the peak",
    basis="fitted",
    source="training peaks of torchtitan and torchtune (27 rows)",
)
ATTENTION_COPIES = Constant(
    name="memory_attention_copies",
    value=14.0,
    spread=0.15,
    unit="1",
    meaning="hidden-sized tensors that a layer keeps for backward outside its MLP",
    basis="published",
    source="stas00/ml-engineering, training memory: 28 in all for Llama-3.1-8B",
)
SELECTIVE_SHARE = Constant(
    name="memory_selective_share",
    value=0.34,
    spread=0.2,
    unit="1",
    meaning="share of a layer's activations that operator-level selective recomputation keeps",
    basis="fitted",
    source="torchtitan on 8 and 128 H100 (pytorch/torchtitan@b5bcd76c66d0, tables 1 and 3)",
)
COMPILED_SHARE = Constant(
    name="memory_compiled_share",
    value=0.82,
    spread=0.1,
    unit="1",
    meaning="share of a layer's activations that compilation leaves",
    basis="fitted",
    source="torchtune and torchtitan, with and without torch.compile",
)
TRAINING_LOGIT_BYTES = Constant(
    name="memory_training_logit_bytes",
    value=11.0,
    spread=0.25,
    unit="B",
    meaning="bytes that a loss keeps for each token and entry of the vocabulary",
    basis="published",
    source="stas00/ml-engineering, training memory: 2 + 4 + 4; 6 where the loss is compiled, 14 where it is not fused",
)

STAGE = Stage(
    name="memory",
    constants=(
        VISIBLE_SHARE,
        PROCESS_BYTES,
        CONTEXT_BYTES,
        COMMUNICATOR_BYTES,
        GRAPH_BYTES,
        STREAM_COPIES,
        LOGIT_BYTES,
        WEIGHT_OVERHEAD,
        TRAINING_OVERHEAD,
        ATTENTION_COPIES,
        SELECTIVE_SHARE,
        COMPILED_SHARE,
        TRAINING_LOGIT_BYTES,
    ),
    noise=0.01,
)

TRAINING_NOISE = 0.1
"""Scatter of training peaks when all constants are known: versions of frameworks, fragmentation. [1]"""


def constant_figures(values: Mapping[str, float] | None = None) -> dict[str, Figure]:
    """
    The constants as figures that say where they come from.

    Args:
        values: Central values of what is believed about them; as they stand above where None.
    """
    return {
        one.name: Figure(
            key=one.name,
            value=one.value if values is None else values[one.name],
            provenance="default",
            source=f"{one.basis}: {one.source}",
        )
        for one in STAGE.constants
    }
