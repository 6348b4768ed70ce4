"""Weight updates as publications report them: seconds by method, and as much of the placement as they say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rlsize.errors import Refused
from rlsize.facts.quantisation import WIDTHS
from rlsize.facts.records import SyncRecord
from rlsize.readers.records import parsing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.readers.profiles import Catalogue

CLASS = "sync"
_GPU = "h100-sxm"
_USUAL_GPUS = 8
_USUAL_BUCKET = 1e9
_STEP_FIELDS = {"step_time_s", "generation_time_s", "train_time_s", "total_time_h", "tokens_per_s_per_gpu"}
_ADAPTERS = re.compile(r"lora|adapter")
_CHANGED = re.compile(r"delta|sparse|changed|diff")
_TRANSPORTS = (  # the first that matches decides
    (r"checkpoint.?engine.{0,40}p2p|p2p.{0,40}checkpoint.?engine", "checkpoint-engine-p2p"),
    (r"checkpoint.?engine", "checkpoint-engine"),
    (r"reshard|rdma|p2p|point.to.point|mooncake|nixl|ucx", "nccl-reshard"),
    (r"disk|object.store|\bs3\b|\bnfs\b|safetensors|file.?system|save.{0,20}load", "store"),
)
_ONE_BY_ONE = re.compile(r"naive|per.?tensor|per.?param|iterator|ipc handle|one by one|async gather")
_COLOCATED = re.compile(r"coloc|co-loc|hybrid|\bipc\b|shared")
_BUCKET = re.compile(r"bucket of (\d{1,6}(?:\.\d{1,6})?)\s?(b(?:illion)? param|gi?b)")


def matches(row: Mapping[str, Any]) -> bool:
    """Whether a row is a weight update: it has its seconds, and no phases of a step beside them."""
    return "sync_time_s" in row and not _STEP_FIELDS & set(row)


def record(row: Mapping[str, Any], catalogue: Catalogue) -> SyncRecord:
    """
    A row as a record.

    Raises:
        Refused: It lacks what a prediction needs, or is no full update.
    """
    payload = parsing.text(row, "payload").lower()
    if _ADAPTERS.search(payload):
        raise Refused(f"sends {payload[:40]!r}, not the model's weights")
    shared = parsing.common(row, catalogue)
    assumed = [note for note in shared.pop("assumed") if not note.startswith("one GPU")]
    low, high = parsing.needed(row, "sync_time_s"), parsing.number(row, "sync_time_max_s")
    seconds = low if high is None or high <= low else (low + high) / 2
    if seconds != low:
        assumed.append(f"the middle of {low:g} to {high:g} s as measured")
    if not shared["gpu"]:
        assumed.append(f"{_GPU}, as the record names no GPU")
        shared["gpu"] = _GPU
    method = parsing.text(row, "method").lower()
    transport = "delta" if _CHANGED.search(payload) else _transport(method, parsing.text(row, "mode").lower(), assumed)
    dtype = _dtype(row, assumed)
    trainer, rollout = _gpus(row, transport, assumed)
    engine = parsing.layout(row.get("rollout_parallel"))
    shared["gpus"] = trainer if transport.startswith("colocated") else trainer + rollout
    return SyncRecord(
        **shared,
        measured={"sync_time_s": seconds},
        assumed=tuple(assumed),
        transport=transport,
        method=method,
        dtype=dtype,
        trainer_gpus=trainer,
        rollout_gpus=rollout,
        instance_gpus=max(1, min(engine.tensor * engine.pipeline, rollout)),
        bucket_bytes=_bucket(method, dtype),
        converted=False if re.search(r"pre.?quanti[sz]ed", method) else None,
        sharding=parsing.text(row, "train_parallel"),
    )


def _transport(method: str, mode: str, assumed: list[str]) -> str:
    known = next((name for pattern, name in _TRANSPORTS if re.search(pattern, method)), None)
    if known:
        return known
    single = bool(_ONE_BY_ONE.search(method))
    if _COLOCATED.search(mode) or _COLOCATED.search(method):
        return "colocated-per-tensor" if single else "colocated"
    if not mode:
        assumed.append("pools apart, as the record names no placement")
    return "nccl-per-tensor" if single else "nccl-broadcast"


def _dtype(row: Mapping[str, Any], assumed: list[str]) -> str:
    """The type on the wire: said, else named by the method or the model, else bf16."""
    for key in ("dtype", "method", "model"):
        words = parsing.text(row, key)
        if parsing.says_dtype(words):
            narrow = next((name for name in ("mxfp8", "nvfp4", "mxfp4") if name in words.lower()), None)
            return narrow or parsing.dtypes(words)[0]
    assumed.append("bf16 on the wire, as the record names no type")
    return "bf16"


def _gpus(row: Mapping[str, Any], transport: str, assumed: list[str]) -> tuple[int, int]:
    trainer, rollout = parsing.whole(row, "gpus_train"), parsing.whole(row, "gpus_rollout")
    if transport.startswith("colocated"):
        trainer = rollout = trainer or parsing.whole(row, "gpus_shared") or parsing.whole(row, "gpus") or rollout
    if not trainer and not rollout:
        assumed.append(f"{_USUAL_GPUS} GPUs on each side, as the record does not say how many")
    rollout = rollout or trainer or _USUAL_GPUS
    return trainer or rollout, rollout


def _bucket(method: str, dtype: str) -> float:
    found = _BUCKET.search(method)
    if not found or not float(found.group(1)):
        return _USUAL_BUCKET
    return float(found.group(1)) * 1e9 * (WIDTHS[dtype] if "param" in found.group(2) else 1.0)
