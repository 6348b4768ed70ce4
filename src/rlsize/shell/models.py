"""Which model: a profile's name, the path of a config.json, or a bare number of parameters."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.errors import InputError
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from pathlib import Path

    from rlsize.facts.model import Model
    from rlsize.quantities.scenario import ModelNumbers
    from rlsize.shell.inputs import Inputs

_FLAG = "--model"
_CONFIG = ".json"


def model_params(inputs: Inputs) -> Figure:
    """
    Parameters of the policy, with their source; absent where nobody names a model.

    Args:
        inputs: Flags, scenario and profiles; faults are noted there.
    """
    inputs.asked |= {"model", "params"}
    if inputs.by_flag("params"):
        if inputs.by_flag("model"):
            inputs.fault("--model and --params both name a model", "--params", "leave one of them out")
        return inputs.ask("params")
    said = inputs.said("model")
    if said is not None and not isinstance(said, str) and not inputs.by_flag("model"):  # numbers, not a name
        return _numbers(inputs, said)
    profile = model_profile(inputs)
    if profile is None:
        return absent("params", _FLAG)
    from rlsize.estimates.model_size import model_size

    source = f"model profile {profile.name}: counted from its layers; {profile.sources[profile.architecture.source]}"
    return replace(model_size(profile).params, source=source)


def model_profile(inputs: Inputs) -> Model | None:
    """
    The model's profile, or its config.json as one; None where none is named, or where it cannot be read.

    Args:
        inputs: Flags, scenario and profiles; faults are noted there.
    """
    flagged = inputs.by_flag("model")
    chosen = inputs.texts["model"] if flagged else inputs.said("model")
    if not isinstance(chosen, str):
        return None
    where = _FLAG if flagged else inputs.where("model")
    folder = inputs.file.folder if inputs.file and not flagged else None
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


def _read(inputs: Inputs, chosen: str, folder: Path | None) -> Model:
    """
    The profile of that name, else the configuration at that path.

    Raises:
        InputError: There is neither, or the configuration is wrong.
    """
    with suppress(InputError):
        return inputs.catalogue.get("model", chosen)
    from rlsize.readers.huggingface import read_model

    path = os.path.expanduser(chosen)  # noqa: PTH111 (as text: a name that no file can have must not raise)
    place = path if folder is None else os.path.join(folder, path)  # noqa: PTH118 (as text: see expanduser)
    if os.path.exists(place):  # noqa: PTH110 (as text: see expanduser)
        return read_model(place)
    named_as_path = chosen.startswith((".", "/", "~"))
    try:
        found: Model = inputs.named("model", chosen)
    except InputError:
        if chosen.endswith(_CONFIG) or named_as_path:
            return read_model(place)  # which tells that there is no such file
        raise
    if named_as_path:
        inputs.warnings.append(f"{chosen}: no such file here; taken for {found.name} by its name")
    return found


def _numbers(inputs: Inputs, said: ModelNumbers) -> Figure:
    """A model of which only its size is said."""
    params = inputs.keep(Figure(key="params", value=said.params, source=inputs.where("model.params")))
    if said.active_params is not None:
        source = inputs.where("model.active_params")
        if said.active_params > said.params:
            inputs.fault(f"{said.active_params:g} active parameters are more than {said.params:g}", source)
        inputs.keep(Figure(key="active_params", value=said.active_params, source=source))
    return params
