"""Rules and cases without promtool: what is healthy lies within every limit, what is sick beyond, for any plan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsize.commands.alerts.cases import Cases, example_labels, matching
from rlsize.commands.alerts.rules import AlertSetup, Rules
from rlsize.commands.alerts.thresholds import PlannedLoop, alert_plan
from rlsize.errors import InputError
from rlsize.facts.figure import Figure
from rlsize.shell.selectors import Matcher

JOB = (Matcher("job", "=", "rollout"),)


def rules_of(numbers: dict[str, float], budget: dict[str, float] | None = None, **setup: Any) -> Rules:
    """Rules of a plan with some numbers."""
    figures = {key: Figure(key=key, value=value) for key, value in {"step_seconds": 60.0, **numbers}.items()}
    lines = {key: Figure(key=key, value=value, source="budget.yaml") for key, value in (budget or {}).items()}
    loop = PlannedLoop(name="plan.yaml", origin="by hand", figures=figures, budget=lines)
    said = {"engine": "vllm", "group": "a", "selector": JOB, **setup}
    return Rules(alert_plan(loop), AlertSetup(**said))


SHARE = st.floats(0.0, 0.9)
PLANS = st.fixed_dictionaries(
    {
        "trainer_idle_fraction": SHARE,
        "sync_fraction": st.floats(0.0, 0.4),
        "staleness_steps": st.integers(0, 64).map(float),
        "samples_per_step": st.integers(1, 100000).map(float),
        "tokens_generated_per_trained_token": st.floats(1.0, 20.0),
        "loop_tokens_per_second": st.floats(1.0, 1e9),
        "gpus": st.integers(1, 100000).map(float),
        "instances": st.integers(1, 5000).map(float),
        "step_seconds": st.floats(0.01, 86400.0),
    }
)


BUDGETS = {
    "trainer_idle_fraction": st.floats(0.0, 1.0),
    "sync_fraction": st.floats(0.0, 1.0),
    "staleness_steps": st.integers(0, 100).map(float),
    "loop_tokens_per_gpu_second": st.floats(1e-3, 1e6),
}


@pytest.mark.long
@settings(max_examples=20)
@given(PLANS, st.fixed_dictionaries({}, optional=BUDGETS), st.booleans())
def test_a_case_is_within_limits_or_beyond_one(plan: dict[str, float], budget: dict[str, float], sglang: bool) -> None:
    """The healthy loop keeps every limit, each sick one breaks its own by a margin, and nothing is nameless."""
    plan["loop_tokens_per_gpu_second"] = plan["loop_tokens_per_second"] / plan["gpus"]
    rules = rules_of(plan, budget, engine="sglang" if sglang else "vllm")
    cases = Cases(rules)
    for signal in rules.signals:
        one = rules.plan.limits[signal]
        if signal in {"straggler", "up"}:
            continue
        limit, sick = one.limit.number, cases.worst(signal)
        healthy = cases.planned(signal, 0.0)
        assert healthy <= limit if one.above else healthy >= limit
        assert sick > limit if one.above else sick < limit
        assert sick < 10 * limit or not limit
    written = cases.content("rules.yml")["tests"]
    names = {alert["alert"] for alert in rules.alerts()}
    assert {case["name"] for case in written} == (names - {"RlsizeSignalMissing"}) | {
        "as planned",
        "nothing is scraped",
    }
    texts = [text for case in written for one in case["input_series"] for text in one["values"].split("+")]
    assert not [text for text in texts if "e" in text or "nan" in text or "-" in text]


def test_engine_only_needs_no_trainer() -> None:
    """Signals of the trainer are left out with a reason, or taken from an expression, and no rule names ours."""
    numbers = {"trainer_idle_fraction": 0.1, "sync_fraction": 0.1, "instances": 1.0}
    rules = rules_of(numbers, engine_only=True, metrics={"idle": "my_idle"})
    exprs = [one["expr"] for one in (*rules.records(), *rules.alerts())]
    assert "avg(my_idle)" in exprs
    assert not [expr for expr in exprs if "rlsize_" in expr.replace("rlsize_engine_", "")]
    assert "--metric sync=EXPR" in rules.left_out["sync"]
    assert rules.left_out["straggler"] == "the plan has one instance"
    assert any("RlsizeSyncPause" in line for line in rules.head())


def test_every_metric_of_the_trainer_is_explained() -> None:
    """What the rules ask of a trainer stands in the head, with log keys of the frameworks."""
    rules = rules_of({"trainer_idle_fraction": 0.1, "staleness_steps": 2.0, "samples_per_step": 8.0})
    text = "\n".join(rules.head())
    for one in rules.records():
        for word in one["expr"].replace("(", " ").replace("[", " ").replace(")", " ").split():
            assert not word.startswith("rlsize_") or word.startswith("rlsize_engine_") or f"{word} (" in text
    assert "timing/train/exposed_generation" in text
    assert max(map(len, rules.head())) <= 78


def test_labels_that_a_target_lacks_do_not_hide_it() -> None:
    """`up` knows no label of the engine's; with nothing but those, instances are not counted."""
    both = (*JOB, Matcher("model_name", "=", "policy"))
    rules = rules_of({"instances": 4.0}, selector=both)
    exprs = {one["record"]: one["expr"] for one in rules.records()}
    assert 'up{job="rollout"}' in exprs["rlsize:rollout_instances_up"]
    assert 'job="rollout",model_name="policy"' in exprs["rlsize:engine_generation_tokens_total"]
    assert "up" in rules_of({"instances": 4.0}, selector=both[1:]).left_out


@pytest.mark.parametrize(
    ("operator", "value"),
    [
        ("=", 'a"b\\'),
        ("!=", "rollout"),
        ("!=", ""),
        ("=~", "rollout|vllm"),
        ("=~", "rl-(a|b)-[0-9]+"),
        ("=~", r"gpu\d{2}\.example.*"),
        ("=~", "gpu[0-9]{3}"),
        ("=~", ".+"),
        ("!~", ".*test.*"),
    ],
)
def test_targets_of_a_case_are_selected(operator: str, value: str) -> None:
    """Made-up labels are what the selector takes."""
    for label in ("job", "instance"):
        one = Matcher(label, operator, value)
        wanted = 1 if label == "instance" and operator == "=" else 2
        found = example_labels([one], wanted)
        assert len({labels["instance"] for labels in found}) == wanted
        assert all(matching(labels.get(label, ""), [one]) for labels in found)


def test_a_selector_without_example_is_refused() -> None:
    """The rules alone can still be printed; the fault says so."""
    with pytest.raises(InputError, match="cannot be made up"):
        example_labels([Matcher("job", "=~", "a{3}(b(c(d(e(f(g)))))){2}z")], 1)
