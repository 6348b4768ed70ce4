"""Weight sync by method and link."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rlsize.estimates.sync import METHODS, LinkFigures, SyncQuestion, link_figures, link_rows, method_rows, sync_results
from rlsize.facts.fields import Sourced
from rlsize.facts.figure import Figure
from rlsize.facts.link import Link, LinkReached, LinkSpecification


def figure(key: str, value: float) -> Figure:
    """A given figure."""
    return Figure(key=key, value=value)


def typed(bandwidth: float, efficiency: float | None = None) -> LinkFigures:
    """A link that was typed, with the share of it that transfers reach."""
    link = LinkFigures(bandwidth=figure("bandwidth_bytes_per_second", bandwidth))
    return link if efficiency is None else replace(link, achievable_fraction=figure("achievable_fraction", efficiency))


def question(method: str = "nccl-broadcast", *, efficiency: float | None = None, **more: Any) -> SyncQuestion:
    """A 70B policy in bf16 over 50 GB/s."""
    link = typed(50e9, efficiency)
    asked = SyncQuestion(
        method=method,
        params=figure("params", 70e9),
        bytes_per_param=figure("bytes_per_param", 2.0),
        path=link,
        handover=link,
        changed_fraction=figure("changed_fraction", 0.02),
        reload_seconds=figure("reload_seconds", 0.0),
        hidden_seconds=figure("hidden_seconds", 0.0),
        sync_every=figure("sync_every", 1),
        target_fraction=figure("target_fraction", 0.05),
    )
    return replace(asked, **more)


def pools() -> dict[str, Any]:
    """8 instances of 4 GPUs beside 32 trainer GPUs, and a store that writes 10 and reads 40 GB/s."""
    return {
        "instances": figure("instances", 8),
        "tensor_parallel": figure("tensor_parallel", 4),
        "trainer_gpus": figure("trainer_gpus", 32),
        "write_bandwidth": figure("write_bandwidth_bytes_per_second", 10e9),
        "read_bandwidth": figure("read_bandwidth_bytes_per_second", 40e9),
    }


def found(asked: SyncQuestion) -> dict[str, Figure]:
    """The results by key."""
    return {entry.key: entry for entry in sync_results(asked)}


def test_the_lessons_70b_policy_over_one_adapter() -> None:
    """140 GB over 50 GB/s are 2.8 s, by the equation that says so."""
    results = found(question())
    assert results["transfer_bytes"].value == 140e9
    assert results["transfer_seconds"].value == 2.8
    assert results["transfer_seconds"].equation == "weight_sync.weight_sync_time"


@pytest.mark.parametrize(
    ("method", "sent", "seconds"),
    [
        ("nccl-broadcast", 140e9, 2.8),
        ("fp8", 70e9 * (1 + 4 / 16384), 1.4 * (1 + 4 / 16384)),
        ("delta", 8.4e9, 0.168),
        ("rdma", 140e9, 0.7),
        ("disk", 140e9, 14 + 28),
        ("object-store", 140e9, 14 + 3.5),
        ("colocated", 140e9, 2.8 * (1 / 4 - 1 / 32)),
    ],
)
def test_each_method_by_hand(method: str, sent: float, seconds: float) -> None:
    """Eight readers share a disk's 40 GB/s; from an object store each has them for itself."""
    results = found(question(method, **pools()))
    assert results["transfer_bytes"].number == pytest.approx(sent)
    assert results["transfer_seconds"].number == pytest.approx(seconds)


def test_an_efficiency_stretches_every_transfer_and_no_store() -> None:
    """At half the link everything takes twice as long, but for what the store decides."""
    for row in method_rows(question(efficiency=0.5, **pools())):
        factor = 1.0 if row["method"] in {"disk", "object-store"} else 2.0
        if row["method"] == "object-store":
            assert row["expected_transfer_seconds"].number == pytest.approx(
                14 + 140 / 25
            )  # the adapter is the slower one now
        else:
            assert row["expected_transfer_seconds"].number == pytest.approx(factor * row["transfer_seconds"].number)


def test_without_an_efficiency_nothing_is_expected() -> None:
    """The flag that would help is named; the nameplate time stands."""
    results = found(question())
    assert results["transfer_seconds"].known
    assert not results["expected_transfer_seconds"].known
    assert results["expected_transfer_seconds"].missing == "--efficiency"


def test_methods_come_quickest_first_and_the_unknown_last() -> None:
    """Every method has its row; those without an input say which."""
    rows = method_rows(question())
    assert {row["method"] for row in rows} == set(METHODS)
    assert [row["method"] for row in rows[:3]] == ["delta", "fp8", "nccl-broadcast"]
    assert {row["method"]: row["needs"] for row in rows[3:]} == {
        "rdma": "--instances, --trainer-gpus, --tensor-parallel",
        "disk": "--write-bandwidth, --read-bandwidth, --instances",
        "object-store": "--write-bandwidth, --read-bandwidth",
        "colocated": "--tensor-parallel, --trainer-gpus",
    }


def test_a_delta_of_the_break_even_share_is_as_large_as_a_full_copy() -> None:
    """A third of bf16 weights with 32-bit positions."""
    share = found(question())["break_even_changed_fraction"]
    assert share.number == pytest.approx(1 / 3)
    assert found(question("delta", changed_fraction=share))["transfer_bytes"].number == pytest.approx(140e9)


def test_fewer_trainer_gpus_than_an_instance_has_cannot_hand_over() -> None:
    """A shard of a quarter does not grow from a whole."""
    asked = question("colocated", **pools() | {"trainer_gpus": figure("trainer_gpus", 2)})
    assert not found(asked)["transfer_seconds"].known
    assert "--trainer-gpus" in found(asked)["transfer_seconds"].missing


def test_a_measured_sync_replaces_the_expected_one_of_its_method_only() -> None:
    """And says how much of the link it reached."""
    asked = question(efficiency=0.8, measured_seconds=figure("measured_sync_seconds", 14.0))
    results = found(asked)
    assert results["transfer_seconds"].value == 2.8
    assert results["expected_transfer_seconds"].value == 14.0
    assert results["achieved_bytes_per_second"].value == 10e9
    assert results["achieved_link_fraction"].value == pytest.approx(0.2)
    expected = {row["method"]: row["expected_transfer_seconds"].value for row in method_rows(asked)}
    assert expected["nccl-broadcast"] == 14.0
    assert expected["delta"] == pytest.approx(0.168 / 0.8)
    assert link_rows(asked, (typed(50e9, 0.8),))[0]["expected_transfer_seconds"].value == pytest.approx(3.5)


@pytest.mark.parametrize(("hidden", "exposed"), [(0.0, 2.8), (2.0, 0.8), (5.0, 0.0)])
def test_what_is_hidden_pauses_nothing(hidden: float, exposed: float) -> None:
    """More overlap than there is sync hides all of it."""
    results = found(question(hidden_seconds=figure("hidden_seconds", hidden), step_seconds=figure("step", 25.2)))
    assert results["exposed_sync_seconds"].number == pytest.approx(exposed)
    assert results["sync_pause_fraction"].number == pytest.approx(exposed / (25.2 + exposed))


def test_a_sync_every_m_steps_pauses_an_mth() -> None:
    """2.8 s in four steps of 10 s and the pause."""
    results = found(question(sync_every=figure("sync_every", 4), step_seconds=figure("step", 10.0)))
    assert results["sync_pause_fraction"].number == pytest.approx(2.8 / 42.8)


def link(measured: Sourced | None = None, assumed: Sourced | None = None) -> Link:
    """A link profile of 450 GB/s one way."""
    return Link(
        name="a-link",
        title="A link",
        specification=LinkSpecification(
            scope="node",
            bandwidth_one_direction=Sourced(value=450e9, source="sheet"),
            bandwidth_both_directions=Sourced(value=900e9, source="sheet"),
        ),
        measured=LinkReached(achievable_fraction=measured),
        assumed=LinkReached(achievable_fraction=assumed),
        sources={"sheet": "a data sheet", "copy": "copies between two GPUs", "guess": "somebody's code"},
    )


def test_what_was_measured_on_a_link_goes_before_what_is_assumed() -> None:
    """Its figure says so, and where from."""
    share = Sourced(value=0.88, source="copy")
    figures = link_figures(link(measured=share, assumed=Sourced(value=0.8, source="guess")))
    assert (figures.basis, figures.achievable_fraction.value) == ("measured", 0.88)
    assert figures.achievable_fraction.provenance == "measured"
    assert "copies between two GPUs" in figures.achievable_fraction.source
    assert figures.both_directions == 900e9


def test_an_assumed_share_is_marked_as_such() -> None:
    """Default, unverified, with its note."""
    share = Sourced(value=0.8, source="guess", verified=False, note="carried over")
    figures = link_figures(link(assumed=share))
    assert (figures.basis, figures.achievable_fraction.provenance) == ("assumed", "default")
    assert not figures.achievable_fraction.verified
    assert "carried over" in figures.achievable_fraction.source
    results = found(question(path=figures))
    assert not results["expected_transfer_seconds"].verified
    assert results["transfer_seconds"].verified


def test_a_link_that_nobody_knows_better_gives_no_expectation() -> None:
    """No share is made up."""
    assert not link_figures(link()).achievable_fraction.known
