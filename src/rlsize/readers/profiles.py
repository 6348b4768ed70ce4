"""
The catalogue: every profile that ships with rlsize, and those of the user's folders on top.

A profile is one YAML file in the folder of its kind, named after its file. Profiles are found by listing folders, so a
new one is one new file; a user's file replaces the shipped one of the same name.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import os
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

from rlsize.errors import Fault, InputError, nearest, noting, refuse, suggestion
from rlsize.facts.fields import facts_within, unverified
from rlsize.facts.gpu import Gpu, completed
from rlsize.facts.link import Cluster, Link
from rlsize.facts.price import Price
from rlsize.readers.file_kinds import FOLDERS, KINDS
from rlsize.readers.shipped import shipped
from rlsize.readers.validation import opened, validated
from rlsize.readers.yaml_documents import parse_document, read_bytes, read_document, read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping

    from rlsize.facts.fields import Sourced
    from rlsize.facts.gpu import ScaleUp
    from rlsize.facts.link import LinkSpecification
    from rlsize.facts.model import Model
    from rlsize.facts.rates import Rates
    from rlsize.readers.yaml_documents import Document

    Found = Callable[[str, str], object]

VARIABLE = "RLSIZE_PROFILES"
SUFFIX = ".yaml"


# GiB against GB is 7.4 %: what is sold as 80 GB may hold 80 GiB.
_MOST_USABLE = 1.08
_LEAST_USABLE = 0.9
_ROUNDING = 1e-3


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


@cache
def _shipped_digest(folder: Path) -> hashlib._Hash:
    """What is digested of the shipped folder, which does not change while a program runs."""
    hashed = hashlib.sha256()
    _digest_into(hashed, 0, folder)
    return hashed


def _reading(kind: str, path: Path) -> _Reading:
    try:
        document = opened(read_document(path), kind)
        profile = validated(KINDS[kind].fact(), document)
        return _Reading(profile, document, tuple(own_faults(profile, document, path.stem)))
    except InputError as error:
        return _Reading(faults=error.faults)


@cache
def _shipped_reading(kind: str, path: Path) -> _Reading:
    """A shipped profile, which does not change while a program runs: what is remembered of it holds for all of it."""
    return _reading(kind, path)


def _digest_into(hashed: hashlib._Hash, layer: int, folder: Path) -> None:
    for kind in FOLDERS:
        for path in profile_files(folder, kind):
            try:
                normal = read_bytes(path).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            except InputError:
                normal = b"unreadable"
            hashed.update(f"{layer} {path.parent.name}/{path.name} {len(normal)}\n".encode("utf-8", "replace"))
            hashed.update(normal)


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
                    todo += (
                        f"{end} Or name its config.json, or one of its kind, scaled to its parameters: qwen3.5-27b@9B"
                    )
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
        hashed = _shipped_digest(self.folders[0]).copy()
        for layer, folder in enumerate(self.folders[1:], start=1):
            _digest_into(hashed, layer, folder)
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
        if path.parents[1] == self.folders[0]:
            return _shipped_reading(kind, path)
        if path not in self._readings:
            self._readings[path] = _reading(kind, path)
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


def own_faults(profile: Any, document: Document, stem: str) -> Iterator[Fault]:  # noqa: ANN401 (any kind of profile)
    """What is wrong with a profile taken by itself."""
    name = getattr(profile, "name", stem)  # a rates file has no name of its own
    if name != stem:
        what = f"is {name!r}, but the file is called {stem!r}"
        yield Fault(what, document.where(("name",)), "give both the same name")
    yield from _source_faults(profile, document)
    if isinstance(profile, Gpu):
        yield from _gpu_faults(profile, document)
    elif isinstance(profile, Link):
        both = ("specification", "bandwidth_both_directions")
        yield from _twice(profile.specification, document, both)
    elif isinstance(profile, Price):
        yield from _price_faults(profile, document)


def reference_faults(profile: object, document: Document, found: Found) -> Iterator[Fault]:
    """Names of other profiles that do not exist, and numbers that contradict theirs."""
    if isinstance(profile, Gpu):
        scale_up = profile.specification.scale_up
        path = ("specification", "scale_up", "link")
        link = yield from _named("link", scale_up.link, document, path, found)
        if isinstance(link, Link):
            theirs = link.specification.bandwidth_one_direction
            path = ("specification", "scale_up", "bandwidth_one_direction")
            yield from _same(scale_up.bandwidth_one_direction, theirs, f"the link {link.name}", document, path)
        lenders = [("kernels_like", profile.kernels_like)] if profile.kernels_like else []
        for key, name in [*lenders, *(("collectives_like", name) for name in profile.collectives_like)]:
            lender = yield from _named("gpu", name, document, (key,), found)
            if isinstance(lender, Gpu) and lender.kernels is None:
                yield Fault(f"{lender.name} has no kernels", document.where((key,)), "name a GPU that has")
    elif isinstance(profile, Price) and profile.gpu is not None:
        yield from _named("gpu", profile.gpu, document, ("gpu",), found)
    elif isinstance(profile, Cluster):
        yield from _cluster_faults(profile, document, found)


def alias_faults(documents: Mapping[str, Document]) -> Iterator[Fault]:
    """
    Aliases that name two profiles of one folder, or another profile's own name.

    Args:
        documents: Profiles of one kind and folder by the names of their files, without the ending.
    """
    owners = {stem.lower(): stem for stem in documents}
    for own, document in documents.items():
        for index, alias in enumerate(document.data.get("aliases", ())):
            owner = owners.setdefault(str(alias).lower(), own)
            if owner != own:
                where = document.where(("aliases", index))
                yield Fault(f"the alias {alias} already names {owner}", where, "keep it in one of them")


def stray_faults(folder: Path, kinds: Mapping[str, str]) -> Iterator[Fault]:
    """Files and folders that look like profiles but would never be read."""
    present = [name for name in kinds.values() if (folder / name).is_dir()]
    if not present:
        layout = ", ".join(f"{name}/" for name in kinds.values())
        yield Fault("holds no profiles", str(folder), f"name a folder that has one of {layout}")
    for child in sorted(folder.iterdir()):
        meant = nearest(child.name, kinds.values(), most=1)
        if child.is_dir() and meant and child.name not in kinds.values():
            yield Fault("is not a folder of profiles", str(child), f"did you mean {meant[0]}?")
    for name in present:
        for child in sorted((folder / name).iterdir()):
            if child.suffix != ".yaml" and child.name != "README.md" and not child.name.startswith("."):
                yield Fault("is not read as a profile", str(child), "a profile is a file that ends in .yaml")


def _source_faults(profile: Any, document: Document) -> Iterator[Fault]:  # noqa: ANN401 (any kind of profile)
    sources = getattr(profile, "sources", None)
    if sources is None:
        return
    named = [
        (path, key) for path, fact in facts_within(profile) if isinstance(key := getattr(fact, "source", None), str)
    ]
    for path, key in named:
        if key not in sources:
            meant = nearest(key, sources, most=1)
            todo = f"did you mean {meant[0]}?" if meant else f"add {key} to sources"
            where = document.where((*path.split("."), "source"))
            yield Fault(f"the source {key!r} is not in sources", where, todo)
    for key, text in sources.items():
        if not text.strip():
            yield Fault("the source says nothing", document.where(("sources", key)), "write where the number was read")
        if key not in {used for _, used in named}:
            yield Fault(f"no number names the source {key!r}", document.where(("sources", key)), "use it or remove it")


def _gpu_faults(gpu: Gpu, document: Document) -> Iterator[Fault]:
    specification = gpu.specification
    if specification.memory_usable is not None:
        share = specification.memory_usable.value / specification.memory.value
        if not _LEAST_USABLE <= share <= _MOST_USABLE:
            what = f"the usable memory is {share:.2f} times the memory that is sold; GB or GiB may be mixed up"
            where = document.where(("specification", "memory_usable"))
            yield Fault(what, where, f"it should be {_LEAST_USABLE} to {_MOST_USABLE} times")
    yield from _twice(specification.scale_up, document, ("specification", "scale_up", "bandwidth_both_directions"))


def _price_faults(price: Price, document: Document) -> Iterator[Fault]:
    try:
        dt.date.fromisoformat(price.as_of)
    except ValueError:
        yield Fault(f"{price.as_of!r} is not a date", document.where(("as_of",)), "write it as YYYY-MM-DD")
    whole = price.usd_per_instance_hour
    if whole is not None:
        parts = price.usd_per_gpu_hour.value * price.gpus.value
        if not math.isclose(parts, whole.value, rel_tol=_ROUNDING):
            what = f"{price.gpus.value:g} GPUs at this price make {parts:g} usd/h, the instance costs {whole.value:g}"
            yield Fault(what, document.where(("usd_per_gpu_hour",)), "mend one of the two prices")


def _cluster_faults(cluster: Cluster, document: Document, found: Found) -> Iterator[Fault]:
    gpu = yield from _named("gpu", cluster.gpu, document, ("gpu",), found)
    scale_up = yield from _named("link", cluster.scale_up, document, ("scale_up",), found)
    interconnect = yield from _named("link", cluster.interconnect, document, ("interconnect",), found)
    if isinstance(gpu, Gpu):
        theirs = gpu.specification.gpus_per_node
        yield from _same(cluster.gpus_per_node, theirs, f"the GPU {gpu.name}", document, ("gpus_per_node",))
        link = found("link", gpu.specification.scale_up.link)
        if isinstance(link, Link) and isinstance(scale_up, Link) and link.name != scale_up.name:
            what = f"the GPUs are joined by {link.name}, not by {scale_up.name}"
            yield Fault(what, document.where(("scale_up",)), f"write {link.name}")
    if isinstance(interconnect, Link):
        theirs = interconnect.specification.bandwidth_one_direction
        yield from _same(cluster.nic, theirs, f"the link {interconnect.name}", document, ("nic",))


def _named(
    kind: str, name: str, document: Document, path: tuple[str, ...], found: Found
) -> Generator[Fault, None, object]:
    """The named profile; yields a fault where there is none."""
    profile = found(kind, name)
    if isinstance(profile, Fault):
        yield Fault(profile.what, document.where(path), profile.todo)
    return profile


def _twice(link: ScaleUp | LinkSpecification, document: Document, path: tuple[str, ...]) -> Iterator[Fault]:
    one, both = link.bandwidth_one_direction, link.bandwidth_both_directions
    if both is not None and not math.isclose(both.value, 2 * one.value, rel_tol=_ROUNDING):
        what = f"both directions are {both.value / 1e9:g} GB/s, one is {one.value / 1e9:g} GB/s"
        yield Fault(what, document.where(path), "both directions should be twice the one")


def _same(ours: Sourced, theirs: Sourced, owner: str, document: Document, path: tuple[str, ...]) -> Iterator[Fault]:
    if not math.isclose(ours.value, theirs.value, rel_tol=_ROUNDING):
        what = f"is {ours.value:g}, but {owner} says {theirs.value:g}"
        yield Fault(what, document.where(path), "mend one of the two")
