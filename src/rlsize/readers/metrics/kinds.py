"""The kinds of engines whose metrics are read, and which of them a page is of."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError
from rlsize.facts.counters import EngineCounters
from rlsize.facts.published import RECORDED
from rlsize.readers.metrics.exposition import metric_names, series
from rlsize.readers.metrics.sglang import KIND as SGLANG
from rlsize.readers.metrics.tables import EngineKind, Metric, Seen, shared
from rlsize.readers.metrics.trtllm import KIND as TRTLLM
from rlsize.readers.metrics.vllm import KIND as VLLM
from rlsize.units import cut, listed, some_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.readers.metrics.exposition import Series

_OTHERS = {"tgi": "TGI", "sgl_router": "SGLang's router", "smg": "a SGLang gateway", "lmdeploy": "LMDeploy"}

RULES = "rlsize:"
"""What begins a name that rules recorded."""
_PREFIX = re.compile(r"rlsize[:_]engine_")
_METRICS = {
    field: Metric((_PREFIX.sub("", series),), page_wide=field.startswith("weight_sync"))
    for field, series in RECORDED.items()
} | {"length_ended": Metric(("finished_requests_total",), {"finished_reason": frozenset({"length"})})}


def text_engines(text: str, instance: str) -> list[EngineCounters]:
    """
    The engines on a page, of whatever kind.

    Args:
        text: The page.
        instance: What to call its origin.

    Raises:
        InputError: It is of no engine that is read, or a damaged one.
    """
    names = metric_names(text)
    there = [kind for kind in KINDS if any(kind.prefix.match(name) for name in names)] or KINDS[:1]
    found: list[EngineCounters] = []
    for kind in there:
        found += kind.read(series(text, instance, kind.line, kind.wanted), instance)
    if not found:
        raise InputError(_no_engine(names, there[0], instance))
    return found


def _no_engine(names: Sequence[str], kind: EngineKind, instance: str) -> Fault:
    known = listed([one.title for one in KINDS if one is not _OURS])
    other = next(
        (title for prefix, title in _OTHERS.items() if any(re.match(f"{prefix}[:_]", name) for name in names)), None
    )
    own = [name for name in names if kind.prefix.match(name)]
    if own:
        lacks, todo = kind.missing
        return Fault(f"lacks {lacks}; of {kind.title} it holds only {_held(own)}", instance, todo)
    if other:
        todo = f"name engines of {known}, or give `fleet --per-instance` a benchmark's rate"
        return Fault(f"is a page of {other}; {other} pages are not read", instance, todo)
    todo = "name the engines' own pages, http://HOST:PORT/metrics; TensorRT-LLM's is /prometheus/metrics"
    return Fault(f"holds no metrics of {known}, but {_held(names)}", instance, todo)


def _held(names: Sequence[str]) -> str:
    return some_of([cut(name, 60) for name in names], 3) or "no series at all"


def _identities(page: Mapping[str, Sequence[Series]], _: str) -> list[Mapping[str, str]]:
    return [entry.labels for entry in page.get(_METRICS["generation_tokens"].names[0], ())]


def _counters(seen: Seen) -> EngineCounters:
    numbers: dict[str, Any] = dict(seen.numbers)
    return EngineCounters(**seen.who, keys=shared(seen.keys), **numbers)


_OURS = EngineKind(
    name="recorded",
    title="rlsize's own series",
    prefix=_PREFIX,
    metrics=_METRICS,
    identities=_identities,
    counters=_counters,
    missing=("generation tokens", "which rules recorded it?"),
)

KINDS = (VLLM, SGLANG, TRTLLM, _OURS)
