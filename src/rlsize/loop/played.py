"""A loop as the simulator plays it, with all that was said of it: rules, troubles, engines, what samples wait for."""

from __future__ import annotations

import re
from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING, Any

from rlsize import units
from rlsize.equations import rollout_batch
from rlsize.estimates.simulated_engine import StepLine, constant_line
from rlsize.estimates.step_assembly import REFILLING
from rlsize.facts.figure import Figure, Provenance
from rlsize.loop import step_table
from rlsize.loop.agents import agents_of
from rlsize.loop.late import late_samples, oversampling
from rlsize.loop.rates import instance_rate, waste
from rlsize.planner.simulation import USUAL_SLOTS, agents_work, engine_setting, rules_of, simulation_of
from rlsize.simulator.setting import (
    EngineSetting,
    Resize,
    RuleSetting,
    Setting,
    SyncSetting,
    TroubleSetting,
    WorkSetting,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.estimates.step_assembly import Loop as LoopKind
    from rlsize.loop.said import Said
    from rlsize.planner.options import Placement
    from rlsize.planner.outlook import Terms
    from rlsize.simulator.first_order import Pools

_RESIZE = re.compile(r"([1-9][0-9]{0,8}|[0-9.]+ ?[a-z]+)=([+-][1-9][0-9]{0,5})", re.ASCII)
_OFF = (0, 1)  # defaults that leave something out, which is no input then
_TOLD = frozenset({"routing", "sync_way"})  # words whose default is worth telling
_STEP_PARTS = ("step_fixed", "step_sample", "step_kv_token", "step_prompt_token")


def played(said: Said, terms: Terms, place: Placement, values: tuple[float, ...] = ()) -> tuple[Setting, Pools]:
    """
    A placed loop, with its GPUs and prices.

    Args:
        said: What was said; takes faults and notes.
        terms: In central numbers.
        place: The placement.
        values: Response lengths to draw from; none where they are spread by a formula. [token]

    Raises:
        Refused: The loop cannot run so.
    """
    setting, pools = simulation_of(terms, place, known(said, "concurrency"))
    return as_said(said, setting, place.loop, place.max_staleness, values), pools


def as_said(
    said: Said,
    base: Setting,
    loop: LoopKind,
    max_staleness: float,
    values: tuple[float, ...] = (),
    *,
    whole: bool = True,
) -> Setting:
    """
    A setting with the rest of what was said, which only a simulation follows.

    Args:
        said: What was said; takes faults and notes.
        base: Fleet, trainer, work and pauses.
        loop: How the loop is laid out.
        max_staleness: Its cap, where it refills. [1]
        values: Response lengths to draw from; none where they are spread by a formula. [token]
        whole: Whether the base is a loop as every command has it, not a fleet and a trainer that were said apart.
    """
    fleet = base.engine if whole else None
    return Setting(
        engine=_engine(said, fleet, base.engine.instances, base.work.samples) or base.engine,
        work=_work(said, base.work, values),
        trainer=replace(base.trainer, micro_batches=_micro_batches(said, loop, base.work.groups)),
        sync=_sync(said, base.sync, loop, spread=whole),
        rules=_rules(said, loop, max_staleness),
        trouble=_trouble(said, base.trouble, loop),
    )


def known(said: Said, key: str) -> float | None:
    """A number, if somebody says it, or it has a default that is one."""
    figure = said.ask(key)
    if figure.provenance == "default" and figure.value in _OFF:
        said.used.pop(key, None)
    return figure.if_known


def number(said: Said, key: str) -> float:
    """A number; 0 where nobody says one."""
    return known(said, key) or 0.0


def _whole(said: Said, key: str) -> int:
    return max(1, round(number(said, key)))


def _word(said: Said, key: str) -> Any:  # noqa: ANN401 (one of the words of a row, which settings know as literals)
    found = said.choose(key)
    if key not in _TOLD and not said.gives(key):
        said.used.pop(key, None)
    return found


def _work(said: Said, base: WorkSetting, values: tuple[float, ...]) -> WorkSetting:
    """What a step is made of, with how lengths are spread, what is thrown away, and what samples wait for."""
    for key in ("prompts_per_step", "group_size"):
        figure = said.ask(key)
        if figure.known and figure.number != round(figure.number):
            what = f"{figure.number:g} is no whole number"
            said.fault(what, said.place(key), "the simulator deals in whole ones")
    shape: Any = "empirical" if values else _word(said, "length_distribution")
    told = "response_tokens" in said.used and said.used["response_tokens"]
    if told and told.number < 1.0:
        said.fault(f"{told.number:g} tokens are no response", told.source, "give 1 or more")
    if shape == "empirical" and not values and not said.gives("lengths_file"):
        said.fault("no file says which lengths", "--lengths", "name one, or take lognormal lengths")
    even = shape in {"empirical", "constant"}
    if even and not said.gives("response_cv"):
        said.used.pop("response_cv", None)
    if even and said.by_flag("response_cv"):
        said.fault(f"{shape} lengths take no spread", "--response-cv", "leave it out, or take lognormal lengths")
    kept = number(said, "kept_fraction")
    if said.gives("tokens_generated_per_trained_token"):  # whatever throws them away, filtered groups stand for it
        wasted = waste(said)
        kept = float(rollout_batch.share_of(part=1.0, whole=wasted.number)) if wasted.known else kept
    return replace(
        base,
        lengths=replace(
            base.lengths,
            mean=sum(values) / len(values) if values else base.lengths.mean,
            cv=0.0 if even else base.lengths.cv,
            shape=shape,
            correlation=number(said, "group_correlation"),
            drift=number(said, "length_drift"),
            values=values,
        ),
        acceptance=kept,
        **agents_work(agents_of(said, base.group_size)),
    )


def _sync(said: Said, base: SyncSetting, loop: LoopKind, *, spread: bool) -> SyncSetting:
    """
    How new weights reach the fleet.

    Args:
        said: What was said.
        base: Its pauses.
        loop: How it is laid out.
        spread: Whether the pause is a step's share of a sync, as the loop has it.
    """
    every, way, kv = _whole(said, "sync_every"), _word(said, "sync_way"), _word(said, "kv_after_sync")
    shared = loop == "colocated"
    if shared and every > 1:
        said.notes.append("Colocated engines get the weights with every change-over: sync every is left aside.")
    stated = shared and said.gives("swap_seconds")
    return SyncSetting(
        seconds=base.seconds * every if spread else base.seconds,
        every=1 if shared else every,
        way=way,
        keeps_kv=kv == "kept",
        swap_seconds=number(said, "swap_seconds") / 2 if stated else base.swap_seconds,
    )


def _rules(said: Said, loop: LoopKind, cap: float) -> RuleSetting:
    asynchronous, every = loop in REFILLING, _whole(said, "sync_every")
    if asynchronous and cap < every - 1:
        what = f"a cap of {cap:g} cannot be kept with a sync every {every} steps: samples lag up to {every - 1}"
        said.fault(what, "--max-staleness", f"raise it to {every - 1}, or sync more often")
    late, started = late_samples(said, loop)[loop], oversampling(said)
    if asynchronous and started > 1.0:
        said.notes.append("An async loop has no batch to start too many groups for: over-sampling is left aside.")
    queue = known(said, "queue_steps")
    if queue is not None and queue < 1:
        said.fault(f"a queue of {queue:g} batches never holds a whole one", "--queue-steps", "give 1 or more")
    if late == "wait" and not asynchronous and started > 1.0:
        said.notes.append("Simulated batches close when enough groups are whole: none waits for what it does not need.")
    found, order = rules_of(loop, late, started, cap), _word(said, "queue_order")
    order = order if said.gives("queue_order") else found.order
    return replace(
        found,
        order=order,
        queue_steps=queue if asynchronous else None,
        redealing=_word(said, "redealing"),
        resizes=_resizes(said, loop),
    )


def _resizes(said: Said, loop: LoopKind) -> tuple[Resize, ...]:
    """Instances that come or go: a bare number says a step, one with a unit a time."""
    text, where = said.name("resizes")
    if text is None:
        return ()
    found, todo = [], "write 100=+4, 2h=-2: a step, or a time with its unit, and how many instances come or go"
    parts = [_RESIZE.fullmatch(part.strip()) for part in str(text).split(",")]
    try:
        for part in filter(None, parts):
            when, change = part.groups()
            step = int(when) if when.isdecimal() else None
            found.append(Resize(int(change), step, 0.0 if step is not None else units.quantity(when, "s")))
    except ValueError as error:
        said.fault(str(error), where, todo)
        return ()
    if len(found) < len(parts):
        said.fault(f"{units.cut(str(text), 60)!r} does not say when how many instances come or go", where, todo)
        return ()
    if loop == "colocated":
        said.fault("colocated instances are the trainer's GPUs", where, "leave it out, or take another mode")
    said.keep(Figure(key="resizes", value=str(text), source=where))
    return tuple(found)


def _trouble(said: Said, base: TroubleSetting, loop: LoopKind) -> TroubleSetting:
    lent = round(number(said, "lent_instances"))
    if lent and loop == "colocated":
        said.fault("colocated GPUs have nothing to lend", "--lent-instances", "leave it out")
    keys = (
        "straggler_fraction", "straggler_slowdown", "losses_per_hour", "notice_seconds", "restart_seconds",
        "failures_per_hour", "trainer_restart_seconds", "lend_seconds",
    )  # fmt: skip
    told = {key: number(said, key) for key in keys}
    if loop == "colocated" and told["losses_per_hour"]:
        said.notes.append("Colocated GPUs are the trainer's own, of which none is lost: failures_per_hour says theirs.")
        told["losses_per_hour"] = 0.0
    if base.lent_instances:  # a plan that lends says how
        told["lend_seconds"], lent = base.lend_seconds, base.lent_instances
    return TroubleSetting(
        **told,
        checkpoint_every=_whole(said, "checkpoint_every"),
        lost_together=_whole(said, "lost_together"),
        lent_instances=lent,
    )


def _micro_batches(said: Said, loop: LoopKind, groups: int) -> int:
    parts = _whole(said, "micro_batches")
    if parts > groups:
        what = f"{parts} micro-batches do not fit into a batch of {groups} prompts"
        said.fault(what, "--micro-batches", "a micro-batch holds at least one group")
    if parts > 1 and loop == "colocated":
        said.notes.append("A colocated trainer begins when the whole batch is there.")
    return max(1, min(parts, groups))


def _engine(said: Said, base: EngineSetting | None, count: int, samples: int) -> EngineSetting | None:
    """
    The fleet's engines; None where a fault was noted.

    Args:
        said: What was said.
        base: The engines of the loop; None where fleet and trainer were said apart.
        count: Rollout instances. [1]
        samples: Samples of an optimizer step. [1]
    """
    stated = said.ask("concurrency")
    slots = round(stated.number) if stated.known else min(USUAL_SLOTS, ceil(samples / count))
    origin: Provenance
    line, origin, why = (
        _said_line(said, None if not stated.known else slots, slots),
        "given",
        "the step time that was said",
    )
    if line is None:
        line, origin, why = _fitted_line(said, slots if stated.known else None), "measured", said.rates_name
    routing, cache = said.choose("routing"), said.ask("kv_cache_tokens")
    found = base
    if line is not None:
        found = engine_setting(line, count)
    else:
        origin, why = "predicted", "line at a full batch of the predicted engine, or the rate over the slots"
        if base is None:
            line = _from_rate(said, slots)
            found = None if line is None else engine_setting(line, count)
    if found is None:
        return None
    for part in _STEP_PARTS:
        said.used.pop(part, None)  # told once, as the line that they make
    if not found.fixed_seconds + found.sample_seconds:
        if said.gives(step_table.KEY) and said.faults:
            return None
        said.fault("an engine step takes no time", "--step-fixed", "give a time above 0")
        return None
    said.keep(Figure(key="slots", value=found.slots, provenance="given" if stated.known else "default"))
    times = (found.fixed_seconds, found.sample_seconds, found.kv_seconds)
    table = step_table.KEY in said.used
    for key, value in list(zip(_STEP_PARTS, times, strict=False))[2 if table else 0 :]:
        said.keep(Figure(key=key, value=value, provenance=origin, source=why))
    held = float(int(cache.number)) if cache.known else found.kv_tokens
    return replace(found, routing=routing, kv_tokens=held)  # type: ignore[arg-type]  # one of the rows' words


def _said_line(said: Said, stated: int | None, usual: int) -> StepLine | None:
    """A step time that flags say, or the scenario where no flag says how fast an instance is."""
    keys = (*_STEP_PARTS, step_table.KEY)
    flagged, rated = any(map(said.by_flag, keys)), said.by_flag("instance_tokens_per_second")
    if flagged and rated:
        said.fault("both say how fast an instance is", "--step-fixed --per-instance", "keep one")
    if not flagged and (rated or not any(map(said.gives, keys))):
        return None
    points, line = step_table.step_points(said), [key for key in _STEP_PARTS[:2] if said.gives(key)]
    if points and line:
        both = ", ".join(said.place(key) for key in (*line, step_table.KEY))
        said.fault("a line and a table both say what a step takes", both, "keep one")
    told = {part: said.ask(part) for part in _STEP_PARTS}
    parts = {part: figure.number if figure.known else 0.0 for part, figure in told.items()}
    if points:  # of which more are known than a line says
        parts["step_fixed"], usual = points[0][1], points[-1][0]
    return replace(_line(parts, usual if stated is None else stated), points=points)


def _line(parts: Mapping[str, float], slots: int, cache: float | None = None) -> StepLine:
    """An engine of whose step the parts are known."""
    fixed, sample, kv_token, prompt_token = (parts[part] for part in _STEP_PARTS)
    times = {"fixed": fixed, "sample": sample, "kv_token": kv_token, "prompt_token": prompt_token}
    return StepLine(**times, slots=slots, kv_tokens=cache, batch=float(slots), points=())


def _fitted_line(said: Said, stated: int | None) -> StepLine | None:
    """The step time that `measure` fitted, from the rates file."""
    measured = said.rates.rollout if said.rates is not None else None
    if measured is None or measured.step_time is None:
        return None
    fit, slots = measured.step_time, measured.at_concurrency if stated is None else stated
    if slots > 2 * fit.largest_batch:
        fitted = f"the step time was fitted up to a batch of {fit.largest_batch:.0f}"
        said.warnings.append(f"{said.rates_name}: {fitted}, and {slots} samples run at once")
    said.notes.append(f"The engine step is the one that {said.rates_name} fitted over measured steps.")
    cache = measured.kv_cache_tokens
    parts = zip(_STEP_PARTS, (fit.t0_seconds, fit.t1_seconds, fit.t2_seconds, fit.t3_seconds), strict=True)
    return _line(dict(parts), slots, None if cache is None else float(cache))


def _from_rate(said: Said, slots: int) -> StepLine | None:
    """A step time that is the same at every batch, from an instance rate."""
    faults = len(said.faults)
    rate, _ = instance_rate(said)
    said.drop("headroom")  # what it stands for is simulated
    if not rate.known:
        if len(said.faults) == faults:
            said.fault("nothing says how fast an instance is", "--per-instance", "give a rate, or --step-fixed")
        return None
    line = constant_line(slots, rate.number)
    who = "a rates file of `rlsize measure`, --step-fixed and --step-sample, or a whole loop with model and GPUs do"
    flat = f"An engine step takes {line.fixed * 1e3:.3g} ms at every batch"
    said.notes.append(f"{flat}, as nobody says how it grows with it: {who}.")
    return line
