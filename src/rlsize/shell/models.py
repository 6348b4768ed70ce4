"""Which model: a profile's name, the path of a config.json, or a bare number of parameters."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.errors import InputError
from rlsize.facts.figure import Figure, absent
from rlsize.quantities.scenario import ModelNumbers

if TYPE_CHECKING:
    from pathlib import Path

    from rlsize.facts.model import Model
    from rlsize.shell.inputs import Inputs

FLAG = "--model"
PARAMS_FLAG = "--params"
_CONFIG = ".json"


def model_params(inputs: Inputs, model: str | None, params: str | None) -> tuple[Figure, Figure]:
    """
    Parameters in total and those that work on each token.

    Args:
        inputs: Flags, scenario and profiles; faults are noted there.
        model: What `--model` says.
        params: What `--params` says; without a profile all parameters count as active.

    Returns:
        Figures `params` and `active_params`, each with its source; absent where nobody names a model.
    """
    if params is not None:
        if model is not None:
            inputs.fault("--model and --params both name a model", PARAMS_FLAG, "leave one of them out")
        return _all_active(inputs.ask("params"))
    said = inputs.said("model") if model is None else None
    if isinstance(said, ModelNumbers):
        return _numbers(inputs, said)
    profile = model_profile(inputs, model)
    return (absent("params", FLAG), absent("active_params", FLAG)) if profile is None else _sized(profile)


def model_profile(inputs: Inputs, model: str | None) -> Model | None:
    """
    The model's profile, or its config.json as one; None where none is named, or where it cannot be read.

    Args:
        inputs: Flags, scenario and profiles; faults are noted there.
        model: What `--model` says; the scenario's `model` when None.
    """
    model = model if model is not None else _flagged(inputs)
    said = inputs.said("model") if model is None else None
    chosen = model if model is not None else said
    if not isinstance(chosen, str):
        return None
    where = FLAG if model is not None else inputs.where("model")
    folder = inputs.file.folder if model is None and inputs.file else None
    try:
        found = _read(inputs, chosen, folder)
    except InputError as error:
        inputs.blame(error, where)
        return None
    inputs.keep(Figure(key="model", value=found.name, source=where))
    doubt = f"the dimensions of {found.name} are unverified"
    if not found.architecture.verified and doubt not in inputs.warnings:
        inputs.warnings.append(doubt)
    return found


def _flagged(inputs: Inputs) -> str | None:
    """What `--model` says."""
    text = inputs.texts.get("model")
    return None if text is None else str(text)


def profile_params(inputs: Inputs, name: str, key: str, where: str) -> Figure:
    """Parameters of the profile of another tenant (a reward model, say), under a key of its own."""
    try:
        found = inputs.catalogue.get("model", name)
    except InputError as error:
        inputs.blame(error, where)
        return absent(key, where)
    return replace(_sized(found)[0], key=key)


def _read(inputs: Inputs, chosen: str, folder: Path | None) -> Model:
    """
    The profile of that name, else the configuration at that path.

    Raises:
        InputError: There is neither, or the configuration is wrong.
    """
    try:
        return inputs.catalogue.get("model", chosen)
    except InputError:
        path = os.path.expanduser(chosen)  # noqa: PTH111 (as text: a name that no file can have must not raise)
        place = path if folder is None else os.path.join(folder, path)  # noqa: PTH118 (as above)
        is_path = chosen.endswith(_CONFIG) or os.path.isabs(path) or chosen.startswith(".")  # noqa: PTH117 (as above)
        if not is_path and not os.path.exists(place):  # noqa: PTH110 (as above)
            raise
    from rlsize.readers.huggingface import read_model

    return read_model(place)


def _sized(profile: Model) -> tuple[Figure, Figure]:
    from rlsize.estimates.model_size import model_size

    size = model_size(profile)
    source = f"model profile {profile.name}: counted from its layers; {profile.sources[profile.architecture.source]}"
    return replace(size.params, source=source), replace(size.active_params, source=source)


def _numbers(inputs: Inputs, said: ModelNumbers) -> tuple[Figure, Figure]:
    params = inputs.keep(Figure(key="params", value=said.params, source=inputs.where("model.params")))
    if said.active_params is None:
        return _all_active(params)
    source = inputs.where("model.active_params")
    if said.active_params > said.params:
        inputs.fault(f"{said.active_params:g} active parameters are more than {said.params:g}", source)
    return params, inputs.keep(Figure(key="active_params", value=said.active_params, source=source))


def _all_active(params: Figure) -> tuple[Figure, Figure]:
    return params, replace(params, key="active_params")
