"""Every key that a profile reads or writes was seen where frameworks say their keys, or is named as unread."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from rlsize.facts.framework import Framework
from rlsize.frameworks.told import keys_of, normal
from rlsize.readers.frameworks import frameworks
from rlsize.readers.profiles import Catalogue

KEYS = Path(__file__).parent / "keys"
KNOWN = frameworks(Catalogue())
LISTED = sorted(path.stem for path in KEYS.glob("*.txt"))
LOADED = {"verl", "openrlhf", "trl", "areal", "skyrl"}
"""Those whose written configurations their own code loads (tests/frameworks_loaded)."""
AROUND = ("env.", "launcher.", "batch.", "server.", "accelerate.", "deepspeed.", "values.")
"""What stands around a framework."""
JOB = {"cluster.gpu", "cluster.nodes", "cluster.gpus_per_node"}
"""What the job that starts it has, where the framework has no such keys of its own."""


def seen(name: str) -> set[str]:
    """The keys of a list; what begins with # says where they were seen."""
    lines = (KEYS / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# "), "the first line says repository and version"
    return {line for line in lines if not line.startswith("#")}


def asked(framework: Framework) -> set[str]:
    """The keys that a profile reads, has a default for, or writes."""
    read = keys_of(framework) | set(framework.defaults)
    written = {*framework.writes, *(key for variant in framework.variants.values() for key in variant.sets)}
    return {key for key in (*read, *map(normal, written)) if not key.startswith(AROUND)}


def is_seen(key: str, keys: set[str]) -> bool:
    """Whether a list has a key, a key below it, or a pattern that holds it."""
    return any(fnmatchcase(key, one) or one.startswith(f"{key}.") for one in keys)


def test_every_framework_is_loaded_or_has_a_list() -> None:
    """Forks apart, which have the keys of their parents."""
    assert {name for name, one in KNOWN.items() if not one.parent} == LOADED | set(LISTED)


@pytest.mark.parametrize("name", LISTED)
def test_a_key_is_listed_or_named_as_unread(name: str) -> None:
    """What a profile writes and nobody has seen is told to whoever gets it."""
    framework, keys = KNOWN[name], seen(name)
    missing = {key for key in asked(framework) if not is_seen(key, keys)} - set(map(normal, framework.unread)) - JOB
    assert not missing


@pytest.mark.parametrize("name", LISTED)
def test_no_key_is_named_as_unread_that_is_listed(name: str) -> None:
    """So that nobody is told to check what was checked."""
    keys = seen(name)
    assert not {key for key in KNOWN[name].unread if is_seen(normal(key), keys)}


@pytest.mark.parametrize("name", LISTED)
def test_a_made_up_key_is_not_listed(name: str) -> None:
    """No pattern is so wide that it takes any key."""
    assert not is_seen("actor.no_such_key", seen(name))
