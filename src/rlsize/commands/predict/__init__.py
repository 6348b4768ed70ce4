"""`rlsize predict`: rates and times from model, GPUs and workload, each with its band."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import typer

from rlsize.shell.command import Entry, Group

if TYPE_CHECKING:
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model
    from rlsize.shell.inputs import Inputs


class Predictions(Group):
    """One command a stage, and one for all of them."""

    entries = MappingProxyType(
        {
            "rollout": Entry(
                "",
                "How quickly an engine generates, at which concurrency, and how long an optimizer step's samples take.",
                "predict.rollout",
                "predict_rollout",
            ),
            "train": Entry(
                "",
                "How long the trainer works on an optimizer step, and where the time goes.",
                "predict.train",
                "predict_train",
            ),
            "sync": Entry(
                "",
                "How long a weight sync will take, by class of transport, with a band.",
                "predict.sync",
                "predict_sync",
            ),
            "step": Entry(
                "",
                "How long an optimizer step of an RL loop takes, where it goes, and which mode is the quickest.",
                "predict.step",
                "predict_step",
            ),
        }
    )


def model_and_gpu(inputs: Inputs, side: Literal["rollout", "trainer"]) -> tuple[Model | None, Gpu | None]:
    """What a stage by itself cannot do without; faults are noted."""
    found = inputs.model(), inputs.gpu(side)
    for key, there in zip(("model", "gpu"), found, strict=True):
        if there is None and not inputs.faults:
            inputs.fault(f"the {key} is missing", inputs.flag(key), f"give {inputs.flag(key)}, a profile's name")
    return found


app = typer.Typer(cls=Predictions, no_args_is_help=True, add_completion=False, rich_markup_mode="rich")


@app.callback()
def _predict() -> None:
    """
    Rates and times from model, GPUs and workload, each with its band.

    Example:  rlsize predict rollout --model qwen3-32b --gpu h200-sxm --tensor-parallel 2
    """
