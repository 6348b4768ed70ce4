"""Where a figure of a step comes from: rows of named numbers; keys, as they were ever named; what is made of them."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from rlsize.facts.run_log import Skipped
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_NEAR = 0.02  # printed rates have few digits


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


def inverse(rate: float) -> float | None:
    """Seconds of one, of which there are so many a second."""
    return 1.0 / rate if rate > 0 else None


def expression(figure: Figure, keys: Sequence[str]) -> str:
    """How `--map` says what a figure is made of."""
    text = " + ".join(keys)
    if figure.how is not None:
        return figure.says.format(*keys)
    return text if figure.scale == 1.0 else f"{text} * {figure.scale:.10g}"


def response_share(name: str, rate: str, response: str, prompt: str) -> Figure:
    """What of a rate that counts prompts too is of response tokens, by the mean lengths of both."""
    says = "share of response tokens in {0}, by {1} and {2}"
    counts = "response tokens, by their share of the logged rate, which counts prompts too"
    return Figure(field=name, of=((rate,), (response,), (prompt,)), how=part, says=says, counts=counts)


GIB = 2.0**30  # what frameworks divide by, whether they write GB or GiB


def plain(name: str, *keys: str, scale: float = 1.0, counts: str = "") -> Figure:
    """A field that one key says, under one of its names; the first one that is there counts."""
    return Figure(field=name, of=(keys,), scale=scale, counts=counts)


def summed(name: str, *keys: str, counts: str = "") -> Figure:
    """A field that is the sum of those keys that are there."""
    return Figure(field=name, of=tuple((key,) for key in keys), counts=counts)


def product(name: str, *of: tuple[str, ...], counts: str = "") -> Figure:
    """A field that is one term times another."""
    return Figure(field=name, of=of, how=times, says="{0} x {1}", counts=counts)


def pool(name: str, rate: tuple[str, ...], each: tuple[str, ...]) -> Figure:
    """The GPUs that reach a rate together."""
    return Figure(field=name, of=(rate, each), how=gpus, says="{0} / {1}")


def shared_out(*of: tuple[str, ...]) -> tuple[Figure, ...]:
    """What follows from all tokens and the mean lengths of responses and prompts: those of each, and the samples."""
    return (
        Figure(field="response_tokens", of=of, how=part, says="{0} x {1} / ({1} + {2})"),
        Figure(field="prompt_tokens", of=of, how=other_part, says="{0} x {2} / ({1} + {2})"),
        Figure(field="samples", of=of, how=count, says="{0} / ({1} + {2})"),
    )


def part(total: float, of: float, beside: float) -> float | None:
    """
    The part of a total that belongs to the first of two means.

    >>> part(300.0, 100.0, 50.0)
    200.0
    """
    return total * of / (of + beside) if of + beside > 0 else None


def other_part(total: float, of: float, beside: float) -> float | None:
    """The part that belongs to the second mean."""
    return part(total, beside, of)


def count(total: float, *means: float) -> float | None:
    """
    How many samples have a total between them.

    >>> count(300.0, 100.0, 50.0)
    2.0
    """
    each = sum(means)
    return float(round(total / each)) if each > 0 and total / each < 2.0**53 else None


def times(first: float, second: float) -> float:
    """A product."""
    return first * second


def rounded_product(first: float, second: float) -> float | None:
    """A product that is a whole number, of factors with few digits."""
    product = first * second
    return float(round(product)) if abs(product) < 2.0**53 else None


def ratio(part_: float, whole: float) -> float | None:
    """A share; None of nothing."""
    return part_ / whole if whole > 0 else None


def gpus(rate: float, each: float) -> float | None:
    """
    The GPUs that reach a rate together, from that rate and that of each; None where that is no whole number.

    >>> gpus(61967.76, 7745.97), gpus(10.0, 4.0)
    (8.0, None)
    """
    if not (each > 0 and 0 <= rate < 2.0**53 * each):
        return None
    found = rate / each
    nearest = float(round(found))
    return nearest if nearest >= 1 and abs(found - nearest) <= _NEAR * nearest else None


def known(value: float) -> float | None:
    """A figure that frameworks log as 0 where they cannot tell it."""
    return value if value != 0.0 else None


@dataclass(slots=True)
class Row:
    """
    One record of a log; not frozen, because a log has many, and frozen ones take five times as long to make.

    Args:
        step: Its number, where the form says it; else the framework finds it among the values, or counts.
        values: What it says, by key; what is no number is not among them.
        place: Where it stands, such as `line 12`.
        layout: Its keys, where many rows share them as one object.
    """

    step: float | None
    values: Mapping[str, float]
    place: str
    layout: tuple[str, ...] | None = None


@dataclass(slots=True)
class Skips:
    """Records that were not used, by reason."""

    _found: dict[str, tuple[int, str]] = field(default_factory=dict)

    def add(self, why: str, place: str, count: int = 1) -> None:
        """Count records that were not used; the place of the first one is kept."""
        before, first = self._found.get(why, (0, place))
        self._found[why] = (before + count, first)

    def listing(self) -> tuple[Skipped, ...]:
        """All reasons, in the order in which they first came up."""
        return tuple(Skipped(why=why, count=count, first=first) for why, (count, first) in self._found.items())


CUT = "the file ends before the record does"
UNREADABLE = "damaged or mixed with other text"
HEADLESS = "its beginning is missing"
UNFINISHED = "the last step may not be written out yet"
CUT_NUMBER = "the file ends in a number that may go on"
COMMA = "a number with a comma that may be the decimal one"
"""Reasons that several forms share."""
