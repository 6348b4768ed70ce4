"""`rlsize manifest`: the resize as a file for Kubernetes, Ray, KEDA or Kueue; nothing is applied."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlsize.commands.manifest.text import commands_of, head_of, text_of
from rlsize.commands.manifest.wanted import ObjectFlags, check_bounds, platform_of, wanted_of
from rlsize.errors import Fault, InputError
from rlsize.facts.figure import Figure
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.wording import numbered
from rlsize.shell.allocation import ALLOCATION, allocation_of, read_pools
from rlsize.shell.answer import delivered
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import Changes, asks_beside_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.writers.manifests.in_place import Changed
    from rlsize.writers.manifests.resize import Pods, Resize

_SOURCES: Mapping[str, str] = {
    "apply_command": "to paste; nothing is applied by rlsize",
    "before_command": "to paste first: how it is now",
    "back_command": "the way back",
}
_UNNAMED = "resize.yaml"
Source = Annotated[
    str | None,
    typer.Argument(
        metavar="PLAN|SCENARIO",
        help="A saved plan, a scenario with placement, or an observation; flags override it.",
        show_default=False,
    ),
]


@asks_beside_files(
    Inputs=(*ALLOCATION, "concurrency"),
    Object=("group_index", "min_replicas", "max_replicas", "gpus_per_pod"),
    KEDA=("threshold",),
    Kueue=("borrowed_gpus",),
)
def manifest(
    inputs: Inputs, context: typer.Context, said: ObjectFlags, source: Source = None, changes: Changes = None
) -> Report:
    """
    Write the resize for Kubernetes, Ray, KEDA or Kueue; nothing is applied.

    Example:  rlsize manifest examples/baseline.yaml --platform deployment
    """
    from rlsize.writers.manifests.resize import pods_of

    base, rollback, output = said.base, said.rollback, said.output
    if output is not None:
        from rlsize.writers.files import check_target

        written_to = check_target(output, said.force)
        if base is not None and written_to == Path(base).resolve():
            raise InputError(Fault("is the manifest that is gone back to", "--output", "name another file"))
    named = rollback or source
    read_pools(inputs, named, changes)
    found = allocation_of(inputs, named or "flags")
    module = platform_of(inputs, said)
    wanted = wanted_of(inputs, said, found)
    per_pod = inputs.ask("gpus_per_pod")
    pods = pods_of(found, int(per_pod.number) if per_pod.known else None, inputs.faults)
    if module is None or pods is None:
        inputs.settle()
        raise InputError(Fault("nothing says how large the fleet is", "--instances", "give a plan, or --instances"))
    check_bounds(inputs, wanted, pods)
    faults: list[Fault] = []
    resize = module.resize(pods, wanted, faults)
    # the object that is there has what a new one would need flags for
    inputs.faults += [fault for fault in faults if base is None or fault.where in {"--platform", "--group"}]
    inputs.settle()
    commands = commands_of(resize, base, output or _UNNAMED)
    back_from = _left(source) if rollback is not None else None
    head = head_of(resize, pods, wanted, found.source, back_from)
    text, changed, told = text_of(resize, pods, wanted, base, head, commands)
    figures = {
        "manifest": text,
        "file": output,
        "platform": module.PLATFORM,
        "kind": resize.kind,
        "api_version": resize.api_version,
        "instances": pods.instances,
        "replicas": pods.replicas,
        "gpus_per_pod": pods.gpus_per_pod,
        "pods_per_engine": pods.pods_per_engine,
        "rollout_gpus": pods.rollout_gpus,
        "trainer_gpus": pods.trainer_gpus,
        **{f"{name}_command": command for name, command in commands.items()},
    }
    lent = "Trainer GPUs that generate while they wait are the trainer's: only the fleet of its own is resized."
    notes = (lent,) if found.mode == "hybrid" else ()
    report = Report(
        command="manifest",
        headline=_headline(resize, pods, wanted.name, output, rollback),
        results=tuple(
            Figure(key=key, value=value, provenance="predicted", source=_SOURCES.get(key, "the resize"))
            for key, value in figures.items()
            if value is not None
        ),
        inputs=inputs.shown(),
        tables={**({} if base is None else {"changes": _differences(changed)}), "commands": _to_paste(commands)},
        warnings=(*inputs.warnings, *resize.warnings),
        notes=(*inputs.notes, *notes, *(() if base else resize.notes), *told),
        quiet=frozenset({"manifest", "file", "platform", "kind", "api_version", *_SOURCES}),
    )
    return delivered(report, text, context.obj or {}, output, force=said.force)


def _headline(resize: Resize, pods: Pods, name: str, output: str | None, rollback: str | None) -> str:
    where = f"Wrote {output}. " if output else ""
    queue = resize.kind == "ClusterQueue"
    counted = numbered(pods.rollout_gpus, "GPU") if queue else numbered(pods.replicas, "replica")
    what = f"{'Resize' if rollback is None else 'Rollback'}: {resize.kind} {name} with {counted}"
    return f"{where}{what} for {numbered(pods.instances, 'instance')}. Nothing is applied."


def _differences(changed: Iterable[Changed]) -> Table:
    rows = tuple({"path": one.path, "before": one.before or "not said", "after": one.after} for one in changed)
    columns = (Column("path", "path", side="left", wide=True), Column("before", "before"), Column("after", "after"))
    return Table(title="What changed, and nothing else", columns=columns, rows=rows)


def _to_paste(commands: Mapping[str, str]) -> Table:
    """What to paste, and when."""
    rows = tuple({"when": when, "command": command} for when, command in commands.items())
    columns = (Column("when", "when", side="left"), Column("command", "command", side="left", wide=True))
    return Table(title="To paste; rlsize applies nothing", columns=columns, rows=rows)


def _left(source: str | None) -> str:
    """How many instances there are before a rollback, where the plan that is left says so."""
    if source is None:
        return ""
    inputs = Inputs()
    read_pools(inputs, source)
    found = allocation_of(inputs, source)
    inputs.settle()
    return f", back from {found.instances}" if found.instances else ""
