"""What is simulated: engines, work, trainer, weight sync, rules and trouble, in base units."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from math import ceil, floor, inf
from typing import Literal, NamedTuple, TypeAlias

Mode: TypeAlias = Literal["colocated", "sync", "one-step-off", "async"]
Routing: TypeAlias = Literal["affine", "random", "round-robin", "queue"]
Way: TypeAlias = Literal["in-flight", "drain", "abort", "rolling"]
Order: TypeAlias = Literal["completion", "admission", "freshest"]
Unfinished: TypeAlias = Literal["drop", "keep"]
Redealing: TypeAlias = Literal["arrivals", "waiting", "running"]
Shape: TypeAlias = Literal["lognormal", "gamma", "constant", "empirical"]

MODES: tuple[Mode, ...] = ("colocated", "sync", "one-step-off", "async")
_ROUND = 1e-9  # of a product that should be whole
_PATIENCE, _ROUNDS = 20_000, 40  # rounds of decisions without an optimizer step: in all, and for each sample of one
BARRIER_MODES: frozenset[Mode] = frozenset({"colocated", "sync", "one-step-off"})
"""Modes in which a batch is generated as a whole and waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSetting:
    """
    The rollout fleet.

    Args:
        instances: Rollout instances. [1]
        slots: Samples that an instance runs at once. [1]
        fixed_seconds: An engine step with nothing in it, t0. [s]
        sample_seconds: What each running sample adds, t1. [s]
        kv_seconds: What each live KV token adds, t2. [s]
        prefill_seconds: What each prompt token that is computed adds, t3. [s]
        kv_tokens: KV cache of an instance. [token]
        routing: Which instance a sample goes to.
        points: In place of t0 + t1 b: running samples, and what a step with them takes without KV and prompts, at two
            points or more, the fewest samples first. [1, s]
    """

    instances: int
    slots: int
    fixed_seconds: float
    sample_seconds: float = 0.0
    kv_seconds: float = 0.0
    prefill_seconds: float = 0.0
    kv_tokens: float = inf
    routing: Routing = "affine"
    points: tuple[tuple[int, float], ...] = ()

    def slowed(self, times: float) -> EngineSetting:
        """The same, whose steps take so many times as long."""
        return replace(
            self,
            fixed_seconds=self.fixed_seconds * times,
            sample_seconds=self.sample_seconds * times,
            kv_seconds=self.kv_seconds * times,
            prefill_seconds=self.prefill_seconds * times,
            points=tuple((samples, seconds * times) for samples, seconds in self.points),
        )

    def batch_seconds(self, batch: float) -> float:
        """
        What an engine step takes without KV and prompts: a straight line between points, and beyond the outer ones. [s]

        Args:
            batch: Running samples. [1]
        """
        if not self.points:
            return self.fixed_seconds + self.sample_seconds * batch
        upper = min(max(1, bisect_right(self.points, (batch, inf))), len(self.points) - 1)
        (low, first), (high, second) = self.points[upper - 1 : upper + 1]
        return first + (batch - low) * ((second - first) / (high - low))


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthSetting:
    """
    Response lengths.

    Args:
        mean: As it is seen, samples cut at the cap included, at the start of the run. [token]
        cv: Coefficient of variation without the cap. [1]
        cap: Longest response. [token]
        shape: Family of the distribution.
        correlation: Of the lengths within a group, in the normal variable behind them. [1]
        drift: Relative growth of the mean over 1,000 optimizer steps. [1]
        values: Lengths of an empirical distribution, sorted, each as likely as any other. [token]
    """

    mean: float
    cv: float = 0.0
    cap: float = inf
    shape: Shape = "lognormal"
    correlation: float = 0.0
    drift: float = 0.0
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """
    Time that something outside the GPUs takes, lognormal.

    Args:
        seconds: Mean. [s]
        cv: Coefficient of variation. [1]
    """

    seconds: float = 0.0
    cv: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSetting:
    """
    What an optimizer step is made of.

    Args:
        groups: Prompts per optimizer step, P. [1]
        group_size: Samples of one prompt, G. [1]
        lengths: Of the responses.
        prompt_tokens: Of every prompt. [token]
        acceptance: Share of groups that dynamic sampling keeps. [1]
        turns: Turns of a sample at most; a tool answers between them. [1]
        turn_end_fraction: Chance that a turn is a sample's last one, though more were allowed. [1]
        tool: Time of one tool call.
        tool_tokens: What a tool's answer adds to the context. [token]
        verify: Time to score one sample.
        verify_failed_fraction: Chance that a verifier fails: the sample is scored once more, which takes as long. [1]
        verify_workers: How many are scored at once; None for as many as there are. [1]
        environments: Of which each sample needs one until it has finished; None for as many as there are samples. [1]
        environment_seconds: Until an environment has started. [s]
        failed_fraction: Chance that an environment fails in a tool call: it starts again, and the call is repeated. [1]
        redundant_samples: That a group begins with beyond those that it needs: the first to end are taken. [1]
    """

    groups: int
    group_size: int
    lengths: LengthSetting
    prompt_tokens: int = 0
    acceptance: float = 1.0
    turns: int = 1
    turn_end_fraction: float = 0.0
    tool: Latency = field(default_factory=Latency)
    tool_tokens: int = 0
    verify: Latency = field(default_factory=Latency)
    verify_failed_fraction: float = 0.0
    verify_workers: int | None = None
    environments: int | None = None
    environment_seconds: float = 0.0
    failed_fraction: float = 0.0
    redundant_samples: int = 0

    @property
    def samples(self) -> int:
        """Samples that an optimizer step trains on. [1]"""
        return self.groups * self.group_size

    @property
    def started(self) -> int:
        """Samples that a group begins with. [1]"""
        return self.group_size + self.redundant_samples

    @property
    def equipped(self) -> bool:
        """Whether samples wait for environments, or for these to start."""
        return self.environments is not None or self.environment_seconds > 0.0

    @property
    def tokens(self) -> float:
        """Response tokens of a step of mean lengths. [token]"""
        return self.samples * self.lengths.mean


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerSetting:
    """
    The trainer.

    Args:
        seconds: Busy seconds of a step whose samples have the mean length; others take time in proportion to their
            tokens. [s]
        logprob_fraction: Of it, extra forward passes before the update. [1]
        micro_batches: Parts of a batch that are trained one by one, each as soon as it is there. [1]
        overhead_seconds: Time after each update in which neither side works: validation, the set-up of a sync. [s]
    """

    seconds: float
    logprob_fraction: float = 0.0
    micro_batches: int = 1
    overhead_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncSetting:
    """
    How new weights reach the fleet.

    Args:
        seconds: Time of the transport, in which neither side works. [s]
        every: Optimizer steps from one sync to the next, m. [1]
        way: What becomes of samples that are running: they go on (in-flight), are waited for (drain), or start anew
            (abort); or each instance takes the weights when its step ends, and the trainer goes on (rolling).
        keeps_kv: Whether samples that go on keep their KV cache, or compute it anew under the new weights.
        swap_seconds: Where colocated, one change-over, to training or back. [s]
    """

    seconds: float = 0.0
    every: int = 1
    way: Way = "in-flight"
    keeps_kv: bool = True
    swap_seconds: float = 0.0


class Resize(NamedTuple):
    """
    Instances that come or go.

    Args:
        change: How many come; less than none if they go. [1]
        step: After which optimizer step; None where a time says when. [1]
        seconds: When, where no step says it. [s]
    """

    change: int
    step: int | None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleSetting:
    """
    The rules of the loop.

    Args:
        mode: How generation and training follow each other.
        max_staleness: Most optimizer steps by which a sample may lag, k; a fraction is a part of a batch that may be
            begun ahead; None for no cap; for async. [1]
        drops_over_stale: Whether samples above the cap are dropped when a batch is taken, or trained all the same.
        order: Which finished groups are trained first.
        queue_steps: Finished batches at which no new sample starts; None for no limit. [1]
        oversampling: Groups started for each that a batch needs; the batch is complete with the first of them. [1]
        unfinished: What becomes of the others: dropped, or kept and gone on with in the next batch (partial rollouts).
        redealing: When samples that have been dealt go to other instances: queued ones when an instance comes
            (arrivals), or also when one has none (waiting), and then running ones as well (running).
        resizes: Instances that come or go during the run; not where colocated.
    """

    mode: Mode = "sync"
    max_staleness: float | None = None
    drops_over_stale: bool = False
    order: Order = "completion"
    queue_steps: float | None = None
    oversampling: float = 1.0
    unfinished: Unfinished = "drop"
    redealing: Redealing = "arrivals"
    resizes: tuple[Resize, ...] = ()

    @property
    def in_turn(self) -> bool:
        """Whether nothing is generated for a later step while the trainer works."""
        return self.mode in {"sync", "colocated"} or self.max_staleness == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TroubleSetting:
    """
    What goes wrong.

    Args:
        straggler_fraction: Share of instances that are slow. [1]
        straggler_slowdown: How many times as long their steps take. [1]
        losses_per_hour: How often an instance, or a node of them, is lost, while it is up. [1/h]
        lost_together: Instances of a node, which is lost as a whole. [1]
        notice_seconds: Time between the announcement of a loss and the loss. [s]
        restart_seconds: Until a lost instance is back. [s]
        failures_per_hour: How often the trainer fails, per hour of its work. [1/h]
        trainer_restart_seconds: Until it is back. [s]
        checkpoint_every: Optimizer steps from one checkpoint to the next. [1]
        lent_instances: Rollout instances that the trainer's GPUs make while they wait for samples. [1]
        lend_seconds: Changing over, each way. [s]
    """

    straggler_fraction: float = 0.0
    straggler_slowdown: float = 1.0
    losses_per_hour: float = 0.0
    lost_together: int = 1
    notice_seconds: float = 0.0
    restart_seconds: float = 0.0
    failures_per_hour: float = 0.0
    trainer_restart_seconds: float = 0.0
    checkpoint_every: int = 1
    lent_instances: int = 0
    lend_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """
    A loop to simulate.

    Args:
        engine: The rollout fleet.
        work: What a step is made of.
        trainer: The trainer.
        sync: The weight sync.
        rules: Mode and policies.
        trouble: What goes wrong.
        others: Instances of other kinds, which follow them; all are routed alike.
    """

    engine: EngineSetting
    work: WorkSetting
    trainer: TrainerSetting
    sync: SyncSetting = field(default_factory=SyncSetting)
    rules: RuleSetting = field(default_factory=RuleSetting)
    trouble: TroubleSetting = field(default_factory=TroubleSetting)
    others: tuple[EngineSetting, ...] = ()

    @property
    def kinds(self) -> tuple[EngineSetting, ...]:
        """All kinds of instances."""
        return (self.engine, *self.others)

    @property
    def instances(self) -> int:
        """Instances that the fleet begins with. [1]"""
        return sum(kind.instances for kind in self.kinds)

    @property
    def slots(self) -> int:
        """Their slots. [1]"""
        return sum(kind.instances * kind.slots for kind in self.kinds)

    @property
    def groups_ahead(self) -> float:
        """Groups by which admission may run ahead of the fleet: whole ones of the cap, or those of rare syncs. [1]"""
        cap = self.rules.max_staleness
        return inf if cap is None else floor(max(cap, self.sync.every - 1) * self.work.groups + _ROUND)

    @property
    def most_lag(self) -> float:
        """Versions by which a sample may lag: the cap, rounded up, or as many as rare syncs need. [1]"""
        cap = self.rules.max_staleness
        return inf if cap is None else max(ceil(cap), self.sync.every - 1)

    @property
    def most_waiting(self) -> float:
        """Groups that wait to be trained, from which on none is admitted. [1]"""
        return inf if self.rules.queue_steps is None else self.rules.queue_steps * self.work.groups

    @property
    def launched_groups(self) -> int:
        """Groups that a barrier's batch begins with. [1]"""
        return ceil(self.work.groups * self.rules.oversampling - _ROUND)

    @property
    def most_instances(self) -> int:
        """Instances of the fleet's own that there ever may be. [1]"""
        return self.instances + sum(max(0, resize.change) for resize in self.rules.resizes)

    @property
    def patience(self) -> float:
        """Rounds of decisions without an optimizer step after which a run is given up. [1]"""
        work, instances = self.work, self.most_instances + self.trouble.lent_instances
        return _PATIENCE + _ROUNDS * work.turns * (work.samples * self.rules.oversampling / work.acceptance + instances)
