"""Predicted weight syncs: affine in bytes, published times inside their bands, directions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.estimates.belief import conditioned, interval, prior, scattered
from rlsize.estimates.constants_sync import STAGE
from rlsize.estimates.figures import apply, numbers
from rlsize.estimates.sync_outlook import sync_outlook
from rlsize.estimates.sync_prediction import TRANSPORTS, SyncTimeQuestion, sync_bytes, sync_time
from rlsize.readers.profiles import Catalogue

CATALOGUE = Catalogue()
BELIEF = prior(STAGE)
VALUES = BELIEF.central()
QUESTION = SyncTimeQuestion(model=CATALOGUE.get("model", "qwen3-8b"), gpu=CATALOGUE.get("gpu", "h100-sxm"))
NAMES = sorted(TRANSPORTS)


def seconds(question: SyncTimeQuestion) -> float:
    """Seconds at the central constants."""
    return float(sync_time(numbers, question, VALUES))


@pytest.mark.parametrize("name", NAMES)
@given(params=st.floats(1e6, 1e12), factor=st.floats(1.0, 100.0))
def test_more_bytes_never_take_less(name: str, params: float, factor: float) -> None:
    """Monotone in the size, and never less than the fixed time."""
    small, large = (seconds(replace(QUESTION, transport=name, params=size)) for size in (params, params * factor))
    assert large >= small >= VALUES[f"sync_fixed_{TRANSPORTS[name].fixed}"]


@pytest.mark.parametrize("name", [name for name in NAMES if TRANSPORTS[name].pieces != "buckets"])
def test_time_is_affine_in_bytes(name: str) -> None:
    """Twice the bytes add as much as the first half did."""
    sizes = (40e9, 80e9, 120e9)  # beyond one bucket of the pipeline
    one, two, three = (seconds(replace(QUESTION, transport=name, params=size)) for size in sizes)
    assert three - two == pytest.approx(two - one, rel=1e-9)


def test_a_published_update_lies_in_the_band() -> None:
    """Kimi-K2 in fp8 to 16 H20 took 14.36 s by checkpoint-engine."""
    question = SyncTimeQuestion(
        model=CATALOGUE.get("model", "kimi-k2"),
        gpu=CATALOGUE.get("gpu", "h20"),
        transport="checkpoint-engine",
        dtype="fp8",
        rollout_gpus=16.0,
        instance_gpus=16.0,
    )
    draws = sync_time(numbers, question, BELIEF.drawn(1))
    low, high = interval(scattered(draws, STAGE.noise, 1, "row"))
    assert low < 14.36 < high


@pytest.mark.parametrize("name", NAMES)
def test_a_stack_has_its_own_way_to_broadcast_and_no_link_of_its_own(name: str) -> None:
    """Half of the handling at most halves an update, and leaves what the link takes; other classes stay."""
    question = replace(QUESTION, transport=name)
    quicker = float(sync_time(numbers, question, VALUES | {"sync_broadcast_stack": 0.5}))
    whole, link = seconds(question), float(sync_time(numbers, question, VALUES | {"sync_broadcast_stack": 0.0}))
    broadcasts = TRANSPORTS[name].fixed == "broadcast"
    assert quicker == pytest.approx((whole + link) / 2 if broadcasts else whole)
    assert (0 < link < quicker < whole) == broadcasts


def test_quantising_on_the_way_costs_time() -> None:
    """fp8 halves the bytes, and the conversion costs more than it saves by the quickest transport."""
    wide, narrow = (seconds(replace(QUESTION, transport="nccl-reshard", dtype=dtype)) for dtype in ("bf16", "fp8"))
    ready = seconds(replace(QUESTION, transport="nccl-reshard", dtype="fp8", converted=False))
    assert ready < wide < narrow


def test_experts_cost_tensor_by_tensor() -> None:
    """A mixture of experts with its 18,867 tensors takes far longer than a dense model of its size."""
    moe, dense = (
        seconds(replace(QUESTION, model=CATALOGUE.get("model", name), transport="colocated-per-tensor"))
        for name in ("qwen3-30b-a3b", "qwen3-32b")
    )
    assert moe > 3 * dense


def test_wider_instances_receive_less() -> None:
    """Point to point, each GPU of a wide instance takes a smaller shard, and fewer copies are sent."""
    question = replace(QUESTION, transport="nccl-reshard", trainer_gpus=16.0, rollout_gpus=16.0)
    narrow, wide = (seconds(replace(question, instance_gpus=ranks)) for ranks in (1.0, 8.0))
    assert wide < narrow


def test_two_measurements_narrow_the_band() -> None:
    """Two updates of different size leave a band a third as wide for another."""
    question = replace(QUESTION, transport="colocated")
    sizes, measured = (8e9, 70e9), (4.0, 12.0)
    after = conditioned(
        BELIEF,
        lambda values: [sync_time(numbers, replace(question, params=size), values) for size in sizes],
        measured,
        [0.05, 0.05],
    )
    asked = replace(question, params=30e9)
    widths = [np.subtract(*np.log(interval(sync_time(numbers, asked, belief.drawn(1))))) for belief in (BELIEF, after)]
    assert widths[1] / widths[0] < 1 / 3


def test_the_outlook_has_every_class_with_a_band() -> None:
    """The chosen class first, the others quickest first, each inside its band; doubts add up to at most all."""
    outlook = sync_outlook(replace(QUESTION, transport="colocated"), BELIEF, 0)
    assert {name for name, _ in outlook.others} == set(TRANSPORTS) - {"colocated"}
    for _, found in (("colocated", outlook.seconds), *outlook.others):
        assert found.band is not None
        assert found.band[0] < found.number < found.band[1]
    assert [found.number for _, found in outlook.others] == sorted(found.number for _, found in outlook.others)
    assert 0.5 < sum(doubt.share for doubt in outlook.doubts) <= 1


def test_bytes_are_explained() -> None:
    """The size of an update says which model it is of."""
    sent = sync_bytes(apply, QUESTION)
    assert sent.number == pytest.approx(2 * 8.19e9, rel=1e-3)
    assert sent.inputs["params"].provenance == "predicted"


def test_weights_that_stay_on_their_gpu_wait_for_no_cluster() -> None:
    """An engine on the trainer's only GPU has no collectives to set up; two GPUs have them."""
    alone, two = (seconds(replace(QUESTION, transport="colocated", trainer_gpus=n, rollout_gpus=n)) for n in (1.0, 2.0))
    assert alone < 0.5 * two
    assert alone > VALUES["sync_fixed_device"]


def test_senders_of_shards_convert_side_by_side() -> None:
    """Four times as many take a quarter of the time of a large conversion; gathered weights are converted as before."""

    def converting(transport: str, gpus: float) -> float:
        asked = replace(QUESTION, transport=transport, trainer_gpus=gpus, params=235e9, dtype="fp8")
        return seconds(asked) - seconds(replace(asked, converted=False))

    assert converting("nccl-reshard", 64.0) == pytest.approx(converting("nccl-reshard", 16.0) / 4)
    assert converting("nccl-broadcast", 64.0) == pytest.approx(converting("nccl-broadcast", 16.0))


@pytest.mark.parametrize("gpu", ["l40s", "a10g", "t4", "h100-pcie"])
def test_cards_gather_weights_at_what_collectives_reach_of_their_host(gpu: str) -> None:
    """Two share PCIe better than eight, who take longer than the bytes that each lacks at half of it."""
    asked = SyncTimeQuestion(
        model=CATALOGUE.get("model", "qwen3-8b"), gpu=CATALOGUE.get("gpu", gpu), transport="colocated"
    )
    two, eight = (seconds(replace(asked, trainer_gpus=gpus, rollout_gpus=gpus)) for gpus in (2.0, 8.0))
    link = asked.gpu.specification.scale_up.bandwidth_one_direction.value
    assert eight - two > 2 * 8e9 * (7 / 8 - 1 / 2) / (0.5 * link)
