"""What the first-order formulas say of a setting, and why a run differs: one cause after the other let in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from rlsize.equations import (
    affine_step,
    batch_drain,
    engine_step,
    imbalance,
    iteration,
    long_tail,
    loop_time,
    matching,
    money,
    planning,
    prefill,
    rl_step,
    rollout_batch,
    staleness,
    sync_pause,
)
from rlsize.simulator.setting import BARRIER_MODES, Latency, TroubleSetting

if TYPE_CHECKING:
    from rlsize.simulator.setting import EngineSetting, LengthSetting, Setting

_FAR = 1e4  # mean lengths beyond which no sample goes

BASE = "granularity"
"""The first rung: constant lengths, nothing that goes wrong; what is left is that work comes in whole pieces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """
    GPUs and prices of both pools; None where they are not known.

    Args:
        rollout_gpus: GPUs of the fleet; the trainer's own where colocated. [1]
        trainer_gpus: GPUs of the trainer. [1]
        rollout_gpu_hour: Price. [usd]
        trainer_gpu_hour: Price. [usd]
    """

    rollout_gpus: float | None = None
    trainer_gpus: float | None = None
    rollout_gpu_hour: float | None = None
    trainer_gpu_hour: float | None = None

    def with_fleet(self, times: float) -> Pools:
        """The same with so many times as many GPUs of the fleet."""
        if self.rollout_gpus is None:
            return self
        return replace(
            self, rollout_gpus=float(matching.fleet_gpus(instances=times, gpus_per_instance=self.rollout_gpus))
        )

    def gpu_hours(self, seconds: float) -> float | None:
        """GPU-hours of both pools in so many seconds."""
        if self.rollout_gpus is None or self.trainer_gpus is None:
            return None
        return float(money.gpu_hours(gpus=self.rollout_gpus + self.trainer_gpus, seconds=seconds))

    def cost(self, step_seconds: float) -> float | None:
        """Dollars of a step of so many seconds."""
        known = (self.rollout_gpus, self.rollout_gpu_hour, self.trainer_gpus, self.trainer_gpu_hour)
        rollout, rollout_price, trainer, trainer_price = known
        if rollout is None or rollout_price is None or trainer is None or trainer_price is None:
            return None
        return float(
            money.cost_per_step(
                rollout_gpus=rollout,
                rollout_gpu_hour=rollout_price,
                trainer_gpus=trainer,
                trainer_gpu_hour=trainer_price,
                step_seconds=step_seconds,
            )
        )

    def goodput(self, tokens_per_step: float, step_seconds: float) -> float | None:
        """Trained tokens per GPU-second of both pools."""
        if self.rollout_gpus is None or self.trainer_gpus is None:
            return None
        return float(
            money.goodput(
                tokens_per_step=tokens_per_step,
                step_seconds=step_seconds,
                rollout_gpus=self.rollout_gpus,
                trainer_gpus=self.trainer_gpus,
            )
        )


def first_order(setting: Setting, pools: Pools) -> dict[str, float | None]:
    """
    The closed forms' answers, by the names of what a run measures.

    Args:
        setting: What is simulated.
        pools: GPUs and prices.
    """
    work, rules = setting.work, setting.rules
    waste = _waste(setting)
    generation = rollout_batch.fleet_time(
        samples=loop_time.generated_samples(samples_per_step=work.samples, tokens_generated_per_trained_token=waste),
        response_tokens=work.lengths.mean,
        instances=setting.instances,
        instance_rate=mean_rate(setting),
    )
    train, sync, overhead = setting.trainer.seconds, _exposed(setting), setting.trainer.overhead_seconds
    overlaps = rules.mode in {"one-step-off", "async"} and rules.max_staleness != 0
    generation = planning.generation_with_lent_gpus(
        generation_seconds=generation,
        train_seconds=train if overlaps else 0.0,
        swap_seconds=2.0 * setting.trouble.lend_seconds,
        lent_ratio=rollout_batch.share_of(part=setting.trouble.lent_instances, whole=setting.instances),
    )
    at_once = iteration.overlapped_iteration_time if overlaps else iteration.synchronous_iteration_time
    step = rl_step.whole_step(at_once(generation, train, 0.0), sync_seconds=sync, overhead_seconds=overhead)
    shared = rules.mode == "colocated"
    sync_share = rollout_batch.share_of(part=sync, whole=step)
    at_work = generation + train if shared else train
    return {
        "step_seconds": step,
        "step_p50_seconds": step,
        "step_p95_seconds": step,
        "trainer_idle_fraction": loop_time.waiting_fraction(busy_seconds=at_work, iteration_seconds=step),
        "waiting_for_samples_fraction": loop_time.waiting_fraction(
            busy_seconds=at_work + sync + overhead, iteration_seconds=step
        ),
        "sync_fraction": sync_share,
        "overhead_fraction": rollout_batch.share_of(part=overhead, whole=step),
        "failure_fraction": 0.0,
        "rollout_unused_fraction": loop_time.waiting_fraction(busy_seconds=generation, iteration_seconds=step),
        "staleness_mean_steps": _staleness(setting, generation, train),
        "tokens_generated_per_trained_token": waste,
        "trained_tokens_per_second": rollout_batch.batch_rate(
            samples=work.samples, response_tokens=work.lengths.mean, seconds=step
        ),
        "goodput_tokens_per_gpu_second": pools.goodput(work.tokens, step),
        "cost_per_step_usd": pools.cost(step),
        "steps_per_day": iteration.iterations_per_day(step),
    }


def mean_rate(setting: Setting) -> float:
    """Response tokens per second of the mean instance. [token/s]"""
    rates = [instance_rate(setting, concurrency(setting, kind), kind) for kind in setting.kinds]
    supplies = [kind.instances * rate for kind, rate in zip(setting.kinds, rates, strict=True)]
    return sum(supplies) / setting.instances if setting.others else rates[0]


def concurrency(setting: Setting, engine: EngineSetting) -> float:
    """Samples in flight on an instance of a kind, as far as slots, cache and admission let them be. [1]"""
    work, rules = setting.work, setting.rules
    offered = work.samples * rules.oversampling
    if rules.mode == "async":
        offered = inf
        if rules.max_staleness is not None:
            offered = rl_step.allowed_in_flight(samples_per_step=work.samples, max_staleness=rules.max_staleness)
    live = long_tail.context_of(
        prompt_tokens=work.prompt_tokens / _sharing(setting), response_tokens=live_response(work.lengths)
    )
    room = engine_step.cache_concurrency(cache_tokens=engine.kv_tokens, live_tokens=live)
    return float(
        rollout_batch.samples_in_flight(
            concurrency=rollout_batch.per_instance(amount=offered, instances=setting.slots / engine.slots),
            capacity=room,
            engine_limit=engine.slots,
        )
    )


def instance_rate(setting: Setting, batch: float, engine: EngineSetting) -> float:
    """Response tokens per second of an instance of a kind whose batch stays full. [token/s]"""
    work = setting.work
    step = engine_step.engine_step_time(
        fixed_seconds=engine.batch_seconds(batch),
        seconds_per_sample=0.0,
        seconds_per_kv_token=engine.kv_seconds,
        seconds_per_prefill_token=engine.prefill_seconds,
        batch=batch,
        live_kv_tokens=affine_step.kv_tokens_of(
            batch=batch,
            live_tokens=long_tail.context_of(
                prompt_tokens=work.prompt_tokens, response_tokens=live_response(work.lengths)
            ),
        ),
        prefill_tokens=prefill.prefill_in_step(
            batch=batch,
            response_tokens=work.lengths.mean,
            prefill_seconds=work.prompt_tokens / _sharing(setting),  # tokens in place of seconds: the same share
        ),
    )
    return float(rollout_batch.steady_rate(batch, work.lengths.mean, 0.0, step))


def live_response(lengths: LengthSetting) -> float:
    """Response tokens of the mean sample in flight: half of the length-weighted mean. [token]"""
    if lengths.shape == "empirical":
        squares = sum(value**2 for value in lengths.values)
        return float(squares / sum(lengths.values) / 2.0)
    cap = min(lengths.cap, _FAR * lengths.mean)
    uncapped = batch_drain.uncapped_mean(mean_tokens=lengths.mean, length_cv=max(lengths.cv, 1e-9), max_tokens=cap)
    return float(long_tail.mean_remaining_tokens(mean_tokens=min(uncapped, cap), length_cv=lengths.cv, max_tokens=cap))


def _sharing(setting: Setting) -> float:
    """Samples that share a prompt on an instance."""
    return float(setting.work.group_size) if setting.engine.routing == "affine" else 1.0


def _waste(setting: Setting) -> float:
    rules = setting.rules
    drops = rules.mode in BARRIER_MODES and rules.unfinished == "drop"
    return float(
        imbalance.tokens_generated_per_trained_token(
            oversampling=rules.oversampling if drops else 1.0,
            kept_fraction=setting.work.acceptance,
            dropped_fraction=0.0,
        )
    )


def _exposed(setting: Setting) -> float:
    sync = setting.sync
    if setting.rules.mode == "colocated":
        return 2.0 * sync.swap_seconds
    return float(sync_pause.sync_seconds_per_step(exposed_sync_seconds=sync.seconds, sync_every=sync.every))


def _staleness(setting: Setting, generation: float, train: float) -> float:
    rules, work = setting.rules, setting.work
    cadence = float(staleness.staleness_of_cadence(sync_every=setting.sync.every))
    if rules.in_turn:
        return cadence
    if rules.mode == "one-step-off":
        return 1.0 + cadence
    flying = sum([concurrency(setting, kind) * kind.instances for kind in setting.kinds])
    waiting = inf if rules.queue_steps is None else rules.queue_steps * work.samples
    if rules.max_staleness is not None:
        allowed = imbalance.queue_allowed(rules.max_staleness, work.samples, flying)
        waiting = min(waiting, allowed)
    mean = staleness.mean_staleness(
        rate_ratio=train / generation,
        concurrent_samples=flying,
        samples_per_step=work.samples,
        longest_over_mean=longest_of_group(setting) / work.lengths.mean,
        queue_samples=waiting if waiting < inf else 0.0,
    )
    return float(staleness.capped_staleness(mean, inf if rules.max_staleness is None else rules.max_staleness))


def longest_of_group(setting: Setting) -> float:
    """Expected longest response of a group. [token]"""
    lengths = setting.work.lengths
    if lengths.cv == 0.0 or lengths.shape not in {"lognormal", "gamma"}:
        return lengths.mean
    cap = min(lengths.cap, _FAR * lengths.mean)
    uncapped = batch_drain.uncapped_mean(mean_tokens=lengths.mean, length_cv=lengths.cv, max_tokens=cap)
    return float(long_tail.longest_of(setting.work.group_size, uncapped, lengths.cv, cap))


def rungs(setting: Setting) -> list[tuple[str, Setting]]:
    """
    Settings from the simplest to the whole, each with one cause more, and what that cause is called.

    A cause that the setting does not have has no rung. The last rung is the setting itself.

    Args:
        setting: What is simulated.
    """
    simple = _simplest(setting)
    lengths = setting.work.lengths
    even = replace(simple.work, lengths=replace(lengths, correlation=0.0, drift=0.0))
    work = replace(simple.work, lengths=lengths)
    steps = [("long tail", replace(simple, work=even)), ("alike groups, drift", replace(simple, work=work))]
    cached = replace(simple, work=work, engine=setting.engine, others=setting.others)
    work = replace(work, acceptance=setting.work.acceptance, redundant_samples=setting.work.redundant_samples)
    ruled = replace(cached, work=work, rules=setting.rules)
    scored = replace(ruled, work=setting.work)
    trouble = setting.trouble
    slow = replace(
        simple.trouble,
        straggler_fraction=trouble.straggler_fraction,
        straggler_slowdown=trouble.straggler_slowdown,
    )
    lost = replace(
        slow,
        losses_per_hour=trouble.losses_per_hour,
        lost_together=trouble.lost_together,
        notice_seconds=trouble.notice_seconds,
        restart_seconds=trouble.restart_seconds,
    )
    steps += [
        ("KV cache", cached),
        ("policies", ruled),
        ("tools, verifier", scored),
        ("stragglers", replace(scored, trouble=slow)),
        ("lost instances", replace(scored, trouble=lost)),
        ("failures", setting),
    ]
    found = [(BASE, simple)]
    for name, rung in steps:
        if rung != found[-1][1]:
            found.append((name, rung))
    return found


def _simplest(setting: Setting) -> Setting:
    work = replace(
        setting.work,
        lengths=replace(setting.work.lengths, shape="constant", cv=0.0, correlation=0.0, drift=0.0, values=()),
        acceptance=1.0,
        turns=1,
        redundant_samples=0,
        environments=None,
        environment_seconds=0.0,
        tool=Latency(),
        tool_tokens=0,
        verify=Latency(),
        verify_failed_fraction=0.0,
        verify_workers=None,
    )
    rules = replace(
        setting.rules, oversampling=1.0, unfinished="drop", drops_over_stale=False, order="completion", resizes=()
    )
    return replace(
        setting,
        engine=replace(setting.engine, kv_tokens=inf),
        others=tuple(replace(kind, kv_tokens=inf) for kind in setting.others),
        work=work,
        rules=rules,
        trouble=TroubleSetting(
            lent_instances=setting.trouble.lent_instances, lend_seconds=setting.trouble.lend_seconds
        ),
    )
