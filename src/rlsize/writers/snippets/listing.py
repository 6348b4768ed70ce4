"""Which frameworks there are: the modules of this folder that name one."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Protocol

from rlsize.writers import snippets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.writers.snippets.snippet import Snippet
    from rlsize.writers.snippets.split import Split


class Framework(Protocol):
    """What the module of a framework offers; names of modules, so in their spelling."""

    NAME: str
    TITLE: str
    SOURCE: str
    VARIANTS: Mapping[str, tuple[str, ...]]
    REFUSED: Mapping[str, tuple[str, str]]

    def snippet(self, split: Split) -> Snippet:
        """The snippet of a split; what cannot be expressed is noted among its refusals."""


def frameworks() -> dict[str, Framework]:
    """Every framework by its name."""
    names = sorted(entry.name for entry in iter_modules(snippets.__path__))
    modules: list[Any] = [import_module(f"{snippets.__name__}.{name}") for name in names]
    return {module.NAME: module for module in modules if hasattr(module, "NAME")}
