"""
Files of records: YAML lists of mappings, each mapping read by the class of record that knows its fields.

A class is a module of this package with `CLASS`, `matches` and `record`, found by listing the package. A row that no
class knows, or that its class refuses, is kept with the reason: one odd row must not hide the others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError, Refused
from rlsize.estimates.recorded.registry import Profiles
from rlsize.facts.records import ListedRecord, Listing, Record, RefusedRecord
from rlsize.readers import records as package
from rlsize.readers.yaml_documents import parse_document, read_text
from rlsize.units import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rlsize.readers.profiles import Catalogue

LARGEST_FILE = 16 * 2**20
_LONGEST_ID = 120
_LONGEST_REASON = 200
# What reading foreign data can stumble over; a class that meets one of them refuses that row, and no more.
_STUMBLES = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def classes() -> dict[str, Any]:
    """The module of each class of record, by class."""
    names = sorted(f"{package.__name__}.{entry.name}" for entry in iter_modules(package.__path__))
    modules = [import_module(name) for name in names if name != __name__]
    return {module.CLASS: module for module in modules if hasattr(module, "CLASS") and hasattr(module, "matches")}


def published_files() -> list[Path]:
    """The published records that come with the checkout; none where only the package is installed."""
    return sorted((Path(__file__).parents[4] / "benchmarks" / "published").glob("*.yaml"))


def read_records(paths: Iterable[str | Path], catalogue: Catalogue, known: Mapping[str, Any] | None = None) -> Listing:
    """
    The records of files.

    Args:
        paths: Where they lie.
        catalogue: The profiles that records name.
        known: The classes of record; those of this package unless said.

    Raises:
        InputError: A file cannot be read, or is no list.
    """
    rows = [row for path in paths for row in _rows(path)]
    return listed(rows, catalogue, classes() if known is None else known)


def listed(rows: Sequence[tuple[str, Any]], catalogue: Catalogue, known: Mapping[str, Any]) -> Listing:
    """
    Rows as records of their classes.

    Args:
        rows: Each row with its place in words, which names it where it has no `id`.
        catalogue: The profiles that records name.
        known: The classes of record.
    """
    records: list[ListedRecord] = []
    refused: list[RefusedRecord] = []
    seen: dict[str, list[Any]] = {}
    copies = 0
    for place, (where, row) in enumerate(rows):
        name = _name(row, where)
        if row in seen.setdefault(name, []):
            copies += 1
            continue
        seen[name].append(row)
        found = _read(place, name, row, catalogue, known)
        if isinstance(found, ListedRecord):
            records.append(found)
        else:
            refused.append(found)
    counted = Counter((entry.class_name, entry.record.id) for entry in records)
    repeated = tuple(dict.fromkeys(name for (_, name), count in counted.items() if count > 1))
    return Listing(records=tuple(records), refused=tuple(refused), repeated=repeated, copies=copies)


def profiles_of(catalogue: Catalogue) -> Callable[[Record], Profiles]:
    """A function that looks up the profiles that a record names, and refuses a record whose profiles are not there."""

    def found(record: Record) -> Profiles:
        if not record.gpu:
            raise Refused("names no GPU")
        try:
            named = getattr(record, "reference", "")
            return Profiles(
                model=catalogue.get("model", record.model),
                gpu=catalogue.get("gpu", record.gpu),
                reference=catalogue.get("model", named) if named else None,
            )
        except InputError as error:
            raise Refused(error.faults[0].what) from None

    return found


def _rows(path: str | Path) -> list[tuple[str, Any]]:
    data = parse_document(read_text(path, LARGEST_FILE), str(path)).data
    if data is None:
        return []
    if not isinstance(data, list):
        todo = "write each record as an item of one list: `- id: ...`"
        raise InputError(Fault("is not a list of records", str(path), todo))
    name = Path(path).name
    return [(f"{name}#{index}", row) for index, row in enumerate(data, start=1)]


def _name(row: Any, where: str) -> str:  # noqa: ANN401 (YAML content)
    name = row.get("id") if isinstance(row, dict) else None
    plain = isinstance(name, (str, int, float)) and not isinstance(name, bool)
    return printable(str(name).strip())[:_LONGEST_ID] or where if plain else where


def _read(
    place: int,
    name: str,
    row: Any,  # noqa: ANN401 (YAML content)
    catalogue: Catalogue,
    known: Mapping[str, Any],
) -> ListedRecord | RefusedRecord:
    if not isinstance(row, dict):
        return RefusedRecord(place=place, id=name, class_name="", reason="is not a mapping of fields")
    row = {**row, "id": name}
    matching = [label for label, module in known.items() if _matches(module, row)]
    refusal = RefusedRecord(place=place, id=name, class_name="", reason="has fields of no known class of record")
    for label in matching:
        found = _as(label, known[label], row, catalogue)
        if isinstance(found, Record):
            others = [f"fields of {other} too; read as {label}" for other in matching if other != label]
            record = replace(found, assumed=(*found.assumed, *others)) if others else found
            return ListedRecord(place=place, class_name=label, record=record)
        refusal = RefusedRecord(place=place, id=name, class_name=label, reason=found)
    return refusal


def _as(label: str, module: Any, row: Mapping[str, Any], catalogue: Catalogue) -> Record | str:  # noqa: ANN401 (a class's module)
    """The row as a record of a class, or why it is none."""
    try:
        record: Record = module.record(row, catalogue)
    except Refused as refusal:
        reason = str(refusal)
    except InputError as error:
        reason = error.faults[0].what
    except _STUMBLES as error:
        reason = f"cannot be read: {type(error).__name__}: {error}"
    else:
        return record
    return printable(reason)[:_LONGEST_REASON] or f"is no record of {label}"


def _matches(module: Any, row: Mapping[str, Any]) -> bool:  # noqa: ANN401 (a class's module)
    try:
        return bool(module.matches(row))
    except _STUMBLES:
        return False
