"""The text of a shell script with the places of its characters, mended where pasting broke it."""

from __future__ import annotations

import re
import shlex
from array import array
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from rlsize.facts.launch import Span, Word
from rlsize.readers.launch.nodes import Places

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(frozen=True, slots=True)
class Source:
    """
    A text to read, and which characters of a file each of its own stands for.

    Args:
        text: The text.
        starts: Of each character, the first one of the file that it stands for.
        ends: Of each character, the one after the last.
        places: Places in the file.
        whole: What all of it stands for, where it was put together: an output, a variable.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    places: Places
    whole: Span | None = None

    @classmethod
    def of(cls, text: str, name: str) -> Source:
        """A file."""
        return cls(text, range(len(text)), range(1, len(text) + 1), Places(text, name))

    @classmethod
    def made(cls, text: str, span: Span) -> Source:
        """A text that stands nowhere as it is, and comes from a place."""
        return cls(text, (), (), Places("", span.file), span)

    def span(self, start: int, end: int) -> Span:
        """The bytes of the file that a part of the text stands for."""
        return self.whole or self.places.span(*self._stood_for(start, end))

    @property
    def extent(self) -> Span:
        """The bytes of the file that all of it stands for."""
        return self.span(0, len(self.text))

    def part(self, start: int, end: int) -> Source:
        """A part of the text as a text of its own."""
        cut = slice(start, end)
        return replace(self, text=self.text[cut], starts=self.starts[cut], ends=self.ends[cut])

    def joined(self, parts: Iterable[tuple[str, int, int]]) -> Source:
        """Parts, and texts in the place of parts, as one text."""
        texts: list[str] = []
        starts, ends = array("L"), array("L")
        for text, start, end in parts:
            texts.append(text)
            if self.whole:
                continue
            if text == self.text[start:end]:
                starts.extend(self.starts[start:end])
                ends.extend(self.ends[start:end])
            else:
                first, last = self._stood_for(start, end)
                starts.extend([first] * len(text))
                ends.extend([last] * len(text))
        return replace(self, text="".join(texts), starts=starts, ends=ends)

    def changed(self, pattern: re.Pattern[str], put: str, most: int) -> Source:
        """The text with what a pattern finds replaced, groups and all, which goes on standing for what it replaces."""
        parts, at = [], 0
        for found in islice(pattern.finditer(self.text), most):
            start, end = found.span()
            parts += [(self.text[at:start], at, start), (found.expand(put), start, end)]
            at = end
        return self.joined([*parts, (self.text[at:], at, len(self.text))]) if parts else self

    def _stood_for(self, start: int, end: int) -> tuple[int, int]:
        if not self.starts:
            return 0, 0
        begin = self.starts[start] if start < len(self.starts) else self.ends[-1]
        return begin, max(begin, self.ends[min(end, len(self.ends)) - 1] if end > start else begin)


_CONTINUES = r"[ \t]*(?:-|[+~]{0,2}(?=[^=\s]*[a-z.])[A-Za-z_][\w.@/\[\]-]*=|\"?\$\{\w+\[@\]\}|(?:\\\\?&&))"
"""How a line begins that goes on from a command: an option, key=value (not an assignment: NAME=), an array."""

_MOST_MENDS = 200_000
_MENDS = (
    (re.compile(r"\A\ufeff"), "", ""),
    (re.compile(r"\r(?=\n|\Z)"), "", ""),
    # the shell's second prompt, or a quotation in a mail
    (re.compile(rf"^>[ \t]+(?=(?:python3?|torchrun|accelerate|uv|ray|srun)[ \t]|{_CONTINUES})", re.MULTILINE), "", ""),
    (
        re.compile(rf"(?<=\\)[ \t]+(?:#[^\n]*)?(?=\n{_CONTINUES})"),
        "",
        "blanks after a backslash end the command in bash: the next line is read as going on",
    ),
    (
        re.compile(rf"(?<=\\\n)(?:[ \t]*(?:#[^\n]*)?\n)+(?={_CONTINUES})"),
        "",
        "a blank line or comment ends the command in bash: the lines after it are read as going on",
    ),
    (re.compile(r"(?<![^\s\"'(])[–—]-?(?=[A-Za-z])"), "--", "a typographic dash is read as --"),
    # what a template is filled with: a parameter of a workflow, or what nobody tells
    (re.compile(r"\$?\{\{[ =]*(?:[\w-]+\.)*parameters\.(\w+)[ ]*\}\}"), r"${\1}", ""),
    (re.compile(r"\$?\{\{[ -]*[\w.]*[A-Za-z]\.\w[^{}\n]*\}\}"), "${template}", ""),
)


def mended(source: Source, notes: list[str], within: str = "") -> Source:
    """
    A script as it was meant: Windows line endings, broken continuations and typographic dashes put right.

    Args:
        source: The script.
        notes: What was put right is added here.
        within: How a note says which file it is about.

    Returns:
        The text to read, whose places are those of the file.
    """
    for pattern, put, note in _MENDS:
        if note:
            found = islice(pattern.finditer(source.text), _MOST_MENDS)
            lines = dict.fromkeys(source.span(one.start(), one.end()).line for one in found)
            notes += [f"{within}line {line}: {note}" for line in lines]
        source = source.changed(pattern, put, _MOST_MENDS)
    return source


_HEADER = re.compile(r"^#(SBATCH|PBS|BSUB)[ \t]+([^\n]*)", re.MULTILINE)
_OPTION = re.compile(r"(?:--([\w-]+)(?:=|[ \t]+(?!-)|(?=\s|$))|-(\w)[ \t]*=?)(\"[^\"]*\"|'[^']*'|(?!-)[^\s#]+|)")
_MOST_OPTIONS = 100
_LONG = {
    "SBATCH": "N=nodes n=ntasks G=gpus c=cpus-per-task t=time p=partition J=job-name o=output e=error A=account "
    "w=nodelist C=constraint q=qos a=array D=chdir x=exclude",
    "PBS": "N=job-name q=queue A=account o=output e=error",
    "BSUB": "n=ntasks q=queue J=job-name W=time o=output e=error",
}
_VARIABLES = {
    "SLURM_NNODES": "nodes",
    "SLURM_JOB_NUM_NODES": "nodes",
    "SLURM_GPUS_ON_NODE": "gpus-per-node",
    "SLURM_GPUS_PER_NODE": "gpus-per-node",
    "SLURM_GPUS_PER_TASK": "gpus-per-task",
    "SLURM_GPUS": "gpus",
    "SLURM_NTASKS_PER_NODE": "ntasks-per-node",
    "SLURM_CPUS_PER_TASK": "cpus-per-task",
    "SLURM_NTASKS": "ntasks",
}


def headers_of(source: Source) -> dict[str, Word]:
    """Options of a batch system that stand in comments, by their long names; those of PBS's -l by their own."""
    headers: dict[str, Word] = {}
    for line in _HEADER.finditer(source.text):
        system, options = line.groups()
        long = dict(pair.split("=") for pair in _LONG[system].split())
        for option in islice(_OPTION.finditer(options), _MOST_OPTIONS):
            name = option[1] or long.get(option[2], option[2])
            start, value = line.start(2) + option.start(3), option[3]
            if value[:1] in ("'", '"'):
                start, value = start + 1, value[1:-1]
            resources = list(re.finditer(r"(\w+)=([^,]*)", value)) if (system, name) == ("PBS", "l") else []
            for asked in resources:
                headers[asked[1]] = Word(asked[2], source.span(start + asked.start(2), start + asked.end(2)))
            if not resources:
                headers[name] = Word(value, source.span(start, start + len(value)))
    return headers


def variables_of(headers: dict[str, Word]) -> dict[str, Word]:
    """What Slurm sets because of its headers."""
    said = dict(headers)
    gres = headers.get("gres")
    cards = re.search(r"gpu(?::[\w.-]+)??:(\d+)", gres.text) if gres else None
    for option in said.keys() & {"gpus-per-node", "gpus-per-task", "gpus"}:
        said[option] = replace(said[option], text=said[option].text.rpartition(":")[2])
    if "gpus-per-node" not in said and gres and cards:
        said["gpus-per-node"] = Word(cards[1], gres.span)
    set_here = {
        variable: said[option]
        for variable, option in _VARIABLES.items()
        if option in said and re.fullmatch(r"[0-9]{1,9}", said[option].text)
    }
    nodes, tasks = set_here.get("SLURM_NNODES"), set_here.get("SLURM_NTASKS_PER_NODE")
    if nodes and tasks:
        set_here.setdefault("SLURM_NTASKS", Word(str(int(nodes.text) * int(tasks.text)), nodes.span))
    return set_here


def script_in(text: str, words: Sequence[Word]) -> Source:
    """
    A script inside a file, with its places there.

    Args:
        text: The file's text.
        words: The script as it stands there, or the words of a command that is a list.

    Returns:
        The script. What does not stand in the file as it stands in the script has no place but its beginning.
    """
    data = text.encode()
    parts = [_standing(text, data, word) for word in words]
    if len(parts) == 1:
        return parts[0]
    script, starts, ends = "", array("L"), array("L")
    for part, word in zip(parts, words, strict=True):
        untold = "".join(f"${{{name}}}" for name in word.unknown)
        end = len(part.text)
        quoted = part.joined([*_quoted(part.text), (untold, end, end)])
        script += f"{quoted.text} "
        starts.extend([*quoted.starts, *quoted.starts[-1:]])
        ends.extend([*quoted.ends, *quoted.starts[-1:]])
    return Source(script, starts, ends, parts[0].places)


def _quoted(text: str) -> Iterator[tuple[str, int, int]]:
    """A word as the shell quotes it, in parts that stand for parts of it."""
    if shlex.quote(text) == text:
        yield text, 0, len(text)
        return
    yield "'", 0, 0
    for found in re.finditer("[^']+|'", text):
        yield found[0].replace("'", "'\"'\"'"), *found.span()
    yield "'", len(text), len(text)


def _standing(text: str, data: bytes, word: Word) -> Source:
    """A text with its places where it stands in a file; a word of a list stands for all that makes it there."""
    script, where = word.text, word.span
    at, stop = (len(data[:end].decode(errors="ignore")) for end in (where.start, where.end))
    whole = re.search(r"\s", script) is None
    starts = array("L", [at]) * len(script)
    ends = array("L", [stop if whole else at]) * len(script)
    for line in () if whole else re.finditer(r"[^\n]*\S", script):
        words = [line] if line[0] in text[at:] else re.finditer(r"\S+", line[0])
        for piece in words:
            place = text.find(piece[0], at)
            if place >= 0:
                at = place + len(piece[0])
                own = line.start() + (0 if piece is line else piece.start())
                starts[own : own + len(piece[0])] = array("L", range(place, at))
                ends[own : own + len(piece[0])] = array("L", range(place + 1, at + 1))
    return Source(script, starts, ends, Places(text, where.file))
