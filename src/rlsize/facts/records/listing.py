"""Records as they were listed: which class each is of, in which order they stood, and which could not be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.facts.records.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRecord:
    """
    A record that could be read.

    Args:
        place: Where it stood among all rows of all files, from 0. [1]
        class_name: Its class, such as rollout.
        record: What it says.
    """

    place: int
    class_name: str
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRecord:
    """
    A row that is not graded.

    Args:
        place: Where it stood among all rows of all files, from 0. [1]
        id: Its name; file and position where it has none.
        class_name: Its class; empty where no class knows such fields.
        reason: Why, in a line.
    """

    place: int
    id: str
    class_name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """
    What files of records hold.

    Args:
        records: Those that could be read, in the order of the files.
        refused: Those that could not.
        repeated: Names that more than one record of a class bears, though the records differ.
        copies: Rows that say exactly what one before them said; they are left out. [1]
    """

    records: tuple[ListedRecord, ...] = ()
    refused: tuple[RefusedRecord, ...] = ()
    repeated: tuple[str, ...] = ()
    copies: int = 0
