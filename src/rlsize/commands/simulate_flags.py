"""Flags of `rlsize simulate`."""

from __future__ import annotations

from typing import Annotated

import typer

from rlsize.shell.command import quantity

LENGTHS = "Lengths"
LOOP = "Loop and policies"
ENGINE = "Engine"
SYNC = "Weight sync"
AGENTS = "Tools and verifier"
TROUBLE = "Trouble"
RUN = "Runs"
OUT = "Output"

LengthDistribution = Annotated[
    str | None,
    quantity(
        "--length-distribution", "Family of response lengths: lognormal, gamma or constant.", LENGTHS, metavar="NAME"
    ),
]
LengthFile = Annotated[
    str | None,
    quantity("--lengths", "Response lengths to draw from: one a line, or length and count.", LENGTHS, metavar="FILE"),
]
ResponseCv = Annotated[
    str | None, quantity("--response-cv", "Coefficient of variation of response lengths; 1 when not given.", LENGTHS)
]
MaxResponseTokens = Annotated[str | None, quantity("--max-response-tokens", "Cap on the response length.", LENGTHS)]
GroupCorrelation = Annotated[
    str | None, quantity("--group-correlation", "How alike the lengths of a group are, 0 to 1.", LENGTHS)
]
LengthDrift = Annotated[
    str | None, quantity("--length-drift", "Relative growth of the mean length over 1,000 optimizer steps.", LENGTHS)
]
Mode = Annotated[
    str | None,
    quantity("--mode", "colocated, sync, partial, one-step-off or async; sync when not given.", LOOP, metavar="NAME"),
]
MaxStaleness = Annotated[
    str | None, quantity("--max-staleness", "Staleness cap in optimizer steps, for async; no cap when not given.", LOOP)
]
OverStale = Annotated[
    str | None, quantity("--over-stale", "keep samples above the cap, or drop them.", LOOP, metavar="NAME")
]
QueueOrder = Annotated[
    str | None, quantity("--queue-order", "Trained first: completion, admission or freshest.", LOOP, metavar="NAME")
]
QueueSteps = Annotated[
    str | None, quantity("--queue-steps", "Finished batches at which no new sample starts (backpressure).", LOOP)
]
Oversampling = Annotated[
    str | None, quantity("--oversampling", "Groups started for each that a batch needs (early stop).", LOOP)
]
Unfinished = Annotated[
    str | None,
    quantity(
        "--unfinished",
        "drop what over-sampling leaves unfinished, or keep it (partial rollouts).",
        LOOP,
        metavar="NAME",
    ),
]
KeptFraction = Annotated[str | None, quantity("--kept-fraction", "Share of groups that dynamic sampling keeps.", LOOP)]
MicroBatches = Annotated[
    str | None, quantity("--micro-batches", "Parts of a batch, each trained as soon as it is there.", LOOP)
]
Routing = Annotated[
    str | None,
    quantity(
        "--routing", "affine, random, round-robin, or queue (a sample goes where a slot is free).", ENGINE, "NAME"
    ),
]
Concurrency = Annotated[
    str | None, quantity("--concurrency", "Samples that an instance runs at once: its slots.", ENGINE)
]
StepFixed = Annotated[
    str | None, quantity("--step-fixed", "Engine step with nothing in it, such as `9 ms`.", ENGINE, metavar="TIME")
]
StepSample = Annotated[
    str | None, quantity("--step-sample", "What each running sample adds to it.", ENGINE, metavar="TIME")
]
StepKvToken = Annotated[
    str | None, quantity("--step-kv-token", "What each live KV token adds to it.", ENGINE, metavar="TIME")
]
StepPromptToken = Annotated[
    str | None,
    quantity("--step-prompt-token", "What each prompt token that is computed adds to it.", ENGINE, metavar="TIME"),
]
KvCacheTokens = Annotated[
    str | None, quantity("--kv-cache-tokens", "Tokens that the KV cache of an instance holds.", ENGINE)
]
SyncSeconds = Annotated[
    str | None, quantity("--sync-seconds", "Time of a weight sync, in which both sides wait.", SYNC)
]
SyncEvery = Annotated[str | None, quantity("--sync-every", "Optimizer steps from one sync to the next.", SYNC)]
SyncWay = Annotated[
    str | None,
    quantity(
        "--sync-way", "Running samples go on (in-flight), finish (drain) or start anew (abort).", SYNC, metavar="NAME"
    ),
]
KvAfterSync = Annotated[
    str | None, quantity("--kv-after-sync", "kept or recomputed, for samples that go on.", SYNC, metavar="NAME")
]
SwapSeconds = Annotated[str | None, quantity("--swap-seconds", "A colocated step's two change-overs together.", SYNC)]
Turns = Annotated[str | None, quantity("--turns", "Turns of a sample, with a tool call between two.", AGENTS)]
ToolSeconds = Annotated[str | None, quantity("--tool-seconds", "Mean time of a tool call.", AGENTS)]
ToolCv = Annotated[str | None, quantity("--tool-cv", "Its coefficient of variation.", AGENTS)]
ToolTokens = Annotated[
    str | None, quantity("--tool-tokens", "Tokens that a tool's answer adds to the context.", AGENTS)
]
VerifySeconds = Annotated[str | None, quantity("--verify-seconds", "Mean time to score one sample.", AGENTS)]
VerifyCv = Annotated[str | None, quantity("--verify-cv", "Its coefficient of variation.", AGENTS)]
VerifyWorkers = Annotated[str | None, quantity("--verify-workers", "Samples that are scored at the same time.", AGENTS)]
StragglerFraction = Annotated[
    str | None, quantity("--straggler-fraction", "Share of instances that are slow.", TROUBLE)
]
StragglerSlowdown = Annotated[
    str | None, quantity("--straggler-slowdown", "How many times as long their steps take.", TROUBLE)
]
LossesPerHour = Annotated[
    str | None, quantity("--losses-per-hour", "How often an instance is lost, per hour that it is up.", TROUBLE)
]
NoticeSeconds = Annotated[str | None, quantity("--notice-seconds", "Notice before an instance is lost.", TROUBLE)]
RestartSeconds = Annotated[str | None, quantity("--restart-seconds", "Until a lost instance is back.", TROUBLE)]
FailuresPerHour = Annotated[
    str | None, quantity("--failures-per-hour", "How often the trainer fails, per hour of its work.", TROUBLE)
]
TrainerRestartSeconds = Annotated[str | None, quantity("--trainer-restart-seconds", "Until it is back.", TROUBLE)]
CheckpointEvery = Annotated[str | None, quantity("--checkpoint-every", "Optimizer steps between checkpoints.", TROUBLE)]
LentInstances = Annotated[
    str | None, quantity("--lent-instances", "Instances that the trainer's GPUs make while it waits.", TROUBLE)
]
LendSeconds = Annotated[
    str | None, quantity("--lend-seconds", "Time in which lent GPUs change over, each way.", TROUBLE)
]
Steps = Annotated[str | None, quantity("--steps", "Optimizer steps of each run; 1,000 when not given.", RUN)]
Seeds = Annotated[str | None, quantity("--seeds", "Runs with different seeds; 5 when not given.", RUN)]
Seed = Annotated[
    str,
    typer.Option(
        "--seed", metavar="NUMBER", help="Seed of the first run; the others count on from it.", rich_help_panel=RUN
    ),
]
Backend = Annotated[
    str | None, quantity("--backend", "Where runs work: processes, threads, ray or dask.", RUN, metavar="NAME")
]
Jobs = Annotated[str | None, quantity("--jobs", "Runs at the same time; as many as cores when not given.", RUN)]
Runs = Annotated[
    str | None,
    quantity(
        "--runs", "Keep each finished run in this file, and take from it what is there already.", RUN, metavar="FILE"
    ),
]
MostSamples = Annotated[
    str | None, quantity("--most-samples", "Samples that all runs together may generate; 200M when not given.", RUN)
]
Trace = Annotated[
    str | None, quantity("--trace", "Write the first run as a Chrome/Perfetto trace.", OUT, metavar="FILE")
]
History = Annotated[
    str | None,
    quantity("--history", "Write everything that happens in the first run, as JSON Lines.", OUT, metavar="FILE"),
]
Sweep = Annotated[
    list[str] | None,
    typer.Option(
        "--sweep",
        metavar="KEY=RANGE",
        help="Run a grid: max_staleness=0:8, rollout_gpus=16:48:8, mode=sync,async; repeatable.",
        rich_help_panel=RUN,
        show_default=False,
    ),
]
