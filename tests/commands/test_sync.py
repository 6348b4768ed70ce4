"""`rlsize sync`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import tries

from rlsize.readers.profiles import Catalogue

Run = Callable[..., Any]
POLICY = ("sync", "--params", "70e9")
POOLS = ("--instances", "8", "--tensor-parallel", "4", "--trainer-gpus", "32")
STORE = ("--write-bandwidth", "10 GB/s", "--read-bandwidth", "40 GB/s")


def flat(text: str) -> str:
    """Text on one line, as it was before the terminal wrapped it."""
    return " ".join(text.split())


@pytest.mark.parametrize(("bandwidth", "seconds"), [("900 GB/s", 140 / 900), ("50 GB/s", 2.8), ("400 Gb/s", 2.8)])
def test_a_70b_policy_over_a_typed_bandwidth(rlsize: Run, bandwidth: str, seconds: float) -> None:
    """140 GB, and plain bytes over bandwidth."""
    results = rlsize(*POLICY, "--bandwidth", bandwidth, "--json").results
    assert results["transfer_bytes"] == 140e9
    assert results["transfer_seconds"] == pytest.approx(seconds)


@pytest.mark.parametrize(
    "named", [("--link", "nvlink4"), ("--link", "h100-nvlink"), ("--gpu", "h100-sxm"), ("--gpu", "h100")]
)
def test_nvlink_of_an_h100_goes_one_way(rlsize: Run, named: tuple[str, str]) -> None:
    """450 of the advertised 900 GB/s, with the note that says so, and the measured share of it expected."""
    ran = rlsize(*POLICY, *named, "--json")
    assert ran.results["transfer_seconds"] == pytest.approx(140 / 450)
    assert ran.results["expected_transfer_seconds"] == pytest.approx(140 / 450 / 0.88)
    assert any("900 GB/s: the sum of both directions" in note and "450 GB/s" in note for note in ran.document["notes"])
    assert ran.document["explain"]["achievable_fraction"]["provenance"] == "measured"
    assert ran.stderr == ""


def test_a_link_that_nobody_measured_is_expected_at_an_assumed_share(rlsize: Run) -> None:
    """And both the note and the provenance say that it is assumed."""
    ran = rlsize(*POLICY, "--link", "infiniband-400g", "--json")
    assert ran.results["expected_transfer_seconds"] == pytest.approx(2.8 / 0.8)
    assert any("assumed" in note for note in ran.document["notes"])
    assert ran.document["explain"]["achievable_fraction"]["provenance"] == "default"


def test_an_efficiency_goes_before_every_profile(rlsize: Run) -> None:
    """For a typed bandwidth as well as for a link."""
    for named in (("--link", "infiniband-400g"), ("--bandwidth", "50 GB/s")):
        results = rlsize(*POLICY, *named, "--efficiency", "0.5", "--json").results
        assert results["expected_transfer_seconds"] == pytest.approx(5.6)


def test_a_typed_bandwidth_expects_nothing(rlsize: Run) -> None:
    """Null, with the flag that would help as its reason."""
    document = rlsize(*POLICY, "--bandwidth", "50 GB/s", "--json").document
    assert document["results"]["expected_transfer_seconds"] is None
    assert "--efficiency" in document["explain"]["expected_transfer_seconds"]["reason"]


@pytest.mark.parametrize(
    ("bandwidth", "link", "half"),
    [("600 GB/s", "nvlink3", "300 GB/s"), ("0.9 TB/s", "nvlink4", "450 GB/s"), ("1800 GB/s", "nvlink5", "900 GB/s")],
)
def test_a_bandwidth_of_both_directions_is_warned_about(rlsize: Run, bandwidth: str, link: str, half: str) -> None:
    """With the link that it is advertised for, and its half."""
    ran = rlsize(*POLICY, "--bandwidth", bandwidth)
    assert ran.code == 0
    assert f"--link {link}" in flat(ran.stderr)
    assert half in flat(ran.stderr)


def test_a_one_way_bandwidth_is_not_warned_about(rlsize: Run) -> None:
    """Nothing on stderr."""
    assert rlsize(*POLICY, "--bandwidth", "450 GB/s").stderr == ""


def test_a_scenarios_bandwidth_is_warned_about_with_its_line(rlsize: Run, tmp_path: Path) -> None:
    """Wherever it stands."""
    file = tmp_path / "s.yaml"
    file.write_text("rlsize: {kind: scenario, version: 1}\nmodel: {params: 70B}\nweight_sync: {bandwidth: 900 GB/s}\n")
    warning = rlsize("sync", str(file), "--json").document["warnings"][0]
    assert "s.yaml:3" in warning
    assert "nvlink4" in warning


def test_a_cluster_sends_between_nodes_and_hands_over_inside_one(rlsize: Run) -> None:
    """Colocated GPUs of one node use its own link; a trainer of several nodes uses the network."""
    small = ("--tensor-parallel", "2", "--trainer-gpus", "8", "--json")
    ran = rlsize(*POLICY, "--cluster", "h100-infiniband-400g", *small)
    assert ran.results["transfer_seconds"] == pytest.approx(2.8)
    colocated = {row["method"]: row["transfer_seconds"] for row in ran.document["rows"]["methods"]}["colocated"]
    assert colocated == pytest.approx(140 * (1 / 2 - 1 / 8) / 450)
    large = rlsize(*POLICY, "--cluster", "h100-infiniband-400g", "--method", "colocated", *POOLS, "--json")
    assert large.results["transfer_seconds"] == pytest.approx(140 * (1 / 4 - 1 / 32) / 50)


@pytest.mark.parametrize(
    ("method", "seconds"),
    [("rdma", 0.7), ("disk", 42), ("object-store", 17.5), ("delta", 0.168), ("fp8", 1.4 * (1 + 4 / 16384))],
)
def test_the_method_that_is_asked_for_answers(rlsize: Run, method: str, seconds: float) -> None:
    """The results are the method's, and its row is marked by its name in the headline."""
    ran = rlsize(*POLICY, "--bandwidth", "50 GB/s", *POOLS, *STORE, "--method", method, "--json")
    assert ran.results["transfer_seconds"] == pytest.approx(seconds)
    assert f"by {method}" in ran.document["headline"]


def test_a_method_that_lacks_an_input_says_so_in_its_row(rlsize: Run) -> None:
    """Null in JSON, the flags in words."""
    rows = {
        row["method"]: row for row in rlsize(*POLICY, "--bandwidth", "50 GB/s", "--json").document["rows"]["methods"]
    }
    assert rows["rdma"]["transfer_seconds"] is None
    assert rows["rdma"]["needs"] == "--instances, --trainer-gpus, --tensor-parallel"
    assert rows["fp8"]["needs"] == ""


def test_fp8_on_the_wire_halves_the_bytes(rlsize: Run) -> None:
    """Of bf16."""
    assert rlsize(*POLICY, "--dtype", "fp8", "--json").results["transfer_bytes"] == 70e9


def test_links_are_compared_when_asked(rlsize: Run) -> None:
    """Every shipped one, quickest first; not otherwise."""
    ran = rlsize(*POLICY, "--compare-links", "--json")
    rows = ran.document["rows"]["links"]
    assert {row["link"] for row in rows} == set(Catalogue().names("link"))
    seconds = [row["transfer_seconds"] for row in rows]
    assert seconds == sorted(seconds)
    assert "links" not in rlsize(*POLICY, "--bandwidth", "50 GB/s", "--json").document["rows"]


def test_a_links_row_says_what_nobody_verified(rlsize: Run) -> None:
    """Measured, assumed, unverified."""
    rows = {
        row["link"]: row["efficiency"] for row in rlsize(*POLICY, "--compare-links", "--json").document["rows"]["links"]
    }
    assert rows["nvlink4"] == "88.0 % measured"
    assert rows["infiniband-400g"] == "80.0 % assumed"
    assert rows["ici-v7"] == "80.0 % unverified"


def test_without_any_link_the_bytes_are_told(rlsize: Run) -> None:
    """And what the time needs."""
    ran = rlsize(*POLICY)
    assert ran.code == 0
    assert "140 GB" in ran.stdout
    assert "--bandwidth or --link" in ran.stdout


def test_a_measured_sync_gives_pause_and_cadence(rlsize: Run) -> None:
    """9.5 s in steps of 20 s pause 32 %; every tenth step they pause under 5 %."""
    ran = rlsize("sync", "--sync-seconds", "9.5", "--step-without-sync", "20", "--json")
    assert ran.code == 0
    assert ran.results["expected_sync_pause_fraction"] == pytest.approx(9.5 / 29.5)
    assert ran.results["expected_sync_every_steps"] == 10
    assert "every 10 steps" in ran.document["headline"]


def test_the_wall_clock_of_a_step_has_its_sync_in_it(rlsize: Run) -> None:
    """29.5 s with a sync of 9.5 s are 20 s without; what nobody timed cannot be taken off."""
    said = ("sync", "--sync-seconds", "9.5", "--json")
    whole = rlsize(*said, "--step-seconds", "29.5").results
    assert whole["expected_sync_pause_fraction"] == pytest.approx(9.5 / 29.5)
    assert whole["expected_sync_every_steps"] == 10
    fewer = rlsize(*said, "--step-seconds", "24.75", "--every", "2").results
    assert fewer["expected_sync_pause_fraction"] == pytest.approx(9.5 / 49.5)
    for more in ((*POLICY, "--step-seconds", "20"), (*said[:3], "--step-seconds", "9")):
        ran = rlsize(*more)
        assert ran.code == 2
        assert "--step-seconds" in ran.stderr
    assert rlsize(*said, "--step-seconds", "29.5", "--step-without-sync", "20").code == 2


@pytest.mark.long
def test_a_described_loop_says_what_the_sync_sends_to(rlsize: Run, tmp_path: Path) -> None:
    """Its instances, their size, its trainer and its step; the seconds of a transfer have a key of their own."""
    file = tmp_path / "loop.yaml"
    file.write_text(
        "rlsize: {kind: scenario, version: 1}\nmodel: qwen3-8b\ncluster: {gpu: h100-sxm, gpus: 32}\n"
        "workload: {prompts_per_step: 64, group_size: 16, response_tokens: {mean: 3000}}\n"
        "placement: {mode: async, trainer_gpus: 16, rollout_gpus: 16}\nweight_sync: {transport: nccl-reshard}\n"
    )
    ran, loop = rlsize("sync", str(file), "--json"), rlsize("predict", "step", str(file), "--json")
    step = loop.results["step_seconds"] - loop.results["sync_exposed_seconds"]
    assert ran.document["inputs"].pop("step_seconds_without_sync") == pytest.approx(step)
    assert ran.document["inputs"]["method"] == "rdma"
    assert all(ran.document["inputs"][key] == value for key, value in loop.document["inputs"].items())
    shared = ran.results.keys() & loop.results.keys()
    assert shared == {"sync_seconds", "sync_exposed_seconds"}
    assert all(ran.results[key] == pytest.approx(loop.results[key]) for key in shared)
    assert ran.results["transfer_seconds"] > 0


def test_a_measured_sync_slower_than_a_send_per_tensor_is_named(rlsize: Run) -> None:
    """And one that is faster than its link is doubted."""
    slow = rlsize(*POLICY, "--bandwidth", "50 GB/s", "--sync-seconds", "28")
    assert "10.0 %" in flat(slow.stderr)
    assert "buckets" in flat(slow.stderr)
    fast = rlsize(*POLICY, "--bandwidth", "50 GB/s", "--sync-seconds", "1")
    assert "no transfer reaches" in flat(fast.stderr)


def test_a_scenario_and_a_flag_that_overrides_it(rlsize: Run, tmp_path: Path) -> None:
    """Model, interconnect, cadence and rates come from the file; the flag wins."""
    file = tmp_path / "scenario.yaml"
    file.write_text(
        "rlsize: {kind: scenario, version: 1}\n"
        "model: {params: 70B}\n"
        "cluster: {gpu: h100-sxm, interconnect: infiniband-400g}\n"
        "rollout: {dtype: fp8}\n"
        "weight_sync: {transport: nccl-broadcast, every: 2}\n"
        "rates: {train_seconds: 13.3, sync_seconds: 3 +- 0.5}\n"
    )
    ran = rlsize("sync", str(file), "--json")
    assert ran.results["transfer_seconds"] == pytest.approx(1.4)
    assert ran.results["sync_pause_fraction"] == pytest.approx(1.4 / 28)
    assert ran.results["expected_transfer_seconds"] == 3
    assert ran.document["explain"]["expected_sync_pause_fraction"]["band"]
    assert any("train_seconds" in note for note in ran.document["notes"])
    flagged = rlsize("sync", str(file), "--bandwidth", "25 GB/s", "--dtype", "bf16", "--every", "1", "--json")
    assert flagged.results["transfer_seconds"] == pytest.approx(5.6)


@pytest.mark.parametrize("named", [("--bandwidth", "50 ± 10 GB/s"), ("--link", "infiniband-400g")])
def test_an_uncertain_link_gives_bands(rlsize: Run, named: tuple[str, str]) -> None:
    """Bandwidth and efficiency are drawn; the bytes stay certain, and a certain bandwidth keeps its nameplate time."""
    explain = rlsize(*POLICY, *named, "--efficiency", "0.5 ± 0.1", "--json").document["explain"]
    low, high = explain["expected_transfer_seconds"]["band"]
    assert low < 5.6 < high
    assert (explain["transfer_seconds"].get("band") is not None) == ("±" in named[1])
    assert explain["transfer_bytes"].get("band") is None


def test_a_scenario_counts_with_all_that_it_says(rlsize: Run, tmp_path: Path) -> None:
    """A colocated loop hands over, pipeline stages shard too, small nodes need the network, adapters get a note."""
    file = tmp_path / "scenario.yaml"
    text = (
        "rlsize: {kind: scenario, version: 1}\n"
        "model: {params: 70B}\n"
        "cluster: {gpu: h100-sxm, interconnect: infiniband-400g, gpus_per_node: NODE}\n"
        "placement: {mode: colocated, trainer_gpus: 8}\n"
        "rollout: {tensor_parallel: 2, pipeline_parallel: 2}\n"
        "trainer: {lora_rank: 16}\n"
    )
    file.write_text(text.replace("NODE", "8"))
    ran = rlsize("sync", str(file), "--json")
    assert ran.results["transfer_seconds"] == pytest.approx(140 * (1 / 4 - 1 / 8) / 450)
    assert any("adapters" in note for note in ran.document["notes"])
    file.write_text(text.replace("NODE", "4"))
    assert rlsize("sync", str(file), "--json").results["transfer_seconds"] == pytest.approx(140 * (1 / 4 - 1 / 8) / 50)


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--bandwidth", "50 GB/s", "--link", "nvlink4"), "--bandwidth --link"),
        (("--link", "nvlnk4"), "nvlink4"),
        (("--gpu", "h100-sxn"), "h100-sxm"),
        (("--cluster", "nowhere"), "--cluster"),
        (("--bandwidth", "50"), "no unit"),
        (("--bandwidth", "1e-300 GB/s"), "too small"),
        (("--dtype", "bf17"), "bf16"),
        (("--method", "nccl"), "nccl-broadcast"),
        (("--efficiency", "1.2"), "at most 1"),
        (("--every", "1.5"), "whole number"),
        (("--target-share", "0"), "too small"),
        (("--params", "-1"), "more than 0"),
    ],
)
def test_bad_input_is_named_with_its_flag(rlsize: Run, flags: tuple[str, ...], says: str) -> None:
    """Exit code 2, nothing on stdout, no traceback."""
    ran = rlsize(*POLICY, *flags)
    assert (ran.code, ran.stdout) == (2, "")
    assert says in ran.stderr
    assert flags[0].split()[0] in ran.stderr


def test_nothing_to_send_and_nothing_measured_is_a_fault(rlsize: Run) -> None:
    """No model is ever assumed."""
    ran = rlsize("sync", "--bandwidth", "50 GB/s")
    assert ran.code == 2
    assert "--params" in ran.stderr


@pytest.mark.parametrize("form", ["--csv", "--markdown", "--explain"])
def test_every_form_names_the_methods(rlsize: Run, form: str) -> None:
    """CSV carries every cell."""
    ran = rlsize(*POLICY, "--bandwidth", "50 GB/s", form)
    assert ran.code == 0
    assert "object-store" in ran.stdout


def test_the_formula_is_explained(rlsize: Run) -> None:
    """With its numbers."""
    ran = rlsize(*POLICY, "--bandwidth", "50 GB/s", "--explain")
    assert "t_sync = b N / B" in ran.stdout
    assert "bandwidth       = 5e+10 [B/s]" in ran.stdout


def test_a_plot_compares_methods(rlsize: Run, tmp_path: Path) -> None:
    """In the terminal and as a picture; links have a table of their own."""
    ran = rlsize(*POLICY, "--link", "infiniband-400g", "--plot")
    assert ran.code == 0
    chart = ran.stdout.rsplit("\n\n", 1)[1]
    for name in ("delta", "fp8", "nccl-broadcast"):
        assert name in chart
    assert "nvlink5" not in chart
    target = tmp_path / "sync.svg"
    assert rlsize(*POLICY, "--link", "infiniband-400g", "--plot", str(target)).code == 0
    assert b"<svg" in target.read_bytes()


FLAGS = {
    "--params": "70.0", "--model": "qwen3-32b|llama3.3-70b", "--dtype": "bf16|fp8|fp32",
    "--method": "nccl-broadcast|fp8|delta|rdma|disk|object-store|colocated", "--bandwidth": "50.0 GB/s",
    "--link": "nvlink4|infiniband-400g|pcie5", "--gpu": "h100-sxm|b200", "--cluster": "h100-infiniband-400g",
    "--efficiency": "0.5", "--instances": "8", "--tensor-parallel": "4", "--trainer-gpus": "32",
    "--changed-fraction": "0.02", "--write-bandwidth": "10.0 GB/s", "--read-bandwidth": "40.0 GB/s",
    "--reload-seconds": "5.0", "--sync-seconds": "9.5", "--hidden-seconds": "1.0", "--step-seconds": "20.0",
    "--step-without-sync": "20.0",
    "--every": "2", "--target-share": "0.05", "--seed": "3",
}  # fmt: skip
GOOD = (
    {"--params": "70e9", "--bandwidth": "50 GB/s", "--step-without-sync": "20", "--efficiency": "0.5 ± 0.1"},
    {
        "--params": "70e9",
        "--link": "infiniband-400g",
        **dict(zip((*POOLS, *STORE)[::2], (*POOLS, *STORE)[1::2], strict=True)),
    },
    {"--sync-seconds": "9.5 ± 1", "--step-seconds": "20", "--every": "2"},
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=tries(30))
@given(data=st.data(), form=st.sampled_from(["", "--json", "--csv", "--markdown", "--explain", "--plot"]))
def test_junk_ends_in_an_answer_or_in_exit_code_2(
    rlsize: Run, spoilt: Run, checked: Run, data: st.DataObject, form: str
) -> None:
    """Whatever is typed, there is no traceback, and JSON is JSON."""
    line = data.draw(spoilt(GOOD, FLAGS, {"--bandwidth", "--link", "--gpu", "--cluster"}, {"--params", "--model"}))
    ran = rlsize("sync", *(f"{flag}={value}" for flag, value in line.items()), *([form] if form else []))
    checked(ran, "sync", form)


def test_a_sync_of_a_loop_is_more_than_its_transfer(rlsize: Run) -> None:
    """Gathering, handing over and loading count, as `predict step` has them, unless it was measured."""
    loop = ("--model", "qwen3-8b", "--gpu", "h100-sxm", "--gpus", "16", "--mode", "colocated", "--samples", "512",
            "--response-tokens", "1k")  # fmt: skip
    step = rlsize("predict", "step", *loop, "--json").results
    ran = rlsize("sync", *loop, "--json")
    assert ran.results["sync_seconds"] == pytest.approx(step["sync_seconds"])
    assert ran.results["sync_seconds"] > 10 * ran.results["expected_transfer_seconds"]
    assert "% of a step: `predict sync`." in ran.document["headline"]
    assert "sync_seconds" not in rlsize("sync", *loop, "--sync-seconds", "2", "--json").results
