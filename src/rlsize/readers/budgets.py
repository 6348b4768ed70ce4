"""Budgets: from a file of their own or from a scenario, with the place of each limit kept for messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.facts.budget import Budget
from rlsize.readers.validation import opened, validated
from rlsize.readers.yaml_documents import Document, read_document

if TYPE_CHECKING:
    from rlsize.readers.scenarios import ScenarioFile
    from rlsize.readers.yaml_documents import Path_


@dataclass(frozen=True, slots=True)
class BudgetFile:
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
        full, lines = (*self.path, *keys), self.document.lines
        return next((lines[full[:end]] for end in range(len(full), 0, -1) if full[:end] in lines), None)


def read_budget(path: str) -> BudgetFile:
    """
    The budget in a file.

    Raises:
        InputError: Everything that is wrong with it; a budget without limits is wrong, as it would pass all.
    """
    return budget_of(read_document(path))


def budget_of(document: Document) -> BudgetFile:
    """
    The budget in a document; as `read_budget`.

    Raises:
        InputError: Everything that is wrong with it.
    """
    document = opened(document, "budget")
    budget = validated(Budget, document)
    if not budget.limits:
        raise InputError(Fault("sets no limit", document.name, "add a line such as `trainer_idle_fraction: 5%`"))
    return BudgetFile(budget, document)


def budget_in(scenario: ScenarioFile) -> BudgetFile | None:
    """The budget of a scenario; None where it sets no limit."""
    budget = scenario.scenario.budget
    return BudgetFile(budget, scenario.document, ("budget",)) if budget.limits else None
