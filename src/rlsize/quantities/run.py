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
    Row(
        "seed",
        Text("NUMBER"),
        "Seed of all that is drawn, such as the band of inputs written as 20 ± 2.",
        "",
        "--seed",
        "0",
    ),
)
