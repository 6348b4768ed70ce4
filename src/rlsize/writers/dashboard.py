"""A Grafana dashboard as JSON: two panels a row, the plan's targets as lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.reports.alerts_panels import Drawn, Panel

SCHEMA_VERSION = 39  # Grafana 10.4 and later migrate it themselves
_WIDTH, _HEIGHT, _COLUMNS = 12, 8, 2
_SOURCE = {"type": "prometheus", "uid": "${DS}"}
_GOOD, _BAD = "green", "red"
_DASHES = {"fill": "dash", "dash": [10, 10]}


def dashboard_text(panels: Sequence[Panel], *, group: str, title: str, series: str) -> str:
    """
    A dashboard to import.

    Args:
        panels: What it shows, in order.
        group: The rules that record what it shows; its uid follows from it.
        title: Its title.
        series: A series that every instance has, for the choice of instances.
    """
    content = {
        "title": title,
        "uid": f"rlsize-{group}"[:40],
        "schemaVersion": SCHEMA_VERSION,
        "tags": list(dict.fromkeys(("rlsize", group))),
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "editable": True,
        "templating": {"list": [_data_source(), _instances(series)]},
        "panels": [_panel(panel, index) for index, panel in enumerate(panels)],
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _data_source() -> dict[str, Any]:
    return {"name": "DS", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _instances(series: str) -> dict[str, Any]:
    query = f"label_values({series}, instance)"
    return {
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


def _panel(panel: Panel, index: int) -> dict[str, Any]:
    row, column = divmod(index, _COLUMNS)
    return {
        "id": index + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.text,
        "gridPos": {"h": _HEIGHT, "w": _WIDTH, "x": column * _WIDTH, "y": row * _HEIGHT},
        "datasource": _SOURCE,
        "targets": [_target(line, position) for position, line in enumerate(panel.lines)],
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": _steps(panel)}},
            "overrides": [_dashed(line.legend) for line in panel.lines if line.plan],
        },
    }


def _target(line: Drawn, position: int) -> dict[str, Any]:
    name = chr(ord("A") + position)
    return {"refId": name, "expr": line.expr, "legendFormat": line.legend, "datasource": _SOURCE}


def _steps(panel: Panel) -> list[dict[str, Any]]:
    """Colours by value: the first holds from below."""
    if panel.limit is None:
        return [{"color": _GOOD, "value": None}]
    low, high = (_GOOD, _BAD) if panel.above else (_BAD, _GOOD)
    return [{"color": low, "value": None}, {"color": high, "value": panel.limit}]


def _dashed(legend: str) -> dict[str, Any]:
    properties = [
        {"id": "custom.lineStyle", "value": _DASHES},
        {"id": "color", "value": {"mode": "fixed", "fixedColor": _BAD if legend == "threshold" else "blue"}},
    ]
    return {"matcher": {"id": "byName", "options": legend}, "properties": properties}
