"""The first run once more, with everything noted that pictures, traces and histories show."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from rlsize.errors import noting

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlsize.commands.simulate.command import Orders
    from rlsize.commands.simulate.runs import Done
    from rlsize.shell.inputs import Inputs
    from rlsize.simulator.history import Event, Span
    from rlsize.simulator.ledger import Ledger
    from rlsize.simulator.setting import Setting

_TRACED = 400_000  # spans and events that a trace takes; more are slow to open
_DRAWN_STEPS = 4  # optimizer steps of the chart of who does what when


class Recorded(NamedTuple):
    """Accounts of the first run, and what lasted how long in a few of its steps."""

    ledger: Ledger
    spans: tuple[Span, ...]


def check_targets(inputs: Inputs, orders: Orders) -> None:
    """
    Look at what is to be printed and written before any work is done for it.

    Args:
        inputs: Takes faults.
        orders: How to run.
    """
    from rlsize.shell.answer import check_form
    from rlsize.shell.command import TERMINAL
    from rlsize.writers.files import check_target
    from rlsize.writers.plot import check_picture

    plot = orders.output.get("plot")
    checks: list[tuple[Callable[[str, bool], object], str]] = []
    checks += [(check_target, path) for path in (orders.trace, orders.history) if path is not None]
    checks += [(check_picture, plot)] if plot and plot != TERMINAL else []
    for check, path in checks:
        with noting(inputs.faults):
            check(path, orders.force)
    with noting(inputs.faults):
        check_form(orders.output)


def record(setting: Setting, orders: Orders, first: Done) -> Recorded | None:
    """
    What the picture shows; writes trace and history where they are asked for.

    Args:
        setting: What was simulated.
        orders: How.
        first: The first run.
    """
    if orders.trace is not None or orders.history is not None:
        _write(setting, orders)
    if not orders.draws or first.ledger is None or first.outcome is None:
        return None
    return Recorded(first.ledger, _window(setting, orders, first.ledger, first.outcome.warm_up))


def _window(setting: Setting, orders: Orders, ledger: Ledger, warm_up: int) -> tuple[Span, ...]:
    """Spans of a few steps after the warm-up."""
    from rlsize.simulator.draws import SeededOutcomes
    from rlsize.simulator.history import Recorder, Span
    from rlsize.simulator.run import conductor_of

    last = min(len(ledger), warm_up + _DRAWN_STEPS)
    begin = max(0, last - _DRAWN_STEPS)
    start = ledger.columns["end_seconds"][begin - 1] if begin else 0.0
    end = ledger.columns["end_seconds"][last - 1]
    spans: list[Span] = []

    def take(entry: Span | Event) -> bool:
        if isinstance(entry, Span) and entry.end > start and entry.start < end:
            spans.append(entry)
        return True

    outcomes = SeededOutcomes(setting.work, orders.seeds[0])
    conductor_of(setting, outcomes, Recorder(take)).run(last)
    return tuple(spans)


def _write(setting: Setting, orders: Orders) -> None:
    from rlsize.simulator.history import Recorder, Span
    from rlsize.simulator.run import simulate
    from rlsize.writers.files import write_whole
    from rlsize.writers.history_file import HistoryFile, trace_text

    entries: list[Span | Event] = []
    with ExitStack() as stack:
        history = None
        if orders.history is not None:
            history = stack.enter_context(HistoryFile(orders.history, force=orders.force))

        def take(entry: Span | Event) -> bool:
            traced = orders.trace is not None and len(entries) < _TRACED
            if traced:
                entries.append(entry)
            return (history.take(entry) if history is not None else False) or traced

        simulate(setting, orders.steps, orders.seeds[0], Recorder(take), partly=True)
    if orders.trace is not None:
        spans = [entry for entry in entries if isinstance(entry, Span)]
        events = [entry for entry in entries if not isinstance(entry, Span)]
        write_whole(orders.trace, trace_text(spans, events), orders.force)
        cut = f", up to {spans[-1].end:,.0f} s" if len(entries) >= _TRACED else ""
        sys.stderr.write(f"wrote {orders.trace}{cut}: open it in ui.perfetto.dev\n")
    if history is not None:
        cut = ", cut short at its largest size" if history.full else ""
        sys.stderr.write(f"wrote {orders.history}: {history.lines:,} lines{cut}\n")
