"""The mode of a predicted loop and its GPUs, from flags and scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.commands import asking, flags
from rlsize.commands.loop_words import LOOPS
from rlsize.equations import matching, rl_step
from rlsize.estimates.working import apply
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from rlsize.commands.predict_step_flags import LoopFlags
    from rlsize.estimates.step_assembly import Loop
    from rlsize.shell.inputs import Inputs

_INSTEAD = "give --gpus, or --rollout-gpus and --trainer-gpus"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """
    The GPUs of a loop.

    Args:
        loop: How it is laid out in time.
        gpus: Of both sides.
        rollout: Of the fleet; absent where both sides share, or nobody says.
        trainer: Of the trainer; absent likewise.
    """

    loop: Loop
    gpus: Figure
    rollout: Figure
    trainer: Figure

    @property
    def split(self) -> bool:
        """Whether somebody said how the GPUs are split."""
        return self.rollout.known and self.trainer.known


def pools(inputs: Inputs, said: LoopFlags) -> Pools:
    """Mode and GPUs; faults are noted."""
    total = inputs.number("gpus", "--gpus", said.gpus, flags.COUNT, scenario="cluster.gpus")
    rollout = inputs.number(
        "rollout_gpus", "--rollout-gpus", said.rollout_gpus, flags.COUNT, scenario="placement.rollout_gpus"
    )
    trainer = inputs.number(
        "trainer_gpus", "--trainer-gpus", said.trainer_gpus, flags.COUNT, scenario="placement.trainer_gpus"
    )
    loop = _loop(inputs, said.mode, two=rollout.known or trainer.known)
    if loop == "colocated":
        found = _shared(inputs, total, rollout, trainer)
    else:
        found = _two(inputs, loop, total, rollout, trainer)
    inputs.need(found.gpus, _INSTEAD)
    return found


def _loop(inputs: Inputs, text: str | None, *, two: bool) -> Loop:
    usual = "async" if two else "colocated"
    mode = inputs.word("mode", "--mode", text, LOOPS, scenario="placement.mode", default=usual) or usual
    if inputs.used["mode"].provenance == "default":
        inputs.notes.append(f"Nobody said how the loop is laid out in time: {mode} (--mode).")
    return LOOPS[mode]


def _shared(inputs: Inputs, total: Figure, rollout: Figure, trainer: Figure) -> Pools:
    """GPUs that both sides share: said, or those of both pools together."""
    key = "gpus"
    by_pools = any(asking.by_flag(figure) for figure in (rollout, trainer) if figure.known)
    if not total.known or (by_pools and not asking.by_flag(total)):
        if rollout.known and trainer.known:
            total = apply(key, rl_step.gpus_of_both, rollout_gpus=rollout, trainer_gpus=trainer)
        else:
            total = next((figure for figure in (rollout, trainer) if figure.known), absent(key, "--gpus"))
    for pool in ("rollout_gpus", "trainer_gpus"):
        inputs.used.pop(pool, None)
    if total.known:
        inputs.keep(Figure(key=key, value=int(total.number), source=total.source or "rollout and trainer GPUs"))
    return Pools(loop="colocated", gpus=total, rollout=absent("rollout_gpus", ""), trainer=absent("trainer_gpus", ""))


def _two(inputs: Inputs, loop: Loop, total: Figure, rollout: Figure, trainer: Figure) -> Pools:
    """GPUs of two pools; what is not said of them is what the other leaves."""
    said = [figure for figure in (rollout, trainer) if figure.known]
    if total.known and asking.by_flag(total) and said and not any(map(asking.by_flag, said)):
        for figure in said:  # the scenario's split is of another number of GPUs
            inputs.used.pop(figure.key, None)
        rollout, trainer = absent("rollout_gpus", "--rollout-gpus"), absent("trainer_gpus", "--trainer-gpus")
    if rollout.known and trainer.known:
        both = apply("gpus", rl_step.gpus_of_both, rollout_gpus=rollout, trainer_gpus=trainer)
        if total.known and both.number > total.number:
            what = f"{rollout.number:g} + {trainer.number:g} GPUs are more than {total.number:g}"
            inputs.fault(what, rollout.source, "give fewer, or a larger --gpus")
        total = both
    elif total.known and (rollout.known or trainer.known):
        one = rollout if rollout.known else trainer
        key = "trainer_gpus" if rollout.known else "rollout_gpus"
        rest = apply(key, matching.remaining_gpus, gpus=total, rollout_gpus=one)
        if rest.number < 1:
            inputs.fault(f"{one.number:g} of {total.number:g} GPUs leave none", one.source, "give fewer")
        rollout, trainer = (one, rest) if rollout.known else (rest, one)
        inputs.keep(rest)
    elif rollout.known or trainer.known:
        total = absent("gpus", "--trainer-gpus" if rollout.known else "--rollout-gpus")
    if total.known:
        inputs.keep(total)
    return Pools(loop=loop, gpus=total, rollout=rollout, trainer=trainer)
