"""How long samples wait for their first token, for each further one, and for their last, as a load was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.facts.measured import Latency, Percentiles

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rlsize.facts.counters import PhaseRun

_SHARES = (0.5, 0.9, 0.99)
_ROUNDING = 1e-9


def latency(runs: Sequence[PhaseRun]) -> Latency | None:
    """
    What samples waited for that were sent since the batch was full, or with a finite one; None where none ended.

    Args:
        runs: One phase on each instance.
    """
    sent = [(run, run.begun if run.full is None else run.full) for run in runs]
    ended = [
        (one.seconds - one.sent, one.first - one.sent, one)
        for run, since in sent
        for one in run.finished
        if one.sent is not None and one.first is not None and one.sent >= since
    ]
    if not ended or any(run.ended is None for run in runs):
        return None
    running = [
        ((run.ended or 0.0) - moment, samples, False)
        for run, since in sent
        for moment, samples in run.running
        if moment >= since
    ]
    tokens = [(whole, first, one.samples, one.tokens / one.samples) for whole, first, one in ended]
    return Latency(
        samples=sum(one.samples for *_, one in ended),
        first_token=percentiles((first, one.samples, True) for _, first, one in ended),
        token=percentiles(
            ((whole - first) / (each - 1.0), samples, True) for whole, first, samples, each in tokens if each > 1
        ),
        sample=percentiles([*((whole, one.samples, True) for whole, _, one in ended), *running]),
    )


def percentiles(waits: Iterable[tuple[float, int, bool]]) -> Percentiles:
    """
    Percentiles of waits, of which some had not ended when the look at them did.

    Those count as longer than they were seen to be (Kaplan and Meier 1958), or a short look would prefer short samples;
    a percentile that no wait reached has no value.

    Args:
        waits: Seconds, samples that waited so long, and whether that was to its end.
    """
    found = sorted(waits, key=lambda one: (one[0], not one[2]))
    left, beyond = sum(samples for _, samples, _ in found), 1.0
    reached: dict[float, float] = {}
    for seconds, samples, ended in found:
        beyond *= 1.0 - samples / left if ended else 1.0
        left -= samples
        for share in _SHARES if ended else ():
            if beyond <= 1.0 - share + _ROUNDING:
                reached.setdefault(share, seconds)
    return Percentiles(**{f"p{share * 100:.0f}_seconds": reached.get(share) for share in _SHARES})
