"""What to say about a weight sync: bytes, seconds, the share of a step that it pauses, other methods and links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.equations.weight_sync import one_way_bandwidth
from rlsize.facts.figure import Figure
from rlsize.facts.link import ADVERTISED_AS_SUM, advertised_as_sum
from rlsize.reports.report import Column, Report, Table, without_reasons
from rlsize.reports.sync_chart import chosen_link, path_name, sync_chart
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.estimates.sync import LinkFigures, SyncQuestion
    from rlsize.planner.sync_cadence import SyncAnswer

_SLOW_PATH = 0.3  # less of the link than this is what one send per tensor reaches, not a bucketed one


def sync_report(
    answer: SyncAnswer, inputs: Sequence[Figure], warnings: Sequence[str], notes: Sequence[str] = ()
) -> Report:
    """
    The report of `rlsize sync`.

    Args:
        answer: What a sync costs, and the alternatives.
        inputs: What it was worked out from.
        warnings: What the reader must know first.
        notes: Why an input is what it is.
    """
    found = {figure.key: figure for figure in answer.results}
    tables = {"methods": _methods_table(answer)}
    if answer.links:
        tables["links"] = _links_table(answer)
    return Report(
        command="sync",
        headline=_headline(answer.question, found),
        results=answer.results,
        inputs=tuple(inputs),
        tables=tables,
        warnings=(*warnings, *_doubtful(answer.question, found)),
        notes=(*_link_notes(answer.question), *notes, *_pause_notes(answer.question, found)),
        chart=sync_chart(answer),
        quiet=frozenset({"break_even_changed_fraction"} if answer.question.method != "delta" else ()),
    )


def _headline(question: SyncQuestion, found: Mapping[str, Figure]) -> str:
    sent, plain, expected = found["transfer_bytes"], found["transfer_seconds"], found["expected_transfer_seconds"]
    if not sent.known:
        return _pause(found) if expected.known else f"How much a {question.method} sync sends needs {sent.missing}."
    what = show(sent.value, sent.key)
    if not plain.known and question.measured_seconds.known and expected.known:
        return (
            f"{what} take {show(expected.value, expected.key)} by {question.method}, measured. {_pause(found)}".rstrip()
        )
    if not plain.known:
        return f"{what} to send by {question.method}; how long it takes needs {plain.missing}."
    text = f"{what} take {show(plain.value, plain.key)} by {question.method} over {path_name(question)}"
    if expected.known:
        text += (
            f", {show(expected.value, expected.key)} {'measured' if question.measured_seconds.known else 'expected'}"
        )
    return f"{text}. {_pause(found)}".rstrip()


def _pause(found: Mapping[str, Figure]) -> str:
    key = "expected_sync_pause_fraction" if found["expected_sync_pause_fraction"].known else "sync_pause_fraction"
    pause, cadence = found[key], found[key.replace("sync_pause_fraction", "sync_every_steps")]
    if not pause.known:
        return ""
    text = f"It pauses {show(pause.value, pause.key)} of the wall clock"
    if cadence.known and cadence.number > 1:
        text += f"; a sync every {show(cadence.value, cadence.key)} keeps that under the target"
    return f"{text}."


def advertised_warning(bandwidth: Figure) -> str | None:
    """A warning where a typed bandwidth is one that a data sheet gives for both directions together."""
    link = advertised_as_sum(bandwidth.number) if bandwidth.known else None
    if link is None:
        return None
    shown, half = (
        show(bandwidth.value, "_bytes_per_second"),
        show(one_way_bandwidth(link.both_directions), "_bytes_per_second"),
    )
    return (
        f"{bandwidth.source} {shown} is what {link.title} is advertised with, both directions together; "
        f"an update goes one way, at {half} (--link {link.profile}). Taken as typed{_right_for(bandwidth.number)}."
    )


def _right_for(bandwidth: float) -> str:
    """The link that has so much in one direction, for whom the warning is a false alarm."""
    other = next((link for link in ADVERTISED_AS_SUM if one_way_bandwidth(link.both_directions) == bandwidth), None)
    return f", which is right one way for {other.title}" if other else ""


def _doubtful(question: SyncQuestion, found: Mapping[str, Figure]) -> list[str]:
    fraction = found.get("achieved_link_fraction")
    if fraction is None or not fraction.known:
        return []
    seconds, sent = show(question.measured_seconds.value, "_seconds"), show(found["transfer_bytes"].value, "_bytes")
    said = f"{seconds} for {sent} is {show(fraction.value, fraction.key)} of {path_name(question)}"
    if fraction.number > 1.0:
        return [f"{said}, which no transfer reaches: check the measured time, the bytes and the link"]
    if fraction.number < _SLOW_PATH:
        return [f"{said}: one send per tensor looks like that; send in buckets, or time the parts of the sync"]
    return []


def _link_notes(question: SyncQuestion) -> tuple[str, ...]:
    link = chosen_link(question)
    notes = []
    if link.both_directions:
        both, one = show(link.both_directions, "_bytes_per_second"), show(link.bandwidth.value, "_bytes_per_second")
        notes.append(
            f"{link.title} is advertised with {both}: the sum of both directions. An update goes one way, at {one}."
        )
    if link.basis == "assumed":
        share = show(link.achievable_fraction.value, "_fraction")
        notes.append(
            f"Expected takes {share} of the link, assumed for bucketed transfers: nobody measured it. "
            "--efficiency replaces it."
        )
    elif link.basis == "measured":
        share = show(link.achievable_fraction.value, "_fraction")
        notes.append(f"Expected takes {share} of the link, {link.achievable_fraction.source}.")
    return tuple(notes)


def _pause_notes(question: SyncQuestion, found: Mapping[str, Figure]) -> tuple[str, ...]:
    cadence, expected = found["sync_every_steps"], found["expected_sync_every_steps"]
    if not cadence.known or max(cadence.number, expected.number if expected.known else 0.0) <= 1.0:
        return ()
    target = show(question.target_fraction.value, "_fraction")
    rule = f"Sync every: the fewest steps between syncs that pause at most {target} of the wall clock."
    return (f"{rule} Each step more may add a step of staleness.",)


def _methods_table(answer: SyncAnswer) -> Table:
    rows = tuple(
        without_reasons(row) | {"how": row["rule"] if not row["needs"] else f"needs {row['needs']}"}
        for row in answer.methods
    )
    columns = [
        Column("method", "method", "left"),
        Column("transfer_bytes", "bytes"),
        Column("transfer_seconds", "nameplate"),
    ]
    columns += _if_any(rows, "expected_transfer_seconds", "expected")
    expected = any(row["expected_sync_pause_fraction"] is not None for row in rows)
    key = "expected_sync_pause_fraction" if expected else "sync_pause_fraction"
    columns += [*_if_any(rows, key, "paused"), Column("how", "what decides", "left", wide=True)]
    marked = next(index for index, row in enumerate(rows) if row["method"] == answer.question.method)
    return Table(title="Other methods", columns=tuple(columns), rows=rows, marked=marked)


def _links_table(answer: SyncAnswer) -> Table:
    rows = tuple({**row, **_plain(row), "efficiency": _trust(row)} for row in answer.links)
    columns = (
        Column("link", "link", "left"),
        Column("scope", "joins", "left"),
        Column("bandwidth_bytes_per_second", "one way"),
        Column("transfer_seconds", "nameplate"),
        Column("expected_transfer_seconds", "expected"),
        Column("efficiency", "expected takes", "left", wide=True),
    )
    marked = next((index for index, row in enumerate(rows) if row["link"] == chosen_link(answer.question).name), None)
    note = (
        "joins: the GPUs of a node, nodes over a network, a GPU and its host; bandwidth per GPU\n"
        "unverified: recalled, or carried over from another link"
    )
    return Table(
        title=f"{answer.question.method} over other links", columns=columns, rows=rows, marked=marked, note=note
    )


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """Bare values, since one column says for the whole row what nobody has verified."""
    return {key: cell.value for key, cell in row.items() if isinstance(cell, Figure)}


def _trust(row: Mapping[str, Any]) -> str:
    share, bandwidth = row["achievable_fraction"], row["bandwidth_bytes_per_second"]
    trust = row["basis"] if share.verified and bandwidth.verified else "unverified"
    return f"{show(share.value, share.key)} {trust}" if share.known else "nobody knows"


def _if_any(rows: Sequence[Mapping[str, Any]], key: str, title: str) -> list[Column]:
    return [Column(key, title)] if any(row[key] is not None for row in rows) else []


def scale_up_note(gpu: str, link: LinkFigures, adapter: float | None) -> str:
    """A note that a GPU's own link ends at the node's wall."""
    beyond = (
        f"; between nodes the adapter decides ({show(adapter, '_bytes_per_second')} per GPU: --cluster, or --link)"
        if adapter
        else ""
    )
    return f"{link.name} joins {gpu} GPUs of one node{beyond}."
