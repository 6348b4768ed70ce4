"""A scenario's words are those of the flags, and a key that nothing reads says so."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import rlsize
from rlsize.commands.iteration import MODES
from rlsize.facts import scenario
from rlsize.facts.algorithm import BYTES_PER_GRADIENT, OPTIMIZERS, RECOMPUTATIONS
from rlsize.facts.dtype import BYTES_PER_PARAM
from rlsize.facts.fields import Uncertain
from rlsize.facts.rl_algorithm import ALGORITHMS
from rlsize.planner.caching import ROUTINGS

SOURCES = [path.read_text(encoding="utf-8") for path in (Path(rlsize.__file__).parent / "cli").glob("*.py")]
QUOTED = re.compile(r'"([a-z_]+(?:\.(?:[a-z_]+|\{\w+\}))+)"')
UNUSED = "not used by this version"


def words(hint: Any) -> set[str]:
    """The words of a Literal, however deep it stands in a hint."""
    return {word for part in get_args(hint) for word in ({part} if isinstance(part, str) else words(part))}


@pytest.mark.parametrize(
    ("choice", "field", "flag"),
    [
        (scenario.AlgorithmChoice, "name", ALGORITHMS),
        (scenario.PlacementChoice, "mode", MODES),
        (scenario.RolloutChoice, "routing", ROUTINGS),
        (scenario.RolloutChoice, "dtype", BYTES_PER_PARAM),
        (scenario.RolloutChoice, "kv_dtype", BYTES_PER_PARAM),
        (scenario.WeightSyncChoice, "dtype", BYTES_PER_PARAM),
        (scenario.TrainerChoice, "optimizer", OPTIMIZERS),
        (scenario.TrainerChoice, "gradients", BYTES_PER_GRADIENT),
        (scenario.TrainerChoice, "recompute", RECOMPUTATIONS),
    ],
)
def test_a_scenario_takes_the_words_of_the_flag(choice: type, field: str, flag: Collection[str]) -> None:
    """What a flag takes may stand in a file, and the other way round."""
    assert words(get_type_hints(choice)[field]) == set(flag)


def leaves(kind: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every key that holds a value, dotted, with what is said about it."""
    hints = get_type_hints(kind, include_extras=True)
    for field in fields(kind):
        hint = hints[field.name]
        parts = (hint, *get_args(hint), *(inner for part in get_args(hint) for inner in get_args(part)))
        inner = [part for part in parts if is_dataclass(part) and part is not Uncertain and isinstance(part, type)]
        key = f"{prefix}{field.name}"
        for part in inner:
            yield from leaves(part, f"{key}.")
        if not inner:
            said = next(item for item in hint.__metadata__ if hasattr(item, "text"))
            yield key, said.text


def test_every_key_is_read_by_a_command_or_says_that_none_does() -> None:
    """A key that is accepted in silence and read by nobody is a trap."""
    quoted = {key for text in SOURCES for key in QUOTED.findall(text)}
    known = re.compile("|".join(re.sub(r"\\\{\w+\\\}", "[a-z_]+", re.escape(key)) for key in quoted))
    for key, text in leaves(scenario.Scenario):
        assert bool(known.fullmatch(key)) != (UNUSED in text), key
