"""A grid of alternatives: what `--sweep` says, and the points that it makes."""

from __future__ import annotations

from itertools import product
from math import isfinite
from typing import TYPE_CHECKING

from rlsize.errors import suggestion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.shell.inputs import Inputs

MOST_POINTS = 2000
_RANGE_PARTS = (2, 3)
_FORMS = "give key=from:to, key=from:to:step or key=one,other"


def points_of(inputs: Inputs, sweeps: Sequence[str], known: Sequence[str]) -> list[dict[str, str]]:
    """
    The points of a grid: what each flag says there, in the order of the sweeps, the last one changing fastest.

    Args:
        inputs: Takes faults.
        sweeps: `key=from:to`, `key=from:to:step` or `key=one,other`.
        known: Flags that may be swept, as keys.
    """
    axes: dict[str, list[str]] = {}
    for text in sweeps:
        key, sign, values = text.partition("=")
        name = key.strip().removeprefix("--").replace("-", "_")
        if name in known and not sign:
            inputs.fault(f"says no values for {key!r}", f"--sweep {text}", _FORMS)
        elif name not in known:
            inputs.fault(f"{key!r} cannot be swept", f"--sweep {text}", suggestion(name, known))
        elif name in axes:
            inputs.fault(f"{key!r} is swept twice", f"--sweep {text}", "say it once")
        else:
            axes[name] = _values(inputs, text, values)
    count = 1
    for said in axes.values():
        count *= max(1, len(said))
    if count > MOST_POINTS:
        inputs.fault(f"the grid has {count:,} points, more than {MOST_POINTS:,}", "--sweep", "take larger steps")
        return []
    return [dict(zip(axes, point, strict=True)) for point in product(*axes.values())]


def _values(inputs: Inputs, text: str, values: str) -> list[str]:
    """The values of one sweep."""
    if ":" not in values:
        found = [value.strip() for value in values.split(",") if value.strip()]
        if not found:
            inputs.fault("says no values", f"--sweep {text}", _FORMS)
        return found
    try:
        numbers = [float(part) for part in values.split(":")]
    except ValueError:
        numbers = []
    step = numbers[2] if len(numbers) == max(_RANGE_PARTS) else 1.0
    if len(numbers) not in _RANGE_PARTS or not all(map(isfinite, numbers)) or step <= 0 or numbers[1] < numbers[0]:
        inputs.fault(f"{values!r} is no range", f"--sweep {text}", "give from:to or from:to:step, upwards")
        return []
    steps = (numbers[1] - numbers[0]) / step + 1e-9
    if steps >= MOST_POINTS:
        inputs.fault(f"{values!r} is more than {MOST_POINTS:,} values", f"--sweep {text}", "take a larger step")
        return []
    return [f"{numbers[0] + index * step:.12g}" for index in range(int(steps) + 1)]
