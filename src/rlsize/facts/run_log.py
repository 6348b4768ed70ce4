"""What a training log tells: its rows, a run summed up from them, and what a user says of its keys."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from rlsize.facts.fields import Says
from rlsize.facts.figure import Figure, absent
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

RunMode: TypeAlias = Literal["colocated", "synchronous", "async", "unknown"]
"""How a log's framework laid rollouts and training out in time, as far as its keys tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetApart:
    """
    Steps that do not count.

    Args:
        why: Why not.
        steps: Their numbers.
        seconds: Their wall clock, together. [s]
    """

    why: str
    steps: tuple[int, ...]
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """
    A run, step by step and in the mean of its settled steps.

    Args:
        source: What was read.
        framework: Whose log it is.
        mode: How rollouts and training lie in time.
        steps: Numbers of the settled steps.
        columns: One value per settled step, by field of `StepRecord`, and `train_seconds` and `other_seconds`; only
            columns without a gap.
        figures: Means and ratios of the settled steps, by key.
        set_apart: Steps that do not count: warm-up and outliers.
        skipped: Records that could not be read.
        keys: The log's key behind each field.
        counts: What a field counts, where that is not what its name says.
        guessed: The fields whose meaning was told by the names of keys alone, and how `--map` says it.
        unread: Keys that look like times, and were not understood.
        warnings: What the reader must know before trusting it.
    """

    source: str = ""
    framework: str = ""
    mode: RunMode = "unknown"
    steps: tuple[int, ...] = ()
    columns: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    figures: Mapping[str, Figure] = field(default_factory=dict)
    set_apart: tuple[SetApart, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, str] = field(default_factory=dict)
    guessed: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def figure(self, key: str, missing: str = "a log that has it") -> Figure:
        """A figure; without a value where the log lacks it."""
        return self.figures.get(key, absent(key, missing))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """
    One row of a training log; None where it does not say.

    Args:
        step: Number of the optimizer step, as the log counts.
        updates: Optimizer steps that the row covers; times and tokens are summed over them. [1]
        step_seconds: Wall clock of the row, all in. [s]
        generation_seconds: Time in which the row's samples were generated, where the log times generation itself. [s]
        wait_seconds: Time that the trainer waited for samples. [s]
        logprob_seconds: Forward passes of the trainer: old, reference and critic values. [s]
        update_seconds: Forward, backward and optimizer, of policy and critic. [s]
        sync_seconds: Weight sync. [s]
        reward_seconds: Rewards and verifiers, where nothing else runs beside them. [s]
        validation_seconds: Evaluation between steps. [s]
        checkpoint_seconds: Saving a checkpoint. [s]
        generation_tools_seconds: Tools and environments of the sample that ends a generation; of a sample in the mean
            where a log does not tell of that one. [s]
        sample_tools_seconds: Tools and environments of a sample, mean. [s]
        turns: Turns of a sample, with a tool call between two, mean. [1]
        samples: Samples trained. [1]
        prompt_tokens: Their prompt tokens. [token]
        response_tokens: Their response tokens. [token]
        total_tokens: Prompt and response tokens together, where a log does not part them. [token]
        gpus: GPUs of both pools together; those of a shared pool count once. [1]
        rollout_gpus: GPUs of the fleet. [1]
        trainer_gpus: GPUs of the trainer. [1]
        staleness_steps: Mean staleness of the samples, in optimizer steps. [1]
        largest_staleness_steps: That of the stalest sample. [1]
        mean_response_tokens: Mean response length. [token]
        mean_prompt_tokens: Mean prompt length. [token]
        mean_total_tokens: Mean of prompt and response together. [token]
        longest_response_tokens: The longest response. [token]
        clipped_fraction: Share of responses that the length cap cut. [1]
        trainer_idle_fraction: Share of the step that the trainer waited, as the framework says. [1]
        rollout_idle_fraction: Share of the time that the fleet stood still, as the framework says. [1]
        mfu: Model FLOPs utilisation of the update. [1]
        queued_samples: Finished samples that wait to be trained. [1]
        dropped_samples: Samples thrown away as too stale. [1]
        prefix_cache_hit_fraction: Prompt tokens that engines found in their cache. [1]
        requests_running: Samples in the running batch of an instance, mean. [1]
        requests_waiting: Samples waiting at an instance, mean. [1]
        rollout_tokens_per_second: Response tokens per second of the fleet while it generates, as the framework says.
            [token/s]
        trainer_tokens_per_second: Prompt and response tokens per second of the whole trainer while it updates, as the
            framework says. [token/s]
        rollout_tokens_per_second_per_gpu: The fleet's rate by its GPUs, where the log gives it so. [token/s]
        trainer_tokens_per_second_per_gpu: The trainer's rate by its GPUs, where the log gives it so. [token/s]
        peak_allocated_bytes: Most that the trainer's tensors took of a GPU so far. [B]
        peak_reserved_bytes: Most that their allocator kept of it, with what it caches for later. [B]
    """

    step: int
    updates: float = 1.0
    step_seconds: float | None = None
    generation_seconds: float | None = None
    wait_seconds: float | None = None
    logprob_seconds: float | None = None
    update_seconds: float | None = None
    sync_seconds: float | None = None
    reward_seconds: float | None = None
    validation_seconds: float | None = None
    checkpoint_seconds: float | None = None
    generation_tools_seconds: float | None = None
    sample_tools_seconds: float | None = None
    turns: float | None = None
    samples: float | None = None
    prompt_tokens: float | None = None
    response_tokens: float | None = None
    total_tokens: float | None = None
    gpus: float | None = None
    rollout_gpus: float | None = None
    trainer_gpus: float | None = None
    staleness_steps: float | None = None
    largest_staleness_steps: float | None = None
    mean_response_tokens: float | None = None
    mean_prompt_tokens: float | None = None
    mean_total_tokens: float | None = None
    longest_response_tokens: float | None = None
    clipped_fraction: float | None = None
    trainer_idle_fraction: float | None = None
    rollout_idle_fraction: float | None = None
    mfu: float | None = None
    queued_samples: float | None = None
    dropped_samples: float | None = None
    prefix_cache_hit_fraction: float | None = None
    requests_running: float | None = None
    requests_waiting: float | None = None
    rollout_tokens_per_second: float | None = None
    trainer_tokens_per_second: float | None = None
    rollout_tokens_per_second_per_gpu: float | None = None
    trainer_tokens_per_second_per_gpu: float | None = None
    peak_allocated_bytes: float | None = None
    peak_reserved_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """
    Records of a log that were not used.

    Args:
        why: What is wrong with them.
        count: How many there are. [1]
        first: Where the first one stands, such as `line 12`.
    """

    why: str
    count: int
    first: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLog:
    """
    A training log.

    Args:
        source: File, or what else it was read from.
        framework: Whose log it is: verl, nemo-rl, openrlhf, trl, slime, prime-rl, ...
        form: How it is written: console, jsonl, dict lines, TensorBoard, ...
        mode: How rollouts and training lie in time, as far as the keys tell.
        steps: The rows, in the order in which they stand.
        keys: The log's key, or keys, behind each field of a row.
        counts: What a field counts, where that is not what its name says.
        skipped: Records that were not used.
        guessed: The fields whose keys no table knows, whose meaning was told by their names, and how `--map` says it.
        unread: Keys that look like times, and were not understood.
        warnings: What the reader must know before trusting it.
    """

    source: str
    framework: str
    form: str
    mode: RunMode = "unknown"
    steps: tuple[StepRecord, ...]
    keys: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, str] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    guessed: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyMapping:
    """Keys of a log by the quantity that they say."""

    quantities: Annotated[
        dict[str, str],
        Says(
            "The key of each quantity; or `KEY * 0.001`, `KEY + KEY`, `KEY x KEY`, `1 / KEY`, blanks around the sign."
        ),
    ]
