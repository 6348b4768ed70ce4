"""The three figures that are repeated from the link profiles, and the widths of number types."""

from __future__ import annotations

import pytest

from rlsize.facts.link import ADVERTISED_AS_SUM, AdvertisedLink, advertised_as_sum
from rlsize.facts.quantisation import BYTES_PER_PARAM
from rlsize.quantities.kinds import DTYPE
from rlsize.readers.profiles import Catalogue


@pytest.mark.parametrize("link", ADVERTISED_AS_SUM, ids=lambda link: link.profile)
def test_an_advertised_figure_is_that_of_its_profile(link: AdvertisedLink) -> None:
    """Both directions together, and twice the one direction."""
    specification = Catalogue().get("link", link.profile).specification
    assert specification.bandwidth_both_directions is not None
    assert specification.bandwidth_both_directions.value == link.both_directions
    assert specification.bandwidth_one_direction.value == link.both_directions / 2


@pytest.mark.parametrize(("bandwidth", "profile"), [(600e9, "nvlink3"), (0.9 * 1e12, "nvlink4"), (1800e9, "nvlink5")])
def test_an_advertised_sum_is_known_by_its_figure(bandwidth: float, profile: str) -> None:
    """However it was written."""
    found = advertised_as_sum(bandwidth)
    assert found is not None
    assert found.profile == profile


@pytest.mark.parametrize("bandwidth", [50e9, 450e9, 899e9, 901e9])
def test_other_bandwidths_are_nobodys_sum(bandwidth: float) -> None:
    """Also those close by."""
    assert advertised_as_sum(bandwidth) is None


def test_every_number_type_of_a_scenario_has_a_width() -> None:
    """And no other has."""
    assert set(BYTES_PER_PARAM) == set(DTYPE.known)
