"""The frameworks that are known: profiles, forks with what holds for their parents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.frameworks.told import era_of, in_era, inherited, named_version

if TYPE_CHECKING:
    from rlsize.facts.framework import Framework
    from rlsize.readers.profiles import Catalogue

_KIND = "framework"


def framework(catalogue: Catalogue, name: str) -> Framework:
    """
    A framework by name or alias, as it was in a version where one is said: `NAME` or `NAME@VERSION`.

    Raises:
        InputError: There is none, its profile or that of a parent is wrong, or what is said is no version.
    """
    called, version = named_version(name)
    found: Framework = catalogue.get(_KIND, called)
    if found.parent:
        found = inherited(found, _parent(catalogue, found))
    return in_era(found, era_of(found, (), version, called))


def _parent(catalogue: Catalogue, found: Framework) -> Framework:
    """
    What a framework is a fork of.

    Raises:
        InputError: There is none, or it is a fork itself.
    """
    parent: Framework = catalogue.get(_KIND, found.parent)
    if parent.parent:
        todo = f"name {parent.parent}, of which {parent.name} is a fork itself"
        raise InputError(Fault(f"{parent.name} is no parent of forks", str(catalogue.path_of(_KIND, found.name)), todo))
    return parent


def frameworks(catalogue: Catalogue) -> dict[str, Framework]:
    """
    All frameworks by name.

    Raises:
        InputError: A profile is wrong.
    """
    return {name: framework(catalogue, name) for name in catalogue.names(_KIND)}
