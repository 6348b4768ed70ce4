"""
Resolved configurations that a log prints: the largest one in it.

Read are dicts and objects as Python and JSON print them, YAML, and Megatron's `key ........ value`. Marks that
loggers put before each line are peeled off, and lines of one process are read together.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.readers.launch.literals import Literals, word
from rlsize.readers.launch.nodes import Count, Node, Places, UnreadableError, leaves, merged
from rlsize.readers.launch.yaml_trees import one_tree, yaml_trees
from rlsize.readers.logs.numbers import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_PROCESSES = 4
_MOST_RUNS = 8
_FEWEST = 4
_MOST_READ = 2_000_000
_SHORT = 160
_PROCESS = re.compile(r"\s?(\([\w.:-]{1,100}(?: rank=\d+)?,? pid=\d+(?:, ip=[\w.:]+)?\)|\[[\w-]*rank[ =]?\d+\]:?) ?")
_STAMP = re.compile(
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?(?: - |: ?| |$)"
    r"|\[?(?:DEBUG|INFO|WARNING|ERROR)\]?(?: \d\d-\d\d \d\d:\d\d:\d\d)?(?: - |: ?| |$)"
    r"|\[?[\w./-]{1,200}\.py:\d+\]?(?: - |: ?| |$)"
)
_REPEATED = re.compile(r" \[repeated \d+x across cluster\].*$")
_OPENS = re.compile(r"\{(?=\s*['\"\w])|(?<![\w.'\"])[A-Za-z_][\w.]*\((?=\s*[A-Za-z_]\w*=)")
_CLASS = re.compile(r"[A-Z]\w*(?:Config|Arguments|Args)(?![\w.])")
_DOTTED = re.compile(r"\s*(?:--)?([A-Za-z_][\w.-]*?) ?\.{3,}+ ?(.*)")
_YAML_LINE = re.compile(r"\s*(?:- \S.*|(?:- )?['\"]?[A-Za-z_][\w./-]*['\"]?:(?: .*)?)")
_CONTINUED = re.compile(r"\s\s+\S.*")


def log_settings(text: str, name: str, notes: list[str]) -> Node:
    """
    The largest configuration that a log prints; its settings have lines, and no bytes.

    Raises:
        InputError: It prints none.
    """
    found: list[Node] = []
    for lines, numbers in _processes(text):
        body = "\n".join(lines)
        places = Places(body, name, numbers)
        found += *_printed(body, places, small=False), *_dotted(lines, places), *_yaml(lines, numbers, name)
        # Logs are full of short dicts of figures: they count only where nothing larger is printed.
        if not found:
            found += _printed(body, places, small=True)
    sizes = [sum(1 for _ in leaves(node)) for node in found]
    size = max(sizes, default=0)
    if size < _FEWEST:
        what = "prints no configuration: no YAML, TOML, JSON, Python or printed settings are in it"
        todo = f"of a run's log ask `rlsize diagnose {name}`, or `rlsize calibrate {name}` with the launch that ran"
        raise InputError(Fault(what, name, f"{todo}; .yaml, .toml, .json and .py files are read as just that"))
    node = found[sizes.index(size)]
    notes.append(f"{node.span}: read from here: {size} settings that a log prints")
    for one in reversed(found):  # beside an object, those of other classes: GRPOConfig(...), ModelConfig(...)
        if _classes(one) and _classes(node) and not _classes(one) & _classes(node):
            node = merged(one, node)
    return node


def _classes(node: Node) -> set[str]:
    """The classes of an object that was printed; none of anything else."""
    keys = set(node.value) if isinstance(node.value, dict) else set()
    return keys if all(map(_CLASS.fullmatch, keys)) else set()


def _processes(text: str) -> Iterator[tuple[list[str], list[int]]]:
    """Lines of each process that speaks most, without what loggers put before them, and their numbers."""
    groups: dict[str, tuple[list[str], list[int]]] = {}
    for number, raw in enumerate(text.split("\n"), 1):
        if not raw.strip():
            continue
        line = plain(raw).rstrip("\r")
        process = _PROCESS.match(line)
        if process:
            line = _REPEATED.sub("", line[process.end() :])
        for _ in range(3):
            stamp = _STAMP.match(line)
            line = line[stamp.end() :] if stamp else line
        lines, numbers = groups.setdefault(process[1] if process else "", ([], []))
        lines.append(line)
        numbers.append(number)
    yield from sorted(groups.values(), key=lambda group: -len(group[0]))[:_MOST_PROCESSES]


def _printed(body: str, places: Places, *, small: bool) -> Iterator[Node]:
    """Dicts and objects, those on short lines too if `small`; what fails is begun again behind it, within a bound."""
    at, left, count = 0, _MOST_READ, Count(places.file)
    while left > 0 and (opens := _OPENS.search(body, at)) is not None:
        literals = Literals(body, places, count)
        line = body[opens.start() : opens.start() + _SHORT].partition("\n")
        if not small and not _CLASS.match(line[0]) and line[1] and line[0].rstrip().endswith((")", "}")):
            at = opens.start() + len(line[0])
            continue
        try:
            node, end = literals.shown_object(opens.start())
        except UnreadableError as error:
            at, end = opens.start() + 1, error.at
        except InputError:
            # Too deep or too large: what follows may still be read, but not for ever.
            at, end = opens.start() + 1, opens.start() + len(body) // 8
        else:
            at = end
            yield node
        left -= end - opens.start()


def _dotted(lines: list[str], places: Places) -> Iterator[Node]:
    """Megatron's and slime's table of arguments."""
    held: dict[str, Node] = {}
    at = 0
    for line in lines:
        found = _DOTTED.fullmatch(line)
        if found:
            held[found[1]] = Node(_value(found[2]), places.span(at, at))
        at += len(line) + 1
    if held:
        yield Node(held, next(iter(held.values())).span)


def _value(text: str) -> int | float | str | bool | list[Node] | dict[str, Node] | None:
    bare = text.strip()
    if bare[:1] in {"[", "{", "'", '"'}:
        try:
            node, end = Literals(bare, Places("", "-"), Count("-")).value(0)
        except (UnreadableError, InputError):
            return bare
        return node.value if end == len(bare) else bare
    return word(bare)


def _yaml(lines: list[str], numbers: list[int], name: str) -> Iterator[Node]:
    """The longest runs of lines that look like YAML."""
    runs: list[tuple[int, int]] = []
    start = 0
    for end, line in enumerate([*lines, ""]):
        if not _YAML_LINE.fullmatch(line) and not (end > start and _CONTINUED.fullmatch(line)):
            if end - start >= _FEWEST:
                runs.append((start, end))
            start = end + 1
    for start, end in sorted(runs, key=lambda run: run[0] - run[1])[:_MOST_RUNS]:
        body = "\n".join(lines[start:end])
        try:
            node = one_tree(yaml_trees(body, Places(body, name, numbers[start:end]), []), [])
        except InputError:
            continue
        if node is not None:
            yield node
