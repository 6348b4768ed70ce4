"""
What both sides of a loop do, for questions about how they match: said, measured, of the loop, or of a stage alone.

Nothing heavy is loaded unless a model and its GPUs are named, so that answers from flags alone stay quick.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.equations import matching, rollout_batch
from rlsize.errors import InputError, Refused
from rlsize.estimates.figures import Draw, apply
from rlsize.facts.figure import Figure, absent
from rlsize.facts.headroom import FULL_HEADROOM
from rlsize.loop.instance_count import instance_gpus
from rlsize.loop.plausible import judge
from rlsize.loop.pools import two_pools
from rlsize.loop.rates import busy_seconds, consumed, instance_rate
from rlsize.loop.seed import random_for, seed_of
from rlsize.loop.workload import batch_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.rollout_question import RolloutQuestion
    from rlsize.loop.resolve import Loop
    from rlsize.loop.said import Said
    from rlsize.planner.evaluation import Evaluation

IN_LOOP_RATE = "instance_in_loop_tokens_per_second"
"""The rate of an instance within a loop: what its fleet generates in a step, over generation time and instances."""

_EIGHTY = 2 * 1.2815515655446004  # standard deviations between the ends of an 80 % interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """
    What both sides of a loop do.

    Args:
        batch: Response tokens per optimizer step. [token]
        train_seconds: Busy trainer seconds of a step. [s]
        consumption: Response tokens trained per second. [token/s]
        rate: Response tokens per second of one instance. [token/s]
        headroom: Derating of that rate. [1]
        loop: The loop, where enough is said for one.
        found: What it gives.
        reasons: Why the rate of a side is not predicted, by `rate` and `train`.
        leaves: Results of the loop that rates follow from, by key.
    """

    batch: Figure
    train_seconds: Figure
    consumption: Figure
    rate: Figure
    headroom: Figure
    loop: Loop | None
    found: Evaluation | None
    reasons: Mapping[str, str]
    leaves: Mapping[str, Figure]

    @property
    def trainer_gpus(self) -> Figure | None:
        """GPUs of the loop's trainer; None where there is no loop."""
        return None if self.found is None else self.found.results["trainer_gpus"]

    @property
    def bound(self) -> str:
        """What the loop's step does not hold, in words; empty where it holds all."""
        return "" if self.loop is None else self.loop.bound

    @property
    def turns(self) -> str:
        """The mode of a loop whose sides take turns, so that neither waits for the other's rate; else empty."""
        mode = "" if self.loop is None else self.loop.pools.loop
        return mode if mode in {"colocated", "synchronous"} else ""

    def draws(self, said: Said, question: object) -> Random | tuple[Draw, ...] | None:
        """The draws behind the bands of a question about them: those of the loop, where they follow from it."""
        if self.loop is not None and self.leaves:
            return joint_draws(self.loop, self.leaves)
        return random_for(said, question)


def sides(said: Said, *, full: float = FULL_HEADROOM, needed: bool = True) -> Sides:
    """
    What both sides of a loop do; faults are noted.

    Args:
        said: What was said.
        full: The headroom of a rate that holds nothing of it.
        needed: Whether both rates are needed; rates of one GPU do not stand in for them then.

    Raises:
        InputError: The loop that is described is wrong.
        Refused: It cannot run.
    """
    refuse_wall_clock(said)
    said.load_rates()
    loop, found = described_loop(said, judged=said.by_flag("instances"))
    batch, train = batch_tokens(said), busy_seconds(said)
    consumption = consumed(said, batch, train)
    rate, headroom = instance_rate(said, full=full)
    reasons = dict.fromkeys(("rate", "train"), _hint(said))
    leaves: dict[str, Figure] = {}
    lacks_train = not (train.known or consumption.known)
    if loop is not None and found is not None:
        leaves = _leaves(said, loop, found, rate=not rate.known, train=lacks_train)
        rate = said.keep(_loops_rate(loop, leaves["generation_seconds"])) if "generation_seconds" in leaves else rate
        train = said.keep(leaves["train_seconds"]) if "train_seconds" in leaves else train
    else:
        if needed or not said.gives("rollout_gpu_tokens_per_second"):
            rate, reasons["rate"] = alone(said, rate, instance_alone)
        if lacks_train and batch.known and (needed or not said.gives("trainer_gpu_tokens_per_second")):
            train, reasons["train"] = alone(said, train, trainer_alone)
    if not consumption.known:
        consumption = consumed(said, batch, train)
    if needed and not (loop is not None and loop.refused):
        _need(said, rate, consumption, reasons)
    if loop is not None:
        if headroom != loop.known.headroom:
            said.drop("headroom")
        headroom = said.keep(loop.known.headroom)
        if loop.refused:
            raise Refused(loop.refused)
    return Sides(
        batch=batch,
        train_seconds=train,
        consumption=consumption,
        rate=rate,
        headroom=headroom,
        loop=loop,
        found=found,
        leaves=leaves,
        reasons=reasons,
    )


def _leaves(said: Said, loop: Loop, found: Evaluation, *, rate: bool, train: bool) -> dict[str, Figure]:
    """What is asked of a loop's results, as inputs."""
    wanted = {"generation_seconds": rate, "train_seconds": train}
    keys = [key for key, asked in wanted.items() if asked and key in found.results]
    return {key: loops_own(said, loop, found.results[key]) for key in keys}


def instance_size(said: Said, both: Sides | None = None) -> Figure:
    """GPUs of one instance: the loop's, said, or those of the rates file."""
    if both is not None and both.loop is not None:
        return Figure(key="gpus_per_instance", value=both.loop.fleet.gpus, source="the loop's instance")
    return instance_gpus(said)


def fleet_gpus(said: Said, both: Sides | None = None) -> Figure:
    """GPUs that generate: those of the fleet, or what the trainer leaves of all."""
    if both is not None and both.loop is not None and both.loop.place is not None:
        return Figure(key="rollout_gpus", value=both.loop.place.rollout_gpus, source="the loop's fleet")
    own = said.ask("rollout_gpus")
    return own if own.known else two_pools(said)[1]


def described_loop(said: Said, *, judged: bool = False) -> tuple[Loop | None, Evaluation | None]:
    """
    The loop, and what it gives, where enough is said for one.

    Args:
        said: What was said.
        judged: Whether the instances that a flag says are a count to judge: the loop is the one that stands beside it.

    Raises:
        InputError: What was said of it is wrong.
    """
    if not said.gives("model"):
        return None, None
    from rlsize.loop.answer import answer_of
    from rlsize.loop.resolve import described, resolve

    if not described(said):
        return None, None
    asked = said.instead(instances=None) if judged else said
    notes, warnings = len(asked.notes), len(asked.warnings)
    loop = resolve(asked)
    _judge_known(said, loop)
    if judged:
        said.used.update({key: figure for key, figure in asked.used.items() if key != "instances"})
        said.notes += asked.notes[notes:]
        said.warnings += asked.warnings[warnings:]
    return loop, answer_of(loop, batches=False)


def _judge_known(said: Said, loop: Loop) -> None:
    """Refuse rates that were said or measured and that no GPU can do."""
    known, key = loop.known, "consumption_tokens_per_second"
    trained = apply(key, matching.consumption, tokens_per_step=known.batch, train_seconds=known.train_seconds)
    of_train = said.used[key].source if key in said.used else known.train_seconds.source
    judge(said, "trainer", replace(trained, source=of_train), known.measured_gpus, "the trainer's consumption")
    judge(said, "rollout", known.rate, known.size, "an instance's rate")


def refuse_wall_clock(said: Said) -> None:
    """Note a fault where a wall clock is given to a question that needs busy time."""
    if said.gives("step_seconds"):
        what = "is the wall clock of a step, with waiting and sync in it, and this needs the trainer's busy time"
        said.fault(what, said.flag("step_seconds"), "give --train-seconds, the busy trainer seconds per step")


def leaf(figure: Figure, source: str) -> Figure:
    """A result as an input of another question: a number with a spread that its band tells."""
    deviation = figure.deviation
    if figure.band is not None and figure.band[0] > 0:
        spread = math.log(figure.band[1] / figure.band[0]) / _EIGHTY
        deviation = figure.number * math.sqrt(math.expm1(spread**2))
    return Figure(
        key=figure.key,
        value=figure.value,
        provenance=figure.provenance,
        source=source,
        band=figure.band,
        deviation=deviation,
        least=0.0,
    )


def joint_draws(loop: Loop, leaves: Mapping[str, Figure]) -> tuple[Draw, ...]:
    """
    The joint draws behind a loop's bands, for questions that follow from its results.

    Args:
        loop: A loop that can run.
        leaves: Its results as inputs, by the key that they have among them.
    """
    from rlsize.planner.evaluation import worked

    if loop.place is None:
        return ()
    found = worked(loop.outlook.drawn, loop.place, loop.outlook.noise(loop.place))
    joint = []
    for index, draw in enumerate(loop.outlook.joint.joint):
        own = draw.copied()
        for key, figure in leaves.items():
            values = found[key]
            value = float(values[index]) if getattr(values, "ndim", 0) else float(values)
            own.roots[figure.key, figure.source, figure.number] = value
        joint.append(own)
    return tuple(joint)


def loops_own(said: Said, loop: Loop, figure: Figure) -> Figure:
    """A result of the loop as an input, with a spread; that it is predicted is noted once."""
    if loop.stages is None:
        return figure
    setting = loop.stages.setting
    return leaf(figure, f"of the loop as it is stated, {setting.model} on {setting.gpu}; {_trust(said)}")


def _trust(said: Said) -> str:
    calibration, _ = said.name("calibration")
    trust = f"calibrated by {calibration}" if calibration else "uncalibrated"
    note = (
        f"Rates that nobody gave are predicted, {trust}: `rlsize predict` builds them up, a measurement replaces them."
    )
    if note not in said.notes:
        said.notes.append(note)
    return trust


def _loops_rate(loop: Loop, seconds: Figure) -> Figure:
    """The rate of an instance within the loop, tails of batches and all, by the time in which its fleet generates."""
    problem, count = loop.problem, 0.0 if loop.place is None else loop.place.instances
    waste = {"tokens_generated_per_trained_token": problem.waste}
    many = apply("generated_samples", matching.required_supply, consumption=problem.samples, **waste)
    made = {"samples": many, "response_tokens": problem.response_tokens, "seconds": seconds}
    fleet = apply("fleet_tokens_per_second", rollout_batch.batch_rate, **made)
    instances = Figure(key="instances", value=count, source="the loop's")
    return apply(IN_LOOP_RATE, matching.rate_per_gpu, rate=fleet, gpus=instances)


def _hint(said: Said) -> str:
    """How to get a prediction instead."""
    from rlsize.loop.resolve import lacked

    lacks = lacked(said) if said.gives("model") else ()
    instead = f"give {', '.join(lacks)}" if lacks else "name a scenario with model, GPU and lengths"
    return f"; or {instead}, for a prediction"


def alone(said: Said, known: Figure, predict: Callable[[Said], Figure]) -> tuple[Figure, str]:
    """
    What a stage does by itself, where nobody says.

    Args:
        said: What was said.
        known: The figure as it is known.
        predict: What predicts it otherwise: `instance_alone` or `trainer_alone`.

    Returns:
        The figure, and what to add to a message that asks for it: why it is not predicted.
    """
    if known.known:
        return known, ""
    if not (said.gives("model") and any(map(said.gives, ("gpu", "cluster", "rollout_gpu", "trainer_gpu")))):
        return known, _hint(said)
    from rlsize.errors import Refused

    asked = said.apart()
    try:
        found = predict(asked)
    except InputError as error:
        told = "; ".join(f"{one.what} ({one.where})" if one.where else one.what for one in error.faults)
        return known, f"; it is not predicted, as {told}"
    except Refused as refusal:
        return known, f"; it is not predicted, as {refusal}"
    for key, figure in asked.used.items():
        said.used.setdefault(key, figure)
    said.notes += [note for note in asked.notes if note not in said.notes]
    names = " on ".join(str(asked.used[key].value) for key in ("model", "gpu") if key in asked.used)
    return said.keep(leaf(found, f"by itself, {names}; {_trust(said)}")), ""


def instance_alone(said: Said) -> Figure:
    """
    Response tokens per second of an instance that is kept full.

    Raises:
        InputError: What is missing, or wrong.
        Refused: It does not fit.
    """
    from rlsize.errors import Refused
    from rlsize.estimates.engine_memory import check_room
    from rlsize.estimates.rollout_outlook import STAGES, rollout_outlook
    from rlsize.estimates.rollout_prediction import engine
    from rlsize.estimates.rollout_question import mean_lengths
    from rlsize.loop.instance import instance
    from rlsize.loop.lengths import lengths
    from rlsize.loop.resolve import load

    model, gpu = said.model(), said.gpu("rollout")
    one, length = instance(said, model, gpu, shared=False), lengths(said, model)
    said.need(length.response, "give the mean response length")
    said.settle()
    if one is None or model is None:
        raise Refused("the model or its GPU is not known")
    belief = said.belief(*STAGES)
    question = replace(load(said, one.question, length, absent("samples_per_step", "--samples")), ending="refill")
    if not one.stated:
        nobody = absent("rollout_gpus", "--rollout-gpus")
        question = replace(question, engine=sized(said, question, belief.central(), nobody))
    ready = engine(question.engine)
    check_room(ready.question, mean_lengths(question).live, belief.central())
    return rollout_outlook(question, ready, belief, seed_of(said)).figure("instance_tokens_per_second")


def sized(said: Said, question: RolloutQuestion, values: Mapping[str, float], fleet: Figure) -> EngineQuestion:
    """
    An instance by itself on as many GPUs as suit it, where nobody said how many: as in a loop where its fleet is known.

    Args:
        said: What was said; the choice is noted there.
        question: The instance and its load; its own degree does not matter.
        values: Central values of the constants.
        fleet: GPUs that generate; may be absent. [1]

    Raises:
        Refused: A number type that the GPU lacks.
    """
    from rlsize.estimates.rollout_question import A_FEW, usual_degree
    from rlsize.loop.instance import QUICKEST_SIZE, degrees
    from rlsize.planner.choices import quickest_degree

    possible = degrees(question.engine.model)
    if question.samples_per_step.known and fleet.known:
        source = QUICKEST_SIZE
        degree = quickest_degree(question, possible, fleet.number, values)
    else:
        source = f"as few GPUs as hold the model and {A_FEW} samples"
        degree = usual_degree(question, possible, values)
    tensor = degree or possible[-1]
    said.keep(Figure(key="rollout_tensor_parallel", value=tensor, provenance="default", source=source))
    return replace(question.engine, layout=replace(question.engine.layout, tensor=tensor))


def trainer_alone(said: Said) -> Figure:
    """
    Busy seconds of a trainer by itself.

    Raises:
        InputError: What is missing, or wrong.
    """
    from rlsize.estimates.constants_train import STAGE
    from rlsize.estimates.train_outlook import predicted_train_step
    from rlsize.loop.trainer import trainer_by_itself

    question = trainer_by_itself(said)
    return predicted_train_step(question, said.belief(STAGE), seed_of(said)).results[0]


def _need(said: Said, rate: Figure, consumption: Figure, reasons: dict[str, str]) -> None:
    """What is missing, how to give it, and why it is not predicted."""
    if not consumption.known and not said.faults:
        todo = f"give --consume, or --batch-tokens with --train-seconds{reasons['train']}"
        said.fault("the trainer's consumption is missing", "--consume", todo)
    if not rate.known and not said.rates_failed:
        todo = "give --per-instance: a number, or a rates file from `rlsize observe --save`"
        said.need(rate, f"{todo}{reasons['rate']}")
