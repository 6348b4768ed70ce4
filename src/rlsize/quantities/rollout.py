"""The rollout engines."""

from __future__ import annotations

from rlsize.facts.fields import Quantity
from rlsize.quantities.kinds import COUNT, DTYPE, PART, POSITIVE, SECONDS_OR_NONE, TOKENS
from rlsize.quantities.row import Row, Switch, Text, Word

SHARED_MEMORY_FRACTION = 0.6
"""Of the memory, where engines share GPUs with a trainer and nobody says: verl's recipes take 0.5 to 0.7."""

ROWS = (
    Row("engine", Text(), "The inference engine: vllm, sglang or tensorrt-llm.", "rollout.", "--"),
    Row("engine_version", Text("VERSION"), "Its version; a recent one when not given.", "rollout.", "--"),
    Row(
        "rollout_tensor_parallel", COUNT, "GPUs that share each layer of an instance.", "rollout.tensor_parallel", "--"
    ),
    Row(
        "rollout_pipeline_parallel",
        COUNT,
        "Pipeline stages of an instance.",
        "rollout.pipeline_parallel",
        "--",
        1,
        "no pipeline",
    ),
    Row(
        "rollout_data_parallel",
        COUNT,
        "Data-parallel ranks of attention within an instance.",
        "rollout.data_parallel",
        "--",
        1,
        "attention is not repeated",
    ),
    Row(
        "rollout_expert_parallel",
        COUNT,
        "Ranks of an instance that share the experts.",
        "rollout.expert_parallel",
        "--",
        1,
        "experts lie where layers do",
    ),
    Row(
        "gpus_per_instance",
        Quantity("count", most=4096, whole=True),
        "GPUs of one rollout instance (TP x PP).",
        "rollout.",
        "--",
    ),
    Row("rollout_dtype", DTYPE, "Width of the rollout weights.", "rollout.dtype", "--"),
    Row("kv_dtype", DTYPE, "Width of the KV cache.", "rollout.", "--", "bf16"),
    Row("memory_fraction", PART, "Share of GPU memory that the engine may use.", "rollout.", "--"),
    Row("max_num_seqs", COUNT, "The engine's limit on running samples, of each rank of attention.", "rollout.", "--"),
    Row(
        "max_batched_tokens",
        TOKENS,
        "Most tokens of an engine's step, for which it keeps memory free; its default when not given.",
        "rollout.",
    ),
    Row(
        "max_model_len",
        TOKENS,
        "Longest sequence that the engine promises to hold; the longest of the workload when not given.",
        "rollout.",
    ),
    Row(
        "engine_sleep",
        Word(("none", "kv", "weights")),
        "What the engine gives up while a trainer on the same GPUs works: nothing, its KV cache, or weights as well.",
        "rollout.sleep",
        "",
        "weights",
        "each side has the GPUs to itself while it runs",
    ),
    Row(
        "staged_wake_up",
        Switch(),
        "Weights wake up and are synced first, the KV cache after the trainer has moved out; so when not given.",
        "rollout.",
    ),
    Row("cuda_graphs", Switch(), "Decode steps run as CUDA graphs; so when not given.", "rollout."),
    Row("served", Switch(), "Requests come through the engine's HTTP server.", "rollout.", "--"),
    Row(
        "refill",
        Switch("--barrier"),
        "Whether finished samples are replaced at once, or a step waits for its last one.",
        flag="--",
    ),
    Row(
        "routing",
        Word(("affine", "random", "round-robin", "queue")),
        "Whether a group stays on one instance, is spread at random, or is dealt out in turn.",
        "rollout.",
        "--",
        "affine",
    ),
    Row("concurrency", POSITIVE, "Samples generated at the same time on one instance.", "rollout.", "--"),
    Row("context_tokens", TOKENS, "Tokens of a sample in flight: prompt and mean live length.", flag="--context"),
    Row("kv_cache_tokens", TOKENS, "Tokens that the KV cache of an instance holds.", "rollout.", "--"),
    Row("step_fixed", SECONDS_OR_NONE, "Engine step with nothing in it, t0.", "rollout.step_time.fixed", "--"),
    Row(
        "step_sample",
        SECONDS_OR_NONE,
        "What each running sample adds to it, t1.",
        "rollout.step_time.sample",
        "--",
        0.0,
        "samples add nothing",
    ),
    Row(
        "step_kv_token",
        SECONDS_OR_NONE,
        "What each live KV token adds to it, t2.",
        "rollout.step_time.kv_token",
        "--",
        0.0,
        "the cache adds nothing",
    ),
    Row(
        "step_prompt_token",
        SECONDS_OR_NONE,
        "What each prompt token that is computed adds to it, t3.",
        "rollout.step_time.prompt_token",
        "--",
        0.0,
        "prompts add nothing",
    ),
    Row(
        "step_points",
        Text("TABLE"),
        "In place of t0 + t1 b: running samples and seconds of an engine step, as 1=9ms,64=14ms,256=30ms.",
        "rollout.step_time.points",
        "--",
    ),
    Row(
        "more_instances",
        Text("KINDS"),
        "Instances of other kinds beside, as 4 slots=64 slowdown=1.8 gpus=2 gpu_hour=1.20; a semicolon parts kinds.",
        "rollout.",
        "--",
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
        flag="--prefill-rate",
    ),
    Row(
        "temperature",
        Quantity("1", least=0.0, most=10.0),
        "Sampling temperature; `measure` uses it.",
        "rollout.",
        "--",
        1.0,
        "samples as likely as the model finds them, as RL wants them",
    ),
)
