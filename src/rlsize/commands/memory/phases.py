"""What `rlsize memory` says of a loop's phases: what each GPU holds in each, and which dies first."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.errors import InputError, Refused
from rlsize.estimates.figures import ends
from rlsize.estimates.memory_phases import PARTS
from rlsize.facts.figure import Figure
from rlsize.loop.phases import dies_at
from rlsize.loop.resolve import resolve
from rlsize.loop.seed import seed_of
from rlsize.loop.unsaid import phases_as_said
from rlsize.reports.report import Column, Table, Unseen
from rlsize.units import listed, show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlsize.loop.phases import PhaseMemory, Phases
    from rlsize.reports.report import Report
    from rlsize.shell.inputs import Inputs

_GIB = 2.0**30
_GPUS = ("rtx-4090", "l40s", "a100-80-sxm", "h200-sxm", "b200-sxm")  # of each size of memory one
_SEEN = 5e7  # bytes of a part that a table shows
_NAMES: Mapping[str, str] = {
    "trainer_weights": "weights",
    "engine_weights": "engine weights",
    "kv_cache": "KV",
    "engine_runtime": "engine runtime",
    "reward": "reward model",
    "contexts": "CUDA contexts",
    "own": "beside the model",
}
VERDICTS: Mapping[str, str] = {"fits": "yes", "not sure": "not sure", "dies": "no"}
"""What people read of a verdict."""


def with_phases(report: Report, found: Phases | None, *, measured: bool) -> Report:
    """
    The report of a bill with the phases of its loop.

    Args:
        report: The bill.
        found: The phases; None where they are not known.
        measured: Whether something was measured of the loop, so that it is known to run.
    """
    if found is None:
        return report
    results, dies = _results(found), found.dying is not None
    sides = {} if measured else {f"{side}_fits": side for side in ("trainer", "rollout")}
    billed = [replace(one, value=_fits(found, sides[one.key])) if one.key in sides else one for one in report.results]
    return replace(
        report,
        headline=f"{verdict(found)} {report.headline}",
        results=(*billed, *results),
        tables={"phases": _table(found), **report.tables},
        quiet=report.quiet | {figure.key for figure in results},
        no=report.no or (dies and not measured),
    )


def on_gpus(report: Report, inputs: Inputs) -> Report:
    """
    The report of a loop of which nobody says on which GPUs it runs, with the kinds of GPUs that it fits on.

    Args:
        report: The bill.
        inputs: What was said, with no GPU.
    """
    found = [*_of_gpus(inputs)]
    if not found:
        return report
    cells = (
        Column("gpu", "GPU", "left", of=lambda one: one[0]),
        Column("visible_memory_bytes", "memory", of=lambda one: one[1].worst.memory),
        Column("verdict", "fits", "left", of=lambda one: VERDICTS[one[1].verdict]),
        Column("phase", "fullest", "left", of=lambda one: one[1].worst.name),
        Column("held_bytes", "held/GPU", of=lambda one: one[1].worst.held),
        Column("high_bytes", "up to", of=lambda one: one[1].worst.high),
    )
    note = "of each size of memory one kind of GPU; --gpu has all phases, and what makes it fit"
    table = Table.of("Where it fits", found, cells, note=note)
    sure = listed([name for name, phases in found if phases.verdict == "fits"])
    said = f"Fits on {sure}, of the GPUs that were tried." if sure else "Fits surely on no GPU that was tried."
    return replace(report, headline=f"{said} {report.headline}", tables={"gpus": table, **report.tables})


def _of_gpus(inputs: Inputs) -> Iterator[tuple[str, Phases]]:
    """Each kind of GPU on which memory decides whether the loop can run, with its phases there."""
    for name in _GPUS:
        try:
            other = inputs.changed({"cluster.gpu": name})
            loop = resolve(other)
            phases = phases_as_said(other, loop, seed_of(other))
        except (InputError, Refused):
            continue
        if phases is not None and not (loop.refused and phases.verdict != "dies"):  # it cannot be for another reason
            yield name, phases


def _fits(found: Phases, side: str) -> bool:
    """Whether a side can run on its GPUs."""
    return all(one.verdict != "dies" for one in found.phases if one.pool in {side, "shared"})


def verdict(found: Phases) -> str:
    """Whether a loop fits in all phases, and if not, where it dies first and by how much."""
    dying, worst = found.dying, found.worst
    if dying is not None:
        return f"Dies{dies_at(dying).removeprefix('it dies')}."
    fullest = f"{worst.name} takes {_gib(worst.held.number)} of {_gib(worst.memory)} GiB"
    if found.verdict == "fits":
        return f"Fits: {fullest}."
    why = f", as nobody says {' and '.join(found.unsaid)}" if found.unsaid else ""
    return f"Fits, not sure: {fullest}, and may take {_gib(worst.high)}{why}."


def _gib(size: float) -> str:
    return f"{size / _GIB:.1f}"


def _results(found: Phases) -> tuple[Figure, ...]:
    """The verdict, the fullest phase, and the first that dies, for programs."""
    worst, dying = found.worst, found.dying
    told = [
        _word("memory_verdict", found.verdict, "the worst of all phases"),
        _word("worst_phase", worst.name, "the phase that fills the GPU most"),
        replace(worst.held, key="worst_phase_bytes_per_gpu"),
        _word("visible_memory_bytes", worst.memory, "what processes see of the GPU"),
    ]
    if dying is not None:
        told.append(_word("first_dying_phase", dying.name, "the first that does not fit"))
        short = (dying.held.number if dying.later else dying.first) - dying.memory
        told.append(_word("short_bytes_per_gpu", short, "what that phase needs beyond the GPU's memory"))
    return tuple(told)


def _word(key: str, value: float | str, source: str) -> Figure:
    return Figure(key=key, value=value, provenance="predicted", source=source)


def _table(found: Phases) -> Table:
    several = len({phase.pool for phase in found.phases}) > 1
    cells: tuple[Column | Unseen, ...] = (
        Column("phase", "phase", "left", of=lambda phase: phase.name),
        Column("pool", "pool", "left") if several else Unseen("pool"),
        Column("held_bytes", "held/GPU", of=lambda phase: phase.held),
        Unseen("first_step_bytes", lambda phase: phase.first),
        Unseen("low_bytes", lambda phase: ends(phase.held)[0]),
        Column("high_bytes", "up to", of=lambda phase: phase.high),
        Unseen("visible_memory_bytes", lambda phase: phase.memory),
        Column("verdict", "fits", "left", of=lambda phase: VERDICTS[phase.verdict]),
        *map(_part, PARTS),
        Column("_most", "most of it, GB", "left", wide=True, of=_largest),
    )
    shown = ", ".join(dict.fromkeys(show(phase.memory, "_bytes") for phase in found.phases))
    marked = found.phases.index(found.dying or found.worst)
    note = "up to: the high end of an 80 % band; it fits where that fits"
    table = Table.of(f"Phase by phase ({shown} of a GPU)", found.phases, cells, marked=marked, note=note)
    phase, second, *others = table.columns
    return replace(table, columns=(second, phase, *others)) if several else table


def _part(name: str) -> Unseen:
    return Unseen(f"{name}_bytes", lambda phase: phase.parts.get(name, 0.0))


def _largest(phase: PhaseMemory) -> str:
    """The three largest parts."""
    largest = sorted(phase.parts, key=lambda name: phase.parts[name], reverse=True)[:3]
    most = (f"{_NAMES.get(name, name)} {phase.parts[name] / 1e9:.1f}" for name in largest if phase.parts[name] > _SEEN)
    return ", ".join(most)
