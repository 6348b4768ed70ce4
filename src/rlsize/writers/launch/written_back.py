"""A launch with what is wanted written into it: only what changes, where it stands, proven by reading it again."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rlsize.errors import DoesNotFitError, Fault, InputError
from rlsize.frameworks.wanted import changes, same, spelled
from rlsize.quantities.table import QUANTITIES
from rlsize.writers.launch.edits import edited
from rlsize.writers.launch.items import ItemEditor, is_item
from rlsize.writers.launch.rows import RowEditor
from rlsize.writers.launch.shell import AROUND, ShellEditor, plain, uses
from rlsize.writers.launch.tree import TreeEditor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from rlsize.frameworks.told import Reading

_NAMES = r"(?:token|secret|passwd|password|cred(?:ential)?s?|api[_-]?key|access[_-]?key|private[_-]?key)"
_NAMED = re.compile(
    rf"""((?<![\w.-])[\w.-]*{_NAMES}["']?\s*[:=]\s*["']?"""
    rf"""|\bname["']?\s*:\s*["']?[\w.-]*{_NAMES}["']?[\s,]+["']?value["']?\s*:\s*["']?"""
    rf"""|\bBearer\s+|--[\w.-]*{_NAMES}\s+["']?)(?!\$)[^\s"',]{{4,}}""",
    re.IGNORECASE,
)
"""What follows a name such as token: in a setting, as a variable of a container, in a header, after a flag."""
_TOLD = re.compile(
    r"\b(?:hf_|sk-|ghp_|github_pat_|glpat-|xox[abp]-|AKIA)[\w-]{8,}|(?<=://)[^\s/@]+:[^\s/@]+(?=@)|\b[0-9a-f]{40}\b"
    r"|(?<![\w+/])(?=[^\s=]*\d)(?=[^\s=]*[a-z])(?=[^\s=]*[A-Z])(?:[A-Za-z0-9+/]{4}){4,}"
    r"(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)(?!\w)"
)
"""What is told by its own looks: tokens, logins in addresses, digests, base64 that is padded."""
_STRINGS = re.compile(rb"^(?:CMD|ENTRYPOINT)[ \t]*\[", re.MULTILINE)
_BOM = b"\xef\xbb\xbf"
_TABLE = re.compile(rb"^\s*\[[\w.]+\]\s*$", re.MULTILINE)
_LISTS = {"py", "yaml", "yml", "json"}  # endings of files in which a command may be a list
_ROUNDS = 3  # what follows from a key that changes is pinned, and that may have followers of its own
_FEW = 3  # keys that are named


@dataclass(frozen=True, slots=True)
class Written:
    """
    A launch as it is to be.

    Args:
        content: The whole file.
        difference: What changes in it, as a unified diff.
        notes: What changes with it, and what must be looked at by hand.
    """

    content: bytes
    difference: str
    notes: tuple[str, ...] = ()


def written_back(
    original: bytes,
    name: str,
    reading: Reading,
    wanted: Mapping[str, Any],
    again: Callable[[str], Reading],
    *,
    target: str = "",
) -> Written:
    """
    A launch that tells what is wanted.

    Args:
        original: The bytes of its file.
        name: The file, as its spans name it.
        reading: What it tells.
        wanted: Quantities as they are to be; None for one that is not to hold.
        again: Reads a text in place of the file.
        target: The file that is written, for the diff.

    Raises:
        DoesNotFitError: It cannot be written so; what is to be changed by hand, with the lines.
    """
    asked = changes(reading, wanted)
    if asked.refused:
        raise DoesNotFitError(*asked.refused)
    bom = _BOM if original.startswith(_BOM) else b""
    data = original[len(bom) :]
    keys = {key: value for key, value in asked.keys.items() if not _elsewhere(reading, key, name)}
    if name.endswith(".ipynb") or _STRINGS.search(data):  # its lines, or words, are strings of JSON
        what = "a notebook" if name.endswith(".ipynb") else "a Dockerfile's command that is a list"
        raise DoesNotFitError(*_by_hand(reading, keys, keys, name, f"{what} is not written into"))
    code = next((one.span.file for one in reading.settings.values() if _in_code(one.span.file, name)), "")
    inside = [key for key in keys if code and not key.startswith(AROUND)]
    if inside:  # what a program sets by itself it takes from no command line
        raise DoesNotFitError(*_by_hand(reading, keys, inside, name, f"{code} sets its arguments itself"))
    content, missed = _proven(data, name, reading, keys, again)
    left = {key for key in missed if key in asked.beside or key.startswith("server.")}
    if left and left == missed.keys():  # told to be changed by hand
        keys = {key: value for key, value in keys.items() if key not in left}
        content, missed = _proven(data, name, reading, keys, again)
    if not missed:
        after = changes(again(content.decode()), wanted)
        missed = {key: None for key in after.keys if key in keys}
    if missed:
        raise DoesNotFitError(*_by_hand(reading, keys, missed, name))
    notes = [
        f"With it {told} changes from {_shown(old)} to {_shown(new)}."
        for told, (old, new) in asked.follows.items()
        if told in QUANTITIES  # else it is a step on the way to one
    ]
    listed = [
        f"Change by hand: {_line(reading, key, value, name)}" for key, value in asked.keys.items() if key not in keys
    ]
    shown = difference(data.decode(), content.decode(), name, target or name)
    return Written(bom + content, shown, (*listed, *asked.notes, *_kept(data, content, name, reading, keys), *notes))


def _in_code(file: str, name: str) -> bool:
    """Whether a file is the code of a program that another one runs."""
    return file.endswith(".py") and file != name


def _shown(value: object) -> str:
    """A quantity in a sentence."""
    return "nothing" if value is None else str(value)


def _elsewhere(reading: Reading, key: str, name: str) -> bool:
    """Whether a key around the program is said in another file, which no override reaches; a new one may be, too."""
    group = next((prefix for prefix in AROUND if key.startswith(prefix)), "")
    setting = reading.settings.get(key)
    if setting is not None:
        return setting.span.file != name and group not in ("", "launcher.", "server.")
    return bool(group) and not any(
        other.startswith(group) and one.span.file == name for other, one in reading.settings.items()
    )


def _proven(
    data: bytes, name: str, reading: Reading, keys: Mapping[str, Any], again: Callable[[str], Reading]
) -> tuple[bytes, dict[str, Any]]:
    """
    The file with keys changed, and nothing else.

    Returns:
        The file, and what could not be had: keys with the values that they have instead.
    """
    before = _said(reading)
    expected = {key: value for key, value in {**before, **keys}.items() if value is not None}
    followed = _followed(data, name, reading)
    asked = {key: value for key, value in keys.items() if key not in followed or value is None}
    missed = dict[str, Any]()
    for _ in range(_ROUNDS):
        try:
            content, undone = _edited(data, name, reading, asked, again)
            if undone:
                return data, {key: before.get(key) for key in undone}
            after = _said(again(content.decode()))
        except InputError:
            return data, dict(keys)
        missed = {key: after.get(key) for key in {**expected, **after} if not same(after.get(key), expected.get(key))}
        if not missed:
            return content, {}
        if any(key in asked or key not in before for key in missed):
            break
        asked |= {key: expected[key] for key in missed}
    return data, missed


def _followed(data: bytes, name: str, reading: Reading) -> frozenset[str]:
    """Keys of a YAML file that stand there as another one (`${actor.backend}`), and change as that does."""
    if not name.lower().endswith((".yaml", ".yml")):
        return frozenset()
    own = {key: one.span for key, one in reading.settings.items() if one.span.file == name}
    return frozenset(key for key, span in own.items() if data[span.start : span.end].strip(b"\"'").startswith(b"${"))


def _edited(
    data: bytes, name: str, reading: Reading, keys: Mapping[str, Any], again: Callable[[str], Reading]
) -> tuple[bytes, list[str]]:
    """The file with values written into it, and keys that cannot be written; what goes goes last, as kin of others."""
    for together in (True, False):
        content, now = data, reading
        last = sorted(keys, key=lambda key: keys[key] is None or keys[key] is False)
        for part in [last] if together else [[key] for key in last]:
            editor = _editor(content, name, now)
            found = {key: editor.edits(key, keys[key]) for key in part}
            undone = [key for key, edits in found.items() if edits is None]
            if undone:
                return data, undone
            own = [edit for edits in found.values() if edits is not None for edit in edits]
            try:
                content = edited(content, [*own, *editor.rest()])
            except DoesNotFitError:
                break
            now = reading if together else again(content.decode())
        else:
            return content, []
    return data, list(keys)


def _kept(data: bytes, content: bytes, name: str, reading: Reading, keys: Iterable[str]) -> Iterator[str]:
    """Variables that fed what is written out now, and that go on feeding other things."""
    editor = _editor(data, name, reading)
    if isinstance(editor, ShellEditor):
        for variable in sorted({one for key in keys for one in editor.variables(key)}):
            lines = uses(content, variable)
            if lines:
                yield f"${variable.decode()} keeps its value for its other uses: line {', '.join(map(str, lines))}."


def _said(reading: Reading) -> dict[str, Any]:
    """Values by key, but for what follows from others: variables of batch systems, programs, scripts, nothing."""
    follows = ("env.SLURM_", "env.SKYPILOT_", "env.DSTACK_", "env.COMMAND", "values.", "launcher.program")
    said = {key: setting.value for key, setting in reading.settings.items() if setting.value != {}}
    return {
        key: value
        for key, value in said.items()
        if not key.startswith(follows)
        and not (key.startswith("server.env.") and said.get(key.removeprefix("server.")) == value)  # exported to both
    }


def _editor(data: bytes, name: str, reading: Reading) -> RowEditor | TreeEditor | ShellEditor:
    """What edits a file of its form; a script inside another file is a script."""
    ending = name.rpartition(".")[2].lower()
    said = partial(spelled, reading)
    program = reading.settings.get("launcher.program")
    inside = program is not None and program.span.file == name
    usual = reading.framework.defaults
    usual = {key: usual.get(key) for key in (*map(reading.key, reading.framework.writes), *usual)}
    if program is not None and inside and ending in _LISTS and is_item(data, program.span):
        items = ItemEditor(data, name, reading.settings, said, usual)
        items.code = ending == "py"
        return items
    if not inside or ending == "py":
        if ending in {"toml", "py"} or (ending == "txt" and _TABLE.search(data)):
            return RowEditor(data, name, reading.settings, said, python=ending == "py")
        if ending in {"yaml", "yml", "json"}:
            return TreeEditor(data, name, reading.settings, said)
    return ShellEditor(data, name, reading.settings, said, usual)


def _by_hand(
    reading: Reading, keys: Mapping[str, Any], missed: Iterable[str], name: str, why: str = ""
) -> Iterator[Fault]:
    """What cannot be written safely, with the lines to change; why, where it is not because of other keys."""
    missed = list(missed)
    others = ", ".join([key for key in missed if key not in keys][:_FEW])
    program = reading.settings.get("launcher.program")
    if program is not None and program.span.file != name:
        why = why or f"{program.span.file} runs the program, and is another file"
    for key in [key for key in missed if key in keys] or keys:
        setting = reading.settings.get(key)
        where = str(setting.span) if setting is not None else name
        made = name.endswith(".py") and setting is not None and setting.span.end <= setting.span.start
        alone = f"cannot be set here without changing {others}" if others else "cannot be set here by itself"
        what = why or f"{key} {'is worked out here from what stands elsewhere' if made else alone}"
        yield Fault(what, where, _line(reading, key, keys[key], name))


def _line(reading: Reading, key: str, value: object, name: str) -> str:
    """A change in words, with its place."""
    setting = reading.settings.get(key)
    place = f"{setting.span}: " if setting is not None else f"{name}: "
    written = setting.key if setting is not None else spelled(reading, key)
    return f"{place}take {written} away" if value is None else f"{place}{written} = {plain(value)}"


def difference(before: str, after: str, name: str, target: str) -> str:
    """
    A unified diff; what looks like a token, a key or a password is masked in it.

    Args:
        before: The file as it was.
        after: As it is to be.
        name: Its name.
        target: The name of the file that is written.
    """
    old, new = (masked(side.replace("\r\n", "\n")).splitlines(keepends=True) for side in (before, after))
    lines = difflib.unified_diff(old, new, name, target)
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def masked(text: str) -> str:
    """
    A text without its secrets.

    >>> masked("export HF_TOKEN=hf_abcdefghij max_tokens=4096 --wandb-api-key 'k3yk3y'")
    "export HF_TOKEN=*** max_tokens=4096 --wandb-api-key '***'"
    """
    return _TOLD.sub("***", _NAMED.sub(r"\1***", text))
