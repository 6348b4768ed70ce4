"""
Cases for promtool: the loop as it was planned, on which all is quiet, and one case for each alert, on which it fires.

What is scraped is made from what the signals should be, so a case does not know the rules that it tests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.facts.alerts import Firing, Matcher, RuleCase, RuleCases
from rlsize.planner.rounding import rounded_up
from rlsize.reports.alerts_engines import InstanceState, Scraped
from rlsize.reports.alerts_example import example_labels
from rlsize.reports.alerts_rules import SERIES
from rlsize.reports.alerts_text import plain_number, rendered, selector_text
from rlsize.reports.alerts_trainer import AGE, QUEUED, STEP, SYNC, TRAINED, WAIT
from rlsize.reports.alerts_words import DOWN, MISSING, WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlsize.facts.alerts import AlertingRule, Signal
    from rlsize.reports.alerts_rules import Rules

_POINTS = 5  # samples in the shortest window
_EVALUATED = 3  # samples from one evaluation to the next
_TARGETS = 3  # instances that a case has; the last one stands for all others
_USUAL = 1000.0  # tokens per second where a plan says none
_FAR, _NEAR = 0.5, 0.9  # shares of a threshold: a healthy value lies at 0.9 of it at most, a sick one far beyond it
_SOME = 0.1  # a share that is not small
_DIGITS = 3  # of made-up values, so that what is shown of them is exact


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What is scraped: signals of the trainer, and the instances."""

    idle: float
    sync: float
    queue: float
    age: float
    trained: float
    instances: tuple[InstanceState, ...]


class Cases:
    """
    The cases of a plan's rules.

    Args:
        rules: The rules.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules, self.plan = rules, rules.plan
        planned = self.plan.loop.figure("instances")
        self.count = min(_TARGETS, rounded_up(planned.number)) if planned.known else _TARGETS
        self.beyond = planned.number - self.count if planned.known else 0.0
        times = self.plan.times
        self.interval = rounded_up(times.instance_seconds / _POINTS)
        self.points = rounded_up((times.window_seconds + times.hold_seconds) / self.interval) + 4  # minutes round up
        self.alerts = rules.group().alerts
        self.targets = example_labels(rules.setup.selector, self.count)
        self.trainer = _trainer_labels(rules.setup.trainer_selector)

    def all(self) -> RuleCases:
        """The cases, the healthy one first."""
        healthy = self._healthy()
        cases = [RuleCase(name="as planned", series=self._series(healthy), fires={a.alert: () for a in self.alerts})]
        for signal in self.rules.signals:
            cases += self._sick(signal, healthy)
        missing = tuple(self._firing(one, 1.0, {}) for one in self.alerts if one.alert == MISSING.alert)
        if missing:
            cases.append(RuleCase(name="nothing is scraped", series=(), fires={MISSING.alert: missing}))
        return RuleCases(
            interval=f"{self.interval}s",
            every=f"{_EVALUATED * self.interval}s",
            at=f"{self.interval * (self.points - 1)}s",
            cases=tuple(cases),
        )

    # ---- the loop as planned ----

    def _healthy(self) -> _Seen:
        waste = self._planned("waste", 1.0)
        fleet, trained = self._planned("rollout", 0.0), self._planned("goodput", 0.0) * self._gpus
        fleet = fleet or (trained or _USUAL * self.count) * waste
        state = InstanceState(tokens_per_second=fleet / self.count, hit_fraction=self._planned("cache", _FAR))
        return _Seen(
            idle=self._planned("idle", 0.0),
            sync=self._planned("sync", 0.0),
            queue=self._planned("queue", 0.0),
            age=self._planned("age", 0.0),
            trained=trained or fleet / waste,
            instances=(*(state for _ in range(self.count - 1)), replace(state, up=1.0 + self.beyond)),
        )

    def _planned(self, signal: Signal, otherwise: float) -> float:
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

    @property
    def _gpus(self) -> float:
        """GPUs as the rules count them."""
        gpus = self.plan.loop.figure("gpus")
        return float(plain_number(gpus.number)) if gpus.known else 0.0

    # ---- one case for each alert ----

    def _sick(self, signal: Signal, healthy: _Seen) -> Iterator[RuleCase]:
        worst = _short(self._worst(signal))
        seen, labels, value = self._worse(signal, worst, healthy)
        alert = WORDS[signal].alert
        yield self._case(signal, alert, seen, value, labels)
        if signal == "up":
            first = replace(healthy.instances[0], up=0.0)
            gone = replace(healthy, instances=(first, *healthy.instances[1:]))
            yield self._case(signal, DOWN.alert, gone, 0.0, self._instance)

    def _worst(self, signal: Signal) -> float:
        """A value far beyond the threshold, but not ten times as far."""
        one = self.plan.limits[signal]
        limit = one.limit.number
        if signal in {"idle", "sync"}:
            return min(2 * limit or _SOME, (limit + 1) / 2)
        if signal == "age":
            return limit + 1 if limit < 2 else 2 * limit  # noqa: PLR2004 (twice of nothing is nothing)
        if signal == "goodput":
            return _NEAR * limit
        return 2 * limit if one.above else _FAR * limit

    def _worse(self, signal: Signal, worst: float, healthy: _Seen) -> tuple[_Seen, Mapping[str, str], float]:
        """What is scraped in a case, the labels that tell whose it is, and the value that the alert shows."""
        fleet = sum(one.tokens_per_second for one in healthy.instances)
        if signal == "straggler":
            return self._straggling(healthy, _short(worst * fleet / self.count), fleet)
        if signal in _FIELDS:
            first = replace(healthy.instances[0], **{_FIELDS[signal]: worst})
            return replace(healthy, instances=(first, *healthy.instances[1:])), self._instance, worst
        if signal == "up":
            last = healthy.instances[-1]
            rest = (*healthy.instances[:-1], replace(last, up=last.up - 1))
            return replace(healthy, instances=rest), {}, self.count + self.beyond - 1
        rates = {"goodput": ("trained", self._gpus), "waste": ("fleet", healthy.trained), "rollout": ("fleet", 1.0)}
        if signal in rates:
            name, times = rates[signal]
            return self._rates(healthy, **{name: worst * times}), {}, worst
        return replace(healthy, **{signal: worst}), {}, worst  # type: ignore[arg-type]  # a number

    def _rates(self, healthy: _Seen, *, trained: float | None = None, fleet: float | None = None) -> _Seen:
        """The loop with other rates, spread over the fleet."""
        share = None if fleet is None else fleet / self.count
        instances = [one if share is None else replace(one, tokens_per_second=share) for one in healthy.instances]
        return replace(healthy, instances=tuple(instances), trained=healthy.trained if trained is None else trained)

    def _straggling(self, healthy: _Seen, rate: float, fleet: float) -> tuple[_Seen, Mapping[str, str], float]:
        """One instance slow, the others as much faster."""
        rest = (fleet - rate) / (self.count - 1)
        first, *others = healthy.instances
        slow = replace(first, tokens_per_second=rate)
        instances = (slow, *(replace(one, tokens_per_second=rest) for one in others))
        return replace(healthy, instances=instances), self._instance, rate

    @property
    def _instance(self) -> Mapping[str, str]:
        return {"instance": self.targets[0]["instance"]}

    def _case(self, signal: Signal, alert: str, seen: _Seen, value: float, labels: Mapping[str, str]) -> RuleCase:
        rule = next(one for one in self.alerts if one.alert == alert)
        along = _ALONG.get(signal, {signal})
        kept = [WORDS[one].alert for one in self.rules.signals if one not in along]
        fires: dict[str, tuple[Firing, ...]] = dict.fromkeys((*kept, MISSING.alert), ())
        return RuleCase(
            name=alert,
            series=self._series(seen),
            fires={alert: (self._firing(rule, value, labels),), **fires},
        )

    @staticmethod
    def _firing(rule: AlertingRule, value: float, labels: Mapping[str, str]) -> Firing:
        texts = {key: rendered(text, value, labels) for key, text in rule.annotations.items()}
        return Firing(labels={**labels, **rule.labels}, annotations=texts)

    # ---- what is scraped ----

    def _series(self, seen: _Seen) -> tuple[tuple[str, str], ...]:
        found = []
        for labels, state in zip(self.targets, seen.instances, strict=True):
            found += [self._one(scraped, labels, self.rules.engine.labels) for scraped in self.rules.engine.page(state)]
            target = {key: value for key, value in labels.items() if key not in self.rules.engine.labels}
            found.append(self._one(Scraped(name="up", value=state.up, labels={}, counter=False), target, {}))
        return (*found, *self._trainer(seen))

    def _trainer(self, seen: _Seen) -> Iterator[tuple[str, str]]:
        own, recorded = self.rules.setup.metrics, self.rules.recorded
        pages = {
            "idle": [(WAIT, seen.idle, True)],
            "sync": [(SYNC, seen.sync, True)],
            "queue": [(QUEUED, seen.queue, False)],
            "age": [(AGE, seen.age, False)],
            "trained": [(TRAINED, seen.trained, True)],
        }
        if any(name in recorded and name not in own for name in ("idle", "sync")):
            yield self._one(Scraped(name=STEP, value=1.0, labels={}), self.trainer, {})
        for name, metrics in pages.items():
            if name not in recorded:
                continue
            if name in own:  # nothing is known of its expression, so the case gives what it would be recorded as
                value = getattr(seen, name)
                scraped = Scraped(name=SERIES[name], value=value, labels=self.rules.labels, counter=False)
                yield self._one(scraped, {}, {})
            else:
                for metric, value, counter in metrics:
                    yield self._one(Scraped(name=metric, value=value, labels={}, counter=counter), self.trainer, {})

    def _one(self, scraped: Scraped, target: Mapping[str, str], own: Mapping[str, str]) -> tuple[str, str]:
        labels = {**own, **scraped.labels, **target}
        inside = ",".join(_label(name, value) for name, value in sorted(labels.items()))
        if scraped.counter:
            values = f"0+{plain_number(scraped.value * self.interval, 12)}x{self.points}"
        else:
            values = f"{plain_number(scraped.value, 12)}+0x{self.points}"
        return f"{scraped.name}{{{inside}}}" if inside else scraped.name, values


_FIELDS: Mapping[Signal, str] = {  # of one instance
    "cache": "hit_fraction",
    "waiting": "waiting_per_running",
    "preemptions": "preemptions_per_request",
}
_ALONG: Mapping[str, set[str]] = {  # signals that a sick one may take along
    "goodput": {"goodput", "waste", "rollout"},
    "rollout": {"rollout", "waste", "goodput"},
    "waste": {"waste", "rollout", "goodput"},
}


def _label(name: str, value: str) -> str:
    return selector_text([Matcher(name, "=", value)])


def _short(value: float) -> float:
    """A value in few digits."""
    return float(f"{value:.{_DIGITS}g}")


def _trainer_labels(selector: Sequence[Matcher]) -> dict[str, str]:
    """Labels of the trainer's series; an instance only where the selector asks for one."""
    found = example_labels(selector, 1)[0] if selector else {}
    named = {one.label for one in selector}
    return {label: value for label, value in found.items() if label in named}
