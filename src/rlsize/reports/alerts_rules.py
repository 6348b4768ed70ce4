"""The rules of a plan: first the series that are recorded, then alerts on them with the plan's thresholds."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rlsize.estimates.alert_thresholds import BUDGETED
from rlsize.facts.alerts import SIDES, AlertingRule, AlertSetup, RecordingRule, RuleGroup
from rlsize.reports.alerts_engines import ENGINES, OWN_LABELS
from rlsize.reports.alerts_text import LOOP_LABEL, duration, filled, plain_number, selector_text, series, templated
from rlsize.reports.alerts_trainer import AGGREGATES, EXPRS
from rlsize.reports.alerts_words import DOWN, MISSING, WORDS, Words
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlsize.facts.alerts import AlertPlan, Signal

SERIES: Mapping[str, str] = {
    "idle": "rlsize:trainer_idle_fraction",
    "sync": "rlsize:sync_fraction",
    "queue": "rlsize:queue_samples",
    "age": "rlsize:oldest_sample_age_steps",
    "trained": "rlsize:trained_tokens_per_second",
    "fleet": "rlsize:rollout_output_tokens_per_second",
    "instance": "rlsize:instance_output_tokens_per_second",
    "cache": "rlsize:instance_prefix_cache_hit_fraction",
    "waiting": "rlsize:instance_waiting_per_running",
    "preemptions": "rlsize:instance_preemptions_per_request",
    "up": "rlsize:rollout_instances_up",
    "waste": "rlsize:tokens_generated_per_trained_token",
    "goodput": "rlsize:goodput_tokens_per_gpu_second",
}
"""What is recorded, by what it gives."""

_ALERTED = {"rollout": "fleet", "straggler": "instance"}  # signals whose series has another name
_SOURCES = {"waste": ("trained", "fleet"), "goodput": ("trained",), "rollout": ("fleet",), "straggler": ("instance",)}
SEVERITY = "warning"  # one pool starves the other, nothing is down


class Rules:
    """
    The rules of a plan, and what they are made of.

    Args:
        plan: Thresholds and windows.
        setup: Where the signals come from.
    """

    def __init__(self, plan: AlertPlan, setup: AlertSetup) -> None:
        self.plan, self.setup = plan, setup
        self.engine = ENGINES[setup.engine]
        self.selector = selector_text(setup.selector)
        self.targets = selector_text(one for one in setup.selector if one.label not in OWN_LABELS)
        self.left_out: dict[Signal, str] = dict(plan.left_out)
        for signal in plan.limits:
            reason = self._why_not(signal)
            if reason:
                self.left_out[signal] = reason
        self.signals: tuple[Signal, ...] = tuple(one for one in SIDES if one not in self.left_out)
        sources = {source for one in self.signals for source in (*_SOURCES.get(one, ()), one)}
        self.recorded = tuple(name for name in SERIES if name in sources)

    def _why_not(self, signal: Signal) -> str:
        """Why a signal that has a limit is left out; empty where it is not."""
        source = "trained" if signal in {"waste", "goodput"} else signal
        if self.setup.engine_only and SIDES[signal] != "engine" and source not in self.setup.metrics:
            return f"--engine-only, and no --metric {source}=EXPR"
        if signal == "up" and not self.targets:
            return "the selector names labels of the engine only, which `up` does not have"
        return ""

    def of(self, name: str) -> str:
        """A recorded series of this loop."""
        return series(SERIES[name], self.setup.group)

    @property
    def labels(self) -> dict[str, str]:
        """What tells this loop's series and alerts from those of others."""
        return {LOOP_LABEL: self.setup.group}

    def group(self) -> RuleGroup:
        """All rules."""
        records = tuple(
            RecordingRule(record=SERIES[name], expr=self._recorded(name), labels=self.labels) for name in self.recorded
        )
        return RuleGroup(name=self.setup.group, records=records, alerts=(*self._alerts(), *self._missing()))

    def limit(self, signal: Signal) -> str:
        """A threshold as it stands in an expression."""
        return plain_number(self.plan.limits[signal].limit.number)

    def _recorded(self, name: str) -> str:
        """The expression behind a recorded series."""
        times, own = self.plan.times, self.setup.metrics.get(name)
        if own is not None:
            return f"{AGGREGATES[name]}({own})"
        window = duration(times.instance_seconds if name not in {*EXPRS, "fleet"} else times.window_seconds)
        if name in EXPRS:
            return filled(EXPRS[name], trainer=selector_text(self.setup.trainer_selector), window=window)
        if name in self.engine.exprs:
            return filled(self.engine.exprs[name], selector=self.selector, window=window)
        if name == "waste":
            return f"{self.of('fleet')}\n  / {self.of('trained')}"
        if name == "goodput":
            return f"{self.of('trained')} / {plain_number(self.plan.loop.figure('gpus').number)}"
        return f"sum(up{{{self.targets}}})"

    def _alerts(self) -> Iterator[AlertingRule]:
        for signal in self.signals:
            yield self._alert(signal, WORDS[signal], self._condition(signal), self.plan.times.hold_seconds)
            if signal == "up":
                gone = f"max by (instance) (up{{{self.targets}}}) == 0"
                yield self._alert("up", DOWN, gone, self.plan.times.lost_seconds)

    def _condition(self, signal: Signal) -> str:
        name, limit = self.of(_ALERTED.get(signal, signal)), self.limit(signal)
        if signal == "straggler":
            return f"{name}\n  < {limit} * scalar(quantile(0.5, {name}))"
        if signal == "up":
            return f"(sum({name}) or vector(0)) < {limit}"  # `or` keeps both where labels differ
        return f"{name} {'>' if self.plan.limits[signal].above else '<'} {limit}"

    def _alert(self, signal: Signal, said: Words, expr: str, hold: float) -> AlertingRule:
        one = self.plan.limits[signal]
        planned, limit = (show(figure.value, one.key) for figure in (one.expected, one.limit))
        if one.expected.band is not None:
            low, high = (show(end, one.key) for end in one.expected.band)
            planned = f"{planned} ({low} to {high})"
        side = "above" if one.above else "below"
        threshold = f"{side} {limit}: {one.rule}"
        return AlertingRule(
            alert=said.alert,
            expr=expr,
            hold=duration(self.plan.times.lost_seconds if signal == "up" else hold),
            labels={**self.labels, "severity": SEVERITY, "signal": signal},
            annotations={
                "summary": said.summary,
                "planned": templated(said.planned or planned),
                "threshold": templated(said.threshold or threshold),
                **self._help(said),
                "source": self._source(one.limit.source if one.rule == BUDGETED else ""),
            },
            signal=signal,
        )

    def _missing(self) -> Iterator[AlertingRule]:
        """An alert for each signal that nobody tells; one for each side would not say which."""
        for name in self.recorded:
            needed = self.engine.needed.get({"fleet": "rollout"}.get(name, name))
            if name in EXPRS:
                expr = f"absent({self.of(name)})"
            elif needed is not None:
                expr = f"sum(absent({filled(needed, selector=self.selector)}))"
            else:
                continue
            signal = {"fleet": "rollout"}.get(name, name)
            yield AlertingRule(
                alert=MISSING.alert,
                expr=expr,
                hold=duration(self.plan.times.hold_seconds),
                labels={**self.labels, "severity": SEVERITY, "signal": signal},
                annotations={
                    "summary": f"{MISSING.summary}: {signal}",
                    "threshold": f"{SERIES[name]} has no value",
                    **self._help(MISSING),
                    "source": self._source(""),
                },
                signal=name,
            )

    def _source(self, place: str) -> str:
        plan = self.plan.loop
        return templated(f"{place}; {plan.name}, {plan.origin}" if place else f"{plan.name}, {plan.origin}")

    def _help(self, said: Words) -> dict[str, str]:
        return {"first": said.first, "command": self.command}

    @property
    def command(self) -> str:
        """The command to paste: on the whole fleet, as one instance alone has no others to be compared with."""
        plan, consumption = self.plan, self.plan.consumption
        tail = ""
        if plan.loop.scenario:
            tail = templated(shlex.quote(plan.loop.scenario))
        elif consumption.known:
            tail = f"--consume {plain_number(consumption.number)}"
        where = f'--prometheus "$PROMETHEUS" --selector {templated(shlex.quote(self.selector))}'
        return f"rlsize diagnose {where} --window {duration(plan.times.window_seconds)} {tail}".rstrip()
