"""What rlsize has written, read again: rates, plans, observations and calibrations; and budgets, which users write."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.errors import Fault, InputError, refuse
from rlsize.facts.board import Board
from rlsize.facts.budget import Budget
from rlsize.facts.calibration import Calibration
from rlsize.facts.observations import RunObservation
from rlsize.facts.plan import Plan
from rlsize.facts.rates import Rates
from rlsize.readers.validation import opened, validated
from rlsize.readers.yaml_documents import Document, read_document

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlsize.facts.plan import PlanFigure
    from rlsize.readers.scenarios import ScenarioFile
    from rlsize.readers.yaml_documents import Path_

_LEAST, _MOST = 1e-12, 1e15  # of what a run can do; numbers beyond are no measurement, and overflow further on
_RECORD_AGAIN = "record it again with `rlsize observe ... --record FILE`"
_SAVE_AGAIN = "save it again with this rlsize"


def read_rates(source: str | Document) -> Rates:
    """
    The rates of a file, in response tokens: a rate that counts prompt tokens too is converted.

    Args:
        source: A rates file, or an observation, which holds the rates that were seen; or what it holds.

    Raises:
        InputError: All that is wrong with the file.
    """
    document = _read(source)
    if document.kind == "observation":
        observed = read_observation(document).rates
        if observed is None:
            todo = "observe again with --record, or with --save for a rates file"
            raise InputError(Fault("is an observation without rates", document.name, todo))
        return _in_response_tokens(observed)
    document = opened(document, "rates")
    rates = validated(Rates, document)
    refuse(_rate_faults(rates, document))
    return _in_response_tokens(rates)


def read_plan(source: str | Document) -> Plan:
    """
    The plan in a file, the baseline of a check.

    Args:
        source: The file, or what it holds.

    Raises:
        InputError: It is none, or one of another version of the format, or some of its numbers are none.
    """
    document = _read(source)
    try:
        document = opened(document, "plan")
    except InputError as error:
        old = [fault._replace(todo=_SAVE_AGAIN) if "version" in fault.what else fault for fault in error.faults]
        raise InputError(*old) from None
    plan = validated(Plan, document)
    parts = {"placement": plan.placement, "results": plan.results, "inputs": plan.inputs}
    refuse(fault for part, figures in parts.items() for fault in _plan_faults(document, part, figures))
    return plan


def read_observation(source: str | Document) -> RunObservation:
    """
    The observation in a file: the baseline of `diagnose --before`, the target of a rollback.

    Args:
        source: The file, or what it holds.

    Raises:
        InputError: All that is wrong with it.
    """
    document = opened(_read(source), "observation")
    found = validated(RunObservation, document)
    refuse(_column_faults(found, document))
    return found


def read_calibration(source: str | Document) -> Calibration:
    """
    The calibration in a file, checked against the constants of this version.

    Args:
        source: The file, or what it holds.

    Raises:
        InputError: It is none, or was made with other constants.
    """
    from rlsize.estimates.all_constants import all_constants
    from rlsize.estimates.calibration_belief import objection

    document = opened(_read(source), "calibration")
    found = validated(Calibration, document)
    against = objection(found, all_constants())
    if against:
        todo = f"it is of rlsize {found.made_by}: run `rlsize calibrate` again"
        raise InputError(Fault(against, document.name, todo))
    return found


def read_board(source: str | Document) -> Board:
    """
    The accuracy board in a file, the baseline of a validation.

    Raises:
        InputError: All that is wrong with it.
    """
    return validated(Board, opened(_read(source), "board"))


class BudgetFile(NamedTuple):
    """
    A budget and where each of its limits stands.

    Args:
        budget: What the file says.
        document: The file, for lines.
        path: The key below which the budget stands; empty for a file of its own.
    """

    budget: Budget
    document: Document
    path: Path_ = ()

    @property
    def name(self) -> str:
        """The file's name."""
        return self.document.name

    def where(self, *keys: str) -> str:
        """File, line and key of a limit."""
        return self.document.where((*self.path, *keys))

    def line(self, *keys: str) -> int | None:
        """The line of a limit, or of its nearest parent that the file has; None where there is none."""
        return self.document.line((*self.path, *keys))


def read_budget(source: str | Document) -> BudgetFile:
    """
    The budget in a file of its own.

    Args:
        source: The file, or what it holds.

    Raises:
        InputError: Everything that is wrong with it; a budget without limits is wrong, as it would pass all.
    """
    document = opened(_read(source), "budget")
    budget = validated(Budget, document)
    if not budget.limits:
        raise InputError(Fault("sets no limit", document.name, "add a line such as `trainer_idle_fraction: 5%`"))
    return BudgetFile(budget, document)


def budget_in(scenario: ScenarioFile) -> BudgetFile | None:
    """The budget of a scenario; None where it sets no limit."""
    budget = scenario.scenario.budget
    return BudgetFile(budget, scenario.document, ("budget",)) if budget.limits else None


def _read(source: str | Document) -> Document:
    return source if isinstance(source, Document) else read_document(source)


def _rate_faults(rates: Rates, document: Document) -> Iterator[Fault]:
    """What is wrong between fields that are each right."""
    try:
        datetime.fromisoformat(rates.measured_at)
    except ValueError:
        what, todo = f"{rates.measured_at[:40]!r} is no date", "write one such as 2026-11-20T16:12:00+00:00"
        yield Fault(what, document.where(("measured_at",)), todo)
    known = (rates.instance_tokens_per_second, rates.train_seconds, rates.consumption_tokens_per_second)
    if all(rate is None for rate in known):
        todo = "give instance_tokens_per_second, train_seconds or consumption_tokens_per_second"
        yield Fault("holds no rate", document.name, todo)
    if len(set(rates.includes)) != len(rates.includes):
        yield Fault("names a part twice", document.where(("includes",)), "name each part once")
    if rates.counts == "total" and (rates.prompt_share is None or rates.prompt_share >= 1.0):
        todo = "give prompt_share, the share of prompt tokens (below 1), or a rate that counts response tokens"
        yield Fault("counts prompt and response tokens, which cannot be converted", document.where(("counts",)), todo)


def _in_response_tokens(rates: Rates) -> Rates:
    if rates.counts == "response" or rates.prompt_share is None:
        return rates
    share, rate = 1.0 - rates.prompt_share, rates.instance_tokens_per_second
    converted: dict[str, Any] = {}
    if rate is not None:
        why = f"converted from total tokens, of which {100 * share:.4g} % are response tokens"
        spread = None if rate.spread is None else rate.spread * share
        whole = f"{rate.why}; {why}" if rate.why else why
        converted["instance_tokens_per_second"] = replace(rate, mean=rate.mean * share, spread=spread, why=whole)
    instances = []
    for entry in rates.instances:
        busy = None if entry.busy_tokens_per_second is None else entry.busy_tokens_per_second * share
        scaled = replace(entry, tokens_per_second=entry.tokens_per_second * share, busy_tokens_per_second=busy)
        instances.append(scaled)
    return replace(rates, counts="response", instances=instances, **converted)


def _plan_faults(document: Document, part: str, figures: Mapping[str, PlanFigure]) -> Iterator[Fault]:
    """Numbers that a plan cannot hold: none are infinite, and an interval has a low and a high end."""
    for key, figure in figures.items():
        for name, number in (("value", figure.value), ("low", figure.low), ("high", figure.high)):
            if isinstance(number, float) and not math.isfinite(number):
                yield Fault(f"{number} is not a finite number", document.where((part, key, name)), _SAVE_AGAIN)
        if (figure.low is None) != (figure.high is None):
            yield Fault("an interval has a low and a high end", document.where((part, key)), _SAVE_AGAIN)
        elif figure.low is not None and figure.high is not None and figure.low > figure.high:
            what = f"the low end {figure.low:g} is above the high end {figure.high:g}"
            yield Fault(what, document.where((part, key)), _SAVE_AGAIN)


def _column_faults(found: RunObservation, document: Document) -> Iterator[Fault]:
    """Columns hold one finite, sensible number for each step."""
    for name, values in found.columns.items():
        where = document.where(("columns", name))
        if len(values) != len(found.steps):
            yield Fault(f"{len(values)} values for {len(found.steps)} steps", where, _RECORD_AGAIN)
        elif not all(math.isfinite(value) and value >= 0 for value in values):
            yield Fault("a value is negative or not finite", where, _RECORD_AGAIN)
        elif not all(value == 0 or _LEAST <= value <= _MOST for value in values):
            yield Fault("a value is beyond anything measured", where, _RECORD_AGAIN)
