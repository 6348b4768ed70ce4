"""What a framework can run: modes and layouts of the trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.facts.framework import Abilities, Framework

SHARED: Mapping[int, str] = {0: "none", 1: "optimizer", 2: "gradients", 3: "full"}
"""What data-parallel ranks share, by ZeRO stage."""
_MEGATRON = ("none", "optimizer")  # its distributed optimizer shards states over the ranks, not weights


def framework_mode(mode: str) -> str:
    """
    A mode as frameworks call it.

    Args:
        mode: As an allocation calls it: colocated, synchronous, one-step-off, async or hybrid.
    """
    return {"synchronous": "sync", "hybrid": "async"}.get(mode, mode)


def shardings(abilities: Abilities, backend: str) -> tuple[str, ...]:
    """
    What the ranks of a trainer may share.

    Args:
        abilities: What its framework can run.
        backend: The trainer: fsdp, fsdp2, megatron, deepspeed, ddp.
    """
    if backend.startswith("fsdp"):
        return ("full",)
    if backend.startswith("megatron"):
        return _MEGATRON
    if backend.startswith("ddp"):
        return ("none",)
    return tuple(SHARED[stage] for stage in abilities.zero_stages)


def runs_layout(abilities: Abilities, sharding: str, degrees: Mapping[str, int], recompute: str = "full") -> bool:
    """
    Whether one of a framework's trainers takes a layout.

    Args:
        abilities: What the framework can run.
        sharding: What data-parallel ranks share: none, optimizer, gradients or full.
        degrees: Tensor, pipeline, context and expert parallelism.
        recompute: none, selective (operators, which Megatron alone chooses) or full.
    """
    return bool(backend_for(abilities, sharding, degrees, recompute))


def backend_for(
    abilities: Abilities, sharding: str | None, degrees: Mapping[str, int], recompute: str | None, usual: str = ""
) -> str:
    """
    The trainer of a framework that takes a layout; empty where none does.

    Args:
        abilities: What the framework can run.
        sharding: What data-parallel ranks share: none, optimizer, gradients or full; None where nobody says.
        degrees: Tensor, pipeline, context and expert parallelism.
        recompute: none, selective (operators, which Megatron alone chooses) or full; None where nobody says.
        usual: The one that is taken where several do.
    """
    wanted = {kind for kind, degree in degrees.items() if degree > 1}
    able = [
        backend
        for backend, kinds in abilities.layouts.items()
        if (sharding is None or sharding in shardings(abilities, backend))
        and wanted <= set(kinds)
        and (recompute is None or recompute in abilities.recomputes)
        and (recompute != "selective" or backend.startswith("megatron"))
        and not (backend == "deepspeed" and sharding == SHARED[3] and "tensor" in wanted)  # its engine asserts so
    ]
    return usual if usual in able else next(iter(able), "")


def could_run(
    known: Iterable[Framework], mode: str, layout: tuple[str, Mapping[str, int], str] | None
) -> tuple[Framework, ...]:
    """
    The frameworks that could run a placement.

    Args:
        known: The frameworks.
        mode: How the loop is laid out in time, as frameworks name it.
        layout: What data-parallel ranks of the trainer share, its degrees of parallelism, and what it recomputes; None
            where that is not known.
    """
    return tuple(
        one
        for one in known
        if one.runs is not None and mode in one.runs.modes and (layout is None or runs_layout(one.runs, *layout))
    )
