"""The flags of `rlsize plan` that other commands do not have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from rlsize.shell.command import quantity

SEARCH, GOAL, RATES, RUN = "Search", "Goal and limits", "Rates that are known", "Run"

Objective = Annotated[
    str | None,
    quantity("--objective", "time (shortest step), cost (least per step) or gpus (fewest).", GOAL, "NAME"),
]
StepsPerDay = Annotated[str | None, quantity("--steps-per-day", "Optimizer steps a day that must be reached.", GOAL)]
FinishBy = Annotated[
    str | None, quantity("--finish-by", "Time in which the run must end: 7 days; needs --steps.", GOAL)
]
Steps = Annotated[str | None, quantity("--steps", "Optimizer steps of the run.", RUN)]
BudgetFile = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="FILE",
        help="Limits that a plan must keep; the scenario's own budget when not given.",
        rich_help_panel=GOAL,
        show_default=False,
    ),
]
MemoryMargin = Annotated[
    str | None, quantity("--memory-margin", "Share of memory that stays free on both sides; 5% when not given.", GOAL)
]
Modes = Annotated[
    str | None,
    quantity(
        "--mode",
        "Modes to try: colocated, synchronous, one-step-off, async, hybrid.",
        SEARCH,
        "LIST",
    ),
]
RolloutGpus = Annotated[
    str | None, quantity("--rollout-gpus", "The only numbers of rollout GPUs to try, with commas.", SEARCH, "LIST")
]
TrainerGpus = Annotated[
    str | None, quantity("--trainer-gpus", "The only numbers of trainer GPUs to try, with commas.", SEARCH, "LIST")
]
MaxStaleness = Annotated[
    str | None, quantity("--max-staleness", "Largest staleness cap to try; the scenario's, else 2.", SEARCH)
]
Transports = Annotated[
    str | None,
    quantity("--transport", "Classes of weight sync to try, or all; the scenario's when not given.", SEARCH, "LIST"),
]
RolloutTensor = Annotated[
    str | None, quantity("--rollout-tensor-parallel", "Degrees to try for an instance, with commas.", SEARCH, "LIST")
]
RolloutData = Annotated[
    str | None,
    quantity("--rollout-data-parallel", "Attention ranks to try for an instance of a MoE model.", SEARCH, "LIST"),
]
Tensor = Annotated[str | None, quantity("--tensor-parallel", "Degrees to try for the trainer.", SEARCH, "LIST")]
Pipeline = Annotated[str | None, quantity("--pipeline-parallel", "Stages to try for the trainer.", SEARCH, "LIST")]
Context = Annotated[str | None, quantity("--context-parallel", "Context ranks to try for the trainer.", SEARCH, "LIST")]
Expert = Annotated[str | None, quantity("--expert-parallel", "Expert ranks to try for the trainer.", SEARCH, "LIST")]
Recompute = Annotated[
    str | None, quantity("--recompute", "none, selective, full: what backward may recompute.", SEARCH, "LIST")
]
MicroBatches = Annotated[
    str | None, quantity("--micro-batch-tokens", "Tokens of a micro-batch to try, with commas.", SEARCH, "LIST")
]
WholeNodes = Annotated[bool, typer.Option("--whole-nodes", help="Each pool takes whole nodes.", rich_help_panel=SEARCH)]
RolloutPool = Annotated[
    list[str] | None,
    typer.Option(
        "--rollout-pool",
        metavar="GPU:COUNT:PRICE",
        help="GPUs that the fleet may be built of, such as l40s:64:0.9; repeatable.",
        rich_help_panel=SEARCH,
        show_default=False,
    ),
]
TrainerPool = Annotated[
    list[str] | None,
    typer.Option(
        "--trainer-pool",
        metavar="GPU:COUNT:PRICE",
        help="GPUs that the trainer may be built of; repeatable.",
        rich_help_panel=SEARCH,
        show_default=False,
    ),
]
Simulate = Annotated[str | None, quantity("--simulate", "Rank the best N again with the simulator.", SEARCH, "N")]
Save = Annotated[
    str | None,
    typer.Option(
        "--save",
        metavar="FILE",
        help="Write the plan to a file, for check --baseline and diff.",
        rich_help_panel="Output",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.", rich_help_panel="Output")]
MeasuredTrainerGpus = Annotated[
    str | None,
    quantity("--measured-trainer-gpus", "GPUs that --train-seconds or --consume was measured on.", RATES),
]
PerInstance = Annotated[
    str | None,
    quantity("--per-instance", "Response tokens per second of one instance: a number or a rates file.", RATES),
]
RolloutRate = Annotated[
    str | None,
    quantity("--rollout-tokens-per-second|--rollout-tps", "Response tokens per second of one rollout GPU.", RATES),
]
TrainerRate = Annotated[
    str | None,
    quantity("--trainer-tokens-per-second|--trainer-tps", "Response tokens per second of one trainer GPU.", RATES),
]
TrainSeconds = Annotated[str | None, quantity("--train-seconds", "Busy trainer seconds per optimizer step.", RATES)]
Consume = Annotated[str | None, quantity("--consume", "Response tokens the trainer consumes per second.", RATES)]
GpusPerInstance = Annotated[
    str | None, quantity("--gpus-per-instance", "GPUs of one instance whose rate is known.", RATES)
]
Headroom = Annotated[
    str | None, quantity("--headroom", "Derating of that rate for what it does not contain, 0 to 1.", RATES)
]
SyncSeconds = Annotated[str | None, quantity("--sync-seconds", "Pause of one weight sync.", RATES)]
BatchTokens = Annotated[str | None, quantity("--batch-tokens", "Response tokens per optimizer step.", RATES)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFlags:
    """What the flags say about the search; None where one was not given."""

    objective: str | None = None
    steps_per_day: str | None = None
    finish_by: str | None = None
    budget: str | None = None
    memory_margin: str | None = None
    modes: str | None = None
    rollout_gpus: str | None = None
    trainer_gpus: str | None = None
    max_staleness: str | None = None
    transports: str | None = None
    rollout_tensor: str | None = None
    rollout_data: str | None = None
    tensor: str | None = None
    pipeline: str | None = None
    context: str | None = None
    expert: str | None = None
    recompute: str | None = None
    micro_batches: str | None = None
    whole_nodes: bool = False
    rollout_pools: tuple[str, ...] = ()
    trainer_pools: tuple[str, ...] = ()
