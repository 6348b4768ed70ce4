"""`rlsize predict`: rates and times from model, GPUs and workload, each with its band."""

from __future__ import annotations

import typer

from rlsize.shell.command import Entry, Group

_STAGES = {
    "rollout": "How quickly an engine generates, at which concurrency, and how long an optimizer step's samples take.",
    "train": "How long the trainer works on an optimizer step, and where the time goes.",
    "sync": "How long a weight sync will take, by class of transport, with a band.",
    "step": "How long an optimizer step of an RL loop takes, where it goes, and which mode is the quickest.",
}
_ENTRIES = {stage: Entry("", said, f"predict.{stage}", f"predict_{stage}") for stage, said in _STAGES.items()}


class Predictions(Group):
    """One command a stage, and one for all of them."""

    entries = _ENTRIES


app = typer.Typer(cls=Predictions, no_args_is_help=True, add_completion=False, rich_markup_mode="rich")


@app.callback()
def _predict() -> None:
    """
    Rates and times from model, GPUs and workload, each with its band.

    Example:  rlsize predict rollout --model qwen3-32b --gpu h200-sxm --tensor-parallel 2
    """
