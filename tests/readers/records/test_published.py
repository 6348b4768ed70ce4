"""The published measurements that ship: every row can be read, and models agree with what their tables count."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rlsize.errors import Refused
from rlsize.readers.profiles import Catalogue
from rlsize.readers.records.parsing import common, dtypes, layout, whole
from rlsize.readers.yaml_documents import read_document

CATALOGUE = Catalogue()
FOLDER = Path(__file__).parents[3] / "benchmarks" / "published"
FILES = ("engine_latency", "memory", "rl_runs", "rl_step", "rollout", "train", "weight_sync")
RECORDS = dict(zip(FILES, (1069, 66, 68, 76, 387, 234, 72), strict=True))
UNREADABLE = {
    "slime_v0.1_blog-001": "names no model",
    "nemo_rl_pr_1052-001": "names no model",
    "vllm_issue_13882-001": "RTX 4060",
}
PARAMS = re.compile(r"params (\d+)")


@cache
def rows(name: str) -> list[dict[str, Any]]:
    """The rows of one file."""
    found: list[dict[str, Any]] = read_document(FOLDER / f"{name}.yaml").data
    return found


def test_all_files_are_there() -> None:
    """Each with its rows, their names unique within it, and a source."""
    assert sorted(path.stem for path in FOLDER.glob("*.yaml")) == sorted(FILES)
    for name in FILES:
        found = rows(name)
        assert len(found) == len({row["id"] for row in found}) == RECORDS[name]
        assert all(len(row["source"]) > 15 for row in found)


@pytest.mark.parametrize("name", FILES)
def test_every_row_can_be_read(name: str) -> None:
    """Names, layout and number types; the few refusals are known."""
    refused = {}
    for row in rows(name):
        try:
            record = common(row, CATALOGUE)
        except Refused as refusal:
            refused[row["id"]] = str(refusal)
            continue
        assert record["stack"], row["id"]
        for key in ("parallel", "rollout_parallel", "train_parallel"):
            found = layout(row.get(key), whole(row, "gpus", 1))
            assert found.tensor * found.pipeline >= 1
        dtypes(row.get("dtype", row.get("precision")))
    for each, reason in refused.items():
        assert UNREADABLE[each] in reason


def test_layouts_fit_the_gpus() -> None:
    """Ranks of one replica divide the GPUs that were measured together."""
    for name in ("engine_latency", "rollout"):
        for row in rows(name):
            if "gpus" in row and "parallel" in row:
                found = layout(row["parallel"], row["gpus"])
                assert row["gpus"] % (found.tensor * found.pipeline * found.data) == 0, row["id"]


def test_models_have_as_many_parameters_as_their_tables_say() -> None:
    """The shapes of llm-foundry were written from memory; up to 4096 tokens its counts agree within half a percent."""
    counted = [row for row in rows("train") if "params" in str(row.get("other_parallel")) and row["seq_len"] <= 4096]
    assert len(counted) > 40
    for row in counted:
        model = CATALOGUE.get("model", common(row, CATALOGUE)["model"])
        said = PARAMS.search(row["other_parallel"])
        assert model.computed is not None
        assert said is not None
        positions = row["seq_len"] * model.architecture.hidden_size
        assert model.computed.params + positions == pytest.approx(int(said.group(1)), rel=0.005), row["id"]


def test_the_rows_carry_no_sentences() -> None:
    """Figures and sources are facts; remarks of others are not ours to ship."""
    for name in FILES:
        assert all("notes" not in row for row in rows(name))
