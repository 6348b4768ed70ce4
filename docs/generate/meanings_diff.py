"""What keys of `rlsize diff` mean; those that other commands print too are said for all of them."""

from __future__ import annotations

DIFFED: dict[str, str] = {
    "changed_inputs": "Values of a file that differ from those of the other one.",
    "changed_results": "Results that changed, or that only one side has.",
    "close_results": "Results whose change cannot be told from none.",
}

DIFFED_COLUMNS: dict[str, str] = {
    "after": "Value in the second file: a result in base units, an input as it is written.",
    "after_high": "High end of the 80 % band of a result of the second file.",
    "after_line": "Line of an input in the second file.",
    "after_low": "Low end of the 80 % band of a result of the second file.",
    "before": "Value in the first file: a result in base units, an input as it is written.",
    "before_high": "High end of the 80 % band of a result of the first file.",
    "before_line": "Line of an input in the first file.",
    "before_low": "Low end of the 80 % band of a result of the first file.",
    "cause": "What moves a figure: changes of inputs, or what a simulation adds to the first-order answer.",
    "change": "Change from the baseline, or from the first file.",
    "change_fraction": "The same as a share of what it was.",
    "change_fraction_high": "High end of the 80 % interval of a relative change.",
    "change_fraction_low": "Low end of the 80 % interval of a relative change.",
    "change_high": "High end of the 80 % interval of a change, on draws that both sides share.",
    "change_low": "Low end of the 80 % interval of a change, on draws that both sides share.",
    "input": "An input that is moved, that changed, or that was assumed.",
    "refused": "Why something cannot run, or cannot be worked out.",
    "verdict": "What can be said: of a plan best, too close to call, or how many times the best; of a result higher, "
    "lower, unchanged, too close to call, bands overlap, only a bound, only before, or only after; of a layout whether "
    "it fits.",
}
