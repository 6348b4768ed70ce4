"""What to say about alerts: the head of the rule file, and the table of what was written."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure
from rlsize.reports.alerts_text import duration, whole_minutes
from rlsize.reports.alerts_trainer import EXPRS, METRICS
from rlsize.reports.alerts_words import WORDS
from rlsize.reports.report import Column, Report, Table
from rlsize.units import printable, show

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlsize.facts.alerts import Signal
    from rlsize.reports.alerts_rules import Rules

_WIDTH = 78


_TESTED = "Check: promtool check rules rules.yml; promtool test rules rules_test.yml (both: --output FOLDER)."
_WRAPPED = (
    "For the Prometheus operator; promtool checks and tests the same rules as --output FOLDER writes them beside."
)


def head(rules: Rules, *, operator: bool = False) -> list[str]:
    """
    Lines above the rules: what they are, where thresholds come from, what must be scraped.

    Args:
        rules: The rules.
        operator: Whether they are wrapped for the Prometheus operator, in a form that promtool does not read.
    """
    plan, setup = rules.plan, rules.setup
    times = plan.times
    lines = [
        *_filled(f"Alerts for {plan.loop.name}, {plan.loop.origin}; written by `rlsize alerts`."),
        *_filled(_WRAPPED if operator else _TESTED),
        "",
        *_filled(
            f"Windows follow the planned step of {show(times.step_seconds.number, 'step_seconds')}: "
            f"{duration(times.window_seconds)} (10 steps, 5 minutes at least) for what is compared with the trainer, "
            f"{duration(times.instance_seconds)} (3 steps, 5 minutes at least) between instances. An alert fires "
            f"after {duration(times.hold_seconds)} (3 steps, 5 minutes at least); a lost instance after "
            f"{duration(times.lost_seconds)}."
        ),
        *_filled("Severity is `warning`: one pool starves the other, nothing is down."),
        "",
        *_filled(f"From the engines ({rules.engine.title}, selected by {{{rules.selector}}}): their /metrics."),
    ]
    return [*lines, *_needed(rules), *_omitted(rules), *_broken(rules), *_own(setup.metrics)]


def _needed(rules: Rules) -> Iterator[str]:
    """What the trainer must publish, and which log key feeds it."""
    wanted = [name for name in EXPRS if name in rules.recorded and name not in rules.setup.metrics]
    if not wanted:
        return
    text = " ".join(EXPRS[name] for name in wanted)
    yield ""
    yield from _filled(
        "From the trainer: no framework has an exporter for these. Publish them from one rank, from the log's keys; "
        "where they have other names, use --metric. RlsizeSignalMissing fires while one is not there."
    )
    for metric in METRICS:
        if metric.name not in text:
            continue
        yield ""
        yield from _filled(f"{metric.name} ({metric.meaning})")
        for framework, key in metric.keys.items():
            yield from _filled(f"{framework}: {key}", "  ")


def _omitted(rules: Rules) -> Iterator[str]:
    if rules.left_out:
        yield ""
        yield "Left out:"
        for line in left_out(rules):
            yield from _filled(line, "  ")


def left_out(rules: Rules) -> list[str]:
    """Alerts that there are none of, with the reason."""
    return [f"{WORDS[signal].alert}: {why}" for signal, why in rules.left_out.items()]


def _broken(rules: Rules) -> Iterator[str]:
    for warning in warnings(rules):
        yield ""
        yield from _filled(f"Mind: {warning}.")


def warnings(rules: Rules) -> tuple[str, ...]:
    """What the reader must know first."""
    return rules.plan.warnings


def _own(metrics: object) -> Iterator[str]:
    if metrics:
        yield ""
        yield from _filled(
            "Expressions of --metric are taken as they are; the test file gives their results, and does not test them."
        )


def _filled(text: str, indent: str = "") -> list[str]:
    """Text of others on one line, then as many as it takes."""
    clean = " ".join(printable(text).split())
    return wrap(clean, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  " if indent else "")


def alerts_report(rules: Rules, files: Sequence[str]) -> Report:
    """
    The report of `rlsize alerts`.

    Args:
        rules: The rules.
        files: What was written; none where the text goes to stdout.
    """
    plan = rules.plan
    rows = tuple(_row(rules, signal) for signal in rules.signals)
    columns = (
        Column("alert", "alert", side="left"),
        Column("planned", "planned"),
        Column("threshold", "threshold"),
        Column("rule", "rule", side="left", wide=True),
    )
    table = Table(title=f"fires after {duration(plan.times.hold_seconds)}", columns=columns, rows=rows)
    count = len(rules.group().alerts)
    return Report(
        command="alerts",
        headline=f"{'Wrote ' if files else ''}{count} alerts with the thresholds of {printable(plan.loop.name)}"
        f"{': ' if files else ''}{', '.join(files)}.",
        results=(
            _time("window_seconds", plan.times.window_seconds, "10 steps"),
            _time("hold_seconds", plan.times.hold_seconds, "3 steps"),
        ),
        inputs=(plan.times.step_seconds,),
        tables={"alerts": table},
        warnings=warnings(rules),
        notes=tuple(f"Left out: {line}." for line in left_out(rules)),
    )


def _time(key: str, seconds: float, source: str) -> Figure:
    """A time as the rules have it."""
    return Figure(key=key, value=60.0 * whole_minutes(seconds), provenance="predicted", source=source)


def _row(rules: Rules, signal: Signal) -> dict[str, str]:
    one = rules.plan.limits[signal]
    side = "over" if one.above else "under"
    return {
        "alert": WORDS[signal].alert.removeprefix("Rlsize"),
        "planned": show(one.expected.value, one.key) if one.expected.known else "-",
        "threshold": f"{side} {show(one.limit.value, one.key)}",
        "rule": one.rule,
    }
