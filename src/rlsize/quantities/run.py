"""What an answer is worked out with."""

from __future__ import annotations

from rlsize.quantities.row import Row, Text

ROWS = (
    Row(
        "calibration",
        Text("FILE"),
        "What measurements say about the constants: a file from `rlsize calibrate --save`.",
        "",
        "--calibration",
    ),
    Row("seed", Text("NUMBER"), "Seed of the draws behind a band (inputs written as 20 ± 2).", "", "--seed", "0"),
)
