"""Saved plans: the baseline of a check."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.facts.plan import Plan
from rlsize.readers.validation import opened, validated
from rlsize.readers.yaml_documents import read_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlsize.facts.plan import PlanFigure
    from rlsize.readers.yaml_documents import Document

_AGAIN = "save it again with this rlsize"


def read_plan(path: str) -> Plan:
    """
    The plan in a file.

    Raises:
        InputError: It is none, or one of another version of the format, or some of its numbers are none.
    """
    return plan_of(read_document(path))


def plan_of(document: Document) -> Plan:
    """
    The plan in a document; as `read_plan`.

    Raises:
        InputError: All that is wrong with it.
    """
    try:
        document = opened(document, "plan")
    except InputError as error:
        old = [replace(fault, todo=_AGAIN) if "version" in fault.what else fault for fault in error.faults]
        raise InputError(*old) from None
    plan = validated(Plan, document)
    parts = {"placement": plan.placement, "results": plan.results, "inputs": plan.inputs}
    faults = [fault for part, figures in parts.items() for fault in _faults(document, part, figures)]
    if faults:
        raise InputError(*faults)
    return plan


def _faults(document: Document, part: str, figures: Mapping[str, PlanFigure]) -> Iterator[Fault]:
    """Numbers that a plan cannot hold: none are infinite, and an interval has a low and a high end."""
    for key, figure in figures.items():
        ends = {name: getattr(figure, name) for name in ("value", "low", "high")}
        for name, number in ends.items():
            if isinstance(number, float) and not math.isfinite(number):
                yield Fault(f"{number} is not a finite number", document.where((part, key, name)), _AGAIN)
        if (figure.low is None) != (figure.high is None):
            yield Fault("an interval has a low and a high end", document.where((part, key)), _AGAIN)
        elif figure.low is not None and figure.high is not None and figure.low > figure.high:
            what = f"the low end {figure.low:g} is above the high end {figure.high:g}"
            yield Fault(what, document.where((part, key)), _AGAIN)
