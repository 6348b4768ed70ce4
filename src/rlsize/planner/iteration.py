"""How long one iteration takes, laid out in time as sync, overlapped or colocated, and who waits in it."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rlsize.equations import iteration, loop_time, matching
from rlsize.estimates.figures import apply, rounded, total, with_bands
from rlsize.facts.figure import Figure, absent
from rlsize.planner.rounding import rounded_up

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    from rlsize.estimates.figures import Draw

Source: TypeAlias = Literal["said", "groups", "rate"]

SYNC, OVERLAPPED, COLOCATED = "sync", "overlapped", "colocated"
RULES: Mapping[str, str] = MappingProxyType(
    {
        SYNC: "rollout, training and weight sync, one after the other",
        OVERLAPPED: "the longer of rollout and training, then the weight sync",
        COLOCATED: "rollout and training in turn on all GPUs, and two change-overs",
    }
)
"""How each mode adds its phases up."""

NOTHING_THROWN_AWAY = Figure(
    key="tokens_generated_per_trained_token", value=1.0, provenance="default", source="nothing is thrown away"
)
_NO_POOLS = "pools of their own (colocated phases share the GPUs)"


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationQuestion:
    """
    What is known about the phases of an iteration.

    Args:
        mode: One of `RULES`.
        source: Whether the rollout time was said, follows from groups, or from a token rate.
        train_seconds: Busy trainer seconds per optimizer step. [s]
        sync_seconds: Part of a weight sync that nothing hides. [s]
        samples: Samples per optimizer step. [sample]
        tokens_generated_per_trained_token: Waste factor of a rollout time that is worked out. [1]
        rollout_seconds: Time to generate them, where it was said. [s]
        instances: Rollout instances. [instance]
        group_size: Samples of one prompt. [sample/instance]
        group_seconds: Time of one group on one instance. [s]
        instance_rate: Response tokens per second of one instance. [token/s/instance]
        headroom: Derating of that rate. [1]
        response_tokens: Mean response length. [token/sample]
        swap_seconds: Time that a colocated step spends changing over, both ways together. [s]
        verify_seconds: Time of one worker to score one sample. [worker*s/sample]
        rollout_gpus: GPUs of the rollout fleet. [gpu]
        trainer_gpus: GPUs of the trainer. [gpu]
    """

    mode: str
    source: Source
    train_seconds: Figure
    sync_seconds: Figure
    samples: Figure
    tokens_generated_per_trained_token: Figure = NOTHING_THROWN_AWAY
    headroom: Figure = absent("headroom", "--headroom")
    rollout_seconds: Figure = absent("rollout_seconds", "--rollout-seconds")
    instances: Figure = absent("instances", "--instances")
    group_size: Figure = absent("group_size", "--group")
    group_seconds: Figure = absent("group_seconds", "--group-seconds")
    instance_rate: Figure = absent("instance_tokens_per_second", "--per-instance")
    response_tokens: Figure = absent("response_tokens", "--response-tokens")
    swap_seconds: Figure = absent("swap_seconds", "--swap-seconds")
    verify_seconds: Figure = absent("verify_seconds", "--verify-seconds")
    rollout_gpus: Figure = absent("rollout_gpus", "--rollout-gpus")
    trainer_gpus: Figure = absent("trainer_gpus", "--trainer-gpus")

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Nameplate, and expected where headroom derates a token rate."""
        return ("", "expected_") if self.source == "rate" else ("",)


def completions(question: IterationQuestion, prefix: str) -> Figure:
    """Samples that the fleet finishes per second."""
    key = f"{prefix}completions_per_second"
    if question.source == "said":
        return apply(
            key,
            iteration.samples_per_second,
            samples_per_step=question.samples,
            iteration_seconds=question.rollout_seconds,
        )
    if question.source == "groups":
        return apply(
            key,
            iteration.completions_per_second,
            instances=question.instances,
            group_size=question.group_size,
            group_seconds=question.group_seconds,
        )
    supply = apply(
        f"{prefix}supply_tokens_per_second",
        matching.fleet_supply,
        instances=question.instances,
        instance_rate=question.instance_rate,
        headroom=question.headroom if prefix else 1.0,
    )
    return apply(key, loop_time.completions_from_tokens, supply=supply, response_tokens=question.response_tokens)


def generated(question: IterationQuestion, samples: Figure) -> Figure:
    """Samples to generate so that so many can be trained."""
    return apply(
        "generated_samples",
        loop_time.generated_samples,
        samples_per_step=samples,
        tokens_generated_per_trained_token=question.tokens_generated_per_trained_token,
    )


def rollout_time(question: IterationQuestion, prefix: str, samples: Figure | None = None) -> Figure:
    """Time to generate the samples of one step, or so many samples."""
    if question.source == "said" and samples is None:
        return question.rollout_seconds
    return apply(
        f"{prefix}rollout_seconds",
        iteration.rollout_seconds,
        samples_per_step=generated(question, samples or question.samples),
        completions_per_second=completions(question, prefix),
    )


def phases(question: IterationQuestion, mode: str, prefix: str) -> tuple[Figure, Figure]:
    """
    Rollout and train seconds on the GPUs that a mode gives them.

    Where the pools' sizes are known, the times are the pools' own, and a colocated loop runs both phases on all GPUs.
    Where they are not, the times are those of the mode that was asked for, and tell nothing about the other kind.
    """
    rollout, train = rollout_time(question, prefix), question.train_seconds
    lacking = [pool.missing for pool in (question.rollout_gpus, question.trainer_gpus) if not pool.known]
    if lacking:
        if (mode == COLOCATED) == (question.mode == COLOCATED):
            return rollout, train
        return absent("rollout_seconds", ", ".join(lacking)), absent("train_seconds", ", ".join(lacking))
    if mode != COLOCATED:
        return rollout, train
    everything = total("gpus", [question.rollout_gpus, question.trainer_gpus])
    return (
        _moved(f"{prefix}rollout_seconds", rollout, question.rollout_gpus, everything),
        _moved("train_seconds", train, question.trainer_gpus, everything),
    )


def _moved(key: str, seconds: Figure, pool: Figure, gpus: Figure) -> Figure:
    return apply(key, iteration.phase_time_on, phase_seconds=seconds, pool_gpus=pool, gpus=gpus)


def iteration_time(question: IterationQuestion, mode: str, prefix: str) -> Figure:
    """Wall clock of one iteration in a mode."""
    key = f"{prefix}iteration_seconds"
    rollout, train = phases(question, mode, prefix)
    if mode == COLOCATED:
        return apply(
            key,
            iteration.colocated_iteration_time,
            rollout_seconds=rollout,
            train_seconds=train,
            swap_seconds=question.swap_seconds,
        )
    added: Callable[..., Any] = (
        iteration.synchronous_iteration_time if mode == SYNC else iteration.overlapped_iteration_time
    )
    return apply(key, added, rollout_seconds=rollout, train_seconds=train, exposed_sync_seconds=question.sync_seconds)


def idle_of_each_side(question: IterationQuestion, mode: str, prefix: str) -> tuple[Figure, Figure]:
    """The share of an iteration in which rollout and trainer GPUs wait; shared ones wait while they change over."""
    rollout, train = phases(question, mode, prefix)
    busy = (rollout, train)
    if mode == COLOCATED:
        both = apply(
            "busy_seconds",
            iteration.synchronous_iteration_time,
            rollout_seconds=rollout,
            train_seconds=train,
            exposed_sync_seconds=0.0,
        )
        busy = (both, both)
    whole = iteration_time(question, mode, prefix)
    sides = zip(("rollout", "trainer"), busy, strict=True)
    first, second = (
        apply(
            f"{prefix}{side}_idle_fraction", loop_time.waiting_fraction, busy_seconds=seconds, iteration_seconds=whole
        )
        for side, seconds in sides
    )
    return first, second


def iteration_results(question: IterationQuestion) -> list[Figure]:
    """The chosen mode: completions, seconds, rollout's share, who waits, and what doubling a pool brings."""
    figures: list[Figure] = []
    for prefix in question.prefixes:
        rollout, _ = phases(question, question.mode, prefix)
        whole = iteration_time(question, question.mode, prefix)
        figures += [
            completions(question, prefix),
            rollout_time(question, prefix),
            whole,
            apply(f"{prefix}iterations_per_day", iteration.iterations_per_day, iteration_seconds=whole),
            apply(
                f"{prefix}rollout_fraction", iteration.rollout_share, rollout_seconds=rollout, iteration_seconds=whole
            ),
            *idle_of_each_side(question, question.mode, prefix),
            *_scaling(question, prefix),
        ]
    return [*figures, break_even_swap(question)]


def scored_samples(question: IterationQuestion, prefix: str) -> Figure:
    """Samples per second to keep up with: as the fleet finishes them, or as an overlapped loop takes them."""
    rollout, _ = phases(question, question.mode, prefix)
    seconds = iteration_time(question, OVERLAPPED, prefix) if question.mode == OVERLAPPED else rollout
    return apply(
        f"{prefix}scored_samples_per_second",
        iteration.samples_per_second,
        samples_per_step=generated(question, question.samples),
        iteration_seconds=seconds,
    )


def break_even_swap(question: IterationQuestion) -> Figure:
    """The change-over time, both ways together, below which colocation beats the overlapped loop on as many GPUs."""
    prefix = question.prefixes[-1]
    rollout, train = phases(question, COLOCATED, prefix)
    return apply(
        "break_even_swap_seconds",
        iteration.break_even_swap_time,
        overlapped_seconds=iteration_time(question, OVERLAPPED, prefix),
        rollout_seconds=rollout,
        train_seconds=train,
    )


def mode_rows(question: IterationQuestion) -> tuple[dict[str, Any], ...]:
    """One row for each mode: seconds, iterations per day, who waits; and what a row lacks."""
    rows = []
    for mode, rule in RULES.items():
        row: dict[str, Any] = {"mode": mode}
        for prefix in question.prefixes:
            whole = iteration_time(question, mode, prefix)
            rollout, train = phases(question, mode, prefix)
            figures = [
                whole,
                apply(f"{prefix}iterations_per_day", iteration.iterations_per_day, iteration_seconds=whole),
                *idle_of_each_side(question, mode, prefix),
            ]
            row |= {figure.key: figure for figure in figures}
            row |= {f"{prefix}rollout_seconds": rollout, f"{prefix}train_seconds": train}
        rows.append(row | {"rule": rule, "needs": row["iteration_seconds"].missing})
    return tuple(rows)


def _scaling(question: IterationQuestion, prefix: str) -> list[Figure]:
    """What doubling one pool alone would bring."""
    keys = (f"{prefix}speedup_from_doubling_rollout", f"{prefix}speedup_from_doubling_trainer")
    factors = ({"rollout_factor": 2.0, "trainer_factor": 1.0}, {"rollout_factor": 1.0, "trainer_factor": 2.0})
    if question.mode == COLOCATED:
        return [absent(key, _NO_POOLS) for key in keys]
    rollout, train = rollout_time(question, prefix), question.train_seconds
    if question.mode == SYNC:
        times = {"rollout_seconds": rollout, "train_seconds": train}
        return [
            apply(key, matching.speedup_from_scaling, **times, **factor)
            for key, factor in zip(keys, factors, strict=True)
        ]
    rates = {
        "rollout_rate": apply(
            "rollout_samples_per_second",
            iteration.samples_per_second,
            samples_per_step=question.samples,
            iteration_seconds=rollout,
        ),
        "trainer_rate": apply(
            "trainer_samples_per_second",
            iteration.samples_per_second,
            samples_per_step=question.samples,
            iteration_seconds=train,
        ),
    }
    return [
        apply(key, matching.speedup_from_scaling_overlapped, **rates, **factor)
        for key, factor in zip(keys, factors, strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationAnswer:
    """
    One iteration, and the other ways to lay it out.

    Args:
        question: What was asked.
        results: Figures of the chosen mode.
        modes: Rows of figures, one for each mode.
        as_prompts_samples: Samples, had the sample count meant prompts of a whole group each.
        as_prompts_rollout_seconds: Rollout time of so many.
    """

    question: IterationQuestion
    results: tuple[Figure, ...]
    modes: tuple[dict[str, Any], ...]
    as_prompts_samples: Figure
    as_prompts_rollout_seconds: Figure


def plan_iteration(question: IterationQuestion, random: Random | tuple[Draw, ...] | None = None) -> IterationAnswer:
    """
    How long one iteration takes, by each mode, and how many verifiers keep up with it.

    Args:
        question: What is known.
        random: Generator for the bands of uncertain inputs; None for central values only.
    """
    more = apply(
        "samples_per_step", matching.samples_per_step, prompts=question.samples, group_size=question.group_size
    )
    return IterationAnswer(
        question=question,
        results=tuple(with_bands(_results, question, random)),
        modes=mode_rows(question),
        as_prompts_samples=more,
        as_prompts_rollout_seconds=rollout_time(question, "", samples=more),
    )


def _results(question: IterationQuestion) -> list[Figure]:
    figures = iteration_results(question)
    if question.verify_seconds.known:
        figures += [verifier_workers(question, prefix) for prefix in question.prefixes]
    return figures


def verifier_workers(question: IterationQuestion, prefix: str) -> Figure:
    """The fewest whole workers that score samples as fast as they come."""
    key = f"{prefix}verifier_workers"
    exact = apply(
        key,
        iteration.verifier_workers,
        samples_per_second=scored_samples(question, prefix),
        verify_seconds=question.verify_seconds,
    )
    return rounded(exact, key, rounded_up(exact.number) if exact.known else 0)
