"""What to expect of a weight update: seconds with a band by each class of transport, and what makes the band wide."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.estimates.belief import interval, scattered, sensitivity
from rlsize.estimates.constants_sync import STAGE
from rlsize.estimates.figures import apply, numbers
from rlsize.estimates.sync_prediction import TRANSPORTS, sync_bytes, sync_time
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from rlsize.estimates.belief import Belief
    from rlsize.estimates.sync_prediction import SyncTimeQuestion

KNOWN = {constant.name: constant for constant in STAGE.constants}


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """
    A constant that makes a band wide.

    Args:
        meaning: What it is.
        share: Share of the variance that comes from it. [1]
    """

    meaning: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncOutlook:
    """
    What to expect.

    Args:
        question: What was asked.
        sent: Bytes of one copy on the wire. [B]
        seconds: Seconds by the chosen class, with a band. [s]
        others: The other classes with theirs, quickest first.
        doubts: What makes the band of the chosen class wide, most important first.
    """

    question: SyncTimeQuestion
    sent: Figure
    seconds: Figure
    others: tuple[tuple[str, Figure], ...]
    doubts: tuple[Doubt, ...]


def sync_outlook(question: SyncTimeQuestion, belief: Belief, seed: int) -> SyncOutlook:
    """
    Seconds of an update by the class that is asked for, and by all others.

    Args:
        question: The update.
        belief: What is believed about the constants.
        seed: Of the draws behind the bands.
    """
    named = {name: predicted_seconds(replace(question, transport=name), belief, seed) for name in TRANSPORTS}
    others = sorted(((name, found) for name, found in named.items() if name != question.transport), key=_seconds)
    return SyncOutlook(
        question=question,
        sent=sync_bytes(apply, question),
        seconds=named[question.transport],
        others=tuple(others),
        doubts=_doubts(question, belief),
    )


def _seconds(entry: tuple[str, Figure]) -> float:
    return entry[1].number


def predicted_seconds(question: SyncTimeQuestion, belief: Belief, seed: int) -> Figure:
    """Seconds of an update with its 80 % band."""
    centre = {name: _figure(belief, name, value) for name, value in belief.central().items()}
    draws = sync_time(numbers, question, belief.drawn(seed))
    band = interval(scattered(draws, STAGE.noise, seed, f"sync {question.transport}"))
    found: Figure = sync_time(apply, question, centre)
    return replace(found, band=band)


def _figure(belief: Belief, name: str, value: float) -> Figure:
    """A constant as a figure that says where it comes from."""
    constant = KNOWN.get(name)
    if constant is None:
        return Figure(key=name, value=value, provenance="default", source="a constant of another stage")
    narrowed = belief.spread(name) < constant.spread * (1 - 1e-6)
    source = "calibration" if narrowed else f"{constant.basis}: {constant.source}"
    return Figure(key=name, value=value, provenance="measured" if narrowed else "default", source=source)


def _doubts(question: SyncTimeQuestion, belief: Belief) -> tuple[Doubt, ...]:
    """Each constant's share of the variance of the logarithm, where correlations are left aside."""
    slopes = sensitivity(belief, lambda values: [sync_time(numbers, question, values)])[0]
    parts = {name: float((slope * belief.spread(name)) ** 2) for name, slope in zip(belief.names, slopes, strict=True)}
    whole = sum(parts.values()) + STAGE.noise**2
    ranked = sorted(parts, key=lambda name: parts[name], reverse=True)
    return tuple(
        Doubt(meaning=KNOWN[name].meaning, share=parts[name] / whole)
        for name in ranked
        if name in KNOWN and parts[name] > 0
    )
