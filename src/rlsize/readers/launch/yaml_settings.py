"""
YAML launch configurations: their parents (`defaults`), interpolations, and the shell scripts that they hold.

Parents are those of NeMo-RL (files, the later ones over the earlier, the file itself last) and of Hydra (`group:
option`, `_self_`, `name@package`), as far as files of that name lie beside.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.facts.launch import Word
from rlsize.readers.launch.interpolation import interpolated
from rlsize.readers.launch.nodes import DEEPEST, Count, Node, Places, merged, shown
from rlsize.readers.launch.yaml_trees import one_tree, yaml_trees

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from rlsize.facts.launch import Setting, Span

_MOST_FILES = 50
_SCRIPTS = ("setup", "run", "entrypoint", "script", "commands", "cmd", "command", "args")
_LINES = ("setup", "run", "script", "commands")
"""Keys whose lists are lines of a script; others' are the words of one command."""
_TEMPLATE = re.compile(r"([^{]*)\{\{[^{}]*?(\w+) *\}\}")
_PACKAGE = re.compile(r"\A(?:[ \t]*(?:#[^\n]*)?\n)*?[ \t]*#[ \t]*@package[ \t]+([\w.]+)")


@dataclass(slots=True)
class _Parents:
    """
    Reads files and those that they name as their parents.

    Args:
        beside: The text of a file by its path from the first one.
        count: The nodes of all files.
        notes: What a reader must know.
        folder: The first file's folder, as it was named.
        files: How many files were read.
    """

    beside: Callable[[str], str | None]
    count: Count
    notes: list[str]
    folder: str
    files: int = 0

    def tree(self, text: str, path: str, chain: tuple[str, ...]) -> Node | None:
        """The configuration that a file gives, its parents under it; None where it is no mapping."""
        file = posixpath.join(self.folder, path)
        root = one_tree(yaml_trees(text, Places(text, file), self.notes, self.count), self.notes)
        if root is None or not isinstance(root.value, dict):
            return None
        held = {key: node.value for key, node in root.value.items()}
        kept = {key: value["value"] for key, value in held.items() if isinstance(value, dict) and "value" in value}
        if kept.keys() == held.keys():  # as Weights & Biases keeps a run's
            return Node(kept, root.span)
        named = root.value.get("defaults")
        if named is None or not isinstance(named.value, str | list):
            return root
        own = Node({key: node for key, node in root.value.items() if key != "defaults"}, root.span)
        entries = [named] if isinstance(named.value, str) else named.value
        if not any(entry.value == "_self_" for entry in entries):
            entries = [*entries, Node("_self_", named.span)]
        whole = Node({}, root.span)
        for entry in entries:
            over = own if entry.value == "_self_" else self._parent(entry, path, (*chain, path))
            whole = merged(whole, over) if over is not None else whole
        return whole

    def _parent(self, entry: Node, path: str, chain: tuple[str, ...]) -> Node | None:
        """What an entry of `defaults` gives; None where nothing beside has its name."""
        wanted = _wanted(entry)
        if wanted is None:
            return None
        name, package = wanted
        place = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        if place in chain:
            loop = " -> ".join(shown(file) for file in (*chain, place))
            raise InputError(Fault(f"the parents go in a circle: {loop}", str(entry.span), "name each parent once"))
        self.files += 1
        if self.files > _MOST_FILES:
            raise InputError(Fault(f"more than {_MOST_FILES} parents are named", str(entry.span), "merge some of them"))
        text = None if posixpath.isabs(name) or "\0" in name else self.beside(place)
        if text is None:
            self.notes.append(f"parent {shown(name)} is missing: the framework's own defaults stand in for it")
            return None
        root = self.tree(text, place, chain)
        header = _PACKAGE.match(text)
        for part in reversed((header[1] if header else package).split(".")):
            if root is not None and part not in {"", "_global_", "_here_", "_group_"}:
                root = Node({part: root}, root.span)
        return root


def _wanted(entry: Node) -> tuple[str, str] | None:
    """The file that an entry of `defaults` names, and the key that it fills; None for Hydra's own settings."""
    group, option = "", entry.value
    if isinstance(option, dict) and len(option) == 1:
        ((group, node),) = option.items()
        option = node.value
    words = group.split()
    if not isinstance(option, str) or not option or {"override"} & set(words) or group.startswith("hydra/"):
        return None
    folder, _, package = (words[-1] if words else "").partition("@")
    if option.split(maxsplit=1)[0] in {"override", "optional"} and " " in option:
        option = option.split(maxsplit=1)[1]
    option, at, target = option.partition("@")
    if option.startswith("hydra/"):
        return None
    whole_name = option.endswith((".yaml", ".yml"))
    if at:
        package = target
    elif not package and not whole_name:
        parts = [*folder.split("/"), *option.split("/")[:-1]]
        package = ".".join(part for part in parts if part not in {"", ".", ".."} and ".." not in option)
    return posixpath.join(folder, option if whole_name else f"{option}.yaml"), package


def yaml_settings(
    text: str,
    name: str,
    beside: Callable[[str], str | None],
    notes: list[str],
    overrides: Iterable[Setting] = (),
) -> tuple[Node, tuple[tuple[Word, ...], ...]]:
    """
    A YAML configuration with its parents, and the scripts that it holds.

    Args:
        text: Its text.
        name: Its name.
        beside: The text of a file by its path from this one; None where there is none.
        notes: Takes what a reader must know.
        overrides: What is set in place of what it says.

    Raises:
        InputError: It is not YAML, no mapping, too large, or its parents go in a circle.
    """
    folder, own = posixpath.split(name)
    root = _Parents(beside, Count(name), notes, folder).tree(text, own, ())
    if root is None:
        raise InputError(Fault("holds no settings: it is no mapping of keys to values", name, "write `key: value`"))
    for setting in overrides:
        root = _overridden(root, setting)
    scripts = list(scripts_in(root))
    raw = frozenset(id(node) for _, nodes in scripts for node in nodes)
    return interpolated(root, raw, notes), tuple(words for words, _ in scripts)


def _overridden(root: Node, setting: Setting) -> Node:
    """A configuration in which a key below one of its own has another value."""
    path = setting.key.lstrip("+~").split(".")
    known = isinstance(root.value, dict) and path[0] in root.value
    if not known or len(path) > DEEPEST or isinstance(setting.value, dict | list):
        return root
    span = setting.span
    return merged(root, reduce(lambda node, key: Node({key: node}, span), reversed(path), Node(setting.value, span)))


def scripts_in(node: Node) -> Iterator[tuple[tuple[Word, ...], list[Node]]]:
    """Texts that are shell, and their nodes; `command` and `args` of a container are the words of one command."""
    held = node.value
    for child in held if isinstance(held, list) else held.values() if isinstance(held, dict) else ():
        yield from scripts_in(child)
    if not isinstance(held, dict):
        return
    words: list[Node] = []
    nodes: list[Node] = []
    environment = list(_environment(held.get("env")))
    known = dict(word.text.split("=", 1) for word in environment)
    for key in _SCRIPTS:
        value = held[key].value if key in held else None
        if key in _LINES and isinstance(value, list) and value and all(isinstance(line.value, str) for line in value):
            span = replace(value[0].span, end=value[-1].span.end)
            yield (Word("\n".join(str(line.value) for line in value), span),), [held[key], *value]
        elif isinstance(value, str) and re.search(r"\s", value.strip()):
            # a container's file has $$ for a $ of the shell's own
            yield (Word(re.sub(r"\$\$(?=[{A-Za-z_])", "$", value), held[key].span),), [held[key]]
        elif isinstance(value, list) and all(isinstance(word.value, str | int | float) for word in value):
            words += value
            nodes += [held[key], *value]
    if words:
        before = [Word("env", environment[0].span)] if environment else []
        told = (_word(_filled(str(word.plain), known), word.span) for word in words)
        yield (*before, *environment, *told), nodes


def _word(text: str, span: Span) -> Word:
    """A word of a command that is a list; what a template is filled with at its end is told, if at all, by a name."""
    filled = _TEMPLATE.fullmatch(text)
    return Word(filled[1], span, (filled[2],)) if filled else Word(text, span)


def _filled(text: str, known: Mapping[str, str]) -> str:
    """A word of a container as Kubernetes hands it on: `$(NAME)` of a variable of its is its value."""
    return re.sub(r"\$\((\w+)\)", lambda found: known.get(found[1], found[0]), text)


def _environment(node: Node | None) -> Iterator[Word]:
    """The variables of a container, as `NAME=value`."""
    held = node.value if node is not None else None
    for one in held if isinstance(held, list) else ():
        pair = one.value if isinstance(one.value, dict) else {}
        name, value = pair.get("name"), pair.get("value")
        if name is not None and value is not None and re.fullmatch(r"[A-Za-z_]\w*", str(name.value)):
            yield Word(f"{name.value}={value.plain}", value.span)
