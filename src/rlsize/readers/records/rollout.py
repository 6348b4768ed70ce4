"""Offline runs: response tokens per second of a replica that works off many requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.errors import Refused
from rlsize.facts.records import EngineRecord
from rlsize.readers.records.engine import engine_fields
from rlsize.readers.records.parsing import positive, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.readers.profiles import Catalogue

CLASS = "rollout"
_TOTAL, _EACH, _INPUT = "output_tok_s_total", "output_tok_s_per_gpu", "input_tok_s_total"


def matches(row: Mapping[str, Any]) -> bool:
    """Whether a row is an offline run."""
    return bool({_TOTAL, _EACH, _INPUT} & set(row)) and "tpot_ms" not in row and "step_time_s" not in row


def record(row: Mapping[str, Any], catalogue: Catalogue) -> EngineRecord:
    """
    A row as a record.

    Raises:
        Refused: It lacks what a prediction needs, or gives the rate of one phase only.
    """
    measured = positive(row, _TOTAL, _EACH)
    if not measured:
        raise Refused("states no rate of response tokens")
    if "single-sequence" in text(row, "metric"):
        raise Refused("gives the speed of one sequence, with speculative decoding")
    fields = engine_fields(row, catalogue)
    load = positive(row, "num_requests", "concurrency")
    return EngineRecord(
        **{**fields, "measured": measured},
        concurrency=load.get("concurrency"),
        requests=load.get("num_requests"),
    )
