"""`rlsize predict rollout`: how quickly an engine generates, before it has been measured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.commands import flags
from rlsize.commands import predict_rollout_flags as of
from rlsize.commands.memory_flags import GpuName, ModelName
from rlsize.commands.predict_rollout_flags import EngineFlags, LoadFlags
from rlsize.errors import Fault, InputError
from rlsize.facts.figure import Figure
from rlsize.facts.records.record import Refused
from rlsize.reports.report import Report
from rlsize.shell.beliefs import CalibrationFile, belief_of
from rlsize.shell.inputs import Inputs

if TYPE_CHECKING:
    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.rollout_prediction import Engine
    from rlsize.estimates.rollout_question import RolloutQuestion

_LONGEST_SEED = 18


def predict_rollout(
    scenario: flags.ScenarioFile = None,
    model: ModelName = None,
    gpu: GpuName = None,
    engine: of.EngineName = None,
    engine_version: of.EngineVersion = None,
    tensor_parallel: of.TensorParallel = None,
    pipeline_parallel: of.PipelineParallel = None,
    data_parallel: of.DataParallel = None,
    expert_parallel: of.ExpertParallel = None,
    dtype: of.Dtype = None,
    kv_dtype: of.KvDtype = None,
    memory_fraction: of.MemoryFraction = None,
    max_num_seqs: of.MaxNumSeqs = None,
    served: of.Served = False,
    prompt_tokens: of.PromptTokens = None,
    response_tokens: of.ResponseTokens = None,
    response_cv: of.ResponseCv = None,
    max_response_tokens: of.MaxResponseTokens = None,
    prompts: of.Prompts = None,
    group: of.Group = None,
    samples: of.Samples = None,
    routing: of.Routing = None,
    block_size: of.BlockSize = None,
    hit_ratio: of.HitRatio = None,
    concurrency: of.Concurrency = None,
    instances: of.Instances = None,
    rollout_gpus: of.RolloutGpus = None,
    refill: of.Refill = None,
    calibration: CalibrationFile = None,
    seed: flags.Seed = "0",
    profiles: flags.Profiles = None,
) -> Report:
    """
    How quickly an engine generates, at which concurrency, and how long an optimizer step's samples take.

    Example:  rlsize predict rollout --model qwen3-32b --gpu h200-sxm --tensor-parallel 2 --prompt-tokens 1024
    --response-tokens 4096 --concurrency 144
    """
    inputs = Inputs(scenario, profiles)
    said = EngineFlags(
        engine=engine,
        version=engine_version,
        tensor=tensor_parallel,
        pipeline=pipeline_parallel,
        data=data_parallel,
        expert=expert_parallel,
        dtype=dtype,
        kv_dtype=kv_dtype,
        memory_fraction=memory_fraction,
        max_num_seqs=max_num_seqs,
        served=served,
    )
    load = LoadFlags(
        prompt_tokens=prompt_tokens,
        response_tokens=response_tokens,
        response_cv=response_cv,
        max_response_tokens=max_response_tokens,
        prompts=prompts,
        group=group,
        samples=samples,
        routing=routing,
        block_size=block_size,
        hit_ratio=hit_ratio,
        concurrency=concurrency,
        instances=instances,
        rollout_gpus=rollout_gpus,
        refill=refill,
    )
    return _answer(inputs, (model, gpu), said, load, (calibration, seed))


def _answer(
    inputs: Inputs,
    named: tuple[str | None, str | None],
    said: EngineFlags,
    load: LoadFlags,
    beliefs: tuple[str | None, str],
) -> Report:
    from rlsize.commands.predict_rollout_engine import degrees, engine_question
    from rlsize.commands.predict_rollout_load import rollout_question
    from rlsize.estimates.rollout_fit import first_fit, fits_narrower, usual_degree, why_not
    from rlsize.estimates.rollout_outlook import STAGES, rollout_outlook
    from rlsize.reports.predict_rollout import does_not_fit_report, predict_rollout_report

    draws = _seed(inputs, beliefs[1])
    made, stated = engine_question(inputs, *named, said)
    asked = inputs.settled(made)
    _ready(asked, inputs)
    belief = belief_of(inputs, beliefs[0], *STAGES)
    central = belief.central()
    question = rollout_question(inputs, asked, load)
    inputs.settle()
    possible = degrees(asked.model)
    if not stated:
        question = _smallest(inputs, question, load, usual_degree(question, possible, central) or possible[-1])
    reason = why_not(question, central)
    if reason:
        found = first_fit(question, possible, central)
        narrower = fits_narrower(question, central)
        return does_not_fit_report(question, reason, found, inputs.shown(), inputs.warnings, narrower=narrower)
    outlook = rollout_outlook(question, _ready(question.engine, inputs), belief, draws)
    return predict_rollout_report(outlook, inputs.shown(), inputs.warnings, inputs.notes)


def _seed(inputs: Inputs, text: str) -> int:
    """The seed of the draws."""
    if text.isascii() and text.isdecimal() and len(text) <= _LONGEST_SEED:
        return int(text)
    inputs.fault(f"{text[:20]!r} is not a whole number", "--seed", "write 0 or 42")
    return 0


def _ready(asked: EngineQuestion, inputs: Inputs) -> Engine:
    """
    The engine, ready to be asked.

    Raises:
        InputError: The GPU lacks the number type, or its kernels are not known.
    """
    from rlsize.estimates.rollout_prediction import engine

    try:
        return engine(asked)
    except Refused as refusal:
        dtype = inputs.used.get("rollout_dtype")
        what, _, todo = str(refusal).partition("; ")
        where = dtype.source if dtype is not None and dtype.provenance == "given" else "--dtype"
        raise InputError(Fault(what, where if todo else "--gpu", todo)) from None


def _smallest(inputs: Inputs, question: RolloutQuestion, load: LoadFlags, degree: int) -> RolloutQuestion:
    """The question with as few GPUs as hold the model, where nobody said how many."""
    from rlsize.commands.predict_rollout_load import rollout_question
    from rlsize.estimates.rollout_fit import A_FEW

    source = f"as few GPUs as hold the model and {A_FEW} samples"
    inputs.keep(Figure(key="tensor_parallel", value=degree, provenance="default", source=source))
    inputs.notes.clear()
    layout = replace(question.engine.layout, tensor=degree)
    found = rollout_question(inputs, replace(question.engine, layout=layout), load)
    inputs.settle()
    return found
