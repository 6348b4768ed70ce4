"""The whole space of layouts: no flag that fixes one finds a better plan, and of equals the plainest is taken."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import NIGHTLY, tries

from rlsize.loop.search import Searched, searched
from rlsize.planner.choice import AS_GOOD
from rlsize.planner.options import Placement
from rlsize.quantities.rollout import SHARED_MEMORY_FRACTION
from rlsize.reports.plan import plan_report
from rlsize.shell.inputs import Inputs

SAME = 1 + 1e-8
_SMALL = (("qwen3-0.6b", 8), ("qwen3-4b", 16), ("qwen2.5-7b", 8))
_LARGE = (
    *_SMALL, ("qwen3-30b-a3b", 64), ("qwen3-32b", 128), ("llama3.1-70b", 256), ("qwen3-235b-a22b", 256),
    ("llama3.1-405b", 512), ("deepseek-v3", 512), ("deepseek-v3", 2048), ("kimi-k2", 1024), ("kimi-k2", 2048),
)  # fmt: skip
_FIXED = {
    "searched_rollout_tensor_parallel": ("1", "2", "4", "8", "16"),
    "searched_rollout_pipeline_parallel": ("1", "2", "4"),
    "searched_rollout_data_parallel": ("1", "8", "16", "64"),
    "searched_tensor_parallel": ("1", "2", "4", "8"),
    "searched_pipeline_parallel": ("1", "2", "4", "8", "16"),
    "searched_context_parallel": ("1", "2", "4", "8", "16"),
    "searched_expert_parallel": ("1", "8", "16", "64"),
    "searched_recompute": ("none", "selective", "full"),
    "offload": (True, False),
    "searched_modes": ("async", "colocated", "one-step-off"),
}


def planned(**said: Any) -> Searched:
    """The plan of a loop on H100s, 16 samples of each prompt unless said otherwise."""
    texts = {"gpu": "h100-sxm", "group_size": "16", "response_tokens": "2k", "prompts_per_step": "64", **said}
    return searched(
        Inputs(texts={key: one if isinstance(one, bool) else str(one) for key, one in texts.items()}), (None, "")
    )


def answer(found: Searched) -> Placement:
    """Where the answer runs."""
    assert found.planned.chosen is not None
    return found.planned.chosen.best.place


AT_NIGHT = pytest.mark.skipif(not NIGHTLY, reason="takes seconds, and the nightly run checks it: RLSIZE_NIGHTLY=1")


@pytest.mark.long
@given(
    st.sampled_from(_LARGE if NIGHTLY else _SMALL),
    st.dictionaries(st.sampled_from(sorted(_FIXED)), st.integers(0, 10), min_size=1, max_size=3),
    st.sampled_from([500, 2000, 8000]),
)
@settings(max_examples=tries(12))
def test_no_fixed_layout_finds_a_better_plan(loop: tuple[str, int], fixed: dict[str, int], tokens: int) -> None:
    """
    The best that is found is never longer than with a part of the space, layouts that few run among it.

    The answer is longer by what is as good at most, but where the part is of a layout that few run.
    """
    asked = {"model": loop[0], "gpus": loop[1], "response_tokens": tokens, "prompts_per_step": max(loop[1], 32)}
    layouts = {key: _FIXED[key][index % len(_FIXED[key])] for key, index in fixed.items()}
    whole, part = planned(**asked).planned, planned(**asked, **layouts).planned
    if part.found.best:
        best, rare = whole.found.best[0], whole.found.rare
        longest = part.found.best[0].step_seconds * SAME
        assert min(best.step_seconds, best.step_seconds if rare is None else rare.step_seconds) <= longest
        assert whole.chosen is not None
        if best.step_seconds <= longest:
            assert whole.chosen.best.family.step_seconds <= longest * (1 + AS_GOOD)


@AT_NIGHT
def test_instances_of_a_model_that_no_node_holds_lie_over_nodes_in_every_way() -> None:
    """DeepSeek-V3 on 512 H800: ranks of data and stages are tried beside tensors, and not all of it is tensors."""
    found = planned(model="deepseek-v3", gpu="h800-sxm", gpus=512, prompts_per_step=512, response_tokens="8k")
    layouts = {tuple(one.layout[kind] for kind in ("tensor", "data", "pipeline")) for one in found.planned.space.fleets}
    assert {(1, 16, 1), (8, 1, 2), (16, 1, 1), (8, 2, 1), (2, 4, 2)} <= layouts
    assert answer(found).fleet.layout["tensor"] <= 8


@pytest.mark.long
@pytest.mark.parametrize(
    ("said", "rollout", "trainer"),
    [
        ({"model": "qwen3-8b", "gpus": 32}, "tp2", "fsdp"),
        ({"model": "llama3.1-70b", "gpus": 128, "prompts_per_step": 128, "response_tokens": "8k"}, "tp8", "fsdp cp4"),
    ],
)
def test_of_plans_that_are_as_good_the_plainest_is_taken(said: dict[str, Any], rollout: str, trainer: str) -> None:
    """No stages beside context ranks for 2k tokens, no GPUs without a gain, no two context ranks that may not fit."""
    found = planned(**said)
    place = answer(found)
    assert place.fleet.name.removeprefix("h100-sxm ") == rollout
    assert place.trainer.name == trainer
    assert place.gpus <= found.planned.found.best[0].gpus
    assert found.planned.chosen is not None
    assert not any((found.planned.chosen.doubted, place.fleet.rare, place.trainer.rare))


_SHARED: dict[str, Any] = {"searched_modes": "colocated", "prompts_per_step": 256, "response_tokens": "8k"}


@pytest.mark.parametrize(("model", "gpus"), [("qwen3-32b", 16), ("qwen3-8b", 2)])
@pytest.mark.parametrize("share", ["0.5", "0.7", "0.8"])
def test_no_fixed_share_of_shared_memory_finds_a_better_plan(model: str, gpus: int, share: str) -> None:
    """The largest that fits is tried beside the usual one; what lies between is better by half a per cent at most."""
    said = {**_SHARED, "model": model, "gpus": gpus}
    whole, part = planned(**said).planned.found, planned(**said, memory_fraction=share).planned.found
    assert not part.best or whole.best[0].step_seconds <= part.best[0].step_seconds * 1.005


def test_a_cache_that_holds_a_step_back_takes_more_of_shared_memory() -> None:
    """32B on 16 with 8k tokens: engines get what the trainer leaves while it is away, and the plan says so."""
    found = planned(**_SHARED, model="qwen3-32b", gpus=16)
    usual = planned(**_SHARED, model="qwen3-32b", gpus=16, memory_fraction="0.6")
    assert (answer(found).fleet.memory_fraction(shared=True) or 0.0) > 0.6
    assert found.planned.found.best[0].step_seconds < usual.planned.found.best[0].step_seconds / (1 + AS_GOOD)
    assert found.planned.chosen is not None
    assert found.planned.chosen.evaluation.placement["memory_fraction"].number > 0.6


def test_a_cache_that_holds_all_samples_leaves_the_share_as_usual() -> None:
    """Few short samples: nothing is gained by more, and the usual share is the answer."""
    found = planned(model="qwen3-4b", gpus=8, searched_modes="colocated", prompts_per_step=8)
    assert answer(found).fleet.memory_fraction(shared=True) == SHARED_MEMORY_FRACTION


def test_a_share_that_is_said_holds_in_every_mode() -> None:
    """Beside a trainer as well as alone, and nothing else is tried."""
    fleets = planned(model="qwen3-8b", gpus=8, memory_fraction="0.7").planned.space.fleets
    assert {one.memory_fraction(shared=shared) for one in fleets for shared in (False, True)} == {0.7}


def test_a_share_that_leaves_no_room_for_what_engines_do_not_count_fits_on_no_shared_gpu() -> None:
    """0.97 of 24 GB leaves 0.7 GB beside the engine: two processes' contexts alone are more."""
    said = {"model": "qwen2.5-1.5b", "gpu": "rtx-4090", "gpus": 1, "prompts_per_step": 64, "group_size": 8}
    assert not planned(**said, memory_fraction="0.97").planned.found.best
    assert planned(**said, memory_fraction="0.8").planned.found.best


@pytest.mark.long
@pytest.mark.parametrize(
    "said",
    [
        {"model": "qwen2-72b", "gpu": "h800-sxm", "gpus": 32},
        {"model": "qwen2-7b", "gpu": "h800-sxm", "gpus": 2},
        {"model": "qwen2.5-0.5b", "gpus": 1, "lora_rank": 32},
        {"model": "qwen2.5-1.5b", "gpus": 1, "lora_rank": 32},
        {"model": "qwen2.5-3b", "gpus": 1, "lora_rank": 32},
        {"model": "qwen2.5-14b", "gpus": 2, "lora_rank": 32},
    ],
)
def test_published_minima_are_plans_without_a_flag(said: dict[str, Any]) -> None:
    """What verl says runs on so few GPUs (docs/perf/device_tuning.rst, 1dda039b), by offloading where it must."""
    lengths = {"prompt_tokens": 512, "response_tokens": 512, "max_response_tokens": 1024}
    assert answer(planned(**said, **lengths, prompts_per_step=1024, group_size=5)).gpus <= said["gpus"]


@pytest.mark.long
def test_experts_that_fit_by_offloading_are_planned() -> None:
    """Qwen3-30B-A3B on 8 H100: no GPU more."""
    asked = answer(planned(model="qwen3-30b-a3b", gpus=8, response_tokens="4k")).trainer.question
    assert asked is not None
    assert asked.offload


@pytest.mark.long
def test_a_loop_of_which_not_all_fits_names_gpus_and_what_alters_the_training() -> None:
    """8B on two cards of 24 GB: 4 of them, or adapters, each with the step that it leads to."""
    changes = {change.key: change for change in planned(model="qwen3-8b", gpu="rtx-4090", gpus=2).planned.changes}
    assert changes["gpus"].needed == 4
    assert changes["lora_rank"].best is not None
    assert changes["lora_rank"].best.gpus == 2


@AT_NIGHT
def test_a_batch_that_divides_better_is_offered_and_not_taken() -> None:
    """512 prompts of 8 leave 80 trainer GPUs out; a batch near them does not, and is named with its step."""
    said = {"model": "llama3.1-70b", "gpus": 128, "group_size": 8, "prompts_per_step": 512}
    found = planned(**said).planned
    (change,) = found.changes
    assert found.chosen is not None
    assert change.best is not None
    assert change.key == "prompts_per_step"
    assert change.best.step_seconds / change.needed < found.chosen.best.family.step_seconds / 512 / (1 + AS_GOOD)
    again = planned(**said | {"prompts_per_step": f"{change.needed:g}"}).planned.found.best[0]
    assert again.step_seconds <= change.best.step_seconds * SAME  # that of the layouts that suit the uneven batch
    assert change.best.step_seconds <= again.step_seconds * (1 + AS_GOOD)


@AT_NIGHT
def test_gpus_that_contradict_each_other_are_the_reason() -> None:
    """10 and 10 of 16, and 10 for a trainer on nodes of 8."""
    for more, reason in (({"searched_rollout_gpus": 10}, "more than the 16"), ({}, "not 10")):
        inputs = Inputs(texts={"model": "qwen3-8b", "gpu": "h100-sxm", "gpus": "16", "group_size": "16",
                               "response_tokens": "2k", "prompts_per_step": "64", "searched_trainer_gpus": "10",
                               **{key: str(value) for key, value in more.items()}})  # fmt: skip
        report = plan_report(searched(inputs, (None, "")).planned, inputs.told())
        assert reason in report.headline
