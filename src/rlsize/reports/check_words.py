"""How a judged limit is put into words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.facts.budget import Change
from rlsize.reports.wording import band, words
from rlsize.units import show, unit_of

if TYPE_CHECKING:
    from rlsize.facts.figure import Figure
    from rlsize.verdicts.budget import Line

_SIDES = {"max": "at most", "max_increase": "at most", "min": "at least", "max_decrease": "at least"}
_SIGNS = {"max_increase": "+", "max_decrease": "-"}
_POINTS = "pp"  # a difference of two shares is no share of anything


def amount(value: float, key: str) -> str:
    """
    A difference in the unit of a key; that of shares in percentage points.

    >>> amount(0.012, "trainer_idle_fraction"), amount(0.2, "cost_per_step_usd")
    ('1.2 pp', '$0.2')
    """
    return show(value, key).replace("%", _POINTS) if unit_of(key) == "%" else show(value, key)


def signed(value: float, key: str) -> str:
    """
    The same with its sign.

    >>> signed(-0.2, "cost_per_step_usd"), signed(0.0, "step_seconds")
    ('-$0.2', '0 s')
    """
    return f"{'-' if value < 0 else '+' if value > 0 else ''}{amount(abs(value), key)}"


def asked(line: Line) -> str:
    """
    The limit as the budget says it, with what it comes to where a change is limited.

    Returns:
        Such as `at most $2.50`, or `at most +5.0 % ($2.52)`.
    """
    side = _SIDES[line.bound]
    if not isinstance(line.asked, Change):
        return f"{side} {show(line.asked, line.quantity)}"
    change = line.asked
    size = show(change.value, "_fraction") if change.relative else amount(change.value, line.quantity)
    comes_to = f" ({show(line.limit.value, line.quantity)})" if line.limit.known else ""
    return f"{side} {_SIGNS[line.bound]}{size}{comes_to}"


def named(line: Line) -> str:
    """The quantity as a table has it: the name says the unit of a token rate, which is long."""
    unit = unit_of(line.quantity)
    return f"{words(line.quantity)} ({unit})" if unit.startswith("tok") else words(line.quantity)


def value(line: Line) -> str:
    """The value, without the unit that its name says."""
    return _without_unit(show(line.value.value, line.quantity), line.quantity)


def margin(line: Line) -> str:
    """Room to the limit, as `value`; empty where there is none to tell."""
    if not line.margin.known:
        return ""
    return _without_unit(signed(line.margin.number, line.quantity), line.quantity)


def ends(line: Line) -> str:
    """The 80 % band, as `value`."""
    return _without_unit(band(line.value), line.quantity)


def moved(line: Line) -> str:
    """The change from the baseline: of shares in points, of all else in percent of the baseline."""
    if unit_of(line.quantity) == "%" or not line.change_fraction.known:
        return signed(line.change.number, line.quantity) if line.change.known else "-"
    return percent(line.change_fraction)


def percent(figure: Figure) -> str:
    """A share with its sign."""
    return signed(figure.number, "_fraction").replace(_POINTS, "%")


def _without_unit(text: str, key: str) -> str:
    """Text without the unit of a rate, where the name of the quantity says it."""
    unit = unit_of(key)
    return text.replace(f" {unit}", "").replace(unit, "") if unit.startswith(("/", "tok")) else text


def limit(line: Line) -> str:
    """The limit as a table has it: `asked`, without what a change comes to."""
    return "must fit" if line.implied else _without_unit(asked(line).partition(" (")[0], line.quantity)


def told(line: Line) -> str:
    """A judged limit in a sentence."""
    name = words(line.quantity)
    if line.status == "unknown":
        return f"{name}: not judged, {_why(line)}"
    text = f"{name}: {show(line.value.value, line.quantity)}"
    if line.value.band is not None:
        text += f" (80 % band {band(line.value)})"
    if line.relative and line.baseline is not None:
        text += f", {moved(line)} from {show(line.baseline.value, line.quantity)} in the baseline"
    if line.implied:
        return f"{text}; the loop {'does' if line.status == 'fail' else 'may'} not fit in memory"
    return f"{text}; the budget allows {asked(line)}; {_room(line)}"


def _room(line: Line) -> str:
    if line.status == "warn":
        return "its band crosses the limit"
    room = amount(abs(line.margin.number), line.quantity)
    if line.margin_fraction.known and unit_of(line.quantity) != "%":
        room += f" ({percent(line.margin_fraction).lstrip('+-')} of the limit)"
    return f"it is missed by {room}" if line.status == "fail" else f"{room} is left"


def _why(line: Line) -> str:
    """What is lacking for a verdict."""
    if line.lacking == "baseline":
        return "a change needs a baseline"
    if line.lacking == "value in the baseline":
        return "the baseline lacks it"
    return f"it needs {line.value.missing}" if line.value.missing else "it is not known"
