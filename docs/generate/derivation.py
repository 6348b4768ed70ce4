"""How a command's answer comes about, equation by equation, with the numbers that it took."""

from __future__ import annotations

import shlex
from contextlib import chdir, redirect_stdout
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING, Any

import typer

from generate.files import ROOT, fenced
from generate.worked import calculation
from rlsize.reports.equation_page import page
from rlsize.shell.app import app

if TYPE_CHECKING:
    from rlsize.facts.figure import Figure


@cache
def answer(line: str) -> Any:  # noqa: ANN401 (a Report; typer returns anything)
    """What a command would print, before it is printed."""
    with chdir(ROOT), redirect_stdout(StringIO()):
        return typer.main.get_command(app).main(shlex.split(line)[1:], prog_name="rlsize", standalone_mode=False)


def derived(line: str, *paths: str) -> str:
    """
    Steps on the way to results of a command, as formulas with their numbers.

    Args:
        line: The command, as typed.
        paths: Each names a figure: a result, and from there argument after argument, as in
            `train_seconds/update/pass_seconds/matmul`.
    """
    return "\n".join(fenced(_step(line, path), "text") for path in paths)


def _step(line: str, path: str) -> str:
    found = _figure(line, path)
    if not found.equation:
        parts = " + ".join(f"{name} {part.number:.6g}" for name, part in found.inputs.items())
        return f"{path.rpartition('/')[2]} = {parts}\n  = {found.number:.6g}"
    return calculation(page(found.equation), {key: part.number for key, part in found.inputs.items()}, found.number)


def _figure(line: str, path: str) -> Figure:
    first, *rest = path.split("/")
    results = {figure.key: figure for figure in answer(line).results}
    if first not in results:
        raise RuntimeError(f"{line} has no result {first}: {', '.join(results)}")
    found: Figure = results[first]
    for name in rest:
        if name not in found.inputs:
            raise RuntimeError(f"{path}: no {name} among {', '.join(found.inputs)}")
        found = found.inputs[name]
    return found
