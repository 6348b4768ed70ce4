"""How many files lie between a flag and the equations that its answer rests on."""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from typer.testing import CliRunner

import rlsize
from rlsize.shell.app import app

if TYPE_CHECKING:
    from types import FrameType

PACKAGE = Path(rlsize.__file__).parent
MOST = 10
STEP = (
    *("predict", "step", "--model", "qwen3-8b", "--gpu", "h100-sxm", "--rollout-gpus", "8", "--trainer-gpus", "8"),
    *("--mode", "async", "--prompts", "248", "--group", "8", "--response-tokens", "2048"),
)


def test_from_the_model_to_an_equation_of_the_predicted_step_are_ten_files_at_most() -> None:
    """The row of the quantity, the command, and whoever calls on, to the equation; what all commands share left out."""
    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:  # what other tests asked for is remembered here
        walks = fresh.submit(walked).result()
    assert any("train_step_kernels" in path for path in walks)
    assert any("decode_step" in path for path in walks)
    row = 1
    long = [" <- ".join(files) for files in walks.values() if row + len(files) > MOST]
    said = "\n".join(long)
    assert not long, f"call these equations from nearer the command:\n{said}"


def walked() -> dict[str, list[str]]:
    """The files from each file of equations that a predicted step calls to the command, by the first call."""
    walks: dict[str, list[str]] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path not in walks and path.startswith(f"{PACKAGE}/equations/"):
            walks[path] = files_of(frame)

    sys.setprofile(note)
    try:
        assert CliRunner().invoke(app, STEP).exit_code == 0
    finally:
        sys.setprofile(None)
    return {path: files for path, files in walks.items() if any(name.startswith("commands/") for name in files)}


def files_of(frame: FrameType | None) -> list[str]:
    """The files of the program on the stack, from the one that runs up to the command."""
    found: list[str] = []
    while frame:
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(PACKAGE) and (name := str(path.relative_to(PACKAGE))) not in found:
            found.append(name)
        frame = frame.f_back
    return [name for name in found if not name.startswith("shell/")]
