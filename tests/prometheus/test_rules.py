"""Written rules in the real promtool and the real Prometheus: they load, fire on their cases, and are quiet else."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from rlsize.commands.alerts.cases import Cases
from rlsize.commands.alerts.dashboard import dashboard_text
from rlsize.commands.alerts.engines import ENGINES
from rlsize.commands.alerts.rules import SERIES, AlertSetup, Rules
from rlsize.commands.alerts.signals import EXPRESSIONS, MISSING, SIGNALS
from rlsize.commands.alerts.text import rendered, yaml_below
from rlsize.commands.alerts.thresholds import PlannedLoop, alert_plan
from rlsize.facts.figure import Figure
from rlsize.shell.selectors import matchers

PLANNED: Mapping[str, float] = {
    "step_seconds": 30.0,
    "trainer_idle_fraction": 0.12,
    "sync_fraction": 0.03,
    "staleness_steps": 4.0,
    "samples_per_step": 256.0,
    "tokens_generated_per_trained_token": 1.1,
    "loop_tokens_per_second": 20480.0,
    "loop_tokens_per_gpu_second": 1280.0,
    "gpus": 16.0,
    "instances": 12.0,
    "group_size": 8.0,
    "prompt_tokens": 500.0,
    "train_seconds": 50.0,
    "batch_tokens": 1228800.0,
}


def rules_of(engine: str = "vllm", selector: str = 'job="rollout"', **setup: Any) -> Rules:
    """The rules of the plan above, some of its numbers changed by `planned`."""
    numbers = {**PLANNED, **setup.pop("planned", {})}
    figures = {key: Figure(key=key, value=value) for key, value in numbers.items() if value is not None}
    loop = PlannedLoop(name="plan.yaml", origin="saved by `rlsize plan`", figures=figures)
    taken = matchers(selector, "--selector", [])
    return Rules(alert_plan(loop), AlertSetup(engine=engine, group="loop-a", selector=taken, **setup))


@pytest.fixture
def promtool_says(promtool: str, tmp_path: Path) -> Callable[..., str]:
    """Writes rules and tests, and returns what promtool says of them, if it is as expected."""

    def say(rules: str, tests: str = "", *, fails: bool = False) -> str:
        (tmp_path / "rules.yml").write_text(rules, encoding="utf-8")
        (tmp_path / "rules_test.yml").write_text(tests, encoding="utf-8")
        commands = [["check", "rules", "rules.yml"], *([["test", "rules", "rules_test.yml"]] if tests else [])]
        said = ""
        for command in commands:
            ran = subprocess.run(
                [promtool, *command], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
            )
            said = ran.stdout + ran.stderr
            assert (ran.returncode != 0) == (fails and command[0] == "test"), said
        return said

    return say


def both(rules: Rules) -> tuple[str, str]:
    """The rule file and its test file."""
    return yaml_below(["A head"], rules.content()), yaml_below([], Cases(rules).content("rules.yml"))


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param(rules_of(), id="vllm"),
        pytest.param(
            rules_of(
                "sglang",
                'job=~"rollout-(a|b)[0-9]+",pod!="x",instance=~"gpu-.*"',
                trainer_selector=matchers('job="train"', "", []),
                metrics={"idle": 'avg(my_idle{run="a"})'},
                engine_only=True,
                planned={"step_seconds": 1200.0, "instances": 2.0},
            ),
            id="sglang-slow-step-engine-only",
        ),
    ],
)
def test_each_alert_fires_on_its_case_and_not_on_the_plan(rules: Rules, promtool_says: Callable[..., str]) -> None:
    """The written tests pass, and there is a case for every alert, on which it fires, and a quiet one for all."""
    promtool_says(*both(rules))
    first, *others = (
        {look["alertname"]: look["exp_alerts"] for look in case["alert_rule_test"]}
        for case in Cases(rules).content("rules.yml")["tests"]
    )
    names = {alert["alert"] for alert in rules.alerts()}
    assert set(first) == names
    assert not any(first.values())
    assert {name for fires in others for name, firing in fires.items() if firing} == names


def test_a_threshold_ten_times_as_high_makes_the_tests_fail(promtool_says: Callable[..., str]) -> None:
    """Each alert's test notices a wrong threshold: it no longer fires, or fires on the plan."""
    rules = rules_of()
    alerts = [one for one in rules.alerts() if one["alert"] != MISSING.alert]
    limits: dict[str, str] = {signal: rules.limit(signal) for signal in rules.signals}
    tenfold = [{**one, "expr": _tenfold(one["expr"], limits[one["labels"]["signal"]])} for one in alerts]
    changed = [one["alert"] for one, before in zip(tenfold, alerts, strict=True) if one != before]
    assert len(set(changed)) == len(rules.signals)
    cases = Cases(rules).content("rules.yml")
    above = {"as planned", *(SIGNALS[signal].alert for signal in rules.signals if rules.plan.limits[signal].above)}
    telling = {**cases, "tests": [case for case in cases["tests"] if case["name"] in above]}
    wrong = {"groups": [{"name": "a", "rules": [*rules.records(), *tenfold]}]}
    said = promtool_says(yaml_below([], wrong), yaml_below([], telling), fails=True)
    assert not [alert for alert in changed if f"alertname: {alert}," not in said]


def _tenfold(expr: str, limit: str) -> str:
    return re.sub(rf"([<>]) {re.escape(limit)}(?![0-9.])", lambda found: f"{found[1]} {10 * float(limit):g}", expr)


def test_counters_that_jump_once_a_step_stay_quiet(promtool_says: Callable[..., str]) -> None:
    """A trainer publishes at the end of a step, late or early: windows are long enough for values to stay steady."""
    step = 120.0
    rules = rules_of(planned={"step_seconds": step})
    cases = Cases(rules).content("rules.yml")
    interval = int(step / 6)
    points = 6 * 18
    ends = [6 * number + (1 if number % 2 else -1) for number in range(1, 19)]
    steps = [sum(point >= end for end in ends) for point in range(points)]
    per_step = {
        "rlsize_trainer_wait_seconds_total": 0.12 * step,
        "rlsize_trainer_step_seconds_total": step,
        "rlsize_trainer_sync_seconds_total": 0.03 * step,
        "rlsize_trained_response_tokens_total": 20480.0 * step,
    }
    series = []
    for one in cases["tests"][0]["input_series"]:
        amount = per_step.get(one["series"].partition("{")[0])
        jumps = " ".join(str(amount * done) for done in steps) if amount is not None else ""
        values = jumps or _stretched(one["values"], cases["tests"][0]["interval"], interval, points)
        series.append({**one, "values": values})
    at = f"{interval * (points - 1)}s"
    looks = [{**look, "eval_time": at} for look in cases["tests"][0]["alert_rule_test"]]
    quiet = {**cases["tests"][0], "interval": f"{interval}s", "input_series": series, "alert_rule_test": looks}
    tests = {**cases, "tests": [quiet]}
    tests["tests"][0]["promql_expr_test"] = [
        {"expr": f"count({expr})", "eval_time": at, "exp_samples": [{"labels": "{}", "value": 1}]}
        for expr in (
            "min_over_time(rlsize:goodput_tokens_per_gpu_second[10m]) > 0.85 * 1280",
            "max_over_time(rlsize:tokens_generated_per_trained_token[10m]) < 1.15 * 1.1",
            "max_over_time(rlsize:trainer_idle_fraction[10m]) < 0.1201",
            "min_over_time(rlsize:trainer_idle_fraction[10m]) > 0.1199",
        )
    ]
    promtool_says(yaml_below([], rules.content()), yaml_below([], tests))


def _stretched(values: str, before: str, interval: int, points: int) -> str:
    """The same slope with another interval."""
    start, _, rest = values.partition("+")
    slope = float(rest.partition("x")[0]) * interval / int(before.removesuffix("s"))
    return f"{start}+{slope}x{points}"


def test_a_prefix_cache_that_is_switched_off_is_told(promtool_says: Callable[..., str]) -> None:
    """Its counters stand still, and nothing over nothing would be quiet."""
    cases = Cases(rules_of()).content("rules.yml")
    cold = next(case for case in cases["tests"] if case["name"] == "RlsizePrefixCacheCold")
    for one in cold["input_series"]:
        if "prefix_cache" in one["series"] and "rollout-0" in one["series"]:
            one["values"] = re.sub(r"\+[\d.]+", "+0", one["values"])
    (look,) = (look for look in cold["alert_rule_test"] if look["alertname"] == "RlsizePrefixCacheCold")
    (firing,) = look["exp_alerts"]
    firing["exp_annotations"]["summary"] = "rollout-0:8000 finds 0% of its prompt tokens in the prefix cache"
    off = {**cases, "tests": [{**cold, "alert_rule_test": [look]}]}
    promtool_says(yaml_below([], rules_of().content()), yaml_below([], off))


def test_data_parallel_ranks_of_sglang_add_up_and_others_do_not(promtool_says: Callable[..., str]) -> None:
    """Under data-parallel attention each rank has its own `tp_rank`; a second rank of one tells the same again."""
    rules = rules_of("sglang")
    ranks = [(0, 0, 100), (0, 1, 100), (1, 2, 300), (1, 3, 300)]
    page = {'realtime_tokens_total{mode="decode",': 60, 'realtime_tokens_total{mode="prefill_compute",': 6}
    series = [
        {
            "series": f'sglang:{name}job="rollout",instance="a:1",dp_rank="{data}",tp_rank="{tensor}"}}',
            "values": f"0+{rate * seconds}x30",
        }
        for name, seconds in page.items()
        for data, tensor, rate in ranks
    ]
    expected = {
        "rlsize:instance_output_tokens_per_second": 400,
        "rlsize:rollout_output_tokens_per_second": 400,
        "rlsize:instance_prefix_cache_hit_fraction": 0,
    }
    looks = [
        {"expr": f"sum({name})", "eval_time": "20m", "exp_samples": [{"labels": "{}", "value": value}]}
        for name, value in expected.items()
    ]
    test = {"interval": "1m", "input_series": series, "promql_expr_test": looks}
    recorded = {"groups": [{"name": "a", "rules": rules.records()}]}
    promtool_says(yaml_below([], recorded), yaml.safe_dump({"rule_files": ["rules.yml"], "tests": [test]}))


VERL = {
    "timing_s_step": 30, "timing_s_gen": 6, "timing_s_update_weights": 3, "perf_total_num_tokens": 1_200_000,
    "response_length_mean": 1500, "prompt_length_mean": 500, "training_off_policy_trajectory_staleness_worst_max": 5,
}  # fmt: skip


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        pytest.param(
            {f"rl_insight_monitor_{name}": f"{value}+0x40" for name, value in VERL.items()},
            {"idle": 0.2, "sync": 0.1, "age": 5, "trained": 30_000},
            id="verl",
        ),
        pytest.param(
            {
                'ray_skyrl_gen_buffer_qsize{WorkerId="w"}': "4+0x40",
                'ray_skyrl_training_phase{WorkerId="w",phase="wait_for_generation_buffer"}': "0.4+0x40",
                'ray_skyrl_training_phase{WorkerId="w",phase="run_training"}': "0.4+0x40",
                'ray_skyrl_training_phase{WorkerId="w",phase="sync_weights"}': "0.2+0x40",
            },
            {"queue": 32, "idle": 0.4, "sync": 0.2},
            id="skyrl",
        ),
        pytest.param({"trainer_step": "0+2x40"}, {"trained": 20480}, id="prime-rl"),
        pytest.param(
            {"rlsize_queue_samples": "7+0x40", "skyrl_gen_buffer_qsize": "4+0x40"}, {"queue": 7}, id="ours first"
        ),
    ],
)
def test_exporters_of_frameworks_are_taken(
    series: Mapping[str, str], expected: Mapping[str, float], promtool_says: Callable[..., str]
) -> None:
    """What a framework exports gives the signal in its unit: shares of a step, samples, response tokens per second."""
    rules = rules_of()
    looks = [
        {
            "expr": SERIES[signal],
            "eval_time": "20m",
            "exp_samples": [{"labels": f'{SERIES[signal]}{{loop="loop-a"}}', "value": value}],
        }
        for signal, value in expected.items()
    ]
    absent = [
        {"expr": SERIES[signal], "eval_time": "20m", "exp_samples": []} for signal in EXPRESSIONS.keys() - expected
    ]
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [*looks, *absent],
    }
    recorded = {"groups": [{"name": "a", "rules": rules.records()}]}
    promtool_says(yaml_below([], recorded), yaml.safe_dump({"rule_files": ["rules.yml"], "tests": [test]}))


def test_values_are_shown_as_templates_show_them(promtool_says: Callable[..., str]) -> None:
    """What the test files expect in annotations is what Prometheus makes of them."""
    values = (0.0, 0.05, 0.00012, 1.0, 8.0, 999.96, 1000.0, 1402.5, 35904.9, 2.5e7, 3e13, 0.335, 12.3456)
    form = '{{ $value | humanize }} {{ $value | humanizePercentage }} {{ printf "%.4g" $value }}'
    rules = [
        {"alert": f"A{index}", "expr": f"vector({value})", "annotations": {"text": form}}
        for index, value in enumerate(values)
    ]
    looks = [
        {"eval_time": "1m", "alertname": f"A{index}", "exp_alerts": [{"exp_annotations": {"text": text}}]}
        for index, text in enumerate(rendered(form, value, {}) for value in values)
    ]
    tests = {"rule_files": ["rules.yml"], "tests": [{"interval": "1m", "alert_rule_test": looks}]}
    promtool_says(yaml.safe_dump({"groups": [{"name": "g", "rules": rules}]}), yaml.safe_dump(tests))


def test_every_expression_of_the_dashboard_is_promql(promtool_says: Callable[..., str]) -> None:
    """Grafana's own variables filled in, promtool takes them all."""
    boards = [json.loads(dashboard_text(rules_of(engine))) for engine in ENGINES]
    expressions = [target["expr"] for board in boards for one in board["panels"] for target in one["targets"]]
    filled = [text.replace("$__rate_interval", "5m").replace("$instance", ".*") for text in expressions]
    rules = [{"record": f"a:{index}", "expr": text} for index, text in enumerate(filled)]
    assert len(rules) > 60
    promtool_says(yaml.safe_dump({"groups": [{"name": "g", "rules": rules}]}))


def test_a_real_prometheus_works_all_rules_out(prometheus_server: Callable[..., Any], tmp_path: Path) -> None:
    """The server has every rule, and each was evaluated without an error."""
    rules = rules_of()
    path = tmp_path / "rules.yml"
    path.write_text(both(rules)[0], encoding="utf-8")
    server = prometheus_server({}, [path])

    def evaluated() -> Any:
        (group,) = server.get("/api/v1/rules")["groups"]
        return group if all(rule["health"] != "unknown" for rule in group["rules"]) else None

    group = server.wait(evaluated)
    assert [rule["name"] for rule in group["rules"]] == [
        *(one["record"] for one in rules.records()),
        *(one["alert"] for one in rules.alerts()),
    ]
    assert {rule["health"] for rule in group["rules"]} == {"ok"}
    assert not [rule for rule in group["rules"] if rule.get("lastError")]
