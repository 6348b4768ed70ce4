"""
A Hugging Face `config.json` becomes a model profile.

JSON is read, no code is run. What the configuration leaves to the modelling code stands in `families`; a key that might
change the counts and is not understood is refused or named in a note, never passed over.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError
from rlsize.estimates.model_size import with_computed
from rlsize.facts.model import Model
from rlsize.readers.huggingface.architecture import MOST_LAYERS, read_architecture
from rlsize.readers.huggingface.config import (
    FAMILIES,
    FILE_NAME,
    GATED,
    REFUSED,
    UNGATED,
    UNKNOWN,
    UNREADABLE,
    Family,
    Keys,
    changes_nothing,
    config_path,
    read_config,
    shown,
)
from rlsize.readers.yaml_documents import read_bytes
from rlsize.units import some_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["read_model"]

MOST_KEYS = 2000
MOST_PARAMS = 10**15
_NESTED = ("text_config", "llm_config", "language_config")
_FROM_OUTSIDE = ("tie_word_embeddings",)  # the head is the outer model's
_GLOBAL = {"head_dim": "global_head_dim", "num_key_value_heads": "num_global_key_value_heads"}
_PREDICTING = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules")
_MOST_UNREAD = 12
_SEEING = ("vision_config", "audio_config", "vision_tower", "mm_vision_tower")
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


def read_model(path: str | Path, name: str = "") -> Model:
    """
    The profile of a model from its configuration, with computed counts.

    Args:
        path: A `config.json`, or a model's directory that holds one.
        name: The profile's name; taken from the configuration, its file or its folder when empty.

    Returns:
        The model; its notes say what was assumed, what is not counted and which keys were not understood.

    Raises:
        InputError: All that is wrong with the configuration.
    """
    file = config_path(path)
    outer = read_config(file)
    data, place = _language_model(outer, file)
    data = _global_heads(_with_layers_listed(data))
    classes = data.get("architectures")  # two models that share a model_type are told apart by their class
    minimax = isinstance(classes, list) and "MiniMaxM2ForCausalLM" in classes
    model_type = "minimax_m2" if minimax else data.get("model_type")
    family = FAMILIES.get(model_type, UNKNOWN) if isinstance(model_type, str) else UNKNOWN
    keys = Keys(data, place, family.defaults)
    if not family.known and str(data.get("hidden_act")) in UNGATED:
        family = replace(family, matrices=2)
    _refuse(keys, model_type, family)
    shape = read_architecture(keys, family, "config")
    if not family.known:
        for key in keys.unread():
            if ("expert" in key or key.startswith("moe_")) and not changes_nothing(key):
                what = f"says something of experts that is not known of {shown(model_type)}"
                keys.fault(key, what, "write the profile by hand, or give the parameter count instead")
    notes = tuple(_notes(keys, outer, family)) if shape else ()
    chosen = name or _name(outer, file)
    if not _NAME.fullmatch(chosen):
        what = f"{shown(chosen)} is no name for a profile"
        keys.faults.append(Fault(what, "--name", "use a-z, 0-9, dots and dashes"))
    if shape is None or keys.faults:
        raise InputError(*dict.fromkeys(keys.faults))
    repository = _repository(outer)
    digest = hashlib.sha256(read_bytes(file)).hexdigest()[:16]  # so that another can be told from it
    source = f"{FILE_NAME} of {repository}, sha256 {digest}" if repository else f"{FILE_NAME}, sha256 {digest}"
    model = Model(
        name=chosen,
        title=repository.rpartition("/")[2] or chosen,
        hf_repo=repository,
        aliases=(repository, repository.rpartition("/")[2]) if repository else (),
        family=shown(model_type),
        architecture=shape,
        sources={"config": source},
        notes=notes,
    )
    counted = with_computed(model)
    if counted.computed and counted.computed.params > MOST_PARAMS:
        what = f"comes to {counted.computed.params:.3g} parameters, beyond anything built"
        raise InputError(Fault(what, str(file), "check the dimensions"))
    return counted


def _language_model(outer: dict[str, Any], file: Path) -> tuple[dict[str, Any], str]:
    """The keys of the language model, and where they stand: configurations of multimodal models nest them."""
    for name in _NESTED:
        inner = outer.get(name)
        if isinstance(inner, dict):
            kind = {"model_type": outer["model_type"]} if "model_type" in outer else {}
            return kind | inner | {key: outer[key] for key in _FROM_OUTSIDE if key in outer}, f"{file}: {name}."
    return outer, f"{file}: "


def _with_layers_listed(data: dict[str, Any]) -> dict[str, Any]:
    """Configurations that number layers of a kind, LFM2's full ones or Kimi Linear's nested others, list them all."""
    whole = data.get("full_attn_idxs")
    if isinstance(whole, list) and data.get("layer_types") is None and isinstance(data.get("num_hidden_layers"), int):
        count = min(data["num_hidden_layers"], MOST_LAYERS)
        data = data | {"layer_types": ["full_attention" if index in whole else "conv" for index in range(count)]}
    linear, layers = data.get("linear_attn_config"), data.get("num_hidden_layers")
    listed = linear.get("kda_layers") if isinstance(linear, dict) else None
    if not (isinstance(linear, dict) and isinstance(listed, list) and isinstance(layers, int)):
        return data
    kinds = [
        "linear_attention" if index + 1 in listed else "full_attention" for index in range(min(layers, MOST_LAYERS))
    ]
    said = {
        "layer_types": kinds,
        "linear_num_heads": linear.get("num_heads"),
        "linear_head_dim": linear.get("head_dim"),
        "linear_conv_kernel_dim": linear.get("short_conv_kernel_size"),
    }
    return {key: value for key, value in data.items() if key != "linear_attn_config"} | said


def _global_heads(data: dict[str, Any]) -> dict[str, Any]:
    """Heads of Gemma 4's full layers, which Transformers 5 lists layer by layer, as they were said before: of all."""
    each, kinds = data.get("per_layer_config"), data.get("layer_types")
    first = next(iter(each.values()), None) if isinstance(each, dict) else None
    if not isinstance(each, dict) or not isinstance(first, dict) or not isinstance(kinds, list):
        return data
    full = [str(index) for index, kind in enumerate(kinds) if kind == "full_attention"]
    if (
        any(said != first for said in each.values())
        or [str(key).lstrip("0") or "0" for key in each] != full
        or not {*first} <= {*_GLOBAL}
    ):
        return data
    said = {_GLOBAL[key]: value for key, value in first.items()}
    return {key: value for key, value in data.items() if key != "per_layer_config"} | said


def _refuse(keys: Keys, model_type: object, family: Family) -> None:
    """
    Note what makes a configuration unreadable.

    Raises:
        InputError: The model cannot be read at all, so that other faults would mislead.
    """
    where = f"{keys.where}model_type"
    if len(keys.data) > MOST_KEYS:
        raise InputError(Fault(f"holds {len(keys.data)} keys", where, "is it the config.json of a model?"))
    if not isinstance(model_type, str) or not model_type:
        what = "is missing" if model_type is None else f"{shown(model_type)} is not text"
        keys.fault("model_type", what, "add it: it says what the configuration leaves out")
    elif model_type in UNREADABLE:
        what = f"{model_type} {UNREADABLE[model_type]}"
        raise InputError(Fault(what, where, "write the profile by hand, or give the parameter count instead"))
    for key, reason in REFUSED.items():
        if keys.data.get(key) and key not in family.reads:
            keys.fault(key, f"is {shown(keys.data[key])}; {reason}", "write the profile by hand")


def _notes(keys: Keys, outer: dict[str, Any], family: Family) -> Iterator[str]:
    """What the reader of the profile must know: assumptions, and what the counts leave out."""
    if not family.known:
        kind, gated = shown(keys.data["model_type"]), "gated" if family.matrices == GATED else "plain"
        yield f"The model_type {kind} is not known: {gated} MLPs, two norms a block and no biases were assumed."
    for key, value in keys.assumed.items():
        yield f"{key} is missing; {value} is the default of its family."
    predicting = [keys.whole(key, default=0, least=0) for key in _PREDICTING]
    if any(predicting):
        yield f"Has multi-token-prediction layers ({max(predicting)}), which are not counted."
    if any(outer.get(key) for key in _SEEING):
        yield "The parts that see or hear are not counted."
    unread = [shown(key) for key in keys.unread() if not changes_nothing(key) and key not in _SEEING]
    if unread:
        yield f"Keys that were not understood, and may add parameters: {some_of(unread, _MOST_UNREAD)}."


def _repository(outer: dict[str, Any]) -> str:
    said = outer.get("_name_or_path")
    return said if isinstance(said, str) and _REPOSITORY.fullmatch(said) else ""


def _name(outer: dict[str, Any], file: Path) -> str:
    """A name for the profile: the repository's, else the folder's, else the file's."""
    folder = file.parent.name if file.name == FILE_NAME else file.stem
    said = _repository(outer).rpartition("/")[2] or folder or file.resolve().parent.name
    return re.sub(r"[^a-z0-9._-]+", "-", said.lower()).strip("-._")[:100] or "model"
