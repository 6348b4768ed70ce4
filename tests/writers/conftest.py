"""Three reports that every writer must put into words, and simulations whose history it must write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pytest

from rlsize.equations.matching import required_supply
from rlsize.estimates.figures import apply
from rlsize.facts.figure import Figure, absent
from rlsize.reports.chart import Chart, Mark, Series
from rlsize.reports.report import Cell, Column, Report, Table
from rlsize.simulator.ledger import Event, Ledger, Recorder, Span
from rlsize.simulator.run import simulate
from rlsize.simulator.setting import (
    EngineSetting,
    LengthSetting,
    Mode,
    RuleSetting,
    Setting,
    SyncSetting,
    TrainerSetting,
    TroubleSetting,
    WorkSetting,
)


@pytest.fixture
def plain() -> Report:
    """A report with results, a table, a warning and a missing input."""
    consumption = Figure(key="consumption_tokens_per_second", value=100.0, source="--consume")
    supply = apply(
        "required_tokens_per_second", required_supply, consumption=consumption, tokens_generated_per_trained_token=1.5
    )
    cost = apply(
        "cost_per_step_usd",
        required_supply,
        consumption=absent("price", "--gpu-hour"),
        tokens_generated_per_trained_token=1.0,
    )
    rows: tuple[dict[str, Cell], ...] = (
        {"instances": 1, "idle_fraction": 0.25, "cost_usd": cost},
        {"instances": 2, "idle_fraction": 0.0, "cost_usd": cost},
    )
    table = Table(
        title="Rows",
        columns=(Column("instances", "inst."), Column("idle_fraction", "idle"), Column("cost_usd", "cost")),
        rows=rows,
        marked=1,
    )
    return Report(
        command="fleet",
        headline="Two instances | match.",
        results=(supply, cost, Figure(key="matched_instances", value=2, provenance="predicted", band=(1.0, 3.0))),
        inputs=(consumption,),
        tables={"neighbours": table},
        warnings=("mind the <gap>",),
        notes=("a note",),
    )


@pytest.fixture
def hostile() -> Report:
    """A report whose words come from a file that means harm."""
    row = {"name": "=cmd()|calc", "value": "\x1b[31mred"}
    table = Table(title="T", columns=(Column("name", "name", "left"), Column("value", "value", "left")), rows=(row,))
    return Report(command="observe", headline="a | b <script>", tables={"t": table})


@pytest.fixture
def infinite() -> Report:
    """A report that holds numbers JSON cannot say."""
    return Report(
        command="x",
        headline="h",
        results=(Figure(key="a_seconds", value=float("inf")), Figure(key="b_seconds", value=float("nan"))),
    )


@pytest.fixture
def chart() -> Chart:
    """Two lines with a mark on each axis."""
    return Chart(
        title="Supply meets demand at 2",
        x_label="instances",
        y_label="tok/s",
        series=(
            Series(name="supply", xs=(1, 2, 3), ys=(10.0, 20.0, 30.0), role="rollout"),
            Series(name="need", xs=(1, 2, 3), ys=(20.0, 20.0, 20.0), role="trainer"),
        ),
        marks=(Mark(at=2.0, label="match"), Mark(at=20.0, label="needed", axis="y")),
    )


@pytest.fixture
def bars() -> Chart:
    """A stacked bill of two algorithms."""
    return Chart(
        title="GRPO deletes the critic",
        x_label="algorithm",
        y_label="bytes",
        kind="stacked",
        series=(
            Series(name="trainer", xs=("grpo", "ppo"), ys=(1120.0, 1120.0)),
            Series(name="critic", xs=("grpo", "ppo"), ys=(0.0, 1120.0)),
        ),
    )


@dataclass(frozen=True)
class Simulated:
    """A run with all that was noted of it."""

    ledger: Ledger
    entries: list[Span | Event]

    @property
    def spans(self) -> list[Span]:
        """What lasted."""
        return [entry for entry in self.entries if isinstance(entry, Span)]

    @property
    def events(self) -> list[Event]:
        """What happened."""
        return [entry for entry in self.entries if isinstance(entry, Event)]


@pytest.fixture(scope="session")
def simulated() -> Callable[..., Simulated]:
    """A function that simulates a few steps of long-tailed responses on so many instances of 64 slots."""

    @cache
    def run(
        instances: int = 13, mode: Mode = "sync", steps: int = 3, trouble: TroubleSetting | None = None
    ) -> Simulated:
        setting = Setting(
            engine=EngineSetting(instances=instances, slots=64, fixed_seconds=0.016),
            work=WorkSetting(
                groups=5 * instances, group_size=8, lengths=LengthSetting(mean=1536.0, cv=1.0, cap=16384.0)
            ),
            trainer=TrainerSetting(seconds=20.0, logprob_fraction=0.2),
            sync=SyncSetting(seconds=2.0, swap_seconds=5.0 if mode == "colocated" else 0.0),
            rules=RuleSetting(mode=mode, max_staleness=2 if mode == "async" else None),
            trouble=trouble or TroubleSetting(),
        )
        entries: list[Span | Event] = []

        def take(entry: Span | Event) -> bool:
            entries.append(entry)
            return True

        return Simulated(simulate(setting, steps, 1, Recorder(take)), entries)

    return run
