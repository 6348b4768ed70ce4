"""A manifest that there is changes in what the resize names, and in nothing else."""

from __future__ import annotations

from difflib import ndiff
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsize.errors import InputError
from rlsize.writers.manifests import platforms
from rlsize.writers.manifests.in_place import Edited, _verified, composed, edited
from rlsize.writers.manifests.resize import Pods, Wanted

DATA = Path(__file__).parent / "data"
NAMES = st.text("abcdefghij-_./", min_size=1, max_size=8)
WORDS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["no", "22:30", "0x1F", "1e3", "~", "- a: b", "# no comment", "{x: 1}", "ünï", "'", '"', "a: b"]),
    st.integers(-5, 10**6),
    st.booleans(),
    st.none(),
)
EXTRA = st.dictionaries(NAMES, st.one_of(WORDS, st.lists(WORDS, max_size=3)), max_size=4)


def resized(text: str, platform: str, count: int, *, per_pod: int = 2, pods: int = 1, **said: Any) -> Edited:
    """A manifest with a resize in it."""
    fleet = Pods(
        instances=count, replicas=count, gpus_per_pod=per_pod, pods_per_engine=pods, rollout_gpus=count * per_pod * pods
    )
    wanted = Wanted(**{"namespace": "rl", "group": "rollout", **said})
    return edited(text, "base.yaml", platforms()[platform](fleet, wanted, []), fleet, wanted)


def changed_lines(before: str, after: str) -> list[str]:
    """Lines that only one of the two has."""
    return [line for line in ndiff(before.splitlines(), after.splitlines()) if line[0] in "+-"]


def data(name: str) -> str:
    """A manifest among the tests' data."""
    return (DATA / name).read_text(encoding="utf-8")


@settings(max_examples=25)
@given(EXTRA, EXTRA, st.booleans(), st.sampled_from([True, False, None]), st.integers(1, 99), st.integers(0, 99))
def test_a_resize_changes_one_value_of_any_manifest(
    labels: dict[str, Any], spec: dict[str, Any], said: bool, flow: bool | None, count: int, before: int
) -> None:
    """Whatever else stands in it, in whatever style: read again, all is as it was but the replicas."""
    body = {**spec, **({"replicas": before} if said else {"paused": False})}
    wanted = {
        "kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "rollout", "labels": labels}, "spec": body,
    }  # fmt: skip
    other = {**wanted, "kind": "StatefulSet"}
    text = "# first\n" + yaml.safe_dump_all(
        [other, wanted], default_flow_style=flow, sort_keys=False, allow_unicode=True, explicit_start=True
    )
    made = resized(text, "deployment", count)
    after = list(yaml.safe_load_all(made.text))
    assert after == [other, {**wanted, "spec": {**body, "replicas": count}}]
    same = said and before == count
    assert [change.path for change in made.changes] == ([] if same else ["spec.replicas"])
    assert (made.text == text) == same


def test_comments_quotes_and_order_stay() -> None:
    """One line differs, and on it one number."""
    text = data("deployment.yaml")
    made = resized(text, "deployment", 13)
    assert changed_lines(text, made.text) == [
        "-   replicas: 8   # recorded in March",
        "+   replicas: 13   # recorded in March",
    ]
    assert [(change.path, change.before, change.after) for change in made.changes] == [("spec.replicas", "8", "13")]
    crlf = text.replace("\n", "\r\n")
    assert resized(crlf, "deployment", 13).text == made.text.replace("\n", "\r\n")


def test_what_was_so_already_is_not_touched() -> None:
    """The same count leaves the file byte by byte as it was."""
    text = data("deployment.yaml")
    made = resized(text, "deployment", 8)
    assert made.text == text
    assert made.changes == ()


def test_bounds_of_a_worker_group_move_only_where_they_would_hold_the_count_back() -> None:
    """KubeRay keeps replicas within them: a floor of 0 stays, a ceiling of 2 cannot."""
    text = data("raycluster.yaml")
    made = resized(text, "raycluster", 3, per_pod=8, name="run")
    assert [(change.path, change.before, change.after) for change in made.changes] == [
        ("spec.workerGroupSpecs[1].replicas", "", "3"),
        ("spec.workerGroupSpecs[1].maxReplicas", "2", "3"),
    ]
    groups = yaml.safe_load(made.text)["spec"]["workerGroupSpecs"]
    assert groups[0] == yaml.safe_load(text)["spec"]["workerGroupSpecs"][0]
    assert (groups[1]["replicas"], groups[1]["minReplicas"], groups[1]["maxReplicas"]) == (3, 0, 3)
    assert "# replicas go by the autoscaler's bounds" in made.text


@pytest.mark.parametrize("after", ["a: 2\nb: 3\n", "a: 1\nb: 2\n", "a: 2\n", "a: 2\nb: 2\n---\nc: 1\n"])
def test_an_edit_that_did_anything_else_is_refused(after: str) -> None:
    """What came out is compared with what was there: only a, and only to 2."""
    with pytest.raises(InputError, match="cannot be edited without changing"):
        _verified(composed("a: 1\nb: 2\n", ""), composed(after, ""), {(0, "a"): "2"}, "base.yaml")


def test_a_quota_is_found_among_groups_and_flavours() -> None:
    """Two flavours have GPUs: --group says which one; the quota of CPUs stays."""
    text = data("queues.yaml")
    made = resized(text, "kueue", 13, group="spot")
    assert [(change.path, change.before, change.after) for change in made.changes] == [
        ("spec.resourceGroups[1].flavors[0].resources[0].nominalQuota", "16", "26")
    ]
    with pytest.raises(InputError, match="several places"):
        resized(text, "kueue", 13, group="")
    memory = text.replace('"16"}', '"16"}, {name: memory, nominalQuota: 1Ti}')
    made = resized(memory, "kueue", 13, group="spot", per_gpu={"memory": "100Gi"})
    assert [change.after for change in made.changes] == ["26", "2600Gi"]


def test_an_item_of_a_list_is_found_too() -> None:
    """`kubectl get -o yaml` of several objects writes a List."""
    inner = yaml.safe_load(list(data("deployment.yaml").split("---"))[1])
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [{"kind": "Pod"}, inner]})
    made = resized(text, "deployment", 13)
    assert [change.path for change in made.changes] == ["items[1].spec.replicas"]
    assert yaml.safe_load(made.text)["items"][1]["spec"]["replicas"] == 13


@pytest.mark.parametrize(
    ("platform", "said", "name", "says"),
    [
        ("deployment", {"name": "rollot"}, "deployment.yaml", "Service rl/rollout, Deployment rl/rollout"),
        ("deployment", {"namespace": "other"}, "deployment.yaml", "holds no Deployment rollout"),
        ("deployment", {"per_pod": 4}, "deployment.yaml", "asks for 2 nvidia.com/gpu"),
        ("leaderworkerset", {"per_pod": 8, "pods": 1}, "leaderworkerset.yaml", "size is 2, not 1"),
        ("raycluster", {"per_pod": 8, "name": "run", "group": "rolout"}, "raycluster.yaml", "no place for"),
        ("raycluster", {"per_pod": 4, "pods": 2, "name": "run"}, "raycluster.yaml", "numOfHosts] is 1, not 2"),
    ],
)
def test_a_resize_of_other_pods_is_refused(platform: str, said: dict[str, Any], name: str, says: str) -> None:
    """The wrong object, pods of another size, or engines over other pods: as many replicas would be another fleet."""
    with pytest.raises(InputError) as raised:
        resized(data(name), platform, 13, **said)
    assert says.replace("]", "") in " ".join(str(fault) for fault in raised.value.faults).replace("]", "")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: &x 1\nb: *x\n", "anchors"),
        ("a: !!python/object:os.system {}\n", "tag"),
        ("a: 1\na: 2\n", "stands twice"),
        ("a: [1\n", "not valid YAML"),
        ("[" * 60 + "]" * 60, "too deep"),
        ("", "no objects"),
        ("- 1\n", "no objects"),
        ("a: 1\n" + "#" * (2**20), "larger than"),
    ],
)
def test_no_manifest_is_read_that_could_mean_something_else(text: str, says: str) -> None:
    """Aliases, tags, keys that stand twice, bombs: a fault, no guess."""
    with pytest.raises(InputError) as raised:
        resized(text, "deployment", 13)
    assert says in " ".join(str(fault) for fault in raised.value.faults)


@settings(max_examples=25)
@given(st.data())
def test_a_manifest_cut_anywhere_is_never_a_traceback(drawn: st.DataObject) -> None:
    """A fault, or the one change."""
    text = data("raycluster.yaml")
    cut = text[: drawn.draw(st.integers(0, len(text)))] + drawn.draw(st.text(max_size=5))
    try:
        made = resized(cut, "raycluster", 3, per_pod=8, name="run")
    except InputError as error:
        assert all(fault.what for fault in error.faults)
    else:
        assert all(change.path.startswith("spec.workerGroupSpecs[1]") for change in made.changes)
