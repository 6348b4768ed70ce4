"""The text of a resize and all that there is to say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.commands.manifest_allocation import AllocationFlags, Said, allocation_of
from rlsize.commands.manifest_wanted import gpus_per_pod, platform_of, wanted_of
from rlsize.errors import Fault, InputError

if TYPE_CHECKING:
    from rlsize.commands.manifest_wanted import PlatformFlags
    from rlsize.facts.allocation import Allocation
    from rlsize.reports.manifest import Changed, Written
    from rlsize.writers.manifests.resize import Pods, Resize, Wanted

_UNNAMED = "resize.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """
    The files of a resize.

    Args:
        source: The plan or scenario; None for flags only.
        rollback: The observation or plan that is gone back to.
        output: Where the text goes; None for stdout.
    """

    source: str | None
    rollback: str | None
    output: str | None


def resized(said: Said, found: Allocation, asked: PlatformFlags, files: Files) -> Written:
    """
    The resize as text.

    Args:
        said: The file that says the allocation.
        found: The allocation.
        asked: Which object, and how.
        files: What is read and written.

    Raises:
        InputError: All that is missing or wrong.
    """
    from rlsize.reports.manifest import Written
    from rlsize.writers.manifests.resize import pods_of

    inputs = said.inputs
    module = platform_of(asked, inputs)
    wanted = wanted_of(asked, found, inputs)
    pods = pods_of(found, gpus_per_pod(asked, inputs), inputs.faults)
    if module is None or pods is None:
        inputs.settle()
        raise InputError(Fault("nothing says how large the fleet is", "--instances", "give a plan, or --instances"))
    _check_bounds(wanted, pods, inputs.faults)
    if asked.base is None:
        resize = module.resize(pods, wanted, inputs.faults)
    else:  # the object that is there has what a new one would need flags for
        unneeded: list[Fault] = []
        resize = module.resize(pods, wanted, unneeded)
        inputs.faults += [fault for fault in unneeded if fault.where in {"--platform", "--group"}]
    inputs.settle()
    file = files.output or _UNNAMED
    commands = _commands(resize, asked.base, file)
    head = _head(resize, pods, wanted, found, files)
    text, changes, notes = _text(resize, pods, wanted, asked.base, head, commands)
    return Written(
        text=text,
        platform=module.PLATFORM,
        kind=resize.kind,
        api_version=resize.api_version,
        instances=pods.instances,
        replicas=pods.replicas,
        gpus_per_pod=pods.gpus_per_pod,
        pods_per_engine=pods.pods_per_engine,
        rollout_gpus=pods.rollout_gpus,
        trainer_gpus=pods.trainer_gpus,
        object_name=wanted.name,
        commands=commands,
        changes=changes,
        based=asked.base is not None,
        rollback=files.rollback is not None,
        file=files.output or "",
        warnings=(*inputs.warnings, *resize.warnings),
        notes=(*inputs.notes, *_lent(found), *(() if asked.base else resize.notes), *notes),
    )


def _lent(found: Allocation) -> tuple[str, ...]:
    """What a hybrid loop has beside its fleet."""
    if found.mode != "hybrid":
        return ()
    return ("Trainer GPUs that generate while they wait are the trainer's: only the fleet of its own is resized.",)


def _check_bounds(wanted: Wanted, pods: Pods, faults: list[Fault]) -> None:
    """Bounds must hold the matched count, or the platform would not keep it."""
    low, high = wanted.minimum, wanted.maximum
    if low is not None and low > pods.replicas:
        faults.append(Fault(f"{low} is more than the {pods.replicas} replicas that match", "--min", "give fewer"))
    if high is not None and high < pods.replicas:
        faults.append(Fault(f"{high} is less than the {pods.replicas} replicas that match", "--max", "give more"))


def _commands(resize: Resize, base: str | None, file: str) -> dict[str, str]:
    """What to paste: before, to apply, and to go back."""
    import shlex

    file = shlex.quote(file)
    if base is not None:
        kept = shlex.quote(base)
        return {
            "before": f"kubectl diff -f {file}",
            "apply": f"kubectl apply -f {file}",
            "back": f"kubectl apply -f {kept}",
        }
    found = {"before": resize.before, "apply": resize.apply, "back": resize.back}
    return {key: command.replace("{file}", file) for key, command in found.items()}


def _head(resize: Resize, pods: Pods, wanted: Wanted, found: Allocation, files: Files) -> list[str]:
    """What the file is, in a few lines."""
    from rlsize.reports.manifest import numbered
    from rlsize.version import VERSION

    size = pods.rollout_gpus // pods.instances
    what = "Rollback" if files.rollback else "Resize"
    trainer = "" if pods.trainer_gpus is None else f"; the trainer keeps its {numbered(pods.trainer_gpus, 'GPU')}"
    quota = resize.kind == "ClusterQueue"
    counted = f"{numbered(pods.rollout_gpus, 'GPU')} of quota" if quota else numbered(pods.replicas, "replica")
    fleet = f"{numbered(pods.instances, 'instance')} of {numbered(size, 'GPU')}"
    now = _now(files) if files.rollback else ""
    return [
        f"Written by rlsize {VERSION} from {found.source}. Nothing is applied.",
        f"{what}: {fleet} ({numbered(pods.rollout_gpus, 'rollout GPU')}){now}{trainer}.",
        f"{resize.kind} {wanted.name} ({resize.api_version}): {counted}.",
    ]


def _now(files: Files) -> str:
    """How many instances there are before a rollback, where the plan that is left says so."""
    if files.source is None:
        return ""
    said = Said(files.source)
    found = allocation_of(said, AllocationFlags(), files.source)
    said.inputs.settle()
    return f", back from {found.instances}" if found.instances else ""


def _text(
    resize: Resize, pods: Pods, wanted: Wanted, base: str | None, head: list[str], commands: dict[str, str]
) -> tuple[str, tuple[Changed, ...], tuple[str, ...]]:
    """The file, what changed of the one that was there, and what to say about that."""
    from rlsize.writers.manifests.text import commented, pasted, yaml_documents

    said = commented(head) + pasted(f"{when.capitalize()}: {command}" for when, command in commands.items())
    cautions = [f"Caution: {warning}" for warning in resize.warnings]
    if base is None:
        notes = [f"Note: {note}" for note in resize.notes]
        return said + commented([*notes, *cautions]) + yaml_documents(resize.documents), (), ()
    from rlsize.readers.yaml_documents import read_text
    from rlsize.writers.manifests.in_place import edited
    from rlsize.writers.manifests.tree import LARGEST

    made = edited(read_text(base, LARGEST), base, resize, pods, wanted)
    told = [f"Changed: {one.path}: {one.before or 'not said'} -> {one.after}" for one in made.changes]
    unchanged = []
    if not made.changes:
        unchanged.append(f"{base} is so already: nothing changed.")
    if made.versioned:
        unchanged.append("It carries a resourceVersion: remove it, or the file can be applied only once.")
    return said + commented([*told, *cautions]) + made.text, made.changes, tuple(unchanged)
