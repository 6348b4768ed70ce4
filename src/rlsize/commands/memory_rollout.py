"""What the rollout side of a memory bill is worked out from: instances, number formats, samples in flight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.commands import flags
from rlsize.facts.dtype import BYTES_PER_PARAM
from rlsize.facts.fields import Quantity
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from rlsize.shell.inputs import Inputs

_CV = Quantity("1", least=0.0, most=20.0)
_CONTEXT = "--context"


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutFlags:
    """What the flags say about the rollout instances; None where one was not given."""

    instances: str | None = None
    tensor_parallel: str | None = None
    pipeline_parallel: str | None = None
    dtype: str | None = None
    kv_dtype: str | None = None
    concurrency: str | None = None
    context: str | None = None
    prompt_tokens: str | None = None
    response_tokens: str | None = None
    response_cv: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSide:
    """The same as figures; the fields are those of `MemoryQuestion`."""

    instances: Figure
    rollout_tensor_parallel: Figure
    rollout_pipeline_parallel: Figure
    rollout_dtype: Figure
    bytes_per_kv_value: float
    concurrency: Figure
    context_tokens: Figure
    prompt_tokens: Figure
    response_tokens: Figure
    response_cv: Figure


def rollout_side(inputs: Inputs, said: RolloutFlags, *, cached: bool) -> RolloutSide:
    """
    The rollout side, from flags and scenario.

    Args:
        inputs: Flags, scenario and profiles; faults are noted there.
        said: The flags.
        cached: Whether the model's layers are known, so that the width of its cache matters.
    """
    count = flags.COUNT
    width = BYTES_PER_PARAM["bf16"]
    if cached or said.kv_dtype is not None:
        name = inputs.word(
            "kv_dtype", "--kv-dtype", said.kv_dtype, BYTES_PER_PARAM, scenario="rollout.kv_dtype", default="bf16"
        )
        width = BYTES_PER_PARAM[name or "bf16"]
    dtype = inputs.word(
        "rollout_dtype", "--rollout-dtype", said.dtype, BYTES_PER_PARAM, scenario="rollout.dtype", default="bf16"
    )
    context = inputs.number("context_tokens", _CONTEXT, said.context, flags.TOKENS)
    prompt, response, cv = _lengths(inputs, said, asked=not context.known)
    return RolloutSide(
        instances=inputs.number(
            "instances",
            "--instances",
            said.instances,
            count,
            scenario="placement.instances",
            default=1,
            why="one instance",
        ),
        rollout_tensor_parallel=inputs.number(
            "rollout_tensor_parallel",
            "--rollout-tensor-parallel",
            said.tensor_parallel,
            count,
            scenario="rollout.tensor_parallel",
        ),
        rollout_pipeline_parallel=_stages(inputs, said),
        rollout_dtype=inputs.used.get("rollout_dtype", Figure(key="rollout_dtype", value=dtype or "bf16")),
        bytes_per_kv_value=width,
        concurrency=inputs.number(
            "concurrency", "--concurrency", said.concurrency, flags.POSITIVE, scenario="rollout.concurrency"
        ),
        context_tokens=context,
        prompt_tokens=prompt,
        response_tokens=response,
        response_cv=cv,
    )


def longest_tokens(inputs: Inputs, side: RolloutSide) -> Figure:
    """The longest sequence of a step: up to the cap where the scenario has one, else the longest that is expected."""
    key, prompt, response = "longest_tokens", side.prompt_tokens, side.response_tokens
    if not (prompt.known and response.known and side.response_cv.known):
        return absent(key, "--response-tokens")
    from rlsize.estimates.generation_batch import StepBatch, longest_sequence

    prompts, group = inputs.said("workload.prompts_per_step"), inputs.said("workload.group_size")
    cap = inputs.said("workload.response_tokens.max")
    batch = StepBatch(
        samples=float(prompts or 1.0) * float(group or 1.0),
        instances=1.0,
        prompt_tokens=prompt.number,
        response_tokens=response.number,
        response_cv=side.response_cv.number,
        max_tokens=None if cap is None else float(cap),
    )
    source = "prompt and cap" if cap is not None else "the longest response of a step on average, and its prompt"
    return Figure(key=key, value=longest_sequence(batch, capped=True), provenance="predicted", source=source)


def _stages(inputs: Inputs, said: RolloutFlags) -> Figure:
    """Pipeline stages of an instance; one where nobody says, and then not worth showing."""
    key = "rollout_pipeline_parallel"
    found = inputs.number(
        key,
        "--rollout-pipeline-parallel",
        said.pipeline_parallel,
        flags.COUNT,
        scenario="rollout.pipeline_parallel",
        default=1,
        why="no pipeline",
    )
    if found.provenance == "default":
        inputs.used.pop(key, None)
    return found


def _lengths(inputs: Inputs, said: RolloutFlags, *, asked: bool) -> tuple[Figure, Figure, Figure]:
    """Prompt, response and spread, which together say how long a sample in flight is."""
    prompt = inputs.number(
        "prompt_tokens", "--prompt-tokens", said.prompt_tokens, flags.TOKENS, scenario="workload.prompt_tokens"
    )
    response = inputs.number(
        "response_tokens",
        "--response-tokens",
        said.response_tokens,
        flags.TOKENS,
        scenario="workload.response_tokens.mean",
    )
    if not asked or not (prompt.known or response.known):
        prompt, response = absent("prompt_tokens", _CONTEXT), absent("response_tokens", _CONTEXT)
    spread = inputs.number(
        "response_cv",
        "--response-cv",
        said.response_cv,
        _CV,
        scenario="workload.response_tokens.cv",
        default=1.0,
        why="lengths as uneven as an exponential's, on the safe side",
    )
    if spread.provenance == "default" and not response.known:
        inputs.used.pop("response_cv", None)
    return prompt, response, spread
