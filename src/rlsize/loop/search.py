"""What `plan` and `report` ask: which loop, in which space and within which limits a better one is looked for."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from rlsize.equations import planning
from rlsize.errors import Fault, InputError, Refused, suggestion
from rlsize.facts.figure import Figure, absent
from rlsize.frameworks.abilities import runs_layout
from rlsize.loop.instance import memory_fractions
from rlsize.loop.pools import LOOPS, Pools, pools
from rlsize.loop.resolve import as_stated, resolve_on
from rlsize.loop.said import cannot_run
from rlsize.planner.options import RECOMPUTES, Offer, TriedDegrees
from rlsize.planner.rounding import rounded_up
from rlsize.planner.space import Limit, Space
from rlsize.quantities.rollout import SHARED_MEMORY_FRACTION
from rlsize.quantities.table import QUANTITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from rlsize.estimates.step_assembly import Loop as Kind
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.facts.budget import Budget
    from rlsize.facts.framework import Abilities, Framework
    from rlsize.loop.resolve import Loop
    from rlsize.loop.said import Said
    from rlsize.planner.choice import Choice
    from rlsize.planner.families import Family, Objective
    from rlsize.planner.options import FleetOption, Placement, TrainerOption
    from rlsize.planner.outlook import Terms
    from rlsize.planner.plan import Otherwise, Planned
    from rlsize.planner.tables import Rejections

MODES: tuple[Kind, ...] = ("colocated", "synchronous", "one-step-off", "async", "hybrid")
"""Ways to lay a loop out in time that can be searched."""

_UNASKED = MODES[:-1]  # a scenario cannot say a hybrid loop, so that one is searched where it is asked for

_OBJECTIVES: tuple[Objective, ...] = ("time", "cost", "gpus")
SAVED = ("offload", "chunked_loss")  # what saves memory, and leaves training and numerics as they are
_MICRO_BATCHES = (4096.0, 8192.0, 16384.0, 32768.0)
_MOST_STALENESS = 64
_MOST_GPUS = 32_768  # every number of GPUs is tried with every other, so there must be an end
_POOL_PARTS = 3
_STAYING = ("offloaded_between", "param_offload", "reference_offload", "engine_sleep", "staged_wake_up")
"""What says what either side keeps on shared GPUs while the other one works."""
_PRICED = {"cost_per_step_usd", "cost_per_run_usd"}
_OF_RUN = {"cost_per_run_usd", "run_seconds"}
_SEARCHED = {  # by whether it is of the fleet
    True: ("rollout_tensor_parallel", "rollout_pipeline_parallel", "rollout_data_parallel", "rollout_expert_parallel"),
    False: (
        "fsdp", "zero_stage", "data_parallel", "tensor_parallel", "pipeline_parallel", "context_parallel",
        "expert_parallel", "recompute", "micro_batch_tokens", "trainer_gpus", "rollout_gpus", "instances", "mode",
    ),
}  # fmt: skip
Name = TypeVar("Name", bound=str)
_Memory = Literal["searched", "everywhere", "as placed"]
"""Whether the engines' share of shared GPUs is searched, as said in all modes, or as the placement has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """
    A loop and the best that was found in its place.

    Args:
        loop: It; placed where it says how, and can run.
        planned: What was found.
    """

    loop: Loop
    planned: Planned


def searched(
    said: Said,
    budget: tuple[Budget | None, str],
    tell: Callable[[float], None] | None = None,
    takes: Callable[[Loop, Placement], str] | None = None,
) -> Searched:
    """
    The loop that was said, and the best plan for its work.

    Args:
        said: What was said; what was used and chosen is noted there.
        budget: The limits that hold, and who says so.
        tell: Hears of a long search which share of it is done. [1]
        takes: Why what runs the loop cannot run a placement of it; empty where it can.

    Raises:
        InputError: All that is missing or wrong, or what is not modelled here.
    """
    posed = _posed(said, budget)
    wanted, loop, space, rejected, stated, plain = posed
    own = None
    if stated:
        loop = as_stated(said, loop)
        own = loop.place
    laid_out = any(map(said.gives, (*_SEARCHED[True], *_SEARCHED[False])))
    refused = loop.refused if stated else _refused(said, plain) if plain is not None and laid_out else ""
    if refused:
        said.warnings.append(f"{cannot_run(refused)} It is not ranked; a plan is another one.")
    searched_ones = {*(() if loop.known.rate.known else _SEARCHED[True]), *_SEARCHED[False], "max_staleness"}
    searched_ones |= {key for key in ("memory_fraction", "transport", "late_samples") if not said.gives(key)}
    for key in (*searched_ones, *(key for key in SAVED if not _typed(said, key))):
        said.used.pop(key, None)  # it goes with the plan, whatever the scenario has in its place
    places = ("mode", "rollout_gpus", "trainer_gpus", "instances", "max_staleness")
    passed_over = [f"placement.{key}" for key in places if said.said(f"placement.{key}") is not None]
    passed_over += [row.scenario for row in QUANTITIES.values() if _laid_out(said, row.scenario)]
    if passed_over:
        said.notes.append(f"{', '.join(dict.fromkeys(passed_over))}: searched, and as said only in yours")
    answer = _launched(said, budget, (loop, space, own), wanted.objective, tell, takes)
    if answer.refusals:
        answer = replace(answer, runs_as_said=own is not None and not refused)
    for reason, count in rejected.counts.items():
        answer.found.rejected.add(reason, count)
    return Searched(loop=loop, planned=answer)


def _launched(
    said: Said,
    budget: tuple[Budget | None, str],
    posed: tuple[Loop, Space, Placement | None],
    objective: Objective,
    tell: Callable[[float], None] | None,
    takes: Callable[[Loop, Placement], str] | None,
) -> Planned:
    """The best plan that can be launched; where modes that none can be launched in have a better one, those too."""
    from rlsize.estimates.step_assembly import REFILLING
    from rlsize.planner.plan import planned

    loop, space, own = posed
    reasons: dict[str, list[str]] = {}
    fits, taken = _asking(loop, takes, reasons)
    find = partial(planned, loop.outlook, objective=objective, written=own, tell=tell, takes=taken, fits=fits)
    answer = find(space, otherwise=_otherwise(said.instead(), loop, budget))
    if len(space.staleness) > 1 and any(any(why) for mode, why in reasons.items() if mode in REFILLING):
        fresher = replace(space, staleness=space.staleness[: len(space.staleness) // 2])  # fewer samples in flight
        other = _launched(said, budget, (loop, fresher, own), objective, tell, takes)
        if answer.chosen is None or (other.chosen is not None and _score(other.chosen) < _score(answer.chosen)):
            return other
    better = _better_refused(answer, reasons)
    if answer.chosen is None and reasons:
        return replace(answer, refusals=tuple(chain.from_iterable(reasons.values())))
    if not better:
        return answer
    left = tuple(mode for mode in space.loops if mode not in better)  # whose places they had taken
    answer = find(replace(space, loops=left), otherwise=_otherwise(said.instead(), loop, budget, left))
    return replace(answer, unlaunched=better)


def _score(chosen: Choice) -> tuple[float, ...]:
    return chosen.best.family.score(chosen.objective)


class _Posed(NamedTuple):
    """What is asked: of which loop, in which space, and whether it has a plan of its own."""

    wanted: _Wanted
    loop: Loop
    space: Space
    rejected: Rejections
    stated: bool
    plain: Pools | None


def _posed(said: Said, budget: tuple[Budget | None, str]) -> _Posed:
    """
    What is asked.

    Raises:
        InputError: All that is missing or wrong, or what is not modelled here.
    """
    from rlsize.planner.tables import Rejections

    wanted = _wanted(said)
    found, stated, plain = _pools(said)
    loop = resolve_on(said, found, placed=False)
    said.settle()
    refuse_lacking(loop)
    rejected = Rejections()
    return _Posed(wanted, loop, _space(said, loop, wanted, budget, rejected), rejected, stated, plain)


def _otherwise(
    said: Said, loop: Loop, budget: tuple[Budget | None, str], modes: tuple[Kind, ...] = ()
) -> Otherwise | None:
    """How the loop is posed with some quantities otherwise, in some modes; None where its rates are known for it."""
    from rlsize.planner.least_change import LEVERS
    from rlsize.planner.plan import Otherwise

    if loop.stages is None or loop.known.rate.known or loop.known.train_seconds.known or loop.problem.run is not None:
        return None

    def pose(values: Mapping[str, Any]) -> tuple[Terms, Space] | None:
        try:
            posed = _posed(said.instead(**values), budget)
        except (InputError, Refused):
            return None
        return posed.loop.outlook.central, replace(posed.space, loops=modes or posed.space.loops)

    keys = ("prompts_per_step", "samples_per_step")
    batch = next(((key, said.ask(key).number) for key in keys if said.gives(key)), None)
    return Otherwise(pose=pose, unsaid=tuple(key for key, _ in LEVERS if not said.gives(key)), batch=batch)


def _asking(
    loop: Loop, takes: Callable[[Loop, Placement], str] | None, reasons: dict[str, list[str]]
) -> tuple[Callable[[Placement], bool] | None, Callable[[Placement], bool] | None]:
    """
    Whether the memory of a placement fits for sure, and whether it can run and is taken; None where nothing says.

    Why a placement is not taken is noted by mode, empty where it is.
    """
    if loop.stages is None and takes is None:  # rates alone, whose plans load no prediction
        return None, None
    from rlsize.loop.phases import dies_at, judged

    def fits(place: Placement) -> bool:
        found = judged(loop, place)
        return found is None or found.verdict == "fits"

    def taken(place: Placement) -> bool:
        found = judged(loop, place)
        dying = None if found is None else found.dying
        why = dies_at(dying) if dying is not None else "" if takes is None else takes(loop, place)
        reasons.setdefault(place.loop, []).append(why)
        return not why

    return fits, taken


def _better_refused(answer: Planned, reasons: Mapping[str, list[str]]) -> dict[str, tuple[Family, str]]:
    """The best of each mode that is better than the plan, and of which nothing that was asked for can be launched."""
    found, chosen = answer.found, answer.chosen
    if chosen is None:
        return {}
    order, least = found.objective, chosen.best.family
    refused = {mode: said[0] for mode, said in reasons.items() if mode != chosen.best.place.loop and all(said)}
    return {
        mode: (found.modes[mode], why)
        for mode, why in refused.items()
        if mode in found.modes and found.modes[mode].score(order) < least.score(order)
    }


def _typed(said: Said, key: str) -> bool:
    """Whether a quantity was typed with the command; what a file has, or a framework by default, may be otherwise."""
    return said.by_flag(key) or (said.gives(key) and said.place(key).startswith("--set"))


def _laid_out(said: Said, place: str) -> bool:
    """Whether the scenario says something of a layout, which a search chooses."""
    searched_keys = ("rollout.tensor_parallel", "rollout.pipeline_parallel", "rollout.data_parallel")
    kept = {"trainer.recompute", "trainer.micro_batch_tokens"}
    kept |= {QUANTITIES[key].scenario for key in SAVED if not _typed(said, key)}
    own = place.startswith("trainer.parallelism.") or place in {*searched_keys, *kept}
    return own and said.said(place) is not None


def refuse_lacking(loop: Loop) -> None:
    """
    Refuse a loop of which something is not modelled: a plan or a verdict on a bound would be worth nothing.

    Raises:
        InputError: What is not modelled, and what models it.
    """
    if loop.lacking:
        what = f"{', '.join(loop.lacking)} are said, and a known rate may not have them: a step may take longer"
        todo = "`rlsize simulate` models them; leave the rate out to have it predicted, or leave them out"
        raise InputError(Fault(what, "agents", todo))


def _refused(said: Said, found: Pools) -> str:
    """Why the loop cannot run where what nobody said is chosen as every other command does; empty where it can."""
    try:
        return resolve_on(said.apart(), found).refused
    except InputError:  # a search needs less than a loop
        return ""


def _pools(said: Said) -> tuple[Pools, bool, Pools | None]:
    """
    The GPUs of both sides, whether the scenario has a plan of its own, which is judged beside the best one, and the
    GPUs as other commands take them; None where a search has pools of its own to choose from.

    Raises:
        InputError: They are not known, or contradict each other.
    """
    offered = [key for key in ("rollout_pools", "trainer_pools") if said.gives(key)]
    if offered:
        stock = said.ask("gpus")
        if not stock.known and len(offered) == 1:
            lacking = said.flag("trainer_pools" if offered[0] == "rollout_pools" else "rollout_pools")
            said.fault("the other side has no GPUs", lacking, "offer some, or say with --gpus how many there are")
        everything = stock if stock.known else Figure(key="gpus", value=1, provenance="default", source="the pools")
        none = absent("rollout_gpus", ""), absent("trainer_gpus", "")
        return Pools(loop="async", gpus=everything, rollout=none[0], trainer=none[1]), False, None
    side = said.apart()
    found = pools(side)
    said.faults += side.faults
    if found.gpus.known:
        said.keep(found.gpus)
    if any(map(said.gives, ("mode", "rollout_gpus", "trainer_gpus"))) and (found.split or found.shared):
        said.warnings += side.warnings
        return found, True, found
    return replace(found, loop="async"), False, found


def _objective(said: Said) -> Objective:
    """What is made small: as said; with a deadline the fewest GPUs, else the shortest step."""
    hurried = said.gives("least_steps_per_day") or said.gives("finish_by_seconds")
    found = said.choose("objective", default="gpus" if hurried else "time")
    return next((name for name in _OBJECTIVES if name == found), "time")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What was said of the search, whatever the loop is; empty for what is usual."""

    objective: Objective
    rollout: tuple[Offer, ...]
    trainer: tuple[Offer, ...]
    degrees: TriedDegrees
    modes: tuple[Kind, ...]
    runs: Abilities | None
    micro_batches: tuple[float, ...]
    rollout_gpus: tuple[float, ...]
    trainer_gpus: tuple[float, ...]
    margin: Figure
    staleness: tuple[float, ...]
    deadlines: tuple[Limit, ...]
    whole_nodes: bool
    memory: _Memory


def _wanted(said: Said) -> _Wanted:
    """What was said of the search; faults are noted."""
    framework = said.framework()
    return _Wanted(
        objective=_objective(said),
        runs=_runs(said, framework),
        rollout=_offers(said, "rollout_pools"),
        trainer=_offers(said, "trainer_pools"),
        degrees=_degrees(said, framework),
        modes=_modes(said, framework),
        micro_batches=_numbers(said, "searched_micro_batch_tokens"),
        rollout_gpus=_numbers(said, "searched_rollout_gpus"),
        trainer_gpus=_numbers(said, "searched_trainer_gpus"),
        margin=said.ask("memory_margin"),
        staleness=_staleness(said),
        deadlines=tuple(_deadlines(said)),
        whole_nodes=bool(said.yes("whole_nodes")),
        memory=_memory(said, framework),
    )


def _memory(said: Said, framework: Framework | None) -> _Memory:
    """
    What is tried of the engines' share of the memory.

    A share that is said with a plan is one of that plan's mode. What a trainer keeps on shared GPUs while engines
    generate is nothing unless somebody says so, and where somebody does the share stays as usual.
    """
    if said.gives("memory_fraction"):
        return "as placed" if any(map(said.gives, ("mode", "rollout_gpus", "trainer_gpus"))) else "everywhere"
    told = framework is None or not framework.quantities or "memory_fraction" in framework.quantities
    return "searched" if told and not any(map(said.gives, _STAYING)) else "as placed"


def _runs(said: Said, framework: Framework | None) -> Abilities | None:
    """What the framework can run, with the trainer that was said where it has several; None where nobody knows."""
    if framework is None or framework.runs is None:
        return None
    backend = str(said.said("trainer.backend") or "")
    own = {name: kinds for name, kinds in framework.runs.layouts.items() if backend and name.startswith(backend)}
    return replace(framework.runs, layouts=own) if own else framework.runs


def _modes(said: Said, framework: Framework | None) -> tuple[Kind, ...]:
    """Ways to lay a loop out in time: as said, else all that the framework launches; what it cannot run is a fault."""
    asked = tuple(_words(said, "searched_modes", MODES, LOOPS))
    if framework is None or framework.runs is None:
        return asked or _UNASKED
    runs = {LOOPS[mode] for mode in framework.runs.modes if mode in LOOPS}
    for mode in (mode for mode in asked if mode not in runs):
        what = f"{framework.title} cannot run a loop that is {mode}"
        said.fault(what, said.flag("searched_modes"), f"it runs {', '.join(framework.runs.modes)}")
    runs -= framework.refuses.keys() - {LOOPS.get(str(said.said("placement.mode")))}
    found = asked or tuple(mode for mode in _UNASKED if mode in runs)
    if not found:
        why = "; ".join(dict.fromkeys(reason for reason, *_ in framework.refuses.values()))
        said.fault(f"this {framework.title} cannot be planned: {why}", said.flag("framework"), "give a later @VERSION")
    return found


def _space(said: Said, loop: Loop, wanted: _Wanted, budget: tuple[Budget | None, str], rejected: Rejections) -> Space:
    """
    What may be chosen.

    Raises:
        InputError: All that is wrong with what was said of it.
    """
    limits = (*wanted.deadlines, *_limits(said, loop, budget))
    transports = _transports(said, loop)
    found, offered = loop.pools, bool(wanted.rollout or wanted.trainer)
    _refuse_too_many(said, found.gpus.number, found.gpus.source)
    mixed = loop.fleet.gpu != loop.trainer.gpu
    if mixed and not offered and not found.split:
        kinds = f"{loop.fleet.gpu} and {loop.trainer.gpu} are two kinds of GPUs"
        todo = "give placement.rollout_gpus and trainer_gpus"
        said.fault(f"{kinds}, and nobody says how many there are of each", "placement", todo)
    said.settle()
    stock: tuple[float | None, float | None] = (None, None)
    if offered:
        stock = found.gpus.number, found.gpus.number
    elif mixed:
        stock = found.rollout.number, found.trainer.number
    micro_batches: tuple[float, ...] = ()
    if loop.stages is not None:
        from rlsize.planner.evaluation import longest_tokens

        longest = rounded_up(longest_tokens(loop.outlook.central))
        micro_batches = tuple(sorted({float(max(size, longest)) for size in wanted.micro_batches or _MICRO_BATCHES}))
    taken = partial(_counts_taken, said.framework(), loop.problem.gpus_per_node, stock[0] or found.gpus.number)
    return Space(
        fleets=_fleets(loop, wanted, stock[0], rejected),
        trainers=_trainers(loop, wanted, stock[1], rejected),
        loops=wanted.modes,
        staleness=wanted.staleness,
        transports=transports,
        micro_batches=micro_batches,
        whole_shares=wanted.runs is not None and wanted.runs.whole_shares,
        gpus=None if offered or mixed else found.gpus.number,
        margin=wanted.margin.number,
        held=_held(said, loop),
        limits=limits,
        rollout_gpus=wanted.rollout_gpus,
        trainer_gpus=wanted.trainer_gpus,
        whole_nodes=wanted.whole_nodes,
        fleets_taken=taken("rollout_gpus"),
        sums_taken=taken("gpus"),
    )


def _held(said: Said, loop: Loop) -> float:
    """Share of memory that engines which stay awake keep on shared GPUs while the trainer works. [1]"""
    engine = None if loop.stages is None else loop.stages.engines.get(True)
    awake = said.gives("engine_sleep") and said.choose("engine_sleep") == "none"
    if not awake or engine is None or isinstance(engine, str):
        return 0.0
    return float(engine.question.memory_fraction or 0.0)


def _counts_taken(framework: Framework | None, node: float | None, most: float, key: str) -> frozenset[float] | None:
    """GPUs that a fleet, or both sides, apart may have by what a framework demands of them alone; None for any."""
    if framework is None or node is None:
        return None
    from rlsize.frameworks.demands import broken

    demands = [one.demands | framework.demands for one in framework.variants.values() if {*one.modes} - {"colocated"}]
    counts = frozenset(
        gpus
        for gpus in map(float, range(1, int(most) + 1))
        if any(not any(broken(one, {key: gpus, "gpus_per_node": node, "shared": False})) for one in demands)
    )
    return counts if demands and len(counts) < int(most) else None


def _limits(said: Said, loop: Loop, held: tuple[Budget | None, str]) -> Iterator[Limit]:
    """Limits of the budget; a fault for one on a result that lacks an input."""
    budget, source = held
    for entry in fields(budget) if budget is not None else ():
        limit = getattr(budget, entry.name)
        if limit is None:
            continue
        if entry.name in _PRICED and not loop.trainer.gpu_hour.known:
            said.fault(f"{entry.name} is limited, and no price is known", said.flag("gpu_hour_usd"), "give a price")
        if entry.name in _OF_RUN and not loop.problem.steps.known:
            said.fault(f"{entry.name} is limited, and the steps are not known", said.flag("steps"), "say how many")
        for bound, least in ((limit.max, False), (limit.min, True)):
            if bound is not None:
                yield Limit(key=entry.name, value=float(bound), least=least, source=source)


def _deadlines(said: Said) -> Iterator[Limit]:
    per_day, until = said.ask("least_steps_per_day"), said.ask("finish_by_seconds")
    if per_day.known:
        yield Limit(key="steps_per_day", value=per_day.number, least=True, source=per_day.source)
    if not until.known:
        return
    steps = said.ask("steps")
    if not steps.known:
        said.fault("a deadline needs the steps of the run", said.flag("steps"), "say how many")
        return
    longest = planning.step_time_limit(run_seconds=until.number, steps=steps.number)
    yield Limit(key="step_seconds", value=float(longest), source=until.source)


def _staleness(said: Said) -> tuple[float, ...]:
    """Caps from 1 to the largest, which may be a fraction."""
    most = said.ask("max_staleness")
    if not most.known:
        return (1.0,)
    if most.number > _MOST_STALENESS:
        what = f"{most.number:g} is more than the {_MOST_STALENESS} that are searched"
        said.fault(what, most.source, "give less")
    whole = tuple(float(cap) for cap in range(1, min(int(most.number), _MOST_STALENESS) + 1))
    return whole if most.number in whole else (*whole, most.number or 1.0)


def _transports(said: Said, loop: Loop) -> tuple[str, ...]:
    if not said.gives("searched_transports") and loop.stages is None:
        return ("nccl-broadcast",)  # nothing depends on it where syncs are not predicted
    from rlsize.estimates.sync_prediction import TRANSPORTS

    own = tuple(name for name, kind in TRANSPORTS.items() if not kind.colocated)
    if said.name("searched_transports")[0] == "all":
        return own
    usual = loop.stages.transport if loop.stages is not None else own[0]
    return tuple(_words(said, "searched_transports", own)) or (usual if usual in own else own[0],)


def _fleets(loop: Loop, wanted: _Wanted, stock: float | None, rejected: Rejections) -> tuple[FleetOption, ...]:
    """Ways to build instances: as measured where their rate is known, else all."""
    if loop.known.rate.known or loop.stages is None:
        return (loop.fleet,)
    from rlsize.planner.choices import fleet_options, fuller

    asked = loop.stages.rollout.engine
    fractions = memory_fractions(asked, shared=loop.pools.shared)
    if wanted.memory == "everywhere":
        fractions = dict.fromkeys(fractions, asked.memory_fraction)
    asked, shared = replace(asked, memory_fraction=fractions[False]), fractions[True] or SHARED_MEMORY_FRACTION
    kinds = wanted.rollout or (Offer(gpu=asked.gpu, most=stock),)
    priced = [kind if kind.gpu_hour.known else replace(kind, gpu_hour=loop.fleet.gpu_hour) for kind in kinds]
    degrees = wanted.degrees
    found = [option for offer in priced for option in fleet_options(asked, shared, offer, degrees, rejected)]
    more = fuller(found, loop.outlook.central, wanted.margin.number) if wanted.memory == "searched" else ()
    return (*found, *more)


def _trainers(loop: Loop, wanted: _Wanted, stock: float | None, rejected: Rejections) -> tuple[TrainerOption, ...]:
    """Ways to spread the trainer: as measured where its time is known, else all that the framework takes."""
    if loop.known.train_seconds.known or loop.stages is None:
        return (loop.trainer,)
    from rlsize.planner.choices import trainer_options

    asked, runs = loop.stages.train, wanted.runs
    if runs is not None and all(backend.startswith("megatron") for backend in runs.layouts):
        asked = replace(asked, sharding="optimizer")
    kinds = wanted.trainer or (Offer(gpu=asked.gpu, most=stock),)
    priced = [kind if kind.gpu_hour.known else replace(kind, gpu_hour=loop.trainer.gpu_hour) for kind in kinds]
    found = [option for offer in priced for option in trainer_options(asked, offer, wanted.degrees, rejected)]
    taken = []
    for option in found:
        if runs is None or option.question is None or runs_layout(runs, *layout_of(option.question)):
            taken.append(option)
        else:
            rejected.add("framework", what=option.name)
    return tuple(taken)


def layout_of(question: TrainQuestion) -> tuple[str, dict[str, int], str]:
    """What the ranks of a trainer share, its degrees of parallelism and its recomputation, as frameworks are asked."""
    degrees, uneven = question.degrees._asdict(), question.model.architecture.layers % question.pipeline > 0
    return question.sharding, {**degrees, "uneven": question.pipeline if uneven else 1}, question.recompute


# ---- what holds several things: numbers and words with commas between them, and pools of GPUs ----


def _parts(said: Said, key: str) -> tuple[list[str], str]:
    text, where = said.name(key)
    return ([] if text is None else [part.strip() for part in str(text).split(",")]), where


def _number(said: Said, key: str, text: str, where: str) -> Figure:
    """A number as one of a list says it, with the unit and limits of its quantity."""
    side = said.instead(**{key: text})
    side.faults.clear()
    figure = side.ask(key)
    said.faults += [fault._replace(where=where) for fault in side.faults]
    return figure


def _numbers(said: Said, key: str) -> tuple[float, ...]:
    """Numbers of the quantity that a list of this key holds."""
    texts, where = _parts(said, key)
    found = [_number(said, key.removeprefix("searched_"), text, where) for text in texts]
    return tuple(sorted({figure.number for figure in found if figure.known}))


def _words(said: Said, key: str, known: Iterable[Name], also: Mapping[str, Name] | None = None) -> list[Name]:
    """Words, each one of a few, or one that also means one of them."""
    names = {**(also or {}), **{str(word): word for word in known}}
    texts, where = _parts(said, key)
    for word in texts:
        if word not in names:
            said.fault(f"{word[:40]!r} is unknown", where, suggestion(word[:40], names))
    return list(dict.fromkeys(names[word] for word in texts if word in names))


def _degrees(said: Said, framework: Framework | None) -> TriedDegrees:
    """What is tried: as said, else all; what the framework has no key for is as it stands."""

    def told(key: str) -> bool:
        return framework is None or not framework.quantities or not framework.quantities.get(key, "1").isdigit()

    def turned(key: str) -> bool:
        """Whether a switch can be turned: it is a key as it stands, or the profile says what to write for it."""
        if not said.can_turn(key):
            return False
        if framework is None or not framework.quantities:
            return True
        plain = " " not in framework.quantities.get(key, " ")
        return plain or any(f"loop.{key}" in text for text in framework.writes.values())

    def whole(key: str) -> tuple[int, ...]:
        found = tuple(int(value) for value in _numbers(said, f"searched_{key}"))
        return found if found or told(key) else (1,)

    return TriedDegrees(
        rollout_tensor=whole("rollout_tensor_parallel"),
        rollout_data=whole("rollout_data_parallel"),
        rollout_pipeline=whole("rollout_pipeline_parallel"),
        tensor=whole("tensor_parallel"),
        pipeline=whole("pipeline_parallel"),
        context=whole("context_parallel"),
        expert=whole("expert_parallel"),
        recompute=tuple(_words(said, "searched_recompute", RECOMPUTES)),
        **{key: () if _typed(said, key) or not turned(key) else (False, True) for key in SAVED},
    )


def _offers(said: Said, key: str) -> tuple[Offer, ...]:
    """GPUs that a pool may be built of."""
    texts, flag = _parts(said, key)
    price = QUANTITIES[key.replace("_pools", "_gpu_hour_usd")].key
    found = []
    for text in texts:
        name, *rest = text.split(":")
        where = f"{flag} {text}"
        if len(rest) >= _POOL_PARTS or not name:
            said.fault(f"{text[:60]!r} is no pool", flag, "write GPU:COUNT:PRICE, such as h20:64:1.2")
            continue
        gpu = said.profile("gpu", name, flag)
        if gpu is None:
            continue
        count, hour = (*rest, "", "")[:2]
        before = len(said.faults)
        most = _number(said, "gpus", count, flag) if count else absent("gpus", flag)
        cost = _number(said, price, hour, flag) if hour else absent(price, flag)
        if not most.known and len(said.faults) == before:
            said.fault(f"{text[:60]!r} does not say how many GPUs there are", flag, f"write {gpu.name}:COUNT")
        if most.known:
            _refuse_too_many(said, most.number, where)
        gpu_hour = replace(cost, source=where) if cost.known else absent(price, flag)
        found.append(Offer(gpu=gpu, gpu_hour=gpu_hour, most=most.if_known))
    return tuple(found)


def _refuse_too_many(said: Said, gpus: float, where: str) -> None:
    if gpus > _MOST_GPUS:
        said.fault(f"{gpus:,.0f} GPUs are more than the {_MOST_GPUS:,} that are searched", where, "give fewer")
