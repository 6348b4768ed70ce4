"""Statements of a script, followed as bash would: conditions, loops, functions, assignments, redirections."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlsize.facts.launch import Word
from rlsize.readers.launch.bash.builtins import simple_command
from rlsize.readers.launch.bash.conditions import double_brackets
from rlsize.readers.launch.bash.grammar import bracket, separated
from rlsize.readers.launch.bash.shell import SHOWN, LeaveError, Sink, plain, secret
from rlsize.readers.launch.bash.source import Source
from rlsize.readers.launch.bash.words import (
    BARE,
    DEFAULT,
    HEREDOC,
    field_of,
    fields_of,
    key_of,
    pattern_of,
    printed,
    text_of,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlsize.readers.launch.bash.grammar import Node, Redirect
    from rlsize.readers.launch.bash.shell import Array, Shell

_MOST_TURNS = 1000
_WORK_OF_STATEMENT = 2000
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[[^\n]*?\])?\+?=", re.ASCII)
_DECLARING = ("declare", "typeset", "local", "export", "readonly")
_TABS = re.compile(r"^\t+", re.MULTILINE)


def statement(shell: Shell, node: Node) -> bool:
    """Follow one statement; whether it succeeds."""
    shell.record.spend(_WORK_OF_STATEMENT)
    follow = _KINDS[node.kind]
    return _redirected(shell, node, follow) if node.redirects else follow(shell, node)


def _block(shell: Shell, node: Node) -> bool:
    status = True
    for part in node.parts:
        status = statement(shell, part)
    return status


# Redirections, pipes, lists


def _redirected(shell: Shell, node: Node, follow: Callable[[Shell, Node], bool]) -> bool:
    target, append, before = None, False, (shell.given, shell.sink)
    for redirect in node.redirects:
        if "<<" in redirect.sign:
            shell.given = _given(shell, redirect)
        elif redirect.sign == "<":
            shell.given = _read_from(shell, redirect)
        elif re.fullmatch(r"1?&?>[>|]?", redirect.sign):
            word = text_of(shell, redirect.start, redirect.end)
            target, append = (None if word.text.startswith("/dev/") else word), ">>" in redirect.sign
    given = shell.given
    sink = shell.sink = Sink(_silent(shell)) if target else shell.sink
    try:
        status = follow(shell, node)
    finally:
        shell.given, shell.sink = before
    if target and sink and sink.pure and sink.words:
        span = given.extent if given else sink.words[0].span
        shell.record.write(target.text, Word(sink.text, span), append=append)
    return status


def _read_from(shell: Shell, redirect: Redirect) -> Source | None:
    """What a command prints, `< <(command)`, or a file of the script's own holds; None where nobody tells."""
    source, start, end = shell.source, redirect.start, redirect.end
    if source.text.startswith("<(", start):
        text = printed(shell, source.part(start + 2, end - 1))
        return None if text is None else Source.made(text and text + "\n", source.span(start, end))
    held = shell.record.files.get(text_of(shell, start, end).text)
    return None if held is None else Source.made(held.text, held.span)


def _given(shell: Shell, redirect: Redirect) -> Source:
    """What a heredoc or `<<<` gives to read."""
    source, start, end = shell.source, redirect.start, redirect.end
    if redirect.plain:
        given = source.part(start, end)
    else:
        string = redirect.sign.endswith("<<<")
        grown = field_of(shell, start, end, BARE if string else HEREDOC)
        given = source.joined([*(chunk[:3] for chunk in grown.chunks), ("\n" if string else "", end, end)])
    return given.changed(_TABS, "", len(given.text)) if redirect.sign.endswith("-") else given


def _silent(shell: Shell) -> bool:
    return shell.sink is not None and shell.sink.silent


def _pipe(shell: Shell, node: Node) -> bool:
    status, given = True, shell.given
    for stage in node.parts:
        sink = shell.sink if stage is node.parts[-1] else Sink(_silent(shell))
        inner = shell.copy()
        inner.sink, inner.given = sink, given
        status = statement(inner, stage)
        told = sink is not None and sink.pure and sink.words
        given = Source.made(sink.text, sink.words[0].span) if sink and told else None
    return status


def _steps(shell: Shell, node: Node) -> bool:
    before, unsure = len(shell.record.outside), shell.unsure
    status = statement(shell, node.parts[0])
    for sign, step in zip(node.signs, node.parts[1:], strict=False):
        shell.unsure = unsure + (len(shell.record.outside) > before)
        if status == (sign == "&&"):
            status = statement(shell, step)
    shell.unsure = unsure
    return status


def _not(shell: Shell, node: Node) -> bool:
    return not statement(shell, node.parts[0])


def _subshell(shell: Shell, node: Node) -> bool:
    try:
        return statement(shell.copy(), node.parts[0])
    except LeaveError:
        return True


# Simple commands and assignments


def _simple(shell: Shell, node: Node) -> bool:
    text, places = shell.source.text, node.words
    shell.record.words(len(places))
    first = next((at for at, place in enumerate(places) if not _ASSIGNMENT.match(text, *place)), len(places))
    if first < len(places) and text[slice(*places[first])] in _DECLARING:
        return _declaration(shell, places[first:])
    words = [field for place in places[first:] for field in fields_of(shell, *place)]
    shell.record.words(len(words))
    names = [text[slice(*place)].partition("=")[0].rstrip("+").partition("[")[0] for place in places[:first]]
    before = {name: dict(shell.variables[name]) for name in names if name in shell.variables}
    for place in places[:first]:
        _assign(shell, *place)
    if not words:
        return True
    here = {name: value for name in names if (value := shell.get(name)) is not None}
    try:
        return simple_command(shell, words, here, places[first][0])
    finally:
        for name in names:
            shell.variables.pop(name, None)
        shell.variables |= before


def _assign(shell: Shell, start: int, end: int) -> None:
    """Follow `NAME=value`, `NAME+=value`, `NAME[key]=value` or `NAME=(...)`."""
    text, at = shell.source.text, start
    while text[at] not in "[+=":
        at += 1
    name, key = text[start:at], None
    if text[at] == "[":
        close = bracket(text, at, end)
        key, at = key_of(shell, name, at + 1, close), close + 1
    append = text.startswith("+", at)
    at += 2 if append else 1
    if text.startswith("(", at) and key is None:
        _assigned(shell, name, _array(shell, name, at, end, append=append))
    else:
        word = text_of(shell, at, max(at, end))
        shell.put(name, word, key or 0, append=append)
        _assigned(shell, name, [word])


def _array(shell: Shell, name: str, start: int, end: int, *, append: bool) -> list[Word]:
    text = shell.source.text
    values: Array = dict(shell.variables.get(name, {})) if append else {}
    place = max((key for key in values if isinstance(key, int)), default=-1) + 1
    for begin, stop in separated(text, start + 1, end - (text[end - 1] == ")")):
        equal = text.find("]=", begin, stop) if text[begin] == "[" else -1
        if equal > 0:
            key = key_of(shell, name, begin + 1, equal)
            values[key] = text_of(shell, equal + 2, stop)
            place = key + 1 if isinstance(key, int) else place
            continue
        for word in words_of(shell, begin, stop):
            values[place] = word
            place += 1
        shell.record.words(len(values))
    shell.record.spend(20 * len(values))
    shell.variables[name] = values
    return list(values.values())


def _assigned(shell: Shell, name: str, words: list[Word]) -> None:
    """Keep what a script without a program sets."""
    record = shell.record
    if not record.programs and len(record.assigned) < record.WORDS:
        record.assigned.append((name, [record.told(word) for word in words]))


def _declaration(shell: Shell, places: list[tuple[int, int]]) -> bool:
    raw = [shell.source.text[slice(*place)] for place in places]
    flags = "".join(text[1:] for text in raw[1:] if text.startswith("-"))
    flags += {"export": "xg", "readonly": "g"}.get(raw[0], "")
    for place, text in zip(places[1:], raw[1:], strict=True):
        assignment = _ASSIGNMENT.match(text)
        if assignment:
            _declare(shell, assignment[1], flags)
            _assign(shell, *place)
            continue
        for word in [] if text.startswith(("-", "+")) else words_of(shell, *place):
            name, sign, value = word.text.partition("=")
            if re.fullmatch(r"\w+", name, re.ASCII):
                _declare(shell, name, flags)
                if sign:
                    shell.put(name, Word(value, word.span))
    return True


def _declare(shell: Shell, name: str, flags: str) -> None:
    if shell.frames and "g" not in flags:
        shell.frames[-1].setdefault(name, shell.variables.get(name))
        shell.variables.pop(name, None)
    if "A" in flags or "a" in flags:
        shell.variables.setdefault(name, {})
    shell.flags[name] = shell.flags.get(name, "") + flags


# Conditions and loops


def _number(shell: Shell, node: Node) -> bool:
    return _calculated(shell, *node.words[0]) not in (0, None)


def _calculated(shell: Shell, start: int, end: int) -> int | None:
    """What arithmetic gives; None where the script does not tell."""
    return shell.number(text_of(shell, start, max(start, end), DEFAULT).text)


def _outside(shell: Shell, before: int) -> str:
    """What was used since then that only the outside can tell."""
    return ", ".join(list(dict.fromkeys(shell.record.outside[before:]))[:SHOWN])


def _asked(shell: Shell, node: Node, what: str) -> tuple[bool, bool]:
    """Whether a condition holds, and whether that hangs on the outside, which a note says."""
    before = len(shell.record.outside)
    status = statement(shell, node)
    names = _outside(shell, before)
    if names and what:
        at = node.start
        holds = "holds" if status else "does not hold"
        shell.note(at, f"{what} hangs on {names}, unknown here: read as if it {holds}")
    return status, bool(names)


def _guarded(shell: Shell, node: Node, unsure: bool) -> bool:
    shell.unsure += unsure
    try:
        return statement(shell, node)
    finally:
        shell.unsure -= unsure


def _if(shell: Shell, node: Node) -> bool:
    """Follow the branch that bash takes."""
    any_unsure = False
    for condition, body in zip(node.parts[::2], node.parts[1::2], strict=False):
        holds, unsure = _asked(shell, condition, "a condition")
        any_unsure |= unsure
        if holds:
            return _guarded(shell, body, any_unsure)
    return _guarded(shell, node.parts[-1], any_unsure) if len(node.parts) % 2 else True


def _case(shell: Shell, node: Node) -> bool:
    before = len(shell.record.outside)
    subject = plain(text_of(shell, *node.words[0]).text)
    names = _outside(shell, before)
    for item in node.parts:
        if any(pattern_of(shell, *place).fits(subject) for place in item.words):
            if names:
                raw = " | ".join(shell.source.text[slice(*place)] for place in item.words)[:40]
                shell.note(node.start, f"a case hangs on {names}: branch {raw} is read")
            return _guarded(shell, item.parts[0], bool(names))
    return True


def _turn(shell: Shell, body: Node) -> bool:
    """Follow the body of a loop once; whether the loop goes on."""
    try:
        statement(shell, body)
    except LeaveError as leave:
        if leave.kind not in ("break", "continue"):
            raise
        if leave.number > 1:
            leave.number -= 1
            raise
        return leave.kind == "continue"
    return True


def _for(shell: Shell, node: Node) -> bool:
    name, before = node.signs[0], len(shell.record.programs)
    told = len(node.signs) > 1
    words = [word for place in node.words for word in words_of(shell, *place)] if told else list(shell.arguments)
    shell.record.words(len(words))
    for word in words:
        shell.put(name, word)
        if not _turn(shell, node.parts[0]):
            break
    if len(shell.record.programs) == before:
        return True
    said = [shell.record.told(word) for word in words[:SHOWN]]
    if len(words) > 1:
        hidden = secret(name + " ".join(shell.source.text[slice(*place)] for place in node.words))
        shown = ", ".join(word.text or ", ".join(word.unknown) for word in said)
        over = f"{len(words)} values" if hidden else shown + (", ..." if len(words) > SHOWN else "")
        shell.note(node.start, f"a loop over {over}: every turn is read, in order")
    elif said and said[0].unknown:
        shell.note(node.start, f"a loop over {', '.join(said[0].unknown)}, unknown here: one turn is read")
    return True


def _count(shell: Shell, node: Node) -> bool:
    """`for ((begin; while; step))`."""
    text, places, (at, close) = shell.source.text, [], node.words[0]
    for _ in range(3):
        stop = text.find(";", at, close)
        places.append((at, close if stop < 0 else stop))
        at = min(places[-1][1] + 1, close)
    _calculated(shell, *places[0])
    before, turns = len(shell.record.programs), 0
    holds: int | None = 1
    while turns < _MOST_TURNS and holds is not None:
        holds = _calculated(shell, *places[1]) if text[slice(*places[1])].strip() else 1
        if holds == 0 or (turns and holds is None):
            break
        turns += 1
        if not _turn(shell, node.parts[0]):
            break
        _calculated(shell, *places[2])
    if len(shell.record.programs) > before:
        shell.note(node.start, f"a loop: {turns} {'turn is' if turns == 1 else 'turns are'} read, in order")
    return True


def _while(shell: Shell, node: Node) -> bool:
    if len(node.parts) == 1:  # cut off before its body
        return statement(shell, node.parts[0])
    condition, body = node.parts
    endless = re.fullmatch(r"\s*(?:true|:)[\s;]*do", shell.source.text[condition.start : body.start])
    for turn in range(_MOST_TURNS):
        holds, unsure = _asked(shell, condition, "" if turn else "a loop")
        if holds == (node.kind == "until") or not _turn(shell, body) or unsure or endless:
            break
    return True


def _function(shell: Shell, node: Node) -> bool:
    shell.functions[node.signs[0]] = (shell.source, node.parts[0])
    return True


_KINDS: dict[str, Callable[[Shell, Node], bool]] = {
    "simple": _simple,
    "block": _block,
    "steps": _steps,
    "pipe": _pipe,
    "not": _not,
    "if": _if,
    "for": _for,
    "count": _count,
    "while": _while,
    "until": _while,
    "case": _case,
    "subshell": _subshell,
    "number": _number,
    "test": double_brackets,
    "function": _function,
}
