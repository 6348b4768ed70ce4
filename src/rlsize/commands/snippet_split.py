"""The framework of a snippet, and a split in whole numbers; what is missing is told at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.errors import DoesNotFitError, Fault, suggestion

if TYPE_CHECKING:
    from rlsize.facts.allocation import Allocation
    from rlsize.shell.inputs import Inputs
    from rlsize.writers.snippets.listing import Framework
    from rlsize.writers.snippets.split import Split

_INSTEAD = {
    "instances": "--instances",
    "gpus_per_instance": "--gpus-per-instance",
    "rollout_gpus": "--rollout-gpus",
    "trainer_gpus": "--trainer-gpus",
    "gpus_per_node": "--gpus-per-node",
    "prompts_per_step": "--prompts",
    "group_size": "--group",
}


def chosen(inputs: Inputs, framework: str | None, variant: str | None, mode: str) -> tuple[Framework | None, str]:
    """
    The framework and which of its trainers; None where there is none of that name, which is noted.

    Raises:
        DoesNotFitError: The framework cannot run the loop so.
    """
    from rlsize.writers.snippets.listing import frameworks

    known = frameworks()
    if framework is None:
        inputs.fault("for which framework?", "--framework", f"give one of {', '.join(known)}")
        return None, ""
    name = framework.strip().lower().replace("_", "-")
    if name not in known:
        short = framework[:40]
        inputs.fault(f"{short!r} is no framework that is known here", "--framework", suggestion(short, known))
        return None, ""
    found = known[name]
    if not mode:
        if not any("mode" in fault.where for fault in inputs.faults):
            inputs.fault("mode is missing", "--mode", "give it, a plan, or a scenario with placement.mode")
        return found, ""
    if variant is not None:
        return found, _asked(inputs, found, variant, mode)
    way = next((way for way, modes in found.VARIANTS.items() if mode in modes), "")
    if not way:
        inputs.settle()
        raise DoesNotFitError(_refusal(found, mode))
    return found, way


def _asked(inputs: Inputs, found: Framework, variant: str, mode: str) -> str:
    way = variant.strip().lower().replace("_", "-")
    if way not in found.VARIANTS:
        short = variant[:40]
        inputs.fault(f"{found.TITLE} has no {short!r}", "--variant", suggestion(short, found.VARIANTS))
        return ""
    if mode not in found.VARIANTS[way]:
        inputs.settle()
        what = f"{found.TITLE}'s {way} cannot run a loop that is {mode}"
        raise DoesNotFitError(Fault(what, "--variant", f"it runs --mode {' or '.join(found.VARIANTS[way])}"))
    return way


def _refusal(found: Framework, mode: str) -> Fault:
    """Why a framework cannot run a loop so, and what comes nearest."""
    reason, near = found.REFUSED.get(mode, ("", ""))
    if not reason:
        _, other = found.REFUSED.get("async", ("", "--mode async"))
        reason = "no key was read for trainer GPUs that generate while they wait"
        near = f"{other}, with longer steps"
    return Fault(f"{found.TITLE} cannot run a loop that is {mode}: {reason}", "--mode", f"nearest: {near}")


def split_of(inputs: Inputs, found: Allocation, variant: str) -> Split:
    """
    The split in whole numbers.

    Args:
        inputs: Where faults are noted.
        found: The allocation.
        variant: Which of the framework's trainers it is for.

    Raises:
        InputError: All that is missing or wrong so far.
        DoesNotFitError: No framework has a key for it.
    """
    from rlsize.writers.snippets.split import Split

    numbers = {key: _whole(inputs, key, getattr(found, key)) for key in _INSTEAD}
    if found.rollout.tensor is None and found.gpus_per_instance not in {None, 1}:
        todo = "give the GPUs that share each layer of an instance"
        inputs.fault("how an instance is spread is not known", "--rollout-tensor-parallel", todo)
    staleness = found.staleness
    if found.mode and staleness is None:
        inputs.fault("max_staleness is missing", "--max-staleness", "give the staleness cap in optimizer steps")
    inputs.settle()
    whole = _whole(inputs, "max_staleness", staleness, "--max-staleness")
    if found.mode in {"async", "hybrid"} and whole < 1:
        todo = "give 1 or more, or --mode sync"
        inputs.fault("an asynchronous loop has samples that are a step old", "--max-staleness", todo)
    inputs.settle()
    if found.carried:
        what = "long samples go on in the next step (mode partial), and no key for that was read"
        raise DoesNotFitError(Fault(what, "--mode", "nearest: --mode sync, or --mode async"))
    return Split(
        mode=found.mode,
        variant=variant,
        instances=numbers["instances"],
        size=numbers["gpus_per_instance"],
        rollout_gpus=numbers["rollout_gpus"],
        trainer_gpus=numbers["trainer_gpus"],
        node=numbers["gpus_per_node"],
        rollout=found.rollout,
        trainer=found.trainer,
        staleness=whole,
        sync_every=found.sync_every,
        prompts=numbers["prompts_per_step"],
        group=numbers["group_size"],
        mini_batches=found.mini_batches,
        engine=found.engine,
        in_flight=found.in_flight,
        memory_fraction=found.memory_fraction,
        reference=found.reference,
        mixture=found.mixture,
    )


def _whole(inputs: Inputs, key: str, value: float | None, flag: str = "") -> int:
    """A whole number; a fault, and 0, where it is missing or has a fraction."""
    flag = flag or _INSTEAD[key]
    if value is None:
        if not any(key in fault.where.replace("-", "_") for fault in inputs.faults):  # else it was told already
            inputs.fault(f"{key} is missing", flag, "give it, or a plan that says it (`rlsize plan ... --save FILE`)")
        return 0
    if value != int(value):
        source = inputs.used[key].source if key in inputs.used else flag
        inputs.fault(f"{key} is {value:g}, and frameworks take whole numbers", source, f"give {flag} as one")
    return int(value)
