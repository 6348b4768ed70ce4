"""Small random scenarios in dyadic numbers, so that sums are exact and ties are ties."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from math import inf
from random import Random
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from hypothesis import strategies as st

from rlsize.simulator.setting import (
    MODES,
    EngineSetting,
    Latency,
    LengthSetting,
    Order,
    Redealing,
    Routing,
    RuleSetting,
    Setting,
    SyncSetting,
    TrainerSetting,
    TroubleSetting,
    Unfinished,
    Way,
    WorkSetting,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 12
BATCH_TOKENS = 64  # groups × group size × mean: a power of two, so that dividing by it is exact
UNIT = 1 / 1024

Scenario: TypeAlias = tuple[Setting, "SmallTable", int]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallTable:
    """
    Draws that depend on the group's number and nothing else.

    Args:
        seed: Another one, other lengths and places.
        group_size: Samples of a group. [1]
        lengths_are: All different, the same within a group, or all the same.
        verdicts: Whether groups are accepted, over and over.
    """

    seed: int
    group_size: int
    lengths_are: Literal["free", "same in group", "constant"] = "free"
    verdicts: tuple[bool, ...] = (True,)

    def lengths(self, group: int) -> list[int]:
        """Response tokens of the group's samples. [token]"""
        draw = Random(f"{self.seed}" if self.lengths_are == "constant" else f"{self.seed}/{group}")
        if self.lengths_are == "free":
            return [draw.randint(1, LONGEST) for _ in range(self.group_size)]
        return [draw.randint(1, LONGEST)] * self.group_size

    def accepted(self, group: int) -> bool:
        """Whether dynamic sampling keeps the group."""
        return self.verdicts[group % len(self.verdicts)]

    def place(self, group: int, member: int) -> float:
        """Where random routing puts the sample. [1]"""
        return Random(f"{self.seed}/{group}/{member}").random()

    def verify_seconds(self, group: int, member: int) -> float:
        """How long the verifier takes for the sample. [s]"""
        return Random(f"{self.seed}/{group}/{member}/verified").randint(1, 16) / 8

    def stragglers(self, instances: int, share: float) -> list[int]:
        """The last ones."""
        return list(range(instances))[instances - round(instances * share) :]


def dyadic(most: int, least: int = 0) -> st.SearchStrategy[float]:
    """Seconds in multiples of 1/1024; often round, so that things happen at the same time."""
    coarse = st.integers(-(-least // 128), most // 128).map(lambda count: count * 128 * UNIT)
    return coarse | st.integers(least, most).map(lambda count: count * UNIT)


def rising(rises: Sequence[float]) -> tuple[tuple[int, float], ...]:
    """What steps with 1, 2 and 4 samples take; every time between them is a multiple of 1/2048."""
    return tuple(zip((1, 2, 4), accumulate(rises), strict=False))


@st.composite
def engines(draw: st.DrawFn, prompt_tokens: int) -> EngineSetting:
    """A fleet whose cache always holds one sample, and often not many more."""
    room = prompt_tokens + LONGEST + 1
    return EngineSetting(
        instances=draw(st.integers(1, 4)),
        slots=draw(st.integers(1, 6)),
        fixed_seconds=draw(dyadic(1024, least=1)),
        sample_seconds=draw(st.just(0.0) | dyadic(256)),
        kv_seconds=draw(st.just(0.0) | dyadic(64)),
        prefill_seconds=draw(st.just(0.0) | dyadic(256)),
        kv_tokens=draw(st.just(inf) | st.integers(room, 3 * room).map(float)),
        routing=draw(st.sampled_from(get_args(Routing))),
        points=draw(st.just(()) | st.lists(dyadic(256, least=1), min_size=2, max_size=3).map(rising)),
    )


@st.composite
def small_scenarios(draw: st.DrawFn) -> Scenario:
    """A setting, its draws, and a number of optimizer steps."""
    mode = draw(st.sampled_from(MODES))
    redundant = draw(st.sampled_from((0, 0, 1, 2)))
    groups, group_size = draw(st.sampled_from((1, 2, 4))), draw(st.sampled_from((1, 2, 4)))
    prompt_tokens = draw(st.integers(0, 5))
    every = 1 if mode == "colocated" else draw(st.sampled_from((1, 1, 2, 3)))
    asynchronous = mode == "async"
    setting = Setting(
        engine=draw(engines(prompt_tokens)),
        work=WorkSetting(
            groups=groups,
            group_size=group_size,
            lengths=LengthSetting(mean=BATCH_TOKENS / (groups * group_size), cap=LONGEST),
            prompt_tokens=prompt_tokens,
            verify=Latency(seconds=draw(st.sampled_from((0.0, 0.0, 1.0)))),
            verify_workers=draw(st.sampled_from((None, 1, 2))),
            redundant_samples=redundant,
            environments=draw(st.none() | st.integers(group_size + redundant, 2 * groups * (group_size + redundant))),
            environment_seconds=draw(st.just(0.0) | dyadic(2048)),
        ),
        trainer=TrainerSetting(
            seconds=draw(st.just(0.0) | dyadic(16 * 1024)),
            micro_batches=draw(st.sampled_from([parts for parts in (1, 2, 4) if groups % parts == 0])),
            overhead_seconds=draw(st.just(0.0) | dyadic(1024)),
        ),
        sync=SyncSetting(
            seconds=draw(st.just(0.0) | dyadic(2048)),
            every=every,
            way=draw(st.sampled_from(get_args(Way))),
            keeps_kv=draw(st.booleans()),
            swap_seconds=draw(st.just(0.0) | dyadic(1024)) if mode == "colocated" else 0.0,
        ),
        rules=RuleSetting(
            mode=mode,
            max_staleness=draw(st.none() | st.integers(4 * (every - 1), 4 * (every + 2)).map(lambda k: k / 4))
            if asynchronous
            else None,
            drops_over_stale=asynchronous and draw(st.booleans()),
            order=draw(st.sampled_from(get_args(Order))),
            queue_steps=draw(st.sampled_from((None, 1.0, 1.5, 2.0))) if asynchronous else None,
            oversampling=1.0 if asynchronous else draw(st.sampled_from((1.0, 1.25, 1.5, 2.0))),
            unfinished=draw(st.sampled_from(get_args(Unfinished))),
            redealing=draw(st.sampled_from(get_args(Redealing))),
        ),
        trouble=TroubleSetting(
            straggler_fraction=draw(st.sampled_from((0.0, 0.5))), straggler_slowdown=draw(st.sampled_from((1.5, 3.0)))
        ),
        others=draw(st.just(()) | st.tuples(engines(prompt_tokens))),
    )
    verdicts = st.lists(st.booleans(), min_size=1, max_size=5).map(lambda some: (*some, True))
    table = SmallTable(
        seed=draw(st.integers(0, 10**6)),
        group_size=group_size + redundant,
        lengths_are=draw(st.sampled_from(("free", "free", "same in group", "constant"))),
        verdicts=draw(st.just((True,)) | verdicts),
    )
    return setting, table, draw(st.integers(2, 8))
