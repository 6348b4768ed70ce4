"""`rlsize manifest`: the resize as a file, from plans, scenarios, observations and flags; nothing is applied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import tries

Run = Callable[..., Any]
PLAN = """\
rlsize: {kind: plan, version: 1}
command: rlsize plan
rlsize_version: 0.1.0
facts_digest: abc
placement: {}
results: {}
scenario:
  cluster: {gpu: h100-sxm}
  placement: {mode: MODE, instances: 13, rollout_gpus: 26, trainer_gpus: 32}
  rollout: {engine: vllm, tensor_parallel: 2}
"""
SCENARIO = """\
rlsize: {kind: scenario, version: 1}
cluster: {gpu: h100-sxm, gpus: 64}
placement: {mode: async, trainer_gpus: 32}
rollout: {engine: vllm, tensor_parallel: 2, concurrency: 128}
"""
OBSERVATION = """\
rlsize: {kind: observation, version: 1}
observed_at: "2026-11-01T03:00:00Z"
rlsize_version: 0.1.0
sources: [http://rollout-0:8000/metrics]
allocation: {rollout_instances: 8, gpus_per_instance: 2, rollout_gpus: 16, trainer_gpus: 32}
"""
BASE = """\
# kept
apiVersion: apps/v1
kind: Deployment
metadata: {name: rollout, namespace: rl}
spec:
  replicas: 8 # in March
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with plans, a scenario, an observation and a manifest; commands run in it."""
    monkeypatch.chdir(tmp_path)
    texts = {
        "plan.yaml": PLAN.replace("MODE", "async"),
        "shared.yaml": PLAN.replace("MODE", "colocated"),
        "scenario.yaml": SCENARIO,
        "before.yaml": OBSERVATION,
        "base.yaml": BASE,
        "hybrid.yaml": PLAN.partition("scenario:")[0],
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("line", "replicas"),
    [
        (("plan.yaml",), 13),
        (("plan.yaml", "--instances", "5"), 5),
        (("plan.yaml", "--rollout-gpus", "8"), 4),
        (("plan.yaml", "--gpus-per-instance", "1"), 26),
        (("plan.yaml", "--set", "rollout.tensor_parallel=1", "--set", "rollout.data_parallel=2"), 13),
        (("scenario.yaml",), 16),
        (("scenario.yaml", "--set", "placement.trainer_gpus=48"), 8),
        (("before.yaml",), 8),
        (("before.yaml", "--instances", "5"), 5),
        (("--instances", "3", "--gpus-per-instance", "8"), 3),
        (("plan.yaml", "--rollback", "before.yaml"), 8),
        (("--rollback", "plan.yaml"), 13),
        (("scenario.yaml", "--gpus-per-pod", "8"), 4),
    ],
)
def test_replicas_come_from_whatever_says_the_allocation(rlsize: Run, line: tuple[str, ...], replicas: int) -> None:
    """A flag, a plan, a scenario, an observation; stdout is the patch and nothing else."""
    ran = rlsize("manifest", *line, "--platform", "deployment", "-n", "rl")
    assert ran.code == 0
    assert yaml.safe_load(ran.stdout) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "rollout", "namespace": "rl"},
        "spec": {"replicas": replicas},
    }
    assert "Nothing is applied" in ran.stdout
    assert "kubectl patch deployment rollout -n rl" in ran.stdout
    assert "# Back: kubectl scale" in ran.stdout
    assert "fixed size" in ran.stderr
    assert all(len(text) <= 80 for text in ran.stdout.splitlines() if "kubectl" not in text)


def test_a_file_is_written_whole_and_never_over_another(rlsize: Run, files: Path) -> None:
    """With --output the answer says what was written; a second time needs --force."""
    line = ("manifest", "plan.yaml", "--platform", "leaderworkerset", "-o", "patch.yaml")
    ran = rlsize(*line)
    assert ran.code == 0
    assert ran.stdout.startswith("Wrote patch.yaml. Resize: LeaderWorkerSet rollout with 13 replicas")
    written = (files / "patch.yaml").read_text(encoding="utf-8")
    assert yaml.safe_load(written)["spec"] == {"replicas": 13}
    assert "--patch-file patch.yaml" in written
    again = rlsize(*line)
    assert (again.code, again.stdout) == (2, "")
    assert "--force" in again.stderr
    assert rlsize(*line, "--force").code == 0


@pytest.mark.usefixtures("files")
def test_a_rollback_says_where_it_comes_from(rlsize: Run) -> None:
    """Back from the plan's 13 instances to the 8 that were recorded."""
    ran = rlsize("manifest", "plan.yaml", "--platform", "deployment", "--rollback", "before.yaml")
    said = ran.stdout.replace("\n#  ", "")
    assert "# Rollback: 8 instances of 2 GPUs (16 rollout GPUs), back from 13; the trainer keeps its 32 GPUs." in said


@pytest.mark.usefixtures("files")
def test_keda_counts_samples_by_the_engine_s_own_metrics(rlsize: Run) -> None:
    """Concurrency and engine of the scenario become threshold and query; --min and --max must hold the match."""
    line = ("manifest", "scenario.yaml", "--platform", "keda", "--prometheus", "http://prom:9090")
    spec = yaml.safe_load(rlsize(*line, "--min", "4", "--max", "24").stdout)["spec"]
    assert (spec["minReplicaCount"], spec["maxReplicaCount"], spec["fallback"]["replicas"]) == (4, 24, 16)
    assert spec["triggers"][0]["metadata"]["threshold"] == "128"
    wrong = rlsize(*line, "--min", "17", "--max", "15")
    assert wrong.code == 2
    assert "17 is more than the 16" in wrong.stderr
    assert "15 is less than the 16" in wrong.stderr


@pytest.mark.usefixtures("files")
def test_kueue_has_a_queue_for_each_side_and_a_caution(rlsize: Run) -> None:
    """Without CPUs and memory it says that pods which ask for them are not admitted."""
    labels = ("--rollout-label", "spot=true", "--trainer-label", "spot=false")
    ran = rlsize("manifest", "plan.yaml", "--platform", "kueue", *labels)
    kinds = [document["kind"] for document in yaml.safe_load_all(ran.stdout)]
    assert sorted(set(kinds)) == ["ClusterQueue", "LocalQueue", "ResourceFlavor", "WorkloadPriorityClass"]
    assert len(kinds) == 8
    assert "--cpu-per-gpu" in ran.stderr
    full = rlsize(
        "manifest", "plan.yaml", "--platform", "kueue", *labels, "--cpu-per-gpu", "8", "--memory-per-gpu", "1Ti"
    )
    assert full.stderr == ""


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("line", "says"),
    [
        (("plan.yaml",), ("--platform", "deployment, keda, kueue")),
        (("plan.yaml", "--platform", "deploymnt"), ("'deploymnt' is no platform", "did you mean deployment?")),
        (("shared.yaml", "--platform", "deployment"), ("no rollout fleet to resize",)),
        (("hybrid.yaml", "--platform", "deployment"), ("is a plan without a scenario", "rlsize plan SCENARIO --save")),
        (("plan.yaml", "--platform", "deployment", "--cohort", "rl"), ("--cohort: says nothing about a deployment",)),
        (("base.yaml", "--platform", "deployment"), ("base.yaml: is neither a scenario nor a launch",)),
        (("nothing.yaml", "--platform", "deployment"), ("nothing.yaml: no such file",)),
        (("--platform", "deployment"), ("--instances: instances is missing", "--gpus-per-instance")),
        (
            ("--instances", "2.5", "--platform", "raycluster", "--name", "Run_1", "-n", "a.b", "--gpu-resource", "gpu"),
            ("2.5 must be a whole number", "'Run_1' is no name", "'a.b' is no name", "'gpu' is no extended resource"),
        ),
        (
            ("scenario.yaml", "--platform", "keda", "--prometheus", "http://p:1", "--selector", 'a="b"} or up{'),
            ("--selector: 'a=\"b\"} or up{' is no matcher",),
        ),
        (("plan.yaml", "--platform", "raycluster"), ("--group: which worker group",)),
        (("plan.yaml", "--rollout-gpus", "9", "--platform", "deployment"), ("nearest: 8 or 10 rollout GPUs",)),
        (
            ("plan.yaml", "--rollout-gpus", "9", "--instances", "5", "--platform", "deployment"),
            ("5 instances of 2 GPUs are not 9",),
        ),
        (
            ("plan.yaml", "--platform", "kueue", "--rollout-label", "x"),
            ("'x' is no label", "which nodes are protected?"),
        ),
    ],
)
def test_what_is_wrong_is_told_at_once(rlsize: Run, line: tuple[str, ...], says: tuple[str, ...]) -> None:
    """What, where, what to do; exit code 2; nothing on stdout."""
    ran = rlsize("manifest", *line)
    assert (ran.code, ran.stdout) == (2, "")
    for text in says:
        assert text in ran.stderr


FLAGS = {
    "--instances": "13", "--gpus-per-instance": "2", "--rollout-gpus": "26", "--trainer-gpus": "32",
    "--gpus-per-node": "8", "--gpus-per-pod": "2", "--platform": "deployment|keda|kueue|raycluster", "--name": "a|b",
    "--namespace": "rl", "--group": "rollout", "--min": "1", "--max": "64", "--concurrency": "64",
    "--prometheus": "http://p:1", "--threshold": "2.5", "--query": "up|sum(x)", "--rollout-label": "a=b",
    "--rollout-taint": "a:NoSchedule", "--cohort": "rl", "--borrow": "8", "--cpu-per-gpu": "8",
}  # fmt: skip


@pytest.mark.parametrize("form", ["", "--json"])
@given(data=st.data())
@settings(max_examples=tries(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_junk_is_a_traceback(rlsize: Run, spoilt: Run, checked: Run, data: st.DataObject, form: str) -> None:
    """Whatever is typed, there is no traceback; what is written is YAML."""
    good = [{"--instances": "13", "--gpus-per-instance": "2", "--platform": "deployment"}]
    line = data.draw(spoilt(good, FLAGS))
    ran = rlsize("manifest", *(f"{flag}={value}" for flag, value in line.items()), *([form] if form else []))
    checked(ran, "manifest", form)
    if ran.code == 0 and not form:
        assert all(isinstance(document, dict | list) for document in yaml.safe_load_all(ran.stdout))
