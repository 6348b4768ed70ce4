"""All stages of predictions with their constants: one module `constants_*` of this package for each."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType
from typing import TYPE_CHECKING

import rlsize.estimates as package
from rlsize.estimates.belief import BandSource, variance_shares
from rlsize.estimates.constants import Constant, Stage
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.belief import Belief

_PREFIX = "constants_"


@cache
def all_stages() -> Mapping[str, Stage]:
    """Every stage by name."""
    names = sorted(entry.name for entry in iter_modules(package.__path__) if entry.name.startswith(_PREFIX))
    modules = [import_module(f"{package.__name__}.{name}") for name in names]
    found = [module.STAGE for module in modules if isinstance(getattr(module, "STAGE", None), Stage)]
    return MappingProxyType({stage.name: stage for stage in found})


@cache
def all_constants() -> Mapping[str, Constant]:
    """Every constant by name."""
    return MappingProxyType({one.name: one for stage in all_stages().values() for one in stage.constants})


def band_sources(
    belief: Belief, predict: Callable[[Mapping[str, Real]], Real], noise: float = 0.0, least: float = 0.0
) -> tuple[BandSource, ...]:
    """The constants that make the band of a prediction wide, from a share of the variance on, the largest first."""
    shares = variance_shares(belief, predict, noise)
    return tuple(
        BandSource(name=name, meaning=all_constants()[name].meaning, share=share)
        for name, share in shares.items()
        if share > 0 and share >= least
    )


def constants_of(belief: Belief) -> dict[str, Figure]:
    """The constants of a belief by name, as figures that say where they come from."""
    return {name: _figure(belief, name, value) for name, value in belief.central().items()}


def _figure(belief: Belief, name: str, value: float) -> Figure:
    known = all_constants()[name]
    narrowed = belief.spread(name) < known.spread * (1 - 1e-6)
    how = "calibrated" if narrowed else known.basis
    source = f"{known.meaning} ({how}: {known.source})"
    return Figure(key=name, value=value, provenance="measured" if narrowed else "default", source=source)
