"""How long the responses of finished samples were, and the distribution that describes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.facts.counters import Buckets


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthCounts:
    """
    Response lengths of the samples that finished in a window.

    Args:
        tokens: Their tokens, added up. [token]
        samples: How many finished. [1]
        buckets: How many were no longer than each bound.
        capped: How many ended because they reached their cap; None where the engine does not count them. [1]
        asked: The cap that the samples were given, on average; None where the engine does not say. [token]
        aborted: How many were broken off; None where the engine does not say. [1]
    """

    tokens: float
    samples: float
    buckets: Buckets
    capped: float | None = None
    asked: float | None = None
    aborted: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthFit:
    """
    A lognormal distribution with a cap, as scenarios have it.

    Args:
        samples: Samples that it was fitted to. [1]
        mean: Mean length, the cap included. [token]
        cv: Coefficient of variation without the cap. [1]
        cv_error: Its standard error. [1]
        cap: The cap; None where no sample seems to have reached one. [token]
        cap_from: Where the cap comes from.
        quantiles: The lengths that half, nine in ten and 99 in a hundred samples stay within. [token]
        misfit: The largest difference between the shares that it has and those that were seen, at any bound. [1]
        why: Why there is no cv; empty where there is one.
    """

    samples: float
    mean: float
    cv: float | None = None
    cv_error: float | None = None
    cap: float | None = None
    cap_from: str = ""
    quantiles: tuple[float, float, float] | None = None
    misfit: float | None = None
    why: str = ""
