"""What must hold of a profile beyond its form: sources that resolve, numbers that agree, names that exist."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, nearest
from rlsize.facts.cluster import Cluster
from rlsize.facts.gpu import Gpu
from rlsize.facts.link import Link
from rlsize.facts.price import Price
from rlsize.facts.sourced import facts_within

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping
    from pathlib import Path

    from rlsize.facts.gpu import ScaleUp
    from rlsize.facts.link import LinkSpecification
    from rlsize.facts.sourced import Sourced
    from rlsize.readers.yaml_documents import Document

    Found = Callable[[str, str], object]

# GiB against GB is 7.4 %: what is sold as 80 GB may hold 80 GiB.
_MOST_USABLE = 1.08
_LEAST_USABLE = 0.9
_ROUNDING = 1e-3


def own_faults(profile: Any, document: Document, stem: str) -> Iterator[Fault]:  # noqa: ANN401 (any kind of profile)
    """What is wrong with a profile taken by itself."""
    name = getattr(profile, "name", stem)  # a rates file has no name of its own
    if name != stem:
        what = f"is {name!r}, but the file is called {stem!r}"
        yield Fault(what, document.where(("name",)), "give both the same name")
    yield from _source_faults(profile, document)
    if isinstance(profile, Gpu):
        yield from _gpu_faults(profile, document)
    elif isinstance(profile, Link):
        both = ("specification", "bandwidth_both_directions")
        yield from _twice(profile.specification, document, both)
    elif isinstance(profile, Price):
        yield from _price_faults(profile, document)


def reference_faults(profile: object, document: Document, found: Found) -> Iterator[Fault]:
    """Names of other profiles that do not exist, and numbers that contradict theirs."""
    if isinstance(profile, Gpu):
        scale_up = profile.specification.scale_up
        path = ("specification", "scale_up", "link")
        link = yield from _named("link", scale_up.link, document, path, found)
        if isinstance(link, Link):
            theirs = link.specification.bandwidth_one_direction
            path = ("specification", "scale_up", "bandwidth_one_direction")
            yield from _same(scale_up.bandwidth_one_direction, theirs, f"the link {link.name}", document, path)
        if profile.kernels_like:
            lender = yield from _named("gpu", profile.kernels_like, document, ("kernels_like",), found)
            if isinstance(lender, Gpu) and lender.kernels is None:
                yield Fault(f"{lender.name} has no kernels", document.where(("kernels_like",)), "name a GPU that has")
    elif isinstance(profile, Price) and profile.gpu is not None:
        yield from _named("gpu", profile.gpu, document, ("gpu",), found)
    elif isinstance(profile, Cluster):
        yield from _cluster_faults(profile, document, found)


def alias_faults(documents: Mapping[str, Document]) -> Iterator[Fault]:
    """
    Aliases that name two profiles of one folder, or another profile's own name.

    Args:
        documents: Profiles of one kind and folder by the names of their files, without the ending.
    """
    owners = {stem.lower(): stem for stem in documents}
    for own, document in documents.items():
        for index, alias in enumerate(document.data.get("aliases", ())):
            owner = owners.setdefault(str(alias).lower(), own)
            if owner != own:
                where = document.where(("aliases", index))
                yield Fault(f"the alias {alias} already names {owner}", where, "keep it in one of them")


def stray_faults(folder: Path, kinds: Mapping[str, str]) -> Iterator[Fault]:
    """Files and folders that look like profiles but would never be read."""
    present = [name for name in kinds.values() if (folder / name).is_dir()]
    if not present:
        layout = ", ".join(f"{name}/" for name in kinds.values())
        yield Fault("holds no profiles", str(folder), f"name a folder that has one of {layout}")
    for child in sorted(folder.iterdir()):
        meant = nearest(child.name, kinds.values(), most=1)
        if child.is_dir() and meant and child.name not in kinds.values():
            yield Fault("is not a folder of profiles", str(child), f"did you mean {meant[0]}?")
    for name in present:
        for child in sorted((folder / name).iterdir()):
            if child.suffix != ".yaml" and child.name != "README.md" and not child.name.startswith("."):
                yield Fault("is not read as a profile", str(child), "a profile is a file that ends in .yaml")


def _source_faults(profile: Any, document: Document) -> Iterator[Fault]:  # noqa: ANN401 (any kind of profile)
    sources = getattr(profile, "sources", None)
    if sources is None:
        return
    named = [
        (path, key) for path, fact in facts_within(profile) if isinstance(key := getattr(fact, "source", None), str)
    ]
    for path, key in named:
        if key not in sources:
            meant = nearest(key, sources, most=1)
            todo = f"did you mean {meant[0]}?" if meant else f"add {key} to sources"
            where = document.where((*path.split("."), "source"))
            yield Fault(f"the source {key!r} is not in sources", where, todo)
    for key, text in sources.items():
        if not text.strip():
            yield Fault("the source says nothing", document.where(("sources", key)), "write where the number was read")
        if key not in {used for _, used in named}:
            yield Fault(f"no number names the source {key!r}", document.where(("sources", key)), "use it or remove it")


def _gpu_faults(gpu: Gpu, document: Document) -> Iterator[Fault]:
    specification = gpu.specification
    if specification.memory_usable is not None:
        share = specification.memory_usable.value / specification.memory.value
        if not _LEAST_USABLE <= share <= _MOST_USABLE:
            what = f"the usable memory is {share:.2f} times the memory that is sold; GB or GiB may be mixed up"
            where = document.where(("specification", "memory_usable"))
            yield Fault(what, where, f"it should be {_LEAST_USABLE} to {_MOST_USABLE} times")
    yield from _twice(specification.scale_up, document, ("specification", "scale_up", "bandwidth_both_directions"))


def _price_faults(price: Price, document: Document) -> Iterator[Fault]:
    try:
        dt.date.fromisoformat(price.as_of)
    except ValueError:
        yield Fault(f"{price.as_of!r} is not a date", document.where(("as_of",)), "write it as YYYY-MM-DD")
    whole = price.usd_per_instance_hour
    if whole is not None:
        parts = price.usd_per_gpu_hour.value * price.gpus.value
        if not math.isclose(parts, whole.value, rel_tol=_ROUNDING):
            what = f"{price.gpus.value:g} GPUs at this price make {parts:g} usd/h, the instance costs {whole.value:g}"
            yield Fault(what, document.where(("usd_per_gpu_hour",)), "mend one of the two prices")


def _cluster_faults(cluster: Cluster, document: Document, found: Found) -> Iterator[Fault]:
    gpu = yield from _named("gpu", cluster.gpu, document, ("gpu",), found)
    scale_up = yield from _named("link", cluster.scale_up, document, ("scale_up",), found)
    interconnect = yield from _named("link", cluster.interconnect, document, ("interconnect",), found)
    if isinstance(gpu, Gpu):
        theirs = gpu.specification.gpus_per_node
        yield from _same(cluster.gpus_per_node, theirs, f"the GPU {gpu.name}", document, ("gpus_per_node",))
        link = found("link", gpu.specification.scale_up.link)
        if isinstance(link, Link) and isinstance(scale_up, Link) and link.name != scale_up.name:
            what = f"the GPUs are joined by {link.name}, not by {scale_up.name}"
            yield Fault(what, document.where(("scale_up",)), f"write {link.name}")
    if isinstance(interconnect, Link):
        theirs = interconnect.specification.bandwidth_one_direction
        yield from _same(cluster.nic, theirs, f"the link {interconnect.name}", document, ("nic",))


def _named(
    kind: str, name: str, document: Document, path: tuple[str, ...], found: Found
) -> Generator[Fault, None, object]:
    """The named profile; yields a fault where there is none."""
    profile = found(kind, name)
    if isinstance(profile, Fault):
        yield Fault(profile.what, document.where(path), profile.todo)
    return profile


def _twice(link: ScaleUp | LinkSpecification, document: Document, path: tuple[str, ...]) -> Iterator[Fault]:
    one, both = link.bandwidth_one_direction, link.bandwidth_both_directions
    if both is not None and not math.isclose(both.value, 2 * one.value, rel_tol=_ROUNDING):
        what = f"both directions are {both.value / 1e9:g} GB/s, one is {one.value / 1e9:g} GB/s"
        yield Fault(what, document.where(path), "both directions should be twice the one")


def _same(ours: Sourced, theirs: Sourced, owner: str, document: Document, path: tuple[str, ...]) -> Iterator[Fault]:
    if not math.isclose(ours.value, theirs.value, rel_tol=_ROUNDING):
        what = f"is {ours.value:g}, but {owner} says {theirs.value:g}"
        yield Fault(what, document.where(path), "mend one of the two")
