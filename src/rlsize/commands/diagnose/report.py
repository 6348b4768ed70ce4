"""What to say about a running loop: the verdict, what to do in which order, and every check with its evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.commands.diagnose.words import (
    CHECKS,
    action,
    because,
    cause_words,
    causes_table,
    headline,
    phases_table,
    verification,
)
from rlsize.facts.figure import Figure
from rlsize.reports.report import Column, Decision, Report, Table, Unseen
from rlsize.reports.running_loop import apart_words, instances_table
from rlsize.reports.wording import numbered, sentence, words
from rlsize.units import show
from rlsize.verdicts.diagnosis_rates import AGREE, waits_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlsize.facts.evidence import Diagnosis, Evidence, Finding
    from rlsize.facts.observations import ObservedAllocation, RunObservation
    from rlsize.loop.assumed import Assumption
    from rlsize.shell.inputs import Inputs
    from rlsize.verdicts.before_after import Compared

_LASTING = {  # what stands by itself when it got better, and whether more of it is better
    "prefix_cache_hit_fraction": ("prefix caching and routing", True),
    "sync_pause_fraction": ("the shorter weight sync", False),
}
_BETTER = 0.1  # relative change from which it got better
_STATES = {"fault": "mend", "note": "note", "fine": "fine", "unknown": "not known"}


def diagnose_report(
    evidence: Evidence,
    found: Diagnosis,
    inputs: Inputs,
    comparison: tuple[Sequence[Compared], Sequence[str]] = ((), ()),
    *,
    changes: Sequence[str] = (),
    costs: Sequence[Figure] = (),
    assumed: Sequence[Assumption] | None = None,
) -> Report:
    """
    The report of `rlsize diagnose`.

    Args:
        evidence: What was looked at.
        found: What it means.
        inputs: What was asked, with warnings and notes from reading.
        comparison: Before and after, and how to go back.
        changes: What to set for each cause.
        costs: What a step costs, and what it would after the first thing to do.
        assumed: What nobody said and that moves what is usual, or the fleet that matches; None where there is neither.
    """
    run, fleet, (compared, rollback) = evidence.run, evidence.fleet, comparison
    tables = {
        "steps": _steps_table(found, changes),
        "phases": phases_table(found.phases),
        "causes": causes_table(found, changes),
        "checks": _checks_table(found),
    }
    if compared:
        tables["before_after"] = _comparison_table(compared)
    if fleet is not None:
        tables["instances"] = instances_table(fleet)
    verdict = Figure(key="verdict", value=found.verdict, provenance="predicted", source="the runbook's flow")
    logged = [run.figures[key] for key in ("step_seconds", "train_seconds", "staleness_steps") if key in run.figures]
    waits = [one for one in waits_of(evidence) if one.known]
    waits += [run.figures[key] for key in ("sync_pause_fraction",) if waits and key in run.figures]
    rates = (found.consumption, found.required, found.fleet_rate, found.matched)
    made = sum(one.status != "unknown" for one in found.findings)
    known = [f"{made} of {numbered(len(found.findings), 'check')} could be made."]
    known += [f"Not known: {', '.join(names)} ({why})." for why, names in _lacking(found).items()]
    return Report(
        headline=headline(found, evidence.lacking),
        results=(verdict, found.trainer_idle, *waits, *logged, *rates, *costs),
        inputs=inputs.shown(),
        tables={name: table for name, table in tables.items() if table.rows},
        warnings=(*(fleet.warnings if fleet else ()), *run.warnings, *_doubts(evidence), *inputs.warnings),
        notes=(*apart_words(run), *rollback, *inputs.notes),
        done=tuple(rollback[1:]),
        decision=Decision(
            take=[f"{place}. {_todo(one, found, changes)}." for place, one in enumerate(found.steps, 1)],
            figures=[one.key for one in (found.trainer_idle, *waits, *logged[:2], *rates, *costs) if one.known],
            why=[sentence(because(one)) for one in found.steps],
            sure=[*rollback[:1], *known],
            change=[f"{place}. done when {verification(one)}." for place, one in enumerate(found.steps, 1)],
            assumed=assumed,
            then="--record before.json keeps this for --before, which tells what a change did",
        ),
    )


def _lacking(found: Diagnosis) -> dict[str, list[str]]:
    """Checks that could not be made, by what they need."""
    lacking: dict[str, list[str]] = {}
    for one in found.findings:
        if one.status == "unknown":
            lacking.setdefault(because(one), []).append(CHECKS[one.check])
    return lacking


def _todo(one: Finding, found: Diagnosis, changes: Sequence[str]) -> str:
    """What to do; of a phase its likeliest cause, and what to set."""
    if one.check != "phases" or not found.causes:
        return action(one)
    return f"Look for {cause_words(found.causes[0])}" + (f" ({changes[0]})" if changes and changes[0] else "")


def _doubts(evidence: Evidence) -> list[str]:
    """What two sources tell differently."""
    given, logged = evidence.consumption, evidence.run.figure("consumption_tokens_per_second")
    pairs = [("the trainer consumes", given, logged)]
    if evidence.usual:
        many = evidence.run.figure("samples_per_step")
        pairs.append(("a step trains", evidence.said.get("samples_per_step", many), many))
    return [
        f"{what} {show(seen.value, seen.key)} by its log, yet {show(said.value, seen.key)} as given: "
        "what was given is used"
        for what, said, seen in pairs
        if said.known and seen.known and abs(said.number - seen.number) > AGREE * seen.number
    ]


def _steps_table(found: Diagnosis, changes: Sequence[str]) -> Table:
    """What to do, first things first."""
    steps = tuple(found.steps)
    cells: tuple[Column | Unseen, ...] = (
        Column("step", "#", of=lambda one: steps.index(one) + 1),
        *map(Unseen, ("check", "kind")),
        Column("action", "do", "left", wide=True, of=lambda one: _todo(one, found, changes)),
        Column("evidence", "because", "left", wide=True, of=because),
        Column("gain_fraction", "gain, at most", of=lambda one: one.gain.value),
        Unseen("verify", verification),
    )
    note = "; ".join(f"{place}. done when {verification(one)}" for place, one in enumerate(steps, 1))
    return Table.of("What to do, in this order", steps, cells, note=note)


def _checks_table(found: Diagnosis) -> Table:
    """Every check; people see those that could be made, and below them what the others need."""
    known = [one for one in found.findings if one.status != "unknown"]
    cells: tuple[Column | Unseen, ...] = (
        *map(Unseen, ("check", "status", "kind")),
        Column("_name", "check", "left", of=lambda one: CHECKS[one.check]),
        Column("_state", "", "left", of=lambda one: _STATES[one.status]),
        Column("evidence", "evidence", "left", wide=True, of=because),
        Unseen("names", lambda one: ", ".join(one.names)),
    )
    ordered = sorted(found.findings, key=lambda one: one.status == "unknown")
    note = "".join(f"not known: {', '.join(names)} ({why})\n" for why, names in _lacking(found).items()).strip()
    return Table.of("Checks", ordered, cells, note=note, shown=len(known))


def _comparison_table(compared: Sequence[Compared]) -> Table:
    """Each quantity before and after, with its change."""

    def fraction(one: Compared) -> float | None:
        if one.change is not None:
            return one.change.fraction
        return one.after / one.before - 1.0 if one.before and one.after is not None else None

    def end(one: Compared, side: str) -> float | None:
        return None if one.change is None else getattr(one.change, side)

    def change(one: Compared) -> str:
        return "-" if (found := fraction(one)) is None else f"{100 * found:+.1f} %"

    def interval(one: Compared) -> str:
        return f"{100 * one.change.low:+.1f} to {100 * one.change.high:+.1f} %" if one.change is not None else ""

    cells: tuple[Column | Unseen, ...] = (
        *map(Unseen, ("quantity", "before", "after")),
        Unseen("change_fraction", fraction),
        Unseen("low_fraction", lambda one: end(one, "low")),
        Unseen("high_fraction", lambda one: end(one, "high")),
        Column("_quantity", "", "left", of=lambda one: words(one.quantity)),
        Column("_before", "before", of=lambda one: show(one.before, one.quantity)),
        Column("_after", "after", of=lambda one: show(one.after, one.quantity)),
        Column("_change", "change", of=change),
        Column("_interval", "95 %", of=interval),
        Column("outcome", "", "left"),
    )
    note = "means of settled steps; intervals by drawing blocks of steps anew, as steps remember each other"
    return Table.of("Before and after", compared, cells, note=note)


def outcome_words(compared: Iterable[Compared], path: str) -> str:
    """
    What became of it, in a sentence.

    Args:
        compared: Each quantity.
        path: File of the baseline.
    """
    by: dict[str, list[str]] = {}
    for one in compared:
        by.setdefault(one.outcome, []).append(words(one.quantity))
    if not set(by) - {"only before", "only after"}:
        some = "this run has some" if "only after" in by else "the recorded run has some"
        lacking = some if by else "engines were seen on both sides"
        return f"Nothing to compare with {path}: steps of training logs are compared, and only {lacking}."
    parts = [f"{', '.join(names)}: {outcome}" for outcome, names in by.items()]
    return f"Against the recorded run: {'; '.join(parts)}."


def rollback_words(before: RunObservation, path: str, now: Mapping[str, Figure]) -> list[str]:
    """
    How to go back to the recorded pools, and what to keep.

    Args:
        before: The record.
        path: Its file.
        now: What is seen now, by key.
    """
    sizes = _allocation(before.allocation)
    if not sizes:
        return ["The baseline recorded no allocation, so there is nothing to go back to; record one with --record."]
    back = (
        f"To go back: {sizes}, as {path} recorded; `rlsize manifest --rollback {path}` writes it. "
        "The trainer stays as it is."
    )
    kept = [name for key, (name, more) in _LASTING.items() if _improved(before, now, key, more=more)]
    what = ", ".join(kept) if kept else "fixes of prefix caching, routing or weight sync"
    why = "got better, and stands by itself" if kept else "they stand by themselves"
    return [back, f"Do not roll back with it: {what}; {why}."]


def _improved(before: RunObservation, now: Mapping[str, Figure], key: str, *, more: bool) -> bool:
    """Whether a share is better than it was."""
    was, found = before.results.get(key), now.get(key)
    if was is None or not isinstance(was.value, float) or found is None or not found.known or was.value <= 0:
        return False
    change = found.number / was.value - 1.0
    return change > _BETTER if more else change < -_BETTER


def _allocation(allocation: ObservedAllocation) -> str:
    """Recorded pool sizes in words."""
    count, size, gpus = allocation.rollout_instances, allocation.gpus_per_instance, allocation.rollout_gpus
    if count is None and gpus is None:
        return ""
    parts = [] if count is None else [f"{count:g} rollout instances"]
    parts += [] if size is None or count is None else [f"of {size:g} GPUs each"]
    parts += [f"{gpus:g} rollout GPUs"] if gpus is not None and count is None else []
    return " ".join(parts)
