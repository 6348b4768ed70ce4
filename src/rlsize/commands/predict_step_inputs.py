"""The loop behind `rlsize predict step`: the questions of its stages, from flags, scenario and profiles."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.commands import flags
from rlsize.commands.predict_rollout_engine import degrees, engine_question
from rlsize.commands.predict_rollout_flags import LoadFlags
from rlsize.commands.predict_rollout_load import USUAL_PROMPT, rollout_question
from rlsize.commands.predict_sync import transport_class, wire_dtype
from rlsize.commands.predict_train_inputs import train_question
from rlsize.equations import train_step
from rlsize.errors import Fault, InputError
from rlsize.estimates.constants_step import STAGE
from rlsize.estimates.rollout_fit import first_fit, why_not
from rlsize.estimates.rollout_prediction import engine
from rlsize.estimates.step_loops import LoopPlan, Way
from rlsize.estimates.working import apply
from rlsize.facts.engine_defaults import engine_defaults
from rlsize.facts.figure import Figure, absent
from rlsize.facts.records.record import Refused
from rlsize.planner.instance_size import quickest_degree

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.commands.predict_step_flags import StepFlags
    from rlsize.commands.predict_step_gpus import Pools
    from rlsize.commands.predict_train_flags import LayoutFlags, Models, Trainer, Work
    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.rollout_prediction import Engine
    from rlsize.estimates.rollout_question import RolloutQuestion
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.shell.inputs import Inputs

SHARED_FRACTION = 0.6  # of the memory, where engines share GPUs with a trainer and nobody says
_RENAMED = ("tensor_parallel", "pipeline_parallel", "data_parallel", "expert_parallel")
_FLAGS = {
    **{f"--{name.replace('_', '-')}": f"--rollout-{name.replace('_', '-')}" for name in _RENAMED},
    "--dtype": "--rollout-dtype",
}
_OF_THE_ENGINE = ("engine", "engine_version", "rollout_dtype", "kv_dtype", "memory_fraction", "max_num_seqs")
_SIZES = ("fsdp", "data")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """
    The stages of a loop as they were asked for.

    Args:
        rollout: One instance and its load.
        stated: Whether somebody said its tensor parallelism.
        train: The trainer and its work.
        transport: Class of the weight sync.
        wire_dtype: Number type of weights on the wire.
        max_staleness: Staleness cap. [1]
    """

    rollout: RolloutQuestion
    stated: bool
    train: TrainQuestion
    transport: str
    wire_dtype: str
    max_staleness: Figure


def asked_stages(inputs: Inputs, said: StepFlags, pools: Pools) -> Asked:
    """
    The questions of the stages.

    Raises:
        InputError: All faults.
    """
    instance, stated = _instance(inputs, said, pools)
    load = _load(inputs, instance, said) if instance is not None else None
    staleness = inputs.number(
        "max_staleness",
        "--max-staleness",
        said.loop.max_staleness,
        flags.STALENESS,
        scenario="placement.max_staleness",
        default=1.0,
        why="one step, the usual cap",
    )
    if pools.loop != "async":
        inputs.used.pop("max_staleness", None)
    side = inputs.apart()
    transport, dtype = transport_class(side, said.loop.transport), wire_dtype(side, None)
    inputs.faults += side.faults
    if pools.loop != "colocated":
        inputs.keep(side.used["transport"])
    try:
        train = train_question(inputs, said.named, _work(inputs, said.work), *_trainer(inputs, said, pools))
    except InputError as error:
        raise InputError(*dict.fromkeys(error.faults)) from None
    if load is None:  # its faults have been told with the trainer's
        raise InputError(*dict.fromkeys(inputs.faults) or [Fault("the rollout instance is not known", "--model")])
    return Asked(
        rollout=load,
        stated=stated,
        train=train,
        transport=transport,
        wire_dtype=dtype,
        max_staleness=staleness,
    )


def _instance(inputs: Inputs, said: StepFlags, pools: Pools) -> tuple[EngineQuestion | None, bool]:
    """One instance; its flags and keys say that they are the rollout's, as the trainer has such too."""
    side = inputs.apart()
    found, stated = engine_question(side, *said.named, said.engine)
    inputs.faults += [replace(fault, where=_FLAGS.get(fault.where, fault.where)) for fault in side.faults]
    inputs.warnings += side.warnings
    for key in ("model", "gpu", *_OF_THE_ENGINE):
        if key in side.used:
            inputs.keep(side.used[key])
    for key in _RENAMED:
        if key in side.used:
            figure = side.used[key]
            source = _FLAGS.get(figure.source, figure.source)
            inputs.keep(replace(figure, key=f"rollout_{key}", source=source))
    fraction = side.used.get("memory_fraction")
    if found is not None and pools.loop == "colocated" and fraction is not None and fraction.provenance == "default":
        found = replace(found, memory_fraction=SHARED_FRACTION)
        source = "usual where engines share GPUs with a trainer"
        inputs.keep(replace(fraction, value=SHARED_FRACTION, source=source))
    return found, stated


def _load(inputs: Inputs, instance: EngineQuestion, said: StepFlags) -> RolloutQuestion:
    """Lengths and samples, asked as `predict rollout` does."""
    side = inputs.apart()
    work = said.work
    found = rollout_question(
        side,
        instance,
        LoadFlags(
            prompt_tokens=work.prompt_tokens,
            response_tokens=work.response_tokens,
            response_cv=work.response_cv,
            max_response_tokens=said.cap,
            prompts=work.prompts,
            group=work.group,
            samples=work.samples,
            instances="1",  # how many there are is asked elsewhere
        ),
    )
    inputs.faults += side.faults
    inputs.notes += [note for note in side.notes if "response_tokens" not in note]
    return found


def _work(inputs: Inputs, said: Work) -> Work:
    """The trainer's work; where nobody says how long prompts are, as long as the engine's."""
    if said.prompt_tokens is None and inputs.said("workload.prompt_tokens") is None:
        return replace(said, prompt_tokens=f"{USUAL_PROMPT:g}")
    return said


def _trainer(inputs: Inputs, said: StepFlags, pools: Pools) -> tuple[LayoutFlags, Trainer, Models]:
    """How the trainer is spread: over its own GPUs, or over all of them where they are shared or not split yet."""
    sized = any(
        getattr(said.layout, name) is not None or inputs.said(f"trainer.parallelism.{name}") is not None
        for name in _SIZES
    )
    own = pools.trainer if pools.trainer.known else pools.gpus
    if not own.known or (sized and pools.loop != "colocated" and not pools.trainer.known):
        return said.layout, said.trainer, said.models
    return replace(said.layout, gpus=f"{own.number:g}"), said.trainer, said.models


def loop_plan(inputs: Inputs, asked: Asked, pools: Pools, values: Mapping[str, float]) -> tuple[LoopPlan, int | None]:
    """
    The plan, and the smallest degree of tensor parallelism at which an instance fits; its way is still to be chosen.

    Args:
        inputs: Takes what was chosen.
        asked: Its stages.
        pools: Mode and GPUs.
        values: Central values of the constants.
    """
    shared = pools.loop == "colocated"
    rollout = asked.rollout
    other = replace(
        rollout, engine=replace(rollout.engine, memory_fraction=_usual_fraction(rollout.engine, not shared))
    )
    engines = {
        shared: _engine(rollout, values, None if asked.stated else pools.gpus.number),
        not shared: _engine(other, values, None if asked.stated else pools.gpus.number),
    }
    own = engines[shared]
    if not asked.stated and not isinstance(own, str):
        degree, source = own.question.layout.tensor, "the size with the highest rate for each GPU"
        inputs.keep(Figure(key="rollout_tensor_parallel", value=degree, provenance="default", source=source))
    cv = _spread(inputs, rollout, values)
    lengths = {"prompt_tokens": rollout.prompt_tokens, "response_tokens": rollout.response_tokens}
    for figure in (*lengths.values(), cv):
        inputs.keep(figure)
    given = rollout.max_response_tokens.provenance == "given"
    if given:
        inputs.keep(rollout.max_response_tokens)
    tokens = apply("sequence_tokens", train_step.trained_sequence_tokens, **lengths)
    tokens_cv = apply("sequence_cv", train_step.trained_sequence_cv, response_cv=cv, **lengths)
    plan = LoopPlan(
        way=Way(loop=pools.loop, rollout_gpus=pools.gpus.number, trainer_gpus=pools.gpus.number),
        engines=engines,
        train=replace(asked.train, tokens=tokens, tokens_cv=tokens_cv),
        samples=rollout.samples_per_step,
        group_size=inputs.used.get("group_size", Figure(key="group_size", value=1.0, provenance="default")),
        response_cv=cv if cv.provenance != "default" else absent("response_cv", "--response-cv"),
        max_tokens=rollout.max_response_tokens,
        max_staleness=asked.max_staleness,
        transport=asked.transport,
        wire_dtype=asked.wire_dtype,
        **lengths,
    )
    return plan, first_fit(rollout, degrees(rollout.engine.model), values)


def _spread(inputs: Inputs, rollout: RolloutQuestion, values: Mapping[str, float]) -> Figure:
    """The spread of lengths: said, or that of published runs."""
    if rollout.response_cv.provenance != "default":
        return rollout.response_cv
    constant = next(one for one in STAGE.constants if one.name == "step_length_cv")
    inputs.used.pop("response_cv", None)
    return Figure(key="response_cv", value=values[constant.name], provenance="default", source=constant.source)


def _usual_fraction(asked: EngineQuestion, shared: bool) -> float:
    return SHARED_FRACTION if shared else engine_defaults(asked.engine).memory_fraction


def _engine(question: RolloutQuestion, values: Mapping[str, float], gpus: float | None) -> Engine | str:
    """
    The instance; why there is none where it does not fit.

    Args:
        question: The instance and its load.
        values: Central values of the constants.
        gpus: GPUs that it may take, where nobody said how many.

    Raises:
        InputError: The GPU lacks the number type, or its kernels are not known.
    """
    asked = question.engine
    try:
        if gpus is not None:
            possible = degrees(asked.model)
            degree = quickest_degree(question, possible, gpus, values)
            asked = replace(asked, layout=replace(asked.layout, tensor=degree or possible[-1]))
        return why_not(replace(question, engine=asked), values) or engine(asked)
    except Refused as refusal:
        what, _, todo = str(refusal).partition("; ")
        raise InputError(Fault(what, "--rollout-dtype" if todo else "--gpu", todo)) from None
