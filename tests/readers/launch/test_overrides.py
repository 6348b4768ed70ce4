"""Overrides of a command line reach what a configuration derives from them, and whatever is written there is data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.facts.launch import Setting, Span
from rlsize.readers.frameworks import frameworks
from rlsize.readers.launch.documents import read_settings
from rlsize.readers.launch.launch import read_launch
from rlsize.readers.profiles import Catalogue

if TYPE_CHECKING:
    from pathlib import Path

    from rlsize.facts.launch import Value

CONFIGURATION = "a: {b: 1, c: [1, 2]}\nd: ${a.b}\ne: ${mul:${a.b},3}\n"


def values(*overrides: tuple[str, Value]) -> dict[str, Value]:
    """What the configuration says beside overrides."""
    settings = [Setting(key, value, Span("-", 1)) for key, value in overrides]
    read = read_settings(CONFIGURATION, "x.yaml", lambda _: None, settings)
    return {setting.key: setting.value for setting in read.settings}


def test_what_is_derived_follows_an_override() -> None:
    """The last one counts, with or without what Hydra puts before it."""
    assert values() == {"a.b": 1, "a.c": [1, 2], "d": 1, "e": 3}
    assert values(("a.b", 5)) == {"a.b": 5, "a.c": [1, 2], "d": 5, "e": 15}
    assert values(("a.b", 5), ("++a.b", 7))["e"] == 21


@given(st.text(st.characters(codec="utf-8"), max_size=30), st.one_of(st.integers(), st.text(max_size=20), st.none()))
def test_a_key_that_the_configuration_does_not_begin_with_changes_nothing(key: str, value: Value) -> None:
    """Flags of the program are no keys of its file."""
    if key.lstrip("+~").partition(".")[0] not in {"a", "d", "e"}:
        assert values((key, value)) == values()


@pytest.mark.parametrize(
    ("key", "derived"), [("a" + ".b" * 5000, 1), ("a..b", 1), ("a.", 1), ("a.c.0", 1), ("a.b.c.d", None)]
)
def test_any_key_is_read_or_left_out(key: str, derived: int | None) -> None:
    """However deep it is; one below a plain value makes that a mapping."""
    assert values((key, 9)).get("d") == derived


@pytest.mark.parametrize(
    "command", ["'uv run x", "", "a b c", "$(touch canary)", "uv run examples/run_grpo.py grpo.x=1"]
)
def test_a_command_that_is_handed_to_slurm_is_data(tmp_path: Path, command: str) -> None:
    """Whatever it holds, the launch beside it is read, and nothing is run."""
    script = tmp_path / "run.sh"
    script.write_text(
        f"export COMMAND={command!r}\nsbatch ray.sub\nuv run examples/run_grpo.py policy.model_name=a/b\n"
    )
    assert read_launch(str(script), frameworks(Catalogue())).reading.value("policy.model_name") == "a/b"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.sh"]
