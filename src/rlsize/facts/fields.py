"""
How a field of a fact is declared: its unit, meaning and limits, once, beside it; and numbers that name their source.

`Annotated[float, Quantity("B/s", "slowest link on the path")]` is read by the validation at the edge, by the JSON
Schema and by the generated reference pages. Pydantic asks a field's metadata for `__get_pydantic_core_schema__`, which
is a plain dictionary, so nothing needs to be imported here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize import units
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, slots=True)
class Says:
    """
    What a field that is not a quantity means.

    Args:
        text: One sentence for the reference page and the editor's tooltip.
    """

    text: str

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:  # noqa: ANN401 (pydantic's protocol)
        return {**handler(schema), "description": self.text}


@dataclass(frozen=True, slots=True)
class Bare(Says):
    """
    What a field means that is a mapping, one value of which may stand in its place.

    Args:
        text: One sentence for the reference page and the editor's tooltip.
        key: The key whose value may stand alone: `response_tokens: 1536` is `response_tokens: {mean: 1536}`.
    """

    key: str

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:  # noqa: ANN401 (pydantic's protocol)
        return {
            "type": "function-before",
            "function": {"type": "no-info", "function": self._mapped},
            "schema": handler(source),
        }

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:  # noqa: ANN401 (pydantic's protocol)
        inner = handler(schema)
        return {"anyOf": [inner, {"type": "number"}, {"type": "string"}], "description": self.text}

    def _mapped(self, value: object) -> object:
        """A value that stands alone as the mapping that it is short for."""
        return {self.key: value} if isinstance(value, (int, float, str)) and not isinstance(value, bool) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertain:
    """
    A quantity that may be written with a spread, such as `20 ± 2`.

    Args:
        value: The number in base units.
        deviation: Its standard deviation, in the same unit; 0 for a point.
    """

    value: float
    deviation: float = 0.0


@dataclass(frozen=True, slots=True)
class Quantity:
    """
    A number with a unit, written as a string such as `80 GB`; on a field of type `Uncertain` it may carry a ±.

    Args:
        unit: Base unit: one of `units.DIMENSIONS`.
        text: One sentence for the reference page and the editor's tooltip.
        least: The smallest value that makes sense.
        most: The largest value that makes sense.
        above: A value that the quantity must exceed; 0 by default, so most quantities are positive.
        whole: Whether it must be a whole number.
        spread: Whether it may be written with a ±; the field's type is then `Uncertain`.
        or_file: Whether the name of a YAML file that holds the number may stand in its place.
    """

    unit: str
    text: str = ""
    least: float | None = None
    most: float | None = None
    above: float | None = 0.0
    whole: bool = False
    spread: bool = False
    or_file: bool = False

    def saying(self, text: str) -> Quantity:
        """The same unit and limits, with what a field means."""
        return replace(self, text=text)

    def read(self, value: object) -> float:
        """
        The value in base units.

        Raises:
            ValueError: It is no such quantity, or out of its limits.

        >>> Quantity("B").read("80 GB")
        80000000000.0
        """
        return self.check(units.quantity(value, self.unit), str(value))

    def check(self, number: float, shown: str) -> float:
        """
        `number` itself, if it is within the limits.

        Raises:
            ValueError: It is not; the message shows it as it was written.
        """
        if self.least is not None:
            if number < self.least:
                raise ValueError(f"{shown} is too small; it must be at least {self.least:g}")
        elif self.above is not None and number <= self.above:
            raise ValueError(f"{shown} must be more than {self.above:g}")
        if self.most is not None and number > self.most:
            raise ValueError(f"{shown} is too large; it must be at most {self.most:g}")
        if self.whole and number != round(number):
            raise ValueError(f"{shown} must be a whole number")
        return number

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:  # noqa: ANN401 (pydantic's protocol)
        return {
            "type": "function-before",
            "function": {"type": "no-info", "function": self._before},
            "schema": handler(source),
        }

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:  # noqa: ANN401 (pydantic's protocol)
        inner = handler(schema)
        if not self.spread and ("properties" in inner or "$ref" in inner):
            return {**inner, "description": self.text}
        dimension = units.DIMENSIONS[self.unit]
        return {
            "anyOf": [{"type": "string"}, {"type": "number"}] if dimension.bare else [{"type": "string"}],
            "description": f"{self.text} [{dimension.base}]".strip(),
            "examples": [dimension.example],
        }

    def _before(self, value: object) -> object:
        if value is None or isinstance(value, Uncertain):
            return value
        if self.or_file and isinstance(value, str) and value.endswith((".yaml", ".yml")):
            return value
        if isinstance(value, dict):  # a sourced fact: {value: ..., source: ...}
            return {**value, "value": self.read(value["value"])} if "value" in value else value
        if self.spread:
            central, deviation = units.uncertain(value, self.unit)
            return {"value": self.check(central, str(value)), "deviation": deviation}
        number = self.read(value)
        return int(number) if self.whole else number


@dataclass(frozen=True, slots=True, kw_only=True)
class Sourced:
    """
    One number of a profile.

    Args:
        value: The number in base units.
        source: The key of the profile's `sources` that names the document or the measurement.
        verified: False where the number was recalled, derived or guessed, and nobody has read it in its source.
        note: What one should know before relying on it.
    """

    value: float
    source: str
    verified: bool = True
    note: str = ""


def facts_within(fact: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Every fact inside a fact, itself included, with its dotted path, in the order of the fields."""
    parts: Iterable[tuple[object, object]] = ()
    if isinstance(fact, Mapping):
        parts = fact.items()
    elif isinstance(fact, (list, tuple)):
        parts = enumerate(fact)
    elif dataclasses.is_dataclass(fact):
        yield path, fact
        parts = ((field.name, getattr(fact, field.name)) for field in dataclasses.fields(fact))
    for key, value in parts:
        yield from facts_within(value, f"{path}.{key}" if path else str(key))


def sourced_numbers(profile: object) -> Iterator[tuple[str, Sourced]]:
    """
    Every sourced number of a profile with its dotted path.

    >>> list(sourced_numbers({"nic": Sourced(value=50e9, source="a")}))
    [('nic', Sourced(value=50000000000.0, source='a', verified=True, note=''))]
    """
    return ((path, fact) for path, fact in facts_within(profile) if isinstance(fact, Sourced))


def unverified(profile: object) -> list[str]:
    """
    The dotted paths of the numbers, or groups of numbers, that nobody has verified.

    >>> unverified({"nic": Sourced(value=50e9, source="a", verified=False)})
    ['nic']
    """
    return [path for path, fact in facts_within(profile) if getattr(fact, "verified", True) is False]
