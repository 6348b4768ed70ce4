"""Two scenarios key by key: what differs, and scenarios in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import InputError
from rlsize.quantities.scenario import Scenario
from rlsize.readers.scenario_changes import Leaf, changed_scenario, mixed, named_from
from rlsize.readers.scenarios import ScenarioFile, read_scenario
from rlsize.readers.validation import opened, validated
from rlsize.readers.yaml_documents import parse_document

HEADER = "rlsize: {kind: scenario, version: 1}\n"
Write = Callable[..., ScenarioFile]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a scenario and reads it."""

    def made(text: str, name: str = "a.yaml") -> ScenarioFile:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(HEADER + text, encoding="utf-8")
        return read_scenario(path)

    return made


def _said(leaves: tuple[Leaf, ...]) -> dict[str, tuple[object, object]]:
    return {leaf.key: (leaf.before, leaf.after) for leaf in leaves}


def test_values_are_told_as_they_are_written(write: Write) -> None:
    """With the lines that they stand on; a key that one side lacks has neither value nor line there."""
    before = write("model: qwen3-8b\nworkload:\n  response_tokens: {mean: 8k}\nweight_sync: {every: 2}\n")
    after = write("# new\nmodel: qwen3-32b\nworkload:\n  response_tokens: {mean: 16k, cv: 0.8}\n", "b.yaml")
    found = changed_scenario(before, after)
    assert _said(found) == {
        "model": ("qwen3-8b", "qwen3-32b"),
        "workload.response_tokens.mean": ("8k", "16k"),
        "workload.response_tokens.cv": (None, 0.8),
        "weight_sync.every": (2, None),
    }
    assert [(leaf.before_line, leaf.after_line) for leaf in found] == [(2, 3), (4, 5), (None, 5), (5, None)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("workload: {prompt_tokens: 8k}", "workload:\n  prompt_tokens: 8000  # the same"),
        ("budget: {cost_per_step_usd: 2.5}", "budget: {cost_per_step_usd: {max: 2.5}}"),
        ("trainer: {parallelism: {}}", "model: null"),
        ("rates: {train_seconds: 20 ± 2}", "rates: {train_seconds: 20 s ± 10 %}"),
    ],
)
def test_what_is_only_written_otherwise_is_no_change(write: Write, first: str, second: str) -> None:
    """Units, comments, layout, empty sections and short forms do not count."""
    assert changed_scenario(write(first), write(second, "b.yaml")) == ()


def test_a_value_that_becomes_a_section_is_one_change(write: Write) -> None:
    """A model by name on one side, and by numbers on the other."""
    found = changed_scenario(write("model: qwen3-8b"), write("model: {params: 8B}", "b.yaml"))
    assert _said(found) == {"model": ("qwen3-8b", {"params": "8B"})}


TREES = st.fixed_dictionaries(
    {},
    optional={
        "model": st.sampled_from(["qwen3-8b", "qwen3-32b", {"params": "8B"}, {"params": 7e9, "active_params": 1e9}]),
        "cluster": st.fixed_dictionaries(
            {}, optional={"gpus": st.integers(1, 64), "gpu": st.sampled_from(["h100-sxm", "h200-sxm"])}
        ),
        "workload": st.fixed_dictionaries(
            {},
            optional={
                "prompt_tokens": st.sampled_from([300, "1k", 1000]),
                "response_tokens": st.fixed_dictionaries(
                    {"mean": st.integers(1, 9)}, optional={"cv": st.floats(0, 2), "max": st.just("8k")}
                ),
            },
        ),
        "trainer": st.fixed_dictionaries(
            {}, optional={"logprob_passes": st.lists(st.sampled_from(["old", "reference"]), max_size=2)}
        ),
    },
)


def _file(tree: dict[str, object], name: str) -> ScenarioFile:
    import json

    text = json.dumps({"rlsize": {"kind": "scenario", "version": 1}, **tree})
    document = opened(parse_document(text, name), "scenario")
    return ScenarioFile(validated(Scenario, document), document)


@given(TREES, TREES)
def test_all_changes_together_make_the_second_file(first: dict[str, object], second: dict[str, object]) -> None:
    """And none of them the first; forwards and backwards the same keys change."""
    before, after = _file(first, "a.yaml"), _file(second, "b.yaml")
    leaves = changed_scenario(before, after)
    assert mixed(before, after, leaves).scenario == after.scenario
    assert mixed(before, after, ()).scenario == before.scenario
    assert {leaf.key for leaf in leaves} == {leaf.key for leaf in changed_scenario(after, before)}
    assert (before.scenario == after.scenario) == (not leaves)


def test_faults_of_a_mixture_name_the_file_that_says_so(write: Write) -> None:
    """A size that is taken away leaves active parameters of nothing; a value that is taken over stands in its file."""
    before = write("model:\n  {params: 30e9, active_params: 3e9}\nplacement: {mode: async}\n")
    after = write("\n\nplacement: {mode: sync}\n", "b.yaml")
    leaves = {leaf.key: leaf for leaf in changed_scenario(before, after)}
    with pytest.raises(InputError, match="is missing"):
        mixed(before, after, [leaves["model.params"]])
    half = mixed(before, after, [leaves["placement.mode"]])
    assert half.where("placement.mode").endswith("b.yaml:4: placement.mode")
    assert half.where("model.active_params").endswith("a.yaml:3: model.active_params")
    everything = mixed(before, after, leaves.values())
    assert everything.value("model") is None


def test_files_of_one_name_in_two_folders_are_compared_by_content(write: Write, tmp_path: Path) -> None:
    """A rates file beside each scenario: the same text is no change, another is, and a mixture finds the right one."""
    text = "rates: {instance_tokens_per_second: rates.yaml}\n"
    before, after = write(text, "old/s.yaml"), write(text, "new/s.yaml")
    for folder in ("old", "new"):
        (tmp_path / folder / "rates.yaml").write_text("same", encoding="utf-8")
    assert changed_scenario(before, after) == ()
    (tmp_path / "new" / "rates.yaml").write_text("other", encoding="utf-8")
    (leaf,) = changed_scenario(before, after)
    assert (leaf.key, leaf.before_line, leaf.after_line) == ("rates.instance_tokens_per_second", 2, 2)
    assert (leaf.before, leaf.after) == tuple(str(tmp_path / folder / "rates.yaml") for folder in ("old", "new"))
    taken = mixed(before, after, [leaf]).value("rates.instance_tokens_per_second")
    assert before.folder / taken == tmp_path / "new" / "rates.yaml"


@pytest.mark.parametrize(("name", "kept"), [("qwen3-8b", True), ("./m/config.json", False), ("~/m/config.json", True)])
def test_only_paths_are_taken_from_their_folder(write: Write, tmp_path: Path, name: str, kept: bool) -> None:
    """The name of a profile is that of a profile, even where a folder of that name lies beside the scenario."""
    (tmp_path / "new" / "qwen3-8b").mkdir(parents=True)
    before, after = write("model: qwen3-32b", "old.yaml"), write(f"model: {name}", "new/s.yaml")
    taken = mixed(before, after, changed_scenario(before, after)).value("model")
    assert taken == (name if kept else str(tmp_path / "new" / name))


@pytest.mark.parametrize(("said", "reference", "model"), [("qwen3-32b", True, "qwen3-32b"), ("no", False, None)])
def test_a_reference_may_be_named_where_it_may_be_switched_on(said: str, reference: bool, model: str | None) -> None:
    """`algorithm.reference: MODEL` is that model's switch and name in one; a model that is said beside it stays."""
    read = read_scenario(None, [f"algorithm.reference={said}"])
    assert (read.value("algorithm.reference"), read.value("algorithm.reference_model")) == (reference, model)
    both = read_scenario(None, ["algorithm.reference=a", "algorithm.reference_model=b"])
    assert both.value("algorithm.reference_model") == "b"


def test_a_repository_is_no_file_beside_a_scenario(tmp_path: Path) -> None:
    """A model's name stays as it is wherever a scenario is written, unless a file of that name lies there."""
    asked = ("model", "Qwen/Qwen2.5-VL-3B-Instruct", tmp_path, str(tmp_path / "sub" / "s.yaml"))
    assert named_from(*asked) == asked[1]
    (tmp_path / asked[1]).mkdir(parents=True)
    assert named_from(*asked) == f"../{asked[1]}"
