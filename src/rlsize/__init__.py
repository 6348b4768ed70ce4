"""
rlsize: size and plan the rollout fleet and the trainer of an RL post-training run.

The names below are the public Python API; everything else may change. They load when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rlsize import equations, units
    from rlsize.errors import DoesNotFitError, InputError, RlsizeError, UnfinishedError
    from rlsize.facts.figure import Figure
    from rlsize.planner.fleet import FleetAnswer, FleetQuestion, size_fleet

__version__ = "0.1.0"

_PUBLIC = {
    "DoesNotFitError": "rlsize.errors",
    "Figure": "rlsize.facts.figure",
    "FleetAnswer": "rlsize.planner.fleet",
    "FleetQuestion": "rlsize.planner.fleet",
    "InputError": "rlsize.errors",
    "RlsizeError": "rlsize.errors",
    "UnfinishedError": "rlsize.errors",
    "equations": "",
    "size_fleet": "rlsize.planner.fleet",
    "units": "",
}

__all__ = [
    "DoesNotFitError",
    "Figure",
    "FleetAnswer",
    "FleetQuestion",
    "InputError",
    "RlsizeError",
    "UnfinishedError",
    "__version__",
    "equations",
    "size_fleet",
    "units",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (any public name)
    if name not in _PUBLIC:
        raise AttributeError(f"module 'rlsize' has no attribute {name!r}")
    module = _PUBLIC[name]
    return getattr(import_module(module), name) if module else import_module(f"rlsize.{name}")
