"""What makes one doubt a measured train step: too few steps, a wide spread, a trend, a loss that does not fall."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rlsize.facts.measured import TrainMeasured
    from rlsize.facts.model import Model
    from rlsize.measure.train_result import CountedFlops, Heard

WIDE = 0.10  # coefficient of variation above which a rate is in doubt, and a trend too
ENOUGH_STEPS = 3  # timed steps below which a spread says little
TREND_STEPS = 4  # timed steps below which there is no telling first from last
UNSEEN = 0.05  # of a step's seconds that may lie outside all phases
FLOPS_TOLERANCE = 0.01


def step_doubts(measured: TrainMeasured, heard: Heard) -> Iterator[str]:
    """
    What makes one doubt the seconds of a step, in sentences.

    Args:
        measured: The figures.
        heard: What the trainer said.
    """
    seconds = [float(step["seconds"]) for step in heard.timed]
    if len(seconds) < ENOUGH_STEPS:
        yield f"only {len(seconds)} steps were timed, too few to tell how much they scatter; give it more time"
    if measured.scatter and measured.scatter.cv > WIDE:
        yield f"steps scatter by {100 * measured.scatter.cv:.0f} % (coefficient of variation); is there other work?"
    yield from _trend(seconds)
    if measured.losses[-1] >= measured.losses[0] and len(measured.losses) > 1:
        yield f"the loss did not fall over {len(measured.losses)} steps on one batch"
    if measured.micro_batches_timed < measured.micro_batches:
        yield (
            f"{measured.micro_batches_timed} of {measured.micro_batches} micro-batches were timed in each step, and "
            "the rest was scaled by tokens; give it more time for whole steps"
        )
    outside = 1 - sum(sum(step["phases"].values()) for step in heard.timed) / sum(seconds)
    if outside > UNSEEN:
        yield f"{100 * outside:.0f} % of the time of a step lies between its phases and is in no figure"
    if heard.done.get("left_out"):
        yield f"the trainer left out what the model has: {', '.join(heard.done['left_out'])}"


def _trend(seconds: Sequence[float]) -> Iterator[str]:
    """The first half of the steps against the last, where there are enough to tell."""
    if len(seconds) < TREND_STEPS:
        return
    half = len(seconds) // 2
    change = fmean(seconds[-half:]) / fmean(seconds[:half]) - 1
    if abs(change) > WIDE:
        way, cause = ("slower", "throttled") if change > 0 else ("faster", "still warming up")
        yield f"later steps were {way} than earlier ones by {100 * abs(change):.0f} %: not steady, perhaps {cause}"


def flops_doubts(counted: CountedFlops | None) -> Iterator[str]:
    """Where torch's count and the equations differ by more than rounding and routing can."""
    if counted and counted.expected_per_token:
        off = counted.counted_per_token / counted.expected_per_token - 1
        if abs(off) > FLOPS_TOLERANCE:
            yield f"torch counts {100 * off:+.1f} % FLOPs per token against the equations, so MFU is off by as much"


def model_doubts(model: Model | None) -> Iterator[str]:
    """What the trainer does otherwise than a tuned one with layers that keep a state."""
    if model and (model.architecture.linear_attention or model.architecture.mamba):
        yield (
            "layers with a recurrent state carry it on within a pack, and run on the slow reference of transformers "
            "where flash-linear-attention, causal-conv1d or mamba-ssm are not installed"
        )
