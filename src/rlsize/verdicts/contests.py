"""
Which of two ways to do the same work is faster: whether predictions name the same winner as measurements.

A class says which of its records are rivals: the same model, GPUs and work, done colocated and split, say. Where the
measured gap is small, either answer is as good; those pairs are counted apart.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Literal

from rlsize.estimates.model_size import model_size
from rlsize.estimates.recorded.registry import rivals
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.estimates.recorded.registry import Predictor, Profiles
    from rlsize.facts.records import Record
    from rlsize.verdicts.predictions import PredictedField, PredictedRecord

CLOSE = 0.1
"""A gap up to this is too close to call."""

FieldKind = Literal["time", "rate", "rate_per_gpu", "amount"]

_TIMES = ("_s", "_ms", "_h", "_seconds", "_min")
_RATES = ("tok_s", "tokens_per_s", "tflops", "_per_s", "mfu", "hfu")


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """
    Two rivals.

    Args:
        class_name: Their class.
        one: The first record.
        other: The second.
        measured: How many times better the first was; below 1 where it was worse. [1]
        predicted: How many times better it is predicted to be. [1]
    """

    class_name: str
    one: str
    other: str
    measured: float
    predicted: float

    @property
    def clear(self) -> bool:
        """Whether the measured gap is large enough to be called."""
        return _gap(self.measured) > CLOSE

    @property
    def doubtful(self) -> bool:
        """Whether the predicted gap is too small to be called."""
        return _gap(self.predicted) <= CLOSE

    @property
    def right(self) -> bool:
        """Whether the predicted winner is the measured one."""
        return (self.measured > 1) == (self.predicted > 1)


def contests(records: Sequence[PredictedRecord], predictors: Mapping[str, Predictor]) -> tuple[Contest, ...]:
    """Every pair of trusted rivals that are measured by the same field."""
    trusted = [record for record in records if record.trusted]
    return tuple(
        Contest(
            class_name=one.class_name,
            one=one.record.id,
            other=other.record.id,
            measured=_better(one.fields[0], one.fields[0].measured / other.fields[0].measured),
            predicted=_better(one.fields[0], one.fields[0].predicted / other.fields[0].predicted),
        )
        for one, other in combinations(trusted, 2)
        if one.class_name == other.class_name
        and one.fields[0].name == other.fields[0].name
        and rivals(predictors[one.class_name], one.record, other.record)
    )


def _better(field: PredictedField, ratio: float) -> float:
    """How many times better the first is: of rates the larger is, of times and amounts the smaller."""
    return ratio if kind(field.name).startswith("rate") else 1.0 / ratio


def _gap(ratio: float) -> float:
    return max(ratio, 1.0 / ratio) - 1.0


def kind(field: str) -> FieldKind:
    """
    What sort of quantity a field of a record is, by its name.

    >>> kind("step_time_s"), kind("output_tok_s_total"), kind("tokens_per_s_per_gpu"), kind("kv_cache_gib")
    ('time', 'rate', 'rate_per_gpu', 'amount')
    """
    if any(word in field for word in _RATES):
        return "rate_per_gpu" if "per_gpu" in field or "mfu" in field or "hfu" in field else "rate"
    return "time" if field.endswith(_TIMES) else "amount"


def time_as_gpus(field: str, measured: float, gpus: float, other_gpus: float) -> float:
    """
    What a field is on other GPUs if time goes as 1/GPUs; a rate per GPU then stays as it is.

    >>> time_as_gpus("step_time_s", 100.0, 8, 16), time_as_gpus("output_tok_s_total", 100.0, 8, 16)
    (50.0, 200.0)
    """
    factor = {"time": gpus / other_gpus, "rate": other_gpus / gpus, "rate_per_gpu": 1.0, "amount": gpus / other_gpus}
    return measured * factor[kind(field)]


def time_unchanged(field: str, measured: float, gpus: float, other_gpus: float) -> float:
    """
    What a field is on other GPUs if time does not change; a rate per GPU then goes as 1/GPUs.

    >>> time_unchanged("step_time_s", 100.0, 8, 16), time_unchanged("tokens_per_s_per_gpu", 100.0, 8, 16)
    (100.0, 50.0)
    """
    return measured * (gpus / other_gpus if kind(field) == "rate_per_gpu" else 1.0)


def in_proportion(field: str, record: Record, profiles: Profiles) -> float:
    """What a measured field would go with if every GPU did its peak's work: tokens over parameters, or bytes."""
    size = model_size(profiles.model)
    peak, active = profiles.gpu.specification.bf16_dense.value, size.active_params.number
    sort = kind(field)
    if sort == "rate_per_gpu":
        return 1.0 if "mfu" in field or "hfu" in field else peak / active
    if sort == "rate":
        return record.gpus * peak / active
    if sort == "amount":
        return size.params.number / record.gpus
    samples = getattr(record, "samples", None) or getattr(record, "sequences", None)
    if samples is None:  # a time that is not of a batch of tokens: weights that travel
        return size.params.number
    lengths = (getattr(record, name, 0.0) for name in ("prompt_tokens", "response_tokens", "tokens"))
    return float(samples * sum(lengths) * active / (record.gpus * peak))
