"""The loop behind `rlsize simulate`: its setting, from flags, scenario, rates file and predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, inf
from typing import TYPE_CHECKING, Any

from rlsize.commands import flags, predicted
from rlsize.commands.simulate_asking import Asked
from rlsize.commands.simulate_engine import engine_setting
from rlsize.commands.simulate_lengths import lengths_of
from rlsize.commands.simulate_pools import gpus_of, pools_of, train_seconds
from rlsize.equations import matching, rollout_batch
from rlsize.shell.rates import load
from rlsize.simulator.setting import (
    Latency,
    RuleSetting,
    Setting,
    SyncSetting,
    TrainerSetting,
    TroubleSetting,
    WorkSetting,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.figure import Figure
    from rlsize.shell.inputs import Inputs
    from rlsize.simulator.first_order import Pools
    from rlsize.simulator.setting import LengthSetting

_MODES: dict[str, Any] = {
    "colocated": "colocated",
    "sync": "sync",
    "disaggregated": "sync",
    "partial": "sync",
    "overlapped": "one-step-off",
    "one-step-off": "one-step-off",
    "async": "async",
}
_PARTIAL_OVERSAMPLING = 1.25  # where partial rollouts are asked for and nobody says by how much


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """
    What is to be simulated.

    Args:
        setting: The loop.
        pools: GPUs and prices.
    """

    setting: Setting
    pools: Pools


def simulated(inputs: Inputs, said: Mapping[str, Any]) -> Simulated:
    """
    The loop as it was asked for.

    Args:
        inputs: Scenario and profiles; takes faults and notes.
        said: What the flags say, by name.

    Raises:
        InputError: All faults.
    """
    asked = Asked(inputs, said)
    predicted.offer(
        inputs,
        said.get("calibration"),
        **{
            name: said.get(flag)
            for name, flag in (
                ("model", "model"), ("gpu", "gpu"), ("rollout_gpus", "rollout_gpus"), ("trainer_gpus", "trainer_gpus"),
                ("response_tokens", "response_tokens"), ("response_cv", "response_cv"), ("group_size", "group"),
                ("prompts_per_step", "prompts"), ("prompt_tokens", "prompt_tokens"),
            )
        },
    )  # fmt: skip
    _named(asked)
    load(inputs, said.get("per_instance"), accept_lower_bound=bool(said.get("accept_lower_bound")))
    mode = inputs.word("mode", "--mode", said.get("mode"), _MODES, scenario="placement.mode", default="sync") or "sync"
    groups, size = _batch(asked)
    lengths = lengths_of(asked)
    gpus = gpus_of(asked, mode)
    engine = engine_setting(asked, _count(gpus.instances), groups * size)
    train = train_seconds(asked, gpus)
    sync = _sync(asked, mode)
    inputs.need(gpus.instances, "give the rollout instances, or --rollout-gpus with --gpus-per-instance")
    inputs.need(train, "give the busy trainer seconds of a step" + predicted.why_not(inputs, "train_seconds"))
    rules = _rules(asked, mode, sync.every)
    work = _work(asked, groups, size, lengths)
    trouble = _trouble(asked, mode)
    pools = pools_of(asked, gpus, mode)
    trainer = TrainerSetting(
        seconds=train.number if train.known else 1.0,
        logprob_fraction=_logprob_fraction(inputs),
        micro_batches=_micro_batches(asked, mode, groups),
    )
    setting = Setting(
        engine=inputs.settled(engine), work=work, trainer=trainer, sync=sync, rules=rules, trouble=trouble
    )
    _check_cache(inputs, setting)
    _aside(asked, mode)
    inputs.settle()
    return Simulated(setting=setting, pools=pools)


def _named(asked: Asked) -> None:
    """Model and GPU, where they are named: a name that nobody knows is a fault, whether it is needed or not."""
    from rlsize.commands.asking import gpu
    from rlsize.shell.models import model_profile

    if asked.said.get("model") is not None:
        model_profile(asked.inputs, asked.said["model"])
    if asked.said.get("gpu") is not None:
        gpu(asked.inputs, asked.said["gpu"])


def _aside(asked: Asked, mode: str) -> None:
    """Flags that say nothing in this mode: better told than followed in silence."""
    inputs, asynchronous = asked.inputs, _MODES.get(mode) == "async"
    names = ["unfinished"] if asynchronous else ["max_staleness", "over_stale", "queue_steps"]
    names += ["sync_seconds"] if mode == "colocated" else ["swap_seconds"]
    flagged = [f"--{name.replace('_', '-')}" for name in names if asked.said.get(name) is not None]
    if flagged:
        inputs.notes.append(f"Without effect where the mode is {mode}: {', '.join(flagged)}.")
    for name in names:
        inputs.used.pop(name, None)


def _batch(asked: Asked) -> tuple[int, int]:
    """Prompts per step and samples of each, as whole numbers."""
    inputs = asked.inputs
    prompts = inputs.number(
        "prompts_per_step", "--prompts", asked.said.get("prompts"), flags.COUNT, scenario="workload.prompts_per_step"
    )
    group = inputs.number(
        "group_size", "--group", asked.said.get("group"), flags.COUNT, scenario="workload.group_size", default=1,
        why="each prompt is sampled once",
    )  # fmt: skip
    inputs.need(prompts, "give the prompts per optimizer step")
    return _count(prompts), _count(group)


def _count(figure: Figure) -> int:
    return int(figure.number) if figure.known else 1


def _sync(asked: Asked, mode: str) -> SyncSetting:
    inputs = asked.inputs
    seconds = predicted.sync_seconds(
        inputs,
        inputs.number(
            "sync_seconds", "--sync-seconds", asked.said.get("sync_seconds"), flags.SECONDS_OR_NONE,
            scenario="rates.sync_seconds", default=0.0, why="nobody said how long a sync takes",
        ),
    )  # fmt: skip
    swap = asked.number("swap_seconds")
    way: Any = asked.word("sync_way")
    colocated = mode == "colocated"
    every = asked.whole("sync_every")
    if colocated and every > 1:
        inputs.notes.append("Colocated engines get the weights with every change-over: sync every is left aside.")
    return SyncSetting(
        seconds=0.0 if colocated else seconds.number if seconds.known else 0.0,
        every=1 if colocated else every,
        way=way,
        keeps_kv=asked.word("kv_after_sync") == "kept",
        swap_seconds=swap / 2 if colocated else 0.0,
    )


def _rules(asked: Asked, mode: str, every: int) -> RuleSetting:
    inputs = asked.inputs
    cap = asked.optional("max_staleness")
    asynchronous = _MODES.get(mode) == "async"
    if cap is not None and cap != int(cap):
        inputs.fault(f"{cap:g} is no whole number of optimizer steps", "--max-staleness", "round it")
    if asynchronous and cap is not None and cap < every - 1:
        what = f"a cap of {cap:g} cannot be kept with a sync every {every} steps: samples lag up to {every - 1}"
        inputs.fault(what, "--max-staleness", f"raise it to {every - 1}, or sync more often")
    unfinished: Any = asked.word("unfinished")
    oversampling = asked.number("oversampling")
    if mode == "partial":
        unfinished = "keep"
        if not asked.stated("oversampling"):
            oversampling = _PARTIAL_OVERSAMPLING
            inputs.notes.append(f"Partial rollouts start {oversampling:g} groups for each that a batch needs.")
    if asynchronous and oversampling > 1.0:
        inputs.notes.append("An async loop has no batch to start too many groups for: over-sampling is left aside.")
    order: Any = asked.word("queue_order")
    queue = asked.optional("queue_steps")
    if queue is not None and queue < 1:
        inputs.fault(f"a queue of {queue:g} batches never holds a whole one", "--queue-steps", "give 1 or more")
    return RuleSetting(
        mode=_MODES.get(mode, "sync"),
        max_staleness=int(cap) if asynchronous and cap is not None else None,
        drops_over_stale=asynchronous and asked.word("over_stale") == "drop",
        order=order,
        queue_steps=queue if asynchronous else None,
        oversampling=1.0 if asynchronous else oversampling,
        unfinished=unfinished,
    )


def _work(asked: Asked, groups: int, size: int, lengths: LengthSetting) -> WorkSetting:
    prompt = asked.number("prompt_tokens")
    return WorkSetting(
        groups=groups,
        group_size=size,
        lengths=lengths if lengths.mean else replace(lengths, mean=1.0),
        prompt_tokens=round(prompt),
        acceptance=asked.number("kept_fraction"),
        turns=asked.whole("turns"),
        tool=Latency(seconds=asked.number("tool_seconds"), cv=asked.number("tool_cv")),
        tool_tokens=round(asked.number("tool_tokens")),
        verify=Latency(seconds=asked.number("verify_seconds"), cv=asked.number("verify_cv")),
        verify_workers=asked.whole_or_none("verify_workers"),
    )


def _trouble(asked: Asked, mode: str) -> TroubleSetting:
    lent = asked.whole("lent_instances")
    if lent and mode == "colocated":
        asked.inputs.fault("colocated GPUs have nothing to lend", "--lent-instances", "leave it out")
    return TroubleSetting(
        straggler_fraction=asked.number("straggler_fraction"),
        straggler_slowdown=asked.number("straggler_slowdown"),
        losses_per_hour=asked.number("losses_per_hour"),
        notice_seconds=asked.number("notice_seconds"),
        restart_seconds=asked.number("restart_seconds"),
        failures_per_hour=asked.number("failures_per_hour"),
        trainer_restart_seconds=asked.number("trainer_restart_seconds"),
        checkpoint_every=asked.whole("checkpoint_every"),
        lent_instances=lent,
        lend_seconds=asked.number("lend_seconds"),
    )


def _micro_batches(asked: Asked, mode: str, groups: int) -> int:
    parts = asked.whole("micro_batches")
    if parts > groups:
        what = f"{parts} micro-batches do not fit into a batch of {groups} prompts"
        asked.inputs.fault(what, "--micro-batches", "a micro-batch holds at least one group")
    if parts > 1 and mode == "colocated":
        asked.inputs.notes.append("A colocated trainer begins when the whole batch is there.")
    return max(1, min(parts, groups))


def _logprob_fraction(inputs: Inputs) -> float:
    """Share of the trainer's time in forward passes, by FLOPs; for pictures only."""
    passes = inputs.said("trainer.logprob_passes") or []
    extra = matching.generation_flops_per_token(active_params=float(len(passes)))
    update = matching.training_flops_per_token(active_params=1.0)
    return float(rollout_batch.share_of(part=extra, whole=extra + update))


def _check_cache(inputs: Inputs, setting: Setting) -> None:
    """One sample of the longest length must fit into an instance's cache."""
    engine, work = setting.engine, setting.work
    if engine.kv_tokens == inf:
        return
    longest = work.lengths.cap
    if longest == inf:
        inputs.fault(
            "nothing caps the response length, and the KV cache is limited",
            "--max-response-tokens",
            "give the cap, so that the longest sample fits",
        )
        return
    needed = work.prompt_tokens + longest + (work.turns - 1) * work.tool_tokens + 1
    if needed > engine.kv_tokens:
        what = f"a sample of {ceil(needed):,} tokens does not fit into a KV cache of {engine.kv_tokens:,.0f}"
        inputs.fault(what, "--kv-cache-tokens", "shorten the cap, or take a larger instance")
