"""Plans that are solved by hand: splits, memory, colocation, deadlines, prices, and the least change where none is."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import pytest
from tests.planner.small_problems import (
    Posed,
    fleet,
    fleets_of,
    measured,
    predicted,
    said,
    trainer,
    trainers_of,
)

from rlsize.equations import matching
from rlsize.estimates.figures import apply
from rlsize.estimates.loop_memory import bare_trainer_memory
from rlsize.planner.evaluation import memory_of, worked
from rlsize.planner.options import Placement, TriedDegrees
from rlsize.planner.plan import planned
from rlsize.planner.search import search
from rlsize.planner.space import Limit

if TYPE_CHECKING:
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.planner.families import Family, Objective
    from rlsize.planner.least_change import LeastChange

ROLLOUT, TRAINER = "rollout_memory_headroom_fraction", "trainer_memory_headroom_fraction"
ONE_LAYOUT = TriedDegrees(tensor=(1,), pipeline=(1,), context=(1,), recompute=("full",))


def best(posed: Posed, objective: Objective = "time") -> Family:
    """The best plan."""
    return search(posed.outlook.central, posed.space, objective).best[0]


def split(family: Family) -> tuple[float, float]:
    """GPUs of both sides."""
    return float(family.place.rollout_gpus), float(family.place.trainer_gpus)


def per_gpu(rollout: float = 2000.0, tuned: float = 6000.0, tokens: float = 960_000.0, **more: Any) -> Posed:
    """A loop whose tokens per second and GPU are known on both sides."""
    prices = {key: more.pop(key) for key in ("rollout_hour", "trainer_hour") if key in more}
    fleets = (fleet(rollout, hour=prices.get("rollout_hour")),)
    return measured(fleets, (trainer(tokens / tuned, hour=prices.get("trainer_hour")),), tokens, **more)


def test_the_balanced_split_of_the_lesson() -> None:
    """64 GPUs at 2,000 and 6,000 tokens/s: 48 + 16, where 48 x 2,000 = 16 x 6,000 = 96,000, and nobody waits."""
    posed = per_gpu(gpus=64.0, loops=("async",))
    family = best(posed)
    assert split(family) == (48.0, 16.0)
    results = worked(posed.outlook.central, family.place)
    assert results["loop_tokens_per_second"] == pytest.approx(96_000.0)
    assert results["step_seconds"] == pytest.approx(10.0)
    assert results["rollout_idle_fraction"] == pytest.approx(0.0, abs=1e-12)
    assert results["trainer_idle_fraction"] == pytest.approx(0.0, abs=1e-12)


def test_the_split_is_the_best_of_all_that_leave_no_gpu() -> None:
    """40 GPUs: 30 + 10 make 60,000 tokens/s; a GPU more on either side leaves 58,000 or 54,000 of the other."""
    posed = per_gpu(gpus=40.0, loops=("async",))
    rates = {one.rollout_gpus: one.loop * 960_000.0 for one in planned(posed.outlook, posed.space, "time").splits}
    assert rates[30.0] == pytest.approx(60_000.0) == max(rates.values())
    assert rates[29.0] == pytest.approx(58_000.0)
    assert rates[31.0] == pytest.approx(54_000.0)


def test_the_best_split_is_among_the_points_of_a_picture() -> None:
    """Of hundreds of splits some dozens are drawn, 300 + 100 among them."""
    posed = per_gpu(gpus=400.0, loops=("async",))
    points = planned(posed.outlook, posed.space, "time").splits
    assert len(points) < 60
    assert 300.0 in {one.rollout_gpus for one in points}


def test_without_a_swap_colocated_equals_the_balanced_split() -> None:
    """64 GPUs that take turns: 1 / (1/128,000 + 1/384,000) = 96,000 tokens/s; a swap of 2 s makes it 80,000."""
    shared = best(per_gpu(gpus=64.0, loops=("colocated",)))
    assert shared.step_seconds == pytest.approx(10.0)
    swapped = per_gpu(gpus=64.0, swap_seconds=said("swap_seconds", 2.0))
    assert best(swapped.but(loops=("colocated",))).step_seconds == pytest.approx(12.0)
    assert best(swapped).place.loop != "colocated"


@pytest.mark.parametrize(("swap", "loop"), [(0.0, "colocated"), (9.0, "colocated"), (11.0, "async")])
def test_few_gpus_that_do_not_divide_stay_colocated(swap: float, loop: str) -> None:
    """3 GPUs at 1,000 tokens/s on either side: together 20 s a step and the swap; 1 + 2 or 2 + 1 take 30 s."""
    posed = per_gpu(
        1000.0, 1000.0, 30_000.0, gpus=3.0, loops=("colocated", "async"), swap_seconds=said("swap_seconds", swap)
    )
    family = best(posed)
    assert family.place.loop == loop
    assert family.step_seconds == pytest.approx(20.0 + swap if loop == "colocated" else 30.0)


@pytest.mark.parametrize(
    ("loops", "swap", "gpus"),
    [(("async",), 0.0, (7.0, 3.0)), (("colocated",), 0.0, (9.0, 9.0)), (("colocated",), 10.0, (11.0, 11.0))],
)
def test_a_deadline_takes_the_fewest_gpus(loops: tuple[str, ...], swap: float, gpus: tuple[float, float]) -> None:
    """
    500 steps of 960,000 tokens in 10 hours: 72 s a step, 13,333 tokens/s.

    Two pools: 6.67 rollout and 2.22 trainer GPUs, so 7 + 3. Taking turns, 1,500 tokens/s a GPU: 8.9, so 9; with a swap
    of 10 s, 62 s are left, and 10.3 GPUs make 11.
    """
    limit = Limit(key="step_seconds", value=36_000.0 / 500)
    posed = per_gpu(gpus=64.0, loops=loops, limits=(limit,), swap_seconds=said("swap_seconds", swap))
    family = best(posed, "gpus")
    assert split(family) == gpus
    assert family.step_seconds <= 72.0


def test_of_plans_with_as_few_gpus_the_cheaper_and_then_the_quicker_wins() -> None:
    """10 GPUs or fewer in 72 s: 7 + 3 takes 68.6 s; without prices GPU-hours decide, and they follow the step."""
    limit = Limit(key="step_seconds", value=72.0)
    family = best(per_gpu(gpus=12.0, loops=("async", "synchronous"), limits=(limit,)), "gpus")
    assert family.gpus == 10.0
    assert family.step_seconds == pytest.approx(960_000 / 14_000)


@pytest.mark.parametrize(("hour", "expected"), [(2.0, (2.0, 1.0)), (0.8, (3.0, 1.0))])
def test_cheap_rollouts_change_the_split_that_costs_least(hour: float, expected: tuple[float, float]) -> None:
    """
    4 GPUs at 2,000 and 5,000 tokens/s, a trainer GPU for $2.

    2 + 1 makes 4,000 tokens/s, 3 + 1 makes 5,000. At $2 a rollout GPU they cost 6 / 4,000 and 8 / 5,000 an hour and
    token/s; at $0.80 3.6 / 4,000 and 4.4 / 5,000: below $1 the third pays.
    """
    posed = per_gpu(2000.0, 5000.0, 10_000.0, gpus=4.0, loops=("async",), rollout_hour=hour, trainer_hour=2.0)
    family = best(posed, "cost")
    assert split(family) == expected
    rate = min(expected[0] * 2000.0, 5000.0)
    assert family.cost == pytest.approx((expected[0] * hour + 2.0) * 10_000.0 / rate / 3600.0)


def test_preemptible_rollouts_are_there_for_a_part_of_the_time() -> None:
    """Instances that are there for nine tenths of it: 2 + 1 makes 3,600 tokens/s, and 3 + 1 still 5,000, so it wins."""
    lost = said("available_fraction", 0.9)
    priced = {"gpus": 4.0, "loops": ("async",), "rollout_hour": 1.05, "trainer_hour": 2.0}
    assert split(best(per_gpu(2000.0, 5000.0, 10_000.0, **priced), "cost")) == (2.0, 1.0)  # 4.1 / 4,000 < 5.15 / 5,000
    assert split(best(per_gpu(2000.0, 5000.0, 10_000.0, available=lost, **priced), "cost")) == (3.0, 1.0)


def test_pools_of_the_same_gpus_at_two_prices_are_told_apart() -> None:
    """Spot and reserved trainer GPUs of one kind and as many of each: the cheaper ones are taken."""
    trainers = tuple(trainer(10.0, gpu="h", hour=hour, most=4.0) for hour in (4.0, 1.0))
    posed = measured((fleet(100.0, gpu="h", hour=1.0, most=4.0),), trainers, gpus=None)
    assert best(posed, "cost").place.trainer.gpu_hour.number == 1.0


def test_a_price_for_one_side_is_no_price() -> None:
    """Dollars of plans that need one price only are not compared with GPU-hours of the others."""
    posed = per_gpu(gpus=8.0, trainer_hour=1e6)
    found = planned(posed.outlook, posed.space, "cost")
    assert found.chosen is not None
    assert found.chosen.metric == "gpu_hours_per_step"
    assert not found.found.priced
    assert planned(posed.outlook, posed.but(loops=("colocated",)).space, "cost").found.priced


def test_every_mode_is_told_however_many_plans_of_another_are_better() -> None:
    """Hundreds of splits of one mode do not push the best of the others out."""
    posed = per_gpu(gpus=200.0, loops=("colocated", "synchronous", "async"))
    chosen = planned(posed.outlook, posed.space, "time").chosen
    assert chosen is not None
    synchronous = chosen.best_of("synchronous")
    assert synchronous is not None
    least = min(960_000 / (2000 * r) + 960_000 / (6000 * (200 - r)) for r in range(1, 200))
    assert synchronous.family.step_seconds == pytest.approx(least)


@pytest.mark.parametrize("product", [False, True])
def test_longer_responses_lengthen_both_sides_once(product: bool) -> None:
    """
    16 GPUs at 2,000 and 6,000 tokens/s: 12 + 4 take 20 s for 480,000 tokens; a fifth more of them 24 s.

    Whether the trainer's time was worked out from the lengths, or measured at them.
    """
    posed = per_gpu(gpus=16.0, tokens=480_000.0, loops=("async",))
    if product:
        tokens = posed.outlook.problem.response_tokens
        rate = said("trainer_gpu_tokens_per_second", 6000.0)
        seconds = apply("train_seconds", matching.train_time, tokens_per_step=tokens, consumption=rate)
        posed = posed.but(trainers=tuple(replace(one, seconds=seconds) for one in posed.space.trainers))
    swings = {one.name: one for one in planned(posed.outlook, posed.space, "time").swings}
    assert swings["response_tokens"].low == pytest.approx(16.0)
    assert swings["response_tokens"].high == pytest.approx(24.0)
    assert swings["trainer"].high == pytest.approx(24.0)
    assert swings["trainer"].low == pytest.approx(20.0)


# ---- no plan, and the least change that makes one possible


def changes(posed: Posed) -> dict[str, LeastChange]:
    """The least changes, of a loop that has no plan."""
    found = planned(posed.outlook, posed.space, "time")
    assert found.chosen is None
    assert [change.share for change in found.changes] == sorted(change.share for change in found.changes)
    return {change.key: change for change in found.changes}


def exists(posed: Posed) -> bool:
    """Whether there is a plan."""
    return bool(search(posed.outlook.central, posed.space).best)


@pytest.mark.parametrize(("node", "needed"), [(None, 11.0), (8.0, 16.0)])
def test_a_step_that_is_too_long_names_its_length_and_the_gpus(node: float | None, needed: float) -> None:
    """8 GPUs take 80 s at best, 6 + 2 or together; 60 s take 16,000 tokens/s: 8 + 3, or 10.7 GPUs together."""
    limit = Limit(key="step_seconds", value=60.0)
    posed = per_gpu(gpus=8.0, limits=(limit,), gpus_per_node=node)
    told = changes(posed)
    assert told["step_seconds"].needed == pytest.approx(80.0)
    assert told["step_seconds"].share == pytest.approx(1 / 3)
    assert told["gpus"].needed == needed
    assert exists(posed.but(limits=(replace(limit, value=told["step_seconds"].needed),)))
    assert not exists(posed.but(limits=(replace(limit, value=told["step_seconds"].needed * (1 - 1e-6)),)))
    assert exists(posed.but(gpus=needed))
    assert not exists(posed.but(gpus=needed - (node or 1.0)))


def test_a_lower_limit_is_moved_down() -> None:
    """1,080 steps a day are what 80 s allow."""
    limit = Limit(key="steps_per_day", value=1440.0, least=True)
    posed = per_gpu(gpus=8.0, limits=(limit,))
    needed = changes(posed)["steps_per_day"].needed
    assert needed == pytest.approx(1080.0)
    assert exists(posed.but(limits=(replace(limit, value=needed),)))
    assert not exists(posed.but(limits=(replace(limit, value=needed * (1 + 1e-6)),)))


def test_a_limit_of_nothing_is_moved_to_something() -> None:
    """Async plans are a step stale at least; a limit of 0 must become 1."""
    limit = Limit(key="staleness_steps", value=0.0)
    posed = per_gpu(gpus=8.0, loops=("async",), limits=(limit,))
    needed = changes(posed)["staleness_steps"].needed
    assert needed == 1.0
    assert exists(posed.but(limits=(replace(limit, value=needed),)))


def test_two_limits_that_no_single_change_meets_name_what_helps_both() -> None:
    """Each limit alone leaves the other broken; GPUs help the step and not the idle trainer."""
    limits = (Limit(key="step_seconds", value=60.0), Limit(key="gpu_hours_per_step", value=0.01))
    posed = per_gpu(gpus=8.0, limits=limits)
    assert changes(posed) == {}


def test_a_limit_on_gpus_moves_with_them() -> None:
    """Where the budget allows 8 GPUs and 8 there are, 11 are needed of both."""
    limits = (Limit(key="step_seconds", value=60.0), Limit(key="gpus", value=8.0))
    assert changes(per_gpu(gpus=8.0, limits=limits))["gpus"].needed == 11.0


def test_a_margin_that_is_too_wide_names_one_that_is_not() -> None:
    """A margin that no trainer keeps: the one that is named works, and one that is a little wider does not."""
    model, gpu = "qwen3-1.7b", "l40s"
    trainers = trainers_of(model, gpu, 64.0, 2300.0, ONE_LAYOUT)
    posed = predicted(model, fleets_of(model, gpu, (1,)), trainers, gpus=8.0, margin=0.9, loops=("async",))
    needed = changes(posed)["memory_margin"].needed
    assert 0.0 < needed < 0.9
    assert exists(posed.but(margin=needed))
    assert not exists(posed.but(margin=needed + 0.9 / 2**6))


# ---- memory of a 7B and of a 70B model


def asked_of(posed: Posed, gpus: float) -> TrainQuestion:
    """The first trainer of a space on so many GPUs."""
    question = posed.space.trainers[0].question
    assert question is not None
    return replace(question.bare(), gpus=gpus)


def states_of(posed: Posed, gpus: float) -> float:
    """What of the first trainer stays on each GPU from step to step."""
    values = posed.outlook.central.values
    return float(bare_trainer_memory(asked_of(posed, gpus), 1.0, values).states)


def place_of(posed: Posed, loop: Any, instances: float, gpus: float) -> Placement:
    """The first fleet and the first trainer of a space."""
    return Placement(
        loop=loop, fleet=posed.space.fleets[0], instances=instances, trainer=posed.space.trainers[0], trainer_gpus=gpus
    )


@pytest.mark.parametrize("gpus", [4.0, 8.0])
def test_the_rule_of_thumb_for_7b_holds_in_memory(gpus: float) -> None:
    """
    GRPO of 7B on 80 GB: 4 to 8 trainer GPUs and as many instances of one GPU.

    7.6 G parameters x 16 bytes are 122 GB: 30 GB on each of 4 GPUs, 15 GB on each of 8. Weights of 15 GB leave an
    instance most of its 72 GB.
    """
    model, gpu = "qwen2.5-7b", "h100-sxm"
    trainers = trainers_of(model, gpu, 2048.0, 1300.0, ONE_LAYOUT)
    posed = predicted(model, fleets_of(model, gpu, (1,)), trainers, 2048.0, 300.0, 1000.0, gpus=16.0)
    assert states_of(posed, gpus) == pytest.approx(7.615e9 * 16 / gpus, rel=0.01)
    left = memory_of(posed.outlook.central, place_of(posed, "async", gpus, gpus))
    assert left[TRAINER] > 0.05
    assert left[ROLLOUT] > 0.5


@pytest.mark.long
def test_the_planner_splits_16_gpus_for_7b_as_the_rule_of_thumb_does(rlsize: Any) -> None:
    """256 prompts x 8 samples of 1,000 tokens on 16 H100: within 4 to 8 GPUs on either side."""
    results = rlsize(*SEVEN, "--gpus", "16", "--json").results
    assert results["best_mode"] == "async"
    assert 4 <= results["best_rollout_gpus"] <= 8
    assert 4 <= results["best_trainer_gpus"] <= 8


@pytest.mark.long
def test_the_planner_splits_8_gpus_for_7b_as_the_rule_of_thumb_does(rlsize: Any) -> None:
    """In turn on all 8; 2 + 4 is too close to call, and 4 + 4 as quick as that: the trainer holds both back."""
    rows = rlsize(*SEVEN, "--gpus", "8", "--json").document["rows"]["candidates"]
    alike = {(row["rollout_gpus"], row["trainer_gpus"]): row["step_seconds"] for row in rows if row["mode"] == "async"}
    assert (rows[0]["mode"], rows[0]["trainer_gpus"]) == ("colocated", 8)
    assert alike[2, 4] == pytest.approx(alike[4, 4], rel=0.03)
    assert next(row for row in rows if row["mode"] == "async")["verdict"] == "too close"


SEVEN = ("plan", "--model", "qwen2.5-7b", "--gpu", "h100-sxm", "--prompts", "256", "--group", "8",
         "--prompt-tokens", "300", "--response-tokens", "1000")  # fmt: skip


@pytest.mark.parametrize(("gpus", "fits"), [(8.0, False), (16.0, False), (32.0, True), (64.0, True)])
def test_where_the_states_of_70b_fit(gpus: float, fits: bool) -> None:
    """
    16 bytes x 70.55 G parameters are 1,129 GB: 141 GB on each of 8 GPUs, 70.6 GB of 16, 35 GB of 32, 18 GB of 64.

    16 GPUs would hold them with 9 GB to spare, which 8,192 tokens do not fit into: their logits alone are 8,192 x
    128,256 x 2 bytes = 2.1 GB in each of several copies, and a layer is gathered besides.
    """
    trainers = trainers_of("llama3.1-70b", "h100-sxm", 512.0, 1800.0, ONE_LAYOUT)
    posed = predicted("llama3.1-70b", fleets_of("llama3.1-70b", "h100-sxm", (4,)), trainers, 512.0, response=1500.0)
    assert states_of(posed, gpus) == pytest.approx(16 * 70.55e9 / gpus, rel=0.01)
    left = memory_of(posed.outlook.central, place_of(posed, "async", 1.0, gpus))[TRAINER]
    assert bool(left >= posed.space.margin) == fits


@pytest.mark.parametrize(("tensor", "fits"), [(1, False), (2, False), (4, True), (8, True)])
def test_which_instances_of_70b_fit(tensor: int, fits: bool) -> None:
    """
    141 GB of weights: no GPU holds them; two have 70.6 of their 72 GB full; four 35 GB, eight 18 GB.

    Two GPUs have 1.4 GB left for activations, graphs and the cache of the longest sample, which are more.
    """
    fleets = fleets_of("llama3.1-70b", "h100-sxm", (tensor,))
    trainers = trainers_of("llama3.1-70b", "h100-sxm", 512.0, 1800.0, ONE_LAYOUT)
    posed = predicted("llama3.1-70b", fleets, trainers, 512.0, response=1500.0, gpus=64.0, loops=("async",))
    assert exists(posed) == fits


@pytest.mark.long
def test_64_gpus_for_70b_are_split_by_what_fits(rlsize: Any) -> None:
    """Trainers of 24 GPUs at least, or of 16 that offload their states; instances of 4 GPUs at least."""
    asked = ("plan", "--model", "llama3.1-70b", "--gpu", "h100-sxm", "--prompts", "64", "--group", "8",
             "--prompt-tokens", "300", "--response-tokens", "1500", "--gpus", "64", "--json")  # fmt: skip
    rows = rlsize(*asked).document["rows"]
    assert all(row["trainer_gpus"] >= 16 for row in rows["candidates"])
    sizes = [prod(int(degree[2:]) for degree in row["rollout_layout"].split()[1:]) for row in rows["candidates"]]
    assert min(sizes) >= 4
    left_out = {row["constraint"]: row["left_out"] for row in rows["rejected"]}
    assert left_out["rollout_memory"] >= 2  # tp1 and tp2
    assert left_out["trainer_memory"] > 0


# ---- what hybrid and budgets ask of memory and of GPUs


def test_only_gpus_of_one_kind_are_lent() -> None:
    """An instance that was measured on one kind of GPU says nothing about the trainer's, of another."""
    trainers = (trainer(10.0, 4.0, gpu="big", most=4.0),)
    fleets = tuple(fleet(100.0, gpu=gpu, most=4.0) for gpu in ("small", "big"))
    posed = measured(fleets, trainers, gpus=None, loops=("hybrid",))
    found = search(posed.outlook.central, posed.space)
    assert {family.place.fleet.gpu for family in found.best} == {"big"}


def test_sides_that_share_gpus_have_their_memory_in_turn() -> None:
    """
    A trainer has as much left on GPUs that engines use between its steps as on its own: its states make room.

    Published loops run where states and engines together would not fit: 33 GB of a 32B on 16 H100, and engines of 48.
    """
    model, gpu = "qwen3-1.7b", "h100-sxm"
    trainers = trainers_of(model, gpu, 64.0, 1300.0, ONE_LAYOUT)
    posed = predicted(
        model, fleets_of(model, gpu, (1,)), trainers, response=1000.0, gpus=2.0, margin=0.08, loops=("async", "hybrid")
    )
    alone, lent = (
        memory_of(posed.outlook.central, place_of(posed, loop, 1.0, 1.0))[TRAINER] for loop in ("async", "hybrid")
    )
    assert lent == pytest.approx(alone)
    found = search(posed.outlook.central, posed.space)
    assert {family.place.loop for family in found.best} == {"async", "hybrid"}


@pytest.mark.parametrize("side", [ROLLOUT, TRAINER])
@pytest.mark.parametrize("loop", ["colocated", "async", "hybrid"])
def test_a_budget_for_memory_is_kept(side: str, loop: Any) -> None:
    """A plan leaves what the budget wants free: here as much as the best that there is."""
    model, gpu = "qwen3-0.6b", "h100-sxm"
    degrees = TriedDegrees(tensor=(1, 2), pipeline=(1,), context=(1,), recompute=("none", "full"))
    trainers = trainers_of(model, gpu, 64.0, 1300.0, degrees)
    posed = predicted(model, fleets_of(model, gpu, (1, 2)), trainers, response=1000.0, gpus=4.0, loops=(loop,))
    everything = search(posed.outlook.central, posed.space)
    left = [float(memory_of(posed.outlook.central, family.place)[side]) for family in everything.best]
    least = max(left)
    limited = search(posed.outlook.central, posed.but(limits=(Limit(key=side, value=least, least=True),)).space)
    assert 0 < limited.feasible < limited.worked_out
    assert all(float(memory_of(posed.outlook.central, one.place)[side]) >= least * (1 - 1e-9) for one in limited.best)


def test_numbers_of_rollout_gpus_hold_for_colocated_plans_too() -> None:
    """Who asks for 4 rollout GPUs gets no plan with 8, whatever the mode."""
    posed = per_gpu(gpus=8.0, rollout_gpus=(4.0,))
    assert {float(family.place.rollout_gpus) for family in search(posed.outlook.central, posed.space).best} == {4.0}


def test_the_next_gpus_of_a_hybrid_plan_are_told_where_fewer_cannot_be_lent() -> None:
    """Instances of 4 GPUs on a trainer of 4: fewer trainer GPUs lend none, so only more are told."""
    posed = measured((fleet(400.0, 4.0),), (trainer(1.0, 4.0),), gpus=8.0, loops=("hybrid",), gpus_per_node=None)
    found = planned(posed.outlook, posed.but(trainer_gpus=(4.0,)).space, "time")
    assert {(one.side, one.gpus) for one in found.neighbours} == {("rollout", 4.0), ("trainer", 1.0)}


def test_neighbours_fit_in_memory() -> None:
    """The next smaller trainer that does not hold its states is not offered as an alternative."""
    trainers = trainers_of("llama3.1-70b", "h100-sxm", 512.0, 1800.0, ONE_LAYOUT)
    fleets = fleets_of("llama3.1-70b", "h100-sxm", (4,))
    posed = predicted("llama3.1-70b", fleets, trainers, 512.0, response=1500.0, gpus=64.0, loops=("async",))
    found = planned(posed.outlook, posed.space, "time")
    assert found.chosen is not None
    for one in found.neighbours:
        left = memory_of(posed.outlook.central, one.place)
        assert min(float(share) for share in left.values()) >= posed.space.margin
