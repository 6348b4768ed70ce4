"""Rules, PrometheusRule and dashboard as written: they say what the rules are, whatever names are in them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsize.commands.alerts import prometheus_rule
from rlsize.commands.alerts.dashboard import dashboard_text
from rlsize.commands.alerts.rules import AlertSetup, Rules
from rlsize.commands.alerts.text import rendered, templated, yaml_below
from rlsize.commands.alerts.thresholds import PlannedLoop, alert_plan
from rlsize.facts.figure import Figure
from rlsize.shell.selectors import Matcher

PLANNED = {
    "step_seconds": 60.0,
    "trainer_idle_fraction": 0.5,
    "loop_tokens_per_second": 20480.0,
    "loop_tokens_per_gpu_second": 1280.0,
    "tokens_generated_per_trained_token": 1.1,
    "gpus": 16.0,
    "instances": 12.0,
}


def rules_of() -> Rules:
    """Rules of a plan."""
    figures = {key: Figure(key=key, value=value) for key, value in PLANNED.items()}
    loop = PlannedLoop(name="plan.yaml", origin="by hand", figures=figures)
    setup = AlertSetup(engine="vllm", group="a", selector=(Matcher("job", "=", "rollout"),))
    return Rules(alert_plan(loop), setup)


@pytest.mark.long
@settings(max_examples=30)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\ufffe\uffff"), max_size=40))
def test_any_text_is_one_value(text: str) -> None:
    """Names with colons, quotes, hashes or braces stay inside their key, in rules and in their comment."""
    content = {"groups": [{"name": text, "rules": [{"expr": "sum(\n  up\n)", "annotations": {text: text}}]}]}
    assert yaml.safe_load(yaml_below([f"for {text}"], content)) == content


@pytest.mark.parametrize("line", ["a\ngroups: []", "a\r\ngroups: []", "a\u2028groups: []", "a\x85groups: []"])
def test_a_comment_stays_a_comment(line: str) -> None:
    """A file name with a line break does not write YAML."""
    assert yaml.safe_load(yaml_below([line], {"groups": ["x"]})) == {"groups": ["x"]}


@pytest.mark.long
@settings(max_examples=50)
@given(st.text(max_size=30))
def test_text_of_others_is_no_template(text: str) -> None:
    """Braces in a name are shown, not run."""
    shown = rendered(templated(text), 1.0, {})
    assert shown == " ".join(text.split())
    assert "{{ $" not in templated(text)


def test_a_prometheus_rule_has_the_same_groups() -> None:
    """Wrapped for the operator, with the labels by which it selects."""
    plain = rules_of().content()
    wrapped = prometheus_rule(rules_of(), "rl", {"release": "prometheus"})
    assert wrapped["spec"] == plain
    assert (wrapped["apiVersion"], wrapped["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert wrapped["metadata"] == {"name": "a", "namespace": "rl", "labels": {"release": "prometheus"}}


def test_a_dashboard_is_importable() -> None:
    """Ids of its own, no overlap, the plan's line in each panel, one data source to choose, no id of the whole."""
    board: dict[str, Any] = json.loads(dashboard_text(rules_of()))
    assert "id" not in board
    assert [one["id"] for one in board["panels"]] == list(range(1, 9))
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
    drawn = [{target["legendFormat"]: target["expr"] for target in one["targets"]} for one in board["panels"]]
    assert all(lines.keys() & {"plan", "threshold"} for lines in drawn)
    assert (drawn[1]["plan"], drawn[1]["threshold"]) == ("vector(0.5)", "vector(0.55)")
    colours = [one["fieldConfig"]["defaults"]["thresholds"]["steps"][0]["color"] for one in board["panels"]]
    assert colours[:2] == ["red", "green"]  # too little goodput is bad, and too much idle time
