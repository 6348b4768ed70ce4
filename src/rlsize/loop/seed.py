"""The seed of the draws behind bands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.estimates.figures import generator, uncertain_inputs

if TYPE_CHECKING:
    from random import Random

    from rlsize.loop.said import Said

_SEEDS = 2**63  # generators take no negative seed
_LONGEST_SEED = 18


def seed_of(said: Said) -> int:
    """
    The seed of the draws behind bands.

    Raises:
        InputError: It is no whole number.
    """
    return int(_text(said)) % _SEEDS


def random_for(said: Said, question: object) -> Random | None:
    """
    A seeded generator for the bands of a question; None where none of its inputs is uncertain.

    Raises:
        InputError: The seed is no whole number.
    """
    text = _text(said)
    if not uncertain_inputs(question):
        return None
    return generator(text)


def _text(said: Said) -> str:
    shown = str(said.name("seed")[0] or "0")
    digits = shown.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(shown) <= _LONGEST_SEED):
        raise InputError(Fault(f"{shown[:20]!r} is not a whole number", "--seed", "write 0 or 42"))
    return shown
