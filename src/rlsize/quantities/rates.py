"""Rates that were measured: they replace what would be predicted."""

from __future__ import annotations

from rlsize.facts.fields import Quantity
from rlsize.facts.kinds import COUNT, SECONDS_SPREAD, SHARE, TOKEN_RATE_SPREAD
from rlsize.quantities.row import Row, Switch

ROWS = (
    Row(
        "instance_tokens_per_second",
        Quantity("token/s", spread=True, or_file=True),
        "Response tokens per second of one instance: a number, or a rates file.",
        "rates.",
        "--per-instance",
    ),
    Row(
        "consumption_tokens_per_second",
        TOKEN_RATE_SPREAD,
        "Response tokens that the trainer consumes per second.",
        "rates.",
        "--consume",
    ),
    Row(
        "train_seconds",
        SECONDS_SPREAD,
        "Busy trainer seconds per optimizer step, without waiting and sync.",
        "rates.",
        "--",
    ),
    Row("step_seconds", SECONDS_SPREAD, "Wall clock of an optimizer step: training, waiting and sync.", flag="--"),
    Row("generation_seconds", SECONDS_SPREAD, "Time to generate the samples of an optimizer step.", flag="--"),
    Row(
        "rollout_gpu_tokens_per_second",
        TOKEN_RATE_SPREAD,
        "Response tokens per second of one rollout GPU.",
        "rates.",
        "--rollout-tps|--rollout-tokens-per-second",
    ),
    Row(
        "trainer_gpu_tokens_per_second",
        TOKEN_RATE_SPREAD,
        "Response tokens per second of one trainer GPU.",
        "rates.",
        "--trainer-tps|--trainer-tokens-per-second|--learn-tps",
    ),
    Row("rollout_seconds", SECONDS_SPREAD, "Time to generate the samples of a step.", flag="--"),
    Row(
        "trainer_idle_fraction",
        Quantity("1", least=0.0, most=0.9999),
        "Share of the step that trainer GPUs wait, 0 to 1.",
        flag="--trainer-idle",
    ),
    Row("rollout_idle_fraction", SHARE, "Share of the step that rollout GPUs wait, 0 to 1.", flag="--rollout-idle"),
    Row("sync_seconds", Quantity("s", least=0.0, spread=True), "Weight-sync pause per sync.", "rates.", "--"),
    Row(
        "overhead_seconds",
        Quantity("s", least=0.0, spread=True),
        "Time of a step that belongs to no phase, in which neither side works: validation, the set-up of a sync.",
        "rates.",
        "--",
    ),
    Row("group_seconds", SECONDS_SPREAD, "Time of one group of samples on one instance.", "rates.", "--"),
    Row(
        "headroom",
        Quantity("1", least=0.01, most=1.0),
        "Derating for what the instance rate does not contain, 0 to 1.",
        "rates.",
        "--",
    ),
    Row("measured_trainer_gpus", COUNT, "GPUs that the train seconds were measured on.", "rates.", "--"),
    Row("accept_lower_bound", Switch(), "Size from a rates file whose engines were not saturated.", flag="--"),
)
