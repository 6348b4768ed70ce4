"""What a launch may be read with: the files beside it, the frameworks that it may be of, and what is to be noted."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.facts.launch import GAP
from rlsize.readers.yaml_documents import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlsize.facts.framework import Framework
    from rlsize.facts.launch import Setting, Word

_SHIPPED = re.compile(r"(?:deepspeed_)?(?:zero[0-3]|fsdp[12]?|multi_gpu|single_gpu)\w*")
"""Names of accelerate and DeepSpeed files that frameworks ship."""
_OWN = re.compile(r"\w*ppo_\w*trainer(?:\.yaml)?")
"""verl's own configurations, whose values are the framework's defaults."""
_MOST_FILES = 50
_UP = 5  # folders above the script from which it may name files
_FEWEST_SIGNS = 2  # keys by which a configuration without a program is told
_ASKS = "name the framework (--framework), or describe the loop in a scenario (`rlsize init`)"


@dataclass(slots=True)
class Context:
    """
    A file, and what may be read beside it.

    Args:
        name: The file, as it was named.
        folder: The folder that names start from; None where there is none (standard input).
        known: The frameworks by name.
        asked: The one that was named; told by content when empty.
        texts: Texts that were read, by name.
        notes: What a reader must know.
        written: Files that the script writes itself.
        called: Scripts that it runs, each of which is read once.
        untold: Whether a configuration is named by something that nobody tells, so that no default is sure to hold.
    """

    name: str
    folder: Path | None
    known: Mapping[str, Framework]
    asked: str
    texts: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    written: dict[str, str] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    untold: bool = False

    def beside(self, path: str, *, near: bool = False) -> str | None:
        """
        The text of a file that is named from this one; None where there is none that may be read.

        Args:
            path: Its name.
            near: Whether it lies in the same folder or nowhere, as the parents of a configuration do.
        """
        clean = path.strip().strip("'\"")
        for name in (clean, posixpath.basename(clean) if clean.startswith("/") else clean):
            if name in self.written:
                return self.written[name]
        if self.folder is None or not clean or clean.startswith(("~", "/")) or "\0" in clean:
            return None
        for place in [self.folder / clean] if near else self._places(clean):
            shown = str(place)
            if shown in self.texts:
                return self.texts[shown]
            if len(self.texts) >= _MOST_FILES:
                raise InputError(
                    Fault(f"more than {_MOST_FILES} files are named", self.name, "name the one that sets the sizes")
                )
            try:
                if place.is_file() and self._allowed(place):
                    self.texts[shown] = read_text(place)
                    return self.texts[shown]
            except OSError:
                continue
        return None

    def _allowed(self, place: Path) -> bool:
        """Whether a file lies below a folder of the script's, as names with dots in them may lead anywhere."""
        folder = (self.folder or Path()).resolve()
        above = [one for one in (folder, *folder.parents[:_UP]) if one != one.parent]
        return any(place.resolve().is_relative_to(one) for one in above)

    def _places(self, path: str) -> Iterator[Path]:
        """Where a file may lie: from the script's folder or one above it, as scripts run at the root; or beside it."""
        folder = self.folder or Path()
        yield folder / path
        resolved = folder.resolve()
        for above in resolved.parents[:_UP]:
            yield above / path
        parts = PurePosixPath(path).parts
        for start in range(1, len(parts)):
            if parts[start] != "..":
                yield folder.joinpath(*parts[start:])

    @property
    def candidates(self) -> list[Framework]:
        """Frameworks that the launch may be of."""
        return [self.known[self.asked]] if self.asked else list(self.known.values())

    @property
    def fewest(self) -> int:
        """Keys by which a configuration without a program is told."""
        return 1 if self.asked else _FEWEST_SIGNS

    def settings(
        self, text: str, name: str, overrides: Sequence[Setting] = ()
    ) -> tuple[list[Setting], tuple[tuple[Word, ...], ...]]:
        """What a configuration sets, and the scripts in it."""
        from rlsize.readers.launch.documents import read_settings

        folder = "" if name == self.name else posixpath.dirname(name)

        def beside(path: str) -> str | None:
            found = self.beside(posixpath.normpath(posixpath.join(folder, path))) if folder else None
            return self.beside(path, near="/" not in path) if found is None else found

        found = read_settings(text, name, beside, overrides)
        self.notes += found.notes
        return list(found.settings), found.scripts

    def named(self, name: str, prefix: str, folder: str = "", overrides: Sequence[Setting] = ()) -> Iterator[Setting]:
        """What a file that is named sets; a note where it is missing."""
        names = [f"{folder}/{name}", name] if folder else [name]
        endings = ("",) if _SHIPPED.fullmatch(name) else (".yaml", ".toml", ".json", "")  # such a name is whole
        for one in [f"{each}{ending}" for each in names for ending in endings]:
            text = self.beside(one)
            if text is not None:
                settings = self.settings(text, one, overrides)[0]
                yield from (replace(setting, key=prefix + setting.key, inherited=True) for setting in settings)
                return
        if not (_SHIPPED.fullmatch(name) or _OWN.fullmatch(name)):
            self.notes.append(f"{name} {GAP}, and the framework's defaults stand in.")

    def refused(self, what: str) -> InputError:
        """Why it is no launch, and what can be done."""
        return InputError(Fault(what, self.name, f"{_ASKS}; known are {', '.join(self.known)}"))
