"""What a plan is searched for, what may be tried, and the limits that it must keep."""

from __future__ import annotations

from rlsize.facts.fields import Quantity
from rlsize.facts.kinds import COUNT, POSITIVE, SECONDS
from rlsize.quantities.row import Row, Switch, Text, Word

_POOL = Text("POOL", many=True)  # short, or the help of `plan` cuts its longest flag off


def _tried(name: str, meaning: str, flag: str = "") -> Row:
    """What a plan may try of a quantity, as a list by its flag."""
    return Row(f"searched_{name}", Text("LIST"), meaning, flag=flag or f"--{name.replace('_', '-')}")


ROWS = (
    Row(
        "objective",
        Word(("time", "cost", "gpus")),
        "What is made small: time (shortest step), cost (least per step) or gpus (fewest).",
        flag="--",
    ),
    Row("least_steps_per_day", POSITIVE, "Optimizer steps a day that must be reached.", flag="--steps-per-day"),
    Row(
        "finish_by_seconds", SECONDS, "Time in which the run must end: 7 days; it needs the steps.", flag="--finish-by"
    ),
    Row(
        "budget_file",
        Text("FILE"),
        "Limits that a plan must keep; the scenario's own budget when not given.",
        flag="--budget",
    ),
    Row(
        "memory_margin",
        Quantity("1", least=0.0, most=1.0),
        "Share of memory that stays free on both sides.",
        flag="--",
        default=0.05,
        why="usual margin",
    ),
    _tried("modes", "Modes to try: colocated, synchronous, one-step-off, async, hybrid.", "--mode"),
    _tried("rollout_gpus", "The only numbers of rollout GPUs to try, with commas."),
    _tried("trainer_gpus", "The only numbers of trainer GPUs to try, with commas."),
    _tried("transports", "Classes of weight sync to try, or all; the scenario's when not given.", "--transport"),
    _tried("rollout_tensor_parallel", "Degrees to try for an instance, with commas."),
    _tried("rollout_data_parallel", "Attention ranks to try for an instance of a MoE model."),
    _tried("rollout_pipeline_parallel", "Stages to try for an instance."),
    _tried("tensor_parallel", "Degrees to try for the trainer."),
    _tried("pipeline_parallel", "Stages to try for the trainer."),
    _tried("context_parallel", "Context ranks to try for the trainer."),
    _tried("expert_parallel", "Expert ranks to try for the trainer."),
    _tried("recompute", "none, selective, full: what backward may recompute."),
    _tried("micro_batch_tokens", "Tokens of a micro-batch to try, with commas."),
    Row("whole_nodes", Switch(), "Each pool takes whole nodes.", flag="--"),
    Row(
        "rollout_pools",
        _POOL,
        "GPUs that the fleet may be built of, such as l40s:64:0.9; repeatable.",
        flag="--rollout-pool",
    ),
    Row("trainer_pools", _POOL, "GPUs that the trainer may be built of; repeatable.", flag="--trainer-pool"),
    Row("simulated_plans", COUNT, "Rank the best N again with the simulator.", flag="--simulate"),
)
