"""The grammar of the shell: where quotations and words end, and a text as a tree of statements."""

from __future__ import annotations

import re
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING

from rlsize.dataclass import dataclass
from rlsize.readers.launch.nodes import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlsize.readers.launch.bash.source import Source

_TELLING = re.compile(r"[\\'\"`$(){}#<]")
_SKIPPED = re.compile(r"\$'(?:[^\\']|\\.)*'|'[^']*'", re.DOTALL)
_HEREDOC = re.compile(r"<<-?[ \t]*(['\"\\]?)([A-Za-z_][\w.]*)['\"]?")
_IN_QUOTES = ('"', '}"')
_DEEPEST = 1000  # beginnings that wait for their ends
BLANKS = " \t\r\n"


def closed(text: str, start: int, end: int, *, quoted: bool = False, within: str = "") -> int:
    """
    Where what begins at a place ends: a quotation, a substitution, an escape; else the next character.

    Args:
        text: The script.
        start: Where it begins.
        end: Where it must end.
        quoted: Whether the place is within double quotes.
        within: What closes that which began before the place, `)` for one.

    Raises:
        UnreadableError: Nothing closes it, or more is nested in it than anybody writes.
    """
    closers, at = [within] if within else [], start
    while at < end and len(closers) <= _DEEPEST:
        sign, closer = text[at], closers[-1] if closers else '"' if quoted else ""
        passed = None if closer in _IN_QUOTES else _passed(text, at, end, closer)
        step = 1
        if passed:
            at, step = passed, 0
        elif sign == "\\":
            step = 2
        elif closers and sign == closer[0]:
            closers.pop()
        elif sign in '"`':
            closers.append(sign)
        elif text.startswith(("$(", "${"), at):
            closers.append(")" if text[at + 1] == "(" else '}"' if closer in _IN_QUOTES else "}")
            step = 2
        elif sign == "(" and closer == ")":
            closers.append(")")
        at += step
        if not closers:
            return min(at, end)
        telling = _TELLING.search(text, at, end)
        at = telling.start() if telling else end
    raise UnreadableError(start)


def _passed(text: str, at: int, end: int, closer: str) -> int | None:
    """Where text that says nothing to the shell ends: single quotes, comments, heredocs; None where none begins."""
    sign = text[at]
    if sign in "$'" and (quotation := _SKIPPED.match(text, at, end)):
        return quotation.end()
    if sign == "'":
        raise UnreadableError(at)
    if closer == ")" and sign == "#" and text[at - 1].isspace():
        return (text.find("\n", at, end) + 1) or end
    if closer == ")" and sign == "<" and (heredoc := _HEREDOC.match(text, at, end)):
        finish = text.find("\n" + heredoc[2] + "\n", heredoc.end(), end)
        return finish + 1 + len(heredoc[2]) if finish >= 0 else heredoc.end()
    return None


def after(text: str, at: int, end: int, *, quoted: bool = False) -> int:
    """Where what begins at a place ends, as `closed` has it; the end where nothing closes it."""
    try:
        return closed(text, at, end, quoted=quoted)
    except UnreadableError:
        return end


@cache
def _signs(signs: str) -> re.Pattern[str]:
    return re.compile(rf"[\\'\"`${re.escape(signs)}]")


def until(text: str, at: int, end: int, signs: str, step: Callable[[str, int, int], int] = after) -> int:
    """Where one of some signs stands in no quotation or substitution; the end where none does."""
    pattern = _signs(signs)
    while found := pattern.search(text, at, end):
        if found[0] in signs:
            return found.start()
        at = step(text, found.start(), end)
    return end


def bracket(text: str, at: int, end: int) -> int:
    """Where the bracket stands that closes the one at a place."""
    at = until(text, at + 1, end, "[]")
    while at < end and text[at] == "[":
        at = until(text, bracket(text, at, end) + 1, end, "[]")
    return at


def separated(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the words of a list stand; comments and line ends between them say nothing."""
    between = re.compile(r"(?:[ \t\r\n]|\\\n|#[^\n]*)+")
    at = start
    while at < end:
        blank = between.match(text, at, end)
        begin = blank.end() if blank else at
        at = until(text, begin, end, BLANKS)
        if at > begin:
            yield begin, at - 2 * text.endswith("\\\n", begin, at)


@dataclass(slots=True)
class Redirect:
    """
    Where a command reads or writes.

    Args:
        sign: `>`, `2>`, `<<` and so on.
        start: Where the file's name begins, the word of `<<<`, or the text of a heredoc.
        end: Where it ends.
        plain: Whether the text of a heredoc stands for itself, as its mark is quoted.
    """

    sign: str
    start: int
    end: int
    plain: bool = False


@dataclass(slots=True)
class Node:
    """
    A statement.

    Args:
        kind: `simple`, `block`, `steps` (`a && b`), `pipe`, `not`, `if`, `for`, `count` (`for ((...))`), `while`,
            `until`, `case`, `item` (of a case), `subshell`, `number` (`((...))`), `test` (`[[...]]`) or `function`.
        start: Where it begins.
        words: Where its words stand: those of a command or test, values of a loop, patterns of an item, expressions.
        parts: Statements in it: conditions and bodies in turn.
        signs: Before each part after the first, `&&` or `||`; the name of a loop's variable or of a function.
        redirects: Where it reads or writes.
    """

    kind: str
    start: int
    words: list[tuple[int, int]] = field(default_factory=list)
    parts: list[Node] = field(default_factory=list)
    signs: list[str] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)


_DEEPEST = 60
_WORK_OF_SIGN = 8
_OPENS, _SHARE_OF_REST = tuple("'\"`$(["), 4  # what is open was looked for to the end
_ENDS = BLANKS + ";&|()<>"
_BLANKS = re.compile(r"(?:[ \t\r]|\\\n)*(?:(?<![^\s;&|()<>])#[^\n]*)?")
_CLOSING = re.compile(r"(?:(?:then|elif|else|fi|do|done|esac|\})(?=[\s;&|()<>]|\Z))|\)|;;&?|;&")
_CLOSED = {
    "if": ("then",),
    "elif": ("then",),
    "then": ("elif", "else", "fi"),
    "else": ("fi",),
    "while": ("do",),
    "until": ("do",),
    "do": ("done",),
    "{": ("}",),
    "(": (")",),
}
"""What closes the statements after a word; some of that opens the next ones."""
_ITEM = (";;", ";&", ";;&", "esac")
_NEGATED = re.compile(r"(!|time)(?=[ \t])(?:[ \t]+-p(?=[ \t]))?[ \t]*")
_NAME = r"([^\s;&|()<>$'\"`=]+)"
_FUNCTION = re.compile(rf"function[ \t]+{_NAME}(?:[ \t]*\([ \t]*\))?|{_NAME}[ \t]*\([ \t]*\)")
_KEYWORD = re.compile(r"(if|while|until|for|select|case|\{|\[\[)(?=\s|\Z|\(\()|\(\(?")
_REDIRECT = re.compile(r"((?:[0-9]+|\{\w+\})?(?:&>>?|<<<|<<-?|<>|>>|>\||[<>]&|[<>](?!\()))(?:[ \t]|\\\n)*")
_GROUPED = re.compile(r"(?:[A-Za-z_]\w*(?:\[[^\n]*\])?\+?=|[^\n]*[?*+@!])\(|[<>]\(", re.ASCII)
"""What parentheses follow that belong to a word: `A=(...)`, `@(a|b)`, `<(...)`."""


class Grammar:
    """
    Reads a text as statements.

    Args:
        source: The text.
        unread: Told of each place that is no shell; what stands on the rest of its line is passed over.
        spend: Told of work.
    """

    def __init__(self, source: Source, unread: Callable[[int], None], spend: Callable[[int], None]) -> None:
        self.text, self.unread, self.spend = source.text, unread, spend
        self.at, self.end = 0, len(source.text)
        self.heredocs: list[tuple[Redirect, str]] = []
        self.awaited: list[tuple[str, ...]] = []
        spend(_WORK_OF_SIGN * sum(map(self.text.count, "\\'\"`$;&|\n")))

    def block(self, *closers: str) -> Node:
        """Statements up to a word that closes them, which is left to read; or to the end."""
        found = Node("block", self.at)
        self.awaited.append(closers)
        if len(self.awaited) > _DEEPEST:
            raise RecursionError
        while self._lines() < self.end:
            closing = self._closing()
            if any(closing in ones for ones in self.awaited):
                break
            try:
                found.parts.append(self._steps())
                self._ended()
            except UnreadableError as error:
                self.unread(error.at)
                if self.text.startswith(_OPENS, error.at):
                    self.spend((self.end - error.at) // _SHARE_OF_REST)
                self.at = self.text.find("\n", max(self.at, error.at), self.end)
                self.at = self.end if self.at < 0 else self.at
        self.awaited.pop()
        return found

    def _ended(self) -> None:
        """What ends a statement."""
        if self._blank() < self.end and self.text[self.at] not in ";&\n" and not self._closing():
            raise UnreadableError(self.at)
        self.at += self.text.startswith("&", self.at)

    def _closing(self, *wanted: str, start: int | None = None) -> str:
        """The closing word that stands here; with a start it is one of those wanted and passed, else that is told."""
        found = _CLOSING.match(self.text, self.at)
        closing = found[0] if found else ""
        if start is not None:
            if closing not in wanted:
                self.unread(start)
                return ""
            self.at += len(closing)
        return closing

    def _clauses(self, start: int, opening: str) -> list[Node]:
        """Statements after a word, after what closes them, and so on."""
        found = []
        while opening in _CLOSED:
            found.append(self.block(*_CLOSED[opening]))
            opening = self._closing(*_CLOSED[opening], start=start)
        return found

    def _blank(self) -> int:
        """Pass over blanks and a comment."""
        found = _BLANKS.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.at

    def _lines(self) -> int:
        """Pass over blanks, comments, ends of lines and of statements; texts of heredocs follow the first line."""
        while self._blank() < self.end and self.text[self.at] in ";\n" and not self._closing():
            self.at += 1
            if self.text[self.at - 1] == "\n":
                self._heredocs()
        return self.at

    def _heredocs(self) -> None:
        for redirect, mark in self.heredocs:
            tabs = r"\t*" if "-" in redirect.sign else ""
            found = re.compile(rf"^{tabs}{re.escape(mark)}$", re.MULTILINE).search(self.text, self.at)
            redirect.start, redirect.end = self.at, found.start() if found else self.end
            self.at = found.end() if found else self.end
        self.heredocs.clear()

    def _steps(self) -> Node:
        """`a && b || c`."""
        found = Node("steps", self.at, parts=[self._pipe()])
        while self.text.startswith(("&&", "||"), self._blank()):
            found.signs.append(self.text[self.at : self.at + 2])
            self.at += 2
            if self._lines() < self.end:
                found.parts.append(self._pipe())
        return found if found.signs else found.parts[0]

    def _pipe(self) -> Node:
        found, negated = Node("pipe", self.at), False
        while mark := _NEGATED.match(self.text, self.at):
            negated ^= mark[1] == "!"
            self.at = mark.end()
        found.parts.append(self._command())
        while self.text.startswith("|", self._blank()) and not self.text.startswith("||", self.at):
            self.at += 2 if self.text.startswith("|&", self.at) else 1
            self._lines()
            found.parts.append(self._command())
        piped = found if len(found.parts) > 1 else found.parts[0]
        return Node("not", found.start, parts=[piped]) if negated else piped

    def _command(self) -> Node:
        start, function, keyword = self.at, _FUNCTION.match(self.text, self.at), _KEYWORD.match(self.text, self.at)
        if self._closing():
            raise UnreadableError(start)
        if function:
            self.at = function.end()
            self._lines()
            return Node("function", start, parts=[self._command()], signs=[function[1] or function[2]])
        if keyword:
            self.at = keyword.end()
            found = self._compound(keyword[0], start)
        else:
            found = Node("simple", start)
        while self._blank() < self.end:
            if self._redirected(found):
                continue
            if keyword or self.text[self.at] in "\n;&|()":
                break
            found.words.append(self._word())
        if not (keyword or found.words or found.redirects):
            raise UnreadableError(self.at)
        return found

    def _compound(self, keyword: str, start: int) -> Node:
        match keyword:
            case "((" if expression := self._arithmetic(start):
                return Node("number", start, words=[expression])
            case "(" | "((":
                self.at = start + 1
                return Node("subshell", start, parts=self._clauses(start, "("))
            case "[[":
                return self._test(start)
            case "case":
                return self._case(start)
            case "for" | "select":
                return self._for(start)
        return Node("block" if keyword == "{" else keyword, start, parts=self._clauses(start, keyword))

    def _arithmetic(self, start: int) -> tuple[int, int] | None:
        """The inside of `((...))`; None for parentheses within parentheses."""
        inner = closed(self.text, start + 2, self.end, within=")")
        if not self.text.startswith(")", inner):
            return None
        self.at = inner + 1
        return start + 2, inner - 1

    def _test(self, start: int) -> Node:
        found = Node("test", start)
        for place in separated(self.text, self.at, self.end):
            if self.text.startswith("]]", place[0]):
                self.at = place[0] + 2
                return found
            found.words.append(place)
        raise UnreadableError(start)

    def _for(self, start: int) -> Node:
        self._blank()
        if self.text.startswith("((", self.at):
            found = Node("count", start, words=[self._arithmetic(self.at) or (self.at, self.at)])
        else:
            found = Node("for", start, signs=[self.text[slice(*self._word())]])
            self._lines()
            if re.compile(r"in(?=[\s;])").match(self.text, self.at):
                self.at += 2
                found.signs.append("in")
                while self._blank() < self.end and self.text[self.at] not in "\n;&|()<>":
                    found.words.append(self._word())
        if self.text.startswith("{", self._lines()):
            self.at += 1
            found.parts = self._clauses(start, "{")
        else:
            self._closing("do", start=start)
            found.parts = self._clauses(start, "do")
        return found

    def _case(self, start: int) -> Node:
        self._blank()
        found = Node("case", start, words=[self._word()])
        if not self.text.startswith("in", self._lines()):
            raise UnreadableError(start)
        self.at += 2
        mark = ";;"
        while mark not in ("", "esac") and self._lines() < self.end and self._closing() != "esac":
            item = Node("item", self.at)
            self.at += self.text.startswith("(", self.at)
            while not item.words or self.text.startswith("|", self._blank()):
                self.at += bool(item.words)
                self._blank()
                item.words.append(self._word())
            self._closing(")", start=item.start)
            item.parts.append(self.block(*_ITEM))
            found.parts.append(item)
            mark = self._closing(*_ITEM, start=start)
        if mark not in ("", "esac"):
            self._closing("esac", start=start)
        return found

    def _redirected(self, node: Node) -> bool:
        """Whether a redirection stands here, which the node takes."""
        mark = _REDIRECT.match(self.text, self.at)
        if mark is None:
            return False
        self.at = mark.end()
        redirect = Redirect(mark[1], *self._word())
        node.redirects.append(redirect)
        if re.fullmatch(r"[0-9]*<<-?", mark[1]):
            raw = self.text[redirect.start : redirect.end]
            redirect.plain = bool(re.search(r"['\"\\]", raw))
            redirect.start = redirect.end
            self.heredocs.append((redirect, re.sub(r"['\"\\]", "", raw)))
        return True

    def _word(self) -> tuple[int, int]:
        start = self.at
        at = until(self.text, start, self.end, _ENDS, self._closed)
        while grouped := self.text.find("(", at, at + 2) + 1:
            if not _GROUPED.fullmatch(self.text, start if self.text[at] == "(" else at, grouped):
                break
            at = until(self.text, self._closed(self.text, grouped, self.end, within=")"), self.end, _ENDS, self._closed)
        if at == start:
            raise UnreadableError(start)
        self.at = at - 2 * self.text.endswith("\\\n", start, at)
        return start, self.at

    def _closed(self, text: str, at: int, end: int, within: str = "") -> int:
        """Where a part of a word ends; the end of the text where a quotation or list is cut off."""
        try:
            return closed(text, at, end, within=within)
        except UnreadableError:
            if not within and text[at] not in "'\"":
                raise
            self.unread(at)
            return end
