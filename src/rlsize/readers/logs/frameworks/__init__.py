"""What the keys of each framework mean, one file for each, found by listing this folder."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.readers.logs.mapping import Framework


@cache
def frameworks() -> dict[str, Framework]:
    """All frameworks, by name."""
    names = sorted(module.name for module in iter_modules(__path__))
    found = [import_module(f"{__name__}.{name}").FRAMEWORK for name in names]
    return {framework.name: framework for framework in found}
