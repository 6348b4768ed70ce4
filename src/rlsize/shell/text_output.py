"""How a file that a command made leaves: on stdout as it is, or written, with a report of what it is."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from rlsize.shell.answer import check_form

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.reports.report import Report


def delivered(report: Report, text: str, output: Mapping[str, Any], path: str | None, *, force: bool) -> Report:
    """
    The report, where one is asked for; else the text goes to stdout, so that it can be piped on.

    The text itself is a result of the command's own name, for programs; people read it where it is written.

    Args:
        report: What there is to say about the text.
        text: The file.
        output: The flags that every command has.
        path: Where it is written; None for stdout.
        force: Whether a file that exists may be replaced.

    Raises:
        InputError: It cannot be written.
        typer.Exit: It went to stdout, and nothing else is to be said there.
    """
    form = check_form(output)
    if form != "json":
        report = replace(report, results=tuple(figure for figure in report.results if figure.key != report.command))
    if path is not None:
        from rlsize.writers.files import write_whole

        write_whole(path, text, force=force)
        return report
    if form != "table" or output.get("plot") or output.get("explain"):
        return report
    from rlsize.writers.table import print_warnings

    sys.stdout.write(text)
    sys.stdout.flush()
    print_warnings(report)
    raise typer.Exit
