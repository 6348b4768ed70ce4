"""Whether each phase of a step is normal, in words: the table of phases, and that of likely causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.reports.report import Column, Table, Unseen
from rlsize.reports.wording import words
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.facts.evidence import Cause, Diagnosis, JudgedPhase

PHASES = {
    "step": "whole step",
    "update": "update",
    "logprob": "log-prob pass",
    "sync": "weight sync",
    "tools": "tool calls",
    "other": "between phases",
}
"""What phases are called that are not called by their name."""
_VERDICTS = {None: "not judged", True: "usual", False: "not normal"}
_USUAL = (
    "usual: what the model needs on these GPUs, with micro-batches packed and engines filled, or two passes of "
    "log-probs by what the update takes; up to: the end of the interval in which 95 of 100 runs elsewhere lie; "
    "not normal: beyond it, and over 1.5 times usual"
)
_SHOWN = 4  # causes that are shown
_CAUSES = {
    "micro_batch": "micro-batches too small to fill a GPU: pack more tokens into a micro-batch",
    "unbalanced": "ranks that wait for the one with the most tokens: deal samples out by their tokens",
    "padding": "padded micro-batches: pack samples end to end",
    "recompute": "activations that are recomputed: recompute less, if memory allows",
    "offload": "states that go to the host and back: keep them on the GPU, if memory allows",
    "host": "a host that keeps the GPU waiting: profile one micro-batch; look for gaps and stray passes",
    "reference": "another, larger model as the reference: give it GPUs of its own, or do without",
    "reference_offload": "a reference that comes in from the host: keep it on the GPU, if memory allows",
    "few_running": "few samples at once on an instance: offer all prompts at once, on fewer instances",
    "few_gpus": "few GPUs that generate: give generation more of them, or let both sides share all",
    "tail": "a long tail (few run, none wait): partial rollouts, refill, or a shorter cap; not more GPUs",
    "cache": "a KV cache that is too small: give the engine more memory, or let fewer run at once",
    "cold": "a cold prefix cache: turn it on, and keep each group on one instance",
    "tools": "samples that wait for tools: time the calls; run more of them at once",
    "engine": "the engine itself: compare with a benchmark of it; no CUDA graphs, detokenizing",
    "buckets": "weights that go one tensor at a time: send them in large buckets",
    "link": "a slow link between the two sides: check which network the weights take",
    "verifier": "a slow verifier or reward model: run it beside generation, with a limit on time",
    "sandbox": "a slow sandbox or service behind the tools: time single calls; give it more workers",
    "often": "work between steps that comes often: do it less often, or beside generation",
    "untimed": "rewards, data, checkpoints or evaluation: time them one by one",
    "timer": "a timer of generation that times the whole step: time the update apart",
}


def phase_words(phase: str) -> str:
    """What a phase is called."""
    return PHASES.get(phase, phase)


def cause_words(cause: Cause) -> str:
    """What is likely, and what to do about it."""
    return _CAUSES[cause.kind]


def phases_table(phases: Sequence[JudgedPhase]) -> Table:
    """Each phase beside what is usual, where that is known of any."""
    judged = any(one.usual.known for one in phases)

    def beside(column: Column) -> Column | Unseen:
        return column if judged else Unseen(column.key, column.of)

    cells = (
        Unseen("phase"),
        Column("_phase", "phase", "left", of=lambda one: phase_words(one.phase)),
        Column("took_seconds", "took", of=lambda one: one.took.value),
        beside(Column("usual_seconds", "usual", of=lambda one: one.usual.value)),
        Unseen("usual_from_seconds", lambda one: one.band[0] if one.band else None),
        beside(Column("usual_to_seconds", "up to", of=lambda one: one.band[1] if one.band else None)),
        beside(Column("times_usual", "ratio", of=lambda one: one.ratio.value)),
        Column("step_fraction", "share", of=lambda one: one.share.value),
        beside(Column("verdict", "", "left", of=lambda one: _VERDICTS[one.normal])),
    )
    title = "Is this normal" if judged else "Where the step goes"
    return Table.of(title, phases, cells, note=_USUAL if judged else "")


def causes_table(found: Diagnosis, changes: Sequence[str]) -> Table:
    """
    What may make the first phase slow.

    Args:
        found: The diagnosis.
        changes: What to set for each cause, in the keys of the framework or scenario; empty where nothing is to be set.
    """
    said = dict(enumerate(changes))

    def evidence(cause: Cause) -> str:
        told = ", ".join(f"{words(figure.key)} {show(figure.value, figure.key)}" for figure in cause.figures)
        return f"{cause.sign}: {told}" if told else "usual suspect"

    cells: tuple[Column | Unseen, ...] = (
        Unseen("phase"),
        Column("_phase", "of", "left", of=lambda one: phase_words(one.phase)),
        *map(Unseen, ("kind", "sign")),
        Column("cause", "likely", "left", wide=True, of=cause_words),
        Column("evidence", "evidence", "left", wide=True, of=evidence),
        Column("change", "set", "left", wide=True, of=lambda one: said.get(found.causes.index(one), "")),
    )
    return Table.of("Likely causes", found.causes[:_SHOWN], cells)
