"""
Rows of a log as steps: which key says which figure, by framework.

What a framework's keys mean stands in its file in `frameworks/`; how they are looked up, once for each layout of keys,
stands here.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from rlsize.facts.run_log import StepRecord
from rlsize.readers.logs.layouts import Texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rlsize.facts.run_log import RunMode
    from rlsize.readers.logs.rows import Row, Skips

Values: TypeAlias = "Mapping[str, float]"
Fields: TypeAlias = "dict[str, float]"
POOLS_NOT_TOLD = "this log does not tell whether rollouts and training share their GPUs"
_MOST_LAYOUTS = 256
_LARGEST_STEP = 2.0**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """
    Where a field of a step comes from.

    Args:
        field: The field.
        of: Terms, each with the names that its key has had.
        how: What is made of the terms, all of which must be there; None for the sum of those that are.
        says: How `how` is written, with the keys as {0}, {1}, ...
        scale: What a sum is multiplied by.
        counts: What it counts, where that is not what the field's name says.
    """

    field: str
    of: tuple[tuple[str, ...], ...]
    how: Callable[..., float | None] | None = None
    says: str = ""
    scale: float = 1.0
    counts: str = ""


def plain(name: str, *keys: str, scale: float = 1.0, counts: str = "") -> Figure:
    """A field that one key says, under one of its names; the first one that is there counts."""
    return Figure(field=name, of=(keys,), scale=scale, counts=counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """
    What a framework's keys mean.

    Args:
        name: What it is called.
        figures: All that its logs tell.
        chosen: Those of them that a row tells, by its keys; where None, any.
        mode: How rollouts and training lie in time, as far as one row tells; by its keys alone, unless `mode_by_row`.
        mode_by_row: Whether the numbers tell the mode.
        marks: More keys by which the framework is known; one that ends in / stands for all that begin so.
        steps: Keys of the step's number.
        prefixes: What TensorBoard callbacks put before a key.
        halves: Keys, one of which stands in each part of a step, where a step is logged in parts; else empty.
        together: Whether all parts of a step stand in one log.
        prepare: Renames keys that mean different things in different parts of a step.
        follow: Adds what follows from a row and the one before.
        follows: What `follow` makes of which keys, by field.
        warn: What must be known of a log, by its last row and the keys behind each field.
    """

    name: str
    figures: Sequence[Figure]
    chosen: Callable[[Values], Sequence[Figure]] | None = None
    mode: Callable[[Values], RunMode] | RunMode
    mode_by_row: bool = False
    marks: tuple[str, ...] = ()
    steps: tuple[str, ...] = ("step", "_step")
    prefixes: tuple[str, ...] = ("",)
    halves: tuple[tuple[str, ...], ...] = ()
    together: bool = False
    prepare: Callable[[Values], Values] | None = None
    follow: Callable[[Fields, Sighting, Sighting | None], None] | None = None
    follows: Mapping[str, str] = field(default_factory=dict)
    warn: Callable[[Sighting, Mapping[str, str]], Sequence[str]] | None = None

    def mode_of(self, values: Values) -> RunMode:
        """How rollouts and training lie in time, as far as a row tells."""
        return self.mode if isinstance(self.mode, str) else self.mode(values)

    @property
    def exact(self) -> set[str]:
        """All keys that are known by their whole name."""
        keys = {name for figure in self.figures for term in figure.of for name in term}
        return {prefix + key for key in keys for prefix in self.prefixes} | {*self.marks, *self.steps}

    def known(self, keys: Iterable[str]) -> int:
        """How many of a log's keys are this framework's; the number of a step is nobody's."""
        exact = self.exact - {*self.steps}
        starts = tuple(mark for mark in self.marks if mark.endswith("/"))
        return sum(1 for key in keys if key in exact or (bool(starts) and key.startswith(starts)))


@dataclass(slots=True)
class Sighting:
    """
    A row with the number of its step; not frozen, for speed.

    Args:
        step: The number.
        values: What it says.
        numbered: Whether the log said the number.
    """

    step: int
    values: Values
    numbered: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is looked up in rows of one layout: plain keys, sums, and figures of several keys."""

    keys: tuple[str, ...]
    simple: tuple[tuple[str, str, float], ...]
    sums: tuple[tuple[str, tuple[str, ...], float], ...]
    made: tuple[tuple[list[str], tuple[str, ...], Callable[..., float | None]], ...]
    step: str | None
    mode: RunMode


@dataclass(slots=True)
class Mapper:
    """
    Turns rows into steps.

    Args:
        framework: What the keys mean.
        skips: Hears of rows that cannot be used.
    """

    framework: Framework
    skips: Skips
    keys: dict[str, str] = field(default_factory=dict)
    counts: dict[str, str] = field(default_factory=dict)
    modes: Counter[RunMode] = field(default_factory=Counter)
    last: Sighting | None = None
    _plans: dict[tuple[str, ...], _Plan] = field(default_factory=dict)
    _rows: int = 0

    def step(self, row: Row) -> StepRecord | None:
        """The step that a row tells of; None if it tells of none, or of an impossible one."""
        values = row.values
        plan = self._plan(values, row.layout)
        fields = _fields(plan, values)
        if not fields:
            return None
        self._rows += 1
        said = row.step if row.step is not None or plan.step is None else values[plan.step]
        number = self._rows if said is None else said
        if not 0 <= number < _LARGEST_STEP or number != int(number):
            self.skips.add("the step's number is no whole number", row.place)
            return None
        sighting = Sighting(int(number), values, said is not None)
        if self.framework.follow is not None:
            self.framework.follow(fields, sighting, self.last)
            for name, says in self.framework.follows.items():
                if name in fields and says not in self.keys.get(name, ""):
                    self.keys[name] = f"{self.keys[name]}; {says}" if name in self.keys else says
        if not (min(fields.values()) >= 0.0 and sum(fields.values()) < math.inf):
            bad = next((name for name, value in fields.items() if not 0.0 <= value < math.inf), next(iter(fields)))
            self.skips.add(f"{self.keys.get(bad, bad)} is not finite, or negative", row.place)
            return None
        self.last = sighting
        self.modes[self.framework.mode_of(values) if self.framework.mode_by_row else plan.mode] += 1
        return StepRecord(step=sighting.step, **fields)

    def _plan(self, values: Values, layout: tuple[str, ...] | None) -> _Plan:
        layout = layout or tuple(values)
        plan = self._plans.get(layout)
        if plan is None:
            if len(self._plans) >= _MOST_LAYOUTS:
                self._plans.clear()
            plan = self._plans[layout] = self._new_plan(values)
        return plan

    def _new_plan(self, values: Values) -> _Plan:
        simple, sums = [], []
        made: dict[tuple[object, tuple[str, ...]], tuple[list[str], tuple[str, ...], Callable[..., float | None]]] = {}
        taken: set[str] = set()
        figures = self.framework.chosen(values) if self.framework.chosen else self.framework.figures
        for figure in figures:
            terms = [self._key(names, values) for names in figure.of]
            keys = tuple(key for key in terms if key is not None)
            if figure.field in taken or not keys or (figure.how is not None and len(keys) < len(terms)):
                continue
            taken.add(figure.field)
            if figure.how is not None:
                made.setdefault((figure.how, keys), ([], keys, figure.how))[0].append(figure.field)
            elif len(keys) == 1:
                simple.append((figure.field, keys[0], figure.scale))
            else:
                sums.append((figure.field, keys, figure.scale))
            self._tell(figure, keys)
        step = self._key(self.framework.steps, values)
        every = (*(key for _, key, _ in simple), *(key for _, keys, _ in (*sums, *made.values()) for key in keys))
        needed = tuple(dict.fromkeys(every))
        return _Plan(needed, tuple(simple), tuple(sums), tuple(made.values()), step, self.framework.mode_of(values))

    def _key(self, names: Iterable[str], values: Values) -> str | None:
        """The first of a key's names that a row has."""
        for name in names:
            for prefix in self.framework.prefixes:
                if prefix + name in values:
                    return prefix + name
        return None

    def _tell(self, figure: Figure, keys: Sequence[str]) -> None:
        """Note which keys a figure was made of."""
        says = figure.says.format(*keys) if figure.says else " + ".join(keys)
        before = self.keys.get(figure.field)
        if before is None:
            self.keys[figure.field] = says
        elif says not in before.split("; "):
            self.keys[figure.field] = f"{before}; {says}"
        if figure.counts:
            self.counts[figure.field] = figure.counts


def _fields(plan: _Plan, values: Values) -> Fields:
    """The fields of a step, as a row gives them."""
    found = values.some(plan.keys) if isinstance(values, Texts) else {key: values[key] for key in plan.keys}
    fields = {name: found[key] * scale for name, key, scale in plan.simple}
    for name, keys, scale in plan.sums:
        fields[name] = sum([found[key] for key in keys]) * scale
    for names, keys, how in plan.made:
        value = how(*[found[key] for key in keys])
        if value is not None:
            for name in names:
                fields[name] = value
    return fields
