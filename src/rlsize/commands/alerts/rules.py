"""The rules of a plan: first the series that are recorded, then alerts on them with the plan's thresholds."""

from __future__ import annotations

import shlex
from dataclasses import field, replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rlsize.commands.alerts.engines import ENGINES, EXPRS, NEEDED, OWN_LABELS
from rlsize.commands.alerts.signals import DOWN, EXPRESSIONS, MISSING, SIGNALS, AlertWords
from rlsize.commands.alerts.text import duration, filled, plain_number, templated
from rlsize.commands.alerts.thresholds import BUDGETED, LOST_SECONDS
from rlsize.facts import published
from rlsize.facts.published import METRICS, RECORDED
from rlsize.frozen import dataclass
from rlsize.reports.wording import interval
from rlsize.shell.selectors import Matcher, selector_text
from rlsize.units import printable, show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlsize.commands.alerts.thresholds import AlertPlan

Rule = dict[str, Any]
"""A rule as Prometheus has it: `record` or `alert`, `expr`, `labels`, and for an alert `for` and `annotations`."""

SERIES: Mapping[str, str] = {
    **published.SIGNALS,
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

SEVERITY = "warning"  # one pool starves the other, nothing is down
_SOURCES = {"waste": ("trained", "fleet"), "goodput": ("trained",)}  # what is worked out of others, which it needs
_TESTED = "Check: promtool check rules rules.yml; promtool test rules rules_test.yml (both: --output FOLDER)."
_WRAPPED = (
    "For the Prometheus operator; promtool checks and tests the same rules as --output FOLDER writes them beside."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSetup:
    """
    Where the signals come from.

    Args:
        engine: Whose metrics they are.
        group: Name of the rules, and value of the label `loop` of all that they record.
        selector: Which targets are the rollout instances.
        trainer_selector: Which series are the trainer's; nothing for all of their names.
        metrics: Expressions in place of the default ones, by name.
        engine_only: Whether signals of the trainer are left out where no expression is given.
    """

    engine: str
    group: str
    selector: tuple[Matcher, ...]
    trainer_selector: tuple[Matcher, ...] = ()
    metrics: Mapping[str, str] = field(default_factory=dict)
    engine_only: bool = False


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
        self.labels, self.own = {"loop": setup.group}, f'loop="{setup.group}"'
        """What tells this loop's series and alerts from those of others."""
        reasons = {signal: self._why_not(signal) for signal in plan.limits}
        self.left_out = {**plan.left_out, **{signal: reason for signal, reason in reasons.items() if reason}}
        self.signals = tuple(signal for signal in SIGNALS if signal not in self.left_out)
        judged = {SIGNALS[signal].series or signal for signal in self.signals}
        sources = judged.union(*(_SOURCES.get(signal, ()) for signal in self.signals))
        self.recorded = tuple(name for name in SERIES if name in sources)

    def _why_not(self, signal: str) -> str:
        """Why a signal that has a limit is left out; empty where it is not."""
        source = "trained" if signal in _SOURCES else signal
        if self.setup.engine_only and SIGNALS[signal].of_trainer and source not in self.setup.metrics:
            return f"--engine-only, and no --metric {source}=EXPR"
        if signal == "preemptions" and "preemptions" not in self.engine.fields:
            return f"{self.engine.kind.title} does not count them"
        if signal == "up" and not self.targets:
            return "the selector names labels of the engine only, which `up` does not have"
        return ""

    def told(self) -> list[str]:
        """Alerts that there are none of, with the reason."""
        return [f"{SIGNALS[signal].alert}: {why}" for signal, why in self.left_out.items()]

    def of(self, name: str) -> str:
        """A recorded series of this loop."""
        return f"{SERIES[name]}{{{self.own}}}"

    def judged(self, signal: str) -> str:
        """The recorded series of this loop that a signal is judged by."""
        return self.of(SIGNALS[signal].series or signal)

    def limit(self, signal: str) -> str:
        """A threshold as it stands in an expression."""
        return plain_number(self.plan.limits[signal].limit.number)

    def content(self) -> dict[str, Any]:
        """The rule file: what is recorded first, as alerts ask for it."""
        return {"groups": [{"name": self.setup.group, "rules": [*self.records(), *self.alerts()]}]}

    def records(self) -> list[Rule]:
        """The series that are recorded: what engines tell under one name, then what follows from it."""
        found = {RECORDED[field]: self.engine.spelled(field, self.selector) for field in self.engine.fields}
        found |= {SERIES[name]: self._recorded(name) for name in self.recorded}
        return [{"record": series, "expr": expr, "labels": self.labels} for series, expr in found.items()]

    def _recorded(self, name: str) -> str:
        """The expression behind a recorded series."""
        own, known = self.setup.metrics.get(name), EXPRESSIONS.get(name)
        if own is not None:
            return f"{EXPRESSIONS[name].aggregate}({own})"
        if known is not None:
            trainer = selector_text(self.setup.trainer_selector)
            figures = [self.plan.loop.figure(key) for key in known.factor]
            factor = " * ".join(plain_number(one.number) for one in figures if one.known)
            whole = all(one.known for one in figures)
            exprs = (known.ours, *(one for one in known.theirs if whole or "$F" not in one))
            window = duration(self.plan.window_seconds)
            return "\nor ".join(filled(one, trainer=trainer, window=window, factor=factor) for one in exprs)
        if name in EXPRS:
            window = duration(self.plan.window_seconds if name == "fleet" else self.plan.hold_seconds)
            return filled(EXPRS[name], selector=self.own, trainer=self.targets, window=window)
        if name == "waste":
            return f"{self.of('fleet')}\n  / {self.of('trained')}"
        return f"{self.of('trained')} / {plain_number(self.plan.loop.figure('gpus').number)}"

    def alerts(self) -> list[Rule]:
        """The alerts: of each signal, then of what nobody tells."""
        found = []
        for signal in self.signals:
            found.append(self._alert(signal, SIGNALS[signal], self._condition(signal)))
            if signal == "up":
                found.append(self._alert("up", DOWN, f"max by (instance) (up{{{self.targets}}}) == 0"))
        return [*found, *self._missing()]

    def _condition(self, signal: str) -> str:
        name, limit = self.judged(signal), self.limit(signal)
        if signal == "straggler":
            return f"{name}\n  < {limit} * scalar(quantile(0.5, {name}))"
        if signal == "up":
            return f"(sum({name}) or vector(0)) < {limit}"  # `or` keeps both where labels differ
        return f"{name} {'>' if self.plan.limits[signal].above else '<'} {limit}"

    def _alert(self, signal: str, said: AlertWords, expr: str) -> Rule:
        one = self.plan.limits[signal]
        planned, limit = one.shown()
        if one.expected.band is not None:
            planned = f"{planned} ({interval(one.expected)})"
        words = {
            "planned": templated(said.planned or planned),
            "threshold": templated(said.threshold or f"{one.side} {limit}: {one.rule}"),
        }
        hold = LOST_SECONDS if signal == "up" else self.plan.hold_seconds
        place = one.limit.source if one.rule == BUDGETED else ""
        return self._rule(said, expr, hold, signal, words, place)

    def _missing(self) -> Iterator[Rule]:
        """An alert for each signal that nobody tells; one for each side would not say which."""
        for name in self.recorded:
            signal = "rollout" if name == "fleet" else name
            series = SERIES[name] if name in EXPRESSIONS else RECORDED.get(NEEDED.get(signal, ""))
            if series is None:
                continue
            expr = f"absent({series}{{{self.own}}})"
            words = {"threshold": f"{series} has no value"}
            said = replace(MISSING, summary=f"{MISSING.summary}: {signal}")
            yield self._rule(said, expr, self.plan.hold_seconds, signal, words)

    def _rule(
        self, said: AlertWords, expr: str, hold: float, signal: str, words: Mapping[str, str], place: str = ""
    ) -> Rule:
        loop = self.plan.loop
        return {
            "alert": said.alert,
            "expr": expr,
            "for": duration(hold),
            "labels": {**self.labels, "severity": SEVERITY, "signal": signal},
            "annotations": {
                "summary": said.summary,
                **words,
                "first": said.first,
                "command": self.command,
                "source": templated(f"{f'{place}; ' if place else ''}{loop.name}, {loop.origin}"),
            },
        }

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
        if self.setup.trainer_selector:
            where += f" --trainer-selector {templated(shlex.quote(selector_text(self.setup.trainer_selector)))}"
        return f"rlsize diagnose {where} --window {duration(plan.window_seconds)} {tail}".rstrip()

    # ---- the comment above them ----

    def head(self, *, operator: bool = False) -> list[str]:
        """
        Lines above the rules: what they are, where thresholds come from, what must be scraped.

        Args:
            operator: Whether they are wrapped for the Prometheus operator, in a form that promtool does not read.
        """
        plan = self.plan
        window, hold = duration(plan.window_seconds), duration(plan.hold_seconds)
        lines = [
            *_lines(f"Alerts for {plan.loop.name}, {plan.loop.origin}; written by `rlsize alerts`."),
            *_lines(_WRAPPED if operator else _TESTED),
            "",
            *_lines(
                f"Windows follow the planned step of {show(plan.step_seconds.number, 'step_seconds')}: {window} (10 "
                f"steps, 5 minutes at least) for what is compared with the trainer, {hold} (3 steps, 5 minutes at "
                f"least) between instances. An alert fires after {hold} (3 steps, 5 minutes at least); a lost instance "
                f"after {duration(LOST_SECONDS)}."
            ),
            *_lines("Severity is `warning`: one pool starves the other, nothing is down."),
            "",
            *_lines(
                f"From the engines ({self.engine.kind.title}, selected by {{{self.selector}}}): their "
                "/metrics, or Ray's. Every spelling is recorded as rlsize:engine_...; evaluate the rules every two "
                "minutes or more often."
            ),
            *self._wanted_of_trainer(),
        ]
        if self.left_out:
            lines += ["", "Left out:"]
            lines += [line for text in self.told() for line in _lines(text, "  ")]
        for warning in plan.warnings:
            lines += ["", *_lines(f"Mind: {warning}.")]
        if self.setup.metrics:
            own = "Expressions of --metric are taken as they are; the test file gives their results, and does not test"
            lines += ["", *_lines(f"{own} them.")]
        return lines

    def _wanted_of_trainer(self) -> Iterator[str]:
        """What the trainer must publish, and which log key feeds it."""
        wanted = [name for name in EXPRESSIONS if name in self.recorded and name not in self.setup.metrics]
        if not wanted:
            return
        yield ""
        yield from _lines(
            "From the trainer: `rlsize export LOG` publishes these from its log. In their place verl's rl_insight, "
            "SkyRL's training_phase and gen_buffer_qsize and prime-rl's trainer_step are taken where they are scraped; "
            "for other names, use --metric. RlsizeSignalMissing fires while one is not there."
        )
        for metric in METRICS:
            if any(metric.name in EXPRESSIONS[name].ours for name in wanted):
                yield ""
                yield from _lines(f"{metric.name} ({metric.meaning})")
                for framework, key in metric.keys.items():
                    yield from _lines(f"{framework}: {key}", "  ")


def _lines(text: str, indent: str = "") -> list[str]:
    """Text of others on one line, then as many as it takes."""
    clean = " ".join(printable(text).split())
    return wrap(clean, 78, initial_indent=indent, subsequent_indent=f"{indent}  " if indent else "")
