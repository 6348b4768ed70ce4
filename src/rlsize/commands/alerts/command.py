"""`rlsize alerts`: Prometheus rules with a plan's thresholds, the tests that prove them, and a dashboard."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from rlsize.commands.alerts.cases import Cases
from rlsize.commands.alerts.dashboard import dashboard_text
from rlsize.commands.alerts.engines import ENGINES
from rlsize.commands.alerts.flags import (
    DASHBOARD,
    OPERATOR,
    RULES,
    TESTS,
    AlertFlags,
    check_forms,
    object_labels,
    setup_of,
    targets_of,
)
from rlsize.commands.alerts.planned_loop import planned_loop
from rlsize.commands.alerts.rules import Rules
from rlsize.commands.alerts.signals import SIGNALS
from rlsize.commands.alerts.text import duration, whole_minutes, yaml_below
from rlsize.commands.alerts.thresholds import alert_plan
from rlsize.errors import Fault, InputError, suggestion
from rlsize.facts.figure import Figure
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.wording import counted
from rlsize.shell.answer import delivered
from rlsize.shell.command import argument
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import Changes, asks_beside_files
from rlsize.units import printable
from rlsize.writers.files import make_folder, write_whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.commands.alerts.thresholds import PlannedLoop

_TESTED = (
    "The loop as planned, on which all is quiet, then one case for each alert, on which it fires.",
    f"Run it beside {RULES}: promtool test rules {TESTS}",
)


@asks_beside_files(
    Inputs=("instance_tokens_per_second", "accept_lower_bound", "gpus_per_instance", "train_seconds", "calibration"),
    Signals=("engine",),
)
def alerts(
    inputs: Inputs,
    context: typer.Context,
    said: AlertFlags,
    source: str | None = argument(
        "PLAN|SCENARIO", "A saved plan, a scenario, or an observation of a loop that ran well."
    ),
    changes: Changes = None,
) -> Report:
    """
    Write Prometheus rules, their tests and a dashboard for this plan.

    Thresholds follow from the plan, or from a budget where there is one. It
    prints the rules; into a folder it writes tests for promtool as well.

    Example:  rlsize alerts examples/baseline.yaml -o alerts/ --grafana
    """
    faults = inputs.faults
    setup = setup_of(said, faults)
    labels = object_labels(said.label or (), faults)
    check_forms(inputs, said)
    targets = targets_of(said, faults)
    before = list(faults)
    try:
        loop = planned_loop(inputs, source, said.budget, changes or ())
    except InputError as error:
        raise InputError(*dict.fromkeys((*before, *error.faults))) from None
    setup = replace(setup, engine=_engine(inputs, loop))
    inputs.settle()
    rules = Rules(alert_plan(loop), setup)
    if not rules.signals:
        raise InputError(Fault("leaves no alert", loop.name, "; ".join(rules.told())))
    texts = {kind: _text(rules, kind, said.namespace or "", labels) for kind in targets}
    report = _report(inputs, rules, [str(path) for path in targets.values() if path is not None])
    if None in targets.values():
        text = next(iter(texts.values()))
        whole = Figure(key="alerts", value=text, provenance="predicted", source="the plan")
        warnings = (*report.warnings, *(f"left out: {line}" for line in rules.told()))
        report = replace(report, results=(whole, *report.results), warnings=warnings)
        return delivered(report, text, context.obj or {}, None, force=said.force)
    for kind, path in targets.items():
        if path is not None:
            if said.folder is not None:
                make_folder(path.parent)
            write_whole(path, texts[kind], said.force)
    return report


def _engine(inputs: Inputs, loop: PlannedLoop) -> str:
    """The engine whose signals are watched: the one that was said, else the plan's."""
    said = inputs.texts.get("engine")
    name = str(said or loop.word("engine") or "vllm")
    if name not in ENGINES:
        where = "--engine" if said else loop.name
        inputs.fault(f"the signals of {name[:40]!r} are not known", where, suggestion(name[:40], ENGINES))
        return "vllm"
    return name


def _text(rules: Rules, kind: str, namespace: str, labels: Mapping[str, str]) -> str:
    """One of the texts."""
    if kind == TESTS:
        return yaml_below(_TESTED, Cases(rules).content(RULES))
    if kind == DASHBOARD:
        return dashboard_text(rules)
    if kind == OPERATOR:
        return yaml_below(rules.head(operator=True), prometheus_rule(rules, namespace, labels))
    return yaml_below(rules.head(), rules.content())


def prometheus_rule(rules: Rules, namespace: str, labels: Mapping[str, str]) -> dict[str, object]:
    """
    The rules as a PrometheusRule of the Prometheus operator.

    Args:
        rules: The rules.
        namespace: Where it belongs; empty for wherever it is applied.
        labels: Labels by which an operator selects it.
    """
    metadata = {"name": rules.setup.group, "namespace": namespace, "labels": labels}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {key: value for key, value in metadata.items() if value},
        "spec": rules.content(),
    }


def _report(inputs: Inputs, rules: Rules, files: Sequence[str]) -> Report:
    """What there is to say of the rules, and of what was written; of no file where the text goes to stdout."""
    plan = rules.plan
    limits = plan.limits

    def threshold(signal: str) -> str:
        return f"{'over' if limits[signal].above else 'under'} {limits[signal].shown()[1]}"

    cells = (
        Column("alert", "alert", "left", of=lambda signal: SIGNALS[signal].alert.removeprefix("Rlsize")),
        Column("planned", "planned", of=lambda signal: limits[signal].shown()[0]),
        Column("threshold", "threshold", of=threshold),
        Column("rule", "rule", "left", wide=True, of=lambda signal: limits[signal].rule),
    )
    said = f"{len(rules.alerts())} alerts with the thresholds of {printable(plan.loop.name)}"
    return Report(
        headline=f"Wrote {said}: {', '.join(files)}." if files else f"{said}.",
        results=(
            *counted({"window_seconds": 60.0 * whole_minutes(plan.window_seconds)}, "10 steps"),
            *counted({"hold_seconds": 60.0 * whole_minutes(plan.hold_seconds)}, "3 steps"),
        ),
        inputs=(plan.step_seconds, *inputs.shown()),
        tables={"alerts": Table.of(f"fires after {duration(plan.hold_seconds)}", rules.signals, cells)},
        warnings=(*plan.warnings, *inputs.warnings),
        notes=(*(f"Left out: {line}." for line in rules.told()), *inputs.notes),
    )
