"""A loop with a placement written into it, as the values of a scenario that resolves to the very same loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.equations import train_step
from rlsize.errors import Fault, InputError
from rlsize.quantities.table import PLACES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.figure import Figure
    from rlsize.loop.resolve import Loop
    from rlsize.planner.options import Placement

MODES: Mapping[str, str] = {
    "colocated": "colocated",
    "synchronous": "sync",
    "one-step-off": "one-step-off",
    "async": "async",
}
"""How a scenario says each way to lay a loop out in time."""

_PASSES = {"old_logprob": "old", "reference": "reference", "proximal": "proximal"}
_STAGES = {"none": 0, "optimizer": 1, "gradients": 2}


def applied(said: Mapping[str, Any], loop: Loop, place: Placement) -> dict[str, Any]:
    """
    All that was said, with a placement in place of what was said of it.

    Args:
        said: Values by their dotted place in a scenario, as they were written.
        loop: The loop that was said.
        place: Where it shall run.

    Returns:
        Values by dotted place; what the placement leaves to a default is not among them.

    Raises:
        InputError: A scenario cannot say it.
    """
    if place.loop not in MODES:
        todo = f"plan with --mode {','.join(MODES)}, or keep the plan with --save"
        raise InputError(Fault(f"a scenario cannot say a {place.loop} loop yet", "--apply", todo))
    changed = (
        _pools(place)
        | _kinds(said, place)
        | _prices(said, loop, place)
        | _instance(loop, place)
        | _trainer(said, loop, place)
    )
    found = {key: value for key, value in said.items() if key not in changed} | changed
    order = {key: rank for rank, key in enumerate(PLACES)}
    told = sorted(found, key=lambda key: order.get(key, len(order)))
    return {key: _plain(found[key]) for key in told if found[key] is not None}


def _plain(value: Any) -> Any:  # noqa: ANN401 (any value of a scenario)
    """Whole numbers without a point."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _pools(place: Placement) -> dict[str, Any]:
    two = not place.shared
    return {
        "cluster.gpus": float(place.gpus),
        "placement.mode": MODES[place.loop],
        "placement.instances": None,
        "placement.rollout_gpus": float(place.rollout_gpus) if two else None,
        "placement.trainer_gpus": float(place.trainer_gpus) if two else None,
        "placement.max_staleness": place.max_staleness if place.loop == "async" else None,
    }


def _kinds(said: Mapping[str, Any], place: Placement) -> dict[str, Any]:
    """The kind of GPUs, of both sides or of each."""
    rollout, trainer = place.fleet.gpu, place.trainer.gpu
    if not rollout and not trainer:
        return {}
    if rollout != trainer:
        return {"cluster.gpu": None, "cluster.rollout_gpu": rollout, "cluster.trainer_gpu": trainer}
    own: dict[str, Any] = {"cluster.rollout_gpu": None, "cluster.trainer_gpu": None}
    return own if "cluster.profile" in said and "cluster.gpu" not in said else own | {"cluster.gpu": rollout}


def _prices(said: Mapping[str, Any], loop: Loop, place: Placement) -> dict[str, Any]:
    """Dollars per GPU-hour, of both sides or of each; a price profile that was named stays."""
    rollout, trainer = place.fleet.gpu_hour, place.trainer.gpu_hour
    as_said = (rollout, trainer) == (loop.fleet.gpu_hour, loop.trainer.gpu_hour)
    none: dict[str, Any] = dict.fromkeys(
        f"prices.{key}" for key in ("gpu_hour", "rollout_gpu_hour", "trainer_gpu_hour", "profile")
    )
    if as_said and rollout == trainer and rollout.source.startswith("price profile"):
        return none | {"prices.profile": said.get("prices.profile")}
    if as_said and rollout == trainer:
        return none | {"prices.gpu_hour": _written(rollout)}
    return none | {"prices.rollout_gpu_hour": _written(rollout), "prices.trainer_gpu_hour": _written(trainer)}


def _written(figure: Figure) -> Any:  # noqa: ANN401 (a number, or a number with its spread)
    if not figure.known:
        return None
    return f"{figure.number!r} ± {figure.deviation!r}" if figure.deviation else figure.number


def _instance(loop: Loop, place: Placement) -> dict[str, Any]:
    """One instance: its degrees of parallelism, and its share of the memory."""
    fleet, engine = place.fleet, place.fleet.engines.get(place.shared)
    found: dict[str, Any] = {}
    if fleet.rate.known:
        found["rollout.gpus_per_instance"] = loop.known.size.number
    if fleet.layout and not fleet.rate.known:
        kinds = ("tensor", "pipeline", "data", "expert")
        found |= {f"rollout.{kind}_parallel": fleet.layout[kind] for kind in kinds if fleet.layout[kind] > 1}
        found = dict.fromkeys(f"rollout.{kind}_parallel" for kind in kinds) | found
        found |= {"rollout.gpus_per_instance": None, "rollout.tensor_parallel": fleet.layout["tensor"]}
    if engine is not None and not isinstance(engine, str):
        found["rollout.memory_fraction"] = engine.question.memory_fraction
    return found


def _trainer(said: Mapping[str, Any], loop: Loop, place: Placement) -> dict[str, Any]:
    """How the trainer is spread and works, how new weights reach the fleet, and what its seconds were measured on."""
    found: dict[str, Any] = {}
    if place.trainer.seconds.known and place.trainer.measured_gpus.key == "measured_trainer_gpus":
        found["rates.measured_trainer_gpus"] = place.trainer.measured_gpus.number
        seconds, ratio = loop.known.train_seconds, place.trainer.measured_gpus.number / float(place.trainer_gpus)
        if seconds.function is None and ratio != 1.0:  # the placement's own seconds, as they were worked out for it
            scatter = f" ± {seconds.deviation * ratio:.6g}" if seconds.deviation else ""
            found["rates.train_seconds"] = f"{seconds.number * ratio:.12g}{scatter} s"
            found["rates.measured_trainer_gpus"] = place.trainer_gpus
    if loop.stages is None or place.trainer.question is None:
        return found

    asked = place.trainer.question.bare()
    ranks = float(train_step.model_replicas(gpus=place.trainer_gpus, gpus_per_replica=asked.replica))
    kinds = ("tensor", "pipeline", "context", "expert")
    spread: dict[str, Any] = {kind: getattr(asked, kind) if getattr(asked, kind) > 1 else None for kind in kinds}
    if asked.sharding == "full":
        shards = ranks if asked.shards is None else asked.shards / asked.context
        spread |= {"fsdp": shards, "data": ranks if shards != ranks else None, "zero": None}
    else:
        spread |= {"fsdp": None, "data": ranks, "zero": _STAGES[asked.sharding]}
    found |= {f"trainer.parallelism.{kind}": degree for kind, degree in spread.items()}
    if asked.workload == "rl":
        found["trainer.logprob_passes"] = [_PASSES[one] for one in asked.passes if one in _PASSES]
    forward = "trainer.logprob_micro_batch_tokens"
    if forward in said and asked.context != loop.stages.train.bare().context:
        found[forward] = asked.forward_micro_batch_tokens
    found |= {
        "trainer.recompute": asked.recompute,
        "trainer.micro_batch_tokens": float(asked.micro_batch_tokens),
        "trainer.micro_batch_samples": None,
        **{
            f"trainer.{key}": True if saves else None if said.get(f"trainer.{key}") is None else False
            for key, saves in (("offload", asked.offload), ("chunked_loss", asked.keeps.chunked_loss))
        },
        "weight_sync.transport": None if place.shared else place.transport,
        "weight_sync.dtype": loop.problem.wire_dtype,
    }
    return found
