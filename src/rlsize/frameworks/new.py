"""A new launch for a loop: the keys of one of a framework's trainers, or why it cannot run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.frameworks.abilities import framework_mode
from rlsize.frameworks.demands import Unmet, unmet
from rlsize.frameworks.told import keys_of
from rlsize.frameworks.wanted import whole
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlsize.facts.framework import Framework, Variant

_COMMON = {
    "loop.group_size * loop.prompts_per_step % loop.mini_batches == 0": (
        "{prompts_per_step} prompts x {group_size} samples are no multiple of {mini_batches}: "
        "each weight update trains on as many samples"
    ),
    "min(loop.rollout_gpus, loop.gpus_per_node) % loop.gpus_per_instance == 0 "
    "or loop.gpus_per_instance % min(loop.rollout_gpus, loop.gpus_per_node) == 0": (
        "engines of {gpus_per_instance} GPUs do not fill nodes of {gpus_per_node}"
    ),
}
"""What all of them demand."""
_CLUSTER = {"cluster.nodes", "cluster.gpus_per_node"}
_DEGREES = (
    "tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel", "rollout_pipeline_parallel",
    "rollout_data_parallel", "rollout_expert_parallel",
)  # fmt: skip
"""What is not spread where nobody says."""


@dataclass(frozen=True, slots=True)
class NewLaunch:
    """
    The keys of a new launch.

    Args:
        keys: Values by key.
        unset: Wanted quantities for which the framework has no key, and that it can do without.
        unmet: Why it cannot run the loop so.
    """

    keys: Mapping[str, Any]
    unset: tuple[str, ...] = ()
    unmet: tuple[Unmet, ...] = ()


def new_launch(
    framework: Framework,
    variant: Variant,
    needed: Mapping[str, Any],
    liked: Mapping[str, Any],
    given: Mapping[str, Any],
) -> NewLaunch:
    """
    A launch that tells a loop.

    Args:
        framework: The framework.
        variant: Which of its trainers.
        needed: Quantities without which it would be another loop.
        liked: Quantities that are set where there are keys for them.
        given: What keys are worked out from: the mode, the GPUs of a node and of an instance.
    """
    given = {**dict.fromkeys(_DEGREES, 1), **given, "mode": _mode(framework, variant, given["mode"])}
    lacking = list(_asserted(framework, variant, {**given, **liked, **needed}))
    needed = {name: value for name, value in needed.items() if name != "engine" or name in framework.quantities}
    every = needed.get("sync_every") or 1
    if variant.by_syncs and not lacking:
        merged = {name: needed[name] * every for name in ("prompts_per_step", "mini_batches")}
        cap = needed["max_staleness"] / every
        needed = {**needed, **merged, "max_staleness": int(cap) if cap == int(cap) else cap, "sync_every": 1}
    given["samples_per_step"] = needed["prompts_per_step"] * needed["group_size"]
    job, unset = _job(framework, given), list[str]()
    sets = {key: value for key, value in variant.sets.items() if key not in framework.lacks}
    while True:
        kept = {name: value for name, value in liked.items() if name not in unset}
        made, told = whole(framework, {**job, **sets}, {**kept, **needed}, given)
        missed = {fault.where for fault in made.refused}
        if not missed & kept.keys():
            break
        unset += [name for name in kept if name in missed]
    for name in needed:
        if name in missed and not any(one.quantity == name for one in lacking):
            what = f"has no key that was read for {name} = {needed[name]}"
            if name in told:
                what = f"takes {name} = {told[name]}, not {needed[name]}"
            lacking.append(Unmet(f"{framework.title} {what}", name, (told.get(name, 1),)))
    keys = {key: value for key, value in made.keys.items() if key not in job and value is not None}
    return NewLaunch(keys, tuple(unset), tuple(lacking))


def _mode(framework: Framework, variant: Variant, mode: str) -> str:
    """The mode as the framework has it; one that it has no name for is that of its trainer: a step behind is async."""
    modes = framework.runs.modes if framework.runs is not None else {}
    own = (other for other in map(framework_mode, variant.modes) if other in modes)
    return mode if mode in modes else next(own, mode)


def _asserted(framework: Framework, variant: Variant, loop: Mapping[str, Any]) -> Iterator[Unmet]:
    """What the framework asserts and does not hold of a loop."""
    cap = loop["max_staleness"]
    if cap != int(cap) and not variant.fractional:
        what = f"{framework.title} takes whole steps of staleness here, not {cap:g}"
        yield Unmet(what, "max_staleness", tuple(near for near in (int(cap), int(cap) + 1) if near))
        loop = {**loop, "max_staleness": None}  # told once
    yield from unmet({**_COMMON, **framework.demands, **variant.demands}, loop)
    engines = framework.runs.engines if framework.runs is not None else ()
    if engines and loop.get("engine") and loop["engine"] not in engines:
        what = f"the plan is for {loop['engine']}, and {framework.title} runs {' or '.join(engines)}"
        yield Unmet(what, "engine", engines[:1])


def _job(framework: Framework, given: Mapping[str, Any]) -> dict[str, int]:
    """The GPUs that a launch is started on, for a framework that shares them out and has no keys for their number."""
    if not _CLUSTER & keys_of(framework) or any(key.startswith("cluster.") for key in framework.writes):
        return {}
    gpus, node = given["gpus"], given["gpus_per_node"]
    return {"cluster.nodes": max(1, gpus // node), "cluster.gpus_per_node": min(gpus, node)}
