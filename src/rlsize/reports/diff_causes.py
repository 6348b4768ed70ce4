"""The tables of causes: what each change does by itself, all together, and on average."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from rlsize.equations import budget as equations
from rlsize.reports import diff_words as say
from rlsize.reports.report import Column, Table
from rlsize.reports.wording import words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.reports.report import Cell
    from rlsize.verdicts.causes import Cause, Split
    from rlsize.verdicts.difference import Difference

_BESIDE = ("step_seconds", "cost_per_step_usd", "trainer_idle_fraction")
_MOST_BESIDE = 2
_ROUNDING = 1e-9  # of a result
TOGETHER, UNEXPLAINED = "all together", "unexplained"


def most(split: Split, of: str) -> Cause | None:
    """The cause that by itself moves a result furthest the way that it went; None where none does."""
    rises = split.together.get(of, 0.0) > 0
    told = [cause for cause in split.causes if cause.effects.get(of) and (cause.effects[of] > 0) == rises]
    return max(told, key=lambda cause: abs(cause.effects[of]), default=None)


def ranked(split: Split, of: str) -> tuple[Cause, ...]:
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
    beside = _MOST_BESIDE - bool(split.orders)  # fair shares take the room of one
    columns = (of, *[key for key in _BESIDE if key != of and key in before][:beside])
    causes = [_Entry(say.causes(cause.keys), cause.effects, cause.shares, cause.refused) for cause in ranked(split, of)]
    told = [entry for entry in causes if entry.tells(columns, before)]
    idle = [entry for entry in causes if entry not in told]
    whole = [_Entry(TOGETHER, split.together, split.together if split.orders else {})]
    whole += [_Entry(UNEXPLAINED, split.unexplained)] if len(causes) > 1 and split.unexplained else []
    entries = (*told, *whole, *idle)
    effects = (_effect(entry, key, before) for entry in entries for key in before if entry.knows(key))
    return {
        "causes": Table(
            title="Causes, each change by itself",
            columns=_columns(columns, shared=bool(split.orders)),
            rows=tuple(_row(entry, before, columns) for entry in entries),
            note=_note(split, len(idle)),
            shown=len(told) + len(whole),
        ),
        "effects": Table(title="What each change does to each result", columns=(), rows=tuple(effects), shown=0),
    }


class _Entry(NamedTuple):
    """A row: what it is called, what it does by itself and on average, and why it cannot be done."""

    name: str
    effects: Mapping[str, float]
    shares: Mapping[str, float] = MappingProxyType({})
    refused: str = ""

    def knows(self, key: str) -> bool:
        """Whether there is something to say of a result."""
        return key in self.effects or key in self.shares

    def tells(self, keys: Sequence[str], before: Mapping[str, float]) -> bool:
        """Whether it does something to one of these results, or cannot be done."""
        moves = ((abs(part.get(key, 0.0)), before[key]) for key in keys for part in (self.effects, self.shares))
        return bool(self.refused) or any(move > _ROUNDING * abs(value) for move, value in moves)


def _columns(keys: Sequence[str], *, shared: bool) -> tuple[Column, ...]:
    main, *beside = keys
    return (
        Column("cause", "", "left", wide=True),
        Column("_change", words(main)),
        *([] if say.in_points(main) else [Column("_percent", "")]),
        *([Column("_share", "fair share")] if shared else []),
        *(Column(f"_{key}", words(key)) for key in beside),
    )


def _row(entry: _Entry, before: Mapping[str, float], keys: Sequence[str]) -> dict[str, Cell]:
    of, *beside = keys
    effect, share = entry.effects.get(of), entry.shares.get(of)
    return {
        **_effect(entry, of, before),
        "refused": entry.refused or None,
        "_change": "cannot run" if entry.refused else _moved(effect, of),
        "_percent": _percent(effect, before[of]),
        "_share": _moved(share, of),
        **{f"_{key}": short_effect(entry.effects.get(key), before[key], key) for key in beside},
    }


def _effect(entry: _Entry, key: str, before: Mapping[str, float]) -> dict[str, Cell]:
    effect = entry.effects.get(key)
    return {
        "cause": entry.name,
        "quantity": key,
        "change": effect,
        "change_fraction": _fraction(effect, before[key]),
        "fair_share": entry.shares.get(key),
    }


def _fraction(effect: float | None, before: float) -> float | None:
    """An effect as a share of what the result was."""
    if effect is None or not before:
        return None
    moved: float = equations.relative_change(value=before + effect, baseline=before)
    return moved


def _moved(effect: float | None, key: str) -> str:
    return "-" if effect is None else say.moved(effect, key)


def _percent(effect: float | None, before: float) -> str:
    share = _fraction(effect, before)
    return "" if share is None else say.percent(share)


def short_effect(effect: float | None, before: float, key: str) -> str:
    """Shares in points, all else in percent."""
    return _moved(effect, key) if say.in_points(key) or not before else _percent(effect, before) or "-"


def _note(split: Split, idle: int) -> str:
    told = [f"in --json too: {idle} that {'does' if idle == 1 else 'do'} nothing to these"] if idle else []
    if len(split.causes) > 1 and split.unexplained:
        told.append("unexplained: what the changes do together beyond what each does by itself")
    if split.orders:
        kind = "all" if split.all_orders and not split.broken_orders else "the"
        which = "" if split.all_orders else " that were drawn"
        lost = f"; {split.broken_orders} others pass through a loop that cannot run" if split.broken_orders else ""
        told.append(f"fair share: mean over {kind} {split.orders} orders of making the changes{which}{lost} (Shapley)")
    elif split.broken_orders:
        told.append("no fair shares: in every order some loop on the way cannot run")
    return "; ".join(told)
