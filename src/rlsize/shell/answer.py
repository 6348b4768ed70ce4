"""A report leaves: as a table, JSON, CSV or Markdown on stdout, and as a picture where one is asked for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError
from rlsize.shell.command import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.reports.report import Report


def deliver(report: Report, output: dict[str, Any]) -> None:
    """
    Show a report the way the flags ask for.

    Raises:
        InputError: Two forms at once, or a picture that this command does not have.
    """
    form = check_form(output)
    plot = output.get("plot")
    if plot and report.chart is None and plot != TERMINAL:
        raise InputError(Fault("there is nothing to draw for this question", "--plot", "leave it out"))
    if plot and plot != TERMINAL:  # the file first: if it cannot be written, nothing is answered
        from rlsize.writers.plot import write_picture

        write_picture(report.chart, plot, force=bool(output.get("force")))
    _print(report, form, output)
    if plot:
        _say(report, plot, machine=form != "table")


def check_form(output: Mapping[str, Any]) -> str:
    """
    The form in which a report is printed: json, csv, markdown or table.

    Args:
        output: The flags that every command has.

    Raises:
        InputError: Two forms at once.
    """
    wanted = [name for name in ("json", "csv", "markdown") if output.get(name)]
    if len(wanted) > 1:
        raise InputError(Fault("only one of them can be printed", " ".join(f"--{name}" for name in wanted), "keep one"))
    return wanted[0] if wanted else "table"


def _print(report: Report, form: str, output: dict[str, Any]) -> None:
    if form == "json":
        from rlsize.shell.digest import facts_digest
        from rlsize.writers.json_document import json_text

        sys.stdout.write(json_text(report, facts_digest(output.get("profiles") or [])))
    elif form == "csv":
        from rlsize.writers.csv_table import csv_text

        sys.stdout.write(csv_text(report))
    elif form == "markdown":
        from rlsize.writers.markdown import markdown_text

        sys.stdout.write(markdown_text(report, explain=bool(output.get("explain"))))
    else:
        from rlsize.writers.table import print_report

        print_report(report, explain=bool(output.get("explain")))
    if form in {"csv", "markdown"}:
        _warn(report)


def _warn(report: Report) -> None:
    from rlsize.writers.table import print_warnings

    print_warnings(report)


def _say(report: Report, plot: str, *, machine: bool) -> None:
    if plot != TERMINAL:
        sys.stderr.write(f"wrote {plot}\n")
    elif report.chart is None:
        sys.stderr.write("there is nothing to draw for this question\n")
    elif not machine:
        from rlsize.writers.terminal_plot import print_chart

        print_chart(report.chart)
