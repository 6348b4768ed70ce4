"""A rates file: measured rates with their conditions."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.facts.rates import Rates
from rlsize.readers.validation import opened, validated
from rlsize.readers.yaml_documents import read_document

if TYPE_CHECKING:
    from rlsize.facts.rates import InstanceRate
    from rlsize.readers.yaml_documents import Document


def read_rates(path: str) -> Rates:
    """
    The rates of a file, in response tokens: a rate that counts prompt tokens too is converted.

    Args:
        path: A rates file, or an observation, which holds the rates that were seen.

    Raises:
        InputError: All that is wrong with the file.
    """
    return rates_of(read_document(path))


def rates_of(document: Document) -> Rates:
    """
    The rates of a document; as `read_rates`.

    Raises:
        InputError: All that is wrong with it.
    """
    header = document.data.get("rlsize") if isinstance(document.data, dict) else None
    if isinstance(header, dict) and header.get("kind") == "observation":
        return _observed(document)
    document = opened(document, "rates")
    rates = validated(Rates, document)
    faults = [*_disagreements(rates, document)]
    if faults:
        raise InputError(*faults)
    return _in_response_tokens(rates)


def _observed(document: Document) -> Rates:
    from rlsize.readers.observations import observation_of

    rates = observation_of(document).rates
    if rates is None:
        todo = "observe again with --record, or with --save for a rates file; rlsize before 0.2 recorded none"
        raise InputError(Fault("is an observation without rates", document.name, todo))
    return _in_response_tokens(rates)


def _disagreements(rates: Rates, document: Document) -> list[Fault]:
    """What is wrong between fields that are each right."""
    faults = []
    try:
        datetime.fromisoformat(rates.measured_at)
    except ValueError:
        faults.append(
            Fault(
                f"{rates.measured_at[:40]!r} is no date",
                document.where(("measured_at",)),
                "write one such as 2026-11-20T16:12:00+00:00",
            )
        )
    if (
        rates.instance_tokens_per_second is None
        and rates.train_seconds is None
        and rates.consumption_tokens_per_second is None
    ):
        faults.append(
            Fault(
                "holds no rate",
                document.name,
                "give instance_tokens_per_second, train_seconds or consumption_tokens_per_second",
            )
        )
    if len(set(rates.includes)) != len(rates.includes):
        faults.append(Fault("names a part twice", document.where(("includes",)), "name each part once"))
    if rates.counts == "total" and (rates.prompt_share is None or rates.prompt_share >= 1.0):
        todo = "give prompt_share, the share of prompt tokens (below 1), or a rate that counts response tokens"
        faults.append(
            Fault("counts prompt and response tokens, which cannot be converted", document.where(("counts",)), todo)
        )
    return faults


def _in_response_tokens(rates: Rates) -> Rates:
    if rates.counts == "response" or rates.prompt_share is None:
        return rates
    share = 1.0 - rates.prompt_share
    rate = rates.instance_tokens_per_second
    return replace(
        rates,
        counts="response",
        instance_tokens_per_second=None if rate is None else _scaled(rate, share),
        instances=[
            replace(
                entry,
                tokens_per_second=entry.tokens_per_second * share,
                busy_tokens_per_second=None
                if entry.busy_tokens_per_second is None
                else entry.busy_tokens_per_second * share,
            )
            for entry in rates.instances
        ],
    )


def _scaled(rate: InstanceRate, share: float) -> InstanceRate:
    converted = f"converted from total tokens, of which {100 * share:.4g} % are response tokens"
    return replace(
        rate,
        mean=rate.mean * share,
        spread=None if rate.spread is None else rate.spread * share,
        why=f"{rate.why}; {converted}" if rate.why else converted,
    )
