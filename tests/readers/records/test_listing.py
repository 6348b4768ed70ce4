"""Files of records: every row is read, or refused with a reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import InputError, Refused
from rlsize.facts.records import Record
from rlsize.readers.profiles import Catalogue
from rlsize.readers.records.listing import classes, listed, profiles_of, read_records

CATALOGUE = Catalogue()


def test_every_class_is_found_by_listing() -> None:
    """Each module with a class has what reading needs, under its own name."""
    for name, module in classes().items():
        assert name == module.CLASS
        assert callable(module.matches)
        assert callable(module.record)


def test_rows_without_a_class_stay_refused(made_up: Any, tmp_path: Path) -> None:
    """With their own name, or their place in the file."""
    file = tmp_path / "runs.yaml"
    file.write_text("- {run_time_s: 1, work: 2}\n- 7\n- {id: 12, colour: green}\n- {id: x, run_time_s: 1}\n")
    found = read_records([file], CATALOGUE, {"made_up": made_up})
    assert [entry.record.id for entry in found.records] == ["runs.yaml#1"]
    assert [(row.id, row.class_name, row.reason) for row in found.refused] == [
        ("runs.yaml#2", "", "is not a mapping of fields"),
        ("12", "", "has fields of no known class of record"),
        ("x", "made_up", "says no work"),
    ]


def test_a_row_of_two_classes_is_read_as_the_first_that_takes_it(made_up: Any) -> None:
    """And says so among what was assumed."""
    row = {"id": "x", "run_time_s": 1.0, "work": 2.0, "tp": 1}
    found = listed([("f#1", row)], CATALOGUE, {"one": made_up, "two": made_up})
    assert found.records[0].class_name == "one"
    assert found.records[0].record.assumed == ("fields of two too; read as one",)


def test_copies_are_left_out_and_namesakes_are_told(made_up: Any) -> None:
    """The same row twice counts once; another row of the same name counts."""
    row = {"id": "x", "run_time_s": 1.0, "work": 2.0}
    rows = [("f#1", row), ("f#2", dict(row)), ("f#3", {**row, "work": 3.0})]
    found = listed(rows, CATALOGUE, {"made_up": made_up})
    assert (len(found.records), found.copies, found.repeated) == (2, 1, ("x",))


@pytest.mark.parametrize("content", ["a: 1", "text", "- &x 1", "- {a: 1, a: 2}", "\0", "- [" * 60])
def test_what_is_no_list_is_a_fault(tmp_path: Path, content: str) -> None:
    """With the file's name, and no traceback."""
    file = tmp_path / "runs.yaml"
    file.write_text(content)
    with pytest.raises(InputError, match=r"runs\.yaml"):
        read_records([file], CATALOGUE)


def test_profiles_that_are_not_there_are_a_refusal() -> None:
    """A record without a GPU, or with unknown names, is not guessed at."""
    look_up = profiles_of(CATALOGUE)
    said: dict[str, Any] = {"id": "x", "source_id": "s", "trust": "high", "gpus": 1, "stack": "vllm"}
    assert look_up(Record(model="qwen3-8b", gpu="h100-sxm", **said)).gpu.name
    for model, gpu in (("qwen3-8b", ""), ("qwen3-8b", "abacus"), ("gpt-9", "h100-sxm")):
        with pytest.raises(Refused):
            look_up(Record(model=model, gpu=gpu, **said))


NOTHING: st.SearchStrategy[Any] = st.sampled_from(
    ["", "unset", "TP2", "x" * 300, None, True, 0, -1, 1e308, float("nan"), float("inf"), [], {}]
)
SAID: st.SearchStrategy[Any] = st.one_of(NOTHING, st.integers(), st.floats(), st.text(max_size=20))
FIELDS = (
    "id", "model", "gpu", "gpus", "engine", "stack", "framework", "parallel", "dtype", "precision", "input_len",
    "output_len", "concurrency", "num_requests", "ttft_ms", "tpot_ms", "output_tok_s_total", "metric", "seq_len",
    "tokens_per_s_per_gpu", "step_time_s", "sync_time_s", "method", "what", "peak_gib_per_gpu", "placement", "trust",
    "global_batch", "micro_batch", "tp", "pp", "gpus_rollout", "gpus_train", "algorithm", "payload",
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(FIELDS), SAID))
def test_any_row_is_a_record_or_a_refusal(row: dict[str, Any]) -> None:
    """Whatever the fields say, a class reads the row or says why not."""
    found = listed([("f#1", row)], CATALOGUE, classes())
    assert len(found.records) + len(found.refused) == 1
    assert all(refusal.reason for refusal in found.refused)
