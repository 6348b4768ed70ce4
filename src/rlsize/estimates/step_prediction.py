"""One optimizer step of an RL loop from model, GPUs, split, lengths and mode, and the ways to run a loop."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from rlsize.equations import decode_step, matching, rl_step, rollout_batch
from rlsize.estimates import constants_memory, constants_rollout, constants_step, constants_sync, constants_train
from rlsize.estimates.figures import apply, numbers
from rlsize.estimates.generation import StepBatch, generation, longest_sequence
from rlsize.estimates.model_size import model_size
from rlsize.estimates.prefix_cache import expected_hits
from rlsize.estimates.step_assembly import REFILLING, LoopParts, Step, assembled, trained_in_loop, within_a_loop
from rlsize.estimates.sync_prediction import TRANSPORTS, SyncTimeQuestion, sync_time
from rlsize.estimates.train_prediction import train_step
from rlsize.facts.figure import Figure
from rlsize.facts.records.record import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.figures import Work, Worked
    from rlsize.estimates.generation import Generation
    from rlsize.estimates.rollout_prediction import Replica
    from rlsize.estimates.step_assembly import Loop
    from rlsize.estimates.train_prediction import TrainQuestion

_USUAL = {True: "colocated", False: "nccl-broadcast"}  # transport by whether GPUs are shared
_SYNC_GPUS = 8.0  # of the trainers whose weight syncs the rates of handling are of
_BLOCK_TOKENS = 16.0  # of a cache block
STAGES = (
    constants_step.STAGE,
    constants_rollout.STAGE,
    constants_train.STAGE,
    constants_sync.STAGE,
    constants_memory.STAGE,
)
"""The stages whose constants a step is predicted from."""
LOOPS: tuple[Loop, ...] = ("colocated", "synchronous", "one-step-off", "async")
"""Every way to lay a loop out in time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """
    One way to run a loop.

    Args:
        loop: How the phases follow each other.
        rollout_gpus: GPUs that generate. [1]
        trainer_gpus: GPUs that train; the same ones where colocated. [1]
    """

    loop: Loop
    rollout_gpus: float
    trainer_gpus: float

    @property
    def shared(self) -> bool:
        """Whether both sides take turns on the same GPUs."""
        return self.loop == "colocated"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepQuestion:
    """
    An RL loop whose step is asked for; numbers, arrays of them, or figures.

    Args:
        way: How it is run.
        engines: One rollout instance where GPUs are shared (True) and where they are not (False), or why there is none.
        train: The trainer and its work.
        samples: Samples that are generated for a step. [1]
        group_size: Samples of one prompt, on one instance. [1]
        prompt_tokens: Mean prompt length. [token]
        response_tokens: Mean response length. [token]
        response_cv: Its coefficient of variation without the cap; the constant where None, or absent. [1]
        max_tokens: Longest response; None, or absent, for no cap. [token]
        max_staleness: Staleness cap in steps. [1]
        transport: Class of the weight sync.
        wire_dtype: Number type of weights on the wire.
    """

    way: Way
    engines: Mapping[bool, Replica | str]
    train: TrainQuestion
    samples: Real
    group_size: Real
    prompt_tokens: Real
    response_tokens: Real
    response_cv: Real = None
    max_tokens: Real = None
    max_staleness: Real = 1.0
    transport: str = "nccl-broadcast"
    wire_dtype: str = "bf16"

    @property
    def engine(self) -> Replica:
        """
        The instance.

        Raises:
            Refused: There is none, with the reason.
        """
        found = self.engines[self.way.shared]
        if isinstance(found, str):
            raise Refused(found)
        return found

    @property
    def bare(self) -> StepQuestion:
        """The same in bare numbers."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        numbers: dict[str, Any] = {
            name: value.number if value.known else None for name, value in values.items() if isinstance(value, Figure)
        }
        return replace(self, train=self.train.bare(), **numbers)

    def on(self, way: Way) -> StepQuestion:
        """The same work, run another way."""
        return replace(self, way=way, train=replace(self.train, gpus=way.trainer_gpus))


def predicted_step(question: StepQuestion, values: Mapping[str, Real]) -> Step:
    """
    The time of an optimizer step.

    Args:
        question: The loop.
        values: Constants of all stages by name: numbers, or arrays of draws.

    Raises:
        Refused: The question has no answer, with the reason.
    """
    work, shared, model = numbers, question.way.shared, question.engine.question.model
    moe = model.architecture.moe is not None
    fleet = fleet_generation(question, values)
    update, forwards = trained_in_loop(work, train_step(work, question.train, values), values, shared=shared)
    sync = SyncTimeQuestion(
        model=model,
        gpu=question.engine.question.gpu,
        transport=suiting(question.transport, shared=shared),
        dtype=question.wire_dtype,
        trainer_gpus=question.train.gpus,
        rollout_gpus=question.way.rollout_gpus,
        instance_gpus=question.engine.numbers.gpus,
    )
    parts = LoopParts(
        loop=question.way.loop,
        generation_seconds=within_a_loop(work, "generation_seconds", fleet.seconds, values, moe=moe),
        tail_seconds=within_a_loop(work, "tail_seconds", fleet.tail_seconds, values, moe=moe),
        update_seconds=update,
        logprob_seconds=forwards,
        sync_seconds=sync_in_loop(work, sync, values),
        overhead_seconds=overhead_in_loop(
            work, question.samples, model_size(model).params.number, values, shared=shared
        ),
        exposed_share=values["step_sync_exposed"],
        variation=values["step_variation"],
    )
    return assembled(work, parts)


def fleet_generation(question: StepQuestion, values: Mapping[str, Real]) -> Generation:
    """
    What the fleet makes of a step's samples, the engines by themselves.

    Raises:
        Refused: The GPUs do not hold an instance.
    """
    size = question.engine.numbers.gpus
    instances = matching.instances_of(gpus=question.way.rollout_gpus, gpus_per_instance=size)
    if instances < 1:
        raise Refused(f"{question.way.rollout_gpus:g} rollout GPUs do not hold an instance of {size:g}")
    refill = question.way.loop in REFILLING
    allowed = rl_step.allowed_in_flight(samples_per_step=question.samples, max_staleness=question.max_staleness)
    batch = StepBatch(
        samples=question.samples,
        instances=float(instances),
        prompt_tokens=question.prompt_tokens,
        response_tokens=question.response_tokens,
        response_cv=question.response_cv if question.response_cv is not None else values["step_length_cv"],
        max_tokens=question.max_tokens,
        hit_ratio=expected_hits(question.group_size, question.prompt_tokens, _BLOCK_TOKENS, 1.0, work=numbers),
        in_flight=allowed if refill else None,
        ending="refill" if refill else "barrier",
    )
    return generation(numbers, question.engine, batch, values)


def suiting(transport: str, *, shared: bool) -> str:
    """The class of transport, or the usual one where it does not go with the placement."""
    return transport if TRANSPORTS[transport].colocated == shared else _USUAL[shared]


def sync_in_loop(work: Work, wanted: SyncTimeQuestion, values: Mapping[str, Worked]) -> Worked:
    """Seconds of a weight sync of a loop, whose trainer's GPUs handle their own shares."""
    return work(
        "sync_seconds",
        rl_step.shared_out_sync,
        seconds=sync_time(work, wanted, values),
        gpus=wanted.trainer_gpus,
        usual_gpus=_SYNC_GPUS,
        exponent=values["step_sync_shared"],
    )


def overhead_in_loop(
    work: Work, samples: Worked, params: Worked, values: Mapping[str, Worked], *, shared: bool
) -> Worked:
    """What belongs to no phase of a loop's step."""
    return work(
        "overhead_seconds",
        rl_step.step_overhead,
        fixed_seconds=values["step_fixed_colocated" if shared else "step_fixed_disaggregated"],
        sample_seconds=values["step_sample"],
        samples=samples,
        param_seconds=values["step_param"],
        params=params,
    )


def generated_figures(
    fleet: Generation, instances: float, lengths: Mapping[str, Figure], *, refill: bool
) -> tuple[Figure, Figure]:
    """
    Time of the fleet as a figure, and its tail; the integral over the drain is told as the time that it adds.

    Args:
        fleet: What it makes of its samples, in central numbers.
        instances: Rollout instances.
        lengths: Figures of `samples` and `response_tokens`.
        refill: Whether finished samples are replaced at once.
    """
    key = "generation_seconds"
    tail = Figure(
        key="tail_seconds",
        value=float(fleet.tail_seconds),
        provenance="predicted",
        source="integral of the engine step over the lengths that are left as the batch drains",
    )
    if refill:
        rate = Figure(
            key="instance_tokens_per_second",
            value=float(fleet.rate),
            provenance="predicted",
            source="rollout_batch.steady_rate, as rlsize predict rollout explains it",
        )
        made = apply(key, rollout_batch.fleet_time, instances=instances, instance_rate=rate, **lengths)
        return made, replace(tail, source="finished samples are replaced at once")
    if fleet.tail_seconds <= 0:
        source = "integral of the engine step as the batch drains"
        return Figure(key=key, value=float(fleet.seconds), provenance="predicted", source=source), tail
    packed = Figure(
        key="packed_seconds",
        value=float(fleet.full_seconds),
        provenance="predicted",
        source="rollout_batch.packed_time: all samples at the batch's own rate",
    )
    return apply(key, decode_step.both_times, first=packed, second=tail), tail


def longest_tokens(question: StepQuestion, values: Mapping[str, Real]) -> float:
    """
    The longest sequence of a loop, which memory must hold whole. [token]

    Args:
        question: The loop, in figures.
        values: Central values of the constants, for a spread of lengths that nobody gave.
    """
    bare = question.bare
    batch = StepBatch(
        samples=bare.samples,
        instances=1.0,
        prompt_tokens=bare.prompt_tokens,
        response_tokens=bare.response_tokens,
        response_cv=values["step_length_cv"] if bare.response_cv is None else bare.response_cv,
        max_tokens=bare.max_tokens,
    )
    return longest_sequence(batch, capped=question.max_tokens.provenance == "given")
