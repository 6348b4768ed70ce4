"""Matching the rollout fleet to the trainer: supply, demand, and the split of N GPUs."""

from __future__ import annotations

from rlsize.equations._ops import Real, maximum, minimum, where


def consumption(tokens_per_step: Real, train_seconds: Real) -> Real:
    """
    Response tokens that the trainer consumes per second while it trains.

    C = D / t_train

    Args:
        tokens_per_step: Response tokens trained per optimizer step, D. [token]
        train_seconds: Busy trainer seconds per optimizer step (log-prob passes and update), t_train. [s]

    Returns:
        C. [token/s]

    Assumes the trainer never waits; waiting and weight sync are not part of train_seconds.
    Source: Runbook: rollout fleet sizing and rebalancing, procedure step 2.

    >>> consumption(tokens_per_step=786432, train_seconds=20)
    39321.6
    """
    return tokens_per_step / train_seconds


def tokens_per_step(prompts: Real, group_size: Real, response_tokens: Real) -> Real:
    """
    Response tokens in the batch of one optimizer step.

    D = P G l

    Args:
        prompts: Prompts per optimizer step, P. [prompt]
        group_size: Samples of one prompt, G. [sample/prompt]
        response_tokens: Mean response length, l. [token/sample]

    Returns:
        D. [token]

    Assumes the mean length of what is trained; filtered and dropped samples belong in tokens generated per trained
    token.
    Source: Runbook: rollout fleet sizing and rebalancing, worked example (512 samples of 1536 tokens).

    >>> tokens_per_step(prompts=64, group_size=8, response_tokens=1536)
    786432
    """
    return prompts * group_size * response_tokens


def required_supply(consumption: Real, tokens_generated_per_trained_token: Real) -> Real:
    """
    Response tokens per second that the fleet must generate so that the trainer never waits.

    R = C w

    Args:
        consumption: Response tokens trained per second, C. [token/s]
        tokens_generated_per_trained_token: Generated for each trained one, w; 1 when nothing is thrown away. [1]

    Returns:
        R. [token/s]

    Assumes the waste is spread evenly over time.
    Source: Runbook: rollout fleet sizing and rebalancing, standing alerts (tokens generated per trained token).

    >>> required_supply(consumption=39321.0, tokens_generated_per_trained_token=1.5)
    58981.5
    """
    return consumption * tokens_generated_per_trained_token


def fleet_supply(instances: Real, instance_rate: Real, headroom: Real) -> Real:
    """
    Response tokens per second that a fleet generates.

    S = n r h

    Args:
        instances: Rollout instances, n. [instance]
        instance_rate: Response tokens per second of one instance, r. [token/s/instance]
        headroom: Derating for what r does not yet contain, h; 1 for the nameplate supply. [1]

    Returns:
        S. [token/s]

    Assumes instances are alike and do not slow each other down.
    Source: Runbook: rollout fleet sizing and rebalancing, sizing calculator.

    >>> fleet_supply(instances=13, instance_rate=4000.0, headroom=0.8)
    41600.0
    """
    return instances * instance_rate * headroom


def matched_instances(required_supply: Real, instance_rate: Real, headroom: Real) -> Real:
    """
    Rollout instances whose derated supply equals what the trainer needs, before rounding up.

    n* = R / (r h)

    Args:
        required_supply: Response tokens per second that must be generated, R. [token/s]
        instance_rate: Response tokens per second of one instance, r. [token/s/instance]
        headroom: Derating for what r does not yet contain, h. [1]

    Returns:
        n*. [instance]

    Assumes instances are alike; whole instances are the planner's business.
    Source: Runbook: rollout fleet sizing and rebalancing, sizing calculator.

    >>> matched_instances(required_supply=39321.6, instance_rate=4000.0, headroom=0.8)
    12.288
    """
    return required_supply / (instance_rate * headroom)


def utilisation(required_supply: Real, supply: Real) -> Real:
    """
    Share of the fleet's supply that the trainer uses.

    u = min(1, R / S)

    Args:
        required_supply: Response tokens per second that must be generated, R. [token/s]
        supply: Response tokens per second that the fleet generates, S. [token/s]

    Returns:
        u. [1]

    Assumes steady state with backpressure: what is not asked for is not generated.
    Source: Designing an RL post-training system, section 6.

    >>> utilisation(required_supply=30000.0, supply=60000.0)
    0.5
    """
    return minimum(1.0, required_supply / supply)


def loop_throughput(rollout_rate: Real, trainer_rate: Real) -> Real:
    """
    Tokens per second of the loop: that of its slower side.

    X = min(R, T)

    Args:
        rollout_rate: What the rollout side can supply, R. [token/s]
        trainer_rate: What the trainer side can consume, T. [token/s]

    Returns:
        X. [token/s]

    Assumes the two sides overlap fully and both rates count trained tokens.
    Source: Designing an RL post-training system, section 6.

    >>> loop_throughput(rollout_rate=96000.0, trainer_rate=80000.0)
    80000.0
    """
    return minimum(rollout_rate, trainer_rate)


def idle_fraction(rollout_rate: Real, trainer_rate: Real) -> Real:
    """
    Share of its time that the faster side waits for the slower one.

    f = 1 - min(R, T) / max(R, T)

    Args:
        rollout_rate: What the rollout side can supply, R. [token/s]
        trainer_rate: What the trainer side can consume, T. [token/s]

    Returns:
        f. [1]

    Assumes full overlap, steady state and backpressure.
    Source: Designing an RL post-training system, section 6.

    >>> idle_fraction(rollout_rate=48000.0, trainer_rate=96000.0)
    0.5
    """
    return 1.0 - minimum(rollout_rate, trainer_rate) / maximum(rollout_rate, trainer_rate)


def balanced_rollout_gpus(gpus: Real, rollout_gpu_rate: Real, trainer_gpu_rate: Real) -> Real:
    """
    GPUs on the rollout side at which both sides run equally fast, before rounding to whole instances.

    N_r = N t / (r + t)

    Args:
        gpus: GPUs of both pools, N. [gpu]
        rollout_gpu_rate: Tokens per second that one rollout GPU supplies, r. [token/s/gpu]
        trainer_gpu_rate: Tokens per second that one trainer GPU consumes, t. [token/s/gpu]

    Returns:
        N_r. [gpu]

    Assumes both rates grow linearly with GPUs.
    Source: Designing an RL post-training system, section 6.

    >>> balanced_rollout_gpus(gpus=64, rollout_gpu_rate=2000.0, trainer_gpu_rate=6000.0)
    48.0
    """
    return gpus * trainer_gpu_rate / (rollout_gpu_rate + trainer_gpu_rate)


def pool_rate(gpus: Real, gpu_rate: Real) -> Real:
    """
    Tokens per second of a pool of GPUs.

    R = N_p r

    Args:
        gpus: GPUs of the pool, N_p. [gpu]
        gpu_rate: Tokens per second of one GPU, r. [token/s/gpu]

    Returns:
        R. [token/s]

    Assumes the rate grows linearly with GPUs.
    Source: Designing an RL post-training system, section 6.

    >>> pool_rate(gpus=48, gpu_rate=2000.0)
    96000.0
    """
    return gpus * gpu_rate


def colocated_throughput(gpus: Real, rollout_gpu_rate: Real, trainer_gpu_rate: Real) -> Real:
    """
    Tokens per second when all GPUs generate, then all of them train, with no cost of changing over.

    X = N / (1/r + 1/t)

    Args:
        gpus: GPUs that both phases share, N. [gpu]
        rollout_gpu_rate: Tokens per second that one GPU generates, r. [token/s/gpu]
        trainer_gpu_rate: Tokens per second that one GPU trains, t. [token/s/gpu]

    Returns:
        X. [token/s]

    Assumes both rates hold on all GPUs; equals the balanced disaggregated split, so swap cost and rounding decide.
    Source: Designing an RL post-training system, sections 2 and 6.

    >>> colocated_throughput(gpus=64, rollout_gpu_rate=2000.0, trainer_gpu_rate=6000.0)
    96000.0
    """
    return gpus / (1.0 / rollout_gpu_rate + 1.0 / trainer_gpu_rate)


def speedup_from_scaling(
    rollout_seconds: Real, train_seconds: Real, rollout_factor: Real, trainer_factor: Real
) -> Real:
    """
    How much faster a synchronous loop gets when one pool or both are scaled.

    s = (t_r + t_t) / (t_r / a_r + t_t / a_t)

    Args:
        rollout_seconds: Rollout time per step, t_r. [s]
        train_seconds: Train time per step, t_t. [s]
        rollout_factor: How many times as many rollout GPUs, a_r. [1]
        trainer_factor: How many times as many trainer GPUs, a_t. [1]

    Returns:
        s. [1]

    Assumes each phase speeds up in proportion to its GPUs and the phases do not overlap (Amdahl's law).
    Source: Designing an RL post-training system, section 4 (why doubling learners barely moves a rollout-bound loop).

    >>> round(speedup_from_scaling(rollout_seconds=80.0, train_seconds=20.0, rollout_factor=1.0, trainer_factor=2.0), 4)
    1.1111
    """
    return (rollout_seconds + train_seconds) / (rollout_seconds / rollout_factor + train_seconds / trainer_factor)


def speedup_from_scaling_overlapped(
    rollout_rate: Real, trainer_rate: Real, rollout_factor: Real, trainer_factor: Real
) -> Real:
    """
    How much faster an overlapped loop gets when one pool or both are scaled.

    s = min(a_r R, a_t T) / min(R, T)

    Args:
        rollout_rate: What the rollout side can supply, R. [token/s]
        trainer_rate: What the trainer side can consume, T. [token/s]
        rollout_factor: How many times as many rollout GPUs, a_r. [1]
        trainer_factor: How many times as many trainer GPUs, a_t. [1]

    Returns:
        s. [1]

    Assumes full overlap; scaling the side that waits changes nothing.
    Source: Designing an RL post-training system, sections 4 and 6.

    >>> speedup_from_scaling_overlapped(rollout_rate=10.0, trainer_rate=40.0, rollout_factor=1.0, trainer_factor=2.0)
    1.0
    """
    scaled = minimum(rollout_factor * rollout_rate, trainer_factor * trainer_rate)
    return scaled / minimum(rollout_rate, trainer_rate)


def implied_mfu(tokens_per_second: Real, flops_per_token: Real, gpus: Real, peak_flops: Real) -> Real:
    """
    Share of the GPUs' peak that a claimed token rate implies.

    mfu = r F / (N P)

    Args:
        tokens_per_second: Claimed rate, r. [token/s]
        flops_per_token: Work per token, F: 6 per active parameter to train, 2 to generate. [FLOP/token]
        gpus: GPUs that reach the rate, N. [gpu]
        peak_flops: Dense peak of one GPU, P. [FLOP/s/gpu]

    Returns:
        mfu. [1]

    Assumes no attention FLOPs, recomputation or log-prob passes, so the true share is higher; over 1 is impossible.
    Source: Kaplan et al., Scaling laws for neural language models, section 2.1 (6N); scaling-book, transformers.

    >>> round(implied_mfu(tokens_per_second=50000.0, flops_per_token=6 * 8e9, gpus=8, peak_flops=989e12), 4)
    0.3033
    """
    return tokens_per_second * flops_per_token / (gpus * peak_flops)


def training_flops_per_token(active_params: Real) -> Real:
    """
    Floating-point work to train on one token: forward and backward.

    F = 6 N_act

    Args:
        active_params: Parameters that work on each token, N_act. [param]

    Returns:
        F. [FLOP/token]

    Assumes 2 FLOP a parameter forward and 4 backward; attention over the context comes on top.
    Source: Kaplan et al., Scaling laws for neural language models, section 2.1.

    >>> training_flops_per_token(active_params=8e9)
    48000000000.0
    """
    return 6.0 * active_params


def generation_flops_per_token(active_params: Real) -> Real:
    """
    Floating-point work to generate one token: forward only.

    F = 2 N_act

    Args:
        active_params: Parameters that work on each token, N_act. [param]

    Returns:
        F. [FLOP/token]

    Assumes 2 FLOP a parameter; attention over the context comes on top.
    Source: Kaplan et al., Scaling laws for neural language models, section 2.1.

    >>> generation_flops_per_token(active_params=8e9)
    16000000000.0
    """
    return 2.0 * active_params


def train_time(tokens_per_step: Real, consumption: Real) -> Real:
    """
    Busy trainer seconds per optimizer step, from the rate at which it consumes.

    t_train = D / C

    Args:
        tokens_per_step: Response tokens trained per optimizer step, D. [token]
        consumption: Response tokens that the trainer consumes per second, C. [token/s]

    Returns:
        t_train. [s]

    Assumes the trainer never waits.
    Source: Runbook: rollout fleet sizing and rebalancing, trainer_idle_fraction (step_s).

    >>> train_time(tokens_per_step=786432, consumption=39321.6)
    20.0
    """
    return tokens_per_step / consumption


def fleet_gpus(instances: Real, gpus_per_instance: Real) -> Real:
    """
    GPUs of a rollout fleet.

    N_r = n g

    Args:
        instances: Rollout instances, n. [instance]
        gpus_per_instance: GPUs of one instance (tensor x pipeline parallel), g. [gpu/instance]

    Returns:
        N_r. [gpu]

    Assumes instances are alike; a fraction of a GPU per instance is allowed.
    Source: Definition: a rollout instance is one engine replica.

    >>> fleet_gpus(instances=13, gpus_per_instance=2)
    26
    """
    return instances * gpus_per_instance


def remaining_gpus(gpus: Real, rollout_gpus: Real) -> Real:
    """
    GPUs that are left for the trainer.

    N_t = N - N_r

    Args:
        gpus: GPUs of both pools, N. [gpu]
        rollout_gpus: GPUs of the rollout fleet, N_r. [gpu]

    Returns:
        N_t. [gpu]

    Assumes every GPU belongs to one of the two pools.
    Source: Designing an RL post-training system, section 6.

    >>> remaining_gpus(gpus=64, rollout_gpus=48)
    16
    """
    return gpus - rollout_gpus


def pool_gpus(gpus: Real, fraction: Real) -> Real:
    """
    GPUs of one pool, from its share of all of them, before rounding to whole instances.

    N_p = N x

    Args:
        gpus: GPUs of both pools, N. [gpu]
        fraction: Share of the pool, x. [1]

    Returns:
        N_p. [gpu]

    Assumes every GPU belongs to one of the two pools.
    Source: Designing an RL post-training system, section 6 (actors = GPUs x share).

    >>> pool_gpus(gpus=64, fraction=0.75)
    48.0
    """
    return gpus * fraction


def trained_token_supply(gpus: Real, gpu_rate: Real, headroom: Real, tokens_generated_per_trained_token: Real) -> Real:
    """
    Trained tokens per second that a pool of rollout GPUs can feed.

    R = N_r r h / w

    Args:
        gpus: GPUs of the rollout fleet, N_r. [gpu]
        gpu_rate: Response tokens per second of one rollout GPU, r. [token/s/gpu]
        headroom: Derating for what r does not yet contain, h. [1]
        tokens_generated_per_trained_token: Generated for each trained one, w. [1]

    Returns:
        R. [token/s]

    Assumes the rate grows linearly with GPUs and the waste is spread evenly.
    Source: Designing an RL post-training system, section 6; runbook for headroom and waste.

    >>> trained_token_supply(gpus=48, gpu_rate=2000.0, headroom=1.0, tokens_generated_per_trained_token=1.5)
    64000.0
    """
    return gpus * gpu_rate * headroom / tokens_generated_per_trained_token


def waiting_gpus(rollout_gpus: Real, trainer_gpus: Real, rollout_rate: Real, trainer_rate: Real) -> Real:
    """
    The pool that waits for the other one.

    N_w = N_t if R_r < R_t else N_r

    Args:
        rollout_gpus: GPUs of the rollout fleet, N_r. [gpu]
        trainer_gpus: GPUs of the trainer, N_t. [gpu]
        rollout_rate: Trained tokens per second that the fleet feeds, R_r. [token/s]
        trainer_rate: Trained tokens per second that the trainer takes, R_t. [token/s]

    Returns:
        N_w. [gpu]

    Assumes the slower side never waits.
    Source: Designing an RL post-training system, section 6.

    >>> waiting_gpus(rollout_gpus=96, trainer_gpus=32, rollout_rate=60000.0, trainer_rate=80000.0)
    32
    """
    return where(rollout_rate < trainer_rate, trainer_gpus, rollout_gpus)


def idle_gpus(gpus: Real, idle_fraction: Real) -> Real:
    """
    Idle time of a pool, as a number of GPUs that do nothing.

    N_idle = N_p f

    Args:
        gpus: GPUs of the side that waits, N_p. [gpu]
        idle_fraction: Share of its time that it waits, f. [1]

    Returns:
        N_idle. [gpu]

    Assumes the whole pool waits together.
    Source: Designing an RL post-training system, section 6.

    >>> idle_gpus(gpus=32, idle_fraction=0.25)
    8.0
    """
    return gpus * idle_fraction


def throughput_with_swap(tokens_per_step: Real, throughput: Real, swap_seconds: Real) -> Real:
    """
    Tokens per second of a colocated loop, with the cost of changing over between its phases.

    X' = D / (D / X + t_swap)

    Args:
        tokens_per_step: Response tokens per optimizer step, D. [token]
        throughput: Tokens per second before the swap, X. [token/s]
        swap_seconds: Time per step that changing over takes, both ways together, t_swap. [s]

    Returns:
        X'. [token/s]

    Assumes nothing else runs during the swap: KV cache and optimizer state move, weights are reloaded.
    Source: Designing an RL post-training system, section 2 (context switch, twice per step).

    >>> throughput_with_swap(tokens_per_step=960000.0, throughput=96000.0, swap_seconds=2.0)
    80000.0
    """
    return tokens_per_step / (tokens_per_step / throughput + swap_seconds)


def samples_per_step(prompts: Real, group_size: Real) -> Real:
    """
    Samples in the batch of one optimizer step.

    B = P G

    Args:
        prompts: Prompts per optimizer step, P. [prompt]
        group_size: Samples of one prompt, G. [sample/prompt]

    Returns:
        B. [sample]

    Assumes every group is complete when it is trained.
    Source: Definition: a group is G samples of one prompt.

    >>> samples_per_step(prompts=32, group_size=16)
    512
    """
    return prompts * group_size


def rate_per_gpu(rate: Real, gpus: Real) -> Real:
    """
    Tokens per second of one GPU of a pool or of an instance.

    r = R / N

    Args:
        rate: Tokens per second of all its GPUs, R. [token/s]
        gpus: Its GPUs, N. [gpu]

    Returns:
        r. [token/s/gpu]

    Assumes the rate grows linearly with GPUs, so that it also holds for another number of them.
    Source: Designing an RL post-training system, section 6.

    >>> rate_per_gpu(rate=39321.6, gpus=16)
    2457.6
    """
    return rate / gpus


def instance_gpus(tensor_parallel: Real, pipeline_parallel: Real, data_parallel: Real) -> Real:
    """
    GPUs of one rollout instance.

    g = t p d

    Args:
        tensor_parallel: GPUs that share each layer, t. [1]
        pipeline_parallel: Pipeline stages, p. [1]
        data_parallel: Ranks of attention that one engine has, d. [1]

    Returns:
        g. [1]

    Assumes one engine replica; data-parallel ranks that serve by themselves are instances of their own.
    Source: Definition: a rollout instance is one engine replica of t x p x d GPUs.

    >>> instance_gpus(tensor_parallel=4, pipeline_parallel=2, data_parallel=1)
    8
    """
    return tensor_parallel * pipeline_parallel * data_parallel


def instances_of(gpus: Real, gpus_per_instance: Real) -> Real:
    """
    Rollout instances that a pool of GPUs holds, before rounding down.

    n = N_r / g

    Args:
        gpus: GPUs of the rollout fleet, N_r. [gpu]
        gpus_per_instance: GPUs of one instance (tensor x pipeline parallel), g. [gpu/instance]

    Returns:
        n. [instance]

    Assumes instances are alike; what is left over runs none.
    Source: Definition: a rollout instance is one engine replica.

    >>> instances_of(gpus=32, gpus_per_instance=2)
    16.0
    """
    return gpus / gpus_per_instance
