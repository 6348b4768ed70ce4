"""
PipelineRL: the trainer's side, which is asynchronous with weights that change in flight.

Source: pipelinerl/finetune_loop.py, commit 58d39345.
"""

from __future__ import annotations

from rlsize.readers.logs.figures import Figure, plain, pool, rounded_product
from rlsize.readers.logs.mapping import Framework

_STEP = ("throughput/sec_per_step",)
_RATE = ("throughput/tokens_per_sec",)
_FIGURES = (
    plain("step_seconds", *_STEP),
    plain("wait_seconds", "stats/time_waiting_for_data"),
    plain("total_tokens", "throughput/tokens_per_step"),
    Figure(field="samples", of=(("throughput/samples_per_sec",), _STEP), how=rounded_product, says="{0} x {1}"),
    plain("staleness_steps", "stats/lag", counts="versions, as the log counts them"),
    plain("trainer_tokens_per_second", *_RATE, counts="prompt and response tokens over the whole step"),
    plain(
        "trainer_tokens_per_second_per_gpu",
        "throughput/tokens_perGPU_per_sec",
        counts="prompt and response tokens over the whole step",
    ),
    pool("trainer_gpus", _RATE, ("throughput/tokens_perGPU_per_sec",)),
    plain("rollout_tokens_per_second", "output_tokens_per_second", "actor/output_tokens_per_second"),
)


FRAMEWORK = Framework(
    name="pipeline-rl",
    figures=_FIGURES,
    mode="async",
    marks=("throughput/", "stats/"),
    steps=("step", "stats/completed_steps", "_step"),
)
