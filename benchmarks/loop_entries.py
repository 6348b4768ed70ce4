"""Reads the published speedups of `benchmarks/published_loops.yaml` and builds the settings to simulate for each."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from rlsize.simulator.setting import (
    EngineSetting,
    Latency,
    LengthSetting,
    RuleSetting,
    Setting,
    SyncSetting,
    TrainerSetting,
    TroubleSetting,
    WorkSetting,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from _typeshed import DataclassInstance

FOLDER = Path(__file__).resolve().parent
ENTRIES = FOLDER / "published_loops.yaml"
REASONS = FOLDER / "published_loops_reasons.yaml"
SIDES = ("baseline", "improved")
METRICS = ("step_seconds", "tokens_per_second", "generated_tokens_per_second", "max_staleness")
WEIGHTS = ("strong", "medium", "weak")
MARKS = "PCNR"
_PARTS: dict[str, type[Any]] = {
    "engine": EngineSetting,
    "work": WorkSetting,
    "trainer": TrainerSetting,
    "sync": SyncSetting,
    "rules": RuleSetting,
    "trouble": TroubleSetting,
    "lengths": LengthSetting,
    "tool": Latency,
    "verify": Latency,
}
_MAY_LACK = {"note", "baseline_repeats", "other_figures"}
_MUST_HAVE = {
    "name", "claim", "compares", "source", "metric", "weight", "scaled", "steps", "warmup", *SIDES, "inputs",
    "not_given", "not_expressible",
}  # fmt: skip

_T = TypeVar("_T", bound="DataclassInstance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """
    One side of an entry.

    Args:
        setting: What is simulated.
        steps: Optimizer steps. [1]
        warmup: Of them, the first ones that are not counted. [1]
    """

    setting: Setting
    steps: int
    warmup: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """
    A published ratio, and what to simulate for it.

    Args:
        name: Of the entry.
        speedup: Published ratio.
        low: Low end of what is published.
        high: High end.
        baseline: The side that the ratio is over.
        improved: The other side.
        repeats: Simulated steps of the baseline that make one published step. [1]
        metric: What the ratio compares.
        weight: How much agreement says.
        facts: The entry as it stands in the file.
    """

    name: str
    speedup: float
    low: float
    high: float
    baseline: Run
    improved: Run
    repeats: float
    metric: str
    weight: str
    facts: Mapping[str, Any]

    @property
    def marks(self) -> str:
        """How the claim was read, as the letters of the file's header, in the order of the entry."""
        words = "".join(sign if sign.isalnum() else " " for sign in str(self.facts["source"]["read"])).split()
        return ", ".join(dict.fromkeys(word for word in words if len(word) == 1 and word in MARKS))


def read_entries(file: Path = ENTRIES) -> list[Entry]:
    """
    All entries of a file.

    Args:
        file: YAML in the form that its header describes.

    Raises:
        ValueError: A key is missing or unknown, or a value is of the wrong kind.
    """
    found = [_entry(facts) for facts in yaml.safe_load(file.read_text(encoding="utf-8"))["loops"]]
    names = [entry.name for entry in found]
    if len(set(names)) < len(names):
        raise ValueError(f"{file.name}: two entries share a name")
    return found


def read_reasons(file: Path = REASONS) -> dict[str, str]:
    """Why the simulation differs from what is published, by entry."""
    found = yaml.safe_load(file.read_text(encoding="utf-8"))
    return {str(name): " ".join(str(text).split()) for name, text in found.items()}


def built(kind: type[_T], given: object, where: str) -> _T:
    """
    A dataclass of the simulator from nested mappings.

    Args:
        kind: The dataclass.
        given: Its values by field.
        where: What to call it in an error.

    Raises:
        ValueError: A field is unknown or missing, or not of the kind of its default.
    """
    if not isinstance(given, dict):
        raise ValueError(f"{where}: {given!r} is no mapping")  # noqa: TRY004 (the fault is the file's)
    known = {field.name: field for field in fields(kind)}
    unknown = sorted(set(given) - set(known))
    lacking = sorted(
        name
        for name, field in known.items()
        if name not in given and field.default is MISSING and field.default_factory is MISSING
    )
    if unknown or lacking:
        raise ValueError(f"{where}: unknown {unknown}, missing {lacking}; known are {sorted(known)}")
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name in _PARTS:
            values[name] = built(_PARTS[name], value, f"{where}.{name}")
        else:
            values[name] = _plain(value, str(known[name].type), f"{where}.{name}")
    return kind(**values)


def _plain(value: object, kind: str, where: str) -> object:
    """A value, if it is of the kind that the annotation of its field names."""
    words = set(kind.replace("|", " ").split())
    if kind.startswith("tuple"):
        fits = isinstance(value, list) and all(isinstance(each, (int, float)) for each in value)
        value = tuple(float(each) for each in value) if fits and isinstance(value, list) else value
    elif value is None:
        fits = "None" in words
    elif isinstance(value, bool):
        fits = "bool" in words
    elif isinstance(value, int):
        fits = bool(words & {"int", "float"})
    elif isinstance(value, float):
        fits = "float" in words
    else:
        fits = isinstance(value, str) and not words & {"int", "float", "bool"}
    if not fits:
        raise ValueError(f"{where}: {value!r} is no {kind}")
    return value


def _entry(facts: Mapping[str, Any]) -> Entry:
    name = str(facts.get("name"))
    unknown, lacking = set(facts) - _MUST_HAVE - _MAY_LACK, _MUST_HAVE - set(facts)
    if unknown or lacking:
        raise ValueError(f"{name}: unknown {sorted(unknown)}, missing {sorted(lacking)}")
    metric, weight, repeats = facts["metric"], facts["weight"], float(facts.get("baseline_repeats", 1.0))
    if metric not in METRICS or weight not in WEIGHTS:
        raise ValueError(f"{name}: metric {metric!r} or weight {weight!r} is none of {METRICS}, {WEIGHTS}")
    if repeats != 1.0 and metric != "step_seconds":
        raise ValueError(f"{name}: baseline_repeats goes with step_seconds, not with {metric}")
    speedup = float(facts["claim"]["speedup"])
    baseline, improved = (_run(facts, side, name) for side in SIDES)
    return Entry(
        name=name,
        speedup=speedup,
        low=float(facts["claim"].get("low", speedup)),
        high=float(facts["claim"].get("high", speedup)),
        baseline=baseline,
        improved=improved,
        repeats=repeats,
        metric=metric,
        weight=weight,
        facts=facts,
    )


def _run(facts: Mapping[str, Any], side: str, name: str) -> Run:
    steps, warmup = int(facts["steps"][side]), int(facts["warmup"][side])
    if not 0 <= warmup < steps:
        raise ValueError(f"{name}.{side}: of {steps} steps {warmup} cannot be left out")
    return Run(setting=built(Setting, facts[side], f"{name}.{side}"), steps=steps, warmup=warmup)
