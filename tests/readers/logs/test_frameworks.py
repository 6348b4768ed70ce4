"""What keys mean where names mislead: one test for each trap."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rlsize.readers.logs.reading import read_log

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlsize.facts.run_log import RunLog


def jsonl(folder: Path, *rows: Mapping[str, Any]) -> RunLog:
    """The log of these rows."""
    file = folder / "log.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return read_log(str(file))


def test_one_step_off_waits_and_does_not_generate(tmp_path: Path) -> None:
    """Verl's wait for the previous generation is a wait, and no generation."""
    row = {
        "timing_s/wait_prev_gen": 4.0,
        "timing_s/gen": 30.0,
        "timing_s/step": 50.0,
        "timing_s/sync_rollout_weights": 2.0,
    }
    step = jsonl(tmp_path, {"step": 1, "data": row}).steps[0]
    assert (step.wait_seconds, step.generation_seconds, step.sync_seconds) == (4.0, None, 2.0)


def test_fully_async_says_once_that_updates_are_not_known(tmp_path: Path) -> None:
    """Where versions and updates count alike, a row may stand for many updates."""
    row = {"timing_s/gen": 4.0, "timing_s/step": 50.0, "fully_async/trainer/idle_ratio": 0.08}
    count = "fully_async/count/current_param_version"
    log = jsonl(tmp_path, *({"step": n, "data": {**row, count: n, "training/global_step": n}} for n in (1, 2, 3)))
    assert [step.updates for step in log.steps] == [1.0, 1.0, 1.0]
    assert sum("trigger_parameter_sync_step" in warning for warning in log.warnings) == 1


def test_older_names_count_as_the_new_ones(tmp_path: Path) -> None:
    """Verl's idle ratios without prefix are the same figures."""
    row = {
        "timing_s/step": 50.0,
        "trainer/idle_ratio": 0.25,
        "rollouter/idle_ratio": 0.125,
        "rollouter/active_time": 40.0,
    }
    log = jsonl(tmp_path, {"step": 1, "data": row})
    step = log.steps[0]
    assert (step.trainer_idle_fraction, step.rollout_idle_fraction, step.generation_seconds) == (0.25, 0.125, 40.0)
    assert log.keys["trainer_idle_fraction"] == "trainer/idle_ratio"


def test_both_parts_of_prime_rl_make_one_step(tmp_path: Path) -> None:
    """The orchestrator's time/step is not the trainer's, and its tokens belong to the trainer's step."""
    trainer = {"time/step": 80.0, "time/wait_for_batch": 9.0, "time/forward_backward": 60.0, "perf/mfu": 30.0}
    orchestrator = {
        "time/step": 85.0,
        "time/wait_for_policy": 3.0,
        "progress/output_tokens": 900,
        "off_policy/mean": 1.5,
    }
    log = jsonl(tmp_path, *({"step": n, **part} for n in (1, 2) for part in (orchestrator, trainer)))
    assert [step.step for step in log.steps] == [1, 2]
    step = log.steps[0]
    assert (step.step_seconds, step.response_tokens, step.staleness_steps, step.mfu) == (80.0, 900.0, 1.5, 0.3)


def test_nemo_rl_is_colocated_where_both_pools_are_all_gpus(tmp_path: Path) -> None:
    """The same GPUs for the fleet, the trainer and the whole are one pool."""
    rates = ("tokens_per_sec", "generation_tokens_per_sec", "training_worker_group_tokens_per_sec")
    row: dict[str, float] = {"timing/train/total_step_time": 40.0, "timing/train/generation": 12.0}
    row |= {f"performance/{rate}": 8000.0 for rate in rates} | {f"performance/{rate}_per_gpu": 1000.0 for rate in rates}
    log = jsonl(tmp_path, {"step": 1, **row})
    assert (log.mode, log.steps[0].rollout_gpus, log.steps[0].gpus) == ("colocated", 8.0, 8.0)


def test_a_wait_of_slime_tells_its_mode(tmp_path: Path) -> None:
    """Sleeping engines share GPUs; a trainer that waits out the rollout is synchronous."""
    row = {"perf/rollout_time": 60.0, "perf/step_time": 100.0, "perf/train_wait_time": 61.0}
    assert jsonl(tmp_path, {"step": 1, **row}).mode == "synchronous"
    assert jsonl(tmp_path, {"step": 1, **row, "perf/sleep_time": 1.0}).mode == "colocated"


def test_a_callbacks_prefix_is_looked_through(tmp_path: Path) -> None:
    """TRL's keys with train/ before them, and AsyncGRPO's own."""
    row = {
        "train/step_time": 10.0,
        "train/num_tokens": 500.0,
        "train/queue_wait_time_s": 2.0,
        "train/buffer_qsize": 7.0,
    }
    log = jsonl(tmp_path, {"step": 1, **row}, {"step": 3, **row, "train/num_tokens": 1700.0})
    assert log.mode == "async"
    assert [(step.total_tokens, step.wait_seconds, step.updates) for step in log.steps] == [
        (500.0, 2.0, 1.0),
        (1200.0, 4.0, 2.0),
    ]
    assert log.steps[0].queued_samples == 7.0


@pytest.mark.parametrize(
    ("value", "step"),
    [(1.5, 2), (-1, 2), (1e300, 2), ("3", 3), (3.0, 3)],
    ids=["half", "negative", "huge", "text", "float"],
)
def test_a_step_is_a_whole_number(tmp_path: Path, value: object, step: int) -> None:
    """What is none is not used."""
    row = {"timing_s/step": 50.0, "timing_s/gen": 4.0}
    log = jsonl(tmp_path, {"step": value, "data": row}, {"step": 2, "data": row})
    assert log.steps[0].step == step
    assert bool(log.skipped) == (step == 2)
