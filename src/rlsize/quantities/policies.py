"""Rules of the loop, most of which only `simulate` follows, what samples wait for outside the GPUs, what goes wrong."""

from __future__ import annotations

from rlsize.facts.fields import Quantity
from rlsize.facts.kinds import COUNT, COUNT_OR_NONE, CV, POSITIVE, SECONDS_OR_NONE, SHARE
from rlsize.quantities.row import Row, Text, Word, said_in

_PER_HOUR = Quantity("count", least=0.0, most=3600.0)

POLICIES = said_in(
    "policies",
    Row(
        "queue_order",
        Word(("completion", "admission", "freshest")),
        "Which finished groups are trained first: completion, admission or freshest.",
        default="completion",
    ),
    Row("queue_steps", POSITIVE, "Finished batches at which no new sample starts (backpressure)."),
    Row(
        "late_samples",
        Word(("continue", "wait", "drop")),
        "What becomes of samples that are not finished when a batch is due: they continue, it waits, or drop.",
    ),
    Row(
        "oversampling",
        Quantity("1", least=1.0, most=1e4),
        "Groups started for each that a batch needs (APRIL, over-provisioning).",
        default=1.0,
        why="no over-sampling",
    ),
    Row(
        "kept_fraction",
        Quantity("1", least=1e-4, most=1.0),
        "Share of groups that dynamic sampling keeps.",
        default=1.0,
        why="no group is filtered",
    ),
    Row(
        "dropped_fraction",
        Quantity("1", least=0.0, most=0.9999),
        "Share of finished samples dropped as too stale.",
        flag="--",
        default=0.0,
        why="nothing is dropped",
    ),
    Row(
        "redealing",
        Word(("arrivals", "waiting", "running")),
        "When dealt samples move: waiting ones as instances come, or when one has none, or running ones then too.",
        default="arrivals",
    ),
    Row(
        "resizes",
        Text("CHANGES"),
        "Instances that come or go during the run, after a step or at a time, as 100=+4,2h=-2.",
    ),
    Row(
        "micro_batches",
        COUNT,
        "Parts of a batch that are trained as soon as each is there.",
        default=1,
        why="the batch is trained as a whole",
    ),
)

AGENTS = said_in(
    "agents",
    Row("turns", COUNT, "Turns of a sample at most, with a tool call between two.", default=1, why="one turn"),
    Row(
        "turn_end_fraction",
        Quantity("1", least=0.0, most=0.9999),
        "Chance that a turn is a sample's last one, though more are allowed.",
        default=0.0,
        why="every sample has all its turns",
    ),
    Row(
        "environments",
        COUNT,
        "Sandboxes, of which each sample needs one until it has finished; no limit when not given.",
    ),
    Row(
        "environment_seconds",
        SECONDS_OR_NONE,
        "Time in which a sandbox starts.",
        default=0.0,
        why="sandboxes start at once",
    ),
    Row(
        "failed_fraction",
        Quantity("1", least=0.0, most=0.9999),
        "Chance that a sandbox fails in a tool call: it starts again, and the call is repeated.",
        default=0.0,
        why="no sandbox fails",
    ),
    Row(
        "redundant_samples",
        Quantity("1", least=0.0, most=256.0, whole=True),
        "Samples begun for each prompt beyond its group: the first to end are taken, the others stop.",
        default=0,
        why="every sample is waited for",
    ),
    Row("tool_seconds", SECONDS_OR_NONE, "Mean time of a tool call.", default=0.0, why="no tools"),
    Row("tool_cv", CV, "Its coefficient of variation; lognormal.", default=0.0, why="always as long"),
    Row(
        "tool_tokens",
        Quantity("token", least=0.0, whole=True),
        "Tokens that a tool's answer adds to the context.",
        default=0,
        why="no tools",
    ),
    Row("verify_seconds", SECONDS_OR_NONE, "Mean time to score one sample.", default=0.0, why="scoring takes no time"),
    Row("verify_cv", CV, "Its coefficient of variation; lognormal.", default=0.0, why="always as long"),
    Row(
        "verify_failed_fraction",
        Quantity("1", least=0.0, most=0.9999),
        "Chance that a verifier fails: the sample is scored once more, which takes as long.",
        default=0.0,
        why="no verifier fails",
    ),
    Row("verify_workers", COUNT, "Samples that are scored at the same time; no limit when not given."),
)

TROUBLE = said_in(
    "trouble",
    Row("straggler_fraction", SHARE, "Share of instances that are slow.", default=0.0, why="no stragglers"),
    Row(
        "straggler_slowdown",
        Quantity("1", least=1.0, most=1000.0),
        "How many times as long their steps take.",
        default=1.0,
        why="no stragglers",
    ),
    Row(
        "losses_per_hour",
        _PER_HOUR,
        "How often an instance is lost, per hour that it is up.",
        default=0.0,
        why="no instance is lost",
    ),
    Row(
        "lost_together",
        COUNT,
        "Instances of a node, which is lost as a whole, that often.",
        default=1,
        why="each instance is lost by itself",
    ),
    Row(
        "notice_seconds",
        SECONDS_OR_NONE,
        "Time between the notice of a loss and the loss.",
        default=0.0,
        why="no notice",
    ),
    Row("restart_seconds", SECONDS_OR_NONE, "Until a lost instance is back.", default=0.0, why="back at once"),
    Row(
        "failures_per_hour",
        _PER_HOUR,
        "How often the trainer fails, per hour of its work.",
        default=0.0,
        why="the trainer does not fail",
    ),
    Row(
        "trainer_restart_seconds",
        SECONDS_OR_NONE,
        "Until the trainer is back after a failure.",
        default=0.0,
        why="back at once",
    ),
    Row(
        "checkpoint_every", COUNT, "Optimizer steps from one checkpoint to the next.", default=1, why="after each step"
    ),
    Row(
        "lent_instances",
        COUNT_OR_NONE,
        "Instances that the trainer's GPUs make while it waits for samples.",
        default=0,
        why="the trainer lends nothing",
    ),
    Row(
        "lend_seconds",
        SECONDS_OR_NONE,
        "Time in which lent GPUs change over, each way.",
        default=0.0,
        why="changing over takes no time",
    ),
)

ROWS = POLICIES + AGENTS + TROUBLE
