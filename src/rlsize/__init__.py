"""
rlsize: size and plan the rollout fleet and the trainer of an RL post-training run.

The names below are the public Python API; everything else may change. They load when first used. `rlsize.equations`
holds the equations by topic (`rlsize.equations.matching.matched_instances`); they take floats or numpy arrays.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rlsize.version import VERSION as __version__  # noqa: N811 (the name that packages give it)

if TYPE_CHECKING:
    from rlsize import equations, units
    from rlsize.errors import DoesNotFitError, InputError, RlsizeError, UnfinishedError
    from rlsize.estimates.backlog import BacklogAnswer, BacklogQuestion, grow_backlog
    from rlsize.facts.figure import Figure
    from rlsize.planner.fleet import FleetAnswer, FleetQuestion, size_fleet
    from rlsize.planner.split import SplitAnswer, SplitQuestion, split_gpus
    from rlsize.readers.profiles import Catalogue
    from rlsize.readers.rates import read_rates
    from rlsize.readers.scenarios import read_scenario

_PUBLIC = {
    "BacklogAnswer": "rlsize.estimates.backlog",
    "BacklogQuestion": "rlsize.estimates.backlog",
    "Catalogue": "rlsize.readers.profiles",
    "DoesNotFitError": "rlsize.errors",
    "Figure": "rlsize.facts.figure",
    "FleetAnswer": "rlsize.planner.fleet",
    "FleetQuestion": "rlsize.planner.fleet",
    "InputError": "rlsize.errors",
    "RlsizeError": "rlsize.errors",
    "SplitAnswer": "rlsize.planner.split",
    "SplitQuestion": "rlsize.planner.split",
    "UnfinishedError": "rlsize.errors",
    "equations": "",
    "grow_backlog": "rlsize.estimates.backlog",
    "read_rates": "rlsize.readers.rates",
    "read_scenario": "rlsize.readers.scenarios",
    "size_fleet": "rlsize.planner.fleet",
    "split_gpus": "rlsize.planner.split",
    "units": "",
}

__all__ = [
    "BacklogAnswer",
    "BacklogQuestion",
    "Catalogue",
    "DoesNotFitError",
    "Figure",
    "FleetAnswer",
    "FleetQuestion",
    "InputError",
    "RlsizeError",
    "SplitAnswer",
    "SplitQuestion",
    "UnfinishedError",
    "__version__",
    "equations",
    "grow_backlog",
    "read_rates",
    "read_scenario",
    "size_fleet",
    "split_gpus",
    "units",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (any public name)
    if name not in _PUBLIC:
        raise AttributeError(f"module 'rlsize' has no attribute {name!r}")
    module = _PUBLIC[name]
    return getattr(import_module(module), name) if module else import_module(f"rlsize.{name}")
