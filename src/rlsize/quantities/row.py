"""A quantity that can be said: its name, unit, limits and meaning, how it is said, and what holds where nobody does."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rlsize.facts.fields import Quantity

if TYPE_CHECKING:
    from collections.abc import Iterable


class Word(NamedTuple):
    """
    One of a few words.

    Args:
        known: The words; the order is the one in which help lists them.
        listed: Whether several of them may be said, as a list.
    """

    known: tuple[str, ...]
    listed: bool = False


class Text(NamedTuple):
    """
    A name or a path.

    Args:
        metavar: What stands for it in help.
        or_yes: Whether yes or no may stand in its place.
        many: Whether its flag may be repeated; the texts are joined with commas then.
    """

    metavar: str = "NAME"
    or_yes: bool = False
    many: bool = False


class Switch(NamedTuple):
    """
    Yes or no.

    Args:
        no: The flag that says no; none where leaving the flag out says it.
    """

    no: str = ""


Kind: TypeAlias = Quantity | Word | Text | Switch


class Row(NamedTuple):
    """
    One quantity.

    Args:
        key: Its name in figures and in JSON; the ending says the unit.
        kind: What it is: a number with unit and limits, a word, a name, or yes or no.
        meaning: One sentence for help, the reference page and the editor's tooltip.
        scenario: Dotted key in a scenario; a section with its dot where the key in it is the row's. Empty where only a
            flag says it.
        flag: The flag that says it; its aliases follow, separated by bars. `--` where it is the key's name. Empty where
            only a scenario says it.
        default: What holds where nobody says; None where nothing does, or where a rule decides.
        why: Why the default is what it is, with its source; a word may go without.
    """

    key: str
    kind: Kind
    meaning: str
    scenario: str = ""
    flag: str = ""
    default: float | str | bool | None = None
    why: str = ""

    @property
    def in_full(self) -> Row:
        """The row with what follows from its key written out."""
        scenario = self.scenario + self.key if self.scenario.endswith(".") else self.scenario
        flag = f"--{self.key.replace('_', '-')}" if self.flag == "--" else self.flag
        usual = isinstance(self.kind, Word) and self.default is not None and not self.why
        return self._replace(scenario=scenario, flag=flag, why=f"default of {flag}" if usual else self.why)

    @property
    def flags(self) -> tuple[str, ...]:
        """The flag and its aliases."""
        return tuple(self.flag.split("|")) if self.flag else ()

    @property
    def said_by(self) -> str:
        """What to name where the quantity is missing: its flag, else its key in a scenario."""
        return self.flags[0] if self.flag else self.scenario

    @property
    def quantity(self) -> Quantity:
        """
        Unit and limits.

        Raises:
            TypeError: It is no number.
        """
        if not isinstance(self.kind, Quantity):
            raise TypeError(f"{self.key} holds no number")
        return self.kind

    @property
    def words(self) -> tuple[str, ...]:
        """The words that it takes; none where it takes no words."""
        return self.kind.known if isinstance(self.kind, Word) else ()


def said_in(section: str, *rows: Row) -> tuple[Row, ...]:
    """Rows of a section of a scenario that are said by their key, there and by a flag, where they do not tell how."""
    return tuple(row if row.said_by else row._replace(scenario=f"{section}.", flag="--") for row in rows)


def by_key(rows: Iterable[Row]) -> dict[str, Row]:
    """
    The rows by their key, in full.

    Raises:
        ValueError: Two rows share a key, or a place in a scenario.
    """
    found: dict[str, Row] = {}
    places: dict[str, str] = {}
    for row in (short.in_full for short in rows):
        if row.key in found:
            raise ValueError(f"{row.key} is declared twice")
        found[row.key] = row
        if row.scenario and places.setdefault(row.scenario, row.key) != row.key:
            raise ValueError(f"{row.scenario} says both {places[row.scenario]} and {row.key}")
    return found
