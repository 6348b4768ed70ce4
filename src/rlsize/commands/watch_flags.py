"""The flags of commands that look at a running loop: what to read, for how long, and with whose permission."""

from __future__ import annotations

from typing import Annotated

import typer

from rlsize.shell.command import quantity

_ACCESS = "Access"
Named = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SOURCE...",
        help="Engines (http://HOST:PORT), a training log, a benchmark's result files; - is stdin.",
        show_default=False,
    ),
]
FormatName = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="NAME",
        help="The format of the file, where its content does not tell.",
        rich_help_panel="Inputs",
        show_default=False,
    ),
]
Skip = Annotated[str | None, quantity("--skip", "Steps of a log to leave out at its start; found without it.")]
Pages = Annotated[
    list[str] | None,
    typer.Option(
        "--pages",
        metavar="FIRST SECOND",
        help="Two saved pages of the same engines instead of URLs; repeatable, once for each server.",
        rich_help_panel="Inputs",
        show_default=False,
    ),
]
Prometheus = Annotated[
    str | None,
    typer.Option(
        "--prometheus",
        metavar="URL",
        help="A Prometheus server that scrapes the engines, instead of their URLs.",
        rich_help_panel="Inputs",
        show_default=False,
    ),
]
Selector = Annotated[
    str | None,
    typer.Option(
        "--selector",
        metavar="MATCHERS",
        help="Which engines of --prometheus, by their labels: 'job=\"rollout\"'.",
        rich_help_panel="Inputs",
        show_default=False,
    ),
]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="TIME",
        help="End of the window of --prometheus: ISO 8601 with a zone, or seconds since 1970; now without it.",
        rich_help_panel="Inputs",
        show_default=False,
    ),
]
Window = Annotated[str | None, quantity("--window", "How long to watch: seconds, or 5m, 1h; 300 by default.")]
Every = Annotated[str | None, quantity("--every", "Seconds between two looks; 5 by default.")]
Seconds = Annotated[str | None, quantity("--seconds", "Time between the two saved pages.")]
MaxNumSeqs = Annotated[
    str | None, quantity("--max-num-seqs", "The engines' limit on running requests, where it is their plateau.")
]
Save = Annotated[
    str | None,
    typer.Option(
        "--save",
        metavar="FILE",
        help="Write a rates file that `fleet --per-instance` takes.",
        rich_help_panel="Output",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.", rich_help_panel="Output")]
TokenFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="File with a bearer token; RLSIZE_BEARER_TOKEN or RLSIZE_BASIC_AUTH without it.",
        rich_help_panel=_ACCESS,
        show_default=False,
    ),
]
Authority = Annotated[
    str | None,
    typer.Option(
        "--ca",
        metavar="FILE",
        help="Certificates to trust instead of the system's (PEM).",
        rich_help_panel=_ACCESS,
        show_default=False,
    ),
]
Insecure = Annotated[bool, typer.Option("--insecure", help="Do not check certificates.", rich_help_panel=_ACCESS)]
Timeout = Annotated[str | None, quantity("--timeout", "Most seconds for one page; 10 by default.", _ACCESS)]
Record = Annotated[
    str | None,
    typer.Option(
        "--record",
        metavar="FILE",
        help="Write what was seen with pools and prices: a baseline for `diagnose --before`, a way back.",
        rich_help_panel="Output",
        show_default=False,
    ),
]
