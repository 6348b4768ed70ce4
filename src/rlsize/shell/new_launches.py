"""A new launch of a loop: its framework and trainer, its keys, and whether it fits as these keep its memory."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.errors import DoesNotFitError, Fault, suggestion
from rlsize.loop.phases import PHASE_KEYS
from rlsize.quantities.row import Switch, Text, Word
from rlsize.quantities.table import QUANTITIES
from rlsize.shell.allocation import allocation_of
from rlsize.shell.launches import data_ranks, in_samples, last_stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.facts.framework import Framework
    from rlsize.facts.model import Model
    from rlsize.facts.plan import Allocation
    from rlsize.frameworks.demands import Unmet
    from rlsize.frameworks.new import NewLaunch
    from rlsize.shell.inputs import Inputs

_POOLS = ("instances", "gpus_per_instance", "rollout_gpus", "trainer_gpus", "gpus_per_node")
_CAPS = {"colocated": 0.0, "synchronous": 0.0, "one-step-off": 1.0}
"""Optimizer steps that a sample may be behind, where the mode says it."""
_HELD = (
    "tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel", "recompute", "offload",
    "chunked_loss", "lora_rank", "memory_fraction", "max_response_tokens", "max_prompt_tokens", "trainer_backend",
    "micro_batch_tokens", "micro_batch_samples", "algorithm", "reference", "turns",
    "redundant_samples",
)  # fmt: skip
"""What makes it another loop where a framework that tells it cannot be set to it."""
_LIKED = (
    *_HELD, "max_num_seqs", "rollout_dtype", "kv_dtype", "updates", "fsdp", "zero_stage", *PHASE_KEYS,
)  # fmt: skip
"""What it sets besides, where a file says it and the framework has keys for it."""
_LAYOUT = "trainer.parallelism."
_LONG_PROMPT = 2.0  # times the mean: nobody says a cap on prompts
_MOVED: Mapping[str, Any] = {
    "engine_sleep": "weights", "staged_wake_up": True, "offload_params": True, "offload_optimizer": True,
    "reference_offload": True,
}  # fmt: skip
"""What sides that share their GPUs do in turn, as plans take for granted."""
_OF_TURNS = ("engine_sleep", "staged_wake_up", "offloaded_between")
"""What only sides that share their GPUs do, so that a key for it may put them on the same ones."""


class Prepared(NamedTuple):
    """
    A new launch.

    Args:
        framework: Its framework, in the version that is asked for.
        way: Which of its trainers.
        found: The allocation.
        numbers: It in numbers.
        made: The keys.
        text: Them as the framework takes them.
        late: What becomes of late samples in the step that was planned; empty where none comes late.
    """

    framework: Framework
    way: str
    found: Allocation
    numbers: Mapping[str, Any]
    made: NewLaunch
    text: str
    late: str


def prepared(inputs: Inputs, source: str, framework: str | None, variant: str | None = None) -> Prepared:
    """
    The launch of a loop.

    Args:
        inputs: Flags and the file that say the loop.
        source: What to call the file.
        framework: For which framework, `NAME` or `NAME@VERSION`.
        variant: Which of its trainers; goes by the mode when None.

    Raises:
        InputError: All that is missing or wrong.
        DoesNotFitError: The framework cannot run the loop, or it dies as the framework keeps its memory.
    """
    from rlsize.frameworks.told import named_version

    found = allocation_of(inputs, source)
    asked = framework or str(inputs.name("framework")[0] or "")
    name, version = named_version(asked, "--framework")
    known, way = _chosen(inputs, name, version, variant, found.mode)
    numbers = _numbers(inputs, found)
    chosen = inputs.settled(known)
    named = f"{name}@{version}" if version else name
    # What becomes of late samples in the step that was planned; empty where none comes late
    from rlsize.loop.late import late_samples

    late = late_samples(inputs.apart(), "async")["async"] if found.mode in {"async", "hybrid"} else ""
    others = () if variant else (other for other, one in chosen.variants.items() if found.mode in one.modes)
    able: list[Prepared] = []
    refused: list[DoesNotFitError] = []
    for one in dict.fromkeys((way, *others)):
        try:
            made, text = _made(inputs, found, numbers, (chosen, named, one), late)
        except DoesNotFitError as error:
            refused.append(error)
            continue
        able.append(Prepared(chosen, one, found, numbers, made, text, late))
        if "late_samples" not in made.unset:
            return able[-1]
    if not able:
        raise refused[0]
    return able[0]


def _chosen(inputs: Inputs, named: str, version: str, variant: str | None, mode: str) -> tuple[Framework | None, str]:
    """
    The framework and which of its trainers; None where there is none of that name, which is noted.

    Raises:
        DoesNotFitError: The framework cannot run the loop so.
    """
    from rlsize.frameworks.told import era_of, in_era, own_name
    from rlsize.readers.frameworks import frameworks

    every = frameworks(inputs.catalogue)
    known = {name: one for name, one in every.items() if one.variants}
    own = own_name(every, named)
    name = _known(inputs, "--framework", own, every, "{!r} is no framework that is known here") if named else ""
    if name not in known:
        if name or not named:
            none = f"no new launch of {every[name].title} is written: " if name else ""
            inputs.fault(f"{none}for which framework?", "--framework", f"give one of {', '.join(known)}")
        return None, ""
    found = in_era(known[name], era_of(known[name], (), version, named))
    if not mode:
        if not any("mode" in fault.where for fault in inputs.faults):
            inputs.fault("mode is missing", "--mode", "give it, a plan, or a scenario with placement.mode")
        return found, ""
    if variant is not None:
        way = _known(inputs, "--variant", variant, found.variants, f"{found.title} has no {{!r}}")
        if way and (mode not in found.variants[way].modes or mode in found.refuses):
            inputs.settle()
            what = f"{found.title}'s {way} cannot run a loop that is {mode}"
            raise DoesNotFitError(Fault(what, "--variant", f"it runs --mode {' or '.join(found.variants[way].modes)}"))
        return found, way
    way = next((way for way, one in found.variants.items() if mode in one.modes), "")
    if not way or mode in found.refuses:  # a version may lack what its successor runs
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
    from rlsize.frameworks.abilities import framework_mode

    reason, near = found.refuses.get(mode, ("", ""))
    if not reason and mode != "hybrid" and found.runs is not None and framework_mode(mode) in found.runs.modes:
        reason, near = "how this version launches that was not read", "a later version"
    if not reason:
        _, other = found.refuses.get("async", ("", "--mode async"))
        reason = "no key was read for trainer GPUs that generate while they wait"
        near = f"{other}, with longer steps"
    return Fault(f"{found.title} cannot run a loop that is {mode}: {reason}", "--mode", f"nearest: {near}")


def _numbers(inputs: Inputs, found: Allocation) -> dict[str, Any]:
    """
    The split in whole numbers; the staleness cap may have a fraction.

    Raises:
        InputError: All that is missing or wrong so far.
        DoesNotFitError: No framework has a key for it.
    """
    numbers: dict[str, Any] = {key: _whole(inputs, key, getattr(found, key)) for key in _POOLS}
    numbers |= {key: _whole(inputs, key, inputs.ask(key).if_known) for key in ("prompts_per_step", "group_size")}
    if "tensor" not in found.degrees and found.gpus_per_instance not in {None, 1}:
        todo = "give the GPUs that share each layer of an instance"
        inputs.fault("how an instance is spread is not known", "--rollout-tensor-parallel", todo)
    stated = inputs.ask("max_staleness", assume=False).if_known
    staleness = _CAPS.get(found.mode, stated)
    if found.mode and staleness is None:
        inputs.fault("max_staleness is missing", "--max-staleness", "give the staleness cap in optimizer steps")
    inputs.settle()
    cap = staleness or 0
    numbers["max_staleness"] = int(cap) if cap == int(cap) else cap
    numbers |= {f"rollout_{name}_parallel": degree for name, degree in found.degrees.items() if degree > 1}
    numbers["rollout_tensor_parallel"] = found.degrees.get("tensor", 1)
    numbers |= {key: int(inputs.ask(key).if_known or 1) for key in ("mini_batches", "sync_every")}
    if found.mode in {"async", "hybrid"} and not cap:
        todo = "give more than 0, or --mode sync"
        inputs.fault("an asynchronous loop has samples that are from before", "--max-staleness", todo)
    inputs.settle()
    if inputs.name("mode")[0] == "partial":
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


def _made(
    inputs: Inputs, found: Allocation, numbers: Mapping[str, Any], chosen: tuple[Framework, str, str], late: str
) -> tuple[NewLaunch, str]:
    """
    The keys, and their text.

    Raises:
        InputError: What is wrong with what a file says.
        DoesNotFitError: The framework has no keys for the loop, all of it with what comes nearest; or it dies so.
    """
    from rlsize.frameworks.abilities import framework_mode
    from rlsize.frameworks.new import new_launch
    from rlsize.writers.launch.new import launch_text

    framework, named, way = chosen
    given: dict[str, Any] = {key: numbers[key] for key in ("gpus_per_node", "gpus_per_instance")}
    given |= {"mode": framework_mode(found.mode), "algorithm": inputs.name("algorithm")[0] or "grpo"}
    given |= {"gpus": numbers["trainer_gpus"] + (0 if found.shared else numbers["rollout_gpus"])}
    profile = _profile(inputs)
    given |= {"shared": found.shared, "mixture": profile is not None and profile.architecture.moe is not None}
    needed: dict[str, Any] = {key: value for key, value in numbers.items() if key not in given}
    usual = "vllm" if framework.runs is not None and "vllm" in framework.runs.engines else None
    needed["engine"] = found.engine or usual
    liked = {**_assumed(inputs, framework), **_liked(inputs)}
    for key in () if found.shared else _OF_TURNS:
        liked.pop(key, None)
    caps = [liked.get(name) for name in ("max_prompt_tokens", "max_response_tokens")]
    packed = "loop.max_total_tokens" in framework.quantities.get("micro_batch_tokens", "")  # one key says both
    if all(caps) and "max_total_tokens" in framework.quantities and not packed:
        liked["max_total_tokens"] = sum(filter(None, caps))
    inputs.settle()
    in_flight = found.mode in {"async", "hybrid"} and inputs.name("sync_way")[0] in {None, "in-flight"}
    liked |= {"inflight_weight_updates": in_flight or None, "lends": found.mode == "hybrid" or None}
    liked |= {"late_samples": late} if late and "late_samples" in framework.quantities else {}
    liked = _told({**liked, **_as_told(framework, liked, needed)})
    held = [name for name in _HELD if name != "max_prompt_tokens" or "max_total_tokens" not in liked]
    needed |= {name: liked.pop(name) for name in held if name in liked and name in framework.quantities}
    needed |= last_stage(inputs, needed.get("pipeline_parallel"))
    if needed["_last_stage_layers"] and "_last_stage_layers" not in framework.quantities:
        what = (
            f"{framework.title} has no key that was read for {needed['pipeline_parallel']} stages of unlike many layers"
        )
        raise DoesNotFitError(Fault(what, "--pipeline-parallel", "nearest: stages that divide the layers"))
    variant, reason = framework.variants[way], ""
    for moved in (("engine_sleep",), tuple(_MOVED)) if found.shared else ((),):
        habits = {name: _MOVED[name] for name in moved if name in framework.quantities}
        made = new_launch(framework, variant, _told(needed), {**habits, **liked}, _told(given))
        other = _other_micro_batch(made.unmet, {**liked, **needed})
        if other:
            needed |= other
            made = new_launch(framework, variant, _told(needed), {**habits, **liked}, _told(given))
        if made.unmet:
            raise DoesNotFitError(*(_no(inputs, one) for one in made.unmet))
        text = launch_text(framework, variant, made.keys)
        reason = _refused(inputs, named, variant.form, text)
        if not reason:
            return replace(made, unset=tuple(name for name in made.unset if name in liked and name in QUANTITIES)), text
    todo = "`rlsize memory` says what makes it fit; or let `rlsize plan --framework` choose"
    raise DoesNotFitError(Fault(f"as {framework.title} keeps its memory, {reason}", "", todo))


def _other_micro_batch(lacking: Iterable[Unmet], loop: Mapping[str, Any]) -> dict[str, Any]:
    """A micro batch as the framework has it instead: rows as long as it asks for, else samples for tokens."""
    for one in lacking:
        if one.quantity == "micro_batch_tokens":
            longer = max((near for near in one.nearest if isinstance(near, int)), default=0)
            return {one.quantity: longer} if longer > loop[one.quantity] else in_samples(loop, loop)
    return {}


def _assumed(inputs: Inputs, framework: Framework) -> dict[str, Any]:
    """What every command takes for granted of a trainer where nobody says it; nothing where no loop is described."""
    from rlsize.frameworks.abilities import SHARED
    from rlsize.frameworks.told import Reading
    from rlsize.loop.resolve import described, resolve
    from rlsize.planner.evaluation import longest_tokens

    loop = resolve(inputs.apart()) if described(inputs) else None
    if loop is None or loop.stages is None or loop.known.train_seconds.known:
        return {}
    train = loop.stages.train.bare()
    found: dict[str, Any] = {"recompute": train.recompute}
    prompt = loop.problem.prompt_tokens.number
    if not inputs.gives("max_response_tokens"):  # else the framework's own caps cut what was planned
        found["max_response_tokens"] = math.ceil(float(longest_tokens(loop.outlook.central)) - prompt)
    if not inputs.gives("max_prompt_tokens"):
        found["max_prompt_tokens"] = math.ceil(_LONG_PROMPT * prompt)
    if not inputs.gives("micro_batch_samples"):
        found["micro_batch_tokens"] = int(train.micro_batch_tokens)
        if "logprob_micro_batch_tokens" in framework.quantities:
            found["logprob_micro_batch_tokens"] = int(train.micro_batch_tokens)
    fraction = loop.stages.rollout.engine.memory_fraction
    if loop.pools.shared and fraction is not None and "memory_fraction" in framework.quantities:
        found["memory_fraction"] = fraction
    own = Reading(framework, ())
    if not own.value("loop.trainer_backend") or not own.value("loop.zero_stage"):  # of its own accord it shards nothing
        found["zero_stage"] = next(stage for stage, shared in SHARED.items() if shared == train.sharding)
    return found


def _as_told(framework: Framework, liked: Mapping[str, Any], needed: Mapping[str, Any]) -> dict[str, Any]:
    """What is said in the framework's way: the backend of a layout, samples of a micro batch, and no offload."""
    from rlsize.frameworks.abilities import SHARED, backend_for
    from rlsize.frameworks.told import Reading

    usual, found = Reading(framework, ()), dict[str, Any]()
    degrees = {name: int(liked.get(f"{name}_parallel") or 1) for name in ("tensor", "pipeline", "context", "expert")}
    ranks = data_ranks(liked, needed)
    zero = 3 if liked.get("fsdp") else liked.get("zero_stage")
    spread = zero is not None or max(degrees.values()) > 1
    if framework.runs is not None and spread and not liked.get("trainer_backend"):
        own = str(usual.value("loop.trainer_backend") or "")
        sharding = None if zero is None or ranks == 1 else SHARED[int(zero)]
        backend = backend_for(framework.runs, sharding, degrees, liked.get("recompute"), own)
        staged = backend == "deepspeed"  # which alone has stages to choose from
        found = {"trainer_backend": backend or None, "zero_stage": zero if staged else None}
        if staged or liked.get("fsdp") == ranks:  # over all ranks, as backends do by themselves
            found["fsdp"] = None
    if zero == 0:  # no stage: plain data parallelism has no key of its own
        found["zero_stage"] = None
    if usual.value("loop.offload") and "offload" not in liked:
        found["offload"] = False
    if usual.value("loop.lora_rank") and "lora_rank" not in liked:  # where adapters are usual
        found["lora_rank"] = 0
    if "micro_batch_tokens" not in framework.quantities:
        found |= in_samples(liked, needed)
    return found


def _refused(inputs: Inputs, framework: str, form: str, text: str) -> str:
    """Why the loop that a new launch tells cannot run, as it is read again; empty where it can, or nobody knows."""
    from rlsize.loop.resolve import described, resolve
    from rlsize.readers.scenarios import launched_scenario

    name = f"x.{form if form in {'yaml', 'toml'} else 'sh'}"
    told = launched_scenario(name, framework, inputs.catalogue, text=text)[0].leaves()
    said = inputs.file.leaves() if inputs.file is not None else {}
    gone = [place for place in said if place.startswith(_LAYOUT) and any(one.startswith(_LAYOUT) for one in told)]
    gone += ["trainer.micro_batch_tokens"] if "trainer.micro_batch_samples" in told else []
    again = inputs.changed({**dict.fromkeys(gone), **told})
    told_long = inputs.gives("response_tokens") or inputs.gives("max_response_tokens")  # not a framework's default cap
    if not (told_long and described(again)):
        return ""
    return resolve(again).refused


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
    file = inputs.file if inputs.file is not None and not inputs.by_flag("model") else None
    told = file.launch.reading.quantity("model") if file and file.launch and "model" in file.places else None
    if told is not None and told.provenance != "default":
        found["model"] = told.value
    elif isinstance(model, str):
        profile = _profile(inputs)
        found["model"] = (profile.hf_repo if profile is not None else None) or model
    return found


def _profile(inputs: Inputs) -> Model | None:
    """The profile of the model that is named; None where it is not at hand."""
    model, _ = inputs.name("model")
    return inputs.apart().profile("model", model, "") if isinstance(model, str) else None


def _no(inputs: Inputs, one: Unmet) -> Fault:
    """Why a framework cannot run the loop, and what comes nearest."""
    if one.quantity not in QUANTITIES:
        return Fault(one.what, "", "nearest: another split")
    flag = inputs.flag(one.quantity)
    near = " or ".join(str(value) for value in one.nearest if value is not None)
    return Fault(one.what, flag, f"nearest: {flag} {near}".rstrip())
