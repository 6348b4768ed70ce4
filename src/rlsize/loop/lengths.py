"""How long samples are, and what their prompts find in the prefix cache."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.equations import long_tail
from rlsize.estimates.figures import apply, prior
from rlsize.estimates.prefix_cache import SPREADS, routed_hits
from rlsize.facts.figure import Figure, absent
from rlsize.facts.inference_engines import inference_engine
from rlsize.quantities.table import QUANTITIES
from rlsize.quantities.workload import (
    KEPT_MEAN_LENGTHS,
    MOST_MEAN_LENGTHS,
    UNDER_CAP,
    UNDER_CAP_SPREAD,
    USUAL_RESPONSE,
    USUAL_RESPONSE_SPREAD,
)

if TYPE_CHECKING:
    from rlsize.facts.model import Model
    from rlsize.loop.said import Said


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """
    Lengths of samples.

    Args:
        prompt: Mean prompt length. [token]
        response: Mean response length. [token]
        cv: Coefficient of variation of response lengths. [1]
        cap: The longest response: said, what the model holds, or a length that hardly a sample reaches. [token]
    """

    prompt: Figure
    response: Figure
    cv: Figure
    cap: Figure

    @property
    def stated_cap(self) -> bool:
        """Whether somebody said the cap."""
        return self.cap.provenance == "given"


def prompt_length(said: Said) -> Figure:
    """The mean prompt; where nobody says, a usual one, or half of the longest where that is shorter."""
    most, usual = said.ask("max_prompt_tokens"), QUANTITIES["prompt_tokens"].default
    if most.known and isinstance(usual, float) and most.number / 2 < usual:
        return said.ask("prompt_tokens", default=most.number / 2, why="half of the longest prompt")
    return said.ask("prompt_tokens")


def response_length(said: Said, *, usual: bool = False) -> Figure:
    """
    The mean response; where nobody says it but its cap, what is usual under that.

    Args:
        said: What was said.
        usual: Whether a usual response stands in where nobody says a cap either.
    """
    cap = absent("max_response_tokens", "") if said.gives("response_tokens") else said.ask("max_response_tokens")
    model = said.model() if said.gives("model") else None
    context = None if model is None else float(model.architecture.max_context)
    if cap.known and cap.number > 0:
        longest = cap.number if context is None else context
        mean = float(round(long_tail.assumed_mean(max_tokens=cap.number, max_context=longest, **UNDER_CAP)))
        why = f"usual under a cap of {cap.number:,.0f}"
        return said.keep(prior("response_tokens", mean, UNDER_CAP_SPREAD, why, cap.number))
    found = said.ask("response_tokens")
    if found.known or not usual:
        return found
    why = "the middle of published runs"
    return said.keep(prior("response_tokens", USUAL_RESPONSE, USUAL_RESPONSE_SPREAD, why, context))


def lengths(said: Said, model: Model | None) -> Lengths:
    """
    The lengths of samples; faults are noted.

    Args:
        said: What was said.
        model: Whose context they must fit into; None where nobody knows, and a usual response stands for none then.
    """
    prompt, response = prompt_length(said), response_length(said, usual=model is not None)
    guessed = [figure for figure in (prompt, response) if figure.provenance == "default" and figure.known]
    if guessed:
        names = " and ".join(f"{figure.key} {figure.number:g}" for figure in guessed)
        said.notes.append(f"Nobody said {names}: an assumption; rates depend on both lengths.")
    cap = said.ask("max_response_tokens")
    if model is not None and prompt.known and response.known:
        cap = _cap(said, model, prompt, response, cap)
    elif cap.known and response.known and response.number > cap.number:
        what = f"a mean of {response.number:g} tokens lies above the cap of {cap.number:g}"
        said.fault(what, said.place("max_response_tokens"), "check both")
    return Lengths(prompt=prompt, response=response, cv=said.ask("response_cv"), cap=cap)


def _cap(said: Said, model: Model, prompt: Figure, response: Figure, cap: Figure) -> Figure:
    """The cap that was said, else the model's longest context, or lengths that hardly a sample reaches."""
    longest, stated = model.architecture.max_context, cap.known
    if not stated:
        reserving = inference_engine(str(said.name("engine")[0])).admission == "reserving"
        cap = apply(
            "max_response_tokens",
            long_tail.assumed_cap,
            max_context=float(longest),
            prompt_tokens=prompt,
            mean_tokens=response,
            mean_lengths=KEPT_MEAN_LENGTHS if reserving else MOST_MEAN_LENGTHS,
        )
    where = cap.source if stated else response.source
    most = max(cap.number, response.number) if stated else response.number
    told = f"{prompt.number:,.0f} + {most:,.0f} tokens are more than {model.name}'s own {longest:,}"
    if prompt.number + most > longest and not stated:
        said.fault(told, where, "shorten it, say its cap (--max-response-tokens), or take another model")
    elif prompt.number + most > longest and not any(one.startswith(told) for one in said.warnings):
        said.warnings.append(f"{told} ({where}): taken, as runs do that stretch its positions")
    if stated and response.number > cap.number:
        said.fault(f"a mean of {response.number:g} tokens lies above the cap of {cap.number:g}", where, "check both")
    return cap


def hits(said: Said, engine: str, prompt: Figure, instances: Figure) -> Figure:
    """
    Share of prompt tokens found in the prefix cache: as said, or what the samples of a group find.

    Args:
        said: What was said.
        engine: The engine, whose blocks count where nobody says how large they are.
        prompt: Mean prompt length. [token]
        instances: Rollout instances, over which groups are spread; may lack a value.
    """
    key, stated, group = "hit_fraction", said.ask("hit_fraction"), said.ask("group_size")
    if stated.known:
        return stated
    if not (group.known and prompt.known) or group.number <= 1 or not prompt.number:
        return Figure(key=key, value=0.0, provenance="default", source="no groups, so no prompt is seen twice")
    own = inference_engine(engine)
    block = said.ask("block_tokens", default=float(own.block_tokens), why=f"default of {own.name}")
    routing = said.choose("routing")
    if routing in SPREADS:
        said.need(instances, "give --instances: how far a group spreads depends on it")
    expected: Figure = routed_hits(
        routing, group_size=group, instances=instances, prompt_tokens=prompt, block_tokens=block
    )
    return replace(expected, key=key)
