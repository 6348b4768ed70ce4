"""A Grafana dashboard as JSON: two panels a row, the plan's targets as lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlsize.commands.alerts.rules import SERIES
from rlsize.commands.alerts.signals import SIGNALS
from rlsize.commands.alerts.text import plain_number

if TYPE_CHECKING:
    from rlsize.commands.alerts.rules import Rules

SCHEMA_VERSION = 39  # Grafana 10.4 and later migrate it themselves
_WIDTH, _HEIGHT, _COLUMNS = 12, 8, 2
_SOURCE = {"type": "prometheus", "uid": "${DS}"}
_GOOD, _BAD = "green", "red"
_COLOURS = {"plan": "blue", "threshold": _BAD}
"""Lines of the plan, which are dashed, by what they are called."""
_ORDER = (
    "goodput", "idle", "rollout", "straggler", "queue", "age", "waste", "sync", "cache", "waiting", "preemptions", "up",
)  # fmt: skip
"""The roll-up first."""
_BY_INSTANCE = ("instance", "waiting", "cache", "preemptions")


def dashboard_text(rules: Rules) -> str:
    """
    A dashboard to import.

    Args:
        rules: The rules that record what it shows; its uid follows from their name.
    """
    group = rules.setup.group
    series = rules.of(next(name for name in _BY_INSTANCE if name in rules.recorded))  # of this loop, and of no other
    query = f"label_values({series}, instance)"
    instances = {
        "name": "instance",
        "label": "Instance",
        "type": "query",
        "datasource": _SOURCE,
        "definition": query,
        "query": {"query": query, "refId": "instances"},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }
    source = {"name": "DS", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    shown = [signal for signal in _ORDER if signal in rules.signals]
    content = {
        "title": f"rlsize: {Path(rules.plan.loop.name).stem}",
        "uid": f"rlsize-{group}"[:40],
        "schemaVersion": SCHEMA_VERSION,
        "tags": list(dict.fromkeys(("rlsize", group))),
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "editable": True,
        "templating": {"list": [source, instances]},
        "panels": [_panel(rules, signal, index) for index, signal in enumerate(shown)],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _panel(rules: Rules, signal: str, index: int) -> dict[str, Any]:
    row, column = divmod(index, _COLUMNS)
    one = rules.plan.limits[signal]
    lines = _lines(rules, signal)
    steps: list[dict[str, Any]] = [{"color": _GOOD, "value": None}]  # colours by value: the first holds from below
    if signal != "straggler":
        low, high = (_GOOD, _BAD) if one.above else (_BAD, _GOOD)
        steps = [{"color": low, "value": None}, {"color": high, "value": float(rules.limit(signal))}]
    return {
        "id": index + 1,
        "type": "timeseries",
        "title": SIGNALS[signal].title,
        "description": f"Threshold: {one.rule}.",
        "gridPos": {"h": _HEIGHT, "w": _WIDTH, "x": column * _WIDTH, "y": row * _HEIGHT},
        "datasource": _SOURCE,
        "targets": [
            {"refId": chr(ord("A") + place), "expr": expr, "legendFormat": legend, "datasource": _SOURCE}
            for place, (legend, expr) in enumerate(lines.items())
        ],
        "fieldConfig": {
            "defaults": {"unit": SIGNALS[signal].unit, "thresholds": {"mode": "absolute", "steps": steps}},
            "overrides": [_dashed(legend) for legend in lines if legend in _COLOURS],
        },
    }


def _lines(rules: Rules, signal: str) -> dict[str, str]:
    """The expressions of a panel by what they are called: what is, and what the plan says it should be."""
    one, name = rules.plan.limits[signal], SIGNALS[signal].series or signal
    by_instance = f'{SERIES[name]}{{{rules.own},instance=~"$instance"}}'
    found = {"{{instance}} {{WorkerId}}": by_instance} if name in _BY_INSTANCE else {"now": rules.of(name)}
    if signal == "straggler":  # the line below which one is a straggler
        return {**found, "threshold": f"{rules.limit(signal)} * scalar(quantile(0.5, {rules.of(name)}))"}
    if one.expected.known and signal != "up":
        found["plan"] = f"vector({plain_number(one.expected.number)})"
    return {**found, "plan" if signal == "up" else "threshold": f"vector({rules.limit(signal)})"}


def _dashed(legend: str) -> dict[str, Any]:
    properties = [
        {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [10, 10]}},
        {"id": "color", "value": {"mode": "fixed", "fixedColor": _COLOURS[legend]}},
    ]
    return {"matcher": {"id": "byName", "options": legend}, "properties": properties}
