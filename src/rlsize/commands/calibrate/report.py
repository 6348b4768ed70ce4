"""What to say about a calibration: measured beside predicted, what moved, and what to measure next."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rlsize.estimates.all_constants import all_constants
from rlsize.estimates.calibrating import half_band
from rlsize.facts.figure import Figure
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.wording import peak_words
from rlsize.units import listed, show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.estimates.calibrating import Calibrated, Compared, Outlook
    from rlsize.facts.calibration import CalibratedConstant, CalibratedRun, Calibration

_MOST_CONSTANTS = 8
_SCALES = {True: "tokens, and the pass", False: "tokens, nobody knows how much"}
_TOLD = 0.01  # relative change of a factor or a spread that is worth a line


def calibrate_report(
    fact: Calibration,
    found: Calibrated,
    further: tuple[str, Sequence[Outlook]],
    unused: Sequence[tuple[str, str]],
    inputs: Sequence[Figure] = (),
    warnings: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Report:
    """
    The report of `rlsize calibrate`.

    Args:
        fact: The calibration as it is saved.
        found: The same with predictions.
        further: What is to be known, and what further measurements would do to its band, itself without any first.
        unused: What was measured and not used, with the reason.
        inputs: What was asked.
        warnings: What casts doubt.
        notes: What happened on the way.
    """
    tables = {"points": _points(found.compared), "constants": _constants(fact.constants)}
    target, outlooks = further
    if outlooks:
        tables["further"] = _further(target, outlooks)
    if fact.run is not None:
        tables["run"] = _run(fact.run)
        shown = listed([f"{key} {show(value, key)}" for key, value in fact.run.shown.items()])
        notes = (*notes, f"Of the run, and used where nobody says otherwise: {shown}.", *peak_words(fact.run.memory))
    if unused:
        tables["unused"] = _unused(unused)
    return Report(
        command="calibrate",
        headline=_headline(found, further, fact.run),
        results=_results(found, fact, outlooks),
        inputs=tuple(inputs),
        tables=tables,
        warnings=(*warnings, *(_doubt(one) for one in found.compared if one.doubtful)),
        notes=tuple(notes),
    )


def _twin(run: CalibratedRun) -> str:
    """What stays the run's own, in a sentence."""
    own = [f"{show(one.seconds, '_seconds')} of {one.phase}" for one in run.own if one.seconds >= 1.0]
    return f"The model explains all of the run but {listed(own)}." if own else "The model explains all of the run."


def _headline(found: Calibrated, further: tuple[str, Sequence[Outlook]], run: CalibratedRun | None) -> str:
    count = len(found.compared)
    if not count:
        return _twin(run) if run is not None else "Nothing was measured."
    told = "1 measurement" if count == 1 else f"{count} measurements"
    off = math.exp(sum(math.log(one.point.measured / one.before) for one in found.compared) / count)
    if count == 1:
        begin = f"{told}, {show(off)} times what was predicted"
    else:
        begin = f"{told}, on average {show(off)} times what was predicted"
    if run is not None:
        return f"{begin}. {_twin(run)}"
    target, outlooks = further
    if not outlooks:
        return f"{begin}."
    now, best = outlooks[0].before, outlooks[0]
    return f"{begin}. The {target} is known to {_percent(now)}; next measure the {best.what}: {_percent(best.after)}."


def _percent(half: float) -> str:
    return f"±{100 * half:.3g} %"


def _results(found: Calibrated, fact: Calibration, outlooks: Sequence[Outlook]) -> tuple[Figure, ...]:
    results = [
        Figure(key="measurements", value=len(found.compared), provenance="given", source="the sources"),
        Figure(key="constants_moved", value=len(fact.constants), provenance="predicted", source="Gaussian update"),
    ]
    if outlooks:
        source = "half the 80 % band over its median"
        results.append(Figure(key="band_fraction", value=outlooks[0].before, provenance="predicted", source=source))
    return tuple(results)


def _run(run: CalibratedRun) -> Table:
    """What of each phase the model explains, and what stays the run's own."""
    return Table(
        title="The run's phases",
        columns=(
            Column("phase", "phase", "left"),
            Column("measured_seconds", "measured"),
            Column("explained_seconds", "explained"),
            Column("own_seconds", "its own"),
            Column("scales", "its own grows with", "left"),
        ),
        rows=tuple(
            {
                "phase": one.phase,
                "measured_seconds": one.measured,
                "explained_seconds": one.explained,
                "own_seconds": one.seconds,
                "factor": one.factor,
                "scales": _SCALES[one.grows] if one.seconds else "",
            }
            for one in run.own
        ),
        note="its own: beyond what constants may explain; GPUs and layouts shorten none of it but in passes",
    )


def _doubt(one: Compared) -> str:
    what, measured = one.point.of, show(one.point.measured)
    return (
        f"{what.what}: {measured} {what.unit} is {abs(one.odd):.1f} standard deviations "
        f"{'above' if one.odd > 0 else 'below'} what was believed ({show(one.before)}): are model, GPU, lengths, "
        "number types and link those that ran?"
    )


def _points(compared: Sequence[Compared]) -> Table:
    return Table(
        title="Measured and predicted",
        columns=(
            Column("what", "what", "left", wide=True),
            Column("unit", "unit", "left"),
            Column("measured", "measured"),
            Column("predicted", "predicted"),
            Column("low", "from"),
            Column("high", "to"),
            Column("calibrated", "calibrated"),
            Column("source", "source", "left", wide=True),
        ),
        rows=tuple(
            {
                "what": one.point.of.what,
                "unit": one.point.of.unit,
                "measured": one.point.measured,
                "predicted": one.before,
                "low": one.band[0],
                "high": one.band[1],
                "calibrated": one.after,
                "source": one.point.source,
            }
            for one in compared
        ),
        note="from and to: 80 % band before calibration",
    )


def _constants(constants: Sequence[CalibratedConstant]) -> Table:
    known = all_constants()
    told = sorted((one for one in constants if _said(one) > _TOLD), key=_said, reverse=True)
    left = len(told) - _MOST_CONSTANTS
    return Table(
        title="Constants that moved most",
        columns=(
            Column("name", "constant", "left"),
            Column("meaning", "", "left", wide=True),
            Column("factor", "factor"),
            Column("before_fraction", "± before"),
            Column("after_fraction", "± after"),
        ),
        rows=tuple(
            {
                "name": one.name,
                "meaning": known[one.name].meaning,
                "factor": one.factor,
                "before_fraction": half_band(one.spread_before),
                "after_fraction": half_band(one.spread),
            }
            for one in told[:_MOST_CONSTANTS]
        ),
        note="±: 80 % band" + (f"; {left} more changed by over 1 %" if left > 0 else ""),
    )


def _said(one: CalibratedConstant) -> float:
    """How much measurements said about a constant: its shift in prior spreads, and how much it narrowed."""
    if not one.spread_before:
        return 0.0
    return abs(math.log(one.factor)) / one.spread_before + 1.0 - one.spread / one.spread_before


def _further(target: str, outlooks: Sequence[Outlook]) -> Table:
    return Table(
        title=f"What would narrow the band of the {target} most",
        columns=(
            Column("what", "measure", "left", wide=True),
            Column("now_fraction", "± now"),
            Column("then_fraction", "± with it"),
        ),
        rows=tuple({"what": one.what, "now_fraction": one.before, "then_fraction": one.after} for one in outlooks),
        note="±: 80 % band; the scatter of a single measurement stays",
    )


def _unused(unused: Sequence[tuple[str, str]]) -> Table:
    return Table(
        title="Not used",
        columns=(Column("what", "what", "left", wide=True), Column("reason", "why", "left", wide=True)),
        rows=tuple({"what": what, "reason": reason} for what, reason in dict.fromkeys(unused)),
    )
