"""
What trackers keep on disk: MLflow's folders (`metrics/KEY`, one value a line), and the databases of MLflow and Trackio.

A folder or database with several runs is refused with their names, as a run is one.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.readers.byte_sources import json_of
from rlsize.readers.logs.figures import UNREADABLE, Row
from rlsize.readers.logs.forms import Form
from rlsize.readers.logs.numbers import flat_numbers

if TYPE_CHECKING:
    import sqlite3

    from rlsize.readers.logs.figures import Skips

SQLITE = b"SQLite format 3\0"
_MOST_FILES = 2_000
_MOST_VALUES = 5_000_000
_SHOWN = 5


FORM = Form(name="tracker", rows=lambda *_: iter(()), marks=(), scattered=True)
"""What a tracker's values are: rows of one value each."""


def folder_of_metrics(path: str) -> Path | None:
    """
    MLflow's folder of metrics in a folder; None if there is none.

    Raises:
        InputError: There are those of several runs.
    """
    top = Path(path)
    here = [top] if top.name == "metrics" else []
    found = [*here, *(each for each in sorted(top.glob("**/metrics")) if each.is_dir() and any(each.iterdir()))]
    if len(found) > 1:
        raise InputError(_several(path, [str(each.parent) for each in found]))
    return found[0] if found else None


def _several(path: str, runs: list[str]) -> Fault:
    shown = ", ".join(runs[:_SHOWN]) + (", ..." if len(runs) > _SHOWN else "")
    return Fault(f"has {len(runs)} runs: {shown}", path, "name the folder of one run, or export it as CSV")


def folder_values(folder: Path, skips: Skips) -> list[Row]:
    """The values of MLflow's files, by step."""
    found = []
    for file in sorted(file for file in folder.rglob("*") if file.is_file())[:_MOST_FILES]:
        key = file.relative_to(folder).as_posix()
        for number, line in enumerate(file.read_text("utf-8", "replace").splitlines(), 1):
            parts = line.split()
            try:
                found.append(Row(float(parts[2]), {key: float(parts[1])}, f"{key}, line {number:,}"))
            except (ValueError, IndexError):
                skips.add(UNREADABLE, f"{key}, line {number:,}")
    return sorted(found, key=lambda row: row.step or 0.0)


def database_values(path: str, skips: Skips) -> list[Row]:
    """
    The values of a database's only run, by step.

    Raises:
        InputError: It cannot be read, has no table of metrics, or several runs.
    """
    import sqlite3

    try:
        with sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True) as base:
            return _values(base, path, skips)
    except sqlite3.Error as error:
        raise InputError(Fault(f"cannot be read: {error}", path, "export the run as CSV or JSON")) from None


def _values(base: sqlite3.Connection, path: str, skips: Skips) -> list[Row]:
    columns = {str(row[1]) for row in base.execute("pragma table_info(metrics)")}
    run = next((name for name in ("run_uuid", "run_id", "run_name") if name in columns), None)
    if run is None or "step" not in columns or not {"value", "metrics"} & columns:
        raise InputError(Fault("is a database without a table of metrics", path, "export the run as CSV or JSON"))
    runs = [str(row[0]) for row in base.execute(f"select distinct {run} from metrics")]  # noqa: S608 (a name of three)
    if len(runs) > 1:
        raise InputError(_several(path, runs))
    if "value" in columns:
        pairs = base.execute("select step, key, value from metrics order by step")
        return [_row(step, {str(key): value}, skips) for step, key, value in islice(pairs, _MOST_VALUES)]
    rows = base.execute("select step, metrics from metrics order by step")
    return [_row(step, _object(text), skips) for step, text in islice(rows, _MOST_VALUES)]


def _object(text: object) -> dict[str, object]:
    found = json_of(str(text))
    return found if isinstance(found, dict) else {}


def _row(step: object, said: dict[str, object], skips: Skips) -> Row:
    place = f"step {step}"
    values = flat_numbers(said)
    if not values:
        skips.add(UNREADABLE, place)
    return Row(float(step) if isinstance(step, int | float) else None, values, place)
