"""
What went wrong, where, and what to do about it.

Everything a user can get wrong ends in one of these; the command line prints them and sets the exit code.
"""

from __future__ import annotations

from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class Fault(NamedTuple):
    """
    One thing that is wrong.

    Args:
        what: What is wrong, with the value.
        where: A flag, or file, line and key.
        todo: What to do about it.
    """

    what: str
    where: str = ""
    todo: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\n  {self.todo}" if self.todo else text


class Refused(Exception):  # noqa: N818 (what cannot be predicted is no error of the program)
    """What cannot be predicted: a loop that cannot run, a record that is not graded; its text says why, in one line."""


class RlsizeError(Exception):
    """
    The base of all errors that rlsize raises on purpose: one or more faults, shown together.

    Args:
        faults: Everything that is wrong; a plain string counts as one fault.
    """

    exit_code = 2

    def __init__(self, *faults: Fault | str) -> None:
        self.faults = tuple(Fault(fault) if isinstance(fault, str) else fault for fault in faults)
        super().__init__("\n".join(str(fault) for fault in self.faults))

    @property
    def brief(self) -> str:
        """What is wrong, in a line, without where and what to do."""
        return "; ".join(dict.fromkeys(fault.what for fault in self.faults))


class InputError(RlsizeError):
    """The input is wrong (exit code 2)."""


@contextmanager
def noting(faults: list[Fault]) -> Iterator[None]:
    """Have what is wrong within it noted, and not raised, so that all of it can be told at once."""
    try:
        yield
    except InputError as error:
        faults += error.faults


def refuse(faults: Iterable[Fault]) -> None:
    """
    Go on where nothing is wrong.

    Raises:
        InputError: All that is.
    """
    found = tuple(faults)
    if found:
        raise InputError(*found)


def too_deep(deepest: int, where: str) -> Fault:
    """A text whose values lie within each other more often than anybody writes."""
    return Fault(f"is nested more than {deepest} levels deep", where, "is it the file you meant?")


def not_yaml(error: Any, deepest: int, file: str, place: Callable[[Any], str]) -> Fault:  # noqa: ANN401 (PyYAML has no types)
    """
    What PyYAML says of a text that it cannot read.

    Args:
        error: Its error. Some versions have a maximum of nesting, beyond ours, and meet it before any event tells us.
        deepest: Our own maximum.
        file: Whose text it is.
        place: Where its mark stands in it, if it has one.
    """
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    where = file if mark is None else place(mark)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "is not YAML"
    if "nesting" in problem.lower():
        return too_deep(deepest, where)
    return Fault(f"is not valid YAML: {problem}", where, "mend the line or the one above it")


class DoesNotFitError(RlsizeError):
    """The question was understood, and the answer is no (exit code 1)."""

    exit_code = 1


class UnfinishedError(RlsizeError):
    """The work could not be finished: something did not answer or died on the way (exit code 3)."""

    exit_code = 3


def a_file(kind: str) -> str:
    """
    What a file is, with its article.

    >>> a_file("observation"), a_file("plan")
    ('an observation file', 'a plan file')
    """
    return f"{'an' if kind[:1] in set('aeio') else 'a'} {kind} file"


def nearest(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """
    The known names that look most like `name`, best first.

    >>> nearest("qwen3-23b", ["qwen3-32b", "qwen3-8b", "llama3.1-8b"])
    ['qwen3-32b', 'qwen3-8b']
    """
    lowered = {candidate.lower(): candidate for candidate in known}
    return [lowered[match] for match in get_close_matches(name.lower(), lowered, n=most, cutoff=0.6)]


def suggestion(name: str, known: Iterable[str], places: Iterable[str] = ()) -> str:
    """
    A sentence that offers the nearest names, or all of them where they are few.

    Args:
        name: What was said.
        known: The names that can be said there.
        places: Keys with what they stand below: one that ends like the name is it, said elsewhere.

    >>> suggestion("traner", ["rollout", "trainer"])
    'did you mean trainer?'
    >>> suggestion("xyz", ["rollout", "trainer"])
    'known: rollout, trainer'
    >>> suggestion("gpu", ["engine"], ["cluster.gpu"])
    'did you mean cluster.gpu?'
    """
    names, last = list(known), name.rpartition(".")[2]
    close = [place for place in places if place.rpartition(".")[2] == last][:3] or nearest(name, names)
    if close:
        return f"did you mean {' or '.join(close)}?"
    shown = ", ".join(names[:20])
    return f"known: {shown}" + (f", and {len(names) - 20} more" if len(names) > 20 else "")  # noqa: PLR2004 (a screenful)
