"""What can be predicted of a plan: an instance and its load, the train step, the weight sync."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlsize.commands import asking, flags
from rlsize.errors import Fault, InputError
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.planned import RolloutPlan
from rlsize.estimates.prefix_cache import expected_hits
from rlsize.facts.calibration import CalibrationSetting
from rlsize.facts.figure import Figure
from rlsize.facts.quantisation import KV_WIDTHS, WIDTHS, uniform
from rlsize.facts.records.record import Layout
from rlsize.shell.beliefs import rollout_layout, trainer_layout
from rlsize.shell.models import model_profile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.estimates.sync_prediction import SyncTimeQuestion
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model
    from rlsize.shell.inputs import Inputs

_BLOCK_TOKENS = 16.0  # vLLM's default on GPUs
_AFFINE = ("", "affine")
_USUAL_CV = 1.0
_KEYS = {  # scenario keys of what a plan needs, with the flags that say the same
    "prompts_per_step": "--prompts",
    "group_size": "--group",
    "response_tokens": "--response-tokens",
    "prompt_tokens": "--prompt-tokens",
    "samples_per_step": "--samples",
    "trainer_gpus": "--trainer-gpus",
    "rollout_gpus": "--rollout-gpus",
    "gpus_per_instance": "--gpus-per-instance",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """
    What is known beside the scenario, and goes before it: flags, or the conditions of a measurement.

    Args:
        model: A model profile or the path of a configuration.
        gpu: A GPU profile.
        numbers: Quantities by key, such as `prompt_tokens`; None where nothing is said.
        words: The same of words: `dtype`, `kv_dtype`, `engine`.
    """

    model: str | None = None
    gpu: str | None = None
    numbers: Mapping[str, float | str | None] = field(default_factory=dict)
    words: Mapping[str, str | None] = field(default_factory=dict)


def profiles_of(inputs: Inputs, said: Said) -> tuple[Model, Gpu]:
    """
    The model and the GPU.

    Raises:
        InputError: One is missing or unknown.
    """
    model, gpu = model_profile(inputs, said.model), asking.gpu(inputs, said.gpu)
    if model is None and not inputs.faults:
        inputs.fault("the model's layers are not known", "--model", "name a profile or a config.json")
    if gpu is None and not inputs.faults:
        inputs.fault("the GPU is not known", "--gpu", "name a profile, such as h100-sxm")
    if model is None or gpu is None or inputs.faults:
        raise InputError(*inputs.faults)
    return model, gpu


def stated(inputs: Inputs, said: Said, key: str, scenario: str) -> float | None:
    """A number: said, asked before, or of the scenario."""
    given = said.numbers.get(key)
    if given is not None:
        figure = inputs.number(key, _KEYS.get(key, key), given, flags.POSITIVE)
        return figure.number if figure.known else None
    known = inputs.used.get(key)
    if known is not None and known.known:
        return known.number
    stated = inputs.said(scenario)
    return float(stated) if stated is not None else None


def rollout_plan(inputs: Inputs, said: Said) -> RolloutPlan:
    """
    One instance and its load.

    Raises:
        InputError: What is missing for a prediction.
    """
    model, gpu = profiles_of(inputs, said)
    prompt = stated(inputs, said, "prompt_tokens", "workload.prompt_tokens")
    response = stated(inputs, said, "response_tokens", "workload.response_tokens.mean")
    layout = _instance(inputs, said)
    lacking = [
        Fault(f"{what} is not known", flag)
        for what, flag, value in (
            ("the mean prompt length", "--prompt-tokens", prompt),
            ("the mean response length", "--response-tokens", response),
            ("the size of an instance", "--gpus-per-instance", layout),
        )
        if value is None
    ]
    if lacking or inputs.faults or prompt is None or response is None or layout is None:
        raise InputError(*inputs.faults, *lacking)
    longest = model.architecture.max_context
    if prompt + response > longest:
        what = f"{prompt:,.0f} + {response:,.0f} tokens are more than {model.name}'s {longest:,}"
        raise InputError(Fault(what, "--response-tokens", "shorten it, or take a model with a longer context"))
    spread = stated(inputs, said, "response_cv", "workload.response_tokens.cv")
    cap = stated(inputs, said, "max_response_tokens", "workload.response_tokens.max")
    dtype = _word(inputs, said, "dtype", "rollout.dtype", WIDTHS)
    return RolloutPlan(
        question=EngineQuestion(
            model=model,
            gpu=gpu,
            layout=layout,
            engine=_word(inputs, said, "engine", "rollout.engine") or "vllm",
            weights=uniform(dtype) if dtype else None,
            kv_dtype=_word(inputs, said, "kv_dtype", "rollout.kv_dtype", KV_WIDTHS) or "bf16",
            memory_fraction=stated(inputs, said, "memory_fraction", "rollout.memory_fraction"),
        ),
        prompt=prompt,
        response=response,
        response_cv=_USUAL_CV if spread is None else spread,
        longest=None if cap is None else max(cap, response),
        hits=_hits(inputs, said, prompt),
    )


def _word(inputs: Inputs, said: Said, key: str, scenario: str, known: Mapping[str, float] | None = None) -> str | None:
    value = said.words.get(key) or inputs.said(scenario)
    if not isinstance(value, str):
        return None
    value = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}.get(value, value)
    return value if known is None or value in known else None


def _instance(inputs: Inputs, said: Said) -> Layout | None:
    tensor = stated(inputs, said, "rollout_tensor_parallel", "rollout.tensor_parallel")
    pipeline = stated(inputs, said, "rollout_pipeline_parallel", "rollout.pipeline_parallel") or 1
    if tensor is None:
        tensor = stated(inputs, said, "gpus_per_instance", "")
        pipeline = 1
    return None if tensor is None else Layout(tensor=round(tensor), pipeline=round(pipeline))


def _hits(inputs: Inputs, said: Said, prompt: float) -> float:
    """Share of prompt tokens in the prefix cache: measured, or what groups that are kept together find."""
    measured = said.numbers.get("prefix_cache_hit_fraction")
    if isinstance(measured, (int, float)):
        return min(float(measured), flags.HIT_RATIO.most or 1.0)
    group = stated(inputs, said, "group_size", "workload.group_size")
    if group is None or str(inputs.said("rollout.routing") or "") not in _AFFINE:
        return 0.0
    values = (("group_size", group), ("prompt_tokens", prompt), ("block_tokens", _BLOCK_TOKENS))
    return expected_hits(*(Figure(key=key, value=value) for key, value in values)).number


def rollout_setting(plan: RolloutPlan) -> CalibrationSetting:
    """What a rollout plan runs, as calibrations name it."""
    asked = plan.question
    return CalibrationSetting(
        model=asked.model.name,
        gpu=asked.gpu.name,
        engine=asked.engine,
        rollout_layout=rollout_layout(asked.layout.tensor, asked.layout.pipeline, asked.layout.data),
    )


def train_plan(inputs: Inputs, said: Said) -> TrainQuestion:
    """
    The train step, in bare numbers.

    Raises:
        InputError: What is missing for a prediction, or why there can be no such trainer.
    """
    from rlsize.commands.predict_train_flags import LayoutFlags, Models, Trainer, Work
    from rlsize.commands.predict_train_inputs import train_question
    from rlsize.estimates.train_prediction_question import bare_question

    def text(key: str) -> str | None:
        value = said.numbers.get(key)
        known = inputs.used.get(key)
        if value is None and known is not None and known.known and not _of_scenario(inputs, known):
            value = known.number
        return None if value is None else str(value)

    work = Work(
        prompts=text("prompts_per_step"),
        group=text("group_size"),
        samples=text("samples_per_step"),
        prompt_tokens=text("prompt_tokens"),
        response_tokens=text("response_tokens"),
        response_cv=text("response_cv"),
    )
    layout = LayoutFlags(gpus=text("trainer_gpus"))
    question = train_question(inputs, (said.model, said.gpu), work, layout, Trainer(), Models())
    return bare_question(question)


def _of_scenario(inputs: Inputs, figure: Figure) -> bool:
    """Whether the scenario said it, which it can do again."""
    return inputs.file is not None and figure.source.startswith(inputs.file.document.name)


def train_setting(question: TrainQuestion) -> CalibrationSetting:
    """What a train plan runs, as calibrations name it."""
    return CalibrationSetting(
        model=question.model.name,
        gpu=question.gpu.name,
        trainer_layout=trainer_layout(question.tensor, question.pipeline, question.context, question.expert),
    )


def sync_plan(inputs: Inputs, said: Said) -> SyncTimeQuestion:
    """
    The weight sync.

    Raises:
        InputError: What is missing for a prediction.
    """
    from rlsize.commands.predict_sync import transport_class, wire_dtype
    from rlsize.estimates.sync_prediction import TRANSPORTS, SyncTimeQuestion

    model, gpu = profiles_of(inputs, said)
    transport = transport_class(inputs, None)
    trainer = stated(inputs, said, "trainer_gpus", "placement.trainer_gpus")
    total = stated(inputs, said, "gpus", "cluster.gpus")
    trainer = trainer or total or float(gpu.specification.gpus_per_node.value)
    shared = TRANSPORTS[transport].colocated
    rollout = trainer if shared else stated(inputs, said, "rollout_gpus", "placement.rollout_gpus")
    if rollout is None:
        rollout = total - trainer if total and total > trainer else trainer
    instance = _instance(inputs, said) or Layout()
    inputs.settle()
    return SyncTimeQuestion(
        model=model,
        gpu=gpu,
        transport=transport,
        dtype=wire_dtype(inputs, None),
        trainer_gpus=trainer,
        rollout_gpus=rollout,
        instance_gpus=min(float(instance.tensor * instance.pipeline), rollout),
    )


def sync_setting(question: SyncTimeQuestion) -> CalibrationSetting:
    """What a sync plan runs, as calibrations name it."""
    return CalibrationSetting(model=question.model.name, gpu=question.gpu.name)
