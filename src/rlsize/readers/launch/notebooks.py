"""Jupyter notebooks: the Python of their cells, each line where it stands in the file as Jupyter writes it."""

from __future__ import annotations

import ast
import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_BEGIN = re.compile(r'\s*"source": \[$')
_MAGIC = re.compile(r"\s*[%!]")
_COMMAND = re.compile(r"(\s*)!(?=.*\b(?:python3?|torchrun|accelerate|deepspeed|ray|swift|megatron|trl|bash)\s)")


def notebook_code(text: str, name: str) -> str:
    r"""
    The code of a notebook; lines for the notebook itself (`%`, `!`) are left out, and so are cells of other languages,
    but for commands that start a training: those are calls of the shell.

    Args:
        text: The notebook.
        name: Its name.

    Returns:
        Python with as many lines as the notebook.

    Raises:
        InputError: It is no notebook.

    >>> cell = {"cell_type": "code", "source": ["%pip install trl\n", "GRPOConfig(beta=0.1)"]}
    >>> notebook_code(json.dumps({"cells": [cell]}), "x.ipynb").split()
    ['GRPOConfig(beta=0.1)']
    """
    try:
        cells = json.loads(text)["cells"]
        for cell in cells:
            said = cell["source"]
            cell["source"] = said.splitlines(keepends=True) if isinstance(said, str) else [str(line) for line in said]
        lines = json.dumps({**json.loads(text), "cells": cells}, indent=1).split("\n")
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InputError(Fault("is not a notebook that can be read", name, "save it again, or as Python")) from None
    code, sources = [""] * len(lines), iter([cell for cell in cells if cell["source"]])
    for at, line in enumerate(lines):
        if not _BEGIN.match(line):
            continue
        cell = next(sources, None)
        said = cell["source"] if cell is not None and cell.get("cell_type") == "code" else []
        if said and said[0].startswith(("%%bash", "%%sh")):
            code[at + 1 : at + 1 + len(said)] = _as_code(["", *said[1:]], "")
        elif not said or not said[0].startswith("%%") or said[0].startswith(("%%capture", "%%time")):
            code[at + 1 : at + 1 + len(said)] = _lines(said)
    return "\n".join(code)


def _lines(said: list[str]) -> Iterator[str]:
    """The lines of a cell: Python as it stands, and commands that start a training as calls."""
    at = 0
    while at < len(said):
        end = at + 1
        while _MAGIC.match(said[at]) and end < len(said) and said[end - 1].rstrip().endswith("\\"):
            end += 1
        command = _COMMAND.match(said[at])
        if command:
            yield from _as_code([said[at][command.end() :], *said[at + 1 : end]], command[1])
        else:
            yield from ("" if _MAGIC.match(said[at]) else one.rstrip("\n") for one in said[at:end])
        at = end


def _as_code(lines: list[str], indent: str) -> list[str]:
    """A shell script as the Python that runs it, with what Python fills in in braces; nothing where it is no text."""
    script = "".join(lines).rstrip("\n")
    for sign in ("rf", "r"):
        call = f'os.system({sign}"""{script}""")'
        with suppress(SyntaxError, ValueError):
            ast.parse(call)
            return f"{indent}{call}".split("\n")
    return [""] * len(lines)
