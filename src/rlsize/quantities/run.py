"""What an answer is worked out with."""

from __future__ import annotations

from rlsize.facts.fields import Quantity
from rlsize.facts.kinds import AMOUNT_OR_NONE, SECONDS
from rlsize.quantities.row import Row, Text

ROWS = (
    Row("backlog_seconds", SECONDS, "Time since the backlog was empty: 600, 10 min.", flag="--"),
    Row("in_flight_samples", AMOUNT_OR_NONE, "Samples being generated.", flag="--in-flight"),
    Row(
        "calibration",
        Text("FILE"),
        "What measurements say about the constants: a file from `rlsize calibrate --save`.",
        flag="--",
    ),
    Row(
        "seed",
        Text("NUMBER"),
        "Seed of all that is drawn, such as the band of inputs written as 20 ± 2.",
        flag="--",
        default="0",
    ),
    Row(
        "simulated_steps",
        Quantity("count", whole=True, least=1.0, most=1e6),
        "Optimizer steps of each run; when not given 1,000, or 100 and more of large batches where nothing is rare.",
        flag="--",
    ),
    Row(
        "seeds",
        Quantity("count", whole=True, least=1.0, most=1000),
        "Runs with different seeds, which count on from --seed.",
        flag="--",
        default=5,
        why="enough for an interval",
    ),
    Row(
        "parallel_runs",
        Quantity("count", whole=True, least=1.0, most=4096),
        "Runs at the same time; as many as cores when not given.",
        flag="--jobs",
    ),
    Row(
        "most_samples",
        Quantity("count", least=1.0, most=1e15),
        "Samples that all runs together may generate; 200M when not given.",
        flag="--",
    ),
)
