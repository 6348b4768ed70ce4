"""What small commands print whose output follows from their arguments alone; none of them is run."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from rlsize.readers.launch.bash_arithmetic import Arithmetic, UnknownValueError
from rlsize.readers.launch.bash_quoting import unescaped
from rlsize.readers.launch.bash_source import as_bytes, as_text

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_PATH = 4096
_MOST_NUMBERS = 10_000


def _echo(arguments: list[str], _: str | None) -> str | None:
    options = 0
    while options < len(arguments) and re.fullmatch(r"-[neE]+", arguments[options]):
        options += 1
    flags = "".join(arguments[:options])
    text = " ".join(arguments[options:])
    return (as_text(unescaped(as_bytes(text))) if "e" in flags else text) + ("" if "n" in flags else "\n")


def _printf(arguments: list[str], _: str | None) -> str | None:
    arguments = arguments[arguments[:1] == ["--"] :]
    if not arguments or arguments[0] == "-v":
        return None
    form, values = as_text(unescaped(as_bytes(arguments[0]))), arguments[1:]
    marks = re.findall(r"%(.?)", form)
    if any(mark not in ("s", "d", "%") for mark in marks) or len(form) > _LONGEST_PATH:
        return None
    fields = sum(mark != "%" for mark in marks)
    rows = [values[start : start + fields] for start in range(0, len(values), fields)] if fields and values else [[]]
    return "".join(_filled(form, row) for row in rows)


def _filled(form: str, row: list[str]) -> str:
    """A form of `printf` with values put in; 0 or nothing where they run out."""
    rest = iter(row)
    return re.sub(r"%(.)", lambda found: "%" if found[1] == "%" else next(rest, "0" if found[1] == "d" else ""), form)


def _cat(arguments: list[str], given: str | None) -> str | None:
    return given if all(argument == "-" for argument in arguments) else None


def _tr(arguments: list[str], given: str | None) -> str | None:
    plain = [as_text(unescaped(as_bytes(argument))) for argument in arguments]
    if given is None or any(re.search(r"\[|.-.", part, re.DOTALL) for part in plain if part != "-d"):
        return None
    match plain:
        case ["-d", unwanted]:
            return given.translate({ord(sign): None for sign in unwanted})
        case [old, new] if new and not old.startswith("-"):
            return given.translate({ord(sign): new[min(at, len(new) - 1)] for at, sign in reversed([*enumerate(old)])})
    return None


def _wc(arguments: list[str], given: str | None) -> str | None:
    if given is None or len(arguments) != 1:
        return None
    counts = {"-l": given.count("\n"), "-w": len(given.split()), "-c": len(given.encode()), "-m": len(given)}
    return f"{counts[arguments[0]]}\n" if arguments[0] in counts else None


def _awk(arguments: list[str], given: str | None) -> str | None:
    """Only the idiom that counts the fields of a line."""
    match arguments:
        case [("-F," | "-F ,"), program] | ["-F", ",", program]:
            separator: str | None = ","
        case [program]:
            separator = None
        case _:
            return None
    if given is None or not re.fullmatch(r"\s*\{\s*print\s+NF;?\s*\}\s*", program):
        return None
    return "".join(f"{len(line.split(separator)) if line else 0}\n" for line in given.splitlines())


def _seq(arguments: list[str], _: str | None) -> str | None:
    separator = "\n"
    numbers: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument.startswith("-s"):
            separator = argument[2:] or next(rest, "")
        elif not re.fullmatch(r"-?\d{1,9}", argument):
            return None
        else:
            numbers.append(argument)
    if not 1 <= len(numbers) <= 3:  # noqa: PLR2004 (last; first and last; first, step and last)
        return None
    last, first = int(numbers[-1]), int(numbers[0]) if len(numbers) > 1 else 1
    step = int(numbers[1]) if numbers[2:] else 1
    if not step or (last - first) // step >= _MOST_NUMBERS:
        return None
    counted = range(first, last + (1 if step > 0 else -1), step)
    return separator.join(map(str, counted)) + "\n" if counted else ""


def _expr(arguments: list[str], _: str | None) -> str | None:
    if any(not re.fullmatch(r"-?\d{1,18}|[-+*/%()]|[<>]=?|!?=", argument) for argument in arguments):
        return None
    return _calculated(" ".join("==" if argument == "=" else argument for argument in arguments))


def _bc(arguments: list[str], given: str | None) -> str | None:
    if given is None or arguments or not re.fullmatch(r"[-+*/%()\d\s]{1,200}", given):
        return None
    return _calculated(given)


def _calculated(text: str) -> str | None:
    try:
        return f"{Arithmetic(text, lambda _name, _key: 0, lambda _name, _key, _value: None).value()}\n"
    except UnknownValueError:
        return None


def _basename(arguments: list[str], _: str | None) -> str | None:
    if not 1 <= len(arguments) <= 2 or arguments[0].startswith("-"):  # noqa: PLR2004 (a path, and a suffix to drop)
        return None
    name = posixpath.basename(arguments[0].rstrip("/"))
    suffix = arguments[1] if len(arguments) > 1 else ""
    return (name.removesuffix(suffix) if name != suffix else name) + "\n"


def _dirname(arguments: list[str], _: str | None) -> str | None:
    if len(arguments) != 1 or arguments[0].startswith("-"):
        return None
    return (posixpath.dirname(arguments[0].rstrip("/")) or ("/" if arguments[0].startswith("/") else ".")) + "\n"


def _path(arguments: list[str], _: str | None) -> str | None:
    """A path stays what it is: the folder of the script is `.`, and links are not followed."""
    paths = [argument for argument in arguments if not argument.startswith("-")]
    return posixpath.normpath(paths[0]) + "\n" if len(paths) == 1 and paths[0] else None


PURE: dict[str, Callable[[list[str], str | None], str | None]] = {
    "echo": _echo,
    "printf": _printf,
    "cat": _cat,
    "tee": lambda _, given: given,
    "tr": _tr,
    "wc": _wc,
    "awk": _awk,
    "seq": _seq,
    "expr": _expr,
    "bc": _bc,
    "basename": _basename,
    "dirname": _dirname,
    "realpath": _path,
    "readlink": _path,
}
"""What a command prints, from its arguments and what it is given to read; None: that cannot be told."""
