"""Records of runs as points of a calibration, in the form that `rlsize validate` grades."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError
from rlsize.estimates.belief import prior
from rlsize.estimates.calibrating import Point
from rlsize.estimates.recorded import registry
from rlsize.facts.calibration import CalibrationSetting
from rlsize.facts.records.base import Refused
from rlsize.readers.records.listing import profiles_of, read_records
from rlsize.verdicts.predictions import asked, positive

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlsize.cli.calibrate_sources import Gathered
    from rlsize.cli.inputs import Inputs
    from rlsize.estimates.recorded.base import Profiles
    from rlsize.estimates.recorded.registry import Predictor
    from rlsize.facts.records.base import Record

_UNITS = {"_time_s": "s", "_ms": "ms", "_pct": "%"}  # by the end of a field's name


def of_records(inputs: Inputs, found: Gathered, path: str) -> None:
    """
    Points of a file of records.

    Args:
        inputs: Profiles.
        found: Takes the points.
        path: The file.

    Raises:
        InputError: A record contradicts its neighbours.
    """
    listing = read_records([path], inputs.catalogue)
    known, look_up = registry.predictors(), profiles_of(inputs.catalogue)
    found.unused += [(row.id, row.reason) for row in listing.refused]
    for class_name in dict.fromkeys(entry.class_name for entry in listing.records):
        records = [entry.record for entry in listing.records if entry.class_name == class_name]
        if class_name not in known:
            found.unused += [(record.id, "nothing predicts records of its class") for record in records]
            continue
        predictor = known[class_name]
        _agree(predictor, records, path)
        for record in records:
            profiles = found.tried(record.id, lambda one=record: look_up(one))  # type: ignore[misc]  # bound now
            if profiles is not None:
                found.points += [one for one in _points(predictor, record, profiles, path) if _predictable(found, one)]


def _agree(predictor: Predictor, records: Sequence[Record], path: str) -> None:
    for place, reason in registry.contradictions(predictor, records).items():
        what = f"{records[place].id} contradicts its neighbours: {reason}"
        raise InputError(Fault(what, path, "measure it again, or leave it out"))


def _points(predictor: Predictor, record: Record, profiles: Profiles, path: str) -> list[Point]:
    """The measured fields that a calibration of its class uses."""

    def predict(name: str) -> Callable[[Mapping[str, Any]], Any]:
        return lambda values: asked(predictor, record, profiles, values)[name]

    return [
        Point(
            what=f"{record.id}: {name}",
            source=path,
            unit=next((unit for end, unit in _UNITS.items() if name.endswith(end)), ""),
            measured=float(record.measured[name]),
            scatter=0.0,  # the noise of a class holds it
            noise=predictor.noise(record),
            predict=predict(name),
            stages=predictor.STAGES,
            setting=CalibrationSetting(model=record.model, gpu=record.gpu or None),
        )
        for name in registry.calibrates_on(predictor, record)
        if positive(record.measured.get(name))
    ]


def _predictable(found: Gathered, point: Point) -> bool:
    try:
        point.predict(prior(*point.stages).central())
    except Refused as refusal:
        found.unused.append((point.what, str(refusal)))
        return False
    return True
