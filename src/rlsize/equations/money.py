"""Money and goodput: what a step, a sample, a token and a run cost, and what the GPUs of both pools achieve for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.units import SECONDS_PER_HOUR

if TYPE_CHECKING:
    from rlsize.equations._ops import Real

_MILLION = 1e6


def gpu_hours(gpus: Real, seconds: Real) -> Real:
    """
    GPU time that an allocation takes up, busy or not.

    h = N t / 3600

    Args:
        gpus: GPUs allocated, N. [gpu]
        seconds: Wall clock, t. [s]

    Returns:
        h. [gpu*hour]

    Assumes GPUs are paid for while they wait.
    Source: definition.

    >>> gpu_hours(gpus=64, seconds=1800.0)
    32.0
    """
    return gpus * seconds / SECONDS_PER_HOUR


def blended_gpu_hour(on_demand_gpu_hour: Real, preemptible_gpu_hour: Real, preemptible_fraction: Real) -> Real:
    """
    Mean price of a pool that is partly preemptible.

    c = (1 - x) c_o + x c_p

    Args:
        on_demand_gpu_hour: Price that is not preempted, c_o. [usd/gpu/hour]
        preemptible_gpu_hour: Price of a preemptible GPU, c_p. [usd/gpu/hour]
        preemptible_fraction: Share of the pool that is preemptible, x. [1]

    Returns:
        c. [usd/gpu/hour]

    Assumes both kinds do the same work; work lost to preemption is in effective_gpu_hour.
    Source: Runbook: rollout fleet sizing and rebalancing, procedure step 5 (rollouts on the preemptible tier); own sum.

    >>> blended_gpu_hour(on_demand_gpu_hour=3.0, preemptible_gpu_hour=1.0, preemptible_fraction=0.75)
    1.5
    """
    return (1.0 - preemptible_fraction) * on_demand_gpu_hour + preemptible_fraction * preemptible_gpu_hour


def effective_gpu_hour(gpu_hour: Real, lost_fraction: Real) -> Real:
    """
    Price of a GPU-hour of useful work where preemption throws some of it away.

    c_e = c / (1 - x)

    Args:
        gpu_hour: Price paid, c. [usd/gpu/hour]
        lost_fraction: Share of the time that is lost: work thrown away, start-up, reload, x. [1]

    Returns:
        c_e. [usd/gpu/hour]

    Assumes lost time is paid for like any other.
    Source: own derivation.

    >>> effective_gpu_hour(gpu_hour=1.5, lost_fraction=0.25)
    2.0
    """
    return gpu_hour / (1.0 - lost_fraction)


def cost_per_step(
    rollout_gpus: Real, rollout_gpu_hour: Real, trainer_gpus: Real, trainer_gpu_hour: Real, step_seconds: Real
) -> Real:
    """
    Cost of one optimizer step: both pools, for its whole wall clock.

    C = (N_r c_r + N_t c_t) t / 3600

    Args:
        rollout_gpus: GPUs of the rollout fleet, N_r. [gpu]
        rollout_gpu_hour: Price of one of them, c_r. [usd/gpu/hour]
        trainer_gpus: GPUs of the trainer, N_t. [gpu]
        trainer_gpu_hour: Price of one of them, c_t. [usd/gpu/hour]
        step_seconds: Wall clock of one optimizer step, all in, t. [s/step]

    Returns:
        C. [usd/step]

    Assumes idle GPUs are paid for; CPU nodes, storage and network are not counted.
    Source: Runbook: rollout fleet sizing and rebalancing, trigger and verification (cost per optimizer step).

    >>> cost_per_step(rollout_gpus=26, rollout_gpu_hour=2.0, trainer_gpus=32, trainer_gpu_hour=3.0, step_seconds=20.0)
    0.8222222222222222
    """
    return (rollout_gpus * rollout_gpu_hour + trainer_gpus * trainer_gpu_hour) * step_seconds / SECONDS_PER_HOUR


def idle_cost_per_step(gpus: Real, gpu_hour: Real, idle_fraction: Real, step_seconds: Real) -> Real:
    """
    What one pool costs per optimizer step while it waits for the other.

    C_i = N c x t / 3600

    Args:
        gpus: GPUs of the pool, N. [gpu]
        gpu_hour: Price of one of them, c. [usd/gpu/hour]
        idle_fraction: Share of the step during which they wait, x. [1]
        step_seconds: Wall clock of one optimizer step, all in, t. [s/step]

    Returns:
        C_i. [usd/step]

    Assumes idle GPUs are paid for and nothing else runs on them.
    Source: Runbook: rollout fleet sizing and rebalancing, procedure step 2 (an idle trainer pool is pure burn).

    >>> idle_cost_per_step(gpus=32, gpu_hour=2.5, idle_fraction=0.1875, step_seconds=24.0)
    0.1
    """
    return gpus * gpu_hour * idle_fraction * step_seconds / SECONDS_PER_HOUR


def cost_per_sample(cost_per_step: Real, samples_per_step: Real) -> Real:
    """
    Cost of one trained sample.

    C_s = C / B

    Args:
        cost_per_step: Cost of one optimizer step, C. [usd/step]
        samples_per_step: Samples trained per optimizer step, B. [sample/step]

    Returns:
        C_s. [usd/sample]

    Assumes samples that were generated and thrown away are paid for by those that were trained.
    Source: own definition.

    >>> cost_per_sample(cost_per_step=1.28, samples_per_step=512)
    0.0025
    """
    return cost_per_step / samples_per_step


def cost_per_million_trained_tokens(cost_per_step: Real, tokens_per_step: Real) -> Real:
    """
    Cost of a million trained response tokens.

    C_M = 1e6 C / D

    Args:
        cost_per_step: Cost of one optimizer step, C. [usd/step]
        tokens_per_step: Response tokens trained per optimizer step, D. [token/step]

    Returns:
        C_M. [usd/Mtoken]

    Assumes prompt tokens and tokens thrown away are paid for by the response tokens that were trained.
    Source: own definition.

    >>> cost_per_million_trained_tokens(cost_per_step=1.5, tokens_per_step=750e3)
    2.0
    """
    return _MILLION * cost_per_step / tokens_per_step


def cost_per_run(cost_per_step: Real, steps: Real) -> Real:
    """
    Cost of a whole run.

    C_R = C n

    Args:
        cost_per_step: Cost of one optimizer step, C. [usd/step]
        steps: Optimizer steps of the run, n. [step]

    Returns:
        C_R. [usd]

    Assumes every step costs the same: no restarts, no growth of the response length over the run.
    Source: own definition.

    >>> cost_per_run(cost_per_step=1.5, steps=2000)
    3000.0
    """
    return cost_per_step * steps


def goodput(tokens_per_step: Real, step_seconds: Real, rollout_gpus: Real, trainer_gpus: Real) -> Real:
    """
    Trained response tokens per GPU-second of both pools.

    g = D / (t (N_r + N_t))

    Args:
        tokens_per_step: Response tokens trained per optimizer step, D. [token/step]
        step_seconds: Wall clock of one optimizer step, all in, t. [s/step]
        rollout_gpus: GPUs of the rollout fleet, N_r. [gpu]
        trainer_gpus: GPUs of the trainer, N_t. [gpu]

    Returns:
        g. [token/s/gpu]

    Assumes every trained token is useful; tokens thrown away do not count.
    Source: Runbook: rollout fleet sizing and rebalancing, procedure step 6 (useful trained tokens against every
    GPU-second of both pools).

    >>> goodput(tokens_per_step=786432, step_seconds=24.0, rollout_gpus=32, trainer_gpus=32)
    512.0
    """
    return tokens_per_step / (step_seconds * (rollout_gpus + trainer_gpus))
