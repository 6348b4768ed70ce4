"""Simple commands: what the shell does itself is followed, what would be a process becomes a `Program`."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from rlsize.facts.launch import Program, Word
from rlsize.readers.launch.bash_conditions import Condition
from rlsize.readers.launch.bash_expansion import shown
from rlsize.readers.launch.bash_pure import PURE
from rlsize.readers.launch.bash_quoting import Fields, nested, separator, untold
from rlsize.readers.launch.bash_shell import NOWHERE, Array
from rlsize.readers.launch.bash_source import as_text, mended

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlsize.readers.launch.bash_commands import Commands
    from rlsize.readers.launch.bash_record import Expanded

_MOST_FILES = 50
_DEEPEST = 20
_WORK_OF_SCRIPT = 40
_FILTERS = ("cat", "tee", "tr", "wc", "awk", "bc")
_SHELLS = ("bash", "sh", "zsh", "dash")
_ABSENT = re.compile(r"npu-smi|rocm-smi|rocminfo|amd-smi|hl-smi|xpu-smi|mx-smi|ixsmi|cnmon|mthreads-gmi")
_GOES_ON = re.compile(r"--?[A-Za-z][^=]*(=.*)?|[+~]{0,2}[A-Za-z_]\w*([./][^=\s/]+)+=.*", re.DOTALL)
_TRANSPARENT = ("exec", "command", "builtin", "time")


class LeaveError(Exception):
    """
    `exit`, `return`, `break` or `continue`.

    Args:
        kind: Which of them.
        levels: How many loops it leaves.
    """

    def __init__(self, kind: str, levels: int = 1) -> None:
        super().__init__(kind)
        self.kind, self.levels = kind, levels


def simple_command(commands: Commands, words: list[Expanded], variables: dict[str, Word], at: int) -> bool:
    """
    Follow a command without running it.

    Args:
        commands: The shell.
        words: The command and its arguments.
        variables: What stands before it, `X=1 command`.
        at: Where it stands in the text.

    Returns:
        Whether it would succeed; programs do.
    """
    while words and words[0].word.text in _TRANSPARENT and not words[0].word.unknown:
        if words[0].word.text == "command" and len(words) > 1 and words[1].word.text in ("-v", "-V"):
            return _there(commands, [word.word for word in words], at)
        words = words[1:]
        while words and words[0].word.text in ("-p", "-a", "-c"):
            words = words[1:]
    if not words:
        return True
    name = words[0].word.text
    plain = [word.word for word in words]
    if name in commands.shell.functions:
        return commands.call(name, plain[1:])
    if name == "env":
        words, variables = _without_env(words, variables)
    elif builtin := _BUILTINS.get(name):
        return builtin(commands, plain, at)
    elif name in PURE:
        return _pure(commands, plain)
    return _program(commands, words, variables, at) if words else True


def _without_env(words: list[Expanded], variables: dict[str, Word]) -> tuple[list[Expanded], dict[str, Word]]:
    """The command that `env X=1 command` is, and its variables."""
    rest, found = words[1:], dict(variables)
    while rest and (pair := re.match(r"([A-Za-z_]\w*)=", rest[0].word.text)):
        found[pair[1]] = Word(rest[0].word.text[pair.end() :], rest[0].word.span, rest[0].word.unknown)
        rest = rest[1:]
    return (words, variables) if rest and rest[0].word.text.startswith("-") else (rest, found)


def _program(commands: Commands, words: list[Expanded], variables: dict[str, Word], at: int) -> bool:
    shell, record = commands.shell, commands.record
    plain = tuple(word.word for word in words)
    name = plain[0].text
    script = _script(words)
    if script and posixpath.basename(name) in _SHELLS:
        return _inner(commands, words, script, variables)
    if commands.sink is not None:
        commands.sink.pure = False
        if commands.sink.silent:
            shell.outside.append(shown(name))
            return not _ABSENT.search(name)
    seen = {other: value for other in sorted(shell.exported) if isinstance(value := shell.variables.get(other), Word)}
    given = {**seen, **variables}
    if commands.given is not None and commands.given.source.text and name.startswith("python"):
        source = commands.given.source
        given["/dev/stdin"] = Word(as_text(source.text), source.span(0, len(source.text)))
        commands.note(at, f"{name} reads a program from the lines that follow: it is not read")
    if _GOES_ON.fullmatch(name) and not plain[0].unknown and record.programs:
        before = record.programs[-1]
        record.programs[-1] = Program((*before.words, *plain), before.variables)
        commands.note(at, "a line that starts with an option or key=value goes on from the command before it")
        return True
    if not record.add(Program(plain, given)):
        raise shell.budget.fault("it runs more commands than can be read")
    if script:
        _inner(commands, words, script, variables)
    return not _ABSENT.search(name)


def _script(words: list[Expanded]) -> int:
    """Which word is a script itself, as in `srun bash -c '...'` or `ssh host '...'`; 0: none."""
    texts = [word.word.text for word in words]
    for index, text in enumerate(texts):
        if posixpath.basename(text) not in _SHELLS:
            continue
        after = index + 1
        while after < len(texts) and texts[after].startswith("-"):
            if re.fullmatch(r"-\w*c", texts[after]):
                return after + 1 if after + 1 < len(texts) else 0
            after += 1
    host_and_script = len(texts[1:]) > 1 and " " in texts[-1]
    if posixpath.basename(texts[0]) in ("ssh", "pdsh") and host_and_script:
        return len(texts) - 1
    return 0


def _inner(commands: Commands, words: list[Expanded], index: int, variables: dict[str, Word]) -> bool:
    """Follow a word that is a script: its variables are those that are exported."""
    shell = commands.shell
    if shell.level >= _DEEPEST:
        raise shell.budget.fault("scripts within scripts nest too deep")
    inner = shell.copy()
    inner.variables = {name: value for name, value in inner.variables.items() if name in shell.exported}
    inner.variables.update(variables)
    inner.variables.update({untold(name): Word("", NOWHERE, (name,)) for name in words[index].word.unknown})
    inner.exported |= set(variables)
    inner.functions = {}
    inner.arguments = [word.word for word in words[index + 2 :]]
    shell.budget.spend(_WORK_OF_SCRIPT * len(words[index].word.text))
    source = nested(words[index].source, words[index].field)
    fresh = type(commands)(commands.record, inner, commands.sink, commands.given, level=1)
    fresh.unsure, fresh.depth = commands.unsure, commands.depth
    return fresh.run(source)


def _pure(commands: Commands, words: list[Word]) -> bool:
    """A small command whose output follows from its arguments."""
    sink = commands.sink
    name, arguments = words[0].text, words[1:]
    given = commands.given
    text = None if given is None else as_text(given.source.text)
    if name == "tee":
        _tee(commands, arguments)
    if sink is None:
        return True
    unknown = [other for word in arguments for other in word.unknown]
    output = None
    if name == "cat" and len(arguments) == 1 and arguments[0].text in commands.record.files:
        sink.words.append(commands.record.files[arguments[0].text])
        return True
    if not unknown or name == "echo":
        output = PURE[name]([word.text for word in arguments], text)
    if output is None:
        sink.pure = False
        commands.shell.outside.append(name)
        return True
    passed = given is not None and output == text and name in ("cat", "tee")
    unknown += [other for _, other in given.unknown] if given is not None and name in _FILTERS else []
    commands.shell.budget.spend(len(output))
    span = given.source.span(0, len(given.source.text)) if given is not None and passed else words[0].span
    sink.words.append(Word(output, span, tuple(unknown)))
    return True


def _tee(commands: Commands, arguments: list[Word]) -> None:
    given = commands.given
    if given is None or any(word.text == "-a" for word in arguments):
        return
    source = given.source
    for word in arguments:
        if not word.text.startswith(("-", "/dev/")):
            name = word.unknown[0] if word.unknown else word.text
            unknown = tuple(name for _, name in given.unknown)
            commands.record.files[name] = Word(as_text(source.text), source.span(0, len(source.text)), unknown)


def _succeeds(_: Commands, __: list[Word], ___: int) -> bool:
    return True


def _fails(_: Commands, __: list[Word], ___: int) -> bool:
    return False


def _eval(commands: Commands, _: list[Word], at: int) -> bool:
    if commands.sink is not None:
        commands.sink.pure = False
    commands.note(at, "eval is not followed: what it would run is not known")
    return True


def _there(commands: Commands, words: list[Word], _: int) -> bool:
    """`command -v X`, `which X`: on a machine with NVIDIA GPUs."""
    name = next((word.text for word in words[1:] if not word.text.startswith("-")), "")
    if commands.sink is not None:
        commands.sink.pure = False
    if name not in commands.shell.functions:
        commands.shell.outside.append(f"whether {name} is installed")
    return not _ABSENT.search(name)


def _cd(commands: Commands, words: list[Word], _: int) -> bool:
    shell = commands.shell
    targets = [word for word in words[1:] if not word.text.startswith("-")]
    if targets:
        here = shell.get("PWD")
        path = posixpath.normpath(posixpath.join(here.text if here else ".", targets[0].text))
        shell.put("PWD", Word("" if targets[0].unknown else path, targets[0].span, targets[0].unknown))
    return True


def _pwd(commands: Commands, _: list[Word], __: int) -> bool:
    here = commands.shell.get("PWD")
    if commands.sink is not None and here is not None:
        commands.sink.words.append(Word(here.text + "\n", NOWHERE, here.unknown))
    return True


def _set(commands: Commands, words: list[Word], _: int) -> bool:
    texts = [word.text for word in words]
    if "--" in texts:
        commands.shell.arguments = words[texts.index("--") + 1 :]
    elif len(words) > 1 and texts[1][:1] not in ("-", "+") and not words[1].unknown:
        commands.shell.arguments = words[1:]
    return True


def _shift(commands: Commands, words: list[Word], _: int) -> bool:
    count = int(words[1].text) if len(words) > 1 and re.fullmatch(r"\d{1,6}", words[1].text) else 1
    if count > len(commands.shell.arguments):
        return False
    commands.shell.arguments = commands.shell.arguments[count:]
    return True


def _source(commands: Commands, words: list[Word], at: int) -> bool:
    """Follow a file as if it stood here."""
    shell, record = commands.shell, commands.record
    if len(words) < 2:  # noqa: PLR2004 (the command and its file)
        return True
    path = words[1].text.lstrip("/") if words[1].unknown else words[1].text
    here = shell.get("PWD")
    folder = here.text if here is not None and not here.unknown else "."
    text, found = None, posixpath.normpath(path) if path else ""
    full = len(record.sources) >= _MOST_FILES or len(shell.files) >= _DEEPEST
    for place in dict.fromkeys((posixpath.normpath(posixpath.join(folder, path)), found)) if path else ():
        if "./" + place in shell.files or full:
            commands.note(at, f"{place} is not read again" if not full else f"{place} is one file too many to read")
            return True
        text = record.sourced(place)
        if text is not None:
            found = place
            break
    if text is None:
        named = found or ", ".join(words[1].unknown) or "a file"
        commands.note(at, f"{named} is missing: what it sets is not known")
        shell.outside.append(named)
        if commands.sink is not None:
            commands.sink.pure = False
        return False
    record.sources.append(found)
    before = shell.files, shell.arguments
    shell.files = (*shell.files, "./" + found)
    shell.arguments = words[2:] or shell.arguments
    shell.level += 1
    try:
        return commands.run(mended(found, text, record.notes, f"{found}, "))
    finally:
        shell.level -= 1
        shell.files = before[0]
        if words[2:]:
            shell.arguments = before[1]


def _read(commands: Commands, words: list[Word], _: int) -> bool:
    """`read` of a heredoc or `<<<`: by default a line; with -d '' all of it; with -a an array."""
    shell, given = commands.shell, commands.given
    options, names, delimiter = "", [], "\n"
    rest = iter(words[1:])
    for word in rest:
        if not word.text.startswith("-"):
            names.append(word.text)
        elif word.text[-1] in "dpntuNi":
            value = next(rest, None)
            delimiter = value.text[:1] if value is not None and word.text[-1] == "d" else delimiter
            options += word.text
        else:
            options += word.text
    if given is None:
        shell.outside.append("what is read from outside")
        for name in names:
            shell.put(name, Word("", words[0].span, (name,)))
        return True
    text = as_text(given.source.text)
    line = text.split(delimiter, 1)[0] if delimiter else text
    span = given.source.span(0, len(given.source.text))
    unknown = tuple(name for _, name in given.unknown)
    separators = shell.separators
    if "a" in options:
        fields = Fields(separators, shell.budget)
        fields.split(line, 0, 0)
        shell.variables[names[-1] if names else "REPLY"] = {
            index: Word(field.text, span, unknown) for index, field in enumerate(fields.finished())
        }
    else:
        blanks = "".join(sign for sign in separators if sign in " \t\n")
        line = line.strip(blanks) if names else line
        parts = separator(separators).split(line, maxsplit=len(names) - 1) if len(names) > 1 else [line]
        for index, name in enumerate(names or ["REPLY"]):
            shell.put(name, Word(parts[index] if index < len(parts) else "", span, unknown))
    return bool(line) if delimiter == "\n" else False


def _mapfile(commands: Commands, words: list[Word], _: int) -> bool:
    """Lines of a heredoc as an array; each keeps its own place."""
    given = commands.given
    commands.shell.budget.words(0 if given is None else given.source.text.count("\n"))
    name = words[-1].text if len(words) > 1 and not words[-1].text.startswith("-") else "MAPFILE"
    if given is None:
        commands.shell.variables[name] = {0: Word("", words[0].span, ("what is read from outside",))}
        return True
    values: Array = {}
    at = 0
    for line in given.source.text.split("\n"):
        stop = at + len(line)
        unknown = tuple(other for place, other in given.unknown if at <= place <= stop)
        if line or stop < len(given.source.text):
            values[len(values)] = Word(as_text(line), given.source.span(at, stop), unknown)
        at = stop + 1
    commands.shell.budget.words(len(values))
    commands.shell.variables[name] = values
    return True


def _let(commands: Commands, words: list[Word], _: int) -> bool:
    results = [commands.shell.calculated(word) for word in words[1:]]
    return bool(results) and results[-1].text not in ("", "0")


def _test(commands: Commands, words: list[Word], _: int) -> bool:
    end = -1 if words[0].text == "[" and words[-1].text == "]" else None
    return Condition(commands.shell, words[1:end], commands.record.files).holds()


def _leave(commands: Commands, words: list[Word], at: int) -> bool:
    kind = words[0].text
    if commands.unsure:
        commands.note(at, f"{kind} is passed over: whether it is reached hangs on what is unknown here")
        return kind == "return"
    levels = words[1].text if len(words) > 1 and re.fullmatch(r"[1-9]\d?", words[1].text) else "1"
    raise LeaveError(kind, int(levels))


def _grep(commands: Commands, words: list[Word], _: int) -> bool:
    """Finds what is there on a machine with NVIDIA GPUs."""
    if commands.sink is not None:
        commands.sink.pure = False
    commands.shell.outside.append("grep")
    return not any(re.search(r"npu|rocm|ascend|amd|hpu", word.text, re.IGNORECASE) for word in words[1:])


_BUILTINS: dict[str, Callable[[Commands, list[Word], int], bool]] = {
    **dict.fromkeys((":", "true", "wait", "trap", "shopt", "ulimit", "umask", "alias", "unalias"), _succeeds),
    **dict.fromkeys(("setopt", "jobs", "disown", "enable", "getopts", "history", "popd", "fg", "bg"), _succeeds),
    "false": _fails,
    "cd": _cd,
    "pushd": _cd,
    "pwd": _pwd,
    "set": _set,
    "shift": _shift,
    "source": _source,
    ".": _source,
    "read": _read,
    "mapfile": _mapfile,
    "readarray": _mapfile,
    "let": _let,
    "eval": _eval,
    "test": _test,
    "[": _test,
    "which": _there,
    "type": _there,
    "hash": _there,
    "grep": _grep,
    **dict.fromkeys(("exit", "return", "break", "continue"), _leave),
}
