"""What to say about a framework's keys: the split that they set, key by key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure
from rlsize.reports.report import Column, Report, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

_QUIET = frozenset({"snippet", "file", "framework", "variant", "framework_version"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyed:
    """
    One key of a framework.

    Args:
        part: Where it goes.
        key: The key.
        value: Its value.
        read: Whether it was read in the source of the version that is named.
    """

    part: str
    key: str
    value: float | str | bool
    read: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """
    A snippet as it was written.

    Args:
        text: The file.
        framework: Its framework.
        title: What people call that.
        version: The version that the keys were read from.
        variant: Which of its trainers it is for.
        instances: Rollout instances.
        rollout_gpus: GPUs of the fleet.
        trainer_gpus: GPUs of the trainer.
        staleness: Optimizer steps that a sample may be behind.
        settings: Its keys.
        file: Where it was written; empty for stdout.
        warnings: What the reader must know first.
        notes: What explains it.
    """

    text: str
    framework: str
    title: str
    version: str
    variant: str
    instances: int
    rollout_gpus: int
    trainer_gpus: int
    staleness: int
    settings: Sequence[Keyed]
    file: str
    warnings: Sequence[str]
    notes: Sequence[str]


def snippet_report(printed: Printed, inputs: Sequence[Figure]) -> Report:
    """
    The report of `rlsize snippet`.

    Args:
        printed: The snippet.
        inputs: What it was worked out from.
    """
    figures = {
        "snippet": printed.text,
        "file": printed.file or None,
        "framework": printed.framework,
        "variant": printed.variant,
        "framework_version": printed.version,
        "instances": printed.instances,
        "rollout_gpus": printed.rollout_gpus,
        "trainer_gpus": printed.trainer_gpus,
        "staleness_steps": printed.staleness,
    }
    results = tuple(
        Figure(key=key, value=value, provenance="predicted", source="the split")
        for key, value in figures.items()
        if value is not None
    )
    where = f"Wrote {printed.file}. " if printed.file else ""
    split = f"{printed.rollout_gpus} rollout and {printed.trainer_gpus} trainer GPUs"
    return Report(
        command="snippet",
        headline=f"{where}{printed.title}, {printed.variant}: {split}.",
        results=results,
        inputs=tuple(inputs),
        tables={"settings": _settings(printed)},
        warnings=tuple(printed.warnings),
        notes=tuple(printed.notes),
        quiet=_QUIET,
    )


def _settings(printed: Printed) -> Table:
    rows = tuple({"part": one.part, "key": one.key, "value": one.value, "read": one.read} for one in printed.settings)
    columns = (Column("key", "key", side="left", wide=True), Column("value", "value", wide=True))
    return Table(title=f"Keys of {printed.version}", columns=columns, rows=rows)
