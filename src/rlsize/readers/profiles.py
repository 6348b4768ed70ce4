"""
The catalogue: every profile that ships with rlsize, and those of the user's folders on top.

A profile is one YAML file in the folder of its kind, named after its file. Profiles are found by listing folders, so a
new one is one new file; a user's file replaces the shipped one of the same name.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from rlsize.errors import Fault, InputError, nearest, noting, refuse, suggestion
from rlsize.facts.gpu import completed
from rlsize.facts.sourced import unverified
from rlsize.readers.file_kinds import FOLDERS, KINDS
from rlsize.readers.profile_checks import alias_faults, own_faults, reference_faults, stray_faults
from rlsize.readers.shipped import shipped
from rlsize.readers.validation import opened, validated
from rlsize.readers.yaml_documents import parse_document, read_bytes, read_document, read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rlsize.facts.cluster import Cluster
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.link import Link
    from rlsize.facts.model import Model
    from rlsize.facts.price import Price
    from rlsize.facts.rates import Rates
    from rlsize.readers.yaml_documents import Document

VARIABLE = "RLSIZE_PROFILES"
SUFFIX = ".yaml"


def shipped_folder() -> Path:
    """The profiles inside an installed package, else those of the checkout."""
    return shipped("profiles")


def user_folders(given: Iterable[str | Path] = (), environment: str | None = None) -> list[Path]:
    """
    The folders of RLSIZE_PROFILES, then the given ones; later folders win.

    >>> [str(folder) for folder in user_folders(["b"], environment="a")]
    ['a', 'b']
    """
    listed = os.environ.get(VARIABLE, "") if environment is None else environment
    return [Path(text) for text in (*listed.split(os.pathsep), *given) if str(text)]


def profile_files(folder: Path, kind: str) -> list[Path]:
    """
    The files of the profiles of a kind in one folder, sorted; none where it has no folder of that kind.

    Raises:
        InputError: The folder cannot be listed.
    """
    try:
        return sorted(path for path in (folder / FOLDERS[kind]).iterdir() if path.suffix == SUFFIX)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise InputError(unlistable(folder, error)) from None


def unlistable(folder: Path, error: OSError) -> Fault:
    """The fault of a folder whose content cannot be seen."""
    return Fault(f"cannot be listed: {error.strerror or error}", str(folder), "check its permissions")


def is_folder(path: Path) -> bool:
    """Whether there is such a folder and one may look."""
    try:
        return path.is_dir()
    except OSError:  # a parent that may not be entered, a name too long
        return False


__all__ = ["FOLDERS", "VARIABLE", "Catalogue", "shipped_folder", "unverified", "user_folders"]

_SIZES = re.compile(r"([^@]{1,100})@(\d{1,4}(?:\.\d{1,3})?)([mbt])(?:-a(\d{1,4}(?:\.\d{1,3})?)b)?")
_UNITS = {"m": 1e6, "b": 1e9, "t": 1e12}
_LEAST = 0.08  # of the parameters of the profile that is scaled
_MOST_OFFERED = 6
_LONGEST_NAME = 100  # no profile's name is longer; the search for similar names is slow on long text


class _Reading(NamedTuple):
    """What a file gave: a profile with its document, unless its form is wrong, and the faults."""

    profile: Any = None
    document: Document | None = None
    faults: tuple[Fault, ...] = ()


class Catalogue:
    """
    All profiles by kind and name.

    Args:
        user_folders: Folders laid out like the shipped one (`gpus/`, `links/`, ...); later ones win.

    Raises:
        InputError: A folder does not exist.
    """

    def __init__(self, user_folders: Iterable[str | Path] = ()) -> None:
        self.folders = (shipped_folder(), *map(Path, user_folders))
        missing = [folder for folder in self.folders if not is_folder(folder)]
        todo = f"check --profiles and {VARIABLE}"
        refuse(Fault("no such folder of profiles", str(folder), todo) for folder in missing)
        self._paths: dict[str, dict[str, Path]] = {}
        self._aliases: dict[str, dict[str, str]] = {}
        self._readings: dict[Path, _Reading] = {}
        self._completed: dict[Path, Gpu] = {}
        self._scaled: dict[tuple[str, float, float], Model] = {}

    def names(self, kind: str) -> list[str]:
        """The names of all profiles of a kind, sorted."""
        return sorted(path.stem for path in self._files(kind).values())

    @overload
    def get(self, kind: Literal["gpu"], name: str) -> Gpu: ...
    @overload
    def get(self, kind: Literal["link"], name: str) -> Link: ...
    @overload
    def get(self, kind: Literal["model"], name: str) -> Model: ...
    @overload
    def get(self, kind: Literal["price"], name: str) -> Price: ...
    @overload
    def get(self, kind: Literal["cluster"], name: str) -> Cluster: ...
    @overload
    def get(self, kind: Literal["rates"], name: str) -> Rates: ...
    @overload
    def get(self, kind: str, name: str) -> Any: ...  # noqa: ANN401 (kinds known at run time only)
    def get(self, kind: str, name: str) -> Any:
        """
        The profile of that name or alias, in any case; a GPU with the kernels of the one that it calls alike.

        Raises:
            InputError: There is none, with the nearest names; or its file is wrong.
        """
        if kind == "model" and (sizes := _SIZES.fullmatch(name.strip().lower())):
            return self._scaled_model(*sizes.groups())
        path = self.path_of(kind, name)
        profile = self._sound(kind, path)
        if not getattr(profile, "kernels_like", ""):
            return profile
        if path not in self._completed:
            self._completed[path] = completed(profile, lambda lender: self._sound(kind, self.path_of(kind, lender)))
        return self._completed[path]

    def _scaled_model(self, like: str, total: str, unit: str, active: str | None) -> Model:
        """The model of a name such as `qwen3.5-27b@9B`: that profile, scaled to the parameters after the sign."""
        from rlsize.estimates.model_size import model_size
        from rlsize.estimates.scaled_model import scaled

        params, working = float(total) * _UNITS[unit], float(active or 0.0) * _UNITS["b"]
        model = self.get("model", like)
        if working and model.architecture.moe is None:
            what = f"{model.name} has no experts, so that all of its parameters are active"
            raise InputError(Fault(what, todo=f"name its parameters alone: {model.name}@{total}{unit.upper()}"))
        if working > params or not _LEAST <= params / model_size(model).params.number <= 1 / _LEAST:
            what = f"{model.name} cannot be scaled to {params:g} parameters, of which {working or params:g} work"
            raise InputError(Fault(what, todo="name a model within ten times of them"))
        key = (model.name, params, working)
        if key not in self._scaled:
            self._scaled[key] = scaled(model, params, working)
        return self._scaled[key]

    def path_of(self, kind: str, name: str) -> Path:
        """
        The file of the profile of that name or alias.

        Raises:
            InputError: There is none, with the nearest names.
        """
        files = self._files(kind)
        wanted = name.strip().lower()
        if wanted not in files:
            aliases = self._aliases.get(kind) or self._aliases_holding(kind, wanted)
            if wanted not in aliases:
                aliases = self._alias_names(kind)
            if wanted not in aliases:
                shown = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
                todo = _nearest(shown, self.names(kind), aliases)
                if kind == "model":
                    end = "" if todo.endswith("?") else "."
                    todo += f"{end} Or take one of its kind, scaled to its parameters: qwen3.5-27b@9B"
                raise InputError(Fault(f"there is no {kind} profile {shown!r}", todo=todo))
            wanted = aliases[wanted]
        return files[wanted]

    def kind_of(self, name: str) -> str:
        """
        The one kind that has a profile of that name or alias; a name stands before an alias.

        Raises:
            InputError: None has, or several have.
        """
        wanted = name.strip().lower()
        having = [kind for kind in FOLDERS if wanted in self._files(kind)]
        having = having or [kind for kind in FOLDERS if wanted in self._alias_names(kind)]
        if not having:
            shown = name[:_LONGEST_NAME]
            known = [each for kind in FOLDERS for each in (*self.names(kind), *self._alias_names(kind))]
            similar = nearest(shown, known)
            todo = f"did you mean {' or '.join(similar)}?" if similar else "`rlsize profiles list` prints their names"
            raise InputError(Fault(f"there is no profile {shown!r}", todo=todo))
        if len(having) > 1:
            todo = f"add {' or '.join(f'--kind {kind}' for kind in having)}"
            raise InputError(Fault(f"{name.strip()} names a {' and a '.join(having)}", todo=todo))
        return having[0]

    def known(self, kind: str) -> dict[str, str]:
        """The name behind each name and alias of a kind; a name stands before an alias."""
        files = self._files(kind)
        aliases = {alias: files[stem].stem for alias, stem in self._alias_names(kind).items()}
        return aliases | {stem: path.stem for stem, path in files.items()}

    def count(self, kind: str, folder: str | Path | None = None) -> int:
        """How many files of a kind there are in one folder, or in all, the shadowed ones included."""
        return sum(len(profile_files(each, kind)) for each in (self.folders if folder is None else (Path(folder),)))

    def documents(self, kind: str | None = None) -> Iterator[Document]:
        """
        The content of every profile of a kind, or of all kinds, as data.

        Raises:
            InputError: One cannot be read.
        """
        for each in FOLDERS if kind is None else (kind,):
            for _, path in sorted(self._files(each).items()):
                yield opened(read_document(path), each)

    def digest(self) -> str:
        """A short hash of the names and contents of all files, the same on every system."""
        hashed = hashlib.sha256()
        for layer, folder in enumerate(self.folders):
            for kind in FOLDERS:
                for path in profile_files(folder, kind):
                    try:
                        normal = read_bytes(path).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
                    except InputError:
                        normal = b"unreadable"
                    hashed.update(f"{layer} {path.parent.name}/{path.name} {len(normal)}\n".encode("utf-8", "replace"))
                    hashed.update(normal)
        return hashed.hexdigest()[:16]

    def check(self, folder: str | Path | None = None) -> list[Fault]:
        """
        Everything that is wrong with the profiles of one folder, or of all, the shadowed ones included.

        Names of other profiles are looked up in the whole catalogue.
        """
        faults: list[Fault] = []
        for each in self.folders if folder is None else (Path(folder),):
            with noting(faults):
                try:
                    faults += [*stray_faults(each, FOLDERS), *self._profile_faults(each)]
                except OSError as error:
                    faults.append(unlistable(each, error))
        return faults

    def _profile_faults(self, folder: Path) -> Iterator[Fault]:
        for kind in FOLDERS:
            readings = {path.stem: self._read(kind, path) for path in profile_files(folder, kind)}
            for reading in readings.values():
                yield from reading.faults
                if reading.document is not None:
                    yield from reference_faults(reading.profile, reading.document, self._found)
            sound = {stem: reading.document for stem, reading in readings.items() if reading.document is not None}
            yield from alias_faults(sound)

    def _found(self, kind: str, name: str) -> object:
        """The profile, a fault where there is none, or None where its own file is wrong."""
        try:
            path = self.path_of(kind, name)
        except InputError as error:
            return error.faults[0]
        return self._read(kind, path).profile

    def _sound(self, kind: str, path: Path) -> Any:  # noqa: ANN401 (any kind of profile)
        """The profile as it was written; an error if it has faults."""
        reading = self._read(kind, path)
        refuse(reading.faults)
        return reading.profile

    def _read(self, kind: str, path: Path) -> _Reading:
        if path not in self._readings:
            try:
                document = opened(read_document(path), kind)
                profile = validated(KINDS[kind].fact(), document)
                self._readings[path] = _Reading(profile, document, tuple(own_faults(profile, document, path.stem)))
            except InputError as error:
                self._readings[path] = _Reading(faults=error.faults)
        return self._readings[path]

    def _files(self, kind: str) -> dict[str, Path]:
        if kind not in FOLDERS:
            shown = kind[:_LONGEST_NAME]
            raise InputError(Fault(f"there is no kind of profile {shown!r}", todo=suggestion(shown, FOLDERS)))
        if kind not in self._paths:
            listed = [path for folder in self.folders for path in profile_files(folder, kind)]
            self._paths[kind] = {path.stem.lower(): path for path in listed}
        return self._paths[kind]

    def _alias_names(self, kind: str) -> dict[str, str]:
        """The name behind each alias, all in lower case; files that cannot be read have none."""
        if kind not in self._aliases:
            self._aliases[kind] = self._aliases_holding(kind, "")
        return self._aliases[kind]

    def _aliases_holding(self, kind: str, text: str) -> dict[str, str]:
        """The name behind each alias of the files that hold a text: to parse them all takes long."""
        found: dict[str, str] = {}
        for stem, path in self._files(kind).items():
            try:
                content = read_text(path)
                data = parse_document(content, str(path)).data if text in content.lower() else None
            except InputError:
                continue
            aliases = data.get("aliases") if isinstance(data, dict) else None
            found |= {alias.lower(): stem for alias in aliases or () if isinstance(alias, str)}
        return found


def _nearest(name: str, names: list[str], aliases: Mapping[str, str]) -> str:
    """A sentence that offers the names that hold the wanted text, else those that look like it."""
    if not names:
        return "there are none of that kind"
    wanted = name.strip().lower()
    holding = [known for known in names if wanted in known.lower()]
    if wanted and 0 < len(holding) <= _MOST_OFFERED:
        return f"did you mean {' or '.join(holding)}?"
    return suggestion(name, [*names, *aliases])
