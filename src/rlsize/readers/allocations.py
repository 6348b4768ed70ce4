"""What a file says of an allocation, as a scenario: a scenario itself, a saved plan, or an observation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError
from rlsize.quantities.table import QUANTITIES
from rlsize.readers.scenarios import read_scenario, scenario_of
from rlsize.readers.yaml_documents import Document, Path_, read_document

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.readers.scenarios import ScenarioFile

_SPREAD = ("rollout_tensor_parallel", "rollout_pipeline_parallel", "rollout_data_parallel", "rollout_expert_parallel")
_KEYS = (
    *("model", "gpu", "rollout_gpu", "trainer_gpu", "gpus", "gpus_per_node", "mode", "max_staleness", "sync_every"),
    *("instances", "rollout_gpus", "trainer_gpus", "engine", "concurrency", "memory_fraction", "reference", *_SPREAD),
    *("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel"),
    *("prompts_per_step", "group_size", "mini_batches"),
)
"""What an allocation is made of."""

_AGAIN = "make it again with `rlsize plan SCENARIO --save FILE`"


def read_allocation(path: str, changes: Iterable[str] = ()) -> ScenarioFile:
    """
    The allocation of a file, as a scenario.

    Args:
        path: A scenario, a saved plan or an observation.
        changes: What is said in its place: `key=value`, the key dotted.

    Raises:
        InputError: What is wrong with it, or it holds no allocation.
    """
    document = read_document(path)
    header = document.data.get("rlsize") if isinstance(document.data, dict) else None
    kind = header.get("kind") if isinstance(header, dict) else None
    if kind == "scenario" or (kind == "plan" and "scenario" in document.data):
        return read_scenario(path, changes)
    if kind not in {"plan", "observation"}:
        what = f"is a {str(kind)[:40]} file" if kind else "does not say which kind of file it is"
        todo = "name a saved plan (`rlsize plan ... --save FILE`), a scenario or an observation"
        raise InputError(Fault(f"{what}, and holds no allocation", path, todo))
    said = _planned(document) if kind == "plan" else _observed(document)
    data: dict[str, Any] = {}
    lines: dict[Path_, int] = {}
    for key in (key for key in _KEYS if said.get(key, (None,))[0] is not None):
        value, place = said[key]
        *above, last = QUANTITIES[key].scenario.split(".")
        node = data
        for part in above:
            node = node.setdefault(part, {})
        node[last] = value
        lines[*above, last] = document.lines.get(place, 1)
    return scenario_of(Document(path, data, lines), changes)


def _planned(document: Document) -> dict[str, tuple[Any, Path_]]:
    """What a plan says that holds no scenario, as rlsize before 0.2 wrote it; its placement goes before its inputs."""
    from rlsize.readers.plans import plan_of

    plan = plan_of(document)
    parts = (("inputs", plan.inputs), ("placement", plan.placement))
    found: dict[str, tuple[Any, Path_]] = {
        key: (figure.value, (part, key)) for part, figures in parts for key, figure in figures.items()
    }
    mode, where = found.get("mode", ("", ()))
    if mode == "synchronous":
        found["mode"] = ("sync", where)
    elif mode == "hybrid":
        raise InputError(Fault("a hybrid plan of rlsize before 0.2 cannot be read", document.where(where), _AGAIN))
    size, *degrees = (found.get(key, (None, ()))[0] for key in ("gpus_per_instance", *_SPREAD[:-1]))
    spread = 1.0
    for degree in degrees:
        spread *= float(degree or 1)
    if isinstance(size, (int, float)) and size != spread:  # a given rate is that of another layout
        found |= dict.fromkeys(_SPREAD, (None, ()))
    return found


def _observed(document: Document) -> dict[str, tuple[Any, Path_]]:
    from rlsize.readers.observations import observation_of

    seen = observation_of(document)
    pools, size = seen.allocation, seen.allocation.gpus_per_instance
    count, rollout = pools.rollout_instances, pools.rollout_gpus
    count = rollout / size if count is None and rollout is not None and size else count
    rollout = count * size if rollout is None and count is not None and size else rollout
    told = {"instances": count, "rollout_gpus": rollout, "trainer_gpus": pools.trainer_gpus}
    found: dict[str, tuple[Any, Path_]] = {key: (value, ("allocation", key)) for key, value in told.items()}
    found["instances"] = (count, ("allocation", "rollout_instances"))
    mode = "sync" if seen.mode == "synchronous" else seen.mode
    return found | {"mode": (mode or None, ("mode",)), "engine": (seen.engine or None, ("engine",))}
