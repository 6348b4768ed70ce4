"""What to say about a weight sync: bytes, seconds, the share of a step that it pauses, other methods and links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.facts.figure import Figure
from rlsize.reports.chart import Chart, Series
from rlsize.reports.report import Column, Report, Table, tables_of, without_reasons
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlsize.estimates.sync import LinkFigures, SyncQuestion
    from rlsize.planner.sync_cadence import SyncAnswer
    from rlsize.reports.chart import Role
    from rlsize.shell.inputs import Inputs

_SLOW_PATH = 0.3  # less of the link than this is what one send per tensor reaches, not a bucketed one
_LOG_RANGE = 30.0  # beyond it the short bars of a linear scale are lines
_MOST_BARS = 11  # as many names stand side by side
_FEWEST_LINKS = 4
_CLOSE = 1.05  # links within five percent of each other are one bar


def sync_report(answer: SyncAnswer, inputs: Inputs) -> Report:
    """
    The report of `rlsize sync`.

    Args:
        answer: What a sync costs, and the alternatives.
        inputs: What it was worked out from, with its warnings and notes.
    """
    found = {figure.key: figure for figure in answer.results}
    return Report(
        headline=_headline(answer.question, found),
        results=answer.results,
        tables=tables_of(methods=_methods_table(answer), links=_links_table(answer) if answer.links else None),
        chart=_chart(answer),
        quiet=frozenset({"break_even_changed_fraction"} if answer.question.method != "delta" else ()),
        **inputs.told(
            first=_link_notes(answer.question),
            warnings=_doubtful(answer.question, found),
            notes=_pause_notes(answer.question, found),
        ),
    )


def _headline(question: SyncQuestion, found: Mapping[str, Figure]) -> str:
    sent, plain, expected = found["transfer_bytes"], found["transfer_seconds"], found["expected_transfer_seconds"]
    if not sent.known:
        return _pause(found) if expected.known else f"How much a {question.method} sync sends needs {sent.missing}."
    what, measured = show(sent.value, sent.key), question.measured_seconds.known and expected.known
    if plain.known:
        text = f"{what} take {show(plain.value, plain.key)} by {question.method} over {_path_name(question)}"
        if expected.known:
            text += f", {show(expected.value, expected.key)} {'measured' if measured else 'expected'}"
    elif measured:
        text = f"{what} take {show(expected.value, expected.key)} by {question.method}, measured"
    else:
        return f"{what} to send by {question.method}; how long it takes needs {plain.missing}."
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


def _doubtful(question: SyncQuestion, found: Mapping[str, Figure]) -> list[str]:
    fraction = found.get("achieved_link_fraction")
    if fraction is None or not fraction.known:
        return []
    seconds, sent = show(question.measured_seconds.value, "_seconds"), show(found["transfer_bytes"].value, "_bytes")
    said = f"{seconds} for {sent} is {show(fraction.value, fraction.key)} of {_path_name(question)}"
    if fraction.number > 1.0:
        return [f"{said}, which no transfer reaches: check the measured time, the bytes and the link"]
    if fraction.number < _SLOW_PATH:
        return [f"{said}: one send per tensor looks like that; send in buckets, or time the parts of the sync"]
    return []


def _link_notes(question: SyncQuestion) -> Iterator[str]:
    link = _chosen_link(question)
    if link.both_directions:
        both, one = show(link.both_directions, "_bytes_per_second"), show(link.bandwidth.value, "_bytes_per_second")
        yield f"{link.title} is advertised with {both}: the sum of both directions. An update goes one way, at {one}."
    share = show(link.achievable_fraction.value, "_fraction")
    if link.basis == "assumed":
        assumed = "assumed for bucketed transfers: nobody measured it"
        yield f"Expected takes {share} of the link, {assumed}. --efficiency replaces it."
    elif link.basis == "measured":
        yield f"Expected takes {share} of the link, {link.achievable_fraction.source}."


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
    known = {key for row in rows for key, cell in row.items() if cell is not None}
    pause = "expected_sync_pause_fraction" if "expected_sync_pause_fraction" in known else "sync_pause_fraction"
    columns = (
        Column("method", "method", "left"),
        Column("transfer_bytes", "bytes"),
        Column("transfer_seconds", "nameplate"),
        *([Column("expected_transfer_seconds", "expected")] if "expected_transfer_seconds" in known else []),
        *([Column(pause, "paused")] if pause in known else []),
        Column("how", "what decides", "left", wide=True),
    )
    marked = [row["method"] for row in rows].index(answer.question.method)
    return Table(title="Other methods", columns=columns, rows=rows, marked=marked)


def _links_table(answer: SyncAnswer) -> Table:
    rows = tuple(
        {**row, **{key: cell.value for key, cell in row.items() if isinstance(cell, Figure)}, "efficiency": _trust(row)}
        for row in answer.links
    )  # bare values, as one column says for the whole row what nobody has verified
    columns = (
        Column("link", "link", "left"),
        Column("scope", "joins", "left"),
        Column("bandwidth_bytes_per_second", "one way"),
        Column("transfer_seconds", "nameplate"),
        Column("expected_transfer_seconds", "expected"),
        Column("efficiency", "expected takes", "left", wide=True),
    )
    marked = next((index for index, row in enumerate(rows) if row["link"] == _chosen_link(answer.question).name), None)
    note = (
        "joins: the GPUs of a node, nodes over a network, a GPU and its host; bandwidth per GPU\n"
        "unverified: recalled, or carried over from another link"
    )
    title = f"{answer.question.method} over other links"
    return Table(title=title, columns=columns, rows=rows, marked=marked, note=note)


def _trust(row: Mapping[str, Any]) -> str:
    share, bandwidth = row["achievable_fraction"], row["bandwidth_bytes_per_second"]
    trust = row["basis"] if share.verified and bandwidth.verified else "unverified"
    return f"{show(share.value, share.key)} {trust}" if share.known else "nobody knows"


def _chosen_link(question: SyncQuestion) -> LinkFigures:
    """The link that an update takes by the chosen method."""
    return question.handover if question.method == "colocated" else question.path


def _path_name(question: SyncQuestion) -> str:
    """That link's name and bandwidth."""
    link = _chosen_link(question)
    bandwidth = show(link.bandwidth.value, "_bytes_per_second")
    return f"{link.name} ({bandwidth} one way)" if link.name else bandwidth


def _chart(answer: SyncAnswer) -> Chart | None:
    """Bars for methods and links, in powers of ten where the range needs it; None where no time is known."""
    sent = next(figure for figure in answer.results if figure.key == "transfer_bytes")
    methods = [
        (str(row["method"]), row["transfer_seconds"].number) for row in answer.methods if row["transfer_seconds"].known
    ]
    links = _shown_links(answer, max(_FEWEST_LINKS, _MOST_BARS - len(methods)))
    if not (methods or links) or not sent.known:
        return None
    method = answer.question.method
    groups: list[tuple[str, Role, list[tuple[str, float]]]] = [("methods", "main", methods), ("links", "other", links)]
    parts = [f"methods over {_path_name(answer.question)}"] if methods else []
    parts += [f"links by {method}"] if links else []
    heights = [seconds for _, seconds in (*methods, *links) if seconds > 0]
    return Chart(
        title=_takeaway(methods, links, method),
        y_label="seconds per sync, nameplate",
        series=tuple(Series.of(name, bars, role) for name, role, bars in groups if bars),
        kind="stacked",  # each name has one bar only, so that bars of both groups are equally wide
        log_y=bool(heights) and max(heights) > _LOG_RANGE * min(heights),
        subtitle=f"{show(sent.value, sent.key)}: {', '.join(parts)}",
    )


def _shown_links(answer: SyncAnswer, most: int) -> list[tuple[str, float]]:
    """Links that differ, spread from the quickest to the slowest, the chosen one among them."""
    links = _distinct_links(answer)
    if len(links) <= most:
        return links
    last = len(links) - 1
    picked = {round(index * last / (most - 1)) for index in range(most)}
    own = _chosen_link(answer.question).name
    chosen = next((index for index, (name, _) in enumerate(links) if name == own), None)
    if chosen is not None and chosen not in picked:
        picked.remove(min(picked, key=lambda index: (index in {0, last}, abs(index - chosen))))
        picked.add(chosen)
    return [links[index] for index in sorted(picked)]


def _distinct_links(answer: SyncAnswer) -> list[tuple[str, float]]:
    """Of links within five percent of each other one stands for all, best the chosen or a verified one."""
    own = _chosen_link(answer.question).name
    groups: list[list[Mapping[str, Any]]] = []
    for row in (row for row in answer.links if row["transfer_seconds"].known and row["transfer_seconds"].number > 0):
        if groups and row["transfer_seconds"].number <= groups[-1][0]["transfer_seconds"].number * _CLOSE:
            groups[-1].append(row)
        else:
            groups.append([row])
    best = [
        min(group, key=lambda row: (row["link"] != own, not row["expected_transfer_seconds"].verified))
        for group in groups
    ]
    return [(str(row["link"]), row["transfer_seconds"].number) for row in best]


def _takeaway(methods: Sequence[tuple[str, float]], links: Sequence[tuple[str, float]], method: str) -> str:
    if links:
        quickest, slowest = links[0], links[-1]
        least, most = show(quickest[1], "_seconds"), show(slowest[1], "_seconds")
        return f"{method}: {least} over {quickest[0]}, {most} over {slowest[0]}"
    quickest, own = methods[0], dict(methods).get(method)
    if own is None or quickest[0] == method:
        return f"{quickest[0]} is the quickest of these: {show(quickest[1], '_seconds')}"
    return f"{quickest[0]} takes {show(quickest[1], '_seconds')} where {method} takes {show(own, '_seconds')}"
