"""One optimizer step of an RL loop: its phases put together, and what does not shrink with GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations._ops import maximum

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def step_overhead(fixed_seconds: Real, sample_seconds: Real, samples: Real) -> Real:
    """
    Time of a step beside its phases: rewards, data handling, logging.

    t = t_0 + t_1 S

    Args:
        fixed_seconds: Of any step, t_0. [s]
        sample_seconds: Of each sample: detokenising, rewards, padding, moving, t_1. [s]
        samples: Samples of the step, S. [1]

    Returns:
        t. [s]

    Assumes one process that prepares the samples, however many GPUs there are.
    Source: what published step times leave beside their phases; constants are fitted.

    >>> step_overhead(fixed_seconds=10, sample_seconds=0.005, samples=1000)
    15.0
    """
    return fixed_seconds + sample_seconds * samples


def shared_out_sync(seconds: Real, gpus: Real, usual_gpus: Real, exponent: Real) -> Real:
    """
    Time of a weight sync in which more GPUs handle their own shares of a larger model.

    t = s / max(1, g / g_0)^x

    Args:
        seconds: With the usual number of GPUs, s. [s]
        gpus: GPUs of the trainer, g. [1]
        usual_gpus: GPUs that the rate of handling was measured with, g_0. [1]
        exponent: How much of the parallelism helps, x: 1 all, 0 nothing. [1]

    Returns:
        t. [s]

    Assumes stages and expert groups of the trainer convert and send at the same time.
    Source: published loops: a model of 8B on 8 GPUs syncs at 3 GB/s, one of 70B on 64 at 10 GB/s.

    >>> round(shared_out_sync(seconds=100.0, gpus=64, usual_gpus=8, exponent=0.5), 3)
    35.355
    """
    return seconds / maximum(1.0, gpus / usual_gpus) ** exponent


def own_phase(
    model_seconds: Real,
    factor: Real,
    drift: Real,
    tokens: Real,
    measured_tokens: Real,
    own_seconds: Real,
    again: Real,
) -> Real:
    """
    Time of a phase of a run that was measured, part of which the model does not know.

    t = r (f m (T / T_0)^(d - 1) + w)

    Args:
        model_seconds: As it is predicted, m. [s]
        factor: What is left of that where the run was quicker than believed, f. [1]
        drift: How the run grows with its tokens over what is predicted, d: 1 alike. [1]
        tokens: Tokens of a step, T. [token]
        measured_tokens: Tokens of a step of the run, T_0. [token]
        own_seconds: What the run has on top of it, w. [s]
        again: The same phase in another run alike over what it took in this one, r. [1]

    Returns:
        t. [s]

    Assumes that how a run grows otherwise than predicted is a power of its tokens.
    Source: what is left of measured phases beside their prediction.

    >>> own_phase(20.0, factor=1.0, drift=1.0, tokens=4e6, measured_tokens=1e6, own_seconds=10.0, again=1.0)
    30.0
    """
    return again * (factor * model_seconds * (tokens / measured_tokens) ** (drift - 1) + own_seconds)


def own_time(
    own_seconds: Real, tokens: Real, measured_tokens: Real, token_exponent: Real, quickened: Real, speed_exponent: Real
) -> Real:
    """
    Time that a run has beside what the model knows, once the loop is changed.

    t = w (T / T_0)^g q^h

    Args:
        own_seconds: As it was measured, w. [s]
        tokens: Tokens of a step, T. [token]
        measured_tokens: Tokens of a step of the run, T_0. [token]
        token_exponent: How much of it grows with the tokens, g: 0 nothing, 1 all. [1]
        quickened: What a change makes of the predicted time of a token in that phase, q: 0.5 half of it. [1]
        speed_exponent: How much of it is work that goes with that, h: 0 nothing, 1 all. [1]

    Returns:
        t. [s]

    Assumes waits have to do with samples, and passes with the GPUs that make them too.
    Source: what is left of measured phases beside their prediction.

    >>> own_time(10.0, tokens=4e6, measured_tokens=1e6, token_exponent=0.5, quickened=0.25, speed_exponent=0.5)
    10.0
    """
    return own_seconds * (tokens / measured_tokens) ** token_exponent * quickened**speed_exponent


def trainer_phase(update_seconds: Real, forward_seconds: Real) -> Real:
    """
    Busy trainer seconds of a step.

    t = t_u + t_f

    Args:
        update_seconds: Update over all samples, t_u. [s]
        forward_seconds: Log-probability and other forward passes, t_f. [s]

    Returns:
        t. [s]

    Assumes they follow each other on the same GPUs.
    Source: sum.

    >>> trainer_phase(update_seconds=20, forward_seconds=8)
    28
    """
    return update_seconds + forward_seconds


def uneven_overlap(rollout_seconds: Real, train_seconds: Real, variation: Real) -> Real:
    """
    Time of two phases that run at once and wait for each other, each varying from step to step.

    t = (t_r^(1/v) + t_t^(1/v))^v

    Args:
        rollout_seconds: Mean time to generate a batch, t_r. [s]
        train_seconds: Mean busy trainer time, t_t. [s]
        variation: How strongly they vary, v: 0.2 makes equal phases 15 % longer than one of them. [1]

    Returns:
        t. [s]

    Assumes a short queue between the two: the longer phase counts, and where both are alike each waits for the other
    now and then.
    Source: mean of the maximum of two Gumbel-like times; the strength is fitted.

    >>> round(uneven_overlap(rollout_seconds=30.0, train_seconds=30.0, variation=0.2), 2)
    34.46
    """
    power = 1 / variation
    longer = rollout_seconds + train_seconds  # keeps powers within range
    return longer * ((rollout_seconds / longer) ** power + (train_seconds / longer) ** power) ** variation


def whole_step(phases_seconds: Real, sync_seconds: Real, overhead_seconds: Real) -> Real:
    """
    Wall clock of an optimizer step.

    T = t_p + t_s + t_o

    Args:
        phases_seconds: Generation and training, one after the other or at once, t_p. [s]
        sync_seconds: Weight sync that nothing hides, t_s. [s]
        overhead_seconds: What neither belongs to, t_o. [s]

    Returns:
        T. [s]

    Assumes both sides wait for the sync.
    Source: sum.

    >>> whole_step(phases_seconds=80, sync_seconds=5, overhead_seconds=15)
    100
    """
    return phases_seconds + sync_seconds + overhead_seconds


def exposed_part(seconds: Real, share: Real) -> Real:
    """
    Part of a time that nothing hides.

    t = x s

    Args:
        seconds: The whole, s. [s]
        share: Share that is not hidden, x. [1]

    Returns:
        t. [s]

    Assumes the share does not depend on the length.
    Source: definition.

    >>> exposed_part(seconds=10, share=0.5)
    5.0
    """
    return seconds * share


def step_tokens_per_gpu(samples: Real, sample_tokens: Real, step_seconds: Real, gpus: Real) -> Real:
    """
    Tokens of a step per second and GPU of the whole loop.

    r = S l / (T g)

    Args:
        samples: Samples of the step, S. [1]
        sample_tokens: Mean tokens of a sample, prompt and response, l. [token]
        step_seconds: Wall clock of the step, T. [s]
        gpus: GPUs of both pools, g. [1]

    Returns:
        r. [token/s]

    Assumes nothing.
    Source: definition, as NeMo-RL reports it.

    >>> step_tokens_per_gpu(samples=2048, sample_tokens=1000, step_seconds=100, gpus=16)
    1280.0
    """
    return samples * sample_tokens / (step_seconds * gpus)


def allowed_in_flight(samples_per_step: Real, max_staleness: Real) -> Real:
    """
    Samples that an asynchronous loop lets be in flight.

    C = (k + 1) B

    Args:
        samples_per_step: Samples of a step, B. [1]
        max_staleness: Staleness cap, k. [1]

    Returns:
        C. [1]

    Assumes the queue is empty; what waits in it takes from this.
    Source: admission cap of AReaL (Fu et al., equation 3).

    >>> allowed_in_flight(samples_per_step=512, max_staleness=1)
    1024
    """
    return (max_staleness + 1) * samples_per_step


def gpus_of_both(rollout_gpus: Real, trainer_gpus: Real) -> Real:
    """
    GPUs of a loop with two pools.

    g = g_r + g_t

    Args:
        rollout_gpus: GPUs of the rollout fleet, g_r. [gpu]
        trainer_gpus: GPUs of the trainer, g_t. [gpu]

    Returns:
        g. [gpu]

    Assumes the pools share none.
    Source: sum.

    >>> gpus_of_both(rollout_gpus=24, trainer_gpus=8)
    32
    """
    return rollout_gpus + trainer_gpus


def times_longer(step_seconds: Real, least_seconds: Real) -> Real:
    """
    How many times longer a step takes than another.

    x = T / T_0

    Args:
        step_seconds: The one, T. [s]
        least_seconds: The other, T_0. [s]

    Returns:
        x. [1]

    Assumes both do the same work.
    Source: definition.

    >>> times_longer(step_seconds=120.0, least_seconds=100.0)
    1.2
    """
    return step_seconds / least_seconds


def phases_within_cycle(phases_seconds: Real, cycle_seconds: Real) -> Real:
    """
    Time of the phases of an asynchronous step whose batch also hangs on how long single samples take.

    t = max(t_p, t_c)

    Args:
        phases_seconds: Of fleet and trainer as wholes, t_p. [s]
        cycle_seconds: Between two syncs, by the samples that the cap on staleness lets be under way, t_c. [s]

    Returns:
        t. [s]

    Assumes that the longer one counts.
    Source: definition.

    >>> phases_within_cycle(phases_seconds=30.0, cycle_seconds=45.0)
    45.0
    """
    return maximum(phases_seconds, cycle_seconds)


def time_until_due(
    step_seconds: Real, train_seconds: Real, sync_seconds: Real, overhead_seconds: Real, max_staleness: Real
) -> Real:
    """
    Time that a sample of an asynchronous loop has until the last batch that may hold it is taken.

    t = max(0, (k + 1) T - t_t - t_s - t_o)

    Args:
        step_seconds: Wall clock of a step, T. [s]
        train_seconds: Busy trainer seconds, which follow the taking of a batch, t_t. [s]
        sync_seconds: Weight sync that nothing hides, t_s. [s]
        overhead_seconds: What belongs to no phase, t_o. [s]
        max_staleness: Staleness cap, k. [1]

    Returns:
        t. [s]

    Assumes the sample starts right after a sync, as it does where the cap on staleness admits samples.
    Source: definition of staleness, counted from the first token.

    >>> time_until_due(step_seconds=60.0, train_seconds=30.0, sync_seconds=5.0, overhead_seconds=5.0, max_staleness=1)
    80.0
    """
    return maximum(0.0, (max_staleness + 1) * step_seconds - train_seconds - sync_seconds - overhead_seconds)
