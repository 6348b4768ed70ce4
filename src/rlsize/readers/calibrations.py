"""A calibration file, checked against the constants of this version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.estimates.all_constants import all_constants
from rlsize.estimates.calibration_belief import objection
from rlsize.facts.calibration import Calibration
from rlsize.readers.validation import opened, validated
from rlsize.readers.yaml_documents import read_document

if TYPE_CHECKING:
    from rlsize.readers.yaml_documents import Document


def read_calibration(path: str) -> Calibration:
    """
    The calibration in a file.

    Raises:
        InputError: It is none, or was made with other constants.
    """
    return calibration_of(read_document(path))


def calibration_of(document: Document) -> Calibration:
    """
    The calibration in a document; as `read_calibration`.

    Raises:
        InputError: All that is wrong with it.
    """
    document = opened(document, "calibration")
    found = validated(Calibration, document)
    against = objection(found, all_constants())
    if against:
        where = document.name
        raise InputError(Fault(against, where, f"it is of rlsize {found.made_by}: run `rlsize calibrate` again"))
    return found
