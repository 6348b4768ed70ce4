"""Rules of the loop, most of which only `simulate` follows, what samples wait for outside the GPUs, what goes wrong."""

from __future__ import annotations

from rlsize.facts.fields import Quantity
from rlsize.quantities.kinds import COUNT, COUNT_OR_NONE, CV, POSITIVE, SECONDS_OR_NONE, SHARE
from rlsize.quantities.row import Row, Word

_PER_HOUR = Quantity("count", least=0.0, most=3600.0)

POLICIES = (
    Row(
        "queue_order",
        Word(("completion", "admission", "freshest")),
        "Which finished groups are trained first: completion, admission or freshest.",
        "policies.queue_order",
        "--queue-order",
        "completion",
        "default of --queue-order",
    ),
    Row(
        "queue_steps",
        POSITIVE,
        "Finished batches at which no new sample starts (backpressure).",
        "policies.queue_steps",
        "--queue-steps",
    ),
    Row(
        "late_samples",
        Word(("continue", "wait", "drop")),
        "What becomes of samples that are not finished when a batch is due: they continue, it waits, or drop.",
        "policies.late_samples",
        "--late-samples",
    ),
    Row(
        "oversampling",
        Quantity("1", least=1.0, most=1e4),
        "Groups started for each that a batch needs (APRIL, over-provisioning).",
        "policies.oversampling",
        "--oversampling",
        1.0,
        "no over-sampling",
    ),
    Row(
        "kept_fraction",
        Quantity("1", least=1e-4, most=1.0),
        "Share of groups that dynamic sampling keeps.",
        "policies.kept_fraction",
        "--kept-fraction",
        1.0,
        "no group is filtered",
    ),
    Row(
        "dropped_fraction",
        Quantity("1", least=0.0, most=0.9999),
        "Share of finished samples dropped as too stale.",
        "",
        "--dropped-fraction",
        0.0,
        "nothing is dropped",
    ),
    Row(
        "redealing",
        Word(("arrivals", "waiting", "running")),
        "When dealt samples move: waiting ones as instances come, or when one has none, or running ones then too.",
        "policies.redealing",
        "--redealing",
        "arrivals",
        "default of --redealing",
    ),
    Row(
        "micro_batches",
        COUNT,
        "Parts of a batch that are trained as soon as each is there.",
        "policies.micro_batches",
        "--micro-batches",
        1,
        "the batch is trained as a whole",
    ),
)

AGENTS = (
    Row("turns", COUNT, "Turns of a sample, with a tool call between two.", "agents.turns", "--turns", 1, "one turn"),
    Row(
        "tool_seconds",
        SECONDS_OR_NONE,
        "Mean time of a tool call.",
        "agents.tool_seconds",
        "--tool-seconds",
        0.0,
        "no tools",
    ),
    Row(
        "tool_cv", CV, "Its coefficient of variation; lognormal.", "agents.tool_cv", "--tool-cv", 0.0, "always as long"
    ),
    Row(
        "tool_tokens",
        Quantity("token", least=0.0, whole=True),
        "Tokens that a tool's answer adds to the context.",
        "agents.tool_tokens",
        "--tool-tokens",
        0,
        "no tools",
    ),
    Row(
        "verify_seconds",
        SECONDS_OR_NONE,
        "Mean time to score one sample.",
        "agents.verify_seconds",
        "--verify-seconds",
        0.0,
        "scoring takes no time",
    ),
    Row(
        "verify_cv",
        CV,
        "Its coefficient of variation; lognormal.",
        "agents.verify_cv",
        "--verify-cv",
        0.0,
        "always as long",
    ),
    Row(
        "verify_workers",
        COUNT,
        "Samples that are scored at the same time; no limit when not given.",
        "agents.verify_workers",
        "--verify-workers",
    ),
)

TROUBLE = (
    Row(
        "straggler_fraction",
        SHARE,
        "Share of instances that are slow.",
        "trouble.straggler_fraction",
        "--straggler-fraction",
        0.0,
        "no stragglers",
    ),
    Row(
        "straggler_slowdown",
        Quantity("1", least=1.0, most=1000.0),
        "How many times as long their steps take.",
        "trouble.straggler_slowdown",
        "--straggler-slowdown",
        1.0,
        "no stragglers",
    ),
    Row(
        "losses_per_hour",
        _PER_HOUR,
        "How often an instance is lost, per hour that it is up.",
        "trouble.losses_per_hour",
        "--losses-per-hour",
        0.0,
        "no instance is lost",
    ),
    Row(
        "lost_together",
        COUNT,
        "Instances of a node, which is lost as a whole, that often.",
        "trouble.lost_together",
        "--lost-together",
        1,
        "each instance is lost by itself",
    ),
    Row(
        "notice_seconds",
        SECONDS_OR_NONE,
        "Time between the notice of a loss and the loss.",
        "trouble.notice_seconds",
        "--notice-seconds",
        0.0,
        "no notice",
    ),
    Row(
        "restart_seconds",
        SECONDS_OR_NONE,
        "Until a lost instance is back.",
        "trouble.restart_seconds",
        "--restart-seconds",
        0.0,
        "back at once",
    ),
    Row(
        "failures_per_hour",
        _PER_HOUR,
        "How often the trainer fails, per hour of its work.",
        "trouble.failures_per_hour",
        "--failures-per-hour",
        0.0,
        "the trainer does not fail",
    ),
    Row(
        "trainer_restart_seconds",
        SECONDS_OR_NONE,
        "Until the trainer is back after a failure.",
        "trouble.trainer_restart_seconds",
        "--trainer-restart-seconds",
        0.0,
        "back at once",
    ),
    Row(
        "checkpoint_every",
        COUNT,
        "Optimizer steps from one checkpoint to the next.",
        "trouble.checkpoint_every",
        "--checkpoint-every",
        1,
        "after each step",
    ),
    Row(
        "lent_instances",
        COUNT_OR_NONE,
        "Instances that the trainer's GPUs make while it waits for samples.",
        "trouble.lent_instances",
        "--lent-instances",
        0,
        "the trainer lends nothing",
    ),
    Row(
        "lend_seconds",
        SECONDS_OR_NONE,
        "Time in which lent GPUs change over, each way.",
        "trouble.lend_seconds",
        "--lend-seconds",
        0.0,
        "changing over takes no time",
    ),
)

ROWS = POLICIES + AGENTS + TROUBLE
