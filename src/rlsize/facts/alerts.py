"""What alerts are made of: a planned loop, the limit of each signal, rules and their cases as Prometheus has them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from collections.abc import Mapping

Signal: TypeAlias = Literal[
    "idle", "sync", "queue", "age", "waste", "goodput", "rollout", "cache", "waiting", "preemptions", "straggler", "up"
]
"""What is watched."""

Side: TypeAlias = Literal["trainer", "engine", "both"]
"""Who must be scraped for it."""

SIDES: Mapping[Signal, Side] = {
    "idle": "trainer",
    "sync": "trainer",
    "queue": "trainer",
    "age": "trainer",
    "waste": "both",
    "goodput": "trainer",
    "rollout": "engine",
    "cache": "engine",
    "waiting": "engine",
    "preemptions": "engine",
    "straggler": "engine",
    "up": "engine",
}
"""Every signal, in the order in which its alert stands, with who must be scraped for it."""


class BudgetLine(NamedTuple):
    """
    A limit of a budget.

    Args:
        value: In the base unit of its quantity.
        where: File, line and key.
    """

    value: float
    where: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLoop:
    """
    A loop as it was planned, from a saved plan or from a scenario.

    Args:
        name: The file.
        origin: Who worked it out, in a phrase.
        figures: Its placement, results and inputs, by key.
        routing: How samples reach instances, as scenarios say it; empty where nobody says.
        block_tokens: Tokens of a KV block. [token]
        budget: Limits of a budget by quantity, where there is one.
        scenario: The scenario, as commands take it; empty for a saved plan.
    """

    name: str
    origin: str
    figures: Mapping[str, Figure]
    routing: str = ""
    block_tokens: float = 16.0
    budget: Mapping[str, BudgetLine] = field(default_factory=dict)
    scenario: str = ""

    def figure(self, key: str) -> Figure:
        """A number of it; absent where it has none."""
        found = self.figures.get(key)
        if found is None or isinstance(found.value, (bool, str)):
            return absent(key, key)
        return found

    def word(self, key: str) -> str:
        """A word of it; empty where it has none."""
        found = self.figures.get(key)
        return found.value if found is not None and isinstance(found.value, str) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertLimit:
    """
    What a signal should be, and from where on somebody is told.

    Args:
        signal: What is watched.
        key: What its value is called; the ending says the unit.
        expected: What the plan says it is; absent where a plan says nothing of it.
        limit: The threshold.
        rule: How the threshold follows, in a phrase.
        above: Whether too much of it is bad; else too little.
    """

    signal: Signal
    key: str
    expected: Figure
    limit: Figure
    rule: str
    above: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertTimes:
    """
    Over how long signals are measured, and how long they must be bad.

    Args:
        step_seconds: The planned step. [s]
        window_seconds: Window of what is compared with the trainer, whose counters jump once a step. [s]
        instance_seconds: Window of what is compared between instances. [s]
        hold_seconds: How long a signal is bad before somebody is told. [s]
        lost_seconds: How long an instance is away before somebody is told. [s]
    """

    step_seconds: Figure
    window_seconds: float
    instance_seconds: float
    hold_seconds: float
    lost_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertPlan:
    """
    All that alerts take from a plan.

    Args:
        loop: The plan.
        times: Windows.
        limits: The limit of each signal that there is one for.
        left_out: Why the others have none, by signal.
        warnings: What the reader must know: limits that the plan itself breaks.
        consumption: Response tokens that the trainer takes per second of its own time; absent where unknown. [token/s]
    """

    loop: PlannedLoop
    times: AlertTimes
    limits: Mapping[Signal, AlertLimit]
    left_out: Mapping[Signal, str]
    warnings: tuple[str, ...] = ()
    consumption: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordingRule:
    """A series that Prometheus works out and keeps."""

    record: str
    expr: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertingRule:
    """
    An alert.

    Args:
        alert: Its name.
        expr: What it fires on.
        hold: For how long, as Prometheus writes durations.
        labels: Its labels.
        annotations: What whoever is called reads; Go templates.
        signal: What it watches.
    """

    alert: str
    expr: str
    hold: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    signal: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleGroup:
    """Rules that Prometheus works out one after the other, records first."""

    name: str
    records: tuple[RecordingRule, ...]
    alerts: tuple[AlertingRule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """An alert that fires: its labels besides the name, and its annotations as they are read."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCase:
    """
    A case for promtool: what is scraped, and which alerts fire then.

    Args:
        name: What is the case.
        series: What is scraped: series, and values in promtool's notation.
        fires: What fires of each alert that is looked at; nothing where it stays quiet.
    """

    name: str
    series: tuple[tuple[str, str], ...]
    fires: Mapping[str, tuple[Firing, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCases:
    """
    Cases with the clock that they share.

    Args:
        interval: Between samples; a duration.
        every: Between evaluations, which are what takes promtool its time; a duration.
        at: When alerts are looked at; a duration.
        cases: The cases.
    """

    interval: str
    every: str
    at: str
    cases: tuple[RuleCase, ...]


class Matcher(NamedTuple):
    """
    One matcher of a selector.

    Args:
        label: The label.
        operator: `=`, `!=`, `=~` or `!~`.
        value: What it is compared with, as it is meant, without escapes.
    """

    label: str
    operator: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSetup:
    """
    Where the signals come from.

    Args:
        engine: Whose metrics they are: vllm or sglang.
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
