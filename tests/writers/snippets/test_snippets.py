"""A snippet says in its framework's words what the plan says, or refuses; nothing is rounded."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rlsize.facts.allocation import Allocation, Degrees
from rlsize.writers.snippets import frameworks
from rlsize.writers.snippets.snippet import Form, KeyGroup, Keys, Snippet, group_text
from rlsize.writers.snippets.split import Split

DATA = Path(__file__).parent / "data"
NAMES = ("areal", "nemo-rl", "openrlhf", "pipeline-rl", "prime-rl", "rlinf", "roll", "skyrl", "slime", "trl", "verl")
ENGINES = {"slime": "sglang", "areal": "sglang", "rlinf": "sglang"}
MODES = ("colocated", "synchronous", "one-step-off", "async", "hybrid")


def split_of(**said: Any) -> Split:
    """8 instances of 2 GPUs beside a trainer of 16, on nodes of 8: 64 prompts x 8 samples, staleness 2."""
    whole = {
        "title": "it", "variant": "", "instances": 8, "size": 2, "rollout_gpus": 16, "trainer_gpus": 16, "node": 8,
        "staleness": 2, "prompts": 64, "group": 8,
    }  # fmt: skip
    usual = {
        "source": "a plan", "mode": "async", "rollout": Degrees(tensor=2), "trainer": Degrees(), "sync_every": 1,
        "mini_batches": 1, "engine": "vllm", "in_flight": True, "reference": True,
    }  # fmt: skip
    of_the_loop = {key: value for key, value in said.items() if key not in whole}
    numbers = {key: value for key, value in said.items() if key in whole}
    return Split(said=Allocation(**{**usual, **of_the_loop}), **{**whole, **numbers})


def alternating(mode: str, staleness: int) -> int:
    """Staleness as the mode has it."""
    return {"colocated": 0, "synchronous": 0, "one-step-off": 1}.get(mode, max(1, staleness))


def text_of(made: Snippet) -> str:
    """What is printed, comments aside."""
    return "\n".join(group_text(group) for group in made.groups)


def parsed(made: Snippet) -> dict[str, Any]:
    """The keys of a snippet, read back from its text as a framework reads them."""
    found: dict[str, Any] = {}
    for group in made.groups:
        text = group_text(group)
        if group.form == "yaml":
            found |= flat(yaml.safe_load(text))
        elif group.form == "toml":
            found |= flat(tomllib.loads(text))
        else:
            words = shlex.split(text.replace("\\\n", " "))[len(shlex.split(group.command)) :]
            found |= overrides(words) if group.form == "overrides" else flags(words)
    return found


def flat(node: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested keys, dotted."""
    found: dict[str, Any] = {}
    for key, value in node.items():
        found |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found


def overrides(words: list[str]) -> dict[str, Any]:
    """`key=value` words, values as YAML has them."""
    return {key: yaml.safe_load(value) for key, _, value in (word.partition("=") for word in words)}


def flags(words: list[str]) -> dict[str, Any]:
    """`--key value` words; a flag that stands alone is true."""
    found: dict[str, Any] = {}
    for word in words:
        if word.startswith("--"):
            key = word[2:]
            found[key] = True
        else:
            found[key] = yaml.safe_load(word)
    return found


Said = tuple[int, int, int, "int | None"]


def verl(keys: dict[str, Any], split: Split) -> Said:
    """Nodes times GPUs; versions of weights back to steps."""
    trainer = keys["trainer.nnodes"] * keys["trainer.n_gpus_per_node"]
    tensor = keys["actor_rollout_ref.rollout.tensor_model_parallel_size"]
    if split.variant == "sync":
        return trainer, trainer, tensor, 0
    prefix = "actor_rollout_ref.rollout." if split.variant == "separate-async" else "rollout."
    rollout = keys[f"{prefix}nnodes"] * keys[f"{prefix}n_gpus_per_node"]
    mini = keys["actor_rollout_ref.actor.ppo_mini_batch_size"]
    if split.variant == "one-step-off":
        return rollout, trainer, tensor, 1
    if split.variant == "separate-async":
        updates = keys["trainer.v1.separate_async.parameter_sync_step"]
        assert keys["data.train_batch_size"] == updates * mini == split.said.sync_every * split.prompts
        versions = keys["trainer.v1.sampler.max_off_policy_threshold"] - 1
    else:
        updates = keys["async_training.trigger_parameter_sync_step"]
        assert updates * keys["async_training.require_batches"] * mini == split.said.sync_every * split.prompts
        versions = keys["async_training.staleness_threshold"]
    return rollout, trainer, tensor, versions * split.said.sync_every


def nemo(keys: dict[str, Any], split: Split) -> Said:
    """The trainer has what generation leaves of the cluster."""
    total = keys["cluster.num_nodes"] * keys["cluster.gpus_per_node"]
    tensor = keys["policy.generation.vllm_cfg.tensor_parallel_size"]
    assert keys["policy.train_global_batch_size"] * split.said.mini_batches == split.samples
    if keys["policy.generation.colocated.enabled"]:
        return total, total, tensor, 0
    pool = "policy.generation.colocated.resources."
    rollout = keys[f"{pool}num_nodes"] * keys[f"{pool}gpus_per_node"]
    return rollout, total - rollout, tensor, keys.get("grpo.async_grpo.max_trajectory_age_steps", 0)


def openrlhf(keys: dict[str, Any], split: Split) -> Said:
    """Engines times their GPUs; the queue is the staleness."""
    trainer = keys["actor.num_nodes"] * keys["actor.num_gpus_per_node"]
    rollout = keys["vllm.num_engines"] * keys["vllm.tensor_parallel_size"]
    assert keys["rollout.batch_size"] * keys["rollout.n_samples_per_prompt"] == split.samples
    assert not split.shared or (keys["train.colocate_all"] and rollout == trainer)
    return rollout, trainer, keys["vllm.tensor_parallel_size"], keys.get("train.async_queue_size", 0)


def trl(keys: dict[str, Any], split: Split) -> Said:
    """GPUs are those of the server and the launcher."""
    trainer = keys["num_processes"]
    updates = split.said.mini_batches
    assert (
        keys["per_device_train_batch_size"] * keys["gradient_accumulation_steps"] * trainer * updates == split.samples
    )
    if split.shared:
        return trainer, trainer, keys["vllm_tensor_parallel_size"], 0
    form = "-" if split.variant == "async-grpo" else "_"
    tensor = keys[f"tensor{form}parallel{form}size"]
    staleness = keys["max_staleness"] * split.said.sync_every if form == "-" else 0
    return tensor * keys[f"data{form}parallel{form}size"], trainer, tensor, staleness


def slime(keys: dict[str, Any], split: Split) -> Said:
    """The fleet's GPUs as they are; those of the actor where both share."""
    trainer = keys["actor-num-nodes"] * keys["actor-num-gpus-per-node"]
    rollout = trainer if keys.get("colocate") else keys["rollout-num-gpus"]
    assert keys["global-batch-size"] * split.said.mini_batches == split.samples
    return rollout, trainer, keys["rollout-num-gpus-per-engine"], 1 if "update-weights-interval" in keys else 0


def prime(keys: dict[str, Any], _: Split) -> Said:
    """GPUs on one node, whole nodes on several."""
    node = keys.get("deployment.gpus_per_node", 1)
    unit = "gpus" if keys["deployment.type"] == "single_node" else "nodes"
    rollout, trainer = (keys[f"deployment.num_{side}_{unit}"] * node for side in ("infer", "train"))
    tensor = keys["inference.vllm.tensor_parallel_size"]
    return rollout, trainer, tensor, keys["orchestrator.max_off_policy_steps"]


def areal(keys: dict[str, Any], _: Split) -> Said:
    """Products of the numbers in the strings, which are all of the cluster."""
    sides = [
        {dim: int(count) for dim, count in re.findall(r"([a-z])(\d+)", keys[f"{side}.backend"].partition(":")[2])}
        for side in ("rollout", "actor")
    ]
    rollout, trainer = (side["d"] * side["p"] * side["t"] * side.get("c", 1) for side in sides)
    assert keys["cluster.n_nodes"] * keys["cluster.n_gpus_per_node"] == rollout + trainer
    return rollout, trainer, sides[0]["t"], keys["rollout.max_head_offpolicyness"]


def skyrl(keys: dict[str, Any], split: Split) -> Said:
    """Engines times their GPUs; workers within what SkyRL asserts."""
    engine = "generator.inference_engine."
    rollout = keys[f"{engine}num_engines"] * keys[f"{engine}tensor_parallel_size"]
    place = "trainer.placement.policy_num_"
    staleness = keys.get("trainer.fully_async.max_staleness_steps", 0)
    if staleness:
        mini = keys["trainer.policy_mini_batch_size"]
        workers = keys["trainer.fully_async.num_parallel_generation_workers"]
        assert mini == keys["trainer.train_batch_size"]
        assert mini <= workers <= mini * (staleness + 1)
    assert keys["trainer.placement.colocate_all"] == split.shared
    trainer = keys[f"{place}nodes"] * keys[f"{place}gpus_per_node"]
    return rollout, trainer, keys[f"{engine}tensor_parallel_size"], staleness


def roll(keys: dict[str, Any], split: Split) -> Said:
    """Lists of devices; apart, unless both sides share them."""
    ranges = [
        set(range(*map(int, re.findall(r"\d+", keys[f"{role}.device_mapping"]))))
        for role in ("actor_infer", "actor_train")
    ]
    assert bool(ranges[0] & ranges[1]) == split.shared
    tensor = keys["actor_infer.strategy_args.strategy_config.tensor_parallel_size"]
    return len(ranges[0]), len(ranges[1]), tensor, keys["async_generation_ratio"]


def pipeline(keys: dict[str, Any], split: Split) -> Said:
    """Shares of the GPUs that it is started on; lag in samples."""
    parts = [keys[f"world.{side}_fraction"] for side in ("actor", "finetune")]
    rollout, trainer = (split.gpus * part / sum(parts) for part in parts)
    assert rollout == int(rollout)
    tensor = keys["vllm_config.vllm_kwargs.tensor-parallel-size"]
    return int(rollout), int(trainer), tensor, keys["max_lag"] // split.samples


def rlinf(keys: dict[str, Any], split: Split) -> Said:
    """Ranks of accelerators, both ends included."""
    place = "cluster.component_placement."
    if split.shared:
        low, high = map(int, keys[f"{place}actor,rollout,reward"].split("-"))
        return high - low + 1, high - low + 1, keys["rollout.tensor_parallel_size"], 0
    fleet, actor = (tuple(map(int, keys[f"{place}{name}"].split("-"))) for name in ("rollout", "actor,reward"))
    assert actor[0] == fleet[1] + 1
    return fleet[1] - fleet[0] + 1, actor[1] - actor[0] + 1, keys["rollout.tensor_parallel_size"], 0


READ: dict[str, Callable[[dict[str, Any], Split], Said]] = {
    "areal": areal, "nemo-rl": nemo, "openrlhf": openrlhf, "pipeline-rl": pipeline, "prime-rl": prime, "rlinf": rlinf,
    "roll": roll, "skyrl": skyrl, "slime": slime, "trl": trl, "verl": verl,
}  # fmt: skip


def test_frameworks_are_found_by_listing_the_folder() -> None:
    """A framework is one file, whose modes are either run or refused with a reason."""
    assert tuple(sorted(frameworks())) == NAMES == tuple(sorted(READ))
    for module in frameworks().values():
        run = {mode for modes in module.variants.values() for mode in modes}
        assert run | set(module.refused) | {"hybrid"} == set(MODES), module.name
        assert not run & set(module.refused)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=20)
@given(drawn=st.data())
def test_a_snippet_read_back_is_the_plan_or_is_refused(name: str, drawn: st.DataObject) -> None:
    """Whatever the split: GPUs of both sides, tensor parallelism and staleness come back, or nothing is printed."""
    module = frameworks()[name]
    variant = drawn.draw(st.sampled_from(sorted(module.variants)))
    mode = drawn.draw(st.sampled_from(module.variants[variant]))
    size = drawn.draw(st.sampled_from([1, 2, 3, 4, 8, 16]))
    instances = drawn.draw(st.integers(1, 16))
    pool = size * instances
    every = drawn.draw(st.sampled_from([1, 1, 1, 2, 3]))
    split = split_of(
        mode=mode,
        variant=variant,
        size=size,
        rollout=Degrees(tensor=size),
        instances=instances,
        rollout_gpus=pool,
        trainer_gpus=pool if mode == "colocated" else drawn.draw(st.sampled_from([1, 2, 4, 8, 12, 16, 20, 24, 64])),
        node=drawn.draw(st.sampled_from([4, 8])),
        staleness=alternating(mode, drawn.draw(st.integers(1, 6))),
        sync_every=every,
        prompts=drawn.draw(st.sampled_from([60, 64, 100])),
        group=drawn.draw(st.sampled_from([1, 4, 8])),
        mini_batches=drawn.draw(st.sampled_from([1, 1, 2, 3])),
        engine=ENGINES.get(name, "vllm"),
        mixture=drawn.draw(st.sampled_from([True, None])),
    )
    made = module.snippet(split)
    if split.refusals:
        assert all(fault.what and fault.todo.startswith("nearest: ") for fault in split.refusals)
    else:
        assert READ[name](parsed(made), split) == (split.rollout_gpus, split.trainer_gpus, size, split.staleness)


@pytest.mark.parametrize("name", NAMES)
def test_a_snippet_is_what_was_checked_by_hand(name: str) -> None:
    """One split for all: 8 x 2 rollout GPUs, 16 trainer GPUs, staleness 2, in the words of each framework."""
    module = frameworks()[name]
    mode = {"slime": "one-step-off", "rlinf": "synchronous"}.get(name, "async")
    said: dict[str, Any] = {"rollout_gpus": 8, "instances": 4} if name == "trl" else {}
    variant = next(way for way, modes in module.variants.items() if mode in modes)
    engine = ENGINES.get(name, "vllm")
    split = split_of(mode=mode, variant=variant, staleness=alternating(mode, 2), engine=engine, **said)
    made = module.snippet(split)
    assert not split.refusals
    assert text_of(made) == (DATA / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "said", "says", "near"),
    [
        ("verl", {"rollout_gpus": 12, "instances": 6}, "do not fill whole nodes of 8", "8 or 16"),
        ("verl", {"mini_batches": 3}, "64 prompts are no multiple of 3", "63 or 66"),
        ("verl", {"sync_every": 4, "staleness": 2}, "2 steps of staleness are no multiple of 4", "4"),
        ("verl", {"rollout": Degrees(tensor=2, expert=4)}, "not tensor x data parallel = 2", "all 2 ranks"),
        ("verl", {"size": 3, "instances": 8, "rollout_gpus": 24}, "do not fill nodes of 8", "2 or 4"),
        ("nemo-rl", {"trainer_gpus": 20}, "20 trainer GPUs are no multiple of 8", "16 or 24"),
        ("nemo-rl", {"sync_every": 2}, "not every 2", "--sync-every 1"),
        ("nemo-rl", {"rollout": Degrees(tensor=2, pipeline=2)}, "pipeline-parallel over 2", "tensor parallelism only"),
        ("openrlhf", {"engine": "sglang"}, "OpenRLHF runs vllm", "--engine vllm"),
        ("trl", {}, "one server has 16 GPUs, and a node 8", "--rollout-gpus 8"),
        ("prime-rl", {"rollout_gpus": 12, "instances": 6}, "each side has whole nodes", "8 or 16"),
        ("areal", {"trainer": Degrees(tensor=3)}, "16 trainer GPUs are no multiple of 3", "15 or 18"),
        ("skyrl", {"mini_batches": 2}, "one update of each batch, not 2", "--mini-batches 1"),
        ("roll", {"trainer_gpus": 15}, "would lie across nodes", "14 or 16"),
        ("pipeline-rl", {"rollout_gpus": 12, "instances": 6}, "each side has whole nodes", "8 or 16"),
        ("pipeline-rl", {"mini_batches": 2}, "makes 2 weight updates", "--mini-batches 1"),
    ],
)
def test_what_a_framework_cannot_express_is_refused_with_the_nearest(
    name: str, said: dict[str, Any], says: str, near: str
) -> None:
    """The reason, and a plan close by that it can express."""
    module = frameworks()[name]
    variant = next(way for way, modes in module.variants.items() if "async" in modes)
    split = split_of(**{"title": module.title, "variant": variant} | said)
    module.snippet(split)
    told = [fault for fault in split.refusals if says in fault.what]
    assert told
    assert near in told[0].todo


def test_a_dense_model_has_one_engine_in_a_server_of_trl() -> None:
    """Its data-parallel ranks are for experts; vLLM refuses them otherwise."""
    for mixture, refused in ((None, 1), (False, 1), (True, 0)):
        split = split_of(mode="synchronous", variant="server", rollout_gpus=8, instances=4, mixture=mixture)
        frameworks()["trl"].snippet(split)
        assert len(split.refusals) == refused


def test_a_reference_model_costs_no_gpus_that_no_plan_counts() -> None:
    """OpenRLHF has one by default, on 8 GPUs of its own: it shares the actor's, is switched off, or is warned of."""
    module = frameworks()["openrlhf"]
    made = {said: module.snippet(split_of(variant="async", reference=said)) for said in (True, False, None)}
    keys = {said: parsed(one) for said, one in made.items()}
    assert keys[True]["train.colocate_actor_ref"]
    assert keys[True]["ref.num_nodes"] * keys[True]["ref.num_gpus_per_node"] == 16
    assert keys[False]["algo.kl.init_coef"] == 0
    assert "8 GPUs of its own" in made[None].warnings[0]
    assert not made[True].warnings


def test_forms_survive_awkward_values() -> None:
    """Quotes in a shell, text in TOML."""
    keys: Keys = {"a.b": "x y'z", "c": True, "d": 0.25, "a.e": 'q"'}
    forms: tuple[Form, ...] = ("overrides", "yaml", "toml")
    for form in forms:
        assert parsed(Snippet(KeyGroup("", form, {**keys, "not.set": None}, "run it"))) == keys
    assert group_text(KeyGroup("", "flags", {"c": True, "d": 0.25})) == "--c \\\n--d 0.25\n"
