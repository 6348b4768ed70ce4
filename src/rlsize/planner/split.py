"""How to split N GPUs between rollout and trainer, in whole instances."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.estimates.figures import with_bands
from rlsize.estimates.flow import Flow, flow_of
from rlsize.facts.figure import Figure, absent
from rlsize.frozen import dataclass
from rlsize.planner.rounding import rounded_down
from rlsize.rules.match import SPLIT

if TYPE_CHECKING:
    from random import Random

    from rlsize.estimates.figures import Draw

AT_SPLIT = (
    "rollout_gpus", "trainer_gpus", "instances", "bottleneck", "idle_fraction", "idle_gpus",
    "rollout_tokens_per_second", "trainer_tokens_per_second", "loop_tokens_per_second", "step_seconds",
)  # fmt: skip
"""Keys of what is told of one split."""

_OF_THE_LOOP = (
    "speedup_from_doubling_rollout", "speedup_from_doubling_trainer",
    "colocated_before_swap_tokens_per_second", "colocated_tokens_per_second",
)  # fmt: skip
_TIE = 1e-9  # throughputs closer than this are the same split but for rounding
_POINTS = 200  # of the picture


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitQuestion:
    """
    What is known about a cluster and the two sides' rates.

    Args:
        gpus: GPUs of both pools. [gpu]
        rollout_gpu_rate: Response tokens per second of one rollout GPU. [token/s/gpu]
        trainer_gpu_rate: Response tokens per second of one trainer GPU. [token/s/gpu]
        gpus_per_instance: GPUs of one rollout instance. [gpu]
        headroom: Derating of the rollout rate. [1]
        tokens_generated_per_trained_token: Waste factor. [1]
        batch_tokens: Response tokens per optimizer step. [token]
        swap_seconds: Time that a colocated step spends changing over, both ways together. [s]
        instances: Instances of a split that somebody said, to judge; None where only the best one is asked for.
    """

    gpus: Figure
    rollout_gpu_rate: Figure
    trainer_gpu_rate: Figure
    gpus_per_instance: Figure
    headroom: Figure
    tokens_generated_per_trained_token: Figure
    batch_tokens: Figure = absent("batch_tokens", "--batch-tokens")
    swap_seconds: Figure = absent("swap_seconds", "--swap-seconds")
    instances: Figure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitAnswer:
    """
    The best split, its neighbours and the colocated alternative.

    Args:
        results: Figures about the split that was said, and under keys that begin with `best_` about the best one; where
            none was said, about the best one alone; what doubling a pool would bring, and colocation.
        neighbours: Rows of figures, one for each split around the best.
        sweep: Rollout share, rollout rate and trainer rate over all splits, for the picture.
        rollout_gpus: GPUs of the best split's rollout fleet.
    """

    results: tuple[Figure, ...]
    neighbours: tuple[dict[str, Figure], ...]
    sweep: tuple[tuple[float, float, float], ...]
    rollout_gpus: float


def split_gpus(question: SplitQuestion, random: Random | tuple[Draw, ...] | None = None) -> SplitAnswer:
    """
    The split over whole instances with the highest min(R, T); ties go to fewer rollout GPUs.

    Args:
        question: What is known.
        random: Generator for the bands of uncertain inputs; None for central values only.

    Raises:
        InputError: The GPUs do not suffice for one instance and one trainer GPU.
    """
    best, most = best_instances(question), most_instances(question)
    asked = best if question.instances is None else rounded_down(question.instances.number)
    if not 1 <= asked <= most:
        what = f"{asked} instances leave no whole instance, or no trainer, of {question.gpus.value:g} GPUs"
        raise InputError(Fault(what, "--rollout-gpus", "give GPUs for both sides"))
    flow = _flow(question, asked)
    results = [*_at_split(flow), *(flow[key] for key in _OF_THE_LOOP)]
    if question.instances is not None:
        results += [replace(figure, key=f"best_split_{figure.key}") for figure in _at_split(_flow(question, best))]
    near = sorted({count for count in (*range(best - 3, best + 4), asked) if 1 <= count <= most})
    size = question.gpus_per_instance.number
    sampled = sorted({*range(1, most + 1, max(1, most // _POINTS)), most})
    return SplitAnswer(
        results=with_bands(results, random),
        neighbours=tuple({figure.key: figure for figure in _at_split(_flow(question, count))} for count in near),
        sweep=tuple((count * size / question.gpus.number, *_rates(question, count)) for count in sampled),
        rollout_gpus=best * size,
    )


def balanced(question: SplitQuestion, random: Random | tuple[Draw, ...] | None = None) -> Figure:
    """The share of GPUs on the rollout side at which both sides run equally fast, however many there are."""
    return with_bands([flow_of(question, SPLIT)["rollout_gpus_fraction"]], random)[0]


def best_instances(question: SplitQuestion) -> int:
    """
    Instances of the best split.

    The optimum lies on either side of the balance, since one rate grows and the other shrinks with each instance;
    only the whole instances around it are compared.

    Raises:
        InputError: The GPUs do not suffice.
    """
    most = most_instances(question)
    if most < 1:
        size = question.gpus_per_instance.value
        what = f"{question.gpus.value:g} GPUs hold no instance of {size:g} beside a trainer"
        raise InputError(Fault(what, "--gpus", "give more GPUs, or smaller instances"))
    balance = flow_of(question, SPLIT)["balanced_gpus"].number
    whole = rounded_down(balance / question.gpus_per_instance.number)
    candidates = sorted({min(max(count, 1), most) for count in range(whole - 1, whole + 3)})
    best = candidates[0]
    for count in candidates[1:]:
        if min(_rates(question, count)) > min(_rates(question, best)) * (1.0 + _TIE):
            best = count
    return best


def most_instances(question: SplitQuestion) -> int:
    """Whole instances that leave a trainer a GPU, or a part of one as large as theirs; 0 where none does."""
    size = question.gpus_per_instance.number
    return rounded_down((question.gpus.number - min(1.0, size)) / size)


def _flow(question: SplitQuestion, instances: int) -> Flow:
    return flow_of(question, SPLIT, instances=Figure(key="instances", value=instances, provenance="predicted"))


def _rates(question: SplitQuestion, instances: int) -> tuple[float, float]:
    """Trained tokens per second that the rollout side feeds, and that the trainer takes."""
    flow = _flow(question, instances)
    return flow["rollout_tokens_per_second"].number, flow["trainer_tokens_per_second"].number


def _at_split(flow: Flow) -> list[Figure]:
    """GPUs, rates and idle time of both sides; rates count trained tokens."""
    rollout, trainer = flow["rollout_tokens_per_second"].number, flow["trainer_tokens_per_second"].number
    bottleneck = "rollout" if rollout < trainer else "trainer"
    if abs(rollout - trainer) <= _TIE * max(rollout, trainer):
        bottleneck = "balanced"
    found = {
        "rollout_gpus": _whole(flow["rollout_gpus"]),
        "trainer_gpus": _whole(flow["trainer_gpus"]),
        "bottleneck": Figure(key="bottleneck", value=bottleneck, provenance="predicted"),
    }
    return [found.get(key) or flow[key] for key in AT_SPLIT]


def _whole(figure: Figure) -> Figure:
    value = figure.number
    return replace(figure, value=int(value)) if value == round(value) else figure
