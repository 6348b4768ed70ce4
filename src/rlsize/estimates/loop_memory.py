"""Memory of a loop: what engines and the trainer hold, and what that leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.equations import memory_fit, planning
from rlsize.estimates.engine_memory import kv_capacity
from rlsize.estimates.figures import numbers
from rlsize.estimates.memory_phases import beside_a_trainer
from rlsize.estimates.memory_shape import memory_shape
from rlsize.estimates.model_size import model_size
from rlsize.estimates.trainer_keeping import RankStep, as_kept, micro_batch
from rlsize.estimates.trainer_memory import ModelBeside, TrainerLoad, lora_params, pass_tokens, trainer_memory
from rlsize.facts.figure import Figure
from rlsize.facts.headroom import MEMORY_MARGIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.rollout_prediction import Replica
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.estimates.trainer_memory import TrainerMemory

_FROZEN = ("reference", "reward")  # models that are read and not trained


def fleet_headroom(engine: Replica, longest_tokens: Real, values: Mapping[str, Any]) -> Real:
    """Share of a rollout GPU's memory that its KV cache has beyond the longest sample; below 0 where none fits. [1]"""
    held = kv_capacity(numbers, engine.question, values, longest_tokens)
    return planning.cache_headroom(kv_bytes=held.kv_bytes, sequence_bytes=held.sequence_bytes, gpu_memory=held.memory)


def headroom_beside_trainer(question: EngineQuestion, longest_tokens: Real, values: Mapping[str, Any]) -> float:
    """
    Share of a GPU's memory that is left while an engine generates, and the trainer that shares it has moved out. [1]

    Args:
        question: The instance.
        longest_tokens: Prompt and response of the longest sample. [token]
        values: Constants by name.
    """
    held = beside_a_trainer(numbers, question, longest_tokens, values)
    return float(planning.memory_headroom(gpu_memory=question.gpu.specification.memory.value, held_bytes=held))


def trainer_load(question: TrainQuestion, longest_tokens: Real) -> TrainerLoad:
    """
    What the GPUs of a trainer have to hold.

    Args:
        question: The trainer, in numbers or arrays.
        longest_tokens: The longest sequence, which a micro-batch must hold whole. [token]
    """
    shape = memory_shape(question.model, model_size(question.model).params)
    adapters = None
    if question.lora_rank is not None:
        rank = Figure(key="lora_rank", value=question.lora_rank, source="the question")
        adapters = lora_params(question.model.architecture, rank).number
    degrees: dict[str, Any] = {name: 1.0 * value for name, value in question.degrees._asdict().items()}
    # those of a question are data x context ranks
    shards = _data_ranks(question) if question.shards is None else question.shards / degrees["context"]
    keeps = question.keeps
    tokens, whole = micro_batch_of(question, longest_tokens, question.micro_batch_tokens, keeps.samples)
    load = TrainerLoad(
        shape=shape,
        tokens=tokens,
        **degrees,
        shards=shards,
        sharding=question.sharding,
        gathered=question.sharding == "full",
        recompute="selective" if question.recompute == "alternate" else question.recompute,
        gradient_width=question.gradient_bytes,
        optimizer_width=0.0 if question.offload else question.state_bytes,
        adapter_params=adapters,
        beside=tuple(beside(question)),
        compiled=question.fused,
    )
    return as_kept(load, keeps, whole=whole)


def micro_batch_of(
    question: TrainQuestion, longest_tokens: Real, tokens: Real, samples: float | None
) -> tuple[Real, bool]:
    """
    Tokens of the largest micro-batch on each GPU of a trainer, and whether it holds all that a rank has for a step.

    Args:
        question: The trainer, in numbers or arrays.
        longest_tokens: The longest sequence, which a micro-batch must hold whole. [token]
        tokens: Tokens that micro-batches are packed to. [token]
        samples: Samples of a micro-batch, where these are what is counted. [1]
    """
    packed = pass_tokens(numbers, tokens, longest_tokens if question.capped else 0.0, 1.0 * question.context)
    step = RankStep(
        mean_tokens=question.tokens,
        tokens_cv=question.tokens_cv,
        longest_tokens=longest_tokens,
        sequences=question.sequences,
        ranks=_data_ranks(question),
        optimizer_steps=question.optimizer_steps,
        context=1.0 * question.context,
    )
    return micro_batch(numbers, question.keeps, step, packed, samples)


def _data_ranks(question: TrainQuestion) -> Real:
    degrees = (1.0 * question.tensor, 1.0 * question.pipeline, 1.0 * question.context)
    return memory_fit.data_parallel_ranks(question.gpus, *degrees)


def beside(question: TrainQuestion) -> Iterator[ModelBeside]:
    """The models beside the policy; with adapters the reference is the policy without them, unless it is another."""
    for name in question.passes:
        if name not in {*_FROZEN, "critic"}:
            continue
        own = question.pass_models.get(name)
        alone = own is None and name not in question.pass_params
        if name == "reference" and alone and question.lora_rank is not None:
            continue
        model, size = own or question.model, question.pass_params.get(name)
        shape = memory_shape(model, model_size(model).params)
        params = (shape.dense_params.number, shape.routed_params.number) if size is None else (size, 0.0)
        yield ModelBeside(name=name, params=params, trained=name not in _FROZEN)


def bare_trainer_memory(question: TrainQuestion, longest_tokens: Real, values: Mapping[str, Any]) -> TrainerMemory:
    """
    What each GPU of a trainer holds at its peak, in numbers or arrays.

    Args:
        question: The trainer.
        longest_tokens: The longest sequence, which a micro-batch must hold whole. [token]
        values: Constants by name.
    """
    return trainer_memory(numbers, trainer_load(question, longest_tokens), values)


def branches(question: TrainQuestion) -> tuple[object, ...]:
    """
    What of a layout, and of what it keeps, decides which way its memory is worked out.

    Degrees of questions that agree in it, and in all else, may be arrays of one question. Where a micro-batch may hold
    all that a rank has for a step, each layout is asked about by itself.
    """
    keeps, uneven = question.keeps, question.model.architecture.layers % question.pipeline > 0
    alone = question.degrees if keeps.backend and not keeps.padded else ()
    return id(keeps), question.expert > 1, uneven, *alone


def headroom_at(question: TrainQuestion, peak: Real) -> Real:
    """Share of a trainer GPU's memory that a peak leaves, below 0 for none. [1]"""
    return planning.memory_headroom(gpu_memory=question.gpu.specification.memory.value, held_bytes=peak)


def leaves_margin(question: TrainQuestion, longest_tokens: float, values: Mapping[str, Any]) -> bool:
    """
    Whether a trainer leaves what one that is chosen does, so that it fits for sure; the phases of a loop judge it.

    Args:
        question: The trainer, in numbers.
        longest_tokens: The longest sequence, which a micro-batch must hold whole. [token]
        values: Constants by name.
    """
    return float(headroom_at(question, bare_trainer_memory(question, longest_tokens, values).peak)) >= MEMORY_MARGIN
