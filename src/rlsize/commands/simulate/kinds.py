"""Instances of other kinds beside the fleet's own: how they are said, and what they and their GPUs cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize import units
from rlsize.facts.figure import Figure
from rlsize.simulator.first_order import instance_rate

if TYPE_CHECKING:
    from rlsize.shell.inputs import Inputs
    from rlsize.simulator.first_order import Pools
    from rlsize.simulator.setting import EngineSetting, Setting

KEY = "more_instances"
_UNITS = {"slots": "count", "slowdown": "1", "rate": "token/s", "kv": "token", "gpus": "count", "gpu_hour": "usd"}
_FORM = (
    "write 4 slots=64 slowdown=1.8 gpus=2 gpu_hour=1.20, a semicolon between kinds: how many, and what differs, "
    f"of {', '.join(_UNITS)}"
)


def with_others(inputs: Inputs, setting: Setting, pools: Pools) -> tuple[Setting, Pools]:
    """
    A setting with the instances of other kinds that were said, and GPUs and prices with theirs.

    Args:
        inputs: What was said; takes faults.
        setting: The loop with its own kind.
        pools: GPUs and prices without them.
    """
    text, where = inputs.name(KEY)
    if text is None:
        return setting, pools
    try:
        kinds = [_kind(part) for part in str(text).split(";")]
    except ValueError as error:
        inputs.fault(str(error), where, _FORM)
        return setting, pools
    if setting.rules.mode == "colocated" or setting.rules.resizes:
        what = (
            "colocated instances are all of the trainer's kind"
            if not setting.rules.resizes
            else "which kind is resized"
        )
        inputs.fault(what, where, "leave one of them out")
        return setting, pools
    inputs.keep(Figure(key=KEY, value=str(text), source=where))
    others = tuple(_engine(setting, count, said) for count, said in kinds)
    return replace(setting, others=others), _pools(setting.engine.instances, pools, kinds)


def _kind(text: str) -> tuple[int, dict[str, float]]:
    """How many instances, and what is said of them."""
    count, *rest = text.split()[:20] or [""]
    said = dict(part.partition("=")[::2] for part in rest)
    unknown = sorted(set(said) - set(_UNITS))
    if unknown or not all(said.values()):
        raise ValueError(f"{units.cut(' '.join(unknown) or text, 60)!r} says nothing of an instance")
    numbers = {key: units.quantity(value, _UNITS[key]) for key, value in said.items()}
    many = units.quantity(count, "count")
    whole = [many, *(numbers[key] for key in ("slots", "gpus") if key in numbers)]
    if any(one < 1 or one != round(one) for one in whole) or any(not value > 0.0 for value in numbers.values()):
        raise ValueError(f"{units.cut(text.strip(), 60)!r} has a number that is none of an instance")
    if {"slowdown", "rate"} <= set(said):
        raise ValueError("slowdown and rate both say how fast an instance is")
    return round(many), numbers


def _engine(setting: Setting, count: int, said: dict[str, float]) -> EngineSetting:
    """Instances of a kind: as the fleet's own, but for what is said of them."""
    own = setting.engine
    kind = replace(
        own,
        instances=count,
        slots=round(said.get("slots", own.slots)),
        kv_tokens=float(int(said.get("kv", 0))) or own.kv_tokens,
    )
    if "rate" in said:
        return kind.slowed(instance_rate(setting, kind.slots, kind) / said["rate"])
    return kind.slowed(said.get("slowdown", 1.0))


def _pools(instances: int, pools: Pools, kinds: list[tuple[int, dict[str, float]]]) -> Pools:
    """GPUs of all kinds, at their mean price."""
    own, price = pools.rollout_gpus, pools.rollout_gpu_hour
    if own is None:
        return pools
    gpus = [own, *(count * said.get("gpus", own / instances) for count, said in kinds)]
    prices = [price, *(said.get("gpu_hour", price) for _, said in kinds)]
    paid = [many * each for many, each in zip(gpus, prices, strict=True) if each is not None]
    mean = sum(paid) / sum(gpus) if len(paid) == len(gpus) else None
    return replace(pools, rollout_gpus=sum(gpus), rollout_gpu_hour=mean)
