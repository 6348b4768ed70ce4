"""Predictions of closed loops: throughput first, then its split between first and later tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.estimates.constants_memory import STAGE as MEMORY
from rlsize.estimates.constants_rollout import STAGE as ROLLOUT
from rlsize.estimates.figures import numbers
from rlsize.estimates.recorded import engine
from rlsize.estimates.rollout_prediction import first_and_later

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.equations._ops import Real
    from rlsize.estimates.recorded.registry import Profiles
    from rlsize.facts.records import EngineRecord

CLASS = "engine_latency"
STAGES = (ROLLOUT, MEMORY)
family, kind, layout_key = engine.family, engine.kind, engine.layout_key
noise, unstated = engine.noise, engine.unstated
_RATE, _MILLI = "output_tok_s_total", 1e3
_TOLERANCE = 0.1  # of a time: repeated runs differ by that much


def predict(record: EngineRecord, profiles: Profiles, values: Mapping[str, Real]) -> dict[str, Real]:
    """
    Throughput, time to first token and time per output token of a closed loop.

    Raises:
        Refused: The engine cannot run so.
    """
    found, lengths = engine.predicted(record, engine.replica(record, profiles), values)
    first, later = first_and_later(numbers, found, record.concurrency, lengths, values)
    return {_RATE: found.rate, "ttft_ms": _MILLI * first, "tpot_ms": _MILLI * later}


def graded(_record: EngineRecord) -> str:
    """Throughput: how requests arrive splits it into both times, and records do not say how they arrived."""
    return _RATE


def contradictions(records: Sequence[EngineRecord]) -> dict[int, str]:
    """
    Rows whose tokens come faster although more requests share the engine; the fewest whose absence leaves order.

    Args:
        records: Rows of any tables; those of one source, model, GPU, layout and lengths are neighbours.
    """
    tables: dict[Any, list[int]] = {}
    for place, record in enumerate(records):
        lengths = (record.prompt_tokens, record.response_tokens, record.stack)
        tables.setdefault((record.source_id, record.model, record.gpu, layout_key(record), lengths), []).append(place)
    found = {}
    for places in tables.values():
        ordered = sorted(places, key=lambda place: records[place].concurrency or 0.0)
        kept = _longest_rise([records[place].measured["tpot_ms"] for place in ordered])
        for index in set(range(len(ordered))) - kept:
            row = records[ordered[index]]
            found[ordered[index]] = (
                f"tpot_ms {row.measured['tpot_ms']:.3g} at concurrency {row.concurrency:g} is out of order with "
                "other concurrencies of the same engine"
            )
    return found


def _longest_rise(times: Sequence[float]) -> set[int]:
    """Positions of the longest run of times that never fall by more than a tolerance."""
    best: list[list[int]] = []
    for index, time in enumerate(times):
        before = [run for run in best if times[run[-1]] <= time * (1 + _TOLERANCE)]
        best.append([*_longest(before, times), index])
    return set(_longest(best, times))


def _longest(runs: Sequence[list[int]], times: Sequence[float]) -> list[int]:
    """The longest run; of runs alike in length the one that ends quicker, as slow rows are the odd ones."""
    return max(runs, key=lambda run: (len(run), -times[run[-1]])) if runs else []
