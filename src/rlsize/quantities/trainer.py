"""The trainer."""

from __future__ import annotations

from rlsize.facts.fields import Quantity
from rlsize.facts.kinds import COUNT, POSITIVE, TOKENS
from rlsize.quantities.row import Row, Switch, Word


def _degree(key: str, meaning: str, scenario: str, flag: str) -> Row:
    return Row(key, COUNT, meaning, f"trainer.parallelism.{scenario}", flag)


ROWS = (
    _degree("fsdp", "Ranks that shard all training states (FSDP, ZeRO-3).", "fsdp", "--fsdp"),
    _degree("data_parallel", "Data-parallel ranks.", "data", "--data-parallel"),
    _degree("tensor_parallel", "Tensor-parallel ranks.", "tensor", "--tensor-parallel"),
    _degree("pipeline_parallel", "Pipeline stages.", "pipeline", "--pipeline-parallel"),
    _degree("expert_parallel", "Expert-parallel ranks.", "expert", "--expert-parallel"),
    _degree("context_parallel", "Context-parallel ranks.", "context", "--context-parallel"),
    Row(
        "zero_stage",
        Quantity("count", least=0.0, most=3.0, whole=True),
        "ZeRO stage over the data-parallel ranks: 0, 1, 2 or 3.",
        "trainer.parallelism.zero",
        "--zero",
    ),
    Row(
        "optimizer",
        Word(("adamw", "adam-8bit", "adamw-bf16-states", "sgd-momentum", "muon")),
        "The optimizer.",
        "trainer.",
        "--",
        "adamw",
    ),
    Row(
        "gradients",
        Word(("bf16", "fp32")),
        "Width of the gradients: bf16 (16 bytes a parameter with adamw) or fp32 (18).",
        "trainer.",
        "--",
        "bf16",
    ),
    Row("recompute", Word(("none", "selective", "full")), "Activation recomputation.", "trainer.", "--", "full"),
    Row(
        "logprob_passes",
        Word(("old", "reference", "proximal"), listed=True),
        "Extra forward passes per step.",
        "trainer.",
    ),
    Row(
        "old_logprob",
        Switch("--no-old-logprob"),
        "Whether old log-probabilities are computed; not where rollout's are used.",
        flag="--",
    ),
    Row(
        "micro_batch_tokens",
        TOKENS,
        "Tokens of a micro-batch of one data-parallel rank.",
        "trainer.",
        "--",
        16384.0,
        "assumed: samples packed to 16k tokens",
    ),
    Row("lora_rank", COUNT, "Rank of LoRA adapters; all parameters are trained when not given.", "trainer.", "--"),
    Row(
        "frozen_dtype",
        Word(("bf16", "fp8", "int8", "nf4")),
        "Number type of the frozen linear layers beside adapters; that of the trainer's weights when not given.",
        "trainer.",
    ),
    Row("offload", Switch(), "Optimizer states live on the host.", "trainer.", "--"),
    Row("dtype", Word(("bf16", "fp8", "fp4")), "Type of the trainer's linear layers.", "trainer.", "--", "bf16"),
    Row(
        "fp8_scaling",
        Word(("tensor", "block", "row")),
        "How fp8 is scaled: by tensor, by block (MXFP8), or by row.",
        "trainer.",
        "--",
        "tensor",
    ),
    Row(
        "virtual_stages",
        COUNT,
        "Parts of each pipeline stage (interleaving).",
        "trainer.",
        "--",
        1,
        "stages are not interleaved",
    ),
    Row("compiled", Switch(), "Element-wise work is compiled or fused (Megatron).", "trainer.", "--"),
    Row("overlapped", Switch(), "All-reduces of tensor parallelism run beside the matmuls.", "trainer.", "--"),
    Row("native_attention", Switch(), "Attention kernels made for the GPU: FlashAttention-3, cuDNN.", "trainer.", "--"),
    Row(
        "trainer_backend",
        Word(("fsdp", "fsdp2", "megatron", "deepspeed", "ddp")),
        "What shards the trainer, where memory depends on it: what is kept in fp32, and what is there from the start.",
        "trainer.backend",
    ),
    Row(
        "master_dtype",
        Word(("fp32", "bf16")),
        "Number type of the parameters that the optimizer works on; fp32 when not given.",
        "trainer.",
    ),
    Row(
        "micro_batch_samples",
        POSITIVE,
        "Samples of a micro-batch of one data-parallel rank, where nobody says its tokens.",
        "trainer.",
    ),
    Row(
        "logprob_micro_batch_tokens",
        TOKENS,
        "Tokens of a micro-batch of passes without backward; those of training when not given.",
        "trainer.",
    ),
    Row(
        "logprob_micro_batch_samples",
        POSITIVE,
        "Samples of such a micro-batch, where nobody says its tokens.",
        "trainer.",
    ),
    Row(
        "padded",
        Switch(),
        "Micro-batches are padded, to their tokens or their longest sample; samples lie end to end when not given.",
        "trainer.",
    ),
    Row(
        "offloaded_between",
        Word(("params", "gradients", "optimizer"), listed=True),
        "What moves to the host while engines on the same GPUs generate; all of it when not given.",
        "trainer.",
    ),
    Row(
        "models_apart",
        Word(("reference", "critic", "reward"), listed=True),
        "Models beside the policy that have GPUs of their own; none when not given.",
        "algorithm.",
    ),
    Row(
        "param_offload",
        Switch(),
        "Weights and all states live on the host, and layers come in as they run (ZeRO-3 or FSDP2 with CPU offload).",
        "trainer.",
    ),
    Row(
        "reference_offload",
        Switch(),
        "The reference is on the host but in its own pass; it moves with the policy when not given.",
        "trainer.",
    ),
    Row("activation_offload", Switch(), "What layers keep for backward goes to the host.", "trainer."),
    Row("chunked_loss", Switch(), "The loss works on chunks of the logits.", "trainer."),
    Row(
        "fused_loss",
        Switch(),
        "One kernel works the loss out in place, without a copy of the logits in fp32 (flash-attn, Liger).",
        "trainer.",
    ),
    Row("response_logits", Switch(), "Logits are worked out of responses alone, not of prompts.", "trainer."),
    Row("entropy", Switch(), "An entropy of the logits is part of the loss, so that its graph is kept.", "trainer."),
)
