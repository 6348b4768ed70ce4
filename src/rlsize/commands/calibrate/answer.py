"""All sources of a calibration together: their points, the calibration, and what to measure next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.commands.calibrate.sources import PHASES, Gathered, of_flags, other_mode, plan_scenario, settings
from rlsize.errors import Fault, InputError
from rlsize.estimates import stage_predictions
from rlsize.estimates.belief import prior
from rlsize.estimates.calibrating import Calibrated, Candidate, calibrated, contradiction, outlooks
from rlsize.estimates.calibration_belief import kept
from rlsize.facts.calibration import Calibration, CalibrationPoint
from rlsize.facts.records.record import Refused
from rlsize.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.estimates.calibrating import Outlook
    from rlsize.estimates.constants import Stage
    from rlsize.facts.figure import Figure
    from rlsize.facts.rates import Rates
    from rlsize.shell.inputs import Inputs

    _Offer = tuple[Candidate, tuple[Stage, ...]]

_CONCURRENCIES = (1.0, 16.0, 64.0, 256.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A calibration as a fact, and as what is believed."""

    fact: Calibration
    calibrated: Calibrated


def all_points(
    inputs: Inputs,
    rates: Sequence[tuple[str, Rates]],
    records: Sequence[str],
    heart: tuple[Mapping[str, Figure], list[tuple[float, Figure]]],
    bandwidth: Figure,
) -> Gathered:
    """
    The points of all sources.

    Args:
        inputs: Scenario and profiles.
        rates: Rates files by name.
        records: Files of records.
        heart: What flags say: times by stage, and rates by concurrency.
        bandwidth: Of the link that measured syncs went over.

    Raises:
        InputError: A point contradicts its neighbours, or nothing can be used.
    """
    found = Gathered()
    if inputs.file is not None:
        plan_scenario(inputs, found)
    if rates:
        from rlsize.commands.calibrate.rates import of_rates

        for name, one in rates:
            of_rates(inputs, found, name, one, bandwidth)
    if records:
        from rlsize.commands.calibrate.records import of_records

        for path in records:
            of_records(inputs, found, path)
    times, at = heart
    of_flags(inputs, found, at, times)
    if not found.points:
        reasons = [Fault(reason, what) for what, reason in dict.fromkeys(found.unused)]
        raise InputError(Fault("nothing that was measured can be predicted", "SOURCE"), *reasons)
    against = contradiction(found.points)
    if against is not None:
        point, reason = against
        raise InputError(Fault(f"{point.what}: {reason}", point.source, "measure it again, or leave it out"))
    return found


def calibration_of(gathered: Gathered, sources: list[str]) -> Found:
    """
    What the points say, as a file keeps it.

    Raises:
        InputError: They contradict each other beyond what constants can explain.
    """
    try:
        made = calibrated(gathered.points)
    except Refused as refusal:
        raise InputError(Fault(str(refusal), "SOURCE", "leave out what was measured on something else")) from None
    constants, directions = kept(made.before, made.after)
    return Found(
        fact=Calibration(
            made_by=VERSION,
            sources=sources,
            made_for=settings(gathered.points),
            points=[
                CalibrationPoint(
                    what=one.point.what,
                    source=one.point.source,
                    unit=one.point.unit,
                    measured=one.point.measured,
                    before=one.before,
                    after=one.after,
                    noise=one.point.spread,
                )
                for one in made.compared
            ],
            constants=constants,
            directions=directions,
        ),
        calibrated=made,
    )


def outlook(gathered: Gathered) -> tuple[str, list[Outlook]]:
    """What is to be known, and what each further measurement would do to its band; nothing where nothing is planned."""
    candidates = [*_of_step(gathered), *_of_rollout(gathered), *_of_rest(gathered)]
    if not candidates:
        return "", []
    target = candidates[0][0]
    made = calibrated(gathered.points, *(stage for _, stages in candidates for stage in stages))
    seen = gathered.seen | {point.what for point in gathered.points}
    return target.what, outlooks(made.after, target, [one for one, _ in candidates if one.what not in seen])


def _of_step(gathered: Gathered) -> list[_Offer]:
    """The step of the scenario's loop, its phases, and the same in another mode."""
    if gathered.step is None:
        return []
    stages, question = stage_predictions.STEP_STAGES, gathered.step
    noise = stages[0].noise
    found = [
        Candidate(
            what=f"{what}, {question.way.loop}", predict=stage_predictions.phase_seconds(question, field), noise=noise
        )
        for field, what in PHASES.values()
    ]
    other = other_mode(question)
    predict = stage_predictions.phase_seconds(other, "seconds")
    try:
        predict(prior(*stages).central())
    except Refused:  # that mode does not run on these GPUs
        return [(one, stages) for one in found]
    return [(one, stages) for one in (*found, Candidate(what=f"step, {other.way.loop}", predict=predict, noise=noise))]


def _of_rollout(gathered: Gathered) -> list[_Offer]:
    """Rates of an instance at some concurrencies, the planned one first."""
    if gathered.rollout is None:
        return []
    plan, wanted, stages = gathered.rollout, gathered.concurrency, stage_predictions.ROLLOUT_STAGES
    text = "as many in flight as fit" if wanted == stage_predictions.ALL_THAT_FIT else f"{wanted:g} in flight"
    levels = [(wanted, text), *((level, f"{level:g} in flight") for level in _CONCURRENCIES if level != wanted)]
    found = []
    for level, name in levels:
        try:
            predict = plan.rate(level)
        except Refused:
            return []
        found.append(Candidate(what=f"rate with {name}", predict=predict, noise=stages[0].noise))
    return [(one, stages) for one in found]


def _of_rest(gathered: Gathered) -> list[_Offer]:
    """Train step and weight sync by themselves, where they are not phases of a loop."""
    found: list[_Offer] = []
    if gathered.train is not None:
        stages = stage_predictions.TRAIN_STAGES
        predict = stage_predictions.train_alone(gathered.train)
        found.append((Candidate(what="train step by itself", predict=predict, noise=stages[0].noise), stages))
    if gathered.sync is not None and gathered.step is None:
        stages = stage_predictions.SYNC_STAGES
        predict = stage_predictions.sync_seconds(gathered.sync)
        found.append((Candidate(what="weight sync", predict=predict, noise=stages[0].noise), stages))
    return found
