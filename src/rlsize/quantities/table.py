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

_PARTS = (loop, workload, rollout, trainer, sync, rates, policies, prices, operate, run, search, measurement)
QUANTITIES: Mapping[str, Row] = MappingProxyType(by_key(row for part in _PARTS for row in part.ROWS))
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
