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
    "BacklogAnswer": "rlsize.planner.backlog",
    "BacklogQuestion": "rlsize.planner.backlog",
    "Catalogue": "rlsize.readers.profiles",
    "DoesNotFitError": "rlsize.errors",
    "EngineSetting": "rlsize.simulator.setting",
    "Figure": "rlsize.facts.figure",
    "FleetAnswer": "rlsize.planner.fleet",
    "FleetOption": "rlsize.planner.options",
    "FleetQuestion": "rlsize.planner.fleet",
    "InputError": "rlsize.errors",
    "Latency": "rlsize.simulator.setting",
    "LengthSetting": "rlsize.simulator.setting",
    "Limit": "rlsize.planner.space",
    "LoopProblem": "rlsize.planner.options",
    "Outcome": "rlsize.simulator.outcome",
    "Planned": "rlsize.planner.plan",
    "Pools": "rlsize.simulator.first_order",
    "RlsizeError": "rlsize.errors",
    "Resize": "rlsize.simulator.setting",
    "RuleSetting": "rlsize.simulator.setting",
    "Setting": "rlsize.simulator.setting",
    "Space": "rlsize.planner.space",
    "SplitAnswer": "rlsize.planner.split",
    "SplitQuestion": "rlsize.planner.split",
    "SyncSetting": "rlsize.simulator.setting",
    "TrainerOption": "rlsize.planner.options",
    "TrainerSetting": "rlsize.simulator.setting",
    "TroubleSetting": "rlsize.simulator.setting",
    "UnfinishedError": "rlsize.errors",
    "WorkSetting": "rlsize.simulator.setting",
    "equations": "",
    "grow_backlog": "rlsize.planner.backlog",
    "outcome_of": "rlsize.simulator.outcome",
    "outlook_of": "rlsize.planner.outlook",
    "planned": "rlsize.planner.plan",
    "read_rates": "rlsize.readers.saved_files",
    "read_scenario": "rlsize.readers.scenarios",
    "simulate": "rlsize.simulator.run",
    "size_fleet": "rlsize.planner.fleet",
    "split_gpus": "rlsize.planner.split",
    "units": "",
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
    if name not in _PUBLIC:
        raise AttributeError(f"module 'rlsize' has no attribute {name!r}")
    module = _PUBLIC[name]
    return getattr(import_module(module), name) if module else import_module(f"rlsize.{name}")
