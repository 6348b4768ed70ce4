"""The rollout engines."""

from __future__ import annotations

from rlsize.facts.fields import Quantity
from rlsize.quantities.kinds import COUNT, DTYPE, PART, POSITIVE, SECONDS_OR_NONE, TOKENS
from rlsize.quantities.row import Row, Switch, Text, Word

SHARED_MEMORY_FRACTION = 0.6
"""Of the memory, where engines share GPUs with a trainer and nobody says: verl's recipes take 0.5 to 0.7."""

ROWS = (
    Row("engine", Text(), "The inference engine: vllm, sglang or tensorrt-llm.", "rollout.engine", "--engine"),
    Row(
        "engine_version",
        Text("VERSION"),
        "Its version; a recent one when not given.",
        "rollout.engine_version",
        "--engine-version",
    ),
    Row(
        "rollout_tensor_parallel",
        COUNT,
        "GPUs that share each layer of an instance.",
        "rollout.tensor_parallel",
        "--rollout-tensor-parallel",
    ),
    Row(
        "rollout_pipeline_parallel",
        COUNT,
        "Pipeline stages of an instance.",
        "rollout.pipeline_parallel",
        "--rollout-pipeline-parallel",
        1,
        "no pipeline",
    ),
    Row(
        "rollout_data_parallel",
        COUNT,
        "Data-parallel ranks of attention within an instance.",
        "rollout.data_parallel",
        "--rollout-data-parallel",
        1,
        "attention is not repeated",
    ),
    Row(
        "rollout_expert_parallel",
        COUNT,
        "Ranks of an instance that share the experts.",
        "rollout.expert_parallel",
        "--rollout-expert-parallel",
        1,
        "experts lie where layers do",
    ),
    Row(
        "gpus_per_instance",
        Quantity("count", most=4096),
        "GPUs of one rollout instance (TP x PP).",
        "rollout.gpus_per_instance",
        "--gpus-per-instance",
    ),
    Row("rollout_dtype", DTYPE, "Width of the rollout weights.", "rollout.dtype", "--rollout-dtype"),
    Row("kv_dtype", DTYPE, "Width of the KV cache.", "rollout.kv_dtype", "--kv-dtype", "bf16", "default of --kv-dtype"),
    Row(
        "memory_fraction",
        PART,
        "Share of GPU memory that the engine may use.",
        "rollout.memory_fraction",
        "--memory-fraction",
    ),
    Row(
        "max_num_seqs",
        COUNT,
        "The engine's limit on running samples, of each rank of attention.",
        "rollout.max_num_seqs",
        "--max-num-seqs",
    ),
    Row("served", Switch(), "Requests come through the engine's HTTP server.", "rollout.served", "--served"),
    Row(
        "refill",
        Switch("--barrier"),
        "Whether finished samples are replaced at once, or a step waits for its last one.",
        "",
        "--refill",
    ),
    Row(
        "routing",
        Word(("affine", "random", "round-robin", "queue")),
        "Whether a group stays on one instance, is spread at random, or is dealt out in turn.",
        "rollout.routing",
        "--routing",
        "affine",
        "default of --routing",
    ),
    Row(
        "concurrency",
        POSITIVE,
        "Samples generated at the same time on one instance.",
        "rollout.concurrency",
        "--concurrency",
    ),
    Row(
        "context_tokens",
        TOKENS,
        "Tokens of a sample in flight: prompt and mean live length.",
        "",
        "--context",
    ),
    Row(
        "kv_cache_tokens",
        TOKENS,
        "Tokens that the KV cache of an instance holds.",
        "rollout.kv_cache_tokens",
        "--kv-cache-tokens",
    ),
    Row(
        "step_fixed", SECONDS_OR_NONE, "Engine step with nothing in it, t0.", "rollout.step_time.fixed", "--step-fixed"
    ),
    Row(
        "step_sample",
        SECONDS_OR_NONE,
        "What each running sample adds to it, t1.",
        "rollout.step_time.sample",
        "--step-sample",
        0.0,
        "samples add nothing",
    ),
    Row(
        "step_kv_token",
        SECONDS_OR_NONE,
        "What each live KV token adds to it, t2.",
        "rollout.step_time.kv_token",
        "--step-kv-token",
        0.0,
        "the cache adds nothing",
    ),
    Row(
        "step_prompt_token",
        SECONDS_OR_NONE,
        "What each prompt token that is computed adds to it, t3.",
        "rollout.step_time.prompt_token",
        "--step-prompt-token",
        0.0,
        "prompts add nothing",
    ),
    Row(
        "block_tokens",
        TOKENS,
        "Tokens in a KV-cache block; the engine's own when not given.",
        "rollout.block_size",
        "--block-size",
    ),
    Row(
        "hit_fraction",
        Quantity("1", least=0.0, most=0.999),
        "Prefix-cache hit ratio, 0 to 1.",
        "rollout.hit_ratio",
        "--hit-ratio",
    ),
    Row(
        "prefill_tokens_per_second",
        Quantity("token/s"),
        "Prompt tokens per second of an instance that only prefills.",
        "",
        "--prefill-rate",
    ),
    Row(
        "temperature",
        Quantity("1", least=0.0, most=10.0),
        "Sampling temperature; `measure` uses it.",
        "rollout.temperature",
        "--temperature",
        1.0,
        "samples as likely as the model finds them, as RL wants them",
    ),
)
