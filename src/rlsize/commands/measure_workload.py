"""The workload that `measure` runs: the scenario's, or flags, or a plain one that says it is none of anybody's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.commands import measure_flags as limits
from rlsize.errors import Fault

if TYPE_CHECKING:
    from rlsize.facts.fields import Quantity
    from rlsize.facts.figure import Figure
    from rlsize.shell.inputs import Inputs

_WHY = "nobody said"
_PROMPT, _MEAN, _CV = 512, 1024, 0.8  # of the plain workload
_CAP_FACTOR = 4  # its cap, in mean lengths
_PROMPT_SHARE = 8  # the plain prompt takes at most one part in so many of a model's context


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """
    One optimizer step's samples.

    Args:
        prompts: Prompts in a step. [1]
        group_size: Samples of each. [1]
        prompt_tokens: Length of a prompt. [token]
        mean: Mean response length. [token]
        cv: Its coefficient of variation. [1]
        cap: The longest response; None for no cap. [token]
        temperature: Sampling temperature. [1]
        instances: Rollout instances that share a step, as planned. [1]
    """

    prompts: int
    group_size: int
    prompt_tokens: int
    mean: float
    cv: float
    cap: float | None
    temperature: float
    instances: int

    @property
    def prompts_per_instance(self) -> int:
        """Prompts that one instance gets in a step."""
        return max(1, -(-self.prompts // self.instances))


def workload(
    inputs: Inputs,
    prompts: str | None,
    group: str | None,
    prompt_tokens: str | None,
    response_tokens: str | None,
    response_cv: str | None,
    cap: str | None,
    temperature: str | None,
    context: int | None,
) -> Workload | None:
    """The workload; None where something is wrong with it, which is then noted. Defaults stay within the context."""
    before = len(inputs.faults)

    def number(key: str, flag: str, text: str | None, kind: Quantity, place: str, default: float | None) -> Figure:
        return inputs.number(key, flag, text, kind, scenario=place, default=default, why=_WHY)

    plain = _plain(context)
    said = inputs.said("workload.response_tokens.mean") is not None
    count = number("prompts_per_step", "--prompts", prompts, limits.PROMPTS, "workload.prompts_per_step", 32)
    size = number("group_size", "--group", group, limits.GROUP, "workload.group_size", 8)
    prompt = number(
        "prompt_tokens", "--prompt-tokens", prompt_tokens, limits.LENGTH, "workload.prompt_tokens", plain[0]
    )
    mean = number(
        "response_tokens", "--response-tokens", response_tokens, limits.MEAN, "workload.response_tokens.mean", plain[1]
    )
    cv = number(
        "response_cv", "--response-cv", response_cv, limits.CV, "workload.response_tokens.cv", 0.0 if said else _CV
    )
    longest = number(
        "max_response_tokens", "--max-response-tokens", cap, limits.LENGTH, "workload.response_tokens.max", None
    )
    heat = number("temperature", "--temperature", temperature, limits.TEMPERATURE, "rollout.temperature", 1.0)
    planned = inputs.said("placement.instances")
    if len(inputs.faults) > before:
        return None
    if not longest.known and not said and mean.provenance == "default":
        cap_tokens: float | None = min(_CAP_FACTOR * mean.number, (context or math.inf) - prompt.number)
    else:
        cap_tokens = longest.number if longest.known else None
    if not _lengths_exist(inputs, mean.number, cv.number, cap_tokens):
        return None
    return Workload(
        prompts=round(count.number),
        group_size=round(size.number),
        prompt_tokens=round(prompt.number),
        mean=mean.number,
        cv=cv.number,
        cap=cap_tokens,
        temperature=heat.number,
        instances=int(planned) if planned else 1,
    )


def _plain(context: int | None) -> tuple[int, int]:
    """Prompt and mean response that are run where nobody says any, within what the model takes. [token]"""
    if context is None:
        return _PROMPT, _MEAN
    prompt = min(_PROMPT, max(1, context // _PROMPT_SHARE))
    return prompt, min(_MEAN, max(1, (context - prompt) // _CAP_FACTOR))


def _lengths_exist(inputs: Inputs, mean: float, cv: float, cap: float | None) -> bool:
    from rlsize.estimates.lengths import uncapped_mean

    try:
        uncapped_mean(mean, cv, cap)
    except ValueError as error:
        inputs.faults.append(Fault(str(error), "--max-response-tokens", "raise the cap, or give a shorter mean"))
        return False
    return True


def warn_of_defaults(inputs: Inputs) -> None:
    """Say what of the workload was nobody's choice, where it decides the rates."""
    asked = ("group_size", "prompt_tokens", "response_tokens")
    missing = [key.replace("_", " ") for key in asked if inputs.used[key].provenance == "default"]
    if missing:
        inputs.warnings.append(
            f"taken for want of your recipe's: {', '.join(missing)}; a rate at the wrong lengths sizes the wrong fleet "
            "(give a scenario, or flags)"
        )
