"""What is said about a loop that runs: over which time it is watched, what is accepted, and what is resized."""

from __future__ import annotations

from rlsize.facts.fields import Quantity
from rlsize.facts.kinds import PART, POSITIVE, SHARE
from rlsize.quantities.row import Row

_COUNTED = Quantity("count", least=0.0, most=1e6, whole=True)
_LONGEST_WINDOW = 7 * 86_400.0
_WINDOW = Quantity("s", least=1.0, most=_LONGEST_WINDOW)

WATCHED = (
    Row("skipped_steps", _COUNTED, "Steps of a log to leave out at its start; found without it.", flag="--skip"),
    Row("prompt_share", PART, "Share of prompt tokens in runs that count prompt and response together.", flag="--"),
    Row("seconds", _WINDOW, "Time between the two saved pages.", flag="--"),
    Row(
        "window_seconds",
        _WINDOW,
        "How long engines are watched: seconds, or 5m, 1h.",
        flag="--window",
        default=300.0,
        why="default of --window",
    ),
    Row(
        "every_seconds",
        Quantity("s", least=0.5),
        "Seconds between two looks.",
        flag="--every",
        default=5.0,
        why="default of --every",
    ),
    Row(
        "timeout_seconds",
        Quantity("s", most=600.0),
        "Most seconds for one page.",
        flag="--timeout",
        default=10.0,
        why="default of --timeout",
    ),
)

ACCEPTED = (
    Row(
        "queue_limit_samples",
        POSITIVE,
        "Finished samples that may wait to be trained; what the staleness cap allows when not given.",
        flag="--max-queue",
    ),
    Row("idle_target_fraction", SHARE, "Trainer idle that is accepted; 5 % when not given.", flag="--max-idle"),
    Row("sync_target_fraction", SHARE, "Share of the step for weight syncs; 10 % when not given.", flag="--max-sync"),
)

RESIZED = (
    Row(
        "gpus_per_pod",
        Quantity("count", most=1e6, whole=True),
        "GPUs of one pod; those of an instance when not given.",
        flag="--",
    ),
    Row("group_index", _COUNTED, "RayCluster: where the group stands in the list, from 0.", flag="--"),
    Row("min_replicas", _COUNTED, "Fewest replicas; the matched count when not given.", flag="--min"),
    Row("max_replicas", _COUNTED, "Most replicas; the matched count when not given.", flag="--max"),
    Row("threshold", POSITIVE, "What one replica serves; its concurrency when not given.", flag="--"),
    Row("borrowed_gpus", _COUNTED, "GPUs that rollouts may borrow; 0 when not given.", flag="--borrow"),
)

ROWS = WATCHED + ACCEPTED + RESIZED
