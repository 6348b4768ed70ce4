"""How new weights reach the fleet."""

from __future__ import annotations

from rlsize.facts.fields import Quantity
from rlsize.facts.kinds import COUNT, SECONDS, SECONDS_OR_NONE
from rlsize.facts.quantisation import CHANGED_FRACTION
from rlsize.quantities.kinds import DTYPE
from rlsize.quantities.row import Row, Text, Word

_BANDWIDTH = Quantity("B/s", least=1e3)
_SHARE = Quantity("1", least=1e-6, most=1.0)

ROWS = (
    Row(
        "transport",
        Text(),
        "The method: nccl-broadcast, rdma, disk, object-store, colocated, delta, fp8.",
        "weight_sync.",
        "--",
    ),
    Row("sync_every", COUNT, "Optimizer steps between syncs, m.", "weight_sync.every", "--", 1, "a sync every step"),
    Row(
        "bandwidth_bytes_per_second",
        _BANDWIDTH,
        "Slowest link on the path, one direction: '50 GB/s'.",
        "weight_sync.bandwidth",
        "--bandwidth",
    ),
    Row("link", Text(), "A link profile, in place of the bandwidth: infiniband-400g.", "weight_sync.", "--"),
    Row("wire_dtype", DTYPE, "Width of the weights on the wire.", "weight_sync.dtype", "--"),
    Row(
        "bucket_bytes",
        Quantity("B", least=1e3),
        "Bytes sent at once: '1 GB'.",
        "weight_sync.bucket",
        "--bucket",
        default=1e9,
        why="a usual size",
    ),
    Row(
        "sync_way",
        Word(("in-flight", "drain", "abort", "rolling")),
        "What samples do then: in-flight (go on), drain (finish), abort (start anew); rolling: each instance alone.",
        "weight_sync.way",
        "--",
        "in-flight",
    ),
    Row(
        "kv_after_sync",
        Word(("recomputed", "kept")),
        "The KV cache of samples that go on with new weights.",
        "weight_sync.kv",
        "--",
        "kept",
    ),
    Row(
        "swap_seconds",
        SECONDS_OR_NONE,
        "Seconds that a colocated step spends changing over, both ways together.",
        "weight_sync.",
        "--",
    ),
    Row("achievable_fraction", _SHARE, "Share of the link that transfers reach, 0 to 1.", flag="--efficiency"),
    Row(
        "changed_fraction",
        _SHARE,
        "Share of weights that a step changes (delta).",
        "",
        "--",
        CHANGED_FRACTION,
        "assumed; published runs report under 1 % (arXiv:2602.03839, arXiv:2605.07330), measure yours",
    ),
    Row(
        "write_bandwidth_bytes_per_second",
        _BANDWIDTH,
        "What the trainer writes to the store.",
        flag="--write-bandwidth",
    ),
    Row(
        "read_bandwidth_bytes_per_second",
        _BANDWIDTH,
        "What a disk gives all readers together, an object store each.",
        flag="--read-bandwidth",
    ),
    Row("reload_seconds", SECONDS_OR_NONE, "For an engine to load what it has read.", flag="--"),
    Row("hidden_seconds", SECONDS_OR_NONE, "Part of a sync that runs beside other work.", flag="--"),
    Row(
        "step_seconds_without_sync",
        SECONDS,
        "Wall clock of an optimizer step, waiting too, but no sync.",
        flag="--step-without-sync",
    ),
    Row(
        "target_fraction",
        _SHARE,
        "Largest share of the wall clock that syncs may pause.",
        flag="--target-share",
        default=0.05,
        why="default of --target-share",
    ),
)
