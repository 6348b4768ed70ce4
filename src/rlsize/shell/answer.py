"""What a command made leaves: a report on stdout in some form, its picture, and files, checked before the work."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rlsize.errors import Fault, InputError, noting
from rlsize.shell.command import TERMINAL
from rlsize.shell.progress import stop_waiting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.reports.report import Report
    from rlsize.shell.inputs import Inputs


def deliver(report: Report, output: Mapping[str, Any]) -> None:
    """
    Show a report the way the flags ask for.

    Raises:
        InputError: Two forms at once, or a picture that this command does not have.
    """
    stop_waiting()
    form = check_form(output)
    report = replace(report, command=output.get("command") or report.command)
    plot = None if report.interrupted and report.chart is None else output.get("plot")
    if plot and plot != TERMINAL:  # the file first: if it cannot be written, nothing is answered
        if report.chart is None:
            raise InputError(Fault("there is nothing to draw for this question", "--plot", "leave it out"))
        from rlsize.writers.plot import write_picture

        write_picture(report.chart, plot, force=bool(output.get("force")))
    _print(report, form, output)
    if output.get("full") and (form != "table" or _seen_whole(report)):
        sys.stderr.write("note: --full changes nothing here: this answer is whole as it is\n")
    if not plot:
        return
    if plot != TERMINAL:
        sys.stderr.write(f"wrote {plot}\n")
    elif report.chart is None:
        sys.stderr.write("there is nothing to draw for this question\n")
    elif form == "table":
        from rlsize.writers.terminal_plot import print_chart

        print_chart(report.chart)


def _seen_whole(report: Report) -> bool:
    from rlsize.writers.table import console, seen_whole

    return seen_whole(report, console().width)


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


def _print(report: Report, form: str, output: Mapping[str, Any]) -> None:
    from rlsize.writers.table import print_report, print_warnings

    explain = bool(output.get("explain"))
    full = explain or bool(output.get("full"))
    if full or form != "table" or report.decision is None:
        report = replace(report, notes=(*report.notes, *report.later()))
    if form == "json":
        from rlsize.writers.json_document import json_text

        sys.stdout.write(json_text(report, facts_digest(output.get("profiles") or [])))
    elif form == "csv":
        from rlsize.writers.json_document import csv_text

        sys.stdout.write(csv_text(report))
        print_warnings(report)
    elif form == "markdown":
        from rlsize.writers.markdown import markdown_text

        sys.stdout.write(markdown_text(report, explain=explain))
        print_warnings(report)
    else:
        print_report(report, explain=explain, full=full)


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
        report = replace(report, results=tuple(one for one in report.results if one.key != output.get("command")))
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


def facts_digest(folders: list[str]) -> str:
    """
    First 16 hex digits of a SHA-256 over every profile and over the files of facts and equations.

    Args:
        folders: The user's own profile folders.
    """
    import hashlib  # loads OpenSSL, which only a digest needs

    from rlsize.readers.profiles import Catalogue, user_folders

    return hashlib.sha256(Catalogue(user_folders(folders)).digest().encode() + _facts_code()).hexdigest()[:16]


@cache
def _facts_code() -> bytes:
    """The files of facts and equations with their names."""
    import rlsize.equations
    import rlsize.facts

    folders = (*rlsize.equations.__path__, *rlsize.facts.__path__)
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.py"))]
    return b"".join(file.name.encode() + file.read_bytes().replace(b"\r\n", b"\n") for file in files)


def check_files(inputs: Inputs, *files: str | None, force: bool) -> None:
    """Note a fault for each file that cannot be written, or that two results would share; `-` is none."""
    from rlsize.writers.files import check_target

    named = [file for file in files if file and file != TERMINAL]
    for twice in sorted({file for file in named if named.count(file) > 1}):
        inputs.fault("is to be written twice", twice, "give each file a name of its own")
    for file in named:
        with noting(inputs.faults):
            check_target(file, force)
