"""The predicted training step as an answer: figures with 80 % bands, where time goes, what the bands come from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.equations import matching, train_step_traffic
from rlsize.equations import train_step as equations
from rlsize.estimates.all_constants import band_sources, constants_of
from rlsize.estimates.belief import drawn_inputs, interval, scattered
from rlsize.estimates.constants_train import STAGE
from rlsize.estimates.figures import apply, numbers
from rlsize.estimates.train_prediction import train_step
from rlsize.facts.figure import Figure
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from rlsize.estimates.belief import BandSource, Belief
    from rlsize.estimates.train_prediction import TrainQuestion, TrainStep

_TOLD = 0.1  # of the variance of the answer; a constant with less is not worth naming


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainPart:
    """
    Where part of the step goes.

    Args:
        name: Which part.
        seconds: Its time in a step.
        share: That time over the whole.
    """

    name: str
    seconds: Figure
    share: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainAnswer:
    """
    The predicted step.

    Args:
        results: The figures that are told, with bands.
        parts: Where the time goes; with the extra passes, all of it.
        doubts: What the band is made of, the largest first.
    """

    results: tuple[Figure, ...]
    parts: tuple[TrainPart, ...]
    doubts: tuple[BandSource, ...]


def predicted_train_step(
    question: TrainQuestion, belief: Belief, seed: int, response_tokens: Figure | None = None
) -> TrainAnswer:
    """
    The step with bands.

    Args:
        question: What is asked, its numbers as figures.
        belief: What is believed about the constants.
        seed: Of the draws.
        response_tokens: Response tokens of the step, for the consumption; None where nobody says.
    """
    step = train_step(apply, question, constants_of(belief))
    drawn = _told(train_step(numbers, question.bare(drawn_inputs(question.figures, seed)), belief.drawn(seed)))
    results = [
        replace(figure, key=key, band=interval(scattered(drawn[key], STAGE.noise, seed, "train")))
        for key, figure in _told(step).items()
    ]
    if response_tokens is not None and response_tokens.known:
        results.append(_consumption(results[0], response_tokens))
    bare = question.bare()
    doubts = band_sources(belief, lambda values: train_step(numbers, bare, values).train_seconds, least=_TOLD)
    return TrainAnswer(results=tuple(results), parts=tuple(_parts(question, step)), doubts=doubts)


def _told(step: TrainStep) -> dict[str, Any]:
    """What is told of a step, by key: figures or draws, as the step is."""
    return {
        "train_seconds": step.train_seconds,
        "update_seconds": step.update_seconds,
        "tokens_per_second": step.tokens_per_second,
        "trained_tokens_per_gpu_second": step.tokens_per_second_per_gpu,
        "mfu_fraction": step.mfu,
        **{f"{name}_seconds": seconds for name, seconds in step.forward_seconds.items()},
    }


def _consumption(train: Figure, response_tokens: Figure) -> Figure:
    """Response tokens consumed per second, with the band of the time turned round."""
    key = "consumption_tokens_per_second"
    found = apply(key, matching.consumption, tokens_per_step=response_tokens, train_seconds=train)
    if train.band is None:
        return found
    ends = [
        numbers(key, matching.consumption, tokens_per_step=response_tokens.number, train_seconds=end)
        for end in train.band
    ]
    return replace(found, band=(ends[1], ends[0]))


def _parts(question: TrainQuestion, step: TrainStep) -> list[TrainPart]:
    """The parts of all updates of the step, and the extra passes."""
    found = []
    for name, seconds in step.parts.items():
        once = (
            seconds
            if isinstance(seconds, Figure)
            else Figure(key=f"{name}_seconds", value=seconds, provenance="default")
        )
        whole = apply(f"{name}_seconds", train_step_traffic.repeated_time, seconds=once, times=question.updates)
        found.append((name, whole))
    found += [(name, replace(seconds, key=f"{name}_seconds")) for name, seconds in step.forward_seconds.items()]
    return [
        TrainPart(
            name=name,
            seconds=seconds,
            share=apply("share_fraction", equations.time_share, part=seconds, whole=step.train_seconds),
        )
        for name, seconds in found
        if seconds.number
    ]
