"""
torchtitan: a trainer alone, with no rollouts.

Source: torchtitan/components/metrics.py, commit b5bcd76c. Its tps is of one device of all that work on one sequence,
MFU is in percent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.readers.logs.mapping import Framework, plain

if TYPE_CHECKING:
    from rlsize.facts.run_log import RunMode
    from rlsize.readers.logs.mapping import Values

_FIGURES = (
    plain("step_seconds", "time_metrics/end_to_end(s)"),
    plain("mfu", "mfu(%)", scale=0.01),
    plain("trainer_tokens_per_second_per_gpu", "throughput(tps)", counts="tokens trained, per device"),
)


def _mode(_: Values) -> RunMode:
    return "unknown"


FRAMEWORK = Framework(
    name="torchtitan",
    figures=lambda _: _FIGURES,
    all_figures=_FIGURES,
    mode=_mode,
    marks=("time_metrics/data_loading(s)", "tflops"),
)
