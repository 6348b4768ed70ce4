"""A launch, whatever it is written in: its framework, what it sets, and what could not be read."""

from __future__ import annotations

import posixpath
import re
import shlex
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError, suggestion
from rlsize.facts.launch import Program, Setting, Span
from rlsize.frameworks.told import Reading, era_of, in_era, matching, normal
from rlsize.readers.launch.arguments import positional, settings_of
from rlsize.readers.launch.comments import commands_shown
from rlsize.readers.launch.embedded import placed
from rlsize.readers.yaml_documents import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rlsize.facts.framework import Era, Framework
    from rlsize.facts.launch import Script, Word
    from rlsize.frameworks.told import Told

_MOST_FILES = 50
_NAMED = 2  # keys of a quantity that follows from several
_UP = 5  # folders above the script from which it may name files
_FEWEST_SIGNS = 2  # keys by which a configuration without a program is told
_RUNNERS = re.compile(r"(?:^|/)(?:python[\d.]*|torchrun|accelerate|deepspeed|trl|swift|uv|ray|srun)$")
_CODE = re.compile(r"^\s*(?:import|from)\s+\w+|^\s*\w+\s*=\s*\w*Config\(", re.MULTILINE)
_SHELL = re.compile(
    r"^#!.*sh\b|\\\s*$|^\s*(?:export|set|source|srun|python3?|torchrun|accelerate|ray|uv|docker|bash|exec|trl|swift)\s",
    re.MULTILINE,
)
_FILES = (".yaml", ".yml", ".toml", ".json")
_GPU = re.compile(
    r"\b(?:GB[23]00|B[23]00|H[12]00|H800|H20|A100|A800|L40S?|A6000|V100|MI\d{3}X?)(?:[- ](?:SXM|PCIE|NVL))?\b",
    re.IGNORECASE,
)
_HEAD = 262144  # characters in which a script names its GPUs, if it does
_BESIDE = {
    "config_file": "accelerate.",
    "accelerate_config": "accelerate.",
    "deepspeed": "deepspeed.",
    "deepspeed_config": "deepspeed.",
    "deepspeed_config_file": "deepspeed.",
    "deepspeed_config.deepspeed_config_file": "deepspeed.",
}
_SHIPPED = re.compile(r"(?:deepspeed_)?(?:zero[0-3]|fsdp[12]?|multi_gpu|single_gpu)\w*")
"""Names of accelerate and DeepSpeed files that frameworks ship."""
_GPUS = re.compile(r"(?:gpu:)?(?:([A-Za-z][\w.-]*):)?(\d{1,6})")
"""GPUs of a node as Slurm writes them: `8`, `gpu:8`, `gpu:h100:8`."""
_FIRST = {"SKYPILOT_NODE_RANK": "0", "SLURM_NODEID": "0", "SLURM_PROCID": "0"}
"""What schedulers tell the first node, for which a script is read."""
_ASKS = "name the framework (--framework), or describe the loop in a scenario (`rlsize init`)"


@dataclass(frozen=True, slots=True)
class Launch:
    """
    A launch that was read.

    Args:
        name: Its file, as it was named.
        framework: The framework that it launches, in the version that it seems to be written for.
        reading: What it tells.
        notes: What a reader must know.
        texts: Texts of the files that it was read from, by name.
    """

    name: str
    framework: Framework
    reading: Reading
    notes: tuple[str, ...]
    texts: Mapping[str, str] = field(default_factory=dict)

    def said_by(self, told: Told) -> str:
        """File, line and key of a quantity, or that it is the framework's default."""
        places = list(dict.fromkeys(_place(setting) for setting in told.settings))
        if not places:
            keys = ", ".join(told.defaults[:_NAMED])
            return f"default of {self.framework.title}{f': {keys}' if keys else ''}"
        more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
        return ", ".join(places[:_NAMED]) + more


def _place(setting: Setting) -> str:
    """Where a setting stands: the file without its folders, line and key."""
    return f"{PurePosixPath(setting.span.file).name}:{setting.span.line}: {setting.key}"


@dataclass(slots=True)
class _Source:
    """
    A file, and what may be read beside it.

    Args:
        name: The file, as it was named.
        folder: The folder that names start from; None where there is none (standard input).
        texts: Texts that were read, by name.
        notes: What a reader must know.
        written: Files that the script writes itself.
        untold: Whether a configuration is named by something that nobody tells, so that no default is sure to hold.
    """

    name: str
    folder: Path | None
    texts: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    written: dict[str, str] = field(default_factory=dict)
    untold: bool = False

    def beside(self, path: str) -> str | None:
        """The text of a file that is named from this one; None where there is none that may be read."""
        clean = path.strip().strip("'\"")
        if clean in self.written:
            return self.written[clean]
        if self.folder is None or not clean or clean.startswith(("~", "/")) or "\0" in clean:
            return None
        for place in self._places(clean):
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


def read_launch(path: str, known: Mapping[str, Framework], *, framework: str = "", text: str | None = None) -> Launch:
    """
    A launch script or configuration.

    Args:
        path: The file; `-` where its text is given.
        known: The frameworks by name.
        framework: The one that it is for, `NAME` or `NAME@VERSION`; told by content when empty.
        text: What it holds, where it was read before.

    Raises:
        InputError: It cannot be read, or launches no framework that is known.
    """
    content = read_text(path) if text is None else text
    source = _Source(path, None if path == "-" else Path(path).parent, {path: content})
    name, _, version = framework.partition("@")
    if name and name not in known:
        raise InputError(Fault(f"there is no framework {name[:40]!r}", "--framework", suggestion(name[:40], known)))
    if looks_like_shell(path, content):
        chosen, settings = _of_script(content, source, known, name)
    else:
        chosen, settings = _of_configuration(content, source, known, name)
    settings[:0] = _named_gpu(path, content)
    chosen = _fork(chosen, settings, known)
    era = era_of(chosen, settings, version)
    dated = in_era(chosen, era)
    if source.untold:
        dated = replace(dated, defaults={})
    reading = Reading(dated, settings)
    if not version:
        source.notes += _undated(chosen, era, reading)
    return Launch(path, dated, reading, tuple(dict.fromkeys(source.notes)), source.texts)


def _undated(chosen: Framework, era: Era | None, reading: Reading) -> Iterator[str]:
    """What hangs on a version that nobody said: defaults that another one has otherwise."""
    begun = f"Read with the defaults of {chosen.title} today"
    eras, dated = chosen.eras, reading.framework.defaults
    if era is not None:
        begun, eras = f"Read as {chosen.title} before {era.below}, by its keys", eras[: eras.index(era)]
    written = {normal(setting.key) for setting in reading.settings.values()}
    later = [at for at, one in enumerate(eras, 1) if written & {chosen.renamed.get(sign) for sign in one.signs}]
    eras = eras[max(later, default=0) :]  # keys have names that came after the others
    reading.all()  # what follows from a key that nobody asks for matters in no version
    older = []
    for one in eras if dated else ():
        asked = {key: value for key, value in one.defaults.items() if key in reading.used - set(reading.settings)}
        changed = [f"{key} {value}" for key, value in asked.items() if value != dated.get(key)]
        older += [f"before {one.below}: {', '.join(changed)}"] if changed else []
    if era is not None or older:
        yield f"{'; '.join([begun, *older])} (--framework {chosen.name}@VERSION)."


def _named_gpu(path: str, text: str) -> Iterator[Setting]:
    """The kind of GPU that a script names anywhere, in a comment for one; none where it names several."""
    found = list(_GPU.finditer(text[:_HEAD]))
    if len({match[0].upper() for match in found}) == 1:
        yield Setting("cluster.gpu", found[0][0], Span(path, text.count("\n", 0, found[0].start()) + 1))


def _fork(chosen: Framework, settings: Sequence[Setting], known: Mapping[str, Framework]) -> Framework:
    """The fork of a framework that runs under its parent's name, where its own keys are set."""
    forks = (one for one in known.values() if one.parent == chosen.name and not one.programs)
    return next((one for one in forks if matching(one, settings)), chosen)


def looks_like_shell(path: str, text: str) -> bool:
    """Whether a text is a shell script rather than a configuration: by its ending, else by how it begins."""
    ending = PurePosixPath(path).suffix
    if ending in {".sh", ".bash", ".slurm", ".sbatch"}:
        return True
    if ending in {".yaml", ".yml", ".toml", ".json", ".py"}:
        return False
    return _SHELL.search(text[:65536]) is not None and not _CODE.search(text[:65536])


def _of_script(
    text: str, source: _Source, known: Mapping[str, Framework], name: str, variables: Mapping[str, str] | None = None
) -> tuple[Framework, list[Setting]]:
    """The framework that a script launches, and what it sets."""
    from rlsize.readers.launch.bash import read_script

    script = read_script(text, source.name, source.beside, variables={**_FIRST, **(variables or {})})
    source.notes += script.notes
    source.written |= {name: word.text for name, word in script.files.items()}
    programs = [_with_files(one, source) for program in script.programs for one in (program, *_handed_on(program))]
    found = [hit for program in programs if (hit := _launched(program, known, name)) is not None]
    found = found or [_by_signs(programs, source, known, name)]
    chosen = found[-1][0]
    settings: list[Setting] = []
    for one, program, at in found:
        if one.name == chosen.name:
            settings += _of_program(chosen, program, at, source)
    served = [setting for program in programs for setting in _of_server(chosen, program)]
    if not served:
        shown = commands_shown(text, source.name)
        served = [setting for program in shown for setting in _as_shown(chosen, program, 0, source)]
    return chosen, [*_headers(script), *settings, *served]


def _headers(script: Script) -> Iterator[Setting]:
    """What a batch system is told: in the script's headers, or by the command that hands a script to it."""
    from rlsize.readers.launch.arguments import scalar

    told = [Setting(key, scalar(word.text), word.span) for key, word in script.headers.items()]
    for program in script.programs:
        if program.words and PurePosixPath(program.words[0].text).name == "sbatch":
            told += settings_of(program.words[1:])
    for setting in told:
        key = normal(setting.key)
        gpus = _GPUS.fullmatch(str(setting.value)) if key in {"gres", "gpus_per_node"} else None
        if gpus is None:
            yield replace(setting, key=f"batch.{key}")
            continue
        yield replace(setting, key="batch.gpus_per_node", value=int(gpus[2]))
        if gpus[1]:
            yield replace(setting, key="batch.gpu", value=gpus[1])


def _handed_on(program: Program) -> Iterator[Program]:
    """The command that a batch script runs, where a variable hands it on: `COMMAND="..." sbatch ray.sub`."""
    word = program.variables.get("COMMAND")
    if word is not None and any(PurePosixPath(one.text).name == "sbatch" for one in program.words[:1]):
        try:
            texts = shlex.split(word.text)
        except ValueError:
            return
        yield Program(tuple(replace(word, text=text) for text in texts), program.variables)


def _with_files(program: Program, source: _Source) -> Program:
    """A program with a name for each file that the script writes under a name of the moment: `cfg=$(mktemp)`."""
    words = (
        replace(word, text=word.unknown[0], unknown=())
        if word.unknown and not word.text and word.unknown[0] in source.written
        else word
        for word in program.words
    )
    return replace(program, words=tuple(words))


def _launched(program: Program, known: Mapping[str, Framework], name: str) -> tuple[Framework, Program, int] | None:
    """The framework of a program, by its arguments where several have such a program; and the place of those."""
    texts = [word.text for word in program.words]
    hits = [
        (one, at)
        for one in ((known[name],) if name else known.values())
        for pattern in (*one.programs, *one.parts)
        if (at := _at(texts, pattern.split()))
    ]
    if not hits:
        return None
    parents = {one.parent for one, _ in hits}  # a fork's program is named more closely
    own = [hit for hit in hits if hit[0].name not in parents]
    best, at = max(own, key=lambda hit: matching(hit[0], list(settings_of(program.words[hit[1] :]))))
    return best, program, at


def _at(texts: Sequence[str], pattern: Sequence[str]) -> int:
    """The place after some words that stand one after the other; 0 where they do not."""
    for start in range(len(texts) - len(pattern) + 1):
        if all(fnmatchcase(text, part) for text, part in zip(texts[start:], pattern, strict=False)):
            return start + len(pattern)
    return 0


def _by_signs(
    programs: Iterable[Program], source: _Source, known: Mapping[str, Framework], name: str
) -> tuple[Framework, Program, int]:
    """The framework by the keys that a program sets, where no program is known by its name; as `_launched` has it."""
    best: tuple[int, Framework, Program, int] | None = None
    for program in programs:
        at = _after_script(program)
        for one in (known[name],) if name else known.values():
            score = matching(one, _of_program(one, program, at, replace(source, notes=[])))
            if score >= (1 if name else _FEWEST_SIGNS) and (best is None or score > best[0]):
                best = score, one, program, at
    if best is None:
        what = "launches no framework that is known"
        raise InputError(Fault(what, source.name, f"{_ASKS}; known are {', '.join(known)}"))
    return best[1:]


def _after_script(program: Program, name: str = "") -> int:
    """The place after the Python file or module that a program runs (of that name, if given), else its first flag."""
    texts = [word.text for word in program.words]
    for at, text in enumerate(texts):
        if text.endswith(name or ".py") or (not name and at and texts[at - 1] == "-m"):
            return at + 1
    return 0 if name else next((at for at, text in enumerate(texts) if text.startswith("-") or "=" in text), 0)


def _of_program(framework: Framework, program: Program, at: int, source: _Source) -> Iterator[Setting]:
    """What a program sets: its surroundings first, then its configuration files, then its arguments."""
    before, after = program.words[:at], program.words[at:]
    for key, word in program.variables.items():
        yield Setting(f"env.{key}", word.text, word.span)
    launcher = list(settings_of(before, "launcher.", most=1))
    yield from launcher
    if before:
        yield Setting("launcher.program", " ".join(word.text for word in before[-2:]), before[-1].span)
    code = _code(program, at, source)
    if matching(framework, code):
        yield from code
    texts = [word.text for word in before]
    prefix = next((key for words, key in framework.parts.items() if at and _at(texts, words.split()) == at), "")
    arguments = list(settings_of(after))
    _note_untold(framework, after, source)
    files = [word.text for word in positional(after)]
    configured = list(_configurations(framework, arguments, files, source, prefix))
    yield from configured
    yield from _beside([*launcher, *configured, *arguments], source)
    yield from (replace(setting, key=prefix + setting.key) for setting in arguments)


def _code(program: Program, at: int, source: _Source) -> list[Setting]:
    """What the Python file sets that a program runs, where it can be read."""
    name = program.words[at - 1].text if at else ""
    text = source.beside(name) if name.endswith(".py") else None
    if text is None or text == source.texts.get(source.name):  # a comment in that file shows the command
        return []
    return [replace(setting, inherited=True) for setting in _settings(text, name, source)[0]]


def _note_untold(framework: Framework, words: Sequence[Word], source: _Source) -> None:
    """Whether a configuration is named by what the script does not tell, such as its own argument."""
    flags = {normal(flag) for flag in framework.configurations}
    for flag, word in pairwise(words):
        if word.unknown and not word.text and normal(flag.text) in flags:
            source.untold = True
            source.notes.append(
                f"line {word.span.line}: the configuration is named by {word.unknown[0]}, which the script does not "
                "tell: no default of the framework is taken."
            )


def _beside(settings: Iterable[Setting], source: _Source) -> Iterator[Setting]:
    """What files of accelerate and DeepSpeed set that settings name."""
    for setting in settings:
        prefix = _BESIDE.get(normal(setting.key).removeprefix("launcher."))
        if prefix and isinstance(setting.value, str):
            yield from _file(setting.value, source, prefix)


def _of_server(framework: Framework, program: Program) -> Iterator[Setting]:
    """What a server of engines is told that the script starts."""
    texts = [word.text for word in program.words]
    at = max((_at(texts, pattern.split()) for pattern in framework.servers), default=0)
    if at:
        yield Setting("server.program", texts[at - 1], program.words[at - 1].span)
        yield from settings_of(program.words[at:], "server.")
        for key, word in program.variables.items():
            yield Setting(f"server.env.{key}", word.text, word.span)


def _configurations(
    framework: Framework, arguments: Sequence[Setting], files: Sequence[str], source: _Source, prefix: str
) -> Iterator[Setting]:
    """What files set that arguments name as the configuration, or as a part of it: `--trainer @ train.toml`."""
    said = {normal(setting.key): setting.value for setting in arguments}
    folder = str(said.get("config_path") or "")
    named = [str(said[key]) for flag in framework.configurations if isinstance(said.get(key := normal(flag)), str)]
    named += [file for file in files if file.endswith(_FILES)]
    for name in dict.fromkeys(one for one in named if one and one != folder):
        yield from _file(name, source, prefix, folder, arguments)
    for setting in arguments:
        if isinstance(setting.value, str) and setting.value.startswith("@ "):
            yield from _file(setting.value[2:], source, f"{prefix}{setting.key}.")


def _file(
    name: str, source: _Source, prefix: str, folder: str = "", overrides: Sequence[Setting] = ()
) -> Iterator[Setting]:
    """What a file that is named sets; a note where it is missing."""
    names = [f"{folder}/{name}", name] if folder else [name]
    for one in [f"{each}{ending}" for each in names for ending in ("", ".yaml", ".toml", ".json")]:
        text = source.beside(one)
        if text is not None:
            settings = _settings(text, one, source, overrides)[0]
            yield from (replace(setting, key=prefix + setting.key, inherited=True) for setting in settings)
            return
    if not _SHIPPED.fullmatch(name):
        source.notes.append(f"{name} is missing: what it sets is not known, and the framework's defaults stand in.")


def _settings(
    text: str, name: str, source: _Source, overrides: Sequence[Setting] = ()
) -> tuple[list[Setting], tuple[tuple[str, Span], ...]]:
    from rlsize.readers.launch.documents import read_settings

    folder = "" if name == source.name else posixpath.dirname(name)

    def beside(path: str) -> str | None:
        near = source.beside(posixpath.normpath(posixpath.join(folder, path))) if folder else None
        return source.beside(path) if near is None else near

    found = read_settings(text, name, beside, overrides)
    source.notes += found.notes
    return list(found.settings), found.scripts


def _of_configuration(
    text: str, source: _Source, known: Mapping[str, Framework], name: str
) -> tuple[Framework, list[Setting]]:
    """The framework that a configuration is for, and what it sets; a script inside it goes before."""
    settings, scripts = _settings(text, source.name, source)
    surroundings = list(_cluster(settings))
    variables = {
        setting.key.rpartition(".")[2]: str(setting.value)
        for setting in settings
        if re.match(r"envs?\.\w+$", setting.key) and not isinstance(setting.value, (dict, list))
    }
    variables |= {key: str(setting.value) for key, setting in _sky(surroundings)}
    chosen: Framework | None = None
    for script, where in scripts:
        try:
            one, found = _of_script(script, source, known, chosen.name if chosen else name, variables)
        except InputError:
            continue
        chosen = chosen or one
        surroundings += placed(found, script, text, where)
    if chosen is not None:
        return chosen, [*(replace(setting, key=f"values.{setting.key}") for setting in settings), *surroundings]
    usage = _usage(text, source) if source.name.endswith(".py") else []
    shown = [setting for program, at in usage for setting in settings_of(program.words[at:])]
    ranked = sorted(
        ((matching(one, [*settings, *shown]), one) for one in ((known[name],) if name else known.values())),
        key=lambda pair: pair[0],
    )
    if not ranked or ranked[-1][0] < (1 if name else _FEWEST_SIGNS):
        what = "is neither a scenario nor a launch of a framework that is known"
        raise InputError(Fault(what, source.name, f"{_ASKS}; known are {', '.join(known)}"))
    chosen = ranked[-1][1]
    started = [setting for program, at in usage for setting in _as_shown(chosen, program, at, source)]
    return chosen, [*surroundings, *started, *_beside(settings, source), *settings]


def _usage(text: str, source: _Source) -> list[tuple[Program, int]]:
    """How a Python file says that it is started: its commands, and the place after its name in each; 0 for others."""
    name = PurePosixPath(source.name).name
    return [(program, _after_script(program, name)) for program in commands_shown(text, source.name, bare=True)]


def _as_shown(framework: Framework, program: Program, at: int, source: _Source) -> Iterator[Setting]:
    """What a command sets that a comment shows: the launch of the file itself, or the server of its engines."""
    found = list(_of_program(framework, program, at, source) if at else _of_server(framework, program))
    if found:
        source.notes.append(f"line {program.words[0].span.line}: a command in a comment is taken as what is run.")
    yield from found


def _cluster(settings: Iterable[Setting]) -> Iterator[Setting]:
    """Nodes and GPUs as job files say them: SkyPilot, Kubernetes, Helm."""
    for setting in settings:
        key = setting.key
        if key == "num_nodes":
            yield replace(setting, key="cluster.nodes")
        elif re.fullmatch(r"resources\.accelerators\.[\w.-]+", key):
            yield replace(setting, key="cluster.gpu", value=key.rpartition(".")[2])
            yield replace(setting, key="cluster.gpus_per_node")
        elif key == "resources.accelerators" and isinstance(setting.value, str):
            kind, _, count = setting.value.partition(":")
            yield replace(setting, key="cluster.gpu", value=kind)
            yield replace(setting, key="cluster.gpus_per_node", value=int(count) if count.isdigit() else 1)
        elif key.endswith(("limits.nvidia.com/gpu", "gpu.count")):
            yield replace(setting, key="cluster.gpus_per_node")


def _sky(surroundings: Iterable[Setting]) -> Iterator[tuple[str, Setting]]:
    """Variables that SkyPilot sets."""
    names = {"cluster.nodes": "SKYPILOT_NUM_NODES", "cluster.gpus_per_node": "SKYPILOT_NUM_GPUS_PER_NODE"}
    for setting in surroundings:
        if setting.key in names:
            yield names[setting.key], setting
