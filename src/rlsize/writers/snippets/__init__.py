"""A split as a framework's own configuration keys: one file per framework, found by listing this folder."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.writers.snippets.snippet import Framework


def frameworks() -> dict[str, Framework]:
    """Every framework by its name: what the modules of this folder call FRAMEWORK."""
    modules = (import_module(f"{__name__}.{entry.name}") for entry in iter_modules(__path__))
    found: list[Framework] = [module.FRAMEWORK for module in modules if hasattr(module, "FRAMEWORK")]
    return {framework.name: framework for framework in sorted(found, key=lambda one: one.name)}
