"""The accelerators: every row against physics, and some numbers against what is known of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlsize.facts.fields import unverified
from rlsize.readers.profiles import Catalogue

if TYPE_CHECKING:
    from rlsize.facts.gpu import Gpu

# The Gaudi 3 runs both formats on the same units; the L40S data sheet rounds its two rates unevenly.
FP8_OVER_BF16 = {"gaudi3": 1.0, "l40s": 733 / 362}
# Blackwell Ultra widened only the fp4 units; the RTX 5090 halves what accumulates in fp32, which fp4 does not.
FP4_OVER_FP8 = {"b300-sxm": 14 / 4.5, "gb300": 3.0, "rtx-5090": 4.0}


@pytest.fixture(params=Catalogue().names("gpu"))
def gpu(request: pytest.FixtureRequest, catalogue: Catalogue) -> Gpu:
    """One accelerator after the other."""
    return catalogue.get("gpu", request.param)


def test_halving_the_format_doubles_the_rate(gpu: Gpu) -> None:
    """fp8 runs at twice the bf16 rate and fp4 at twice the fp8 rate, but for the listed exceptions."""
    specification = gpu.specification
    say = f"a dense rate of {gpu.name} is a slip, or its data sheet says so: then add it, with the reason, to"
    if specification.fp8_dense is not None:
        ratio = specification.fp8_dense.value / specification.bf16_dense.value
        expected = FP8_OVER_BF16.get(gpu.name, 2.0)
        assert ratio == pytest.approx(expected, rel=2e-3), f"{say} FP8_OVER_BF16 of this file"
    if specification.fp4_dense is not None:
        assert specification.fp8_dense is not None
        ratio = specification.fp4_dense.value / specification.fp8_dense.value
        expected = FP4_OVER_FP8.get(gpu.name, 2.0)
        assert ratio == pytest.approx(expected, rel=2e-3), f"{say} FP4_OVER_FP8 of this file"


def test_rates_and_bandwidths_are_of_the_right_size(gpu: Gpu) -> None:
    """Peak FLOP per byte of memory traffic lies where all accelerators of these years lie, so no unit slipped."""
    specification = gpu.specification
    say = f"of {gpu.name}: a slip of a unit, or the first of its size, which widens the range in this test"
    assert 30 < specification.bf16_dense.value / specification.memory_bandwidth.value < 600, f"FLOP per byte {say}"
    assert 16e9 <= specification.memory.value <= 288e9, f"memory {say}"
    assert specification.power is None or 70 <= specification.power.value <= 1400, f"power {say}"
    assert specification.scale_up.domain_gpus.value >= 1


def test_links_are_slower_than_memory(gpu: Gpu) -> None:
    """Scale-up, network and host links are each slower than the device memory."""
    specification = gpu.specification
    links = (specification.scale_up.bandwidth_one_direction, specification.nic, specification.pcie)
    assert all(link.value < specification.memory_bandwidth.value for link in links if link is not None)


def test_kernels_that_are_derived_have_all_forms_of_products(gpu: Gpu, catalogue: Catalogue) -> None:
    """Every form of fp8 that the GPU they are derived from has, by one share: else a slower one stands in."""
    kernels = gpu.kernels
    if kernels is None or kernels.verified or "gemm" in kernels.borrowed or gpu.specification.fp8_dense is None:
        return
    lender = catalogue.get("gpu", gpu.kernels_like).kernels
    assert lender is not None
    forms = {form: entry for form, entry in lender.gemm.items() if form.startswith("fp8")}
    shares = [kernels.gemm[form].compute_fraction / entry.compute_fraction for form, entry in forms.items()]
    assert min(shares) > 0.97 * max(shares)


def test_a_processor_of_the_same_maker_is_joined_by_more_than_pcie(catalogue: Catalogue) -> None:
    """What lives on the host of a Grace superchip comes and goes over NVLink-C2C, which two Blackwells share."""
    links = {name: catalogue.get("gpu", name).specification.pcie for name in ("h100-sxm", "gh200", "gb200", "b200-sxm")}
    assert [link.value / 1e9 for link in links.values() if link] == [64, 450, 225, 64]


@pytest.mark.parametrize(
    ("name", "mebibytes"),
    [("t4", 15360), ("l4", 23034), ("a10", 23028), ("a10g", 23028), ("a40", 46068), ("l40", 46068), ("l40s", 46068)],
)
def test_error_correction_takes_a_sixteenth_of_gddr6(catalogue: Catalogue, name: str, mebibytes: int) -> None:
    """As drivers report these cards."""
    usable = catalogue.get("gpu", name).specification.memory_usable
    assert usable is not None
    assert usable.value == pytest.approx(mebibytes * 2**20, rel=1e-3)


def test_known_numbers(catalogue: Catalogue) -> None:
    """Spot checks against data sheets."""
    h100 = catalogue.get("gpu", "h100-sxm").specification
    assert h100.bf16_dense.value == 989e12
    assert h100.memory_usable is not None
    assert h100.memory_usable.value == 80 * 2**30
    assert h100.memory_bandwidth.value == 3.35e12
    assert h100.nic is not None
    assert h100.nic.value == 50e9
    b300 = catalogue.get("gpu", "b300-sxm").specification
    assert b300.memory_usable is not None
    assert b300.memory_usable.value == 288400343040
    assert catalogue.get("gpu", "gb200").specification.scale_up.domain_gpus.value == 72
    assert catalogue.get("gpu", "rtx-4090").specification.nic is None
    assert catalogue.get("gpu", "a100-80-sxm").specification.fp8_dense is None


def test_900_gb_per_second_is_both_directions_on_hopper_and_one_on_blackwell(catalogue: Catalogue) -> None:
    """The figure that is most often misread."""
    hopper = catalogue.get("gpu", "h100-sxm").specification.scale_up
    blackwell = catalogue.get("gpu", "b200-sxm").specification.scale_up
    assert hopper.bandwidth_both_directions.value == blackwell.bandwidth_one_direction.value == 900e9
    assert hopper.bandwidth_one_direction.value == 450e9


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a100-40-sxm", "specification.bf16_dense"),
        ("b200-sxm", "specification.pcie"),
        ("gaudi3", "specification.nic"),
        ("h100-nvl", "specification.fp8_dense"),
        ("h20", "specification.power"),
        ("h200-sxm", "specification.memory_usable"),
        ("h800-sxm", "specification.memory"),
        ("l4", "specification.nic"),
        ("l40s", "specification.nic"),
        ("rtx-5090", "specification.bf16_dense"),
        ("rtx-pro-6000-server", "specification.nic"),
        ("tpu-v7", "specification.memory_bandwidth"),
    ],
)
def test_recalled_and_placeholder_numbers_are_marked(catalogue: Catalogue, name: str, path: str) -> None:
    """What nobody read in a source is listed as unverified."""
    assert path in unverified(catalogue.get("gpu", name))


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("H100", "h100-sxm"), ("h200", "h200-sxm"), ("A100", "a100-80-sxm"), ("a100-40gb", "a100-40-sxm"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"), ("B200", "b200-sxm"), ("4090", "rtx-4090"), ("trillium", "tpu-v6e"),
    ],
)  # fmt: skip
def test_people_find_the_gpu_that_they_mean(catalogue: Catalogue, typed: str, name: str) -> None:
    """Aliases lead to the profile, in any case, the driver's own names included."""
    assert catalogue.get("gpu", typed).name == name
