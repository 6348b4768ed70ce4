"""The profiles that ship with rlsize, one table for each kind."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from generate.markdown import table
from rlsize import units
from rlsize.facts.fields import sourced_numbers, unverified
from rlsize.facts.link import achievable_fraction
from rlsize.readers.huggingface.config import REFUSED, UNREADABLE
from rlsize.readers.profiles import Catalogue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.facts.fields import Sourced
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.link import Cluster, Link
    from rlsize.facts.model import Model
    from rlsize.facts.price import Price

UNVERIFIED = "†"


def profiles() -> str:
    """All tables, each with the sources of its numbers."""
    shipped = Catalogue()

    def all_of(kind: str) -> list[Any]:
        return [shipped.get(kind, name) for name in shipped.names(kind)]

    return "\n".join(
        [
            f"{UNVERIFIED} marks a number that nobody has read in its source.\n",
            _gpus(all_of("gpu")),
            _links(all_of("link")),
            _models(all_of("model")),
            _clusters(all_of("cluster")),
            _prices(all_of("price")),
        ]
    )


def unreadable() -> str:
    """Configurations that are refused, and why: by their model_type, and by keys of whichever type."""
    rows = [[f"`{name}`", reason] for name, reason in sorted(UNREADABLE.items())]
    rows += [[f"any with `{key}`", reason] for key, reason in sorted(REFUSED.items())]
    return table(["Configuration", "Why"], _together(rows))


def _together(rows: Iterable[list[str]]) -> list[list[str]]:
    """Rows of one reason as one."""
    named: dict[str, list[str]] = defaultdict(list)
    for name, reason in rows:
        named[reason].append(name)
    return [[", ".join(names), reason] for reason, names in named.items()]


def _mark(number: Sourced | None, key: str) -> str:
    if number is None:
        return ""
    return units.show(number.value, key) + ("" if number.verified else f" {UNVERIFIED}")


def _bandwidth(number: Sourced | None) -> str:
    if number is None:
        return ""
    return units.show(number.value, "memory_bytes") + "/s" + ("" if number.verified else f" {UNVERIFIED}")


def _gpus(found: list[Gpu]) -> str:
    rows = [
        [
            f"`{gpu.name}`",
            gpu.title,
            _mark(gpu.specification.bf16_dense, "_flops"),
            _mark(gpu.specification.fp8_dense, "_flops"),
            _mark(gpu.specification.memory, "_bytes"),
            _bandwidth(gpu.specification.memory_bandwidth),
            f"{gpu.specification.scale_up.link}, {_bandwidth(gpu.specification.scale_up.bandwidth_one_direction)}",
            _bandwidth(gpu.specification.nic),
        ]
        for gpu in found
    ]
    header = ["Name", "GPU", "bf16", "fp8", "Memory", "Memory bandwidth", "Scale-up link, one direction", "NIC"]
    return _section(
        "GPUs", "Compute rates are dense; bandwidths are per GPU and in one direction.", table(header, rows), found
    )


def _links(found: list[Link]) -> str:
    rows = [
        [
            f"`{link.name}`",
            link.title,
            link.specification.scope,
            _bandwidth(link.specification.bandwidth_one_direction),
            _bandwidth(link.specification.bandwidth_both_directions),
            _achieved(link),
        ]
        for link in found
    ]
    header = ["Name", "Link", "Scope", "One direction", "Both directions", "Achieved share"]
    return _section(
        "Links",
        "Data sheets often advertise the sum of both directions; a weight sync uses one.",
        table(header, rows),
        found,
    )


def _achieved(link: Link) -> str:
    fraction = achievable_fraction(link)
    if fraction is None:
        return ""
    how = "measured" if link.measured and link.measured.achievable_fraction else "assumed"
    return f"{fraction.value:g} ({how}){'' if fraction.verified else f' {UNVERIFIED}'}"


def _models(found: list[Model]) -> str:
    rows = []
    for model in found:
        computed = model.computed
        rows.append(
            [
                f"`{model.name}`" + ("" if model.architecture.verified else f" {UNVERIFIED}"),
                model.title,
                _billions(computed.params if computed else None),
                _billions(computed.active_params if computed else None),
                units.show(computed.kv_bytes_per_token, "_bytes") if computed else "",
                f"{model.architecture.layers}",
                f"{model.architecture.max_context:,}",
            ]
        )
    header = ["Name", "Model", "Parameters", "Active", "KV cache per token (bf16)", "Layers", "Context"]
    return _section(
        "Models",
        "Parameters are counted from the layers; each file holds the published count beside them.",
        table(header, rows),
        found,
    )


def _billions(number: int | None) -> str:
    return "" if number is None else f"{number / 1e9:.4g} B"


def _clusters(found: list[Cluster]) -> str:
    rows = [
        [
            f"`{cluster.name}`",
            cluster.title,
            cluster.gpu,
            _mark(cluster.gpus_per_node, ""),
            cluster.scale_up,
            cluster.interconnect,
            _bandwidth(cluster.nic),
        ]
        for cluster in found
    ]
    header = ["Name", "Cluster", "GPU", "GPUs per node", "In the node", "Between nodes", "NIC per GPU"]
    return _section("Clusters", "", table(header, rows), found)


def _prices(found: list[Price]) -> str:
    rows = [
        [
            f"`{price.name}`",
            price.cloud,
            price.gpu or price.gpu_listed,
            _mark(price.usd_per_gpu_hour, "_usd"),
            _mark(price.spot_usd_per_gpu_hour, "_usd"),
            price.region,
            price.commitment,
            f"{price.as_of} ({price.as_of_meaning})",
            price.trust,
        ]
        for price in found
    ]
    header = ["Name", "Cloud", "GPU", "Per GPU-hour", "Preemptible", "Region", "Terms", "As of", "Trust"]
    said = "A price holds for its day, region and terms. Nothing takes one that you did not name."
    return _section("Prices", said, table(header, rows), found)


def _section(title: str, said: str, body: str, found: Iterable[Any]) -> str:
    return "\n".join([f"## {title}\n", *([said + "\n"] if said else []), body, _sources(found)])


def _sources(found: Iterable[Any]) -> str:
    """Each document with the profiles that take numbers from it, and the profiles with unverified ones."""
    users: dict[str, dict[str, None]] = defaultdict(dict)
    doubts = []
    for profile in found:
        for text in profile.sources.values():
            users[" ".join(text.split())][f"`{profile.name}`"] = None
        numbers, doubtful = sum(1 for _ in sourced_numbers(profile)), unverified(profile)
        if doubtful:
            doubts.append(f"`{profile.name}` ({len(doubtful)} of {numbers})")
    rows = [[text, ", ".join(names)] for text, names in sorted(users.items())]
    parts = ["<details><summary>Sources</summary>\n", table(["Source", "Profiles"], rows), "</details>\n"]
    return "\n".join([*parts, *([f"Numbers that are unverified: {', '.join(doubts)}.\n"] if doubts else [])])
