"""`rlsize alerts`: Prometheus rules with a plan's thresholds, the tests that prove them, and a dashboard."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from rlsize.commands import alerts_flags as of
from rlsize.commands.flags import Profiles
from rlsize.errors import Fault, InputError, suggestion
from rlsize.facts.figure import Figure
from rlsize.reports.report import Report
from rlsize.shell.beliefs import CalibrationFile

if TYPE_CHECKING:
    from rlsize.facts.alerts import AlertSetup, PlannedLoop
    from rlsize.reports.alerts_rules import Rules

RULES, TESTS, OPERATOR, DASHBOARD = "rules.yml", "rules_test.yml", "prometheusrule.yml", "dashboard.json"
_FILES = (".yml", ".yaml", ".json")


def alerts(
    context: typer.Context,
    source: of.Source = None,
    budget: of.Budget = None,
    engine: of.Engine = None,
    selector: of.Selector = 'job="rollout"',
    trainer_selector: of.TrainerSelector = None,
    metric: of.Metric = None,
    engine_only: of.EngineOnly = False,
    kubernetes: of.Kubernetes = False,
    namespace: of.Namespace = None,
    label: of.Label = None,
    grafana: of.Grafana = False,
    output: of.Output = None,
    name: of.Group = "rlsize",
    calibration: CalibrationFile = None,
    force: of.Force = False,
    profiles: Profiles = None,
) -> Report:
    """
    Write Prometheus rules, their tests and a dashboard for this plan.

    Thresholds follow from the plan, or from a budget where there is one. It
    prints the rules; into a folder it writes tests for promtool as well.

    Example:  rlsize alerts plan.yaml -o alerts/ --grafana
    """
    from rlsize.commands.alerts_selector import expressions, matchers, object_labels, rule_name
    from rlsize.estimates.alert_plan import alert_plan
    from rlsize.facts.alerts import AlertSetup
    from rlsize.reports.alerts_rules import Rules

    faults: list[Fault] = []
    setup = AlertSetup(
        engine="vllm",
        group=rule_name(name, "--name", faults),
        selector=matchers(selector, "--selector", faults),
        trainer_selector=matchers(trainer_selector, "--trainer-selector", faults) if trainer_selector else (),
        metrics=expressions(metric or (), faults),
        engine_only=engine_only,
    )
    labels = object_labels(label or (), faults)
    if namespace is not None:
        rule_name(namespace, "--namespace", faults)
    if not kubernetes and (labels or namespace):
        where = "--label" if labels else "--namespace"
        faults.append(Fault("is for a PrometheusRule", where, "add --kubernetes"))
    if output is None and kubernetes and grafana:
        faults.append(Fault("only one of them can be printed", "--kubernetes --grafana", "write both: --output DIR"))
    targets = _targets(output, faults, kubernetes=kubernetes, grafana=grafana, force=force)
    loop = _loop((source, budget, calibration), profiles, faults)
    setup = _with_engine(setup, loop, engine, faults)
    if faults:
        raise InputError(*faults)
    rules = Rules(alert_plan(loop), setup)
    meta = (namespace or "", labels)
    return _delivered(rules, targets, meta, context.obj or {}, folder=_is_folder(output), force=force)


def _is_folder(output: str | None) -> bool:
    return output is not None and Path(output).suffix.lower() not in _FILES


def _targets(
    output: str | None, faults: list[Fault], *, kubernetes: bool, grafana: bool, force: bool
) -> dict[str, Path | None]:
    """Which files are written where, or which one is printed (None); what cannot be written is noted."""
    from rlsize.writers.files import check_target

    kind = DASHBOARD if grafana else OPERATOR if kubernetes else RULES
    if output is None:
        return {kind: None}
    if not output.strip():
        faults.append(Fault("names no file and no folder", "--output", "name one, or leave it out"))
    if not _is_folder(output):
        json = Path(output).suffix.lower() == ".json"
        if json != (kind == DASHBOARD) or (kubernetes and grafana):
            todo = "a dashboard is .json, rules are .yml; a folder holds both"
            faults.append(Fault(f"{output} does not go with what is asked for", "--output", todo))
        files = {kind: Path(output)}
    else:
        names = [RULES, TESTS, *([OPERATOR] if kubernetes else []), *([DASHBOARD] if grafana else [])]
        files = {name: Path(output) / name for name in names}
    folder = Path(output)
    for path in files.values():
        try:
            if not _is_folder(output) or folder.is_dir():
                check_target(path, force)
        except InputError as error:
            faults += error.faults
        except (OSError, ValueError) as error:
            faults.append(Fault(f"cannot be written: {error}", "--output", "check the path"))
    return dict(files)


def _loop(
    files: tuple[str | None, str | None, str | None], profiles: list[str] | None, faults: list[Fault]
) -> PlannedLoop:
    """
    The planned loop.

    Raises:
        InputError: What is wrong with its files, and all that was wrong before.
    """
    from rlsize.commands.alerts_source import planned_loop

    source, budget, calibration = files
    try:
        return planned_loop(source, budget, calibration=calibration, profiles=profiles)
    except InputError as error:
        raise InputError(*faults, *error.faults) from None


def _with_engine(setup: AlertSetup, loop: PlannedLoop, said: str | None, faults: list[Fault]) -> AlertSetup:
    """The setup with the engine that was said, else the plan's."""
    from rlsize.reports.alerts_engines import ENGINES

    name = said or loop.word("engine") or "vllm"
    if name not in ENGINES:
        what = f"the signals of {name[:40]!r} are not known"
        faults.append(Fault(what, "--engine" if said else loop.name, suggestion(name[:40], ENGINES)))
        return setup
    return replace(setup, engine=name)


def _delivered(
    rules: Rules,
    targets: dict[str, Path | None],
    meta: tuple[str, dict[str, str]],
    output: dict[str, Any],
    *,
    folder: bool,
    force: bool,
) -> Report:
    """
    Print the one text that is asked for, or write all files and say what they are.

    Raises:
        InputError: There is nothing to watch, or a file cannot be written.
    """
    from rlsize.reports.alerts import alerts_report, left_out
    from rlsize.shell.text_output import delivered
    from rlsize.writers.files import make_folder, write_whole

    if not rules.signals:
        raise InputError(Fault("leaves no alert", rules.plan.loop.name, "; ".join(left_out(rules))))
    texts = {kind: _text(rules, kind, meta) for kind in targets}
    report = alerts_report(rules, [str(path) for path in targets.values() if path is not None])
    text = next(iter(texts.values()))
    if None in targets.values():
        whole = Figure(key="alerts", value=text, provenance="predicted", source="the plan")
        warnings = (*report.warnings, *(f"left out: {line}" for line in left_out(rules)))
        return delivered(
            replace(report, results=(whole, *report.results), warnings=warnings), text, output, None, force=force
        )
    for kind, path in targets.items():
        if path is not None:
            if folder:
                make_folder(path.parent)
            write_whole(path, texts[kind], force)
    return report


def _text(rules: Rules, kind: str, meta: tuple[str, dict[str, str]]) -> str:
    """One of the texts."""
    from rlsize.reports.alerts import head
    from rlsize.reports.alerts_cases import Cases
    from rlsize.reports.alerts_panels import instance_series, panels
    from rlsize.writers.alert_rules import cases_text, prometheus_rule_text, rules_text
    from rlsize.writers.dashboard import dashboard_text

    if kind == TESTS:
        return cases_text(Cases(rules).all(), RULES)
    if kind == DASHBOARD:
        name = rules.setup.group
        title = f"rlsize: {Path(rules.plan.loop.name).stem}"
        return dashboard_text(panels(rules), group=name, title=title, series=instance_series(rules))
    if kind == OPERATOR:
        return prometheus_rule_text(rules.group(), head(rules, operator=True), namespace=meta[0], labels=meta[1])
    return rules_text(rules.group(), head(rules))
