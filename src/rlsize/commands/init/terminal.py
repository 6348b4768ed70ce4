"""The questions of `rlsize init` on a terminal: one line each, wrong answers told at once and asked again."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING, Any

from rlsize.commands.init.questions import LIMITS, MONEY, NONE, QUESTIONS, contradictions, limit
from rlsize.errors import Fault, InputError
from rlsize.shell.progress import stop_waiting
from rlsize.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlsize.commands.init.questions import Desk, Question

_NARROWEST = 20  # columns
_LONGEST_ADVICE = 160  # two lines; what is longer lists names


def on_terminal() -> bool:
    """Whether somebody is there to be asked."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def asked(answers: dict[str, Any], desk: Desk) -> dict[str, Any]:
    """
    All answers: those that flags gave, and those that are asked for.

    Raises:
        InputError: The input ended before the last question.
        KeyboardInterrupt: As it came.
    """
    dialogue = _Dialogue(answers, desk)
    dialogue.say(
        f"A few questions, then {desk.file} is written. Enter takes what stands in brackets, ? says more, "
        "Ctrl-C stops and writes nothing."
    )
    for question in QUESTIONS:
        if question.key not in dialogue.answers and question.applies(dialogue.answers, desk):
            dialogue.ask(question)
    if not any(key.startswith("budget.") for key in answers):
        dialogue.ask_limits()
    return dialogue.answers


class _Dialogue:
    """A terminal, and the answers so far."""

    def __init__(self, answers: dict[str, Any], desk: Desk) -> None:
        from rich.console import Console

        self.answers = dict(answers)
        self._desk = desk
        self._console = Console(highlight=False)
        self._part = ""

    def ask(self, question: Question) -> None:
        """Ask until there is an answer that can be read and contradicts no other."""
        self._head(question.part)
        usual = question.suggestion(self.answers, self._desk)
        while True:
            text = self._line(question.ask, usual)
            if text.endswith("?"):
                self._explain(question, text[:-1].strip())
                continue
            try:
                value = question.answer(question.flag, text or usual, self._desk)
            except InputError as error:
                self._tell(error.faults)
                continue
            if self._taken(question.key, value):
                return

    def ask_limits(self) -> None:
        """Ask for lines of the budget until there is no more."""
        self._head(MONEY)
        ask = "Limit, such as cost_per_step_usd 2.5 (? lists them)"
        while (text := self._line(ask, NONE)).lower() not in {"", NONE}:
            if text.endswith("?"):
                self._list(LIMITS, text[:-1].strip(), len(LIMITS))
                continue
            try:
                taken = self._taken(*limit(text, ""))
            except InputError as error:
                self._tell(error.faults)
                continue
            ask = "Another limit" if taken else ask

    def say(self, text: str, style: str = "", indent: int = 0) -> None:
        """Print a text, wrapped to the terminal; what others wrote cannot drive it."""
        from textwrap import fill

        from rich.text import Text

        width = max(_NARROWEST, self._console.width - 1)
        margin = " " * indent
        wrapped = fill(printable(text), width, initial_indent=margin, subsequent_indent=margin, break_on_hyphens=False)
        self._console.print(Text(wrapped, style=style), soft_wrap=True)

    def _taken(self, key: str, value: Any) -> bool:
        """Whether an answer holds beside the others; it is kept then."""
        faults = contradictions({**self.answers, key: value}, self._desk)
        if faults:
            self._tell(faults)
        else:
            self.answers[key] = value
        return not faults

    def _head(self, part: str) -> None:
        if part != self._part:
            self._part = part
            self._console.print()
            self.say(part, "bold")

    def _line(self, ask: str, usual: str) -> str:
        """
        What was typed, without spaces around it; empty where Enter takes the usual answer.

        Raises:
            InputError: The input ended.
        """
        from rich.text import Text

        stop_waiting()  # it is a person who takes their time
        while True:
            try:
                text = self._console.input(Text.assemble(ask, (f" [{usual}]: ", "dim"))).strip()
                text.encode()  # bytes that are no text may come as surrogates
            except UnicodeError:
                self._tell([Fault("is not text", todo="type it in UTF-8")])
            except EOFError:
                self._console.print()
                what = "the input ended before the last question, so nothing is written"
                todo = "answer all, or give --yes: then flags and usual answers decide"
                raise InputError(Fault(what, todo=todo)) from None
            else:
                return text

    def _explain(self, question: Question, part: str) -> None:
        """Say more; of profiles, which there are."""
        self.say(question.more, "dim", 2)
        if question.profiles:
            # names that `?` shows one by one
            self._list(self._desk.inputs.catalogue.names(question.profiles), part, 32)

    def _list(self, names: Sequence[str], part: str, most: int) -> None:
        """The names that hold a text; their families where they are many."""
        found = [name for name in names if part.lower() in name.lower()]
        if not found:
            self.say(f"None of {len(names)} has {part!r} in its name.", "dim", 2)
        elif len(found) <= most:
            self.say(f"{', '.join(found)}.", "dim", 2)
        else:
            families = Counter(name.partition("-")[0] for name in found)
            largest = families.most_common(1)[0][0]
            more = f"{largest}? lists those with {largest} in their name"
            self.say(f"{len(found)} in these families: {', '.join(sorted(families))}; {more}.", "dim", 2)

    def _tell(self, faults: Iterable[Fault]) -> None:
        """What is wrong, and what to do; a flag as the place means nothing here."""
        for fault in faults:
            place = f"{fault.where}: " if fault.where and not fault.where.startswith("--") else ""
            todo = "? lists what there is" if len(fault.todo) > _LONGEST_ADVICE else fault.todo
            self.say(f"{place}{fault.what}" + (f"; {todo}" if todo else ""), "red", 2)
