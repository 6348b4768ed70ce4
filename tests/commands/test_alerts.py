"""`rlsize alerts`: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import tries

from rlsize.commands.alerts import expressions
from rlsize.commands.alerts.cases import Cases
from rlsize.commands.alerts.dashboard import dashboard_text
from rlsize.commands.alerts.rules import AlertSetup, Rules
from rlsize.commands.alerts.thresholds import alert_plan, planned_loop
from rlsize.errors import InputError
from rlsize.shell.inputs import Inputs
from rlsize.shell.selectors import matchers, selector_text

HEADER = "rlsize: {kind: plan, version: 1}\n"
PLAN = f"""\
{HEADER}command: rlsize plan s.yaml
rlsize_version: 0.1.0
facts_digest: 4d73d06d05c1ce02
placement: {{instances: {{value: 12}}, gpus: {{value: 16}}}}
results:
  step_seconds: {{value: 60}}
  trainer_idle_fraction: {{value: 0.12, low: 0.11, high: 0.13}}
  sync_fraction: {{value: 0.03}}
  staleness_steps: {{value: 4}}
  train_seconds: {{value: 50}}
  loop_tokens_per_second: {{value: 20480}}
  loop_tokens_per_gpu_second: {{value: 1280}}
inputs:
  samples_per_step: {{value: 256}}
  tokens_generated_per_trained_token: {{value: 1.1}}
  batch_tokens: {{value: 1228800}}
  group_size: {{value: 8}}
  prompt_tokens: {{value: 500}}
"""
SCENARIO = """\
rlsize: {kind: scenario, version: 1}
model: qwen3-8b
cluster: {gpu: h100-sxm, gpus: 32, gpus_per_node: 8}
workload: {prompts_per_step: 64, group_size: 8, prompt_tokens: 300, response_tokens: {mean: 3200, cv: 0.8}}
placement: {mode: async, max_staleness: 2, rollout_gpus: 16, trainer_gpus: 16}
rollout: {engine: sglang, tensor_parallel: 1, memory_fraction: 0.85}
budget: {trainer_idle_fraction: 60%}
"""


@pytest.fixture
def alerts(rlsize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs the command in a folder with a plan and a scenario."""
    monkeypatch.chdir(tmp_path)
    Path("plan.yaml").write_text(PLAN, encoding="utf-8")
    Path("s.yaml").write_text(SCENARIO, encoding="utf-8")
    return lambda *args: rlsize("alerts", *args)


def rules(text: str) -> dict[str, Any]:
    """The expression of each rule; of an alert, the last one of its name."""
    (group,) = yaml.safe_load(text)["groups"]
    return {rule.get("record") or rule["alert"]: rule["expr"] for rule in group["rules"]}


def test_the_rules_are_printed(alerts: Callable[..., Any]) -> None:
    """`rlsize alerts plan.yaml > rules.yml` has rules and nothing else, with the plan's thresholds."""
    ran = alerts("plan.yaml")
    assert (ran.code, ran.stderr) == (0, "")
    found = rules(ran.stdout)
    assert found["RlsizeTrainerIdle"].endswith("> 0.17")
    assert found["rlsize:goodput_tokens_per_gpu_second"].endswith("/ 16")
    assert "[10m]" in found["rlsize:trained_tokens_per_second"]
    assert max(map(len, ran.stdout.partition("groups:")[0].splitlines())) <= 80


def test_a_folder_gets_all_files(alerts: Callable[..., Any]) -> None:
    """Rules, tests, PrometheusRule and dashboard; the answer is a table; nothing is overwritten without --force."""
    ran = alerts("plan.yaml", "-o", "deep/alerts", "--kubernetes", "--grafana", "--label", "release=prometheus")
    assert ran.code == 0
    assert max(map(len, ran.stdout.splitlines())) <= 80
    folder = Path("deep/alerts")
    names = {path.name for path in folder.iterdir()}
    assert names == {"rules.yml", "rules_test.yml", "prometheusrule.yml", "dashboard.json"}
    wrapped = yaml.safe_load((folder / "prometheusrule.yml").read_text(encoding="utf-8"))
    assert wrapped["spec"] == yaml.safe_load((folder / "rules.yml").read_text(encoding="utf-8"))
    assert "\nrule_files:\n- rules.yml\n" in (folder / "rules_test.yml").read_text(encoding="utf-8")
    assert json.loads((folder / "dashboard.json").read_text(encoding="utf-8"))["title"] == "rlsize: plan"
    (folder / "rules.yml").write_text("mine", encoding="utf-8")
    again = alerts("plan.yaml", "-o", "deep/alerts")
    assert again.code == 2
    assert "exists already" in again.stderr
    assert (folder / "rules.yml").read_text(encoding="utf-8") == "mine"
    assert alerts("plan.yaml", "-o", "deep/alerts", "--force").code == 0


@pytest.mark.parametrize(
    ("args", "name", "start"),
    [
        ((), "r.yml", "# Alerts for plan.yaml"),
        (("--kubernetes",), "k.yaml", "# Alerts for plan.yaml"),
        (("--grafana",), "d.json", "{"),
    ],
)
def test_a_file_gets_the_one_that_is_asked_for(
    args: tuple[str, ...], name: str, start: str, alerts: Callable[..., Any]
) -> None:
    """What would be printed goes into a file of the right ending."""
    printed = alerts("plan.yaml", *args).stdout
    assert alerts("plan.yaml", *args, "-o", name).code == 0
    assert Path(name).read_text(encoding="utf-8") == printed
    assert printed.startswith(start)


def test_a_scenario_is_worked_out_and_its_budget_goes_first(alerts: Callable[..., Any]) -> None:
    """Its own engine, its budget's line, and itself in the command to paste."""
    ran = alerts("s.yaml", "-o", "r.yml")
    assert ran.code == 0
    text = Path("r.yml").read_text(encoding="utf-8")
    found = rules(text)
    assert found["RlsizeTrainerIdle"].endswith("> 0.6")
    assert "sglang[:_]realtime_tokens(_total)?" in found["rlsize:engine_generation_tokens_total"]
    assert "--window 13m s.yaml" in " ".join(text.split())
    assert "s.yaml:7: budget.trainer_idle_fraction" in text


def test_a_loop_that_cannot_run_has_no_alerts(alerts: Callable[..., Any]) -> None:
    """The answer is no, and says why."""
    Path("big.yaml").write_text(SCENARIO.replace("tensor_parallel: 1", "tensor_parallel: 32"), encoding="utf-8")
    ran = alerts("big.yaml")
    assert ran.code == 1
    assert "the loop cannot run" in ran.stderr


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ((), "there is no plan to take thresholds from"),
        (("none.yaml",), "no such file"),
        (("rates.yaml",), "is a rates file, neither plan nor scenario"),
        (("noheader.yaml",), "neither plan nor scenario"),
        (("nostep.yaml",), "how long a step takes"),
        (("plan.yaml", "--engine", "lmdeploy"), "signals of 'lmdeploy' are not known"),
        (("plan.yaml", "--selector", 'job="a"} or up{'), "is no matcher"),
        (("plan.yaml", "--selector", ""), "selects nothing"),
        (("plan.yaml", "--selector", '9job="a"'), "is no matcher"),
        (("plan.yaml", "--selector", 'job=~"("'), "is no regular expression"),
        (("plan.yaml", "--selector", 'job=~"(?=a)"'), "RE2 knows no lookaround"),
        (("plan.yaml", "--selector", 'job="a\\q"'), "has the escape"),
        (("plan.yaml", "--selector", '__name__="up"'), "__name__ is the metric"),
        (("plan.yaml", "--metric", "idle"), "is no expression"),
        (("plan.yaml", "--metric", "ilde=x"), "did you mean idle?"),
        (("plan.yaml", "--metric", "idle=sum(x))"), "closes ) that was not opened"),
        (("plan.yaml", "--metric", 'idle=x{a="b}'), "ends inside quotes"),
        (("plan.yaml", "--metric", "idle=x # or"), "holds a comment"),
        (("plan.yaml", "--name", "A b"), "is no name"),
        (("plan.yaml", "--label", "a=b"), "add --kubernetes"),
        (("plan.yaml", "--kubernetes", "--label", "a b=c"), "is no label"),
        (("plan.yaml", "--kubernetes", "--grafana"), "only one of them can be printed"),
        (("plan.yaml", "-o", "x.json"), "does not go with"),
        (("plan.yaml", "-o", ""), "names no file and no folder"),
        (("plan.yaml", "-o", "plan.yaml"), "exists already"),
        (("plan.yaml", "--budget", "none.yaml"), "no such file"),
    ],
)
def test_what_is_wrong_is_told(args: tuple[str, ...], told: str, alerts: Callable[..., Any]) -> None:
    """Exit code 2, nothing printed, nothing written."""
    Path("rates.yaml").write_text("rlsize: {kind: rates, version: 1}\n", encoding="utf-8")
    Path("noheader.yaml").write_text("a: 1\n", encoding="utf-8")
    Path("nostep.yaml").write_text(PLAN.replace("step_seconds: {", "other_seconds: {"), encoding="utf-8")
    before = sorted(Path().iterdir())
    ran = alerts(*args)
    assert (ran.code, ran.stdout) == (2, "")
    assert told in " ".join(ran.stderr.split())
    assert sorted(Path().iterdir()) == before


@settings(max_examples=tries(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(re.findall(r"(\w+): \{value: [0-9.]+", PLAN)),
    st.sampled_from(["0", "-1", "1e-300", "1e-9", "0.999", "1.5", "1e14", "1e300", "true", "text", "null", ".nan"]),
)
def test_a_plan_of_odd_numbers_is_answered_or_refused(alerts: Callable[..., Any], key: str, value: str) -> None:
    """Whatever stands in a plan: rules and cases whose numbers are numbers, or a fault."""
    odd = re.sub(rf"\b{key}: {{value: [0-9.]+", f"{key}: {{value: {value}", PLAN)
    Path("odd.yaml").write_text(odd, encoding="utf-8")
    try:
        loop = planned_loop(Inputs(), "odd.yaml", None)
    except InputError:
        assert alerts("odd.yaml").code == 2
        return
    selector = matchers('job="rollout"', "--selector", [])
    rules = Rules(alert_plan(loop), AlertSetup(engine="vllm", group="a", selector=selector))
    numbers = [rule["expr"] for rule in rules.alerts()]
    numbers += [one["values"] for case in Cases(rules).content("")["tests"] for one in case["input_series"]]
    targets = [target for panel in json.loads(dashboard_text(rules))["panels"] for target in panel["targets"]]
    numbers += [target["expr"] for target in targets if target["legendFormat"] in {"plan", "threshold"}]
    assert not [
        text for text in numbers if re.search(r"\b(?:nan|inf|infinity)\b|[0-9]e[+-]?[0-9]", text, re.IGNORECASE)
    ]


def test_all_faults_are_told_at_once(alerts: Callable[..., Any]) -> None:
    """Of flags and of files."""
    ran = alerts("none.yaml", "--selector", "x", "--metric", "y", "--name", "Z")
    assert all(flag in ran.stderr for flag in ("--selector", "--metric", "--name", "none.yaml"))


def test_a_plan_with_little_in_it_has_few_alerts(alerts: Callable[..., Any]) -> None:
    """What is left out is named, on stderr and in the file."""
    little = PLAN.partition("  trainer_idle")[0].replace("instances: {value: 12}, ", "")
    Path("plan.yaml").write_text(little, encoding="utf-8")
    ran = alerts("plan.yaml")
    assert ran.code == 0
    assert "left out: RlsizeTrainerIdle: the plan does not say" in ran.stderr
    assert "RlsizeTrainerIdle: the plan does not say" in ran.stdout
    assert "RlsizeTrainerIdle" not in rules(ran.stdout)
    assert "RlsizeRequestsWaiting" in rules(ran.stdout)


@pytest.mark.parametrize("source", ["plan.yaml", "s.yaml"])
def test_the_command_to_paste_is_one(source: str, alerts: Callable[..., Any]) -> None:
    """Every alert has the same one, a line that `rlsize diagnose` takes: an instance is judged beside the others."""
    from rlsize.shell.app import COMMANDS
    from rlsize.shell.command import loaded

    (group,) = yaml.safe_load(alerts(source).stdout)["groups"]
    (line,) = {rule["annotations"]["command"] for rule in group["rules"] if "alert" in rule}
    program, command, *words = shlex.split(line)
    assert program == "rlsize"
    context = loaded(command, COMMANDS[command]).make_context(command, words)
    assert context.params["prometheus"] == "$PROMETHEUS"
    assert context.params["selector"] == 'job="rollout"'
    assert (context.params["quantity_consumption_tokens_per_second"] == "24576") == (source == "plan.yaml")
    assert (source in words) == (source == "s.yaml")


@pytest.mark.parametrize("name", ["a {{ $value }}.yaml", "a: b #c.yaml", "a\ngroups: [].yaml", "a'\".yaml"])
def test_a_file_name_is_a_name(name: str, alerts: Callable[..., Any], promised: Callable[..., None]) -> None:
    """It neither runs as a template nor breaks the YAML."""
    Path(name).write_text(PLAN, encoding="utf-8")
    ran = alerts(name)
    assert ran.code == 0
    promised(ran.stdout)


@pytest.fixture
def promised() -> Callable[..., None]:
    """Checks that a rule file has the usual rules and the usual templates, and no others."""

    def check(text: str) -> None:
        (group,) = yaml.safe_load(text)["groups"]
        assert len(group["rules"]) > 20
        sources = {rule["annotations"]["source"] for rule in group["rules"] if "alert" in rule}
        assert not [source for source in sources if "{{" in source.replace('{{ "{{" }}', "")]

    return check


@pytest.mark.parametrize(
    ("selector", "sent"),
    [
        ('job="a"', 'job="a"'),
        ("{ job = 'a', pod!~`x{2},\"`, }", 'job="a",pod!~"x{2},\\""'),
        (r'job="a\"} or up{x=\"b"', r'job="a\"} or up{x=\"b"'),
    ],
)
def test_matchers_go_into_a_query(selector: str, sent: str) -> None:
    """With braces or without; what looks like their end inside quotes is none."""
    faults: list[Any] = []
    assert selector_text(matchers(selector, "--selector", faults)) == sent
    assert not faults


@pytest.mark.parametrize(
    "selector", ["job=a", 'job="a"} or up{', 'job="a" pod="b"', '__name__="up"', 'job="', "job", '="a"', "x" * 3000]
)
def test_what_is_no_matcher_is_a_fault(selector: str) -> None:
    """Nothing can end the selector and go on with another query."""
    faults: list[Any] = []
    matchers(selector, "--selector", faults)
    assert faults


@settings(max_examples=tries(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=30) | st.from_regex(r'[a-z]{1,3}(=|!=|=~)"[a-z"\\{},.*]{0,6}",?', fullmatch=True))
def test_a_selector_is_taken_whole_or_not_at_all(text: str) -> None:
    """What is taken is written so that it reads back as the same matchers: nothing gets out of its braces."""
    faults: list[Any] = []
    taken = matchers(text, "--selector", faults)
    if not faults:
        again = matchers(selector_text(taken), "--selector", faults)
        assert again == taken
        assert not faults


@settings(max_examples=tries(40))
@given(st.text("ab(){}[]\"'`\\# \n", max_size=12))
def test_an_expression_cannot_leave_its_brackets(text: str) -> None:
    """What is taken has its brackets and quotes in order, so `avg(...)` around it is closed where it was opened."""
    faults: list[Any] = []
    taken = expressions([f"idle={text}"], faults)
    if taken and not faults:
        depth = 0
        bare = _without_quotes(taken["idle"])
        for letter in bare:
            depth += (letter in "({[") - (letter in ")}]")
            assert depth >= 0
        assert depth == 0
        assert "#" not in bare
        assert "\n" not in taken["idle"]


def _without_quotes(text: str) -> str:
    """The text outside of its quotes."""
    kept, quote, escaped = [], "", False
    for letter in text:
        if quote:
            closes = letter == quote and not escaped
            escaped = letter == "\\" and quote != "`" and not escaped
            quote = "" if closes else quote
        elif letter in "\"'`":
            quote = letter
        else:
            kept.append(letter)
    assert not quote
    return "".join(kept)


OBSERVATION = """\
rlsize: {kind: observation, version: 1}
observed_at: "2026-11-01T03:00:00+00:00"
rlsize_version: 0.2.0
sources: [train.jsonl]
mode: async
engine: sglang
allocation: {rollout_instances: 8, gpus_per_instance: 2, rollout_gpus: 16, trainer_gpus: 16}
rates:
  measured_at: "2026-11-01T03:00:00+00:00"
  source: {method: observe, engine: sglang}
  instance_tokens_per_second: {mean: 1500}
  gpus_per_instance: 1
results:
  step_seconds: {value: 40}
  trainer_idle_fraction: {value: 0.1}
  staleness_steps: {value: 1.2}
  largest_staleness_steps: {value: 2}
  trained_tokens_per_second: {value: 32000}
"""


def test_a_loop_that_ran_well_is_what_it_should_be(alerts: Callable[..., Any]) -> None:
    """Thresholds are an observation's own idle, goodput, oldest sample and instances; names are its engine's."""
    Path("seen.yaml").write_text(OBSERVATION, encoding="utf-8")
    ran = alerts("seen.yaml")
    assert ran.code == 0
    found = rules(ran.stdout)
    assert found["RlsizeTrainerIdle"].endswith("> 0.15")
    assert found["RlsizeGoodputLow"].endswith("< 800")  # 0.8 of 32,000 tok/s over 32 GPUs
    assert found["RlsizeSamplesStale"].endswith("> 2")
    assert found["RlsizeInstancesMissing"].endswith("< 8")
    assert "sglang[:_]realtime_tokens(_total)?" in found["rlsize:engine_generation_tokens_total"]
    assert "--per-instance: an observation is taken as it was seen" in alerts("seen.yaml", "--per-instance", "9").stderr


def test_rates_beside_a_scenario_are_the_loop_s(alerts: Callable[..., Any], rlsize: Any) -> None:
    """A rate, typed or observed, makes the step of the rules the one that `predict step` would not predict any more."""
    Path("seen.yaml").write_text(OBSERVATION, encoding="utf-8")
    predicted = alerts("s.yaml", "-o", "a.yml", "--json").document["inputs"]["step_seconds"]
    seen = alerts("s.yaml", "--per-instance", "seen.yaml", "-o", "b.yml", "--json").document["inputs"]
    assert predicted == pytest.approx(rlsize("predict", "step", "s.yaml", "--json").results["step_seconds"])
    assert seen["instance_tokens_per_second"] == 1500
    assert seen["step_seconds"] > predicted


def test_what_a_step_lacks_makes_no_threshold(alerts: Callable[..., Any]) -> None:
    """Tools lengthen a step, and a rate that was seen may not have them: a bound is nothing to be alerted by."""
    Path("seen.yaml").write_text(OBSERVATION, encoding="utf-8")
    ran = alerts("s.yaml", "--per-instance", "seen.yaml", "--set", "agents.turns=4", "--set", "agents.tool_seconds=20")
    assert ran.code == 2
    assert "tools not in it" in ran.stderr
    assert "simulate" in ran.stderr
