"""Simple commands: what the shell does itself is followed, what would be a process becomes a `Program`."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from rlsize.facts.launch import GAP, Program, Span, Word
from rlsize.readers.launch.bash.conditions import Condition, matches
from rlsize.readers.launch.bash.pure import FILTERS, PURE
from rlsize.readers.launch.bash.shell import NOWHERE, LeaveError, known, plain
from rlsize.readers.launch.bash.source import Source, mended
from rlsize.readers.launch.bash.words import BARE, Reading, separator, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlsize.readers.launch.bash.shell import Shell
    from rlsize.readers.launch.bash.words import Field

_MOST_FILES = 50
_DEEPEST = 20
_WORK_OF_SCRIPT = 40
_SHELLS = ("bash", "sh", "zsh", "dash")
_ABSENT = re.compile(r"npu-smi|rocm-smi|rocminfo|amd-smi|hl-smi|xpu-smi|mx-smi|ixsmi|cnmon|mthreads-gmi")
_GOES_ON = re.compile(r"--?[A-Za-z][^=]*(=.*)?|[+~]{0,2}[A-Za-z_]\w*([./][^=\s/]+)+=.*", re.DOTALL)
_ON = "a line that starts with an option or key=value goes on from the command before it, as all such lines do"
_ENVIRONMENT = re.compile(r"(?:^|/)(?:activate|conda\.sh)$")
"""Files that choose a Python and set nothing of a training."""
_WRAPS = re.compile(r"--(?:wrap|command|cmd|entrypoint)=")
"""How an option of a scheduler begins that hands a script on."""
_TRANSPARENT = ("exec", "command", "builtin")


def simple_command(shell: Shell, words: list[Field], variables: dict[str, Word], at: int) -> bool:
    """
    Follow a command without running it.

    Args:
        shell: The shell.
        words: The command and its arguments, and of what they came.
        variables: What stands before it, `X=1 command`.
        at: Where it stands in the text.

    Returns:
        Whether it would succeed; programs do.
    """
    texts = [field.text for field in words]
    while texts and texts[0] in _TRANSPARENT:
        if texts[0] == "command" and texts[1:2] in (["-v"], ["-V"]):
            return _there(shell, [field.word for field in words], at)
        while texts[1:] and texts[1] in ("-p", "-a", "-c"):
            del words[1], texts[1]
        words, texts = words[1:], texts[1:]
    if not texts:
        return True
    name = texts[0]
    arguments = [field.word for field in words]
    if name in shell.functions:
        return _call(shell, name, arguments[1:])
    if builtin := _BUILTINS.get(name):
        return builtin(shell, arguments, at)
    if name in PURE or name in FILTERS:
        return _pure(shell, arguments)
    if name == "env" and texts[1:] and not texts[1].startswith("-"):
        count = next((at for at, text in enumerate(texts) if at and not re.match(r"[A-Za-z_]\w*=", text)), len(texts))
        pairs = [(word.text.partition("="), word) for word in arguments[1:count]]
        variables = {**variables, **{pair[0]: replace(word, text=pair[2]) for pair, word in pairs}}
        words = words[count:]
    return _program(shell, words, variables, at) if words else True


def _call(shell: Shell, name: str, arguments: list[Word]) -> bool:
    """Follow the body of a function."""
    if shell.level >= _DEEPEST:
        raise shell.record.fault(f"functions call each other more than {_DEEPEST} deep")
    before = shell.source, shell.arguments
    shell.source, body = shell.functions[name]
    shell.arguments = arguments
    shell.frames.append({})
    shell.level += 1
    try:
        return shell.follow(shell, body)
    except LeaveError as leave:
        if leave.kind != "return":
            raise
        return leave.number == 0
    finally:
        shell.level -= 1
        shell.source, shell.arguments = before
        for local, value in shell.frames.pop().items():
            shell.variables.pop(local, None)
            if value is not None:
                shell.variables[local] = value


# Programs


def _program(shell: Shell, words: list[Field], variables: dict[str, Word], at: int) -> bool:
    record, arguments = shell.record, [field.word for field in words]
    name = plain(arguments[0].text)
    script = _script([plain(word.text) for word in arguments])
    if script and posixpath.basename(name) in _SHELLS:
        return _inner(shell, words, script, variables)
    if shell.sink is not None:
        shell.sink.pure = False
        if shell.sink.silent:
            record.outside.append(shown(name))
            return not _ABSENT.search(name)
    exported = sorted(other for other, flags in shell.flags.items() if "x" in flags)
    given = {other: value for other in exported if (value := shell.variables.get(other, {}).get(0)) is not None}
    given |= variables
    if shell.given is not None and shell.given.text and name.startswith("python"):
        given["/dev/stdin"] = Word(shell.given.text, shell.given.extent)
        shell.note(at, f"{name} reads a program from the lines that follow: it is not read")
    if _GOES_ON.fullmatch(name) and known(arguments[0].text.partition("=")[0]) and record.programs:
        before = record.programs[-1]
        record.programs[-1] = Program((*before.words, *map(record.told, arguments)), before.variables)
        if not any(note.endswith(_ON) for note in record.notes):
            shell.note(at, _ON)
        return True
    record.add(arguments, given)
    if script:
        _inner(shell, words, script, variables)
    return not _ABSENT.search(name)


def _handed(before: str, text: str) -> bool:
    """Whether a word is a script that an option hands on: `--wrap="..."`, `--command '...'`."""
    option, inside = _WRAPS.match(text), re.search(r"\S\s+\S", text)
    return inside is not None and (option is not None or _WRAPS.fullmatch(f"{before}=") is not None)


def _script(texts: list[str]) -> int:
    """Which word is a script itself, as in `srun bash -c '...'` or `ssh host '...'`; 0: none."""
    for index, text in enumerate(texts):
        if posixpath.basename(text) in _SHELLS:
            for after in range(index + 1, len(texts) - 1):
                if re.fullmatch(r"-\w*c", texts[after]):
                    return after + 1
                if not texts[after].startswith("-"):
                    break
    handed = next((at for at, text in enumerate(texts) if at and _handed(texts[at - 1], text)), 0)
    if handed:
        return handed
    elsewhere = posixpath.basename(texts[0]) in ("ssh", "pdsh", "tmux")
    return next((at for at in range(len(texts) - 1, 1, -1) if " " in texts[at]), 0) if elsewhere else 0


def _inner(shell: Shell, words: list[Field], index: int, variables: dict[str, Word]) -> bool:
    """Follow a word that is a script: its variables are those that are exported, or that a container is given."""
    if shell.level >= _DEEPEST:
        raise shell.record.fault("scripts within scripts nest too deep")
    inner = shell.copy()
    pairs = ((flag.text, word.word) for flag, word in pairwise(words[:index]))
    told = [(word.text.partition("="), word) for flag, word in pairs if flag in ("-e", "--env")]
    exported = (one.word for one in words[:index] if one.text.startswith("--export="))  # srun's
    told += [(part.partition("="), word) for word in exported for part in word.text[len("--export=") :].split(",")]
    variables = {**variables, **{pair[0]: replace(word, text=pair[2]) for pair, word in told if pair[1]}}
    inner.functions, inner.level, inner.arguments = {}, shell.level + 1, [one.word for one in words[index + 2 :]]
    inner.flags |= dict.fromkeys(variables, "x")
    inner.variables = {name: value for name, value in inner.variables.items() if "x" in inner.flags.get(name, "")}
    inner.variables |= {name: {0: word} for name, word in variables.items()}
    shell.record.spend(_WORK_OF_SCRIPT * len(words[index].text))
    script = words[index].nested()
    option = _WRAPS.match(script.text)
    return inner.run(script.part(option.end(), len(script.text)) if option else script)


def _pure(shell: Shell, words: list[Word]) -> bool:
    """A small command whose output follows from its arguments, and from what it is given to read."""
    sink, given, record = shell.sink, shell.given, shell.record
    name, texts = words[0].text, [word.text for word in words[1:]]
    if name == "tee" and given is not None and "-a" not in texts:
        for text in texts:
            if not text.startswith(("-", "/dev/")):
                record.write(text, Word(given.text, given.extent))
    if sink is None:
        return True
    if given is None and (given := _beside(shell, name, texts)) is not None:
        texts.pop()
    output, span = None, words[0].span
    told = all(map(known, texts))
    if name in PURE and (told or name == "echo"):
        output = PURE[name](texts, "")
    elif name in FILTERS and given is not None and told and (known(given.text) or name in ("cat", "tee")):
        output = FILTERS[name](texts, given.text)
        span = given.extent if output == given.text else span
    if output is None:
        sink.pure = False
        record.outside.append(name)
    else:
        record.spend(len(output))
        sink.words.append(Word(output, span))
    return True


def _beside(shell: Shell, name: str, texts: list[str]) -> Source | None:
    """A file that `cat` or `grep` reads, of the script's own or beside it; None where it is none."""
    if name not in FILTERS or not texts or not known(texts[-1]) or (name != "grep" and len(texts) > 1):
        return None
    if (word := shell.record.files.get(texts[-1])) is not None:
        return Source.made(word.text, word.span)
    text = shell.record.sourced(texts[-1])
    return None if text is None else Source.made(text, Span(texts[-1], 1))


# What the shell does itself


def _impure(shell: Shell) -> None:
    """Note that what is printed is not all known."""
    if shell.sink is not None:
        shell.sink.pure = False


def _succeeds(_: Shell, words: list[Word], __: int) -> bool:
    return words[0].text != "false"


def _eval(shell: Shell, _: list[Word], at: int) -> bool:
    _impure(shell)
    shell.note(at, "eval is not followed: what it would run is not known")
    return True


def _there(shell: Shell, words: list[Word], _: int) -> bool:
    """`command -v X`, `which X`: on a machine with NVIDIA GPUs."""
    name = next((plain(word.text) for word in words[1:] if not word.text.startswith("-")), "")
    _impure(shell)
    if name not in shell.functions:
        shell.record.outside.append(f"whether {name} is installed")
    return not _ABSENT.search(name)


def _cd(shell: Shell, words: list[Word], _: int) -> bool:
    target = next((word for word in words[1:] if not word.text.startswith("-")), None)
    if target is not None:
        here = shell.get("PWD")
        path = posixpath.normpath(posixpath.join(here.text if here else ".", target.text))
        shell.put("PWD", replace(target, text=path))
    return True


def _pwd(shell: Shell, _: list[Word], __: int) -> bool:
    here = shell.get("PWD")
    if shell.sink is not None and here is not None:
        shell.sink.words.append(Word(here.text + "\n", NOWHERE))
    return True


def _set(shell: Shell, words: list[Word], _: int) -> bool:
    texts = [word.text for word in words]
    if "--" in texts:
        shell.arguments = words[texts.index("--") + 1 :]
    elif len(words) > 1 and texts[1][:1] not in ("-", "+") and known(texts[1]):
        shell.arguments = words[1:]
    return True


def _shift(shell: Shell, words: list[Word], _: int) -> bool:
    count = int(words[1].text) if len(words) > 1 and re.fullmatch(r"[0-9]{1,6}", words[1].text) else 1
    enough = count <= len(shell.arguments)
    shell.arguments = shell.arguments[count if enough else 0 :]
    return enough


def _unset(shell: Shell, words: list[Word], _: int) -> bool:
    for word in words[1:]:
        name, bracket, key = word.text.rstrip("]").partition("[")
        held = shell.variables.get(name)
        if not bracket:
            shell.variables.pop(name, None)
            shell.functions.pop(name, None)
        elif held:
            place: int | str = int(key) if re.fullmatch(r"-?[0-9]{1,6}", key) else key
            place = place + max(held) + 1 if isinstance(place, int) and place < 0 else place
            if place in held and known(held[place].text):  # what is unknown may be many words, or none
                held.pop(place)
    return True


def _source(shell: Shell, words: list[Word], at: int) -> bool:
    """Follow a file as if it stood here."""
    record = shell.record
    if len(words) < 2:  # noqa: PLR2004 (the command and its file)
        return True
    path = plain(words[1].text)
    path = posixpath.normpath(path if known(words[1].text) else path.lstrip("/")) if path else ""
    here = shell.get("PWD")
    folder = here.text if here is not None and known(here.text) else "."
    places = [posixpath.normpath(posixpath.join(folder, path)), path] if path else []
    again = next((place for place in places if "./" + place in shell.files), "")
    if places and (again or len(record.sources) >= _MOST_FILES or len(shell.files) >= _DEEPEST):
        shell.note(at, f"{again} is not read again" if again else f"{places[0]} is one file too many to read")
        return True
    texts = ((record.sourced(place), place) for place in dict.fromkeys(places))
    text, found = next((one for one in texts if one[0] is not None), (None, path))
    if text is None and _ENVIRONMENT.search(found):
        return True
    if text is None:
        named = found or ", ".join(record.names(words[1].text)) or "a file"
        shell.note(at, f"{named} {GAP}")
        record.outside.append(named)
        _impure(shell)
        return False
    record.sources.append(found)
    files, arguments = shell.files, shell.arguments
    shell.files, shell.arguments = (*files, "./" + found), words[2:] or arguments
    shell.level += 1
    try:
        return shell.run(mended(Source.of(text, found), record.notes, f"{found}, "))
    finally:
        shell.level -= 1
        shell.files, shell.arguments = files, arguments if words[2:] else shell.arguments


def _read(shell: Shell, words: list[Word], _: int) -> bool:
    """`read` of a heredoc or `<<<`: by default a line; with -d '' all of it; with -a an array."""
    options, names, delimiter, before = "", [], "\n", ""
    for text in (plain(word.text) for word in words[1:]):
        if before[:1] == "-" and before[-1] in "dpntuNi":  # the value of an option
            delimiter, before = text[:1] if before[-1] == "d" else delimiter, ""
            continue
        before = text
        if text.startswith("-"):
            options += text
        else:
            names.append(text)
    if shell.given is None:
        shell.record.outside.append("what is read from outside")
        for name in names:
            shell.put(name, Word(shell.record.unknown(name), words[0].span))
        return True
    text, span = shell.given.text, shell.given.extent
    line, found, _rest = text.partition(delimiter) if delimiter else (text, "", "")
    shell.given = shell.given.part(len(line) + len(found), len(text))
    if "a" in options:
        fields = Reading(shell, span, shell.separators)
        fields.value(line, 0, 0, BARE)
        shell.variables[names[-1] if names else "REPLY"] = dict(enumerate(one.word for one in fields.finished()))
    else:
        line = line.strip("".join(sign for sign in shell.separators if sign in " \t\n")) if names else line
        names = names or ["REPLY"]
        parts = [*separator(shell.separators).split(line, maxsplit=len(names) - 1)] if names[1:] else [line]
        for name, part in zip(names, parts + [""] * len(names), strict=False):
            shell.put(name, Word(part, span))
    return bool(found)


def _mapfile(shell: Shell, words: list[Word], _: int) -> bool:
    """Lines of a heredoc as an array; each keeps its own place."""
    given, values, at = shell.given, dict[int, Word](), 0
    name = words[-1].text if len(words) > 1 and not words[-1].text.startswith("-") else "MAPFILE"
    shell.variables[name] = values
    if given is None:
        values[0] = Word(shell.record.unknown("what is read from outside"), words[0].span)
        return True
    shell.record.words(given.text.count("\n"))
    for line in given.text.removesuffix("\n").split("\n") if given.text else ():
        values[len(values)] = Word(line, given.span(at, at + len(line)))
        at += len(line) + 1
    return True


def _let(shell: Shell, words: list[Word], _: int) -> bool:
    results = [shell.number(word.text) for word in words[1:]]
    return bool(results) and results[-1] not in (0, None)


def _test(shell: Shell, words: list[Word], _: int) -> bool:
    end = -1 if words[0].text == "[" and words[-1].text == "]" else None
    return Condition(shell, words[1:end]).holds()


def _leave(shell: Shell, words: list[Word], at: int) -> bool:
    kind = words[0].text
    if shell.unsure:
        shell.note(at, f"{kind} is passed over: whether it is reached hangs on what is unknown here")
        return kind == "return"
    told = len(words) > 1 and re.fullmatch(r"[0-9]{1,3}", words[1].text)
    raise LeaveError(kind, int(words[1].text) if told else int(kind in ("break", "continue")))


def _grep(shell: Shell, words: list[Word], _: int) -> bool:
    """Leaves comments out (`grep -v '^#'`), else finds what is there on a machine with NVIDIA GPUs."""
    texts = [word.text for word in words[1:]]
    if shell.sink is not None and texts[:1] == ["-v"]:
        return _pure(shell, words)
    match texts:
        case ["-q" | "-qE" | "-Eq", pattern, _] if known(pattern) and (file := _beside(shell, "grep", texts)):
            return any(matches(shell, line, pattern) for line in file.text.splitlines())
    _impure(shell)
    shell.record.outside.append("grep")
    return not any(re.search(r"npu|rocm|ascend|amd|hpu", word.text, re.IGNORECASE) for word in words[1:])


_PASSED = "alias bg disown enable fg getopts history jobs popd setopt shopt trap ulimit umask unalias wait : true false"
_BUILTINS: dict[str, Callable[[Shell, list[Word], int], bool]] = {
    **dict.fromkeys(_PASSED.split(), _succeeds),
    **dict.fromkeys(("which", "type", "hash"), _there),
    **dict.fromkeys(("exit", "return", "break", "continue"), _leave),
    **{one.__name__[1:]: one for one in (_cd, _pwd, _set, _shift, _unset, _source, _read, _mapfile, _let, _eval)},
    "test": _test,
    "grep": _grep,
    "pushd": _cd,
    ".": _source,
    "readarray": _mapfile,
    "[": _test,
}
