"""Which models a run keeps beside its policy: critic, reference, reward model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.estimates.model_size import model_size
from rlsize.facts.algorithm import ALGORITHMS
from rlsize.facts.figure import Figure
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from rlsize.facts.algorithm import RlAlgorithm
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model
    from rlsize.loop.said import Said

_NO_MODEL = frozenset({"none", "no", "false", "off", ""})
_POLICY_SIZED = frozenset({"true", "yes", "policy"})


def model_and_gpu(said: Said, side: str) -> tuple[Model | None, Gpu | None]:
    """What a stage by itself, of rollout or trainer, cannot do without; faults are noted."""
    found = said.model(), said.gpu(side)
    for key, there in zip(("model", "gpu"), found, strict=True):
        if there is None and not said.faults:
            said.fault(f"the {key} is missing", said.flag(key), f"give {said.flag(key)}, a profile's name")
    return found


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
        reward_model: Its profile, where one is named.
        reference_model: That of a reference which is another model than the policy.
    """

    algorithm: RlAlgorithm
    critic: bool
    reference: bool | None
    reward: bool
    critic_params: Figure
    reference_params: Figure
    reward_params: Figure
    reward_model: Model | None = None
    reference_model: Model | None = None


def tenants(said: Said) -> Tenants:
    """The models that the trainer keeps: as said, else as the algorithm does it; none that has GPUs of its own."""
    algorithm = ALGORITHMS[said.choose("algorithm")]
    critic_params, reference_params, reward_params = (_size(said, name) for name in ("critic", "reference", "reward"))
    other = None if _denied(said, "reference") else _named(said, "reference_model")
    reference_params = _counted(other, reference_params)
    critic, reference = _kept(said, "critic", critic_params), _kept(said, "reference", reference_params)
    reward, model = _reward(said, reward_params)
    reward_params = _counted(model, reward_params)
    apart = said.listed("models_apart") or ()
    return Tenants(
        algorithm=algorithm,
        critic=(algorithm.critic if critic is None else critic) and "critic" not in apart,
        reference=False if "reference" in apart else reference,
        reward=reward and "reward" not in apart,
        critic_params=critic_params,
        reference_params=reference_params,
        reward_params=reward_params,
        reward_model=model,
        reference_model=other,
    )


def _counted(model: Model | None, params: Figure) -> Figure:
    """The size of a model that is named, where nobody says it."""
    if model is None or params.known:
        return params
    source = f"model profile {model.name}: counted from its layers; {model.sources[model.architecture.source]}"
    return replace(model_size(model).params, key=params.key, source=source)


def _named(said: Said, key: str) -> Model | None:
    """The model that a quantity names; None where it names none, or none that is known, which is a fault."""
    name, where = said.name(key)
    if name is None:
        return None
    said.keep(Figure(key=key, value=str(name), source=where))
    return said.profile("model", str(name), where)


def _size(said: Said, name: str) -> Figure:
    """The size of a model of its own; naming one says that it is kept."""
    key, kept = f"{name}_params", "reward_model" if name == "reward" else name
    size = said.ask(key)
    if size.known and _denied(said, name):
        where = said.place(kept)
        no = where.replace("--", "--no-", 1) if where.startswith("--") else where
        what = f"{size.number:g} parameters have a size, and {no} says that there are none"
        said.fault(what, said.place(key), f"leave {no} out")
    return size


def _denied(said: Said, name: str) -> bool:
    """Whether a model is said not to be there."""
    if name == "reward":
        kept, _ = said.name("reward_model")
        return kept is not None and str(kept).lower() in _NO_MODEL
    return said.apart().yes(name) is False


def _kept(said: Said, name: str, params: Figure) -> bool | None:
    """Whether a model is kept: said, or by its size; None where nobody says."""
    stated = said.yes(name)
    if stated is None and params.known:
        return bool(said.keep(Figure(key=name, value=True, source=params.source)).value)
    return stated


def _reward(said: Said, params: Figure) -> tuple[bool, Model | None]:
    """Whether a reward model is kept, and its profile where one is named."""
    name, where = said.name("reward_model")
    if name is None:
        return params.known, None
    text = str(name).lower()
    if text in _NO_MODEL | _POLICY_SIZED:
        kept = text in _POLICY_SIZED
        said.keep(Figure(key="reward_model", value=kept, source=where))
        return kept or params.known, None
    return True, _named(said, "reward_model")
