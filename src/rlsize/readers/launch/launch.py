"""A launch, whatever it is written in: its framework, what it sets, and what could not be read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError, suggestion
from rlsize.facts.launch import GAP, Program, Setting, Span, Word
from rlsize.frameworks.told import Reading, era_of, in_era, matching, named_version, normal, own_name
from rlsize.readers.launch.arguments import positional, scalar, settings_of
from rlsize.readers.launch.bash import read_script
from rlsize.readers.launch.bash.source import Source, script_in, variables_of
from rlsize.readers.launch.comments import commands_shown
from rlsize.readers.launch.context import Context
from rlsize.readers.launch.other_training import check_rollout, refused, unread, unread_by, without_rollout
from rlsize.readers.launch.recipes import as_shell, is_recipes
from rlsize.readers.yaml_documents import read_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rlsize.facts.framework import Era, Framework
    from rlsize.facts.launch import Script, Value
    from rlsize.frameworks.told import Told

_NAMED = 2  # keys of a quantity that follows from several
_CODE = re.compile(r"^\s*(?:import|from)\s+\w+|^\s*\w+\s*=\s*\w*Config\(", re.MULTILINE)
_SHELL = re.compile(
    r"^#!.*sh\b|\\\s*$|^\s*(?:export|set|source|srun|python3?|torchrun|accelerate|ray|uv|docker|bash|exec|trl|swift)\s",
    re.MULTILINE,
)
_FILES = (".yaml", ".yml", ".toml", ".json")
_SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch")
_GPU = re.compile(
    r"(?:(?<![^\W_])|(?<=\d[x*]))((?:GB[23]00|B[23]00|H[12]00|H800|H20|A100|A800|L40S?|A6000|V100|MI\d{3}X?)"
    r"(?:[- ](?:SXM|PCIE|NVL))?|GH200|A10G|RTX[- ]?(?:[345]090|6000[- ]Ada)|Tesla[- ]T4"
    r"|(?<=gpuType\": \")[TL]4|(?<=gpuType\":\")[TL]4)(?:s|GPUs?|[x*]\d{1,4})?(?![^\W_])",
    re.IGNORECASE,
)
"""A kind of GPU among words, as people count them too: `8xH100`, `H100s`."""
_MACHINE = re.compile(r"\b(p(?:5|5e|5en|4d|4de|6-b200)\.48xlarge|p4de?\.24xlarge|a[234]-(?:ultra|high|mega)gpu-8g)\b")
"""A cloud's name for machines with GPUs of one kind."""
_MISSING = re.compile(r"(?:parent )?(\S+) is missing: ")
"""How a note tells of a configuration that is not there."""
_PRINTED = re.compile(r"\$\(|`|<\(|what is read")
"""What a word is named by that only a command of the outside would print."""
_SWEPT = re.compile(r"(?:choice\()?([^\s,()\[\]{}]{1,200})(?:,[^\s,()\[\]{}]+)+\)?")
"""Values of a key that Hydra sweeps."""
_DATED = (
    r"(?:(?:\[[\w,-]*\])?==|(?:[ :@]|:? version |: )(?=v\d+\.\d|\d+\.\d+\.\d))v?"
    r"(\d+(?:\.\d+)*(?:\.?(?:post|rc|dev)\d*)?)"
)
"""How a version follows a name: `==0.6`, ` v0.6`, `:v0.6`, `@0.6.1`, ` 0.6.1`; two numbers alone may be of anything."""
_HEAD = 262144  # characters in which a script names its GPUs, if it does
_BESIDE = {
    "config_file": "accelerate.",
    "accelerate_config": "accelerate.",
    "deepspeed": "deepspeed.",
    "deepspeed_config": "deepspeed.",
    "deepspeed_config_file": "deepspeed.",
    "deepspeed_config.deepspeed_config_file": "deepspeed.",
    "accelerate.deepspeed_config.deepspeed_config_file": "deepspeed.",
}
_GPUS = re.compile(r"(?:gpu:)?(?:([A-Za-z][\w.-]*):)?(\d{1,6})")
"""GPUs of a node as Slurm writes them: `8`, `gpu:8`, `gpu:h100:8`."""
_FIRST = dict.fromkeys(("SKYPILOT_NODE_RANK", "DSTACK_NODE_RANK", "SLURM_NODEID", "SLURM_PROCID"), "0")
"""What schedulers tell the first node, for which a script is read."""
_RANKS = dict.fromkeys(
    ("RANK", "NODE_RANK", "MACHINE_RANK", "GROUP_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "VC_TASK_INDEX",
     "JOB_COMPLETION_INDEX", "MLP_ROLE_INDEX", "ARNOLD_ID"), "0"
)  # fmt: skip
"""The same by names that may be of other things: a rank of LoRA. Where a script launches nothing without them."""


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
        version: The framework's version, or `<VERSION` for one before it; empty for today's.
    """

    name: str
    framework: Framework
    reading: Reading
    notes: tuple[str, ...]
    texts: Mapping[str, str] = field(default_factory=dict)
    version: str = ""

    @property
    def dated(self) -> str:
        """The framework with its version, as `--framework` takes it."""
        return f"{self.framework.name}@{self.version}" if self.version else self.framework.name

    @property
    def gaps(self) -> tuple[str, ...]:
        """What is missing of what it was made from."""
        return tuple(note for note in self.notes if GAP in note)

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


def read_launch(
    path: str,
    known: Mapping[str, Framework],
    *,
    framework: str = "",
    text: str | None = None,
    given: Mapping[str, float] = MappingProxyType({}),
) -> Launch:
    """
    A launch script or configuration.

    Args:
        path: The file; `-` where its text is given.
        known: The frameworks by name.
        framework: The one that it is for, `NAME` or `NAME@VERSION`; told by content when empty.
        text: What it holds, where it was read before.
        given: Quantities that are said beside it, from which others follow.

    Raises:
        InputError: It cannot be read, or launches no framework that is known.
    """
    content = read_text(path) if text is None else text
    called, version = named_version(framework, "--framework")
    name = own_name(known, called)
    context = Context(path, None if path == "-" else Path(path).parent, known, name, {path: content})
    if name and name not in known:
        raise InputError(Fault(f"there is no framework {name[:40]!r}", "--framework", suggestion(name[:40], known)))
    if looks_like_shell(path, content):
        chosen, settings = _of_script(as_shell(path, Source.of(content, path)), context)
    else:
        chosen, settings = _of_configuration(content, context)
    settings[:0] = _named_gpu(path, content)
    # the fork of a framework that runs under its parent's name, where its own keys are set
    forks = (one for one in known.values() if one.parent == chosen.name and not one.programs)
    chosen = next((one for one in forks if matching(one, settings)), chosen)
    if not version:
        called, version = _installed(chosen, content, context.notes) or (called, version)
    era = era_of(chosen, settings, version, called)
    dated = in_era(chosen, era)
    if context.untold:
        dated = replace(dated, defaults={})
    elif others := _other_bases(dated, context.notes):
        dated = replace(dated, defaults={key: to for key, to in dated.defaults.items() if key not in dated.fitted})
        context.notes.append(
            f"{chosen.title}'s defaults are those of {dated.base}: sizes, lengths and layout, which suit its model, "
            f"are not taken from there in place of {', '.join(others)}."
        )
    reading = Reading(dated, settings, given)
    if era is not None and era.package == called != "":
        version = f"<{era.below}"
    elif not version:
        context.notes += _undated(chosen, era, reading)
        version = f"<{era.below}" if era else ""
    return Launch(path, dated, reading, tuple(dict.fromkeys(context.notes)), context.texts, version)


def _installed(chosen: Framework, text: str, notes: list[str]) -> tuple[str, str] | None:
    """The package and version of a framework that a launch installs or names alone: `verl==0.6.1`, `verl v0.6`."""
    names = "|".join(re.escape(name) for name in (chosen.name, *chosen.aliases))
    pattern = rf"(?<![\w.-])({names}){_DATED}"
    found = list(re.finditer(pattern, text[:_HEAD], re.IGNORECASE))
    if len({(match[1].lower(), match[2]) for match in found}) != 1:
        return None
    line = text.count("\n", 0, found[0].start()) + 1
    how = "installed" if "==" in found[0][0] else "named"
    notes.append(f"line {line}: read as {chosen.title} {found[0][2]}, which is {how} there")
    return named_version(f"{found[0][1]}@{found[0][2]}")


def _other_bases(framework: Framework, notes: Iterable[str]) -> list[str]:
    """Configurations that are missing, where the framework's defaults are those of another one."""
    missing = [PurePosixPath(match[1]).name for note in notes if (match := _MISSING.match(note))]
    return [name for name in missing if framework.base and not fnmatchcase(name, framework.base)]


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
    found = list(_GPU.finditer(text[:_HEAD])) or list(_MACHINE.finditer(text[:_HEAD]))
    if len({match[1].upper() for match in found}) == 1:
        yield Setting("cluster.gpu", found[0][1], Span(path, text.count("\n", 0, found[0].start()) + 1))


def looks_like_shell(path: str, text: str) -> bool:
    """Whether a text is a shell script rather than a configuration: by its ending, else by how it begins."""
    ending = PurePosixPath(path).suffix
    if ending in _SCRIPTS or is_recipes(path, text):
        return True
    if ending in {".yaml", ".yml", ".toml", ".json", ".py", ".ipynb"}:
        return False
    return _SHELL.search(text[:65536]) is not None and not _CODE.search(text[:65536])


def _of_script(
    text: Source, context: Context, variables: Mapping[str, str] = MappingProxyType({})
) -> tuple[Framework, list[Setting]]:
    """The framework that a script launches, and what it sets."""
    before = [*context.notes], {*context.called}
    script = read_script(text, context.name, context.beside, variables={**_FIRST, **variables})
    context.notes += script.notes
    context.written |= {name: word.text for name, word in script.files.items()}
    programs = [
        _with_files(one, context) for program in script.programs for one in (program, *_handed_on(program, context))
    ]
    rolling = [program for program in programs if not without_rollout(program)]
    found = [hit for program in rolling if (hit := _launched(program, context)) is not None]
    if not any(
        matching(one, settings_of(program.words[at:])) or not program.words[at - 1].text.endswith(".py")
        for one, program, at in found
    ):
        named = {one.name for one, _, _ in found}
        by_keys = _by_signs(rolling, context, named)  # a name such as train.py says less than keys do
        if by_keys is not None and all(one.name != by_keys[0].name for one, _, _ in found):
            found = [by_keys]
    if not found and variables.keys().isdisjoint(_RANKS):
        context.notes, context.called = before
        return _of_script(text, context, {**_RANKS, **variables})
    if not found:
        for other in filter(None, map(without_rollout, programs)):
            raise refused(other, context.name)
        if trainer := unread_by(programs, ""):
            raise unread(trainer, context.name)
        raise context.refused("launches no framework that is known")
    chosen = found[-1][0]
    settings: list[Setting] = []
    for program, at in _runs(chosen, [(program, at) for one, program, at in found if one.name == chosen.name], context):
        settings += _of_program(chosen, program, at, context)
    check_rollout(settings, context.name)
    served = [setting for program in programs for setting in _of_server(chosen, program)]
    if not served:
        shown = commands_shown(text, context.name)
        served = [setting for program in shown for setting in _as_shown(chosen, program, 0, context)]
    return chosen, [*_headers(script), *settings, *served]


def _runs(framework: Framework, started: Sequence[tuple[Program, int]], context: Context) -> list[tuple[Program, int]]:
    """The commands that are one launch: all parts of it; of runs one after the other the last that says most."""
    texts = [tuple(word.text for word in program.words) for program, _ in started]
    if framework.parts or len(set(texts)) == 1:
        return [*started] if framework.parts else [started[-1]]
    most = max(range(len(started)), key=lambda at: (matching(framework, settings_of(started[at][0].words)), at))
    line = started[most][0].words[0].span.line
    context.notes.append(f"line {line}: of {len(set(texts))} commands that start {framework.title} this one is read")
    return [started[most]]


def _headers(script: Script) -> Iterator[Setting]:
    """What a batch system is told: in the script's headers, or by the command that hands a script to it."""
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


def _handed_on(program: Program, context: Context) -> Iterator[Program]:
    """The command that a batch script runs, where a variable hands it on, and the script beside it that it runs."""
    yield from _called(program, context)
    word = program.variables.get("COMMAND")
    if word is not None and any(PurePosixPath(one.text).name == "sbatch" for one in program.words[:1]):
        inner = script_in(context.texts[context.name], [word])
        for one in read_script(inner, context.name, context.beside).programs:
            yield replace(one, variables={**program.variables, **one.variables})


def _called(program: Program, context: Context) -> Iterator[Program]:
    """What a script runs that is called by the shell's name, with what was exported: `bash scripts/train.sh`."""
    batch = _submitted(program)
    for at, (shell, word) in enumerate(pairwise(program.words)):
        calls = _calls(shell.text, word.text) or (batch is not None and word.text.endswith(_SCRIPTS))
        fresh = calls and word.text not in context.called
        text = context.beside(word.text) if fresh else None
        if text is not None:
            context.called.add(word.text)
            known = {key: one.text for key, one in program.variables.items() if not one.unknown}
            after = [one.text for one in program.words[at + 2 :]]
            script = read_script(text, word.text, context.beside, after, {**_FIRST, **known, **(batch or {})})
            context.notes += script.notes
            yield from script.programs


def _submitted(program: Program) -> dict[str, str] | None:
    """Variables that a script has that the command hands to Slurm, which go before its own headers; None: none is."""
    if not any(PurePosixPath(word.text).name == "sbatch" for word in program.words[:1]):
        return None
    told = {"nodes" if one.key == "N" else one.key: one for one in settings_of(program.words[1:], most=1)}
    known = variables_of({key: Word(str(one.value), one.span) for key, one in told.items()})
    pairs = (pair.partition("=") for pair in str(told["export"].value if "export" in told else "").split(","))
    return {key: word.text for key, word in known.items()} | {name: value for name, equals, value in pairs if equals}


def _calls(shell: str, script: str) -> bool:
    """Whether a word is a shell, and the next one a script."""
    return PurePosixPath(shell).name in {"bash", "sh"} and script.endswith(_SCRIPTS)


def _with_files(program: Program, context: Context) -> Program:
    """A program with a name for each file that the script writes under a name of the moment: `cfg=$(mktemp)`."""
    words = (
        replace(word, text=word.unknown[0], unknown=())
        if word.unknown and not word.text and word.unknown[0] in context.written
        else word
        for word in program.words
    )
    return replace(program, words=tuple(words))


def _launched(program: Program, context: Context) -> tuple[Framework, Program, int] | None:
    """The framework of a program, by its arguments where several have such a program; and the place of those."""
    texts = [word.text for word in program.words]
    hits = [
        (one, at, pattern)
        for one in context.candidates
        for pattern in (*one.programs, *one.parts)
        if (at := _at(texts, pattern.split()))
    ]
    if not hits:
        return None
    parents = {one.parent for one, *_ in hits}  # a fork's program is named more closely
    own = [hit for hit in hits if hit[0].name not in parents]
    # by the keys, else by the longest name
    best, at, _ = max(own, key=lambda hit: (matching(hit[0], list(settings_of(program.words[hit[1] :]))), len(hit[2])))
    return best, program, at


def _at(texts: Sequence[str], pattern: Sequence[str]) -> int:
    """The place after some words that stand one after the other; 0 where they do not."""
    for start in range(len(texts) - len(pattern) + 1):
        if all(
            fnmatchcase(text, part) for text, part in zip(texts[start : start + len(pattern)], pattern, strict=True)
        ):
            return start + len(pattern)
    return 0


def _by_signs(programs: Iterable[Program], context: Context, named: set[str]) -> tuple[Framework, Program, int] | None:
    """The framework by the keys that a program sets, of several with as many one of those named; as `_launched`."""
    best: tuple[int, Framework, Program, int] | None = None
    for program in programs:
        at = _after_script(program)
        # a fork by keys of its own alone
        for one in sorted(context.candidates, key=lambda one: (one.name not in named, bool(one.parent))):
            score = matching(one, _of_program(one, program, at, replace(context, notes=[])))
            if score >= context.fewest and (best is None or score > best[0]):
                best = score, one, program, at
    return None if best is None else best[1:]


def _after_script(program: Program, name: str = "") -> int:
    """The place after the Python file or module that a program runs (of that name, if given), else its first flag."""
    texts = [word.text for word in program.words]
    for at, text in enumerate(texts):
        if text.endswith(name or ".py") or (not name and at and texts[at - 1] == "-m"):
            return at + 1
    return 0 if name else next((at for at, text in enumerate(texts) if text.startswith("-") or "=" in text), 0)


def _of_program(framework: Framework, program: Program, at: int, context: Context) -> Iterator[Setting]:
    """What a program sets: its surroundings first, then its configuration files, then its arguments."""
    before, after = program.words[:at], program.words[at:]
    for key, word in program.variables.items():
        yield Setting(f"env.{key}", word.text, word.span)
    launcher = [part for one in settings_of(before, "launcher.", most=1) for part in (one, *_of_torchx(one))]
    yield from launcher
    if before:
        yield Setting("launcher.program", " ".join(word.text for word in before[-2:]), before[-1].span)
    code = _code(program, at, context)
    if matching(framework, code):
        yield from code
    texts = [word.text for word in before]
    prefix = next((key for words, key in framework.parts.items() if at and _at(texts, words.split()) == at), "")
    arguments = list(_first_of_sweep(list(settings_of(after)), context))
    _note_untold(framework, program.words[max(at - 1, 0) :], context)
    files = [word.text for word in positional(after)]
    configured = list(_configurations(framework, arguments, files, context, prefix))
    yield from configured
    yield from _beside([*launcher, *configured, *arguments], context)
    yield from (replace(setting, key=prefix + setting.key) for setting in arguments)


def _of_torchx(setting: Setting) -> Iterator[Setting]:
    """Nodes and processes as `torchx run dist.ddp -j 2x8` counts them."""
    counts = re.fullmatch(r"(?:\d+:)?(\d{1,6})x(\d{1,6})", str(setting.value)) if setting.key == "launcher.j" else None
    for key, count in zip(("nnodes", "nproc_per_node"), counts.groups() if counts else (), strict=False):
        yield replace(setting, key=f"launcher.{key}", value=int(count))


def _first_of_sweep(arguments: Sequence[Setting], context: Context) -> Iterator[Setting]:
    """Arguments of a run; of those that Hydra's `--multirun` sweeps, the first value of each."""
    sweeps = any(normal(one.key) in {"m", "multirun"} for one in arguments)
    for one in arguments:
        values = _SWEPT.fullmatch(str(one.value)) if sweeps else None
        yield _first(one, scalar(values[1]), context) if values else one


def _code(program: Program, at: int, context: Context) -> list[Setting]:
    """What the Python file sets that a program runs, where it can be read."""
    name = program.words[at - 1].text if at else ""
    text = context.beside(name) if name.endswith(".py") else None
    if text is None or text == context.texts.get(context.name):  # a comment in that file shows the command
        return []
    return [replace(setting, inherited=True) for setting in context.settings(text, name)[0]]


def _note_untold(framework: Framework, words: Sequence[Word], context: Context) -> None:
    """Arguments that a command would print, and a configuration that only the script's own argument names."""
    flags = {normal(flag) for flag in framework.configurations}
    for before, word in pairwise(words):
        if not word.unknown or word.text:
            continue
        if normal(before.text) in flags:
            context.untold = True
            context.notes.append(
                f"line {word.span.line}: the configuration is named by {word.unknown[0]}, which the script does not "
                "tell: no default of the framework is taken."
            )
        elif not before.text.startswith("-") and _PRINTED.match(word.unknown[0]):
            context.notes.append(f"line {word.span.line}: {word.unknown[0]} {GAP}")


def _beside(settings: Iterable[Setting], context: Context) -> Iterator[Setting]:
    """What files of accelerate and DeepSpeed set that settings name, and those that these name."""
    for setting in settings:
        prefix = _BESIDE.get(normal(setting.key).removeprefix("launcher."))
        if prefix and isinstance(setting.value, str):
            found = list(context.named(setting.value, prefix))
            yield from (*found, *_beside(found, context))


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
    framework: Framework, arguments: Sequence[Setting], files: Sequence[str], context: Context, prefix: str
) -> Iterator[Setting]:
    """What files set that arguments name as the configuration, or as a part of it: `--trainer @ train.toml`."""
    said = {normal(setting.key): setting.value for setting in arguments}
    folder = str(said.get("config_path") or "")
    named = [str(said[key]) for flag in framework.configurations if isinstance(said.get(key := normal(flag)), str)]
    named += [file for file in files if file.endswith(_FILES)]
    for name in dict.fromkeys(one for one in named if one and one != folder):
        yield from context.named(name, prefix, folder, arguments)
    for setting in arguments:
        if isinstance(setting.value, str) and setting.value.startswith("@ "):
            yield from context.named(setting.value[2:], f"{prefix}{setting.key}.")


def _of_configuration(text: str, context: Context) -> tuple[Framework, list[Setting]]:
    """The framework that a configuration is for, and what it sets; a script inside it goes before."""
    settings, scripts = context.settings(text, context.name)
    surroundings = list(_cluster(settings))
    variables = dict(_variables(settings)) | dict(_sky(surroundings))
    context.written |= dict(_files_held(settings))
    swept = list(_sweep(settings, context))
    if swept:
        settings = [one for one in settings if not one.key.startswith("parameters.")]
    chosen: Framework | None = None
    beside: list[Source] = []
    for script in scripts:
        try:
            one, found = _of_script(script_in(text, script), context, variables)
        except InputError:
            beside.append(script_in(text, script))
            continue
        chosen, context.asked = one, one.name
        surroundings += found
    if chosen is not None:
        for source in beside:  # the engines' server, as a service of its own
            for program in read_script(source, context.name, context.beside).programs:
                surroundings += _of_server(chosen, program)
        held = [replace(setting, key=f"values.{setting.key}") for setting in settings]
        return chosen, [*held, *surroundings, *swept]
    settings += swept
    check_rollout(settings, context.name)
    if context.name.endswith(".py") and not context.asked and (trainer := unread_by((), text)):
        raise unread(trainer, context.name)
    usage = _usage(text, context) if context.name.endswith(".py") else []
    shown = [setting for program, at in usage for setting in settings_of(program.words[at:])]
    ranked = sorted(
        ((matching(one, [*settings, *shown]), one) for one in context.candidates),
        key=lambda pair: pair[0],
    )
    if not ranked or ranked[-1][0] < context.fewest:
        raise context.refused("is neither a scenario nor a launch of a framework that is known")
    chosen = ranked[-1][1]
    started = [setting for program, at in usage for setting in _as_shown(chosen, program, at, context)]
    return chosen, [*surroundings, *started, *_beside(settings, context), *settings]


def _usage(text: str, context: Context) -> list[tuple[Program, int]]:
    """How a Python file says that it is started: its commands, and the place after its name in each; 0 for others."""
    name = PurePosixPath(context.name).name
    return [
        (program, _after_script(program, name))
        for program in commands_shown(Source.of(text, context.name), context.name, bare=True)
    ]


def _as_shown(framework: Framework, program: Program, at: int, context: Context) -> Iterator[Setting]:
    """What a command sets that a comment shows: the launch of the file itself, or the server of its engines."""
    found = list(_of_program(framework, program, at, context) if at else _of_server(framework, program))
    if found:
        context.notes.append(f"line {program.words[0].span.line}: a command in a comment is taken as what is run.")
    yield from found


def _sweep(settings: Sequence[Setting], context: Context) -> Iterator[Setting]:
    """What a sweep of Weights & Biases sets: `parameters: {KEY: {value: V}}`; of several values the first."""
    if not any(setting.key.startswith("parameters.") for setting in settings):
        return
    for setting in settings:
        found = re.fullmatch(r"parameters\.(.+)\.values?", setting.key)
        if setting.key == "program":
            yield replace(setting, key="launcher.program")
        elif setting.key == "command" and isinstance(setting.value, list):
            yield from settings_of([Word(str(one), setting.span) for one in setting.value])
        elif found and isinstance(setting.value, list) and setting.value:
            yield _first(replace(setting, key=found[1]), setting.value[0], context)
        elif found:
            yield replace(setting, key=found[1])


def _first(setting: Setting, value: Value, context: Context) -> Setting:
    """A setting that is swept, with the first of its values."""
    context.notes.append(f"line {setting.span.line}: {setting.key} is swept: read with the first value, {value}")
    return replace(setting, value=value)


def _cluster(settings: Iterable[Setting]) -> Iterator[Setting]:
    """Nodes and GPUs as job files say them: SkyPilot, Kubernetes, Helm."""
    for setting in settings:
        key = setting.key
        if key in {"num_nodes", "nodes"}:
            yield replace(setting, key="cluster.nodes")
        elif re.fullmatch(r"resources\.accelerators\.[\w.-]+", key):
            yield replace(setting, key="cluster.gpu", value=key.rpartition(".")[2])
            yield replace(setting, key="cluster.gpus_per_node")
        elif key in {"resources.accelerators", "resources.gpu"} and isinstance(setting.value, str):
            kind, _, count = setting.value.partition(":")
            yield replace(setting, key="cluster.gpu", value=kind)
            yield replace(setting, key="cluster.gpus_per_node", value=int(count) if count.isdigit() else 1)
        elif key.endswith(("limits.nvidia.com/gpu", "gpu.count")):
            yield replace(setting, key="cluster.gpus_per_node")


def _files_held(settings: Iterable[Setting]) -> Iterator[tuple[str, str]]:
    """Files that a ConfigMap holds, by their names."""
    for setting in settings:
        file = re.fullmatch(r"data\.([\w.-]+\.\w+)", setting.key)
        if file and isinstance(setting.value, str):
            yield file[1], setting.value


def _variables(settings: Iterable[Setting]) -> Iterator[tuple[str, str]]:
    """Variables that a job file sets: `env: {A: 1}`, `environment: [A=1]`, `parameters: [{name: A, value: 1}]`."""
    parameter: dict[str, str] = {}
    for setting in settings:
        found = re.search(r"(?:^|\.)(?:envs?|environment|variables)(?:\.([A-Za-z_]\w*))?$", setting.key)
        if named := re.search(r"\bparameters\.\d+\.(name|value)$", setting.key):  # of a workflow
            parameter[named[1]] = str(setting.value)
            if named[1] == "value" and "name" in parameter:
                yield parameter.pop("name"), parameter["value"]
        if found and isinstance(setting.value, list):
            pairs = (str(one).partition("=") for one in setting.value)
            yield from ((name, value) for name, equals, value in pairs if equals)
        elif found and found[1] and not isinstance(setting.value, dict):
            yield found[1], str(setting.value)


def _sky(surroundings: Iterable[Setting]) -> Iterator[tuple[str, str]]:
    """Variables that SkyPilot and dstack set."""
    names = {
        "cluster.nodes": ("SKYPILOT_NUM_NODES", "DSTACK_NODES_NUM"),
        "cluster.gpus_per_node": ("SKYPILOT_NUM_GPUS_PER_NODE", "DSTACK_GPUS_PER_NODE"),
    }
    yield from ((name, str(setting.value)) for setting in surroundings for name in names.get(setting.key, ()))
