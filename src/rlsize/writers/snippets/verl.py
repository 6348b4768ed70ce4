"""verl: hydra overrides; which trainer they are for goes by the mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Framework, KeyGroup, Keys, Snippet

if TYPE_CHECKING:
    from rlsize.writers.snippets.split import Split

_MAIN = "python3 -m verl.trainer.main_ppo"
_ONE_STEP = "python3 -m verl.experimental.one_step_off_policy.main_ppo"
_FULLY = "python3 -m verl.experimental.fully_async_policy.fully_async_main"
_ENGINES = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm"}
_ROLLOUT = "actor_rollout_ref.rollout"
_Written = tuple[str, Keys, tuple[str, ...]]


def snippet(split: Split) -> Snippet:
    """The overrides of a split."""
    split.only("tensor", "data", "pipeline", "expert")
    split.whole_batches()
    variants = {
        "sync": _sync,
        "one-step-off": _one_step_off,
        "separate-async": _separate_async,
        "fully-async": _fully_async,
    }
    command, keys, notes = variants[split.variant](split)
    group = KeyGroup("hydra overrides", "overrides", {**keys, **_engine(split)}, command)
    return Snippet(group, notes=(*notes, *split.trainer_note()))


def _trainer(split: Split) -> Keys:
    pool = split.trainer_pool()
    return {"trainer.nnodes": pool.nodes, "trainer.n_gpus_per_node": pool.per_node}


def _fleet(split: Split, prefix: str) -> Keys:
    pool = split.rollout_pool()
    return {f"{prefix}.nnodes": pool.nodes, f"{prefix}.n_gpus_per_node": pool.per_node}


def _batch(split: Split, prompts: int) -> Keys:
    return {
        "data.train_batch_size": prompts,
        "actor_rollout_ref.actor.ppo_mini_batch_size": split.mini_batch,
        f"{_ROLLOUT}.n": split.group,
    }


def _every_step(split: Split) -> None:
    if split.said.sync_every != 1:
        what = f"verl's {split.variant} trainer syncs weights after every batch, not every {split.said.sync_every}"
        split.refuse(what, "--sync-every", "nearest: --sync-every 1, or --mode async")


def _sync(split: Split) -> _Written:
    _every_step(split)
    split.fits(split.trainer_pool().per_node)
    mode: Keys = {"trainer.use_v1": True, "trainer.v1.trainer_mode": "sync"}
    return _MAIN, {**mode, **_trainer(split), **_batch(split, split.prompts)}, ()


def _one_step_off(split: Split) -> _Written:
    _every_step(split)
    keys: Keys = {
        "actor_rollout_ref.hybrid_engine": False,
        **_fleet(split, "rollout"),
        **_trainer(split),
        **_batch(split, split.prompts),
    }
    return _ONE_STEP, keys, ("Staleness is 1 by construction.",)


def _separate_async(split: Split) -> _Written:
    """
    V1 separate_async: a batch is the prompts of all updates between two syncs.

    A trajectory is dropped that spans more weight versions than the threshold; one that is k versions old spans k + 1.
    """
    versions = _versions(split)
    updates = split.said.sync_every * split.said.mini_batches
    keys: Keys = {
        "trainer.use_v1": True,
        "trainer.v1.trainer_mode": "separate_async",
        **_fleet(split, _ROLLOUT),
        f"{_ROLLOUT}.checkpoint_engine.backend": "nccl",
        **_trainer(split),
        "trainer.v1.separate_async.parameter_sync_step": updates,
        "trainer.v1.sampler.max_off_policy_threshold": versions + 1,
        "trainer.v1.sampler.max_off_policy_strategy": "drop",
        **_batch(split, updates * split.mini_batch),
    }
    notes = (
        f"The threshold counts weight versions that a trajectory spans: {versions} behind spans {versions + 1}.",
        f"The batch is parameter_sync_step x ppo_mini_batch_size, {updates} x {split.mini_batch}: verl asserts it.",
    )
    return _MAIN, keys, notes


def _fully_async(split: Split) -> _Written:
    """fully_async: the rollouter may be a share of a version's samples ahead; a version lasts from sync to sync."""
    versions = _versions(split)
    updates = split.said.sync_every * split.said.mini_batches
    ahead = (1 + versions) * updates * split.mini_batch
    keys: Keys = {
        "actor_rollout_ref.hybrid_engine": False,
        **_fleet(split, "rollout"),
        **_trainer(split),
        "async_training.staleness_threshold": versions,
        "async_training.trigger_parameter_sync_step": updates,
        "async_training.require_batches": 1,
        "async_training.partial_rollout": split.said.in_flight,
        "async_training.use_dynamic_resource_scheduling": split.said.mode == "hybrid" or None,
        "data.gen_batch_size": 1,
        **_batch(split, 0),
    }
    notes = (
        f"At most (1 + {versions}) x {updates} x 1 x {split.mini_batch} = {ahead} prompts go into a version.",
        "fully_async is to give way to V1's separate_async, say its maintainers (verl pull request 7567).",
    )
    return _FULLY, keys, notes


def _versions(split: Split) -> int:
    """Staleness in weight versions: verl counts syncs, a plan optimizer steps."""
    reason = "verl counts staleness in weight versions, one for each sync"
    return split.divided("steps of staleness", split.staleness, split.said.sync_every, "--max-staleness", reason)


def _engine(split: Split) -> Keys:
    degrees = split.said.rollout.said()
    whole = split.tensor * degrees.get("data", 1)
    if degrees.get("expert", whole) != whole:
        what = f"expert parallelism of {degrees['expert']} is not tensor x data parallel = {whole}"
        split.refuse(what, "rollout", f"nearest: experts over all {whole} ranks of an instance, or none")
    return {
        f"{_ROLLOUT}.name": _ENGINES.get(split.said.engine),
        f"{_ROLLOUT}.tensor_model_parallel_size": split.tensor,
        f"{_ROLLOUT}.data_parallel_size": degrees.get("data"),
        f"{_ROLLOUT}.pipeline_model_parallel_size": degrees.get("pipeline"),
        f"{_ROLLOUT}.expert_parallel_size": degrees.get("expert"),
        f"{_ROLLOUT}.gpu_memory_utilization": split.said.memory_fraction,
    }


FRAMEWORK = Framework(
    name="verl",
    title="verl",
    source="verl 0.9.0 (commit 1dda039b, 2026-08-22)",
    variants={
        "sync": ("colocated",),
        "one-step-off": ("one-step-off",),
        "separate-async": ("async", "one-step-off"),
        "fully-async": ("hybrid", "async", "one-step-off", "synchronous"),
    },
    snippet=snippet,
)
