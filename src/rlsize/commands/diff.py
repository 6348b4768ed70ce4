"""`rlsize diff`: what changed between two scenarios, plans or rates files, and what that did to every result."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rlsize.commands import check_flags, flags
from rlsize.commands import diff_flags as own
from rlsize.errors import Fault, InputError, suggestion
from rlsize.reports.report import Report
from rlsize.shell.beliefs import CalibrationFile

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlsize.readers.yaml_documents import Document

_KINDS = {"scenario": "diff_scenarios", "plan": "diff_plans", "rates": "diff_rates"}
_INSTEAD = "name two scenarios, two saved plans, or two rates files"


def diff(
    before: own.Before,
    after: own.After,
    of: own.Of = None,
    split: own.SplitBy = None,
    scenario: own.Scenario = None,
    accept_lower_bound: flags.AcceptLowerBound = False,
    steps: check_flags.Steps = None,
    gpu_hour: flags.GpuHour = None,
    rollout_gpu_hour: flags.RolloutGpuHour = None,
    trainer_gpu_hour: flags.TrainerGpuHour = None,
    price: flags.Price = None,
    calibration: CalibrationFile = None,
    seed: flags.Seed = "0",
    profiles: flags.Profiles = None,
) -> Report:
    """
    What changed between two files, and what that did to every result.

    Example:  rlsize diff before.yaml after.yaml
    """
    from rlsize.commands.plan_asked import PlanFlags, PriceFlags, RateFlags

    prices = PriceFlags(
        gpu_hour=gpu_hour, rollout_gpu_hour=rollout_gpu_hour, trainer_gpu_hour=trainer_gpu_hour, price=price
    )
    texts = (of, split, scenario, steps, gpu_hour, rollout_gpu_hour, trainer_gpu_hour, price, calibration)
    given = (*(text is not None for text in texts), accept_lower_bound)
    said = own.DiffFlags(
        plan=PlanFlags(
            prices=prices,
            rates=RateFlags(accept_lower_bound=accept_lower_bound),
            steps=steps,
            calibration=calibration,
            seed=seed,
        ),
        of=of,
        split=split,
        scenario=scenario,
        folders=tuple(profiles or ()),
        given=tuple(flag for flag, is_given in zip(own.FOR, given, strict=True) if is_given),
    )
    return _compared(before, after, said)


def _compared(before: str, after: str, said: own.DiffFlags) -> Report:
    """
    The answer.

    Raises:
        InputError: A file that cannot be read, two kinds of files, or flags that say nothing about them.
    """
    documents = _opened(before, after)
    kind = _kind(*documents)
    faults = [
        Fault(f"says nothing about two {kind} files", flag, "leave it out")
        for flag in said.given
        if kind not in own.FOR[flag]
    ]
    if said.split is not None and said.split not in own.SPLITS:
        faults.append(Fault(f"{said.split[:40]!r} is unknown", "--split", suggestion(said.split[:40], own.SPLITS)))
    if faults:
        raise InputError(*faults)
    answer: Callable[..., Report] = import_module(f"rlsize.commands.{_KINDS[kind]}").answer
    return answer(before, after, said)


def _opened(*paths: str) -> list[Document]:
    """
    The files as documents.

    Raises:
        InputError: What is wrong with either.
    """
    from rlsize.readers.yaml_documents import read_document

    found: list[Document] = []
    faults: list[Fault] = []
    for path in dict.fromkeys(paths):
        try:
            found.append(read_document(path))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    return found if len(found) > 1 else found * len(paths)


def _kind(before: Document, after: Document) -> str:
    """
    What both files are.

    Raises:
        InputError: They differ, or cannot be compared.
    """
    kinds = [_said(document) for document in (before, after)]
    for document, kind in zip((before, after), kinds, strict=True):
        if kind is None:
            todo = "its first line should be such as `rlsize: {kind: scenario, version: 1}`"
            raise InputError(Fault("does not say what kind of file it is", document.name, todo))
    names = [f"a {str(kind)[:40]} file" for kind in kinds]
    if kinds[0] != kinds[1]:
        what = f"is {names[1]}, and {before.name} is {names[0]}"
        raise InputError(Fault(what, after.name, _INSTEAD))
    if kinds[0] not in _KINDS:
        raise InputError(Fault(f"is {names[0]}, which cannot be compared", before.name, _INSTEAD))
    return str(kinds[0])


def _said(document: Document) -> Any:
    """The kind that a header names; None where there is no header."""
    data: Any = document.data
    header = data.get("rlsize") if isinstance(data, dict) else None
    return header.get("kind") if isinstance(header, dict) else None
