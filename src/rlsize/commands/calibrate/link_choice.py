"""Which link a weight sync takes: typed, a link profile, a GPU's own, or a cluster's; flags before the scenario."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rlsize.errors import InputError
from rlsize.estimates.sync_links import NO_BANDWIDTH, LinkFigures
from rlsize.facts.fields import Quantity
from rlsize.reports.sync import advertised_warning, scale_up_note

if TYPE_CHECKING:
    from rlsize.facts.cluster import Cluster
    from rlsize.facts.figure import Figure
    from rlsize.shell.inputs import Inputs

LEAST_BANDWIDTH = Quantity("B/s", least=1e3)
_EFFICIENCY = Quantity("1", least=1e-6, most=1.0)
_ORDER = (  # of a scenario: what says most about the sync comes first
    ("bandwidth", "weight_sync.bandwidth"),
    ("link", "weight_sync.link"),
    ("cluster", "cluster.profile"),
    ("link", "cluster.interconnect"),
    ("gpu", "cluster.gpu"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """
    The links of a weight sync.

    Args:
        between: From trainer to fleet.
        handover: Among the GPUs of a node, for a colocated hand-over.
        chosen: Whether anybody named one.
    """

    between: LinkFigures
    handover: LinkFigures
    chosen: bool = True


def paths(inputs: Inputs, said: dict[str, str | None], efficiency: str | None, trainer_gpus: Figure) -> Paths:
    """
    The links that the flags name, else those of the scenario.

    Args:
        inputs: Where faults, warnings and notes go.
        said: What `--bandwidth`, `--link`, `--gpu` and `--cluster` say.
        efficiency: What `--efficiency` says.
        trainer_gpus: GPUs that hold the trainer's shards: more than a node holds do not hand over inside it.
    """
    given = [name for name, text in said.items() if text is not None]
    if len(given) > 1:
        inputs.fault("say it once", " ".join(f"--{name}" for name in given), "each of them names the link; keep one")
    found = _named(inputs, *_choice(inputs, said, given), trainer_gpus)
    share = inputs.number("achievable_fraction", "--efficiency", efficiency, _EFFICIENCY)
    between = _kept(inputs, found.between, share)
    if found.handover == found.between:
        return replace(found, between=between, handover=between)
    return replace(found, between=between, handover=_derated(found.handover, share))


def _choice(inputs: Inputs, said: dict[str, str | None], given: list[str]) -> tuple[str, str | None, str]:
    """What names the link, the name, and the scenario key that says so where no flag does."""
    if given:
        return given[0], said[given[0]], ""
    return next(
        ((kind, str(inputs.said(key)), key) for kind, key in _ORDER if inputs.said(key) is not None), ("", None, "")
    )


def _named(inputs: Inputs, kind: str, name: str | None, key: str, trainer_gpus: Figure) -> Paths:
    nothing = Paths(
        between=LinkFigures(bandwidth=NO_BANDWIDTH), handover=LinkFigures(bandwidth=NO_BANDWIDTH), chosen=bool(kind)
    )
    if kind in {"", "bandwidth"}:
        return _typed(inputs, name, key) if kind else nothing
    profile = _profile(inputs, kind, str(name), key)
    if profile is None:
        return nothing
    if kind == "cluster":
        return _of_cluster(inputs, profile, trainer_gpus)
    if kind == "gpu":
        scale_up = _link(inputs, profile.specification.scale_up.link)
        adapter = profile.specification.nic
        inputs.notes.append(scale_up_note(profile.name, scale_up, adapter.value if adapter else None))
        return Paths(between=scale_up, handover=scale_up)
    return Paths(between=_figures(profile), handover=_inside(inputs, _figures(profile), key, trainer_gpus))


def _inside(inputs: Inputs, between: LinkFigures, key: str, trainer_gpus: Figure) -> LinkFigures:
    """The link that colocated GPUs share: of the scenario's GPU, if its node holds the whole trainer."""
    name = inputs.said("cluster.gpu") if key else None
    gpu = _profile(inputs, "gpu", str(name), "cluster.gpu") if name else None
    if gpu is None:
        return between
    reach = inputs.said("cluster.gpus_per_node") or gpu.specification.scale_up.domain_gpus.value
    beyond = trainer_gpus.known and trainer_gpus.number > reach
    return between if beyond else _link(inputs, gpu.specification.scale_up.link)


def _typed(inputs: Inputs, text: str | None, key: str) -> Paths:
    bandwidth = inputs.number(
        "bandwidth_bytes_per_second",
        "--bandwidth",
        None if key else text,
        LEAST_BANDWIDTH,
        scenario="weight_sync.bandwidth",
    )
    warning = advertised_warning(bandwidth)
    if warning:
        inputs.warnings.append(warning)
    link = LinkFigures(bandwidth=bandwidth)
    return Paths(between=link, handover=link)


def _of_cluster(inputs: Inputs, cluster: Cluster, trainer_gpus: Figure) -> Paths:
    between = _link(inputs, cluster.interconnect)
    within = not trainer_gpus.known or trainer_gpus.number <= cluster.gpus_per_node.value
    return Paths(between=between, handover=_link(inputs, cluster.scale_up) if within else between)


def _profile(inputs: Inputs, kind: str, name: str, key: str) -> Any:
    try:
        return inputs.catalogue.get(kind, name)
    except InputError as error:
        inputs.blame(error, inputs.where(key) if key else f"--{kind}")
        return None


def _link(inputs: Inputs, name: str) -> LinkFigures:
    profile = _profile(inputs, "link", name, "")
    return LinkFigures() if profile is None else _figures(profile)


def _figures(profile: Any) -> LinkFigures:
    from rlsize.estimates.sync_links import link_figures

    return link_figures(profile)


def _kept(inputs: Inputs, link: LinkFigures, share: Figure) -> LinkFigures:
    derated = _derated(link, share)
    for figure in (link.bandwidth, derated.achievable_fraction):
        if figure.known:
            inputs.keep(figure)
    return derated


def _derated(link: LinkFigures, share: Figure) -> LinkFigures:
    return replace(link, achievable_fraction=share, basis="given") if share.known else link


def all_links(inputs: Inputs, efficiency: Figure | None = None) -> tuple[LinkFigures, ...]:
    """Every link of the catalogue."""
    found = tuple(_link(inputs, name) for name in inputs.catalogue.names("link"))
    return tuple(_derated(link, efficiency) for link in found) if efficiency and efficiency.known else found
