"""The links."""

from __future__ import annotations

import pytest

from rlsize.facts.link import achievable_fraction
from rlsize.readers.profiles import Catalogue

ONE_DIRECTION = {
    "nvlink3": 300e9, "nvlink3-a800": 200e9,
    "nvlink4": 450e9, "nvlink5": 900e9, "nvlink4-h800": 200e9, "nvlink4-bridge": 300e9,
    "infiniband-200g": 25e9, "infiniband-400g": 50e9, "infiniband-800g": 100e9,
    "roce-100g": 12.5e9, "roce-200g": 25e9, "roce-400g": 50e9, "roce-gaudi3": 600e9,
    "pcie4": 32e9, "pcie5": 64e9, "xgmi-mi300x": 448e9, "xgmi-mi355x": 535.5e9,
    "efa-p5": 50e9, "gcp-a3-mega": 25e9, "ici-v5p": 540e9, "ici-v6e": 360e9, "ici-v7": 600e9,
}  # fmt: skip


def test_bandwidths_are_one_direction_per_gpu(catalogue: Catalogue) -> None:
    """Links have the bandwidth that is known of them."""
    links = {name: catalogue.get("link", name) for name in ONE_DIRECTION}
    assert {name: link.specification.bandwidth_one_direction.value for name, link in links.items()} == ONE_DIRECTION


@pytest.mark.parametrize("name", Catalogue().names("link"))
def test_every_link_says_what_share_transfers_reach(catalogue: Catalogue, name: str) -> None:
    """Measured or assumed, and never all of it."""
    fraction = achievable_fraction(catalogue.get("link", name))
    assert fraction is not None
    assert 0.5 < fraction.value < 1


def test_measured_share_stands_before_the_assumed_one(catalogue: Catalogue) -> None:
    """NVLink 4 copies were measured at 88 %; NVLink 5 copies were not, so the assumption holds."""
    measured = achievable_fraction(catalogue.get("link", "nvlink4"))
    assumed = achievable_fraction(catalogue.get("link", "nvlink5"))
    assert measured is not None
    assert assumed is not None
    assert (measured.value, assumed.value) == (0.88, 0.8)


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("h100-nvlink", "nvlink4"), ("NVLink-H100", "nvlink4"), ("h200-nvlink", "nvlink4"), ("b200-nvlink", "nvlink5"),
        ("a100-nvlink", "nvlink3"), ("ib-400g", "infiniband-400g"), ("NDR", "infiniband-400g"),
        ("hdr", "infiniband-200g"), ("pcie-gen5", "pcie5"), ("p5-efa", "efa-p5"),
    ],
)  # fmt: skip
def test_people_find_the_link_that_they_mean(catalogue: Catalogue, typed: str, name: str) -> None:
    """Aliases lead to the profile."""
    assert catalogue.get("link", typed).name == name


def test_a_70b_model_over_h100_nvlink_takes_0_31_seconds(catalogue: Catalogue) -> None:
    """The worked example that goes wrong with 900 GB/s: 140 GB in one direction."""
    link = catalogue.get("link", "h100-nvlink").specification
    assert 2 * 70e9 / link.bandwidth_one_direction.value == pytest.approx(0.3111, abs=5e-5)
