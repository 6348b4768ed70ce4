"""A new launch says in its framework's words what a plan says, or what is wrong is told; nothing is rounded."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsize.frameworks.abilities import framework_mode
from rlsize.frameworks.new import NewLaunch, new_launch
from rlsize.frameworks.wanted import same, values
from rlsize.readers.frameworks import frameworks
from rlsize.readers.launch.launch import read_launch
from rlsize.readers.profiles import Catalogue
from rlsize.writers.launch.new import launch_text

DATA = Path(__file__).parent / "data"
NAMES = (
    "areal",
    "ms-swift",
    "nemo-rl",
    "open-instruct",
    "openrlhf",
    "pipeline-rl",
    "prime-rl",
    "rlinf",
    "roll",
    "skyrl",
    "slime",
    "trl",
    "verl",
)
ENGINES = {"slime": "sglang"}
ENDINGS = {"yaml": "x.yaml", "toml": "x.toml"}
MODES = ("colocated", "synchronous", "one-step-off", "async", "hybrid")
STALENESS = {"colocated": 0, "synchronous": 0, "one-step-off": 1}


@cache
def known() -> Any:
    """Frameworks that new launches can be written for."""
    return {name: one for name, one in frameworks(Catalogue()).items() if one.variants}


def plan(name: str, way: str, mode: str, **said: Any) -> tuple[NewLaunch, dict[str, Any], dict[str, Any]]:
    """8 instances of 2 GPUs beside a trainer of 16, on nodes of 8: 64 prompts x 8 samples; what comes of it."""
    needed: dict[str, Any] = {
        "trainer_gpus": 16, "rollout_gpus": 16, "instances": 8, "rollout_tensor_parallel": 2, "prompts_per_step": 64,
        "group_size": 8, "mini_batches": 1, "sync_every": 1, "max_staleness": STALENESS.get(mode, 2),
        "engine": ENGINES.get(name, "vllm"),
    } | {key: value for key, value in said.items() if not key.startswith("liked_")}  # fmt: skip
    liked = {key.removeprefix("liked_"): value for key, value in said.items() if key.startswith("liked_")}
    node, mixture = needed.pop("node", 8), needed.pop("mixture", False)
    both = needed["trainer_gpus"] + (0 if mode == "colocated" else needed["rollout_gpus"])
    given_ = {
        "mode": framework_mode(mode), "algorithm": "grpo", "gpus": both, "gpus_per_node": node, "mixture": mixture,
        "gpus_per_instance": needed["rollout_tensor_parallel"], "shared": mode == "colocated",
    }  # fmt: skip
    one = known()[name]
    return new_launch(one, one.variants[way], needed, liked, given_), needed, liked


def read_back(name: str, way: str, made: NewLaunch) -> dict[str, Any]:
    """What a launch tells when its text is read."""
    one = known()[name]
    text = launch_text(one, one.variants[way], made.keys)
    path = ENDINGS.get(one.variants[way].form, "x.sh")
    return values(read_launch(path, {name: one}, framework=name, text=text).reading)


def test_a_framework_runs_a_mode_or_says_why_not() -> None:
    """Its variants and what it refuses cover all modes but one that only a trainer of verl has."""
    assert tuple(sorted(known())) == NAMES
    for one in known().values():
        runs = {mode for variant in one.variants.values() for mode in variant.modes}
        assert runs | set(one.refuses) | {"hybrid"} == set(MODES), one.name
        assert not runs & set(one.refuses)


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15, deadline=None)
@given(drawn=st.data())
def test_a_new_launch_read_back_is_the_plan_or_is_refused(name: str, drawn: st.DataObject) -> None:
    """Whatever the plan: GPUs, batch, layout of engines, staleness, and all that is not named as unset."""
    way = drawn.draw(st.sampled_from(sorted(known()[name].variants)))
    variant = known()[name].variants[way]
    mode = drawn.draw(st.sampled_from(variant.modes))
    size, instances = drawn.draw(st.sampled_from([1, 2, 3, 4, 8, 16])), drawn.draw(st.integers(1, 16))
    every = drawn.draw(st.sampled_from([1, 1, 1, 2, 3]))
    pool = size * instances
    made, needed, liked = plan(
        name,
        way,
        mode,
        instances=instances,
        rollout_tensor_parallel=size,
        rollout_gpus=pool,
        trainer_gpus=pool if mode == "colocated" else drawn.draw(st.sampled_from([1, 2, 4, 8, 12, 16, 20, 24, 64])),
        node=drawn.draw(st.sampled_from([4, 8])),
        max_staleness=STALENESS.get(mode, drawn.draw(st.integers(1, 6))),
        sync_every=every,
        prompts_per_step=drawn.draw(st.sampled_from([60, 64, 100])),
        group_size=drawn.draw(st.sampled_from([1, 4, 8])),
        mini_batches=drawn.draw(st.sampled_from([1, 1, 2, 3])),
        mixture=drawn.draw(st.booleans()),
        liked_memory_fraction=drawn.draw(st.sampled_from([0.5, 0.85])),
        liked_max_response_tokens=drawn.draw(st.sampled_from([1024, 30000])),
        liked_micro_batch_tokens=drawn.draw(st.sampled_from([16384, 40960])),
        liked_recompute=drawn.draw(st.sampled_from(["none", "full"])),
        liked_model="Qwen/Qwen3-8B",
    )
    if made.unmet:
        assert all(one.what for one in made.unmet)
        return
    told = read_back(name, way, made)
    if variant.by_syncs:  # its step is what lies between two syncs
        merged = {"prompts_per_step": every, "mini_batches": every}
        needed |= {key: needed[key] * times for key, times in merged.items()}
        needed["max_staleness"] //= every
    if name == "pipeline-rl":  # it shares out whatever GPUs it is started on
        assert told["actor_share"] == needed["rollout_gpus"] / (needed["rollout_gpus"] + needed["trainer_gpus"])
        needed = {key: needed[key] for key in ("prompts_per_step", "group_size", "max_staleness")}
    wanted = needed | {key: value for key, value in liked.items() if key not in made.unset}
    names = known()[name].quantities
    assert {
        key: told.get(key) for key, value in wanted.items() if key in names and not same(told.get(key), value)
    } == {}


@pytest.mark.parametrize("name", NAMES)
def test_a_new_launch_is_what_was_checked_by_hand(name: str) -> None:
    """One plan for all: 8 x 2 rollout GPUs, 16 trainer GPUs, staleness 2, in the words of each framework."""
    mode = {"slime": "one-step-off", "ms-swift": "one-step-off", "rlinf": "synchronous"}.get(name, "async")
    said: dict[str, Any] = {"rollout_gpus": 8, "instances": 4} if name in {"ms-swift", "trl"} else {}
    one = known()[name]
    way = next(way for way, variant in one.variants.items() if mode in variant.modes)
    made, *_ = plan(name, way, mode, **said, liked_reference=False, liked_memory_fraction=0.85)
    assert not made.unmet
    assert launch_text(one, one.variants[way], made.keys) == (DATA / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "said", "says", "near"),
    [
        ("verl", {"rollout_gpus": 12, "instances": 6}, "do not fill whole nodes of 8", ("rollout_gpus", (8, 16))),
        ("verl", {"mini_batches": 3}, "64 prompts are no multiple of 3", ("prompts_per_step", (63, 66))),
        ("verl", {"sync_every": 4}, "2 steps of staleness are no multiple of 4", ("max_staleness", (4,))),
        ("verl", {"rollout_expert_parallel": 4}, "tensor x data parallel", ("rollout_expert_parallel", (1,))),
        ("nemo-rl", {"trainer_gpus": 20}, "20 trainer GPUs do not fill them", ("trainer_gpus", (16, 24))),
        ("nemo-rl", {"sync_every": 2}, "no key that was read for sync_every = 2", ("sync_every", (1,))),
        ("openrlhf", {"engine": "sglang"}, "OpenRLHF runs vllm", ("engine", ("vllm",))),
        ("trl", {}, "one server has 16 GPUs, and a node 8", ("rollout_gpus", (8,))),
        ("prime-rl", {"rollout_gpus": 12, "instances": 6}, "each side has whole nodes", ("rollout_gpus", (8, 16))),
        ("areal", {"liked_tensor_parallel": 3}, "16 trainer GPUs do not hold", ("trainer_gpus", (15, 18))),
        ("skyrl", {"mini_batches": 2}, "one update of each batch, not 2", ("mini_batches", (1,))),
        ("roll", {"trainer_gpus": 15}, "would lie across nodes", ("trainer_gpus", (14, 16))),
        ("pipeline-rl", {"mini_batches": 2}, "takes mini_batches = 1, not 2", ("mini_batches", (1,))),
    ],
)
def test_what_a_framework_cannot_express_is_named_with_the_nearest(
    name: str, said: dict[str, Any], says: str, near: tuple[str, tuple[Any, ...]]
) -> None:
    """The reason, and numbers close by that it can express."""
    way = next(way for way, variant in known()[name].variants.items() if "async" in variant.modes)
    made, *_ = plan(name, way, "async", **said)
    told = [one for one in made.unmet if says in one.what]
    assert told, made.unmet
    assert (told[0].quantity, told[0].nearest) == near


def test_a_dense_model_has_one_engine_in_a_server_of_trl() -> None:
    """Its data-parallel ranks are for experts; vLLM refuses them otherwise."""
    for mixture, refused in ((False, 1), (True, 0)):
        made, *_ = plan("trl", "server", "synchronous", rollout_gpus=8, instances=4, mixture=mixture)
        assert len(made.unmet) == refused


def test_a_reference_model_costs_no_gpus_that_no_plan_counts() -> None:
    """OpenRLHF has one by default, on 8 GPUs of its own: it shares the actor's, or is switched off."""
    kept, none = (plan("openrlhf", "async", "async", liked_reference=said)[0].keys for said in (True, False))
    assert kept["train.colocate_actor_ref"]
    assert kept["ref.num_nodes"] * kept["ref.num_gpus_per_node"] == 16
    assert none["algo.kl.init_coef"] == 0


def test_forms_survive_awkward_values() -> None:
    """Quotes in a shell, text in TOML and YAML: what is read is what was written."""
    one = known()["verl"]
    keys = {"data.train_files": "a b'c", "trainer.use_v1": True, "actor_rollout_ref.rollout.x": 'q"'}
    for form, path in (("overrides", "x.sh"), ("yaml", "x.yaml"), ("toml", "x.toml")):
        variant = replace(one.variants["sync"], form=form)
        read = read_launch(path, {"verl": one}, framework="verl", text=launch_text(one, variant, keys)).reading
        assert {key: read.value(key) for key in keys} == keys, form
