"""Answers of `rlsize init` from flags: what is not said is as usual; what cannot all hold is told, all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.commands.init.questions import CAPPED, LIMITS, QUESTIONS
from rlsize.errors import Fault, InputError, noting, suggestion
from rlsize.facts.budget import quantities
from rlsize.quantities.table import PLACES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rlsize.commands.init.questions import Desk

BUDGET_FLAG = "--budget"
_BOTH_SIDES = {"--rollout-gpus", "--trainer-gpus"}
_LOOPS = (
    "cluster.gpus", "placement.mode", "placement.rollout_gpus", "placement.trainer_gpus", "workload.prompt_tokens",
    "workload.response_tokens.mean", "workload.response_tokens.max",
)  # fmt: skip


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
        with noting(desk.inputs.faults):
            if flags:
                answers[question.key] = question.answer(flags[-1], said[flags[-1]], desk)
            elif question.key == "cluster.gpus" and said.keys() >= _BOTH_SIDES:
                continue  # they add up to what they are
            elif alone and question.applies(answers, desk):
                text = question.suggestion(answers, desk) if question.alone is None else question.alone
                answers[question.key] = question.answer(question.flag, text, desk)
    for line in limits:
        with noting(desk.inputs.faults):
            key, value = limit(line, BUDGET_FLAG)
            if key in answers:
                desk.inputs.fault(f"{key.partition('.')[2]} has two limits", BUDGET_FLAG, "keep one of them")
            answers[key] = value
    desk.inputs.faults += contradictions(answers, desk)
    desk.inputs.settle()
    return answers


def limit(line: str, flag: str) -> tuple[str, Any]:
    """
    One line of a budget: dotted key and value.

    Args:
        line: Such as `cost_per_step_usd 2.5` or `cost_per_step_usd=2.5`.
        flag: Where it was said.

    Raises:
        InputError: There is no such limit, or no such number.
    """
    name, _, text = line.strip().replace("=", " ", 1).replace(":", " ", 1).partition(" ")
    if name not in LIMITS:
        raise InputError(Fault(f"{name[:40]!r} cannot be limited", flag, suggestion(name[:40], LIMITS)))
    if not text.strip():
        raise InputError(Fault(f"{name} has no limit", flag, f"write {name}=NUMBER"))
    try:
        return f"budget.{name}", quantities()[name].read(text.strip())
    except ValueError as error:
        raise InputError(Fault(str(error), flag)) from None


def contradictions(answers: Mapping[str, Any], desk: Desk) -> list[Fault]:
    """What cannot all hold among the answers so far; the flags that say it stand as the place."""
    from rlsize.loop.lengths import lengths
    from rlsize.loop.pools import pools

    texts = {PLACES[key].key: answers[key] for key in _LOOPS if answers.get(key) is not None}
    said = desk.inputs.instead(**texts)
    if "gpus" in texts:
        pools(said)
    if "response_tokens" in texts:
        lengths(said, desk.model)
    return [*said.faults, *_in_placement(answers), *_in_prices(answers)]


def _in_placement(answers: Mapping[str, Any]) -> Iterator[Fault]:
    """Only a loop that never stops has a cap, and pools keep to the budget."""
    cap, mode = answers.get("placement.max_staleness"), answers.get("placement.mode")
    if cap is not None and mode not in {None, CAPPED}:
        what = f"a staleness cap of {cap:g} with mode {mode}: only async has a cap"
        yield Fault(what, "--max-staleness, --mode", "leave the cap out, or take async")
    for side in ("trainer", "rollout"):
        planned, most = answers.get(f"placement.{side}_gpus"), answers.get(f"budget.{side}_gpus")
        if planned is not None and most is not None and planned > most:
            what = f"{planned:g} {side} GPUs are planned, and the budget allows {most:g}"
            yield Fault(what, f"--{side}-gpus, --budget", "change one of them")


def _in_prices(answers: Mapping[str, Any]) -> Iterator[Fault]:
    """A day or a region is that of a price."""
    for name, what, flag in (("as_of", "a day", "--as-of"), ("region", "a region", "--region")):
        said = answers.get(f"prices.{name}")
        if said is not None and "prices.gpu_hour" in answers and answers["prices.gpu_hour"] is None:
            yield Fault(f"{what} of a price ({str(said)[:40]!r}) without the price", flag, "give --gpu-hour")
