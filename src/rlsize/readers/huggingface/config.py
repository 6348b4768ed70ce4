"""
A `config.json` as data, and typed look-ups in it.

JSON only, bounded in size, without duplicate keys and without numbers that are none. Look-ups know aliases, defaults
and limits; faults are noted, keys asked for are remembered.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rlsize.errors import Fault, InputError
from rlsize.readers.validation import unique_keys
from rlsize.readers.yaml_documents import read_text
from rlsize.units import cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

T = TypeVar("T")
FILE_NAME = "config.json"
DEEPEST = 20
LARGEST_FILE = 2**20  # the configurations of models with a thousand listed layers have 100 kB
LARGEST_WIDTH = 10**8  # no vocabulary or matrix is wider
_LONGEST_SHOWN = 40


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
        data = json.loads(text, object_pairs_hook=unique_keys, parse_constant=_finite, parse_float=_finite)
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


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is not a finite number")
    return number


class Keys:
    """
    The keys of one configuration.

    Args:
        data: Keys and values, as the file has them.
        where: The file, and the path inside it, for messages.
        defaults: Values that the family's code fills in where a key is missing.
    """

    def __init__(self, data: Mapping[str, Any], where: str, defaults: Mapping[str, int] | None = None) -> None:
        self.data = data
        self.where = where
        self.defaults = defaults or {}
        self.faults: list[Fault] = []
        self.assumed: dict[str, int] = {}
        self._asked: set[str] = set()

    def fault(self, key: str, what: str, todo: str = "") -> None:
        """Note that something is wrong with a key."""
        place = f"{self.where}{shown(key)}" if key else self.where.rstrip(" .:")
        self.faults.append(Fault(what, place, todo))

    def found(self, *names: str) -> tuple[str, Any]:
        """The first of several names for one thing that has a value, and the value; None where none has."""
        self._asked.update(names)
        present = [(name, self.data[name]) for name in names if self.data.get(name) is not None]
        if not present:
            return names[0], None
        for name, value in present[1:]:
            if value != present[0][1]:
                other = f"{present[0][0]} says {shown(present[0][1])}"
                self.fault(name, f"says {shown(value)}, but {other}", "both mean the same; keep one")
        return present[0]

    def whole(self, *names: str, default: int | None = None, least: int = 1, most: int = LARGEST_WIDTH) -> int:
        """
        A whole number.

        Args:
            names: What the key is called; the first name is the usual one.
            default: The value where it is missing and the family's code has none; without it the key is required.
            least: The smallest value that makes sense.
            most: The largest.
        """
        name, value = self.found(*names)
        if value is None and name in self.defaults:
            value = self.assumed[name] = self.defaults[name]
        if value is None:
            if default is None:
                also = f" (or {', '.join(names[1:])})" if names[1:] else ""
                self.fault(name, "is missing", f"add it{also}")
                return max(least, 1)
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
            self.fault(name, f"{shown(value)} is not a whole number")
        elif not least <= value <= most:
            self.fault(name, f"{shown(value)} is not between {least} and {most}")
        else:
            return int(value)
        return max(least, 1)

    def flag(self, *names: str, default: bool = False) -> bool:
        """A yes or no."""
        found = self._typed(bool, "neither true nor false", names)
        return default if found is None else found

    def word(self, *names: str) -> str:
        """A piece of text; empty where there is none."""
        return self._typed(str, "not text", names) or ""

    def entries(self, *names: str) -> list[Any] | None:
        """A list; None where there is none."""
        return self._typed(list, "not a list", names)

    def _typed(self, kind: type[T], otherwise: str, names: tuple[str, ...]) -> T | None:
        """A value of one type; None where there is none, and where it is of another, which is a fault."""
        name, value = self.found(*names)
        if value is None or isinstance(value, kind):
            return value
        self.fault(name, f"{shown(value)} is {otherwise}")
        return None

    def skip(self, names: Iterable[str]) -> None:
        """Note that keys have been taken care of."""
        self._asked.update(names)

    def unread(self) -> list[str]:
        """The keys that carry a value and that nobody has asked for."""
        empty: tuple[Any, ...] = (None, False, 0, "", [], {})
        return sorted(key for key, value in self.data.items() if key not in self._asked and value not in empty)


def shown(value: object) -> str:
    """A value from a file, short and harmless."""
    if isinstance(value, str) and value.isprintable() and value.isascii() and len(value) <= _LONGEST_SHOWN:
        return value
    if isinstance(value, (list, dict)):
        return f"a {'list' if isinstance(value, list) else 'mapping'} of {len(value)}"
    return cut(ascii(value), _LONGEST_SHOWN)
