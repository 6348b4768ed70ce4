"""The fields of the files that people write, from the declarations that check them."""

from __future__ import annotations

import types
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from generate.markdown import table
from rlsize import units
from rlsize.facts.budget import Budget, Limit, Limited
from rlsize.facts.fields import Quantity, Says, Uncertain
from rlsize.facts.headroom import HEADROOM_PARTS
from rlsize.facts.rates import Rates
from rlsize.quantities.scenario import Scenario
from rlsize.quantities.table import PLACES

if TYPE_CHECKING:
    from collections.abc import Iterator


_WHOLE = (Uncertain, Limit)  # dataclasses that are the value of a field, not a section


@dataclass(frozen=True, slots=True)
class Field:
    """
    One field of a file.

    Args:
        key: Dotted key.
        takes: What may be written there.
        unit: Base unit of a quantity; empty for words.
        default: What holds when it is left out; empty where nothing does.
        meaning: One sentence.
    """

    key: str
    takes: str
    unit: str
    default: str
    meaning: str


def scenario() -> str:
    """The table of all scenario fields."""
    return _table(scenario_fields())


def rates() -> str:
    """The table of all fields of a rates file, and what its `includes` may name."""
    named = ", ".join(f"`{part}`" for part in HEADROOM_PARTS)
    return _table(rates_fields()) + f"\nThe parts that headroom covers, and that `includes` may name: {named}.\n"


def budget() -> str:
    """The table of all fields of a budget, and that of what may stand below each."""
    kinds = table(["Limit", "Meaning"], [[f"`{field.key}`", field.meaning] for field in _fields(Limit, "")])
    return f"{_table(list(_fields(Budget, '')))}\nBelow each quantity, in place of a bare limit:\n\n{kinds}"


def scenario_fields() -> list[Field]:
    """All fields of a scenario, in the order of the file."""
    return [replace(field, default=_default_of(field)) for field in _fields(Scenario, "")]


def _default_of(field: Field) -> str:
    """What holds where a scenario does not say it: what the quantity's row has, for all commands."""
    row = PLACES.get(field.key)
    return field.default if row is None or row.default is None else f"`{_yaml(row.default)}`"


def rates_fields() -> list[Field]:
    """All fields of a rates file, in the order of the file."""
    return list(_fields(Rates, ""))


def _table(found: list[Field]) -> str:
    return table(
        ["Key", "Takes", "Default", "Meaning"],
        [[f"`{field.key}`", field.takes, field.default, field.meaning] for field in found],
    )


def _fields(fact: Any, prefix: str) -> Iterator[Field]:  # noqa: ANN401 (any dataclass)
    hints = get_type_hints(fact, include_extras=True)
    for declared in fields(fact):
        hint, said = _unwrapped(hints[declared.name])
        key = f"{prefix}{declared.name}"
        default = "" if declared.default in (MISSING, None, "") else f"`{_yaml(declared.default)}`"
        unit = units.DIMENSIONS[said.unit].base if isinstance(said, Quantity) else ""
        inner = [part for part in _parts(hint) if is_dataclass(part) and part not in _WHOLE]
        yield Field(key, _takes(hint, said), unit, default, _sentence(said.text if said else ""))
        for part in inner:
            many = "[]" if any(get_origin(each) is list for each in _alternatives(hint)) else ""
            yield from _fields(part, f"{key}{many}.")


def _unwrapped(hint: Any) -> tuple[Any, Quantity | Says | None]:  # noqa: ANN401 (any annotation)
    if get_origin(hint) is not Annotated:
        return hint, None
    bare, *metadata = get_args(hint)
    return bare, next((item for item in metadata if isinstance(item, (Quantity, Says))), None)


def _alternatives(hint: Any) -> list[Any]:  # noqa: ANN401 (any annotation)
    if get_origin(hint) in (Union, types.UnionType):
        return [part for part in get_args(hint) if part is not type(None)]
    return [hint]


def _parts(hint: Any) -> list[Any]:  # noqa: ANN401 (any annotation)
    """The types that may stand there, lists opened."""
    return [
        inner for part in _alternatives(hint) for inner in (get_args(part) if get_origin(part) is list else (part,))
    ]


def _takes(hint: Any, said: Quantity | Says | None) -> str:  # noqa: ANN401 (any annotation)
    if isinstance(said, Quantity):
        return _quantity(said)
    words = ", ".join(dict.fromkeys(word for part in _parts(hint) for word in _words(part)))
    many = any(get_origin(part) is list for part in _alternatives(hint))
    return f"list of {words}" if many else words


def _quantity(said: Quantity) -> str:
    dimension = units.DIMENSIONS[said.unit]
    example = "4" if said.whole and "." in dimension.example else dimension.example
    text = f"{'whole number' if said.whole else dimension.name} [{dimension.base}], as `{example}`"
    if said.spread:
        text += ", may carry `±`"
    if said.or_file:
        text += ", or a YAML file"
    if isinstance(said, Limited):
        text = f"`{said.bare}` {text}, or a mapping of limits"
    return text


def _words(part: Any) -> list[str]:  # noqa: ANN401 (any annotation)
    if get_origin(part) is Literal:
        return [f"`{word}`" for word in get_args(part)]
    if is_dataclass(part) or get_origin(part) is dict:
        return ["mapping"]
    return {str: ["text"], bool: ["`true`", "`false`"], float: ["number"], int: ["whole number"]}.get(part, [])


def _yaml(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _sentence(text: str) -> str:
    """The text with a capital letter and a full stop."""
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else ""
