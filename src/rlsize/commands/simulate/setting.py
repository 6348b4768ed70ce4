"""The loop that is played: the one that every command asks where it is described, else fleet and trainer as said."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf
from typing import TYPE_CHECKING, NamedTuple

from rlsize import units
from rlsize.equations import iteration, matching, rollout_batch
from rlsize.errors import Refused
from rlsize.estimates.figures import apply
from rlsize.facts.figure import Figure
from rlsize.loop.instance_count import instance_gpus, instances
from rlsize.loop.lengths import lengths
from rlsize.loop.played import as_said, number, played
from rlsize.loop.pools import LOOPS, mode, pools
from rlsize.loop.prices import gpu_hours
from rlsize.loop.rates import busy_seconds, measured_on
from rlsize.loop.resolve import described, resolve
from rlsize.loop.workload import group_size
from rlsize.shell.rates import lengths_of_file
from rlsize.simulator.first_order import Pools, instance_rate
from rlsize.simulator.setting import (
    EngineSetting,
    LengthSetting,
    Setting,
    SyncSetting,
    TrainerSetting,
    WorkSetting,
)

if TYPE_CHECKING:
    from rlsize.loop.resolve import Loop
    from rlsize.shell.inputs import Inputs

_MISSING = EngineSetting(instances=1, slots=1, fixed_seconds=1.0)  # until faults are told

KEY = "more_instances"
_UNITS = {"slots": "count", "slowdown": "1", "rate": "token/s", "kv": "token", "gpus": "count", "gpu_hour": "usd"}
_FORM = (
    "write 4 slots=64 slowdown=1.8 gpus=2 gpu_hour=1.20, a semicolon between kinds: how many, and what differs, "
    f"of {', '.join(_UNITS)}"
)


class Simulated(NamedTuple):
    """
    What is to be simulated.

    Args:
        setting: The loop.
        pools: GPUs and prices.
        loop: The loop as every command sees it; None where fleet and trainer were said apart.
    """

    setting: Setting
    pools: Pools
    loop: Loop | None = None


def simulated(inputs: Inputs) -> Simulated:
    """
    The loop as it was asked for.

    Args:
        inputs: What was said; takes faults and notes.

    Raises:
        InputError: All faults.
        Refused: There can be no such loop.
    """
    if inputs.gives("step_seconds"):
        what = "is the wall clock of a step, with waiting and sync in it, and this needs the trainer's busy time"
        inputs.fault(what, inputs.flag("step_seconds"), "give --train-seconds, the busy trainer seconds per step")
    values = lengths_of_file(inputs)
    loop = resolve(inputs) if described(inputs) or _lacks_a_rate(inputs) else None
    if loop is None:
        base, gpus = _apart(inputs)
        cap, kind = inputs.ask("max_staleness"), LOOPS.get(_mode(inputs), "synchronous")
        setting = as_said(inputs, base, kind, cap.number if cap.known else 0.0, values, whole=False)
    elif loop.place is None:
        raise Refused(loop.refused)
    else:
        setting, gpus = played(inputs, loop.outlook.central, loop.place, values)
        if inputs.used["step_fixed"].provenance == "predicted" and not inputs.gives("instance_tokens_per_second"):
            how = "`rlsize predict rollout` builds it up, `measure` fits it"
            inputs.notes.append(f"The engine step is predicted, as a table over running samples: {how}.")
    setting, gpus = with_others(inputs, setting, gpus)
    for engine in setting.kinds:
        _check_cache(inputs, setting, engine.kv_tokens)
    _aside(inputs, _mode(inputs))
    inputs.settle()
    passes = float(len(inputs.said("trainer.logprob_passes") or []))
    forwards = matching.generation_flops_per_token(active_params=passes)
    update = matching.training_flops_per_token(active_params=1.0)
    share = float(rollout_batch.share_of(part=forwards, whole=forwards + update))  # for pictures
    drawn = replace(setting, trainer=replace(setting.trainer, logprob_fraction=share))
    return Simulated(setting=drawn, pools=gpus, loop=loop)


def _mode(inputs: Inputs) -> str:
    return str(inputs.used["mode"].value) if "mode" in inputs.used else "sync"


def _lacks_a_rate(inputs: Inputs) -> bool:
    """Whether model and GPU are named and a side must be predicted: then the loop says what else it needs."""
    fleet = any(map(inputs.gives, ("step_fixed", "step_points", "instance_tokens_per_second")))
    named = inputs.gives("model") and (inputs.gives("gpu") or inputs.gives("cluster"))
    return named and not (fleet and inputs.gives("train_seconds"))


def _apart(inputs: Inputs) -> tuple[Setting, Pools]:
    """Fleet and trainer as they were said, where that is no whole loop; faults are noted."""
    inputs.model(), inputs.gpu()  # a name that nobody knows is a fault, whether it is needed or not
    inputs.load_rates()
    rollout, trainer, shared = _gpus(inputs)
    prompts, group, length = inputs.ask("prompts_per_step"), group_size(inputs), lengths(inputs, None)
    inputs.need(prompts, "give the prompts per optimizer step")
    inputs.need(length.response, "give the mean response length, or a file of lengths")
    size, stated = instance_gpus(inputs), inputs.ask("instances")
    if not size.known and stated.known and not inputs.by_flag("instances"):
        pool = inputs.said("placement.rollout_gpus")
        parts = {"amount": Figure(key="rollout_gpus", value=pool), "instances": stated}
        size = apply("gpus_per_instance", rollout_batch.per_instance, **parts) if pool else size
    if inputs.by_flag("rollout_gpus") and not (size.known or inputs.by_flag("instances")):
        inputs.fault("GPUs say nothing without the size of an instance", "--rollout-gpus", "give --gpus-per-instance")
    faults, many = len(inputs.faults), instances(inputs, rollout, size)
    if len(inputs.faults) == faults:
        inputs.need(many, "give the rollout instances, or --rollout-gpus with --gpus-per-instance")
    if not rollout.known and size.known and many.known:
        rollout = apply("rollout_gpus", matching.fleet_gpus, instances=many, gpus_per_instance=size)
    train = _train_seconds(inputs, trainer)
    sync = inputs.ask("sync_seconds", default=0.0, why="nobody said how long a sync takes")
    swap = number(inputs, "swap_seconds")
    prices = [figure.if_known for figure in gpu_hours(inputs)]
    setting = Setting(
        engine=replace(_MISSING, instances=_count(many)),
        work=WorkSetting(
            groups=_count(prompts),
            group_size=_count(group),
            lengths=LengthSetting(
                mean=length.response.number if length.response.known else 1.0,
                cv=length.cv.number if length.cv.known else 0.0,
                cap=length.cap.number if length.cap.known else inf,
            ),
            prompt_tokens=round(length.prompt.number) if length.prompt.known else 0,
        ),
        trainer=TrainerSetting(
            seconds=train.number if train.known else 1.0, overhead_seconds=number(inputs, "overhead_seconds")
        ),
        sync=SyncSetting(swap_seconds=swap / 2) if shared else SyncSetting(seconds=sync.number if sync.known else 0.0),
    )
    fleet = rollout.if_known
    gpus = Pools(
        rollout_gpus=0.0 if shared and trainer.known else fleet,
        trainer_gpus=trainer.if_known,
        rollout_gpu_hour=prices[0],
        trainer_gpu_hour=prices[1],
    )
    return setting, gpus


def _gpus(inputs: Inputs) -> tuple[Figure, Figure, bool]:
    """GPUs of both sides, by the rule of every loop where enough of them is said, and whether they are shared."""
    total, rollout, trainer = (inputs.ask(key) for key in ("gpus", "rollout_gpus", "trainer_gpus"))
    sides = rollout.known + trainer.known
    together = inputs.apart().choose("mode", LOOPS, default="sync") == "colocated"
    if not (total.known or sides == len(("rollout", "trainer")) or (sides and together)):
        return rollout, trainer, mode(inputs, two=True) == "colocated"
    found = pools(inputs)
    return (found.gpus, found.gpus, True) if found.shared else (found.rollout, found.trainer, False)


def _train_seconds(inputs: Inputs, trainer: Figure) -> Figure:
    """Busy trainer seconds, in proportion where they were measured on another number of GPUs."""
    said = busy_seconds(inputs)
    inputs.need(said, "give the busy trainer seconds of a step, or name model, GPUs and lengths for a prediction")
    if not (said.known and trainer.known):
        return said
    measured = measured_on(inputs)
    if not measured.known or measured.number == trainer.number:
        return said
    inputs.notes.append(f"Train seconds of {measured.number:g} GPUs are taken in proportion to {trainer.number:g}.")
    where = {"pool_gpus": measured, "gpus": trainer}
    return inputs.keep(apply("train_seconds", iteration.phase_time_on, phase_seconds=said, **where))


def _count(figure: Figure) -> int:
    return round(figure.number) if figure.known else 1


def _check_cache(inputs: Inputs, setting: Setting, held: float) -> None:
    """One sample of the longest length must fit into an instance's cache."""
    work = setting.work
    longest = work.lengths.cap
    if held == inf:
        return
    if longest == inf:
        what = "nothing caps the response length, and the KV cache is limited"
        inputs.fault(what, "--max-response-tokens", "give the cap, so that the longest sample fits")
        return
    needed = work.prompt_tokens + longest + (work.turns - 1) * work.tool_tokens + 1
    if needed > held:
        what = f"a sample of {ceil(needed):,} tokens does not fit into a KV cache of {held:,.0f}"
        inputs.fault(what, "--kv-cache-tokens", "shorten the cap, or take a larger instance")


def _aside(inputs: Inputs, word: str) -> None:
    """Flags that say nothing in this mode: better told than followed in silence."""
    names = [] if LOOPS.get(word) == "async" else ["max_staleness", "queue_steps"]
    names += ["sync_seconds"] if word == "colocated" else ["swap_seconds"]
    flagged = [inputs.flag(name) for name in names if inputs.by_flag(name)]
    if flagged:
        inputs.ignore(f"Without effect where the mode is {word}: {', '.join(flagged)}.")
    for name in names:
        if name in inputs.used and (inputs.by_flag(name) or inputs.used[name].provenance == "default"):
            inputs.used.pop(name)


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
        what = "which kind is resized" if setting.rules.resizes else "colocated instances are all of the trainer's kind"
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
