"""`rlsize snippet`: the configuration keys of a framework that set the recommended split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rlsize.errors import DoesNotFitError, Fault, suggestion
from rlsize.facts.figure import Figure
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.wording import numbered
from rlsize.shell.allocation import ALLOCATION, Source, allocation_of, read_pools
from rlsize.shell.answer import check_files, delivered
from rlsize.shell.command import Force, option
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import Changes, asks_beside_files

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.facts.allocation import Allocation
    from rlsize.writers.snippets.snippet import Framework, Snippet
    from rlsize.writers.snippets.split import Split

_ASKED = (
    "mode", *ALLOCATION, "rollout_tensor_parallel", "max_staleness", "sync_every", "prompts_per_step", "group_size",
    "mini_batches",
)  # fmt: skip
"""What a snippet sets."""

_NEEDED = (
    "instances", "gpus_per_instance", "rollout_gpus", "trainer_gpus", "gpus_per_node", "prompts_per_step", "group_size",
)  # fmt: skip
Name = Annotated[
    str | None,
    option(
        "--framework|-f",
        "verl, nemo-rl, openrlhf, trl, slime, prime-rl, areal, skyrl, roll, pipeline-rl or rlinf.",
        metavar="NAME",
    ),
]
Variant = Annotated[
    str | None, option("--variant", "Which of its trainers; goes by the mode when not given.", metavar="NAME")
]
Output = Annotated[str | None, option("--output|-o", "Write it there, and say what it is.", "Output", "FILE")]


@asks_beside_files(Inputs=_ASKED)
def snippet(
    inputs: Inputs,
    context: typer.Context,
    source: Source = None,
    framework: Name = None,
    variant: Variant = None,
    output: Output = None,
    changes: Changes = None,
    force: Force = False,
) -> Report:
    """
    Print a framework's keys for the recommended split.

    Example:  rlsize snippet examples/baseline.yaml --framework verl
    """
    check_files(inputs, output, force=force)
    inputs.settle()
    read_pools(inputs, source, changes)
    found = allocation_of(inputs, source or "flags")
    known, way = _chosen(inputs, framework, variant, found.mode)
    split = _split(inputs, found, known.title if known else "", way)
    framework_of = inputs.settled(known)
    made = framework_of.snippet(split)
    if split.refusals:
        raise DoesNotFitError(*split.refusals)
    text = _text(framework_of, split, made, found.source)
    figures = {
        "snippet": text,
        "file": output,
        "framework": framework_of.name,
        "variant": split.variant,
        "framework_version": framework_of.source,
        "instances": split.instances,
        "rollout_gpus": split.rollout_gpus,
        "trainer_gpus": split.trainer_gpus,
        "staleness_steps": split.staleness,
    }
    rows = tuple(
        {"part": group.title, "key": key, "value": value, "read": key not in framework_of.unread}
        for group in made.groups
        for key, value in group.keys.items()
    )
    columns = (Column("key", "key", side="left", wide=True), Column("value", "value", wide=True))
    gpus = f"{split.rollout_gpus} rollout and {split.trainer_gpus} trainer GPUs"
    report = Report(
        command="snippet",
        headline=f"{f'Wrote {output}. ' if output else ''}{framework_of.title}, {split.variant}: {gpus}.",
        results=tuple(
            Figure(key=key, value=value, provenance="predicted", source="the split")
            for key, value in figures.items()
            if value is not None
        ),
        inputs=inputs.shown(),
        tables={"settings": Table(title=f"Keys of {framework_of.source}", columns=columns, rows=rows)},
        warnings=(*inputs.warnings, *made.warnings),
        notes=(*inputs.notes, *made.notes),
        quiet=frozenset({"snippet", "file", "framework", "variant", "framework_version"}),
    )
    return delivered(report, text, context.obj or {}, output, force=force)


def _chosen(inputs: Inputs, framework: str | None, variant: str | None, mode: str) -> tuple[Framework | None, str]:
    """
    The framework and which of its trainers; None where there is none of that name, which is noted.

    Raises:
        DoesNotFitError: The framework cannot run the loop so.
    """
    from rlsize.writers.snippets import frameworks

    known = frameworks()
    if framework is None:
        inputs.fault("for which framework?", "--framework", f"give one of {', '.join(known)}")
        return None, ""
    name = _known(inputs, "--framework", framework, known, "{!r} is no framework that is known here")
    if not name:
        return None, ""
    found = known[name]
    if not mode:
        if not any("mode" in fault.where for fault in inputs.faults):
            inputs.fault("mode is missing", "--mode", "give it, a plan, or a scenario with placement.mode")
        return found, ""
    if variant is not None:
        way = _known(inputs, "--variant", variant, found.variants, f"{found.title} has no {{!r}}")
        if way and mode not in found.variants[way]:
            inputs.settle()
            what = f"{found.title}'s {way} cannot run a loop that is {mode}"
            raise DoesNotFitError(Fault(what, "--variant", f"it runs --mode {' or '.join(found.variants[way])}"))
        return found, way
    way = next((way for way, modes in found.variants.items() if mode in modes), "")
    if not way:
        inputs.settle()
        raise DoesNotFitError(_refusal(found, mode))
    return found, way


def _known(inputs: Inputs, flag: str, text: str, known: Iterable[str], wrong: str) -> str:
    """A name as it is listed; empty where it is not, which is noted."""
    name = text.strip().lower().replace("_", "-")
    if name in known:
        return name
    inputs.fault(wrong.format(text[:40]), flag, suggestion(text[:40], known))
    return ""


def _refusal(found: Framework, mode: str) -> Fault:
    """Why a framework cannot run a loop so, and what comes nearest."""
    reason, near = found.refused.get(mode, ("", ""))
    if not reason:
        _, other = found.refused.get("async", ("", "--mode async"))
        reason = "no key was read for trainer GPUs that generate while they wait"
        near = f"{other}, with longer steps"
    return Fault(f"{found.title} cannot run a loop that is {mode}: {reason}", "--mode", f"nearest: {near}")


def _split(inputs: Inputs, found: Allocation, title: str, variant: str) -> Split:
    """
    The split in whole numbers.

    Raises:
        InputError: All that is missing or wrong so far.
        DoesNotFitError: No framework has a key for it.
    """
    from rlsize.writers.snippets.split import Split

    numbers = {key: _whole(inputs, key, getattr(found, key)) for key in _NEEDED}
    if found.rollout.tensor is None and found.gpus_per_instance not in {None, 1}:
        todo = "give the GPUs that share each layer of an instance"
        inputs.fault("how an instance is spread is not known", "--rollout-tensor-parallel", todo)
    if found.mode and found.staleness is None:
        inputs.fault("max_staleness is missing", "--max-staleness", "give the staleness cap in optimizer steps")
    inputs.settle()
    whole = _whole(inputs, "max_staleness", found.staleness)
    if found.mode in {"async", "hybrid"} and whole < 1:
        todo = "give 1 or more, or --mode sync"
        inputs.fault("an asynchronous loop has samples that are a step old", "--max-staleness", todo)
    inputs.settle()
    if found.carried:
        what = "long samples go on in the next step (mode partial), and no key for that was read"
        raise DoesNotFitError(Fault(what, "--mode", "nearest: --mode sync, or --mode async"))
    return Split(
        title=title,
        said=found,
        variant=variant,
        instances=numbers["instances"],
        size=numbers["gpus_per_instance"],
        rollout_gpus=numbers["rollout_gpus"],
        trainer_gpus=numbers["trainer_gpus"],
        node=numbers["gpus_per_node"],
        staleness=whole,
        prompts=numbers["prompts_per_step"],
        group=numbers["group_size"],
    )


def _whole(inputs: Inputs, key: str, value: float | None) -> int:
    """A whole number; a fault, and 0, where it is missing or has a fraction."""
    flag = inputs.flag(key)
    if value is None:
        if not any(key in fault.where.replace("-", "_") for fault in inputs.faults):  # else it was told already
            inputs.fault(f"{key} is missing", flag, "give it, or a plan that says it (`rlsize plan ... --save FILE`)")
        return 0
    if value != int(value):
        source = inputs.used[key].source if key in inputs.used else flag
        inputs.fault(f"{key} is {value:g}, and frameworks take whole numbers", source, f"give {flag} as one")
    return int(value)


def _text(found: Framework, split: Split, made: Snippet, source: str) -> str:
    """The keys, below a few lines that say what they are."""
    from rlsize.version import VERSION
    from rlsize.writers.manifests.text import commented
    from rlsize.writers.snippets.snippet import group_text

    fleet = f"{numbered(split.instances, 'instance')} of {numbered(split.size, 'GPU')}"
    pools = f"{numbered(split.gpus, 'GPU')} for both sides, {fleet} (tensor parallel {split.tensor})."
    if not split.shared:
        pools = (
            f"{numbered(split.rollout_gpus, 'rollout GPU')} ({fleet}, tensor parallel {split.tensor}), "
            f"{numbered(split.trainer_gpus, 'trainer GPU')}; {split.said.mode}, staleness up to {split.staleness}, "
            f"sync every {split.said.sync_every}."
        )
    lines = [
        f"{found.source}: {split.variant}. Written by rlsize {VERSION} from {source}.",
        f"Split: {pools}",
        f"Batch: {split.prompts} prompts x {split.group} samples, weight updates: {split.said.mini_batches}.",
        *made.notes,
        *(f"Caution: {warning}" for warning in made.warnings),
    ]
    unread = [key for group in made.groups for key in group.keys if key in found.unread]
    if unread:
        lines.append(f"Not read in the source of that version, so check: {', '.join(unread)}.")
    several = len(made.groups) > 1
    bodies = [(commented([group.title]) if several else "") + group_text(group) for group in made.groups]
    return commented(lines) + ("\n" if several else "") + "\n".join(bodies)
