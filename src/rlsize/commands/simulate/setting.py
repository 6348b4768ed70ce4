"""The loop that is played: the one that every command asks where it is described, else fleet and trainer as said."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.equations import iteration, matching, rollout_batch
from rlsize.errors import InputError
from rlsize.estimates.figures import apply
from rlsize.estimates.simulated_engine import StepLine, constant_line
from rlsize.facts.figure import Figure, Provenance
from rlsize.facts.records.record import Refused
from rlsize.loop.agents import agents_of
from rlsize.loop.instance_count import instance_gpus, instances
from rlsize.loop.late import late_samples, oversampling
from rlsize.loop.lengths import lengths
from rlsize.loop.pools import LOOPS, mode, pools
from rlsize.loop.prices import gpu_hours
from rlsize.loop.rates import busy_seconds, instance_rate, measured_on, waste
from rlsize.loop.resolve import described, resolve
from rlsize.loop.workload import group_size
from rlsize.planner.simulation import USUAL_SLOTS, agents_work, engine_setting, rules_of, simulation_of
from rlsize.simulator.first_order import Pools
from rlsize.simulator.setting import (
    EngineSetting,
    LengthSetting,
    RuleSetting,
    Setting,
    SyncSetting,
    TrainerSetting,
    TroubleSetting,
    WorkSetting,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.loop.resolve import Loop
    from rlsize.shell.inputs import Inputs

_OFF = (0, 1)  # defaults that leave something out, which is no input then
_TOLD = frozenset({"routing", "sync_way"})  # words whose default is worth telling
_STEP_PARTS = ("step_fixed", "step_sample", "step_kv_token", "step_prompt_token")
_MISSING = EngineSetting(instances=1, slots=1, fixed_seconds=1.0)  # until faults are told


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
    values = _file_of_lengths(inputs)
    loop = resolve(inputs) if described(inputs) or _lacks_a_rate(inputs) else None
    if loop is None:
        found, gpus = _apart(inputs)
    elif loop.place is None:
        raise Refused(loop.refused)
    else:
        found, gpus = simulation_of(loop.outlook.central, loop.place, _known(inputs, "concurrency"))
    word = str(inputs.used["mode"].value) if "mode" in inputs.used else "sync"
    engine = _engine(inputs, found.engine if loop else None, found.engine.instances, found.work.samples)
    passes = float(len(inputs.said("trainer.logprob_passes") or []))
    forwards = matching.generation_flops_per_token(active_params=passes)
    update = matching.training_flops_per_token(active_params=1.0)
    setting = Setting(
        engine=engine or _MISSING,
        work=_work(inputs, found.work, values),
        trainer=replace(
            found.trainer,
            logprob_fraction=float(rollout_batch.share_of(part=forwards, whole=forwards + update)),  # for pictures
            micro_batches=_micro_batches(inputs, word, found.work.groups),
        ),
        sync=_sync(inputs, found.sync, word, spread=loop is not None),
        rules=_rules(inputs, word),
        trouble=_trouble(inputs, word),
    )
    _check_cache(inputs, setting)
    _aside(inputs, word)
    inputs.settle()
    return Simulated(setting=setting, pools=gpus, loop=loop)


def _lacks_a_rate(inputs: Inputs) -> bool:
    """Whether model and GPU are named and a side must be predicted: then the loop says what else it needs."""
    fleet = any(map(inputs.gives, ("step_fixed", "instance_tokens_per_second")))
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
    swap = _number(inputs, "swap_seconds")
    prices = [figure.number if figure.known else None for figure in gpu_hours(inputs)]
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
            seconds=train.number if train.known else 1.0, overhead_seconds=_number(inputs, "overhead_seconds")
        ),
        sync=SyncSetting(swap_seconds=swap / 2) if shared else SyncSetting(seconds=sync.number if sync.known else 0.0),
    )
    fleet = rollout.number if rollout.known else None
    gpus = Pools(
        rollout_gpus=0.0 if shared and trainer.known else fleet,
        trainer_gpus=trainer.number if trainer.known else None,
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


def _known(inputs: Inputs, key: str) -> float | None:
    """A number, if somebody says it, or it has a default that is one."""
    figure = inputs.ask(key)
    if figure.provenance == "default" and figure.value in _OFF:
        inputs.used.pop(key, None)
    return figure.number if figure.known else None


def _number(inputs: Inputs, key: str) -> float:
    return _known(inputs, key) or 0.0


def _whole(inputs: Inputs, key: str) -> int:
    return max(1, round(_number(inputs, key)))


def _word(inputs: Inputs, key: str) -> Any:
    found = inputs.choose(key)
    if key not in _TOLD and not inputs.gives(key):
        inputs.used.pop(key, None)
    return found


def _file_of_lengths(inputs: Inputs) -> tuple[float, ...]:
    """Lengths of a file, if one is named; their mean is the loop's where nobody says another."""
    named, _ = inputs.name("lengths_file")
    if named is None:
        return ()
    from rlsize.readers.lengths import read_lengths

    path = named if inputs.by_flag("lengths_file") or not inputs.file else str(inputs.file.folder / named)
    if inputs.by_flag("response_tokens"):
        inputs.fault("--lengths says the mean already", "--response-tokens", "leave one of them out")
    try:
        values = read_lengths(path)
    except InputError as error:
        inputs.blame(error, path)
        inputs.texts.setdefault("response_tokens", "1")  # so that no second fault is told
        return ()
    mean = sum(values) / len(values)
    if not inputs.gives("response_tokens"):
        inputs.texts["response_tokens"] = f"{mean:.17g}"
    elif not inputs.by_flag("response_tokens"):
        inputs.notes.append(f"The lengths of {path} are drawn from: their mean is {mean:,.0f} tokens.")
    return values


def _work(inputs: Inputs, base: WorkSetting, values: tuple[float, ...]) -> WorkSetting:
    """What a step is made of, with how lengths are spread, what is thrown away, and what samples wait for."""
    for key in ("prompts_per_step", "group_size"):
        figure = inputs.ask(key)
        if figure.known and figure.number != round(figure.number):
            what = f"{figure.number:g} is no whole number"
            inputs.fault(what, inputs.place(key), "the simulator deals in whole ones")
    shape: Any = "empirical" if values else _word(inputs, "length_distribution")
    told = "response_tokens" in inputs.used and inputs.used["response_tokens"]
    if told and told.number < 1.0:
        inputs.fault(f"{told.number:g} tokens are no response", told.source, "give 1 or more")
    if shape == "empirical" and not values and not inputs.gives("lengths_file"):
        inputs.fault("no file says which lengths", "--lengths", "name one, or take lognormal lengths")
    even = shape in {"empirical", "constant"}
    if even and not inputs.gives("response_cv"):
        inputs.used.pop("response_cv", None)
    if even and inputs.by_flag("response_cv"):
        inputs.fault(f"{shape} lengths take no spread", "--response-cv", "leave it out, or take lognormal lengths")
    agents = agents_of(inputs)
    if agents is not None and agents.environments is not None and agents.environments < base.group_size:
        what = f"{agents.environments} environments are too few for the {base.group_size} samples of a group"
        inputs.fault(what, inputs.place("environments"), f"give {base.group_size} or more")
    kept = _number(inputs, "kept_fraction")
    if inputs.gives("tokens_generated_per_trained_token"):  # whatever throws them away, filtered groups stand for it
        wasted = waste(inputs)
        kept = float(rollout_batch.share_of(part=1.0, whole=wasted.number)) if wasted.known else kept
    return replace(
        base,
        lengths=replace(
            base.lengths,
            mean=sum(values) / len(values) if values else base.lengths.mean,
            cv=0.0 if even else base.lengths.cv,
            shape=shape,
            correlation=_number(inputs, "group_correlation"),
            drift=_number(inputs, "length_drift"),
            values=values,
        ),
        acceptance=kept,
        **agents_work(agents),
    )


def _sync(inputs: Inputs, base: SyncSetting, word: str, *, spread: bool) -> SyncSetting:
    """
    How new weights reach the fleet.

    Args:
        inputs: What was said.
        base: Its pauses.
        word: The mode.
        spread: Whether the pause is a step's share of a sync, as the loop has it.
    """
    every, way, kv = _whole(inputs, "sync_every"), _word(inputs, "sync_way"), _word(inputs, "kv_after_sync")
    shared = word == "colocated"
    if shared and every > 1:
        inputs.notes.append("Colocated engines get the weights with every change-over: sync every is left aside.")
    said = shared and inputs.gives("swap_seconds")
    return SyncSetting(
        seconds=base.seconds * every if spread else base.seconds,
        every=1 if shared else every,
        way=way,
        keeps_kv=kv == "kept",
        swap_seconds=_number(inputs, "swap_seconds") / 2 if said else base.swap_seconds,
    )


def _rules(inputs: Inputs, word: str) -> RuleSetting:
    loop = LOOPS.get(word, "synchronous")
    asynchronous, every = loop == "async", _whole(inputs, "sync_every")
    staleness = inputs.ask("max_staleness")
    cap = staleness.number if staleness.known else 0.0
    if asynchronous and cap < every - 1:
        what = f"a cap of {cap:g} cannot be kept with a sync every {every} steps: samples lag up to {every - 1}"
        inputs.fault(what, "--max-staleness", f"raise it to {every - 1}, or sync more often")
    late, started = late_samples(inputs, loop)[loop], oversampling(inputs)
    if asynchronous and started > 1.0:
        inputs.notes.append("An async loop has no batch to start too many groups for: over-sampling is left aside.")
    queue = _known(inputs, "queue_steps")
    if queue is not None and queue < 1:
        inputs.fault(f"a queue of {queue:g} batches never holds a whole one", "--queue-steps", "give 1 or more")
    if late == "wait" and not asynchronous and started > 1.0:
        inputs.notes.append(
            "Simulated batches close when enough groups are whole: none waits for what it does not need."
        )
    found, order = rules_of(loop, late, started, cap), _word(inputs, "queue_order")
    order = order if inputs.gives("queue_order") else found.order
    redealing = _word(inputs, "redealing")
    return replace(found, order=order, queue_steps=queue if asynchronous else None, redealing=redealing)


def _trouble(inputs: Inputs, word: str) -> TroubleSetting:
    lent = round(_number(inputs, "lent_instances"))
    if lent and word == "colocated":
        inputs.fault("colocated GPUs have nothing to lend", "--lent-instances", "leave it out")
    keys = (
        "straggler_fraction", "straggler_slowdown", "losses_per_hour", "notice_seconds", "restart_seconds",
        "failures_per_hour", "trainer_restart_seconds", "lend_seconds",
    )  # fmt: skip
    return TroubleSetting(
        **{key: _number(inputs, key) for key in keys},
        checkpoint_every=_whole(inputs, "checkpoint_every"),
        lost_together=_whole(inputs, "lost_together"),
        lent_instances=lent,
    )


def _micro_batches(inputs: Inputs, word: str, groups: int) -> int:
    parts = _whole(inputs, "micro_batches")
    if parts > groups:
        what = f"{parts} micro-batches do not fit into a batch of {groups} prompts"
        inputs.fault(what, "--micro-batches", "a micro-batch holds at least one group")
    if parts > 1 and word == "colocated":
        inputs.notes.append("A colocated trainer begins when the whole batch is there.")
    return max(1, min(parts, groups))


def _check_cache(inputs: Inputs, setting: Setting) -> None:
    """One sample of the longest length must fit into an instance's cache."""
    held, work = setting.engine.kv_tokens, setting.work
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


def _engine(inputs: Inputs, base: EngineSetting | None, count: int, samples: int) -> EngineSetting | None:
    """
    The fleet's engines; None where a fault was noted.

    Args:
        inputs: What was said.
        base: The engines of the loop; None where fleet and trainer were said apart.
        count: Rollout instances. [1]
        samples: Samples of an optimizer step. [1]
    """
    stated = inputs.ask("concurrency")
    slots = round(stated.number) if stated.known else min(USUAL_SLOTS, ceil(samples / count))
    origin: Provenance
    line, origin, why = _said_line(inputs, slots), "given", "the step time that was said"
    if line is None:
        line, origin, why = _fitted_line(inputs, slots if stated.known else None), "measured", inputs.rates_name
    routing, cache = inputs.choose("routing"), inputs.ask("kv_cache_tokens")
    found = base
    if line is not None:
        found = engine_setting(line, count)
    else:
        origin, why = "predicted", "line at a full batch of the predicted engine, or the rate over the slots"
        if base is None:
            line = _from_rate(inputs, slots)
            found = None if line is None else engine_setting(line, count)
        elif not inputs.gives("instance_tokens_per_second"):
            how = "`rlsize predict rollout` builds it up, `measure` fits it"
            inputs.notes.append(f"The engine step is predicted, as a table over running samples: {how}.")
    if found is None:
        return None
    for part in _STEP_PARTS:
        inputs.used.pop(part, None)  # told once, as the line that they make
    if not found.fixed_seconds + found.sample_seconds:
        inputs.fault("an engine step takes no time", "--step-fixed", "give a time above 0")
        return None
    inputs.keep(Figure(key="slots", value=found.slots, provenance="given" if stated.known else "default"))
    told = zip(_STEP_PARTS[:3], (found.fixed_seconds, found.sample_seconds, found.kv_seconds), strict=True)
    for key, value in told:
        inputs.keep(Figure(key=key, value=value, provenance=origin, source=why))
    held = float(int(cache.number)) if cache.known else found.kv_tokens
    return replace(found, routing=routing, kv_tokens=held)  # type: ignore[arg-type]  # one of the rows' words


def _said_line(inputs: Inputs, slots: int) -> StepLine | None:
    """A step time that flags say, or the scenario where no flag says how fast an instance is."""
    flagged, rated = any(map(inputs.by_flag, _STEP_PARTS)), inputs.by_flag("instance_tokens_per_second")
    if flagged and rated:
        inputs.fault("both say how fast an instance is", "--step-fixed --per-instance", "keep one")
    if not flagged and (rated or not any(map(inputs.gives, _STEP_PARTS))):
        return None
    said = {part: inputs.ask(part) for part in _STEP_PARTS}
    return _line({part: figure.number if figure.known else 0.0 for part, figure in said.items()}, slots)


def _line(parts: Mapping[str, float], slots: int, cache: float | None = None) -> StepLine:
    """An engine of whose step the parts are known."""
    fixed, sample, kv_token, prompt_token = (parts[part] for part in _STEP_PARTS)
    times = {"fixed": fixed, "sample": sample, "kv_token": kv_token, "prompt_token": prompt_token}
    return StepLine(**times, slots=slots, kv_tokens=cache, batch=float(slots), points=())


def _fitted_line(inputs: Inputs, stated: int | None) -> StepLine | None:
    """The step time that `measure` fitted, from the rates file."""
    measured = inputs.rates.rollout if inputs.rates is not None else None
    if measured is None or measured.step_time is None:
        return None
    fit, slots = measured.step_time, measured.at_concurrency if stated is None else stated
    if slots > 2 * fit.largest_batch:
        fitted = f"the step time was fitted up to a batch of {fit.largest_batch:.0f}"
        inputs.warnings.append(f"{inputs.rates_name}: {fitted}, and {slots} samples run at once")
    inputs.notes.append(f"The engine step is the one that {inputs.rates_name} fitted over measured steps.")
    cache = measured.kv_cache_tokens
    parts = zip(_STEP_PARTS, (fit.t0_seconds, fit.t1_seconds, fit.t2_seconds, fit.t3_seconds), strict=True)
    return _line(dict(parts), slots, None if cache is None else float(cache))


def _from_rate(inputs: Inputs, slots: int) -> StepLine | None:
    """A step time that is the same at every batch, from an instance rate."""
    faults = len(inputs.faults)
    rate, _ = instance_rate(inputs)
    inputs.used.pop("headroom", None)  # what it stands for is simulated
    if not rate.known:
        if len(inputs.faults) == faults:
            inputs.fault("nothing says how fast an instance is", "--per-instance", "give a rate, or --step-fixed")
        return None
    line = constant_line(slots, rate.number)
    who = "a rates file of `rlsize measure`, --step-fixed and --step-sample, or a whole loop with model and GPUs do"
    flat = f"An engine step takes {line.fixed * 1e3:.3g} ms at every batch"
    inputs.notes.append(f"{flat}, as nobody says how it grows with it: {who}.")
    return line
