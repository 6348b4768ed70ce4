"""A rates file with everything that can be measured."""

from __future__ import annotations

import pytest

from rlsize.facts.measured import (
    Crosscheck,
    EngineUpdate,
    FiniteBatch,
    Machine,
    RolloutLevel,
    RolloutMeasured,
    Scatter,
    StepTimeFit,
    SyncMeasured,
    SyncMethod,
    TrainMeasured,
    TrainPhase,
)
from rlsize.facts.rates import InstanceRate, RateConditions, Rates, RateSource

SCATTER = Scatter(parts=10, cv=0.05, p10=3800.0, p50=4000.0, p90=4200.0)


@pytest.fixture
def measured() -> Rates:
    """Rollout, train step and sync of an invented model on an invented machine."""
    return Rates(
        measured_at="2026-11-20T12:00:00+00:00",
        source=RateSource(method="measure", engine="vllm"),
        instance_tokens_per_second=InstanceRate(mean=4000.0, standard_error=63.2, why="kept at 64 in flight"),
        gpus_per_instance=2.0,
        train_seconds=20.0,
        consumption_tokens_per_second=39321.6,
        trainer_gpus=8,
        conditions=RateConditions(model="m", group_size=8.0, response_cv=0.8, temperature=1.0, dummy_weights=True),
        rollout=RolloutMeasured(
            levels=[
                RolloutLevel(concurrency=8, tokens_per_second=900.0, window_seconds=10.0),
                RolloutLevel(
                    concurrency=64, tokens_per_second=4000.0, scatter=SCATTER, window_seconds=12.5,
                    seconds_per_step=0.016,
                ),
            ],
            at_concurrency=64,
            knee_concurrency=64,
            finite_batch=FiniteBatch(
                prompts=8, samples=64, response_tokens=64_000.0, longest_response_tokens=4000.0, seconds=30.0,
                seconds_to_50_percent=12.0, seconds_to_90_percent=20.0, seconds_to_99_percent=29.0,
            ),
            step_time=StepTimeFit(
                t0_seconds=0.01, t1_seconds=1e-4, t2_seconds=3e-8, residual_fraction=0.02, intervals=90,
                smallest_batch=1.0, largest_batch=64.0,
            ),
            crosschecks=[Crosscheck(what="generation_tokens", asked=64_000.0, counted=64_000.0)],
        ),
        train=TrainMeasured(
            gpus=8, params=8e9, step_samples=512, step_response_tokens=786_432.0, step_total_tokens=940_032.0,
            micro_batch_tokens=16_384, micro_batches=8, micro_batches_timed=8, steps_timed=5, train_seconds=20.0,
            gpu_response_tokens_per_second=4915.2, gpu_total_tokens_per_second=5875.2,
            update_total_tokens_per_second=7000.0, peak_memory_bytes=61e9, mfu=0.31,
            phases=[TrainPhase(name="forward", seconds=6.0, seconds_each=0.75, scatter=SCATTER)],
            losses=[0.0, -0.01], setting={"dtype": "bf16"},
        ),
        sync=SyncMeasured(
            bytes=16e9, tensors=291, dtype="bfloat16", backend="nccl", trainer_ranks=4, receiver_ranks=4,
            methods=[
                SyncMethod(method="per-tensor", messages=291, seconds=1.2, bytes_per_second=13.3e9, identical=True),
                SyncMethod(
                    method="bucketed", bucket_bytes=512e6, messages=32, seconds=0.64, bytes_per_second=25e9,
                    identical=True, scatter=SCATTER,
                ),
            ],
            per_message_seconds=1e-3, wire_bytes_per_second=40e9,
            engine_update=EngineUpdate(interface="x", seconds=0.5, pause_seconds=0.6, bytes_per_second=32e9),
        ),
        machine=Machine(gpus=["GPU"] * 8, driver="1", cpu="c", cpu_cores=16, libraries={"vllm": "0"}, command="rlsize"),
        doubts=["a doubt"],
    )  # fmt: skip
