"""How changes of inputs and results are put into words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rlsize.dataclass import replace
from rlsize.reports.wording import band, bare, percent, settled, signed
from rlsize.units import printable, short, show, unit_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlsize.facts.figure import Figure
    from rlsize.verdicts.causes import Difference

LONGEST = 18
"""Characters that people see of an input's value; JSON and CSV carry all."""
SHORTEST_KEY = 24
"""Characters that are seen of a key at least."""
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)\S*")
VERDICTS = {
    "too close to call": "too close",
    "bands overlap": "overlap",
    "only before": "gone",
    "only after": "new",
    "only a bound": "a bound",
    "unchanged": "same",
}
"""Verdicts as a narrow column has them; the others stand as they are."""


def written(value: Any) -> str:
    """
    A value as it stands in a file.

    >>> written(["old", "reference"]), written(True), written(2.0), written({"max": "5%"}), written(None)
    ('[old, reference]', 'true', '2.0', '{max: 5%}', '-')
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{printable(str(key))}: {written(entry)}' for key, entry in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(written(entry) for entry in value)}]"
    return f"{value:.12g}" if isinstance(value, float) and not value.is_integer() else printable(str(value))


def brief(before: Any, after: Any) -> tuple[str, str]:
    """
    Two values as a narrow column has them; of long lists only what differs.

    >>> brief("8k", None), brief("x" * 30, 1)
    (('8k', '-'), ('xxxxxxxxxxxxxxx...', '1'))
    >>> brief(["sync_pauses", "stragglers", "tail"], ["sync_pauses", "stragglers", "tail", "drift"])
    ('[...]', '[..., drift]')
    """
    sides = (before, after)
    texts = tuple(map(written, sides))
    if all(isinstance(side, list) for side in sides) and max(map(len, texts)) > LONGEST:
        others = (after, before)
        own = ([entry for entry in side if entry not in other] for side, other in zip(sides, others, strict=True))
        texts = tuple(f"[{', '.join(('...', *map(written, entries)))}]" for entries in own)
    first, second = (_cut(text, LONGEST) for text in texts)
    return first, second


def brief_key(key: str, room: int) -> str:
    """
    A key, or the end of one that is longer than there is room.

    >>> brief_key("cluster.gpus", 24), brief_key("instance_tokens_per_second.mean", 24)
    ('cluster.gpus', '...okens_per_second.mean')
    """
    text = printable(key)
    return text if len(text) <= room else f"...{text[3 - room :]}"


def _cut(text: str, longest: int) -> str:
    line = " ".join(text.split())
    moment = _MOMENT.fullmatch(line)
    if moment:
        return f"{moment[1]} {moment[2]}"
    return line if len(line) <= longest else f"{line[: longest - 3]}..."


def amount(figure: Figure) -> str:
    """A value, with its 80 % band below it; `-` where there is none."""
    if not figure.known:
        return "-"
    ends = f"\n({_ends(figure)})" if figure.band else ""
    return f"{bare(show(figure.value, figure.key), figure.key)}{ends}"


def _ends(figure: Figure) -> str:
    """The band in few characters: the value beside it says the unit, and three digits are more than it is sure of."""
    low, high = (float(f"{end:.3g}") for end in figure.band or (0.0, 0.0))
    if unit_of(figure.key) in {"s", "%"}:
        return band(replace(figure, band=(low, high)))
    return f"{short(low)} to {short(high)}"


def in_points(key: str) -> bool:
    """Whether a change is told in percentage points: a share of a share misleads."""
    return unit_of(key) == "%"


def change(one: Difference) -> str:
    """How far a result moved: shares in points, whole numbers in whole numbers, all else in percent of what it was."""
    if not one.change.known:
        return ""
    return moved(one.change.number, one.quantity) if _absolute(one) else percent(one.change_fraction.number)


def _absolute(one: Difference) -> bool:
    counted = unit_of(one.quantity) in {"", "steps"} and all(
        side.known and side.number == round(side.number) for side in (one.before, one.after)
    )
    return counted or in_points(one.quantity) or not one.change_fraction.known


def change_band(one: Difference) -> str:
    """The 80 % interval of the same; empty for points."""
    figure = one.change if _absolute(one) else one.change_fraction
    if figure.band is None:
        return ""
    low, high = (moved(end, one.quantity) if _absolute(one) else percent(end) for end in map(_tenths(one), figure.band))
    unit = low.rpartition(" ")[2]
    return f"{low.removesuffix(f' {unit}') if high.endswith(f' {unit}') else low} to {high}"


def _tenths(one: Difference) -> Callable[[float], float]:
    """What rounds an end of a band: shares and percentages to tenths, other numbers to three digits."""
    if _absolute(one) and not in_points(one.quantity):
        return lambda end: float(f"{end:.3g}")
    return lambda end: round(end, 3)


def moved(value: float, key: str) -> str:
    """
    A change in the unit of its key.

    >>> moved(0.031, "trainer_idle_fraction"), moved(-2.5, "step_seconds"), moved(-0.25, "cost_per_step_usd")
    ('+3.1 pp', '-2.5 s', '-$0.25')
    """
    return bare(signed(settled(value), key), key)


def causes(keys: tuple[str, ...]) -> str:
    """The changes of a cause; what they have in common is said once.

    >>> causes(("placement.rollout_gpus", "placement.trainer_gpus", "cluster.gpus"))
    'placement.rollout_gpus + trainer_gpus + cluster.gpus'
    """
    told, last = [], ""
    for key in keys:
        above, _, name = key.rpartition(".")
        told.append(name if above and above == last else key)
        last = above
    return printable(" + ".join(told))
