"""What is written for each platform is what its API takes, and means the fleet that was asked for."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from kubernetes_validate import validate

from rlsize.errors import Fault
from rlsize.facts.plan import Allocation
from rlsize.writers.manifests import platforms
from rlsize.writers.manifests.keda import TARGETS
from rlsize.writers.manifests.kueue import multiplied
from rlsize.writers.manifests.resize import Pods, Resize, Wanted, commented, pods_of, yaml_documents

HERE = Path(__file__).parent
KUBERNETES = "1.31"
WANTED = Wanted(
    namespace="rl",
    group="rollout",
    group_index=1,
    prometheus="http://prometheus.monitoring:9090",
    selector='job="rollout"',
    concurrency=64.0,
    labels={"rollout": {"karpenter.sh/capacity-type": "spot"}, "trainer": {"pool": "reserved"}},
    tolerations={"rollout": ({"key": "spot", "operator": "Exists", "effect": "NoSchedule"},)},
    cohort="rl",
    borrow=8,
    per_gpu={"cpu": "16", "memory": "128Gi"},
)


def allocation(**changed: Any) -> Allocation:
    """13 instances of 2 GPUs beside a trainer of 32, on nodes of 8."""
    said = {
        "source": "plan.yaml", "mode": "async", "instances": 13, "gpus_per_instance": 2, "rollout_gpus": 26,
        "trainer_gpus": 32, "gpus_per_node": 8,
    }  # fmt: skip
    return Allocation(**{**said, **changed})


def resized(platform: str, wanted: Wanted = WANTED, **changed: Any) -> Resize:
    """The resize of a platform; nothing is wrong with it."""
    faults: list[Fault] = []
    pods = pods_of(allocation(**changed), None, faults)
    assert pods is not None
    resize = platforms()[platform](pods, wanted, faults)
    assert not faults
    return resize


def written(resize: Resize) -> list[Any]:
    """Its documents, as PyYAML reads the text."""
    return list(yaml.safe_load_all(commented(["a header"]) + yaml_documents(resize.documents)))


def manifest(name: str) -> Any:
    """The last document of a manifest among the tests' data."""
    return list(yaml.safe_load_all((HERE / "data" / name).read_text(encoding="utf-8")))[-1]


def schema(document: Any) -> Any:
    """The project's own schema of a kind."""
    stem = str(document["apiVersion"]).replace("/", "-")
    names = [HERE / "schemas" / f"{stem}-{document['kind']}.json", HERE / "schemas" / f"{stem}.json"]
    return json.loads(next(name for name in names if name.exists()).read_text(encoding="utf-8"))


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386: a merge patch; the strategic one is the same where it holds no lists."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        result[key] = merged(result.get(key), value)
    return result


def test_all_platforms_have_a_resize() -> None:
    """Every platform that the help of the command names."""
    assert set(platforms()) == {"deployment", "statefulset", "raycluster", "leaderworkerset", "keda", "kueue"}


@pytest.mark.parametrize("platform", ["deployment", "keda", "kueue", "leaderworkerset", "raycluster", "statefulset"])
def test_what_is_written_is_read_again_as_it_was(platform: str) -> None:
    """YAML that PyYAML reads back, with nothing lost in quotes, numbers or comments."""
    resize = resized(platform)
    assert written(resize) == [json.loads(json.dumps(document)) for document in resize.documents]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_core_kinds_keep_the_schema_of_kubernetes(kind: str) -> None:
    """The patched object is valid, and differs from the one that was there in its replicas alone."""
    base = manifest("deployment.yaml") | {"kind": kind}
    if kind == "StatefulSet":
        base["spec"]["serviceName"] = "rollout"
    (patch,) = written(resized(kind.lower()))
    patched = merged(base, patch)
    validate(patched, KUBERNETES, strict=True)
    assert patched["spec"].pop("replicas") == 13
    assert base["spec"].pop("replicas") == 8
    assert patched == base


def test_a_leaderworkerset_keeps_its_groups() -> None:
    """An engine of 16 GPUs takes two pods; the patch counts engines and leaves the template alone."""
    base = manifest("leaderworkerset.yaml")
    (patch,) = written(resized("leaderworkerset", gpus_per_instance=16, rollout_gpus=208))
    patched = merged(base, patch)
    jsonschema.validate(patched, schema(patched))
    assert patched["spec"].pop("replicas") == 13
    assert patched == base


def test_the_patch_of_a_raycluster_touches_one_group_only_if_it_is_the_right_one() -> None:
    """JSON patch: a test of the name goes first; a merge patch would drop the trainer's group."""
    base = manifest("raycluster.yaml")
    (patch,) = written(resized("raycluster"))
    patched = deepcopy(base)
    for operation in patch:
        *_, index, key = operation["path"].split("/")
        group = patched["spec"]["workerGroupSpecs"][int(index)]
        if operation["op"] == "test":
            assert group[key] == operation["value"] == "rollout"
        else:
            group[key] = operation["value"]
    assert patch[0]["op"] == "test"
    (large,) = written(resized("raycluster", gpus_per_instance=16, rollout_gpus=208))
    assert {"op": "test", "path": "/spec/workerGroupSpecs/1/numOfHosts", "value": 2} in large
    jsonschema.validate(patched, schema(patched))
    rollout = patched["spec"]["workerGroupSpecs"][1]
    assert [rollout[key] for key in ("replicas", "minReplicas", "maxReplicas")] == [13, 13, 13]
    rollout.pop("replicas")
    assert patched | {"spec": {}} == base | {"spec": {}}
    assert patched["spec"]["workerGroupSpecs"][0] == base["spec"]["workerGroupSpecs"][0]


@pytest.mark.parametrize("target", TARGETS)
def test_keda_asks_for_as_many_replicas_as_samples_in_flight_fill(target: str) -> None:
    """Average of running and waiting samples over the concurrency of a replica; pinned unless there is room."""
    wanted = Wanted(**{name: getattr(WANTED, name) for name in WANTED.__slots__} | {"target": target})
    (made,) = written(resized("keda", wanted))
    jsonschema.validate(made, schema(made))
    spec = made["spec"]
    assert (spec["minReplicaCount"], spec["maxReplicaCount"], spec["fallback"]["replicas"]) == (13, 13, 13)
    assert spec["scaleTargetRef"] == {"apiVersion": TARGETS[target][0], "kind": TARGETS[target][1], "name": "rollout"}
    metadata = spec["triggers"][0]["metadata"]
    assert metadata["threshold"] == "64"
    assert metadata["query"] == (
        'sum(rlsize:engine_requests_running{job="rollout"}) + sum(rlsize:engine_requests_waiting{job="rollout"})'
    )


def test_kueue_protects_the_trainer() -> None:
    """Its queue has flavour and quota of its own, and nothing that another could borrow, lend, reclaim or preempt."""
    documents = written(resized("kueue"))
    for document in documents:
        jsonschema.validate(document, schema(document))
    held = {(document["kind"], document["metadata"]["name"]): document for document in documents}
    trainer, rollout = (held["ClusterQueue", name]["spec"] for name in ("trainer", "rollout"))
    assert "cohortName" not in trainer
    assert "borrowingLimit" not in json.dumps(trainer)
    assert trainer["preemption"] == {"reclaimWithinCohort": "Never", "withinClusterQueue": "Never"}
    quota = {entry["name"]: entry for entry in rollout["resourceGroups"][0]["flavors"][0]["resources"]}
    assert quota["nvidia.com/gpu"] == {"name": "nvidia.com/gpu", "nominalQuota": 26, "borrowingLimit": 8}
    assert quota["memory"]["nominalQuota"] == "3328Gi"
    flavours = {
        name: held["ClusterQueue", name]["spec"]["resourceGroups"][0]["flavors"][0]["name"]
        for name in ("trainer", "rollout")
    }
    assert held["ResourceFlavor", flavours["rollout"]]["spec"]["nodeLabels"] == {"karpenter.sh/capacity-type": "spot"}
    assert held["ResourceFlavor", flavours["trainer"]]["spec"]["nodeLabels"] == {"pool": "reserved"}
    assert held["LocalQueue", "trainer"]["metadata"]["namespace"] == "rl"
    assert held["WorkloadPriorityClass", "trainer"]["value"] > held["WorkloadPriorityClass", "rollout"]["value"]


def test_quantities_keep_their_unit() -> None:
    """Decimal arithmetic: no 0.30000000000000004 cores."""
    assert [multiplied("0.1", 3), multiplied("500m", 4), multiplied("1.5Gi", 2)] == ["0.3", "2000m", "3Gi"]


@pytest.mark.parametrize(
    ("changed", "per_pod", "expected"),
    [
        ({}, None, (13, 2, 1)),
        ({"instances": 12, "rollout_gpus": 24}, 8, (3, 8, 1)),
        ({"gpus_per_instance": 16, "rollout_gpus": 208}, None, (13, 8, 2)),
        ({"gpus_per_instance": 16, "rollout_gpus": 208, "gpus_per_node": None}, None, (13, 16, 1)),
    ],
)
def test_engines_become_pods(changed: dict[str, Any], per_pod: int | None, expected: tuple[int, int, int]) -> None:
    """One engine to a pod, several to a pod that is larger, or several pods to an engine that is larger than a node."""
    faults: list[Fault] = []
    pods = pods_of(allocation(**changed), per_pod, faults)
    assert pods is not None
    assert not faults
    assert (pods.replicas, pods.gpus_per_pod, pods.pods_per_engine) == expected
    assert pods.replicas * pods.gpus_per_pod * pods.pods_per_engine == pods.rollout_gpus


@pytest.mark.parametrize(
    ("changed", "per_pod", "says"),
    [
        ({"mode": "colocated"}, None, "no rollout fleet"),
        ({"gpus_per_instance": 0.5}, None, "MPS or time-slicing"),
        ({"gpus_per_instance": None}, None, "--gpus-per-instance"),
        ({"instances": None}, None, "--instances"),
        ({}, 16, "fits no node of 8"),
        ({}, 3, "a divisor or a multiple of 2"),
        ({}, 8, "--instances 12 or 16"),
    ],
)
def test_what_pods_cannot_hold_is_refused_with_the_reason(
    changed: dict[str, Any], per_pod: int | None, says: str
) -> None:
    """Nothing is rounded to whole pods silently."""
    faults: list[Fault] = []
    assert pods_of(allocation(**changed), per_pod, faults) is None
    assert any(says in f"{fault} {fault.where}" for fault in faults)


def test_single_pods_cannot_serve_an_engine_of_two_nodes() -> None:
    """A Deployment, a StatefulSet and a ScaledObject of one say which platform can."""
    pods = Pods(instances=2, replicas=2, gpus_per_pod=8, pods_per_engine=2, rollout_gpus=32)
    for platform in ("deployment", "statefulset", "keda"):
        faults: list[Fault] = []
        platforms()[platform](pods, WANTED, faults)
        assert [fault.where for fault in faults] == ["--platform"]
        assert "leaderworkerset" in faults[0].todo


def test_keda_and_kueue_name_everything_that_they_lack_at_once() -> None:
    """No address, concurrency, label or trainer is ever assumed."""
    pods = Pods(instances=2, replicas=2, gpus_per_pod=8, pods_per_engine=1, rollout_gpus=16)
    keda: list[Fault] = []
    platforms()["keda"](pods, Wanted(), keda)
    assert {fault.where for fault in keda} == {"--prometheus", "--concurrency"}
    kueue: list[Fault] = []
    platforms()["kueue"](pods, Wanted(name="trainer"), kueue)
    assert {fault.where for fault in kueue} == {"--trainer-gpus", "--name", "--rollout-label", "--trainer-label"}
