"""Every form and framework, read to figures that were worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rlsize.readers.logs.frameworks import frameworks
from rlsize.readers.logs.reading import FORMATS, read_log
from rlsize.readers.logs.recognising import Asked, is_log, kind_of

DATA = Path(__file__).parent / "data"
EXPECTED: list[dict[str, Any]] = yaml.safe_load((DATA / "expected.yaml").read_text(encoding="utf-8"))


def names(entry: dict[str, Any]) -> str:
    """The name of an entry's file."""
    return str(entry["file"])


@pytest.mark.parametrize("entry", EXPECTED, ids=names)
def test_a_log_gives_the_figures_that_stand_in_it(entry: dict[str, Any]) -> None:
    """Framework, form, mode, steps and figures are those of the hand-checked table."""
    log = read_log(str(DATA / entry["file"]))
    assert (log.framework, log.form, log.mode) == (entry["framework"], entry["form"], entry["mode"])
    assert [step.step for step in log.steps] == entry["steps"]
    for figure in entry["figures"]:
        found = getattr(log.steps[figure["at"]], figure["field"])
        assert found == pytest.approx(figure["value"], rel=1e-6), figure
        assert figure["field"] == "updates" or log.keys[figure["field"]]
    for field in entry.get("absent", ()):
        assert all(getattr(step, field) is None for step in log.steps), field


@pytest.mark.parametrize("entry", EXPECTED, ids=names)
def test_a_log_is_recognised_by_its_first_bytes(entry: dict[str, Any]) -> None:
    """The head of every file names its framework, which --format also takes."""
    file = DATA / entry["file"]
    head = next(file.iterdir()) if file.is_dir() else file
    kind = kind_of(head.read_bytes(), Asked(loose=entry["framework"] == "other"))
    own = "text that no form but the loose ones knows: give it one of its own in readers/logs/forms"
    assert kind is not None, f"{file.name} is {own}"
    assert kind.framework.name == entry["framework"]
    assert entry["framework"] in FORMATS
    assert read_log(str(file), format=entry["framework"]).steps


def test_no_file_and_no_framework_is_left_out() -> None:
    """Every file of the data has its entry, and every framework its file."""
    here = {file.name for file in DATA.iterdir()} - {"expected.yaml"}
    differing = sorted({entry["file"] for entry in EXPECTED} ^ here)
    assert not differing, f"{DATA / 'expected.yaml'} has what each sample says: {differing}"
    lacking = sorted({entry["framework"] for entry in EXPECTED} ^ set(frameworks()))
    assert not lacking, f"add a sample to {DATA}: {lacking}"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\x00\xff" * 500,
        b'{"model": "qwen3-8b", "rates": {"1": 2}}',
        b'{"step": 1, "loss": 0.5}\n',
        b"# HELP vllm:num_requests_running Number\nvllm:num_requests_running 3\n",
        b"INFO 03-01 Engine 000: Avg prompt throughput: 10 tokens/s, Avg generation throughput: 17.9 tokens/s\n",
        b"step: 3 - a: 1\nperf 3 is fine\n{'model': 'x'}\n",
    ],
)
def test_what_is_no_log_is_not_recognised(tmp_path: Path, text: bytes) -> None:
    """Pages, configurations and text with words of a log stay unrecognised."""
    file = tmp_path / "text"
    file.write_bytes(text)
    assert not is_log(str(file))
