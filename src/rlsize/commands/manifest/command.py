"""`rlsize manifest`: the resize as a file for Kubernetes, Ray, KEDA or Kueue; nothing is applied."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from rlsize.commands.manifest.wanted import ObjectFlags, check_bounds, platform_of, wanted_of
from rlsize.errors import Fault, InputError
from rlsize.facts.figure import Figure
from rlsize.readers.yaml_documents import read_text
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.wording import numbered
from rlsize.shell.allocation import ALLOCATION, Source, allocation_of, read_pools
from rlsize.shell.answer import delivered
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import Changes, asks_beside_files
from rlsize.version import VERSION
from rlsize.writers.files import check_target
from rlsize.writers.manifests.in_place import LARGEST, edited
from rlsize.writers.manifests.resize import pods_of
from rlsize.writers.manifests.text import commented, pasted, yaml_documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.writers.manifests.in_place import Changed
    from rlsize.writers.manifests.resize import Pods, Resize, Wanted

_SOURCES: Mapping[str, str] = {
    "apply_command": "to paste; nothing is applied by rlsize",
    "before_command": "to paste first: how it is now",
    "back_command": "the way back",
}


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
    base, rollback, output = said.base, said.rollback, said.output
    if output is not None:
        written_to = check_target(output, said.force)
        if base is not None and written_to == Path(base).resolve():
            raise InputError(Fault("is the manifest that is gone back to", "--output", "name another file"))
    named = rollback or source
    read_pools(inputs, named, changes)
    found = allocation_of(inputs, named or "flags")
    resized = platform_of(inputs, said)
    wanted = wanted_of(inputs, said, found)
    per_pod = inputs.ask("gpus_per_pod")
    pods = pods_of(found, int(per_pod.number) if per_pod.known else None, inputs.faults)
    if resized is None or pods is None:
        inputs.settle()
        raise InputError(Fault("nothing says how large the fleet is", "--instances", "give a plan, or --instances"))
    check_bounds(inputs, wanted, pods)
    faults: list[Fault] = []
    resize = resized(pods, wanted, faults)
    # the object that is there has what a new one would need flags for
    inputs.faults += [fault for fault in faults if base is None or fault.where in {"--platform", "--group"}]
    inputs.settle()
    commands = _commands(resize, base, output or "resize.yaml")
    back_from = _left(source) if rollback is not None else None
    head = _head(resize, pods, wanted, found.source, back_from)
    text, changed, told = _text(resize, pods, wanted, base, head, commands)
    counts = ("instances", "replicas", "gpus_per_pod", "pods_per_engine", "rollout_gpus", "trainer_gpus")
    figures = {
        "manifest": text,
        "file": output,
        "platform": (said.platform or "").lower(),
        "kind": resize.kind,
        "api_version": resize.api_version,
        **{key: getattr(pods, key) for key in counts},
        **{f"{name}_command": command for name, command in commands.items()},
    }
    lent = "Trainer GPUs that generate while they wait are the trainer's: only the fleet of its own is resized."
    notes = (lent,) if found.mode == "hybrid" else ()
    report = Report(
        headline=_headline(resize, pods, wanted.name, output, rollback),
        results=tuple(
            Figure(key=key, value=value, provenance="predicted", source=_SOURCES.get(key, "the resize"))
            for key, value in figures.items()
            if value is not None
        ),
        tables={**({} if base is None else {"changes": _differences(changed)}), "commands": _to_paste(commands)},
        quiet=frozenset({"manifest", "file", "platform", "kind", "api_version", *_SOURCES}),
        **inputs.told(warnings=resize.warnings, notes=(*notes, *(() if base else resize.notes), *told)),
    )
    return delivered(report, text, context.obj or {}, output, force=said.force)


def _headline(resize: Resize, pods: Pods, name: str, output: str | None, rollback: str | None) -> str:
    where = f"Wrote {output}. " if output else ""
    queue = resize.kind == "ClusterQueue"
    counted = numbered(pods.rollout_gpus, "GPU") if queue else numbered(pods.replicas, "replica")
    what = f"{'Resize' if rollback is None else 'Rollback'}: {resize.kind} {name} with {counted}"
    return f"{where}{what} for {numbered(pods.instances, 'instance')}. Nothing is applied."


def _differences(changed: Iterable[Changed]) -> Table:
    before = Column("before", "before", of=lambda one: one.before or "not said")
    cells = (Column("path", "path", "left", wide=True), before, Column("after", "after"))
    return Table.of("What changed, and nothing else", changed, cells)


def _to_paste(commands: Mapping[str, str]) -> Table:
    """What to paste, and when."""
    command = Column("command", "command", "left", wide=True, of=commands.__getitem__)
    return Table.of("To paste; rlsize applies nothing", commands, (Column("when", "when", "left", of=str), command))


def _left(source: str | None) -> str:
    """How many instances there are before a rollback, where the plan that is left says so."""
    if source is None:
        return ""
    inputs = Inputs()
    read_pools(inputs, source)
    found = allocation_of(inputs, source)
    inputs.settle()
    return f", back from {found.instances}" if found.instances else ""


def _commands(resize: Resize, base: str | None, file: str) -> dict[str, str]:
    """What to paste: before, to apply, and to go back."""
    file = shlex.quote(file)
    if base is not None:
        back = f"kubectl apply -f {shlex.quote(base)}"
        return {"before": f"kubectl diff -f {file}", "apply": f"kubectl apply -f {file}", "back": back}
    return {key: getattr(resize, key).replace("{file}", file) for key in ("before", "apply", "back")}


def _head(resize: Resize, pods: Pods, wanted: Wanted, source: str, back_from: str | None) -> list[str]:
    """
    What the file is, in a few lines.

    Args:
        resize: The resize.
        pods: The fleet as pods.
        wanted: The object.
        source: Where its allocation comes from.
        back_from: How many instances are left by a rollback, in words; None where it is none.
    """
    trainer = "" if pods.trainer_gpus is None else f"; the trainer keeps its {numbered(pods.trainer_gpus, 'GPU')}"
    quota = resize.kind == "ClusterQueue"
    counted = f"{numbered(pods.rollout_gpus, 'GPU')} of quota" if quota else numbered(pods.replicas, "replica")
    fleet = f"{numbered(pods.instances, 'instance')} of {numbered(pods.rollout_gpus // pods.instances, 'GPU')}"
    what = "Resize" if back_from is None else "Rollback"
    return [
        f"Written by rlsize {VERSION} from {source}. Nothing is applied.",
        f"{what}: {fleet} ({numbered(pods.rollout_gpus, 'rollout GPU')}){back_from or ''}{trainer}.",
        f"{resize.kind} {wanted.name} ({resize.api_version}): {counted}.",
    ]


def _text(
    resize: Resize, pods: Pods, wanted: Wanted, base: str | None, head: list[str], commands: Mapping[str, str]
) -> tuple[str, tuple[Changed, ...], tuple[str, ...]]:
    """
    The file: new, or the one that was there with the resize in it.

    Raises:
        InputError: The one that was there does not hold the object.
    """
    said = commented(head) + pasted(f"{when.capitalize()}: {command}" for when, command in commands.items())
    cautions = [f"Caution: {warning}" for warning in resize.warnings]
    if base is None:
        notes = [f"Note: {note}" for note in resize.notes]
        return said + commented([*notes, *cautions]) + yaml_documents(resize.documents), (), ()
    made = edited(read_text(base, LARGEST), base, resize, pods, wanted)
    told = [f"Changed: {one.path}: {one.before or 'not said'} -> {one.after}" for one in made.changes]
    unchanged = []
    if not made.changes:
        unchanged.append(f"{base} is so already: nothing changed.")
    if made.versioned:
        unchanged.append("It carries a resourceVersion: remove it, or the file can be applied only once.")
    return said + commented([*told, *cautions]) + made.text, made.changes, tuple(unchanged)
