"""
What `measure` has measured so far, on disk after each level and each stage: what survives, whatever ends it.

One JSON object a line; the first one says of which question. A last line that was cut short is passed over.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlsize.commands.measure.rollout import RolloutResult
from rlsize.errors import Fault, InputError
from rlsize.facts.measured import RolloutMeasured, SyncMeasured, TrainMeasured
from rlsize.facts.rates import MeasuredInstance, RateConditions
from rlsize.facts.rollout_run import PhaseRun
from rlsize.measure.jobs import StageResult
from rlsize.readers.validation import adapter
from rlsize.version import VERSION

if TYPE_CHECKING:
    from rlsize.commands.measure.asked import Measurement
    from rlsize.facts.measured import Stage

SUFFIX = ".journal"
_MEASURED: dict[str, Any] = {"rollout": RolloutMeasured, "train": TrainMeasured, "sync": SyncMeasured}
_KINDS: dict[str, Any] = {"conditions": RateConditions, "instances": list[MeasuredInstance]}
_LARGEST = 256 * 2**20


class Journal:
    """
    The journal of one measurement.

    Args:
        asked: What is measured.
        resumed: A journal to go on with, and in; None to begin one.
        save: Where the rates go; a new journal stands beside them, else among the system's temporary files.
        force: Whether a new one may take the place of an old one.

    Raises:
        InputError: It is no journal, or one of another question; or one is there that nobody has gone on with.
    """

    def __init__(self, asked: Measurement, resumed: str | None, save: str | None, *, force: bool) -> None:
        self.levels: dict[int, list[PhaseRun]] = {}
        self.stages: dict[Stage, StageResult[Any]] = {}
        self._head = {"journal": _question(asked), "version": VERSION}
        self._begun = resumed is not None
        if resumed is not None:
            self.path = Path(resumed)
            self._read()
        elif save is not None:
            self.path = Path(save + SUFFIX)
            if self.path.exists() and not force:
                todo = f"go on with it: --resume {self.path}; or --force begins anew"
                raise InputError(Fault("is the journal of a measurement that broke off", str(self.path), todo))
        else:
            self.path = Path(tempfile.gettempdir()) / f"rlsize-measure-{os.getpid()}{SUFFIX}"

    def keep_level(self, concurrency: int, runs: list[PhaseRun]) -> None:
        """Keep a level of the rollout that is over."""
        self.levels[concurrency] = runs
        self._add({"level": concurrency, "runs": _plain(runs)})

    def keep_stage(self, stage: Stage, result: StageResult[Any]) -> None:
        """Keep a stage that is over."""
        self.stages[stage] = result
        kept = [one.name for one in fields(RolloutResult if stage == "rollout" else StageResult)]
        self._add({"stage": stage, "result": {name: _plain(getattr(result, name)) for name in kept}})

    def close(self, *, whole: bool) -> None:
        """Take it away where all was measured; else say how to go on, if anything was."""
        if whole:
            self.path.unlink(missing_ok=True)
        elif self.levels or self.stages:
            sys.stderr.write(f"what is whole is kept: the same command with --resume {self.path} goes on\n")

    def _add(self, entry: dict[str, Any]) -> None:
        lines = [entry] if self._begun else [self._head, entry]
        try:
            with self.path.open("a" if self._begun else "w", encoding="utf-8") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:  # a full disk is no reason to measure nothing
            sys.stderr.write(f"{self.path} cannot be written: {error.strerror}\n")
        else:
            if not self._begun:
                sys.stderr.write(f"kept as it comes in {self.path}; after a break, add --resume {self.path}\n")
            self._begun = True

    def _read(self) -> None:
        from rlsize.readers.yaml_documents import read_text

        head, *lines = read_text(str(self.path), _LARGEST).splitlines() or [""]
        entries = list(filter(None, map(_object, [head, *lines])))
        if not entries or "journal" not in entries[0]:
            raise InputError(Fault("is no journal of a measurement", str(self.path), "name what `measure` has kept"))
        if entries[0] != self._head:
            todo = "give the flags, the scenario and the version of rlsize that it was begun with"
            raise InputError(Fault("is the journal of another measurement", str(self.path), todo))
        try:
            for entry in entries[1:]:
                self._take(entry)
        except (ValueError, TypeError, LookupError):
            raise InputError(Fault("holds what no measurement keeps", str(self.path), "begin anew")) from None
        if lines and _object(lines[-1]) is None:  # cut short
            self.path.write_text("".join(json.dumps(entry) + "\n" for entry in entries), encoding="utf-8")

    def _take(self, entry: dict[str, Any]) -> None:
        if "level" in entry:
            self.levels[int(entry["level"])] = adapter(list[PhaseRun]).validate_python(entry["runs"])
            return
        stage, said = entry["stage"], entry["result"]
        kinds = {**_KINDS, "measured": _MEASURED[stage]}
        made: Any = RolloutResult if stage == "rollout" else StageResult
        self.stages[stage] = made(
            **{
                name: adapter(kinds[name]).validate_python(value) if name in kinds else value
                for name, value in said.items()
            }
        )


def _plain(value: Any) -> Any:
    """A value as JSON takes it."""
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _object(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _question(asked: Measurement) -> str:
    """What tells a measurement from every other; where a profile's config.json lies for a while is no part of it."""
    model = asked.model._replace(source="", shape="") if asked.model else None
    servers = [target.shown for target in asked.targets]
    said = asked._asdict() | {"model": model, "targets": (), "access": None}
    return hashlib.sha256(repr((said, servers)).encode()).hexdigest()[:24]
