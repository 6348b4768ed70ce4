"""One profile as a page: every number with its unit, its source and whether anybody verified it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from rlsize.facts.fields import Quantity, Uncertain
from rlsize.facts.figure import Figure
from rlsize.facts.sourced import Sourced, unverified
from rlsize.reports.report import Column, Report, Table, Unseen
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.facts.figure import Value

# A key whose ending says the unit, for each unit that a field may declare.
_ENDINGS: Mapping[str, str] = {
    "B": "_bytes", "B/s": "_bytes_per_second", "FLOP/s": "_flops", "s": "_seconds", "W": "_watts", "usd": "_usd",
    "token": "_tokens", "token/s": "_tokens_per_second", "param": "_params",
}  # fmt: skip
# Told in the headline, below, or in tables of their own.
_APART = frozenset({"name", "title", "aliases", "sources", "notes"})
_SOURCE_COLUMNS = (Column("key", "", "left"), Column("says", "what it is", "left", wide=True))


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """
    One value of a profile.

    Args:
        path: Its dotted path.
        value: The bare value.
        unit: Its base unit; empty for words, counts and ratios.
        source: The key of the profile's sources; empty where the field has none.
        verified: False where nobody has verified it.
        note: What to know about it.
    """

    path: str
    value: Any
    unit: str = ""
    source: str = ""
    verified: bool = True
    note: str = ""

    @property
    def shown(self) -> str:
        """The value for people, marked where nobody has verified it."""
        text = show(self.value, _ENDINGS.get(self.unit, ""))
        return text if self.verified else f"{text} (unverified)"


def profile_page(kind: str, name: str, profile: Any, path: str) -> Report:
    """
    All that one profile says.

    Args:
        kind: Its kind.
        name: Its name.
        profile: The profile.
        path: Its file.
    """
    doubtful, aliases = unverified(profile), getattr(profile, "aliases", ())
    also = [f"also called: {', '.join(aliases)}"] if aliases else []
    results: dict[str, Value] = {"kind": kind, "name": name, "file": path, "unverified_numbers": len(doubtful)}
    return Report(
        headline=f"{getattr(profile, 'title', name)} ({kind} {name})",
        results=tuple(Figure(key=key, value=value, source=path) for key, value in results.items()),
        quiet=frozenset(results),
        tables=_tables(profile, long_keys=kind == "framework"),
        warnings=(f"nobody has verified {', '.join(doubtful)}",) if doubtful else (),
        notes=(*getattr(profile, "notes", ()), *also, f"file: {path}"),
    )


def entries(fact: Any, path: str = "", above: tuple[str, bool] | None = None) -> Iterator[Entry]:
    """
    Every value of a fact, in the order of its fields, without those that are absent.

    Args:
        fact: A profile, or a part of one.
        path: Its dotted path.
        above: Source, and whether it is verified, of the fact that holds it, for values that have none of their own.
    """
    hints = get_type_hints(type(fact), include_extras=True)
    for field in dataclasses.fields(fact):
        value, where = getattr(fact, field.name), f"{path}.{field.name}" if path else field.name
        if where not in _APART and not (above and field.name in {"source", "verified"}):
            yield from _values(value, where, _unit(hints[field.name]), above)


def _values(value: Any, path: str, unit: str, above: tuple[str, bool] | None) -> Iterator[Entry]:
    if value is None or value in ("", (), [], {}):
        return
    if isinstance(value, Sourced):
        yield Entry(path, value.value, unit, value.source, value.verified, value.note)
    elif isinstance(value, Uncertain):
        yield Entry(path, value.value, unit)
    elif isinstance(value, (Mapping, list, tuple)):
        for key, part in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from _values(part, f"{path}.{key}", unit, above)
    elif dataclasses.is_dataclass(value):
        source = getattr(value, "source", None)
        named = (source, getattr(value, "verified", True)) if isinstance(source, str) else above
        yield from entries(value, path, named)
    else:
        source, verified = above or ("", True)
        yield Entry(path, value, unit, source, verified)


def _unit(hint: Any) -> str:
    """The unit that a field's annotation declares, at any depth."""
    for part in (*getattr(hint, "__metadata__", ()), *get_args(hint)):
        found = part.unit if isinstance(part, Quantity) else _unit(part)
        if found:
            return found
    return ""


def _tables(profile: Any, *, long_keys: bool) -> dict[str, Table]:
    """The values by section; where keys are long, they may wrap too."""
    sections: dict[str, list[Entry]] = {}
    for entry in entries(profile):
        head, _, rest = entry.path.partition(".")
        sections.setdefault(head if rest and rest != "value" else "general", []).append(entry)
    tables = {section: _section(section, found, long_keys=long_keys) for section, found in sections.items()}
    sources = getattr(profile, "sources", {})
    if sources:
        rows = tuple({"key": key, "says": text} for key, text in sources.items())
        tables["sources"] = Table(title="sources", columns=_SOURCE_COLUMNS, rows=rows)
    return tables


def _section(section: str, found: list[Entry], *, long_keys: bool) -> Table:
    def name(entry: Entry) -> str:
        return entry.path.removeprefix(f"{section}.").replace(".", " ").replace("_", " ")

    def told(entry: Entry) -> str:
        return f"{entry.shown}; {entry.note}" if entry.note else entry.shown

    sourced = any(entry.source for entry in found)
    cells: tuple[Column | Unseen, ...] = (
        Column("entry", "", "left", wide=long_keys, of=name),
        Column("shown", "value", "left", wide=True, of=told),
        Column("source", "source", "left", wide=long_keys) if sourced else Unseen("source"),
        *map(Unseen, ("path", "value", "unit", "verified", "note")),
    )
    return Table.of(section, found, cells)
