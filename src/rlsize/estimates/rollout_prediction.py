"""Rates of an engine from model, GPU and load: at fixed concurrency, offline, and its affine step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.equations import affine_step, engine_step, kernel_time, kv_cache, rollout_batch
from rlsize.estimates.constants_rollout import SEEN
from rlsize.estimates.engine_compiled import compiled, sends_over_nodes
from rlsize.estimates.engine_memory import kv_capacity, step_sequences
from rlsize.estimates.engine_rules import LAYERS, RULES, STEP
from rlsize.estimates.figures import apply
from rlsize.estimates.flow import Flow, by_result, rule
from rlsize.facts.figure import Figure
from rlsize.facts.inference_engines import inference_engine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.figures import Work, Worked
    from rlsize.facts.gpu import Gpu

_MAIN_KERNELS = frozenset({"gemm", "decode_attention"})
_OWN = ("small_operations", "launch_layer", "launch_moe_layer", "host_step", "host_sequence", "host_request")
"""Constants that each engine has of its own."""
_LATENCIES = by_result((
    rule("cycle_seconds", rollout_batch.cycle_time, batch="concurrency"),
    rule("ttft_seconds", rollout_batch.time_to_first_token, arrival_share="rollout_arrival_share"),
    rule("tpot_seconds", rollout_batch.time_per_output_token),
))  # fmt: skip
_LINE = by_result((
    *(
        rule(f"{point}/live_kv_tokens", affine_step.kv_tokens_of, batch=f"{point}/batch",
             live_tokens=f"{point}/live_tokens")
        for point in ("whole", "less", "short")
    ),
    rule("step_seconds_per_kv_token", affine_step.seconds_per_kv_token, seconds_short="short/step_seconds",
         seconds_long="whole/step_seconds", kv_tokens_short="short/live_kv_tokens",
         kv_tokens_long="whole/live_kv_tokens"),
    *(
        rule(f"{point}/kv_seconds", affine_step.kv_seconds, live_kv_tokens=f"{point}/live_kv_tokens")
        for point in ("whole", "less")
    ),
    rule("step_seconds_per_sample", affine_step.seconds_per_sample, seconds_low="less/step_seconds",
         seconds_high="whole/step_seconds", kv_seconds_low="less/kv_seconds", kv_seconds_high="whole/kv_seconds",
         batch_low="less/batch", batch_high="whole/batch"),
    rule("step_fixed_seconds", affine_step.fixed_seconds, step_seconds="whole/step_seconds",
         seconds_per_sample="step_seconds_per_sample", batch="whole/batch", live_kv_tokens="whole/live_kv_tokens"),
))  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """
    A replica, ready to be asked.

    Args:
        question: What it is.
        numbers: Its work on each GPU, by name; arrays where several stand together.
        factors: Constants that stretch its steps and prompts as a whole.
        exchange: The constant that stretches what its experts exchange.
    """

    question: EngineQuestion
    numbers: Mapping[str, Real]
    factors: tuple[str, ...]
    exchange: str

    @property
    def gpus(self) -> float:
        """GPUs of the replica."""
        return float(self.numbers["gpus"])

    @property
    def token_seconds(self) -> str:
        """The key of the time in which each sequence grows by a token: that of a step where nothing is drafted."""
        return "token_seconds" if self.question.drafts else "decode_step_seconds"


def engine(question: EngineQuestion) -> Replica:
    """
    A replica, ready to be asked.

    Raises:
        Refused: A number type that the GPU lacks.
    """
    unseen = question.kind not in SEEN if question.unseen is None else question.unseen
    stretched = {
        "rollout_stack_slowdown": True,
        "rollout_moe_stack_slowdown": question.model.architecture.moe is not None,
        "rollout_rank_imbalance": question.layout.data > 1,
        "rollout_borrowed_slowdown": borrows(question.gpu),
        "rollout_unseen_slowdown": unseen,
    }
    factors = tuple(name for name, counts in stretched.items() if counts)
    exchange = "rollout_network_exchange" if sends_over_nodes(question) else "rollout_exchange_slowdown"
    return Replica(question=question, numbers=compiled(question), factors=factors, exchange=exchange)


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
        again: Contexts that are computed beside it, as the cache has lost them; none where None. [1]
        context: One of them. [token]
    """

    prompt: Worked
    response: Worked
    live: Worked
    longest: Worked
    computed: Worked = None
    again: Worked = None
    context: Worked = None


def fixed_lengths(prompt: float, response: float) -> Lengths:
    """Lengths of a benchmark in which all requests are alike."""
    live = kv_cache.mean_live_tokens(prompt_tokens=prompt, response_tokens=response, response_cv=0.0)
    return Lengths(prompt=prompt, response=response, live=live, longest=prompt + response)


def cache_capacity(work: Work, asked: Replica, lengths: Lengths, values: Mapping[str, Real]) -> Worked:
    """
    Samples whose cache fits into a replica at once.

    Raises:
        Refused: Weights, or a single sample, do not fit.
    """
    reserving = inference_engine(asked.question.engine).admission == "reserving"
    length = lengths.longest if reserving else lengths.live
    held = kv_capacity(work, asked.question, values, length)
    if lengths.computed is not None:
        prompts = {"prompt_tokens": lengths.prompt, "computed_tokens": lengths.computed}
        length = work("held_tokens", engine_step.held_tokens, live_tokens=length, **prompts)
    return work(
        "cache_concurrency",
        engine_step.cache_concurrency,
        cache_tokens=held.kv_tokens,
        live_tokens=length,
    )


def engine_limit(question: EngineQuestion) -> float:
    """Samples that the engine's own limit lets a replica work on."""
    return float(step_sequences(question)) * question.layout.data


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

    batch: Worked
    capacity: Worked
    parts: dict[str, Worked]
    step_seconds: Worked
    prefill_seconds: Worked
    rate: Worked


def steady(work: Work, asked: Replica, concurrency: Worked, lengths: Lengths, values: Mapping[str, Real]) -> Steady:
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
    if asked.question.served and inference_engine(asked.question.engine).front_end:
        ceiling = work(
            "front_end_tokens_per_second",
            rollout_batch.front_end_ceiling,
            token_seconds=values["rollout_front_end_token"],
            request_seconds=values["rollout_front_end_request"],
            response_tokens=lengths.response,
        )
        rate = work("served_tokens_per_second", rollout_batch.below_ceiling, rate=rate, ceiling=ceiling)
    return Steady(batch=batch, capacity=room, parts=parts, step_seconds=step, prefill_seconds=prefill, rate=rate)


def at_batch(
    work: Work,
    asked: Replica,
    batch: Worked,
    lengths: Lengths,
    values: Mapping[str, Real],
) -> tuple[dict[str, Worked], Worked, Worked]:
    """Parts of a decode step at a batch, the step, and the engine time of one prompt."""
    flow = _flow(work, asked, batch, lengths, values)
    step = _stretched(work, asked, "engine_step_seconds", flow[asked.token_seconds], values)
    prefill = _with_contexts(work, asked, batch, lengths, values, flow["prefill_seconds"])
    return {name: flow[key] for name, key in STEP.items()}, step, prefill


def prompt_seconds(work: Work, asked: Replica, batch: Worked, lengths: Lengths, values: Mapping[str, Real]) -> Worked:
    """Engine time of one prompt alone, and of the contexts that a sample computes anew. [s]"""
    found = _flow(work, asked, batch, lengths, values)["prefill_seconds"]
    return _with_contexts(work, asked, batch, lengths, values, found)


def _with_contexts(
    work: Work, asked: Replica, batch: Worked, lengths: Lengths, values: Mapping[str, Real], seconds: Worked
) -> Worked:
    """The time of a prompt, and that of the contexts that are computed beside it. [s]"""
    found = _stretched(work, asked, "prefill_seconds", seconds, values)
    if lengths.again is None:
        return found
    context = replace(lengths, prompt=lengths.context, computed=None, again=None)
    return found + lengths.again * prompt_seconds(work, asked, batch, context, values)


def _stretched(work: Work, asked: Replica, key: str, seconds: Worked, values: Mapping[str, Real]) -> Worked:
    """A time of the engine with what stretches all of them."""
    for name in asked.factors:
        seconds = work(key, kernel_time.slowed, seconds=seconds, slowdown=values[name])
    return seconds


def borrows(gpu: Gpu) -> bool:
    """Whether the GPU's main kernels are those of another one, so that less is known of their times."""
    return gpu.kernels is not None and bool(_MAIN_KERNELS.intersection(gpu.kernels.borrowed))


def _flow(work: Work, asked: Replica, sequences: Worked, lengths: Lengths, values: Mapping[str, Real]) -> Flow:
    """What follows from a replica, the sequences in a step and their lengths, the engine's kernels alone."""
    question, runs = asked.question, inference_engine(asked.question.engine)
    known: dict[str, Worked] = dict(asked.numbers)
    if work is apply:
        source = f"{question.model.name} on {question.gpu.name}"
        known = {
            key: Figure(key=key, value=number, source=source, provenance="default") for key, number in known.items()
        }
    load = {
        "sequences": sequences,
        "context_tokens": lengths.live,
        "computed_tokens": lengths.prompt if lengths.computed is None else lengths.computed,
        "response_tokens": lengths.response,
    }
    host = {f"own_{part}": values[f"rollout_{part}_{runs.key}"] for part in _OWN}
    exposed = values["rollout_host_exposed"] if runs.hides_host(question.version) else 1.0
    reduce = "rollout_card_reduce" if question.gpu.specification.card else "rollout_all_reduce_slowdown"
    host |= {"all_reduce_slowdown": values[reduce]}
    host |= {"exchange_slowdown": values[asked.exchange], "host_exposed": exposed}
    host |= {"host_seconds": f"{'graphs' if question.graphs else 'launched'}/host_seconds"}
    plain = {"step_tokens": "sequences", "tokens_per_rank": "sequences_per_rank", "drafting_seconds": 0.0}
    drafted = {"drafts": question.drafts, "draft_acceptance": question.draft_acceptance, "layer_seconds": LAYERS}
    return Flow(RULES, {**known, **values, **load, **host, **(drafted if question.drafts else plain)}, work)


def offline(work: Work, asked: Replica, requests: Worked, lengths: Lengths, values: Mapping[str, Real]) -> Steady:
    """A replica that works off a fixed number of requests, all there at the start."""
    found = steady(work, asked, requests, lengths, values)
    single = _flow(work, asked, 1.0, lengths, values)[asked.token_seconds]
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
    return replace(found, rate=rate)


def first_and_later(
    work: Work,
    found: Steady,
    concurrency: Worked,
    lengths: Lengths,
    values: Mapping[str, Real],
) -> tuple[Worked, Worked]:
    """Time to first token and time per output token at fixed concurrency. [s]"""
    load = {"concurrency": concurrency, "response_tokens": lengths.response}
    engine = {name: getattr(found, name) for name in ("rate", "batch", "prefill_seconds", "step_seconds")}
    flow = Flow(_LATENCIES, {**values, **load, **engine, "first_token_seconds": "ttft_seconds"}, work)
    return flow["ttft_seconds"], flow["tpot_seconds"]


@dataclass(frozen=True, slots=True)
class AffineStep:
    """
    An engine step as a straight line, T = t_0 + t_1 b + t_2 K.

    Args:
        fixed: t_0. [s]
        per_sample: t_1. [s]
        per_kv_token: t_2. [s/token]
    """

    fixed: Worked
    per_sample: Worked
    per_kv_token: Worked


def affine(work: Work, asked: Replica, batch: Worked, lengths: Lengths, values: Mapping[str, Real]) -> AffineStep:
    """The line through the step at a batch, that at half of it, and that with contexts of half the length."""
    half_batch = work("half_batch", rollout_batch.half, amount=batch)
    half_live = work("half_live_tokens", rollout_batch.half, amount=lengths.live)
    points = {"whole": (batch, lengths.live), "less": (half_batch, lengths.live), "short": (batch, half_live)}
    known: dict[str, Worked] = {"seconds_per_kv_token": "step_seconds_per_kv_token"}
    for name, (samples, live) in points.items():
        known |= {f"{name}/batch": samples, f"{name}/live_tokens": live}
        known[f"{name}/step_seconds"] = at_batch(work, asked, samples, replace(lengths, live=live), values)[1]
    flow = Flow(_LINE, known, work)
    keys = ("step_fixed_seconds", "step_seconds_per_sample", "step_seconds_per_kv_token")
    return AffineStep(*(flow[key] for key in keys))
