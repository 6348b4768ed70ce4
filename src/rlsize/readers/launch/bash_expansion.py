"""What the words of a script become: quotes, variables, arithmetic, what `$(...)` is known to print."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rlsize.facts.launch import Word
from rlsize.readers.launch.bash_quoting import Fields, Pattern, after, braced, unescaped
from rlsize.readers.launch.bash_shell import NOWHERE
from rlsize.readers.launch.bash_source import as_text

if TYPE_CHECKING:
    from rlsize.readers.launch.bash_quoting import Field
    from rlsize.readers.launch.bash_shell import Array, Shell
    from rlsize.readers.launch.bash_source import Source

BARE, STRING, HEREDOC, DEFAULT = "bare", "string", "heredoc", "default"
"""Where text stands: in no quotes, in double ones, in a heredoc, after `:-` within double quotes."""

_RUNS = {
    BARE: re.compile(r"[^\\'\"$`]+"),
    STRING: re.compile(r"[^\\\"$`]+"),
    HEREDOC: re.compile(r"[^\\$`]+"),
    DEFAULT: re.compile(r"[^\\\"$`]+"),
}
_SIMPLE = re.compile(r"\$([A-Za-z_]\w*|[0-9@*#?$!-])")
_PARAMETER = re.compile(r"(#(?=[\w@*]))?(!)?([A-Za-z_]\w*|\d+|[@*#?$!-])")
_ALL = re.compile(r"\$(@|\{@[^{}]*\}|\{\w+\[@\][^{}]*\})")
_DEEPEST = 20
_LONGEST = 1 << 15


def shown(text: str) -> str:
    """The name of what nobody can tell, `$(nvidia-smi ...)`: without its arguments, which may hold secrets."""
    found = re.match(r"(\$\(|`|\$\{)?[\s(]*([!#]?[\w./-]{0,40})", text)
    opening, name = (found[1] or "", found[2]) if found else ("", "")
    closing = {"$(": ")", "${": "}", "`": "`"}.get(opening, "")
    return f"{opening}{name}{'' if text == opening + name + closing else ' ...' if opening == '$(' else '...'}{closing}"


def words_of(shell: Shell, source: Source, start: int, end: int) -> list[Word]:
    """
    The words that a word of the script becomes.

    Args:
        shell: What is known.
        source: The script.
        start: Where the word begins.
        end: Where it ends.
    """
    span = source.span(start, end)
    fields = [found for part in braced(source, start, end, shell.budget) for found in fields_of(shell, part)]
    shell.budget.words(len(fields))
    return [found.word(span) for found in fields]


def fields_of(shell: Shell, source: Source) -> list[Field]:
    """The words that a text without braces becomes, and of what parts."""
    fields = Fields(shell.separators, shell.budget)
    _Reading(shell, source, fields).run(0, len(source.text), BARE)
    return fields.finished()


def text_of(shell: Shell, source: Source, start: int, end: int, mode: str = BARE) -> Word:
    """What a part of the script becomes where bash does not split, as in `X=...`; one word."""
    return field_of(shell, source, start, end, mode).word(source.span(start, end))


def pattern_of(shell: Shell, source: Source, start: int, end: int) -> tuple[Pattern, tuple[str, ...]]:
    """A part of the script as a pattern, and what it hangs on that nobody told."""
    found = field_of(shell, source, start, end, BARE)
    return Pattern(found.chunks, shell.budget), tuple(found.unknown)


def field_of(shell: Shell, source: Source, start: int, end: int, mode: str) -> Field:
    """A part of the script where bash does not split, and of what parts it came."""
    fields = Fields(None, shell.budget)
    _Reading(shell, source, fields).run(start, end, mode)
    joined = fields.begun()
    for before in reversed(fields.done):  # "$@" where only one word can be: its words with blanks between
        joined.chunks[:0] = [*before.chunks, before.chunks[-1]._replace(text=" ")] if before.chunks else []
        joined.unknown[:0] = before.unknown
    return joined


class _Reading:
    """One pass over a part of the script, which makes fields grow."""

    def __init__(self, shell: Shell, source: Source, fields: Fields) -> None:
        self.shell, self.source, self.fields = shell, source, fields
        self.text = source.text

    def run(self, at: int, end: int, mode: str, *, split: bool = False) -> None:
        """Read a part; `split`: what stands in no quotes is split too, as after `:-`."""
        self.shell.depth += 1
        if self.shell.depth > _DEEPEST * 3:
            raise self.shell.budget.fault("it nests too deep")
        while at < end:
            found = _RUNS[mode].match(self.text, at, end)
            if found is None:
                at = self._special(at, end, mode)
                continue
            if split and mode == BARE:
                self.fields.split(as_text(found[0]), at, found.end())
            else:
                self.fields.literal(as_text(found[0]), at, found.end(), quoted=mode != BARE)
            at = found.end()
        self.shell.depth -= 1

    def _special(self, at: int, end: int, mode: str) -> int:
        sign = self.text[at]
        if sign == "\\":
            return self._escape(at, end, mode)
        if sign == "'":
            close = (self.text.find("'", at + 1, end) + 1) or end
            inner = self.text[at + 1 : close - (self.text[close - 1] == "'" and close > at + 1)]
            self.fields.literal(as_text(inner), at + 1, at + 1 + len(inner), quoted=True)
            return close
        if sign == '"':
            return self._string(at, end, mode)
        close = after(self.text, at, end, quoted=mode != BARE)
        if sign == "`":
            command = self.source.part(at + 1, max(at + 1, close - 1))
            escaped = re.search(r"\\[\\$`]", command.text)
            self._command(None if escaped else command, at, close, mode)
            return close
        return self._dollar(at, end, close, mode)

    def _escape(self, at: int, end: int, mode: str) -> int:
        following = self.text[at + 1 : at + 2] if at + 1 < end else ""
        if following == "\n":
            return at + 2
        kept = mode != BARE and (following not in '$`"\\' or (mode == HEREDOC and following == '"'))
        if not following or kept:
            self.fields.literal("\\", at, at + 1, quoted=True)
            return at + 1
        if not following.isascii():  # the bytes of one character stay together
            return at + 1
        self.fields.literal(following, at, at + 2, quoted=True)
        return at + 2

    def _string(self, at: int, end: int, mode: str) -> int:
        if mode == DEFAULT:  # quotes within quotes, as in "${X:-"a b"}"
            return at + 1
        close = after(self.text, at, end)
        stop = close - 1 if close > at + 1 and self.text[close - 1] == '"' else close
        # "$@" of nothing is no word at all, "" is an empty one
        if not _ALL.fullmatch(self.text, at + 1, stop):
            self.fields.begun()
        self.run(at + 1, stop, STRING)
        return close

    def _dollar(self, at: int, end: int, close: int, mode: str) -> int:
        following = self.text[at + 1 : at + 2] if at + 1 < end else ""
        if following == "'" and mode == BARE:
            inner = unescaped(self.text[at + 2 : close - 1])
            self.fields.literal(as_text(inner), at, close, quoted=True)
            return close
        if following == '"' and mode == BARE:
            return at + 1
        if following in ("(", "{"):
            self._bracketed(at, close, mode)
            return close
        found = _SIMPLE.match(self.text, at, end)
        if found is None:
            self.fields.literal("$", at, at + 1, quoted=mode != BARE)
            return at + 1
        if found[1] in "@*":
            self.many(self.shell.arguments, found[1] == "*", at, found.end(), mode)
        else:
            self.put(self.named(found[1], found[1]), at, found.end(), mode)
        return found.end()

    def _bracketed(self, at: int, close: int, mode: str) -> None:
        """`${...}`, `$((...))` or `$(...)`."""
        if close - at > _LONGEST:
            _Parameter(self, at, close, mode).untold()
        elif self.text.startswith("${", at):
            _Parameter(self, at, close, mode).read()
        elif self.text.startswith("$((", at) and self.text.endswith("))", at + 3, close):
            inside = text_of(self.shell, self.source, at + 3, close - 2, DEFAULT)
            self.put(self.shell.calculated(inside), at, close, mode)
        else:
            self._command(self.source.part(at + 2, max(at + 2, close - 1)), at, close, mode)

    def named(self, name: str, said: str) -> Word:
        """The value of a variable; unknown where nobody sets it."""
        word = self.shell.get(name)
        if word is None and name.isdigit() and not self.shell.arguments:
            said = f"${said}"
        if word is None or word.unknown:
            self.shell.outside.append(said)
        return Word("", NOWHERE, (said,)) if word is None else word

    def _command(self, inner: Source | None, at: int, close: int, mode: str) -> None:
        unknown = Word("", NOWHERE, (shown(self.text[at:close]),))
        word = unknown if inner is None else self.shell.substitute(inner, self.shell)
        if word.unknown:
            word = unknown
            self.shell.outside.append(unknown.unknown[0])
        self.put(Word(word.text.rstrip("\n"), word.span, word.unknown), at, close, mode)

    def put(self, word: Word, at: int, end: int, mode: str) -> None:
        """Go on with one value, which quotes keep whole."""
        self.fields.value(word, at, end, quoted=mode != BARE)

    def many(self, words: list[Word], joined: bool, at: int, end: int, mode: str) -> None:
        """Go on with `$@` or `$*`, or all of an array."""
        if joined and mode != BARE:
            text = (self.shell.separators[:1]).join(word.text for word in words)
            self.put(Word(text, NOWHERE, tuple(name for word in words for name in word.unknown)), at, end, mode)
        else:
            self.fields.many(words, at, end, quoted=mode != BARE)


class _Parameter:
    """One `${...}`."""

    def __init__(self, reading: _Reading, at: int, close: int, mode: str) -> None:
        self.reading, self.at, self.close, self.mode = reading, at, close, mode
        self.shell, self.source, self.text = reading.shell, reading.source, reading.text
        self.stop = close - 1 if self.text[close - 1] == "}" else close
        self.name, self.rest = "", at + 2
        self.every = self.joined = False
        self.key: int | str | None = None

    def read(self) -> None:
        """Make the fields grow by what it becomes."""
        found = _PARAMETER.match(self.text, self.at + 2, self.stop)
        if found is None:
            self.untold()
            return
        self.name, self.rest = found[3], found.end()
        self._subscript()
        words = self._words()
        if found[2]:
            words = self._indirect(words)
        operator = (
            self.text[self.rest : self.rest + 2] if self.rest < self.stop - 1 else self.text[self.rest : self.stop]
        )
        if found[1]:
            self._length(words)
        elif not operator:
            self._emit(words)
        elif operator[:1] in "-=?+" or (operator[:1] == ":" and operator[1:] in tuple("-=?+")):
            self._default(words, operator if operator[:1] == ":" else operator[:1])
        else:
            self._edited(words, operator)

    def _subscript(self) -> None:
        if self.name in ("@", "*"):
            self.every, self.joined = True, self.name == "*"
        if self.text[self.rest : self.rest + 1] != "[" or self.rest >= self.stop:
            return
        depth, place = 0, self.rest
        while place < self.stop:
            depth += (self.text[place] == "[") - (self.text[place] == "]")
            if depth == 0:
                break
            place = after(self.text, place, self.stop) if self.text[place] in "\\'\"$`" else place + 1
        inner = self.text[self.rest + 1 : place]
        if inner in ("@", "*"):
            self.every, self.joined = True, inner == "*"
        else:
            self.key = key_of(self.shell, self.source, self.name, self.rest + 1, place)
        self.rest = min(place + 1, self.stop)

    def _array(self) -> Array | None:
        return self.shell.array(self.name)

    def _words(self) -> list[Word] | None:
        """The values; None where nobody sets the variable."""
        if self.name in ("@", "*"):
            return self.shell.arguments
        if not self.every and self.key is None:
            word = self.shell.get(self.name)
            return None if word is None else [word]
        values = self._array()
        if values is None:
            return None
        if self.every:
            return list(values.values())
        if isinstance(self.key, int) and self.key < 0 and values:
            self.key += max(values) + 1
        return [values[self.key]] if self.key in values else None

    def _indirect(self, words: list[Word] | None) -> list[Word] | None:
        if self.every:
            return [Word(str(key), NOWHERE) for key in (self._array() or {})]
        name = words[0].text if words else ""
        word = self.shell.get(name) if re.fullmatch(r"\w+", name) else None
        self.name = name or self.name
        return None if word is None else [word]

    def untold(self, words: list[Word] | None = None) -> None:
        """Make the fields grow by what nobody can tell."""
        names = tuple(dict.fromkeys(name for word in words or [] for name in word.unknown))
        names = names or (shown(self.text[self.at : self.close]),)
        self.shell.outside += names
        self.reading.put(Word("", NOWHERE, names), self.at, self.close, self.mode)

    def _emit(self, words: list[Word] | None) -> None:
        if words is None and self.key is not None:  # not the array's first element, which its bare name means
            self.untold([Word("", NOWHERE, (self.name,))])
        elif words is None and self.every:  # any number of words
            self.untold([Word("", NOWHERE, (f"{self.name}[@]",))])
        elif words is None:
            self.reading.put(self.reading.named(self.name, self.name), self.at, self.close, self.mode)
        else:
            if any(word.unknown for word in words):
                self.shell.outside.append(self.name)
            self.reading.many(words, self.joined or not self.every, self.at, self.close, self.mode)

    def _length(self, words: list[Word] | None) -> None:
        if words is None or any(word.unknown for word in words):
            self.untold(words or [Word("", NOWHERE, (self.name,))])
        else:
            length = len(words) if self.every else len(words[0].text)
            self._emit([Word(str(length), NOWHERE)])

    def _default(self, words: list[Word] | None, operator: str) -> None:
        missing = words is None or (self.every and not words)
        if operator[0] == ":" and words is not None:
            missing = not any(word.text or word.unknown for word in words)
        if words is None:
            self.shell.outside.append(self.name)
        start = self.rest + len(operator)
        mode = DEFAULT if self.mode != BARE else BARE
        if operator[-1] == "+":
            if not missing:
                self.reading.run(start, self.stop, mode, split=True)
        elif not missing or operator[-1] == "?":
            self._emit(None if missing else words)
        elif operator[-1] == "=":
            value = text_of(self.shell, self.source, start, self.stop, mode)
            self.shell.put(self.name, value, self.key)
            self._emit([value])
        else:
            self.reading.run(start, self.stop, mode, split=True)

    def _edited(self, words: list[Word] | None, operator: str) -> None:
        if words is None:
            self._emit(None)
            return
        if operator[0] == ":":
            self._slice(words)
            return
        edited = [self._edit(word, operator) for word in words] if operator[0] in "%#/^," else None
        if edited is None or any(word is None for word in edited):
            self.untold()
        else:
            self._emit([word for word in edited if word is not None])

    def _edit(self, word: Word, operator: str) -> Word | None:
        if word.unknown:
            return word
        sign = operator if operator in ("%%", "##", "//", "/#", "/%", "^^", ",,") else operator[0]
        start = self.rest + len(sign)
        if sign[0] in "^,":
            upper, every = sign[0] == "^", len(sign) > 1
            part = word.text if every else word.text[:1]
            changed = (part.upper() if upper else part.lower()) + word.text[len(part) :]
            return Word(changed, word.span) if start >= self.stop else None
        slash = start + (sign == "//" and self.text[start] == "/")  # there a slash begins the pattern
        while sign[0] == "/" and slash < self.stop and self.text[slash] != "/":
            slash = after(self.text, slash, self.stop, quoted=self.mode != BARE)
        pattern, unknown = pattern_of(self.shell, self.source, start, slash if sign[0] == "/" else self.stop)
        if sign[0] == "/":
            put = text_of(self.shell, self.source, min(slash + 1, self.stop), self.stop, BARE)
            unknown += put.unknown
            changed_text = pattern.replaced(word.text, put.text, everywhere=sign == "//", anchor=sign[1:].strip("/"))
        else:
            changed_text = pattern.without(word.text, sign)
        return None if changed_text is None or unknown else Word(changed_text, word.span)

    def _slice(self, words: list[Word]) -> None:
        colon, start = self.rest + 1, self.rest + 1
        while colon < self.stop and self.text[colon] != ":":
            colon = after(self.text, colon, self.stop)
        offset = self._number(start, colon)
        length = self._number(colon + 1, self.stop) if colon < self.stop else None
        if offset is None or (colon < self.stop and length is None) or any(word.unknown for word in words):
            self.untold(words)
            return
        if not self.every:
            text = words[0].text
            begin = max(0, len(text) + offset) if offset < 0 else offset
            until = len(text) if length is None else (len(text) + length if length < 0 else begin + length)
            self._emit([Word(text[begin:until], words[0].span)])
            return
        if self.name in ("@", "*"):
            words = [Word(self.shell.zero, NOWHERE), *words]
        begin = len(words) + offset if offset < 0 else offset
        self._emit(words[begin : None if length is None else begin + length])

    def _number(self, start: int, end: int) -> int | None:
        word = self.shell.calculated(text_of(self.shell, self.source, start, end, DEFAULT))
        return None if word.unknown else int(word.text)


def key_of(shell: Shell, source: Source, name: str, start: int, end: int) -> int | str:
    """The place or key that a subscript names."""
    word = text_of(shell, source, start, end)
    if name in shell.keyed:
        return word.text
    number = shell.calculated(word)
    return word.text if number.unknown else int(number.text)
