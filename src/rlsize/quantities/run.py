"""What an answer is worked out with."""

from __future__ import annotations

from rlsize.quantities.kinds import SECONDS, STALENESS
from rlsize.quantities.row import Row, Text

ROWS = (
    Row("seconds", SECONDS, "Time since the backlog was empty: 600, 10 min.", "", "--seconds"),
    Row("in_flight_samples", STALENESS, "Samples being generated.", "", "--in-flight"),
    Row(
        "calibration",
        Text("FILE"),
        "What measurements say about the constants: a file from `rlsize calibrate --save`.",
        "",
        "--calibration",
    ),
    Row("seed", Text("NUMBER"), "Seed of the draws behind a band (inputs written as 20 ± 2).", "", "--seed", "0"),
)
