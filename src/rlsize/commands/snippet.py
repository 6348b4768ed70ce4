"""`rlsize snippet`: the configuration keys of a framework that set the recommended split."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlsize.errors import DoesNotFitError, Fault, suggestion
from rlsize.facts.figure import Figure
from rlsize.quantities.row import Switch, Text, Word
from rlsize.quantities.table import QUANTITIES
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.wording import numbered
from rlsize.shell.allocation import ALLOCATION, Source, allocation_of, read_pools
from rlsize.shell.answer import check_files, delivered
from rlsize.shell.command import Force, option
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import Changes, asks_beside_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.facts.allocation import Allocation
    from rlsize.facts.framework import Framework
    from rlsize.frameworks.demands import Unmet
    from rlsize.frameworks.new import NewLaunch

_ASKED = (
    "mode", *ALLOCATION, "rollout_tensor_parallel", "max_staleness", "sync_every", "prompts_per_step", "group_size",
    "mini_batches",
)  # fmt: skip
"""What a snippet sets, by flag."""

_NEEDED = (
    "instances", "gpus_per_instance", "rollout_gpus", "trainer_gpus", "gpus_per_node", "prompts_per_step", "group_size",
)  # fmt: skip
_LIKED = (
    "memory_fraction", "max_num_seqs", "rollout_dtype", "kv_dtype", "max_response_tokens", "updates",
    "tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel", "fsdp", "zero_stage",
    "micro_batch_tokens", "recompute", "offload", "lora_rank", "reference",
)  # fmt: skip
"""What it sets besides, where a file says it and the framework has keys for it."""
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
    numbers = _numbers(inputs, found)
    chosen = inputs.settled(known)
    made = _made(inputs, found, numbers, chosen, way)
    text = _text(chosen, way, made, found, numbers)
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
    rows = tuple(
        {"key": key, "value": value, "read": key not in chosen.unread}
        for key, value in made.keys.items()
        if value is not None and not key.endswith(".program")
    )
    columns = (Column("key", "key", side="left", wide=True), Column("value", "value", wide=True))
    gpus = f"{numbers['rollout_gpus']} rollout and {numbers['trainer_gpus']} trainer GPUs"
    report = Report(
        command="snippet",
        headline=f"{f'Wrote {output}. ' if output else ''}{chosen.title}, {way}: {gpus}.",
        results=tuple(
            Figure(key=key, value=value, provenance="predicted", source="the split")
            for key, value in figures.items()
            if value is not None
        ),
        inputs=inputs.shown(),
        tables={"settings": Table(title=f"Keys of {chosen.source}", columns=columns, rows=rows)},
        warnings=tuple(inputs.warnings),
        notes=(*inputs.notes, *chosen.variants[way].notes, *_unset(made)),
        quiet=frozenset({"snippet", "file", "framework", "variant", "framework_version"}),
    )
    return delivered(report, text, context.obj or {}, output, force=force)


def _chosen(inputs: Inputs, framework: str | None, variant: str | None, mode: str) -> tuple[Framework | None, str]:
    """
    The framework and which of its trainers; None where there is none of that name, which is noted.

    Raises:
        DoesNotFitError: The framework cannot run the loop so.
    """
    from rlsize.readers.frameworks import frameworks

    known = {name: one for name, one in frameworks(inputs.catalogue).items() if one.variants}
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
        if way and mode not in found.variants[way].modes:
            inputs.settle()
            what = f"{found.title}'s {way} cannot run a loop that is {mode}"
            raise DoesNotFitError(Fault(what, "--variant", f"it runs --mode {' or '.join(found.variants[way].modes)}"))
        return found, way
    way = next((way for way, one in found.variants.items() if mode in one.modes), "")
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
    reason, near = found.refuses.get(mode, ("", ""))
    if not reason:
        _, other = found.refuses.get("async", ("", "--mode async"))
        reason = "no key was read for trainer GPUs that generate while they wait"
        near = f"{other}, with longer steps"
    return Fault(f"{found.title} cannot run a loop that is {mode}: {reason}", "--mode", f"nearest: {near}")


def _numbers(inputs: Inputs, found: Allocation) -> dict[str, int]:
    """
    The split in whole numbers.

    Raises:
        InputError: All that is missing or wrong so far.
        DoesNotFitError: No framework has a key for it.
    """
    numbers = {key: _whole(inputs, key, getattr(found, key)) for key in _NEEDED}
    if found.rollout.tensor is None and found.gpus_per_instance not in {None, 1}:
        todo = "give the GPUs that share each layer of an instance"
        inputs.fault("how an instance is spread is not known", "--rollout-tensor-parallel", todo)
    if found.mode and found.staleness is None:
        inputs.fault("max_staleness is missing", "--max-staleness", "give the staleness cap in optimizer steps")
    inputs.settle()
    numbers["max_staleness"] = _whole(inputs, "max_staleness", found.staleness)
    if found.mode in {"async", "hybrid"} and numbers["max_staleness"] < 1:
        todo = "give 1 or more, or --mode sync"
        inputs.fault("an asynchronous loop has samples that are a step old", "--max-staleness", todo)
    inputs.settle()
    if found.carried:
        what = "long samples go on in the next step (mode partial), and no key for that was read"
        raise DoesNotFitError(Fault(what, "--mode", "nearest: --mode sync, or --mode async"))
    return numbers


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


def _made(inputs: Inputs, found: Allocation, numbers: Mapping[str, int], framework: Framework, way: str) -> NewLaunch:
    """
    The keys.

    Raises:
        InputError: What is wrong with what a file says.
        DoesNotFitError: The framework has no keys for the loop; all of it, with what comes nearest.
    """
    from rlsize.frameworks.new import framework_mode, new_launch

    given: dict[str, Any] = {key: numbers[key] for key in ("gpus_per_node", "gpus_per_instance")}
    given |= {"mode": framework_mode(found.mode), "algorithm": inputs.name("algorithm")[0] or "grpo"}
    given |= {"gpus": _gpus(found, numbers), "shared": found.shared, "mixture": bool(found.mixture)}
    needed: dict[str, Any] = {key: value for key, value in numbers.items() if key not in given}
    needed |= {f"rollout_{name}_parallel": degree for name, degree in found.rollout.said().items()}
    needed |= {
        "rollout_tensor_parallel": found.rollout.tensor or 1,
        "mini_batches": found.mini_batches,
        "sync_every": found.sync_every,
        "engine": found.engine or None,
    }
    liked = _liked(inputs)
    liked |= {"inflight_weight_updates": found.in_flight or None, "lends": found.mode == "hybrid" or None}
    inputs.settle()
    made = new_launch(framework, framework.variants[way], _told(needed), _told(liked), _told(given))
    if made.unmet:
        raise DoesNotFitError(*(_no(inputs, one) for one in made.unmet))
    return made


def _gpus(found: Allocation, numbers: Mapping[str, int]) -> int:
    """GPUs of both sides."""
    return numbers["trainer_gpus"] + (0 if found.shared else numbers["rollout_gpus"])


def _told(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _liked(inputs: Inputs) -> dict[str, Any]:
    """What a file says besides; a model by its name on the hub."""
    found: dict[str, Any] = {}
    for key in _LIKED:
        kind = QUANTITIES[key].kind
        if not inputs.gives(key):
            continue
        if isinstance(kind, Switch):
            found[key] = inputs.yes(key)
        elif isinstance(kind, (Word, Text)):
            found[key] = inputs.name(key)[0]
        else:
            number = inputs.ask(key).value
            if number != 1 or not key.endswith("_parallel"):  # what is not spread is so by default
                found[key] = int(number) if isinstance(number, float) and number.is_integer() else number
    model, _ = inputs.name("model")
    if isinstance(model, str):
        profile = inputs.apart().profile("model", model, "")
        found["model"] = (profile.hf_repo if profile is not None else None) or model
    return found


def _no(inputs: Inputs, one: Unmet) -> Fault:
    """Why a framework cannot run the loop, and what comes nearest."""
    if one.quantity not in QUANTITIES:
        return Fault(one.what, "", "nearest: another split")
    flag = inputs.flag(one.quantity)
    near = " or ".join(str(value) for value in one.nearest if value is not None)
    return Fault(one.what, flag, f"nearest: {flag} {near}".rstrip())


def _unset(made: NewLaunch) -> tuple[str, ...]:
    return (f"Not set, as no key for it was read: {', '.join(made.unset)}.",) if made.unset else ()


def _text(chosen: Framework, way: str, made: NewLaunch, found: Allocation, numbers: Mapping[str, int]) -> str:
    """The keys, below a few lines that say what they are."""
    from rlsize.version import VERSION
    from rlsize.writers.launch.new import launch_text
    from rlsize.writers.manifests.text import commented

    tensor = f"tensor parallel {found.rollout.tensor or 1}"
    fleet = f"{numbered(numbers['instances'], 'instance')} of {numbered(numbers['gpus_per_instance'], 'GPU')}"
    pools = f"{numbered(numbers['trainer_gpus'], 'GPU')} for both sides, {fleet} ({tensor})."
    if not found.shared:
        pools = (
            f"{numbered(numbers['rollout_gpus'], 'rollout GPU')} ({fleet}, {tensor}), "
            f"{numbered(numbers['trainer_gpus'], 'trainer GPU')}; {found.mode}, staleness up to "
            f"{numbers['max_staleness']}, sync every {found.sync_every}."
        )
    batch = f"{numbers['prompts_per_step']} prompts x {numbers['group_size']} samples"
    lines = [
        f"{chosen.title} ({chosen.source}): {way}. Written by rlsize {VERSION} from {found.source}.",
        f"Split: {pools}",
        f"Batch: {batch}, weight updates: {found.mini_batches}.",
        *chosen.variants[way].notes,
        *_unset(made),
    ]
    unread = [key for key in made.keys if key in chosen.unread]
    if unread:
        lines.append(f"Not read in the source of that version, so check: {', '.join(unread)}.")
    return commented(lines) + launch_text(chosen, chosen.variants[way], made.keys)
