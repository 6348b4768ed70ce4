"""The kernel times of the shipped accelerators."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from rlsize.facts.kernels import FAMILIES
from rlsize.readers.profiles import Catalogue

if TYPE_CHECKING:
    from rlsize.facts.kernels import Kernels

KNOWN = {
    "a100-80-sxm", "b200-sxm", "b300-sxm", "gb200", "gb300", "h100-sxm", "h200-sxm", "l40s", "rtx-pro-6000-server",
}  # fmt: skip


def kernels(catalogue: Catalogue, name: str) -> Kernels:
    """The kernels of an accelerator, which must have some."""
    found = catalogue.get("gpu", name).kernels
    assert found is not None, f"{name}: say `kernels`, or `kernels_like: NAME` of the nearest GPU that has some"
    return found


def test_every_accelerator_has_all_families(catalogue: Catalogue) -> None:
    """Measured or borrowed, nothing is missing, so that every prediction has a number; a card's host is anyone's."""
    for name in catalogue.names("gpu"):
        found, card = kernels(catalogue, name), catalogue.get("gpu", name).specification.card
        assert all(getattr(found, family) for family in FAMILIES if not (card and family == "host_launch")), name


def test_collectives_of_cards_are_those_of_cards(catalogue: Catalogue) -> None:
    """Not those of NVLink: they reach less of PCIe the more GPUs there are, between what two hosts reached."""
    slow, quick = (catalogue.path_of("gpu", name) for name in ("l40s", "rtx-pro-6000-server"))
    low, high = (yaml.safe_load(path.read_text("utf-8"))["kernels"]["nccl"] for path in (slow, quick))
    for name in catalogue.names("gpu"):
        spec = catalogue.get("gpu", name).specification
        if spec.card and spec.scale_up.link.startswith("pcie"):
            for way, table in kernels(catalogue, name).nccl.items():
                shares = [table[size].link_fraction for size in ("2_gpus", "4_gpus", "8_gpus")]
                assert sorted(shares, reverse=True) == shares, (name, way)
                assert low[way]["8_gpus"]["link_fraction"] <= shares[2] <= high[way]["8_gpus"]["link_fraction"], (
                    name,
                    way,
                )


OWN = [name for name in Catalogue().names("gpu") if set(kernels(Catalogue(), name).borrowed) < set(FAMILIES)]
MEASURED = [name for name in OWN if kernels(Catalogue(), name).verified]


def test_what_is_borrowed_says_so(catalogue: Catalogue) -> None:
    """What was measured stays measured; the others name one that was, or say that numbers are derived."""
    assert set(MEASURED) >= KNOWN
    for name in set(catalogue.names("gpu")) - set(OWN):
        lender = kernels(catalogue, name).measured_on
        assert lender in MEASURED, f"{name} takes the kernels of {lender}, which nobody measured: see its kernels_like"


@pytest.mark.parametrize("name", MEASURED)
def test_times_are_of_the_right_size(catalogue: Catalogue, name: str) -> None:
    """Fixed times are microseconds and shares are near one, so no unit slipped."""
    found = kernels(catalogue, name)
    for gemm in found.gemm.values():
        assert 0 < gemm.fixed < 20e-6
        assert 0.5 < gemm.memory_fraction < 1.1
        assert 0.25 < gemm.compute_fraction < 0.95
        assert 1 <= gemm.exponent < 6
    assert all(5e-6 < entry.fixed < 20e-6 for entry in found.decode_attention.values())
    assert all(5e-9 < entry.seconds_per_sequence_head < 40e-9 for entry in found.decode_attention.values())
    assert all(200 < entry.half_length < 3000 for entry in found.prefill_attention.values())
    assert found.small_operation is not None
    assert 1e-6 < found.small_operation < 3e-6


@pytest.mark.parametrize("name", MEASURED)
def test_bf16_quantises_nothing_and_narrow_types_do(catalogue: Catalogue, name: str) -> None:
    """Activations are rounded before a multiplication in fp8 or fp4, unless what runs before does so."""
    gemms = kernels(catalogue, name).gemm
    assert {dtype for dtype, gemm in gemms.items() if not gemm.quantise_passes} == {"bf16", "fp8_static"} & set(gemms)


def test_engines_differ_in_their_all_reduce(catalogue: Catalogue) -> None:
    """Each of the three engines was measured wherever kernels were; small messages take a few microseconds."""
    for name in MEASURED:
        tables = kernels(catalogue, name).all_reduce
        missing = {"vllm", "sglang", "trtllm"} - set(tables)
        assert not missing, f"{name} lacks the all-reduce of {missing}: kernels.all_reduce of its file"
        for table in tables.values():
            assert all(2e-6 < transfer.fixed < 30e-6 for transfer in table.values())
    hopper = kernels(catalogue, "h100-sxm").all_reduce
    assert hopper["sglang"]["tp8"].fixed < hopper["vllm"]["tp8"].fixed
    assert "tp2" not in kernels(catalogue, "gb200").all_reduce["vllm"], "measured broken there"


def test_a_profile_that_lends_what_it_lacks_is_a_fault(
    catalogue: Catalogue, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """`kernels_like` must name a GPU that has kernels."""
    folder = tmp_path_factory.mktemp("profiles")
    (folder / "gpus").mkdir()
    text = catalogue.path_of("gpu", "h800-sxm").read_text(encoding="utf-8").replace("h800", "h899")
    (folder / "gpus" / "h899-sxm.yaml").write_text(
        text.replace("kernels_like: h100-sxm", "kernels_like: h800-sxm").replace("nvlink4-h899", "nvlink4-h800"),
        encoding="utf-8",
    )
    faults = type(catalogue)([folder]).check(folder)
    assert [fault.what for fault in faults] == ["h800-sxm has no kernels"]
