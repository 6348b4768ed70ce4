"""`rlsize alerts`: Prometheus rules with a plan's thresholds, the tests that prove them, and a dashboard."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlsize.commands.alerts.planned import planned_loop
from rlsize.errors import Fault, InputError, suggestion
from rlsize.facts.figure import Figure
from rlsize.reports.report import Report
from rlsize.shell.command import quantity
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import Changes, asks_beside_files

if TYPE_CHECKING:
    from rlsize.facts.alerts import AlertSetup, PlannedLoop
    from rlsize.reports.alerts_rules import Rules

RULES, TESTS, OPERATOR, DASHBOARD = "rules.yml", "rules_test.yml", "prometheusrule.yml", "dashboard.json"
_FILES = (".yml", ".yaml", ".json")
_SIGNALS, _FORMS = "Signals", "Kubernetes and Grafana"

Source = Annotated[
    str | None,
    typer.Argument(
        metavar="PLAN|SCENARIO",
        help="A saved plan, a scenario, or an observation of a loop that ran well.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFlags:
    """What flags say of signals and files."""

    budget: Annotated[
        str | None, quantity("--budget", "A budget file; its lines go before the rules.", metavar="FILE")
    ] = None
    selector: Annotated[
        str,
        typer.Option(
            "--selector", metavar="SELECTOR", help="Which targets are the rollout instances.", rich_help_panel=_SIGNALS
        ),
    ] = 'job="rollout"'
    trainer_selector: Annotated[
        str | None, quantity("--trainer-selector", "Which series are the trainer's.", _SIGNALS, "SELECTOR")
    ] = None
    metric: Annotated[
        list[str] | None,
        quantity(
            "--metric",
            "Expression of a signal of the trainer: idle, sync, queue, age or trained; repeatable.",
            _SIGNALS,
            "NAME=EXPR",
        ),
    ] = None
    engine_only: Annotated[
        bool,
        typer.Option(
            "--engine-only", help="Leave signals of the trainer out, but those of --metric.", rich_help_panel=_SIGNALS
        ),
    ] = False
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Write a PrometheusRule for the operator.", rich_help_panel=_FORMS)
    ] = False
    namespace: Annotated[str | None, quantity("--namespace", "Its namespace.", _FORMS, "NAME")] = None
    label: Annotated[
        list[str] | None,
        quantity("--label", "A label of it, such as release=prometheus; repeatable.", _FORMS, "KEY=VALUE"),
    ] = None
    grafana: Annotated[
        bool, typer.Option("--grafana", help="Write a dashboard with the plan's targets.", rich_help_panel=_FORMS)
    ] = False
    output: Annotated[
        str | None,
        quantity(
            "--output|-o",
            "A folder for rules, tests and what else is asked for, or a file for one of them.",
            "Output",
            "DIR|FILE",
        ),
    ] = None
    name: Annotated[
        str,
        typer.Option("--name", metavar="NAME", help="Name of the rules, one for each loop.", rich_help_panel="Output"),
    ] = "rlsize"
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that exist.", rich_help_panel="Output")] = (
        False
    )

    @property
    def folder(self) -> Path | None:
        """The folder that is written to; None where one file is, or stdout."""
        if self.output is None or Path(self.output).suffix.lower() in _FILES:
            return None
        return Path(self.output)


@asks_beside_files(
    Inputs=("instance_tokens_per_second", "accept_lower_bound", "gpus_per_instance", "train_seconds", "calibration"),
    Signals=("engine",),
)
def alerts(
    inputs: Inputs, context: typer.Context, said: AlertFlags, source: Source = None, changes: Changes = None
) -> Report:
    """
    Write Prometheus rules, their tests and a dashboard for this plan.

    Thresholds follow from the plan, or from a budget where there is one. It
    prints the rules; into a folder it writes tests for promtool as well.

    Example:  rlsize alerts plan.yaml -o alerts/ --grafana
    """
    from rlsize.estimates.alert_plan import alert_plan
    from rlsize.reports.alerts import alerts_report, left_out
    from rlsize.reports.alerts_rules import Rules
    from rlsize.shell.answer import delivered
    from rlsize.shell.selectors import object_labels
    from rlsize.writers.files import make_folder, write_whole

    faults = inputs.faults
    setup = _setup(said, faults)
    labels = object_labels(said.label or (), faults)
    _check_forms(inputs, said)
    targets = _targets(said, faults)
    before = list(faults)
    try:
        loop = planned_loop(inputs, source, said.budget, changes or ())
    except InputError as error:
        raise InputError(*dict.fromkeys((*before, *error.faults))) from None
    setup = replace(setup, engine=_engine(inputs, loop))
    inputs.settle()
    rules = Rules(alert_plan(loop), setup)
    if not rules.signals:
        raise InputError(Fault("leaves no alert", loop.name, "; ".join(left_out(rules))))
    texts = {kind: _text(rules, kind, said.namespace or "", labels) for kind in targets}
    report = alerts_report(rules, [str(path) for path in targets.values() if path is not None])
    report = replace(
        report,
        inputs=(*report.inputs, *inputs.shown()),
        warnings=(*report.warnings, *inputs.warnings),
        notes=(*report.notes, *inputs.notes),
    )
    if None in targets.values():
        text = next(iter(texts.values()))
        whole = Figure(key="alerts", value=text, provenance="predicted", source="the plan")
        warnings = (*report.warnings, *(f"left out: {line}" for line in left_out(rules)))
        report = replace(report, results=(whole, *report.results), warnings=warnings)
        return delivered(report, text, context.obj or {}, None, force=said.force)
    for kind, path in targets.items():
        if path is not None:
            if said.folder is not None:
                make_folder(path.parent)
            write_whole(path, texts[kind], said.force)
    return report


def _setup(said: AlertFlags, faults: list[Fault]) -> AlertSetup:
    """Where the signals come from; what is wrong with that is noted."""
    from rlsize.facts.alerts import AlertSetup
    from rlsize.shell.selectors import expressions, matchers, rule_name

    trainer = said.trainer_selector
    return AlertSetup(
        engine="vllm",
        group=rule_name(said.name, "--name", faults),
        selector=matchers(said.selector, "--selector", faults),
        trainer_selector=matchers(trainer, "--trainer-selector", faults) if trainer else (),
        metrics=expressions(said.metric or (), faults),
        engine_only=said.engine_only,
    )


def _check_forms(inputs: Inputs, said: AlertFlags) -> None:
    """Note what of the forms does not go together."""
    from rlsize.shell.selectors import rule_name

    if said.namespace is not None:
        rule_name(said.namespace, "--namespace", inputs.faults)
    if not said.kubernetes and (said.label or said.namespace):
        inputs.fault("is for a PrometheusRule", "--label" if said.label else "--namespace", "add --kubernetes")
    if said.output is None and said.kubernetes and said.grafana:
        inputs.fault("only one of them can be printed", "--kubernetes --grafana", "write both: --output DIR")


def _targets(said: AlertFlags, faults: list[Fault]) -> dict[str, Path | None]:
    """Which files are written where, or which one is printed (None); what cannot be written is noted."""
    from rlsize.writers.files import check_target

    kind = DASHBOARD if said.grafana else OPERATOR if said.kubernetes else RULES
    if said.output is None:
        return {kind: None}
    if not said.output.strip():
        faults.append(Fault("names no file and no folder", "--output", "name one, or leave it out"))
    folder = said.folder
    if folder is None:
        json = Path(said.output).suffix.lower() == ".json"
        if json != (kind == DASHBOARD) or (said.kubernetes and said.grafana):
            todo = "a dashboard is .json, rules are .yml; a folder holds both"
            faults.append(Fault(f"{said.output} does not go with what is asked for", "--output", todo))
        files = {kind: Path(said.output)}
    else:
        names = [RULES, TESTS, *([OPERATOR] if said.kubernetes else []), *([DASHBOARD] if said.grafana else [])]
        files = {name: folder / name for name in names}
    for path in files.values():
        try:
            if folder is None or folder.is_dir():
                check_target(path, said.force)
        except InputError as error:
            faults += error.faults
        except (OSError, ValueError) as error:
            faults.append(Fault(f"cannot be written: {error}", "--output", "check the path"))
    return dict(files)


def _engine(inputs: Inputs, loop: PlannedLoop) -> str:
    """The engine whose signals are watched: the one that was said, else the plan's."""
    from rlsize.reports.alerts_engines import ENGINES

    said = inputs.texts.get("engine")
    name = str(said or loop.word("engine") or "vllm")
    if name not in ENGINES:
        where = "--engine" if said else loop.name
        inputs.fault(f"the signals of {name[:40]!r} are not known", where, suggestion(name[:40], ENGINES))
        return "vllm"
    return name


def _text(rules: Rules, kind: str, namespace: str, labels: dict[str, str]) -> str:
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
        return prometheus_rule_text(rules.group(), head(rules, operator=True), namespace=namespace, labels=labels)
    return rules_text(rules.group(), head(rules))
