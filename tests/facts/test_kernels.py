"""Kernel times: how tables are read where something was not measured, and what is borrowed from another GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rlsize.facts.fields import Sourced
from rlsize.facts.gpu import Gpu, GpuSpecification, ScaleUp, completed
from rlsize.facts.kernels import FAMILIES, Gemm, Kernels, Transfer, among, engine_all_reduce, kernels_of, pick

NUMBER = Sourced(value=1.0, source="sheet")
GEMM = Gemm(fixed=4e-6, memory_fraction=0.9, compute_fraction=0.8, exponent=2.0)
TWO, EIGHT = Transfer(fixed=2e-6, link_fraction=0.5), Transfer(fixed=8e-6, link_fraction=0.7)


def gpu(name: str, kernels: Kernels | None = None, like: str = "") -> Gpu:
    """An accelerator of made-up numbers."""
    scale_up = ScaleUp(
        link="nvlink4", bandwidth_one_direction=NUMBER, bandwidth_both_directions=NUMBER, domain_gpus=NUMBER
    )
    specification = GpuSpecification(
        bf16_dense=NUMBER, memory=NUMBER, memory_bandwidth=NUMBER, scale_up=scale_up, gpus_per_node=NUMBER
    )
    return Gpu(
        name=name,
        title=name,
        vendor="nobody",
        specification=specification,
        kernels=kernels,
        kernels_like=like,
        sources={"sheet": "a data sheet", "tables": f"kernels of {name}"},
    )


JOINED = replace(gpu("any").specification.scale_up, domain_gpus=replace(NUMBER, value=4.0))
MEASURED = gpu("measured", Kernels(source="tables", gemm={"bf16": GEMM}, host_launch=2e-5))
BARE = gpu("bare", like="measured")
PARTLY = gpu("partly", Kernels(source="tables", gemm={"bf16": replace(GEMM, fixed=9e-6)}), like="measured")
SHELF = {each.name: each for each in (MEASURED, BARE, PARTLY)}


@pytest.mark.parametrize(
    ("held", "wanted", "found"),
    [
        (("bf16", "fp8", "fp8_block"), "fp8_block", "fp8_block"),
        (("bf16", "fp8"), "fp8_block", "fp8"),
        (("bf16", "fp8_block"), "fp8", "fp8_block"),
        (("bf16", "mxfp4"), "fp4", "mxfp4"),
        (("bf16", "int4"), "mxfp4", "int4"),
        (("bf16",), "fp8", "bf16"),
        (("bf16",), "fp64", "bf16"),
    ],
)
def test_a_type_that_was_not_measured_has_a_stand_in(held: tuple[str, ...], wanted: str, found: str) -> None:
    """The nearest type of the table, else bf16, in which a GPU without such units computes."""
    assert pick(dict.fromkeys(held, 1), wanted) == (found, 1)


def test_an_empty_table_has_no_stand_in() -> None:
    """Nothing is made up."""
    with pytest.raises(KeyError):
        pick({}, "fp8")


def test_a_size_that_was_not_measured_is_that_of_the_next_larger_group() -> None:
    """Of the largest group beyond."""
    table = {"8_gpus": EIGHT, "2_gpus": TWO}
    assert [among(table, gpus) for gpus in (1, 2, 3, 8, 64)] == [TWO, TWO, EIGHT, EIGHT, EIGHT]


def test_an_unknown_engine_reduces_like_vllm() -> None:
    """Each engine has its own all-reduce."""
    kernels = Kernels(source="tables", all_reduce={"sglang": {"tp2": TWO}, "vllm": {"tp2": EIGHT}})
    assert engine_all_reduce(kernels, "sglang", 2) is TWO
    assert engine_all_reduce(kernels, "lmdeploy", 2) is EIGHT
    assert engine_all_reduce(Kernels(source="tables", all_reduce={"trtllm": {"tp2": TWO}}), "vllm", 4) is TWO


class TestBorrowing:
    """A GPU without kernel tables takes those of another, and says so."""

    def test_what_was_measured_is_left_alone(self) -> None:
        """There is nothing to borrow."""
        assert kernels_of(MEASURED, SHELF.__getitem__) == (MEASURED.kernels, MEASURED.sources)

    def test_a_bare_profile_borrows_everything(self) -> None:
        """The source comes along, and every family is named."""
        whole = completed(BARE, SHELF.__getitem__)
        assert whole.kernels is not None
        assert whole.kernels.gemm == {"bf16": GEMM}
        assert (whole.kernels.measured_on, whole.kernels.borrowed) == ("measured", FAMILIES)
        assert whole.sources[whole.kernels.source] == "kernels of measured"

    def test_a_table_of_its_own_stands(self) -> None:
        """Only missing families are borrowed."""
        whole = completed(PARTLY, SHELF.__getitem__).kernels
        assert whole is not None
        assert whole.gemm["bf16"].fixed == 9e-6
        assert whole.measured_on == "partly"
        assert "gemm" not in whole.borrowed
        assert "host_launch" in whole.borrowed

    def test_what_was_borrowed_may_be_borrowed_again(self) -> None:
        """Through a chain of two."""
        whole = completed(gpu("third", like="bare"), SHELF.__getitem__).kernels
        assert whole is not None
        assert whole.gemm == {"bf16": GEMM}

    def test_a_circle_ends(self) -> None:
        """Two profiles that name each other have no kernels."""
        circle = {"a": gpu("a", like="b"), "b": gpu("b", like="a")}
        assert completed(circle["a"], circle.__getitem__).kernels is None

    def test_collectives_may_lie_amid_those_of_several_hosts(self) -> None:
        """By their geometric means, and in place of its own; all else is the lender's."""

        def host(name: str, transfer: Transfer) -> Gpu:
            own = Kernels(
                source="tables", all_reduce={"vllm": {"tp2": transfer}}, nccl={"all_gather": {"2_gpus": transfer}}
            )
            return gpu(name, replace(own, gemm={"bf16": GEMM}), like="measured")

        shelf = {**SHELF, "slow": host("slow", TWO), "quick": host("quick", EIGHT)}
        asked = replace(shelf["slow"], collectives_like=("slow", "quick"))
        whole = completed(asked, shelf.__getitem__).kernels
        assert whole is not None
        amid = whole.nccl["all_gather"]["2_gpus"]
        assert (amid.fixed, amid.link_fraction) == pytest.approx((4e-6, 0.35**0.5))
        assert whole.all_reduce["vllm"]["tp2"] == amid
        assert whole.gemm == {"bf16": GEMM}
        assert {"all_reduce", "nccl"} <= set(whole.borrowed)

    def test_a_card_borrows_no_host(self) -> None:
        """It goes into any, where a board comes with those of its generation."""
        lender = replace(BARE, specification=replace(BARE.specification, scale_up=JOINED))
        for asked, launch in ((BARE, None), (lender, 2e-5)):
            whole = completed(asked, SHELF.__getitem__).kernels
            assert whole is not None
            assert whole.host_launch == launch


def test_what_a_card_reaches_goes_over_its_host() -> None:
    """GPUs of its node are joined without a network, and no adapter is quicker than the way to it."""
    card = replace(
        BARE.specification, gpus_per_node=replace(NUMBER, value=8.0), pcie=NUMBER, nic=replace(NUMBER, value=2.0)
    )
    board = replace(card, scale_up=JOINED)
    assert (card.joined_gpus.value, board.joined_gpus.value) == (8.0, 4.0)
    assert (card.adapter, board.adapter) == (card.pcie, board.nic)
    assert replace(board, nic=None).adapter == board.pcie
