"""What to say about a resize that was written: the fleet as replicas, what changed, and the commands to paste."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.facts.figure import Figure
from rlsize.reports.report import Column, Report, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SOURCES: Mapping[str, str] = MappingProxyType(
    {
        "apply_command": "to paste; nothing is applied by rlsize",
        "before_command": "to paste first: how it is now",
        "back_command": "the way back",
    }
)
_QUIET = frozenset({"manifest", "file", "platform", "kind", "api_version", *_SOURCES})


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """
    One value of a manifest that differs.

    Args:
        path: Where, such as spec.replicas.
        before: What was there; empty where nothing was.
        after: What is there now.
    """

    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """
    A resize as it was written.

    Args:
        text: The file.
        platform: What it is for.
        kind: Kind of the object.
        api_version: Its API version.
        instances: Engines.
        replicas: What the platform counts.
        gpus_per_pod: GPUs that each pod asks for.
        pods_per_engine: Pods that serve one engine.
        rollout_gpus: GPUs of the fleet.
        trainer_gpus: GPUs of the trainer; None where nobody says.
        object_name: Its name.
        commands: To paste: before, apply and back.
        changes: What differs from the manifest that was there.
        based: Whether there was one.
        rollback: Whether it goes back to what was recorded.
        file: Where it was written; empty for stdout.
        warnings: What the reader must know first.
        notes: What explains it.
    """

    text: str
    platform: str
    kind: str
    api_version: str
    instances: int
    replicas: int
    gpus_per_pod: int
    pods_per_engine: int
    rollout_gpus: int
    trainer_gpus: int | None
    object_name: str
    commands: Mapping[str, str]
    changes: Sequence[Changed]
    based: bool
    rollback: bool
    file: str
    warnings: Sequence[str]
    notes: Sequence[str]


def manifest_report(written: Written, inputs: Sequence[Figure]) -> Report:
    """
    The report of `rlsize manifest`.

    Args:
        written: The resize.
        inputs: What it was worked out from.
    """
    figures = {
        "manifest": written.text,
        "file": written.file or None,
        "platform": written.platform,
        "kind": written.kind,
        "api_version": written.api_version,
        "instances": written.instances,
        "replicas": written.replicas,
        "gpus_per_pod": written.gpus_per_pod,
        "pods_per_engine": written.pods_per_engine,
        "rollout_gpus": written.rollout_gpus,
        "trainer_gpus": written.trainer_gpus,
        **{f"{name}_command": command for name, command in written.commands.items()},
    }
    results = tuple(
        Figure(key=key, value=value, provenance="predicted", source=_SOURCES.get(key, "the resize"))
        for key, value in figures.items()
        if value is not None
    )
    what = "Rollback" if written.rollback else "Resize"
    where = f"Wrote {written.file}. " if written.file else ""
    return Report(
        command="manifest",
        headline=f"{where}{what}: {written.kind} {written.object_name} with {_counted(written)}. Nothing is applied.",
        results=results,
        inputs=tuple(inputs),
        tables=({"changes": _changes(written)} if written.based else {}) | {"commands": _commands(written)},
        warnings=tuple(written.warnings),
        notes=tuple(written.notes),
        quiet=_QUIET,
    )


def numbered(count: int, noun: str) -> str:
    """
    A number of things.

    >>> numbered(1, "instance"), numbered(8, "GPU")
    ('1 instance', '8 GPUs')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _counted(written: Written) -> str:
    queue = written.kind == "ClusterQueue"
    what = numbered(written.rollout_gpus, "GPU") if queue else numbered(written.replicas, "replica")
    return f"{what} for {numbered(written.instances, 'instance')}"


def _changes(written: Written) -> Table:
    rows = tuple({"path": one.path, "before": one.before or "not said", "after": one.after} for one in written.changes)
    columns = (Column("path", "path", side="left", wide=True), Column("before", "before"), Column("after", "after"))
    return Table(title="What changed, and nothing else", columns=columns, rows=rows)


def _commands(written: Written) -> Table:
    """What to paste, and when."""
    rows = tuple({"when": when, "command": command} for when, command in written.commands.items())
    columns = (Column("when", "when", side="left"), Column("command", "command", side="left", wide=True))
    return Table(title="To paste; rlsize applies nothing", columns=columns, rows=rows)
