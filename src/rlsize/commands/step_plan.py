"""The RL loop of a scenario, from its rollout and train plans."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.commands.loop_words import LOOPS
from rlsize.commands.plans import Said, rollout_plan, stated, sync_plan, train_plan, train_setting
from rlsize.errors import Fault, InputError
from rlsize.estimates.rollout_prediction import engine
from rlsize.estimates.step_prediction import StepQuestion
from rlsize.facts.records.record import Refused
from rlsize.shell.beliefs import rollout_layout

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.estimates.step_assembly import Loop
    from rlsize.facts.calibration import CalibrationSetting
    from rlsize.shell.inputs import Inputs

OTHER: Mapping[Loop, Loop] = MappingProxyType(
    {"colocated": "async", "synchronous": "async", "one-step-off": "synchronous", "async": "synchronous"}
)
"""The loop that tells most beside one: in turn where phases overlap, overlapping where they take turns."""

_SHARED_FRACTION = 0.6  # of the memory, where engines share GPUs with a trainer and nobody says


def step_plan(inputs: Inputs, said: Said) -> StepQuestion:
    """
    The loop.

    Raises:
        InputError: What is missing for a prediction, or why there can be no such loop.
    """
    mode = inputs.said("placement.mode")
    if mode is None:
        raise InputError(Fault("the mode of the loop is not known", "placement.mode", "write colocated or async"))
    loop = LOOPS[str(mode)]
    rollout = rollout_plan(inputs.apart(), said)
    train = train_plan(inputs.apart(), said)
    sync = sync_plan(inputs.apart(), said)
    asked = rollout.question
    if loop == "colocated" and asked.memory_fraction is None:
        asked = replace(asked, memory_fraction=_SHARED_FRACTION)
    staleness = stated(inputs, said, "max_staleness", "placement.max_staleness")
    try:
        ready = engine(asked)
    except Refused as refusal:
        raise InputError(Fault(str(refusal), "--gpu")) from None
    return StepQuestion(
        engine=ready,
        train=train,
        loop=loop,
        rollout_gpus=_rollout_gpus(inputs, said, loop, float(train.gpus), ready.numbers.gpus),
        samples=float(train.sequences),
        group_size=stated(inputs, said, "group_size", "workload.group_size") or 1.0,
        prompt_tokens=rollout.prompt,
        response_tokens=rollout.response,
        response_cv=stated(inputs, said, "response_cv", "workload.response_tokens.cv"),
        max_tokens=rollout.longest,
        max_staleness=1.0 if staleness is None else max(1.0, staleness),
        transport=sync.transport,
        wire_dtype=sync.dtype,
    )


def _rollout_gpus(inputs: Inputs, said: Said, loop: Loop, trainer: float, size: float) -> float:
    """GPUs that generate: said, those that the trainer leaves, or the trainer's own."""
    if loop == "colocated":
        return trainer
    instances = stated(inputs, said, "instances", "placement.instances")
    if instances is not None:
        return instances * size
    pool = stated(inputs, said, "rollout_gpus", "placement.rollout_gpus")
    total = stated(inputs, said, "gpus", "cluster.gpus")
    if pool is None and total is not None and total > trainer:
        pool = total - trainer
    if pool is None or pool < size:
        raise InputError(Fault("the GPUs of the rollout fleet are not known", "--rollout-gpus"))
    return size * (pool // size)


def step_setting(question: StepQuestion) -> CalibrationSetting:
    """What a loop runs, as calibrations name it."""
    asked = question.engine.question
    layout = rollout_layout(asked.layout.tensor, asked.layout.pipeline, asked.layout.data)
    return replace(train_setting(question.train), engine=asked.engine, rollout_layout=layout)


def other_mode(question: StepQuestion) -> StepQuestion:
    """The same work on the same GPUs in another mode."""
    loop = OTHER[question.loop]
    if question.loop != "colocated":
        return replace(question, loop=loop)
    half = question.engine.numbers.gpus * max(1.0, float(question.rollout_gpus) // 2 // question.engine.numbers.gpus)
    return replace(question, loop=loop, rollout_gpus=half)
