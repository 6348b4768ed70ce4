"""Finished runs of the simulator in a file, so that work that was cut off is gone on with."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from itertools import chain
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError

if TYPE_CHECKING:
    from rlsize.simulator.outcome import Outcome

_LARGEST_FILE = 256 * 2**20
_OPENING = '{"key": "'  # of each line


class Kept:
    """
    A file of finished runs, one a line, which grows as runs finish.

    Args:
        path: The file; made if there is none.

    Raises:
        InputError: It cannot be read, or holds something else; it is left as it is.
    """

    def __init__(self, path: str) -> None:
        from rlsize.readers.yaml_documents import read_text
        from rlsize.writers.files import check_target

        self.path = check_target(path, force=True)
        self._known: dict[str, Outcome] = {}
        self._torn = False
        if not self.path.exists():
            return
        text = read_text(path, _LARGEST_FILE)
        self._torn = bool(text) and not text.endswith("\n")
        for number, line in enumerate(text.splitlines(), start=1):
            entry = _entry(line)
            if entry is not None:
                self._known[entry[0]] = entry[1]
            elif not _cut_short(line):
                fault = Fault("is no finished run", f"{path}, line {number}", "name a file that --runs has written")
                raise InputError(fault)

    def found(self, key: str) -> Outcome | None:
        """
        What a run came to, if the file has it.

        Args:
            key: What tells it from every other run.
        """
        return self._known.get(key)

    def add(self, key: str, outcome: Outcome) -> None:
        """
        Note a finished run, whole, at the end of the file; once.

        Args:
            key: What tells it from every other run.
            outcome: What it came to.

        Raises:
            InputError: The disk refuses.
        """
        if key in self._known:
            return
        line = json.dumps({"key": key, "outcome": asdict(outcome)})
        try:
            with Path(self.path).open("a", encoding="utf-8") as stream:
                stream.write(("\n" if self._torn else "") + line + "\n")
        except OSError as error:
            raise InputError(Fault(f"cannot be written: {error.strerror}", str(self.path), "check the disk")) from None
        self._torn = False
        self._known[key] = outcome


def _cut_short(line: str) -> bool:
    """Whether a line is the beginning of one of ours: the run is made again."""
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return line.startswith(_OPENING) or _OPENING.startswith(line)
    return False


def _entry(line: str) -> tuple[str, Outcome] | None:
    """The run that a line tells of; None where it tells of none."""
    try:
        found = json.loads(line)
        return str(found["key"]), _outcome(found["outcome"])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        return None


def _outcome(said: dict[str, Any]) -> Outcome:
    """
    What a run came to, as the file says it.

    Raises:
        TypeError: It says something else; or ValueError, KeyError, AttributeError.
    """
    from rlsize.simulator.outcome import Outcome

    if set(said) != {field.name for field in fields(Outcome)}:
        raise TypeError("the file says something else")
    series = {str(name): [float(value) for value in values] for name, values in said["over_time"].items()}
    numbers = chain(said["measures"].values(), said["staleness"].values(), [said["grows"]], *series.values())
    if not all(map(isfinite, numbers)):
        raise TypeError("a run comes to numbers")
    return Outcome(
        seed=int(said["seed"]),
        steps=int(said["steps"]),
        warm_up=int(said["warm_up"]),
        measures={str(name): float(value) for name, value in said["measures"].items()},
        staleness={int(lag): float(share) for lag, share in said["staleness"].items()},
        grows=float(said["grows"]),
        over_time=series,
    )
