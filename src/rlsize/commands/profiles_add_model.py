"""`rlsize profiles add-model`: a Hugging Face configuration becomes a profile."""

from __future__ import annotations

from typing import Annotated

import typer

from rlsize.commands import flags
from rlsize.reports.report import Report

DEFAULT_FOLDER = "profiles"


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
    profiles: flags.Profiles = None,
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
    from rlsize.reports.model_added import model_added_report
    from rlsize.writers.model_profile import write_model_profile

    model = read_model(config, name or "")
    folder = Path(output) if output else [Path(DEFAULT_FOLDER), *user_folders(profiles or [])][-1]
    shadowed = model.name in Catalogue().names("model") and folder.resolve() != shipped_folder().resolve()
    target = write_model_profile(model, folder / FOLDERS["model"], force=force)
    saved = Figure(key="profile", value=str(target), source="--output" if output else "default of --output")
    return model_added_report(model, model_size(model), saved, folder=str(folder), shadowed=shadowed)
