"""The flags of `rlsize init`: one for each question."""

from __future__ import annotations

from typing import Annotated

import typer

from rlsize.shell.command import quantity

_GPUS = "Model and GPUs"
_STEP = "One optimizer step"
_PLACE = "Placement"
_RATES = "What is measured"
_MONEY = "Price and limits"

File = Annotated[str, typer.Argument(metavar="FILE", help="The scenario file to write.")]
Model = Annotated[str | None, quantity("--model", "A model profile or the path of a config.json.", _GPUS, "NAME|FILE")]
Gpu = Annotated[str | None, quantity("--gpu", "A GPU profile, such as h100-sxm.", _GPUS, "NAME")]
Gpus = Annotated[str | None, quantity("--gpus", "GPUs, trainer and rollout fleet together.", _GPUS)]
GpusPerNode = Annotated[str | None, quantity("--gpus-per-node", "GPUs in a node; else as the profile says.", _GPUS)]
Algorithm = Annotated[str | None, quantity("--algorithm", "grpo, ppo, rloo, reinforce++, dapo or sft.", _STEP, "NAME")]
Prompts = Annotated[str | None, quantity("--prompts", "Prompts per optimizer step.", _STEP)]
Group = Annotated[str | None, quantity("--group|--group-size", "Samples of one prompt, G.", _STEP)]
PromptTokens = Annotated[str | None, quantity("--prompt-tokens", "Mean prompt length in tokens.", _STEP)]
ResponseTokens = Annotated[str | None, quantity("--response-tokens", "Mean response length in tokens.", _STEP)]
MaxResponseTokens = Annotated[
    str | None, quantity("--max-response-tokens", "Longest response, where generation is cut off.", _STEP)
]
Mode = Annotated[
    str | None,
    quantity(
        "--mode",
        "colocated, disaggregated, one-step-off, async, partial; plan leaves it to `rlsize plan`.",
        _PLACE,
        "NAME",
    ),
]
MaxStaleness = Annotated[
    str | None, quantity("--max-staleness", "Staleness cap in optimizer steps, for async.", _PLACE)
]
TrainerGpus = Annotated[str | None, quantity("--trainer-gpus", "GPUs of the trainer.", _PLACE)]
RolloutGpus = Annotated[str | None, quantity("--rollout-gpus", "GPUs of the rollout fleet.", _PLACE)]
RatesFile = Annotated[
    str | None, quantity("--rates", "A rates file of `rlsize observe` or `rlsize measure`.", _RATES, "FILE")
]
PerInstance = Annotated[
    str | None,
    quantity(
        "--per-instance", "Response tokens per second of one instance: a number or a rates file.", _RATES, "NUMBER|FILE"
    ),
]
TrainSeconds = Annotated[
    str | None,
    quantity("--train-seconds", "Busy trainer seconds per step, without waiting and sync.", _RATES),
]
GpuHour = Annotated[str | None, quantity("--gpu-hour", "Dollars per GPU-hour; no price is ever assumed.", _MONEY)]
AsOf = Annotated[str | None, quantity("--as-of", "Day of that price.", _MONEY, "DATE")]
Region = Annotated[str | None, quantity("--region", "Region of that price.", _MONEY, "TEXT")]
Budget = Annotated[
    list[str] | None,
    quantity("--budget", "A limit, such as cost_per_step_usd=2.5; repeatable.", _MONEY, "KEY=NUMBER"),
]
Yes = Annotated[
    bool,
    typer.Option("--yes", "-y", help="Ask nothing: flags and usual answers decide.", rich_help_panel="Output"),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.", rich_help_panel="Output")]
