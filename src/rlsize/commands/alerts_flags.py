"""The flags of `rlsize alerts`."""

from __future__ import annotations

from typing import Annotated

import typer

from rlsize.shell.command import quantity

_SIGNALS, _FORMS = "Signals", "Kubernetes and Grafana"

Source = Annotated[
    str | None,
    typer.Argument(metavar="PLAN|SCENARIO", help="A saved plan, or a scenario.", show_default=False),
]
Budget = Annotated[str | None, quantity("--budget", "A budget file; its lines go before the rules.", metavar="FILE")]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR|FILE",
        help="A folder for rules, tests and what else is asked for, or a file for one of them.",
        show_default=False,
        rich_help_panel="Output",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.", rich_help_panel="Output")]
Group = Annotated[
    str, typer.Option("--name", metavar="NAME", help="Name of the rules, one for each loop.", rich_help_panel="Output")
]
Engine = Annotated[
    str | None, quantity("--engine", "vllm or sglang; the plan's when not given.", _SIGNALS, metavar="NAME")
]
Selector = Annotated[
    str,
    typer.Option(
        "--selector", metavar="SELECTOR", help="Which targets are the rollout instances.", rich_help_panel=_SIGNALS
    ),
]
TrainerSelector = Annotated[
    str | None,
    quantity("--trainer-selector", "Which series are the trainer's.", _SIGNALS, metavar="SELECTOR"),
]
Metric = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME=EXPR",
        help="Expression of a signal of the trainer: idle, sync, queue, age or trained; repeatable.",
        show_default=False,
        rich_help_panel=_SIGNALS,
    ),
]
EngineOnly = Annotated[
    bool,
    typer.Option(
        "--engine-only", help="Leave signals of the trainer out, but those of --metric.", rich_help_panel=_SIGNALS
    ),
]
Kubernetes = Annotated[
    bool, typer.Option("--kubernetes", help="Write a PrometheusRule for the operator.", rich_help_panel=_FORMS)
]
Namespace = Annotated[str | None, quantity("--namespace", "Its namespace.", _FORMS, metavar="NAME")]
Label = Annotated[
    list[str] | None,
    typer.Option(
        "--label",
        metavar="KEY=VALUE",
        help="A label of it, such as release=prometheus; repeatable.",
        show_default=False,
        rich_help_panel=_FORMS,
    ),
]
Grafana = Annotated[
    bool, typer.Option("--grafana", help="Write a dashboard with the plan's targets.", rich_help_panel=_FORMS)
]
