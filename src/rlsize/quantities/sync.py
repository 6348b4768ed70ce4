"""How new weights reach the fleet."""

from __future__ import annotations

from rlsize.facts.fields import Quantity
from rlsize.quantities.kinds import COUNT, DTYPE, SECONDS_OR_NONE
from rlsize.quantities.row import Row, Text, Word

ROWS = (
    Row(
        "transport",
        Text(),
        "The method: nccl-broadcast, rdma, disk, object-store, colocated, delta, fp8.",
        "weight_sync.transport",
        "--transport",
    ),
    Row(
        "sync_every",
        COUNT,
        "Optimizer steps between syncs, m.",
        "weight_sync.every",
        "--sync-every",
        1,
        "a sync every step",
    ),
    Row(
        "bandwidth_bytes_per_second",
        Quantity("B/s"),
        "Slowest link on the path, one direction: '50 GB/s'.",
        "weight_sync.bandwidth",
        "--bandwidth",
    ),
    Row("link", Text(), "A link profile, in place of the bandwidth: infiniband-400g.", "weight_sync.link", "--link"),
    Row("wire_dtype", DTYPE, "Width of the weights on the wire.", "weight_sync.dtype", "--wire-dtype"),
    Row("bucket_bytes", Quantity("B", least=1e3), "Bytes sent at once: '1 GB'.", "", "--bucket", 1e9, "a usual size"),
    Row(
        "sync_way",
        Word(("in-flight", "drain", "abort")),
        "What running samples do meanwhile: in-flight (go on), drain (finish), abort (start anew).",
        "weight_sync.way",
        "--sync-way",
        "in-flight",
        "default of --sync-way",
    ),
    Row(
        "kv_after_sync",
        Word(("recomputed", "kept")),
        "The KV cache of samples that go on with new weights.",
        "weight_sync.kv",
        "--kv-after-sync",
        "recomputed",
        "default of --kv-after-sync",
    ),
    Row(
        "swap_seconds",
        SECONDS_OR_NONE,
        "Seconds that a colocated step spends changing over, both ways together.",
        "weight_sync.swap_seconds",
        "--swap-seconds",
    ),
)
