"""How `rlsize init` reads one answer: the same text means the same from a flag and from a terminal, and fails alike."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError
from rlsize.facts.fields import Uncertain
from rlsize.quantities.row import Word
from rlsize.quantities.table import PLACES

if TYPE_CHECKING:
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model
    from rlsize.facts.rates import Rates
    from rlsize.shell.inputs import Inputs

RATES_FILES = (".yaml", ".yml")
RATES_FLAG = "--rates"
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")


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


def words(key: str, flag: str, text: str, desk: Desk) -> str:  # noqa: ARG001 (every reader takes the same)
    """Text as it stands."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(Fault("is not text", flag, "write it in UTF-8")) from None
    if not text.strip():
        raise InputError(Fault("is empty", flag, "write it out, or leave it out"))
    return text


def day(key: str, flag: str, text: str, desk: Desk) -> str:  # noqa: ARG001 (every reader takes the same)
    """A date: a year, a month or a day."""
    said = text.strip()
    found = _DATE.fullmatch(said)
    with suppress(ValueError):
        if found and date(*(int(part or 1) for part in found.groups())):
            return said
    raise InputError(Fault(f"{said[:40]!r} is no date", flag, "write one such as 2026-11-20"))


def gpu(key: str, flag: str, text: str, desk: Desk) -> str:  # noqa: ARG001 (every reader takes the same)
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
