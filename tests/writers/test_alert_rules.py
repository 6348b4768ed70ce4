"""Rules, PrometheusRule and dashboard as written: they say what the rules are, whatever names are in them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsize.facts.alerts import AlertingRule, RecordingRule, RuleGroup
from rlsize.reports.alerts_panels import Drawn, Panel
from rlsize.reports.alerts_text import rendered, templated
from rlsize.writers.alert_rules import prometheus_rule_text, rules_text
from rlsize.writers.dashboard import dashboard_text


def group(text: str) -> RuleGroup:
    """A group with a text wherever there may be one."""
    labels = {"loop": "a"}
    return RuleGroup(
        name="a",
        records=(RecordingRule(record="a:b", expr="sum(\n  up\n)", labels=labels),),
        alerts=(AlertingRule(alert="A", expr="up", hold="5m", labels=labels, annotations={"x": text}, signal="idle"),),
    )


@settings(max_examples=30)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\ufffe\uffff"), max_size=40))
def test_any_text_is_one_value(text: str) -> None:
    """Names with colons, quotes, hashes or braces stay inside their key, in rules and in their comment."""
    written = yaml.safe_load(rules_text(group(text), [f"for {text}"]))
    assert [rule.get("record", rule.get("alert")) for rule in written["groups"][0]["rules"]] == ["a:b", "A"]
    assert written["groups"][0]["rules"][1]["annotations"] == {"x": text}


@pytest.mark.parametrize("line", ["a\ngroups: []", "a\r\ngroups: []", "a\u2028groups: []", "a\x85groups: []"])
def test_a_comment_stays_a_comment(line: str) -> None:
    """A file name with a line break does not write YAML."""
    assert list(yaml.safe_load(rules_text(group("x"), [line]))) == ["groups"]
    assert len(yaml.safe_load(rules_text(group("x"), [line]))["groups"]) == 1


@settings(max_examples=50)
@given(st.text(max_size=30))
def test_text_of_others_is_no_template(text: str) -> None:
    """Braces in a name are shown, not run."""
    shown = rendered(templated(text), 1.0, {})
    assert shown == " ".join(text.split())
    assert "{{ $" not in templated(text)


def test_a_prometheus_rule_has_the_same_groups() -> None:
    """Wrapped for the operator, with the labels by which it selects."""
    plain = yaml.safe_load(rules_text(group("x")))
    wrapped = yaml.safe_load(prometheus_rule_text(group("x"), namespace="rl", labels={"release": "prometheus"}))
    assert wrapped["spec"] == plain
    assert (wrapped["apiVersion"], wrapped["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert wrapped["metadata"] == {"name": "a", "namespace": "rl", "labels": {"release": "prometheus"}}


def test_a_dashboard_is_importable() -> None:
    """Ids of its own, no overlap, the plan's line in each panel, one data source to choose, no id of the whole."""
    lines = (Drawn(expr="a", legend="now"), Drawn(expr="vector(0.5)", legend="plan", plan=True))
    panel = Panel(title="t", unit="none", lines=lines, limit=0.6, above=False, text="")
    board: dict[str, Any] = json.loads(dashboard_text([panel] * 5, group="a", title="t", series="rlsize:x"))
    assert "id" not in board
    assert [one["id"] for one in board["panels"]] == [1, 2, 3, 4, 5]
    taken = [
        (x, y)
        for one in board["panels"]
        for x in range(one["gridPos"]["x"], one["gridPos"]["x"] + one["gridPos"]["w"])
        for y in range(one["gridPos"]["y"], one["gridPos"]["y"] + one["gridPos"]["h"])
    ]
    assert len(taken) == len(set(taken))
    assert max(x for x, _ in taken) < 24
    assert [one["name"] for one in board["templating"]["list"]] == ["DS", "instance"]
    assert {target["datasource"]["uid"] for one in board["panels"] for target in one["targets"]} == {"${DS}"}
    assert all("vector(0.5)" in [target["expr"] for target in one["targets"]] for one in board["panels"])
    assert board["panels"][0]["fieldConfig"]["defaults"]["thresholds"]["steps"][0]["color"] == "red"
