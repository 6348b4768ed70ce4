"""`rlsize alerts`: Prometheus rules with a plan's thresholds, the tests that prove them, and a dashboard."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlsize.commands.alerts.cases import Cases
from rlsize.commands.alerts.dashboard import dashboard_text
from rlsize.commands.alerts.engines import ENGINES
from rlsize.commands.alerts.rules import AlertSetup, Rules
from rlsize.commands.alerts.signals import EXPRESSIONS, SIGNALS
from rlsize.commands.alerts.text import duration, whole_minutes, yaml_below
from rlsize.commands.alerts.thresholds import alert_plan, planned_loop
from rlsize.errors import Fault, InputError, noting, suggestion
from rlsize.facts.figure import Figure
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.wording import counted
from rlsize.shell.answer import delivered
from rlsize.shell.command import Force, argument, in_own_words, option, switch
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import Changes, asks
from rlsize.shell.selectors import LONGEST, brief, matchers
from rlsize.units import printable
from rlsize.writers.files import check_target, make_folder, write_whole
from rlsize.writers.manifests.names import is_label, label_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlsize.commands.alerts.thresholds import PlannedLoop

RULES, TESTS, OPERATOR, DASHBOARD = "rules.yml", "rules_test.yml", "prometheusrule.yml", "dashboard.json"
_TESTED = (
    "The loop as planned, on which all is quiet, then one case for each alert, on which it fires.",
    f"Run it beside {RULES}: promtool test rules {TESTS}",
)
LONGEST_NAME = 53
_FILES = (".yml", ".yaml", ".json")
_SIGNALS, _FORMS = "Signals", "Kubernetes and Grafana"
_PAIRS = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFlags:
    """What flags say of signals and files."""

    budget: str | None = option("--budget", "A budget file; its lines go before the rules.", metavar="FILE")
    selector: Annotated[
        str,
        typer.Option(
            "--selector", metavar="SELECTOR", help="Which targets are the rollout instances.", rich_help_panel=_SIGNALS
        ),
    ] = 'job="rollout"'
    trainer_selector: str | None = option("--trainer-selector", "Which series are the trainer's.", _SIGNALS, "SELECTOR")
    metric: list[str] | None = option(
        "--metric",
        "Expression of a signal of the trainer: idle, sync, queue, age or trained; repeatable.",
        _SIGNALS,
        "NAME=EXPR",
    )
    engine_only: bool = switch("--engine-only", "Leave signals of the trainer out, but those of --metric.", _SIGNALS)
    kubernetes: bool = switch("--kubernetes", "Write a PrometheusRule for the operator.", _FORMS)
    namespace: str | None = option("--namespace", "Its namespace.", _FORMS, "NAME")
    label: list[str] | None = option(
        "--label", "A label of it, such as release=prometheus; repeatable.", _FORMS, "KEY=VALUE"
    )
    grafana: bool = switch("--grafana", "Write a dashboard with the plan's targets.", _FORMS)
    output: str | None = option(
        "--output|-o",
        "A folder for rules, tests and what else is asked for, or a file for one of them.",
        "Output",
        "DIR|FILE",
    )
    name: Annotated[
        str,
        typer.Option("--name", metavar="NAME", help="Name of the rules, one for each loop.", rich_help_panel="Output"),
    ] = "rlsize"
    force: Force = False

    @property
    def folder(self) -> Path | None:
        """The folder that is written to; None where one file is, or stdout."""
        if self.output is None or Path(self.output).suffix.lower() in _FILES:
            return None
        return Path(self.output)


@asks(
    beside_files=True,
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
        told = in_own_words(error.faults, context, source or "PLAN|SCENARIO")
        raise InputError(*dict.fromkeys((*before, *told))) from None
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


def setup_of(said: AlertFlags, faults: list[Fault]) -> AlertSetup:
    """Where the signals come from; what is wrong with that is noted."""
    trainer = said.trainer_selector
    return AlertSetup(
        engine="vllm",
        group=_rule_name(said.name, "--name", faults),
        selector=matchers(said.selector, "--selector", faults),
        trainer_selector=matchers(trainer, "--trainer-selector", faults) if trainer else (),
        metrics=expressions(said.metric or (), faults),
        engine_only=said.engine_only,
    )


def check_forms(inputs: Inputs, said: AlertFlags) -> None:
    """Note what of the forms does not go together."""
    if said.namespace is not None:
        _rule_name(said.namespace, "--namespace", inputs.faults)
    if not said.kubernetes and (said.label or said.namespace):
        inputs.fault("is for a PrometheusRule", "--label" if said.label else "--namespace", "add --kubernetes")
    if said.output is None and said.kubernetes and said.grafana:
        inputs.fault("only one of them can be printed", "--kubernetes --grafana", "write both: --output DIR")


def targets_of(said: AlertFlags, faults: list[Fault]) -> dict[str, Path | None]:
    """Which files are written where, or which one is printed (None); what cannot be written is noted."""
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
            with noting(faults):
                if folder is None or folder.is_dir():
                    check_target(path, said.force)
        except (OSError, ValueError) as error:
            faults.append(Fault(f"cannot be written: {error}", "--output", "check the path"))
    return dict(files)


def expressions(said: Iterable[str], faults: list[Fault]) -> dict[str, str]:
    """
    Expressions by name; what is wrong with them is noted. That they are PromQL only Prometheus can tell.

    Args:
        said: Each as NAME=EXPR.
        faults: Where faults go.
    """
    found: dict[str, str] = {}
    for text in said:
        name, equals, expr = (part.strip() for part in text.partition("="))
        if not equals or not expr:
            faults.append(Fault(f"{brief(text)} is no expression", "--metric", "write NAME=EXPR"))
        elif name not in EXPRESSIONS:
            faults.append(Fault(f"there is no signal {brief(name)}", "--metric", suggestion(name[:40], EXPRESSIONS)))
        elif name in found:
            faults.append(Fault(f"{name} is given twice", "--metric", "keep one"))
        else:
            wrong = _expression_fault(expr)
            if wrong:
                faults.append(Fault(f"{name}: {wrong}", "--metric", "try it on Prometheus first"))
            found[name] = expr
    return found


def _expression_fault(expr: str) -> str:
    """Why an expression cannot be put between brackets."""
    if len(expr) > LONGEST:
        return f"has {len(expr):,} characters, more than {LONGEST:,}"
    if not expr.isprintable():
        return "has line breaks or control characters"
    open_, quote, index = [], "", 0
    while index < len(expr):
        letter = expr[index]
        if quote:
            index += letter == "\\" and quote != "`"
            quote = "" if letter == quote else quote
        elif letter in "\"'`":
            quote = letter
        elif letter == "#":
            return "holds a comment, which would hide what follows"
        elif letter in _PAIRS.values():
            open_.append(letter)
        elif letter in _PAIRS and (not open_ or open_.pop() != _PAIRS[letter]):
            return f"closes {letter} that was not opened"
        index += 1
    return "ends inside quotes" if quote else f"leaves {open_[-1]} open" if open_ else ""


def _rule_name(text: str, flag: str, faults: list[Fault]) -> str:
    """A name that Kubernetes takes too."""
    if len(text) > LONGEST_NAME or not is_label(text):
        todo = f"lower-case letters, digits and -, {LONGEST_NAME} at most"
        faults.append(Fault(f"{brief(text)} is no name", flag, todo))
    return text


def object_labels(said: Iterable[str], faults: list[Fault]) -> dict[str, str]:
    """Labels of a Kubernetes object; what is wrong with them is noted."""
    found: dict[str, str] = {}
    for text in said:
        own = label_of(text, "--label", faults, "release=prometheus")
        faults += [Fault(f"{key} is given twice", "--label", "keep one") for key in own if key in found]
        found |= own
    return found
