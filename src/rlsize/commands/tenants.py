"""Which models a run keeps beside its policy, from flags and scenario: critic, reference, reward model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.commands import flags
from rlsize.facts.figure import Figure, absent
from rlsize.facts.rl_algorithm import ALGORITHMS
from rlsize.shell.models import profile_params

if TYPE_CHECKING:
    from rlsize.facts.rl_algorithm import RlAlgorithm
    from rlsize.shell.inputs import Inputs

_NO_MODEL = frozenset({"none", "no", "false", "off", ""})


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantFlags:
    """What the flags say about the models; None where one was not given."""

    algorithm: str | None = None
    critic: bool | None = None
    reference: bool | None = None
    reward_model: bool | None = None
    critic_params: str | None = None
    reference_params: str | None = None
    reward_params: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenants:
    """
    The models of a run.

    Args:
        algorithm: The algorithm.
        critic: Whether a critic is trained.
        reference: Whether a reference is kept; None where only the algorithm's habit speaks for it.
        reward: Whether a reward model is kept.
        critic_params: Its size; absent where it is the policy's. [param]
        reference_params: Its size; absent where it is the policy's. [param]
        reward_params: Its size; absent where it is the policy's. [param]
    """

    algorithm: RlAlgorithm
    critic: bool
    reference: bool | None
    reward: bool
    critic_params: Figure
    reference_params: Figure
    reward_params: Figure


def tenants(inputs: Inputs, said: TenantFlags) -> Tenants:
    """The models that are kept: as said, else as the algorithm does it."""
    name = inputs.word(
        "algorithm", "--algorithm", said.algorithm, ALGORITHMS, scenario="algorithm.name", default="grpo"
    )
    algorithm = ALGORITHMS[name or "grpo"]
    critic_params = _size(inputs, "critic", said.critic_params, said.critic)
    reference_params = _size(inputs, "reference", said.reference_params, said.reference)
    reward_params = _size(inputs, "reward", said.reward_params, said.reward_model)
    critic = _kept(inputs, "critic", said.critic, critic_params)
    reward, named = _reward(inputs, said.reward_model, reward_params)
    return Tenants(
        algorithm=algorithm,
        critic=algorithm.critic if critic is None else critic,
        reference=_kept(inputs, "reference", said.reference, reference_params),
        reward=reward,
        critic_params=critic_params,
        reference_params=reference_params,
        reward_params=reward_params if reward_params.known else named,
    )


def _size(inputs: Inputs, name: str, text: str | None, kept: bool | None) -> Figure:
    """The size of a model of its own; naming one says that it is kept."""
    if text is not None and kept is False:
        flag = "--no-reward-model" if name == "reward" else f"--no-{name}"
        inputs.fault(f"{text} has a size, and {flag} says that there is none", f"--{name}-params", f"leave {flag} out")
    return inputs.number(f"{name}_params", f"--{name}-params", text, flags.PARAMS)


def _kept(inputs: Inputs, name: str, flag: bool | None, params: Figure) -> bool | None:
    """Whether a model is kept: by flag, by its size, by scenario; None where nobody says."""
    if flag is not None or params.known:
        kept = params.known if flag is None else flag
        inputs.keep(Figure(key=name, value=kept, source=f"--{name}" if flag is not None else params.source))
        return kept
    said = inputs.said(f"algorithm.{name}")
    if said is not None:
        inputs.keep(Figure(key=name, value=bool(said), source=inputs.where(f"algorithm.{name}")))
    return said  # type: ignore[no-any-return]  # the scenario's field is a bool or None


def _reward(inputs: Inputs, flag: bool | None, params: Figure) -> tuple[bool, Figure]:
    """Whether a reward model is kept, and its size where a scenario names its profile."""
    nothing = absent("reward_params", "--reward-params")
    where = inputs.where("algorithm.reward_model")
    said = inputs.said("algorithm.reward_model")
    if flag is not None or params.known or said is None:
        kept = bool(flag) or params.known
        if flag is not None:
            inputs.keep(Figure(key="reward_model", value=kept, source="--reward-model"))
        return kept, nothing
    if isinstance(said, bool) or said.lower() in _NO_MODEL | {"true", "yes", "policy"}:
        kept = said if isinstance(said, bool) else said.lower() not in _NO_MODEL
        inputs.keep(Figure(key="reward_model", value=kept, source=where))
        return kept, nothing
    inputs.keep(Figure(key="reward_model", value=said, source=where))
    return True, profile_params(inputs, said, "reward_params", where)
