"""What to say about two files of one kind: what changed in them, what that did, and which change did it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.commands.diff import words as say
from rlsize.commands.diff.causes import cause_tables, causes_chart, most, short_effect, tells_causes
from rlsize.frozen import dataclass
from rlsize.reports.report import Column, Report, Table, Unseen, tables_of
from rlsize.reports.wording import counted, numbered, row_name, sentence, words
from rlsize.units import printable, show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rlsize.facts.figure import Figure
    from rlsize.readers.scenario_changes import Leaf
    from rlsize.verdicts.causes import Difference, Split, Verdict

SHOWN = 12
"""Results that people see; JSON has all."""
SHOWN_INPUTS = 30
"""Inputs that people see; JSON has all."""
_WIDTH = 66  # of 80 columns, without lines and what lies between columns
_DOUBTS: Mapping[Verdict, str] = {
    "bands overlap": "and the bands overlap",
    "only a bound": "but one of them is only a lower bound",
}
_FIRST = (
    "instance_tokens_per_second", "step_seconds", "cost_per_step_usd", "cost_per_run_usd", "run_seconds",
    "matched_instances", "trainer_idle_fraction", "rollout_idle_fraction", "staleness_steps",
    "rollout_memory_headroom_fraction", "trainer_memory_headroom_fraction", "sync_fraction", "gpus", "rollout_gpus",
    "trainer_gpus", "generation_seconds", "train_seconds", "sync_exposed_seconds",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """
    Two files of one kind.

    Args:
        before: Name of the first.
        after: Name of the second.
        inputs: What changed in them.
        details: Keys of those that are for programs: who measured it, and how.
        differences: What became of each result; empty where nothing was worked out.
        of: The result that the answer is about first.
        split: Which change did what; None where that cannot be told.
        results: What the second file gives.
        refused: Why the loop of a file cannot run, by its name.
        how: Where bands come from.
    """

    before: str
    after: str
    inputs: tuple[Leaf, ...] = ()
    details: frozenset[str] = frozenset()
    differences: tuple[Difference, ...] = ()
    of: str = "step_seconds"
    split: Split | None = None
    results: tuple[Figure, ...] = ()
    refused: Mapping[str, str] | None = None
    how: str = "that of a change on the same draws for both sides"

    @property
    def main(self) -> Difference | None:
        """The result that the answer is about first."""
        return next((one for one in self.differences if one.quantity == self.of), None)

    @property
    def ranked(self) -> tuple[Difference, ...]:
        """The main result first, then those that people ask for, what changed before what did not."""
        order = {key: index for index, key in enumerate(dict.fromkeys((self.of, *_FIRST)))}
        place = {one.quantity: index for index, one in enumerate(self.differences, len(order))}
        return tuple(
            sorted(self.differences, key=lambda one: (not one.moved, order.get(one.quantity, place[one.quantity])))
        )


def diff_report(compared: Compared, warnings: Sequence[str] = (), notes: Sequence[str] = ()) -> Report:
    """
    The report of `rlsize diff`.

    Args:
        compared: What was found.
        warnings: What casts doubt.
        notes: What explains the answer.
    """
    counts = {
        "changed_inputs": len(compared.inputs),
        "changed_results": sum(one.moved for one in compared.differences),
        "close_results": sum(one.verdict in {"too close to call", "bands overlap"} for one in compared.differences),
    }
    results = (*counted(counts), *compared.results)
    split = compared.split if compared.split is not None and tells_causes(compared.split) else None
    causes = {} if split is None else cause_tables(split, compared.differences, compared.of)
    found = _results_table(compared) if compared.differences else None
    inputs = _inputs_table(compared) if compared.inputs else None
    return Report(
        headline=_headline(compared),
        results=results,
        tables=tables_of(results=found, **causes, inputs=inputs),
        warnings=tuple(warnings),
        notes=(*_alone(compared), *notes),
        chart=causes_chart(compared.split, compared.main),
        quiet=frozenset(figure.key for figure in results),
    )


def _headline(compared: Compared) -> str:
    if not compared.inputs and not any(one.moved for one in compared.differences):
        return f"Nothing changed: {compared.before} and {compared.after} say the same."
    main = compared.main
    for name, why in (compared.refused or {}).items():
        rest = f" {_moved(main)}." if main is not None else ""
        return f"The loop of {printable(name)} cannot run: {sentence(why)}{rest}"
    changed = f"{numbered(len(compared.inputs), 'input') if compared.inputs else 'No inputs'} changed"
    if main is None:
        return f"{changed}."
    if not any(one.moved for one in compared.differences):
        value = f", and {words(main.quantity)} stays at {show(main.after.value, main.quantity)}"
        return f"{changed}; no result moves{value}."
    return f"{_moved(main)}{_due(compared, main)}."


def _moved(one: Difference) -> str:
    """What became of the main result, in a sentence."""
    name, key = sentence(words(one.quantity))[:-1], one.quantity
    first, second = (show(side.value, key) for side in (one.before, one.after))
    if one.verdict in {"only before", "only after"}:
        side, value = ("before", first) if one.verdict == "only before" else ("after", second)
        return f"{name} is known only {side} the change: {value}"
    ends = say.change_band(one)
    told = f"{say.change(one)}{f', 80 % band {ends}' if ends else ''}"
    if one.verdict == "unchanged":
        return f"{name} stays at {second}"
    if one.verdict == "too close to call":
        return f"{name}, {first} and then {second}, is too close to call ({told})"
    if one.verdict in _DOUBTS:
        return f"{name} was {first} and is {second} ({told}), {_DOUBTS[one.verdict]}"
    verb = "rises" if one.verdict == "higher" else "falls"
    return f"{name} {verb} from {first} to {second} ({told})"


def _due(compared: Compared, main: Difference) -> str:
    """The change that does most of it, where there are several."""
    if compared.split is None or len(compared.split.causes) < 2 or not main.moved:  # noqa: PLR2004 (one has no rival)
        return ""
    cause = most(compared.split, compared.of)
    if cause is None:
        return ""
    how = short_effect(cause.effects[compared.of], main.before.number, compared.of)
    return f"; {say.causes(cause.keys)} {'by itself makes' if len(cause.keys) == 1 else 'by themselves make'} {how}"


def _results_table(compared: Compared) -> Table:
    ranked = compared.ranked
    moved = sum(one.moved for one in ranked)
    told = (moved or compared.inputs) and not compared.refused
    shown = min(max(moved, 1), SHOWN) if told else 0
    cells: tuple[Column | Unseen, ...] = (
        Column("quantity", "", "left", wide=True, told=lambda one: row_name(one.quantity)),
        *_ends("before", lambda one: one.before, lambda one: say.amount(one.before)),
        *_ends("after", lambda one: one.after, lambda one: say.amount(one.after)),
        *_ends("change", lambda one: one.change, _change),
        *_ends("change_fraction", lambda one: one.change_fraction),
        Column("verdict", "", "left", told=lambda one: say.VERDICTS.get(one.verdict, one.verdict)),
    )
    note = printable("; ".join(_below(compared, moved, shown)))
    return Table.of("Results", ranked, cells, note=note, shown=shown)


def _ends(
    name: str, figure: Callable[[Difference], Figure], told: Callable[[Difference], str] | None = None
) -> tuple[Column | Unseen, ...]:
    """A figure of a difference, with what people are told of it, and the ends of its band."""
    value = Unseen(name, lambda one: figure(one).value)
    return (
        value if told is None else Column(name, name, of=value.of, told=told),
        Unseen(f"{name}_low", lambda one: (figure(one).band or (None, None))[0]),
        Unseen(f"{name}_high", lambda one: (figure(one).band or (None, None))[1]),
    )


def _change(one: Difference) -> str:
    ends = say.change_band(one)
    return f"{say.change(one)}\n({ends})" if ends else say.change(one)


def _below(compared: Compared, moved: int, shown: int) -> Iterator[str]:
    """What stands below the table of results."""
    yield f"before: {compared.before}; after: {compared.after}"
    verdicts = {one.verdict for one in compared.ranked[:shown]}
    if any(side.band for one in compared.ranked for side in (one.before, one.after)):
        yield f"in parentheses: 80 % bands, {compared.how}"
    if "too close to call" in verdicts:
        held = "holds 0" if any(one.change.band for one in compared.ranked) else "is not on one side of 0"
        yield f"too close: the band of the change {held}"
    if "bands overlap" in verdicts:
        yield "overlap: the bands do not tell the two from each other"
    if "only a bound" in verdicts:
        yield "a bound: a side is only a lower bound, which does not tell the change"
    rest = [f"{moved - shown} more that change"] if moved > shown else []
    same = len(compared.ranked) - max(moved, 1)
    rest += [f"{same} that do not"] if same else []
    if rest:
        yield f"in --json too: {', '.join(rest)}"


def _alone(compared: Compared) -> Iterator[str]:
    """Why some changes have no effect of their own to tell."""
    if compared.split is None:
        return
    groups = {key: cause.keys for cause in compared.split.causes for key in cause.keys}
    for key, why in compared.split.alone.items():
        with_others = len(groups[key]) > 1
        how = "so it is taken together with what it needs" if with_others else "and no other change helps"
        yield f"{printable(key)} by itself cannot be worked out ({why.removesuffix('.')}), {how}."


def _inputs_table(compared: Compared) -> Table:
    """The values that changed, with their lines; details last, and for people only where nothing else is."""
    ranked = sorted(compared.inputs, key=lambda entry: entry.key in compared.details)
    told = [entry for entry in ranked if entry.key not in compared.details][:SHOWN_INPUTS] or ranked[:SHOWN_INPUTS]
    alone = compared.split.alone if compared.split is not None else {}
    values = {entry.key: say.brief(entry.before, entry.after) for entry in ranked}
    widths = [max(map(len, texts)) for texts in zip(*(values[entry.key] for entry in told), strict=True)]
    room = max(_WIDTH - sum(widths), say.SHORTEST_KEY)
    cells: tuple[Column | Unseen, ...] = (
        Column("input", "", "left", False, lambda one: printable(one.key), lambda one: say.brief_key(one.key, room)),
        Unseen("before", lambda entry: None if entry.before is None else say.written(entry.before)),
        Unseen("after", lambda entry: None if entry.after is None else say.written(entry.after)),
        *map(Unseen, ("before_line", "after_line")),
        Unseen("refused", lambda entry: alone.get(entry.key)),
        Column("_before", "before", wide=True, of=lambda entry: values[entry.key][0]),
        Column("_after", "after", wide=True, of=lambda entry: values[entry.key][1]),
        *([Column("_lines", "line", of=_lines)] if any(map(_lines, ranked)) else []),
    )
    rest = len(ranked) - len(told)
    note = f"{rest} more in --json" if rest else ""
    return Table.of("Inputs that changed", ranked, cells, note=note, shown=len(told))


def _lines(entry: Leaf) -> str:
    lines = [str(line) for line in (entry.before_line, entry.after_line) if line is not None]
    return ", ".join(dict.fromkeys(lines))
