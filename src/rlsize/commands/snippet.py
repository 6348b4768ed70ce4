"""`rlsize snippet`: the configuration keys of a framework that set the recommended split."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from rlsize.reports.report import Column, Report, Table, Unseen
from rlsize.reports.wording import counted, numbered
from rlsize.shell.allocation import ALLOCATION, Source, read_pools
from rlsize.shell.answer import check_files, delivered
from rlsize.shell.command import Force, option
from rlsize.shell.inputs import Inputs
from rlsize.shell.new_launches import Prepared, prepared
from rlsize.shell.quantity_flags import Changes, asks

if TYPE_CHECKING:
    from collections.abc import Iterable


_ASKED = (
    "mode", *ALLOCATION, "rollout_tensor_parallel", "max_staleness", "sync_every", "prompts_per_step", "group_size",
    "mini_batches",
)  # fmt: skip
"""What a snippet sets, by flag."""

_LATE = {
    "continue": "lets late samples go on",
    "wait": "waits for late samples",
    "drop": "drops late samples",
}


@asks(beside_files=True, Inputs=_ASKED)
def snippet(
    inputs: Inputs,
    context: typer.Context,
    source: Source = None,
    framework: str | None = option(
        "--framework|-f",
        "verl, nemo-rl, openrlhf, trl, slime, prime-rl, areal, skyrl, roll, pipeline-rl or rlinf.",
        metavar="NAME[@VERSION]",
    ),
    variant: str | None = option(
        "--variant", "Which of its trainers; goes by the mode when not given.", metavar="NAME"
    ),
    output: str | None = option("--output|-o", "Write it there, and say what it is.", "Output", "FILE"),
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
    one = prepared(inputs, source or "flags", framework, variant)
    chosen, way, numbers = one.framework, one.way, one.numbers
    unset = [f"Not set, as no key for it was read: {', '.join(one.made.unset)}."] if one.made.unset else []
    notes = (*chosen.variants[way].notes, *unset, *_late_words(one))
    text = _text(one, notes)
    figures = {
        "snippet": text,
        "file": output,
        "framework": chosen.name,
        "variant": way,
        "framework_version": chosen.source,
        "instances": numbers["instances"],
        "rollout_gpus": numbers["rollout_gpus"],
        "trainer_gpus": numbers["trainer_gpus"],
        "staleness_steps": numbers["max_staleness"],
    }
    keys = [key for key, value in one.made.keys.items() if value is not None and not key.endswith(".program")]
    cells = (
        Column("key", "key", "left", wide=True, of=str),
        Column("value", "value", wide=True, of=one.made.keys.__getitem__),
        Unseen("read", lambda key: key not in chosen.unread),
    )
    gpus = f"{numbers['rollout_gpus']} rollout and {numbers['trainer_gpus']} trainer GPUs"
    report = Report(
        headline=f"{f'Wrote {output}. ' if output else ''}{chosen.title}, {way}: {gpus}.",
        results=counted(figures, "the split"),
        tables={"settings": Table.of(f"Keys of {chosen.source}", keys, cells)},
        quiet=frozenset({"snippet", "file", "framework", "variant", "framework_version"}),
        **inputs.told(notes=notes),
    )
    return delivered(report, text, context.obj or {}, output, force=force)


def _late_words(one: Prepared) -> tuple[str, ...]:
    """What the framework does with late samples, where the step that was planned assumes otherwise."""
    from rlsize.frameworks.abilities import framework_mode
    from rlsize.frameworks.told import Reading
    from rlsize.frameworks.wanted import values

    modes = {} if one.framework.runs is None else one.framework.runs.modes
    told = values(Reading(one.framework, ()).changed(one.made.keys)).get("late_samples")
    own = told or modes.get(framework_mode(one.found.mode), one.late)
    if not one.late or own == one.late:
        return ()
    what = f"{one.framework.title} {_LATE[own]}; the step was planned as if it {_LATE[one.late]}"
    return (f"{what}. A plan with --set framework={one.framework.name} prices that.",)


def _text(one: Prepared, notes: Iterable[str]) -> str:
    """The keys, below a few lines that say what they are."""
    from rlsize.version import VERSION
    from rlsize.writers.manifests.resize import commented

    chosen, way, found, numbers, made = one.framework, one.way, one.found, one.numbers, one.made

    tensor = f"tensor parallel {numbers['rollout_tensor_parallel']}"
    fleet = f"{numbered(numbers['instances'], 'instance')} of {numbered(numbers['gpus_per_instance'], 'GPU')}"
    pools = f"{numbered(numbers['trainer_gpus'], 'GPU')} for both sides, {fleet} ({tensor})."
    if not found.shared:
        pools = (
            f"{numbered(numbers['rollout_gpus'], 'rollout GPU')} ({fleet}, {tensor}), "
            f"{numbered(numbers['trainer_gpus'], 'trainer GPU')}; {found.mode}, staleness up to "
            f"{numbers['max_staleness']}, sync every {numbers['sync_every']}."
        )
    batch = f"{numbers['prompts_per_step']} prompts x {numbers['group_size']} samples"
    lines = [
        f"{chosen.title} ({chosen.source}): {way}. Written by rlsize {VERSION} from {found.source}.",
        f"Split: {pools}",
        f"Batch: {batch}, weight updates: {numbers['mini_batches']}.",
        *notes,
    ]
    unread = [key for key in made.keys if key in chosen.unread]
    if unread:
        lines.append(f"Not read in the source of that version, so check: {', '.join(unread)}.")
    return commented(lines) + one.text
