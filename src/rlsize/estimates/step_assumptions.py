"""What a prediction of a step had to assume, and what the step would be if it were otherwise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.equations import rl_step
from rlsize.estimates.memory_shape import memory_shape
from rlsize.estimates.model_size import model_size
from rlsize.estimates.rollout_prediction import engine
from rlsize.estimates.step_prediction import predicted_step
from rlsize.facts.records.record import Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.step_assembly import Loop
    from rlsize.estimates.step_prediction import StepQuestion

_FRACTIONS = (0.5, 0.9)  # of the memory: the other end of what is usual
_MIDDLE_FRACTION = 0.75
_WIDE_CV, _NARROW_CV = 1.0, 0.3
_LARGER_STALENESS = 4.0
_CAP = 4.0  # mean lengths: a tight cap
_OTHER_ENDING: Mapping[Loop, Loop] = {"async": "one-step-off", "one-step-off": "async"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """
    An input that nobody gave.

    Args:
        key: The input.
        taken: What was taken.
        instead: What it could be as well.
        times: How many times longer the step would be. [1]
    """

    key: str
    taken: str
    instead: str
    times: float


def assumptions(loop: StepQuestion, values: Mapping[str, float], assumed: Collection[str]) -> tuple[Assumption, ...]:
    """
    The inputs that nobody gave, those that matter most first.

    Args:
        loop: The loop, in figures.
        values: Central values of the constants.
        assumed: Keys of the inputs that are assumed: of `_others` below.
    """
    question = loop.bare.on(loop.way)
    usual = predicted_step(question, values).seconds
    found = []
    for key, taken, instead, other in _others(question, values):
        if key not in assumed:
            continue
        try:
            seconds = predicted_step(other, values).seconds
        except Refused:
            continue
        times = rl_step.times_longer(step_seconds=seconds, least_seconds=usual)
        found.append(Assumption(key=key, taken=taken, instead=instead, times=float(times)))
    return tuple(sorted(found, key=lambda entry: max(entry.times, 1 / entry.times), reverse=True))


def _others(question: StepQuestion, values: Mapping[str, Real]) -> Iterator[tuple[str, str, str, StepQuestion]]:
    """Each input that may be assumed: its key, what it is, what it could be, and the question with that."""
    yield from _of_the_engine(question)
    yield from _of_the_trainer(question)
    cv = question.response_cv if question.response_cv is not None else values["step_length_cv"]
    other = _NARROW_CV if cv > (_WIDE_CV + _NARROW_CV) / 2 else _WIDE_CV
    yield "response_cv", f"{cv:g}", f"{other:g}", replace(question, response_cv=other)
    cap = _CAP * question.response_tokens
    if question.max_tokens is None or question.max_tokens > cap:
        capped = replace(question, max_tokens=cap)
        yield "max_response_tokens", "no sample gets there", f"{cap:,.0f} tokens", capped
    if question.way.loop == "async":
        staler = replace(question, max_staleness=_LARGER_STALENESS)
        yield "max_staleness", f"{question.max_staleness:g}", f"{_LARGER_STALENESS:g}", staler
    if question.way.loop in _OTHER_ENDING:
        other_ending = _OTHER_ENDING[question.way.loop]
        otherwise = replace(question, way=replace(question.way, loop=other_ending))
        yield "mode", question.way.loop, other_ending, otherwise


def _of_the_engine(question: StepQuestion) -> Iterator[tuple[str, str, str, StepQuestion]]:
    asked = question.engine.question
    if asked.memory_fraction is not None:
        other = _FRACTIONS[asked.memory_fraction < _MIDDLE_FRACTION]
        moved = _with_engine(question, replace(asked, memory_fraction=other))
        yield "memory_fraction", f"{asked.memory_fraction:g}", f"{other:g}", moved
    wider = replace(asked.layout, tensor=2 * asked.layout.tensor)
    heads = memory_shape(asked.model, model_size(asked.model).params).heads
    if heads % wider.tensor == 0 and question.way.rollout_gpus % (2 * question.engine.numbers.gpus) == 0:
        moved = _with_engine(question, replace(asked, layout=wider))
        yield "rollout_tensor_parallel", f"{asked.layout.tensor} GPUs", f"{wider.tensor} GPUs", moved
    if asked.kv_dtype == "bf16" and asked.gpu.specification.fp8_dense is not None:
        yield "kv_dtype", "bf16", "fp8", _with_engine(question, replace(asked, kv_dtype="fp8"))


def _of_the_trainer(question: StepQuestion) -> Iterator[tuple[str, str, str, StepQuestion]]:
    asked = question.train
    taken = " and ".join(name.replace("_", " ") for name in asked.passes) or "none"
    if asked.passes:
        yield "logprob_passes", taken, "none", replace(question, train=replace(asked, passes=()))
    else:
        both = ("old_logprob", "reference")
        yield "logprob_passes", taken, "old and reference", replace(question, train=replace(asked, passes=both))
    if not asked.offload:
        yield "offload", "optimizer on the GPU", "on the host", replace(question, train=replace(asked, offload=True))
    if not (asked.fused or asked.native_attention):
        quick = replace(asked, fused=True, native_attention=True)
        yield "compiled", "eager kernels", "fused, native attention", replace(question, train=quick)


def _with_engine(question: StepQuestion, asked: EngineQuestion) -> StepQuestion:
    return replace(question, engines={question.way.shared: engine(asked)})
