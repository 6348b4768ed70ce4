"""The text of a resize: what is written, what it says of itself, and the commands to paste."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, NamedTuple

from rlsize.reports.wording import numbered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.writers.manifests.in_place import Changed
    from rlsize.writers.manifests.resize import Pods, Resize, Wanted


class Text(NamedTuple):
    """
    The file.

    Args:
        text: All of it.
        changes: What differs from the manifest that was there.
        notes: What there is to say about that.
    """

    text: str
    changes: tuple[Changed, ...] = ()
    notes: tuple[str, ...] = ()


def commands_of(resize: Resize, base: str | None, file: str) -> dict[str, str]:
    """What to paste: before, to apply, and to go back."""
    file = shlex.quote(file)
    if base is not None:
        back = f"kubectl apply -f {shlex.quote(base)}"
        return {"before": f"kubectl diff -f {file}", "apply": f"kubectl apply -f {file}", "back": back}
    found = {"before": resize.before, "apply": resize.apply, "back": resize.back}
    return {key: command.replace("{file}", file) for key, command in found.items()}


def head_of(resize: Resize, pods: Pods, wanted: Wanted, source: str, back_from: str | None) -> list[str]:
    """
    What the file is, in a few lines.

    Args:
        resize: The resize.
        pods: The fleet as pods.
        wanted: The object.
        source: Where its allocation comes from.
        back_from: How many instances are left by a rollback, in words; None where it is none.
    """
    from rlsize.version import VERSION

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


def text_of(
    resize: Resize, pods: Pods, wanted: Wanted, base: str | None, head: list[str], commands: Mapping[str, str]
) -> Text:
    """
    The file: new, or the one that was there with the resize in it.

    Raises:
        InputError: The one that was there does not hold the object.
    """
    from rlsize.writers.manifests.text import commented, pasted, yaml_documents

    said = commented(head) + pasted(f"{when.capitalize()}: {command}" for when, command in commands.items())
    cautions = [f"Caution: {warning}" for warning in resize.warnings]
    if base is None:
        notes = [f"Note: {note}" for note in resize.notes]
        return Text(said + commented([*notes, *cautions]) + yaml_documents(resize.documents))
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
    return Text(said + commented([*told, *cautions]) + made.text, made.changes, tuple(unchanged))
