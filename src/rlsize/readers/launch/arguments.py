"""Arguments of a program as settings: flags, Hydra overrides, and what stands before the program."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.facts.launch import Setting

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rlsize.facts.launch import Span, Value, Word

_OVERRIDE = re.compile(r"[+~]{0,2}[A-Za-z_][\w.@/-]*=")
_FLAG = re.compile(r"--?[A-Za-z_]")
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_WORDS: dict[str, Value] = {"true": True, "false": False, "null": None, "none": None}
_MORE = re.compile(r"\[@\]$|(?:arg|opt|option|flag|param|override)s$", re.IGNORECASE)
"""Names of variables that hold arguments, not a value."""
_LONGEST = 4096  # characters of a value that may be more than text


def scalar(text: str) -> Value:
    """
    A value as it is written on a command line.

    >>> scalar("True"), scalar("8"), scalar("1e-6"), scalar("'[8, 8]'"), scalar("Qwen/Qwen3-8B")
    (True, 8, 1e-06, [8, 8], 'Qwen/Qwen3-8B')
    """
    bare = text.strip()
    if len(bare) > _LONGEST:
        return text
    if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "'\"":
        bare = bare[1:-1]
    if bare.lower() in _WORDS:
        return _WORDS[bare.lower()]
    if _NUMBER.fullmatch(bare):
        plain = bare.replace("_", "")
        return int(plain) if re.fullmatch(r"[-+]?\d{1,300}", plain) else float(plain)
    if bare[:1] in "[{" and bare[-1:] in "]}":
        try:
            found: Value = json.loads(bare)
        except (ValueError, RecursionError):
            return bare
        return found
    return bare


def settings_of(words: Sequence[Word], prefix: str = "", most: int = sys.maxsize) -> Iterator[Setting]:
    """
    What arguments set, in order.

    Args:
        words: The arguments.
        prefix: What stands before each key.
        most: Values that a flag takes at most; a launcher's take one, and the program may follow.

    Yields:
        A setting for each flag and override; True for a flag without a value, text for several values.
    """
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if _OVERRIDE.match(word.text):
            key, _, value = word.text.partition("=")
            yield from _told(prefix + key, [value], word, word)
        elif _FLAG.match(word.text):
            key, equals, value = word.text.lstrip("-").partition("=")
            values = [value] if equals else []
            first = last = word
            while not equals and at < len(words) and len(values) < most and not _starts(words[at]):
                last = words[at]
                first = last if not values else first
                values.append(last.text)
                at += 1
            yield from _told(prefix + key, values, word, replace(last, span=_joined(first.span, last.span, values)))


def positional(words: Iterable[Word]) -> Iterator[Word]:
    """Arguments before the first flag that are no override: files that configurations lie in, mostly."""
    for word in words:
        if _FLAG.match(word.text):
            return
        if not _OVERRIDE.match(word.text):
            yield word


def _starts(word: Word) -> bool:
    """Whether a word begins a setting of its own, or stands for settings that nobody tells."""
    text = word.text
    if word.unknown and not text:
        return _MORE.search(word.unknown[0]) is not None
    return text == "--" or bool(_OVERRIDE.match(text) or (_FLAG.match(text) and not _NUMBER.fullmatch(text)))


def _joined(first: Span, last: Span, values: list[str]) -> Span:
    """The span of several words that stand side by side; that of the last one where they come of different places."""
    beside = first.file == last.file and last.end - first.start == len(" ".join(values).encode())
    return replace(first, end=last.end) if beside and first != last else last


def _told(key: str, values: list[str], word: Word, last: Word) -> Iterator[Setting]:
    """One setting, without a value where the script does not tell it: no default of the framework stands there."""
    unknown = last.unknown or word.unknown
    if unknown and not any(character.isalpha() for value in values for character in value):
        yield Setting(key, None, last.span if values else word.span, unknown=unknown[0])
        return
    value: Value = True if not values else scalar(values[0]) if len(values) == 1 else " ".join(values)
    yield Setting(key, value, last.span if values else word.span)
