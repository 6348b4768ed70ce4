"""
Inputs of a command: a flag, else the scenario file, else a default; all faults collected and told at once.

Every value becomes a `Figure` that remembers who said so.
"""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from rlsize.errors import Fault, InputError, noting, refuse
from rlsize.facts.fields import Quantity, Uncertain
from rlsize.facts.figure import Figure, absent
from rlsize.quantities.row import Row, Switch, Text, Word
from rlsize.quantities.table import PLACES, QUANTITIES
from rlsize.units import uncertain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rlsize.estimates.belief import Belief
    from rlsize.estimates.constants import Stage
    from rlsize.facts.calibration import Calibration, CalibrationSetting
    from rlsize.facts.figure import Value
    from rlsize.facts.framework import Framework
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.link import Cluster
    from rlsize.facts.model import Model
    from rlsize.facts.rates import Rates
    from rlsize.readers.profiles import Catalogue
    from rlsize.readers.scenarios import ScenarioFile


T = TypeVar("T")

RATES_FILES = (".yaml", ".yml")
"""How names of files end that may stand in place of a rate."""
_ALIKE = {  # quantities that say what one says
    **dict.fromkeys(("gpus", "rollout_gpus", "trainer_gpus"), ("gpus", "rollout_gpus", "trainer_gpus")),
    **dict.fromkeys(("samples_per_step", "prompts_per_step"), ("samples_per_step", "prompts_per_step")),
    "gpu": ("gpu", "cluster", "rollout_gpu", "trainer_gpu"),
    "tokens_generated_per_trained_token": (
        *("tokens_generated_per_trained_token", "oversampling", "kept_fraction", "dropped_fraction"),
    ),
}
_PROFILED = {  # names that profiles have
    **dict.fromkeys(("gpu", "rollout_gpu", "trainer_gpu"), "gpu"),
    **{kind: kind for kind in ("link", "cluster", "price")},
}
SMALLEST = 1e-12  # of any quantity in base units: below it a number is a slip, and quotients overflow


class Inputs:
    """
    What the user said, in flags and in a scenario file.

    Args:
        scenario: Path of the scenario file, or of a saved plan, if one was named.
        folders: Folders of the user's own profiles.
        texts: What flags say, by the key of the quantity; text as it was typed, and switches as they stand.
        flags: The flag by which this command asks for a quantity, where it has a name of its own.
        changes: What `--set` says: dotted key, equals sign, value.
    """

    def __init__(
        self,
        scenario: str | None = None,
        folders: list[str] | None = None,
        *,
        texts: Mapping[str, str | bool] | None = None,
        flags: Mapping[str, str] | None = None,
        changes: Iterable[str] = (),
    ) -> None:
        self.faults: list[Fault] = []
        self.folders = folders or []
        self.texts = dict(texts or {})
        self.flags = dict(flags or {})
        self.looked: set[str] = set()
        self.asked: set[str] = set()
        self.file: ScenarioFile | None = None
        self.used: dict[str, Figure] = {}
        self.warnings: list[str] = []
        self.notes: list[str] = []
        self.ignored: list[str] = []
        self.done: list[str] = []
        self.rates: Rates | None = None
        self.rates_name = ""
        self.refused = ""
        self.rates_failed = False
        self.ran = False
        self.offered: tuple[str | None, dict[str, str | None]] | None = None
        self.unpredicted: dict[str, str] = {}
        self.seen: frozenset[str] = frozenset()
        self._catalogue: Catalogue | None = None
        self._calibration: Calibration | None = None
        self.changes: tuple[str, ...] = ()
        self.read(scenario, changes)

    def read(
        self, scenario: str | None, changes: Iterable[str] = (), *, reader: Callable[..., ScenarioFile] | None = None
    ) -> None:
        """
        Read the scenario.

        Args:
            scenario: Its path, if one was named.
            changes: What `--set` says: dotted key, equals sign, value.
            reader: What reads it, where files of other kinds are taken for one.

        Raises:
            InputError: All that is wrong with it.
        """
        self.changes = tuple(changes)
        if scenario is not None or self.changes:
            from rlsize.readers.scenarios import read_scenario

            read = reader if reader is not None and scenario is not None else read_scenario
            self.file = read(
                scenario,
                self.changes,
                framework=str(self.texts.get("framework") or ""),
                catalogue=lambda: self.catalogue,
                flags=self.texts,
            )
            self.notes += self.file.notes
            self.warnings += self.file.warnings
        found = None
        with suppress(InputError):  # one that is none is told where constants are asked for
            found = self.calibration()
        if found is not None and found.run is not None:
            self.asked.add("calibration")
            self.show(found.run.shown, f"{self.texts['calibration']}: run.shown")

    def show(self, shown: Mapping[str, Value], where: str, *, first: Iterable[str] = ()) -> dict[str, Value]:
        """
        Take quantities as a run has shown them, where nobody says them, or what they follow from.

        Args:
            shown: The quantities, by key.
            where: Who says so.
            first: Keys of those that go before what a scenario says.

        Returns:
            Those that were taken.
        """
        from rlsize.readers.scenarios import read_scenario, with_values

        taken = {
            key: value
            for key, value in shown.items()
            if key in QUANTITIES
            and QUANTITIES[key].scenario
            and (key in first or not any(map(self.gives, _ALIKE.get(key, (key,)))))
        }
        if taken:
            places = {QUANTITIES[key].scenario: f"{where}.{key}" for key in taken}
            values = dict(zip(places, taken.values(), strict=True))
            file = with_values(self.file or read_scenario(None), values)
            self.file = replace(file, places={**file.places, **places})
            self.seen |= frozenset(places)
        return taken

    def calibration(self) -> Calibration | None:
        """
        The calibration that is named, read once; None where none is.

        Raises:
            InputError: It is none, or was made with other constants.
        """
        name = self.texts.get("calibration")
        if name is None:
            return None
        if self._calibration is None:
            from rlsize.readers.saved_files import read_calibration

            self._calibration = read_calibration(str(name))
        return self._calibration

    def command_line(self, name: str, own: Mapping[str, str | None] = MappingProxyType({})) -> str:
        """
        The command that asks the same again: its name, scenario, changes and flags.

        Args:
            name: Of the command.
            own: Flags that are no quantities, with what they say; those that say nothing are left out.
        """
        import shlex

        words = ["rlsize", *name.split()]
        words += [self.file.document.name] if self.file is not None and self.file.document.name != "--set" else []
        words += [f"--set={change}" for change in self.changes]
        for key, text in self.texts.items():
            kind, flag = QUANTITIES[key].kind, self.flag(key)
            if isinstance(text, bool):
                no = kind.no if isinstance(kind, Switch) else ""
                words += [flag if text else no or f"--no-{flag.removeprefix('--')}"]
            elif isinstance(kind, Text) and kind.many:
                words += [word for part in text.split(",") for word in (flag, part)]
            else:
                words += [flag, text]
        words += [word for folder in self.folders for word in ("--profiles", folder)]
        words += [word for flag, text in own.items() if text for word in (flag, text)]
        return shlex.join(words)

    @property
    def catalogue(self) -> Catalogue:
        """The profiles: shipped ones and the user's own."""
        if self._catalogue is None:
            from rlsize.readers.profiles import Catalogue, user_folders

            self._catalogue = Catalogue(user_folders(self.folders))
        return self._catalogue

    def apart(self) -> Inputs:
        """The same scenario, profiles and answers so far, to ask on without a trace."""
        other = copy(self)
        other.texts, other.flags, other.used = dict(self.texts), dict(self.flags), dict(self.used)
        other.faults, other.warnings, other.notes, other.ignored, other.done = [], [], [], [], []
        other.refused, other.unpredicted, other.changes = "", {}, ()
        return other

    def measured(self, key: str, missing: Figure) -> Figure:
        """What the rates file says of a quantity, as a measured figure; the missing one where there is no such file."""
        value = getattr(self.rates, key, None)
        if value is None:
            return missing
        return self.keep(Figure(key=key, value=value, provenance="measured", source=self.rates_name))

    def said(self, key: str) -> Any:
        """What the scenario file says at a dotted key; None without a file or without the key."""
        self.looked.add(key)
        return self.file.value(key) if self.file and key else None

    def said_values(self, target: str) -> dict[str, Any]:
        """
        All that was said and that a scenario can say, by dotted place, as it was written; flags over the scenario.

        Args:
            target: The file that they are for: names of other files are told from its folder.
        """
        from rlsize.readers.scenario_changes import leaves_of, named_from

        found = leaves_of(self.file) if self.file is not None else {}
        folder = self.file.folder if self.file is not None else None
        found = {place: named_from(place, value, folder, target) for place, value in found.items()}
        for key, text in self.texts.items():
            place = QUANTITIES[key].scenario
            if place:
                value: str | float = text
                if isinstance(QUANTITIES[key].kind, Quantity):
                    with suppress(ValueError):  # a number with a unit stays as it was written
                        value = float(text)
                found = {other: value for other, value in found.items() if not other.startswith(f"{place}.")}
                found[place] = named_from(place, value, None, target)
        return found

    def where(self, key: str) -> str:
        """File, line and key of a scenario value."""
        return self.file.where(key) if self.file else key

    def flag(self, key: str) -> str:
        """How this command is told a quantity: its own flag, the usual one, or the key in a scenario."""
        return self.flags.get(key) or QUANTITIES[key].said_by

    def way(self, *keys: str) -> str:
        """How this command is told one of several: by the first that it has a flag for, else by `--set`."""
        own = (self.flags[key] for key in keys if key in self.flags)
        return next(own, f"--set {QUANTITIES[keys[-1]].scenario}")

    def ignore(self, sentence: str) -> None:
        """Note that something that was said has no bearing on the answer, which every form of it says."""
        self.notes.append(sentence)
        self.ignored.append(sentence)

    def did(self, *sentences: str) -> None:
        """Note what was written or is left to do by hand, which every form of the answer says."""
        self.notes += sentences
        self.done += sentences

    def place(self, key: str) -> str:
        """Where a quantity was said: a flag, or file, line and key; how it could be said where nobody did."""
        row = QUANTITIES[key]
        if self.texts.get(key) is not None or self.said(row.scenario) is None:
            return self.flag(key)
        return self.where(row.scenario)

    def ask(self, key: str, *, default: float | None = None, why: str = "", assume: bool = True) -> Figure:
        """
        A quantity of the table: from its flag, else the scenario, else its default.

        Args:
            key: Its key.
            default: What holds where nobody says, in place of the table's: a rule decides that the table cannot.
            why: Why.
            assume: Whether the table's default holds; a question that must not guess leaves it out.

        Returns:
            The figure; what was chosen before where nobody says, and one that names the flag where nothing was.
        """
        row = QUANTITIES[key]
        said = self._stated_number(row)
        if said is not None and said.known:
            return self.keep(said)
        chosen = self.used.get(key)
        if default is None and chosen is not None and chosen.provenance in {"default", "predicted"}:
            return chosen  # by the rule that was asked before, which holds for all
        if default is None and assume and isinstance(row.default, (int, float)) and not isinstance(row.default, bool):
            default, why = row.default, row.why
        if default is None:
            return absent(key, self.flag(key))
        return self.keep(Figure(key=key, value=default, provenance="default", source=why or f"default of {row.flag}"))

    def _stated_number(self, row: Row) -> Figure | None:
        """A number as its flag says it, else as the scenario does; None where neither says one."""
        text = self.texts.get(row.key)
        self.asked.add(row.key)
        if text is not None and not (row.quantity.or_file and str(text).endswith(RATES_FILES)):
            return self._parsed(row.key, self.flag(row.key), text, row.quantity)
        said = self.said(row.scenario)
        if said is None or isinstance(said, str):
            return None
        value, deviation = (said.value, said.deviation) if isinstance(said, Uncertain) else (said, 0.0)
        stated = Figure(key=row.key, value=value, deviation=deviation, source=self.where(row.scenario))
        if row.scenario in self.seen:
            stated = replace(stated, provenance="measured")
        return self._stated(stated, row.quantity)

    def choose(self, key: str, known: Iterable[str] | None = None, *, default: str | None = None, why: str = "") -> str:
        """
        A word of the table: from its flag, else the scenario, else its default; an unknown one is a fault.

        Args:
            key: Its key.
            known: The words that are taken here; all that the table lists when None.
            default: What holds where nobody says, in place of the table's.
            why: Why.

        Returns:
            The word; empty where nobody says one and there is no default.
        """
        from rlsize.errors import suggestion

        row = QUANTITIES[key]
        words = list(row.words if known is None else known)
        value, where = self.name(key)
        usual = default if default is not None else str(row.default or "")
        if value is None:
            if usual:
                source = why or row.why or f"default of {self.flag(key)}"
                self.keep(Figure(key=key, value=usual, provenance="default", source=source))
            return usual
        if str(value) not in words:
            self.fault(f"{str(value)[:40]!r} is unknown", where, suggestion(str(value)[:40], words))
            self.keep(Figure(key=key, value=usual or words[0], provenance="default", source=where))
            return usual or words[0]
        self.keep(Figure(key=key, value=str(value), source=where))
        return str(value)

    def name(self, key: str) -> tuple[str | None, str]:
        """A name or a path, and where it was said; None where nobody names one."""
        self.asked.add(key)
        text, said = self.texts.get(key), self.said(QUANTITIES[key].scenario)
        return (str(text) if text is not None else said), self.place(key)

    def yes(self, key: str) -> bool | None:
        """A switch: from its flag, else the scenario; None where neither says."""
        self.asked.add(key)
        value = self.texts.get(key)
        if value is None:
            value = self.said(QUANTITIES[key].scenario)
        if isinstance(value, bool):
            self.keep(Figure(key=key, value=value, source=self.place(key)))
            return value
        return None

    def can_turn(self, key: str) -> bool:
        """Whether the keys of a launch can say a switch otherwise than they do; yes where there is no launch."""
        from rlsize.shell.launches import untold

        return not untold(self, {key: not self.apart().yes(key)})

    def listed(self, key: str) -> tuple[str, ...] | None:
        """The words of a list, which may be empty, from the scenario; None where it does not say."""
        found = self.said(QUANTITIES[key].scenario)
        if found is None:
            return None
        self.asked.add(key)
        self.keep(Figure(key=key, value=", ".join(found) or "none", source=self.place(key)))
        return tuple(found)

    def gives(self, key: str) -> bool:
        """Whether a flag or the scenario says a quantity."""
        place = QUANTITIES[key].scenario
        return self.texts.get(key) is not None or bool(self.file and place and self.file.value(place) is not None)

    def follows_gpus(self, key: str) -> bool:
        """Whether a launch that tells no GPUs tells a quantity as soon as somebody says how many there are."""
        launch = self.file.launch if self.file is not None else None
        if launch is None or self.gives("gpus") or self.gives("trainer_gpus"):
            return False
        return launch.reading.changed({}, {"gpus": 8}).quantity(key) is not None  # any number would do

    def by_flag(self, key: str) -> bool:
        """Whether a flag says a quantity."""
        return self.texts.get(key) is not None

    def instead(self, **texts: Value) -> Inputs:
        """The same inputs apart, where some flags say something else; None takes a flag away."""
        other = self.apart()
        other.used = {}  # what was chosen for the one holds for no other
        for key, value in texts.items():
            if value is None:
                other.texts.pop(key, None)
            else:
                other.texts[key] = value if isinstance(value, (str, bool)) else f"{value:.17g}"
        return other

    def changed(self, values: Mapping[str, Value | list[str]]) -> Inputs:
        """
        The same inputs apart, where the scenario says some things otherwise, and no flag does.

        Args:
            values: What it says, by dotted key; None where it no longer says anything.

        Raises:
            InputError: A scenario cannot say that.
        """
        from rlsize.readers.scenarios import read_scenario, with_values

        other = self.instead()
        for place in values:
            if place in PLACES:  # limits and tables of prices are no quantities
                other.texts.pop(PLACES[place].key, None)
        other.file = with_values(self.file or read_scenario(None), values)
        return other

    def with_sets(self, changes: Iterable[str]) -> tuple[Inputs, dict[str, Any]]:
        """
        The same inputs apart with some `key=value`, and what these say by quantity.

        Raises:
            InputError: A scenario cannot say that.
        """
        from rlsize.readers.scenarios import read_scenario, scenario_of

        other, file = self.instead(), self.file or read_scenario(None)
        places = [change.partition("=")[0].strip() for change in changes]
        for place in places:
            other.texts.pop(PLACES[place].key if place in PLACES else place, None)
        other.file = replace(scenario_of(file.document, changes), places=file.places, launch=file.launch)
        other.seen = self.seen - set(places)
        return other, {PLACES[place].key: other.said(place) for place in places}

    def check_texts(self) -> None:
        """Note a fault for every flag whose text is nothing that its quantity takes, whether it is used or not."""
        for key, text in self.texts.items():
            row = QUANTITIES[key]
            kind = row.kind
            if isinstance(kind, Quantity) and not (kind.or_file and str(text).endswith(RATES_FILES)):
                self._parsed(key, self.flag(key), text, kind)

    def typed(self) -> dict[str, tuple[str, str]]:
        """What flags and `--set` say, by key: the text, and where it stands; flags before `--set`."""
        typed = {key: (str(text), self.flag(key)) for key, text in self.texts.items()}
        for place in (change.partition("=")[0].strip() for change in self.changes):
            value = self.file.value(place) if self.file is not None and place in PLACES else None
            if value is not None and PLACES[place].key not in typed:
                typed[PLACES[place].key] = str(value), self.where(place)
        return typed

    def check_unasked(self) -> None:
        """
        Refuse words of flags that nothing asked for, as nothing has judged them; numbers were judged before.

        Raises:
            InputError: All of them.
        """
        from rlsize.errors import suggestion

        typed = self.typed()
        other = self.apart()
        other.asked, other.looked = set(self.asked), set(self.looked)
        for key, (text, where) in ((key, told) for key, told in typed.items() if key not in self.asked):
            row = QUANTITIES[key]
            if isinstance(row.kind, Word) and not row.kind.listed and text not in row.words:
                self.fault(f"{text[:40]!r} is unknown", where, suggestion(text[:40], row.words))
            elif key == "model":
                other.model()
            elif key in _PROFILED:
                other.profile(_PROFILED[key], text, where)
        if self.texts.get("calibration") is not None and "calibration" not in self.asked:
            with noting(other.faults):
                other.calibration()
        for fault in other.faults:
            self._note(fault)
        self.settle()

    def unused(self) -> tuple[str, ...]:
        """Keys of the scenario, and flags, that were said and that nothing asked for."""
        named = {figure.source for figure in self.used.values()}
        silent = ("framework", "seed", "accept_lower_bound")
        flags = [self.flag(key) for key in self.texts if key not in silent and key not in self.asked]
        silent_places = {"framework", *self.seen}
        leaves = [leaf for leaf in self.file.leaves() if leaf not in silent_places] if self.file is not None else ()
        return (*flags, *(leaf for leaf in leaves if not self._seen(leaf) and self.where(leaf) not in named))

    def _seen(self, leaf: str) -> bool:
        """Whether a key of the scenario was looked at, or one that it stands for."""
        top, row = leaf.partition(".")[0], PLACES.get(leaf)
        if row is not None and row.key in {*self.texts, *self.asked}:  # a flag or a sweep goes before it
            return True
        return top in self.looked or any(place == leaf or place.startswith(f"{leaf}.") for place in self.looked)

    def model(self) -> Model | None:
        """The model's profile, or its config.json as one; None where none is named, or where it cannot be read."""
        from rlsize.shell.models import model_profile

        self.asked.add("model")
        return None if self.by_flag("params") and not self.by_flag("model") else model_profile(self)

    def named(self, kind: str, name: str) -> Any:
        """
        A profile of that name; a model's or GPU's may be spelt otherwise, another model stands in with a warning.

        Raises:
            InputError: There is none.
        """
        try:
            return self.catalogue.get(kind, name)
        except InputError as unknown:
            from rlsize.errors import Refused
            from rlsize.readers.names import gpu_named, model_named, model_of_size

            try:
                found, note = {"model": model_named, "gpu": gpu_named}[kind](name, self.catalogue)
            except (KeyError, Refused):
                found = model_of_size(name.rpartition("/")[2], self.catalogue) if kind == "model" else ""
                note = f"Nobody has read the dimensions of {name}: it is taken for {found}, which has its size"
                if not found:
                    raise unknown from None
            if kind == "gpu" and note:
                raise
            if "@" in found and "/" not in name:  # a name that people publish has an owner: this may be a slip
                only = unknown.faults[0]
                todo = only.todo.rpartition(": ")[0]
                raise InputError(only._replace(todo=f"{todo}: {found}")) from None
        told = f"{note}: --set model says another"
        if note and told not in self.warnings:
            self.warnings.append(told)
        return self.catalogue.get(kind, found)

    def framework(self) -> Framework | None:
        """The framework that runs the loop; None where none is named, or where a fault was noted."""
        chosen, where = self.name("framework")
        if chosen is None:
            return None
        from rlsize.readers.frameworks import framework

        try:
            found = framework(self.catalogue, str(chosen))
        except InputError as error:
            self.blame(error, where)
            return None
        self.keep(Figure(key="framework", value=found.name, source=where))
        return found

    def cluster(self) -> Cluster | None:
        """The cluster's profile; None where none is named, or where a fault was noted."""
        name, where = self.name("cluster")
        found: Cluster | None = None if name is None else self.profile("cluster", str(name), where)
        return found

    def gpu(self, side: str = "") -> Gpu | None:
        """
        The GPU's profile; None where none is named, or where a fault was noted.

        Args:
            side: `rollout` or `trainer`, whose GPUs may be of a kind of their own; empty for both.
        """
        own = f"{side}_gpu" if side and self.gives(f"{side}_gpu") and not self.by_flag("gpu") else "gpu"
        chosen, where = self.name(own)
        if chosen is None and self.said("cluster.profile"):
            where = self.where("cluster.profile")
            cluster: Cluster | None = self.profile("cluster", str(self.said("cluster.profile")), where)
            chosen = None if cluster is None else cluster.gpu
        found: Gpu | None = None if chosen is None else self.profile("gpu", str(chosen), where)
        if found is not None:
            self.keep(Figure(key=own, value=found.name, source=where))
        return found

    def profile(self, kind: str, name: str, where: str) -> Any:
        """
        A profile; None where there is none of that name, which is noted.

        Args:
            kind: Of which kind.
            name: Its name.
            where: Where it was named.
        """
        try:
            return self.named(kind, name)
        except InputError as error:
            self.blame(error, where)
            return None

    def load_rates(self) -> None:
        """Read the rates file that a flag or the scenario names, if one does; faults and doubts are noted, once."""
        if self.rates is None and not self.rates_failed:
            from rlsize.shell.rates import load

            load(self)

    def belief(self, *stages: Stage, planned: CalibrationSetting | None = None) -> Belief:
        """
        What is believed about the constants of some stages: the prior, or what the calibration says.

        Raises:
            InputError: The file is no calibration, or was made with other constants.
        """
        from rlsize.shell.beliefs import belief_of

        self.asked.add("calibration")
        return belief_of(self, *stages, planned=planned)

    def keep(self, figure: Figure) -> Figure:
        """Note a figure among the inputs, so that the answer can show it."""
        if figure.known:
            self.used[figure.key] = figure
        return figure

    def drop(self, key: str) -> None:
        """Take a quantity back that something else stands for: it is no input, and not used where it was said."""
        self.used.pop(key, None)
        self.asked.discard(key)
        self.looked.discard(QUANTITIES[key].scenario)

    def fault(self, what: str, where: str = "", todo: str = "") -> None:
        """Note something that is wrong; `settle` tells all of it at once."""
        self._note(Fault(what, where, todo))

    def blame(self, error: InputError, where: str) -> None:
        """Note the faults of an error; those without a place of their own get `where`."""
        for fault in error.faults:
            self._note(fault if fault.where else fault._replace(where=where))

    def _note(self, fault: Fault) -> None:
        """A fault is told once, however often it is met."""
        if fault not in self.faults:
            self.faults.append(fault)

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
        refuse(dict.fromkeys(self.faults))

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
            what = f"{figure.value:g} has a ±, but it is counted in whole numbers"
            self.fault(what, figure.source, "leave the ± out")
        elif figure.deviation and not figure.value:
            self.fault("0 with a ± has no scale to draw from", figure.source, "give a value, or leave the ± out")
        value = int(figure.number) if kind.whole else figure.value
        low = kind.least if kind.least is not None else kind.above
        return replace(figure, value=value, least=low, most=kind.most)

    def shown(self) -> tuple[Figure, ...]:
        """The inputs that were used, in the order in which they were asked for."""
        return tuple(self.used.values())

    def told(
        self, *, first: Iterable[str] = (), warnings: Iterable[str] = (), notes: Iterable[str] = ()
    ) -> dict[str, Any]:
        """
        What a report says of the inputs.

        Args:
            first: Notes that go before those of the inputs.
            warnings: Of the answer itself, after those of the inputs.
            notes: Likewise.
        """
        return {
            "inputs": self.shown(),
            "warnings": (*self.warnings, *warnings),
            "notes": (*first, *self.notes, *notes),
            "done": tuple(self.done),
        }
