"""verl: hydra overrides; which trainer they are for goes by the mode."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.writers.snippets.snippet import Part, Setting, Snippet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.writers.snippets.split import Split

NAME = "verl"
TITLE = "verl"
SOURCE = "verl 0.9.0 (commit 1dda039b, 2026-08-22)"
VARIANTS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "sync": ("colocated",),
        "one-step-off": ("one-step-off",),
        "separate-async": ("async", "one-step-off"),
        "fully-async": ("hybrid", "async", "one-step-off", "synchronous"),
    }
)
REFUSED: Mapping[str, tuple[str, str]] = MappingProxyType({})

_MAIN = "python3 -m verl.trainer.main_ppo"
_ONE_STEP = "python3 -m verl.experimental.one_step_off_policy.main_ppo"
_FULLY = "python3 -m verl.experimental.fully_async_policy.fully_async_main"
_ENGINES = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm"}
_ROLLOUT = "actor_rollout_ref.rollout"


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
    command, settings, notes = variants[split.variant](split)
    part = Part(title="hydra overrides", form="overrides", command=command, settings=(*settings, *_engine(split)))
    return Snippet(parts=(part,), notes=(*notes, *split.trainer_note()))


_Written = tuple[str, tuple[Setting, ...], tuple[str, ...]]


def _trainer(split: Split) -> tuple[Setting, ...]:
    pool = split.trainer_pool()
    return Setting("trainer.nnodes", pool.nodes), Setting("trainer.n_gpus_per_node", pool.per_node)


def _batch(split: Split, prompts: int) -> tuple[Setting, ...]:
    return (
        Setting("data.train_batch_size", prompts),
        Setting("actor_rollout_ref.actor.ppo_mini_batch_size", split.mini_batch),
        Setting(f"{_ROLLOUT}.n", split.group),
    )


def _every_step(split: Split) -> None:
    if split.sync_every != 1:
        what = f"verl's {split.variant} trainer syncs weights after every batch, not every {split.sync_every}"
        split.refuse(what, "--sync-every", "nearest: --sync-every 1, or --mode async")


def _sync(split: Split) -> _Written:
    _every_step(split)
    split.fits(split.trainer_pool().per_node)
    mode = (Setting("trainer.use_v1", value=True), Setting("trainer.v1.trainer_mode", "sync"))
    return _MAIN, (*mode, *_trainer(split), *_batch(split, split.prompts)), ()


def _one_step_off(split: Split) -> _Written:
    _every_step(split)
    pool = split.rollout_pool()
    fleet = (
        Setting("actor_rollout_ref.hybrid_engine", value=False),
        Setting("rollout.nnodes", pool.nodes),
        Setting("rollout.n_gpus_per_node", pool.per_node),
    )
    return _ONE_STEP, (*fleet, *_trainer(split), *_batch(split, split.prompts)), ("Staleness is 1 by construction.",)


def _separate_async(split: Split) -> _Written:
    """
    V1 separate_async: a batch is the prompts of all updates between two syncs.

    A trajectory is dropped that spans more weight versions than the threshold; one that is k versions old spans k + 1.
    """
    versions = _versions(split)
    updates = split.sync_every * split.mini_batches
    pool = split.rollout_pool()
    settings = (
        Setting("trainer.use_v1", value=True),
        Setting("trainer.v1.trainer_mode", "separate_async"),
        Setting(f"{_ROLLOUT}.nnodes", pool.nodes),
        Setting(f"{_ROLLOUT}.n_gpus_per_node", pool.per_node),
        Setting(f"{_ROLLOUT}.checkpoint_engine.backend", "nccl"),
        *_trainer(split),
        Setting("trainer.v1.separate_async.parameter_sync_step", updates),
        Setting("trainer.v1.sampler.max_off_policy_threshold", versions + 1),
        Setting("trainer.v1.sampler.max_off_policy_strategy", "drop"),
        *_batch(split, updates * split.mini_batch),
    )
    return (
        _MAIN,
        settings,
        (
            f"The threshold counts weight versions that a trajectory spans: {versions} behind spans {versions + 1}.",
            f"The batch is parameter_sync_step x ppo_mini_batch_size, {updates} x {split.mini_batch}: verl asserts it.",
        ),
    )


def _fully_async(split: Split) -> _Written:
    """fully_async: the rollouter may be a share of a version's samples ahead; a version lasts from sync to sync."""
    versions = _versions(split)
    updates = split.sync_every * split.mini_batches
    ahead = (1 + versions) * updates * split.mini_batch
    pool = split.rollout_pool()
    settings = (
        Setting("actor_rollout_ref.hybrid_engine", value=False),
        Setting("rollout.nnodes", pool.nodes),
        Setting("rollout.n_gpus_per_node", pool.per_node),
        *_trainer(split),
        Setting("async_training.staleness_threshold", versions),
        Setting("async_training.trigger_parameter_sync_step", updates),
        Setting("async_training.require_batches", 1),
        Setting("async_training.partial_rollout", split.in_flight),
        *([Setting("async_training.use_dynamic_resource_scheduling", value=True)] if split.mode == "hybrid" else []),
        Setting("data.gen_batch_size", 1),
        *_batch(split, 0),
    )
    return (
        _FULLY,
        settings,
        (
            f"At most (1 + {versions}) x {updates} x 1 x {split.mini_batch} = {ahead} prompts go into a version.",
            "fully_async is to give way to V1's separate_async, say its maintainers (verl pull request 7567).",
        ),
    )


def _versions(split: Split) -> int:
    """Staleness in weight versions: verl counts syncs, a plan optimizer steps."""
    reason = "verl counts staleness in weight versions, one for each sync"
    return split.divided("steps of staleness", split.staleness, split.sync_every, "--max-staleness", reason)


def _engine(split: Split) -> tuple[Setting, ...]:
    degrees = split.rollout.said()
    name = _ENGINES.get(split.engine)
    settings = [Setting(f"{_ROLLOUT}.name", name)] if name else []
    settings.append(Setting(f"{_ROLLOUT}.tensor_model_parallel_size", split.tensor))
    if "data" in degrees:
        settings.append(Setting(f"{_ROLLOUT}.data_parallel_size", degrees["data"]))
    if "pipeline" in degrees:
        settings.append(Setting(f"{_ROLLOUT}.pipeline_model_parallel_size", degrees["pipeline"]))
    if "expert" in degrees:
        whole = split.tensor * degrees.get("data", 1)
        if degrees["expert"] != whole:
            what = f"expert parallelism of {degrees['expert']} is not tensor x data parallel = {whole}"
            split.refuse(what, "rollout", f"nearest: experts over all {whole} ranks of an instance, or none")
        settings.append(Setting(f"{_ROLLOUT}.expert_parallel_size", degrees["expert"]))
    if split.memory_fraction is not None:
        settings.append(Setting(f"{_ROLLOUT}.gpu_memory_utilization", split.memory_fraction))
    return tuple(settings)
