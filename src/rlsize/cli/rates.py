"""A rates file as the input of a size: its rate, its spread, and the headroom that is left to apply."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rlsize.cli import flags
from rlsize.equations.headroom import remaining_headroom
from rlsize.errors import InputError
from rlsize.estimates.working import apply
from rlsize.facts.figure import Figure, absent
from rlsize.facts.rates import HEADROOM_PARTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.cli.inputs import Inputs
    from rlsize.facts.rates import InstanceRate, Rates

FULL_HEADROOM = 0.8


def rate_from_file(
    inputs: Inputs, file: str, headroom: str | None, *, accept_lower_bound: bool
) -> tuple[Figure, Figure]:
    """
    The instance rate of a rates file and the headroom for what it does not hold yet.

    A lower bound is a fault unless it is accepted: a rate that was asked for, not reached, sizes an ever larger fleet.
    """
    from rlsize.readers.rates import read_rates

    missing = absent("instance_tokens_per_second", "--per-instance"), absent("headroom", "--headroom")
    try:
        rates = read_rates(file)
    except InputError as error:
        inputs.faults.extend(error.faults)
        return missing
    rate = rates.instance_tokens_per_second
    if rate is None:
        inputs.fault(
            "holds no instance_tokens_per_second", file, "save one with `rlsize observe URL... --save rates.yaml`"
        )
        return missing
    if rate.lower_bound:
        _lower_bound(inputs, file, rate, accepted=accept_lower_bound)
    figure = inputs.keep(
        Figure(
            key="instance_tokens_per_second",
            value=rate.mean,
            provenance="measured",
            source=f"{file}: {rates.source.method}, {rates.measured_at}",
            deviation=_deviation(rate),
        )
    )
    return figure, _headroom(inputs, file, rates, headroom)


def _lower_bound(inputs: Inputs, file: str, rate: InstanceRate, *, accepted: bool) -> None:
    what = f"{rate.mean:,.1f} tok/s is a lower bound: {rate.why or 'the engines were not saturated'}"
    if accepted:
        inputs.warnings.append(f"{file}: {what}; the true match is this many instances or fewer")
    else:
        inputs.fault(
            what,
            file,
            "sizing from demand ratchets the fleet upwards: measure under load (lift the backpressure for the window), "
            "or give --accept-lower-bound",
        )


def _deviation(rate: InstanceRate) -> float:
    """Standard error of the mean over the instances; one instance says nothing about its spread."""
    if rate.spread is None or rate.instances < 2:  # noqa: PLR2004 (a spread needs two)
        return 0.0
    return rate.spread / math.sqrt(rate.instances)


def _headroom(inputs: Inputs, file: str, rates: Rates, text: str | None) -> Figure:
    said = inputs.number("headroom", "--headroom", text, flags.FRACTION, scenario="rates.headroom")
    if said.known:
        return said
    held = [part for part in HEADROOM_PARTS if part in rates.includes]
    rest = [part for part in HEADROOM_PARTS if part not in rates.includes]
    full = Figure(
        key="headroom", value=FULL_HEADROOM, provenance="default", source="default for a rate that holds nothing"
    )
    left = apply("headroom", remaining_headroom, headroom=full, parts_included=len(held), parts=len(HEADROOM_PARTS))
    inputs.notes.append(_why(file, left, held, rest))
    return inputs.keep(left)


def _why(file: str, left: Figure, held: Sequence[str], rest: Sequence[str]) -> str:
    if not held:
        return f"Headroom {left.number:.3g}: {file} says of nothing that its rate includes it."
    named = ", ".join(part.replace("_", " ") for part in held)
    if not rest:
        return f"Headroom 1: the rate in {file} already includes {named}."
    missing = ", ".join(part.replace("_", " ") for part in rest)
    return (
        f"Headroom {left.number:.3g}, not {FULL_HEADROOM}: the rate in {file} already includes {named}; "
        f"what is left is for {missing}."
    )
