"""Statements of a script, followed as bash would: conditions, loops, functions, assignments, redirections."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from rlsize.facts.launch import Word
from rlsize.readers.launch.bash_builtins import LeaveError, simple_command
from rlsize.readers.launch.bash_conditions import Condition, double_brackets
from rlsize.readers.launch.bash_expansion import (
    DEFAULT,
    HEREDOC,
    field_of,
    fields_of,
    key_of,
    pattern_of,
    text_of,
    words_of,
)
from rlsize.readers.launch.bash_quoting import after, braced, masked, nested
from rlsize.readers.launch.bash_record import Expanded, Given, Record, Sink, secret
from rlsize.readers.launch.bash_shell import NOWHERE
from rlsize.readers.launch.bash_source import Piece, Source, as_bytes, as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from tree_sitter import Node

    from rlsize.readers.launch.bash_shell import Array, Shell

_DEEPEST_LEVEL = 20
_DEEPEST_STATEMENT = 60
_MOST_TURNS = 1000
_WORK_OF_STATEMENT = 2000
_WORK_OF_SUBSHELL = 5000
_MOST_ERRORS = 20
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[)?")
_SHOWN = 8
_SHORTEST_SECRET = 4


def parsed(source: Source) -> Node:
    """The statements of a text."""
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language())).parse(masked(source.text).encode("latin-1")).root_node


def separated(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Where the words of a part of a script stand; comments and line ends between them say nothing."""
    places = []
    at = start
    while at < end:
        if text[at] in " \t\r\n" or text.startswith("\\\n", at):
            at += 1 + (text[at] == "\\")
        elif text[at] == "#":
            at = (text.find("\n", at, end) + 1) or end
        else:
            begin = at
            while at < end and text[at] not in " \t\r\n" and not text.startswith("\\\n", at):
                at = after(text, at, end)
            places.append((begin, at))
    return places


def substituted(record: Record) -> Callable[[Source, Shell], Word]:
    """What `$(...)` prints, as far as that follows from the script; nothing is run for it."""

    def printed(source: Source, shell: Shell) -> Word:
        sink = Sink(silent=True, pure=shell.level < _DEEPEST_LEVEL)
        shell.budget.spend(_WORK_OF_SUBSHELL)
        if sink.pure:
            Commands(record, shell.copy(), sink, level=1).run(source)
        text = "".join(word.text for word in sink.words)
        shell.budget.value(len(text))
        unknown = [name for word in sink.words for name in word.unknown]
        return Word(text, NOWHERE, () if sink.pure and not unknown else tuple(unknown) or ("$(...)",))

    return printed


class Commands:
    """
    A shell that follows statements and runs nothing.

    Args:
        record: What has been read so far.
        shell: What the shell knows.
        sink: What takes its output, if anything does.
        given: What it is given to read.
        level: Whether it is a level deeper than the one that `shell` is of.
    """

    def __init__(
        self, record: Record, shell: Shell, sink: Sink | None = None, given: Given | None = None, level: int = 0
    ) -> None:
        self.record, self.shell, self.sink, self.given = record, shell, sink, given
        self.shell.level += level
        self.source = Source("", "", (Piece(0, 0, 0),), ())
        self.unsure = self.depth = 0
        self.frames: list[dict[str, Word | Array | None]] = []

    def run(self, source: Source) -> bool:
        """Follow a text to its end; whether its last command succeeds."""
        self.shell.budget.spend(len(source.text))
        before, self.source = self.source, source
        try:
            root = parsed(source)
            if root.has_error:
                if self.sink is not None:
                    self.sink.pure = False
                self._unread(root)
            return self.block(root.children)
        except LeaveError:
            return True
        finally:
            self.source = before

    def block(self, nodes: Iterable[Node]) -> bool:
        """Follow statements; whether the last one succeeds."""
        status = True
        for node in nodes:
            if node.is_named and node.type in self._STATEMENTS:
                status = self.statement(node)
        return status

    def statement(self, node: Node) -> bool:
        """Follow one statement; whether it succeeds."""
        self.shell.budget.spend(_WORK_OF_STATEMENT)
        self.depth += 1
        if self.depth > _DEEPEST_STATEMENT:
            raise self.shell.budget.fault("its statements nest too deep")
        try:
            return self._STATEMENTS[node.type](self, node)
        finally:
            self.depth -= 1

    def note(self, at: int, text: str) -> None:
        """Take a note of a place in the text that is being read, without the values of secrets."""
        secrets = [
            value.text
            for name, value in self.shell.variables.items()
            if isinstance(value, Word) and len(value.text) >= _SHORTEST_SECRET and secret(name)
        ]
        self.record.note(self.source, at, text, secrets)

    def raw(self, node: Node) -> str:
        """What a node says."""
        return self.source.text[node.start_byte : node.end_byte]

    def subshell(self, sink: Sink | None = None, given: Given | None = None) -> Commands:
        """A shell of its own, which starts with what this one knows."""
        inner = Commands(self.record, self.shell.copy(), sink or self.sink, given or self.given)
        inner.source, inner.depth, inner.unsure = self.source, self.depth, self.unsure
        return inner

    def _unread(self, root: Node) -> None:
        """Note which lines are no shell."""
        nodes, found = [root], 0
        while nodes and found < _MOST_ERRORS:
            node = nodes.pop()
            if node.is_missing or node.type == "ERROR":
                found += 1
                raw = self.raw(node).split("\n", 1)[0][:40]
                shown = "" if secret(self.raw(node)) or not raw.strip() else f": {as_text(raw)}"
                self.note(node.start_byte, f"cannot be read{shown}")
            elif node.has_error:
                nodes += reversed(node.children)

    # Simple commands

    def expanded(self, start: int, end: int) -> list[Expanded]:
        """The words that a word becomes."""
        span = self.source.span(start, end)
        found = [
            Expanded(field.word(span), field, part)
            for part in braced(self.source, start, end, self.shell.budget)
            for field in fields_of(self.shell, part)
        ]
        self.shell.budget.words(len(found))
        return found

    def _command(self, node: Node) -> bool:
        self.shell.budget.words(node.child_count)
        status = True
        for part in self._lines(node):
            assignments = [child for child in part if child.type == "variable_assignment"]
            places: list[tuple[int, int]] = []
            given = self.given
            for child in part:
                if child.type == "herestring_redirect":
                    given = self._herestring(child)
                elif child.is_named and child.type not in ("variable_assignment", "file_redirect", "comment"):
                    joined = places and places[-1][1] == child.start_byte
                    begin = places.pop()[0] if joined else child.start_byte
                    places.append((begin, child.end_byte))
            status = self._simple(assignments, places, given)
        return status

    def _lines(self, node: Node) -> list[list[Node]]:
        """The parts of a command, by lines: the grammar takes assignments on the line before for a part of it."""
        lines: list[list[Node]] = []
        for child in node.children:
            gap = self.source.text[lines[-1][-1].end_byte : child.start_byte] if lines else "\n"
            if re.search(r"(?<!\\)\n", gap):
                lines.append([])
            lines[-1].append(child)
        return lines

    def _simple(self, assignments: list[Node], places: list[tuple[int, int]], given: Given | None) -> bool:
        words = [word for place in places for word in self.expanded(*place)]
        if not words:
            for assignment in assignments:
                self.assign(assignment.start_byte, assignment.end_byte)
            return True
        kept = dict(self.shell.variables)
        names = [self.assign(part.start_byte, part.end_byte) for part in assignments]
        set_here = {name: value for name in names if isinstance(value := self.shell.variables[name], Word)}
        self.shell.budget.words(len(words))
        before, self.given = self.given, given
        try:
            return simple_command(self, words, set_here, places[0][0])
        finally:
            self.given = before
            for name in set_here:
                if name in kept:
                    self.shell.variables[name] = kept[name]
                else:
                    self.shell.variables.pop(name, None)

    # Assignments

    def _assignments(self, node: Node) -> bool:
        self.shell.budget.words(node.child_count)
        for child in node.children if node.type == "variable_assignments" else [node]:
            self.assign(child.start_byte, child.end_byte)
        return True

    def assign(self, start: int, end: int) -> str:
        """Follow `NAME=value`, `NAME+=value`, `NAME[key]=value` or `NAME=(...)`; the name."""
        text = self.source.text
        found = _ASSIGNMENT.match(text, start, end)
        if found is None:
            return ""
        name, at, key = found[1], found.end(), None
        if found[2]:
            close = at
            while close < end and text[close] != "]":
                close = after(text, close, end)
            key, at = key_of(self.shell, self.source, name, at, close), close + 1
        append = text[at : at + 1] == "+"
        at += 2 if append else 1
        if text[at : at + 1] == "(" and key is None:
            self._array(name, at, end, append=append)
        else:
            word = text_of(self.shell, self.source, at, end)
            self.shell.put(name, word, key, append=append)
            self._assigned(name, [word])
        return name

    def _array(self, name: str, start: int, end: int, *, append: bool) -> None:
        text = self.source.text
        held = self.shell.variables.get(name)
        before = held if isinstance(held, dict) else {} if held is None else {0: held}
        values: Array = dict(before) if append else {}
        place = max((key for key in values if isinstance(key, int)), default=-1) + 1
        for begin, stop in separated(text, start + 1, end - 1 if text[end - 1] == ")" else end):
            equal = text.find("]=", begin, stop) if text[begin] == "[" else -1
            if equal > 0:
                key = key_of(self.shell, self.source, name, begin + 1, equal)
                values[key] = text_of(self.shell, self.source, equal + 2, stop)
                place = key + 1 if isinstance(key, int) else place
                continue
            for word in words_of(self.shell, self.source, begin, stop):
                values[place] = word
                place += 1
            self.shell.budget.words(len(values))
        self.shell.budget.spend(20 * len(values))
        self.shell.variables[name] = values
        self._assigned(name, list(values.values()))

    def _assigned(self, name: str, words: list[Word]) -> None:
        """Keep what a script without a program sets."""
        if not self.record.programs and len(self.record.assigned) < self.shell.budget.WORDS:
            self.record.assigned.append((name, words))

    def _declaration(self, node: Node) -> bool:
        kind = node.children[0].type
        flags = "".join(self.raw(child)[1:] for child in node.children if self.raw(child).startswith("-"))
        for child in node.children[1:]:
            raw = self.raw(child)
            names = [raw]
            if child.type != "variable_assignment" and not re.fullmatch(r"\w+", raw):
                words = (
                    [] if raw.startswith("-") or not child.is_named else self.expanded(child.start_byte, child.end_byte)
                )
                pairs = [word.word.text.partition("=") for word in words]
                names = [name for name, _, _ in pairs if re.fullmatch(r"\w+", name)]
                for word, (name, sign, value) in zip(words, pairs, strict=True):
                    if sign and name in names:
                        self.shell.put(name, Word(value, word.word.span, word.word.unknown))
            for name in names:
                self._declare(re.split(r"[=+\[]", name, maxsplit=1)[0], kind, flags)
            if child.type == "variable_assignment":
                self.assign(child.start_byte, child.end_byte)
        return True

    def _declare(self, name: str, kind: str, flags: str) -> None:
        shell = self.shell
        if kind in ("local", "declare", "typeset") and self.frames and "g" not in flags:
            self.frames[-1].setdefault(name, shell.variables.get(name))
            shell.variables.pop(name, None)
        if "A" in flags:
            shell.keyed.add(name)
        if ("A" in flags or "a" in flags) and not isinstance(shell.variables.get(name), dict):
            shell.variables[name] = {}
        if "i" in flags:
            shell.integers.add(name)
        if kind == "export" or "x" in flags:
            shell.exported.add(name)

    def _unset(self, node: Node) -> bool:
        for child in node.children[1:]:
            for word in self.expanded(child.start_byte, child.end_byte) if child.is_named else []:
                name, bracket, key = word.word.text.rstrip("]").partition("[")
                held = self.shell.variables.get(name)
                if not bracket:
                    self.shell.variables.pop(name, None)
                    self.shell.functions.pop(name, None)
                elif isinstance(held, dict) and held:
                    place: int | str = int(key) if re.fullmatch(r"-?\d{1,6}", key) else key
                    place = place + max(held) + 1 if isinstance(place, int) and place < 0 else place
                    if place in held and not held[place].unknown:  # what is unknown may be many words, or none
                        held.pop(place)
        return True

    # Redirections, pipes, lists

    def _herestring(self, node: Node) -> Given:
        places = separated(self.source.text, node.start_byte + 3, node.end_byte)
        word = text_of(self.shell, self.source, *places[0]) if places else Word("", NOWHERE)
        return self.text_given(
            Word(word.text + "\n", self.source.span(*(places[0] if places else (0, 0))), word.unknown)
        )

    def text_given(self, word: Word) -> Given:
        """What a command is given to read, from a word."""
        raw = as_bytes(word.text)
        piece = Piece(0, word.span.start, word.span.end)
        return Given(
            Source(self.source.name, raw, (piece,), self.source.newlines), [(0, name) for name in word.unknown]
        )

    def _heredoc(self, node: Node) -> Given:
        start = next(child for child in node.children if child.type == "heredoc_start")
        body = next((child for child in node.children if child.type == "heredoc_body"), None)
        if body is None:
            return self.text_given(Word("", self.source.span(node.end_byte, node.end_byte)))
        closing = next((child for child in node.children if child.type == "heredoc_end"), None)
        stop = closing.start_byte if closing is not None else body.end_byte
        begin = body.start_byte
        if closing is not None:
            stop = self.source.text.rfind("\n", 0, stop) + 1
        if re.search(r"['\"\\]", self.raw(start)):
            return Given(self.source.part(begin, max(begin, stop)))
        grown = field_of(self.shell, self.source, begin, stop, HEREDOC)
        unknown, length = [], 0
        for chunk in grown.chunks:
            length += len(as_bytes(chunk.text))
            unknown += [(length, name) for name in chunk.unknown]
        return Given(nested(self.source, grown, named=False), unknown)

    def _redirected(self, node: Node) -> bool:
        body = node.child_by_field_name("body")
        given, target, append, later = self.given, None, False, []
        redirects = list(node.children_by_field_name("redirect"))
        for redirect in redirects:
            if redirect.type == "heredoc_redirect":
                given = self._heredoc(redirect)
                redirects += [child for child in redirect.children if child.type == "file_redirect"]
                later += [child for child in redirect.children if child.is_named and child.type in self._STATEMENTS]
                later += [child for child in redirect.children if child.type in ("&&", "||")]
            elif redirect.type == "herestring_redirect":
                given = self._herestring(redirect)
            elif found := self._target(redirect):
                target, append = found, ">>" in self.raw(redirect)
            elif self.raw(redirect).startswith("<"):
                given = None
        later.sort(key=lambda child: child.start_byte)
        before, self.given = self.given, given
        piped = later and later[0].type == "pipeline"
        sink = Sink(self._silent()) if target is not None or piped else self.sink
        kept, self.sink = self.sink, sink
        try:
            status = self.statement(body) if body is not None and body.type in self._STATEMENTS else True
        finally:
            self.given, self.sink = before, kept
        if target is not None and sink is not None and sink.pure and sink.words:
            self._written(target, sink, given, append=append)
        return self._later(later, status, sink)

    def _silent(self) -> bool:
        return self.sink is not None and self.sink.silent

    def _target(self, redirect: Node) -> Word | None:
        """The file that output goes to."""
        destination = redirect.child_by_field_name("destination")
        raw = self.raw(redirect)
        if destination is None or not re.match(r"1?&?>>?(?!&)", raw):
            return None
        word = text_of(self.shell, self.source, destination.start_byte, destination.end_byte)
        return None if word.text.startswith("/dev/") else word

    def _written(self, target: Word, sink: Sink, given: Given | None, *, append: bool) -> None:
        name = target.text if not target.unknown else target.unknown[0]
        text = "".join(word.text for word in sink.words)
        span = sink.words[0].span if given is None else given.source.span(0, len(given.source.text))
        unknown = tuple(name for word in sink.words for name in word.unknown)
        before = self.record.files.get(name)
        if append and before is not None:
            text, span, unknown = before.text + text, before.span, before.unknown + unknown
        self.shell.budget.value(len(text))
        self.record.files[name] = Word(text, span, unknown)

    def _later(self, later: list[Node], status: bool, sink: Sink | None) -> bool:
        """What the grammar hides behind the start of a heredoc: `| tee x`, `&& y`, `|| true`."""
        wanted = True
        for child in later:
            if child.type in ("&&", "||"):
                wanted = status == (child.type == "&&")
            elif child.type == "pipeline":
                stages = [stage for stage in child.children if stage.is_named]
                status = self._piped(stages, self._printed(sink) if sink is not None else None)
            elif wanted:
                status = self.statement(child)
        return status

    def _printed(self, sink: Sink) -> Given | None:
        """What a sink holds, as something to read."""
        if not sink.pure or not sink.words:
            return None
        unknown = tuple(name for word in sink.words for name in word.unknown)
        return self.text_given(Word("".join(word.text for word in sink.words), sink.words[0].span, unknown))

    def _pipeline(self, node: Node) -> bool:
        return self._piped(
            [child for child in node.children if child.is_named and child.type in self._STATEMENTS], self.given
        )

    def _piped(self, stages: list[Node], given: Given | None) -> bool:
        status = True
        for index, stage in enumerate(stages):
            last = index == len(stages) - 1
            sink = self.sink if last else Sink(self._silent())
            inner = self.subshell(sink)
            inner.given = given
            status = inner.statement(stage)
            given = None if sink is None else self._printed(sink)
        return status

    def _list(self, node: Node) -> bool:
        """`a && b || c`, however long: the grammar nests them to the left."""
        steps: list[tuple[str, Node]] = []
        while node.type == "list":
            operator = next((child.type for child in node.children if child.type in ("&&", "||")), ";")
            named = [child for child in node.children if child.is_named and child.type != "comment"]
            steps.append((operator, named[-1]))
            node = named[0]
        before = len(self.shell.outside)
        status = self.statement(node) if node.type in self._STATEMENTS else True
        unsure = self.unsure
        for operator, step in reversed(steps):
            self.unsure = unsure + (len(self.shell.outside) > before)
            if (operator == ";" or status == (operator == "&&")) and step.type in self._STATEMENTS:
                status = self.statement(step)
        self.unsure = unsure
        return status

    def _negated(self, node: Node) -> bool:
        return not self.block(node.children)

    def _compound(self, node: Node) -> bool:
        if not self.raw(node).startswith("(("):
            return self.block(node.children)
        return self._number(node.start_byte + 2, node.end_byte - 2).text not in ("", "0")

    def _subshell(self, node: Node) -> bool:
        try:
            return self.subshell().block(node.children)
        except LeaveError:
            return True

    # Conditions and loops

    def _number(self, start: int, end: int) -> Word:
        return self.shell.calculated(text_of(self.shell, self.source, start, max(start, end), DEFAULT))

    def _test(self, node: Node) -> bool:
        raw = self.raw(node)
        if raw.startswith("(("):
            return self._compound(node)
        width = 2 if raw.startswith("[[") else 1
        places = separated(self.source.text, node.start_byte + width, node.end_byte - width)
        if width == 2:  # noqa: PLR2004 (brackets)
            return double_brackets(self.shell, self.source, places, self.record.files)
        words = [word for place in places for word in words_of(self.shell, self.source, *place)]
        return Condition(self.shell, words, self.record.files).holds()

    def _asked(self, nodes: list[Node], at: int, what: str) -> tuple[bool, bool]:
        """Whether a condition holds, and whether that hangs on the outside, which a note says."""
        before = len(self.shell.outside)
        status = self.block(nodes)
        names = list(dict.fromkeys(self.shell.outside[before:]))
        if names and what:
            holds = "holds" if status else "does not hold"
            self.note(at, f"{what} hangs on {', '.join(names[:_SHOWN])}, unknown here: read as if it {holds}")
        return status, bool(names)

    def _guarded(self, nodes: Iterable[Node], unsure: bool) -> bool:
        self.unsure += unsure
        try:
            return self.block(nodes)
        finally:
            self.unsure -= unsure

    def _if(self, node: Node) -> bool:
        """Follow the branch that bash takes."""
        any_unsure = False
        clauses = [node, *(child for child in node.children if child.type in ("elif_clause", "else_clause"))]
        for clause in clauses:
            then = next((at for at, child in enumerate(clause.children) if child.type == "then"), 0)
            body = [child for child in clause.children[then + 1 :] if child not in clauses]
            if clause.type == "else_clause":
                return self._guarded(body, any_unsure)
            holds, unsure = self._asked(clause.children[1:then], clause.start_byte, "a condition")
            any_unsure |= unsure
            if holds:
                return self._guarded(body, any_unsure)
        return True

    def _case(self, node: Node) -> bool:
        value = node.child_by_field_name("value")
        if value is None:
            return True
        before = len(self.shell.outside)
        subject = text_of(self.shell, self.source, value.start_byte, value.end_byte)
        names = list(dict.fromkeys(self.shell.outside[before:]))
        for item in node.children:
            if item.type != "case_item":
                continue
            patterns = item.children_by_field_name("value")
            fits = any(
                pattern_of(self.shell, self.source, pattern.start_byte, pattern.end_byte)[0].fits(subject.text)
                for pattern in patterns
            )
            if fits:
                if names:
                    shown = as_text(" | ".join(self.raw(pattern) for pattern in patterns))[:40]
                    self.note(node.start_byte, f"a case hangs on {', '.join(names[:_SHOWN])}: branch {shown} is read")
                return self._guarded([child for child in item.children if child not in patterns], bool(names))
        return True

    def _turn(self, nodes: Iterable[Node]) -> bool:
        """Follow the body of a loop once; whether the loop goes on."""
        try:
            self.block(nodes)
        except LeaveError as leave:
            if leave.kind not in ("break", "continue"):
                raise
            if leave.levels > 1:
                leave.levels -= 1
                raise
            return leave.kind == "continue"
        return True

    def _body(self, node: Node) -> list[Node]:
        body = node.child_by_field_name("body")
        return [] if body is None else body.children

    def _for(self, node: Node) -> bool:
        variable = node.child_by_field_name("variable")
        if variable is None:
            return True
        name, before = self.raw(variable), len(self.record.programs)
        told = any(child.type == "in" for child in node.children)
        places = [(child.start_byte, child.end_byte) for child in node.children_by_field_name("value")]
        words = [word for place in places for word in words_of(self.shell, self.source, *place)]
        words = words if told else list(self.shell.arguments)
        self.shell.budget.words(len(words))
        for word in words:
            self.shell.put(name, word)
            if not self._turn(self._body(node)):
                break
        if len(self.record.programs) > before and len(words) > 1:
            hidden = secret(name) or secret("".join(self.raw(child) for child in node.children_by_field_name("value")))
            shown = [word.text or ", ".join(word.unknown) for word in words[:_SHOWN]]
            rest = ", ..." if len(words) > _SHOWN else ""
            over = f"{len(words)} values" if hidden else ", ".join(shown) + rest
            self.note(node.start_byte, f"a loop over {over}: every turn is read, in order")
        elif len(self.record.programs) > before and any(word.unknown for word in words):
            self.note(node.start_byte, f"a loop over {', '.join(words[0].unknown)}, unknown here: one turn is read")
        return True

    def _for_counting(self, node: Node) -> bool:
        text, start = self.source.text, node.start_byte
        begin = text.find("((", start) + 2
        close = next((child.start_byte for child in node.children if child.type == "))"), node.end_byte)
        parts, at = [], begin
        for _ in range(3):
            stop = text.find(";", at, close)
            stop = close if stop < 0 else stop
            parts.append((at, stop))
            at = min(stop + 1, close)
        self._number(*parts[0])
        before, turns = len(self.record.programs), 0
        while turns < _MOST_TURNS:
            holds = self._number(*parts[1]) if text[slice(*parts[1])].strip() else Word("1", NOWHERE)
            if holds.text == "0" or (holds.unknown and turns):
                break
            turns += 1
            if not self._turn(self._body(node)) or holds.unknown:
                break
            self._number(*parts[2])
        if len(self.record.programs) > before:
            self.note(start, f"a loop: {turns} {'turn is' if turns == 1 else 'turns are'} read, in order")
        return True

    def _while(self, node: Node) -> bool:
        conditions = node.children_by_field_name("condition")
        until = node.children[0].type == "until"
        for turn in range(_MOST_TURNS):
            holds, unsure = self._asked(list(conditions), node.start_byte, "" if turn else "a loop")
            if holds == until:
                break
            endless = not unsure and all(self.raw(part) in ("true", ":", ";", "\n") for part in conditions)
            if not self._turn(self._body(node)) or unsure or endless:
                break
        return True

    def _function(self, node: Node) -> bool:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            self.shell.functions[self.raw(name)] = (self.source, body)
        return True

    def call(self, name: str, arguments: list[Word]) -> bool:
        """Follow the body of a function."""
        if self.shell.level >= _DEEPEST_LEVEL:
            raise self.shell.budget.fault(f"functions call each other more than {_DEEPEST_LEVEL} deep")
        shell = self.shell
        source, body = shell.functions[name]
        before = self.source, shell.arguments
        self.source, shell.arguments = source, arguments
        self.frames.append({})
        shell.level += 1
        try:
            return self.statement(body)
        except LeaveError as leave:
            if leave.kind != "return":
                raise
            return True
        finally:
            shell.level -= 1
            self.source, shell.arguments = before
            for local, value in self.frames.pop().items():
                if value is None:
                    shell.variables.pop(local, None)
                else:
                    shell.variables[local] = value

    def _error(self, node: Node) -> bool:
        return self.block(node.children)

    _STATEMENTS: ClassVar[Mapping[str, Callable[[Commands, Node], bool]]] = MappingProxyType(
        {
            "command": _command,
            "variable_assignment": _assignments,
            "variable_assignments": _assignments,
            "declaration_command": _declaration,
            "unset_command": _unset,
            "redirected_statement": _redirected,
            "pipeline": _pipeline,
            "list": _list,
            "negated_command": _negated,
            "compound_statement": _compound,
            "do_group": _compound,
            "subshell": _subshell,
            "test_command": _test,
            "if_statement": _if,
            "case_statement": _case,
            "for_statement": _for,
            "c_style_for_statement": _for_counting,
            "while_statement": _while,
            "function_definition": _function,
            "ERROR": _error,
        }
    )
