"""
vLLM's metrics page: one `EngineCounters` per data-parallel rank.

Names as of vLLM 0.33 (`vllm/v1/metrics/loggers.py`, `vllm/entrypoints/rl/online/metrics.py`) and those it had before;
with and without `_total`; `vllm:`, or `vllm_` where Ray rewrote it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError
from rlsize.facts.counters import EngineCounters, Totals
from rlsize.readers.metrics.exposition import metric_names, series

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.readers.metrics.exposition import Series

ENGINE = "vllm"
MOST_ENGINES = 1024

_PREFIX = re.compile(r"(?:ray_)?vllm[:_]")
_LINE = re.compile(rf"^(?:{_PREFIX.pattern}|process_start_time_seconds)", re.MULTILINE)
_OTHER_ENGINES = {"sglang": "SGLang", "trtllm": "TensorRT-LLM", "tgi": "TGI"}


@dataclass(frozen=True, slots=True)
class _Metric:
    """
    Where a field is found.

    Args:
        names: Today's name and older ones, without prefix and `_total`; the first that the page has is used.
        only: Labels that a series must have to be added up, with the values that count.
        page_wide: Whether the page states it once for all its engines, without an engine label.
    """

    names: tuple[str, ...]
    only: Mapping[str, frozenset[str]] = field(default_factory=dict)
    page_wide: bool = False


_SYNC = "rl_weight_update_operation_duration_seconds"
_SYNC_PARTS = frozenset({"start", "update", "finish"})

_COUNTERS = {
    "generation_tokens": _Metric(("generation_tokens",)),
    "prompt_tokens": _Metric(("prompt_tokens",)),
    "computed_prompt_tokens": _Metric(("prompt_tokens_by_source",), {"source": frozenset({"local_compute"})}),
    "prefix_cache_queries": _Metric(("prefix_cache_queries", "gpu_prefix_cache_queries")),
    "prefix_cache_hits": _Metric(("prefix_cache_hits", "gpu_prefix_cache_hits")),
    "accepted_draft_tokens": _Metric(("spec_decode_num_accepted_tokens",)),
    "preemptions": _Metric(("num_preemptions",)),
    "finished_requests": _Metric(("request_success",)),
}
_GAUGES = {
    "requests_running": _Metric(("num_requests_running",)),
    "requests_waiting": _Metric(("num_requests_waiting",)),
    "requests_waiting_for_capacity": _Metric(("num_requests_waiting_by_reason",), {"reason": frozenset({"capacity"})}),
    "kv_cache_usage_fraction": _Metric(("kv_cache_usage_perc", "gpu_cache_usage_perc")),
    # one of a sync's operations may run many times (an update per bucket of weights), but each sync finishes once
    "weight_syncs": _Metric((f"{_SYNC}_count",), {"operation": frozenset({"finish"})}, page_wide=True),
    "weight_sync_seconds": _Metric((f"{_SYNC}_sum",), {"operation": _SYNC_PARTS}, page_wide=True),
}
_HISTOGRAMS = {
    "response_tokens": _Metric(("request_generation_tokens",)),
    "prompt_lengths": _Metric(("request_prompt_tokens",)),
    "samples_per_request": _Metric(("request_params_n",)),
    "step_tokens": _Metric(("iteration_tokens_total", "iteration_tokens")),
    "inter_token_seconds": _Metric(("inter_token_latency_seconds", "time_per_output_token_seconds")),
}
_CONFIG = "cache_config_info"
_START = "process_start_time_seconds"


def _exposed() -> dict[str, _Metric]:
    """Each number with the names that a page may show it under; a histogram gives two, its sum and its count."""
    table = {
        name: replace(metric, names=tuple(f"{base}{end}" for base in metric.names for end in ("_total", "")))
        for name, metric in _COUNTERS.items()
    }
    table |= _GAUGES
    for name, metric in _HISTOGRAMS.items():
        table |= {
            f"{name}.{part}": replace(metric, names=tuple(f"{base}_{part}" for base in metric.names))
            for part in ("sum", "count")
        }
    return table | {"created": _Metric(("generation_tokens_created",)), "start": _Metric((_START,), page_wide=True)}


_EXPOSED = _exposed()
_WANTED = frozenset({_CONFIG} | {name for metric in _EXPOSED.values() for name in metric.names})


def vllm_counters(text: str, instance: str) -> list[EngineCounters]:
    """
    The counters of every engine on a vLLM page.

    Args:
        text: The page.
        instance: What to call its origin.

    Returns:
        One per data-parallel rank, in the order of their ranks; a page without ranks is one engine.

    Raises:
        InputError: It is no vLLM page, or a damaged one.
    """
    page: dict[str, list[Series]] = {}
    for entry in series(text, instance, _LINE, _wanted):
        page.setdefault(_bare(entry.name), []).append(entry)
    generation = _chosen(page, _EXPOSED["generation_tokens"])
    if not generation:
        raise InputError(_no_engine(text, instance))
    if len(generation) > MOST_ENGINES:
        todo = "name each engine's own page, not one that gathers a whole fleet"
        raise InputError(Fault(f"holds {len(generation):,} engines; at most {MOST_ENGINES:,} are read", instance, todo))
    engines = _Engines([entry.labels for entry in generation])
    keys = {name: found[0].name for name, metric in _EXPOSED.items() if (found := _chosen(page, metric))}
    keys |= {"kv_cache_tokens": page[_CONFIG][0].name} if _CONFIG in page else {}
    numbers = {name: engines.numbers(_chosen(page, metric), metric) for name, metric in _EXPOSED.items()}
    configs = engines.configs(page.get(_CONFIG, []))
    shared = _shared(tuple(keys.items()))
    read = [
        _counters(
            instance, rank, labels, {name: column[index] for name, column in numbers.items()}, configs[index], shared
        )
        for index, (rank, labels) in enumerate(zip(engines.ranks, engines.labels, strict=True))
    ]
    return sorted(read, key=lambda counters: _natural(counters.rank))


@lru_cache(maxsize=64)
def _shared(keys: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    """One mapping for all pages that name their metrics alike: a long watch keeps many thousand pages."""
    return MappingProxyType(dict(keys))


def _wanted(name: str) -> bool:
    return name == _START or (bool(_PREFIX.match(name)) and _bare(name) in _WANTED)


def _bare(name: str) -> str:
    return _PREFIX.sub("", name, count=1)


def _chosen(page: Mapping[str, Sequence[Series]], metric: _Metric) -> Sequence[Series]:
    """The series under the first of a metric's names that the page has; an older one beside it is the same number."""
    return next((page[name] for name in metric.names if name in page), ())


def _natural(rank: str) -> tuple[int, str]:
    return (int(rank), rank) if re.fullmatch("[0-9]{1,8}", rank) else (10**8, rank)


class _Engines:
    """
    The engines of one page, told apart by the labels of their generation tokens.

    A series belongs to the engines whose labels it does not contradict: `model_name` and `engine` as a rule, and
    whatever a gathering page added, such as the pod.
    """

    def __init__(self, labels: Sequence[Mapping[str, str]]) -> None:
        self.labels = labels
        self.names = {name for own in labels for name in own}
        self._known: dict[tuple[tuple[str, str], ...], list[int]] = {}

    @property
    def ranks(self) -> list[str]:
        """What the page calls each engine; where two share a rank, with the labels that tell them apart."""
        ranks = [_word(own.get("engine", "")) for own in self.labels]
        if len(set(ranks)) == len(ranks):
            return ranks
        differing = sorted(name for name in self.names if len({own.get(name) for own in self.labels}) > 1)
        return [_word(" ".join(f"{name}={own.get(name, '')}" for name in differing)) for own in self.labels]

    def of(self, labels: Mapping[str, str]) -> list[int]:
        """The engines that a series with these labels may belong to."""
        key = tuple((name, labels[name]) for name in sorted(self.names & labels.keys()))
        if key not in self._known:
            self._known[key] = [
                index for index, own in enumerate(self.labels) if all(own.get(name) == value for name, value in key)
            ]
        return self._known[key]

    def numbers(self, found: Sequence[Series], metric: _Metric) -> list[float | None]:
        """The number of each engine, added up over the labels that only split it; None where the page does not say."""
        totals: list[float | None] = [None] * len(self.labels)
        for entry in found:
            if any(entry.labels.get(name) not in values for name, values in metric.only.items()):
                continue
            owners = self.of(entry.labels)
            if len(owners) > 1 and not metric.page_wide:
                continue  # nobody can say whose it is
            for index in owners:
                totals[index] = (totals[index] or 0.0) + entry.value
        return totals

    def configs(self, found: Sequence[Series]) -> list[Mapping[str, str]]:
        """The labels that state each engine's cache configuration."""
        configs: list[Mapping[str, str]] = [{}] * len(self.labels)
        for entry in found:
            for index in self.of(entry.labels):
                configs[index] = entry.labels
        return configs


def _counters(
    instance: str,
    rank: str,
    labels: Mapping[str, str],
    numbers: Mapping[str, float | None],
    config: Mapping[str, str],
    keys: Mapping[str, str],
) -> EngineCounters:
    values: dict[str, Any] = {name: numbers[name] for name in (*_COUNTERS, *_GAUGES)}
    for name in _HISTOGRAMS:
        total, count = numbers[f"{name}.sum"], numbers[f"{name}.count"]
        values[name] = None if total is None or count is None else Totals(sum=total, count=count)
    block, blocks = _whole(config.get("block_size")), _whole(config.get("num_gpu_blocks"))
    return EngineCounters(
        instance=instance,
        engine=ENGINE,
        rank=rank,
        model=_word(labels.get("model_name", "")),
        block_size=block,
        kv_cache_tokens=_whole(config.get("kv_cache_size_tokens")) or (block * blocks if block and blocks else None),
        prefix_caching={"True": True, "False": False}.get(config.get("enable_prefix_caching", "")),
        started_at=numbers["start"] or numbers["created"],
        keys=keys,
        **values,
    )


def _word(text: str, longest: int = 100) -> str:
    """A label's value as it may be shown: a page can say anything, and must not drive a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text[:longest])


def _whole(text: str | None) -> int | None:
    """A label's value as a count; labels are text, and say "None" where nothing was set."""
    return int(text) if text is not None and re.fullmatch("[0-9]{1,15}", text) and int(text) else None


def _no_engine(text: str, instance: str) -> Fault:
    names = metric_names(text)
    other = next(
        (title for prefix, title in _OTHER_ENGINES.items() if any(re.match(f"{prefix}[:_]", name) for name in names)),
        None,
    )
    if other:
        return Fault(f"is a page of {other}; {other} pages are not read yet", instance, "name vLLM engines")
    own = [name for name in names if _PREFIX.match(name)]
    if own:
        what = f"lacks generation_tokens; of vLLM it holds only {_listed(own)}"
        return Fault(what, instance, "was the page cut, or does the engine run with --disable-log-stats?")
    return Fault(
        f"holds no vLLM metrics, but {_listed(names)}",
        instance,
        "name the engines' own pages, http://HOST:PORT/metrics",
    )


def _listed(names: Sequence[str], most: int = 3) -> str:
    shown = ", ".join(name if len(name) <= 60 else f"{name[:56]}..." for name in names[:most])  # noqa: PLR2004 (fits a line of a terminal)
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown or "no series at all"
