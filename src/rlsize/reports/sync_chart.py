"""The picture of a weight sync: the methods over the chosen link, and the chosen method over other links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.reports.chart import Chart, Series
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.estimates.sync import LinkFigures, SyncQuestion
    from rlsize.planner.sync_cadence import SyncAnswer

_LOG_RANGE = 30.0  # beyond it the short bars of a linear scale are lines
_MOST_BARS = 11  # as many names stand side by side
_FEWEST_LINKS = 4
_CLOSE = 1.05  # links within five percent of each other are one bar


def chosen_link(question: SyncQuestion) -> LinkFigures:
    """The link that an update takes by the chosen method."""
    return question.handover if question.method == "colocated" else question.path


def path_name(question: SyncQuestion) -> str:
    """That link's name and bandwidth."""
    link = chosen_link(question)
    bandwidth = show(link.bandwidth.value, "_bytes_per_second")
    return f"{link.name} ({bandwidth} one way)" if link.name else bandwidth


def sync_chart(answer: SyncAnswer) -> Chart | None:
    """Bars for methods and links, in powers of ten where the range needs it; None where no time is known."""
    sent = next(figure for figure in answer.results if figure.key == "transfer_bytes")
    methods = [
        (str(row["method"]), row["transfer_seconds"].number) for row in answer.methods if row["transfer_seconds"].known
    ]
    links = _shown_links(answer, max(_FEWEST_LINKS, _MOST_BARS - len(methods)))
    if not (methods or links) or not sent.known:
        return None
    method = answer.question.method
    series = [_bars("methods", methods, "main"), _bars("links", links, "other")]
    parts = [f"methods over {path_name(answer.question)}"] if methods else []
    parts += [f"links by {method}"] if links else []
    heights = [seconds for _, seconds in (*methods, *links) if seconds > 0]
    return Chart(
        title=_takeaway(methods, links, method),
        x_label="",
        y_label="seconds per sync, nameplate",
        series=tuple(entry for entry in series if entry.xs),
        kind="stacked",  # each name has one bar only, so that bars of both groups are equally wide
        log_y=bool(heights) and max(heights) > _LOG_RANGE * min(heights),
        subtitle=f"{show(sent.value, sent.key)}: {', '.join(parts)}",
    )


def _bars(name: str, bars: Sequence[tuple[str, float]], role: Any) -> Series:  # noqa: ANN401 (a role of the chart)
    return Series(name=name, xs=tuple(label for label, _ in bars), ys=tuple(seconds for _, seconds in bars), role=role)


def _shown_links(answer: SyncAnswer, most: int) -> list[tuple[str, float]]:
    """Links that differ, spread from the quickest to the slowest, the chosen one among them."""
    links = _distinct_links(answer)
    if len(links) <= most:
        return links
    last = len(links) - 1
    picked = {round(index * last / (most - 1)) for index in range(most)}
    own = chosen_link(answer.question).name
    chosen = next((index for index, (name, _) in enumerate(links) if name == own), None)
    if chosen is not None and chosen not in picked:
        picked.remove(min(picked, key=lambda index: (index in {0, last}, abs(index - chosen))))
        picked.add(chosen)
    return [links[index] for index in sorted(picked)]


def _distinct_links(answer: SyncAnswer) -> list[tuple[str, float]]:
    """Of links within five percent of each other one stands for all, best the chosen or a verified one."""
    groups: list[list[Mapping[str, Any]]] = []
    for row in (row for row in answer.links if row["transfer_seconds"].known and row["transfer_seconds"].number > 0):
        if groups and row["transfer_seconds"].number <= groups[-1][0]["transfer_seconds"].number * _CLOSE:
            groups[-1].append(row)
        else:
            groups.append([row])
    best = [min(group, key=lambda row: _doubt(row, chosen_link(answer.question).name)) for group in groups]
    return [(str(row["link"]), row["transfer_seconds"].number) for row in best]


def _doubt(row: Mapping[str, Any], chosen: str) -> tuple[bool, bool]:
    return row["link"] != chosen, not row["expected_transfer_seconds"].verified


def _takeaway(methods: Sequence[tuple[str, float]], links: Sequence[tuple[str, float]], method: str) -> str:
    if links:
        quickest, slowest = links[0], links[-1]
        least, most = show(quickest[1], "_seconds"), show(slowest[1], "_seconds")
        return f"{method}: {least} over {quickest[0]}, {most} over {slowest[0]}"
    quickest, own = methods[0], dict(methods).get(method)
    if own is None or quickest[0] == method:
        return f"{quickest[0]} is the quickest of these: {show(quickest[1], '_seconds')}"
    return f"{quickest[0]} takes {show(quickest[1], '_seconds')} where {method} takes {show(own, '_seconds')}"
