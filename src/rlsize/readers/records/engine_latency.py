"""Closed-loop runs: time to first token and per output token at a concurrency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.equations.rollout_batch import closed_loop_rate
from rlsize.errors import Refused
from rlsize.facts.records import EngineRecord
from rlsize.readers.records.engine import engine_fields
from rlsize.readers.records.parsing import needed, number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.readers.profiles import Catalogue

CLASS = "engine_latency"
RATE = "output_tok_s_total"
_MILLI = 1e-3


def matches(row: Mapping[str, Any]) -> bool:
    """Whether a row is a closed loop."""
    return "concurrency" in row and ("tpot_ms" in row or "ttft_ms" in row)


def record(row: Mapping[str, Any], catalogue: Catalogue) -> EngineRecord:
    """
    A row as a record; its throughput is worked out from both times.

    Raises:
        Refused: It lacks what a prediction needs.
    """
    fields = engine_fields(row, catalogue)
    concurrency, first, later = needed(row, "concurrency"), number(row, "ttft_ms"), needed(row, "tpot_ms")
    if first is None or first < 0:
        raise Refused("states no ttft_ms, without which tpot_ms says nothing about throughput")
    measured = {"tpot_ms": later}
    if first > 0:
        measured["ttft_ms"] = first
    measured[RATE] = closed_loop_rate(
        concurrency=concurrency,
        response_tokens=fields["response_tokens"],
        first_token_seconds=first * _MILLI,
        output_token_seconds=later * _MILLI,
    )
    return EngineRecord(**{**fields, "measured": measured}, concurrency=concurrency, served=True)
