"""A report: what there is to say, in a form that every writer understands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from rlsize.facts.figure import Figure, Value
from rlsize.reports.wording import band, origin_word, shown, words
from rlsize.units import unit_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rlsize.loop.assumed import Assumption
    from rlsize.reports.chart import Picture

Cell: TypeAlias = "Figure | Value"
Side: TypeAlias = Literal["left", "right"]

Level = Literal["error", "failure", "warning", "pass"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """
    The parts of a decision: sentences of each, the most important first; later ones go where there is no room.

    Args:
        take: What is to be done, in detail.
        figures: Keys of the results that a reader decides by.
        yours: How the loop as it was said does beside it.
        why: What the answer follows from.
        sure: How sure it is, and what it is least sure of.
        cheapest: What costs least among what may be as good.
        change: What would change it.
        assumed: What nobody said and that moves the answer, all of which is shown; None where nobody worked it out.
        then: The next command.
        table: Name of the table that is the answer itself, of which the rows around the marked one are shown.
    """

    take: Sequence[str] = ()
    figures: Sequence[str] = ()
    yours: Sequence[str] = ()
    why: Sequence[str] = ()
    sure: Sequence[str] = ()
    cheapest: Sequence[str] = ()
    change: Sequence[str] = ()
    assumed: Sequence[Assumption] | None = None
    then: str = ""
    table: str = ""

    def parts(self, report: Report) -> Iterator[tuple[str, Sequence[str]]]:
        """
        Label and sentences of each part that there is.

        Args:
            report: The answer that this is the decision of.
        """
        known = {figure.key: figure for figure in report.results}
        told = "; ".join(figure_words(known[key]) for key in self.figures if key in known)
        whole = ", ".join(one.told for one in self.assumed or ()) or "nothing that moves it by more than 5 %"
        every: tuple[tuple[str, Sequence[str]], ...] = (
            ("take", self.take),
            ("figures", [told] if told else []),
            ("yours", self.yours),
            ("why", self.why),
            ("sure", self.sure),
            ("cheapest", self.cheapest),
            ("change", self.change),
            ("assumed", [] if self.assumed is None else [whole]),
            ("unused", [report.idle] if report.unused else []),
            ("done", [" ".join(report.done)] if report.done else []),
            ("next", [f"{self.then}; --full shows all" if self.then else "--full shows all"]),
        )
        head = report.headline.lower()
        for label, texts in every:
            new = [text for text in texts if text.lower().removesuffix(".") not in head]  # said once is enough
            if new:
                yield label, new


def figure_words(figure: Figure) -> str:
    """
    A figure in a sentence, with its band and where it comes from.

    >>> from rlsize.facts.figure import Figure
    >>> figure_words(Figure(key="step_seconds", value=75.39, band=(59.94, 105.9), provenance="predicted"))
    'step time 75.39 s (59.94 to 105.9, predicted)'
    >>> figure_words(Figure(key="cost_usd", value=None, missing="--gpu-hour"))
    'cost needs --gpu-hour'
    """
    text = f"{words(figure.key)} {shown(figure, figure.key, '')}"
    if not figure.known:
        return text
    said = [band(figure), origin_word(figure), "" if figure.verified else "unverified"]
    return f"{text} ({', '.join(filter(None, said))})"


class Column(NamedTuple):
    """
    A column of a table.

    Args:
        key: The key of its cells in each row; its ending says the unit.
        title: What stands above it.
        side: Where its cells are aligned; numbers to the right.
        wide: Whether it may wrap when the table is too wide.
        of: What it shows of a thing, for `Table.of`; the attribute of its key's name where None.
        told: What people see in its place, which JSON and CSV leave out; the same where None.
        pasted: Whether people paste its words elsewhere, so that a long one stands whole, below its row.
    """

    key: str
    title: str
    side: Side = "right"
    wide: bool = False
    of: Callable[[Any], Cell] | None = None
    told: Callable[[Any], Cell] | None = None
    pasted: bool = False


class Unseen(NamedTuple):
    """
    A cell that programs read, and people do not see.

    Args:
        key: Its key in each row.
        of: What it holds of a thing; the attribute of its key's name where None.
    """

    key: str
    of: Callable[[Any], Cell] | None = None


_FAR = 50.0  # times: from there on two times are told in a unit each
_SHORT = 1e-3  # seconds below which thousands of a time read worse than its fractions


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """
    Named rows.

    Args:
        title: What the table shows.
        columns: Which cells people see, in order; JSON and CSV carry every cell.
        rows: The cells by key.
        marked: Index of the row that the answer points at.
        note: A line below the table.
        shown: How many rows people see, the first ones; all where None.
        beside: A time that the answer tells, whose unit times of the table take; None where it tells none. [s]

    Cells whose keys begin with `_` are for people only: JSON and CSV leave them out.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Cell], ...]
    marked: int | None = None
    note: str = ""
    shown: int | None = None
    beside: float | None = None

    @classmethod
    def of(
        cls,
        title: str,
        things: Iterable[Any],
        cells: Iterable[Column | Unseen],
        *,
        marked: int | None = None,
        note: str = "",
        shown: int | None = None,
    ) -> Table:
        """
        A row for each thing.

        Args:
            title: What the table shows.
            things: What the rows are about.
            cells: What is told of each, in the order of the columns.
            marked: Index of the thing that the answer points at.
            note: A line below the table.
            shown: How many rows people see.

        >>> table = Table.of("Numbers", [3 + 4j], [Column("real", "x"), Unseen("twice", lambda one: 2 * one.imag)])
        >>> table.rows, len(table.columns)
        (({'real': 3.0, 'twice': 8.0},), 1)
        """
        every = tuple(cells)
        columns = tuple(cell for cell in every if isinstance(cell, Column))
        words = {f"_{cell.key}": cell.told for cell in columns if cell.told is not None}
        rows = tuple(
            {cell.key: getattr(thing, cell.key) if cell.of is None else cell.of(thing) for cell in every}
            | {key: told(thing) for key, told in words.items()}
            for thing in things
        )
        columns = tuple(cell if cell.told is None else cell._replace(key=f"_{cell.key}") for cell in columns)
        return cls(title=title, columns=columns, rows=rows, marked=marked, note=note, shown=shown)

    @property
    def seen(self) -> tuple[Mapping[str, Cell], ...]:
        """The rows that people see."""
        return self.rows[: self.shown]

    def like(self, column: Column) -> float | None:
        """The time whose unit a column's times are told in, as people compare them; None where they lie far apart."""
        if unit_of(column.key) != "s":
            return None
        if self.beside is not None:
            return self.beside
        cells = (row.get(column.key) for row in self.seen)
        values = (cell.value if isinstance(cell, Figure) else cell for cell in cells)
        times = [abs(value) for value in values if isinstance(value, (int, float)) and value]
        if not times or max(times) > _FAR * min(times):
            return None
        return min(times) if min(times) >= _SHORT else max(times)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """
    The answer of one command.

    Args:
        headline: The answer in a sentence.
        results: The figures, in the order in which they are read.
        inputs: What they were worked out from.
        tables: Named rows.
        warnings: What the reader must know before trusting the answer; shown on stderr too.
        notes: What explains the answer.
        chart: The picture.
        no: Whether the answer is no (exit code 1).
        interrupted: Whether it is what there was when the user broke it off (exit code 130).
        quiet: Keys of results that JSON carries and the table leaves out.
        of: What keys of results begin with in JSON, where they are of another loop than the one that was said.
        command: The command that asked; the shell says it where the answer leaves.
        decision: What people see of it at first; None where that is the figures and the first table, cut to a screen.
        whole: Whether people see all of it at first, however long it is: a list that they asked for.
        unused: Sentences on what was said and has no bearing on it; notes say so too.
        done: What was written or is left to do by hand, all of which is shown; notes say so too.
        later: More notes, which take long to find and are looked for only where notes are shown.
    """

    headline: str
    results: tuple[Figure, ...] = ()
    inputs: tuple[Figure, ...] = ()
    tables: Mapping[str, Table] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    chart: Picture | None = None
    no: bool = False
    interrupted: bool = False
    quiet: frozenset[str] = frozenset()
    of: str = ""
    command: str = ""
    decision: Decision | None = None
    whole: bool = False
    unused: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    later: Callable[[], Iterable[str]] = tuple

    @property
    def told(self) -> tuple[Figure, ...]:
        """The results that people see."""
        return tuple(figure for figure in self.results if figure.key not in self.quiet)

    @property
    def idle(self) -> str:
        """What was said and has no bearing on it, in sentences."""
        return " ".join(f"{text.removesuffix('.')}." for text in self.unused)


class Later(Mapping[str, Table]):
    """
    Tables that are made when somebody looks at them.

    Args:
        make: Makes them.
    """

    def __init__(self, make: Callable[[], Mapping[str, Table]]) -> None:
        self._made = cache(make)

    def __getitem__(self, key: str) -> Table:
        return self._made()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._made())

    def __len__(self) -> int:
        return len(self._made())


def tables_of(**tables: Table | None) -> dict[str, Table]:
    """The tables that there are, by their names."""
    return {name: table for name, table in tables.items() if table is not None}


def cell_value(cell: Cell) -> Value:
    """The bare value of a cell."""
    return cell.value if isinstance(cell, Figure) else cell


def without_reasons(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row with empty cells where an input is missing: one column of it says for all of them which."""
    return {key: None if isinstance(cell, Figure) and not cell.known else cell for key, cell in row.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """
    One thing that was looked at.

    Args:
        name: What it is called in a list.
        level: `failure` where the answer is no, `error` where there is none; `warning` and `pass`.
        title: The verdict in a few words.
        message: The verdict with its numbers.
        file: The file that it is about; empty where there is none.
        line: Its line there.
    """

    name: str
    level: Level
    title: str
    message: str
    file: str = ""
    line: int | None = None
