"""The mode of a loop and its GPUs."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.equations import matching, rl_step
from rlsize.estimates.figures import apply
from rlsize.facts.figure import Figure, absent
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.estimates.step_assembly import Loop
    from rlsize.facts.gpu import Gpu
    from rlsize.loop.said import Said

LOOPS: Mapping[str, Loop] = MappingProxyType(
    {
        "colocated": "colocated",
        "disaggregated": "synchronous",
        "sync": "synchronous",
        "partial": "synchronous",
        "overlapped": "one-step-off",
        "one-step-off": "one-step-off",
        "async": "async",
    }
)
"""How the phases of each mode follow each other."""

INSTEAD = "give --gpus, or --rollout-gpus and --trainer-gpus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """
    The GPUs of a loop.

    Args:
        loop: How it is laid out in time.
        gpus: Of both sides.
        rollout: Of the fleet; absent where both sides share, or nobody says.
        trainer: Of the trainer; absent likewise.
        mode: The word that was said for it; empty where a search chooses.
    """

    loop: Loop
    gpus: Figure
    rollout: Figure
    trainer: Figure
    mode: str = ""

    @property
    def split(self) -> bool:
        """Whether somebody said how the GPUs are split."""
        return self.rollout.known and self.trainer.known

    @property
    def shared(self) -> bool:
        """Whether both sides take turns on the same GPUs."""
        return self.loop == "colocated"


def pools(said: Said) -> Pools:
    """Mode and GPUs; faults are noted."""
    total, rollout, trainer = said.ask("gpus"), said.ask("rollout_gpus"), said.ask("trainer_gpus")
    loop = mode(said, two=rollout.known or trainer.known)
    if loop == "colocated":
        found = _shared(said, total, rollout, trainer)
    else:
        total, rollout, trainer = two_pools(said)
        total = said.keep(total) if total.known else total
        found = Pools(loop=loop, gpus=total, rollout=rollout, trainer=trainer)
    said.need(found.gpus, INSTEAD)
    word = said.used.get("mode")
    return replace(found, mode="" if word is None else str(word.value))


def mode(said: Said, *, two: bool) -> Loop:
    """
    How the phases follow each other.

    Args:
        said: What was said.
        two: Whether GPUs of one side were said, so that there are two pools.
    """
    usual = "async" if two else "colocated"
    why = "two pools, so both sides work at once" if two else "one pool, so both sides take turns"
    name = said.choose("mode", LOOPS, default=usual, why=why)
    if name == usual and not said.gives("mode"):
        said.notes.append(f"Nobody said how the loop is laid out in time: {name} (--mode).")
    return LOOPS[name]


def node_gpus(said: Said, gpu: Gpu | None) -> Figure:
    """GPUs of a node: said, else as the named cluster has them, if it is of this GPU, else those of its usual node."""
    stated = said.ask("gpus_per_node")
    if stated.known or said.by_flag("gpus_per_node") or gpu is None:
        return stated
    cluster = said.cluster()
    if cluster is None or cluster.gpu != gpu.name:
        fact, sources, name = gpu.specification.gpus_per_node, gpu.sources, f"profile {gpu.name}"
    else:
        fact, sources, name = cluster.gpus_per_node, cluster.sources, f"cluster profile {cluster.name}"
    return Figure(
        key="gpus_per_node",
        value=fact.value,
        provenance="default",
        source=f"{name}: gpus_per_node; {sources.get(fact.source, fact.source)}",
        verified=fact.verified,
    )


def _by_flag(said: Said, *keys: str) -> bool:
    return any(said.by_flag(key) for key in keys)


def _shared(said: Said, total: Figure, rollout: Figure, trainer: Figure) -> Pools:
    """GPUs that both sides share: said, or those of each; of two pools that a flag turns into one, both together."""
    turned = said.by_flag("mode") and not _by_flag(said, "rollout_gpus", "trainer_gpus")
    if not total.known or (_by_flag(said, "rollout_gpus", "trainer_gpus") and not said.by_flag("gpus")):
        if rollout.known and trainer.known and not turned:
            total = trainer
            _check_shared(said, total, rollout, trainer)
        elif rollout.known and trainer.known:
            total = apply("gpus", rl_step.gpus_of_both, rollout_gpus=rollout, trainer_gpus=trainer)
        else:
            total = next((figure for figure in (rollout, trainer) if figure.known), absent("gpus", "--gpus"))
    elif _by_flag(said, "rollout_gpus", "trainer_gpus") or not _by_flag(said, "gpus", "mode"):
        _check_shared(said, total, rollout, trainer)
    if total.known:
        source = total.source or "rollout and trainer GPUs"
        total = said.keep(Figure(key="gpus", value=int(total.number), source=source))
        for key in ("rollout_gpus", "trainer_gpus"):
            said.keep(Figure(key=key, value=total.value, source=f"{source}: both sides share them"))
    return Pools(loop="colocated", gpus=total, rollout=absent("rollout_gpus", ""), trainer=absent("trainer_gpus", ""))


def _check_shared(said: Said, total: Figure, rollout: Figure, trainer: Figure) -> None:
    """Note a fault where one side has other GPUs than both share; two pools may be said that make them up together."""
    if rollout.known and trainer.known and rollout.number + trainer.number == total.number:
        return
    for side, figure in (("rollout", rollout), ("trainer", trainer)):
        if figure.known and figure.number != total.number:
            what = f"mode colocated gives all {total.number:g} GPUs to both sides in turn, and the {side} side has"
            said.fault(f"{what} {figure.number:g}", figure.source, "leave one of them out")


def two_pools(said: Said) -> tuple[Figure, Figure, Figure]:
    """
    GPUs of both sides, of the fleet, and of the trainer, where each has its own; faults are noted.

    What is not said of one is what the other leaves. Absent is what nobody says, nor the others tell.
    """
    total, rollout, trainer = said.ask("gpus"), said.ask("rollout_gpus"), said.ask("trainer_gpus")
    if said.by_flag("gpus") and not _by_flag(said, "rollout_gpus", "trainer_gpus"):
        rollout, trainer = _unsaid(said, rollout), _unsaid(said, trainer)
    if rollout.known and trainer.known:
        both = apply("gpus", rl_step.gpus_of_both, rollout_gpus=rollout, trainer_gpus=trainer)
        if total.known and both.number > total.number:
            what = f"{rollout.number:g} + {trainer.number:g} GPUs are more than {total.number:g}"
            said.fault(what, rollout.source, "give fewer, or a larger --gpus")
        elif total.known and both.number < total.number:
            said.warnings.append(
                f"{total.number - both.number:g} of {total.number:g} GPUs are in neither pool: they are not counted"
            )
        total = both
    elif total.known and (rollout.known or trainer.known):
        one = rollout if rollout.known else trainer
        key = "trainer_gpus" if rollout.known else "rollout_gpus"
        rest = apply(key, matching.remaining_gpus, gpus=total, rollout_gpus=one)
        if rest.number < 1:
            said.fault(f"{one.number:g} of {total.number:g} GPUs leave none", one.source, "give fewer")
        rollout, trainer = (one, rest) if rollout.known else (rest, one)
        said.keep(rest)
    elif rollout.known or trainer.known:
        total = absent("gpus", "--trainer-gpus" if rollout.known else "--rollout-gpus")
    return total, rollout, trainer


def _unsaid(said: Said, figure: Figure) -> Figure:
    """One side of a scenario's split, where a flag gives another number of GPUs: it no longer holds."""
    if not figure.known:
        return figure
    said.used.pop(figure.key, None)
    return absent(figure.key, said.flag(figure.key))
