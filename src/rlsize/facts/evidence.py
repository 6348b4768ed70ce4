"""What is known of a running loop when somebody asks what is wrong with it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal, TypeAlias

from rlsize.facts.figure import Figure, absent
from rlsize.facts.run_log import RunSummary
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.observations import Observation

Check: TypeAlias = Literal[
    "phases",
    "trainer_health",
    "weight_sync",
    "idle_ratio",
    "missing_instances",
    "stragglers",
    "prefix_cache",
    "routing",
    "preemptions",
    "lost_in_turn",
    "fleet_size",
]
Sign: TypeAlias = Literal["seen", "said", "possible"]
"""What speaks for a cause: the run, what was said of the loop, or nothing that was looked at."""
Status: TypeAlias = Literal["fault", "note", "fine", "unknown"]
Verdict: TypeAlias = Literal[
    "trainer regressed",
    "sync stall",
    "slow phase",
    "one phase takes most",
    "starving trainer",
    "growing backlog",
    "oversized and held back",
    "neither side at its limit",
    "in turn",
    "matched",
    "unclear",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLoad:
    """
    What the engines had to do in the window, per instance.

    Args:
        running: Mean samples in the running batch; None where pages do not say. [1]
        waiting: Mean samples waiting. [1]
        preemptions_per_sample: Samples thrown out of the batch over samples finished. [1]
        sync_pause_fraction: Share of the window spent in weight syncs, as the engines count it. [1]
    """

    running: float | None = None
    waiting: float | None = None
    preemptions_per_sample: float | None = None
    sync_pause_fraction: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPhase:
    """
    A phase of a step beside what the loop's model needs on its GPUs.

    Args:
        phase: Its name: generation, update, logprob, sync, reward, tools, validation, checkpoint, other, or
            step for all of it.
        took: What it took. [s]
        usual: What is predicted. [s]
        ratio: Times that it took longer than that. [1]
        share: Share of the step that it took. [1]
        band: The interval around it in which 95 % of runs lie; None where nothing is predicted. [s]
        normal: Whether that is usual; None likewise.
    """

    phase: str
    took: Figure
    usual: Figure
    ratio: Figure
    share: Figure
    band: tuple[float, float] | None = None
    normal: bool | None = None

    @property
    def excess(self) -> float:
        """Seconds beyond what is usual; 0 where nothing is predicted. [s]"""
        return max(0.0, self.took.number - self.usual.number) if self.usual.known else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """
    What may make a phase slow.

    Args:
        phase: The phase.
        kind: What it is.
        sign: What speaks for it.
        figures: The evidence.
        change: What to change: values by quantity; None for what no longer holds.
    """

    phase: str
    kind: str
    sign: Sign
    figures: tuple[Figure, ...] = ()
    change: Mapping[str, float | str | bool | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """
    Everything that a diagnosis looks at; figures without a value where nobody said.

    Args:
        run: The training log, summed up; empty without one.
        fleet: The engines; None without any.
        load: What they had to do.
        tail_of_wait: Share of the trainer's waiting in which slots of the engines stood empty. [1]
        consumption: Response tokens per second that the busy trainer consumes. [token/s]
        waste: Tokens generated per trained token. [1]
        nameplate: What an instance can do at saturation, where somebody knows it. [token/s]
        headroom: Derating of that rate. [1]
        instances: Rollout instances there are. [1]
        gpus_per_instance: GPUs of each. [1]
        trainer_gpus: GPUs of the trainer. [1]
        expected_train_seconds: Busy time of a step as it should be. [s]
        max_staleness: The recipe's bound on staleness. [1]
        idle_target: Trainer idle that is accepted. [1]
        sync_target: Share of the step that weight syncs may take. [1]
        usual: What the loop is predicted to do, by key; empty where nobody says the loop.
        lacking: What to say of the loop so that this is known; empty where it is, or where nobody says the loop.
        said: What was said of the loop, by quantity.
    """

    run: RunSummary = field(default_factory=RunSummary)
    fleet: Observation | None = None
    load: EngineLoad = field(default_factory=EngineLoad)
    tail_of_wait: Figure = absent("tail_of_wait_fraction", "a Prometheus with engines and trainer over time")
    consumption: Figure = absent("consumption_tokens_per_second", "--consume")
    waste: Figure = absent("tokens_generated_per_trained_token", "--tokens-per-trained-token")
    nameplate: Figure = absent("instance_tokens_per_second", "--per-instance")
    headroom: Figure = absent("headroom", "--headroom")
    instances: Figure = absent("instances", "--instances")
    gpus_per_instance: Figure = absent("gpus_per_instance", "--gpus-per-instance")
    trainer_gpus: Figure = absent("trainer_gpus", "--trainer-gpus")
    expected_train_seconds: Figure = absent("expected_train_seconds", "--train-seconds")
    max_staleness: Figure = absent("max_staleness", "--max-staleness")
    idle_target: Figure = absent("idle_target", "--max-idle")
    sync_target: Figure = absent("sync_target", "--max-sync")
    usual: Mapping[str, Figure] = field(default_factory=dict)
    lacking: str = ""
    said: Mapping[str, Figure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    What one check found.

    Args:
        check: Which.
        status: `fault` where something is to be done, `note` where something is to be known, `fine`, or `unknown`.
        kind: Which of the faults of this check, where it has several.
        figures: The evidence, by name.
        names: Whose: instances, keys, steps.
        gain: What mending it is worth at most, as a share of the step or of the fleet's rate; unknown where nobody can
            say. [1]
    """

    check: Check
    status: Status
    kind: str = ""
    figures: Mapping[str, Figure] = field(default_factory=dict)
    names: tuple[str, ...] = ()
    gain: Figure = absent("gain_fraction", "a measurement after the change")


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """
    What is wrong with a loop, and what to do in which order.

    Args:
        verdict: In a word.
        findings: Every check, in the order of the runbook.
        steps: Those with something to do, in the order in which to do it.
        trainer_idle: Share of the step that the trainer waits. [1]
        consumption: Response tokens per second that the busy trainer consumes. [token/s]
        fleet_rate: Response tokens per second of the fleet, by wall clock. [token/s]
        required: Response tokens per second that it should make. [token/s]
        matched: Instances that match, in whole numbers; without a value where no rate at saturation is known. [1]
        phases: The phases that were timed, the one to look at first before the others; none where nothing stands out
            and nothing was predicted.
        causes: What may make that one slow, the likeliest first.
    """

    verdict: Verdict
    findings: tuple[Finding, ...]
    steps: tuple[Finding, ...]
    trainer_idle: Figure
    consumption: Figure
    fleet_rate: Figure
    required: Figure
    matched: Figure
    phases: tuple[JudgedPhase, ...] = ()
    causes: tuple[Cause, ...] = ()
