"""What to expect of a weight update: seconds with a band by each class of transport, and what makes the band wide."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.estimates.all_constants import band_sources, constants_of
from rlsize.estimates.belief import interval, scattered
from rlsize.estimates.constants_sync import STAGE
from rlsize.estimates.figures import apply, numbers
from rlsize.estimates.sync_prediction import TRANSPORTS, sync_bytes, sync_time
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from rlsize.estimates.belief import BandSource, Belief
    from rlsize.estimates.sync_prediction import SyncTimeQuestion
    from rlsize.facts.figure import Figure


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
    doubts: tuple[BandSource, ...]


def sync_outlook(question: SyncTimeQuestion, belief: Belief, seed: int) -> SyncOutlook:
    """
    Seconds of an update by the class that is asked for, and by all others.

    Args:
        question: The update.
        belief: What is believed about the constants.
        seed: Of the draws behind the bands.
    """
    named = {name: _predicted(replace(question, transport=name), belief, seed) for name in TRANSPORTS}
    others = [(name, found) for name, found in named.items() if name != question.transport]
    return SyncOutlook(
        question=question,
        sent=sync_bytes(apply, question),
        seconds=named[question.transport],
        others=tuple(sorted(others, key=lambda entry: entry[1].number)),
        doubts=band_sources(belief, lambda values: sync_time(numbers, question, values), STAGE.noise),
    )


def _predicted(question: SyncTimeQuestion, belief: Belief, seed: int) -> Figure:
    """Seconds of an update with its 80 % band."""
    draws = sync_time(numbers, question, belief.drawn(seed))
    band = interval(scattered(draws, STAGE.noise, seed, f"sync {question.transport}"))
    found: Figure = sync_time(apply, question, constants_of(belief))
    return replace(found, band=band)
