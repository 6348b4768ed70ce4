"""Which platforms there are: the modules of this folder that say which one they write."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Protocol

from rlsize.writers import manifests

if TYPE_CHECKING:
    from rlsize.errors import Fault
    from rlsize.writers.manifests.resize import Pods, Resize, Wanted


class Platform(Protocol):
    """What the module of a platform offers; names of modules, so in their spelling."""

    PLATFORM: str
    KIND: str
    API_VERSION: str

    def resize(self, pods: Pods, wanted: Wanted, faults: list[Fault]) -> Resize:
        """The resize; what is missing or cannot be is noted among the faults."""


def platforms() -> dict[str, Platform]:
    """Every platform by its name."""
    names = sorted(entry.name for entry in iter_modules(manifests.__path__))
    modules: list[Any] = [import_module(f"{manifests.__name__}.{name}") for name in names]
    return {module.PLATFORM: module for module in modules if hasattr(module, "PLATFORM")}
