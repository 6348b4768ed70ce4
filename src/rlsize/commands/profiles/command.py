"""`rlsize profiles`: the GPUs, links, models, prices and clusters that rlsize knows."""

from __future__ import annotations

from typing import Annotated

import typer

from rlsize.commands.profiles.add_model import add_model
from rlsize.reports.report import Report
from rlsize.shell.command import Command, Profiles

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
        str | None,
        typer.Argument(
            metavar="KIND", help="gpu, link, model, price, cluster or rates; all when left out.", show_default=False
        ),
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
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A profile's name or alias, such as h100-sxm or ndr.", show_default=False),
    ],
    kind: Annotated[
        str | None,
        typer.Option("--kind", metavar="KIND", help="Where several kinds have that name.", show_default=False),
    ] = None,
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
        str | None,
        typer.Argument(
            metavar="[DIR]", help="A folder of your own profiles; all folders when left out.", show_default=False
        ),
    ] = None,
    profiles: Profiles = None,
) -> Report:
    """
    Whether every profile is well formed, sourced and consistent.

    Example:  rlsize profiles check my-profiles
    """
    from rlsize.commands.profiles.listing import check_report
    from rlsize.errors import InputError
    from rlsize.readers.profiles import FOLDERS, Catalogue, user_folders

    catalogue = Catalogue(user_folders([*(profiles or []), *([folder] if folder else [])]))
    faults = catalogue.check(folder)
    if faults:
        raise InputError(*faults)
    return check_report({kind: catalogue.count(kind, folder) for kind in FOLDERS})


app.command("add-model", cls=Command)(add_model)


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
