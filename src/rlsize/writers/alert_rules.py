"""Prometheus rules as YAML: a rule file, its test file for promtool, and a PrometheusRule for Kubernetes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.facts.alerts import Firing, RuleCase, RuleCases, RuleGroup

_WIDTH = 78


def rules_text(group: RuleGroup, head: Iterable[str] = ()) -> str:
    """
    A rule file.

    Args:
        group: Its rules.
        head: Lines of the comment above them.
    """
    return _commented(head, _groups(group))


def prometheus_rule_text(
    group: RuleGroup, head: Iterable[str] = (), *, namespace: str = "", labels: Mapping[str, str] | None = None
) -> str:
    """
    The same rules as a PrometheusRule of the Prometheus operator.

    Args:
        group: Its rules.
        head: Lines of the comment above them.
        namespace: Where it belongs; empty for wherever it is applied.
        labels: Labels by which an operator selects it.
    """
    metadata: dict[str, Any] = {"name": group.name}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = dict(labels)
    content = {"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": metadata}
    return _commented(head, {**content, "spec": _groups(group)})


def cases_text(cases: RuleCases, rule_file: str) -> str:
    """
    The test file of promtool.

    Args:
        cases: The cases.
        rule_file: Name of the rule file beside it.
    """
    head = (
        "The loop as planned, on which all is quiet, then one case for each alert, on which it fires.",
        f"Run it beside {rule_file}: promtool test rules rules_test.yml",
    )
    content = {
        "rule_files": [rule_file],
        "evaluation_interval": cases.every,
        "tests": [_case(one, cases) for one in cases.cases],
    }
    return _commented(head, content)


def _groups(group: RuleGroup) -> dict[str, Any]:
    records = [{"record": one.record, "expr": one.expr, "labels": dict(one.labels)} for one in group.records]
    alerts = [
        {
            "alert": one.alert,
            "expr": one.expr,
            "for": one.hold,
            "labels": dict(one.labels),
            "annotations": dict(one.annotations),
        }
        for one in group.alerts
    ]
    return {"groups": [{"name": group.name, "rules": [*records, *alerts]}]}


def _case(case: RuleCase, cases: RuleCases) -> dict[str, Any]:
    looks = [
        {"eval_time": cases.at, "alertname": alert, "exp_alerts": [_firing(one) for one in fires]}
        for alert, fires in case.fires.items()
    ]
    return {
        "name": case.name,
        "interval": cases.interval,
        "input_series": [{"series": series, "values": values} for series, values in case.series],
        "alert_rule_test": looks,
    }


def _firing(one: Firing) -> dict[str, Any]:
    return {"exp_labels": dict(one.labels), "exp_annotations": dict(one.annotations)}


def _commented(head: Iterable[str], content: dict[str, Any]) -> str:
    """A document under a comment; a line of it that would break out is cut at its end."""
    import yaml

    class Plain(yaml.SafeDumper):
        """A dumper that writes everything out, and text of several lines as such."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002, ANN401 (yaml's protocol)
            return True

    Plain.add_representer(str, _text)
    lines = [f"# {' '.join(line.splitlines())}".rstrip() for line in head]
    body = yaml.dump(content, Dumper=Plain, sort_keys=False, allow_unicode=True, width=_WIDTH)
    return "\n".join([*lines, body])


def _text(dumper: Any, text: str) -> Any:  # noqa: ANN401 (yaml's protocol)
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
