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
    from rlsize.facts.figure import Figure
    from rlsize.planner.backlog import BacklogAnswer, BacklogQuestion, grow_backlog
    from rlsize.planner.fleet import FleetAnswer, FleetQuestion, size_fleet
    from rlsize.planner.options import FleetOption, LoopProblem, TrainerOption
    from rlsize.planner.outlook import outlook_of
    from rlsize.planner.plan import Planned, planned
    from rlsize.planner.space import Limit, Space
    from rlsize.planner.split import SplitAnswer, SplitQuestion, split_gpus
    from rlsize.readers.profiles import Catalogue
    from rlsize.readers.saved_files import read_rates
    from rlsize.readers.scenarios import read_scenario
    from rlsize.simulator.first_order import Pools
    from rlsize.simulator.outcome import Outcome, outcome_of
    from rlsize.simulator.run import simulate
    from rlsize.simulator.setting import (
        EngineSetting,
        Latency,
        LengthSetting,
        Resize,
        RuleSetting,
        Setting,
        SyncSetting,
        TrainerSetting,
        TroubleSetting,
        WorkSetting,
    )

_PUBLIC = {
    "rlsize.errors": ("DoesNotFitError", "InputError", "RlsizeError", "UnfinishedError"),
    "rlsize.facts.figure": ("Figure",),
    "rlsize.planner.backlog": ("BacklogAnswer", "BacklogQuestion", "grow_backlog"),
    "rlsize.planner.fleet": ("FleetAnswer", "FleetQuestion", "size_fleet"),
    "rlsize.planner.options": ("FleetOption", "LoopProblem", "TrainerOption"),
    "rlsize.planner.outlook": ("outlook_of",),
    "rlsize.planner.plan": ("Planned", "planned"),
    "rlsize.planner.space": ("Limit", "Space"),
    "rlsize.planner.split": ("SplitAnswer", "SplitQuestion", "split_gpus"),
    "rlsize.readers.profiles": ("Catalogue",),
    "rlsize.readers.saved_files": ("read_rates",),
    "rlsize.readers.scenarios": ("read_scenario",),
    "rlsize.simulator.first_order": ("Pools",),
    "rlsize.simulator.outcome": ("Outcome", "outcome_of"),
    "rlsize.simulator.run": ("simulate",),
    "rlsize.simulator.setting": (
        "EngineSetting",
        "Latency",
        "LengthSetting",
        "Resize",
        "RuleSetting",
        "Setting",
        "SyncSetting",
        "TrainerSetting",
        "TroubleSetting",
        "WorkSetting",
    ),
}

__all__ = [
    "BacklogAnswer",
    "BacklogQuestion",
    "Catalogue",
    "DoesNotFitError",
    "EngineSetting",
    "Figure",
    "FleetAnswer",
    "FleetOption",
    "FleetQuestion",
    "InputError",
    "Latency",
    "LengthSetting",
    "Limit",
    "LoopProblem",
    "Outcome",
    "Planned",
    "Pools",
    "Resize",
    "RlsizeError",
    "RuleSetting",
    "Setting",
    "Space",
    "SplitAnswer",
    "SplitQuestion",
    "SyncSetting",
    "TrainerOption",
    "TrainerSetting",
    "TroubleSetting",
    "UnfinishedError",
    "WorkSetting",
    "__version__",
    "equations",
    "grow_backlog",
    "outcome_of",
    "outlook_of",
    "planned",
    "read_rates",
    "read_scenario",
    "simulate",
    "size_fleet",
    "split_gpus",
    "units",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (any public name)
    if name not in __all__:
        raise AttributeError(f"module 'rlsize' has no attribute {name!r}")
    module = next((module for module, names in _PUBLIC.items() if name in names), None)
    return getattr(import_module(module), name) if module else import_module(f"rlsize.{name}")
