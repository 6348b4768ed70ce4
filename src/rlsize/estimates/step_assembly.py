"""An optimizer step put together from its parts: in turn or at once, with what comes on top."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from rlsize.equations import iteration, kernel_time, loop_time, planning, rl_step, rollout_batch
from rlsize.estimates.figures import added

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.estimates.train_prediction import TrainStep

    Work = Callable[..., Any]

Loop = Literal["colocated", "synchronous", "one-step-off", "async", "hybrid"]
OVERLAPPING = frozenset({"one-step-off", "async", "hybrid"})
"""Loops whose fleet and trainer work at the same time."""
REFILLING = frozenset({"async", "hybrid"})
"""Loops that replace a sample that has finished at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """
    What a step takes; numbers, arrays or figures.

    Args:
        seconds: Wall clock. [s]
        generation_seconds: Whole generation. [s]
        generation_exposed_seconds: Of it, what the trainer waits for. [s]
        tail_seconds: Of all of it, what waiting for the longest response adds. [s]
        update_seconds: The update. [s]
        logprob_seconds: Extra forward passes. [s]
        train_seconds: Both. [s]
        sync_seconds: Weight sync. [s]
        sync_exposed_seconds: Of it, what nothing hides. [s]
        overhead_seconds: What belongs to no phase. [s]
    """

    seconds: Any
    generation_seconds: Any
    generation_exposed_seconds: Any
    tail_seconds: Any
    update_seconds: Any
    logprob_seconds: Any
    train_seconds: Any
    sync_seconds: Any
    sync_exposed_seconds: Any
    overhead_seconds: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopParts:
    """
    The parts of a step, each as it runs within the loop; numbers, arrays or figures.

    Args:
        loop: How they follow each other; hybrid is async with trainer GPUs that help while they wait.
        generation_seconds: Of the fleet. [s]
        tail_seconds: Of it, what waiting for the longest response adds. [s]
        update_seconds: The update. [s]
        logprob_seconds: Extra forward passes. [s]
        sync_seconds: A weight sync, or its part of each step. [s]
        overhead_seconds: What belongs to no phase. [s]
        exposed_share: Share of the sync that an overlapping loop does not hide. [1]
        variation: How strongly phases vary from step to step; None for steady ones, of which the longer counts. [1]
        lent_ratio: Of a hybrid loop: what the lent GPUs generate over what the fleet does. [1]
        swap_seconds: Of a hybrid loop: time in which lent GPUs change over, both ways. [s]
    """

    loop: Loop
    generation_seconds: Any
    tail_seconds: Any
    update_seconds: Any
    logprob_seconds: Any
    sync_seconds: Any
    overhead_seconds: Any
    exposed_share: Any = 1.0
    variation: Any = None
    lent_ratio: Any = 0.0
    swap_seconds: Any = 0.0


def assembled(work: Work, parts: LoopParts) -> Step:
    """
    A step from its parts.

    Args:
        work: `figures.apply` for figures that explain themselves, `numbers` for numbers and arrays.
        parts: The parts.
    """
    busy = work(
        "train_seconds",
        rl_step.trainer_phase,
        update_seconds=parts.update_seconds,
        forward_seconds=parts.logprob_seconds,
    )
    overlapping = parts.loop in OVERLAPPING
    generated = _generated(work, parts, busy)
    share = parts.exposed_share if overlapping else 1.0
    exposed = work("sync_exposed_seconds", rl_step.exposed_part, seconds=parts.sync_seconds, share=share)
    both = (
        _at_once(work, generated, busy, parts.variation)
        if overlapping
        else work("phases_seconds", rl_step.trainer_phase, update_seconds=busy, forward_seconds=generated)
    )
    return Step(
        seconds=work(
            "step_seconds",
            rl_step.whole_step,
            phases_seconds=both,
            sync_seconds=exposed,
            overhead_seconds=parts.overhead_seconds,
        ),
        generation_seconds=generated,
        generation_exposed_seconds=work("generation_exposed_seconds", rollout_batch.beyond, whole=both, part=busy),
        tail_seconds=parts.tail_seconds,
        update_seconds=parts.update_seconds,
        logprob_seconds=parts.logprob_seconds,
        train_seconds=busy,
        sync_seconds=parts.sync_seconds,
        sync_exposed_seconds=exposed,
        overhead_seconds=parts.overhead_seconds,
    )


def _generated(work: Work, parts: LoopParts, busy: Any) -> Any:  # noqa: ANN401 (as `work` makes them)
    """Time of generation; shorter where trainer GPUs help while they wait."""
    if parts.loop != "hybrid":
        return parts.generation_seconds
    return work(
        "generation_seconds",
        planning.generation_with_lent_gpus,
        generation_seconds=parts.generation_seconds,
        train_seconds=busy,
        swap_seconds=parts.swap_seconds,
        lent_ratio=parts.lent_ratio,
    )


def _at_once(work: Work, generated: Any, busy: Any, variation: Any) -> Any:  # noqa: ANN401 (as `work` makes them)
    """Time of two phases that run at once."""
    if variation is None:
        return work(
            "phases_seconds",
            iteration.overlapped_iteration_time,
            rollout_seconds=generated,
            train_seconds=busy,
            exposed_sync_seconds=0.0,
        )
    return work(
        "phases_seconds",
        rl_step.uneven_overlap,
        rollout_seconds=generated,
        train_seconds=busy,
        variation=variation,
    )


def within_a_loop(work: Work, key: str, seconds: Any, values: Mapping[str, Any], *, moe: bool) -> Any:  # noqa: ANN401 (as `work` makes them)
    """Generation inside a loop, over the engine by itself."""
    slow = [values["step_rollout_slowdown"]]
    slow += [values["step_rollout_moe_slowdown"]] if moe else []
    for factor in slow:
        seconds = work(key, kernel_time.slowed, seconds=seconds, slowdown=factor)
    return seconds


def trained_in_loop(work: Work, train: TrainStep, values: Mapping[str, Any], *, shared: bool) -> tuple[Any, Any]:
    """Update and extra forward passes within a loop."""
    own = values["step_train_colocated" if shared else "step_train_disaggregated"]
    extra = added(work, "forward_seconds", list(train.forward_seconds.values()) or [0.0])
    updates = work("update_seconds", rollout_batch.beyond, whole=train.train_seconds, part=extra)
    update = work("update_seconds", kernel_time.slowed, seconds=updates, slowdown=own)
    forwards = work("logprob_seconds", kernel_time.slowed, seconds=extra, slowdown=own)
    return update, forwards


def idle_fractions(work: Work, loop: Loop, step: Step) -> tuple[Any, Any]:
    """
    Shares of a step in which rollout and trainer GPUs wait; shared ones work in both phases.

    Args:
        work: `figures.apply` for figures that explain themselves, `numbers` for numbers and arrays.
        loop: How the phases follow each other.
        step: The step.
    """
    generated, trained = step.generation_seconds, step.train_seconds
    busy = [generated, trained]
    if loop == "colocated":
        both = work("busy_seconds", rl_step.trainer_phase, update_seconds=trained, forward_seconds=generated)
        busy = [both, both]
    elif loop == "hybrid":  # lent GPUs work until the batch is there
        busy[1] = _at_once(work, generated, trained, None)
    first, second = (
        work(f"{side}_idle_fraction", loop_time.waiting_fraction, busy_seconds=seconds, iteration_seconds=step.seconds)
        for side, seconds in zip(("rollout", "trainer"), busy, strict=True)
    )
    return first, second
