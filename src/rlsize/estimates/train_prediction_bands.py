"""The predicted training step as an answer: figures with 80 % bands, where time goes, what the bands come from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from rlsize.equations import matching, train_step_traffic
from rlsize.equations import train_step as equations
from rlsize.estimates.belief import interval, scattered, sensitivity
from rlsize.estimates.constants_train import STAGE
from rlsize.estimates.figures import DRAWS, Draw, apply, numbers, uncertain
from rlsize.estimates.train_prediction import train_step
from rlsize.estimates.train_prediction_question import bare_question, stated
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rlsize.estimates.belief import Belief
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
class Doubt:
    """
    A constant that the band comes from.

    Args:
        meaning: What it is.
        share: Its share of the variance of the logarithm of the time. [1]
    """

    meaning: str
    share: float


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
    doubts: tuple[Doubt, ...]


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
    central = belief.central()
    values = {constant.name: _figure(constant.name, central[constant.name]) for constant in STAGE.constants}
    step = train_step(apply, question, values)
    drawn = train_step(numbers, _drawn_question(question, seed), belief.drawn(seed))
    results = [
        _banded(figure, draws, seed) for figure, draws in zip(_figures(step), _figures_of_draws(drawn), strict=True)
    ]
    if response_tokens is not None and response_tokens.known:
        results.append(_consumption(results[0], response_tokens))
    return TrainAnswer(results=tuple(results), parts=tuple(_parts(question, step)), doubts=_doubts(question, belief))


def _figure(name: str, value: float) -> Figure:
    constant = next(entry for entry in STAGE.constants if entry.name == name)
    how = constant.basis if value == constant.value else f"calibrated; before, {constant.basis}"
    return Figure(key=name, value=value, provenance="default", source=f"{constant.meaning} ({how}: {constant.source})")


def _drawn_question(question: TrainQuestion, seed: int) -> TrainQuestion:
    """The question in bare numbers; inputs with a standard deviation as arrays of joint draws."""
    random = Random(seed)  # noqa: S311 (draws for a band, not for a secret)
    drawn = {name: figure for name, figure in stated(question).items() if uncertain(figure)}
    joint = [Draw(random) for _ in range(DRAWS if drawn else 0)]
    return bare_question(
        question, {name: np.array([draw.of(figure).number for draw in joint]) for name, figure in drawn.items()}
    )


def _figures(step: TrainStep) -> list[Figure]:
    own = [
        step.train_seconds,
        step.update_seconds,
        step.tokens_per_second,
        replace(step.tokens_per_second_per_gpu, key="trained_tokens_per_gpu_second"),
        replace(step.mfu, key="mfu_fraction"),
    ]
    return [*own, *(replace(seconds, key=f"{name}_seconds") for name, seconds in step.forward_seconds.items())]


def _figures_of_draws(step: TrainStep) -> list[NDArray[np.float64]]:
    own = [step.train_seconds, step.update_seconds, step.tokens_per_second, step.tokens_per_second_per_gpu, step.mfu]
    return [*own, *step.forward_seconds.values()]


def _banded(figure: Figure, draws: NDArray[np.float64], seed: int) -> Figure:
    """With the 80 % interval of the draws, one measurement's scatter added; a rate scatters as the time does."""
    return replace(figure, band=interval(scattered(draws, STAGE.noise, seed, "train")))


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


def _doubts(question: TrainQuestion, belief: Belief) -> tuple[Doubt, ...]:
    """The constants that the band comes from, by their share of the variance."""
    bare = bare_question(question)
    slopes = sensitivity(belief, lambda values: [train_step(numbers, bare, values).train_seconds])[0]
    variances = np.square(slopes) * np.diag(belief.covariance)
    shares = variances / max(float(variances.sum()), 1e-12)
    meanings = {constant.name: constant.meaning for constant in STAGE.constants}
    ranked = sorted(zip(shares.tolist(), belief.names, strict=True), reverse=True)
    return tuple(
        Doubt(meaning=meanings[name], share=share) for share, name in ranked if share >= _TOLD and name in meanings
    )
