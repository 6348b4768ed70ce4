"""
The one name that each signal of a running loop has: what rules record of engines, and what a trainer publishes.

Log keys as of verl 0.9, NeMo-RL 0.7, OpenRLHF 0.11, TRL 1.9 (AsyncGRPO), slime 0.3.1 and prime-rl of August 2026.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_COUNTED = (
    "generation_tokens", "prompt_tokens", "prefix_cache_queries", "prefix_cache_hits", "preemptions",
    "finished_requests", "weight_sync_seconds",
)  # fmt: skip
RECORDED: Mapping[str, str] = MappingProxyType(
    {name: f"rlsize:engine_{name}_total" for name in _COUNTED}
    | {name: f"rlsize:engine_{name}" for name in ("requests_running", "requests_waiting")}
)
"""What an engine tells, by the field of its counters: the series that rules make of every spelling of it."""
EXPORTED: Mapping[str, str] = MappingProxyType({name: series.replace(":", "_") for name, series in RECORDED.items()})
"""The same, as `rlsize export` serves it of the engines that it stands beside."""
SIGNALS: Mapping[str, str] = MappingProxyType({
    "idle": "rlsize:trainer_idle_fraction",
    "sync": "rlsize:sync_fraction",
    "queue": "rlsize:queue_samples",
    "age": "rlsize:oldest_sample_age_steps",
    "trained": "rlsize:trained_tokens_per_second",
})  # fmt: skip
"""What rules record of a trainer, whatever it is told by."""

WAIT, STEP, SYNC, BUSY = (f"rlsize_trainer_{name}_seconds_total" for name in ("wait", "step", "sync", "busy"))
TRAINED, GENERATED, DROPPED = (f"rlsize_{name}_response_tokens_total" for name in ("trained", "generated", "dropped"))
QUEUED, AGE, STALENESS = "rlsize_queue_samples", "rlsize_oldest_sample_age_steps", "rlsize_staleness_steps"
LOOP = "rlsize_loop_info"
"""A gauge of 1 whose label `mode` says how rollouts and training lie in time, as `facts/run_log.py` has it."""
STEPS, COST = "rlsize_trainer_steps_total", "rlsize_cost_dollars_total"


class Metric(NamedTuple):
    """
    A series of ours that a trainer, or `rlsize export` beside its log, publishes.

    Args:
        name: Its name; it ends in its unit, and in `_total` where it is a counter.
        meaning: Its type, and what it is.
        keys: The log key of each framework that feeds it.
    """

    name: str
    meaning: str
    keys: Mapping[str, str] = MappingProxyType({})


METRICS: tuple[Metric, ...] = (
    Metric(
        name=WAIT,
        meaning="counter: seconds that the trainer waited for samples, added at the end of each step",
        keys={
            "verl": "timing_s/gen (asynchronous modes; fully_async/trainer/idle_ratio x timing_s/step is the same)",
            "NeMo-RL": "timing/train/exposed_generation",
            "OpenRLHF": "not logged: timing/step_total - timing/ppo_train - timing/broadcast in async mode",
            "TRL": "queue_wait_time_s",
            "slime": "perf/train_wait_time",
            "prime-rl": "time/wait_for_batch (trainer)",
        },
    ),
    Metric(
        name=STEP,
        meaning="counter: seconds of whole steps, added at the same moment",
        keys={
            "verl": "timing_s/step",
            "NeMo-RL": "timing/train/total_step_time",
            "OpenRLHF": "timing/step_total",
            "TRL": "step_time",
            "slime": "perf/step_time",
            "prime-rl": "time/step (trainer)",
        },
    ),
    Metric(
        name=SYNC,
        meaning="counter: seconds of weight syncs that hold the loop up, added at the same moment",
        keys={
            "verl": "timing_s/update_weights, or timing_s/param_sync (may hold a wait for running requests)",
            "NeMo-RL": "timing/train/weight_sync",
            "OpenRLHF": "timing/broadcast",
            "TRL": "weight_sync_time_s",
            "slime": "perf/update_weights_time",
            "prime-rl": "time/broadcast_weights",
        },
    ),
    Metric(
        name=TRAINED,
        meaning="counter: response tokens that were trained, prompts left out",
        keys={
            "verl": "perf/total_num_tokens x response_length/mean / (response_length/mean + prompt_length/mean)",
            "NeMo-RL": "train/mean_gen_tokens_per_sample x samples of a step",
            "OpenRLHF": "response_length x samples of a step",
            "TRL": "completions/mean_length x completions of a step",
            "slime": "rollout/response_len/mean x samples of a step",
            "prime-rl": "progress/output_tokens",
        },
    ),
    Metric(
        name=QUEUED,
        meaning="gauge: finished samples that wait to be trained",
        keys={
            "TRL": "buffer_qsize",
            "others": "not logged: count them where they are put into the queue and taken out",
        },
    ),
    Metric(
        name=AGE,
        meaning="gauge: optimizer steps since the weights that the oldest waiting sample was made with",
        keys={
            "verl": "training/off_policy/trajectory_staleness_worst/max (of what is trained)",
            "NeMo-RL": "train/avg_trajectory_age (a mean, so the oldest is older)",
            "prime-rl": "off_policy/max",
            "others": "not logged: current step less the step of the oldest sample's weights",
        },
    ),
    Metric(name=BUSY, meaning="counter: seconds that the trainer worked, added at the same moment"),
    Metric(name=GENERATED, meaning="counter: response tokens that were generated"),
    Metric(name=DROPPED, meaning="counter: response tokens that were generated and thrown away untrained"),
    Metric(name=STALENESS, meaning="gauge: mean optimizer steps between the weights of a sample and its training"),
    Metric(name=STEPS, meaning="counter: steps of the trainer"),
    Metric(name=COST, meaning="counter: dollars that the GPUs of both sides cost in those steps"),
)
"""What is published, in the order in which it is explained."""
