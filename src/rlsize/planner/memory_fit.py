"""Which GPU count first holds the bill: trainer over whole nodes, rollout instance over tensor-parallel degrees."""

from __future__ import annotations

from dataclasses import replace
from math import lcm
from typing import TYPE_CHECKING

from rlsize.equations import kv_cache, memory, memory_fit, training_peak
from rlsize.estimates.engine_memory import kv_capacity
from rlsize.estimates.figures import apply, rounded, total
from rlsize.estimates.memory import (
    engine_layout,
    on_trainer,
    overheads,
    reserved,
    rollout_weights,
    sample_cache,
)
from rlsize.estimates.trainer_layout import WEIGHT_STAGE, TrainerLayout, divides
from rlsize.facts.figure import Figure, absent
from rlsize.frozen import dataclass
from rlsize.planner.rounding import MOST_TRAINER_GPUS, first_fit, gpu_counts, rounded_down

if TYPE_CHECKING:
    from rlsize.estimates.memory import GpuMemory, MemoryQuestion
    from rlsize.facts.layout import Layout as EngineLayout

MOST_INSTANCE_GPUS = 1024
_BEFORE, _AFTER = 2, 1  # rows shown before and after the first fit
_EVERYWHERE = frozenset({"gathered_layer_bytes_per_gpu", "activation_bytes_per_gpu", "logits_bytes_per_gpu"})
_SAMPLED = (0, 3, 10)  # rows shown where none fits
_LEAST_TOKENS = 1024  # of a micro-batch that is worth its launch


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """
    One way to place a pool.

    Args:
        pool: `trainer` or `rollout`.
        gpus: GPUs of the trainer, or of one instance.
        layout: How the trainer is spread; None for an instance.
        tensor_parallel: GPUs that share each layer of an instance; 1 for a trainer, whose layout says it.
        held: Bytes on each GPU at its peak: states, gathered layers, activations, what the allocator reserves; for an
            instance all but its cache.
        parts: What `held` is made of.
        left: Memory left on each GPU; for an instance what its KV cache may take. [B/gpu]
        fits: Whether it fits.
        max_concurrency: Samples that the cache of an instance holds.
    """

    pool: str
    gpus: int
    held: Figure
    parts: tuple[Figure, ...]
    left: Figure
    fits: bool
    layout: TrainerLayout | None = None
    tensor_parallel: int = 1
    max_concurrency: Figure = absent("max_concurrency", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class FitAnswer:
    """
    What fits.

    Args:
        gpu: The GPU.
        trainer: Trainer candidates around the first fit, and the stated one.
        rollout: Instance candidates up to the first fit, and the stated one.
        first_trainer: The first trainer that fits; None where none does.
        first_rollout: The first instance that fits; None where none does, or where nothing is rolled out.
        stated_trainer: The trainer as stated; None where nobody says.
        stated_rollout: The instance as stated; None where nobody says.
        results: Figures for the report.
    """

    gpu: GpuMemory
    trainer: tuple[Candidate, ...]
    rollout: tuple[Candidate, ...]
    first_trainer: Candidate | None
    first_rollout: Candidate | None
    stated_trainer: Candidate | None
    stated_rollout: Candidate | None
    results: tuple[Figure, ...]

    @property
    def misfits(self) -> tuple[Candidate, ...]:
        """Stated candidates that do not fit."""
        stated = (self.stated_trainer, self.stated_rollout)
        return tuple(candidate for candidate in stated if candidate is not None and not candidate.fits)

    @property
    def refused(self) -> bool:
        """Whether the answer is no: what was stated does not fit, or a side fits on no number of GPUs."""
        nowhere = (self.stated_trainer is None and self.first_trainer is None) or (
            bool(self.rollout) and self.stated_rollout is None and self.first_rollout is None
        )
        return bool(self.misfits) or nowhere


def fit_memory(question: MemoryQuestion, gpu: GpuMemory) -> FitAnswer:
    """Judge the stated placement, and find the smallest that fits."""
    stated_trainer = trainer_on(question, gpu, question.layout) if question.layout else None
    trainer, first_trainer = _trainers(question, gpu)
    if stated_trainer and all(row.gpus != stated_trainer.gpus for row in trainer):
        trainer = sorted([*trainer, stated_trainer], key=lambda row: row.gpus)
    nodes = f"the smallest of whole nodes of {gpu.gpus_per_node.value:g} and halvings of one"
    exact = _exact_gpus(question, gpu, first_trainer)
    lacking = _way_out(question, gpu) if first_trainer is None else ""
    results = [
        gpu.memory,
        *_results("trainer", first_trainer, stated_trainer, nodes, lacking),
        *([exact] if exact else []),
    ]
    rollout: list[Candidate] = []
    first_rollout = stated_rollout = None
    if question.algorithm.rollout:
        rollout, first_rollout = _instances(question, gpu)
        if question.rollout_tensor_parallel.known:
            stated_rollout = instance_on(question, gpu, round(question.rollout_tensor_parallel.number))
            rollout = sorted({row.gpus: row for row in [*rollout, stated_rollout]}.values(), key=lambda row: row.gpus)
        fewer = "a larger GPU, or fewer bytes per sample"
        results += _results("rollout", first_rollout, stated_rollout, "the smallest that fits", fewer)
        judged = stated_rollout or first_rollout
        results += [judged.max_concurrency] if judged else []
    return FitAnswer(
        gpu=gpu,
        trainer=tuple(stated_trainer if stated_trainer and row.gpus == stated_trainer.gpus else row for row in trainer),
        rollout=tuple(rollout),
        first_trainer=first_trainer,
        first_rollout=first_rollout,
        stated_trainer=stated_trainer,
        stated_rollout=stated_rollout,
        results=tuple(results),
    )


def trainer_on(question: MemoryQuestion, gpu: GpuMemory, layout: TrainerLayout) -> Candidate:
    """The trainer and the models that share its GPUs, spread in this way."""
    each = on_trainer(question, layout)
    beside = [part for part in overheads(each) if part.known and part.number]
    left = _left("trainer_left_bytes", gpu, gpu.trainer_fraction, each.peak)
    return Candidate(
        pool="trainer",
        gpus=round(layout.gpus.number),
        layout=layout,
        held=each.peak,
        parts=(each.policy, *each.beside.values(), *beside),
        left=left,
        fits=left.number >= 0,
    )


def _left(key: str, gpu: GpuMemory, fraction: Figure, held: Figure) -> Figure:
    return apply(key, memory_fit.budget_left, gpu_memory=gpu.memory, usable_fraction=fraction, held_bytes=held)


def _trainers(question: MemoryQuestion, gpu: GpuMemory) -> tuple[list[Candidate], Candidate | None]:
    """Candidates around the first that fits, and that one; model parallelism and ZeRO stage stay as stated."""
    layout = question.layout or TrainerLayout()
    unit = lcm(layout.model_parallel, int(layout.pipeline_parallel.number * layout.expert_parallel.number))
    count = gpu_counts(unit, int(gpu.gpus_per_node.number))

    def at(index: int) -> Candidate:
        return trainer_on(question, gpu, layout.spread_over(count(index)))

    first = first_fit(lambda index: at(index).fits, lambda index: count(index) <= MOST_TRAINER_GPUS)
    if first is None:
        return [at(index) for index in _SAMPLED], None
    shown = [at(index) for index in range(max(0, first - _BEFORE), first + _AFTER + 1)]
    return shown, next(row for row in shown if row.gpus == count(first))


def _way_out(question: MemoryQuestion, gpu: GpuMemory) -> str:
    """What makes a trainer fit that no number of GPUs holds: smaller micro-batches, a chunked loss, or a larger GPU."""
    tokens = question.micro_batch_tokens
    least = question.longest_tokens.number if question.longest_tokens.known else _LEAST_TOKENS
    others = {"--set trainer.chunked_loss=yes": replace(question, keeps=replace(question.keeps, chunked_loss=True))}
    while tokens.known and tokens.number >= 2 * least:
        tokens = replace(tokens, value=tokens.number // 2)
        others[f"--micro-batch-tokens {tokens.number:.0f}"] = replace(question, micro_batch_tokens=tokens)
    fitting = (way for way, other in others.items() if _trainers(other, gpu)[1] is not None)
    return next(fitting, "a larger GPU, or more model parallelism")


def _exact_gpus(question: MemoryQuestion, gpu: GpuMemory, first: Candidate | None) -> Figure | None:
    """Where everything is sharded, the count in one equation; it grows with what every GPU holds, so it is exact."""
    if first is None or first.layout is None or first.layout.zero_stage.number < WEIGHT_STAGE:
        return None
    states = on_trainer(question, TrainerLayout()).states
    if not states.number:  # they live on the host
        return None
    everywhere = [part for part in first.parts if part.key in _EVERYWHERE]
    return apply(
        "trainer_gpus_exact",
        memory.gpus_needed,
        sharded_bytes=reserved(question, "sharded_bytes", [states]),
        bytes_on_every_gpu=reserved(question, "bytes_on_every_gpu", everywhere),
        gpu_memory=gpu.memory,
        usable_fraction=gpu.trainer_fraction,
    )


def _results(pool: str, first: Candidate | None, stated: Candidate | None, source: str, lacking: str) -> list[Figure]:
    """Whether what was stated of a pool fits and what it leaves, and the smallest that fits."""
    key = f"{pool}_first_fit_gpus"
    found = absent(key, lacking)
    if first is not None:
        found = Figure(key=key, value=first.gpus, provenance="predicted", source=source)
    if stated is None:
        return [found]
    held = replace(stated.held, key=f"{pool}_held_bytes_per_gpu")
    left = replace(stated.left, key=f"{pool}_left_bytes_per_gpu")
    return [Figure(key=f"{pool}_fits", value=stated.fits, provenance="predicted"), held, left, found]


def instance_on(question: MemoryQuestion, gpu: GpuMemory, tensor: int) -> Candidate:
    """A rollout instance with so many tensor-parallel GPUs."""
    layout = engine_layout(question, tensor)
    parts, left, sample = _cache_of(question, gpu, layout)
    most, longest = _max_concurrency(left, sample), 0.0
    if question.longest_tokens.known and question.model:
        longest = sample_cache("longest_bytes", question, layout, question.longest_tokens).number
    wanted = question.concurrency.number if question.concurrency.known else 1.0
    return Candidate(
        pool="rollout",
        gpus=layout.tensor * layout.data * layout.pipeline,
        tensor_parallel=tensor,
        held=total("rollout_gpu_bytes", parts),
        parts=tuple(parts),
        left=left,
        fits=left.number > 0 and (not most.known or most.number >= wanted) and left.number >= longest,
        max_concurrency=most,
    )


def _cache_of(question: MemoryQuestion, gpu: GpuMemory, layout: EngineLayout) -> tuple[list[Figure], Figure, Figure]:
    """What stands on a GPU of an instance, what that leaves for its KV cache, and the cache of a sample."""
    key, of_sample = "rollout_left_bytes", "sample_kv_cache_bytes_per_gpu"
    sample = sample_cache(of_sample, question, layout)
    if question.engine is None:  # nothing but weights is known
        weights = rollout_weights("rollout_weights_bytes_per_gpu", question, layout)
        fraction = gpu.rollout_fraction if gpu.rollout_fraction.known else gpu.trainer_fraction
        return [weights], _left(key, gpu, fraction, weights), sample
    known = question.context.known
    engine = replace(question.engine, layout=layout)
    found = kv_capacity(apply, engine, question.constants, question.context if known else None)
    named = {
        "rollout_weights_bytes_per_gpu": found.weight_bytes,
        "engine_activation_bytes_per_gpu": found.activation_bytes,
        "engine_other_bytes_per_gpu": found.other_bytes,
    }
    sample = replace(found.sequence_bytes, key=of_sample) if known else sample  # with a drafter's
    return [replace(part, key=name) for name, part in named.items()], replace(found.kv_bytes, key=key), sample


def _max_concurrency(left: Figure, sample: Figure) -> Figure:
    """Whole samples that fit into what is left."""
    key = "max_concurrency"
    if sample.known and not sample.number:
        return absent(key, "a cache (this model keeps none)")
    if left.number <= 0 and sample.known:
        return Figure(key=key, value=0, provenance="predicted", source="the weights leave no room")
    most = apply(key, kv_cache.max_concurrency, kv_budget_bytes=left, sequence_kv_bytes=sample)
    return rounded(most, key, rounded_down)


def _instances(question: MemoryQuestion, gpu: GpuMemory) -> tuple[list[Candidate], Candidate | None]:
    rows: list[Candidate] = []
    found = None
    powers = (2**power for power in range(MOST_INSTANCE_GPUS.bit_length()))
    for degree in (power for power in powers if divides(question.shape, power)):  # KV heads are divided, or repeated
        row = instance_on(question, gpu, degree)
        rows.append(row)
        if found is not None:
            break
        found = row if row.fits else None
    if found is None:
        return rows[: _BEFORE + _AFTER + 1], None
    return rows[-(_BEFORE + _AFTER + 1) :], found


_GROWING = ("activation_bytes_per_gpu", "logits_bytes_per_gpu")
_ONE_TOKEN = Figure(key="micro_batch_tokens", value=1, provenance="default", source="one token")


def most_that_fits(question: MemoryQuestion, fit: FitAnswer) -> tuple[Figure, ...]:
    """
    The largest micro batch, and what binds on each side.

    Args:
        question: What was asked.
        fit: What fits; the stated placement is judged, else the first that fits.
    """
    trainer = fit.stated_trainer or fit.first_trainer
    rollout = fit.stated_rollout or fit.first_rollout
    found = []
    if trainer is not None:
        found += [_micro_batch(question, trainer), _binding("trainer_binding_part", trainer)]
    if rollout is not None:
        found.append(_binding("rollout_binding_part", rollout))
    return tuple(found)


def _micro_batch(question: MemoryQuestion, trainer: Candidate) -> Figure:
    """Tokens of one pass of a data-parallel rank that what is left has room for, by the asked recomputation."""
    key = "max_micro_batch_tokens"
    if trainer.layout is None or question.model is None:
        return absent(key, "--model")
    shortest = replace(
        question, micro_batch_tokens=_ONE_TOKEN, longest_tokens=_ONE_TOKEN, keeps=replace(question.keeps, samples=None)
    )
    one = on_trainer(shortest, trainer.layout)
    growing = [part for part in trainer.parts if part.key in _GROWING]
    spare = total("spare_bytes", [trainer.left, reserved(question, "growing_bytes", growing)])
    if spare.number <= 0:
        return Figure(key=key, value=0, provenance="predicted", source="the states leave no room")
    exact = apply(
        key,
        training_peak.largest_micro_batch_tokens,
        spare_bytes=spare,
        bytes_per_token=reserved(question, "bytes_per_token", [one.activations, one.logits]),
    )
    return rounded(exact, key, rounded_down)


def _binding(key: str, candidate: Candidate) -> Figure:
    """The largest part of what a GPU holds; for an instance the KV cache, where that is larger."""
    parts = list(candidate.parts)
    if candidate.pool == "rollout" and candidate.left.number > 0:
        parts.append(replace(candidate.left, key="kv_cache_bytes_per_gpu"))
    largest = max(parts, key=lambda part: part.number)
    name = largest.key.removesuffix("_per_gpu")
    return Figure(key=key, value=name, provenance="predicted", source="the largest part of what a GPU holds")
