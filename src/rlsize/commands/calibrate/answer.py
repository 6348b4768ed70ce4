"""All sources of a calibration together: their points, the calibration, and what to measure next."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.commands.calibrate.points import PHASES, Gathered, other_mode, phase_of, rate_of, sync_of, train_of
from rlsize.errors import Fault, InputError
from rlsize.estimates.calibrating import Calibrated, Measurable, calibrated, contradiction, outlooks
from rlsize.estimates.calibration_belief import kept
from rlsize.facts.calibration import Calibration, CalibrationPoint, CalibrationSetting
from rlsize.facts.records.record import Refused
from rlsize.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from rlsize.commands.calibrate.run import Run
    from rlsize.estimates.calibrating import Outlook
    from rlsize.facts.figure import Figure
    from rlsize.facts.rates import Rates
    from rlsize.shell.inputs import Inputs

    Heart: TypeAlias = tuple[Sequence[tuple[float, Figure]], Mapping[str, Figure]]

_CONCURRENCIES = (1.0, 16.0, 64.0, 256.0)


def all_points(
    inputs: Inputs, rates: Sequence[tuple[str, Rates]], paths: Sequence[str], heart: Heart, way: Figure, run: Run | None
) -> Gathered:
    """
    The points of all sources.

    Args:
        inputs: Scenario and profiles.
        rates: Rates files by name.
        paths: Files of records.
        heart: What flags say: rates by concurrency, and times by stage.
        way: Of the link that measured syncs went over.
        run: The run whose logs were named.

    Raises:
        InputError: A point contradicts its neighbours, or nothing can be used.
    """
    found = Gathered()
    if inputs.file is not None:
        found.plan(inputs)
    if run is not None:
        run.gather(found)
    if rates:
        from rlsize.commands.calibrate.rates import of_rates

        for name, one in rates:
            of_rates(inputs, found, name, one, way)
    if paths:
        from rlsize.commands.calibrate.records import of_records

        for path in paths:
            of_records(inputs, found, path)
    found.add_flags(inputs, *heart)
    if not found.points and run is None:
        reasons = [Fault(reason, what) for what, reason in dict.fromkeys(found.unused)]
        raise InputError(Fault("nothing that was measured can be predicted", "SOURCE"), *reasons)
    against = contradiction(found.points)
    if against is not None:
        point, reason = against
        raise InputError(Fault(f"{point.of.what}: {reason}", point.source, "measure it again, or leave it out"))
    return found


def calibration_of(gathered: Gathered, sources: list[str]) -> tuple[Calibration, Calibrated]:
    """
    What the points say, as a file keeps it, and as what is believed.

    Raises:
        InputError: They contradict each other beyond what constants can explain.
    """
    try:
        made = calibrated(gathered.points)
    except Refused as refusal:
        raise InputError(Fault(str(refusal), "SOURCE", "leave out what was measured on something else")) from None
    constants, directions = kept(made.before, made.after)
    settings = dict.fromkeys(point.of.setting for point in gathered.points)
    fact = Calibration(
        made_by=VERSION,
        sources=sources,
        made_for=[one for one in settings if one != CalibrationSetting()],
        points=[
            CalibrationPoint(
                what=one.point.of.what,
                source=one.point.source,
                unit=one.point.of.unit,
                measured=one.point.measured,
                before=one.before,
                after=one.after,
                noise=one.point.spread,
            )
            for one in made.compared
        ],
        constants=constants,
        directions=directions,
    )
    return fact, made


def outlook(gathered: Gathered) -> tuple[str, list[Outlook]]:
    """What is to be known, and what each further measurement would do to its band; nothing where nothing is planned."""
    candidates = [*_of_step(gathered), *_of_rollout(gathered)]
    if gathered.train is not None:
        candidates.append(replace(train_of(gathered.train), what="train step by itself"))
    if gathered.sync is not None and gathered.step is None:
        candidates.append(replace(sync_of(gathered.sync), what="weight sync"))
    if not candidates:
        return "", []
    made = calibrated(gathered.points, *(stage for one in candidates for stage in one.stages))
    seen = gathered.seen | {point.of.what for point in gathered.points}
    return candidates[0].what, outlooks(made.after, candidates[0], [one for one in candidates if one.what not in seen])


def _of_step(gathered: Gathered) -> list[Measurable]:
    """The step of the scenario's loop, its phases, and the same in another mode."""
    if gathered.step is None:
        return []
    found = [phase_of(gathered.step, phase) for phase in PHASES]
    other = phase_of(other_mode(gathered.step), "step")
    silent = Gathered()  # that mode may not run on these GPUs
    return [*found, other] if silent.tried(other.what, lambda: other.central) is not None else found


def _of_rollout(gathered: Gathered) -> list[Measurable]:
    """Rates of an instance at some concurrencies, the planned one first."""
    one = gathered.rollout
    if one is None:
        return []
    try:
        return [rate_of(one, level) for level in dict.fromkeys((gathered.concurrency, *_CONCURRENCIES))]
    except Refused:
        return []
