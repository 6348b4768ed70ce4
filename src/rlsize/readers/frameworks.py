"""The frameworks that are known: profiles, forks with what holds for their parents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.frameworks.told import inherited

if TYPE_CHECKING:
    from rlsize.facts.framework import Framework
    from rlsize.readers.profiles import Catalogue

_KIND = "framework"


def framework(catalogue: Catalogue, name: str) -> Framework:
    """
    A framework by name or alias.

    Raises:
        InputError: There is none, or its profile or that of a parent is wrong.
    """
    found: Framework = catalogue.get(_KIND, name)
    if not found.parent:
        return found
    parent: Framework = catalogue.get(_KIND, found.parent)
    if parent.parent:
        todo = f"name {parent.parent}, of which {parent.name} is a fork itself"
        raise InputError(Fault(f"{parent.name} is no parent of forks", str(catalogue.path_of(_KIND, name)), todo))
    return inherited(found, parent)


def frameworks(catalogue: Catalogue) -> dict[str, Framework]:
    """
    All frameworks by name.

    Raises:
        InputError: A profile is wrong.
    """
    return {name: framework(catalogue, name) for name in catalogue.names(_KIND)}
