"""
The pictures of the documentation, drawn by the commands that the pages name.

Run by `make docs-write`. A picture ends in a comment with its command and a digest of the data that it was drawn from:
bytes differ between releases of matplotlib, the data must not, and a test compares them.

    PYTHONPATH=docs python -m generate.pictures
"""

from __future__ import annotations

import hashlib
import json
import shlex
from contextlib import chdir, redirect_stdout
from dataclasses import asdict
from io import StringIO
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import typer

from generate.files import ROOT
from rlsize.reports.chart import Panels
from rlsize.shell.app import app
from rlsize.writers.plot import picture

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.reports.chart import Chart

FOLDER = ROOT / "docs" / "images"
PICTURES: Mapping[str, str] = MappingProxyType(
    {
        "diff.svg": "rlsize diff examples/unmeasured-8b.yaml examples/longer-8b.yaml --gpu-hour 2.5",
        "memory.svg": "rlsize memory --params 70e9 --algorithm grpo --reward-model",
        "predict-rollout.svg": (
            "rlsize predict rollout --model qwen3-32b --gpu h200-sxm --tensor-parallel 2 --prompt-tokens 1024 "
            "--response-tokens 4096 --response-cv 0 --concurrency 144"
        ),
        "predict-step.svg": (
            "rlsize predict step --model qwen3-8b --gpu h100-sxm --prompts 64 --group 8 --prompt-tokens 300 "
            "--response-tokens 3200 --response-cv 0.8 --max-response-tokens 16k --mode colocated --gpus 32"
        ),
        "predict-train.svg": (
            "rlsize predict train --model qwen3-8b --gpu h100-sxm --trainer-gpus 8 --samples 512 "
            "--prompt-tokens 300 --response-tokens 3200 --response-cv 0.8"
        ),
        "simulate-matched.svg": "rlsize simulate examples/matched-loop.yaml --steps 60 --seeds 2 --plot",
        "simulate-queue.svg": (
            "rlsize simulate examples/matched-loop.yaml --instances 14 --max-staleness 20 --losses-per-hour 6 "
            "--restart-seconds 120 --steps 60 --seeds 2 --sweep queue_steps=1:4"
        ),
        "simulate-staleness.svg": (
            "rlsize simulate examples/matched-loop.yaml --steps 40 --seeds 1 --sweep max_staleness=0:5 "
            "--sweep response_cv=0.3,0.6,1"
        ),
        "simulate-tail.svg": (
            "rlsize simulate examples/matched-loop.yaml --steps 40 --seeds 1 --sweep response_cv=0.2:1.4:0.4 "
            "--sweep mode=sync,one-step-off,partial,async"
        ),
        "split.svg": "rlsize split --gpus 64 --rollout-tps 2000 --trainer-tps 6000",
    }
)


def chart(line: str) -> Chart | Panels:
    """
    What a command draws.

    Raises:
        RuntimeError: It draws nothing.
    """
    with chdir(ROOT), redirect_stdout(StringIO()):
        report = typer.main.get_command(app).main(shlex.split(line)[1:], prog_name="rlsize", standalone_mode=False)
    found: Chart | Panels | None = getattr(report, "chart", None)
    if found is None:
        raise RuntimeError(f"draws nothing: {line}")
    return found


def texts(drawn: Chart | Panels) -> list[str]:
    """The words of a chart that every matplotlib writes in the same way."""
    if isinstance(drawn, Panels):
        return [drawn.title, drawn.subtitle, *(chart.title for chart in drawn.charts)]
    found = [drawn.title, drawn.subtitle, drawn.x_label, drawn.y_label]
    found += [mark.label for mark in drawn.marks]
    return [text for text in found if text]


def signature(line: str, drawn: Chart | Panels) -> str:
    """
    The comment at the end of a picture: its command, and a digest of its data to six digits.

    A comment of XML must not hold two hyphens, so the command stands there without those of its flags.
    """
    data = json.dumps(_rounded(asdict(drawn)), sort_keys=True)
    return f"<!-- {line.replace(' --', ' ')}; data {hashlib.sha256(data.encode()).hexdigest()[:16]} -->\n"


def _rounded(part: Any) -> Any:  # noqa: ANN401 (nested data)
    if isinstance(part, dict):
        return {key: _rounded(value) for key, value in part.items()}
    if isinstance(part, (list, tuple)):
        return [_rounded(value) for value in part]
    return f"{part:.6g}" if isinstance(part, float) else part


def main() -> None:
    """Draw all pictures."""
    for name, line in PICTURES.items():
        drawn = chart(line)
        text = picture(drawn, "svg").decode("utf-8")
        (FOLDER / name).write_text(text + signature(line, drawn), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
