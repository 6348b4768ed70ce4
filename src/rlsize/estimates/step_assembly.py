"""An optimizer step put together from its parts, in turn or at once, and where its time goes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import pairwise
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from rlsize.equations import (
    batch_drain,
    iteration,
    kernel_time,
    loop_time,
    planning,
    rl_step,
    rollout_batch,
    train_step,
)
from rlsize.equations._ops import exp, log, maximum, minimum, where
from rlsize.equations.agents import quicker_training
from rlsize.estimates.figures import added, apply, bare, entries, numbers, predicted
from rlsize.estimates.flow import Flow, by_result, rule
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.estimates.async_cycle import Cycle
    from rlsize.estimates.figures import Work, Worked
    from rlsize.estimates.generation import Late, LateLengths
    from rlsize.estimates.train_prediction import TrainStep

Loop = Literal["colocated", "synchronous", "one-step-off", "async", "hybrid"]
OVERLAPPING = frozenset({"one-step-off", "async", "hybrid"})
"""Loops whose fleet and trainer work at the same time."""
REFILLING = frozenset({"async", "hybrid"})
"""Loops that replace a sample that has finished at once."""
USUAL_LATE: Mapping[Loop, Late] = MappingProxyType(
    {"colocated": "wait", "synchronous": "wait", "one-step-off": "wait", "async": "continue", "hybrid": "continue"}
)
"""What becomes of late samples where nobody says."""
_ROUNDS = 3  # until what is dropped and the time to train on the rest agree
_MOST_WASTE = 1e3
_WASTES = (1.0, 1.01, 1.02, 1.04, 1.07, 1.1, 1.15, 1.2, 1.3, 1.5, 2.0, 5.0, _MOST_WASTE)
_LINES = 2  # straight lines between two ends, the last of which knows waste to 0.1 %
ROLLOUT, TRAINER, NOTHING = "rollout GPUs", "trainer GPUs", "nothing"


class LateRule(NamedTuple):
    """
    What tells how many samples a loop that refills drops as they come too late; numbers, arrays or figures.

    Args:
        sample_seconds: Time of the mean one. [s]
        max_staleness: Staleness cap. [1]
        lengths: Those of samples, what they wait for outside the GPUs among them.
    """

    sample_seconds: Worked
    max_staleness: Worked
    lengths: LateLengths

    def each(self, change: Callable[[Worked], Worked]) -> LateRule:
        """The same, each number changed."""
        return LateRule(change(self.sample_seconds), change(self.max_staleness), self.lengths.each(change))


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
        dropped_fraction: Share of generated tokens that a barrier drops. [1]
        rule: What is dropped of late samples where the loop refills; None where nothing is.
        cycle: What the time between two syncs is by that of the trainer; None where it does not hang on samples.
    """

    loop: Loop
    generation_seconds: Worked
    tail_seconds: Worked
    update_seconds: Worked
    logprob_seconds: Worked
    sync_seconds: Worked
    overhead_seconds: Worked
    exposed_share: Worked = 1.0
    variation: Worked = None
    lent_ratio: Worked = 0.0
    swap_seconds: Worked = 0.0
    dropped_fraction: Worked = 0.0
    rule: LateRule | None = None
    cycle: Cycle | None = None

    def each(self, change: Callable[[Worked], Worked]) -> LoopParts:
        """The same, each number changed."""
        found = {name: value for name, value in entries(self).items() if name not in {"loop", "rule", "cycle"}}
        return replace(
            self,
            **{name: change(value) for name, value in found.items() if value is not None},
            rule=None if self.rule is None else self.rule.each(change),
            cycle=None if self.cycle is None else self.cycle.each(change),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(LoopParts):
    """
    A step: its parts, of which generation is whole and `dropped_fraction` holds for all loops, and what comes of them.

    Args:
        seconds: Wall clock. [s]
        generation_exposed_seconds: Of generation, what the trainer waits for. [s]
        train_seconds: The update and the extra forward passes. [s]
        sync_exposed_seconds: Of the sync, what nothing hides. [s]
    """

    seconds: Worked
    generation_exposed_seconds: Worked
    train_seconds: Worked
    sync_exposed_seconds: Worked


_AT_ONCE = {"rollout_seconds": "generated_seconds", "train_seconds": "train_seconds"}
_RULES = by_result((
    rule("train_seconds", rl_step.trainer_phase, forward_seconds="logprob_seconds"),
    rule("lent/generation_seconds", planning.generation_with_lent_gpus, generation_seconds="generation_seconds",
         train_seconds="train_seconds", swap_seconds="swap_seconds", lent_ratio="lent_ratio"),
    rule("sync_exposed_seconds", rl_step.exposed_part, seconds="sync_seconds", share="exposed_share"),
    rule("in_turn/phases_seconds", rl_step.trainer_phase, update_seconds="train_seconds",
         forward_seconds="generated_seconds"),
    rule("steady/phases_seconds", iteration.overlapped_iteration_time, **_AT_ONCE, exposed_sync_seconds=0.0),
    rule("uneven/phases_seconds", rl_step.uneven_overlap, **_AT_ONCE, variation="variation"),
    rule("waiting/phases_seconds", rl_step.phases_within_cycle, phases_seconds="begun/phases_seconds"),
    rule("step_seconds", rl_step.whole_step, sync_seconds="sync_exposed_seconds"),
    rule("generation_exposed_seconds", rollout_batch.beyond, whole="phases_seconds", part="train_seconds"),
))  # fmt: skip


def assembled(work: Work, parts: LoopParts) -> Step:
    """
    A step from its parts.

    Args:
        work: `figures.apply` for figures that explain themselves, `numbers` for numbers and arrays.
        parts: The parts.
    """
    whole = parts if parts.rule is None else _dropping(work, parts, parts.rule)
    return _together(work, whole, None if whole.cycle is None else _cycle_seconds(work, whole, whole.cycle))


def at_least(parts: LoopParts) -> Worked:
    """
    What a step takes at least, in numbers, without working out what is dropped as too late.

    More samples that are dropped make generation longer, and training shorter, as those that are left are the shorter
    ones. So within each of some ranges of them no step is shorter than with the least to generate and to train on.

    Args:
        parts: The parts of a step, in numbers.
    """
    if parts.rule is None:
        return assembled(numbers, parts).seconds
    plain = replace(parts, rule=None, cycle=None if parts.cycle is None else parts.cycle.at_least())
    steps = (
        assembled(numbers, _wasting(numbers, plain, low, parts.rule.lengths.taken(1.0 / high))).seconds
        for low, high in pairwise(_WASTES)
    )
    return reduce(minimum, steps)


def _together(work: Work, parts: LoopParts, cycle_seconds: Worked) -> Step:
    """
    A step of parts of which nothing more is dropped.

    Args:
        work: As in `assembled`.
        parts: The parts.
        cycle_seconds: Time between two syncs; None where it does not hang on samples. [s]
    """
    known = {name: value for name, value in entries(parts).items() if name not in {"loop", "rule", "cycle"}}
    overlaps = "steady" if parts.variation is None or cycle_seconds is not None else "uneven"
    known |= {
        "generated_seconds": "lent/generation_seconds" if parts.loop == "hybrid" else "generation_seconds",
        "begun/phases_seconds": f"{overlaps if parts.loop in OVERLAPPING else 'in_turn'}/phases_seconds",
        "phases_seconds": f"{'begun' if cycle_seconds is None else 'waiting'}/phases_seconds",
    }
    if parts.loop not in OVERLAPPING:
        known["exposed_share"] = 1.0
    if cycle_seconds is not None:
        known["cycle_seconds"] = cycle_seconds
    flow = Flow(_RULES, known, work)
    made = {key: flow[key] for key in ("generation_exposed_seconds", "train_seconds", "sync_exposed_seconds")}
    own = {**entries(parts), "generation_seconds": flow["generated_seconds"]}
    return Step(**own, **made, seconds=flow["step_seconds"])


def _cycle_seconds(work: Work, parts: LoopParts, cycle: Cycle) -> Worked:
    """Time between two syncs that samples of unequal lengths need beside this trainer."""
    found = cycle.seconds(*_train_and_pause(parts))
    source = "steady rhythm of the samples that the cap on staleness lets be under way, beside this trainer"
    return predicted("cycle_seconds", found, source) if work is apply else found


def _train_and_pause(parts: LoopParts) -> tuple[Worked, Worked]:
    """Time of the trainer's work, and that in which neither side works, in numbers."""
    exposed = rl_step.exposed_part(bare(parts.sync_seconds), bare(parts.exposed_share))
    trained = rl_step.trainer_phase(bare(parts.update_seconds), bare(parts.logprob_seconds))
    return trained, rl_step.trainer_phase(bare(parts.overhead_seconds), exposed)


def _dropping(work: Work, parts: LoopParts, rule: LateRule) -> LoopParts:
    """The parts where samples that outlive the staleness cap are dropped, so that more must be generated."""
    lasting = rule.each(bare)
    waste: Worked = _waste(replace(parts.each(bare), rule=None), lasting)
    taken = lasting.lengths.taken(1.0 / waste)
    dropped = batch_drain.dropped_share(waste / taken)
    if work is apply:
        source = "batch_drain.kept_tokens at the step that comes of it: samples that outlive the staleness cap"
        dropped = predicted("late_dropped_fraction", dropped, source)
        waste = predicted("late_waste", waste, source)
        taken = predicted("taken_fraction", taken, "lengths.mean_of_shortest: those that are not dropped")
    return replace(_wasting(work, parts, waste, taken), dropped_fraction=dropped, rule=None)


def _wasting(work: Work, parts: LoopParts, waste: Worked, taken: Worked) -> LoopParts:
    """The parts where so many samples are generated for each that is trained on, which are shorter than all."""
    return replace(
        parts,
        generation_seconds=work(
            "generation_seconds", kernel_time.slowed, seconds=parts.generation_seconds, slowdown=waste
        ),
        **{
            key: work(key, quicker_training, seconds=getattr(parts, key), taken_share=taken)
            for key in ("update_seconds", "logprob_seconds")
        },
    )


def _waste(parts: LoopParts, rule: LateRule) -> Worked:
    """
    Samples generated for each that is trained on: as many as the step that comes of them makes necessary.

    Args:
        parts: The parts, in numbers, without what is dropped.
        rule: The rule, likewise.
    """
    cycle = None if parts.cycle is None else _cycle_seconds(numbers, parts, parts.cycle)
    rhythm = _in_rhythm(parts, rule)
    needed = partial(_needed, parts, rule, cycle)
    low, over = 0.0, log(needed(1.0))
    # where more waste makes more of it necessary, the search ends twice as far ahead
    high = over + 2.0 * maximum(log(needed(exp(over))) - over, 0.0)
    under = minimum(log(needed(exp(high))) - high, 0.0)
    middle = 0.0
    for _ in range(_LINES):
        middle = low + (high - low) * over / maximum(over - under, 1e-12)
        gap = log(needed(exp(middle))) - middle
        low, over = where(gap > 0, middle, low), where(gap > 0, gap, over / 2)
        high, under = where(gap > 0, high, middle), where(gap > 0, under / 2, gap)
    return where(rhythm > 0, rhythm, exp(middle))


def _in_rhythm(parts: LoopParts, rule: LateRule) -> Worked:
    """The same of a loop whose fleet keeps pace with the rhythm of its lengths; 0 of others."""
    if parts.cycle is None:
        return 0.0
    then, waste = parts, 1.0
    for _ in range(_ROUNDS):
        waste = parts.cycle.waste(*_train_and_pause(then))
        then = _wasting(numbers, parts, waste, rule.lengths.taken(1.0 / waste))
    return where(then.generation_seconds <= parts.cycle.seconds(*_train_and_pause(then)), waste, 0.0)


def _needed(parts: LoopParts, rule: LateRule, cycle_seconds: Worked, waste: Worked) -> Worked:
    """Samples that must be generated for each that is trained on, in the step that so many of them make."""
    # a trainer that is quicker by it holds no fleet up
    step = _together(numbers, _wasting(numbers, parts, waste, 1.0), cycle_seconds)
    after = step.train_seconds, step.sync_exposed_seconds, step.overhead_seconds
    time = rl_step.time_until_due(step.seconds, *after, rule.max_staleness)
    reached, apart = (
        batch_drain.reached_tokens(seconds, rule.sample_seconds, rule.lengths.response_tokens, inf)
        for seconds in (time, step.seconds)
    )
    return 1.0 / maximum(rule.lengths.kept(reached, apart), 1.0 / _MOST_WASTE)


def within_a_loop(work: Work, key: str, seconds: Worked, values: Mapping[str, Worked], *, moe: bool) -> Worked:
    """Generation inside a loop, over the engine by itself."""
    slow = [values["step_rollout_slowdown"]]
    slow += [values["step_rollout_moe_slowdown"]] if moe else []
    for factor in slow:
        seconds = work(key, kernel_time.slowed, seconds=seconds, slowdown=factor)
    return seconds


def trained_in_loop(work: Work, train: TrainStep, values: Mapping[str, Worked]) -> tuple[Worked, Worked]:
    """Update and extra forward passes within a loop."""
    own = values["step_train"]
    extra = added(work, "forward_seconds", list(train.forward_seconds.values()) or [0.0])
    updates = work("update_seconds", rollout_batch.beyond, whole=train.train_seconds, part=extra)
    update = work("update_seconds", kernel_time.slowed, seconds=updates, slowdown=own)
    forwards = work("logprob_seconds", kernel_time.slowed, seconds=extra, slowdown=own)
    return update, forwards


def idle_fractions(work: Work, loop: Loop, step: Step) -> tuple[Worked, Worked]:
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
        longer = iteration.overlapped_iteration_time
        both = {"rollout_seconds": generated, "train_seconds": trained}
        busy[1] = work("phases_seconds", longer, **both, exposed_sync_seconds=0.0)
    first, second = (
        work(f"{side}_idle_fraction", loop_time.waiting_fraction, busy_seconds=seconds, iteration_seconds=step.seconds)
        for side, seconds in zip(("rollout", "trainer"), busy, strict=True)
    )
    return first, second


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPart:
    """
    A part of the wall clock.

    Args:
        name: Which.
        seconds: Its time.
        share: That over the step.
        scales: What shortens it: more rollout GPUs, more trainer GPUs, or nothing.
    """

    name: str
    seconds: Figure
    share: Figure
    scales: str


def step_parts(step: Step, loop: Loop) -> tuple[StepPart, ...]:
    """
    The parts of a step in the order in which they come; those that take no time are left out.

    Args:
        step: The step in figures.
        loop: How its phases follow each other.
    """
    overhead = _overhead_parts(step)
    parts = [
        *_generation_parts(step, loop),
        ("logprobs", step.logprob_seconds, TRAINER),
        ("update", step.update_seconds, TRAINER),
        ("sync", step.sync_exposed_seconds, TRAINER),
        *((name, seconds, NOTHING) for name, seconds in overhead.items()),
    ]
    return tuple(
        StepPart(
            name=name,
            seconds=seconds,
            share=apply("share_fraction", train_step.time_share, part=seconds, whole=step.seconds),
            scales=scales,
        )
        for name, seconds, scales in parts
        if isinstance(seconds, Figure) and seconds.number > 0  # what is known to take no time is a bare 0
    )


def _generation_parts(step: Step, loop: Loop) -> list[tuple[str, Figure, str]]:
    """Generation that the trainer waits for; where phases take turns, its tail apart."""
    if loop in OVERLAPPING:
        return [("waiting", step.generation_exposed_seconds, ROLLOUT)]
    full = apply("generation_seconds", rollout_batch.beyond, whole=step.generation_seconds, part=step.tail_seconds)
    return [("generation", full, ROLLOUT), ("tail", step.tail_seconds, NOTHING)]


def _overhead_parts(step: Step) -> dict[str, Figure]:
    """The overhead by what it grows with."""
    values = step.overhead_seconds.inputs
    if "own_seconds" in values:  # of a run that was measured, of which nobody knows what it grows with
        return {"own": step.overhead_seconds}
    if "fixed_seconds" not in values:
        return {"said": step.overhead_seconds}
    none = {"fixed_seconds": 0.0, "sample_seconds": 0.0, "samples": 0.0}
    kinds = {"fixed": ("fixed_seconds",), "samples": ("sample_seconds", "samples")}
    return {
        name: apply("overhead_seconds", rl_step.step_overhead, **{**none, **{key: values[key] for key in keys}})
        for name, keys in kinds.items()
    }
