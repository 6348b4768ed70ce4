"""
Links that data sheets advertise with the sum of both directions.

The same figures stand in the link profiles; they are repeated here, three of them, so that a bandwidth typed on the
command line can be checked without reading a profile. A test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from rlsize.facts.fields import Quantity, Says

_SAME = 1e-6  # typed figures are round; this forgives the float behind "0.9 TB/s"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvertisedLink:
    """A link and the figure that it is sold with."""

    profile: Annotated[str, Says("Name of the link profile.")]
    title: Annotated[str, Says("What people call it.")]
    both_directions: Annotated[float, Quantity("B/s", "Sum of both directions, as advertised.")]


ADVERTISED_AS_SUM = (
    AdvertisedLink(profile="nvlink3", title="NVLink 3 (A100)", both_directions=600e9),
    AdvertisedLink(profile="nvlink4", title="NVLink 4 (H100, H200)", both_directions=900e9),
    AdvertisedLink(profile="nvlink5", title="NVLink 5 (B200, GB200)", both_directions=1800e9),
)
"""NVIDIA's data sheets of A100, H100 and B200."""


def advertised_as_sum(bandwidth: float) -> AdvertisedLink | None:
    """
    The link whose advertised sum of both directions is this bandwidth, if there is one.

    >>> advertised_as_sum(900e9).profile
    'nvlink4'
    >>> advertised_as_sum(450e9) is None
    True
    """
    return next((link for link in ADVERTISED_AS_SUM if abs(bandwidth / link.both_directions - 1.0) < _SAME), None)
