"""How to split N GPUs between rollout and trainer, in whole instances."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.equations import matching
from rlsize.errors import Fault, InputError
from rlsize.estimates.figures import apply, with_bands
from rlsize.facts.figure import Figure, absent
from rlsize.planner.rounding import rounded_down

if TYPE_CHECKING:
    from random import Random

    from rlsize.estimates.figures import Draw

AT_SPLIT = (
    "rollout_gpus", "trainer_gpus", "instances", "bottleneck", "idle_fraction", "idle_gpus",
    "rollout_tokens_per_second", "trainer_tokens_per_second", "loop_tokens_per_second", "step_seconds",
)  # fmt: skip
"""Keys of what is told of one split."""

_TIE = 1e-9  # throughputs closer than this are the same split but for rounding


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
    best, most = best_instances(question), _most_instances(question)
    asked = best if question.instances is None else rounded_down(question.instances.number)
    if not 1 <= asked <= most:
        what = f"{asked} instances leave no whole instance, or no trainer, of {question.gpus.value:g} GPUs"
        raise InputError(Fault(what, "--rollout-gpus", "give GPUs for both sides"))

    def results(changed: SplitQuestion) -> list[Figure]:
        found = [*at_split(changed, asked), *_scaling(changed, asked), *_colocated(changed)]
        if question.instances is not None:
            found += [replace(figure, key=f"best_split_{figure.key}") for figure in at_split(changed, best)]
        return found

    near = sorted({count for count in (*range(best - 3, best + 4), asked) if 1 <= count <= most})
    size = question.gpus_per_instance.number
    return SplitAnswer(
        results=tuple(with_bands(results, question, random)),
        neighbours=tuple({figure.key: figure for figure in at_split(question, count)} for count in near),
        sweep=tuple(_sweep_point(question, count) for count in _sampled(most)),
        rollout_gpus=best * size,
    )


def balanced(question: SplitQuestion, random: Random | tuple[Draw, ...] | None = None) -> Figure:
    """The share of GPUs on the rollout side at which both sides run equally fast, however many there are."""

    def results(changed: SplitQuestion) -> list[Figure]:
        return [
            apply(
                "rollout_gpus_fraction",
                matching.balanced_rollout_gpus,
                gpus=1.0,
                rollout_gpu_rate=_fed(changed),
                trainer_gpu_rate=changed.trainer_gpu_rate,
            )
        ]

    return with_bands(results, question, random)[0]


def _fed(question: SplitQuestion) -> Figure:
    """Trained tokens per second that one rollout GPU feeds."""
    return apply(
        "rollout_gpu_tokens_per_second",
        matching.trained_token_supply,
        gpus=1.0,
        gpu_rate=question.rollout_gpu_rate,
        headroom=question.headroom,
        tokens_generated_per_trained_token=question.tokens_generated_per_trained_token,
    )


def best_instances(question: SplitQuestion) -> int:
    """
    Instances of the best split.

    The optimum lies on either side of the balance, since one rate grows and the other shrinks with each instance;
    only the whole instances around it are compared.

    Raises:
        InputError: The GPUs do not suffice.
    """
    most = _most_instances(question)
    if most < 1:
        size = question.gpus_per_instance.value
        what = f"{question.gpus.value:g} GPUs hold no instance of {size:g} beside a trainer"
        raise InputError(Fault(what, "--gpus", "give more GPUs, or smaller instances"))
    balance = rounded_down(_balance(question) / question.gpus_per_instance.number)
    candidates = sorted({min(max(count, 1), most) for count in range(balance - 1, balance + 3)})
    best = candidates[0]
    for count in candidates[1:]:
        if _throughput(question, count) > _throughput(question, best) * (1.0 + _TIE):
            best = count
    return best


def _most_instances(question: SplitQuestion) -> int:
    size = question.gpus_per_instance.number
    return rounded_down((question.gpus.number - min(1.0, size)) / size)


def _gpu_rate(question: SplitQuestion, gpus: float = 1.0) -> float:
    """Trained tokens per second that so many rollout GPUs feed."""
    return float(
        matching.trained_token_supply(
            gpus,
            question.rollout_gpu_rate.number,
            question.headroom.number,
            question.tokens_generated_per_trained_token.number,
        )
    )


def _balance(question: SplitQuestion) -> float:
    return float(
        matching.balanced_rollout_gpus(question.gpus.number, _gpu_rate(question), question.trainer_gpu_rate.number)
    )


def _rates(question: SplitQuestion, instances: int) -> tuple[float, float]:
    rollout = matching.fleet_gpus(instances, question.gpus_per_instance.number)
    trainer = matching.remaining_gpus(question.gpus.number, rollout)
    return _gpu_rate(question, rollout), float(matching.pool_rate(trainer, question.trainer_gpu_rate.number))


def _throughput(question: SplitQuestion, instances: int) -> float:
    return float(matching.loop_throughput(*_rates(question, instances)))


def _sampled(most: int) -> list[int]:
    step = max(1, most // 200)
    return sorted({*range(1, most + 1, step), most})


def _sweep_point(question: SplitQuestion, instances: int) -> tuple[float, float, float]:
    share = instances * question.gpus_per_instance.number / question.gpus.number
    return (share, *_rates(question, instances))


def at_split(question: SplitQuestion, instances: int) -> list[Figure]:
    """
    What happens with so many rollout instances.

    Returns:
        GPUs, rates and idle time of both sides; rates count trained tokens.
    """
    count = Figure(key="instances", value=instances, provenance="predicted")
    rollout_gpus = apply(
        "rollout_gpus", matching.fleet_gpus, instances=count, gpus_per_instance=question.gpus_per_instance
    )
    trainer_gpus = apply("trainer_gpus", matching.remaining_gpus, gpus=question.gpus, rollout_gpus=rollout_gpus)
    rollout_rate = apply(
        "rollout_tokens_per_second",
        matching.trained_token_supply,
        gpus=rollout_gpus,
        gpu_rate=question.rollout_gpu_rate,
        headroom=question.headroom,
        tokens_generated_per_trained_token=question.tokens_generated_per_trained_token,
    )
    trainer_rate = apply(
        "trainer_tokens_per_second", matching.pool_rate, gpus=trainer_gpus, gpu_rate=question.trainer_gpu_rate
    )
    loop = apply(
        "loop_tokens_per_second", matching.loop_throughput, rollout_rate=rollout_rate, trainer_rate=trainer_rate
    )
    idle = apply("idle_fraction", matching.idle_fraction, rollout_rate=rollout_rate, trainer_rate=trainer_rate)
    bottleneck = _bottleneck(rollout_rate.number, trainer_rate.number)
    waiting = trainer_gpus if bottleneck == "rollout" else rollout_gpus
    idle_gpus = apply("idle_gpus", matching.idle_gpus, gpus=waiting, idle_fraction=idle)
    step = apply("step_seconds", matching.train_time, tokens_per_step=question.batch_tokens, consumption=loop)
    return [
        _whole(rollout_gpus),
        _whole(trainer_gpus),
        count,
        Figure(key="bottleneck", value=bottleneck, provenance="predicted"),
        idle,
        idle_gpus,
        rollout_rate,
        trainer_rate,
        loop,
        step,
    ]


def _whole(figure: Figure) -> Figure:
    value = figure.number
    return replace(figure, value=int(value)) if value == round(value) else figure


def _bottleneck(rollout: float, trainer: float) -> str:
    if abs(rollout - trainer) <= _TIE * max(rollout, trainer):
        return "balanced"
    return "rollout" if rollout < trainer else "trainer"


def _scaling(question: SplitQuestion, instances: int) -> list[Figure]:
    """What doubling one pool alone would bring: close to nothing on the side that waits."""
    found = {figure.key: figure for figure in at_split(question, instances)}
    rates = {"rollout_rate": found["rollout_tokens_per_second"], "trainer_rate": found["trainer_tokens_per_second"]}
    double = matching.speedup_from_scaling_overlapped
    return [
        apply("speedup_from_doubling_rollout", double, **rates, rollout_factor=2.0, trainer_factor=1.0),
        apply("speedup_from_doubling_trainer", double, **rates, rollout_factor=1.0, trainer_factor=2.0),
    ]


def _colocated(question: SplitQuestion) -> list[Figure]:
    """The same GPUs time-shared: the same throughput as a perfect split, less what changing over costs."""
    plain = apply(
        "colocated_before_swap_tokens_per_second",
        matching.colocated_throughput,
        gpus=question.gpus,
        rollout_gpu_rate=_fed(question),
        trainer_gpu_rate=question.trainer_gpu_rate,
    )
    whole = apply(
        "colocated_tokens_per_second",
        matching.throughput_with_swap,
        tokens_per_step=question.batch_tokens,
        throughput=plain,
        swap_seconds=question.swap_seconds,
    )
    return [plain, whole]
