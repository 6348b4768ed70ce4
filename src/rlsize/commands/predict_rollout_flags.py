"""The flags of `rlsize predict rollout`, and what they say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from rlsize.shell.command import quantity

ENGINE, WORKLOAD, FLEET = "Engine", "Workload", "Fleet"

EngineName = Annotated[str | None, quantity("--engine", "vllm, sglang or tensorrt-llm.", ENGINE, "NAME")]
EngineVersion = Annotated[
    str | None, quantity("--engine-version", "Its version; a recent one when not given.", ENGINE, "VERSION")
]
TensorParallel = Annotated[
    str | None, quantity("--tensor-parallel", "GPUs that share each layer; as few as fit when not given.", ENGINE)
]
PipelineParallel = Annotated[str | None, quantity("--pipeline-parallel", "Pipeline stages of an instance.", ENGINE)]
DataParallel = Annotated[
    str | None, quantity("--data-parallel", "Data-parallel ranks of attention within an instance.", ENGINE)
]
ExpertParallel = Annotated[
    str | None, quantity("--expert-parallel", "Ranks that share the experts; tensor x data parallel.", ENGINE)
]
Dtype = Annotated[
    str | None, quantity("--dtype", "Number type of the weights; as published when not given.", ENGINE, "NAME")
]
KvDtype = Annotated[str | None, quantity("--kv-dtype", "Number type of the KV cache: bf16, fp8, ...", ENGINE, "NAME")]
MemoryFraction = Annotated[
    str | None, quantity("--memory-fraction", "Share of GPU memory that the engine plans with.", ENGINE)
]
MaxNumSeqs = Annotated[
    str | None,
    quantity("--max-num-seqs", "The engine's limit on running samples, of each rank of attention.", ENGINE),
]
Served = Annotated[
    bool,
    typer.Option("--served", help="Requests come through the engine's HTTP server.", rich_help_panel=ENGINE),
]

PromptTokens = Annotated[str | None, quantity("--prompt-tokens", "Mean prompt length in tokens.", WORKLOAD)]
ResponseTokens = Annotated[str | None, quantity("--response-tokens", "Mean response length in tokens.", WORKLOAD)]
ResponseCv = Annotated[
    str | None, quantity("--response-cv", "Deviation of response lengths over their mean; 1 when not given.", WORKLOAD)
]
MaxResponseTokens = Annotated[
    str | None, quantity("--max-response-tokens", "Cap on the response length in tokens.", WORKLOAD)
]
Prompts = Annotated[str | None, quantity("--prompts", "Prompts per optimizer step.", WORKLOAD)]
Group = Annotated[str | None, quantity("--group|--group-size", "Samples of one prompt, G.", WORKLOAD)]
Samples = Annotated[str | None, quantity("--samples", "Samples of a step, for prompts x group.", WORKLOAD)]
Routing = Annotated[
    str | None,
    quantity("--routing", "affine (a group stays on one instance), random or round-robin.", WORKLOAD, "NAME"),
]
BlockSize = Annotated[
    str | None, quantity("--block-size", "Tokens in a KV-cache block; the engine's own when not given.", WORKLOAD)
]
HitRatio = Annotated[
    str | None, quantity("--hit-ratio", "Prefix-cache hit ratio, in place of group and routing.", WORKLOAD)
]

Concurrency = Annotated[
    str | None, quantity("--concurrency", "Samples at once on one instance; as many as fit when not given.", FLEET)
]
Instances = Annotated[str | None, quantity("--instances", "Rollout instances.", FLEET)]
RolloutGpus = Annotated[str | None, quantity("--rollout-gpus", "GPUs of the rollout fleet, for --instances.", FLEET)]
Refill = Annotated[
    bool | None,
    typer.Option(
        "--refill/--barrier",
        help="Whether finished samples are replaced at once, or a step waits for its last one.",
        rich_help_panel=FLEET,
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFlags:
    """What the flags say about the engine; None where one was not given."""

    engine: str | None = None
    version: str | None = None
    tensor: str | None = None
    pipeline: str | None = None
    data: str | None = None
    expert: str | None = None
    dtype: str | None = None
    kv_dtype: str | None = None
    memory_fraction: str | None = None
    max_num_seqs: str | None = None
    served: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFlags:
    """What the flags say about samples and fleet; None where one was not given."""

    prompt_tokens: str | None = None
    response_tokens: str | None = None
    response_cv: str | None = None
    max_response_tokens: str | None = None
    prompts: str | None = None
    group: str | None = None
    samples: str | None = None
    routing: str | None = None
    block_size: str | None = None
    hit_ratio: str | None = None
    concurrency: str | None = None
    instances: str | None = None
    rollout_gpus: str | None = None
    refill: bool | None = None
