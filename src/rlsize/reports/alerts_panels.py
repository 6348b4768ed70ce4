"""A dashboard of the signals: what each panel draws, and the plan's lines in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.reports.alerts_rules import SERIES
from rlsize.reports.alerts_text import filled, plain_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.alerts import Signal
    from rlsize.reports.alerts_rules import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """
    A line of a panel.

    Args:
        expr: What it draws.
        legend: What it is called.
        plan: Whether it is a line of the plan: its target, or its threshold.
    """

    expr: str
    legend: str
    plan: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """
    A panel.

    Args:
        title: Its title.
        unit: Its unit, as Grafana names it.
        lines: What it draws.
        limit: The threshold, for its colours; None without one.
        above: Whether more than that is bad.
        text: What it says of itself.
    """

    title: str
    unit: str
    lines: tuple[Drawn, ...]
    limit: float | None
    above: bool
    text: str


_TITLES: Mapping[Signal, tuple[str, str]] = {
    "goodput": ("Goodput: trained tokens per GPU-second", "none"),
    "idle": ("Trainer idle", "percentunit"),
    "rollout": ("Rollout fleet, tokens per second", "none"),
    "straggler": ("Instances, tokens per second", "none"),
    "queue": ("Samples that wait to be trained", "none"),
    "age": ("Oldest waiting sample, steps", "none"),
    "waste": ("Tokens generated per trained token", "none"),
    "sync": ("Weight sync, share of time", "percentunit"),
    "cache": ("Prefix-cache hit ratio", "percentunit"),
    "waiting": ("Requests waiting per running", "none"),
    "preemptions": ("Preemptions per finished request", "none"),
    "up": ("Rollout instances that answer", "none"),
}
_SINGLE = ("waiting", "cache", "preemptions")
_NAMES = {"rollout": "fleet"}


def panels(rules: Rules) -> tuple[Panel, ...]:
    """The panels of a plan, the roll-up first."""
    return tuple(_panel(rules, signal) for signal in _TITLES if signal in rules.signals)


def _panel(rules: Rules, signal: Signal) -> Panel:
    title, unit = _TITLES[signal]
    one = rules.plan.limits[signal]
    if signal == "straggler":
        return _stragglers(rules, title, one.rule)
    if signal in _SINGLE:
        lines = [_by_instance(rules, SERIES[signal])]
    else:
        lines = [Drawn(expr=rules.of(_NAMES.get(signal, signal)), legend="now")]
    if one.expected.known and signal != "up":
        lines.append(_constant(one.expected.number, "plan"))
    lines.append(_constant(one.limit.number, "threshold" if signal != "up" else "plan"))
    limit = float(plain_number(one.limit.number))
    return Panel(
        title=title, unit=unit, lines=tuple(lines), limit=limit, above=one.above, text=f"Threshold: {one.rule}."
    )


def instance_series(rules: Rules) -> str:
    """A series that each instance has, to choose instances by: those of this loop, and of no other."""
    return rules.of(next(name for name in ("instance", *_SINGLE) if name in rules.recorded))


def _by_instance(rules: Rules, name: str) -> Drawn:
    return Drawn(expr=f'{name}{{loop="{rules.setup.group}",instance=~"$instance"}}', legend="{{instance}}")


def _stragglers(rules: Rules, title: str, rule: str) -> Panel:
    """Every instance, live too, with the line below which one is a straggler."""
    name = rules.of("instance")
    selector = f'{rules.selector},instance=~"$instance"'
    live = filled(rules.engine.exprs["instance"], selector=selector, window="$__rate_interval")
    lines = (
        _by_instance(rules, SERIES["instance"]),
        Drawn(expr=live, legend="{{instance}}, live"),
        Drawn(expr=f"{rules.limit('straggler')} * scalar(quantile(0.5, {name}))", legend="threshold", plan=True),
    )
    return Panel(title=title, unit="none", lines=lines, limit=None, above=False, text=f"Threshold: {rule}.")


def _constant(value: float, legend: str) -> Drawn:
    return Drawn(expr=f"vector({plain_number(value)})", legend=legend, plan=True)
