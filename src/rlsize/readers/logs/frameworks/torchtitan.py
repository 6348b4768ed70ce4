"""
torchtitan: a trainer alone, with no rollouts.

Source: torchtitan/components/metrics.py, commit b5bcd76c. Its tps is of one device of all that work on one sequence,
MFU is in percent.
"""

from __future__ import annotations

from rlsize.readers.logs.figures import GIB, plain
from rlsize.readers.logs.mapping import Framework

_FIGURES = (
    plain("step_seconds", "time_metrics/end_to_end(s)"),
    plain("mfu", "mfu(%)", scale=0.01),
    plain("peak_reserved_bytes", "memory/max_reserved(GiB)", "memory", scale=GIB),
    plain("trainer_tokens_per_second_per_gpu", "throughput(tps)", counts="tokens trained, per device"),
)


FRAMEWORK = Framework(
    name="torchtitan",
    figures=_FIGURES,
    mode="unknown",
    marks=("time_metrics/data_loading(s)", "tflops"),
)
