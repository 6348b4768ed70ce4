"""Flags that several commands share, declared once, so that one quantity has one name and one help text."""

from __future__ import annotations

from typing import Annotated

import typer

from rlsize.facts.fields import Quantity
from rlsize.shell.command import quantity

MONEY = "Prices"
WASTED = "Waste (in place of --tokens-per-trained-token)"
CACHING = "Prefix caching"
CHECKS = "Model and GPU (for the MFU check)"

ScenarioFile = Annotated[
    str | None,
    typer.Argument(metavar="SCENARIO", help="A scenario file; flags override what it says.", show_default=False),
]

Consume = Annotated[str | None, quantity("--consume", "Response tokens the trainer consumes per second.")]
BatchTokens = Annotated[str | None, quantity("--batch-tokens", "Response tokens per optimizer step.")]
TrainSeconds = Annotated[
    str | None,
    quantity("--train-seconds|--step-seconds", "Busy trainer seconds per step, without waiting and sync."),
]
Prompts = Annotated[str | None, quantity("--prompts", "Prompts per optimizer step.")]
Group = Annotated[str | None, quantity("--group|--group-size", "Samples of one prompt, G.")]
ResponseTokens = Annotated[str | None, quantity("--response-tokens", "Mean response length in tokens.")]
PromptTokens = Annotated[str | None, quantity("--prompt-tokens", "Mean prompt length in tokens.")]
PerInstance = Annotated[
    str | None,
    quantity(
        "--per-instance", "Response tokens per second of one instance: a number or a rates file.", metavar="NUMBER|FILE"
    ),
]
Headroom = Annotated[str | None, quantity("--headroom", "Derating for what the rate does not contain yet, 0 to 1.")]
Waste = Annotated[
    str | None, quantity("--tokens-per-trained-token", "Response tokens generated for each one that is trained.")
]
Oversampling = Annotated[
    str | None, quantity("--oversampling", "Samples started for each one wanted (APRIL, over-provisioning).", WASTED)
]
KeptFraction = Annotated[
    str | None, quantity("--kept-fraction", "Share of groups that survive the filter (dynamic sampling).", WASTED)
]
DroppedFraction = Annotated[
    str | None, quantity("--dropped-fraction", "Share of finished samples dropped as too stale.", WASTED)
]
Instances = Annotated[str | None, quantity("--instances", "Rollout instances to judge.")]
AcceptLowerBound = Annotated[
    bool,
    typer.Option(
        "--accept-lower-bound",
        help="Size from a rates file whose engines were not saturated.",
        rich_help_panel="Inputs",
    ),
]
GpusPerInstance = Annotated[str | None, quantity("--gpus-per-instance", "GPUs of one rollout instance (TP x PP).")]
RolloutGpus = Annotated[str | None, quantity("--rollout-gpus", "GPUs of the rollout fleet.")]
TrainerGpus = Annotated[str | None, quantity("--trainer-gpus", "GPUs of the trainer.")]
GpuHour = Annotated[str | None, quantity("--gpu-hour", "Dollars per GPU-hour, both pools.", MONEY)]
RolloutGpuHour = Annotated[
    str | None, quantity("--rollout-gpu-hour", "Dollars per rollout GPU-hour (preemptible?).", MONEY)
]
TrainerGpuHour = Annotated[str | None, quantity("--trainer-gpu-hour", "Dollars per trainer GPU-hour.", MONEY)]
Price = Annotated[str | None, quantity("--price", "A price profile in place of the numbers.", MONEY, "NAME")]
BlockSize = Annotated[str | None, quantity("--block-size", "Tokens in a KV-cache block; 16 when not given.", CACHING)]
RoutingName = Annotated[
    str | None, quantity("--routing", "affine (a group stays on one instance), random or round-robin.", CACHING, "NAME")
]
HitRatio = Annotated[str | None, quantity("--hit-ratio", "Prefix-cache hit ratio today, 0 to 1.", CACHING)]
PrefillRate = Annotated[
    str | None, quantity("--prefill-rate", "Prompt tokens per second of an instance that only prefills.", CACHING)
]
ModelName = Annotated[
    str | None, quantity("--model", "A model profile or the path of a config.json.", CHECKS, "NAME|FILE")
]
Params = Annotated[str | None, quantity("--params", "Parameters, where there is no profile: 70B.", CHECKS)]
GpuName = Annotated[str | None, quantity("--gpu", "A GPU profile, such as h100-sxm.", CHECKS, "NAME")]

Profiles = Annotated[
    list[str] | None,
    typer.Option(
        "--profiles",
        metavar="DIR",
        help="A folder of your own profiles, on top of the shipped ones; repeatable.",
        rich_help_panel="Output",
        show_default=False,
    ),
]
Seed = Annotated[
    str,
    typer.Option(
        "--seed", help="Seed of the draws behind a band (inputs written as 20 ± 2).", rich_help_panel="Output"
    ),
]

# Units and limits of the inputs: one declaration for a flag and for its figure.
TOKEN_RATE = Quantity("token/s")
TOKENS = Quantity("token")
SECONDS = Quantity("s")
SECONDS_OR_NONE = Quantity("s", least=0.0)
COUNT = Quantity("count", whole=True)
POSITIVE = Quantity("count")
HEADROOM = Quantity("1", least=0.01, most=1.0)
FRACTION = Quantity("1", most=1.0)
OVERSAMPLING = Quantity("1", least=1.0, most=1e4)
KEPT = Quantity("1", least=1e-4, most=1.0)
DROPPED = Quantity("1", least=0.0, most=0.9999)
FRACTION_OR_NONE = Quantity("1", least=0.0, most=1.0)
HIT_RATIO = Quantity("1", least=0.0, most=0.999)  # a cache that computes nothing leaves nothing to save
WASTE = Quantity("1", least=1.0, most=1e4)
DOLLARS = Quantity("usd", least=0.0)
PARAMS = Quantity("param")
STALENESS = Quantity("count", least=0.0)
GPUS_PER_INSTANCE = Quantity("count", most=4096)
