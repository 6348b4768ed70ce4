"""All that alerts take from a plan: thresholds, the windows over which signals are measured, and what to mind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import loop_time, matching
from rlsize.estimates.alert_thresholds import BUDGETED, RULES, Lacking
from rlsize.estimates.figures import apply
from rlsize.facts.alerts import SIDES, AlertLimit, AlertPlan, AlertTimes
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlsize.facts.alerts import PlannedLoop, Signal
    from rlsize.facts.figure import Figure

LEAST_WINDOW = 300.0  # s: several scrapes of any usual interval
WINDOW_STEPS = 10.0  # a counter that jumps once a step is off by at most a tenth of its rate
HOLD_STEPS = 3.0
LOST_SECONDS = 300.0  # an instance that is gone is gone, whatever the step
LONGEST_STEP = 86400.0  # s


def alert_plan(loop: PlannedLoop) -> AlertPlan:
    """
    Thresholds and windows of a planned loop.

    Args:
        loop: The plan; its step must be known.
    """
    found = {signal: RULES[signal](loop) for signal in SIDES}
    limits = {signal: one for signal, one in found.items() if isinstance(one, AlertLimit)}
    return AlertPlan(
        loop=loop,
        times=_times(loop.figure("step_seconds")),
        limits=limits,
        left_out={signal: one.why for signal, one in found.items() if isinstance(one, Lacking)},
        warnings=(*_broken(limits), *_unsure(limits)),
        consumption=_consumption(loop),
    )


def _times(step: Figure) -> AlertTimes:
    """Windows: so many steps, and never less than a few scrapes."""
    window, hold = (
        max(LEAST_WINDOW, apply("window_seconds", loop_time.run_time, step_seconds=step, steps=steps).number)
        for steps in (WINDOW_STEPS, HOLD_STEPS)
    )
    return AlertTimes(
        step_seconds=step,
        window_seconds=window,
        instance_seconds=hold,
        hold_seconds=hold,
        lost_seconds=LOST_SECONDS,
    )


def _broken(limits: Mapping[Signal, AlertLimit]) -> Iterator[str]:
    """Limits that the plan itself does not keep, so that their alert fires from the start."""
    for one in limits.values():
        if not one.expected.known:
            continue
        past = one.expected.number > one.limit.number if one.above else one.expected.number < one.limit.number
        if past:
            side = "above" if one.above else "below"
            planned, limit = (show(figure.value, one.key) for figure in (one.expected, one.limit))
            yield (
                f"the plan's own {one.key} of {planned} is {side} the limit of {limit} ({one.limit.source}): this "
                "alert fires from the start"
            )


def _unsure(limits: Mapping[Signal, AlertLimit]) -> Iterator[str]:
    """Limits within the plan's own band: a loop that runs as was thought possible may be past them."""
    found = []
    for one in limits.values():
        if one.expected.band is None or one.rule == BUDGETED:
            continue
        low, high = one.expected.band
        if (one.above and high > one.limit.number) or (not one.above and low < one.limit.number):
            found.append(one.key)
    if found:
        yield (
            f"the plan's own 80 % bands reach past the limits of {', '.join(found)}: their alerts may fire on a loop "
            "that runs as predicted; a plan from measured rates, or a budget, settles it"
        )


def _consumption(loop: PlannedLoop) -> Figure:
    """What the trainer consumes while it works: what `--consume` takes."""
    said = loop.figure("consumption_tokens_per_second")
    if said.known:
        return said
    batch, train = loop.figure("batch_tokens"), loop.figure("train_seconds")
    return apply("consumption_tokens_per_second", matching.consumption, tokens_per_step=batch, train_seconds=train)
