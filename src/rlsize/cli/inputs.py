"""
Inputs of a command: a flag, else the scenario file, else a default; all faults collected and told at once.

Every value becomes a `Figure` that remembers who said so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from rlsize.errors import Fault, InputError
from rlsize.facts.fields import Quantity, Uncertain
from rlsize.facts.figure import Figure, absent
from rlsize.units import uncertain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.rates import Rates
    from rlsize.readers.profiles import Catalogue
    from rlsize.readers.scenarios import ScenarioFile


T = TypeVar("T")

SMALLEST = 1e-12  # of any quantity in base units: below it a number is a slip, and quotients overflow


class Inputs:
    """
    What the user said, in flags and in a scenario file.

    Args:
        scenario: Path of the scenario file, if one was named.
        folders: Folders of the user's own profiles.
    """

    def __init__(self, scenario: str | None = None, folders: list[str] | None = None) -> None:
        self.faults: list[Fault] = []
        self.folders = folders or []
        self.file: ScenarioFile | None = None
        self.used: dict[str, Figure] = {}
        self.warnings: list[str] = []
        self.notes: list[str] = []
        self.rates: Rates | None = None
        self.rates_name = ""
        self.rates_failed = False
        self.offered: tuple[str | None, dict[str, str | None]] | None = None
        self.unpredicted: dict[str, str] = {}
        self._catalogue: Catalogue | None = None
        if scenario is not None:
            from rlsize.readers.scenarios import read_scenario

            self.file = read_scenario(scenario)

    @property
    def catalogue(self) -> Catalogue:
        """The profiles: shipped ones and the user's own."""
        if self._catalogue is None:
            from rlsize.readers.profiles import Catalogue, user_folders

            self._catalogue = Catalogue(user_folders(self.folders))
        return self._catalogue

    def apart(self) -> Inputs:
        """The same scenario, profiles and answers so far, to ask on without a trace."""
        other = Inputs(None, self.folders)
        other.file, other.used, other._catalogue = self.file, dict(self.used), self._catalogue
        return other

    def measured(self, key: str, missing: Figure) -> Figure:
        """What the rates file says of a quantity, as a measured figure; the missing one where there is no such file."""
        value = getattr(self.rates, key, None)
        if value is None:
            return missing
        return self._keep(Figure(key=key, value=value, provenance="measured", source=self.rates_name))

    def said(self, key: str) -> Any:
        """What the scenario file says at a dotted key; None without a file or without the key."""
        return self.file.value(key) if self.file and key else None

    def where(self, key: str) -> str:
        """File, line and key of a scenario value."""
        return self.file.where(key) if self.file else key

    def number(
        self,
        key: str,
        flag: str,
        text: str | float | None,
        kind: Quantity,
        *,
        scenario: str = "",
        default: float | None = None,
        why: str = "",
    ) -> Figure:
        """
        A number: from the flag, else the scenario, else the default; a figure that names the flag where none has it.

        Args:
            key: The figure's name.
            flag: The flag, for messages.
            text: What the flag says; None when it was not given.
            kind: Unit and limits.
            scenario: Dotted key in a scenario file.
            default: The value when nobody says.
            why: Where the default comes from.
        """
        if text is not None:
            return self._keep(self._parsed(key, flag, text, kind))
        said = self.said(scenario)
        if said is not None:
            value, deviation = (said.value, said.deviation) if isinstance(said, Uncertain) else (said, 0.0)
            stated = Figure(key=key, value=value, deviation=deviation, source=self.where(scenario))
            return self._keep(self._stated(stated, kind))
        if default is not None:
            return self._keep(Figure(key=key, value=default, provenance="default", source=why or f"default of {flag}"))
        return absent(key, flag)

    def word(
        self,
        key: str,
        flag: str,
        text: str | None,
        known: Mapping[str, Any] | list[str],
        *,
        scenario: str = "",
        default: str = "",
    ) -> str:
        """One of a few words: from the flag, else the scenario, else the default; an unknown one is a fault."""
        from rlsize.errors import suggestion

        value, where = text, flag
        if value is None:
            said = self.said(scenario)
            value, where = (str(said), self.where(scenario)) if said is not None else (default, "")
        if where and value not in known:
            self.fault(f"{value!r} is unknown", where, suggestion(value, known))
            value = default
        provenance = "given" if where else "default"
        self._keep(Figure(key=key, value=value or None, source=where or f"default of {flag}", provenance=provenance))  # type: ignore[arg-type]  # a literal
        return value

    def keep(self, figure: Figure) -> Figure:
        """Note a figure among the inputs, so that the answer can show it."""
        return self._keep(figure)

    def fault(self, what: str, where: str = "", todo: str = "") -> None:
        """Note something that is wrong; `settle` tells all of it at once."""
        self.faults.append(Fault(what, where, todo))

    def blame(self, error: InputError, where: str) -> None:
        """Note the faults of an error; those without a place of their own get `where`."""
        self.faults += [fault if fault.where else replace(fault, where=where) for fault in error.faults]

    def need(self, figure: Figure, todo: str) -> None:
        """Note a fault if a figure is missing that nothing can do without."""
        if not figure.known and not any(fault.where == figure.missing for fault in self.faults):
            self.fault(f"{figure.key} is missing", figure.missing, todo)

    def settle(self) -> None:
        """
        Go on if all inputs are well-formed.

        Raises:
            InputError: All faults so far.
        """
        if self.faults:
            raise InputError(*self.faults)

    def settled(self, made: T | None) -> T:
        """
        What was made of the inputs, if all of them are well-formed.

        Args:
            made: None where a fault was noted in its place.

        Raises:
            InputError: All faults so far.
        """
        self.settle()
        if made is None:
            raise TypeError("nothing was made, and no fault says why")  # a slip of the caller, not of the user
        return made

    def _parsed(self, key: str, flag: str, text: str | float, kind: Quantity) -> Figure:
        try:
            value, deviation = uncertain(text, kind.unit)
            value = kind.check(value, str(text))
        except ValueError as error:
            self.fault(str(error), flag)
            return absent(key, flag)
        return self._stated(Figure(key=key, value=value, deviation=deviation, source=flag), kind)

    def _stated(self, figure: Figure, kind: Quantity) -> Figure:
        """A stated number with its limits; a spread must leave something to draw."""
        if 0 < abs(figure.number) < SMALLEST:
            what = f"{figure.value:g} is smaller than anything measured (limit {SMALLEST:g})"
            self.fault(what, figure.source, "check the number and its unit")
        elif figure.deviation and kind.whole:
            self.fault(
                f"{figure.value:g} has a ±, but it is counted in whole numbers", figure.source, "leave the ± out"
            )
        elif figure.deviation and not figure.value:
            self.fault("0 with a ± has no scale to draw from", figure.source, "give a value, or leave the ± out")
        value = int(figure.number) if kind.whole else figure.value
        low = kind.least if kind.least is not None else kind.above
        return replace(figure, value=value, least=low, most=kind.most)

    def _keep(self, figure: Figure) -> Figure:
        if figure.known:
            self.used[figure.key] = figure
        return figure

    def shown(self) -> tuple[Figure, ...]:
        """The inputs that were used, in the order in which they were asked for."""
        return tuple(self.used.values())
