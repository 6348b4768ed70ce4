"""What a simulation needs beyond a plan: the shape of an engine step, policies, agents, and trouble."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from rlsize.facts.fields import Quantity, Says

LengthShape = Literal["lognormal", "gamma", "constant", "empirical"]
SyncWay = Literal["in-flight", "drain", "abort"]
QueueOrder = Literal["completion", "admission", "freshest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimeChoice:
    """Time of one engine step: fixed + sample x batch + kv_token x live tokens + prompt_token x computed ones."""

    fixed: Annotated[float | None, Quantity("s", "Engine step with nothing in it, t0.", least=0.0)] = None
    sample: Annotated[float | None, Quantity("s", "What each running sample adds to it, t1.", least=0.0)] = None
    kv_token: Annotated[float | None, Quantity("s", "What each live KV token adds to it, t2.", least=0.0)] = None
    prompt_token: Annotated[
        float | None, Quantity("s", "What each prompt token that is computed adds to it, t3.", least=0.0)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChoice:
    """Rules of the loop that `simulate` follows."""

    queue_order: Annotated[
        QueueOrder | None, Says("Which finished groups are trained first: completion, admission or freshest.")
    ] = None
    queue_steps: Annotated[
        float | None, Quantity("count", "Finished batches at which no new sample starts (backpressure).")
    ] = None
    over_stale: Annotated[
        Literal["keep", "drop"] | None, Says("What becomes of samples above the staleness cap: keep or drop.")
    ] = None
    oversampling: Annotated[
        float | None, Quantity("1", "Groups started for each that a batch needs.", least=1.0, most=100.0)
    ] = None
    unfinished: Annotated[
        Literal["drop", "keep"] | None,
        Says("What becomes of groups that over-sampling leaves unfinished; keep makes partial rollouts."),
    ] = None
    kept_fraction: Annotated[
        float | None, Quantity("1", "Share of groups that dynamic sampling keeps.", least=0.01, most=1.0)
    ] = None
    micro_batches: Annotated[
        int | None, Quantity("count", "Parts of a batch that are trained as soon as each is there.", whole=True)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentChoice:
    """What samples wait for outside the GPUs."""

    turns: Annotated[int | None, Quantity("count", "Turns of a sample, with a tool call between two.", whole=True)] = (
        None
    )
    tool_seconds: Annotated[float | None, Quantity("s", "Mean time of a tool call.", least=0.0)] = None
    tool_cv: Annotated[
        float | None, Quantity("1", "Its coefficient of variation; lognormal.", least=0.0, most=20.0)
    ] = None
    tool_tokens: Annotated[
        int | None, Quantity("token", "Tokens that a tool's answer adds to the context.", least=0.0, whole=True)
    ] = None
    verify_seconds: Annotated[float | None, Quantity("s", "Mean time to score one sample.", least=0.0)] = None
    verify_cv: Annotated[
        float | None, Quantity("1", "Its coefficient of variation; lognormal.", least=0.0, most=20.0)
    ] = None
    verify_workers: Annotated[
        int | None, Quantity("count", "Samples that are scored at the same time; no limit when not given.", whole=True)
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TroubleChoice:
    """What goes wrong during a run, and GPUs that are lent."""

    straggler_fraction: Annotated[
        float | None, Quantity("1", "Share of instances that are slow.", least=0.0, most=1.0)
    ] = None
    straggler_slowdown: Annotated[
        float | None, Quantity("1", "How many times as long their steps take.", least=1.0, most=1000.0)
    ] = None
    losses_per_hour: Annotated[
        float | None, Quantity("count", "How often an instance is lost, per hour that it is up.", least=0.0)
    ] = None
    notice_seconds: Annotated[
        float | None, Quantity("s", "Time between the notice of a loss and the loss.", least=0.0)
    ] = None
    restart_seconds: Annotated[float | None, Quantity("s", "Until a lost instance is back.", least=0.0)] = None
    failures_per_hour: Annotated[
        float | None, Quantity("count", "How often the trainer fails, per hour of its work.", least=0.0)
    ] = None
    trainer_restart_seconds: Annotated[
        float | None, Quantity("s", "Until the trainer is back after a failure.", least=0.0)
    ] = None
    checkpoint_every: Annotated[
        int | None, Quantity("count", "Optimizer steps from one checkpoint to the next.", whole=True)
    ] = None
    lent_instances: Annotated[
        int | None,
        Quantity("count", "Instances that the trainer's GPUs make while it waits for samples.", least=0.0, whole=True),
    ] = None
    lend_seconds: Annotated[
        float | None, Quantity("s", "Time in which lent GPUs change over, each way.", least=0.0)
    ] = None
