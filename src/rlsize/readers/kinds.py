"""The kinds of files that rlsize reads: the fact that each holds, and the folder of profiles where one lies."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Kind:
    """
    One kind of file.

    Args:
        name: What its header says.
        declared: Module and class of what it holds, below `rlsize`.
        folder: Folder of its profiles, under the shipped one and the user's; empty where it is no profile.
    """

    name: str
    declared: str
    folder: str = ""

    def fact(self) -> type[Any]:
        """The dataclass of what it holds; loaded when it is asked for."""
        module, _, name = self.declared.rpartition(".")
        found: type[Any] = getattr(import_module(f"rlsize.{module}"), name)
        return found


_KINDS = (
    Kind("scenario", "quantities.scenario.Scenario"),
    Kind("gpu", "facts.gpu.Gpu", "gpus"),
    Kind("link", "facts.link.Link", "links"),
    Kind("model", "facts.model.Model", "models"),
    Kind("price", "facts.price.Price", "prices"),
    Kind("cluster", "facts.cluster.Cluster", "clusters"),
    Kind("rates", "facts.rates.Rates", "rates"),
    Kind("calibration", "facts.calibration.Calibration"),
    Kind("budget", "facts.budget.Budget"),
    Kind("plan", "facts.plan.Plan"),
    Kind("observation", "facts.observation_file.RunObservation"),
)

KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _KINDS})
"""Every kind by name."""

FOLDERS: Mapping[str, str] = MappingProxyType({kind.name: kind.folder for kind in _KINDS if kind.folder})
"""The folder of each kind of profile."""
