"""Memory readings as publications report them: an engine's log at start-up, or the peak of a training pass."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rlsize.facts.inference_engines import ENGINES, inference_engine
from rlsize.facts.quantisation import (
    FP4_EXPERTS,
    KV_WIDTHS,
    MXFP4_EXPERTS,
    WIDE_ATTENTION_FP8,
    WIDTHS,
    WeightTypes,
    uniform,
)
from rlsize.facts.records.memory import MemoryRecord
from rlsize.facts.records.record import Layout, Refused
from rlsize.readers.records import parsing
from rlsize.readers.records.memory_training import training

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.readers.profiles import Catalogue

CLASS = "memory"
ENGINE_FIELDS = (
    "weights_gib_per_gpu",
    "kv_cache_gib_per_gpu",
    "kv_cache_tokens",
    "activation_peak_gib",
    "non_torch_gib",
)
_PEAK = "peak_gib_per_gpu"
_LEAST_CACHE = 0.02  # of the weights: a smaller cache is the rest of a subtraction, and says nothing
_ANY_GPU = "h100-sxm"
_NO_GRAPHS = (0, 19)  # vLLM counts CUDA graphs from about this version; read in 0.32
_KEEPS_WINDOWS = (0, 9)  # and frees what has left a window from this one
_SMALL_SAMPLER = (0, 8)  # and profiles 256 sequences on every GPU before this one


def matches(row: Mapping[str, Any]) -> bool:
    """Whether a row holds sizes of an engine at start-up, or a training peak."""
    return any(name in row for name in (*ENGINE_FIELDS, _PEAK)) and "ttft_ms" not in row


def record(row: Mapping[str, Any], catalogue: Catalogue) -> MemoryRecord:
    """
    A row as a record.

    Raises:
        Refused: It lacks what a prediction needs.
    """
    shared = parsing.common(row, catalogue)
    assumed = list(shared.pop("assumed"))
    if any(name in row for name in ENGINE_FIELDS):
        shared["layout"] = parsing.layout(row.get("parallel"), shared["gpus"])
        found = _engine(row, shared["model"], assumed)
    else:
        peak = {_PEAK: parsing.needed(row, _PEAK)}
        words = parsing.text(row, "parallel")
        shared["layout"] = parsing.layout(words) if words else Layout(data=shared["gpus"])
        found = training(row, shared["layout"], assumed) | {"measured": peak}
        shared["gpu"] = shared["gpu"] or _ANY_GPU  # the peak does not depend on it
    return MemoryRecord(**{**shared, **found}, assumed=tuple(assumed))


def _positive(row: Mapping[str, Any], key: str) -> float:
    found = parsing.number(row, key)
    return found if found is not None and found > 0 else 0.0


def _engine(row: Mapping[str, Any], model: str, assumed: list[str]) -> dict[str, Any]:
    measured = {name: _positive(row, name) for name in ENGINE_FIELDS if _positive(row, name)}
    _drop_remainders(measured)
    if not measured:
        raise Refused("no size that is positive")
    words = parsing.text(row, "engine").lower() or "vllm"
    stack = inference_engine(words).name
    version = _version(words)
    if not any(name in words for name in (*ENGINES, "sgl", "trt")):
        assumed.append("engine not known, taken for vllm")
    if not version and stack == "vllm":
        assumed.append("version not stated: CUDA graphs not counted")
    return {
        "kind": "engine",
        "stack": stack,
        "version": ".".join(map(str, version)),
        "measured": measured,
        "weights": _weights(row, model, assumed),
        "kv_dtype": _kv_dtype(row),
        "memory_fraction": min(_positive(row, "gpu_memory_utilization") or _positive(row, "memory_fraction"), 1.0),
        "batched_tokens": _positive(row, "max_num_batched_tokens"),
        "max_sequences": _positive(row, "max_num_seqs")
        or (256.0 if stack == "vllm" and () < version < _SMALL_SAMPLER else 0.0),
        "sequence_tokens": _positive(row, "max_model_len"),
        "graphs_counted": version >= _NO_GRAPHS,
        "windows_whole": () < version < _KEEPS_WINDOWS,
    }


def _drop_remainders(measured: dict[str, float]) -> None:
    """A cache that is almost nothing is the difference of large sizes: its relative error means nothing."""
    cache, weights = measured.get("kv_cache_gib_per_gpu"), measured.get("weights_gib_per_gpu")
    if cache and weights and cache < _LEAST_CACHE * weights:
        del measured["kv_cache_gib_per_gpu"]


def _version(text: str) -> tuple[int, ...]:
    found = re.search(r"(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?", text)
    return tuple(int(part) for part in found.groups() if part) if found else ()


def _weights(row: Mapping[str, Any], model: str, assumed: list[str]) -> WeightTypes | None:
    """Number types of the weights: of the precision, else of the checkpoint's name, else as published."""
    name = parsing.text(row, "model").lower()
    said = (parsing.text(row, "precision") or parsing.text(row, "dtype")).lower()
    if model.startswith("gpt-oss") and "bf16" not in said:
        return MXFP4_EXPERTS
    dtype = _dtype(said) or _dtype(name)
    if not dtype and re.search(r"quanti[sz]ed", name):
        assumed.append("quantisation not stated, taken for int4")
        dtype = "int4"
    if dtype == "fp8" and re.fullmatch(r"(meta-llama/)?(meta-)?llama-3\.1-405b(-instruct)?-fp8", name):
        assumed.append("Meta's checkpoint, whose attention stays in bf16")
        return WIDE_ATTENTION_FP8
    if dtype == "nvfp4" and re.search(r"-a\d+b|deepseek|kimi", name):
        return FP4_EXPERTS
    return uniform(dtype) if dtype else None


def _dtype(text: str) -> str:
    """The number type that a text names; empty where it names none."""
    found = next((dtype for dtype in sorted(WIDTHS, key=len, reverse=True) if dtype in text), "")
    for pattern, dtype in ((r"awq|gptq|w4a16|4.?bit", "int4"), (r"w8a8|8.?bit", "int8")):
        if not found and re.search(pattern, text):
            return dtype
    return found


def _kv_dtype(row: Mapping[str, Any]) -> str:
    text = (parsing.text(row, "kv_dtype") or parsing.text(row, "kv_cache_dtype")).lower()
    return next((dtype for dtype in sorted(KV_WIDTHS, key=len, reverse=True) if dtype in text), "bf16")
