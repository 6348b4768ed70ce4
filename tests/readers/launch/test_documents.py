"""Configuration files as settings with places."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import InputError
from rlsize.facts.launch import Settings, Span
from rlsize.readers.launch.bash.source import script_in
from rlsize.readers.launch.documents import read_settings


def read(text: str, name: str = "run.yaml", **files: str) -> Settings:
    """The settings of a text; `a__yaml` is the file a.yaml beside it."""
    return read_settings(text, name, {key.replace("__", "."): value for key, value in files.items()}.get)


def values(found: Settings) -> dict[str, Any]:
    """Values by key."""
    return {setting.key: setting.value for setting in found.settings}


def written(text: str, found: Settings, key: str) -> str:
    """The bytes that stand where a key's value does."""
    (span,) = (setting.span for setting in found.settings if setting.key == key)
    return text.encode()[span.start : span.end].decode()


# YAML


def test_a_value_stands_where_it_is_written() -> None:
    """A value stands where it is written."""
    text = (
        "# größe\nname: größe # 1\na:\n  lr: 1e-6\n  path: 'a b'\n  ids: [1, 2]\n  more:\n    - 3\n    - 4\n\nlast: x\n"
    )
    found = read(text)
    assert values(found) == {
        "name": "größe", "a.lr": "1e-6", "a.path": "a b", "a.ids": [1, 2], "a.more": [3, 4], "last": "x",
    }  # fmt: skip
    assert [written(text, found, key) for key in ("name", "a.path", "a.ids", "a.more", "last")] == [
        "größe", "'a b'", "[1, 2]", "- 3\n    - 4", "x",
    ]  # fmt: skip
    assert [setting.span.line for setting in found.settings] == [2, 4, 5, 6, 8, 11]


def test_anchors_aliases_and_merge_keys_read() -> None:
    """Anchors aliases and merge keys read."""
    text = (
        "base: &b {tp: 1, pp: 2}\nhosts: &h list(range(0,8))\na: {<<: *b, tp: 4}\nc: *b\nd: *h\n"
        "e: {<<: [{x: 1}, {x: 2, y: 3}]}"
    )
    found = read(text)
    assert values(found) == {
        "base.tp": 1, "base.pp": 2, "hosts": "list(range(0,8))", "a.pp": 2, "a.tp": 4, "c.tp": 1, "c.pp": 2,
        "d": "list(range(0,8))", "e.x": 1, "e.y": 3,
    }  # fmt: skip
    # An alias of a scalar can be replaced where it stands; what an alias of a mapping repeats has no text of its own.
    assert written(text, found, "d") == "*h"
    assert written(text, found, "c.pp") == ""
    assert written(text, found, "hosts") == "list(range(0,8))"


def test_of_a_key_that_stands_twice_the_last_counts_and_a_note_says_so() -> None:
    """Of a key that stands twice the last counts and a note says so."""
    found = read("a: 1\nb: 2\na: 3\n")
    assert values(found) == {"a": 3, "b": 2}
    assert found.notes == ("run.yaml:3: a stands twice: the last one counts",)


def test_later_documents_count_over_earlier_ones() -> None:
    """Later documents count over earlier ones."""
    found = read("a: 1\nb: {c: 2}\n---\nb: {d: 3}\n---\na: 4\n")
    assert values(found) == {"a": 4, "b.c": 2, "b.d": 3}
    assert any("3 documents" in note for note in found.notes)


def test_tags_that_would_make_objects_are_left_out() -> None:
    """Tags that would make objects are left out."""
    found = read("a: !!python/object/apply:os.system [touch x]\nb: !!str 4\nc: !!int '5'\nd: !Mine {e: 1}\n")
    assert values(found) == {"b": "4", "c": 5}
    assert [note.split(":")[1] for note in found.notes] == ["1", "4"]


def test_lists_of_mappings_go_by_their_number() -> None:
    """Lists of mappings go by their number."""
    assert values(read("a: [{b: 1, c: []}, {b: 2}]\nd: {}\n")) == {"a.0.b": 1, "a.0.c": [], "a.1.b": 2, "d": {}}


# Parents


def test_a_chain_of_parents_lies_under_the_file() -> None:
    """A chain of parents lies under the file."""
    found = read(
        "defaults: mid.yaml\na: {x: 1}\n",
        mid__yaml="defaults: [one.yaml, two.yaml]\na: {x: 2, y: 2}\n",
        one__yaml="a: {x: 3, y: 3, z: 3, w: 3}\nb: ${a.x}\n",
        two__yaml="a: {z: 4}\n",
    )
    assert values(found) == {"a.x": 1, "a.y": 2, "a.z": 4, "a.w": 3, "b": 1}
    places = {setting.key: (setting.span.file, setting.inherited) for setting in found.settings}
    assert places["a.x"] == ("run.yaml", False)
    assert places["a.z"] == ("two.yaml", True)


def test_a_parent_is_named_from_its_childs_folder() -> None:
    """A parent is named from its childs folder."""
    files = {"sub/a.yaml": "defaults: ../b.yaml\n", "b.yaml": "x: 1\n"}
    found = read_settings("defaults: sub/a.yaml", "conf/run.yaml", files.get)
    assert [(str(one.span), one.value) for one in found.settings] == [("conf/b.yaml:1", 1)]


def test_hydra_groups_fill_their_package() -> None:
    """Hydra groups fill their package."""
    files = {
        "finetune/base.yaml": "attempts: 8\n",
        "../config/envs.yaml": "lake: 1\n",
        "flat.yaml": "# @package _global_\nseen: true\nmine: 1\n",
    }
    text = (
        "defaults:\n  - _self_\n  - finetune: base\n  - ../config/envs@custom_envs\n  - flat\n"
        "  - override hydra/job_logging: disabled\n  - ppo_trainer\nmine: 0\nn: ${finetune.attempts}\n"
    )
    found = read_settings(text, "run.yaml", files.get)
    assert values(found) == {"mine": 1, "n": 8, "finetune.attempts": 8, "custom_envs.lake": 1, "seen": True}
    assert found.notes == ("parent ppo_trainer.yaml is missing: the framework's own defaults stand in for it",)


def test_parents_in_a_circle_are_named() -> None:
    """Parents in a circle are named."""
    with pytest.raises(InputError, match=r"run\.yaml -> a\.yaml -> run\.yaml"):
        read("defaults: a.yaml", a__yaml="defaults: run.yaml", run__yaml="defaults: a.yaml")


def test_parents_without_end_are_refused() -> None:
    """Parents without end are refused."""
    with pytest.raises(InputError, match="more than 50 parents"):
        read_settings("defaults: 0.yaml", "run.yaml", lambda path: f"defaults: {int(path[:-5]) + 1}.yaml")


def test_absolute_parents_are_not_asked_for() -> None:
    """Absolute parents are not asked for."""
    asked: list[str] = []
    found = read_settings("defaults: /etc/x.yaml\na: 1", "run.yaml", asked.append)
    assert not asked
    assert len(found.notes) == 1


def test_what_is_wrong_with_a_parent_names_its_line() -> None:
    """What is wrong with a parent names its line."""
    with pytest.raises(InputError, match=r"a\.yaml:2: is not valid YAML"):
        read("defaults: a.yaml", a__yaml="x: 1\ny: }\n")


# Interpolations


@pytest.mark.parametrize(
    ("written_as", "value"),
    [
        ("${a.b}", 6), ("${a.list[1]}", 5), ("${a.${which}}", 6), ("x-${a.b}-${name}", "x-6-q"), ("${a.chain}", 6),
        ("${mul:${a.b}, 2}", 12), ("${div:${a.b},4}", 1.5), ("${div:${a.b},3}", 2), ("${add:1,2,${a.b}}", 9),
        ("${sum:${a.b},1}", 7), ("${max:${a.b},3}", 6), ("${min:${a.b},3}", 3), ("${sub:${a.b},1}", 5),
        ("${eval:'${a.b} * 3 // 2'}", 9), ("${eval:2**3+int(1.5)}", 9), ("${mul:${add:1,1},${a.b}}", 12),
        ("${oc.env:HOME,8}", 8), ("${oc.env:HOME,'a, b'}", "a, b"), ("${oc.env:HOME,${name}}", "q"),
        ("${oc.select:a.b}", 6), ("${oc.select:no.where,3}", 3), ("${oc.decode:${oc.env:N,4}}", 4),
    ],
)  # fmt: skip
def test_interpolations_are_worked_out(written_as: str, value: object) -> None:
    """Interpolations are worked out."""
    text = f"v: {json.dumps(written_as)}\na: {{b: 6, list: [4, 5], chain: '${{.b}}'}}\nwhich: b\nname: q\n"
    found = read(text)
    assert values(found)["v"] == value
    assert written(text, found, "v") == json.dumps(written_as)


def test_relative_interpolations_count_dots() -> None:
    """Relative interpolations count dots."""
    assert values(read("a: {b: {c: 1, d: '${.c}', e: '${..f}'}, f: 2}\ng: 3\n"))["a.b.d"] == 1
    assert values(read("a: {b: {e: '${..f}', h: '${...g}'}, f: 2}\ng: 3\n")) == {
        "a.b.e": 2, "a.b.h": 3, "a.f": 2, "g": 3,
    }  # fmt: skip


def test_an_interpolation_may_give_a_mapping() -> None:
    """An interpolation may give a mapping."""
    assert values(read("a: {x: 1, y: '${z}'}\nb: ${a}\nz: 2\n")) == {"a.x": 1, "a.y": 2, "b.x": 1, "b.y": 2, "z": 2}


@pytest.mark.parametrize(
    "unknown",
    [
        "${no.where}", "${oc.env:HOME}", "${env:HOME}", "${mine:1}", "${v}", "${loop}", "${a", "${mul:1,x}",
        "${eval:'__import__(1)'}", "${eval:9**9**9}", "x${a}", "${.....a}", "${max:}", "${w}", "${div:1,0}",
    ],
)  # fmt: skip
def test_what_no_interpolation_can_tell_is_left_out_with_a_note(unknown: str) -> None:
    """What no interpolation can tell is left out with a note."""
    found = read(f"v: {json.dumps(unknown)}\nloop: ${{v}}\nw: ${{no.where}}\na: {{b: 1}}\n")
    assert "v" not in values(found)
    assert any(note.startswith("run.yaml:1: v is left out: ") for note in found.notes)


def test_the_environment_is_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment is never read."""
    monkeypatch.setenv("CANARY", "sings")
    found = read("a: ${oc.env:CANARY,silent}\nb: ${oc.env:CANARY}\nc: ${oc.select:CANARY,${oc.env:CANARY,2}}\n")
    assert values(found) == {"a": "silent", "c": 2}
    assert "sings" not in repr(found)


def test_secrets_stand_in_no_note() -> None:
    """Secrets stand in no note."""
    found = read("api_key: ${oc.env:KEY,hunter2}\napi_key: ${oc.env:KEY,hunter2}\nb_token: x${no.where}hunter2\n")
    assert found.notes
    assert "hunter2" not in "".join(found.notes)


# Scripts in job files


def test_command_and_arguments_of_a_container_are_one_script() -> None:
    """Command and arguments of a container are one script."""
    text = (
        "kind: Job\nspec:\n  pods:\n    - name: t\n      command: [bash, -c]\n      args:\n        - echo ${X} 'a b'\n"
    )
    found = read(text)
    (words,) = found.scripts
    assert [word.text for word in words] == ["bash", "-c", "echo ${X} 'a b'"]
    assert [word.span.line for word in words] == [5, 5, 7]
    assert [text[word.span.start : word.span.end] for word in words] == ["bash", "-c", "echo ${X} 'a b'"]
    source = script_in(text, words)
    assert source.text.strip() == """bash -c 'echo ${X} '"'"'a b'"'"''"""
    assert source.span(14, 18) == Span("run.yaml", 7, text.index("${X}"), text.index("${X}") + 4)
    assert not found.notes


def test_a_container_in_json_is_one_in_yaml() -> None:
    """The words stand where they are written, so that they can be changed there."""
    text = '{"kind": "Job", "spec": {"pods": [{"command": ["a", "b"],\n "args": ["x.y=2"]}]}}'
    (words,) = read(text, "job.json").scripts
    assert [(text[word.span.start : word.span.end], word.span.line) for word in words] == [
        ('"a"', 1), ('"b"', 1), ('"x.y=2"', 2),
    ]  # fmt: skip


def test_scripts_of_sky_files_keep_the_shells_variables() -> None:
    """Scripts of sky files keep the shells variables."""
    text = "resources: {accelerators: {H100: 8}}\nsetup: pip install x\nrun: |\n  python t.py \\\n    a=${A}\n"
    found = read(text)
    assert [script.text for (script,) in found.scripts] == ["pip install x", "python t.py \\\n  a=${A}\n"]
    assert values(found)["resources.accelerators.H100"] == 8
    assert not found.notes


def test_a_word_below_run_is_no_script() -> None:
    """A word below run is no script."""
    assert not read("run: first\nargs: {a: 1}\n").scripts


# TOML


def test_toml_values_have_places_and_empty_tables_count() -> None:
    """Toml values have places and empty tables count."""
    text = (
        'seq_len = 131_072 # é\nmodel.name = "é"\n[model.ac]\n[a]\nb = { c = 1, d = [1, 2,\n 3] }\n'
        "[[s]]\nn = 1\n[[s]]\nn = 2\n"
    )
    found = read(text, "run.toml")
    assert found.form == "toml"
    assert values(found) == {
        "seq_len": 131072, "model.name": "é", "model.ac": {}, "a.b.c": 1, "a.b.d": [1, 2, 3], "s.0.n": 1, "s.1.n": 2,
    }  # fmt: skip
    assert written(text, found, "seq_len") == "131_072"
    assert written(text, found, "model.name") == '"é"'
    assert written(text, found, "a.b.d") == "[1, 2,\n 3]"
    assert written(text, found, "s.1.n") == "2"


def test_pasted_files_go_by_their_headings() -> None:
    """Pasted files go by their headings."""
    text = "# infer.toml\n[model]\nname = 'x'\n\n# train.toml\nlr = 1e-6\n[model]\nname = 'y'\n[model.ac]\n"
    for name in ("paste.toml", "paste.txt", "-"):
        assert values(read(text, name)) == {
            "infer.model.name": "x", "train.lr": 1e-6, "train.model.name": "y", "train.model.ac": {},
        }  # fmt: skip


def test_a_single_heading_is_only_a_comment() -> None:
    """A single heading is only a comment."""
    assert values(read("# uv run rl @ a.toml\na = 1\n", "a.toml")) == {"a": 1}
    assert values(read("# a.toml\na = 1\n", "a.toml")) == {"a": 1}


def test_tables_that_stand_twice_are_merged_with_a_note() -> None:
    """Tables that stand twice are merged with a note."""
    found = read("[model]\nname = 'x'\na = 1\n[model]\nname = 'y'\n", "run.toml")
    assert values(found) == {"model.name": "y", "model.a": 1}
    assert "model" in found.notes[0]


@pytest.mark.parametrize(
    "text",
    ["a = \n", "[a\n", "a = [1,\n", "a = {b = 1\n", "a = 1 2\n", "a\n", "= 1\n", 'a = "x\n', "a.b = 1\na = 2 ,\n"],
)
def test_toml_that_is_none_has_a_line(text: str) -> None:
    """Toml that is none has a line."""
    with pytest.raises(InputError, match=r"run\.toml:\d+: is not valid TOML"):
        read(f"ok = 1\n{text}", "run.toml")


# JSON


def test_json_values_have_places() -> None:
    """Json values have places."""
    text = '{"zero": {"stage": 3, "offload": {"device": "cpu"}}, "é": ["\\u00e9", 1.5e-3, null, true], "x": {}}'
    found = read(text, "ds.json")
    assert found.form == "json"
    assert values(found) == {
        "zero.stage": 3, "zero.offload.device": "cpu", "é": ["é", 1.5e-3, None, True], "x": {},
    }  # fmt: skip
    assert written(text, found, "zero.offload.device") == '"cpu"'
    assert values(read(text, "-")) == values(found)


def test_json_that_is_none_has_a_line() -> None:
    """Json that is none has a line."""
    with pytest.raises(InputError, match=r"ds\.json:2: is not valid JSON"):
        read('{"a": 1,\n "b": ]}', "ds.json")
    with pytest.raises(InputError, match=r"ds\.json:1: is not valid JSON"):
        read("{'a': 1}", "ds.json")


# What was written is what is read

_NAMES = st.text(alphabet="abcé_0", min_size=1, max_size=5).filter(lambda name: not name[0].isdigit())
_SCALARS = (
    st.integers(-(2**40), 2**40)
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(
        alphabet=st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="$\x85\u2028\u2029\ufeff"),
        max_size=12,
    )
)
_TREES = st.dictionaries(
    _NAMES,
    st.recursive(
        _SCALARS | st.lists(_SCALARS, max_size=3),
        lambda inner: st.dictionaries(_NAMES, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)  # fmt: skip


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) and value else {f"{prefix}{key}": value}
    return flat


@given(_TREES, st.booleans())
def test_yaml_that_was_dumped_reads_back(tree: dict[str, Any], flow: bool) -> None:
    """Yaml that was dumped reads back."""
    text = yaml.safe_dump(tree, allow_unicode=True, default_flow_style=flow, sort_keys=False, width=60)
    found = read(text)
    assert values(found) == _flat(tree)
    for setting in found.settings:
        raw = text.encode()[setting.span.start : setting.span.end].decode()
        # A sequence in a block goes on at the column of its first dash.
        column = len(text.encode()[: setting.span.start].decode().rpartition("\n")[2])
        assert yaml.safe_load(" " * column + raw) == setting.value
        assert text.encode()[: setting.span.start].count(b"\n") + 1 == setting.span.line


@given(_TREES, st.sampled_from([None, 2]), st.booleans())
def test_json_that_was_dumped_reads_back(tree: dict[str, Any], indent: int | None, ascii_only: bool) -> None:
    """Json that was dumped reads back."""
    text = json.dumps(tree, indent=indent, ensure_ascii=ascii_only)
    found = read(text, "x.json")
    assert values(found) == _flat(tree)
    for setting in found.settings:
        assert json.loads(text.encode()[setting.span.start : setting.span.end]) == setting.value


def _toml(tree: dict[str, Any], table: str = "") -> str:
    """A tree as TOML, with tables for mappings."""
    lines = [
        f"{json.dumps(key)} = {json.dumps(value, ensure_ascii=False)}"
        for key, value in tree.items()
        if not isinstance(value, dict)
    ]
    lines = [line.replace("\x7f", "") for line in lines]
    for key, value in tree.items():
        if isinstance(value, dict):
            name = f"{table}.{json.dumps(key, ensure_ascii=False)}" if table else json.dumps(key, ensure_ascii=False)
            lines += [f"[{name}] # one", _toml(value, name)]
    return "\n".join(lines)


@given(_TREES)
def test_toml_that_was_dumped_reads_back(tree: dict[str, Any]) -> None:
    """Toml that was dumped reads back."""
    text = _toml(tree)
    found = read(text, "x.toml")
    assert values(found) == _flat(tomllib.loads(text)) == _flat(tree)
    for setting in found.settings:
        if setting.value != {}:
            raw = text.encode()[setting.span.start : setting.span.end].decode()
            assert tomllib.loads(f"v = {raw}")["v"] == setting.value
