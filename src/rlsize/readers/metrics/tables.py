"""
From series to numbers, alike for every kind of engine: which metric a field is read from, and which engine it is of.

A kind of engine is a table of metrics and a function; the series may come from a page or from a Prometheus server.
"""

from __future__ import annotations

import math
import re
from dataclasses import field, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from rlsize.facts.counters import Buckets, Totals
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlsize.facts.counters import EngineCounters
    from rlsize.readers.metrics.exposition import Series

MOST_BUCKETS = 500
Numbers: TypeAlias = "Mapping[str, float | None]"


@dataclass(frozen=True, slots=True)
class Metric:
    """
    Where a field is found.

    Args:
        names: Today's name and older ones, without prefix and `_total`; the first that the page has is used.
        only: Labels that a series must have to be added up, with the values that count.
        page_wide: Whether the page states it once for all its engines, without an engine label.
        mean: Whether several series of one engine are averaged, not added up.
    """

    names: tuple[str, ...]
    only: Mapping[str, frozenset[str]] = field(default_factory=dict)
    page_wide: bool = False
    mean: bool = False


class Seen(NamedTuple):
    """
    What a page says of one engine.

    Args:
        who: Whose counters they are: fields of `EngineCounters`.
        numbers: Its numbers, by the names of the kind's metrics.
        stated: The labels of the metric that states how it is configured.
        lengths: The buckets of its response lengths.
        keys: The metric behind each field.
    """

    who: Mapping[str, Any]
    numbers: Numbers
    stated: Mapping[str, str]
    lengths: Buckets | None
    keys: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, eq=False)
class EngineKind:
    """
    A kind of engine.

    Args:
        name: As fields and rates files name it.
        title: As people name it.
        prefix: What its metrics begin with.
        metrics: Where each number is found.
        identities: The labels that tell its engines apart on a page; none where it holds no tokens.
        counters: An engine's counters, of what a page says of it.
        missing: What to say of a page that holds some of its metrics but no tokens, and what to do.
        info: The metric whose labels state how an engine is configured.
        buckets: The buckets of response lengths.
        stated: The metrics behind fields that none of `metrics` gives.
        bare: Metrics without that prefix that are read beside them.
        once: Series that say the same of one engine, as one.
    """

    name: str
    title: str
    prefix: re.Pattern[str]
    metrics: Mapping[str, Metric]
    identities: Callable[[Mapping[str, Sequence[Series]], str], Sequence[Mapping[str, str]]]
    counters: Callable[[Seen], EngineCounters]
    missing: tuple[str, str]
    info: str = ""
    buckets: str = ""
    stated: Mapping[str, str] = field(default_factory=dict)
    bare: frozenset[str] = frozenset()
    once: Callable[[Sequence[Series]], Sequence[Series]] = list

    @cached_property
    def names(self) -> frozenset[str]:
        """The metrics that are read, without the prefix."""
        return frozenset(name for metric in self.metrics.values() for name in metric.names) | (
            {self.info, self.buckets} - {""}
        )

    @cached_property
    def line(self) -> re.Pattern[str]:
        """How the lines begin that may be of interest."""
        return re.compile(rf"^(?:{'|'.join([self.prefix.pattern, *sorted(self.bare)])})", re.MULTILINE)

    def wanted(self, name: str) -> bool:
        """Whether a metric is read."""
        return name in self.bare or (bool(self.prefix.match(name)) and _bare(self.prefix, name) in self.names)

    def read(self, found: Sequence[Series], instance: str) -> list[EngineCounters]:
        """
        The counters of every engine of this kind among some series of one moment.

        Args:
            found: The series.
            instance: What to call their origin.

        Returns:
            One of each data-parallel rank, in the order of their ranks; without ranks it is one engine, without tokens
            none.

        Raises:
            InputError: They are of more engines than one page can be of.
        """
        page: dict[str, list[Series]] = {}
        for entry in self.once(found):
            page.setdefault(_bare(self.prefix, entry.name), []).append(entry)
        engines = Engines(self.identities(page, instance))
        keys = {name: entries[0].name for name, metric in self.metrics.items() if (entries := chosen(page, metric))}
        keys |= {name: page[place][0].name for name, place in self.stated.items() if place in page}
        rows = zip(
            engines.who(instance, self.name),
            engines.table(page, self.metrics),
            engines.stating(page.get(self.info, [])),
            engines.buckets(page.get(self.buckets, [])),
            strict=True,
        )
        return sorted((self.counters(Seen(*row, keys)) for row in rows), key=lambda one: natural(one.rank))


@lru_cache(maxsize=4096)
def _bare(prefix: re.Pattern[str], name: str) -> str:
    return prefix.sub("", name, count=1)


def exposed(
    counters: Mapping[str, Metric], gauges: Mapping[str, Metric], histograms: Mapping[str, Metric]
) -> dict[str, Metric]:
    """Each number with the names that a page may show it under; a histogram gives two, its sum and its count."""
    table = {
        name: replace(metric, names=tuple(f"{base}{end}" for base in metric.names for end in ("_total", "")))
        for name, metric in counters.items()
    }
    table |= gauges
    for name, metric in histograms.items():
        table |= {
            f"{name}.{part}": replace(metric, names=tuple(f"{base}_{part}" for base in metric.names))
            for part in ("sum", "count")
        }
    return table


def chosen(page: Mapping[str, Sequence[Series]], metric: Metric) -> Sequence[Series]:
    """The series under the first of a metric's names that the page has; an older one beside it is the same number."""
    return next((page[name] for name in metric.names if name in page), ())


def shared(keys: Mapping[str, str]) -> Mapping[str, str]:
    """One mapping for all pages that name their metrics alike: a long watch keeps many thousand pages."""
    return _shared(tuple(keys.items()))


@lru_cache(maxsize=64)
def _shared(keys: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return MappingProxyType(dict(keys))


def natural(rank: str) -> tuple[int, str]:
    """What ranks are sorted by."""
    return (int(rank), rank) if re.fullmatch("[0-9]{1,8}", rank) else (10**8, rank)


class Engines:
    """
    The engines of one page, told apart by the labels of their tokens.

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
        ranks = [word(own.get("engine", "")) for own in self.labels]
        if len(set(ranks)) == len(ranks):
            return ranks
        differing = sorted(name for name in self.names if len({own.get(name) for own in self.labels}) > 1)
        return [word(" ".join(f"{name}={own.get(name, '')}" for name in differing)) for own in self.labels]

    def who(self, instance: str, kind: str) -> list[dict[str, Any]]:
        """What says whose the counters of each engine are: fields of `EngineCounters`."""
        return [
            {"instance": instance, "engine": kind, "rank": rank, "model": word(own.get("model_name", ""))}
            for rank, own in zip(self.ranks, self.labels, strict=True)
        ]

    def of(self, labels: Mapping[str, str]) -> list[int]:
        """The engines that a series with these labels may belong to."""
        key = tuple((name, labels[name]) for name in sorted(self.names & labels.keys()))
        if key not in self._known:
            self._known[key] = [
                index for index, own in enumerate(self.labels) if all(own.get(name) == value for name, value in key)
            ]
        return self._known[key]

    def numbers(self, found: Sequence[Series], metric: Metric) -> list[float | None]:
        """The number of each engine, over the labels that only split it; None where the page does not say."""
        totals: list[float | None] = [None] * len(self.labels)
        counts = [0] * len(self.labels)
        for entry in found:
            if any(entry.labels.get(name) not in values for name, values in metric.only.items()):
                continue
            owners = self.of(entry.labels)
            if len(owners) > 1 and not metric.page_wide:
                continue  # nobody can say whose it is
            for index in owners:
                totals[index] = (totals[index] or 0.0) + entry.value
                counts[index] += 1
        if not metric.mean:
            return totals
        return [None if total is None else total / counts[index] for index, total in enumerate(totals)]

    def table(
        self, page: Mapping[str, Sequence[Series]], metrics: Mapping[str, Metric]
    ) -> list[dict[str, float | None]]:
        """All numbers of each engine."""
        columns = {name: self.numbers(chosen(page, metric), metric) for name, metric in metrics.items()}
        return [{name: column[index] for name, column in columns.items()} for index in range(len(self.labels))]

    def buckets(self, found: Sequence[Series]) -> list[Buckets | None]:
        """The buckets of each engine's histogram, from its `_bucket` series."""
        counts: list[dict[str, float]] = [{} for _ in self.labels]
        for entry in found:
            owners = self.of(entry.labels)
            if len(owners) == 1:
                bound = entry.labels.get("le", "")
                counts[owners[0]][bound] = counts[owners[0]].get(bound, 0.0) + entry.value
        return [_buckets(own) for own in counts]

    def stating(self, found: Sequence[Series]) -> list[Mapping[str, str]]:
        """The labels of the series that states something about each engine in them."""
        stated: list[Mapping[str, str]] = [{}] * len(self.labels)
        for entry in found:
            for index in self.of(entry.labels):
                stated[index] = entry.labels
        return stated


def _buckets(counts: Mapping[str, float]) -> Buckets | None:
    """Buckets from what stands at each `le`; None where they are damaged, or none."""
    if not 1 < len(counts) <= MOST_BUCKETS:
        return None
    try:
        pairs = sorted((float(bound), count) for bound, count in counts.items())
    except ValueError:
        return None
    bounds, values = tuple(bound for bound, _ in pairs), tuple(count for _, count in pairs)
    if bounds[-1] != math.inf or not bounds[0] > -math.inf or any(first > second for first, second in pairwise(values)):
        return None
    return Buckets(bounds=_bounds(bounds[:-1]), counts=values)


@lru_cache(maxsize=64)
def _bounds(bounds: tuple[float, ...]) -> tuple[float, ...]:
    """One tuple for all pages with these bounds."""
    return bounds


def totals(numbers: Numbers, names: Sequence[str]) -> dict[str, Any]:
    """Sum and count of histograms; None where a page has not both."""
    found: dict[str, Any] = {}
    for name in names:
        total, count = numbers[f"{name}.sum"], numbers[f"{name}.count"]
        found[name] = None if total is None or count is None else Totals(sum=total, count=count)
    return found


def word(text: str, longest: int = 100) -> str:
    """A label's value as it may be shown: a page can say anything, and must not drive a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text[:longest])


def whole(text: str | None) -> int | None:
    """A label's value as a count; labels are text, and say "None" where nothing was set."""
    return int(text) if text is not None and re.fullmatch("[0-9]{1,15}", text) and int(text) else None
