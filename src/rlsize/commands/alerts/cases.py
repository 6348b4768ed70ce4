"""
Cases for promtool: the loop as it was planned, on which all is quiet, and one case for each alert, on which it fires.

What is scraped is made from what the signals should be, so a case does not know the rules that it tests.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain, product
from typing import TYPE_CHECKING, Any

from rlsize.commands.alerts.engines import InstanceState, Scraped
from rlsize.commands.alerts.rules import SERIES
from rlsize.commands.alerts.signals import DOWN, EXPRESSIONS, MISSING, SIGNALS
from rlsize.commands.alerts.text import plain_number, rendered
from rlsize.errors import Fault, InputError
from rlsize.facts.published import AGE, QUEUED, STEP, SYNC, TRAINED, WAIT
from rlsize.frozen import dataclass
from rlsize.planner.rounding import rounded_up
from rlsize.shell.selectors import Matcher, selector_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rlsize.commands.alerts.rules import Rule, Rules

_POINTS = 5  # samples in the shortest window
_TARGETS = 3  # instances that a case has; the last one stands for all others
_USUAL = 1000.0  # tokens per second where a plan says none
_FAR, _NEAR = 0.5, 0.9  # shares of a threshold: a healthy value lies at 0.9 of it at most, a sick one far beyond it
_SOME = 0.1  # a share that is not small
_DIGITS = 3  # of made-up values, so that what is shown of them is exact
_FIELDS = {"cache": "hit_fraction", "waiting": "waiting_per_running", "preemptions": "preemptions_per_request"}
_ALONG = frozenset({"goodput", "waste", "rollout"})  # a sick one may take the others along
_PUBLISHED = {"idle": (WAIT, True), "sync": (SYNC, True), "queue": (QUEUED, False), "age": (AGE, False),
              "trained": (TRAINED, True)}  # fmt: skip
"""What the trainer publishes for each of its signals, and whether that is a counter."""

_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\[dws]|(?<!\\)\.")
_TIMES = re.compile(r"(\\.|[^\\])\{(\d{1,2})(?:,\d*)?\}\??")
_COUNT = re.compile(r"(?<!\\)[*+?]\??")
_OUTERMOST = re.compile(r"\(([^()|]*)(?:\|[^()]*)?\)")
_KINDS = {r"\d": "0", r"\w": "a", r"\s": " ", ".": "x"}
_MOST = 200  # instances that are tried
_LONGEST = 100  # characters of a label that is made up


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scrape:
    """What is scraped: signals of the trainer by name, and the instances."""

    trainer: Mapping[str, float]
    instances: tuple[InstanceState, ...]

    def but_first(self, **changed: float) -> _Scrape:
        """The same with another first instance."""
        first, *others = self.instances
        return replace(self, instances=(replace(first, **changed), *others))

    def but_all(self, **changed: float) -> _Scrape:
        """The same with other instances."""
        return replace(self, instances=tuple(replace(one, **changed) for one in self.instances))


class Cases:
    """
    The cases of a plan's rules.

    Args:
        rules: The rules.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules, self.plan = rules, rules.plan
        planned, gpus = self.plan.loop.figure("instances"), self.plan.loop.figure("gpus")
        self.count = min(_TARGETS, rounded_up(planned.number)) if planned.known else _TARGETS
        self.beyond = planned.number - self.count if planned.known else 0.0
        self.gpus = float(plain_number(gpus.number)) if gpus.known else 0.0  # as the rules count them
        self.interval = rounded_up(self.plan.hold_seconds / _POINTS)
        whole = self.plan.window_seconds + self.plan.hold_seconds
        self.points = rounded_up(whole / self.interval) + 4  # up to minutes
        self.alerts = rules.alerts()
        self.targets = example_labels(rules.setup.selector, self.count)
        self.first = {"instance": self.targets[0]["instance"]}
        selector = rules.setup.trainer_selector
        named = {one.label for one in selector}  # an instance only where the selector asks for one
        example = example_labels(selector, 1)[0] if selector else {}
        self.trainer = {label: value for label, value in example.items() if label in named}

    def content(self, rule_file: str) -> dict[str, Any]:
        """The test file of promtool beside a rule file; the healthy case first."""
        healthy = self._healthy()
        cases = [self._case("as planned", healthy, {one["alert"]: [] for one in self.alerts})]
        for signal in self.rules.signals:
            cases += self._sick(signal, healthy)
        missing = [_firing(one, 1.0, {}) for one in self.alerts if one["alert"] == MISSING.alert]
        if missing:
            cases.append(self._case("nothing is scraped", None, {MISSING.alert: missing}))
        return {"rule_files": [rule_file], "evaluation_interval": f"{self.interval}s", "tests": cases}

    def _case(self, name: str, scraped: _Scrape | None, fires: Mapping[str, list[dict[str, Any]]]) -> dict[str, Any]:
        at = f"{self.interval * (self.points - 1)}s"
        series = self._series(scraped) if scraped is not None else ()
        return {
            "name": name,
            "interval": f"{self.interval}s",
            "input_series": [{"series": one, "values": values} for one, values in series],
            "alert_rule_test": [
                {"eval_time": at, "alertname": alert, "exp_alerts": firing} for alert, firing in fires.items()
            ],
        }

    # ---- the loop as planned ----

    def _healthy(self) -> _Scrape:
        waste = self.planned("waste", 1.0)
        fleet, trained = self.planned("rollout", 0.0), self.planned("goodput", 0.0) * self.gpus
        fleet = fleet or (trained or _USUAL * self.count) * waste
        state = InstanceState(tokens_per_second=fleet / self.count, hit_fraction=self.planned("cache", _FAR))
        told = {signal: self.planned(signal, 0.0) for signal in ("idle", "sync", "queue", "age")}
        return _Scrape(
            trainer={**told, "trained": trained or fleet / waste},
            instances=(*(state for _ in range(self.count - 1)), replace(state, up=1.0 + self.beyond)),
        )

    def planned(self, signal: str, otherwise: float) -> float:
        """What a signal is in a healthy loop: as planned, or well within a limit that the plan itself breaks."""
        one = self.plan.limits.get(signal)
        if one is None:
            return otherwise
        limit = one.limit.number
        if not one.expected.known:
            return _short(_FAR * limit)
        expected = one.expected.number
        if signal == "age":
            return min(expected, limit)
        return min(expected, _NEAR * limit) if one.above else max(expected, limit / _NEAR)

    # ---- one case for each alert ----

    def _sick(self, signal: str, healthy: _Scrape) -> Iterator[dict[str, Any]]:
        scraped, labels, value = self._worse(signal, _short(self.worst(signal)), healthy)
        yield self._alone(signal, SIGNALS[signal].alert, scraped, value, labels)
        if signal == "up":
            yield self._alone(signal, DOWN.alert, healthy.but_first(up=0.0), 0.0, self.first)

    def worst(self, signal: str) -> float:
        """A value far beyond the threshold, but not ten times as far."""
        one = self.plan.limits[signal]
        limit = one.limit.number
        if signal in {"idle", "sync"}:
            return min(2 * limit or _SOME, (limit + 1) / 2)
        if signal == "age":
            return max(limit + 1, 2 * limit)  # twice of nothing is nothing
        if signal == "goodput":
            return _NEAR * limit
        return 2 * limit if one.above else _FAR * limit

    def _worse(self, signal: str, worst: float, healthy: _Scrape) -> tuple[_Scrape, Mapping[str, str], float]:
        """What is scraped in a case, the labels that tell whose it is, and the value that the alert shows."""
        if signal == "straggler":
            fleet = sum(one.tokens_per_second for one in healthy.instances)
            rate = _short(worst * fleet / self.count)
            rest = (fleet - rate) / (self.count - 1)
            return healthy.but_all(tokens_per_second=rest).but_first(tokens_per_second=rate), self.first, rate
        if signal in _FIELDS:
            return healthy.but_first(**{_FIELDS[signal]: worst}), self.first, worst
        if signal == "up":
            *others, last = healthy.instances
            there = (*others, replace(last, up=last.up - 1))
            return replace(healthy, instances=there), {}, self.count + self.beyond - 1
        if signal in {"waste", "rollout"}:
            fleet = worst * (healthy.trainer["trained"] if signal == "waste" else 1.0)
            return healthy.but_all(tokens_per_second=fleet / self.count), {}, worst
        changed = {"trained": worst * self.gpus} if signal == "goodput" else {signal: worst}
        return replace(healthy, trainer={**healthy.trainer, **changed}), {}, worst

    def _alone(
        self, signal: str, alert: str, scraped: _Scrape, value: float, labels: Mapping[str, str]
    ) -> dict[str, Any]:
        """A case on which one alert fires, and no other does but those that it takes along."""
        rule = next(one for one in self.alerts if one["alert"] == alert)
        along = _ALONG if signal in _ALONG else {signal}
        quiet = [SIGNALS[one].alert for one in self.rules.signals if one not in along]
        silent: dict[str, list[dict[str, Any]]] = {one: [] for one in (*quiet, MISSING.alert)}
        return self._case(alert, scraped, {alert: [_firing(rule, value, labels)], **silent})

    # ---- what is scraped ----

    def _series(self, scrape: _Scrape) -> Iterator[tuple[str, str]]:
        engine = self.rules.engine
        for labels, state in zip(self.targets, scrape.instances, strict=True):
            for scraped in engine.page(state):
                yield self._one(scraped, {**engine.labels, **scraped.labels, **labels})
            target = {key: value for key, value in labels.items() if key not in engine.labels}
            yield self._one(Scraped(name="up", value=state.up, labels={}, counter=False), target)
        own, recorded = self.rules.setup.metrics, self.rules.recorded
        if any(name in recorded and name not in own for name in ("idle", "sync")):
            yield self._one(Scraped(name=STEP, value=1.0, labels={}), self.trainer)
        for name in EXPRESSIONS:
            if name not in recorded:
                continue
            metric, counter = _PUBLISHED[name]
            labels = self.trainer
            if name in own:  # nothing is known of its expression, so the case gives what it would be recorded as
                metric, counter, labels = SERIES[name], False, self.rules.labels
            yield self._one(Scraped(name=metric, value=scrape.trainer[name], labels={}, counter=counter), labels)

    def _one(self, scraped: Scraped, labels: Mapping[str, str]) -> tuple[str, str]:
        inside = ",".join(selector_text([Matcher(name, "=", value)]) for name, value in sorted(labels.items()))
        if scraped.counter:
            values = f"0+{plain_number(scraped.value * self.interval, 12)}x{self.points}"
        else:
            values = f"{plain_number(scraped.value, 12)}+0x{self.points}"
        return f"{scraped.name}{{{inside}}}" if inside else scraped.name, values


def _firing(rule: Rule, value: float, labels: Mapping[str, str]) -> dict[str, Any]:
    """An alert that fires: its labels besides the name, and its annotations as they are read."""
    texts = {key: rendered(text, value, labels) for key, text in rule["annotations"].items()}
    return {"exp_labels": {**labels, **rule["labels"]}, "exp_annotations": texts}


def _short(value: float) -> float:
    """A value in few digits."""
    return float(f"{value:.{_DIGITS}g}")


def matching(value: str, matchers: Iterable[Matcher]) -> bool:
    """Whether a label's value is taken; a label that is missing has the empty value."""
    return all(_takes(one, value) for one in matchers)


def _takes(one: Matcher, value: str) -> bool:
    if one.operator in {"=", "!="}:
        return (value == one.value) == (one.operator == "=")
    try:
        found = re.fullmatch(one.value, value) is not None
    except re.error:  # a form that Prometheus knows and this does not
        found = False
    return found == (one.operator == "=~")


def example_labels(matchers: Sequence[Matcher], wanted: int) -> list[dict[str, str]]:
    """
    Labels of so many targets that a selector takes, each with an `instance` of its own.

    Args:
        matchers: The selector.
        wanted: How many targets.

    Raises:
        InputError: No such labels are found.
    """
    by_label: dict[str, list[Matcher]] = {}
    for one in matchers:
        by_label.setdefault(one.label, []).append(one)
    own = by_label.pop("instance", [])
    fixed = {label: _example(label, ones) for label, ones in by_label.items()}
    names = [name for name in dict.fromkeys(_instances(own)) if name and matching(name, own)][:wanted]
    if len(names) < wanted:
        raise InputError(_unknown("instance", f"{wanted} instances"))
    return [{label: value for label, value in fixed.items() if value} | {"instance": name} for name in names]


def _example(label: str, matchers: Sequence[Matcher]) -> str:
    found = next((text for text in _candidates(matchers) if matching(text, matchers)), None)
    if found is None:
        raise InputError(_unknown(label, "a value"))
    return found


def _unknown(label: str, what: str) -> Fault:
    todo = "select with = or a plainer regular expression, or print the rules alone (without --output)"
    return Fault(f"{what} of {label} for the test file cannot be made up", "--selector", todo)


def _candidates(matchers: Sequence[Matcher]) -> Iterator[str]:
    wanted = [one for one in matchers if one.operator in {"=", "=~"}]
    yield from chain([""] if not wanted else [], *([one.value, *_shapes(one.value)] for one in wanted))
    yield from ("rollout", "other", "x")


def _shapes(pattern: str) -> Iterator[str]:
    """Texts that a simple regular expression may take, by replacing its parts with the first that they take."""
    for branch, more in product(_branches(pattern), ("", "0", "1")):
        text = branch
        for _ in range(5):
            text = _OUTERMOST.sub(lambda found: found[1].removeprefix("?:"), text)
        text = _CLASS.sub(lambda found: _KINDS.get(found[0], found[0].strip("[]^").removeprefix("\\")[:1]), text)
        text = _TIMES.sub(lambda found: found[1] * int(found[2]), text)
        text = re.sub(r"\\(.)", r"\1", _COUNT.sub("", text).strip("^$")) + more
        if len(text) <= _LONGEST:
            yield text


def _branches(pattern: str) -> list[str]:
    """Alternatives on the outside of a pattern."""
    depth, start, found = 0, 0, []
    for index, letter in enumerate(pattern):
        depth += (letter == "(") - (letter == ")")
        if letter == "|" and depth == 0:
            found.append(pattern[start:index])
            start = index + 1
    return [*found, pattern[start:]]


def _instances(matchers: Sequence[Matcher]) -> Iterator[str]:
    """Names of instances: usual ones, then some like the selector's own."""
    usual = [f"rollout-{index}:8000" for index in range(4)]
    yield from usual
    for one in matchers:
        if one.operator in {"=", "=~"}:
            for shape in [one.value, *_shapes(one.value)][:_MOST]:
                yield shape
                yield from (f"{shape}{ending}" for ending in ("0", "1", "2", ":8000", ":8001", ":8002"))
                yield from (f"{name}{shape}" for name in ("a", "b", "c"))
                yield from (f"{shape[:-1]}{digit}" for digit in "123")
