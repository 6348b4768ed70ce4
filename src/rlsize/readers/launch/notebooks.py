"""Jupyter notebooks: the Python of their cells, each line where it stands in the file as Jupyter writes it."""

from __future__ import annotations

import json
import re

from rlsize.errors import Fault, InputError

_BEGIN = re.compile(r'\s*"source": \[$')
_MAGIC = re.compile(r"\s*[%!]")


def notebook_code(text: str, name: str) -> str:
    r"""
    The code of a notebook; lines for the notebook itself (`%`, `!`) are left out, and so are cells of other languages.

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
        if said and said[0].startswith("%%") and not said[0].startswith(("%%capture", "%%time")):
            continue
        code[at + 1 : at + 1 + len(said)] = ["" if _MAGIC.match(one) else one.rstrip("\n") for one in said]
    return "\n".join(code)
