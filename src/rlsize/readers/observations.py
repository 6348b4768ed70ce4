"""Saved observations: the baseline of `diagnose --before`, the target of a rollback."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.facts.observation_file import RunObservation
from rlsize.readers.validation import opened, validated
from rlsize.readers.yaml_documents import read_document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.readers.yaml_documents import Document

_LEAST, _MOST = 1e-12, 1e15  # of what a run can do; numbers beyond are no measurement, and overflow further on
_AGAIN = "record it again with `rlsize observe ... --record FILE`"


def read_observation(path: str) -> RunObservation:
    """
    The observation in a file.

    Raises:
        InputError: All that is wrong with it.
    """
    return observation_of(read_document(path))


def observation_of(document: Document) -> RunObservation:
    """
    The observation in a document; as `read_observation`.

    Raises:
        InputError: All that is wrong with it.
    """
    document = opened(document, "observation")
    found = validated(RunObservation, document)
    faults = [*_faults(found, document)]
    if faults:
        raise InputError(*faults)
    return found


def _faults(found: RunObservation, document: Document) -> Iterator[Fault]:
    """Columns hold one finite, sensible number for each step."""
    for name, values in found.columns.items():
        where = document.where(("columns", name))
        if len(values) != len(found.steps):
            yield Fault(f"{len(values)} values for {len(found.steps)} steps", where, _AGAIN)
        elif not all(math.isfinite(value) and value >= 0 for value in values):
            yield Fault("a value is negative or not finite", where, _AGAIN)
        elif not all(value == 0 or _LEAST <= value <= _MOST for value in values):
            yield Fault("a value is beyond anything measured", where, _AGAIN)
