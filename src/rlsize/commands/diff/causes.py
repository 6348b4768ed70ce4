"""Tables and picture of causes: what each change does by itself, and all together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.commands.diff import words as say
from rlsize.equations import budget as equations
from rlsize.reports.chart import Bar, Gantt
from rlsize.reports.plan_chart import AXES
from rlsize.reports.report import Column, Table, Unseen
from rlsize.reports.wording import percent, words
from rlsize.units import show
from rlsize.verdicts.causes import Cause

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.reports.chart import Role
    from rlsize.verdicts.causes import Difference, Split

_BESIDE = ("step_seconds", "cost_per_step_usd", "trainer_idle_fraction")
_MOST_BESIDE = 2
_ROUNDING = 1e-9  # of a result
_UNEXPLAINED = "unexplained"
_LANES = 12
_INVISIBLE = 1e-6  # of the result
_WIDEST = 34  # characters of a lane's name


def most(split: Split, of: str) -> Cause | None:
    """The cause that by itself moves a result furthest the way that it went; None where none does."""
    rises = split.together.get(of, 0.0) > 0
    told = [cause for cause in split.causes if cause.effects.get(of) and (cause.effects[of] > 0) == rises]
    return max(told, key=lambda cause: abs(cause.effects[of]), default=None)


def _ranked(split: Split, of: str) -> tuple[Cause, ...]:
    """Causes by how far they move a result, largest first; those that cannot run by themselves last."""
    return tuple(sorted(split.causes, key=lambda cause: (of not in cause.effects, -abs(cause.effects.get(of, 0.0)))))


def tells_causes(split: Split) -> bool:
    """Whether any change does anything, or cannot be made."""
    return any(cause.refused or any(cause.effects.values()) for cause in split.causes)


def cause_tables(split: Split, differences: Sequence[Difference], of: str) -> dict[str, Table]:
    """
    What each change does to the main results for people, and to every result for programs.

    Args:
        split: The causes.
        differences: What became of each result.
        of: The main result.
    """
    before = {one.quantity: one.before.number for one in differences if one.before.known}
    if of not in before:
        return {}
    columns = (of, *[key for key in _BESIDE if key != of and key in before][:_MOST_BESIDE])
    causes = _ranked(split, of)
    told = [cause for cause in causes if _tells(cause, columns, before)]
    idle = [cause for cause in causes if cause not in told]
    whole = [Cause(keys=("all together",), effects=split.together)]
    if len(causes) > 1 and split.unexplained:
        whole.append(Cause(keys=(_UNEXPLAINED,), effects=split.unexplained))
    rows = (*told, *whole, *idle)
    every = [(cause, key) for cause in rows for key in before if key in cause.effects]
    shown, note = len(told) + len(whole), _note(split, len(idle))
    cells = _cells(columns, before)
    main = [(cause, of) for cause in rows]
    effects = Table.of("What each change does to each result", every, _effect(before), shown=0)
    found = Table.of("Causes, each change by itself", main, cells, note=note, shown=shown)
    return {"causes": found, "effects": effects}


def _tells(cause: Cause, keys: Sequence[str], before: Mapping[str, float]) -> bool:
    """Whether a cause does something to one of these results, or cannot be had."""
    moves = ((abs(cause.effects.get(key, 0.0)), before[key]) for key in keys)
    return bool(cause.refused) or any(move > _ROUNDING * abs(value) for move, value in moves)


def _cells(keys: Sequence[str], before: Mapping[str, float]) -> tuple[Column | Unseen, ...]:
    """What is told of a cause and the main result, and beside it of other results."""
    main, *others = keys

    def share(told: tuple[Cause, str]) -> str:
        found = _fraction(told[0].effects.get(main), before[main])
        return "" if found is None else percent(found)

    def change(told: tuple[Cause, str]) -> str:
        return "cannot run" if told[0].refused else _moved(told[0].effects.get(main), main)

    def beside(key: str) -> Column:
        return Column(f"_{key}", words(key), of=lambda told: short_effect(told[0].effects.get(key), before[key], key))

    name, *effect = _effect(before)
    return (
        Column("cause", "", "left", wide=True, of=name.of),
        *effect,
        Unseen("refused", lambda told: told[0].refused or None),
        Column("_change", words(main), of=change),
        *([] if say.in_points(main) else [Column("_percent", "", of=share)]),
        *map(beside, others),
    )


def _effect(before: Mapping[str, float]) -> tuple[Unseen, ...]:
    """What a cause does to a result."""
    return (
        Unseen("cause", lambda told: say.causes(told[0].keys)),
        Unseen("quantity", lambda told: told[1]),
        Unseen("change", lambda told: told[0].effects.get(told[1])),
        Unseen("change_fraction", lambda told: _fraction(told[0].effects.get(told[1]), before[told[1]])),
    )


def _fraction(effect: float | None, before: float) -> float | None:
    """An effect as a share of what the result was."""
    if effect is None or not before:
        return None
    moved: float = equations.relative_change(value=before + effect, baseline=before)
    return moved


def _moved(effect: float | None, key: str) -> str:
    return "-" if effect is None else say.moved(effect, key)


def short_effect(effect: float | None, before: float, key: str) -> str:
    """Shares in points, all else in percent."""
    share = None if say.in_points(key) else _fraction(effect, before)
    return _moved(effect, key) if share is None else percent(share)


def _note(split: Split, idle: int) -> str:
    told = [f"in --json too: {idle} that {'does' if idle == 1 else 'do'} nothing to these"] if idle else []
    if len(split.causes) > 1 and split.unexplained:
        told.append("unexplained: what the changes do together beyond what each does by itself")
    return "; ".join(told)


def causes_chart(split: Split | None, main: Difference | None) -> Gantt | None:
    """
    A bar for each cause, each from where the one before it ends; None where there is nothing to lead anywhere.

    Args:
        split: The causes.
        main: The result.
    """
    if split is None or main is None or not (main.before.known and main.after.known):
        return None
    least = _INVISIBLE * max(abs(main.before.number), abs(main.after.number))
    steps = [(name, step) for name, step in _steps(split, main.quantity) if abs(step) > least]
    if not steps:
        return None
    at = main.before.number
    bars: list[Bar] = []
    for long, step in steps:
        brief = long if len(long) <= _WIDEST else f"...{long[3 - _WIDEST :]}"  # its end tells more than its beginning
        lane = f"{brief}, {say.moved(step, main.quantity)}"
        lane += " " * sum(bar.lane.rstrip() == lane for bar in bars)  # two lanes of one name would be one
        start, at = at, at + step
        role: Role = "trainer" if step > 0 else "rollout"
        name = "more" if step > 0 else "less"
        bars.append(Bar(lane=lane, start=min(start, at), end=max(start, at), name=name, role=role))
    first, last = (show(side.value, main.quantity) for side in (main.before, main.after))
    name = words(main.quantity)
    return Gantt(
        title=f"How the changes lead from {first} to {last}",
        subtitle=f"{name}; each change by itself, and what that leaves",
        x_label=AXES.get(main.quantity, f"{name} [fraction]" if say.in_points(main.quantity) else name),
        lanes=tuple(bar.lane for bar in bars),
        spans=tuple(bars),
    )


def _steps(split: Split, of: str) -> list[tuple[str, float]]:
    """Causes and what they do, largest first; what they leave comes last, so that the sum is the whole change."""
    if of not in split.unexplained:
        return []
    told = [(say.causes(cause.keys), cause.effects[of]) for cause in _ranked(split, of)]
    rest = [("the rest", sum(step for _, step in told[_LANES:]))] if len(told) > _LANES else []
    left = [(_UNEXPLAINED, split.unexplained[of])] if len(told) > 1 else []
    return [*told[:_LANES], *rest, *left]
