"""Which link a weight sync takes: typed, a link profile, a GPU's own, or a cluster's; flags before the scenario."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.equations.weight_sync import one_way_bandwidth
from rlsize.estimates.sync import LinkFigures, link_figures
from rlsize.facts.figure import Figure
from rlsize.facts.link import ADVERTISED_AS_SUM, advertised_as_sum
from rlsize.units import show

if TYPE_CHECKING:
    from rlsize.facts.link import Cluster
    from rlsize.shell.inputs import Inputs

_BANDWIDTH = "bandwidth_bytes_per_second"
_FLAGS = (_BANDWIDTH, "link", "gpu", "cluster")
_ORDER = (  # of a scenario: what says most about the sync comes first
    (_BANDWIDTH, "weight_sync.bandwidth"),
    ("link", "weight_sync.link"),
    ("cluster", "cluster.profile"),
    ("link", "cluster.interconnect"),
    ("gpu", "cluster.gpu"),
)


class Paths(NamedTuple):
    """
    The links of a weight sync.

    Args:
        between: From trainer to fleet.
        handover: Among the GPUs of a node, for a colocated hand-over.
    """

    between: LinkFigures
    handover: LinkFigures


def paths(inputs: Inputs, trainer_gpus: Figure) -> Paths:
    """
    The links that the flags name, else those of the scenario.

    Args:
        inputs: What was said; faults, warnings and notes go there.
        trainer_gpus: GPUs that hold the trainer's shards: more than a node holds do not hand over inside it.
    """
    given = [key for key in _FLAGS if inputs.by_flag(key)]
    if len(given) > 1:
        flags = " ".join(map(inputs.flag, given))
        inputs.fault("say it once", flags, "each of them names the link; keep one")
    found = _named(inputs, *_choice(inputs, given), trainer_gpus)
    share = inputs.ask("achievable_fraction")
    between, handover = _derated(found.between, share), _derated(found.handover, share)
    for figure in (between.bandwidth, between.achievable_fraction):
        inputs.keep(figure)
    return Paths(between=between, handover=handover)


def _choice(inputs: Inputs, given: list[str]) -> tuple[str, str, str]:
    """What names the link, the name, and where in the scenario that stands; nothing there where a flag says it."""
    if given:
        return given[0], str(inputs.name(given[0])[0]), ""
    said = ((kind, inputs.said(key), key) for kind, key in _ORDER)
    return next(((kind, str(name), key) for kind, name, key in said if name is not None), ("", "", ""))


def _named(inputs: Inputs, kind: str, name: str, key: str, trainer_gpus: Figure) -> Paths:
    if kind == "link":
        inputs.keep(Figure(key=kind, value=name, source=inputs.where(key) if key else inputs.flag(kind)))
    if kind == _BANDWIDTH:
        bandwidth = inputs.ask(_BANDWIDTH)
        _doubt(inputs, bandwidth)
        return _one(LinkFigures(bandwidth=bandwidth))
    profile = _profile(inputs, kind, name, key) if kind else None
    if profile is None:
        return _one(LinkFigures())
    if kind == "cluster":
        return _of_cluster(inputs, profile, trainer_gpus)
    if kind == "gpu":
        scale_up = _link(inputs, profile.specification.scale_up.link)
        note, adapter = f"{scale_up.name} joins {profile.name} GPUs of one node", profile.specification.nic
        if adapter and adapter.value:
            per_gpu = show(adapter.value, "_bytes_per_second")
            note += f"; between nodes the adapter decides ({per_gpu} per GPU: --cluster, or --link)"
        inputs.notes.append(f"{note}.")
        return _one(scale_up)
    between = link_figures(profile)
    return Paths(between=between, handover=_inside(inputs, between, key, trainer_gpus))


def _doubt(inputs: Inputs, bandwidth: Figure) -> None:
    """Warn where a typed bandwidth is one that a data sheet gives for both directions together."""
    link = advertised_as_sum(bandwidth.number) if bandwidth.known else None
    if link is None:
        return
    one_way = one_way_bandwidth(link.both_directions)
    halves = ((one_way_bandwidth(other.both_directions), other) for other in ADVERTISED_AS_SUM)
    named = (other.title for half, other in halves if half == bandwidth.number)
    right = next((f", which is right one way for {title}" for title in named), "")
    inputs.warnings.append(
        f"{bandwidth.source} {show(bandwidth.value, _BANDWIDTH)} is what {link.title} is advertised with, both "
        f"directions together; an update goes one way, at {show(one_way, _BANDWIDTH)} (--link {link.profile}). "
        f"Taken as typed{right}."
    )


def _one(link: LinkFigures) -> Paths:
    return Paths(between=link, handover=link)


def _inside(inputs: Inputs, between: LinkFigures, key: str, trainer_gpus: Figure) -> LinkFigures:
    """The link that colocated GPUs share: of the scenario's GPU, if its node holds the whole trainer."""
    name = inputs.said("cluster.gpu") if key else None
    gpu = _profile(inputs, "gpu", str(name), "cluster.gpu") if name else None
    if gpu is None:
        return between
    reach = inputs.said("cluster.gpus_per_node") or gpu.specification.joined_gpus.value
    beyond = trainer_gpus.known and trainer_gpus.number > reach
    return between if beyond else _link(inputs, gpu.specification.scale_up.link)


def _of_cluster(inputs: Inputs, cluster: Cluster, trainer_gpus: Figure) -> Paths:
    between = _link(inputs, cluster.interconnect)
    within = not trainer_gpus.known or trainer_gpus.number <= cluster.gpus_per_node.value
    return Paths(between=between, handover=_link(inputs, cluster.scale_up) if within else between)


def _profile(inputs: Inputs, kind: str, name: str, key: str) -> Any:
    return inputs.profile(kind, name, inputs.where(key) if key else f"--{kind}")


def _link(inputs: Inputs, name: str) -> LinkFigures:
    profile = _profile(inputs, "link", name, "")
    return LinkFigures() if profile is None else link_figures(profile)


def _derated(link: LinkFigures, share: Figure) -> LinkFigures:
    return replace(link, achievable_fraction=share, basis="given") if share.known else link


def all_links(inputs: Inputs, efficiency: Figure | None = None) -> tuple[LinkFigures, ...]:
    """Every link of the catalogue; all of them reach the share that was said, where one was."""
    found = tuple(_link(inputs, name) for name in inputs.catalogue.names("link"))
    return tuple(_derated(link, efficiency) for link in found) if efficiency and efficiency.known else found
