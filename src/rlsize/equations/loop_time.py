"""How a loop spends its time: who waits, how fast samples come out of a token rate, how long a run takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def completions_from_tokens(supply: Real, response_tokens: Real) -> Real:
    """
    Samples that a fleet finishes per second, from the tokens that it generates.

    c = R / L

    Args:
        supply: Response tokens that the fleet generates per second, R. [token/s]
        response_tokens: Mean response length, L. [token/sample]

    Returns:
        c. [sample/s]

    Assumes the fleet is full all the time; the thinning out at the end of a synchronous batch is not part of it.
    Source: own definition.

    >>> completions_from_tokens(supply=32000.0, response_tokens=1600.0)
    20.0
    """
    return supply / response_tokens


def generated_samples(samples_per_step: Real, tokens_generated_per_trained_token: Real) -> Real:
    """
    Samples that the fleet generates for one optimizer step, those that are thrown away included.

    S_g = S w

    Args:
        samples_per_step: Samples that a step trains on, S. [sample/step]
        tokens_generated_per_trained_token: Tokens generated for each trained one, w; 1 with nothing thrown away. [1]

    Returns:
        S_g. [sample/step]

    Assumes samples that are thrown away are as long as those that are kept.
    Source: Runbook: rollout fleet sizing and rebalancing, standing alerts (tokens generated per trained token).

    >>> generated_samples(samples_per_step=256.0, tokens_generated_per_trained_token=1.5)
    384.0
    """
    return samples_per_step * tokens_generated_per_trained_token


def waiting_fraction(busy_seconds: Real, iteration_seconds: Real) -> Real:
    """
    Share of an iteration during which a pool of GPUs does no work.

    x = 1 - t_b / t

    Args:
        busy_seconds: Time that the pool works per optimizer step, t_b. [s]
        iteration_seconds: Wall clock of one optimizer step, t. [s]

    Returns:
        x. [1]

    Assumes the pool is busy as a whole or not at all; instances that finish early while others still work are not seen.
    Source: Designing an RL post-training system, section 4 (the other half waits).

    >>> waiting_fraction(busy_seconds=12.0, iteration_seconds=16.0)
    0.25
    """
    return 1.0 - busy_seconds / iteration_seconds


def run_time(step_seconds: Real, steps: Real) -> Real:
    """
    Wall clock of a whole run.

    t_R = t n

    Args:
        step_seconds: Wall clock of one optimizer step, all in, t. [s/step]
        steps: Optimizer steps of the run, n. [step]

    Returns:
        t_R. [s]

    Assumes every step takes the same time: no restarts, no evaluation, no growth of the response length over the run.
    Source: own definition.

    >>> run_time(step_seconds=24.0, steps=2000)
    48000.0
    """
    return step_seconds * steps
