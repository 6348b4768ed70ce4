"""A number and where it came from."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Provenance: TypeAlias = Literal["given", "measured", "predicted", "default"]
Value: TypeAlias = float | int | str | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """
    One number of an answer, with its provenance.

    Args:
        key: Its name; the ending says the unit (`_seconds`, `_bytes`, `_fraction`, ...).
        value: The number in base units, a word, or None where an input is missing.
        provenance: `given` (the user said so), `measured`, `predicted` (an equation says so) or `default`.
        source: Who says so: a flag, a file and key, a profile and its source.
        equation: The equation that gave it, as `file.function`; empty for an input.
        inputs: What went into the equation, by argument name.
        deviation: Standard deviation of an uncertain input, in the unit of the value.
        band: An 80 % interval, low and high; None where every input is a point.
        missing: Why there is no value: the flag or the key that would fill it.
        verified: False where nobody has checked the fact behind it.
        least: The smallest value that makes sense; draws of an uncertain input stay above it.
        most: The largest value that makes sense.
        function: The equation itself, so that a figure can be worked out again from other inputs.
    """

    key: str
    value: Value
    provenance: Provenance = "given"
    source: str = ""
    equation: str = ""
    inputs: Mapping[str, Figure] = field(default_factory=dict)
    deviation: float = 0.0
    band: tuple[float, float] | None = None
    missing: str = ""
    verified: bool = True
    least: float | None = None
    most: float | None = None
    function: Callable[..., Any] | None = field(default=None, repr=False, compare=False)

    @property
    def number(self) -> float:
        """
        The value as a float.

        Raises:
            TypeError: The figure has no number; callers ask `known` first.
        """
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            raise TypeError(f"{self.key} has no number: {self.value!r}")
        return float(self.value)

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return self.value is not None

    @property
    def if_known(self) -> float | None:
        """The value as a float; None where there is none."""
        return self.number if self.known else None


def absent(key: str, missing: str) -> Figure:
    """
    A figure that lacks an input.

    >>> absent("cost_per_step_usd", "--gpu-hour").known
    False
    """
    return Figure(key=key, value=None, missing=missing)
