"""Prices and clusters."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rlsize.readers.profiles import Catalogue


def test_prices_are_plausible_and_dated(catalogue: Catalogue) -> None:
    """Each price has a day, terms and a sum that somebody might pay; preemptible is cheaper."""
    names = catalogue.names("price")
    assert len(names) == 31
    for name in names:
        price = catalogue.get("price", name)
        assert dt.date(2025, 1, 1) <= dt.date.fromisoformat(price.as_of) <= dt.date(2026, 11, 20)
        assert 0.5 < price.usd_per_gpu_hour.value < 20
        assert price.commitment
        assert price.spot_usd_per_gpu_hour is None or price.spot_usd_per_gpu_hour.value < price.usd_per_gpu_hour.value


def test_a_list_without_a_date_says_so(catalogue: Catalogue) -> None:
    """Only the price whose source carries a date claims to be of that day."""
    published = [name for name in catalogue.names("price") if catalogue.get("price", name).as_of_meaning == "published"]
    assert published == ["deepseek-h800"]
    read = catalogue.get("price", "nebius-h100-sxm-8x")
    assert "date of the commit was not shown" in read.sources["catalogue"]


@pytest.mark.parametrize(
    ("name", "gpu", "usd", "spot"),
    [
        ("nebius-h100-sxm-8x", "h100-sxm", 2.95, 1.25),
        ("nebius-h200-sxm-8x", "h200-sxm", 3.5, 1.45),
        ("nebius-b200-sxm-8x", "b200-sxm", 5.5, None),
        ("lambda-b200-sxm-2x", "b200-sxm", 6.89, None),
        ("hyperstack-h100-pcie-1x", "h100-pcie", 1.9, None),
        ("oci-mi355x-8x", "mi355x", 8.6, None),
        ("lambda-gh200-1x", None, 2.29, None),
        ("deepseek-h800", "h800-sxm", 2.0, None),
    ],
)
def test_known_prices(catalogue: Catalogue, name: str, gpu: str | None, usd: float, spot: float | None) -> None:
    """Spot checks against the lists."""
    price = catalogue.get("price", name)
    assert (price.gpu, price.usd_per_gpu_hour.value) == (gpu, usd)
    assert (price.spot_usd_per_gpu_hour.value if price.spot_usd_per_gpu_hour else None) == spot


@pytest.mark.parametrize(
    ("name", "gpu", "gpus_per_node", "nic"),
    [
        ("h100-infiniband-400g", "h100-sxm", 8, 50e9),
        ("dgx-h200", "h200-sxm", 8, 50e9),
        ("b200-infiniband-400g", "b200-sxm", 8, 50e9),
        ("dgx-a100", "a100-80-sxm", 8, 25e9),
        ("gb200-nvl72", "gb200", 4, 100e9),
        ("mi300x-roce-400g", "mi300x", 8, 50e9),
        ("aws-p5", "h100-sxm", 8, 50e9),
        ("gcp-a3-mega", "h100-sxm", 8, 25e9),
    ],
)
def test_known_clusters(catalogue: Catalogue, name: str, gpu: str, gpus_per_node: int, nic: float) -> None:
    """Spot checks against what is sold."""
    cluster = catalogue.get("cluster", name)
    assert (cluster.gpu, cluster.gpus_per_node.value, cluster.nic.value) == (gpu, gpus_per_node, nic)


def test_a_rack_holds_its_nvlink_domain(catalogue: Catalogue) -> None:
    """Nodes times GPUs of an NVL72 rack make 72, the domain of its GPU."""
    for name in ("gb200-nvl72", "gb300-nvl72"):
        cluster = catalogue.get("cluster", name)
        assert cluster.nodes is not None
        domain = catalogue.get("gpu", cluster.gpu).specification.scale_up.domain_gpus.value
        assert cluster.nodes.value * cluster.gpus_per_node.value == domain == 72
