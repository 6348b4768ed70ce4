"""The launch that a command was given, changed: in which keys of its framework, and written to a file."""

from __future__ import annotations

import sys
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError
from rlsize.facts.inference_engines import WITHOUT
from rlsize.loop.pools import LOOPS
from rlsize.quantities.table import PLACES, QUANTITIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.frameworks.told import Reading
    from rlsize.frameworks.wanted import Changes
    from rlsize.readers.launch.launch import Launch
    from rlsize.shell.inputs import Inputs


_RANKS = ("data_parallel", "fsdp")
_AS_SAID = ("model", "gpu", "framework", *_RANKS)
"""What plans leave as it is, and what follows from the trainer's GPUs and the other degrees, as plans use all ranks."""

_BATCH = frozenset({"prompts_per_step", "group_size", "mini_batches"})
"""What no other change may move: keys such as a trainer's share of the batch tell both."""

_POSED = _BATCH | {"mode", "max_total_tokens"}
"""What a plan leaves as it is, or moves by name: a shorter row of prime-rl would cut samples."""

_MICRO = frozenset({"micro_batch_tokens", "micro_batch_samples"})

_DEGREES = tuple(key for key in QUANTITIES if key.endswith("_parallel"))


def launch_of(inputs: Inputs) -> Launch | None:
    """The launch that the loop was read from; None where a scenario says it."""
    return None if inputs.file is None else inputs.file.launch


def can_change(inputs: Inputs, values: Mapping[str, Any]) -> bool:
    """
    Whether a change can be said where the loop runs: all of it in a scenario, in a launch what has keys.

    Args:
        inputs: What was said.
        values: What is to be, by quantity.
    """
    launch = launch_of(inputs)
    if launch is None:
        return True
    if "mode" in values:  # by another program, at times, which keys do not name
        return launch.framework.runs is not None and values["mode"] in launch.framework.runs.modes
    found = _changes(inputs, launch.reading, values)
    return bool(found.keys) and not found.refused and found.follows.keys().isdisjoint(_BATCH)


def in_own_keys(inputs: Inputs, values: Mapping[str, Any]) -> str:
    """A change in the keys of the framework of a launch, else in those of a scenario."""
    launch = launch_of(inputs)
    found = None if launch is None else _changes(inputs, launch.reading, values)
    if launch is None or found is None or found.refused or not found.keys:  # none, or another program
        said = {key: str(value).lower() if isinstance(value, bool) else value for key, value in values.items()}
        return _settings({QUANTITIES[key].scenario: value for key, value in said.items() if key in QUANTITIES})
    from rlsize.frameworks.wanted import spelled

    return _settings({spelled(launch.reading, key): value for key, value in found.keys.items()})


def _changes(inputs: Inputs, reading: Reading, values: Mapping[str, Any]) -> Changes:
    """The keys of a change."""
    from rlsize.frameworks.wanted import changes

    return changes(reading, with_batch(inputs, reading, values))


def with_batch(inputs: Inputs, reading: Reading, values: Mapping[str, Any]) -> dict[str, Any]:
    """A change beside what keeps the batch and what stages hold; ranks follow from GPUs where no key says them."""
    from rlsize.frameworks.wanted import changes
    from rlsize.frameworks.wanted import values as told

    if "pipeline_parallel" in values:
        values = {**values, **last_stage(inputs, values["pipeline_parallel"])}
    kept = {key: value for key, value in told(reading).items() if key in _BATCH}
    whole = _holding(reading, dict(values), kept)
    if not changes(reading, whole).refused:
        return whole
    return _holding(reading, {key: value for key, value in values.items() if key not in _RANKS}, kept)


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"no {key}" if value is None else f"{key}={_text(value)}" for key, value in values.items())


def _text(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "+".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def keep_mode(inputs: Inputs) -> None:
    """Search only the mode of the launch that is to be written, unless a flag says others."""
    mode = inputs.said("placement.mode")
    if launch_of(inputs) is None or mode not in LOOPS or inputs.gives("searched_modes"):
        return
    inputs.texts["searched_modes"] = LOOPS[mode]
    flag = inputs.flag("searched_modes")
    inputs.notes.append(f"Only {mode} is searched, as the launch runs so: another mode is another program ({flag}).")


def wanted_of(inputs: Inputs, values: Mapping[str, Any]) -> dict[str, Any]:
    """
    What a launch must tell so that its scenario has some values.

    Args:
        inputs: What was said.
        values: All values of the scenario, by dotted place.

    Returns:
        What differs, by quantity; None for what is not to hold.
    """
    from rlsize.frameworks.expressions import names

    launch = launch_of(inputs)
    if launch is None or inputs.file is None:
        return {}
    quantities = launch.framework.quantities
    there = inputs.file.places  # what --set says is not
    told = {place: value for place, value in inputs.file.leaves().items() if place in there}
    before, planned = _by_quantity(told), _by_quantity(values)
    found = {
        key: value
        for key, value in planned.items()
        if value is not None and value != before.get(key) and key not in _AS_SAID
        and (key in quantities or key in _DEGREES)  # one without a key is refused, where keys are sought
        and not (key == "max_staleness" and value < before.get(key, 0))  # a cap that is said allows less
    }  # fmt: skip
    if launch.reading.value("loop.engine") == WITHOUT:  # plans have an engine
        found |= {"engine": planned.get("engine", "vllm"), "mode": values.get("placement.mode")}
    apart = "mode" in found or values.get("placement.mode") != "colocated"
    if apart or "trainer_gpus" in before:  # both pools add up to them, or a critic has more
        gpus = found.pop("gpus", None)
        found |= {} if apart or gpus in {None, before["trainer_gpus"]} else {"trainer_gpus": gpus}
    engines = values.get("placement.rollout_gpus") or values.get("cluster.gpus")
    counted = "loop." not in quantities.get("instances", "loop.")  # engines are told by number, not by their GPUs
    if found and engines and counted:
        size = prod(int(values.get(f"rollout.{kind}_parallel") or 1) for kind in ("tensor", "pipeline", "data"))
        found["instances"] = int(engines) // size
    samples_key, tokens_keys = (quantities.get(f"micro_batch_{one}", "None") for one in ("samples", "tokens"))
    uncounted = tokens_keys == "None"  # it packs no tokens
    other = not uncounted and any(names(samples_key)) and samples_key not in names(tokens_keys)
    if "micro_batch_tokens" in found and other:
        found["micro_batch_samples"] = None  # where both are set, a framework may count samples
    elif "micro_batch_samples" in quantities and uncounted:
        found.pop("micro_batch_tokens", None)
        prompt = inputs.apart().ask("prompt_tokens").number  # where nobody says how long one may be
        new = {"max_prompt_tokens": prompt, **{key: value for key, value in planned.items() if value is not None}}
        loop = {"mini_batches": 1, "trainer_gpus": new.get("gpus"), **new}
        samples = in_samples(new, loop).get("micro_batch_samples")
        found |= {} if samples is None else {"micro_batch_samples": samples}
    if "pipeline_parallel" in found:
        found |= last_stage(inputs, found["pipeline_parallel"])
    if "max_staleness" in found and "max_staleness" not in before and "mode" not in found:
        found.pop("max_staleness")  # the launch bounds none, and a bound is another program's
    return _with_ranks(launch.reading, _as_it_can(launch.reading, found, planned), planned)


def _with_ranks(reading: Reading, wanted: dict[str, Any], planned: Mapping[str, Any]) -> dict[str, Any]:
    """What is wanted, and the plan's ranks where a key that the launch sets says others than are left."""
    from rlsize.frameworks.wanted import changes, values

    told = values(reading.changed(changes(reading, wanted).keys)) if wanted else {}
    ranks = {key: planned[key] for key in _RANKS if planned.get(key) and told.get(key, planned[key]) != planned[key]}
    whole = _holding(reading, {**wanted, **ranks}, planned)
    return whole if ranks and not _unsayable(reading, whole) else wanted


def _as_it_can(reading: Reading, found: dict[str, Any], planned: Mapping[str, Any]) -> dict[str, Any]:
    """What is wanted, with the micro batch that batch and ranks make where no key can say the plan's."""
    wanted = _holding(reading, found, planned)
    if found.keys().isdisjoint(_MICRO) or not _unsayable(reading, wanted):
        return wanted
    kept = _holding(reading, {key: value for key, value in found.items() if key not in _MICRO}, planned)
    return wanted if _unsayable(reading, kept) else kept


def _by_quantity(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a scenario by quantity: degrees are 1 where nobody says, and one rank alone has no ZeRO stage."""
    said = {PLACES[place].key: value for place, value in values.items() if place in PLACES}
    fsdp, data, stage = (said.get(key) for key in ("fsdp", "data_parallel", "zero_stage"))
    shared = 3 if fsdp is not None or (data is None and stage is None) else int(stage or 0)
    return {**dict.fromkeys(_DEGREES, 1), **said, "zero_stage": None if 1 in {fsdp, data} else shared}


def _holding(reading: Reading, wanted: dict[str, Any], planned: Mapping[str, Any]) -> dict[str, Any]:
    """What is wanted, and what a plan leaves as it is where the keys of that would change it and need not."""
    from rlsize.frameworks.wanted import changes

    for key, (old, _) in changes(reading, wanted).follows.items() if wanted else ():
        asked = key not in _AS_SAID and old is not None and planned.get(key) == old
        if asked and not changes(reading, {**wanted, key: old}).refused:
            wanted = {**wanted, key: old}
    return wanted


def last_stage(inputs: Inputs, stages: float | None) -> dict[str, int | None]:
    """
    How a framework is told that pipeline stages are uneven, by quantity: all but the last have as many layers.

    Args:
        inputs: What was said.
        stages: Pipeline stages; None for one.
    """
    count = int(stages or 1)
    model = inputs.apart().model() if count > 1 else None
    layers = 0 if model is None else model.architecture.layers
    last = layers - (count - 1) * -(-layers // count) if layers % count else None
    return {"_first_stage_layers": None, "_last_stage_layers": last}


def data_ranks(layout: Mapping[str, Any], loop: Mapping[str, Any]) -> int:
    """
    Data-parallel ranks of a trainer.

    Args:
        layout: Its degrees of parallelism, by quantity.
        loop: Its GPUs, by quantity.
    """
    replica = prod(int(layout.get(f"{name}_parallel") or 1) for name in ("tensor", "pipeline", "context"))
    return max(1, int(loop["trainer_gpus"]) // replica)


def in_samples(said: Mapping[str, Any], loop: Mapping[str, Any]) -> dict[str, Any]:
    """
    A micro batch in samples that are as long as they can be, so that it is no larger than its tokens say.

    Args:
        said: Those tokens, the longest lengths and the trainer's degrees of parallelism, by quantity.
        loop: The trainer's GPUs and the batch, by quantity.

    Returns:
        What is to be said in place of the tokens; nothing where these or the lengths are not known.

    >>> said = {"micro_batch_tokens": 16384, "max_response_tokens": 4096}
    >>> loop = {"trainer_gpus": 8, "prompts_per_step": 64, "group_size": 8, "mini_batches": 2}
    >>> in_samples(said, loop)
    {'micro_batch_tokens': None, 'micro_batch_samples': 4}
    """
    tokens, longest = said.get("micro_batch_tokens"), said.get("max_response_tokens")
    if not tokens or not longest or not {"prompts_per_step", "group_size"} <= loop.keys():
        return {}
    updates = loop["mini_batches"] * data_ranks(said, loop)
    each = loop["prompts_per_step"] * loop["group_size"] // updates
    context = said.get("context_parallel") or 1
    most = max(1, int(tokens * context // (longest + said.get("max_prompt_tokens", 0))))
    samples = max(one for one in range(1, most + 1) if one == 1 or each % one == 0)
    return {"micro_batch_tokens": None, "micro_batch_samples": samples}


def untold(inputs: Inputs, wanted: Mapping[str, Any]) -> str:
    """
    Why the framework of a launch cannot be told a change, or asserts that it does not hold; empty where it can.

    Args:
        inputs: What was said; by a launch.
        wanted: What is to be, by quantity; None for what is not to hold.
    """
    launch = launch_of(inputs)
    if launch is None:
        return ""
    from rlsize.frameworks.demands import broken, unmet
    from rlsize.frameworks.wanted import changes, values

    reading = launch.reading
    if why := _unsayable(reading, wanted):
        return why
    found = changes(reading, wanted)
    demands, before = launch.framework.demands, values(reading)
    gone = dict(broken(demands, before))
    held = {text: says for text, says in demands.items() if text not in gone}
    first = next(unmet(held, {**before, **values(reading.changed(found.keys))}), None)
    return "" if first is None else first.what


def _unsayable(reading: Reading, wanted: Mapping[str, Any]) -> str:
    """Why the keys of a launch cannot say a change; empty where they can."""
    from rlsize.frameworks.wanted import changes

    found = changes(reading, wanted)
    if found.refused:
        return found.refused[0].what
    moved = next((key for key in found.follows if key in _POSED), "")
    if not moved:
        return ""
    old, new = found.follows[moved]
    return f"its keys cannot say it with batch, mode and lengths as they are: {moved} would go from {old} to {new}"


def as_told(inputs: Inputs, values: Mapping[str, Any], wanted: Mapping[str, Any]) -> Inputs:
    """
    The same inputs, of the launch with what is wanted in it.

    Args:
        inputs: What was said; by a launch.
        values: All values of the scenario, by dotted place: what flags and `--set` say goes before the launch.
        wanted: What is to be in the launch, by quantity; None for what is not to hold.
    """
    from rlsize.frameworks.wanted import changes
    from rlsize.readers.launch.scenario import scenario_of_launch
    from rlsize.readers.scenarios import scenario_of

    launch = launch_of(inputs)
    if launch is None or inputs.file is None:
        return inputs
    before = inputs.file.leaves()
    reading = launch.reading.changed(changes(launch.reading, wanted).keys)
    told = scenario_of(scenario_of_launch(replace(launch, reading=reading), inputs.catalogue)[0]).leaves()
    instead = {place for place in before if place not in inputs.file.places}
    instead |= {QUANTITIES[key].scenario for key in inputs.texts} - {""}
    return inputs.changed({**dict.fromkeys(before), **told, **{place: values.get(place) for place in instead}})


def write_back(inputs: Inputs, wanted: Mapping[str, Any], target: str, *, force: bool) -> tuple[str, ...]:
    """
    Write the launch with what is wanted in it; the difference is shown first.

    Args:
        inputs: What was said; by a launch.
        wanted: What is to be, by quantity; None for what is not to hold.
        target: The file.
        force: Whether one that exists may be replaced.

    Returns:
        What changes with it, and what must be changed by hand.

    Raises:
        InputError: There is no launch to write, or no file can be written.
        DoesNotFitError: It cannot be written so; what is to be changed by hand.
    """
    from rlsize.readers.frameworks import frameworks
    from rlsize.readers.launch.launch import read_launch
    from rlsize.readers.logs.forms.wandb_file import config_text
    from rlsize.writers.files import write_whole
    from rlsize.writers.launch.written_back import written_back

    launch = launch_of(inputs)
    if launch is None:
        todo = "name a launch script or configuration of a framework, or write a scenario (`plan --apply`)"
        raise InputError(Fault("there is no launch to write back", "--write", todo))
    known = frameworks(inputs.catalogue)

    def again(text: str) -> Reading:
        return read_launch(launch.name, known, framework=launch.dated, text=text).reading

    text = launch.texts[launch.name] if launch.name == "-" else config_text(launch.name)
    original = Path(launch.name).read_bytes() if text is None else text.encode()
    found = written_back(original, launch.name, launch.reading, wanted, again, target=target)
    sys.stderr.write(found.difference)
    write_whole(target, found.content, force=force)
    if launch.name != "-":
        Path(target).chmod(Path(launch.name).stat().st_mode)
    sys.stderr.write(f"wrote {target}\n")
    return found.notes if found.difference else ("The launch says so already: nothing in it changes.", *found.notes)
