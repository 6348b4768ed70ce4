"""The workload that `measure` runs: the scenario's, or flags, or a plain one that says it is none of anybody's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.cli import measure_flags as limits
from rlsize.errors import Fault

if TYPE_CHECKING:
    from rlsize.cli.inputs import Inputs

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
    length = "workload.response_tokens"
    said = inputs.said(f"{length}.mean") is not None
    whole = [
        inputs.number("prompts_per_step", "--prompts", prompts, limits.PROMPTS, scenario="workload.prompts_per_step", default=32, why=_WHY),
        inputs.number("group_size", "--group", group, limits.GROUP, scenario="workload.group_size", default=8, why=_WHY),
        inputs.number("prompt_tokens", "--prompt-tokens", prompt_tokens, limits.LENGTH, scenario="workload.prompt_tokens", default=512, why=_WHY),
    ]  # fmt: skip
    mean = inputs.number("response_tokens", "--response-tokens", response_tokens, limits.MEAN, scenario=f"{length}.mean", default=1024, why=_WHY)  # fmt: skip
    cv = inputs.number("response_cv", "--response-cv", response_cv, limits.CV, scenario=f"{length}.cv", default=0.0 if said else 0.8, why=_WHY)  # fmt: skip
    longest = inputs.number("max_response_tokens", "--max-response-tokens", cap, limits.LENGTH, scenario=f"{length}.max")
    heat = inputs.number("temperature", "--temperature", temperature, limits.TEMPERATURE, scenario="rollout.temperature", default=1.0, why=_WHY)  # fmt: skip
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
        prompts=round(whole[0].number),
        group_size=round(whole[1].number),
        prompt_tokens=round(whole[2].number),
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
            f"{', '.join(missing)} are not those of your recipe but defaults: a rate at the wrong lengths sizes the "
            "wrong fleet (give a scenario, or flags)"
        )
