"""`rlsize profiles add-model`: a Hugging Face configuration becomes a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rlsize.reports.report import Column, Report, Table
from rlsize.shell.command import Profiles

if TYPE_CHECKING:
    from rlsize.estimates.model_size import ModelSize
    from rlsize.facts.figure import Figure
    from rlsize.facts.model import Model
    from rlsize.reports.report import Cell

DEFAULT_FOLDER = "profiles"
SHADOWED = "{name} is the name of a shipped profile, which this one replaces wherever its folder is named."
_COLUMNS = (Column("part", "part", "left"), Column("params", "parameters"), Column("active_params", "active"))
_CACHES = (
    "kv_bytes_per_token",
    "index_bytes_per_token",
    "sliding_cap_bytes",
    "recurrent_state_bytes",
    "convolution_state_bytes",
)


def add_model(
    config: Annotated[
        str,
        typer.Argument(
            metavar="CONFIG", help="A config.json, or the directory of a model that holds one.", show_default=False
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Name of the profile; else that of the model.", show_default=False),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="DIR",
            help=f"Folder of profiles to write to: DIR/models/NAME.yaml. "
            f"Else the last of --profiles and RLSIZE_PROFILES, else {DEFAULT_FOLDER}.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the profile if it exists.")] = False,
    profiles: Profiles = None,
) -> Report:
    """
    Make a profile of a Hugging Face config.json, with computed parameter counts.

    Example:  rlsize profiles add-model ~/models/my-model/config.json --output my-profiles
    """
    from pathlib import Path

    from rlsize.estimates.model_size import model_size
    from rlsize.facts.figure import Figure
    from rlsize.readers.huggingface import read_model
    from rlsize.readers.profiles import FOLDERS, Catalogue, shipped_folder, user_folders
    from rlsize.writers.model_profile import write_model_profile

    model = read_model(config, name or "")
    folder = Path(output) if output else [Path(DEFAULT_FOLDER), *user_folders(profiles or [])][-1]
    shadowed = model.name in Catalogue().names("model") and folder.resolve() != shipped_folder().resolve()
    target = write_model_profile(model, folder / FOLDERS["model"], force=force)
    saved = Figure(key="profile", value=str(target), source="--output" if output else "default of --output")
    return _report(model, model_size(model), saved, folder=str(folder), shadowed=shadowed)


def _report(model: Model, size: ModelSize, saved: Figure, *, folder: str, shadowed: bool) -> Report:
    """What the new profile holds: its size, and the bill part by part."""
    params, active = size.params.number / 1e9, size.active_params.number / 1e9
    caches = [getattr(size, name) for name in _CACHES]
    rows: tuple[dict[str, Cell], ...] = tuple(
        {"part": part.name.replace("_", " "), "params": part.params.value, "active_params": part.active_params.value}
        for part in size.parts
    )
    return Report(
        command="profiles add-model",
        headline=f"{model.name}: {params:.4g}B parameters, {active:.4g}B work on each token; wrote {saved.value}",
        results=(saved, size.params, size.active_params, *(cache for cache in caches if cache.value)),
        quiet=frozenset({"profile"}),
        tables={"parts": Table(title="Parameters", columns=_COLUMNS, rows=rows)},
        warnings=(*model.notes, *([SHADOWED.format(name=model.name)] if shadowed else [])),
        notes=(
            "Caches in bf16, recurrent states in fp32; add the published counts to the file to have them compared.",
            f"Use it: rlsize profiles show {model.name} --profiles {folder}",
        ),
    )
