"""The workload that `measure` runs: the scenario's, or flags, or a plain one that says it is none of anybody's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.cli import measure_flags as limits
from rlsize.errors import Fault

if TYPE_CHECKING:
    from rlsize.cli.inputs import Inputs
    from rlsize.facts.fields import Quantity
    from rlsize.facts.figure import Figure

_WHY = "nobody said"
_CAP_FACTOR = 4  # the cap of the plain workload, in mean lengths


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
) -> Workload | None:
    """The workload; None where something is wrong with it, which is then noted."""
    before = len(inputs.faults)

    def number(key: str, flag: str, text: str | None, kind: Quantity, place: str, default: float | None) -> Figure:
        return inputs.number(key, flag, text, kind, scenario=place, default=default, why=_WHY)

    length = "workload.response_tokens"
    said = inputs.said(f"{length}.mean") is not None
    count = number("prompts_per_step", "--prompts", prompts, limits.PROMPTS, "workload.prompts_per_step", 32)
    size = number("group_size", "--group", group, limits.GROUP, "workload.group_size", 8)
    prompt = number("prompt_tokens", "--prompt-tokens", prompt_tokens, limits.LENGTH, "workload.prompt_tokens", 512)
    mean = number("response_tokens", "--response-tokens", response_tokens, limits.MEAN, f"{length}.mean", 1024)
    cv = number("response_cv", "--response-cv", response_cv, limits.CV, f"{length}.cv", 0.0 if said else 0.8)
    longest = number("max_response_tokens", "--max-response-tokens", cap, limits.LENGTH, f"{length}.max", None)
    heat = number("temperature", "--temperature", temperature, limits.TEMPERATURE, "rollout.temperature", 1.0)
    planned = inputs.said("placement.instances")
    if len(inputs.faults) > before:
        return None
    if not longest.known and not said and mean.provenance == "default":
        cap_tokens: float | None = _CAP_FACTOR * mean.number
    else:
        cap_tokens = longest.number if longest.known else None
    if not _lengths_exist(inputs, mean.number, cv.number, cap_tokens):
        return None
    _warn_of_defaults(inputs)
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


def _lengths_exist(inputs: Inputs, mean: float, cv: float, cap: float | None) -> bool:
    from rlsize.estimates.lengths import uncapped_mean

    try:
        uncapped_mean(mean, cv, cap)
    except ValueError as error:
        inputs.faults.append(Fault(str(error), "--max-response-tokens", "raise the cap, or give a shorter mean"))
        return False
    return True


def _warn_of_defaults(inputs: Inputs) -> None:
    asked = ("group_size", "prompt_tokens", "response_tokens")
    missing = [key.replace("_", " ") for key in asked if inputs.used[key].provenance == "default"]
    if missing:
        inputs.warnings.append(
            f"taken for want of your recipe's: {', '.join(missing)}; a rate at the wrong lengths sizes the wrong fleet "
            "(give a scenario, or flags)"
        )
