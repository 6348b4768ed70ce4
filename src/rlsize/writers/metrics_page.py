"""A page of metrics in Prometheus's text format, of the series that are published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.facts.published import EXPORTED, LOOP, METRICS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.facts.counters import EngineCounters

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics_page(values: Mapping[str, float], engines: Mapping[str, EngineCounters], mode: str) -> str:
    """
    The page.

    Args:
        values: What each series is, by its name; those that are missing are left out.
        engines: What engines count, by name; a page of several has the label by which Ray tells its processes apart.
        mode: How rollouts and training lie in time; empty where there is no trainer.
    """
    lines = []
    if mode:
        lines += _family(LOOP, "gauge", "how rollouts and training lie in time", [f'{LOOP}{{mode="{mode}"}} 1'])
    for metric in METRICS:
        if metric.name in values:
            kind, _, meaning = metric.meaning.partition(": ")
            lines += _family(metric.name, kind, meaning, [f"{metric.name} {values[metric.name]!r}"])
    for field, name in EXPORTED.items():
        told = [(who, one.model, value) for who, one in engines.items() if (value := getattr(one, field)) is not None]
        series = [
            f'{name}{{WorkerId="{_label(who)}",model_name="{_label(model)}"}} {value!r}' for who, model, value in told
        ]
        if series:
            words = field.replace("_", " ")
            lines += _family(name, "counter" if name.endswith("_total") else "gauge", f"{words} of an engine", series)
    return "\n".join([*lines, ""])


def _family(name: str, kind: str, meaning: str, series: Sequence[str]) -> list[str]:
    return [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}", *series]


def _label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
