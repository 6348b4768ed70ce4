"""
The questions of `rlsize init`: what each asks for, in which words, the usual answer, and how an answer is read.

The same text means the same from a flag and from a terminal, and fails alike.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.dataclass import dataclass
from rlsize.errors import Fault, InputError, noting, suggestion
from rlsize.facts.budget import quantities
from rlsize.facts.fields import Uncertain
from rlsize.quantities.row import Row, Word
from rlsize.quantities.table import PLACES
from rlsize.shell.progress import stop_waiting
from rlsize.units import printable
from rlsize.writers.scenario_file import STARTER
from rlsize.writers.yaml_file import number, scalar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model
    from rlsize.facts.rates import Rates
    from rlsize.shell.inputs import Inputs

RATES_FILES = (".yaml", ".yml")
RATES_FLAG = "--rates"
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")

BUDGET_FLAG = "--budget"
_BOTH_SIDES = {"--rollout-gpus", "--trainer-gpus"}
_LOOPS = (
    "cluster.gpus", "placement.mode", "placement.rollout_gpus", "placement.trainer_gpus", "workload.prompt_tokens",
    "workload.response_tokens.mean", "workload.response_tokens.max",
)  # fmt: skip

_NARROWEST = 20  # columns
_LONGEST_ADVICE = 160  # two lines; what is longer lists names


@dataclass(slots=True)
class Desk:
    """
    What answers are read with, and what they brought along.

    Args:
        inputs: Profiles.
        file: The scenario that is to be written; paths in it start from its folder.
        model: The model that was named.
        gpu: The GPU that was named.
        rates: The rates file that was named.
    """

    inputs: Inputs
    file: str
    model: Model | None = None
    gpu: Gpu | None = None
    rates: Rates | None = None


Read = Callable[[str, str, str, Desk], Any]
"""Takes key, flag, text and desk; gives the value, None for none. Raises InputError with all that is wrong."""


def value(key: str, flag: str, text: str, desk: Desk) -> Any:
    """
    A number with the unit and the limits of its row, as an `Uncertain` where it may carry a spread; else a word of it.

    Words are taken in any case.
    """
    row = PLACES[key]
    if isinstance(row.kind, Word):
        asked = desk.inputs.instead(**{row.key: text.strip().lower()})
        word = asked.choose(row.key)
        asked.settle()
        return word
    try:
        if not row.quantity.spread:  # a ± that the key does not take
            row.quantity.read(text)
    except ValueError as error:
        raise InputError(Fault(str(error), flag)) from None
    asked = desk.inputs.instead(**{row.key: text})
    figure = asked.ask(row.key)
    asked.settle()
    return Uncertain(value=figure.number, deviation=figure.deviation) if row.quantity.spread else figure.value


def words(_: str, flag: str, text: str, __: Desk) -> str:
    """Text as it stands."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(Fault("is not text", flag, "write it in UTF-8")) from None
    if not text.strip():
        raise InputError(Fault("is empty", flag, "write it out, or leave it out"))
    return text


def day(_: str, flag: str, text: str, __: Desk) -> str:
    """A date: a year, a month or a day."""
    said = text.strip()
    found = _DATE.fullmatch(said)
    with suppress(ValueError):
        if found and date(*(int(part or 1) for part in found.groups())):
            return said
    raise InputError(Fault(f"{said[:40]!r} is no date", flag, "write one such as 2026-11-20"))


def gpu(_: str, __: str, text: str, desk: Desk) -> str:
    """The name of a GPU profile."""
    asked = desk.inputs.instead(gpu=text)
    desk.gpu = asked.settled(asked.gpu())
    return desk.gpu.name


def model(key: str, flag: str, text: str, desk: Desk) -> str:
    """The name of a model profile, or the path of a config.json as the scenario says it."""
    asked = desk.inputs.instead(model=text)
    desk.model = asked.settled(asked.model())
    with suppress(InputError):
        return desk.inputs.catalogue.path_of("model", text).stem
    path = _from_scenario(words(key, flag, text, desk), desk.file)
    return path if "/" in path or path.endswith(".json") else f"./{path}"  # as a bare word it could be a profile


def rate(key: str, flag: str, text: str, desk: Desk) -> Any:
    """Tokens per second of an instance, or the path of a rates file as the scenario says it."""
    if flag != RATES_FLAG and not text.strip().endswith(RATES_FILES):
        return value(key, flag, text, desk)
    from rlsize.readers.saved_files import read_rates

    said = words(key, flag, text.strip(), desk)
    if not said.endswith(RATES_FILES):
        raise InputError(Fault(f"{said[-40:]!r} does not end in .yaml", flag, "a scenario names rates files that do"))
    found = read_rates(said)
    if found.instance_tokens_per_second is None:
        todo = "save one with `rlsize observe URL... --save rates.yaml`"
        raise InputError(Fault("holds no instance_tokens_per_second", said, todo))
    desk.rates = found
    return _from_scenario(said, desk.file)


def _from_scenario(path: str, file: str) -> str:
    """A path as it reads from the folder of the scenario; absolute paths, and those from a home, stay."""
    said = Path(path)
    if said.is_absolute() or path.startswith("~"):
        return path
    target = said.parent.resolve() / said.name  # not where a link leads: its name may be what says what it is
    return Path(os.path.relpath(target, Path(file).parent.resolve())).as_posix()


NONE = "none"
PLAN = "plan"
COLOCATED = "colocated"
CAPPED = "async"
RATE = "rates.instance_tokens_per_second"
LIMITS = tuple(quantities())

_LONGEST_OVER_MEAN = 4.0  # how far beyond the mean the usual cut-off stands at least: lengths have long tails
_LONGEST = 8000.0  # the shortest usual cut-off; longer ones double it [token]

Answers = Mapping[str, Any]
Usual = Callable[[Answers, Desk], str]
Applies = Callable[[Answers, Desk], bool]


class Question(NamedTuple):
    """
    One question; its flag is that of its row.

    Args:
        key: What it answers, as a dotted key of the scenario.
        part: The heading that it stands under.
        ask: What is asked, in a few words.
        more: What `?` says.
        none: Words that say that there is no answer.
        read: How an answer is read that is more than a number or a word of its row.
        usual: The answer that is taken where none is given: the starter's without it, or that there is none.
        alone: The same without a terminal, where nobody sees the usual one and agrees.
        applies: Whether it is to be asked at all.
        also: A second flag that answers it.
        profiles: Kind of the profiles that `?` lists.
    """

    key: str
    part: str
    ask: str
    more: str
    usual: Usual | None = None
    none: tuple[str, ...] = ()
    read: Read = value
    alone: str | None = None
    applies: Applies = lambda _, __: True
    also: str = ""
    profiles: str = ""

    @property
    def row(self) -> Row:
        """The quantity that it asks for."""
        return PLACES[self.key]

    @property
    def flag(self) -> str:
        """The flag that answers it."""
        return self.row.said_by

    def suggestion(self, answers: Answers, desk: Desk) -> str:
        """The answer that is taken where none is given."""
        if self.usual is not None:
            return self.usual(answers, desk)
        return self.none[0] if self.none else scalar(STARTER[self.key])

    def answer(self, flag: str, text: str, desk: Desk) -> Any:
        """
        The value that a text means; None where it says that there is none.

        Args:
            flag: Where it was said.
            text: What was said.
            desk: What answers are read with.

        Raises:
            InputError: It means nothing.
        """
        return None if text.strip().lower() in self.none else self.read(self.key, flag, text, desk)


def _usual_node(_: Answers, desk: Desk) -> str:
    return f"{desk.gpu.specification.gpus_per_node.value:g}" if desk.gpu is not None else NONE


def _node_unknown(_: Answers, desk: Desk) -> bool:
    return desk.gpu is not None and not desk.gpu.specification.gpus_per_node.verified


def _usual_longest(answers: Answers, desk: Desk) -> str:
    """A cut-off well beyond the mean, within the model's context."""
    mean = float(answers.get("workload.response_tokens.mean") or STARTER["workload.response_tokens.mean"])
    longest = _LONGEST
    while longest < _LONGEST_OVER_MEAN * mean:
        longest *= 2.0
    if desk.model is not None:
        room = float(desk.model.architecture.max_context) - float(answers.get("workload.prompt_tokens") or 0.0)
        longest = min(longest, max(room, mean))
    return number(longest, "token")


def _today(_: Answers, __: Desk) -> str:
    from datetime import datetime

    return datetime.now().astimezone().date().isoformat()


def _priced(answers: Answers, _: Desk) -> bool:
    return answers.get("prices.gpu_hour") is not None


def _size_unknown(answers: Answers, desk: Desk) -> bool:
    """Whether there is a rate of an instance, and no rates file that says how many GPUs it has."""
    return answers.get(RATE) is not None and (desk.rates is None or desk.rates.gpus_per_instance is None)


def train_unmeasured(_: Answers, desk: Desk) -> bool:
    """Whether no rates file says how quick the trainer is."""
    rates = desk.rates
    return rates is None or (rates.train_seconds is None and rates.consumption_tokens_per_second is None)


def _trainer_unknown(answers: Answers, _: Desk) -> bool:
    """Whether there is a time of a step, and nobody says on how many GPUs."""
    timed = answers.get("rates.train_seconds") is not None
    return timed and answers.get("placement.trainer_gpus") is None


_PARTS = ("Model and GPUs", "One optimizer step", "Placement", "What is measured", "Price and limits")
_GPUS, _STEP, _PLACE, _RATES, MONEY = _PARTS
_MODES = """\
colocated: both sides take turns on the same GPUs. disaggregated (or sync): each has its own, and they take turns. \
one-step-off (or overlapped): the next rollout runs while one trains. async: both never stop, and staleness is capped. \
partial: as sync, but long samples go on in the next step. plan: `rlsize plan` compares them and chooses."""

QUESTIONS = (
    Question(
        "model", _GPUS, "Model: a profile, or the path of a config.json",
        "What is trained. A config.json is the one of its Hugging Face repository.", read=model, profiles="model",
    ),
    Question(
        "cluster.gpu", _GPUS, "GPU: a profile",
        "Its memory, rates and links decide what fits and how quick it is.", read=gpu, profiles="gpu",
    ),
    Question(
        "cluster.gpus", _GPUS, "GPUs, trainer and rollout fleet together",
        "All that there are; how they are split comes later.",
    ),
    Question(
        "cluster.gpus_per_node", _GPUS, "GPUs in a node (the profile only assumes it)",
        "GPUs of one node talk over the fast link, nodes over the network.",
        none=(NONE,), usual=_usual_node, alone=NONE, applies=_node_unknown,
    ),
    Question(
        "algorithm.name", _STEP, "Algorithm: grpo, ppo, rloo, dapo, ...",
        "One of grpo, ppo, rloo, reinforce++, dapo, sft. It says which models there are: ppo adds a critic.",
    ),
    Question(
        "workload.prompts_per_step", _STEP, "Prompts per optimizer step",
        "Times the samples of a prompt, it is the batch of an optimizer step.",
    ),
    Question(
        "workload.group_size", _STEP, "Samples of one prompt (group size)",
        "Group methods such as grpo compare the samples of a prompt; 1 where there is nothing to compare.",
    ),
    Question(
        "workload.prompt_tokens", _STEP, "Prompt tokens, mean",
        "Prompts are computed once for each group, and their KV cache stays while samples run.",
    ),
    Question(
        "workload.response_tokens.mean", _STEP, "Response tokens, mean",
        "What is generated and trained; nothing moves the answer more.",
    ),
    Question(
        "workload.response_tokens.max", _STEP, "Longest response, where generation is cut off",
        "A step waits for its longest samples, unless it runs async.", usual=_usual_longest,
    ),
    Question(
        "placement.mode", _PLACE, "Mode: colocated, disaggregated, async, or plan to choose later",
        _MODES, none=(PLAN,),
    ),
    Question(
        "placement.max_staleness", _PLACE, "Staleness cap, in optimizer steps",
        "How many optimizer steps the trainer may be ahead of the weights that began a sample.",
        none=(NONE,), usual=lambda _, __: scalar(STARTER["placement.max_staleness"]),
        applies=lambda answers, _: answers.get("placement.mode") == CAPPED,
    ),
    Question(
        "placement.trainer_gpus", _PLACE, "Trainer GPUs, or plan to choose later",
        "The rest generate. plan: `rlsize plan` chooses.",
        none=(PLAN, NONE), applies=lambda answers, _: answers.get("placement.mode") not in {None, COLOCATED},
    ),
    Question(
        "placement.rollout_gpus", _PLACE, "Rollout GPUs, or plan to choose later",
        "GPUs of the rollout fleet; all that the trainer leaves when not given.",
        none=(PLAN, NONE), applies=lambda _, __: False,
    ),
    Question(
        RATE, _RATES, "Response tok/s of an instance, or a rates file",
        "A number such as 4000 or 4000 ± 200, or what `rlsize observe` and `rlsize measure` save. "
        "none: it is predicted.",
        none=(NONE,), read=rate, also="--rates",
    ),
    Question(
        "rollout.tensor_parallel", _RATES, "GPUs of that instance (tensor parallelism)",
        "A rate is that of an instance of some size; without it nobody knows how many instances fit.",
        none=(NONE,), applies=_size_unknown,
    ),
    Question(
        "rates.train_seconds", _RATES, "Busy trainer seconds of a step",
        "Log-prob passes and update, without waiting and weight sync: 20, or 20 ± 2. none: it is predicted.",
        none=(NONE,), applies=train_unmeasured,
    ),
    Question(
        "rates.measured_trainer_gpus", _RATES, "GPUs that it was measured on",
        "On other GPUs a step takes another time; without it nobody knows how much.",
        none=(NONE,), applies=_trainer_unknown,
    ),
    Question(
        "prices.gpu_hour", MONEY, "Dollars per GPU-hour",
        "No price is ever assumed: without one no answer has dollars. `rlsize profiles list price` has some.",
        none=(NONE,),
    ),
    Question(
        "prices.as_of", MONEY, "Day of that price",
        "Prices move; the file says when this one held.",
        none=(NONE,), read=day, usual=_today, alone=NONE, applies=_priced,
    ),
    Question(
        "prices.region", MONEY, "Region of that price",
        "Where it holds, in the words of whoever asks it.", none=(NONE,), read=words, applies=_priced,
    ),
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
