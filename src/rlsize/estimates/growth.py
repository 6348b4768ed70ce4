"""How counters grew between two pages of the same engines, and what the growth says about their samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from rlsize.facts.counters import ADDED_UP, COUNTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.facts.counters import EngineCounters, Totals

Ends: TypeAlias = "tuple[EngineCounters, EngineCounters]"
"""The first and the last counters of one engine."""

RESTART_SECONDS = 2.0  # start times read off one process differ by less (clock steps); no engine restarts in less
LENGTHS_AGREE = 0.2  # relative difference of two mean lengths from which the shorter one is called biased


def grown(ends: Sequence[Ends], name: str) -> float | None:
    """By how much a counter grew over the window, added over the instances that have it; None where none does."""
    pairs = [(getattr(first, name), getattr(last, name)) for first, last in ends]
    known = [last - (first or 0.0) for first, last in pairs if last is not None]
    return sum(known) if known else None


def mean_grown(ends: Sequence[Ends], name: str) -> float | None:
    """The mean of what a histogram was told in the window, over the instances that have it; None where nothing was."""
    pairs: list[tuple[Totals | None, Totals | None]] = [
        (getattr(first, name), getattr(last, name)) for first, last in ends
    ]
    total = sum(last.sum - (first.sum if first else 0.0) for first, last in pairs if last)
    count = sum(last.count - (first.count if first else 0.0) for first, last in pairs if last)
    return total / count if count > 0 else None


def restart(first: EngineCounters, second: EngineCounters) -> str:
    """Why two pages cannot be of one life of one engine; empty where they can."""
    why = "restarted, or several engines answer at its address"
    for name in (*COUNTED, *ADDED_UP):
        before, after = _count(first, name), _count(second, name)
        if before is not None and after is not None and after < before:
            key = second.keys.get(name) or second.keys.get(f"{name}.count") or name
            return f"{why}: {key} went back from {before:.10g} to {after:.10g}"
    if first.started_at is not None and second.started_at is not None:
        apart = abs(second.started_at - first.started_at)
        if apart > RESTART_SECONDS:
            return f"{why}: the start times on its pages lie {apart:.0f} s apart"
    return ""


def _count(counters: EngineCounters, name: str) -> float | None:
    value: Totals | float | None = getattr(counters, name)
    return value if value is None or isinstance(value, (int, float)) else value.count


def hit_fraction(ends: Sequence[Ends]) -> float | None:
    """Share of prompt tokens that the prefix cache answered; None where nothing was asked."""
    queries, hits = grown(ends, "prefix_cache_queries"), grown(ends, "prefix_cache_hits")
    return None if hits is None or not queries else hits / queries


def mean_response_tokens(ends: Sequence[Ends]) -> tuple[float | None, str]:
    """Mean response length, and what is doubtful about it."""
    finished = mean_grown(ends, "response_tokens")
    requests = grown(ends, "finished_requests")
    generated = (grown(ends, "generation_tokens") or 0.0) / requests if requests else None
    if finished is None:
        doubt = "no response lengths are on the page; their mean is tokens generated over samples finished"
        return generated, doubt if generated else ""
    if generated is None or abs(generated - finished) <= LENGTHS_AGREE * finished:
        return finished, ""
    doubt = (
        f"finished samples have {finished:,.0f} tokens on average, but {generated:,.0f} were generated for each that "
        "finished: short samples finish first, so take the mean response length with care"
    )
    return finished, doubt
