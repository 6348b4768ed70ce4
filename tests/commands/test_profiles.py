"""`rlsize profiles`: list, show and check."""

from __future__ import annotations

import csv
import io
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import tries
from typer.testing import CliRunner

from rlsize.readers.profiles import FOLDERS, VARIABLE, Catalogue
from rlsize.shell.app import app

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result

CONFIG = {
    "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False,
    "max_position_embeddings": 131072,
}  # fmt: skip
LINK = """\
rlsize: {kind: link, version: 1}
name: my-link
title: My link
specification:
  scope: network
  bandwidth_one_direction: {value: 10 GB/s, source: us, verified: false, note: guessed}
sources:
  us: measured by us on our machines
"""


@pytest.fixture(autouse=True)
def _no_profiles_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user folder with one link."""
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "my-link.yaml").write_text(LINK)
    return tmp_path


def run(*arguments: str) -> Result:
    """The command's result, with stdout and stderr apart."""
    return CliRunner().invoke(app, ["profiles", *arguments])


def answer(*arguments: str) -> dict[str, Any]:
    """The JSON document of a command that succeeds."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


class TestList:
    """`rlsize profiles list`."""

    def test_every_profile_is_listed(self) -> None:
        """All kinds, all names."""
        rows = answer("list")["rows"]
        catalogue = Catalogue()
        assert {kind: [row["name"] for row in found] for kind, found in rows.items()} == {
            kind: catalogue.names(kind) for kind in FOLDERS if catalogue.names(kind)
        }

    @pytest.mark.parametrize("word", ["gpu", "gpus", "GPU"])
    def test_one_kind(self, word: str) -> None:
        """A kind, in the singular or the plural."""
        found = answer("list", word)
        assert list(found["rows"]) == ["gpu"]
        h100 = next(row for row in found["rows"]["gpu"] if row["name"] == "h100-sxm")
        assert h100["bf16_flops"] == 989e12
        assert h100["scale_up_bytes_per_second"] == 450e9
        assert h100["unverified"] == ""

    def test_unverified_numbers_are_marked(self) -> None:
        """The table marks the number; the row names all of them."""
        rows = answer("list", "gpu")["rows"]["gpu"]
        tpu = next(row for row in rows if row["name"] == "tpu-v7")
        assert "specification.memory_bandwidth" in tpu["unverified"]
        assert "* unverified: " in run("list", "gpu").stdout

    @pytest.mark.parametrize("kind", FOLDERS)
    def test_tables_fit_eighty_columns(self, kind: str) -> None:
        """A narrow terminal shows all of it."""
        result = run("list", kind)
        assert result.exit_code == 0
        assert max(len(line) for line in result.stdout.splitlines()) <= 80

    def test_tables_do_not_break_names_or_numbers(self) -> None:
        """Names, rates and bandwidths stand in one piece."""
        text = run("list").stdout
        for piece in (
            "2,500 TFLOP/s",
            "450 GB/s",
            "nemotron-3-nano-30b-a3b",
            "1026.41B",
            "hyperstack-a100-pcie-nvlink-8x",
        ):
            assert piece in text
        for kind in ("link", "model", "price", "cluster"):
            for name in Catalogue().names(kind):
                assert name in text

    def test_csv_has_every_cell(self) -> None:
        """Spreadsheets get base units."""
        rows = list(csv.DictReader(io.StringIO(run("list", "price", "--csv").stdout)))
        nebius = next(row for row in rows if row["name"] == "nebius-h100-sxm-8x")
        assert (nebius["per_gpu_hour_usd"], nebius["spot_per_gpu_hour_usd"]) == ("2.95", "1.25")
        assert (nebius["region"], nebius["as_of"], nebius["as_of_meaning"]) == ("eu-north1", "2026-11-20", "read")

    def test_an_unknown_kind_is_refused(self) -> None:
        """With the kinds that there are."""
        result = run("list", "gpuz")
        assert result.exit_code == 2
        assert "did you mean gpu" in result.stderr

    def test_user_folders_come_on_top(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """By flag and by environment."""
        assert "my-link" in run("list", "link", "--profiles", str(folder)).stdout
        monkeypatch.setenv(VARIABLE, str(folder))
        assert "my-link" in run("list", "link").stdout


class TestShow:
    """`rlsize profiles show`."""

    def test_every_number_has_unit_and_source(self) -> None:
        """In JSON the bare value with its unit, the source's key, and the sources."""
        found = answer("show", "H100")
        rates = {row["path"]: row for row in found["rows"]["specification"]}
        assert rates["specification.bf16_dense"]["value"] == 989e12
        assert rates["specification.bf16_dense"]["unit"] == "FLOP/s"
        assert rates["specification.scale_up.bandwidth_both_directions"]["value"] == 900e9
        sources = {row["key"] for row in found["rows"]["sources"]}
        assert {row["source"] for row in rates.values()} - {""} <= sources
        assert found["results"]["name"] == "h100-sxm"

    def test_units_reach_every_number_with_one(self) -> None:
        """Whatever a field declares is shown, nested mappings included."""
        rows = answer("show", "h100")["rows"]
        units = {row["path"]: row["unit"] for row in rows["kernels"]}
        assert units["kernels.gemm.bf16.fixed"] == "s"

    def test_people_see_values_with_units(self) -> None:
        """The table."""
        text = run("show", "h100").stdout
        for piece in ("989 TFLOP/s", "3,350 GB/s", "450 GB/s", "900 GB/s", "700 W", "3.554 us", "also called: h100"):
            assert piece in text

    def test_unverified_numbers_are_marked_and_warned_of(self) -> None:
        """On the number, with its note, and in a sentence on stderr."""
        result = run("show", "h200-sxm")
        assert result.exit_code == 0
        assert "151.4 GB (unverified)" in result.stdout
        assert "specification.memory_usable" in result.stderr
        found = answer("show", "h200-sxm")
        usable = next(row for row in found["rows"]["specification"] if row["path"].endswith("memory_usable"))
        assert (usable["verified"], found["results"]["unverified_numbers"]) == (False, 1)
        assert "disagree" in usable["note"]

    def test_a_verified_profile_warns_of_nothing(self) -> None:
        """No noise where there is no doubt."""
        assert run("show", "h100").stderr == ""

    @pytest.mark.long(by_day=1)
    @pytest.mark.parametrize("kind", [kind for kind in FOLDERS if Catalogue().names(kind)])
    def test_every_profile_has_a_page_within_eighty_columns(self, kind: str) -> None:
        """One of each kind in full, at the width of a narrow terminal."""
        for name in Catalogue().names(kind)[:5]:
            result = run("show", name, "--kind", kind)
            assert result.exit_code == 0, name
            assert max(len(line) for line in result.stdout.splitlines()) <= 80

    def test_a_model_shows_its_shape(self) -> None:
        """Dimensions carry the source of the architecture."""
        rows = answer("show", "qwen3-32b")["rows"]
        layers = next(row for row in rows["architecture"] if row["path"] == "architecture.layers")
        assert (layers["value"], layers["source"]) == (64, "config")

    def test_a_name_of_two_kinds_asks_which(self) -> None:
        """The link and the cluster of one cloud share a name."""
        result = run("show", "gcp-a3-mega")
        assert result.exit_code == 2
        assert "--kind link or --kind cluster" in result.stderr
        assert answer("show", "gcp-a3-mega", "--kind", "link")["results"]["kind"] == "link"

    @pytest.mark.parametrize("name", ["../../etc/passwd", "nosuch", "", "x" * 5000])
    def test_an_unknown_name_is_refused(self, name: str) -> None:
        """Without a traceback, with exit code 2."""
        result = run("show", name)
        assert result.exit_code == 2
        assert "there is no profile" in result.stderr
        assert len(result.stderr) < 1000

    def test_the_nearest_names_are_offered(self) -> None:
        """A slip costs one look."""
        assert "qwen3-32b" in run("show", "qwen3-23b").stderr

    def test_the_page_says_where_a_profile_comes_from(self, folder: Path) -> None:
        """A shipped file by its place among the profiles, a user's file by its path."""
        assert "file: links/nvlink4.yaml" in run("show", "nvlink4").stdout
        found = answer("show", "my-link", "--profiles", str(folder))
        assert found["results"]["file"] == str(folder / "links" / "my-link.yaml")


class TestCheck:
    """`rlsize profiles check`."""

    def test_the_shipped_profiles_are_sound(self) -> None:
        """Exit code 0 and their number."""
        found = answer("check")
        assert found["results"]["faults"] == 0
        counts = {row["kind"]: row["profiles"] for row in found["rows"]["kinds"]}
        assert counts == {kind: len(Catalogue().names(kind)) for kind in counts}
        assert counts["gpu"] >= 30

    def test_a_sound_folder(self, folder: Path) -> None:
        """Only its own profiles are counted."""
        assert answer("check", str(folder))["results"]["profiles"] == 1

    def test_all_faults_are_told_at_once(self, folder: Path) -> None:
        """Exit code 2, since the input is wrong; file, line and remedy of each."""
        (folder / "links" / "my-link.yaml").write_text(LINK.replace("network", "moon").replace("title", "titel"))
        (folder / "links" / "other.yaml").write_text("\x00")
        result = run("check", str(folder))
        assert result.exit_code == 2
        assert result.stdout == ""
        for piece in ("my-link.yaml:3: titel", "my-link.yaml:5: specification.scope", "other.yaml"):
            assert piece in result.stderr

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        """Exit code 2 and the path."""
        result = run("check", str(tmp_path / "nowhere"))
        assert result.exit_code == 2
        assert "no such folder" in result.stderr


RATES = """\
rlsize: {kind: rates, version: 1}
measured_at: '2026-11-20T09:30:00+00:00'
source: {method: observe}
instance_tokens_per_second: {mean: 3620 tok/s, spread: 140 tok/s, instances: 13}
"""


def test_rates_are_listed_shown_and_checked(tmp_path: Path) -> None:
    """A rates file in a folder of profiles goes by the name of its file."""
    (tmp_path / "rates").mkdir()
    (tmp_path / "rates" / "node-a.yaml").write_text(RATES)
    assert answer("check", str(tmp_path))["results"]["profiles"] == 1
    listed = answer("list", "rates", "--profiles", str(tmp_path))["rows"]["rates"]
    assert [row["name"] for row in listed] == ["node-a"]
    assert answer("show", "node-a", "--profiles", str(tmp_path))["results"]["kind"] == "rates"


WORDS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["", "-", "--", "0 ± 1", "1e-300", "1e30", "nan", "/", "..", "/dev/null", "~", "gpu", "gpus", "h100", "\0"]
    ),
)


@pytest.mark.parametrize(
    "good",
    [
        ["list", "gpu"],
        ["show", "h100", "--kind", "gpu"],
        ["check", "FOLDER"],
        ["add-model", "CONFIG", "--name", "mine"],
    ],
    ids=lambda good: good[0],
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=tries(40))
@given(data=st.data())
def test_junk_gives_an_answer_or_a_message(folder: Path, data: st.DataObject, good: list[str]) -> None:
    """A good command line with one or two words replaced: exit code 0 or 2, never a traceback."""
    shutil.rmtree(folder / "written", ignore_errors=True)
    config = folder / "config.json"
    config.write_text(json.dumps(CONFIG))
    known = {"FOLDER": str(folder), "CONFIG": str(config)}
    line = [known.get(word, word) for word in good]
    for place in data.draw(st.sets(st.integers(1, len(line) - 1), min_size=1, max_size=2)):
        if not line[place].startswith("--"):
            line[place] = data.draw(WORDS)
    output = ["--output", str(folder / "written")] if good[0] == "add-model" else []
    result = run(*line, *output)
    assert result.exception is None or isinstance(result.exception, SystemExit), (line, result.exception)
    assert result.exit_code in {0, 2}, (line, result.output)
    assert result.stdout if result.exit_code == 0 else result.stderr


def test_help_opens_with_a_sentence_and_an_example() -> None:
    """Each command can be learnt by pasting a line."""
    for command in ("list", "show", "check", "add-model"):
        text = run(command, "--help").stdout
        assert f"Example:  rlsize profiles {command}" in text
