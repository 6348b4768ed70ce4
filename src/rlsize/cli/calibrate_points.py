"""All sources of a calibration together: their points, the calibration, and what to measure next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlsize.cli.calibrate_sources import Gathered, of_flags, plan_scenario, settings
from rlsize.errors import Fault, InputError
from rlsize.estimates import planned
from rlsize.estimates.calibrating import Calibrated, Candidate, calibrated, contradiction, outlooks
from rlsize.estimates.calibration_belief import kept
from rlsize.facts.calibration import Calibration, CalibrationPoint
from rlsize.facts.records.base import Refused
from rlsize.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.cli.inputs import Inputs
    from rlsize.estimates.calibrating import Outlook
    from rlsize.facts.figure import Figure
    from rlsize.facts.rates import Rates

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
        inputs: Flags, scenario and profiles.
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
        from rlsize.cli.calibrate_rates import of_rates

        for name, one in rates:
            of_rates(inputs, found, name, one, bandwidth)
    if records:
        from rlsize.cli.calibrate_records import of_records

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
    candidates = _candidates(gathered)
    if not candidates:
        return "", []
    target = candidates[0][0]
    made = calibrated(gathered.points, *(stage for _, stages in candidates for stage in stages))
    return target.what, outlooks(made.after, target, [one for one, _ in candidates])


def _candidates(gathered: Gathered) -> list[tuple[Candidate, tuple[Any, ...]]]:
    """What could be measured of the plans, the target first."""
    found: list[tuple[Candidate, tuple[Any, ...]]] = []
    if gathered.rollout is not None:
        plan, wanted = gathered.rollout, gathered.concurrency
        text = "all that fit" if wanted == planned.ALL_THAT_FIT else f"{wanted:g}"
        levels = [(wanted, text), *((level, f"{level:g}") for level in _CONCURRENCIES if level != wanted)]
        for level, name in levels:
            try:
                predict = plan.rate(level)
            except Refused:
                break
            noise = planned.ROLLOUT_STAGES[0].noise
            one = Candidate(what=f"rate at {name} in flight", predict=predict, noise=noise)
            found.append((one, planned.ROLLOUT_STAGES))
    if gathered.train is not None:
        noise = planned.TRAIN_STAGES[0].noise
        step = Candidate(what="train step", predict=planned.train_seconds(gathered.train), noise=noise)
        found.append((step, planned.TRAIN_STAGES))
    if gathered.sync is not None:
        noise = planned.SYNC_STAGES[0].noise
        sync = Candidate(what="weight sync", predict=planned.sync_seconds(gathered.sync), noise=noise)
        found.append((sync, planned.SYNC_STAGES))
    return found
