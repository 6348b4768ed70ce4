"""What an hour of a GPU costs somewhere, on some day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from rlsize.facts.fields import (
    Quantity,
    Says,
    Sourced,
)
from rlsize.facts.kinds import COUNT


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """
    A price profile.

    Prices move: one stands for its day, region and terms only, and nothing takes one that the user did not name.
    """

    name: Annotated[str, Says("Name of the profile, and of its file.")]
    cloud: Annotated[str, Says("Who charges it.")]
    instance: Annotated[str, Says("Instance type as the cloud names it; empty where there is none.")] = ""
    gpu: Annotated[str | None, Says("Name of the GPU profile; absent where there is none for it.")] = None
    gpu_listed: Annotated[str, Says("The GPU as the price list names it.")]
    gpus: Annotated[Sourced, COUNT.saying("GPUs of the instance.")]
    usd_per_gpu_hour: Annotated[Sourced, Quantity("usd", "Dollars per GPU and hour.")]
    spot_usd_per_gpu_hour: Annotated[
        Sourced | None, Quantity("usd", "Dollars per GPU and hour of the preemptible kind.")
    ] = None
    usd_per_instance_hour: Annotated[Sourced | None, Quantity("usd", "Dollars per instance and hour, as listed.")] = (
        None
    )
    region: Annotated[str, Says("Where it holds; empty where the source names no region.")] = ""
    commitment: Annotated[str, Says("On what terms: on demand, reserved, assumed, ...")]
    as_of: Annotated[str, Says("Day of the price, as YYYY-MM-DD.")]
    as_of_meaning: Annotated[
        Literal["published", "read"],
        Says("published: the source carries that date; read: somebody looked that day, the list's own age is unknown."),
    ]
    trust: Annotated[Literal["high", "medium", "low"], Says("How far to trust it.")]
    sources: Annotated[dict[str, str], Says("The documents, by the key that numbers name.")]
    notes: Annotated[tuple[str, ...], Says("What one should know about it.")] = ()
