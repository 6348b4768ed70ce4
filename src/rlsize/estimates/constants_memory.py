"""The constants of memory predictions: what a GPU shows, what an engine loses before its cache, what training adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.estimates.constants import Constant, Stage
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Mapping

GIB = 2.0**30

ATTENTION_COPIES = Constant("memory_attention_copies", 14.0, 0.15, "1", "published",
                            "hidden-sized tensors that a layer keeps for backward outside its MLP",
                            "stas00/ml-engineering, training memory: 28 in all for Llama-3.1-8B")  # fmt: skip

STAGE = Stage(
    name="memory",
    noise=0.01,
    constants=(
        Constant("memory_visible_share", 0.987, 0.005, "1", "published",
                 "share of a GPU's memory that driver and error correction leave to processes",
                 "total_gpu_memory in vLLM logs: 39.38 of 40 GiB (vllm-project/vllm issue 16570), 23.55 of 24 GiB "
                 "(13061)"),
        Constant("memory_process_bytes", 0.1 * GIB, 0.6, "B", "published",
                 "workspaces of libraries on a GPU, beside weights and activations",
                 "non_torch_memory in vLLM logs: 0.03 GiB on one GPU (vllm-project/vllm issue 13882); prior 0.05 to "
                 "0.35 GiB"),
        Constant("memory_context_bytes", 0.7 * GIB, 0.4, "B", "assumed",
                 "CUDA context and libraries, for engines that count them against their share",
                 "0.4 to 1.1 GiB as nvidia-smi shows for an idle PyTorch process; not measured here"),
        Constant("memory_communicator_bytes", 0.28 * GIB, 0.35, "B", "published",
                 "buffers of NCCL and custom collectives on each GPU of an instance with several",
                 "vLLM logs: 0.25 GiB on 2 GPUs (13061), 0.34 to 0.43 on 4 (16570); aiconfigurator: 342 to 392 MiB"),
        Constant("memory_graph_bytes", 0.6 * GIB, 0.6, "B", "assumed",
                 "CUDA graphs of an engine, where its version counts them before it sizes the cache",
                 "0.3 to 1.3 GiB in vLLM's own logs of graph capture; not measured here"),
        Constant("memory_stream_copies", 5.0, 0.35, "1", "assumed",
                 "tensors of the residual stream's width that a layer holds at once in the profiling run",
                 "counted: residual, norm's output, queries with keys and values, attention's output, projection"),
        Constant("memory_sampler_bytes", 32.0, 0.35, "B", "assumed",
                 "bytes of an engine's sampler for each sequence and entry of the vocabulary",
                 "counted: bf16 and fp32 logits 6, sorted 4, places 8, probabilities 8; vLLM issues 13882 and 13061 "
                 "imply 39"),
        Constant("memory_weight_overhead", 1.009, 0.007, "1", "published",
                 "weights as loaded over parameters times width: padding, rotary tables, scales",
                 "vLLM logs of two checkpoints (issues 16570 and 6746) within 1 to 3 % of their parameter counts"),
        Constant("memory_training_overhead", 1.05, 0.06, "1", "fitted",
                 "memory that the allocator reserves in training over what tensors take at the peak",
                 "training peaks of torchtitan, torchtune and prime-rl (57 rows)"),
        ATTENTION_COPIES,
        Constant("memory_selective_share", 0.34, 0.2, "1", "fitted",
                 "share of a layer's activations that operator-level selective recomputation keeps",
                 "torchtitan on 8 and 128 H100 (pytorch/torchtitan@b5bcd76c66d0, tables 1 and 3)"),
        Constant("memory_compiled_share", 0.82, 0.1, "1", "fitted",
                 "share of a layer's activations that compilation leaves",
                 "torchtune and torchtitan, with and without torch.compile"),
        Constant("memory_training_logit_bytes", 11.0, 0.25, "B", "published",
                 "bytes that a loss keeps for each token and entry of the vocabulary",
                 "stas00/ml-engineering, training memory: 2 + 4 + 4; 6 where the loss is compiled, 14 where it is not "
                 "fused"),
    ),
)  # fmt: skip

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
