"""Configuration files, and configurations that logs print, as settings with places: YAML, TOML, JSON, Python."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.facts.launch import Setting, Settings, Word
from rlsize.readers.launch.literals import json_settings
from rlsize.readers.launch.log_settings import log_settings
from rlsize.readers.launch.nodes import settings_of
from rlsize.readers.launch.notebooks import notebook_code
from rlsize.readers.launch.python_settings import python_settings
from rlsize.readers.launch.toml_settings import toml_settings
from rlsize.readers.launch.yaml_settings import scripts_in, yaml_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LARGEST = 4 * 2**20
_MOST_NOTES = 100
_FORMS = {".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".json": "json", ".py": "python", ".ipynb": "notebook"}
_TOML = re.compile(r"^[ \t]*(?:\[[^\]\n]+\]\]?[ \t]*(?:#.*)?$|[\w.\"-]+[ \t]*=)", re.MULTILINE)
_PYTHON = re.compile(r"^[ \t]*(?:import|from|def|class)[ \t]|\w\(", re.MULTILINE)
_YAML = re.compile(r"^[ \t]*[\w.\"'/-]+:(?:[ \t]|$)", re.MULTILINE)
_READERS = {"toml": toml_settings, "json": json_settings, "log": log_settings}


def read_settings(
    text: str, name: str, beside: Callable[[str], str | None], overrides: Sequence[Setting] = ()
) -> Settings:
    r"""
    The settings of a configuration.

    Args:
        text: Its text.
        name: Its name; the ending says what it is, else its content does.
        beside: The text of a file by its path from this one; None where there is none.
        overrides: What is set in place of what it says: interpolations in YAML take these values.

    Returns:
        What it sets; nothing in it was run.

    Raises:
        InputError: It cannot be read, with file and line.

    >>> [(one.key, one.value) for one in read_settings("a: {b: 1}\nc: ${a.b}", "x.yaml", {}.get).settings]
    [('a.b', 1), ('c', 1)]
    """
    if len(text) > _LARGEST:
        raise InputError(Fault("is larger than 4 MiB", name, "is it the file you meant?"))
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(Fault("is not UTF-8 text", name, "is it a binary file?")) from None
    text = text.removeprefix("\ufeff")
    form = _FORMS.get(PurePosixPath(name).suffix.lower())
    return _read(form, text, name, beside, overrides) if form else _told_by_content(text, name, beside, overrides)


def _told_by_content(
    text: str, name: str, beside: Callable[[str], str | None], overrides: Sequence[Setting]
) -> Settings:
    """The settings of a text whose ending says nothing: the first form in which it reads wholly."""
    likely = {"json": text.lstrip()[:1] == "{", "toml": _TOML.search(text), "python": _PYTHON.search(text)}
    likely["yaml"] = _YAML.search(text)
    for form in (form for form, fits in likely.items() if fits):
        try:
            found = _read(form, text, name, beside, overrides)
        except InputError:
            continue
        if found.settings:
            return found
    return _read("log", text, name, beside, overrides)


def _read(
    form: str, text: str, name: str, beside: Callable[[str], str | None], overrides: Sequence[Setting]
) -> Settings:
    """The settings of a text of known form."""
    notes: list[str] = []
    scripts: tuple[tuple[Word, ...], ...] = ()
    if form == "yaml":
        root, scripts = yaml_settings(text, name, beside, notes, overrides)
    elif form in {"python", "notebook"}:
        code = text if form == "python" else notebook_code(text, name)
        root, scripts = python_settings(code, name, notes)
    else:
        root = _READERS[form](text, name, notes)
        scripts = tuple(words for words, _ in scripts_in(root)) if form == "json" else ()
    settings = settings_of(root, name, notes)
    told = tuple(dict.fromkeys(notes))
    if len(told) > _MOST_NOTES:
        told = (*told[:_MOST_NOTES], f"{name}: and {len(told) - _MOST_NOTES} more notes")
    return Settings(settings, told, form, scripts)
