"""
Which predictors there are: one module of this package for each class of record, found by listing the package.

A module is a predictor when it has `CLASS` and `predict`. What it must offer is `Predictor`; what it may offer beside
that is asked for by the functions below, which know what to do without.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from rlsize.estimates import recorded
from rlsize.facts.quantisation import WIDTHS
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.equations._ops import Real
    from rlsize.estimates.constants import Stage
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model

AnyRecord: TypeAlias = Any
"""A record of whichever class a predictor is of: each class has a dataclass of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles:
    """The profiles that a record names; its reference model where that is another than the policy."""

    model: Model
    gpu: Gpu
    reference: Model | None = None


class Predictor(Protocol):
    """What the module of a class of record offers; names of modules, so in their spelling."""

    CLASS: str
    STAGES: tuple[Stage, ...]

    def predict(self, record: AnyRecord, profiles: Profiles, values: Mapping[str, Any]) -> Mapping[str, Real]:
        """The measured fields of a record from values of the constants, in the record's own units."""

    def graded(self, record: AnyRecord) -> str:
        """The measured field that counts."""

    def family(self, record: AnyRecord) -> tuple[Any, ...]:
        """What records share that one calibration can serve."""

    def noise(self, record: AnyRecord) -> float:
        """Standard deviation of the logarithm of one measurement."""


def predictors() -> dict[str, Predictor]:
    """Every predictor by its class, in the order of their names."""
    names = sorted(entry.name for entry in iter_modules(recorded.__path__))
    modules: list[Any] = [import_module(f"{recorded.__name__}.{name}") for name in names]
    return {module.CLASS: module for module in modules if hasattr(module, "CLASS") and hasattr(module, "predict")}


def relation(predictor: Predictor, one: AnyRecord, other: AnyRecord) -> str:
    """
    How two records of a family differ, in words: "same layout", "other GPU count", ...

    A predictor may say so itself with `relation(one, other)`, or with `layout_key(record)`; without either, GPUs and
    the record's `layout` decide.
    """
    own = getattr(predictor, "relation", None)
    if own is not None:
        return str(own(one, other))
    key = getattr(predictor, "layout_key", _layout)
    return "same layout" if key(one) == key(other) else "other layout"


def cell(predictor: Predictor, record: AnyRecord, profiles: Profiles) -> str:
    """
    Which row of a table of errors a record belongs to, in words.

    A predictor may say so with `cell(record, profiles)`; without, it is dense or MoE, and the GPU's maker unless that
    is NVIDIA.
    """
    own = getattr(predictor, "cell", None)
    if own is not None:
        return str(own(record, profiles))
    shape = "MoE" if profiles.model.architecture.moe else "dense"
    return shape if profiles.gpu.vendor == "nvidia" else f"{shape}, {profiles.gpu.vendor.upper()}"


def number_type(record: AnyRecord) -> str:
    """The narrowest number type of the weights that a record names; empty where its class names none."""
    weights = getattr(record, "weights", None)
    if weights is not None:
        return str(min((weights.dense, weights.experts), key=WIDTHS.__getitem__))
    return str(getattr(record, "rollout_dtype", None) or getattr(record, "dtype", ""))


def fold(predictor: Predictor, record: AnyRecord) -> str:
    """What is left out together when the error is estimated: `fold(record)`, else the model."""
    own = getattr(predictor, "fold", None)
    return str(own(record)) if own is not None else str(record.model)


KNOWN_FROM = 10
"""Records of a kind from which on it counts as seen; fewer may all be odd."""


def kinds(predictors: Mapping[str, Predictor], records: Sequence[tuple[str, AnyRecord, Profiles]]) -> Counter[Any]:
    """
    How many records there are of each kind: of what `kind(record, profiles)` of a predictor says, where it says so.

    Args:
        predictors: By class.
        records: Class, record and the profiles that it names.
    """
    own = [(getattr(predictors[name], "kind", None), record, profiles) for name, record, profiles in records]
    return Counter(ask(record, profiles) for ask, record, profiles in own if ask)


def as_unseen(predictor: Predictor, record: AnyRecord, profiles: Profiles, seen: Mapping[Any, int]) -> AnyRecord:
    """The record, told whether its kind is among those that constants were fitted to."""
    ask = getattr(predictor, "kind", None)
    return replace(record, unseen=seen.get(ask(record, profiles), 0) < KNOWN_FROM) if ask else record


def table(predictor: Predictor, record: AnyRecord) -> str:
    """The table of a publication that a record stands in: its family and layout, for weights in a fit."""
    key = getattr(predictor, "layout_key", _layout)
    return repr((predictor.CLASS, predictor.family(record), key(record)))


def contradictions(predictor: Predictor, records: Sequence[AnyRecord]) -> dict[int, str]:
    """
    Records that contradict their neighbours, by position, with the reason; none where the predictor has no rule.

    A predictor states its rule as `contradictions(records)`.
    """
    own = getattr(predictor, "contradictions", None)
    return dict(own(records)) if own is not None else {}


def calibrates_on(predictor: Predictor, record: AnyRecord) -> tuple[str, ...]:
    """The measured fields that a calibration on this record uses: `calibrates_on(record)`, else the one that counts."""
    own = getattr(predictor, "calibrates_on", None)
    return tuple(own(record)) if own is not None else (predictor.graded(record),)


def unstated(predictor: Predictor, record: AnyRecord) -> float:
    """What records of a family leave unsaid alike, as a deviation of a logarithm: `unstated(record)`, else nothing."""
    own = getattr(predictor, "unstated", None)
    return float(own(record)) if own is not None else 0.0


def rivals(predictor: Predictor, one: AnyRecord, other: AnyRecord) -> bool:
    """Whether two records are two ways to do the same work on the same GPUs: `rivals(one, other)`, else never."""
    own = getattr(predictor, "rivals", None)
    return own is not None and bool(own(one, other))


def _layout(record: AnyRecord) -> tuple[Any, ...]:
    return record.gpus, getattr(record, "layout", None)
