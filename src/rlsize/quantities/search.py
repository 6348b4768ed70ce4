"""What a plan is searched for, what may be tried, and the limits that it must keep."""

from __future__ import annotations

from rlsize.facts.fields import Quantity
from rlsize.quantities.kinds import COUNT, POSITIVE, SECONDS
from rlsize.quantities.row import Row, Switch, Text, Word

_LIST = Text("LIST")
_POOL = Text("GPU:COUNT:PRICE", many=True)

ROWS = (
    Row(
        "objective",
        Word(("time", "cost", "gpus")),
        "What is made small: time (shortest step), cost (least per step) or gpus (fewest).",
        "",
        "--",
    ),
    Row("least_steps_per_day", POSITIVE, "Optimizer steps a day that must be reached.", "", "--steps-per-day"),
    Row("finish_by_seconds", SECONDS, "Time in which the run must end: 7 days; it needs the steps.", "", "--finish-by"),
    Row(
        "budget_file",
        Text("FILE"),
        "Limits that a plan must keep; the scenario's own budget when not given.",
        "",
        "--budget",
    ),
    Row(
        "memory_margin",
        Quantity("1", least=0.0, most=1.0),
        "Share of memory that stays free on both sides.",
        "",
        "--",
        0.05,
        "usual margin",
    ),
    Row("searched_modes", _LIST, "Modes to try: colocated, synchronous, one-step-off, async, hybrid.", "", "--mode"),
    Row("searched_rollout_gpus", _LIST, "The only numbers of rollout GPUs to try, with commas.", "", "--rollout-gpus"),
    Row("searched_trainer_gpus", _LIST, "The only numbers of trainer GPUs to try, with commas.", "", "--trainer-gpus"),
    Row(
        "searched_transports",
        _LIST,
        "Classes of weight sync to try, or all; the scenario's when not given.",
        "",
        "--transport",
    ),
    Row(
        "searched_rollout_tensor_parallel",
        _LIST,
        "Degrees to try for an instance, with commas.",
        "",
        "--rollout-tensor-parallel",
    ),
    Row(
        "searched_rollout_data_parallel",
        _LIST,
        "Attention ranks to try for an instance of a MoE model.",
        "",
        "--rollout-data-parallel",
    ),
    Row(
        "searched_rollout_pipeline_parallel", _LIST, "Stages to try for an instance.", "", "--rollout-pipeline-parallel"
    ),
    Row("searched_tensor_parallel", _LIST, "Degrees to try for the trainer.", "", "--tensor-parallel"),
    Row("searched_pipeline_parallel", _LIST, "Stages to try for the trainer.", "", "--pipeline-parallel"),
    Row("searched_context_parallel", _LIST, "Context ranks to try for the trainer.", "", "--context-parallel"),
    Row("searched_expert_parallel", _LIST, "Expert ranks to try for the trainer.", "", "--expert-parallel"),
    Row("searched_recompute", _LIST, "none, selective, full: what backward may recompute.", "", "--recompute"),
    Row(
        "searched_micro_batch_tokens", _LIST, "Tokens of a micro-batch to try, with commas.", "", "--micro-batch-tokens"
    ),
    Row("whole_nodes", Switch(), "Each pool takes whole nodes.", "", "--"),
    Row(
        "rollout_pools",
        _POOL,
        "GPUs that the fleet may be built of, such as l40s:64:0.9; repeatable.",
        "",
        "--rollout-pool",
    ),
    Row("trainer_pools", _POOL, "GPUs that the trainer may be built of; repeatable.", "", "--trainer-pool"),
    Row("simulated_plans", COUNT, "Rank the best N again with the simulator.", "", "--simulate"),
)
