"""A launch as a scenario: what its keys mean, in the places that a scenario has for it, each with where it was said."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from rlsize.errors import InputError, Refused
from rlsize.facts.inference_engines import ENGINES, WITHOUT, inference_engine
from rlsize.frameworks.told import keys_of
from rlsize.quantities.row import Switch, Word
from rlsize.quantities.table import QUANTITIES, nested
from rlsize.readers.names import model_named, model_of_size
from rlsize.readers.yaml_documents import Document, Path_

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlsize.frameworks.told import Told
    from rlsize.readers.launch.launch import Launch
    from rlsize.readers.profiles import Catalogue

_SIZES = re.compile(
    r"batch|len|token|gpu|node|parallel|offload|memory|cache|dtype|precision|lora|recompute|checkpointing|micro|worker|"
    r"replica|engine|world|(?<![a-z])[tpced]p(?![a-z])|quant|fp8|concurren|num_seqs|stale|off_policy|async|sleep|zero|"
    r"over_?sampl|(?<=\.)device$|(?<![a-z])lag|group_?size|groups?$|(?<![a-z])turns?$|(?<=max_)(?:episodes|\w*calls)$|"
    r"^model(?:_path|_name)?$|\.n$|trajector",
    re.IGNORECASE,
)
"""What keys are named like that have to do with sizes."""
_MOST_NAMED = 12
_ALIKE = 0.9  # of a key's characters: a slip of the pen
_SAVED = re.compile(
    r"(?<=[^/])(?:/(?:(?:global_)?step[_-]?\d+|checkpoint[_-]\d+|iter_?\d+|epoch[_-]?\d+|snapshots/\w+|actor|hf|"
    r"hf_model|huggingface|policy|merged|final|latest|last|best))+$"
)
"""What trainers and caches put behind the name of a model that they save."""
_RANKS = ("fsdp", "data_parallel")


def scenario_of_launch(
    launch: Launch, catalogue: Catalogue, *, other_gpus: bool = False
) -> tuple[Document, dict[str, str]]:
    """
    What a launch says, as the document of a scenario.

    Args:
        launch: The launch.
        catalogue: The profiles, in which its model and GPU are looked up.
        other_gpus: Whether somebody says other GPUs than it does, which data-parallel ranks then follow.

    Returns:
        The document; where each of its keys was said, in the framework's words.
    """
    told = launch.reading.all()
    moved = {key for key in _RANKS if other_gpus and launch.reading.hangs_on(key, "trainer_gpus")}
    if "data_parallel" in moved and "zero_stage" not in told:
        told["zero_stage"] = replace(told["data_parallel"], key="zero_stage", value=0)
    data: dict[str, Any] = {"framework": launch.dated}
    lines: dict[Path_, int] = {}
    places: dict[str, str] = {}
    for key, one in _kept(told):
        row = QUANTITIES.get(key)
        if row is None or not row.scenario or key in moved:
            continue
        value = _value(key, one.value, catalogue)
        if value is None:
            continue
        data[row.scenario] = value
        if one.settings:
            lines[tuple(row.scenario.split("."))] = one.settings[-1].span.line
        places[row.scenario] = launch.said_by(one)
    return Document(launch.name, nested(data), lines), places


def _kept(told: Mapping[str, Told]) -> Iterator[tuple[str, Told]]:
    """What goes into a scenario: nothing that follows from something else in it."""
    shared = told["mode"].value == "colocated" if "mode" in told else False
    left_out = {"instances"} if "rollout_gpus" in told and "rollout_tensor_parallel" in told else set()
    left_out |= {"rollout_gpus", "trainer_gpus"} if shared and "gpus" in told else {"gpus"}
    if shared and told.keys() >= {"gpus", "trainer_gpus"} and told["gpus"].value > told["trainer_gpus"].value:
        left_out ^= {"trainer_gpus", "gpus"}  # a critic has the others
    left_out |= {"samples_per_step"} if "prompts_per_step" in told and "group_size" in told else set()
    left_out |= set() if "mode" in told and told["mode"].value == "async" else {"max_staleness"}
    for key, one in told.items():
        if key not in left_out and not (key == "lora_rank" and not one.value):
            yield key, one


def _value(key: str, value: object, catalogue: Catalogue) -> object:
    """A value as a scenario takes it; None where it has no place there."""
    kind = QUANTITIES[key].kind
    if key in {"model", "reference_model"}:
        return model_name(str(value), catalogue)
    if key == "gpu":
        return _known(catalogue, "gpu", str(value)) or str(value)
    if key == "engine":
        named = any(name[:3] in str(value).lower() for name in ENGINES)
        return inference_engine(str(value)).name if named else WITHOUT if value == WITHOUT else None
    if isinstance(kind, Word):
        # the words that are known of those that were said; an empty list says that there is none
        listed = [str(one) for one in value] if isinstance(value, (list, tuple)) else [str(value)]
        known = [one for one in listed if one in kind.known]
        if kind.listed:
            return known if known or not listed else None
        return next(iter(known), None)
    return bool(value) if isinstance(kind, Switch) else value


def model_name(written: str, catalogue: Catalogue) -> str:
    """
    The profile of a model as scripts name it: a repository, a path, a name with what it was tuned for.

    Args:
        written: The name in the script.
        catalogue: The profiles.

    Returns:
        The profile's name; where there is none, a model scaled to the size that the name says, else what was written.
    """
    text = _SAVED.sub("", written.strip().rstrip("/")).replace("/models--", "/")
    with suppress(Refused):
        found, note = model_named(text, catalogue)
        return text.rpartition("/")[2] if note and text.startswith((".", "/", "~")) else text if note else found
    last = text.rpartition("/")[2]
    path = text.startswith((".", "/", "~"))  # of a checkpoint that is elsewhere: its last part is the better name
    return model_of_size(last, catalogue) or (last if path else text)


def _known(catalogue: Catalogue, kind: str, name: str) -> str:
    try:
        return catalogue.path_of(kind, name).stem
    except InputError:
        return ""


def doubts(launch: Launch, model: str = "") -> Iterator[str]:
    """What a reader must know of a launch whose model was taken for another one: what is a guess, or not understood."""
    written = str(launch.reading.value("loop.model"))
    if "@" in model and "@" not in written:
        yield f"Nobody has read the dimensions of {written}: it is taken for {model}, which has its size (--model)."
    yield from (f"{launch.name}: {key} is not read: {why}." for key, why in launch.reading.faults.items())
    yield from launch.reading.asserted()
    yield from launch.reading.uncounted()
    mode, fleet, trainer = (launch.reading.value(f"loop.{key}") for key in ("mode", "rollout_gpus", "trainer_gpus"))
    if mode == "colocated" and fleet and trainer and fleet != trainer:
        yield f"Engines have {fleet} of the {trainer} GPUs that they share with the trainer: read as if they had all."
    prompts, group = (launch.reading.value(f"loop.{key}") for key in ("prompts_per_step", "group_size"))
    if isinstance(prompts, float) and not prompts.is_integer():
        yield f"A step has {prompts:.3g} groups of {group} samples, and no group is whole then: trainers may refuse it."
    shards, context = (launch.reading.value(f"loop.{key}") for key in ("fsdp_size", "context_parallel"))
    if isinstance(shards, int) and isinstance(context, int) and 0 < shards < context:
        yield f"Weights are sharded over {shards} GPUs, and {context} share a sequence: read as if over those."
    turns, most = (launch.reading.value(f"loop.{key}") for key in ("turns", "turn_cap"))
    if isinstance(most, int) and (turns is None or (isinstance(turns, int) and turns > 1)):
        todo = "--set workload.response_tokens.max=N"
        yield f"{most:,} response tokens are the most of a turn, and read as those of a sample ({todo})."
    ranks = launch.reading.value("loop.rollout_dp_attention")
    if isinstance(ranks, int) and ranks > 1:
        yield (
            f"Engines deal attention out to {ranks} data-parallel ranks (enable_dp_attention): assumed is tensor "
            "parallelism instead. So weights of attention are counted sliced further than they are, and a cache with "
            "fewer heads than an engine has GPUs (of latent attention: one) as held several times, which ranks do not."
        )
    share = launch.reading.value("loop.optimizer_cpu_fraction")
    if launch.reading.value("loop.offload") and isinstance(share, int | float) and share < 1:
        yield f"{share:.0%} of the optimizer states live on the host: read as if all did; GPUs hold more than is said."
    asked = keys_of(launch.framework)
    said = [one for key, one in launch.reading.settings.items() if key in asked]
    untold = [f"{one.key} ({one.unknown})" for one in said if one.unknown]
    if untold:
        yield f"Set to what the script does not tell, so not known here: {', '.join(untold[:_MOST_NAMED])}."
    yield from _not_understood(launch, asked)


def _not_understood(launch: Launch, asked: set[str]) -> Iterator[str]:
    """Keys that nothing was read from and that are named like sizes, or nearly like a key that is known."""
    unread = [(one, get_close_matches(one.key, asked, 1, _ALIKE)) for one in launch.reading.unread()]
    named = [
        f"{one.key} ({one.span}{f', or did you mean {meant[0]}?' if meant else ''})"
        for one, meant in unread
        if meant or _SIZES.search(one.key)
    ]
    if named:
        more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        yield f"Not understood, and could matter: {', '.join(named[:_MOST_NAMED])}{more}."
