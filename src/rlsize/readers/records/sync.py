"""Weight updates as publications report them: seconds by method, and as much of the placement as they say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rlsize.facts.quantisation import WIDTHS
from rlsize.facts.records.base import Refused
from rlsize.facts.records.sync import SyncRecord
from rlsize.readers.records.naming import gpu_named, model_named, stand_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.readers.profiles import Catalogue

CLASS = "sync"
_GPU = "h100-sxm"
_USUAL_GPUS = 8
_MOST_GPUS = 2**20
_PARTIAL = re.compile(r"delta|sparse|lora|adapter|diff")
_TRANSPORTS = (  # first match decides; method, then mode
    (r"checkpoint.?engine.*p2p|p2p.*checkpoint.?engine", "checkpoint-engine-p2p"),
    (r"checkpoint.?engine", "checkpoint-engine"),
    (r"reshard", "nccl-reshard"),
    (r"rdma|p2p|point.to.point|mooncake|nixl|ucx", "nccl-reshard"),
    (r"disk|object.store|\bs3\b|\bnfs\b|safetensors|file.?system|save.*load", "store"),
)
_ONE_BY_ONE = re.compile(r"naive|per.?tensor|per.?param|iterator|ipc handle|one by one|async gather|before", re.IGNORECASE)
_COLOCATED = re.compile(r"coloc|co-loc|hybrid|ipc|shared", re.IGNORECASE)
_BUCKET = re.compile(r"bucket of (\d+(?:\.\d+)?)\s*b(?:illion)? param|bucket of (\d+(?:\.\d+)?)\s*g(?:i?b)", re.IGNORECASE)
_NARROW = ("nvfp4", "mxfp4", "mxfp8", "int4", "int8", "fp4", "fp8")


def matches(row: Mapping[str, Any]) -> bool:
    """Whether a row is a weight update: it has its seconds, and no phases of a step beside them."""
    return "sync_time_s" in row and not {"step_time_s", "generation_time_s", "train_time_s"} & set(row)


def record(row: Mapping[str, Any], catalogue: Catalogue) -> SyncRecord:
    """
    A row as a record.

    Raises:
        Refused: It lacks what a prediction needs, or is no full update.
    """
    measured, assumed = _measured(row)
    payload = _text(row, "payload").lower()
    if _PARTIAL.search(payload):
        raise Refused(f"sends {payload[:40]!r}, not all weights; how much changes depends on the run")
    model, params = _model(row, catalogue, assumed)
    gpu = _gpu(row, catalogue, assumed)
    method = _text(row, "method")
    transport = _transport(row, assumed)
    dtype = _dtype(row, assumed)
    trainer, rollout, instance = _gpus(row, transport, assumed)
    return SyncRecord(
        id=str(row["id"]),
        source_id=_text(row, "source_id"),
        trust=_text(row, "trust"),
        model=model,
        gpu=gpu,
        gpus=trainer + (0 if transport.startswith("colocated") else rollout),
        stack=_stack(method),
        version=_version(method),
        measured=measured,
        assumed=tuple(assumed),
        transport=transport,
        method=method,
        dtype=dtype,
        trainer_gpus=trainer,
        rollout_gpus=rollout,
        instance_gpus=instance,
        bucket_bytes=_bucket(method, dtype),
        params=params,
        converted=False if re.search(r"pre.?quanti[sz]ed", method.lower()) else None,
    )


def _text(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    return str(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else ""


def _positive(value: object) -> float | None:
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if plain and 0 < float(value) < float("inf") else None  # type: ignore[arg-type]  # plain says so


def _measured(row: Mapping[str, Any]) -> tuple[dict[str, float], list[str]]:
    """The seconds; of a published range its middle."""
    low, high = _positive(row.get("sync_time_s")), _positive(row.get("sync_time_max_s"))
    if low is None:
        raise Refused("sync_time_s is no positive number of seconds")
    if high is None or high <= low:
        return {"sync_time_s": low}, []
    return {"sync_time_s": (low + high) / 2}, [f"measured is the middle of {low:g} to {high:g} s"]


def _model(row: Mapping[str, Any], catalogue: Catalogue, assumed: list[str]) -> tuple[str, float]:
    text = _text(row, "model")
    if not text:
        raise Refused("names no model")
    try:
        name, note = model_named(text, catalogue)
        params = 0.0
    except Refused:
        name, params, note = stand_in(text, catalogue)
    if note:
        assumed.append(note)
    return name, params


def _gpu(row: Mapping[str, Any], catalogue: Catalogue, assumed: list[str]) -> str:
    text = _text(row, "gpu")
    if not text:
        assumed.append(f"GPU not stated, taken for {_GPU}")
        return _GPU
    name, note = gpu_named(text, catalogue)
    if note:
        assumed.append(note)
    return name


def _transport(row: Mapping[str, Any], assumed: list[str]) -> str:
    method, mode = _text(row, "method").lower(), _text(row, "mode").lower()
    known = next((name for pattern, name in _TRANSPORTS if re.search(pattern, method)), None)
    if known:
        return known
    if _COLOCATED.search(mode) or _COLOCATED.search(method):
        return "colocated-per-tensor" if _slow(method) else "colocated"
    if not mode:
        assumed.append("placement not stated, taken for disaggregated")
    return "nccl-per-tensor" if _ONE_BY_ONE.search(method) else "nccl-broadcast"


def _slow(method: str) -> bool:
    """Tensors handed over one by one; a quantised refit before and after packs its tensors alike."""
    return bool(_ONE_BY_ONE.search(method)) and not re.search(r"mxfp8|bucket", method)


def _dtype(row: Mapping[str, Any], assumed: list[str]) -> str:
    said = _text(row, "dtype").lower()
    for source in (said, _text(row, "method").lower(), _text(row, "model").lower()):
        found = next((name for name in _NARROW if name in source), None)
        if found:
            return found
        if source == said and said in WIDTHS:
            return said
    if not said:
        assumed.append("type on the wire not stated, taken for bf16")
    return "bf16"


def _count(row: Mapping[str, Any], key: str) -> int:
    value = _positive(row.get(key))
    return 0 if value is None or value > _MOST_GPUS else round(value)


def _gpus(row: Mapping[str, Any], transport: str, assumed: list[str]) -> tuple[int, int, int]:
    trainer, rollout = _count(row, "gpus_train"), _count(row, "gpus_rollout")
    shared = _count(row, "gpus_shared") or _count(row, "gpus")
    if transport.startswith("colocated"):
        trainer = trainer or shared or rollout
        if not trainer:
            assumed.append(f"GPUs not stated, taken for {_USUAL_GPUS}")
        trainer = rollout = trainer or _USUAL_GPUS
    else:
        if not rollout and not trainer:
            assumed.append(f"GPUs not stated, taken for {_USUAL_GPUS} on each side")
        rollout = rollout or trainer or _USUAL_GPUS
        trainer = trainer or rollout
    found = re.search(r"\bTP\s*=?\s*(\d{1,4})", _text(row, "rollout_parallel"), re.IGNORECASE)
    instance = min(int(found.group(1)) if found else 1, rollout)
    return trainer, rollout, max(instance, 1)


def _bucket(method: str, dtype: str) -> float:
    found = _BUCKET.search(method)
    if not found:
        return 1e9
    params, size = found.groups()
    return float(params) * 1e9 * WIDTHS[dtype] if params else float(size) * 1e9


def _stack(method: str) -> str:
    return method.split()[0].lower() if method.split() else ""


def _version(method: str) -> str:
    found = re.search(r"\bv(\d+(?:\.\d+)*)", method)
    return found.group(1) if found else ""
