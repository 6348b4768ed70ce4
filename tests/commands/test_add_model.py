"""`rlsize profiles add-model`: from a config.json to a profile that the catalogue takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rlsize.readers.profiles import Catalogue

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIGS = Path(__file__).parents[1] / "readers" / "data" / "huggingface"
LLAMA = str(CONFIGS / "llama3.1-8b.json")


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test runs in an empty folder."""
    monkeypatch.chdir(tmp_path)


def test_the_profile_can_be_used_at_once(rlsize: Callable[..., Any]) -> None:
    """What was written is found, checked and shown; the counts are those of the released weights."""
    ran = rlsize("profiles", "add-model", LLAMA, "--name", "mine", "--output", "own", "--json")
    assert ran.code == 0
    assert ran.results["params"] == 8_030_261_248
    assert ran.results["active_params"] == 7_504_924_672
    assert ran.results["kv_bytes_per_token"] == 131_072
    assert ran.results["profile"] == str(Path("own/models/mine.yaml"))
    assert rlsize("profiles", "check", "own").code == 0
    model = Catalogue(["own"]).get("model", "mine")
    assert model.computed is not None
    assert model.computed.params == 8_030_261_248


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.json")), ids=lambda path: path.stem)
def test_every_family_makes_a_profile_without_a_fault(path: Path, rlsize: Callable[..., Any]) -> None:
    """Dense, MoE, latent, sliding, linear and Mamba models all pass the check of the catalogue."""
    assert rlsize("profiles", "add-model", str(path), "--name", "mine", "--output", "own").code == 0
    assert Catalogue(["own"]).check("own") == []


def test_the_parts_are_shown(rlsize: Callable[..., Any]) -> None:
    """The table holds the bill part by part, and it adds up."""
    document = rlsize("profiles", "add-model", str(CONFIGS / "qwen3-30b-a3b.json"), "--json").document
    rows = document["rows"]["parts"]
    assert [row["part"] for row in rows] == ["embedding", "output head", "attention", "moe", "norms"]
    assert sum(row["params"] for row in rows) == document["results"]["params"]
    assert sum(row["active_params"] for row in rows) == document["results"]["active_params"]


def test_nothing_is_overwritten_without_force(rlsize: Callable[..., Any]) -> None:
    """The second time is refused and changes nothing; --force replaces the file."""
    target = Path("own/models/mine.yaml")
    add = ("profiles", "add-model", LLAMA, "--name", "mine", "--output", "own")
    assert rlsize(*add).code == 0
    target.write_text("kept\n", encoding="utf-8")
    refused = rlsize(*add)
    assert refused.code == 2
    assert "--force replaces it" in refused.stderr
    assert target.read_text(encoding="utf-8") == "kept\n"
    assert rlsize(*add, "--force").code == 0
    assert target.read_text(encoding="utf-8").startswith("rlsize: {kind: model, version: 1}")


def test_a_wrong_configuration_leaves_nothing_behind(rlsize: Callable[..., Any]) -> None:
    """All faults are told, exit code 2, and neither file nor folder is made."""
    Path("config.json").write_text('{"model_type": "llama", "hidden_size": "wide"}', encoding="utf-8")
    ran = rlsize("profiles", "add-model", "config.json", "--output", "own")
    assert ran.code == 2
    assert ran.stdout == ""
    assert "hidden_size: wide is not a whole number" in ran.stderr
    assert "num_hidden_layers: is missing" in ran.stderr
    assert not Path("own").exists()


def test_no_half_written_file_is_left(rlsize: Callable[..., Any]) -> None:
    """After writing, the folder holds the profile and nothing else."""
    rlsize("profiles", "add-model", LLAMA, "--name", "mine", "--output", "own")
    assert [path.name for path in Path("own/models").iterdir()] == ["mine.yaml"]


def test_a_folder_that_cannot_be_made_is_told(rlsize: Callable[..., Any]) -> None:
    """A file in the way of the folder is a message, not a traceback."""
    Path("own").write_text("", encoding="utf-8")
    ran = rlsize("profiles", "add-model", LLAMA, "--output", "own")
    assert ran.code == 2
    assert "cannot be written" in ran.stderr


@pytest.mark.parametrize("name", ["../outside", "a/b", "UPPER", "", " "])
def test_a_name_cannot_lead_elsewhere(name: str, rlsize: Callable[..., Any]) -> None:
    """A name is the stem of a file in the folder; an empty one counts as not given."""
    ran = rlsize("profiles", "add-model", LLAMA, "--name", name, "--output", "own")
    assert ran.code == (2 if name else 0)
    assert not list(Path().glob("*.yaml"))


def test_the_folder_is_that_of_the_user(rlsize: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without --output: --profiles, else RLSIZE_PROFILES, else ./profiles."""
    add = ("profiles", "add-model", LLAMA, "--name", "mine")
    rlsize(*add)
    monkeypatch.setenv("RLSIZE_PROFILES", "environment")
    rlsize(*add)
    rlsize(*add, "--profiles", "flag")
    assert sorted(str(path.parent.parent) for path in Path().rglob("mine.yaml")) == ["environment", "flag", "profiles"]


def test_a_shipped_name_is_warned_about(rlsize: Callable[..., Any]) -> None:
    """Who takes the name of a shipped profile is told that theirs will win."""
    named = rlsize("profiles", "add-model", LLAMA, "--output", "own")
    other = rlsize("profiles", "add-model", LLAMA, "--name", "mine", "--output", "own")
    assert "llama3.1-8b is the name of a shipped profile" in named.stderr
    assert "shipped" not in other.stderr


def test_what_is_left_out_is_warned_about(rlsize: Callable[..., Any]) -> None:
    """Notes of the reader stand in the file and on stderr."""
    ran = rlsize(
        "profiles", "add-model", str(CONFIGS / "deepseek-v3.json"), "--name", "mine", "--output", "own", "--json"
    )
    assert "multi-token-prediction" in " ".join(ran.document["warnings"])
    assert "multi-token-prediction" in Path("own/models/mine.yaml").read_text(encoding="utf-8")


def test_a_repository_names_the_profile(rlsize: Callable[..., Any]) -> None:
    """Name, title and aliases come from _name_or_path where it is a repository."""
    data = json.loads(Path(LLAMA).read_text(encoding="utf-8"))
    Path("config.json").write_text(json.dumps({**data, "_name_or_path": "Org/My-Model"}), encoding="utf-8")
    assert rlsize("profiles", "add-model", ".", "--output", "own").code == 0
    assert Catalogue(["own"]).get("model", "org/my-model").name == "my-model"
