"""
Any text with keys and numbers: `k:v - k:v`, `Phase: 6.35s`, printed dicts, bullets, tables, JSON, one or many lines.

What is written on a line is a part of a record; parts are put together by the number of their step, or until a key
comes again. Of a line without its break the last number may be cut: it is used where a unit or a bracket closes it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlsize.readers.logs.figures import COMMA, CUT_NUMBER, Row
from rlsize.readers.logs.forms import Form
from rlsize.readers.logs.names import is_time, words
from rlsize.readers.logs.numbers import decimal, doubtful, flat_numbers, json_object
from rlsize.readers.logs.source import Cursor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.readers.logs.figures import Skips
    from rlsize.readers.logs.source import Blocks

_LONGEST = 256 * 2**10
_NUMBER = r"[-+]?(?:\d[\d,]*+(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?|[-+]?(?:nan|inf|NaN|Infinity)"
_KEY = r"[A-Za-z_][\w./@%()-]{0,150}+(?: [A-Za-z(&][\w./@%()-]{0,60}+){0,7}"
_UNITS = {"s": 1.0, "sec": 1.0, "secs": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "min": 60.0, "h": 3600.0}
_DURATION = r"(?:(\d++)h ?)?(\d++)m(?:in)? ?(\d++(?:\.\d++)?)s\b|(\d{1,3}):(\d\d):(\d\d(?:\.\d++)?)(?![\d:])"
_UNIT = r"( ?)(%|[A-Za-z]{1,8}(?:/[A-Za-z]{1,8}){0,2}+(?![\w:=(]))?"
_PAIR = re.compile(
    rf"""(?:'([^'\n]{{1,200}})'|"([^"\n]{{1,200}})"|(?<![\w./@%-])({_KEY}))(?:\s?[:=]\s{{0,20}}|\ took\ )"""
    rf"""(?:{_DURATION}|(?:[A-Za-z_][\w.]{{0,30}}\()?['"]?({_NUMBER})(?:['"]|(?:,[^()\n]{{0,30}})?\)|{_UNIT}(?![\w(]|-\d|:\d)))"""
)
_CELL = re.compile(rf"({_KEY}):?\s{{1,8}}(?:{_DURATION}|({_NUMBER}){_UNIT}(?: \([^()]*\))?)")
_STEP = r"(?:global[ _]?step|step|iteration|iter)"
_HEAD = re.compile(rf"(?<![\w/.])(?:{_STEP})\b[\s#:=]{{0,12}}\[?(\d{{1,15}})(?![\d.%\w-])", re.IGNORECASE)
_ALONE = re.compile(rf"[\W_]*(?:[A-Za-z]+ ){{0,2}}{_STEP}\b\W{{0,4}}\d+(?:\s*/\s*\d+)?(?: done)?\W*", re.IGNORECASE)
_PROCESS = re.compile(r"^\([^()]{1,100} pid=[^()]{1,60}\) ?")
_BAR = re.compile(r"\d+%\|.*?(?:it/s|s/it|$)")
_COST = re.compile(r"'(\w+)', time cost: ")  # SkyRL's timers
_ENGINE = re.compile(r"est\. speed input: |generation throughput: |gen throughput \(token/s\): ")
_LIKELY = re.compile(r"[|│]|[:=] ?[^ ]{0,40}\d|took \d|:\s+\d|[a-z] \d[\d.]*m?s\b|(?i:step|iter)[^ ]{0,20} ?.{0,3}\d")
_GOES_ON = re.compile(r"[\d.]*\d(?: - |, ?['\"]|\}|$)")
_HEADLESS = re.compile(r"[\w/]*:[^ ]* - ")
_WHOLE = re.compile(rf"\s*[\w/@.-]+:(?:{_NUMBER})\)?")
_ENDING = re.compile(r"\d ?[a-z]{1,7}\W{0,3}$")
_SAYS = {"message", "msg", "event", "text", "log"}
_APART = re.compile(r"^[\W\d_]*|[,;] +")
_TABLE = re.compile("[│|]")
_CLOSED = re.compile(r"\d[^\d.,eE]\D{0,2}$|\}\s*$")  # a unit, a quotation mark or a bracket follows the last number


def rows(blocks: Blocks, skips: Skips) -> Iterator[Row]:
    """The lines of a stream that have pairs."""
    head: list[str] = []
    for text, place, ended in _lines(Cursor(blocks, skips)):
        if not _LIKELY.search(text) or _ENGINE.search(text):
            continue
        pairs, head = _table(text, head) if _TABLE.search(text) else (_object(text) or _pairs(text), [])
        if pairs and not ended and not _CLOSED.search(text):
            pairs = pairs[:-1]
            skips.add(CUT_NUMBER, place)
        values: dict[str, float] = {}
        for key, value, said in pairs:
            if doubtful(said) and (is_time(key) or value is None):
                skips.add(COMMA, place)
            elif value is not None:
                values.setdefault(key, value)
        step = _step(text)
        if values or (step is not None and _ALONE.fullmatch(_PROCESS.sub("", text))):
            yield Row(float(step[1]) if step else None, values, place)


def _step(text: str) -> re.Match[str] | None:
    """Where a line has its step; what stands behind a colon may be the function and line of a logger."""
    found = _HEAD.search(text)
    placed = found is not None and text[found.start() - 1 : found.start()] == ":"
    return (_HEAD.search(text, found.end()) if found is not None and placed else None) or found


def _lines(cursor: Cursor) -> Iterator[tuple[str, str, bool]]:
    """Lines without progress bars; those that a narrow terminal broke, joined again."""
    held: tuple[str, str, bool] | None = None
    while (line := cursor.line()) is not None:
        for shown in line.text.split("\r"):
            text = _BAR.sub(" ", shown) if "%|" in shown else shown
            if len(text) > _LONGEST:
                continue
            text = _COST.sub(r"\1: ", text)
            if held is not None and _broken(held[0], text):
                held = held[0] + text, held[1], line.ended
                continue
            if held is not None:
                yield held
            held = text, line.place, line.ended
    if held is not None:
        yield held


def _broken(before: str, text: str) -> bool:
    """Whether a line goes on in the next: with the rest of its last number, or with the rest of a key."""
    if len(before) > _LONGEST or not (any(mark in before for mark in (" - ", ", '", ', "'))):
        return False
    last = before.rsplit(" - ", 1)[-1]
    return bool(_GOES_ON.match(text) or (" - " in before and _HEADLESS.match(text) and not _WHOLE.fullmatch(last)))


def _object(text: str) -> list[tuple[str, float | None, str]]:
    """The pairs of what a JSON object on a line says in words, as loggers and journald write it; else its numbers."""
    start = text.find('{"')
    if start < 0:
        return []
    try:
        found, _ = json_object(text, start)
    except ValueError:
        return []
    said = (value for key, value in found.items() if key.lower() in _SAYS and isinstance(value, str))
    pairs = [pair for value in said for pair in _pairs(value)]
    return pairs or [(key, value, "") for key, value in flat_numbers(found).items()]


def _pairs(text: str) -> list[tuple[str, float | None, str]]:
    """The pairs of a line: key, number, and how it is written."""
    return [_of_match(found) for found in _PAIR.finditer(text)] or _spoken(text)


def _spoken(text: str) -> list[tuple[str, float | None, str]]:
    """The pairs of a line that is nothing but names and times: `step 3: rollout 60.5s, train 30.2s`."""
    if not _ENDING.search(text, max(0, len(text) - 20)):
        return []
    step = _step(text)
    cells = [_CELL.fullmatch(cell) for cell in _APART.split(text[step.end() :] if step else text) if cell]
    found = [cell for cell in cells if cell is not None and (cell.groups()[-1] or "").lower() in _UNITS]
    return [_of_match(cell) for cell in found] if len(found) == len(cells) else []


def _of_match(found: re.Match[str]) -> tuple[str, float | None, str]:
    """The pair that a pattern found: the last nine of its groups are its number."""
    return _pair(next(filter(None, found.groups())), found.groups()[-9:])


def _pair(key: str, said: tuple[str | None, ...]) -> tuple[str, float | None, str]:
    """A key with its unit, and its number in seconds where it is a time."""
    *clock, text, gap, unit = said
    if text is None:
        parts = [float(part or 0) for part in (clock[:3] if clock[1] else clock[3:])]
        return _timed(key), 3600 * parts[0] + 60 * parts[1] + parts[2], ""
    text = text.rstrip(",")
    value = decimal(text)
    scale = _UNITS.get((unit or "").lower())
    if not unit or value is None:
        pass
    elif unit == "%":
        value *= 1.0 if "%" in key else 0.01
    elif scale is not None:
        value *= 1.0 if {"ms", "us"} & {*words(key)} else scale
        key = _timed(key)
    elif "/" in unit:
        key = key if unit in key else f"{key} ({unit})"
    elif not gap:  # 7B and 3x are no numbers
        value, text = None, ""
    return key, value, text


def _timed(key: str) -> str:
    """A key that says that it is a time."""
    return key if is_time(key) else f"{key} (s)"


def _table(text: str, head: list[str]) -> tuple[list[tuple[str, float | None, str]], list[str]]:
    """The pairs of a table's row, and the names of its columns, if it has some."""
    cells = [cell.strip() for cell in _TABLE.split(text)]
    cells = [cell for cell in cells if cell]
    numbers = [decimal(cell) for cell in cells]
    if head and len(head) == len(cells) and all(number is not None for number in numbers):
        return list(zip(head, numbers, cells, strict=True)), head
    named = [(_CELL.fullmatch(cell), cell) for cell in cells]
    found = [pair for one, cell in named for pair in ([_of_match(one)] if one else _pairs(cell))]
    if found:
        return found, []
    pairs = list(zip(cells[::2], cells[1::2], strict=False))
    if pairs and all(number is not None for number in numbers[1::2]) and all(number is None for number in numbers[::2]):
        return [(key, decimal(cell), cell) for key, cell in pairs], []
    rule = not any(character.isalnum() for character in text)
    return [], head if rule else cells if all(number is None for number in numbers) else []


FORM = Form(
    name="keys and numbers", rows=rows, marks=(b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7", b"8", b"9"), loose=True
)
