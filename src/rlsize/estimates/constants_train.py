"""
The constants of the predicted training step.

Those fitted to records of pre-training hold for trainers with full, even micro-batches; what RL loses on top is in
constants of its own, with a wide spread until a measurement narrows it. Shares are of kernels that were timed alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.estimates.constants import Constant, Stage

if TYPE_CHECKING:
    from rlsize.estimates.constants import Basis

_FOUNDRY = "llm-foundry (MPT on A100 and H100)"
_TITAN = "torchtitan (Llama 3.1 on H100)"
_BOTH = f"{_FOUNDRY}, {_TITAN}"


def _fitted(
    name: str, values: tuple[float, float], untuned: tuple[float, float], unit: str, what: tuple[str, str]
) -> Constant:
    """A constant with value and spread as fitted, and before; its meaning, and the records."""
    return Constant(
        name=f"train_{name}",
        value=values[0],
        spread=values[1],
        unit=unit,
        meaning=what[0],
        basis="fitted",
        source=what[1],
        untuned=untuned,
    )


def _taken(name: str, values: tuple[float, float], unit: str, meaning: str, basis: Basis, source: str) -> Constant:
    """A constant that no record was fitted for."""
    return Constant(
        name=name, value=values[0], spread=values[1], unit=unit, meaning=meaning, basis=basis, source=source
    )


_KERNELS = (
    _fitted(
        "gemm", (1.02, 0.06), (1.0, 0.08), "1", ("share of the rate of matrix products that training keeps", _BOTH)
    ),
    _fitted(
        "joules_per_flop",
        (0.733e-12, 0.1),
        (0.8e-12, 0.2),
        "J/FLOP",
        ("energy of a bf16 operation in a long run, the rest of the board included", _BOTH),
    ),
    _fitted("fp8_energy", (0.35, 0.2), (0.43, 0.25), "1", ("share of that energy that an fp8 operation takes", _BOTH)),
    _fitted(
        "attention",
        (0.574, 0.18),
        (0.6, 0.4),
        "1",
        ("share of the rate of prefill attention that training reaches on GPUs without fp8", _FOUNDRY),
    ),
    _fitted(
        "attention_recent",
        (0.284, 0.3),
        (0.3, 0.5),
        "1",
        (
            "share of the rate of prefill attention that training reaches on GPUs with fp8",
            _BOTH,
        ),
    ),
    _fitted(
        "hidden_copies",
        (13.3, 0.15),
        (14.0, 0.2),
        "1",
        ("times that a fused layer reads or writes the residual width in a pass", _BOTH),
    ),
    _fitted("eager", (1.8, 0.17), (1.65, 0.3), "1", ("times more that eager element-wise code moves", _BOTH)),
    _fitted(
        "quantising",
        (1.45, 0.4),
        (2.4, 0.5),
        "B/value",
        ("bytes moved to scale each input of an fp8 layer by tensor", _BOTH),
    ),
    _fitted(
        "row_quantising",
        (17.8, 0.3),
        (19.0, 0.6),
        "B/value",
        ("bytes that would take the time of scaling each input of an fp8 layer by row", _TITAN),
    ),
)

_TRAFFIC = (
    _fitted("gather_link", (0.95, 0.15), (1.0, 0.2), "1", ("share of NCCL's bandwidth alone that gathers keep", _BOTH)),
    _fitted("nic_fraction", (0.82, 0.2), (0.8, 0.2), "1", ("share of the network adapters that gathers reach", _BOTH)),
    _fitted("hop_seconds", (2.2e-6, 0.5), (2e-6, 0.7), "s", ("time from one rank of a ring to the next", _BOTH)),
    _fitted("exposed", (0.78, 0.25), (0.7, 0.4), "1", ("share of gathers that costs time in any case", _BOTH)),
    _fitted(
        "tensor_link",
        (1.09, 0.25),
        (1.0, 0.35),
        "1",
        ("share of NCCL's bandwidth alone that tensor parallelism reaches", _TITAN),
    ),
    _fitted(
        "tensor_overlap",
        (0.67, 0.25),
        (0.6, 0.4),
        "1",
        ("share of its transfers left where they overlap with matrix products", _TITAN),
    ),
    _fitted("straggling", (0.0023, 0.7), (0.003, 0.8), "1", ("share that each doubling of the nodes adds", _BOTH)),
    _fitted("fixed_seconds", (0.026, 0.8), (0.05, 1.0), "s", ("time of an update beside its tokens", _BOTH)),
)

_OTHERS = (
    _taken(
        "train_experts",
        (0.75, 0.25),
        "1",
        "share of the rate of expert kernels that training keeps",
        "assumed",
        "grouped products of backward are smaller; no record of pre-training with experts",
    ),
    _taken(
        "train_exchange_excess",
        (1.3, 0.35),
        "1",
        "times longer that exchanges among experts take than their bytes: uneven experts, small messages",
        "assumed",
        "skew of routing; no record of pre-training with experts",
    ),
    _taken(
        "train_logit_bytes",
        (20.0, 0.2),
        "B/value",
        "bytes that forward and backward of the loss move for each logit",
        "assumed",
        "bf16 logits, an fp32 copy and its gradient, each written and read (stas00/ml-engineering, training memory)",
    ),
    _taken(
        "train_memory_fraction",
        (0.8, 0.08),
        "1",
        "share of the memory bandwidth that element-wise kernels reach",
        "kernels",
        "ai-dynamo/aiconfigurator@095f58a5: systems, mem_bw_empirical_scaling_factor",
    ),
    _taken(
        "train_new_energy",
        (0.7, 0.15),
        "1",
        "share of the energy of an operation that GPUs with fp4 units take",
        "published",
        "best matrix products of B200, 1745 TFLOP/s within 1000 W, beside those of H100, 794.5 within 700 W "
        "(stas00/ml-engineering, MAMF)",
    ),
    _taken(
        "train_host_copy",
        (6e9, 0.5),
        "B/s",
        "rate at which states that live on the host come to a GPU and go back",
        "assumed",
        "host memory that is not pinned is copied at 3 to 12 GB/s whatever the link; trainers seldom pin what moves",
    ),
    _taken(
        "train_launch",
        (0.4e-3, 0.5),
        "s",
        "time of the host to launch a layer's kernels of one pass",
        "kernels",
        "some 20 launches at 20 us (ai-dynamo/aiconfigurator@095f58a5, eager all-reduce)",
    ),
    _taken(
        "train_launch_fused",
        (0.2e-3, 0.5),
        "s",
        "time of the host to launch a layer's kernels of one pass where element-wise work is fused",
        "kernels",
        "some 10 launches at 20 us",
    ),
)

_STACK = (
    _taken(
        "train_stack",
        (1.0, 0.08),
        "1",
        "time of an update of pre-training, over all that is counted",
        "assumed",
        "what frameworks and set-ups differ by: only two were there to fit",
    ),
)

_RL = (
    _taken(
        "rl_attention",
        (1.7, 0.2),
        "1",
        "times quicker that attention of RL trainers is than in the records of pre-training, which are of 2023",
        "published",
        "FlashAttention-2 (arXiv:2307.08691): 1.7 to 3 times as quick as FlashAttention, 1.3 to 2.5 as Triton's",
    ),
    _taken(
        "rl_train_slowdown",
        (1.33, 0.25),
        "1",
        "times longer that an update takes in RL: ragged sequences, uneven ranks, small micro-batches",
        "published",
        "RL trainers reach about 30 % MFU where pre-training of the same models reaches 40 %",
    ),
    _taken(
        "rl_train_moe_slowdown",
        (1.8, 0.45),
        "1",
        "times longer that an update of a mixture of experts takes in RL, uneven experts included",
        "published",
        "RL trainers of mixtures of experts reach about 15 % MFU",
    ),
    _taken(
        "rl_forward_slowdown",
        (1.3, 0.35),
        "1",
        "times longer that an extra forward pass takes in RL",
        "assumed",
        "as an update, with less to hide transfers behind",
    ),
    _taken(
        "rl_other_model",
        (1.0, 0.25),
        "1",
        "times longer that a pass of another model takes than that of the policy, over what is predicted",
        "assumed",
        "larger models keep kernels busier: one trainer's passes of 3 B and 32 B reached 107 and 197 TFLOP/s",
    ),
    _taken(
        "rl_forward_moe_slowdown",
        (1.9, 0.45),
        "1",
        "times longer that an extra forward pass of a mixture of experts takes in RL",
        "assumed",
        "as an update of a mixture of experts, with less to hide transfers behind",
    ),
)

STAGE = Stage(name="train", constants=(*_KERNELS, *_TRAFFIC, *_OTHERS, *_STACK, *_RL), noise=0.035)
