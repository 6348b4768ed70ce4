"""Rates of an engine from model, GPU and load: at fixed concurrency, offline, and its affine step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlsize.equations import engine_step, kernel_time, kv_cache, rollout_batch
from rlsize.estimates.engine_compiled import capacity, compiled
from rlsize.estimates.engine_step import Load, host_of, step_parts, step_seconds
from rlsize.estimates.figures import apply
from rlsize.estimates.prompt_cost import prompt_seconds
from rlsize.facts.engine_defaults import engine_defaults
from rlsize.facts.engine_traits import engine_traits
from rlsize.facts.records.record import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.engine_work import EngineQuestion, EngineWork, ExplainedWork
    from rlsize.facts.gpu import Gpu

    Work = Callable[..., Any]

_LEAST = 1.0  # sample that must fit
_MAIN_KERNELS = frozenset({"gemm", "decode_attention"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """
    A replica, ready to be asked.

    Args:
        question: What it is.
        numbers: Its work on each GPU.
    """

    question: EngineQuestion
    numbers: EngineWork


def engine(question: EngineQuestion) -> Engine:
    """
    A replica, ready to be asked.

    Raises:
        Refused: A number type that the GPU lacks.
    """
    return Engine(question=question, numbers=compiled(question))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """
    Mean lengths of the load.

    Args:
        prompt: Prompt tokens. [token]
        response: Response tokens. [token]
        live: Context of the mean sample in flight. [token]
        longest: Context that a reserving engine keeps room for. [token]
        computed: Prompt tokens that are computed, prefix-cache hits left out; all where None. [token]
    """

    prompt: Any
    response: Any
    live: Any
    longest: Any
    computed: Any = None


def fixed_lengths(prompt: float, response: float) -> Lengths:
    """Lengths of a benchmark in which all requests are alike."""
    live = kv_cache.mean_live_tokens(prompt_tokens=prompt, response_tokens=response, response_cv=0.0)
    return Lengths(prompt=prompt, response=response, live=live, longest=prompt + response)


def cache_capacity(work: Work, asked: Engine, lengths: Lengths, values: Mapping[str, Real]) -> Any:  # noqa: ANN401 (as `work` makes them)
    """
    Samples whose cache fits into a replica at once.

    Raises:
        Refused: Weights, or a single sample, do not fit.
    """
    traits = engine_traits(asked.question.engine)
    reserving = traits.admission == "reserving"
    length = lengths.longest if reserving else lengths.live
    held = capacity(asked.question, values, length, work)
    return work(
        "cache_concurrency",
        engine_step.cache_concurrency,
        cache_tokens=held.kv_tokens,
        fill_fraction=1.0 if reserving else values["rollout_cache_fill"],
        live_tokens=length,
    )


def check_fits(asked: Engine, lengths: Lengths, values: Mapping[str, Real]) -> None:
    """
    Refuse an engine that cannot hold its weights and one sample.

    Raises:
        Refused: With the bytes that are there and those that are needed.
    """
    held = capacity(asked.question, values, lengths.live)
    gib = 2.0**30
    question = asked.question
    if float(held.kv_bytes) <= float(held.sequence_bytes):
        raise Refused(
            f"{question.model.name} does not fit on {question.layout.tensor * question.layout.data} x "
            f"{question.gpu.name}: weights take {float(held.weight_bytes) / gib:.1f} GiB of each GPU's "
            f"{float(held.memory) / gib:.1f} GiB, which leaves {max(0.0, float(held.kv_bytes)) / gib:.2f} GiB of KV "
            f"cache and a sample needs {float(held.sequence_bytes) / gib:.2f} GiB"
        )


def engine_limit(question: EngineQuestion) -> float:
    """Samples that the engine's own limit lets a replica work on."""
    if question.max_sequences is not None:
        return float(question.max_sequences) * question.layout.data
    defaults = engine_defaults(question.engine)
    memory = question.gpu.specification.memory.value
    small = memory < defaults.large_memory or question.gpu.name.startswith("a100")
    return float(defaults.sequences[0 if small else 1]) * question.layout.data


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """
    An engine at a load, as numbers, arrays or figures.

    Args:
        batch: Samples in flight.
        capacity: Samples that the cache holds.
        parts: Seconds of a decode step by part.
        step_seconds: A decode step. [s]
        prefill_seconds: Engine time of one prompt. [s]
        rate: Response tokens per second of the replica. [token/s]
    """

    batch: Any
    capacity: Any
    parts: dict[str, Any]
    step_seconds: Any
    prefill_seconds: Any
    rate: Any


def steady(work: Work, asked: Engine, concurrency: Any, lengths: Lengths, values: Mapping[str, Real]) -> Steady:  # noqa: ANN401 (as `work` makes them)
    """An engine whose batch stays full with `concurrency` samples, as far as its cache and its limit allow."""
    room = cache_capacity(work, asked, lengths, values)
    batch = work(
        "samples_in_flight",
        rollout_batch.samples_in_flight,
        concurrency=concurrency,
        capacity=room,
        engine_limit=engine_limit(asked.question),
    )
    parts, step, prefill = at_batch(work, asked, batch, lengths, values)
    rate = work(
        "steady_tokens_per_second",
        rollout_batch.steady_rate,
        batch=batch,
        response_tokens=lengths.response,
        prefill_seconds=prefill,
        step_seconds=step,
    )
    if asked.question.served and engine_traits(asked.question.engine).front_end:
        rate = _behind_front_end(work, rate, lengths, values)
    return Steady(batch=batch, capacity=room, parts=parts, step_seconds=step, prefill_seconds=prefill, rate=rate)


def at_batch(
    work: Work,
    asked: Engine,
    batch: Any,  # noqa: ANN401 (as `work` makes them)
    lengths: Lengths,
    values: Mapping[str, Real],
) -> tuple[dict[str, Any], Any, Any]:
    """Parts of a decode step at a batch, the step, and the engine time of one prompt."""
    numbers, host = _numbers(work, asked), host_of(asked.question, values)
    parts = step_parts(work, numbers, host, Load(sequences=batch, context_tokens=lengths.live), values)
    computed = lengths.computed if lengths.computed is not None else lengths.prompt
    prefill = prompt_seconds(work, numbers, host, (computed, lengths.response), batch, values)
    step = step_seconds(work, parts)
    factors = ["rollout_stack_slowdown"]
    factors += ["rollout_moe_stack_slowdown"] if asked.question.model.architecture.moe else []
    factors += ["rollout_rank_imbalance"] if asked.question.layout.data > 1 else []
    factors += ["rollout_borrowed_slowdown"] if borrows(asked.question.gpu) else []
    for name in factors:
        step = work("engine_step_seconds", kernel_time.slowed, seconds=step, slowdown=values[name])
        prefill = work("prefill_seconds", kernel_time.slowed, seconds=prefill, slowdown=values[name])
    return parts, step, prefill


def borrows(gpu: Gpu) -> bool:
    """Whether the GPU's main kernels are those of another one, so that less is known of their times."""
    return gpu.kernels is not None and bool(_MAIN_KERNELS.intersection(gpu.kernels.borrowed))


def _numbers(work: Work, asked: Engine) -> EngineWork | ExplainedWork:
    return asked.numbers.explained() if work is apply else asked.numbers


def _behind_front_end(work: Work, rate: Any, lengths: Lengths, values: Mapping[str, Real]) -> Any:  # noqa: ANN401 (as `work` makes them)
    ceiling = work(
        "front_end_tokens_per_second",
        rollout_batch.front_end_ceiling,
        token_seconds=values["rollout_front_end_token"],
        request_seconds=values["rollout_front_end_request"],
        response_tokens=lengths.response,
    )
    return work("served_tokens_per_second", rollout_batch.below_ceiling, rate=rate, ceiling=ceiling)


def offline(work: Work, asked: Engine, requests: Any, lengths: Lengths, values: Mapping[str, Real]) -> Steady:  # noqa: ANN401 (as `work` makes them)
    """A replica that works off a fixed number of requests, all there at the start."""
    found = steady(work, asked, requests, lengths, values)
    host = host_of(asked.question, values)
    alone = Load(sequences=_LEAST, context_tokens=lengths.live)
    single = step_seconds(work, step_parts(work, _numbers(work, asked), host, alone, values))
    share = work("fixed_share", rollout_batch.share_of, part=single, whole=found.step_seconds)
    waves = work("waves", rollout_batch.offline_waves, requests=requests, batch=found.batch, fixed_share=share)
    rate = work(
        "offline_tokens_per_second",
        rollout_batch.offline_rate,
        requests=requests,
        response_tokens=lengths.response,
        prefill_seconds=found.prefill_seconds,
        waves=waves,
        step_seconds=found.step_seconds,
    )
    return Steady(
        batch=found.batch,
        capacity=found.capacity,
        parts=found.parts,
        step_seconds=found.step_seconds,
        prefill_seconds=found.prefill_seconds,
        rate=rate,
    )


def first_and_later(
    work: Work,
    found: Steady,
    concurrency: Any,  # noqa: ANN401 (as `work` makes them)
    lengths: Lengths,
    values: Mapping[str, Real],
) -> tuple[Any, Any]:
    """Time to first token and time per output token at fixed concurrency. [s]"""
    cycle = work(
        "cycle_seconds",
        rollout_batch.cycle_time,
        batch=concurrency,
        response_tokens=lengths.response,
        rate=found.rate,
    )
    first = work(
        "ttft_seconds",
        rollout_batch.time_to_first_token,
        cycle_seconds=cycle,
        concurrency=concurrency,
        batch=found.batch,
        prefill_seconds=found.prefill_seconds,
        arrival_share=values["rollout_arrival_share"],
        step_seconds=found.step_seconds,
    )
    later = work(
        "tpot_seconds",
        rollout_batch.time_per_output_token,
        cycle_seconds=cycle,
        first_token_seconds=first,
        response_tokens=lengths.response,
    )
    return first, later
