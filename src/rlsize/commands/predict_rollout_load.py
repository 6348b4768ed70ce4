"""Lengths, prefix caching and fleet of a rollout prediction, from flags and scenario."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.commands import asking, flags
from rlsize.equations import long_tail, matching, redundancy
from rlsize.estimates.prefix_cache import expected_hits
from rlsize.estimates.rollout_question import RolloutQuestion
from rlsize.estimates.working import apply, rounded
from rlsize.facts.engine_defaults import engine_defaults
from rlsize.facts.fields import Quantity
from rlsize.facts.figure import Figure, absent
from rlsize.planner.caching import ROUTINGS
from rlsize.planner.rounding import rounded_down

if TYPE_CHECKING:
    from rlsize.commands.predict_rollout_flags import LoadFlags
    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.generation import Ending
    from rlsize.shell.inputs import Inputs

USUAL_PROMPT, USUAL_RESPONSE, USUAL_CV = 1024.0, 4096.0, 1.0
_MEAN_LENGTHS = 32.0  # mean lengths beyond which hardly a sample goes
_LENGTH = Quantity("token", least=1.0)
_CV = Quantity("1", least=0.0, most=20.0)
_REFILLING = ("async",)
_CAP = "max_response_tokens"


def rollout_question(inputs: Inputs, engine: EngineQuestion, said: LoadFlags) -> RolloutQuestion:
    """
    The whole question; faults are noted, not raised.

    Args:
        inputs: Flags and scenario.
        engine: One instance.
        said: What the flags say.
    """
    prompt, response, cv = _lengths(inputs, said)
    cap = _cap(inputs, engine, said, prompt, response)
    group, samples = _samples(inputs, said)
    share = inputs.used.get("memory_fraction")
    if inputs.said("placement.mode") == "colocated" and share is not None and share.provenance == "default":
        inputs.notes.append(
            f"Colocated engines leave room for the trainer, and {share.number:.0%} of the memory leaves none: give "
            "--memory-fraction."
        )
    instances = _instances(inputs, engine, said)
    return RolloutQuestion(
        engine=engine,
        prompt_tokens=prompt,
        response_tokens=response,
        response_cv=cv,
        max_response_tokens=cap,
        hit_fraction=_hits(inputs, engine, said, (group, prompt, instances)),
        concurrency=inputs.number(
            "concurrency", "--concurrency", said.concurrency, flags.POSITIVE, scenario="rollout.concurrency"
        ),
        instances=instances,
        samples_per_step=samples,
        ending=_ending(inputs, said.refill),
    )


def _lengths(inputs: Inputs, said: LoadFlags) -> tuple[Figure, Figure, Figure]:
    prompt = inputs.number(
        "prompt_tokens",
        "--prompt-tokens",
        said.prompt_tokens,
        _LENGTH,
        scenario="workload.prompt_tokens",
        default=USUAL_PROMPT,
        why="a usual prompt",
    )
    response = inputs.number(
        "response_tokens",
        "--response-tokens",
        said.response_tokens,
        _LENGTH,
        scenario="workload.response_tokens.mean",
        default=USUAL_RESPONSE,
        why="a usual response",
    )
    cv = inputs.number(
        "response_cv",
        "--response-cv",
        said.response_cv,
        _CV,
        scenario="workload.response_tokens.cv",
        default=USUAL_CV,
        why="lengths as uneven as an exponential's",
    )
    guessed = [figure for figure in (prompt, response) if figure.provenance == "default"]
    if guessed:
        names = " and ".join(f"{figure.key} {figure.number:g}" for figure in guessed)
        inputs.notes.append(f"Nobody said {names}: an assumption; rates depend on both lengths.")
    return prompt, response, cv


def _cap(inputs: Inputs, engine: EngineQuestion, said: LoadFlags, prompt: Figure, response: Figure) -> Figure:
    """The cap that was said, else the model's longest context, or lengths that no sample reaches."""
    longest = engine.model.architecture.max_context
    cap = inputs.number(
        _CAP, "--max-response-tokens", said.max_response_tokens, _LENGTH, scenario="workload.response_tokens.max"
    )
    if not (prompt.known and response.known):
        return cap
    stated = cap.known
    if not stated:
        cap = apply(
            _CAP,
            long_tail.assumed_cap,
            max_context=float(longest),
            prompt_tokens=prompt,
            mean_tokens=response,
            mean_lengths=_MEAN_LENGTHS,
        )
    where = cap.source if stated else response.source
    most = max(cap.number, response.number) if stated else response.number
    if prompt.number + most > longest:
        what = f"{prompt.number:,.0f} + {most:,.0f} tokens are more than {engine.model.name}'s {longest:,}"
        inputs.fault(what, where, "shorten it, or take a model with a longer context")
    elif stated and response.number > cap.number:
        inputs.fault(
            f"a mean of {response.number:g} tokens lies above the cap of {cap.number:g}", where, "check both lengths"
        )
    return cap


def _samples(inputs: Inputs, said: LoadFlags) -> tuple[Figure, Figure]:
    inputs.number("prompts_per_step", "--prompts", said.prompts, flags.POSITIVE, scenario="workload.prompts_per_step")
    group = inputs.number("group_size", "--group", said.group, flags.POSITIVE, scenario="workload.group_size")
    return group, asking.samples(inputs, said.samples)


def _hits(inputs: Inputs, engine: EngineQuestion, said: LoadFlags, found: tuple[Figure, Figure, Figure]) -> Figure:
    """The hit ratio: as said, or what the samples of a group find."""
    group, prompt, instances = found
    key = "hit_fraction"
    stated = inputs.number(key, "--hit-ratio", said.hit_ratio, flags.HIT_RATIO)
    if stated.known:
        return stated
    if not (group.known and prompt.known) or group.number <= 1:
        return Figure(key=key, value=0.0, provenance="default", source="no groups, so no prompt is seen twice")
    own = engine_defaults(engine.engine)
    block = inputs.number(
        "block_tokens",
        "--block-size",
        said.block_size,
        flags.TOKENS,
        scenario="rollout.block_size",
        default=float(own.block_tokens),
        why=f"default of {own.name}",
    )
    routing = inputs.word("routing", "--routing", said.routing, ROUTINGS, scenario="rollout.routing", default="affine")
    spread: Figure | float = 1.0
    laws = {
        "random": redundancy.instances_per_group_random,
        "round-robin": redundancy.instances_per_group_round_robin,
    }
    if routing in laws and instances.known:
        spread = apply("instances_per_group", laws[routing], group_size=group, instances=instances)
    elif routing in laws:
        inputs.need(instances, "give --instances: how far a group spreads depends on it")
    return replace(expected_hits(group, prompt, block, spread), key=key)


def _instances(inputs: Inputs, engine: EngineQuestion, said: LoadFlags) -> Figure:
    """Instances: said, or GPUs of the fleet over those of an instance."""
    layout = engine.layout
    ranks = layout.tensor * layout.pipeline * layout.data
    size = Figure(key="gpus_per_instance", value=ranks, provenance="predicted", source="tensor x pipeline x data")
    pool = inputs.number("rollout_gpus", "--rollout-gpus", said.rollout_gpus, flags.COUNT)
    if said.instances is not None and pool.known:
        inputs.fault("both say how large the fleet is", "--instances, --rollout-gpus", "leave one of them out")
    if not pool.known and inputs.said("placement.mode") == "colocated" and said.instances is None:
        pool = inputs.number("rollout_gpus", "--rollout-gpus", None, flags.COUNT, scenario="placement.rollout_gpus")
        if not pool.known:
            pool = inputs.number("rollout_gpus", "--rollout-gpus", None, flags.COUNT, scenario="cluster.gpus")
    if not pool.known or (inputs.said("placement.instances") is not None and said.rollout_gpus is None):
        return asking.instances(inputs, said.instances, size)
    exact = apply("instances", matching.instances_of, gpus=pool, gpus_per_instance=size)
    if exact.number < 1:
        inputs.fault(f"{pool.number:g} GPUs are fewer than the {ranks} of an instance", pool.source, "give more")
        return absent("instances", "--instances")
    return inputs.keep(rounded(exact, "instances", rounded_down(exact.number)))


def _ending(inputs: Inputs, refill: bool | None) -> Ending:
    """Whether a step waits for its last sample: as said, else by the scenario's mode."""
    key = "refill"
    if refill is not None:
        inputs.keep(Figure(key=key, value=refill, source="--refill" if refill else "--barrier"))
        return "refill" if refill else "barrier"
    mode = inputs.said("placement.mode")
    if mode is None:
        return "barrier"
    inputs.keep(Figure(key=key, value=mode in _REFILLING, source=inputs.where("placement.mode")))
    return "refill" if mode in _REFILLING else "barrier"
