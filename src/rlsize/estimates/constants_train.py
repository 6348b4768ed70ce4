"""
The constants of the predicted training step.

Those fitted to records of pre-training hold for what a trainer of full, even micro-batches reaches; what RL loses on
top is in constants of its own, with a wide spread, until a measurement narrows it.
"""

from __future__ import annotations

from rlsize.estimates.constants import Basis, Constant, Stage

_PRETRAINING = "fitted to published pre-training throughput: llm-foundry (MPT, A100 and H100), torchtitan (Llama 3.1)"


def _constant(name: str, value: float, spread: float, unit: str, meaning: str, basis: Basis, source: str) -> Constant:
    return Constant(name=name, value=value, spread=spread, unit=unit, meaning=meaning, basis=basis, source=source)


STAGE = Stage(
    name="train",
    constants=(
        _constant("train_gemm", 1.0, 0.08, "1", "share of the rate of matrix products that training keeps", "fitted", _PRETRAINING),
        _constant("train_joules_per_flop", 0.8e-12, 0.12, "J/FLOP", "energy of a bf16 operation in a long run, the board included", "fitted", _PRETRAINING),
        _constant("train_fp8_energy", 0.43, 0.2, "1", "share of it that an fp8 operation takes", "fitted", _PRETRAINING),
        _constant("train_experts", 0.75, 0.25, "1", "share of the rate of expert kernels that training keeps", "assumed", "grouped products of backward are smaller and transposed"),
        _constant("train_attention", 0.6, 0.2, "1", "share of the rate of prefill attention that training reaches, GPUs without fp8", "fitted", _PRETRAINING),
        _constant("train_attention_recent", 0.3, 0.35, "1", "the same on GPUs with fp8, whose prefill kernels are newer than those of most trainers", "fitted", _PRETRAINING),
        _constant("train_hidden_copies", 14.0, 0.15, "1", "times that a layer reads or writes the residual width in a pass, fused", "assumed", "count of a block's operations"),
        _constant("train_eager", 1.65, 0.2, "1", "times more that eager element-wise code moves", "fitted", _PRETRAINING),
        _constant("train_logit_bytes", 20.0, 0.2, "B/value", "bytes that the loss moves for each logit", "assumed", "bf16 logits, an fp32 copy, its gradient, each written and read"),
        _constant("train_quantising", 2.4, 0.4, "B/value", "bytes that scaling by tensor moves for each input of an fp8 layer", "fitted", _PRETRAINING),
        _constant("train_row_quantising", 19.0, 0.3, "B/value", "bytes that scaling by row moves for each input of an fp8 layer", "fitted", _PRETRAINING),
        _constant("train_memory_fraction", 0.8, 0.08, "1", "share of the memory bandwidth of element-wise kernels", "kernels", "ai-dynamo/aiconfigurator@095f58a5"),
        _constant("train_gather_link", 1.0, 0.2, "1", "share of NCCL's measured bandwidth that gathers keep", "assumed", "large messages"),
        _constant("train_nic_fraction", 0.8, 0.2, "1", "share of the network adapter that gathers reach", "assumed", "NCCL bus bandwidth between nodes"),
        _constant("train_hop_seconds", 2e-6, 0.5, "s", "time from one rank of a ring to the next", "fitted", _PRETRAINING),
        _constant("train_exposed", 0.7, 0.3, "1", "share of gathers that computation does not hide", "fitted", _PRETRAINING),
        _constant("train_tensor_link", 0.6, 0.3, "1", "share of NCCL's measured bandwidth that tensor parallelism reaches", "fitted", _PRETRAINING),
        _constant("train_tensor_overlap", 0.6, 0.3, "1", "share of its transfers left where they overlap with matrix products", "fitted", _PRETRAINING),
        _constant("train_launch", 0.4e-3, 0.5, "s", "host time to launch a layer's eager kernels of one pass", "assumed", "some 20 kernels at 20 us"),
        _constant("train_launch_fused", 0.2e-3, 0.5, "s", "the same where element-wise work is fused", "assumed", "some 10 kernels at 20 us"),
        _constant("train_straggling", 0.003, 0.7, "1", "share of the time that each doubling of the nodes adds", "fitted", _PRETRAINING),
        _constant("train_fixed_seconds", 0.05, 0.8, "s", "time of a step beside its tokens", "assumed", "logging, gradient norm, loader"),
        _constant("rl_train_slowdown", 1.35, 0.3, "1", "times longer that an RL update takes: ragged sequences, uneven ranks", "published", "RL trainers reach 30 % MFU where pre-training reaches 40 %"),
        _constant("rl_train_moe_slowdown", 1.8, 0.4, "1", "the same for mixtures of experts", "assumed", "RL trainers of mixtures of experts reach about 15 % MFU"),
        _constant("rl_forward_slowdown", 1.5, 0.35, "1", "times longer that an extra forward pass takes", "assumed", "as an update, with less to hide behind"),
    ),
    noise=0.06,
)
