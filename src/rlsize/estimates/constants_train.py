"""
The constants of the predicted training step.

Those fitted to records of pre-training hold for trainers with full, even micro-batches; what RL loses on top is in
constants of its own, with a wide spread until a measurement narrows it. Shares are of kernels that were timed alone.
"""

from __future__ import annotations

from rlsize.estimates.constants import Constant, Stage

_FOUNDRY = "llm-foundry (125 rows: MPT on A100 and H100)"
_TITAN = "torchtitan (32 rows: Llama 3.1 on H100 and H200)"
_MEGATRON = "Megatron-Bridge (57 rows: Llama 3, Qwen3-30B-A3B on H100, B200, B300, GB200, GB300)"
_PRIME = "prime-rl (20 rows: Qwen3-4B on A6000, H100, H200, B200)"
_ALL = f"{_FOUNDRY}, {_TITAN}, {_MEGATRON}, {_PRIME}"
_TENSOR = f"{_TITAN}, {_MEGATRON}"
_NARROW = f"{_TITAN}, {_FOUNDRY}, {_MEGATRON}"

STAGE = Stage(
    name="train",
    noise=0.035,
    constants=(
        Constant("train_gemm", 1.0, 0.06, "1", "fitted",
                 "share of the rate of matrix products that training keeps", _ALL, (1.0, 0.08)),
        Constant("train_joules_per_flop", 8.07e-13, 0.1, "J/FLOP", "fitted",
                 "energy of a bf16 operation in a long run, the rest of the board included", _ALL, (0.8e-12, 0.2)),
        Constant("train_fp8_energy", 0.359, 0.2, "1", "fitted",
                 "share of that energy that an fp8 operation takes", _NARROW, (0.43, 0.25)),
        Constant("train_fp8_energy_new", 0.692, 0.2, "1", "fitted",
                 "share of that energy that an fp8 operation takes on GPUs with fp4 units", _MEGATRON, (0.5, 0.3)),
        Constant("train_fp4_energy_new", 0.379, 0.3, "1", "fitted",
                 "share of that energy that an fp4 operation takes",
                 "Megatron-Bridge in NVFP4 (4 rows: Llama 3 70B on GB200, GB300)", (0.3, 0.4)),
        Constant("train_attention", 0.577, 0.18, "1", "fitted",
                 "share of the rate of prefill attention that training reaches where engines run the same kernels",
                 _FOUNDRY, (0.6, 0.4)),
        Constant("train_attention_recent", 0.295, 0.3, "1", "fitted",
                 "share of the rate of prefill attention that training reaches where engines have their own kernels",
                 f"{_FOUNDRY}, {_TITAN}", (0.3, 0.5)),
        Constant("train_attention_native", 0.833, 0.2, "1", "fitted",
                 "share of that rate that training reaches with kernels made for the GPU",
                 _MEGATRON, (0.95, 0.3)),
        Constant("train_attention_second", 1.7, 0.2, "1", "published",
                 "times quicker that attention of trainers has become since those records, of 2023",
                 "FlashAttention-2 (arXiv:2307.08691): 1.7 to 3 times as quick as FlashAttention, 1.3 to 2.5 as "
                 "Triton's"),
        Constant("train_attention_older", 0.44, 0.25, "1", "published",
                 "share of that where kernels are made for older GPUs than one with fp4 units",
                 "989 of 2250 TFLOP/s: the instructions of Ampere that FlashAttention-2 uses have not become quicker "
                 "since Hopper"),
        Constant("train_hidden_copies", 12.9, 0.15, "1", "fitted",
                 "times that a fused layer reads or writes the residual width in a pass", _ALL, (14.0, 0.2)),
        Constant("train_eager", 1.79, 0.17, "1", "fitted",
                 "times more that eager element-wise code moves", _ALL, (1.65, 0.3)),
        Constant("train_quantising", 1.77, 0.4, "B/value", "fitted",
                 "bytes moved to scale each input of an fp8 layer by tensor", _NARROW, (2.4, 0.5)),
        Constant("train_row_quantising", 17.5, 0.3, "B/value", "fitted",
                 "bytes that would take the time of scaling each input of an fp8 layer by row", _TITAN, (19.0, 0.6)),
        Constant("train_block_quantising", 6.18, 0.35, "B/value", "fitted",
                 "bytes that would take the time of scaling each input by block, for both directions",
                 _MEGATRON, (6.0, 0.6)),
        Constant("train_gather_link", 0.913, 0.15, "1", "fitted",
                 "share of NCCL's bandwidth alone that gathers keep", _ALL, (1.0, 0.2)),
        Constant("train_nic_fraction", 0.911, 0.2, "1", "fitted",
                 "share of the network adapters that gathers reach", _ALL, (0.8, 0.2)),
        Constant("train_hop_seconds", 1.74e-06, 0.5, "s", "fitted",
                 "time from one rank of a ring to the next", _ALL, (2e-6, 0.7)),
        Constant("train_exposed", 0.549, 0.25, "1", "fitted",
                 "share of gathers that costs time in any case", _ALL, (0.7, 0.4)),
        Constant("train_tensor_link", 1.07, 0.25, "1", "fitted",
                 "share of NCCL's bandwidth alone that tensor parallelism reaches", _TENSOR, (1.0, 0.35)),
        Constant("train_card_link", 1.0, 0.6, "1", "assumed",
                 "times more that hosts let cards without a fast network send to each other than is counted",
                 "two hosts: 8 cards reach 4 % of PCIe on one and 34 % on the other, 4 cards 15 and 35 %"),
        Constant("train_tensor_overlap", 0.787, 0.25, "1", "fitted",
                 "share of its transfers left where they overlap with matrix products", _TENSOR, (0.6, 0.4)),
        Constant("train_straggling", 0.00209, 0.7, "1", "fitted",
                 "share that each doubling of the nodes adds", _ALL, (0.003, 0.8)),
        Constant("train_fixed_seconds", 0.052, 0.8, "s", "fitted",
                 "time of an update beside its tokens", _ALL, (0.05, 1.0)),
        Constant("train_experts", 0.762, 0.25, "1", "fitted",
                 "share of the rate of expert kernels that training keeps: grouped products of backward are smaller",
                 _MEGATRON, (0.75, 0.25)),
        Constant("train_exchange_excess", 1.34, 0.35, "1", "fitted",
                 "times longer that exchanges among experts take than their bytes: uneven experts, small messages",
                 _MEGATRON, (1.3, 0.35)),
        Constant("train_logit_bytes", 20.0, 0.2, "B/value", "assumed",
                 "bytes that forward and backward of the loss move for each logit",
                 "bf16 logits, an fp32 copy and its gradient, each written and read (stas00/ml-engineering, training "
                 "memory)"),
        Constant("train_memory_fraction", 0.8, 0.08, "1", "kernels",
                 "share of the memory bandwidth that element-wise kernels reach",
                 "ai-dynamo/aiconfigurator@095f58a5: systems, mem_bw_empirical_scaling_factor"),
        Constant("train_new_energy", 0.7, 0.15, "1", "published",
                 "share of the energy of an operation that GPUs with fp4 units take",
                 "best matrix products of B200, 1745 TFLOP/s within 1000 W, beside those of H100, 794.5 within 700 W "
                 "(stas00/ml-engineering, MAMF)"),
        Constant("train_adapter_fused", 2.31, 0.5, "B/value", "fitted",
                 "bytes that fused adapters move for each value into and out of the matrices that carry them: the "
                 "input read again, the sum with the output read and written",
                 "Megatron-Bridge with LoRA (5 rows: Llama 3 70B on H100, GB200, GB300)", (5.0, 0.6)),
        Constant("train_adapter_eager", 20.8, 0.5, "B/value", "fitted",
                 "the same for eager ones",
                 "prime-rl with LoRA (11 rows: Qwen3-4B on A6000, H100, H200, B200)", (8.0, 0.6)),
        Constant("train_host_copy", 6e9, 0.5, "B/s", "assumed",
                 "rate at which states that live on the host come to a GPU and go back",
                 "host memory that is not pinned is copied at 3 to 12 GB/s whatever the link; trainers seldom pin what "
                 "moves"),
        Constant("train_launch", 0.4e-3, 0.5, "s", "kernels",
                 "time of the host to launch a layer's kernels of one pass",
                 "some 20 launches at 20 us (ai-dynamo/aiconfigurator@095f58a5, eager all-reduce)"),
        Constant("train_launch_fused", 0.2e-3, 0.5, "s", "kernels",
                 "time of the host to launch a layer's kernels of one pass where element-wise work is fused",
                 "some 10 launches at 20 us"),
        Constant("train_expert_launch", 0.000167, 0.4, "s", "fitted",
                 "time of the host to launch the kernels of one narrow expert in one pass: each is scaled and "
                 "multiplied by itself, in some 7 launches at 20 us",
                 _MEGATRON, (0.14e-3, 0.5)),
        Constant("train_tensor_scaling_launches", 1.5, 0.2, "1", "assumed",
                 "times more kernels of an expert whose tensors have one scale each, found before they are scaled",
                 "own count, as recalled of Transformer Engine: amax and its reset, scale, cast, transposed copy and "
                 "product, beside a cast by blocks, two orderings of scales and the product"),
        Constant("train_stack", 1.0, 0.1, "1", "assumed",
                 "time of an update of pre-training, over all that is counted",
                 "what frameworks and set-ups differ by: four, each predicted without its own records"),
        Constant("train_stack_moe", 1.0, 0.3, "1", "assumed",
                 "the same for a mixture of experts",
                 "versions of one stack within a year differ by 1.5 times (Megatron-Bridge, Qwen3-30B-A3B on GB200 and "
                 "GB300), layouts on H100 by 1.7"),
        Constant("train_unseen_slowdown", 1.0, 0.12, "1", "assumed",
                 "the same again on a generation of GPUs that no record of training is of",
                 "as engines; half of the records' error without their generation is to one side"),
        Constant("rl_train_slowdown", 1.33, 0.25, "1", "published",
                 "times longer that an update takes in RL: ragged sequences, uneven ranks, small micro-batches",
                 "RL trainers reach about 30 % MFU where pre-training of the same models reaches 40 %"),
        Constant("rl_train_moe_slowdown", 1.8, 0.45, "1", "published",
                 "times longer that an update of a mixture of experts takes in RL, uneven experts included",
                 "RL trainers of mixtures of experts reach about 15 % MFU"),
        Constant("rl_forward_slowdown", 1.3, 0.35, "1", "assumed",
                 "times longer that an extra forward pass takes in RL",
                 "as an update, with less to hide transfers behind"),
        Constant("rl_handling_seconds", 1e-7, 0.8, "s", "assumed",
                 "time to hand a place in a batch, padded to the longest, to the workers of an extra pass and back",
                 "six tensors of 8 bytes, pickled on both sides at 1 GB/s; stacks that hand lists over take less, and "
                 "what updates take of it is within their slowdown"),
        Constant("rl_other_model", 1.0, 0.25, "1", "assumed",
                 "times longer that a pass of another model takes than that of the policy, over what is predicted",
                 "larger models keep kernels busier: one trainer's passes of 3 B and 32 B reached 107 and 197 TFLOP/s"),
        Constant("rl_forward_moe_slowdown", 1.9, 0.45, "1", "assumed",
                 "times longer that an extra forward pass of a mixture of experts takes in RL",
                 "as an update of a mixture of experts, with less to hide transfers behind"),
    ),
)  # fmt: skip

SEEN = frozenset({"nvidia with bf16", "nvidia with fp8", "nvidia with fp4"})
"""Generations of GPUs (`Gpu.generation`) with at least ten records of training behind the constants."""
