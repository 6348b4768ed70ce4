"""What one optimizer step is made of: samples and their response tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import matching
from rlsize.estimates.figures import apply, prior
from rlsize.quantities.workload import USUAL_SAMPLES, USUAL_SAMPLES_SPREAD

if TYPE_CHECKING:
    from rlsize.facts.figure import Figure
    from rlsize.loop.said import Said

_AGREEMENT = 0.01  # a number and what it is made of may differ by rounding, not by more


def agree(said: Said, stated: Figure, derived: Figure, unit: str, how: str) -> None:
    """Note a fault where a number that was said disagrees with what it is made of."""
    if abs(derived.number / stated.number - 1.0) > _AGREEMENT:
        what = f"{stated.number:g} {unit} disagrees with {how}, {derived.number:g} {unit}"
        said.fault(what, stated.source, "leave one of them out")


def samples(said: Said, *, usual: bool = False) -> Figure:
    """
    Samples per optimizer step: said, or prompts x group.

    Args:
        said: What was said.
        usual: Whether a usual number stands in where nobody says.
    """
    stated, prompts, group = said.ask("samples_per_step"), said.ask("prompts_per_step"), said.ask("group_size")
    product = apply("samples_per_step", matching.samples_per_step, prompts=prompts, group_size=group)
    if not stated.known and not product.known and usual:
        why = "the middle of published runs"
        return said.keep(prior("samples_per_step", USUAL_SAMPLES, USUAL_SAMPLES_SPREAD, why))
    if not stated.known:
        return said.keep(product) if product.known else stated
    if said.by_flag("prompts_per_step") and said.by_flag("group_size"):
        agree(said, stated, product, "samples", "prompts x group")
    return stated


def batch_tokens(said: Said) -> Figure:
    """Response tokens per optimizer step: said, or samples x mean response length."""
    stated, response = said.ask("batch_tokens"), said.ask("response_tokens")
    prompts, group = said.ask("prompts_per_step"), said.ask("group_size")
    product = apply(
        "batch_tokens", matching.tokens_per_step, prompts=prompts, group_size=group, response_tokens=response
    )
    if not product.known:
        many = said.ask("samples_per_step")
        product = apply("batch_tokens", matching.tokens_per_step, prompts=many, group_size=1, response_tokens=response)
    if not stated.known:
        return said.keep(product) if product.known else stated
    if product.known and all(map(said.by_flag, ("prompts_per_step", "group_size", "response_tokens"))):
        agree(said, stated, product, "tokens", "prompts x group x response tokens")
    return stated


def group_size(said: Said) -> Figure:
    """Samples of one prompt; one where nobody says."""
    return said.ask("group_size", default=1, why="each prompt is sampled once")
