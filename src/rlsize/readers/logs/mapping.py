"""
Rows of a log as steps: which key says which figure, by framework.

What a framework's keys mean stands in its file in `frameworks/`; how they are looked up, once for each layout of keys,
stands here.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from rlsize.facts.run_log import StepRecord
from rlsize.frozen import dataclass
from rlsize.readers.logs.figures import expression
from rlsize.readers.logs.layouts import Texts
from rlsize.readers.logs.names import guessed, is_time, meaning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rlsize.facts.run_log import RunMode
    from rlsize.readers.logs.figures import Figure, Row, Skips

Values: TypeAlias = "Mapping[str, float]"
Fields: TypeAlias = "dict[str, float]"
_STEPS = ("_step", "Step")  # of trackers, whose logs any framework may have
_SHARES = ("clipped_fraction", "trainer_idle_fraction", "rollout_idle_fraction", "mfu", "prefix_cache_hit_fraction")
_LENGTHS = ("mean_response_tokens", "mean_prompt_tokens", "mean_total_tokens", "longest_response_tokens")
_MOST = {**dict.fromkeys(_SHARES, 1.0 + 1e-6), **dict.fromkeys(_LENGTHS, 1e7)}
"""What no step has more of: all of a whole, and ten times the longest context that a model is sold with."""
_MOST_OF_ALL = 1e15
_OF_LENGTHS = {"samples", "prompt_tokens", "response_tokens", "total_tokens"}
_MOST_UNREAD = 20
_MOST_LAYOUTS = 256
_LARGEST_STEP = 2.0**53


@dataclass(frozen=True, kw_only=True)
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
        by_name: Whether all its keys are told by their names alone.
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
    by_name: bool = False

    def mode_of(self, values: Values) -> RunMode:
        """How rollouts and training lie in time, as far as a row tells."""
        return self.mode if isinstance(self.mode, str) else self.mode(values)

    @cached_property
    def exact(self) -> set[str]:
        """All keys that are known by their whole name."""
        keys = {name for figure in self.figures for term in figure.of for name in term}
        return {prefix + key for key in keys for prefix in self.prefixes} | {*self.marks, *self.steps}

    def known(self, keys: Iterable[str]) -> int:
        """How many of a log's keys are this framework's; the number of a step is nobody's."""
        exact = self.exact - {*self.steps}
        starts = tuple(mark for mark in self.marks if mark.endswith("/"))
        if self.by_name:
            told = [key for key in keys if key in self.exact or meaning(key)]
            return len(told) + any(is_time(key) for key in {*keys}.difference(told))
        return sum(1 for key in keys if key in exact or (bool(starts) and key.startswith(starts)))

    def wants(self, key: str) -> bool:
        """Whether a key may say something of a step."""
        return meaning(key) is not None or key in self.exact


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
    limits: tuple[tuple[str, float], ...]


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
    guessed: dict[str, str] = field(default_factory=dict)
    unread: dict[str, None] = field(default_factory=dict)
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
        usual = min(fields.values()) >= 0.0 and sum(fields.values()) <= _MOST_OF_ALL
        if not usual or [name for name, most in plan.limits if fields.get(name, 0.0) > most]:
            self._drop_impossible(fields, row.place)
            if not fields:
                return None
        self.last = sighting
        self.modes[self.framework.mode_of(values) if self.framework.mode_by_row else plan.mode] += 1
        return StepRecord(step=sighting.step, **fields)

    def _drop_impossible(self, fields: Fields, place: str) -> None:
        """Take out what no step can have, and with an impossible length what was made of it; all, if it is the step."""
        bad = [name for name, value in fields.items() if not 0.0 <= value <= _MOST.get(name, _MOST_OF_ALL)]
        for name in bad:
            most = _MOST.get(name, _MOST_OF_ALL)
            why = f"more than {most:.3g}" if most < fields[name] < math.inf else "not finite, or negative"
            self.skips.add(f"{self.keys.get(name, name)} is {why}", place)
        lengths = _OF_LENGTHS if {*bad} & {*_LENGTHS} else set()
        for name in {*fields} if "step_seconds" in bad else {*bad, *lengths}:
            fields.pop(name, None)

    def _plan(self, values: Values, layout: tuple[str, ...] | None) -> _Plan:
        layout = layout or tuple(values)
        plan = self._plans.get(layout)
        if plan is None:
            if len(self._plans) >= _MOST_LAYOUTS:
                self._plans.clear()
            plan = self._plans[layout] = self._new_plan(values)
        return plan

    def _new_plan(self, values: Values) -> _Plan:
        framework = self.framework
        simple, sums = [], []
        made: dict[tuple[object, tuple[str, ...]], tuple[list[str], tuple[str, ...], Callable[..., float | None]]] = {}
        taken: set[str] = set()
        figures = framework.chosen(values) if framework.chosen else framework.figures
        completed, guesses = self._guesses(figures, values)
        for figure in (*completed, *figures, *guesses):
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
            if any(figure is each for each in (*completed, *guesses)):
                self.guessed.setdefault(figure.field, expression(figure, keys))
        step = self._key((*framework.steps, *_STEPS), values)
        every = (*(key for _, key, _ in simple), *(key for _, keys, _ in (*sums, *made.values()) for key in keys))
        needed = tuple(dict.fromkeys(every))
        times = (key for key in values if key not in framework.exact and is_time(key) and key not in every)
        limits = tuple((name, most) for name, most in _MOST.items() if name in taken)
        self.unread |= dict.fromkeys(key for key in times if len(self.unread) < _MOST_UNREAD)
        return _Plan(needed, tuple(simple), tuple(sums), tuple(made.values()), step, framework.mode_of(values), limits)

    def _guesses(self, figures: Sequence[Figure], values: Values) -> tuple[list[Figure], list[Figure]]:
        """What names say where the framework's keys do not, in this row or before: of some terms, or of all."""
        has = {figure.field: figure for figure in figures if all(self._key(names, values) for names in figure.of)}
        wanted = {figure.field for figure in figures} - {*has} - ({*self.keys} - {*self.guessed})
        if not wanted and not self.framework.by_name:
            return [], []
        step = has.get("step_seconds")
        key = self._key(step.of[0], values) if step is not None and len(step.of) == 1 else None
        exact = self.framework.exact
        taken = [each for each in values if each in exact]
        found = guessed(values, None if self.framework.by_name else wanted, taken, values[key] if key else None)
        by_field = {figure.field: figure for figure in found}
        sums = (figure for figure in figures if figure.how is None and len(figure.of) > 1 and figure.field in by_field)
        return [*filter(None, (self._completed(figure, by_field[figure.field], values) for figure in sums))], found

    def _completed(self, figure: Figure, guess: Figure, values: Values) -> Figure | None:
        """A sum of which a row has some terms, with what names say of the others; None if they say no more."""
        has = [key for names in figure.of if (key := self._key(names, values)) is not None]
        roles = {says.role if (says := meaning(key)) else "" for key in has}
        more = [names for names in guess.of if (says := meaning(names[0])) and says.role not in roles]
        if not has or not more or guess.scale != figure.scale:
            return None
        return replace(figure, of=(*((key,) for key in has), *more))

    def _key(self, names: Iterable[str], values: Values) -> str | None:
        """The first of a key's names that a row has."""
        keys = (prefix + name for name in names for prefix in self.framework.prefixes)
        return next((key for key in keys if key in values), None)

    def _tell(self, figure: Figure, keys: Sequence[str]) -> None:
        """Note which keys a figure was made of."""
        says = figure.says.format(*keys) if figure.says else " + ".join(keys)
        before = self.keys.setdefault(figure.field, says)
        if says != before and says not in before.split("; "):
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
        terms = [found[key] for key in keys]
        value = how(*terms) if math.isfinite(sum(terms)) else math.nan
        if value is not None:
            for name in names:
                fields[name] = value
    return fields


def pools_not_told(mode: Callable[[Values], RunMode]) -> Callable[[Sighting, Mapping[str, str]], Sequence[str]]:
    """A `warn` of frameworks whose synchronous logs do not tell whether the pools share their GPUs."""
    told = "this log does not tell whether rollouts and training share their GPUs"
    return lambda last, _: (told,) if mode(last.values) == "synchronous" else ()


def with_said(framework: Framework, said: Sequence[Figure]) -> Framework:
    """A framework whose keys mean first what a user says they mean."""
    chosen = framework.chosen
    return replace(
        framework,
        figures=(*said, *framework.figures),
        chosen=(lambda values: (*said, *chosen(values))) if chosen else None,
    )
