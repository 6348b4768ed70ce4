"""Every quantity, by its key and by its place in a scenario."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rlsize.quantities import (
    loop,
    measurement,
    operate,
    policies,
    prices,
    rates,
    rollout,
    run,
    search,
    sync,
    trainer,
    workload,
)
from rlsize.quantities.row import by_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.quantities.row import Row

QUANTITIES: Mapping[str, Row] = MappingProxyType(
    by_key(
        (
            *loop.ROWS,
            *workload.ROWS,
            *rollout.ROWS,
            *trainer.ROWS,
            *sync.ROWS,
            *rates.ROWS,
            *policies.ROWS,
            *prices.ROWS,
            *operate.ROWS,
            *run.ROWS,
            *search.ROWS,
            *measurement.ROWS,
        )
    )
)
"""Every quantity by its key."""

PLACES: Mapping[str, Row] = MappingProxyType({row.scenario: row for row in QUANTITIES.values() if row.scenario})
"""Those that a scenario can say, by their dotted key in it."""


def nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by dotted place as the sections of a file."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        *above, last = key.split(".")
        node = found
        for part in above:
            node = node.setdefault(part, {})
        node[last] = value
    return found
