"""Response lengths that are simulated: a mean and a spread, or a file."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from rlsize.commands import flags
from rlsize.errors import InputError
from rlsize.facts.figure import Figure
from rlsize.simulator.setting import LengthSetting

if TYPE_CHECKING:
    from rlsize.commands.simulate_asking import Asked


def lengths_of(asked: Asked) -> LengthSetting:
    """The distribution of response lengths; a mean of 0 where a fault was noted."""
    inputs = asked.inputs
    faults = len(inputs.faults)
    values = _values(asked)
    unread = len(inputs.faults) > faults
    mean = inputs.number(
        "response_tokens", "--response-tokens", asked.said.get("response_tokens"), flags.TOKENS,
        scenario="workload.response_tokens.mean",
    )  # fmt: skip
    if values:
        mean = inputs.keep(Figure(key="response_tokens", value=sum(values) / len(values), source="the file of lengths"))
    if not unread:
        inputs.need(mean, "give the mean response length, or a file of lengths")
    shape: Any = asked.word("length_distribution")
    if values:
        shape = "empirical"
    elif shape == "empirical":
        inputs.fault("no file says which lengths", "--lengths", "name one, or take lognormal lengths")
    _check(asked, mean, shape)
    cv = asked.number("response_cv") if not values and shape != "constant" else 0.0
    cap = asked.optional("max_response_tokens")
    if mean.known and cap is not None and cap < mean.number:
        what = f"the mean response, {mean.number:g} tokens, is longer than the cap of {cap:g}"
        inputs.fault(what, "--max-response-tokens", "raise the cap, or shorten the mean")
    return LengthSetting(
        mean=mean.number if mean.known else 0.0,
        cv=cv,
        cap=inf if cap is None else cap,
        shape=shape,
        correlation=asked.number("group_correlation"),
        drift=asked.number("length_drift"),
        values=values,
    )


def _check(asked: Asked, mean: Figure, shape: str) -> None:
    """A mean that is a length, and no flags that say what the lengths say already."""
    inputs, said = asked.inputs, asked.said
    if mean.known and mean.number < 1.0:
        inputs.fault(f"{mean.number:g} tokens are no response", mean.source, "give 1 or more")
    if shape == "empirical" and said.get("response_tokens") is not None:
        inputs.fault("--lengths says the mean already", "--response-tokens", "leave one of them out")
    if shape in {"empirical", "constant"} and said.get("response_cv") is not None:
        inputs.fault(f"{shape} lengths take no spread", "--response-cv", "leave it out, or take lognormal lengths")


def _values(asked: Asked) -> tuple[float, ...]:
    """Lengths of a file, if one is named."""
    inputs = asked.inputs
    path = asked.said.get("lengths")
    if path is None:
        named = inputs.said("workload.response_tokens.file")
        path = str(inputs.file.folder / named) if named and inputs.file else None
    if path is None:
        return ()
    from rlsize.readers.lengths import read_lengths

    try:
        return read_lengths(path)
    except InputError as error:
        inputs.blame(error, str(path))
        return ()
