"""The text of a snippet and all that there is to say about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.errors import DoesNotFitError

if TYPE_CHECKING:
    from rlsize.reports.report import Report
    from rlsize.shell.inputs import Inputs
    from rlsize.writers.snippets.listing import Framework
    from rlsize.writers.snippets.snippet import Snippet
    from rlsize.writers.snippets.split import Split

_SHOWN = frozenset(
    {
        "mode", "instances", "gpus_per_instance", "rollout_gpus", "trainer_gpus", "gpus_per_node", "engine",
        "rollout_tensor_parallel", "max_staleness", "sync_every", "prompts_per_step", "group_size", "mini_batches",
    }
)  # fmt: skip
"""What a snippet sets, of all that a plan says."""


def told(inputs: Inputs, module: Framework | None, split: Split, source: str, output: str | None) -> tuple[Report, str]:
    """
    The report and the text of a snippet.

    Args:
        inputs: What was used.
        module: The framework.
        split: The split.
        source: Where it comes from.
        output: Where it is written; None for stdout.

    Raises:
        DoesNotFitError: What the framework cannot express, each with what comes nearest.
    """
    from rlsize.reports.snippet import Keyed, Printed, snippet_report

    found = inputs.settled(module)
    made = found.snippet(split)
    if split.refusals:
        raise DoesNotFitError(*split.refusals)
    text = _text(found, split, made, source)
    printed = Printed(
        text=text,
        framework=found.NAME,
        title=found.TITLE,
        version=found.SOURCE,
        variant=split.variant,
        instances=split.instances,
        rollout_gpus=split.rollout_gpus,
        trainer_gpus=split.trainer_gpus,
        staleness=split.staleness,
        settings=tuple(
            Keyed(part=part.title, key=setting.key, value=setting.value, read=setting.read)
            for part in made.parts
            for setting in part.settings
        ),
        file=output or "",
        warnings=(*inputs.warnings, *made.warnings),
        notes=(*inputs.notes, *made.notes),
    )
    shown = tuple(figure for figure in inputs.shown() if figure.key in _SHOWN)
    return snippet_report(printed, shown), text


def _text(found: Framework, split: Split, made: Snippet, source: str) -> str:
    from rlsize.version import VERSION
    from rlsize.writers.manifests.text import commented
    from rlsize.writers.snippets.snippet import part_text

    unread = [setting.key for setting in made.settings if not setting.read]
    lines = [
        f"{found.SOURCE}: {split.variant}. Written by rlsize {VERSION} from {source}.",
        _pools(split),
        f"Batch: {split.prompts} prompts x {split.group} samples, weight updates: {split.mini_batches}.",
        *made.notes,
        *(f"Caution: {warning}" for warning in made.warnings),
    ]
    if unread:
        lines.append(f"Not read in the source of that version, so check: {', '.join(unread)}.")
    several = len(made.parts) > 1
    bodies = [(commented([part.title]) if several else "") + part_text(part) for part in made.parts]
    return commented(lines) + ("\n" if several else "") + "\n".join(bodies)


def _pools(split: Split) -> str:
    from rlsize.reports.manifest import numbered

    fleet = f"{numbered(split.instances, 'instance')} of {numbered(split.size, 'GPU')}"
    if split.shared:
        return f"Split: {numbered(split.gpus, 'GPU')} for both sides, {fleet} (tensor parallel {split.tensor})."
    behind = f"staleness up to {split.staleness}, sync every {split.sync_every}"
    return (
        f"Split: {numbered(split.rollout_gpus, 'rollout GPU')} ({fleet}, tensor parallel {split.tensor}), "
        f"{numbered(split.trainer_gpus, 'trainer GPU')}; {split.mode}, {behind}."
    )
