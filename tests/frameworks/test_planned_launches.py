"""What is planned and written for a framework is read again as the same loop, which does not run out of memory."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.effort import NIGHTLY

from rlsize.loop.applied import applied
from rlsize.loop.phases import phases_of
from rlsize.loop.pools import LOOPS
from rlsize.loop.resolve import Loop, resolve
from rlsize.planner.evaluation import longest_tokens
from rlsize.planner.options import Placement
from rlsize.quantities.table import nested
from rlsize.readers.frameworks import frameworks
from rlsize.readers.profiles import Catalogue
from rlsize.shell.inputs import Inputs
from rlsize.shell.launches import keep_mode, untold, wanted_of, write_back
from rlsize.shell.new_launches import prepared
from rlsize.shell.planning import kept_within, search
from rlsize.writers.yaml_file import applied_text

KNOWN = {name: one for name, one in frameworks(Catalogue()).items() if one.variants}
ENDINGS = {"yaml": "x.yaml", "toml": "x.toml"}
SIZES = (
    ("qwen2.5-1.5b", "l40s", 2), ("qwen2.5-1.5b", "h100-sxm", 8), ("qwen3-8b", "l40s", 16), ("qwen3-8b", "h100-sxm", 8),
    ("qwen3-8b", "a100-80-sxm", 16), ("qwen3-14b", "h200-sxm", 8), ("qwen3-14b", "a100-80-sxm", 32),
    ("qwen3-32b", "h200-sxm", 16), ("qwen3-32b", "h100-sxm", 32), ("qwen3-30b-a3b", "h100-sxm", 32),
)  # fmt: skip
"""Models on GPUs: some have much room, some hardly any, some none."""
DRAWS = 8 if NIGHTLY else 1
MOST_TRIED = 6
"""Loops of which one can be planned."""


def question(name: str, draw: Random) -> dict[str, Any]:
    """A loop to plan for a framework: some hold, some do not, and some only just."""
    one = KNOWN[name]
    assert one.runs is not None
    written = {mode for variant in one.variants.values() for mode in variant.modes}
    mode = draw.choice(sorted({LOOPS[mode] for mode in one.runs.modes} & written))
    most = draw.choice([1024, 4096, 16384])
    model, gpu, gpus = draw.choice(SIZES)
    constant = {
        key for key in ("mini_batches", "reference") if one.quantities.get(key, "").strip("'") in {"1", "False"}
    }
    said: dict[str, Any] = {
        "model": model, "gpu": gpu, "gpus": gpus, "prompt_tokens": 256, "max_prompt_tokens": 1024,
        "prompts_per_step": draw.choice([64, 128, 512]), "group_size": draw.choice([4, 8, 16]),
        "mini_batches": 1 if "mini_batches" in constant else draw.choice([1, 1, 2]),
        "response_tokens": int(most * draw.choice([0.1, 0.3, 0.6])), "max_response_tokens": most,
        "framework": name, "searched_modes": mode, "reference": "reference" not in constant and draw.random() < 0.4,
    }  # fmt: skip
    if mode == "async":
        said["max_staleness"] = draw.choice([1, 2, 4])
    if "vllm" not in one.runs.engines:
        said["engine"] = one.runs.engines[0]
    return {key: value if isinstance(value, bool) else str(value) for key, value in said.items()}


def differing(planned: Placement, again: Loop) -> dict[str, tuple[Any, Any]]:
    """What of the placement that is read is not as it was planned."""
    assert again.place is not None
    assert planned.trainer.question is not None
    assert again.trainer.question is not None
    was, now = planned.trainer.question.bare(), again.trainer.question.bare()
    places = ("loop", "rollout_gpus", "trainer_gpus", "instances", "staleness")
    spread = ("tensor", "pipeline", "context", "expert", "recompute", "offload")
    pairs = {key: (getattr(planned, key), getattr(again.place, key)) for key in places}
    pairs |= {key: (getattr(was, key), getattr(now, key)) for key in spread}
    pairs["passes"] = (set(was.passes) - {"proximal"}, set(now.passes) - {"proximal"})
    if float(planned.trainer_gpus) > was.replica:
        pairs["sharding"] = (was.sharding, now.sharding)
    if now.keeps.samples is None:
        pairs["micro_batch"] = (was.micro_batch_tokens, now.micro_batch_tokens)
    else:  # whole samples of the greatest length, of which one is the least
        longest = float(longest_tokens(again.outlook.central))
        most = max(was.micro_batch_tokens * was.context, longest)
        pairs["micro_batch"] = (True, now.keeps.samples * longest <= most)
    engines = planned.fleet.engines[planned.shared], again.fleet.engines[planned.shared]
    assert not isinstance(engines[0], str)
    assert not isinstance(engines[1], str)
    pairs["layout"] = (engines[0].question.layout, engines[1].question.layout)
    pairs["memory_fraction"] = (engines[0].question.memory_fraction, engines[1].question.memory_fraction)
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def other_work(name: str, again: Loop, said: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """What of the batch and the lengths that are read is not as it was said."""
    problem, told = again.problem, KNOWN[name].quantities
    assert again.trainer.question is not None
    updates = again.trainer.question.bare().optimizer_steps
    pairs: dict[str, tuple[Any, Any]] = {}
    pairs["samples"] = (float(said["prompts_per_step"]) * float(said["group_size"]), problem.samples.number)
    pairs["mini_batches"] = (float(said["mini_batches"]), updates)
    if "max_response_tokens" in told:
        pairs["longest"] = (float(said["max_response_tokens"]), problem.max_tokens.number)
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def written_anew(name: str, draw: Random, folder: Path) -> Path | None:
    """A launch of some loop for a framework, which another plan can be written into; None where none can be."""
    for _ in range(MOST_TRIED):
        said = question(name, draw)
        inputs = Inputs(None, texts=said)
        found, _ranked = search(inputs)
        chosen = found.planned.chosen
        if chosen is not None:
            plan = folder / "plan.yaml"
            plan.write_text(applied_text(nested(applied(inputs.said_values("x"), found.loop, chosen.best.place)), ""))
            new = prepared(Inputs(str(plan)), "plan.yaml", name)
            file = folder / ENDINGS.get(new.framework.variants[new.way].form, "x.sh")
            file.write_text(_started(name, chosen.best.place) + new.text)
            return file
    return None


def _started(name: str, place: Placement) -> str:
    """The GPUs of a job, for a framework that shares out whatever it is started on."""
    gpus = int(place.gpus)
    if name != "pipeline-rl":
        return ""
    return f"#SBATCH --nodes={max(1, gpus // 8)}\n#SBATCH --gpus-per-node={min(8, gpus)}\n"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(DRAWS))
@pytest.mark.parametrize("name", sorted(KNOWN) if NIGHTLY else sorted(KNOWN)[::3])
def test_a_plan_that_is_written_is_that_plan_and_fits(name: str, seed: int, tmp_path: Path) -> None:
    """GPUs, layouts, micro batch, recomputation, offload, memory share, lengths, batch and mode; and no phase dies."""
    draw = Random(f"{name} {seed}")
    for _ in range(MOST_TRIED):
        said = question(name, draw)
        inputs = Inputs(None, texts=said)
        found, _ranked = search(inputs)
        chosen = found.planned.chosen
        if chosen is not None:
            break
    else:
        pytest.fail(f"none of {MOST_TRIED} loops can be planned for {name}")
    plan = tmp_path / "plan.yaml"
    plan.write_text(applied_text(nested(applied(inputs.said_values("x"), found.loop, chosen.best.place)), ""))
    new = prepared(Inputs(str(plan)), "plan.yaml", name)
    form = new.framework.variants[new.way].form
    file = tmp_path / ENDINGS.get(form, "x.sh")
    file.write_text(_started(name, chosen.best.place) + new.text)
    kept = {key: said[key] for key in ("gpu", "response_tokens", "prompt_tokens", "framework")}
    again = resolve(Inputs(str(file), texts=kept))
    phases = phases_of(again)
    assert phases is not None
    assert phases.verdict != "dies", phases.dying
    assert not again.refused
    assert not differing(chosen.best.place, again)
    assert not other_work(name, again, said)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(DRAWS))
@pytest.mark.parametrize("name", sorted(KNOWN) if NIGHTLY else ["slime"])
def test_a_plan_written_into_a_launch_is_that_plan_and_fits(name: str, seed: int, tmp_path: Path) -> None:
    """Read again, whatever its keys count for each GPU, it is as planned but for what is set besides, and none dies."""
    draw = Random(f"into {name} {seed}")
    file = written_anew(name, draw, tmp_path)
    if file is None:
        pytest.skip(f"no launch of {name} to write into")
    kept = {"gpu": draw.choice(["h100-sxm", "a100-80-sxm", "h200-sxm"]), "response_tokens": "600", "framework": name}
    inputs = Inputs(str(file), texts=kept)
    keep_mode(inputs)
    found, _ranked = search(inputs)
    chosen = found.planned.chosen
    if chosen is None:
        pytest.skip("nothing can be planned")
    values = applied(inputs.said_values("x"), found.loop, chosen.best.place)
    wanted = wanted_of(inputs, values)
    changed = tmp_path / f"changed-{file.name}"
    besides = kept_within(inputs, values, wanted)
    write_back(inputs, {**wanted, **besides}, str(changed), force=False)
    again = resolve(Inputs(str(changed), texts=kept))
    phases = phases_of(again)
    assert phases is not None
    different = differing(chosen.best.place, again)
    planned, read = different.get("staleness", (0.0, 0.0))
    within = {"staleness"} if planned < read else set()  # a cap that is said stays, as it allows less
    assert different.keys() <= {key.partition("_samples")[0] for key in besides} | within
    assert phases.verdict != "dies", phases.dying


SLIME = """\
ray job submit -- python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --colocate \\
  --hf-checkpoint /root/Qwen3-4B --rollout-batch-size 32 --n-samples-per-prompt 8 --global-batch-size 256 \\
  --rollout-max-response-len 8192 --rollout-num-gpus-per-engine 2 --tensor-model-parallel-size 2 \\
  --context-parallel-size 1 --use-dynamic-batch-size --max-tokens-per-gpu 9216
"""


def test_a_layout_that_changes_leaves_the_micro_batch_as_planned(tmp_path: Path) -> None:
    """A key that counts tokens for each GPU is halved where two of them share a sequence."""
    file, changed = tmp_path / "train.sh", tmp_path / "changed.sh"
    file.write_text(SLIME)
    inputs = Inputs(str(file))
    assert inputs.file is not None
    layout = {"trainer.parallelism.tensor": 1, "trainer.parallelism.context": 2}
    wanted = wanted_of(inputs, {**inputs.file.leaves(), **layout})
    assert wanted["micro_batch_tokens"] == 9216
    write_back(inputs, wanted, str(changed), force=False)
    assert "--max-tokens-per-gpu 4608" in changed.read_text()
    assert Inputs(str(changed)).said("trainer.micro_batch_tokens") == 9216


def test_a_plan_of_shared_gpus_leaves_those_that_a_critic_has_beside_them(tmp_path: Path) -> None:
    """Its GPUs are the trainer's, not all: slime's keys came to none, and nothing could be planned."""
    file = tmp_path / "train.sh"
    file.write_text(SLIME.strip() + " --advantage-estimator ppo --critic-num-gpus-per-node 8\n")
    inputs = Inputs(str(file))
    values = {**inputs.said_values("x"), "cluster.gpus": 8, "trainer.parallelism.tensor": 1}
    wanted = wanted_of(inputs, values)
    assert wanted["tensor_parallel"] == 1
    assert not wanted.keys() & {"gpus", "trainer_gpus"}
    assert wanted_of(inputs, {**values, "cluster.gpus": 4})["trainer_gpus"] == 4


def test_a_change_that_would_move_the_batch_cannot_be_told(tmp_path: Path) -> None:
    """One key of torchforge says both: a smaller micro batch was written, and the step with it."""
    file = tmp_path / "forge.yaml"
    file.write_text(
        "model: Qwen/Qwen3-8B\ngroup_size: 8\nlocal_batch_size: 16\nmax_req_tokens: 512\nmax_res_tokens: 512\n"
        "services: {policy: {procs: 1, num_replicas: 4}}\nactors: {trainer: {procs: 4}}\n",
        encoding="utf-8",
    )
    inputs = Inputs(str(file))
    assert "prompts_per_step would go from 8 to 1" in untold(inputs, {"micro_batch_samples": 2})
    assert not untold(inputs, {"recompute": "full"})


def test_a_plan_bounds_no_launch_that_has_no_bound(tmp_path: Path) -> None:
    """Staleness of slime's fully asynchronous rollout is in no key: one that a plan assumes made it another program."""
    file = tmp_path / "train.sh"
    own = "  --rollout-function-path fully_async_rollout.generate_rollout_fully_async --rollout-num-gpus 8 "
    file.write_text(SLIME.replace("train.py", "train_async.py").replace("--colocate ", "").rstrip() + " \\\n" + own)
    inputs = Inputs(str(file))
    assert inputs.file is not None
    assert inputs.said("placement.mode") == "async"
    leaves = {**inputs.file.leaves(), "placement.max_staleness": 1, "rollout.tensor_parallel": 4}
    wanted = wanted_of(inputs, leaves)
    assert "max_staleness" not in wanted
    assert not untold(inputs, wanted)
    assert "one-step-off" in untold(inputs, {**wanted, "max_staleness": 1})


def test_micro_batches_of_easyr1_are_planned_in_samples(tmp_path: Path) -> None:
    """It has no key for their tokens."""
    file = tmp_path / "x.sh"
    file.write_text(
        "python3 -m verl.trainer.main worker.actor.model.model_path=Qwen/Qwen2.5-7B-Instruct data.rollout_batch_size=64"
        " data.max_prompt_length=1024 data.max_response_length=1024 worker.actor.global_batch_size=64"
        " worker.actor.micro_batch_size_per_device_for_update=8 trainer.n_gpus_per_node=8 trainer.nnodes=1"
    )
    inputs = Inputs(str(file))
    assert inputs.file is not None
    wanted = wanted_of(inputs, {**inputs.file.leaves(), "trainer.micro_batch_tokens": 8192})
    assert wanted == {"micro_batch_samples": 4}


LONG = """\
python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen2.5-32B \\
  data.train_batch_size=512 data.max_prompt_length=2048 data.max_response_length=20480 \\
  actor_rollout_ref.rollout.n=16 actor_rollout_ref.rollout.tensor_model_parallel_size=4 \\
  actor_rollout_ref.rollout.gpu_memory_utilization=0.8 actor_rollout_ref.actor.ppo_mini_batch_size=32 \\
  actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.ppo_max_token_len_per_gpu=22528 \\
  actor_rollout_ref.actor.ulysses_sequence_parallel_size=8 actor_rollout_ref.actor.fsdp_config.fsdp_size=FSDP \\
  actor_rollout_ref.actor.fsdp_config.param_offload=True actor_rollout_ref.actor.fsdp_config.optimizer_offload=True \\
  actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu=22528 trainer.n_gpus_per_node=8 trainer.nnodes=16
"""


def test_a_plan_with_shorter_rings_keeps_the_tokens_of_each_gpu(tmp_path: Path) -> None:
    """Those of eight that shared a sequence were held on fewer: 128 GPUs had no plan for a launch that runs."""
    file = tmp_path / "train.sh"
    file.write_text(LONG.replace("FSDP", "-1"))
    inputs = Inputs(str(file), texts={"gpu": "h100-sxm"})
    keep_mode(inputs)
    found, _ranked = search(inputs)
    chosen = found.planned.chosen
    assert chosen is not None
    values = applied(inputs.said_values("x"), found.loop, chosen.best.place)
    context = values.get("trainer.parallelism.context", 1)
    assert (values["cluster.gpus"], context) == (128, 1)
    assert values["trainer.logprob_micro_batch_tokens"] == 22528
    changed = tmp_path / "changed.sh"
    write_back(inputs, wanted_of(inputs, values), str(changed), force=False)
    text = changed.read_text()
    assert "rollout.log_prob_max_token_len_per_gpu=22528" in text
    assert "fsdp_config.fsdp_size=-1" in text
    phases = phases_of(resolve(Inputs(str(changed), texts={"gpu": "h100-sxm"})))
    assert phases is not None
    assert phases.verdict != "dies"


def test_ranks_that_a_key_says_are_those_of_the_plan(tmp_path: Path) -> None:
    """Sharding over 16 of 128 GPUs would stay, though a plan shards over all of them."""
    file, changed = tmp_path / "train.sh", tmp_path / "changed.sh"
    file.write_text(LONG.replace("FSDP", "16"))
    inputs = Inputs(str(file))
    assert inputs.file is not None
    assert inputs.said("trainer.parallelism.fsdp") == 2
    layout = {"trainer.parallelism.context": 2, "trainer.parallelism.fsdp": 64}
    write_back(inputs, wanted_of(inputs, {**inputs.file.leaves(), **layout}), str(changed), force=False)
    assert Inputs(str(changed)).said("trainer.parallelism.fsdp") == 64


def test_a_plan_cuts_no_samples(tmp_path: Path) -> None:
    """A row of prime-rl is its micro batch, and the longest sample that there may be: a smaller one is not told."""
    file = tmp_path / "rl.toml"
    file.write_text(
        'seq_len = 16384\nmodel.name = "Qwen/Qwen3-8B"\ndeployment = {num_train_gpus = 4, num_infer_gpus = 4}\n'
        "[orchestrator]\nbatch_size = 256\ngroup_size = 8\nsampling.max_tokens = 4096\n"
    )
    inputs = Inputs(str(file))
    assert inputs.file is not None
    layout = {"trainer.micro_batch_tokens": 8192, "rollout.tensor_parallel": 2}
    wanted = wanted_of(inputs, {**inputs.file.leaves(), **layout})
    assert wanted == {"rollout_tensor_parallel": 2}
    assert "max_total_tokens would go from 16384 to 8192" in untold(inputs, {"micro_batch_tokens": 8192})
