"""Answers of `rlsize init` from flags alone: what is not said is as usual; all faults at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.commands import init_reading as reading
from rlsize.commands.init_contradictions import contradictions
from rlsize.commands.init_questions import LIMITS, QUESTIONS
from rlsize.errors import Fault, InputError, suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.commands.init_questions import Question
    from rlsize.commands.init_reading import Desk

BUDGET_FLAG = "--budget"


def flagged(said: Mapping[str, str], limits: Iterable[str], desk: Desk, *, alone: bool) -> dict[str, Any]:
    """
    What flags answer.

    Args:
        said: Text by flag.
        limits: Lines of the budget.
        desk: What answers are read with; it holds the faults so far.
        alone: Whether nobody is asked for the rest, which is as usual then.

    Raises:
        InputError: All that is wrong.
    """
    answers: dict[str, Any] = {}
    for question in QUESTIONS:
        flags = [flag for flag in (question.flag, question.also) if flag in said]
        if len(flags) > 1:
            desk.inputs.fault("both say the same", ", ".join(flags), "leave one of them out")
        try:
            if flags:
                answers[question.key] = question.read(question.key, flags[-1], said[flags[-1]], desk)
            elif alone and question.applies(answers, desk):
                answers[question.key] = _usual(question, answers, desk)
        except InputError as error:
            desk.inputs.faults += error.faults
    _add_limits(answers, limits, desk)
    desk.inputs.faults += contradictions(answers, desk)
    desk.inputs.settle()
    return answers


def _usual(question: Question, answers: dict[str, Any], desk: Desk) -> Any:
    text = question.usual(answers, desk) if question.alone is None else question.alone
    return question.read(question.key, question.flag, text, desk)


def _add_limits(answers: dict[str, Any], limits: Iterable[str], desk: Desk) -> None:
    for line in limits:
        try:
            key, value = limit(line, BUDGET_FLAG, desk)
        except InputError as error:
            desk.inputs.faults += error.faults
            continue
        if key in answers:
            desk.inputs.fault(f"{key.partition('.')[2]} has two limits", BUDGET_FLAG, "keep one of them")
        answers[key] = value


def limit(line: str, flag: str, desk: Desk) -> tuple[str, Any]:
    """
    One line of a budget: dotted key and value.

    Args:
        line: Such as `cost_per_step_usd 2.5` or `cost_per_step_usd=2.5`.
        flag: Where it was said.
        desk: What answers are read with.

    Raises:
        InputError: There is no such limit, or no such number.
    """
    name, _, text = line.strip().replace("=", " ", 1).replace(":", " ", 1).partition(" ")
    if name not in LIMITS:
        raise InputError(Fault(f"{name[:40]!r} cannot be limited", flag, suggestion(name[:40], LIMITS)))
    if not text.strip():
        raise InputError(Fault(f"{name} has no limit", flag, f"write {name}=NUMBER"))
    key = f"budget.{name}"
    return key, reading.number(key, flag, text.strip(), desk)
