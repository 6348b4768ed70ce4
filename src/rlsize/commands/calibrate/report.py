"""What to say about a calibration: measured beside predicted, what moved, and what to measure next."""

from __future__ import annotations

import math
from operator import itemgetter
from typing import TYPE_CHECKING

from rlsize.estimates.all_constants import all_constants
from rlsize.estimates.calibrating import half_band
from rlsize.facts.figure import Figure
from rlsize.reports.report import Column, Report, Table, Unseen, tables_of
from rlsize.reports.wording import counted, peak_words
from rlsize.units import listed, show

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from rlsize.estimates.calibrating import Calibrated, Compared, Outlook
    from rlsize.facts.calibration import CalibratedConstant, CalibratedRun, Calibration
    from rlsize.shell.inputs import Inputs

    Further: TypeAlias = tuple[str, Sequence[Outlook]]

_MOST_CONSTANTS = 8
_SCALES = {True: "tokens, and the pass", False: "tokens, nobody knows how much"}
_TOLD = 0.01  # relative change of a factor or a spread that is worth a line


def calibrate_report(
    fact: Calibration, found: Calibrated, further: Further, unused: Sequence[tuple[str, str]], inputs: Inputs
) -> Report:
    """
    The report of `rlsize calibrate`.

    Args:
        fact: The calibration as it is saved.
        found: The same with predictions.
        further: What is to be known, and what further measurements would do to its band, itself without any first.
        unused: What was measured and not used, with the reason.
        inputs: What was asked, with what casts doubt and what happened on the way.
    """
    target, outlooks = further
    what = Column("what", "what", "left", wide=True, of=itemgetter(0))
    cells = (what, Column("reason", "why", "left", wide=True, of=itemgetter(1)))
    tables = tables_of(
        points=_points(found.compared),
        constants=_constants(fact.constants),
        further=_further(target, outlooks) if outlooks else None,
        run=_run(fact.run) if fact.run is not None else None,
        unused=Table.of("Not used", dict.fromkeys(unused), cells) if unused else None,
    )
    if fact.run is not None:
        shown = listed([f"{key} {show(value, key)}" for key, value in fact.run.shown.items()])
        inputs.notes += [f"Of the run, and used where nobody says otherwise: {shown}.", *peak_words(fact.run.memory)]
    return Report(
        headline=_headline(found, further, fact.run),
        results=_results(found, fact, outlooks),
        tables=tables,
        **inputs.told(warnings=(_doubt(one) for one in found.compared if one.doubtful)),
    )


def _twin(run: CalibratedRun) -> str:
    """What stays the run's own, in a sentence."""
    own = [f"{show(one.seconds, '_seconds')} of {one.phase}" for one in run.own if one.seconds >= 1.0]
    return f"The model explains all of the run but {listed(own)}." if own else "The model explains all of the run."


def _headline(found: Calibrated, further: Further, run: CalibratedRun | None) -> str:
    count = len(found.compared)
    if not count:
        return _twin(run) if run is not None else "Nothing was measured."
    told = "1 measurement" if count == 1 else f"{count} measurements"
    off = math.exp(sum(math.log(one.point.measured / one.before) for one in found.compared) / count)
    begin = f"{told}, {'on average ' * (count > 1)}{show(off)} times what was predicted"
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
    band = {"band_fraction": outlooks[0].before} if outlooks else {}
    return (
        Figure(key="measurements", value=len(found.compared), provenance="given", source="the sources"),
        *counted({"constants_moved": len(fact.constants)}, "Gaussian update"),
        *counted(band, "half the 80 % band over its median"),
    )


def _run(run: CalibratedRun) -> Table:
    """What of each phase the model explains, and what stays the run's own."""
    cells = (
        Column("phase", "phase", "left"),
        Column("measured_seconds", "measured", of=lambda one: one.measured),
        Column("explained_seconds", "explained", of=lambda one: one.explained),
        Column("own_seconds", "its own", of=lambda one: one.seconds),
        Unseen("factor"),
        Column("scales", "its own grows with", "left", of=lambda one: _SCALES[one.grows] if one.seconds else ""),
    )
    note = "its own: beyond what constants may explain; GPUs and layouts shorten none of it but in passes"
    return Table.of("The run's phases", [one for one in run.own if one.measured or one.seconds], cells, note=note)


def _doubt(one: Compared) -> str:
    what, measured = one.point.of, show(one.point.measured)
    return (
        f"{what.what}: {measured} {what.unit} is {abs(one.odd):.1f} standard deviations "
        f"{'above' if one.odd > 0 else 'below'} what was believed ({show(one.before)}): are model, GPU, lengths, "
        "number types and link those that ran?"
    )


def _points(compared: Sequence[Compared]) -> Table:
    cells = (
        Column("what", "what", "left", wide=True, of=lambda one: one.point.of.what),
        Column("unit", "unit", "left", of=lambda one: one.point.of.unit),
        Column("measured", "measured", of=lambda one: one.point.measured),
        Column("predicted", "predicted", of=lambda one: one.before),
        Column("low", "from", of=lambda one: one.band[0]),
        Column("high", "to", of=lambda one: one.band[1]),
        Column("calibrated", "calibrated", of=lambda one: one.after),
        Column("source", "source", "left", wide=True, of=lambda one: one.point.source),
    )
    return Table.of("Measured and predicted", compared, cells, note="from and to: 80 % band before calibration")


def _constants(constants: Sequence[CalibratedConstant]) -> Table:
    known = all_constants()
    told = sorted((one for one in constants if _said(one) > _TOLD), key=_said, reverse=True)
    left = len(told) - _MOST_CONSTANTS
    cells = (
        Column("name", "constant", "left"),
        Column("meaning", "", "left", wide=True, of=lambda one: known[one.name].meaning),
        Column("factor", "factor"),
        Column("before_fraction", "± before", of=lambda one: half_band(one.spread_before)),
        Column("after_fraction", "± after", of=lambda one: half_band(one.spread)),
    )
    note = "±: 80 % band" + (f"; {left} more changed by over 1 %" if left > 0 else "")
    return Table.of("Constants that moved most", told[:_MOST_CONSTANTS], cells, note=note)


def _said(one: CalibratedConstant) -> float:
    """How much measurements said about a constant: its shift in prior spreads, and how much it narrowed."""
    if not one.spread_before:
        return 0.0
    return abs(math.log(one.factor)) / one.spread_before + 1.0 - one.spread / one.spread_before


def _further(target: str, outlooks: Sequence[Outlook]) -> Table:
    cells = (
        Column("what", "measure", "left", wide=True),
        Column("now_fraction", "± now", of=lambda one: one.before),
        Column("then_fraction", "± with it", of=lambda one: one.after),
    )
    note = "±: 80 % band; the scatter of a single measurement stays"
    return Table.of(f"What would narrow the band of the {target} most", outlooks, cells, note=note)
