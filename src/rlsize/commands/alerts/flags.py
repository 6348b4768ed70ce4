"""What flags of `rlsize alerts` say of signals and files; what is wrong with them is noted, all at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlsize.commands.alerts.rules import AlertSetup
from rlsize.commands.alerts.trainer import EXPRESSIONS
from rlsize.errors import Fault, noting, suggestion
from rlsize.shell.command import Force, option, switch
from rlsize.shell.selectors import LONGEST, brief, matchers
from rlsize.writers.files import check_target
from rlsize.writers.manifests.names import is_label, is_label_value, is_qualified

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.shell.inputs import Inputs

RULES, TESTS, OPERATOR, DASHBOARD = "rules.yml", "rules_test.yml", "prometheusrule.yml", "dashboard.json"
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
        key, equals, value = text.partition("=")
        if not equals or not is_qualified(key) or not is_label_value(value):
            faults.append(Fault(f"{brief(text)} is no label of Kubernetes", "--label", "write KEY=VALUE"))
        elif key in found:
            faults.append(Fault(f"{key} is given twice", "--label", "keep one"))
        found[key] = value
    return found
