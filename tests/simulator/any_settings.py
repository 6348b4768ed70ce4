"""Random settings of every kind: all modes, policies and troubles, small enough to run in milliseconds."""

from __future__ import annotations

from itertools import accumulate
from math import inf
from typing import get_args

from hypothesis import strategies as st

from rlsize.simulator.setting import (
    MODES,
    EngineSetting,
    Latency,
    LengthSetting,
    Mode,
    Order,
    Redealing,
    Resize,
    Routing,
    RuleSetting,
    Setting,
    Shape,
    SyncSetting,
    TrainerSetting,
    TroubleSetting,
    Unfinished,
    Way,
    WorkSetting,
)

LONGEST = 16


def some_seconds(*amounts: float) -> st.SearchStrategy[float]:
    """One of these times, or anything between none and twice the last; few different ones meet more often."""
    return st.sampled_from(amounts) | st.floats(0.0, 2.0 * amounts[-1], width=32)


@st.composite
def latencies(draw: st.DrawFn) -> Latency:
    """Often none."""
    return Latency(seconds=draw(st.just(0.0) | some_seconds(0.5, 2.0)), cv=draw(st.sampled_from((0.0, 1.0))))


@st.composite
def some_lengths(draw: st.DrawFn) -> LengthSetting:
    """Of every family."""
    shape = draw(st.sampled_from(get_args(Shape)))
    values = draw(st.lists(st.integers(1, LONGEST), min_size=1, max_size=6)) if shape == "empirical" else []
    return LengthSetting(
        mean=sum(values) / len(values) if values else draw(st.sampled_from((3.0, 6.0))),
        cv=draw(st.sampled_from((0.0, 0.5, 1.0))),
        cap=draw(st.sampled_from((LONGEST, 8.0))),
        shape=shape,
        correlation=draw(st.sampled_from((0.0, 0.5, 1.0))),
        drift=draw(st.sampled_from((0.0, 100.0))),
        values=tuple(map(float, sorted(values))),
    )


@st.composite
def some_work(draw: st.DrawFn) -> WorkSetting:
    """Up to three groups of up to three samples, one turn or several."""
    turns, size = draw(st.sampled_from((1, 1, 2, 3))), draw(st.integers(1, 3))
    redundant = draw(st.sampled_from((0, 0, 1, 2)))
    whole = size + redundant
    pool = draw(st.sampled_from((None, None, whole, whole + 1, 2 * whole)))
    return WorkSetting(
        groups=draw(st.integers(1, 3)),
        group_size=size,
        lengths=draw(some_lengths()),
        prompt_tokens=draw(st.integers(0, 4)),
        acceptance=draw(st.sampled_from((1.0, 1.0, 0.5))),
        turns=turns,
        turn_end_fraction=draw(st.sampled_from((0.0, 0.5))),
        environments=pool,
        environment_seconds=draw(st.just(0.0) | some_seconds(0.5, 2.0)),
        redundant_samples=redundant,
        failed_fraction=draw(st.sampled_from((0.0, 0.25))) if turns > 1 else 0.0,
        tool=draw(latencies()) if turns > 1 else Latency(),
        tool_tokens=draw(st.integers(0, 3)) if turns > 1 else 0,
        verify=draw(latencies()),
        verify_failed_fraction=draw(st.sampled_from((0.0, 0.0, 0.25))),
        verify_workers=draw(st.sampled_from((None, 1, 2))),
    )


def some_points(rises: list[float]) -> tuple[tuple[int, float], ...]:
    """A step time at 1, 3 and 4 samples that rises."""
    return tuple(zip((1, 3, 4), accumulate(rises, initial=0.0625), strict=False))


@st.composite
def some_engines(draw: st.DrawFn, work: WorkSetting) -> EngineSetting:
    """Up to three instances, with caches from one sample upwards, or even less."""
    alone = work.prompt_tokens + LONGEST + (work.turns - 1) * work.tool_tokens
    fixed = draw(some_seconds(0.0, 0.125, 0.25))
    return EngineSetting(
        instances=draw(st.integers(1, 3)),
        slots=draw(st.integers(1, 4)),
        fixed_seconds=fixed,
        sample_seconds=draw(some_seconds(0.0625)) + (0.0625 if fixed < 0.0625 else 0.0),
        kv_seconds=draw(st.just(0.0) | some_seconds(0.015625)),
        prefill_seconds=draw(st.just(0.0) | some_seconds(0.0625)),
        kv_tokens=draw(st.just(inf) | st.integers(alone // 2, 3 * alone).map(float)),
        routing=draw(st.sampled_from(get_args(Routing))),
        points=draw(st.just(()) | st.lists(some_seconds(0.0625, 0.5), min_size=1, max_size=2).map(some_points)),
    )


def some_resizes() -> st.SearchStrategy[Resize]:
    """Up to three instances come or go, after one of the first steps or in the first seconds."""
    change = st.sampled_from((-3, -2, -1, 1, 2, 3))
    return st.builds(Resize, change, st.integers(1, 6)) | st.builds(Resize, change, st.none(), some_seconds(0.0, 4.0))


@st.composite
def some_rules(draw: st.DrawFn, mode: Mode) -> RuleSetting:
    """Rules that mean something in a mode."""
    asynchronous = mode == "async"
    return RuleSetting(
        mode=mode,
        max_staleness=draw(st.sampled_from((None, 0, 1, 2, 0.1, 1.5))) if asynchronous else None,
        drops_over_stale=asynchronous and draw(st.booleans()),
        order=draw(st.sampled_from(get_args(Order))),
        queue_steps=draw(st.sampled_from((None, 1.0, 1.5, 2.0))) if asynchronous else None,
        oversampling=1.0 if asynchronous else draw(st.sampled_from((1.0, 1.5, 2.0))),
        unfinished=draw(st.sampled_from(get_args(Unfinished))),
        redealing=draw(st.sampled_from(get_args(Redealing))),
        resizes=() if mode == "colocated" else draw(st.just(()) | st.lists(some_resizes(), max_size=3).map(tuple)),
    )


@st.composite
def some_trouble(draw: st.DrawFn, mode: Mode) -> TroubleSetting:
    """Each trouble in about every other run; losses after a minute or ten seconds."""
    lends = mode != "colocated" and draw(st.booleans())
    return TroubleSetting(
        straggler_fraction=draw(st.sampled_from((0.0, 0.5))),
        straggler_slowdown=draw(st.sampled_from((1.0, 1.5, 3.0))),
        losses_per_hour=draw(st.sampled_from((0.0, 0.0, 60.0, 360.0))),
        lost_together=draw(st.integers(1, 2)),
        notice_seconds=draw(some_seconds(0.0, 1.0)),
        restart_seconds=draw(some_seconds(0.0, 4.0)),
        failures_per_hour=draw(st.sampled_from((0.0, 0.0, 600.0))),
        trainer_restart_seconds=draw(some_seconds(0.0, 2.0)),
        checkpoint_every=draw(st.integers(1, 3)),
        lent_instances=draw(st.integers(1, 2)) if lends else 0,
        lend_seconds=draw(some_seconds(0.0, 0.5)),
    )


@st.composite
def any_setting(draw: st.DrawFn) -> Setting:
    """A setting without contradictions."""
    mode = draw(st.sampled_from(MODES))
    work = draw(some_work())
    return Setting(
        engine=draw(some_engines(work)),
        others=tuple(draw(st.just([]) | st.lists(some_engines(work), max_size=2))),
        work=work,
        trainer=TrainerSetting(
            seconds=draw(some_seconds(0.0, 2.0)),
            logprob_fraction=draw(st.sampled_from((0.0, 0.25))),
            micro_batches=draw(st.integers(1, work.groups)),
            overhead_seconds=draw(st.just(0.0) | some_seconds(0.5)),
        ),
        sync=SyncSetting(
            seconds=draw(some_seconds(0.0, 1.0)),
            every=draw(st.sampled_from((1, 1, 2, 3))),
            way=draw(st.sampled_from(get_args(Way))),
            keeps_kv=draw(st.booleans()),
            swap_seconds=draw(some_seconds(0.0, 0.5)) if mode == "colocated" else 0.0,
        ),
        rules=draw(some_rules(mode)),
        trouble=draw(some_trouble(mode)),
    )
