"""
Cases for promtool: the loop as it was planned, on which all is quiet, and one case for each alert, on which it fires.

What is scraped is made from what the signals should be, so a case does not know the rules that it tests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlsize.commands.alerts.engines import InstanceState, Scraped
from rlsize.commands.alerts.rules import SERIES
from rlsize.commands.alerts.signals import DOWN, MISSING, SIGNALS
from rlsize.commands.alerts.targets import example_labels
from rlsize.commands.alerts.text import plain_number, rendered
from rlsize.commands.alerts.trainer import EXPRESSIONS
from rlsize.facts.published import AGE, QUEUED, STEP, SYNC, TRAINED, WAIT
from rlsize.planner.rounding import rounded_up
from rlsize.shell.selectors import Matcher, selector_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
