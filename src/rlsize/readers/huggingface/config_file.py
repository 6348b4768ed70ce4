"""A `config.json` as data: JSON only, bounded in size, without duplicate keys and without numbers that are none."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from rlsize.errors import Fault, InputError
from rlsize.readers.yaml_documents import read_text

FILE_NAME = "config.json"
DEEPEST = 20
LARGEST_FILE = 2**20  # the configurations of models with a thousand listed layers have 100 kB


def config_path(path: str | Path) -> Path:
    """The configuration itself, where a model's directory is named."""
    given = Path(path)
    try:
        inside = given / FILE_NAME
        return inside if given.is_dir() and inside.exists() else given
    except (OSError, ValueError):
        return given  # reading it will say what is wrong


def read_config(path: Path) -> dict[str, Any]:
    """
    The content of a configuration.

    Raises:
        InputError: It cannot be read, is no JSON object, repeats a key, or holds NaN or Infinity.
    """
    text = read_text(path, LARGEST_FILE)
    try:
        data = json.loads(text, object_pairs_hook=_unique, parse_constant=_finite, parse_float=_finite)
    except json.JSONDecodeError as error:
        where = f"{path}:{error.lineno}"
        raise InputError(Fault(f"is not valid JSON: {error.msg}", where, "is it the config.json of a model?")) from None
    except RecursionError:
        raise InputError(Fault("is nested too deeply", str(path), "is it the config.json of a model?")) from None
    except ValueError as error:  # the two hooks, and whole numbers of thousands of digits
        raise InputError(Fault(str(error).partition(";")[0], str(path), "mend the file")) from None
    if _depth(data) > DEEPEST:
        raise InputError(Fault("is nested too deeply", str(path), "is it the config.json of a model?"))
    if not isinstance(data, dict):
        raise InputError(Fault("is not a JSON object", str(path), "is it the config.json of a model?"))
    return data


def _depth(data: Any) -> int:  # noqa: ANN401 (any JSON value)
    """How deep lists and objects are nested, found without recursion."""
    depth, level = 0, [data]
    while level := [each for each in level if isinstance(each, (list, dict))]:
        depth += 1
        level = [part for each in level for part in (each.values() if isinstance(each, dict) else each)]
    return depth


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {ascii(key)[:60]} stands twice")
        found[key] = value
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is not a finite number")
    return number
