"""What a prediction of a step had to assume, and what the step would be if it were otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.equations import rl_step, train_step
from rlsize.estimates.memory_shape import memory_shape
from rlsize.estimates.model_size import model_size
from rlsize.facts.figure import Figure
from rlsize.facts.records.record import Refused
from rlsize.planner.choices import ready
from rlsize.planner.evaluation import worked

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.step_assembly import Loop
    from rlsize.planner.options import LoopProblem, Placement
    from rlsize.planner.outlook import Terms

    Other = tuple[str, str, str, LoopProblem, Placement]

_FRACTIONS = (0.5, 0.9)  # of the memory: the other end of what is usual
_MIDDLE_FRACTION = 0.75
_WIDE_CV, _NARROW_CV = 1.0, 0.3
_LARGER_STALENESS = 4.0
_CAP = 4.0  # mean lengths: a tight cap
_OTHER_ENDING: Mapping[Loop, Loop] = {"async": "one-step-off", "one-step-off": "async"}


class Assumption(NamedTuple):
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


def assumptions(terms: Terms, place: Placement, assumed: Collection[str]) -> tuple[Assumption, ...]:
    """
    The inputs that nobody gave, those that matter most first.

    Args:
        terms: In central numbers.
        place: The loop as it is placed; one that can run.
        assumed: Keys of the inputs that are assumed: of `_others` below.
    """
    usual = worked(terms, place)["step_seconds"]
    found = []
    for key, taken, instead, problem, other in _others(terms, place):
        if key not in assumed:
            continue
        try:
            seconds = worked(replace(terms, problem=problem), other)["step_seconds"]
        except Refused:
            continue
        times = rl_step.times_longer(step_seconds=seconds, least_seconds=usual)
        found.append(Assumption(key=key, taken=taken, instead=instead, times=float(times)))
    return tuple(sorted(found, key=lambda entry: max(entry.times, 1 / entry.times), reverse=True))


def _others(terms: Terms, place: Placement) -> Iterator[Other]:
    """Each input that may be assumed: its key, what it is, what it could be, and the loop and placement with that."""
    problem = terms.problem
    for key, taken, instead, other in (*_of_the_engine(place), *_of_the_trainer(place)):
        yield key, taken, instead, problem, other
    cv = terms.response_cv
    wide = _NARROW_CV if cv > (_WIDE_CV + _NARROW_CV) / 2 else _WIDE_CV
    lengths = {"prompt_tokens": problem.prompt_tokens.number, "response_tokens": problem.response_tokens.number}
    uneven = _with_trainer(place, tokens_cv=train_step.trained_sequence_cv(response_cv=wide, **lengths))
    yield "response_cv", f"{cv:g}", f"{wide:g}", replace(problem, response_cv=_other("response_cv", wide)), uneven
    cap = _CAP * problem.response_tokens.number
    if not problem.max_tokens.known or problem.max_tokens.number > cap:
        capped = replace(problem, max_tokens=_other("max_response_tokens", cap))
        yield "max_response_tokens", "no sample gets there", f"{cap:,.0f} tokens", capped, place
    if place.loop == "async":
        staler = replace(place, max_staleness=_LARGER_STALENESS)
        yield "max_staleness", f"{place.max_staleness:g}", f"{_LARGER_STALENESS:g}", problem, staler
    if place.loop in _OTHER_ENDING:
        ending = _OTHER_ENDING[place.loop]
        yield "mode", place.loop, ending, problem, replace(place, loop=ending)


def _other(key: str, value: float) -> Figure:
    return Figure(key=key, value=value, provenance="default", source="what it could be as well")


def _of_the_engine(place: Placement) -> Iterator[tuple[str, str, str, Placement]]:
    known = place.fleet.ready(shared=place.shared)
    if known is None:
        return
    asked = known.question
    if asked.memory_fraction is not None:
        other = _FRACTIONS[asked.memory_fraction < _MIDDLE_FRACTION]
        moved = _with_engine(place, replace(asked, memory_fraction=other))
        yield "memory_fraction", f"{asked.memory_fraction:g}", f"{other:g}", moved
    wider = replace(asked.layout, tensor=2 * asked.layout.tensor)
    heads = memory_shape(asked.model, model_size(asked.model).params).heads
    if heads % wider.tensor == 0 and place.instances % 2 == 0:
        half = replace(place, instances=place.instances / 2, fleet=replace(place.fleet, gpus=2 * place.fleet.gpus))
        moved = _with_engine(half, replace(asked, layout=wider))
        yield "rollout_tensor_parallel", f"{asked.layout.tensor} GPUs", f"{wider.tensor} GPUs", moved
    if asked.kv_dtype == "bf16" and asked.gpu.specification.fp8_dense is not None:
        yield "kv_dtype", "bf16", "fp8", _with_engine(place, replace(asked, kv_dtype="fp8"))


def _of_the_trainer(place: Placement) -> Iterator[tuple[str, str, str, Placement]]:
    asked = place.trainer.question
    if asked is None:
        return
    taken = " and ".join(name.replace("_", " ") for name in asked.passes) or "none"
    passes, instead = ((), "none") if asked.passes else (("old_logprob", "reference"), "old and reference")
    yield "logprob_passes", taken, instead, _with_trainer(place, passes=passes)
    if not asked.offload:
        yield "offload", "optimizer on the GPU", "on the host", _with_trainer(place, offload=True)
    if not (asked.fused or asked.native_attention):
        quicker = _with_trainer(place, fused=True, native_attention=True)
        yield "compiled", "eager kernels", "fused, native attention", quicker


def _with_engine(place: Placement, asked: EngineQuestion) -> Placement:
    return replace(place, fleet=replace(place.fleet, engines={place.shared: ready(asked)}))


def _with_trainer(place: Placement, **changed: Any) -> Placement:
    asked = place.trainer.question
    question = None if asked is None else replace(asked, **changed)
    return replace(place, trainer=replace(place.trainer, question=question))
