"""A page of metrics in Prometheus's text format, of the series that are published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.facts.published import METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics_page(values: Mapping[str, float]) -> str:
    """
    The page.

    Args:
        values: What each series is, by its name; those that are missing are left out.
    """
    lines = []
    for metric in METRICS:
        if metric.name in values:
            kind, _, meaning = metric.meaning.partition(": ")
            lines += [f"# HELP {metric.name} {meaning}", f"# TYPE {metric.name} {kind}"]
            lines.append(f"{metric.name} {values[metric.name]!r}")
    return "\n".join([*lines, ""])
