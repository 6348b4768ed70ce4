"""The profiles that there are, as tables of the numbers that one chooses by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.facts.figure import Figure
from rlsize.facts.link import achievable_fraction
from rlsize.facts.sourced import Sourced, unverified
from rlsize.reports.report import Column, Report, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlsize.facts.cluster import Cluster
    from rlsize.facts.framework import Framework
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.link import Link
    from rlsize.facts.model import Model
    from rlsize.facts.price import Price
    from rlsize.facts.rates import Rates
    from rlsize.reports.report import Cell

TITLES: Mapping[str, str] = {
    "gpu": "GPUs", "link": "Links", "model": "Models", "price": "Prices", "cluster": "Clusters", "rates": "Rates",
    "framework": "Frameworks",
}  # fmt: skip
_LEFT = frozenset({
    "name", "link", "scope", "gpu", "interconnect", "region", "as_of", "reached_says", "measured_at", "modes",
    "backends", "engines",
})  # fmt: skip
_WRAPPING = frozenset({"region", "modes", "backends", "engines"})
_COLUMNS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "gpu": (("name", "GPU"), ("bf16_flops", "bf16"), ("memory_bytes", "memory"),
            ("memory_bandwidth_bytes_per_second", "bandwidth"), ("scale_up_bytes_per_second", "scale-up")),
    "link": (("name", "link"), ("scope", "scope"), ("one_direction_bytes_per_second", "one direction"),
             ("both_directions_bytes_per_second", "both"), ("achievable_fraction", "reached"), ("reached_says", "")),
    "model": (("name", "model"), ("total", "parameters"), ("active", "active"), ("kv_bytes_per_token", "KV cache")),
    "price": (("name", "price"), ("per_gpu_hour_usd", "GPU-hour"), ("spot_per_gpu_hour_usd", "spot"),
              ("region", "region"), ("as_of", "as of")),
    "cluster": (("name", "cluster"), ("gpu", "GPU"), ("node_gpus", "a node"), ("interconnect", "interconnect"),
                ("nic_bytes_per_second", "network")),
    "rates": (("name", "rates"), ("instance_tokens_per_second", "instance"), ("train_seconds", "train"),
              ("measured_at", "measured")),
    "framework": (("name", "framework"), ("modes", "modes"), ("backends", "trainers"), ("engines", "engines")),
}  # fmt: skip
_NOTES: Mapping[str, str] = {
    "gpu": "bf16 is the dense peak; scale-up is one direction per GPU",
    "link": (
        "per GPU; reached: the share of one direction that transfers get; "
        "carried over: taken from other links, verified by nobody"
    ),
    "model": "KV cache in bf16, layers that attend to the whole context",
    "price": "a price holds for its day, region and terms only",
    "cluster": "network: per GPU, one direction",
}  # fmt: skip


def list_report(profiles: Mapping[str, Sequence[tuple[str, Any]]]) -> Report:
    """
    What there is.

    Args:
        profiles: Name and profile of each, by kind.
    """
    counts = {kind: len(named) for kind, named in profiles.items()}
    told = [f"{count} {TITLES[kind] if kind == 'gpu' else TITLES[kind].lower()}" for kind, count in counts.items()]
    results = {f"{kind}_profiles": count for kind, count in counts.items()}
    return Report(
        headline=", ".join(told) or "no profiles",
        results=tuple(Figure(key=key, value=count, source="the profile folders") for key, count in results.items()),
        quiet=frozenset(results),
        tables={kind: _table(kind, named) for kind, named in profiles.items()},
        notes=("`rlsize profiles show NAME` prints every number of one with its source.",),
    )


def check_report(counts: Mapping[str, int]) -> Report:
    """
    A check that found nothing wrong.

    Args:
        counts: Profiles that were checked, by kind.
    """
    cells = (Column("kind", "kind", "left", of=str), Column("profiles", "profiles", of=counts.__getitem__))
    total = sum(counts.values())
    return Report(
        headline=f"{total} {'profile' if total == 1 else 'profiles'} checked, no fault found",
        results=(Figure(key="profiles", value=total, source="the profile folders"), Figure(key="faults", value=0)),
        quiet=frozenset({"profiles", "faults"}),
        tables={"kinds": Table.of("", counts, cells)},
    )


def _table(kind: str, named: Sequence[tuple[str, Any]]) -> Table:
    columns = tuple(  # a mark may wrap, a name not
        Column(key, title, "left" if key in _LEFT else "right", wide=key not in _LEFT or key in _WRAPPING)
        for key, title in _COLUMNS[kind]
    )
    rows = tuple(_row(kind, name, profile) for name, profile in named)
    return Table(title=TITLES[kind], columns=columns, rows=rows, note=_NOTES.get(kind, ""))


def _row(kind: str, name: str, profile: Any) -> dict[str, Cell]:
    told = {"name": name, **_ROWS[kind](profile), "unverified": ", ".join(unverified(profile))}
    return {key: _cell(key, value) for key, value in told.items()}


def _cell(key: str, value: Cell | Sourced) -> Cell:
    """A value as it stands; one that has a source keeps it."""
    if not isinstance(value, Sourced):
        return value
    return Figure(key=key, value=value.value, provenance="default", source=value.source, verified=value.verified)


def _gpu_row(gpu: Gpu) -> dict[str, Any]:
    specification = gpu.specification
    return {
        "title": gpu.title,
        "link": specification.scale_up.link,
        "bf16_flops": specification.bf16_dense,
        "fp8_flops": specification.fp8_dense,
        "fp4_flops": specification.fp4_dense,
        "memory_bytes": specification.memory,
        "memory_usable_bytes": specification.memory_usable,
        "memory_bandwidth_bytes_per_second": specification.memory_bandwidth,
        "scale_up_bytes_per_second": specification.scale_up.bandwidth_one_direction,
        "nic_bytes_per_second": specification.nic,
        "power_watts": specification.power,
    }


def _link_row(link: Link) -> dict[str, Any]:
    specification, fraction = link.specification, achievable_fraction(link)
    says = ""
    if fraction is not None:
        measured = link.measured is not None and fraction is link.measured.achievable_fraction
        says = "measured" if measured else "assumed" if fraction.verified else "carried over"
    return {
        "title": link.title,
        "scope": specification.scope,
        "one_direction_bytes_per_second": specification.bandwidth_one_direction,
        "both_directions_bytes_per_second": specification.bandwidth_both_directions,
        "achievable_fraction": fraction.value if fraction else None,
        "reached_says": says,
    }


def _model_row(model: Model) -> dict[str, Any]:
    computed, total, active = model.computed, model.published_params, model.published_active_params
    params = computed.params if computed else total.value if total else None
    active_params = computed.active_params if computed else active.value if active else None
    return {
        "title": model.title,
        "total": _billions(params),
        "active": _billions(active_params),
        "total_params": params,
        "active_params": active_params,
        "kv_bytes_per_token": computed.kv_bytes_per_token if computed else None,
    }


def _billions(params: float | None) -> str | None:
    return None if params is None else f"{params / 1e9:.2f}B"


def _price_row(price: Price) -> dict[str, Any]:
    said = {key: getattr(price, key) for key in ("cloud", "instance", "gpu", "gpu_listed")}
    said |= {"per_gpu_hour_usd": price.usd_per_gpu_hour, "spot_per_gpu_hour_usd": price.spot_usd_per_gpu_hour}
    return said | {key: getattr(price, key) for key in ("region", "commitment", "as_of", "as_of_meaning", "trust")}


def _cluster_row(cluster: Cluster) -> dict[str, Any]:
    return {
        "title": cluster.title,
        "gpu": cluster.gpu,
        "node_gpus": cluster.gpus_per_node,
        "scale_up": cluster.scale_up,
        "interconnect": cluster.interconnect,
        "nic_bytes_per_second": cluster.nic,
    }


def _rates_row(rates: Rates) -> dict[str, Any]:
    instance = rates.instance_tokens_per_second
    return {
        "instance_tokens_per_second": instance.mean if instance else None,
        "train_seconds": rates.train_seconds,
        "measured_at": rates.measured_at,
    }


def _framework_row(framework: Framework) -> dict[str, Any]:
    runs = framework.runs
    modes = f"as {framework.parent}" if runs is None else ", ".join(runs.modes)
    return {
        "title": framework.title,
        "parent": framework.parent,
        "modes": modes,
        "backends": ", ".join(() if runs is None else runs.layouts),
        "engines": ", ".join(() if runs is None else runs.engines),
        "read_at": framework.source,
    }


_ROWS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "gpu": _gpu_row, "link": _link_row, "model": _model_row,
    "price": _price_row, "cluster": _cluster_row, "rates": _rates_row,
    "framework": _framework_row,
}  # fmt: skip
