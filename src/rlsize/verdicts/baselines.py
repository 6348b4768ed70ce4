"""
Guesses that need no model: the time of another run goes as 1/GPUs, or it stays; others' figures hold in proportion.

A prediction that is no better than these from the same measurement is worth nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rlsize.estimates.model_size import model_size

if TYPE_CHECKING:
    from rlsize.estimates.recorded.registry import Profiles
    from rlsize.facts.records.record import Record

FieldKind = Literal["time", "rate", "rate_per_gpu", "amount"]

_TIMES = ("_s", "_ms", "_h", "_seconds", "_min")
_RATES = ("tok_s", "tokens_per_s", "tflops", "_per_s", "mfu", "hfu")


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
