"""From what was said to one loop: pools, instance, trainer and sync, how it is worked out, whether it can run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.equations import matching, planning, train_step
from rlsize.errors import Fault, InputError, Refused
from rlsize.estimates.figures import apply
from rlsize.estimates.step_assembly import REFILLING
from rlsize.facts.calibration import CalibratedRun, CalibrationSetting
from rlsize.facts.figure import Figure, absent
from rlsize.loop.agents import agents_of
from rlsize.loop.instance_count import stated_instances
from rlsize.loop.knobs import UNTESTED
from rlsize.loop.late import late_samples, oversampling
from rlsize.loop.lengths import hits, lengths, response_length
from rlsize.loop.pools import node_gpus, pools
from rlsize.loop.prices import gpu_hours, say_date
from rlsize.loop.rates import known_rates, waste
from rlsize.loop.seed import seed_of
from rlsize.loop.workload import batch_tokens, group_size, samples
from rlsize.planner.options import FleetOption, LoopProblem, Placement, TrainerOption
from rlsize.planner.rounding import rounded_down

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.estimates.belief import Belief
    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.memory_phases import Turns
    from rlsize.estimates.rollout_prediction import Replica
    from rlsize.estimates.rollout_question import RolloutQuestion
    from rlsize.estimates.step_assembly import Loop as LoopKind
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.facts.calibration import CalibratedRun
    from rlsize.loop.lengths import Lengths
    from rlsize.loop.pools import Pools
    from rlsize.loop.rates import KnownRates
    from rlsize.loop.said import Said
    from rlsize.planner.outlook import Outlook

_SECONDS_PER_HOUR = 3600.0
_UNMODELLED = {  # what lengthens a step and is not in a rate that was measured, by the key that brings it in
    "turns": "turns",
    "tool_seconds": "tools",
    "verify_seconds": "scoring",
    "environments": "environments",
}
_WHOLE_RATE = Figure(key="headroom", value=1.0, provenance="default", source="tail and pauses are in the step itself")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """
    The stages of a loop whose model and GPUs are named.

    Args:
        rollout: One instance and its load.
        engines: The instance on shared GPUs (True) and on its own (False), or why there is none; the loop's own first.
        stated: Whether somebody said its tensor parallelism.
        train: The trainer and its work.
        transport: Class of the weight sync.
        wire_dtype: Number type of weights on the wire.
        belief: What is believed about the constants.
        turns: What both sides do with their memory while the other one runs, on shared GPUs (True) and on their own.
    """

    rollout: RolloutQuestion
    engines: Mapping[bool, Replica | str]
    stated: bool
    train: TrainQuestion
    transport: str
    wire_dtype: str
    belief: Belief
    turns: Mapping[bool, Turns]

    @property
    def fits(self) -> int | None:
        """The smallest tensor parallelism at which an instance fits; None where none does."""
        from rlsize.estimates.rollout_question import first_fit
        from rlsize.loop.instance import degrees

        return first_fit(self.rollout, degrees(self.rollout.engine.model), self.belief.central())

    @property
    def setting(self) -> CalibrationSetting:
        """What runs, as calibrations name it."""
        return setting_of(self.rollout.engine if self.stated else None, self.train)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """
    A loop as it was said, with what nobody said chosen.

    Args:
        pools: Mode and GPUs.
        known: Rates that are known.
        stages: Its stages; None where no model is named, so that only the rates are known.
        outlook: How it is worked out.
        fleet: Its instances.
        trainer: Its trainer.
        place: How it is placed; None where it cannot run.
        refused: Why it cannot run; empty where it can.
        lacking: What lengthens a step and is not in a known rate, so that its time is a lower bound.
        tried: How it was placed to see whether it can run; None where its GPUs hold no instance.
    """

    pools: Pools
    known: KnownRates
    stages: Stages | None
    outlook: Outlook
    fleet: FleetOption
    trainer: TrainerOption
    place: Placement | None
    refused: str = ""
    lacking: tuple[str, ...] = ()
    tried: Placement | None = None

    @property
    def problem(self) -> LoopProblem:
        """Its work, and what no placement changes."""
        return self.outlook.problem

    @property
    def bound(self) -> str:
        """What its step does not hold, in words for a headline; empty where it holds all."""
        return f"{', '.join(self.lacking)} not in it" if self.lacking else ""


def described(said: Said) -> bool:
    """
    Whether enough is said for a loop; not whether it can run.

    A question about one stage that is asked with less is about that stage alone.
    """
    return not lacked(said)


def lacked(said: Said) -> tuple[str, ...]:
    """How to say what a loop lacks of model, GPUs, lengths and samples; empty where enough is said for one."""
    pools = said.gives("gpus") or (said.gives("rollout_gpus") and said.gives("trainer_gpus"))
    shared = said.said("placement.mode") == "colocated" and (said.gives("rollout_gpus") or said.gives("trainer_gpus"))
    batch = said.gives("samples_per_step") or said.follows_gpus("prompts_per_step")
    there = {
        "model": said.gives("model"),
        "gpu": _gpus_named(said),
        "gpus": pools or shared,
        "prompts_per_step": batch or said.gives("prompts_per_step"),
        "group_size": batch or said.gives("group_size"),
        "response_tokens": said.gives("response_tokens") or said.gives("max_response_tokens"),
    }
    return tuple(said.flag(key) for key, found in there.items() if not found)


def _gpus_named(said: Said) -> bool:
    """Whether the GPUs of both sides are named."""
    return said.gives("gpu") or said.gives("cluster") or (said.gives("rollout_gpu") and said.gives("trainer_gpu"))


def resolve(said: Said) -> Loop:
    """
    The loop.

    Args:
        said: What was said; what was used and chosen is noted there.

    Raises:
        InputError: All that is missing or wrong.
    """
    notes = len(said.notes)
    found = pools(said)
    said.warnings[:0] = said.notes[notes:]  # that nobody said how the loop is laid out decides all the rest
    del said.notes[notes:]
    loop = resolve_on(said, found)
    said.refused = loop.refused
    return loop


def resolve_on(said: Said, found: Pools, *, placed: bool = True) -> Loop:
    """
    The loop on pools that are known.

    Raises:
        InputError: All that is missing or wrong.
    """
    from rlsize.planner.outlook import outlook_of

    seed = seed_of(said)
    if not said.gives("response_tokens"):
        response_length(said)
    known = known_rates(said)
    prices = gpu_hours(said)
    stages = _modelled(said, found, known)
    problem = _problem(said, found.loop, stages, known)
    lacking = _lacking(said, problem.run) if known.rate.known else ()
    say_date(said)
    said.settle()
    belief = None if stages is None else stages.belief
    late = found.loop in REFILLING and problem.late_rule(found.loop) != "continue"
    if late and known.rate.known and not _shaped(stages, problem):
        said.notes.append(f"{said.place('late_samples')}: not in the step, as nobody says how long a sample takes.")
    outlook = outlook_of(problem, belief, seed)
    fleet, trainer = _fleet(stages, known, prices[0]), _trainer(stages, known, prices[1])
    loop = Loop(
        pools=found,
        known=known,
        stages=stages,
        outlook=outlook,
        fleet=fleet,
        trainer=trainer,
        place=None,
        lacking=lacking,
    )
    return as_stated(said, loop) if placed else loop


def setting_of(asked: EngineQuestion | None, train: TrainQuestion) -> CalibrationSetting:
    """
    What is predicted, as calibrations name it.

    Args:
        asked: One instance; None where nobody said its size.
        train: The trainer.
    """
    layout = None
    if asked is not None:
        layout = f"TP{asked.layout.tensor:.0f} PP{asked.layout.pipeline:.0f} DP{asked.layout.data:.0f}"
    return CalibrationSetting(
        model=train.model.name,
        gpu=train.gpu.name,
        engine=asked.engine if asked is not None else "vllm",
        rollout_layout=layout,
        trainer_layout=f"TP{train.tensor} PP{train.pipeline} CP{train.context} EP{train.expert}",
    )


def _lacking(said: Said, run: CalibratedRun | None) -> tuple[str, ...]:
    """What was said that lengthens a step and is not in a known rate; what a run had is in its phases."""
    found = []
    had = {} if run is None else {**run.ran, **run.shown}
    for key, what in _UNMODELLED.items():
        if said.gives(key):
            figure = said.ask(key)
            if had.get(key) == figure.value:
                continue
            found += [what] if figure.number > (1 if key == "turns" else 0) else []
    return tuple(found)


def _modelled(said: Said, found: Pools, known: KnownRates) -> Stages | None:
    """
    The stages of a named model on named GPUs; None where both sides are known and no model is named.

    Raises:
        InputError: What is missing, where something must be predicted.
    """
    if known.both and not (said.gives("model") and _gpus_named(said)):
        return None
    from rlsize.estimates.step_prediction import STAGES

    before = list(said.faults)
    said.apart().belief(*STAGES)  # a calibration that is none is no reason to do without one
    try:
        return stages_of(said, found)
    except InputError as error:
        if not known.both:
            raise
        told = "; ".join(fault.what for fault in error.faults)
        said.faults[:] = before
        said.notes.append(f"Memory, sync and overheads are not predicted: {told}.")
        return None


def stages_of(said: Said, found: Pools) -> Stages:
    """
    The stages of a loop.

    Raises:
        InputError: All that is missing or wrong.
    """
    from rlsize.estimates.step_prediction import STAGES
    from rlsize.loop.instance import instance
    from rlsize.loop.phases import turns_of
    from rlsize.loop.sync import transport, wire_dtype
    from rlsize.loop.trainer import train_question

    model = said.model()
    sides = {side: said.gpu(side) for side in ("rollout", "trainer")}
    for key, there in (("model", said.gives("model")), ("gpu", _gpus_named(said))):
        if not there:
            said.fault(f"the {key} is missing", said.flag(key), f"give {said.flag(key)}, a profile's name")
    kinds = [gpu.name for gpu in sides.values() if gpu is not None]
    if found.shared and len(set(kinds)) > 1:
        what = f"{kinds[0]} and {kinds[1]} are two kinds of GPUs, and colocated sides share theirs"
        said.fault(what, said.place("mode"), "name one kind, or another mode")
    one = instance(said, model, sides["rollout"], shared=found.shared)
    follow = said.follows_gpus("prompts_per_step")
    length, many = lengths(said, model), samples(said, usual=model is not None and not follow)
    said.need(length.response, "give --response-tokens, or a cap (--max-response-tokens), under which a mean is usual")
    if not follow:
        said.need(many, "give --samples, or --prompts and --group")
    own = _trainers_gpus(said, found)
    train = train_question(said, model, sides["trainer"], length, many, own)
    way, wire = transport(said, shared=found.shared), wire_dtype(said)
    turns = {one: turns_of(said if one == found.shared else said.apart(), shared=one) for one in (False, True)}
    staleness = said.ask("max_staleness")
    if found.loop != "async" and staleness.provenance == "default":
        said.used.pop("max_staleness", None)
    if said.faults or one is None or train is None or model is None:
        raise InputError(*dict.fromkeys(said.faults) or [Fault("the loop is not known", "--model")])
    belief = said.belief(*STAGES, planned=setting_of(one.question if one.stated else None, train))
    values, rollout = belief.central(), load(said, one.question, length, many)
    cv = rollout.response_cv
    if cv.provenance == "default":  # a calibration may know the spread better
        cv = said.keep(replace(cv, value=values["step_length_cv"]))
        rollout = replace(rollout, response_cv=cv)
    engines = _engines(said, found, rollout, values, stated=one.stated)
    chosen = engines[found.shared]
    both = {"prompt_tokens": rollout.prompt_tokens, "response_tokens": rollout.response_tokens}
    tokens_cv = apply("sequence_cv", train_step.trained_sequence_cv, response_cv=cv, **both)
    return Stages(
        rollout=rollout if isinstance(chosen, str) else replace(rollout, engine=chosen.question),
        engines=engines,
        stated=one.stated,
        train=replace(train, tokens_cv=tokens_cv),
        transport=way,
        wire_dtype=wire,
        belief=belief,
        turns=turns,
    )


def load(said: Said, asked: EngineQuestion, length: Lengths, many: Figure) -> RolloutQuestion:
    """One instance and its load, one instance counted; how many there are is for the loop to say."""
    from rlsize.estimates.rollout_question import RolloutQuestion

    one = Figure(key="instances", value=1, provenance="default", source="one instance")
    return RolloutQuestion(
        engine=asked,
        prompt_tokens=length.prompt,
        response_tokens=length.response,
        response_cv=length.cv,
        max_response_tokens=length.cap,
        hit_fraction=hits(said, asked.engine, length.prompt, one),
        concurrency=said.ask("concurrency"),
        instances=one,
        samples_per_step=many,
    )


def _trainers_gpus(said: Said, found: Pools) -> Figure:
    """The trainer's GPUs: its own, or all where they are shared or not split yet and no layout says how many."""
    sized = said.gives("fsdp") or said.gives("data_parallel")
    own = found.trainer if found.trainer.known else found.gpus
    if not own.known or (sized and not found.shared and not found.trainer.known):
        return absent("trainer_gpus", "--trainer-gpus")
    return replace(own, key="trainer_gpus")


def _engines(
    said: Said, found: Pools, rollout: RolloutQuestion, values: Mapping[str, float], *, stated: bool
) -> dict[bool, Replica | str]:
    """The instance on shared GPUs and on its own, or why there is none; as the loop has it first."""
    from rlsize.loop.instance import QUICKEST_SIZE, memory_fractions

    shared = found.shared
    fractions = memory_fractions(rollout.engine, shared=shared)
    fleet = found.rollout if found.rollout.known else found.gpus
    engines = {
        way: _engine(
            replace(rollout, engine=replace(rollout.engine, memory_fraction=fractions[way])),
            values,
            None if stated else fleet.number,
        )
        for way in (shared, not shared)
    }
    own = engines[shared]
    if not stated and not isinstance(own, str):
        degree = own.question.layout.tensor
        said.keep(Figure(key="rollout_tensor_parallel", value=degree, provenance="default", source=QUICKEST_SIZE))
    return engines


def _engine(question: RolloutQuestion, values: Mapping[str, float], gpus: float | None) -> Replica | str:
    """
    The instance; why there is none where it does not fit.

    Args:
        question: The instance and its load.
        values: Central values of the constants.
        gpus: GPUs of the fleet, where nobody said how many one instance has.

    Raises:
        InputError: The GPU lacks the number type, or its kernels are not known.
    """
    from rlsize.estimates.rollout_prediction import engine
    from rlsize.estimates.rollout_question import why_not
    from rlsize.loop.instance import degrees
    from rlsize.planner.choices import quickest_degree

    asked = question.engine
    try:
        if gpus is not None:
            possible = degrees(asked.model)
            degree = quickest_degree(question, possible, gpus, values)
            asked = replace(asked, layout=replace(asked.layout, tensor=degree or possible[-1]))
        return why_not(replace(question, engine=asked), values) or engine(asked)
    except Refused as refusal:
        what, _, todo = str(refusal).partition("; ")
        raise InputError(Fault(what, "--rollout-dtype" if todo else "--gpu", todo)) from None


def _problem(said: Said, loop: LoopKind, stages: Stages | None, known: KnownRates) -> LoopProblem:
    """The work of a step, and what no placement changes."""
    from rlsize.loop.instance import without_engine

    if stages is not None:
        load = stages.rollout
        cv = load.response_cv
        base = LoopProblem(
            samples=load.samples_per_step,
            group_size=group_size(said),
            prompt_tokens=load.prompt_tokens,
            response_tokens=load.response_tokens,
            response_cv=cv if cv.provenance != "default" else absent("response_cv", "--response-cv"),
            max_prompt_tokens=said.ask("max_prompt_tokens"),
            max_tokens=load.max_response_tokens,
            wire_dtype=stages.wire_dtype,
            in_place=loop == "colocated" and (bool(said.yes("shares_weights")) or without_engine(said)),
            hit_fraction=said.ask("hit_fraction"),
            routing=said.choose("routing"),
            block_tokens=said.ask("block_tokens"),
            concurrency=said.ask("concurrency"),
            model=stages.train.model,
            agents=agents_of(said, group_size(said).number),
        )
    else:
        base = _with_rates(said, known)
    headroom = known.headroom
    if _shaped(stages, base):
        said.drop("headroom")
        headroom = _WHOLE_RATE
    every, swap = said.ask("sync_every"), said.ask("swap_seconds", default=0.0, why="not said")
    losses, restart = (said.ask(key) if said.gives(key) else None for key in ("losses_per_hour", "restart_seconds"))
    found = replace(
        base,
        oversampling=oversampling(said),
        late=late_samples(said, loop),
        waste=waste(said),
        headroom=headroom,
        available=_available(said, losses, restart),
        sync_seconds=known.sync_seconds,
        overhead_seconds=known.overhead_seconds,
        swap_seconds=swap,
        steps=said.ask("steps"),
        sync_every=every.number,
        rolling=_rolling(said),
        parts=round(said.ask("micro_batches").number) if said.gives("micro_batches") else 1,
    )
    measured = said.calibration()
    if measured is not None and measured.run is not None and base.predicted:
        found = replace(found, run=measured.run)
    node = node_gpus(said, None if stages is None else stages.train.gpu)
    return replace(found, gpus_per_node=node.number) if node.known else found


def _shaped(stages: Stages | None, problem: LoopProblem) -> bool:
    """Whether an engine says how samples end, so that a known rate has their tail; not where tools come between."""
    engines = () if stages is None else stages.engines.values()
    return problem.agents is None and any(not isinstance(one, str) for one in engines)


def _rolling(said: Said) -> bool:
    """Whether instances take weights one by one; samples that a sync stops are played in `simulate` alone."""
    way, place = said.name("sync_way")
    if way in {"in-flight", "rolling"}:
        said.keep(Figure(key="sync_way", value=way, source=place))
    elif way is not None and "sync_way" not in said.used:
        said.notes.append(f"{place}: in a step that is worked out samples go on; `rlsize simulate` plays {way}.")
    return way == "rolling"


def _with_rates(said: Said, known: KnownRates) -> LoopProblem:
    """The work of a step where only rates are known."""
    many, response = samples(said), said.ask("response_tokens")
    if not (many.known and response.known):
        said.need(batch_tokens(said), "give --batch-tokens, or prompts, group and response tokens")
        many = Figure(key="samples_per_step", value=1.0, provenance="default", source="a batch counts as a whole")
        response = replace(known.batch, key="response_tokens")
    return LoopProblem(samples=many, group_size=group_size(said), response_tokens=response)


def _available(said: Said, losses: Figure | None, restart: Figure | None) -> Figure:
    """Share of the time that an instance is there, by the losses that were named."""
    key = "available_fraction"
    if losses is None or not losses.number:
        return Figure(key=key, value=1.0, provenance="default", source="no losses are named")
    up = Figure(key="up_seconds", value=_SECONDS_PER_HOUR / losses.number, source=losses.source)
    down = Figure(key="down_seconds", value=0.0 if restart is None else restart.number, source=losses.source)
    return said.keep(apply(key, planning.availability, up_seconds=up, down_seconds=down))


def _fleet(stages: Stages | None, known: KnownRates, price: Figure) -> FleetOption:
    """The instance as it is written; at the measured rate where there is one."""
    if stages is None:
        size = known.size.number
        name = f"{size:g} GPU{'' if size == 1 else 's'}"
        return FleetOption(name=name, gpu="", gpus=size, layout={}, engines={}, rate=known.rate, gpu_hour=price)
    from rlsize.planner.choices import fleet_of
    from rlsize.planner.options import Offer

    ready = next((engine for engine in stages.engines.values() if not isinstance(engine, str)), None)
    size = known.size.number if known.rate.known else 1.0 if ready is None else ready.gpus
    return fleet_of(stages.engines, size, Offer(gpu=stages.rollout.engine.gpu, gpu_hour=price), known.rate)


def _trainer(stages: Stages | None, known: KnownRates, price: Figure) -> TrainerOption:
    question, name = None if stages is None else stages.train, "as measured"
    if not known.train_seconds.known and question is not None:
        from rlsize.planner.choices import trainer_name

        name = trainer_name(question)
    return TrainerOption(
        name=name,
        gpu="" if question is None else question.gpu.name,
        question=question,
        seconds=known.train_seconds,
        measured_gpus=known.measured_gpus,
        gpu_hour=price,
    )


def as_stated(said: Said, loop: Loop) -> Loop:
    """
    The loop on its GPUs as they were said; where nobody says how they are split, in the quickest way.

    Raises:
        InputError: Nobody says how GPUs are split, and only rates are known.
    """
    fleet = loop.fleet
    place: Placement | None
    from rlsize.loop.phases import why_not

    try:
        rollout, trainer = _sides(said, loop)
        instances = _whole_instances(rollout, fleet.gpus)
        stated = stated_instances(said)
        if stated.known and stated.number != instances:
            what = f"{stated.number:g} instances of {fleet.gpus:g} are not the {rollout:g} rollout GPUs"
            said.fault(what, stated.source, "leave one of them out")
            said.settle()
        rest = rollout - instances * fleet.gpus
        idle = f"{rest:g} rollout GPUs make no whole instance of {fleet.gpus:g}: they stay idle, and are not counted"
        if rest and idle not in said.warnings:
            said.warnings.append(idle)
        figure = Figure(key="instances", value=instances, provenance="predicted", source="whole instances of the fleet")
        said.keep(stated if stated.known else figure)
        place = _placed(said, loop, float(instances), float(trainer))
        reason = "" if _ran(said, loop) else why_not(loop, place)
    except Refused as refusal:
        reason, place = str(refusal), None
    loop = replace(loop, tried=place)
    if not reason:
        return replace(loop, place=place, outlook=_doubted(said, loop.outlook))
    smaller = _smaller_passes(said, loop)
    return replace(loop, refused=reason) if smaller is None else as_stated(said, smaller)


def _ran(said: Said, loop: Loop) -> bool:
    """Whether a run of just this loop was measured, so that it fits."""
    run = loop.problem.run
    if run is None:
        return said.ran
    return all(said.used[key].value == value for key, value in run.ran.items() if key in said.used)


def _doubted(said: Said, outlook: Outlook) -> Outlook:
    """With a wider band where the loop differs from a run that was measured in what nobody has tested."""
    run = outlook.problem.run
    changed = [] if run is None else [key for key in sorted(UNTESTED & said.used.keys()) if _differs(said, run, key)]
    if not changed:
        return outlook
    doubt = f"no published runs differ by {', '.join(changed)}: nobody knows how well a run foretells that"
    said.warnings += [doubt] if doubt not in said.warnings else []
    return replace(outlook, untested=True)


def _differs(said: Said, run: CalibratedRun, key: str) -> bool:
    """Whether a quantity is not as it was in a run; what the run did not say, and nobody says now, is."""
    figure = said.used[key]
    return figure.value != run.ran[key] if key in run.ran else figure.provenance == "given"


def _placed(said: Said, loop: Loop, instances: float, trainer_gpus: float) -> Placement:
    """The loop on so many instances and trainer GPUs."""
    found, staleness = loop.pools, said.ask("max_staleness")
    if found.loop != "async" and staleness.provenance == "default":
        said.used.pop("max_staleness", None)
    usual = "colocated" if found.shared else "nccl-broadcast"
    return Placement(
        loop=found.loop,
        fleet=loop.fleet,
        instances=instances,
        trainer=loop.trainer,
        trainer_gpus=trainer_gpus,
        max_staleness=staleness.number,
        transport=usual if loop.stages is None else loop.stages.transport,
    )


def _whole_instances(gpus: float, size: float) -> int:
    """
    Instances that GPUs hold.

    Raises:
        Refused: They hold none.
    """
    instances = rounded_down(matching.instances_of(gpus=gpus, gpus_per_instance=size))
    if instances < 1:
        raise Refused(f"{gpus:g} rollout GPUs do not hold an instance of {size:g}")
    return instances


def _smaller_passes(said: Said, loop: Loop) -> Loop | None:
    """
    The loop with micro-batches of half as many tokens, where nobody said how many; None where that changes nothing.

    A micro-batch holds the longest sequence whole, so one that is shorter than that is no smaller.
    """
    from rlsize.planner.evaluation import longest_tokens

    stages, known = loop.stages, loop.known.train_seconds.known
    if stages is None or said.gives("micro_batch_tokens") or said.gives("micro_batch_samples") or known:
        return None
    own = stages.train.micro_batch_tokens
    if not isinstance(own, Figure) or own.number <= longest_tokens(loop.outlook.central):
        return None
    figure = replace(own, value=own.number / 2, source="the most of 16k and its halves that fit")
    said.keep(figure)
    train = replace(stages.train, micro_batch_tokens=figure)
    return replace(loop, stages=replace(stages, train=train), trainer=replace(loop.trainer, question=train))


def _sides(said: Said, loop: Loop) -> tuple[float, float]:
    """
    GPUs of both sides.

    Raises:
        Refused: The model does not fit beside its fleet.
        InputError: Nobody says how GPUs are split, and only rates are known.
    """
    found = loop.pools
    if found.shared:
        return found.gpus.number, found.gpus.number
    if found.split:
        return found.rollout.number, found.trainer.number
    if loop.stages is None or loop.known.rate.known or loop.known.train_seconds.known:
        todo = "give placement.rollout_gpus and trainer_gpus, or let `rlsize plan` choose"
        raise InputError(Fault("nobody says how the GPUs are split", "placement", todo))
    from rlsize.planner.choices import best_split
    from rlsize.planner.step_parts import ready_engine

    laid_out = _by_layout(said, loop.stages.train.gpus, found)
    if laid_out is not None:
        return laid_out
    ready_engine(loop.fleet, shared=False)
    best = best_split(loop.outlook.central, _placed(said, loop, 1.0, 1.0), found.gpus.number)
    if best is None:
        raise Refused(f"{loop.stages.train.model.name} does not fit beside its fleet on {found.gpus.number:g} GPUs")
    for key, value in (("rollout_gpus", best.rollout_gpus), ("trainer_gpus", best.trainer_gpus)):
        said.keep(Figure(key=key, value=int(value), provenance="default", source="the split that is the quickest"))
    split = f"{best.rollout_gpus:g} + {best.trainer_gpus:g}"
    said.notes.append(f"Nobody said how the GPUs are split: {split} is the quickest.")
    return best.rollout_gpus, best.trainer_gpus


def _by_layout(said: Said, own: object, found: Pools) -> tuple[float, float] | None:
    """
    GPUs of both sides where the trainer's layout says how many it takes; None where it does not.

    Raises:
        Refused: It leaves none.
    """
    if not (said.gives("fsdp") or said.gives("data_parallel")) or not isinstance(own, Figure):
        return None
    rest = found.gpus.number - own.number
    if rest < 1:
        raise Refused(f"the trainer's layout takes {own.number:g} of {found.gpus.number:g} GPUs: none are left")
    for key, value in (("rollout_gpus", rest), ("trainer_gpus", own.number)):
        said.keep(Figure(key=key, value=int(value), provenance="default", source="what the trainer's layout takes"))
    return rest, own.number
