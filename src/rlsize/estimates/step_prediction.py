"""One optimizer step of a recorded loop, and the parts of a step that every prediction of one shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import matching, rl_step
from rlsize.errors import Refused
from rlsize.estimates import constants_memory, constants_rollout, constants_step, constants_sync, constants_train
from rlsize.estimates.figures import numbers
from rlsize.estimates.generation import StepBatch, generation
from rlsize.estimates.prefix_cache import expected_hits
from rlsize.estimates.step_assembly import REFILLING, LoopParts, Step, assembled, trained_in_loop, within_a_loop
from rlsize.estimates.sync_prediction import TRANSPORTS, SyncTimeQuestion, sync_time
from rlsize.estimates.train_prediction import train_step
from rlsize.frozen import dataclass

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


@dataclass(frozen=True, slots=True, kw_only=True)
class StepQuestion:
    """
    An RL loop that was measured, whose step is asked for, in numbers; a loop that is described has a placement.

    Args:
        loop: How the phases follow each other.
        engine: One rollout instance.
        rollout_gpus: GPUs that generate. [1]
        train: The trainer and its work, on its GPUs.
        samples: Samples that are generated for a step. [1]
        group_size: Samples of one prompt, on one instance. [1]
        prompt_tokens: Mean prompt length. [token]
        response_tokens: Mean response length. [token]
        response_cv: Its coefficient of variation without the cap; the constant where None. [1]
        max_tokens: Longest response; None for no cap. [token]
        max_staleness: Staleness cap in steps. [1]
        transport: Class of the weight sync.
        wire_dtype: Number type of weights on the wire.
        synced: Whether engines keep weights of their own, which a step renews.
    """

    loop: Loop
    engine: Replica
    rollout_gpus: float
    train: TrainQuestion
    samples: float
    group_size: float
    prompt_tokens: float
    response_tokens: float
    response_cv: float | None = None
    max_tokens: float | None = None
    max_staleness: float = 1.0
    transport: str = "nccl-broadcast"
    wire_dtype: str = "bf16"
    synced: bool = True


def predicted_step(question: StepQuestion, values: Mapping[str, Real]) -> Step:
    """
    The time of an optimizer step.

    Args:
        question: The loop.
        values: Constants of all stages by name: numbers, or arrays of draws.

    Raises:
        Refused: The question has no answer, with the reason.
    """
    work, shared, model = numbers, question.loop == "colocated", question.engine.question.model
    moe = model.architecture.moe is not None
    fleet = fleet_generation(question, values)
    update, forwards = trained_in_loop(work, train_step(work, question.train, values), values)
    sync = SyncTimeQuestion(
        model=model,
        gpu=question.engine.question.gpu,
        transport=suiting(question.transport, shared=shared),
        dtype=question.wire_dtype,
        trainer_gpus=question.train.gpus,
        rollout_gpus=question.rollout_gpus,
        instance_gpus=question.engine.gpus,
    )
    seconds = within_a_loop(work, "generation_seconds", fleet.seconds, values, moe=moe)
    parts = LoopParts(
        loop=question.loop,
        generation_seconds=seconds,
        cycle=None if fleet.cycle is None else fleet.cycle.slowed(seconds / fleet.seconds),
        tail_seconds=within_a_loop(work, "tail_seconds", fleet.tail_seconds, values, moe=moe),
        update_seconds=update,
        logprob_seconds=forwards,
        sync_seconds=sync_in_loop(work, sync, values) if question.synced else 0.0,
        overhead_seconds=overhead_in_loop(work, question.samples, values),
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
    size = question.engine.gpus
    instances = matching.instances_of(gpus=question.rollout_gpus, gpus_per_instance=size)
    if instances < 1:
        raise Refused(f"{question.rollout_gpus:g} rollout GPUs do not hold an instance of {size:g}")
    refill = question.loop in REFILLING
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
        group_size=question.group_size,
        max_staleness=question.max_staleness if question.loop == "async" else None,
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
        exponent=values["step_sync_colocated" if TRANSPORTS[wanted.transport].colocated else "step_sync_split"],
    )


def overhead_in_loop(work: Work, samples: Worked, values: Mapping[str, Worked]) -> Worked:
    """What belongs to no phase of a loop's step."""
    return work(
        "overhead_seconds",
        rl_step.step_overhead,
        fixed_seconds=values["step_fixed"],
        sample_seconds=values["step_sample"],
        samples=samples,
    )
