"""Flags that hold several things: numbers and words with commas between them, and pools of GPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from rlsize.commands import flags
from rlsize.errors import InputError, suggestion
from rlsize.facts.figure import absent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.facts.fields import Quantity
    from rlsize.planner.offers import Offer
    from rlsize.shell.inputs import Inputs

_POOL_PARTS = 3
_MOST_GPUS = 32_768  # every number of GPUs is tried with every other, so there must be an end
Word = TypeVar("Word", bound=str)


def offers_of(inputs: Inputs, texts: Iterable[str], flag: str) -> tuple[Offer, ...]:
    """GPUs that a pool may be built of."""
    from rlsize.planner.offers import Offer

    found = []
    for text in texts:
        parts = text.split(":")
        if len(parts) > _POOL_PARTS or not parts[0]:
            inputs.fault(f"{text[:60]!r} is no pool", flag, "write GPU:COUNT:PRICE, such as h20:64:1.2")
            continue
        try:
            gpu = inputs.catalogue.get("gpu", parts[0])
        except InputError as error:
            inputs.blame(error, flag)
            continue
        count, price = (part or None for part in (*parts[1:], "", "")[:2])
        side = inputs.apart()
        most = side.number("gpus", flag, count, flags.COUNT)
        hour = side.number("gpu_hour_usd", flag, price, flags.DOLLARS)
        inputs.faults += side.faults
        if not most.known and not side.faults:
            inputs.fault(f"{text[:60]!r} does not say how many GPUs there are", flag, f"write {gpu.name}:COUNT")
        if most.known:
            refuse_too_many(inputs, most.number, f"{flag} {text}")
        name = f"{'rollout' if 'rollout' in flag else 'trainer'}_gpu_hour_usd"
        found.append(
            Offer(
                gpu=gpu,
                gpu_hour=replace(hour, key=name, source=f"{flag} {text}") if hour.known else absent(name, flag),
                most=most.number if most.known else None,
            )
        )
    return tuple(found)


def refuse_too_many(inputs: Inputs, gpus: float, where: str) -> None:
    """Note a fault where there are more GPUs than a plan can be searched for."""
    if gpus > _MOST_GPUS:
        inputs.fault(f"{gpus:,.0f} GPUs are more than the {_MOST_GPUS:,} that are searched", where, "give fewer")


def listed_numbers(inputs: Inputs, text: str | None, flag: str, kind: Quantity) -> tuple[float, ...]:
    """Numbers with commas between them."""
    if text is None:
        return ()
    side = inputs.apart()
    key = flag.removeprefix("--").replace("-", "_")
    found = [side.number(key, flag, part.strip(), kind) for part in text.split(",")]
    inputs.faults += side.faults
    return tuple(sorted({figure.number for figure in found if figure.known}))


def listed_words(inputs: Inputs, text: str | None, flag: str, known: Iterable[Word]) -> list[Word]:
    """Words with commas between them, each one of a few."""
    names = {str(word): word for word in known}
    found = []
    for part in [] if text is None else text.split(","):
        word = part.strip()
        if word in names:
            found.append(names[word])
        else:
            inputs.fault(f"{word!r} is unknown", flag, suggestion(word, names))
    return list(dict.fromkeys(found))
