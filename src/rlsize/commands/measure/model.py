"""Which model `measure` runs: a profile, a folder or a Hugging Face id, with real weights or random ones."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.facts.figure import Figure
from rlsize.quantities.scenario import ModelNumbers

if TYPE_CHECKING:
    from rlsize.facts.model import Model
    from rlsize.shell.inputs import Inputs

NO_MODEL, NAME_ONE = "no model is named", "name a profile, a folder with a config.json or a Hugging Face id"
CONFIG = "config.json"
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_WEIGHTS = ("*.safetensors", "*.bin", "*.pt")


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredModel:
    """
    A model to run.

    Args:
        name: What it is called in the answer.
        source: Where an engine finds it: a folder with a config.json, or a Hugging Face id.
        shape: Where a trainer finds its config.json, for which no weights are read; likewise.
        dummy: Whether its weights are random.
        profile: Its shape, where it is known before the run.
    """

    name: str
    source: str
    shape: str
    dummy: bool
    profile: Model | None


def measured_model(inputs: Inputs, *, dummy: bool, folder: Path) -> MeasuredModel | None:
    """
    The model; None where there is none, or something is wrong with it, which is then noted.

    Args:
        inputs: Flags, scenario and profiles.
        dummy: Whether random weights are asked for.
        folder: Where a config.json may be written for a profile.
    """
    chosen, where = inputs.name("model")
    if isinstance(inputs.said("model"), ModelNumbers) and not inputs.by_flag("model"):
        inputs.fault("is only a size; a measurement needs a real model", where, "name one with --model")
        return None
    if chosen is None:
        return None
    if not chosen.strip():
        inputs.fault("names no model", where, NAME_ONE)
        return None
    near = Path() if inputs.by_flag("model") or inputs.file is None else inputs.file.folder
    try:
        found = _local(chosen, near, dummy=dummy) or _named(inputs, chosen, folder, dummy=dummy)
    except InputError as error:
        inputs.blame(error, where)
        return None
    inputs.keep(Figure(key="model", value=found.name, source=where))
    if found.dummy and not dummy:
        inputs.notes.append(
            f"{found.name} has no weights here, so random ones are used; speed does not need real ones."
        )
    return found


def _local(chosen: str, near: Path, *, dummy: bool) -> MeasuredModel | None:
    """
    The model in a folder; None where nothing lies there.

    Raises:
        InputError: What lies there is no model.
    """
    try:
        place = (near / chosen).expanduser()
        place = place.parent if place.name == CONFIG and place.is_file() else place
        if not place.exists():
            return None
        if place.is_dir() and not (place / CONFIG).is_file():
            raise InputError(Fault(f"the folder {place} holds no {CONFIG}", "", "name the folder of a model"))
    except (OSError, RuntimeError, ValueError):  # a name that no file can have
        return None
    from rlsize.readers.huggingface import read_model

    profile = read_model(place)
    weights = any(next(place.glob(pattern), None) for pattern in _WEIGHTS)
    here = str(place.resolve())
    return MeasuredModel(name=profile.name, source=here, shape=here, dummy=dummy or not weights, profile=profile)


def _named(inputs: Inputs, chosen: str, folder: Path, *, dummy: bool) -> MeasuredModel:
    """
    The model of a profile or of a Hugging Face id.

    Raises:
        InputError: It is neither.
    """
    try:
        profile: Model | None = inputs.catalogue.get("model", chosen)
    except InputError:
        if not _HUB_ID.fullmatch(chosen) or chosen.startswith("."):
            raise
        profile = None
    if profile is None:
        inputs.notes.append(f"{chosen} is taken for a Hugging Face id; no profile knows its shape.")
        return MeasuredModel(name=chosen, source=chosen, shape=chosen, dummy=dummy, profile=None)
    try:
        shape = _written(profile, folder)
    except InputError:
        if not profile.hf_repo:
            raise
        shape = profile.hf_repo  # its family is not written here, so its configuration comes from where its weights lie
    if profile.hf_repo and not dummy:
        return MeasuredModel(name=profile.name, source=profile.hf_repo, shape=shape, dummy=False, profile=profile)
    return MeasuredModel(name=profile.name, source=shape, shape=shape, dummy=True, profile=profile)


def _written(profile: Model, folder: Path) -> str:
    """
    A folder with the config.json of a profile.

    Raises:
        InputError: Its family cannot be written.
    """
    from rlsize.writers.huggingface_config import config_of

    place = folder / "model"
    place.mkdir()
    (place / CONFIG).write_text(json.dumps(config_of(profile), indent=2), encoding="utf-8")
    return str(place)
