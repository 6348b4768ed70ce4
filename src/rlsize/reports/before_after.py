"""Before and after, side by side; and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.reports.report import Column, Table
from rlsize.reports.wording import words
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlsize.facts.figure import Figure
    from rlsize.facts.observation_file import ObservedAllocation, RunObservation
    from rlsize.reports.report import Cell
    from rlsize.verdicts.before_after import Compared


def comparison_table(compared: Sequence[Compared]) -> Table:
    """Each quantity before and after, with its change."""
    return Table(
        title="Before and after",
        columns=(
            Column("_quantity", "", "left"),
            Column("_before", "before"),
            Column("_after", "after"),
            Column("_change", "change"),
            Column("_interval", "95 %"),
            Column("outcome", "", "left"),
        ),
        rows=tuple(_row(one) for one in compared),
        note="means of settled steps; intervals by drawing blocks of steps anew, as steps remember each other",
    )


def _row(one: Compared) -> dict[str, Cell]:
    change = one.change
    moved = one.before is not None and one.after is not None and bool(one.before)
    fraction = None
    if moved and one.before is not None and one.after is not None:
        fraction = one.after / one.before - 1.0 if change is None else change.fraction
    return {
        "quantity": one.quantity,
        "before": one.before,
        "after": one.after,
        "change_fraction": fraction,
        "low_fraction": None if change is None else change.low,
        "high_fraction": None if change is None else change.high,
        "outcome": one.outcome,
        "_quantity": words(one.quantity),
        "_before": show(one.before, one.quantity),
        "_after": show(one.after, one.quantity),
        "_change": "-" if fraction is None else f"{100 * fraction:+.1f} %",
        "_interval": "" if change is None else f"{100 * change.low:+.1f} to {100 * change.high:+.1f} %",
    }


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
        return f"Nothing to compare with {path}: steps of training logs are compared, and only {_lacking(by)}."
    parts = [f"{', '.join(names)}: {outcome}" for outcome, names in by.items()]
    return f"Against the recorded run: {'; '.join(parts)}."


def _lacking(by: Mapping[str, Sequence[str]]) -> str:
    if not by:
        return "engines were seen on both sides"
    return "this run has some" if "only after" in by else "the recorded run has some"


_LASTING = {  # what stands by itself when it got better, and whether more of it is better
    "prefix_cache_hit_fraction": ("prefix caching and routing", True),
    "sync_pause_fraction": ("the shorter weight sync", False),
}
_BETTER = 0.1  # relative change from which it got better


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
