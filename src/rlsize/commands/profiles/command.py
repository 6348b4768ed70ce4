"""`rlsize profiles`: the GPUs, links, models, prices and clusters that rlsize knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rlsize.reports.report import Column, Report, Table
from rlsize.shell.command import Command, Force, Profiles, argument, option

if TYPE_CHECKING:
    from rlsize.estimates.model_size import ModelSize
    from rlsize.facts.figure import Figure
    from rlsize.facts.model import Model

DEFAULT_FOLDER = "profiles"
SHADOWED = "{name} is the name of a shipped profile, which this one replaces wherever its folder is named."
_CELLS = (
    Column("part", "part", "left", of=lambda part: part.name.replace("_", " ")),
    Column("params", "parameters", of=lambda part: part.params.value),
    Column("active_params", "active", of=lambda part: part.active_params.value),
)
_CACHES = (
    "kv_bytes_per_token", "index_bytes_per_token", "sliding_cap_bytes", "recurrent_state_bytes",
    "convolution_state_bytes",
)  # fmt: skip

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode="rich")


@app.callback()
def _profiles() -> None:
    """
    The GPUs, links, models, prices and clusters that rlsize knows.

    Example:  rlsize profiles show h100
    """


@app.command("list", cls=Command)
def list_profiles(
    kind: Annotated[
        str | None, argument("KIND", "gpu, link, model, price, cluster or rates; all when left out.")
    ] = None,
    profiles: Profiles = None,
) -> Report:
    """
    What profiles there are, with the numbers that one chooses by.

    Example:  rlsize profiles list gpu
    """
    from rlsize.commands.profiles.listing import list_report
    from rlsize.readers.profiles import FOLDERS, Catalogue, user_folders

    catalogue = Catalogue(user_folders(profiles or []))
    kinds = list(FOLDERS) if kind is None else [_kind(kind)]
    named = {each: [(name, catalogue.get(each, name)) for name in catalogue.names(each)] for each in kinds}
    return list_report({each: found for each, found in named.items() if found or kind is not None})


@app.command("show", cls=Command)
def show_profile(
    name: Annotated[str, argument("NAME", "A profile's name or alias, such as h100-sxm or ndr.")],
    kind: Annotated[str | None, option("--kind", "Where several kinds have that name.", None, "KIND")] = None,
    profiles: Profiles = None,
) -> Report:
    """
    One profile: every number with its unit and source.

    Example:  rlsize profiles show h100
    """
    from rlsize.commands.profiles.page import profile_page
    from rlsize.readers.profiles import Catalogue, shipped_folder, user_folders

    catalogue = Catalogue(user_folders(profiles or []))
    found = catalogue.kind_of(name) if kind is None else _kind(kind)
    path = catalogue.path_of(found, name)
    place = f"{path.parent.name}/{path.name}" if shipped_folder() in path.parents else str(path)
    return profile_page(found, path.stem, catalogue.get(found, name), place)


@app.command("check", cls=Command)
def check_profiles(
    folder: Annotated[
        str | None, argument("[DIR]", "A folder of your own profiles; all folders when left out.")
    ] = None,
    profiles: Profiles = None,
) -> Report:
    """
    Whether every profile is well formed, sourced and consistent.

    Example:  rlsize profiles check examples/my-profiles
    """
    from rlsize.commands.profiles.listing import check_report
    from rlsize.errors import refuse
    from rlsize.readers.profiles import FOLDERS, Catalogue, user_folders

    catalogue = Catalogue(user_folders([*(profiles or []), *([folder] if folder else [])]))
    refuse(catalogue.check(folder))
    return check_report({kind: catalogue.count(kind, folder) for kind in FOLDERS})


def _kind(text: str) -> str:
    """
    The kind that a word means: `gpu` or the name of its folder, `gpus`.

    Raises:
        InputError: It means none.
    """
    from rlsize.errors import Fault, InputError, suggestion
    from rlsize.readers.profiles import FOLDERS

    by_word = {folder: kind for kind, folder in FOLDERS.items()} | {kind: kind for kind in FOLDERS}
    if text.lower() not in by_word:
        raise InputError(Fault(f"there is no kind of profile {text[:40]!r}", "KIND", suggestion(text[:40], FOLDERS)))
    return by_word[text.lower()]


@app.command("add-model", cls=Command)
def add_model(
    config: Annotated[str, argument("CONFIG", "A config.json, or the directory of a model that holds one.")],
    name: Annotated[str | None, option("--name", "Name of the profile; else that of the model.", None, "NAME")] = None,
    output: Annotated[
        str | None,
        option(
            "--output",
            "Folder of profiles to write to: DIR/models/NAME.yaml. "
            f"Else the last of --profiles and RLSIZE_PROFILES, else {DEFAULT_FOLDER}.",
            None,
            "DIR",
        ),
    ] = None,
    force: Force = False,
    profiles: Profiles = None,
) -> Report:
    """
    Make a profile of a Hugging Face config.json, with computed parameter counts.

    Example:  rlsize profiles add-model examples/my-model/config.json --output my-profiles
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
    return Report(
        headline=f"{model.name}: {params:.4g}B parameters, {active:.4g}B work on each token; wrote {saved.value}",
        results=(saved, size.params, size.active_params, *(cache for cache in caches if cache.value)),
        quiet=frozenset({"profile"}),
        tables={"parts": Table.of("Parameters", size.parts, _CELLS)},
        warnings=(*model.notes, *([SHADOWED.format(name=model.name)] if shadowed else [])),
        notes=(
            "Caches in bf16, recurrent states in fp32; add the published counts to the file to have them compared.",
            f"Use it: rlsize profiles show {model.name} --profiles {folder}",
        ),
    )
