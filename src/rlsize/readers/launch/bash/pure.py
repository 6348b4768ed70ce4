"""What small commands print whose output follows from their arguments alone; none of them is run."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from rlsize.readers.launch.bash.arithmetic import Arithmetic, UnknownValueError
from rlsize.readers.launch.bash.patterns import unescaped

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_FORM = 4096
_MOST_NUMBERS = 10_000


def _echo(arguments: list[str], _: str) -> str | None:
    options = re.match(r"(?:-[neE]+(?: |\Z))*", " ".join(arguments))
    flags = options[0] if options else ""
    text = " ".join(arguments)[len(flags) :]
    return (unescaped(text) if "e" in flags else text) + ("" if "n" in flags else "\n")


def _printf(arguments: list[str], _: str) -> str | None:
    arguments = arguments[arguments[:1] == ["--"] :]
    if not arguments or arguments[0] == "-v":
        return None
    form, values = unescaped(arguments[0]), arguments[1:]
    marks = re.findall(r"%(.?)", form)
    if any(mark not in ("s", "d", "%") for mark in marks) or len(form) > _LONGEST_FORM:
        return None
    fields = sum(mark != "%" for mark in marks)
    rows = [values[start : start + fields] for start in range(0, len(values), fields)] if fields and values else [[]]
    return "".join(_filled(form, row) for row in rows)


def _filled(form: str, row: list[str]) -> str:
    """A form of `printf` with values put in; 0 or nothing where they run out."""
    rest = iter(row)
    return re.sub(r"%(.)", lambda found: "%" if found[1] == "%" else next(rest, "0" if found[1] == "d" else ""), form)


def _cat(arguments: list[str], given: str) -> str | None:
    return given if all(argument == "-" for argument in arguments) else None


def _tee(_: list[str], given: str) -> str | None:
    return given


def _tr(arguments: list[str], given: str) -> str | None:
    sets = [unescaped(argument) for argument in arguments]
    if any(re.search(r"\[|.-.", one, re.DOTALL) for one in sets if one != "-d"):
        return None
    match sets:
        case ["-d", unwanted]:
            return given.translate({ord(sign): None for sign in unwanted})
        case [old, new] if new and not old.startswith("-"):
            return given.translate({ord(sign): new[min(at, len(new) - 1)] for at, sign in reversed([*enumerate(old)])})
    return None


def _wc(arguments: list[str], given: str) -> str | None:
    counts = {"-l": given.count("\n"), "-w": len(given.split()), "-c": len(given.encode()), "-m": len(given)}
    return f"{counts[arguments[0]]}\n" if len(arguments) == 1 and arguments[0] in counts else None


def _awk(arguments: list[str], given: str) -> str | None:
    """Only the idiom that counts the fields of a line."""
    asked = re.fullmatch(r"(?:-F ?(,) )?\s*\{\s*print\s+NF;?\s*\}\s*", " ".join(arguments))
    if not asked:
        return None
    return "".join(f"{len(line.split(asked[1])) if line else 0}\n" for line in given.splitlines())


def _grep(arguments: list[str], given: str) -> str | None:
    """Only the idioms that leave comments out."""
    if arguments not in (["-v", "^#"], ["-v", "#"], ["-v", "^\\s*#"]):
        return None
    return "".join(f"{line}\n" for line in given.splitlines() if not line.lstrip().startswith("#"))


def _xargs(arguments: list[str], given: str) -> str | None:
    return None if arguments else f"{' '.join(given.split())}\n"


def _seq(arguments: list[str], _: str) -> str | None:
    separator, numbers = "\n", list[int]()
    rest = iter(arguments)
    for argument in rest:
        if argument.startswith("-s"):
            separator = argument[2:] or next(rest, "")
        elif not re.fullmatch(r"-?[0-9]{1,9}", argument):
            return None
        else:
            numbers.append(int(argument))
    match numbers:
        case [last]:
            first, step = 1, 1
        case [first, last]:
            step = 1
        case [first, step, last] if step:
            pass
        case _:
            return None
    counted = range(first, last + (1 if step > 0 else -1), step)
    if len(counted) > _MOST_NUMBERS:
        return None
    return separator.join(map(str, counted)) + "\n" if counted else ""


def _expr(arguments: list[str], _: str) -> str | None:
    if any(not re.fullmatch(r"-?\d{1,18}|[-+*/%()]|[<>]=?|!?=", argument) for argument in arguments):
        return None
    text = " ".join("==" if argument == "=" else argument for argument in arguments)
    try:
        return f"{Arithmetic(text, lambda _name, _key: 0, lambda _name, _key, _value: None).value()}\n"
    except UnknownValueError:
        return None


def _basename(arguments: list[str], _: str) -> str | None:
    match arguments:
        case [path, *suffix] if len(suffix) <= 1 and not path.startswith("-"):
            name = posixpath.basename(path.rstrip("/"))
            return (name.removesuffix(suffix[0]) if suffix and name != suffix[0] else name) + "\n"
    return None


def _dirname(arguments: list[str], _: str) -> str | None:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        return None
    return (posixpath.dirname(arguments[0].rstrip("/")) or ("/" if arguments[0].startswith("/") else ".")) + "\n"


def _realpath(arguments: list[str], _: str) -> str | None:
    """A path stays what it is: the folder of the script is `.`, and links are not followed."""
    paths = [argument for argument in arguments if not argument.startswith("-")]
    return posixpath.normpath(paths[0]) + "\n" if len(paths) == 1 and paths[0] else None


PURE: dict[str, Callable[[list[str], str], str | None]] = {
    **{one.__name__[1:]: one for one in (_echo, _printf, _seq, _expr, _basename, _dirname, _realpath)},
    "readlink": _realpath,
}
"""What a command prints, from its arguments; None: that cannot be told."""

FILTERS: dict[str, Callable[[list[str], str], str | None]] = {
    one.__name__[1:]: one for one in (_cat, _tee, _tr, _wc, _awk, _grep, _xargs)
}
"""What a command makes of what it is given to read."""
