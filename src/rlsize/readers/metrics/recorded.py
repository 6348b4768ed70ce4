"""
Engines under the names of `facts/published.py`: as rules of `rlsize alerts` record or `rlsize export` serves them.

Whose engine it was is not told, nor the histograms of its page.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rlsize.facts.counters import EngineCounters
from rlsize.facts.published import RECORDED
from rlsize.readers.metrics.tables import EngineKind, Metric, Seen, shared

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.readers.metrics.exposition import Series

RULES = "rlsize:"
"""What begins a name that rules recorded."""
_PREFIX = re.compile(r"rlsize[:_]engine_")
_METRICS = {
    field: Metric((_PREFIX.sub("", series),), page_wide=field.startswith("weight_sync"))
    for field, series in RECORDED.items()
} | {"length_ended": Metric(("finished_requests_total",), {"finished_reason": frozenset({"length"})})}


def _identities(page: Mapping[str, Sequence[Series]], _: str) -> list[Mapping[str, str]]:
    return [entry.labels for entry in page.get(_METRICS["generation_tokens"].names[0], ())]


def _counters(seen: Seen) -> EngineCounters:
    numbers: dict[str, Any] = dict(seen.numbers)
    return EngineCounters(**seen.who, keys=shared(seen.keys), **numbers)


KIND = EngineKind(
    name="recorded",
    title="rlsize's own series",
    prefix=_PREFIX,
    metrics=_METRICS,
    identities=_identities,
    counters=_counters,
    missing=("generation tokens", "which rules recorded it?"),
)
