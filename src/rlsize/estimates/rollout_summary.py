"""What a rollout recorded, put together: curve, knee, step time, tail, cross-checks and doubts."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rlsize.equations.matching import rate_per_gpu
from rlsize.equations.redundancy import cacheable_prompt_tokens, prefix_cache_hit_ratio
from rlsize.estimates.counter_growth import grown, hit_fraction
from rlsize.estimates.rollout_rate import finite_batch, intervals, knee, level, relative_error, steady, step_time_fit
from rlsize.facts.measured import Crosscheck, RolloutLevel, RolloutMeasured

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlsize.facts.counters import PhaseRun, RolloutWork

SURE = 0.03  # standard error of a rate from which it is called uncertain
DRIFT = 0.05  # difference between the halves of a window from which it is called not steady
HITS = 0.8  # share of the expected prefix-cache hits below which they are called low
FIT = 0.15  # residual from which the step-time fit is called loose
BUSY = 0.9  # share of the samples in flight that the mean step must run, or something else holds it up
AGREE = 0.005  # difference of two counts of the same tokens from which they are said to disagree
_TENTHS = 10


def rollout_measured(
    levels: Mapping[int, Sequence[PhaseRun]],
    batch: Sequence[PhaseRun],
    work: RolloutWork,
    *,
    batch_prompts: int,
    batch_fraction: float,
    limit: int,
    limited_by: str,
    gpus_per_instance: float | None,
) -> RolloutMeasured | None:
    """
    The rollout's part of a rates file; None where no level reached a steady state.

    Args:
        levels: Runs of all instances, by concurrency.
        batch: Runs of the finite batch; empty where there was none.
        work: The workload.
        batch_prompts: Groups in that batch. [1]
        batch_fraction: Share of an optimizer step's samples in it. [1]
        limit: The most samples that an instance can run. [1]
        limited_by: What sets the limit.
        gpus_per_instance: GPUs of an instance; None where nobody knows. [1]
    """
    curve = [found for _, runs in sorted(levels.items()) if (found := level(runs, work)) is not None]
    if not curve:
        return None
    runs = [run for every in levels.values() for run in every] + list(batch)
    last = [run.snapshots[-1].counters.kv_cache_tokens for run in runs if run.snapshots]
    ends = [(run.snapshots[0].counters, run.snapshots[-1].counters) for run in batch if run.snapshots]
    top = curve[-1]
    return RolloutMeasured(
        levels=curve,
        at_concurrency=top.concurrency,
        knee_concurrency=knee(curve),
        largest_concurrency=limit,
        limited_by=limited_by,
        gpu_tokens_per_second=(
            None if gpus_per_instance is None else float(rate_per_gpu(top.tokens_per_second, gpus_per_instance))
        ),
        kv_cache_tokens=next((held for held in last if held), None),
        step_time=step_time_fit([entry for run in runs for entry in intervals(run.snapshots, work)]),
        finite_batch=finite_batch(batch, batch_prompts, batch_fraction),
        prefix_cache_hit_fraction=hit_fraction(ends),
        expected_prefix_cache_hit_fraction=None if work.played else expected_hit_fraction(work),
        preemptions=sum(entry.preemptions for entry in curve) + round(grown(ends, "preemptions") or 0.0),
        crosschecks=crosschecks(batch, work),
    )


def expected_hit_fraction(work: RolloutWork) -> float:
    """Share of prompt tokens that groups of that size find in the cache of their one instance."""
    cacheable = cacheable_prompt_tokens(work.prompt_tokens, work.block_tokens)
    return float(prefix_cache_hit_ratio(work.group_size, work.prompt_tokens, cacheable, 0.0, 1.0))


def crosschecks(batch: Sequence[PhaseRun], work: RolloutWork) -> list[Crosscheck]:
    """What was asked for in the finite batch beside what the engines counted; nothing where one broke off."""
    runs = [run for run in batch if run.own_counters and run.ended is not None]
    if not runs or len(runs) < len(batch):
        return []
    ends = [(run.snapshots[0].counters, run.snapshots[-1].counters) for run in runs]
    samples = sum(finished.samples for run in runs for finished in run.finished)
    prompt_tokens = samples * work.prompt_tokens
    asked = {"generation_tokens": float(sum(run.asked for run in runs)), "finished_requests": float(samples)}
    if not work.played:
        asked["prompt_tokens"] = float(prompt_tokens)
        asked["prefix_cache_hits"] = prompt_tokens * expected_hit_fraction(work)
    counted = {name: grown(ends, name) for name in asked}
    return [
        Crosscheck(what=name, asked=round(value, 6), counted=found)
        for name, value in asked.items()
        if (found := counted[name]) is not None
    ]


def rollout_doubts(
    levels: Mapping[int, Sequence[PhaseRun]], batch: Sequence[PhaseRun], measured: RolloutMeasured
) -> list[str]:
    """What casts doubt on the rates, a sentence each."""
    every = [run for runs in levels.values() for run in runs]
    return [
        *_uncertain(levels, measured),
        *_strangers([*every, *batch]),
        *_disagreements(measured),
        *_cache(measured),
        *_stragglers(measured.levels[-1]),
    ]


def _uncertain(levels: Mapping[int, Sequence[PhaseRun]], measured: RolloutMeasured) -> Iterable[str]:
    top = measured.levels[-1]
    if top.mean_batch is not None and top.mean_batch < BUSY * top.concurrency:
        yield (
            f"of {top.concurrency} samples in flight the mean engine step ran {top.mean_batch:.0f}: client, server "
            "front end or scheduler set this rate, not the GPU"
        )
    for run in levels[measured.at_concurrency]:
        error = relative_error(run)
        if error is None:
            yield f"{run.instance}: the window at {run.concurrency} in flight was too short to say how sure its rate is"
        elif error > SURE:
            yield f"{run.instance}: the rate at {run.concurrency} in flight is known to ± {100 * error:.0f} % only"
        drift = _drift(run)
        if abs(drift) > max(DRIFT, 3.0 * (error or 0.0)):
            word = "rose" if drift > 0 else "fell"
            yield f"{run.instance}: not steady: the rate {word} by {100 * abs(drift):.0f} % from one half to the other"
    fit = measured.step_time
    if fit is not None and fit.residual_fraction > FIT:
        yield f"engine steps scatter by {100 * fit.residual_fraction:.0f} % around their fit: was the machine shared?"


def _drift(run: PhaseRun) -> float:
    """By how much the second half of the steady window was faster than the first."""
    window = steady(run)
    if len(window) < _TENTHS:
        return 0.0
    first, second = (
        (after.counters.generation_tokens - before.counters.generation_tokens) / (after.seconds - before.seconds)
        for before, after in pairwise((window[0], window[len(window) // 2], window[-1]))
    )
    return second / first - 1.0 if first else 0.0


def _strangers(runs: Sequence[PhaseRun]) -> Iterable[str]:
    """Traffic that is not ours, requests that were turned away, and engines that show no counters."""
    blind = sorted({run.instance for run in runs if not run.own_counters})
    if blind:
        yield f"{', '.join(blind)}: no counters of the engine could be read; tokens are those of the stream alone"
    refused, broken = max((run.refused for run in runs), default=0), max((run.broken for run in runs), default=0)
    if refused:
        yield f"{refused} requests were turned away as busy and sent again; their waiting is part of the times"
    if broken:
        yield f"{broken} connections broke and were sent again; their tokens were generated twice"
    for run in _first_runs(runs):
        before = run.snapshots[0].counters
        if (before.requests_running or 0) + (before.requests_waiting or 0) > 0:
            yield f"{run.instance}: was working for somebody else before it was asked for anything"


def _first_runs(runs: Sequence[PhaseRun]) -> Iterable[PhaseRun]:
    """The first run of each instance, those without counters left out."""
    found: dict[str, PhaseRun] = {}
    for run in sorted(runs, key=lambda run: run.begun):
        if run.own_counters and run.snapshots:
            found.setdefault(run.instance, run)
    return found.values()


def _disagreements(measured: RolloutMeasured) -> Iterable[str]:
    for check in measured.crosschecks:
        if check.what in {"generation_tokens", "finished_requests", "prompt_tokens"}:
            apart = check.counted / check.asked - 1.0 if check.asked else 0.0
            if abs(apart) > AGREE:
                yield (
                    f"the engine counted {check.counted:,.0f} {check.what.replace('_', ' ')} where {check.asked:,.0f} "
                    "were asked for: does it also serve somebody else?"
                )


def _cache(measured: RolloutMeasured) -> Iterable[str]:
    hits, expected = measured.prefix_cache_hit_fraction, measured.expected_prefix_cache_hit_fraction
    if hits is not None and expected and hits < HITS * expected:
        yield f"the prefix cache hit {100 * hits:.0f} % of prompt tokens where {100 * expected:.0f} % is expected"
    if measured.preemptions:
        yield f"{measured.preemptions} samples were thrown out of the batch: the KV cache is too small for it"


def _stragglers(top: RolloutLevel) -> Iterable[str]:
    spread = top.spread_tokens_per_second
    if spread is not None and spread > 2 * DRIFT * top.tokens_per_second:
        yield (
            f"instances scatter by {100 * spread / top.tokens_per_second:.0f} % around their mean at the same load: "
            "a wide spread is a straggler or a placement problem, not one of size"
        )
