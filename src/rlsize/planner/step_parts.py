"""
The parts of a placed loop's step: measured where they are known, predicted where a model is named.

The same code works out one placement as figures that explain themselves, the draws behind its bands, and arrays of
candidates: `work` and `said` decide which. Predictions are loaded only where something is predicted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.equations import agents, matching, rl_step, rollout_batch, sync_pause
from rlsize.errors import Refused
from rlsize.estimates.figures import bare
from rlsize.estimates.flow import Flow
from rlsize.estimates.remembered import remembered
from rlsize.estimates.step_assembly import OVERLAPPING, REFILLING, LateRule, LoopParts
from rlsize.facts.calibration import OwnPhase
from rlsize.planner.rounding import rounded_down
from rlsize.rules.phases import MEASURED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.estimates.async_cycle import Cycle
    from rlsize.estimates.figures import Worked
    from rlsize.estimates.generation import LateLengths
    from rlsize.estimates.rollout_prediction import Replica
    from rlsize.planner.options import FleetOption, Placement, TrainerOption
    from rlsize.planner.outlook import Terms


@remembered
def loop_parts(terms: Terms, place: Placement) -> LoopParts:
    """
    The parts of a step.

    Raises:
        Refused: The loop cannot run so.
    """
    fleet = fleet_parts(terms, place, shared=place.shared)
    trained = trainer_parts(terms, place.trainer, place.trainer_gpus)[place.shared]
    lent = lent_parts(terms, place, fleet.seconds) if place.loop == "hybrid" else (0.0, 0.0)
    return together(terms, place, fleet, trained, sync_part(terms, place), lent)


def together(
    terms: Terms,
    place: Placement,
    fleet: FleetParts,
    trained: tuple[Worked, Worked],
    sync_seconds: Worked,
    lent: tuple[Worked, Worked],
) -> LoopParts:
    """
    The parts of a step from those of its sides.

    Args:
        terms: In which the step is worked out.
        place: The placement.
        fleet: What the fleet takes.
        trained: Time of the update, and of the extra forward passes. [s]
        sync_seconds: Of weight syncs, what falls on a step. [s]
        lent: What lent GPUs generate over what the fleet does, and the time in which they change over.
    """
    shares = unevenness(terms)
    if fleet.taken is not None:
        quicker = {"taken_share": fleet.taken}
        trained = (
            terms.work("update_seconds", agents.quicker_training, seconds=trained[0], **quicker),
            terms.work("logprob_seconds", agents.quicker_training, seconds=trained[1], **quicker),
        )
    if terms.problem.rolling and place.loop in OVERLAPPING:  # the fleet pauses, and the trainer does not wait for it
        pause = {"update_seconds": fleet.seconds, "forward_seconds": sync_seconds}
        fleet = fleet.taking(terms.work("generation_seconds", rl_step.trainer_phase, **pause))
        shares["exposed_share"] = 0.0
    return LoopParts(
        loop=place.loop,
        generation_seconds=fleet.seconds,
        tail_seconds=fleet.tail,
        update_seconds=trained[0],
        logprob_seconds=trained[1],
        sync_seconds=sync_seconds,
        overhead_seconds=overhead_part(terms, shared=place.shared),
        lent_ratio=lent[0],
        swap_seconds=lent[1],
        dropped_fraction=fleet.dropped,
        cycle=fleet.cycle,
        rule=late_rule(terms, place, fleet),
        **shares,
    )


def late_rule(terms: Terms, place: Placement, fleet: FleetParts) -> LateRule | None:
    """
    What a loop that refills drops as too late; None where it drops nothing, or nobody knows how its samples end.

    Args:
        terms: In which the step is worked out.
        place: The placement.
        fleet: What the fleet takes.
    """
    drops = place.loop in REFILLING and terms.problem.late_rule(place.loop) == "drop"
    return LateRule(fleet.sample_seconds, place.max_staleness, fleet.lengths) if drops and fleet.lengths else None


def unevenness(terms: Terms) -> dict[str, Any]:
    """How far phases vary and syncs are hidden: known of published loops; steady phases where only rates are known."""
    if not terms.problem.predicted:
        return {"variation": None, "exposed_share": 1.0}
    measured = terms.problem.sync_seconds.known  # what was measured is the pause itself
    share = 1.0 if measured else terms.values["step_sync_exposed"]
    return {"variation": terms.values["step_variation"], "exposed_share": share}


def generated_samples(terms: Terms) -> Worked:
    """Samples that are generated for a step, those that are thrown away included."""
    return Flow(MEASURED, terms.known, terms.work)["generated_samples"]


class FleetParts(NamedTuple):
    """
    What a fleet takes for a step's samples within the loop.

    Args:
        seconds: Time in which it generates them. [s]
        tail: What of it the longest sample adds. [s]
        sample_seconds: Time of the mean sample of a loop that refills; 0 for others. [s]
        dropped: Share of generated tokens that a barrier drops. [1]
        cycle: What the time between two syncs is by that of the trainer; None where it does not hang on samples.
        taken: Mean length of the samples that are trained on over that of all; None where these are all. [1]
        lengths: With refill, those of samples, what they wait for outside the GPUs among them; None where not known.
    """

    seconds: Any
    tail: Any = 0.0
    sample_seconds: Any = 0.0
    dropped: Any = 0.0
    cycle: Cycle | None = None
    taken: Any = None
    lengths: LateLengths | None = None

    def each(self, change: Callable[[Any], Any]) -> FleetParts:
        """The same, each of its numbers changed."""
        numbers = {key: value for key, value in self._asdict().items() if not isinstance(value, tuple)}
        plain = {key: change(value) for key, value in numbers.items() if value is not None}
        cycle = None if self.cycle is None else self.cycle.each(change)
        lengths = None if self.lengths is None else self.lengths.each(change)
        return FleetParts(**plain, cycle=cycle, lengths=lengths)

    def taking(self, seconds: Any) -> FleetParts:  # noqa: ANN401 (as `seconds`)
        """The same fleet where it takes so long; its cycles are as much longer."""
        longer, before = map(bare, (seconds, self.seconds))
        factor = rollout_batch.share_of(part=longer, whole=before)
        cycle = None if self.cycle is None else self.cycle.slowed(factor)
        return self._replace(seconds=seconds, cycle=cycle)


def fleet_parts(terms: Terms, place: Placement, *, shared: bool) -> FleetParts:
    """
    What the fleet takes for a step's samples.

    Raises:
        Refused: The instance does not fit, or cannot run.
    """
    if place.fleet.rate.known:
        return _at_known_rate(terms, place, shared=shared)
    from rlsize.planner.predicted_parts import predicted_fleet

    made = predicted_fleet(terms, place, ready_engine(place.fleet, shared=shared))
    made = made.taking(_with_own(terms, "generation", made.seconds))
    available = terms.problem.available
    if available.known and available.number < 1.0 and not shared:  # the trainer's own GPUs are protected
        longer = terms.work(
            "generation_seconds",
            rollout_batch.fleet_time,
            samples=1.0,
            response_tokens=made.seconds,
            instances=1.0,
            instance_rate=terms.said(available),
        )
        return made.taking(longer)
    return made


def _at_known_rate(terms: Terms, place: Placement, *, shared: bool) -> FleetParts:
    """A fleet as fast as somebody measured; its samples end as those of its engine do, where that is known."""
    rate = {"instance_tokens_per_second": terms.said(place.fleet.rate), "instances": place.instances}
    known = terms.known | rate | ({"available_fraction": 1.0} if shared else {})
    seconds = Flow(MEASURED, known, terms.work)["generation_seconds"]
    engine = described(terms, place, shared=shared)
    if engine is None:
        return FleetParts(seconds)
    from rlsize.planner.predicted_parts import shaped_fleet

    return shaped_fleet(terms, place, engine, seconds)


def described(terms: Terms, place: Placement, *, shared: bool) -> Replica | None:
    """The engine that says how samples of a known rate end; None where nobody knows, or tools come between."""
    known = terms.problem.predicted and terms.problem.agents is None
    return place.fleet.ready(shared=shared) if known else None


def ready_engine(fleet: FleetOption, *, shared: bool) -> Replica:
    """
    The instance.

    Raises:
        Refused: There is none, with the reason.
    """
    found = fleet.ready(shared=shared)
    if found is None:
        raise Refused(str(fleet.engines.get(shared, "no engine is known")))
    return found


def trainer_parts(terms: Terms, trainer: TrainerOption, gpus: Worked) -> dict[bool, tuple[Worked, Worked]]:
    """
    Time of the update, and of the extra forward passes, within the loop: on GPUs of its own (False), and on shared.

    Raises:
        Refused: The trainer cannot be spread so.
    """
    if not trainer.seconds.known and trainer.question is not None:
        from rlsize.planner.predicted_parts import predicted_trainer

        found = predicted_trainer(terms, trainer.question, gpus)
        return {
            own: (_with_own(terms, "update", update), _with_own(terms, "logprob", forwards))
            for own, (update, forwards) in found.items()
        }
    measured = {"train_seconds": terms.said(trainer.seconds), "measured_gpus": terms.said(trainer.measured_gpus)}
    update = Flow(MEASURED, {**measured, "trainer_gpus": gpus}, terms.work)["update_seconds"]
    return dict.fromkeys((False, True), (update, 0.0))


def sync_part(terms: Terms, place: Placement) -> Worked:
    """Seconds of weight syncs that fall on one step."""
    work, problem = terms.work, terms.problem
    if problem.sync_seconds.known:
        seconds = terms.said(problem.sync_seconds)
    elif problem.model is not None:
        from rlsize.planner.predicted_parts import predicted_sync

        seconds = _with_own(terms, "sync", predicted_sync(terms, place, shared=place.shared))
    else:
        return 0.0
    return work(
        "sync_seconds", sync_pause.sync_seconds_per_step, exposed_sync_seconds=seconds, sync_every=problem.sync_every
    )


def overhead_part(terms: Terms, *, shared: bool) -> Worked:
    """What belongs to no phase: as said, or of published loops; where only rates are known, changing over beside it."""
    problem = terms.problem
    known = terms.said(problem.overhead_seconds) if problem.overhead_seconds.known else None
    if problem.model is None:
        swap = terms.said(problem.swap_seconds) if shared else 0.0
        both = {"update_seconds": swap, "forward_seconds": known}
        return swap if known is None else terms.work("overhead_seconds", rl_step.trainer_phase, **both)
    if known is not None:
        return known
    from rlsize.estimates.step_prediction import overhead_in_loop

    return _with_own(terms, "overhead", overhead_in_loop(terms.work, generated_samples(terms), terms.values))


def _with_own(terms: Terms, phase: str, seconds: Worked) -> Worked:
    """A predicted phase as a run that was measured has it."""
    run = terms.problem.run
    if run is None:
        return seconds
    from rlsize.estimates.run_twin import DRIFTS

    own = next((one for one in run.own if one.phase == phase), OwnPhase(phase=phase))
    tokens = {"tokens": terms.problem.step_tokens, "measured_tokens": run.tokens}
    drift = terms.values[DRIFTS[phase]] if phase in DRIFTS else 1.0
    return terms.work(
        f"{phase}_seconds",
        rl_step.own_phase,
        model_seconds=seconds,
        factor=own.factor,
        drift=drift,
        again=terms.values["step_generation_again"] if phase == "generation" and own.measured else 1.0,
        own_seconds=_own_time(terms, own, seconds, tokens) if own.seconds else 0.0,
        **tokens,
    )


def _own_time(terms: Terms, own: OwnPhase, seconds: Worked, tokens: Mapping[str, float]) -> Worked:
    """What a run has of its own in a phase that is predicted so now."""
    if not own.grows:
        growth, quickened, quickening = terms.values["step_wait_growth"], 1.0, 0.0
    else:
        was = own.explained / tokens["measured_tokens"]
        growth, quickening = terms.values["step_own_growth"], terms.values["step_own_quickening"]
        now = terms.work("token_seconds", rollout_batch.share_of, part=seconds, whole=tokens["tokens"])
        quickened = terms.work("quickened", rollout_batch.share_of, part=now, whole=was) if was else 1.0
    return terms.work(
        "own_seconds",
        rl_step.own_time,
        own_seconds=own.seconds,
        token_exponent=growth,
        quickened=quickened,
        speed_exponent=quickening,
        **tokens,
    )


def lent_parts(terms: Terms, place: Placement, generated: Worked) -> tuple[Worked, Worked]:
    """
    What lent trainer GPUs generate over what the fleet does, and the time in which they change over, both ways.

    Lent GPUs load the weights as colocated engines do; giving the memory back takes no longer than that.

    Raises:
        Refused: No instance fits beside the trainer.
    """
    if place.fleet.gpu != place.trainer.gpu:
        raise Refused(f"{place.trainer.gpu} trainer GPUs cannot be lent to instances on {place.fleet.gpu}")
    shared = replace(place, instances=lent_instances(place))
    alone = fleet_parts(terms, shared, shared=True)
    ratio = terms.work("lent_ratio", rollout_batch.share_of, part=generated, whole=alone.seconds)
    return ratio, lent_swap(terms, shared)


def lent_swap(terms: Terms, place: Placement) -> Worked:
    """Seconds in which lent GPUs change over: predicted as a colocated sync, or given."""
    if terms.problem.predicted:
        from rlsize.planner.predicted_parts import predicted_sync

        return predicted_sync(terms, place, shared=True)
    return terms.said(terms.problem.swap_seconds)


def lent_instances(place: Placement) -> float:
    """
    Instances that the trainer's GPUs make while they are lent.

    Raises:
        Refused: They do not make one.
    """
    found = rounded_down(matching.instances_of(gpus=place.trainer_gpus, gpus_per_instance=place.fleet.gpus))
    if found < 1:
        raise Refused(f"{place.trainer_gpus:g} trainer GPUs cannot be lent: an instance takes {place.fleet.gpus:g}")
    return float(found)
