"""What the settings of a launch tell: quantities, each with the keys that it follows from and where they stand."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from rlsize.errors import Fault, InputError
from rlsize.facts.launch import Setting, Span
from rlsize.frameworks.abilities import framework_mode
from rlsize.frameworks.expressions import UnreadableError, evaluate, names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rlsize.facts.framework import Abilities, Era, Framework

Provenance = Literal["said", "inherited", "default"]
QUANTITY = "loop."
"""What stands before a quantity in an expression; other names are keys."""
_ITSELF = "*"  # stands among what a quantity hangs on that hangs on itself: who asks first decides what it is
NOWHERE = Span("", 0)
_BESIDE = ("env.", "launcher.", "batch.", "server.", "accelerate.", "deepspeed.", "cluster.", "values.")
_VERSION = re.compile(
    r"<?v?(\d{1,8}(?:[.-]\d{1,8}){0,5})(?:[.-]?(?:a|b|rc|post|dev)\.?\d{0,8})*(?:\+[\w.-]{1,40})?", re.IGNORECASE
)
"""A version as packages and releases have it: `0.9.1`, `v0.5`, `2025-05`, `0.9.0.dev`; `<0.5` for those before one."""
_WHOLE = 200  # so many settings are a configuration printed whole, which tells what is off and what is usual


@dataclass(frozen=True, slots=True)
class Told:
    """
    One quantity as a launch tells it.

    Args:
        key: The quantity.
        value: Its value.
        provenance: said by the launch, inherited from a file that it names, or the framework's default.
        settings: What it follows from, as it was set.
        defaults: Keys that it follows from and that nobody set.
    """

    key: str
    value: Any
    provenance: Provenance
    settings: tuple[Setting, ...] = ()
    defaults: tuple[str, ...] = ()


@dataclass(slots=True)
class _Trace:
    """Keys that an evaluation looked up: for the value itself, to decide between values, and all, for others too."""

    values: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    every: set[str] = field(default_factory=set)


def normal(key: str) -> str:
    """
    A key as profiles write it: without what Hydra puts before it, and with underscores.

    >>> normal("+actor.n"), normal("rollout-batch-size")
    ('actor.n', 'rollout_batch_size')
    """
    return key.lstrip("+~-").replace("-", "_")


def inherited(child: Framework, parent: Framework) -> Framework:
    """A fork, with all that holds for its parent and that it does not say itself."""
    merged: dict[str, Any] = {
        name: {**getattr(parent, name), **getattr(child, name)}
        for name in ("renamed", "defaults", "quantities", "writes", "uncounted")
    }
    taken: dict[str, Any] = {
        name: getattr(child, name) or getattr(parent, name)
        for name in ("configurations", "unread", "runs", "servers", "eras")
    }
    taken["runs"] = _without(taken["runs"], child.refuses)
    added: dict[str, Any] = {
        name: (*getattr(parent, name), *getattr(child, name)) for name in ("silent", "lacks", "together")
    }
    return replace(child, **merged, **taken, **added)


def _without(runs: Abilities | None, refuses: Iterable[str]) -> Abilities | None:
    """What can be run, but for some modes."""
    gone = {framework_mode(mode) for mode in refuses}
    return runs and replace(runs, modes={mode: late for mode, late in runs.modes.items() if mode not in gone})


def in_era(framework: Framework, era: Era | None) -> Framework:
    """A framework as it was in some versions."""
    if era is None:
        return framework
    later = framework.eras[framework.eras.index(era) :]
    defaults, quantities = dict(framework.defaults), dict(framework.quantities)
    lacks, refuses, runs = framework.lacks, dict(framework.refuses), framework.runs
    variants = {name: way for name, way in framework.variants.items() if not any(name in one.later for one in later)}
    for one in reversed(later):  # what changed last is undone first
        lacks += one.lacks
        refuses |= one.refuses
        runs = _without(runs, one.refuses)
        defaults |= one.defaults
        quantities |= one.quantities
    older = any(one.older_names for one in later)
    changed: dict[str, Any] = {"lacks": lacks, "refuses": refuses, "runs": runs, "variants": variants}
    found = replace(framework, defaults=defaults, quantities=quantities, older_names=older, **changed)
    return found if runs is None else replace(found, runs=replace(runs, layouts=_layouts(found, runs)))


def _layouts(framework: Framework, runs: Abilities) -> dict[str, tuple[str, ...]]:
    """Kinds of parallelism by backend, but for those of which a version has no key yet."""
    own = {
        kind: framework.quantities.get(f"{kind}_parallel", "") for kind in ("tensor", "pipeline", "context", "expert")
    }
    gone = {kind for kind, key in own.items() if re.fullmatch(r"[a-z_][\w.]*", key) and not taken_names(framework, key)}
    return {backend: tuple(kind for kind in kinds if kind not in gone) for backend, kinds in runs.layouts.items()}


def taken_names(framework: Framework, key: str) -> list[str]:
    """Names of a key that a version takes, that of its own time first."""
    older = [old for old, new in framework.renamed.items() if new == key]
    every = older or [key] if framework.older_names else [key, *older]
    return [name for name in every if name not in framework.lacks]


class Keys:
    """
    The keys of a framework by their names of today, each worked out once for all that is read of a launch.

    Args:
        framework: The framework, in the version that is launched.
    """

    def __init__(self, framework: Framework) -> None:
        self._framework = framework
        self._today: dict[str, str] = {}

    def today(self, written: str) -> str:
        """A key as its profile has it today."""
        if written not in self._today:
            self._today[written] = self._renamed(normal(written))
        return self._today[written]

    def _renamed(self, key: str) -> str:
        renamed = self._framework.renamed
        if key in renamed:
            return renamed[key]
        for old, new in renamed.items():
            if old.endswith("*") and key.startswith(old[:-1]):
                today = new.removesuffix("*") + key[len(old) - 1 :]
                return renamed.get(today, today)
        return key

    @cached_property
    def writes(self) -> Mapping[str, str]:
        """What the framework writes, by key; the first where two have one name today."""
        return {self.today(key): text for key, text in reversed(self._framework.writes.items())}

    @cached_property
    def asked(self) -> frozenset[str]:
        """The keys that the framework's expressions ask."""
        return frozenset(keys_of(self._framework))


class Reading:
    """
    A launch read as its framework does.

    Args:
        framework: The framework, in the version that is launched.
        settings: What is set, what counts most last.
        given: Quantities that somebody says beside the launch; they stand where it does not tell them.
        keys: The framework's keys, where they were worked out already.

    Attributes:
        keys: The framework's keys.
        settings: What counts, by key.
        used: Keys that were asked for.
        faults: Why quantities cannot be worked out from the values that are set, by quantity.
    """

    def __init__(
        self,
        framework: Framework,
        settings: Iterable[Setting],
        given: Mapping[str, float] = MappingProxyType({}),
        keys: Keys | None = None,
    ) -> None:
        self.framework = framework
        self.given = given
        self.keys = keys or Keys(framework)
        self.settings: dict[str, Setting] = {}
        for setting in settings:
            if setting.value == "???":  # OmegaConf's mark of what has no default, and what nobody gave
                continue
            key = self.key(setting.key)
            self.settings.pop(key, None)
            self.settings[key] = setting
        self.used: set[str] = set()
        self.faults: dict[str, str] = {}
        self._told: dict[str, Told | None] = {}
        self._hangs_on: dict[str, set[str]] = {}
        self._traces: list[_Trace] = []
        self._tests = 0

    def key(self, written: str) -> str:
        """A key as its profile has it today."""
        return self.keys.today(written)

    def value(self, key: str) -> object:
        """The value of a key or, after `loop.`, of a quantity: set, else the framework's default."""
        if key.startswith(QUANTITY):
            told = self.quantity(key.removeprefix(QUANTITY))
            return None if told is None else told.value
        key = normal(key)
        self._note(key)
        setting = self.settings.get(key)
        return self.framework.defaults.get(key) if setting is None else setting.value

    def said(self, key: str) -> bool:
        """Whether a key, or one below it, is set."""
        if key.startswith(QUANTITY):
            told = self.quantity(key.removeprefix(QUANTITY))
            return told is not None and told.provenance != "default"
        key = normal(key)
        below = [other for other in self.settings if other == key or other.startswith(f"{key}.")]
        for one in below or [key]:
            self._note(one)
        if self._traces:
            self._traces[-1].every |= {key, f"{key}."}
        return bool(below)

    def testing(self, step: int) -> None:
        """Whether what is looked up decides between values."""
        self._tests += step

    def _note(self, key: str) -> None:
        self.used.add(key)
        if self._traces:
            self._traces[-1].every.add(key)
            (self._traces[-1].tests if self._tests else self._traces[-1].values).append(key)

    def quantity(self, name: str) -> Told | None:
        """A quantity; None where launch and framework do not tell it, or where its values make no sense together."""
        if name not in self._told:
            text = self.framework.quantities.get(name)
            if text is None:
                return None
            self._told[name] = None  # one that hangs on itself is not known
            self._told[name] = self._worked(name, text) or self._given(name)
        told = self._told[name]
        if self._traces:
            self._traces[-1].every |= self._hangs_on.get(name, {_ITSELF})
        if told is not None and self._traces:
            keys = [self.key(setting.key) for setting in told.settings] + list(told.defaults)
            (self._traces[-1].tests if self._tests else self._traces[-1].values).extend(keys)
        return told

    def hangs_on(self, name: str, other: str) -> bool:
        """Whether a quantity was worked out from another one."""
        return self.quantity(name) is not None and QUANTITY + other in self._hangs_on[name]

    def _given(self, name: str) -> Told | None:
        return Told(name, self.given[name], "said") if name in self.given else None

    def _worked(self, name: str, text: str) -> Told | None:
        trace, tests = _Trace(), self._tests
        self._traces.append(trace)
        self._tests = 0
        try:
            value = evaluate(text, self)
        except UnreadableError as error:
            self.faults[name] = str(error)
            return None
        finally:
            self._traces.pop()
            self._tests = tests
            self._hangs_on[name] = trace.every | {QUANTITY + name}
        if value is None:
            return None
        keys = list(dict.fromkeys(trace.values or trace.tests))
        settings = tuple(self.settings[key] for key in keys if key in self.settings)
        if not settings and trace.tests:  # what was set decided for a default
            chosen = tuple(self.settings[key] for key in dict.fromkeys(trace.tests) if key in self.settings)
            settings = chosen if not any(key in self.framework.defaults for key in keys) else ()
        defaults = tuple(key for key in keys if key not in self.settings and key in self.framework.defaults)
        provenance: Provenance = "default"
        if settings:
            provenance = "inherited" if all(setting.inherited for setting in settings) else "said"
        return Told(name, value, provenance, settings, defaults)

    def changed(self, keys: Mapping[str, Any], given: Mapping[str, float] | None = None) -> Reading:
        """
        The launch with other values of some keys, None where one goes, or of what is said beside it.

        What hangs on none of that is not worked out anew: savers try hundreds of changes of some seventy quantities.
        """
        kept = [setting for key, setting in self.settings.items() if key not in keys]
        new = [Setting(key, value, NOWHERE) for key, value in keys.items() if value is not None]
        found = Reading(self.framework, [*kept, *new], self.given if given is None else given, self.keys)
        today = {self.key(key) for key in keys}
        moved = {_ITSELF, *today} | {key[: end + 1] for key in today for end, one in enumerate(key) if one == "."}
        moved |= {QUANTITY + name for name, _ in self.given.items() ^ found.given.items()}
        found._hangs_on = {name: on for name, on in self._hangs_on.items() if on.isdisjoint(moved)}
        found._told = {name: self._told[name] for name in found._hangs_on}
        found.faults = {name: why for name, why in self.faults.items() if name in found._hangs_on}
        found.used = set().union(*found._hangs_on.values())
        return found

    def all(self) -> dict[str, Told]:
        """Every quantity that is told here, not beside it; those whose names begin with _ only serve others."""
        found = {name: self.quantity(name) for name in self.framework.quantities if not name.startswith("_")}
        return {name: told for name, told in found.items() if told is not None and told != self._given(name)}

    def asserted(self) -> Iterator[str]:
        """What the framework's code says as it starts, of what it checks and what does not hold."""
        for text, says in self.framework.asserts.items():
            with suppress(UnreadableError):  # over a value that nobody tells
                asked = re.findall(r"\{([\w.]+)\}", says)
                if all(self.value(key) is not None for key in asked) and not evaluate(text, self):
                    words = re.sub(r"\{([\w.]+)\}", lambda found: str(self.value(found[1])), says)
                    yield f"{self.framework.title} stops as it starts: {words}."

    def uncounted(self) -> Iterator[str]:
        """What the launch does that is not counted."""
        yield from (f"{says}." for text, says in self.framework.uncounted.items() if evaluate(text, self))

    def as_it_writes(self, key: str) -> bool:
        """Whether a key, such as one of the critic, says what would be written there for the loop that was read."""
        return self.written(key) == self.settings[key].value is not None

    def written(self, key: str) -> object:
        """What the framework writes at a key for the loop as it was read; None where it does not."""
        with suppress(UnreadableError):
            return evaluate(self.keys.writes.get(key, "None"), self)
        return None

    def unread(self) -> tuple[Setting, ...]:
        """What is set and bears on nothing that was read, and is not known to bear on nothing here."""
        quiet = (*self.framework.silent, *map(normal, self.framework.configurations))
        known = self.used | self.keys.asked  # some have no effect beside what else is set
        same = self.changed({})  # what it asks is not asked of the launch
        idle = tuple(
            key.rpartition(".")[0] + "." for key, one in self.settings.items() if _switched_off(key, one.value)
        )
        nothing: tuple[object, ...] = (None, "", [], {})
        if len(self.settings) > _WHOLE:
            nothing = (*nothing, False)  # which equals 0
        return tuple(
            setting
            for key, setting in self.settings.items()
            if key not in known
            and setting.value not in nothing
            and not key.startswith(idle)
            and not key.startswith(_BESIDE)
            and not any(fnmatchcase(key, pattern) for pattern in quiet)
            and not same.as_it_writes(key)
        )


def _switched_off(key: str, value: object) -> bool:
    """Whether a key is the switch of what stands beside and below it, and is off."""
    above, _, last = key.rpartition(".")
    return bool(above) and last in {"enable", "enabled"} and value is False


def keys_of(framework: Framework) -> set[str]:
    """The keys that a framework's expressions ask."""
    return {
        normal(key) for text in framework.quantities.values() for key in names(text) if not key.startswith(QUANTITY)
    }


def named_version(text: str, where: str = "") -> tuple[str, str]:
    """
    The framework, as names are written, and its version of `NAME` or `NAME@VERSION`; empty where none is said.

    Args:
        text: What was said.
        where: Where that is.

    Raises:
        InputError: What stands after the sign is no version.

    >>> named_version("verl@<0.5"), named_version("trl")
    (('verl', '<0.5'), ('trl', ''))
    """
    name, at, version = (part.strip() for part in text.partition("@"))
    name = name.lower().replace("_", "-")
    if at and not _VERSION.fullmatch(version):
        shown = name[:40] or "NAME"
        what = f"{version[:40]!r} is no version of {name[:40] or 'a framework'}"
        todo = f"give one as {shown}@0.9.1, {shown}@<0.5 for those before it, or {shown} for the newest"
        raise InputError(Fault(what, where, todo))
    return name, version


def own_name(known: Mapping[str, Framework], name: str) -> str:
    """The name of a framework by it or by an alias; what was said where none has that."""
    return next((own for own, one in known.items() if name in (own, *one.aliases)), name)


def era_of(framework: Framework, settings: Sequence[Setting], version: str = "", name: str = "") -> Era | None:
    """
    The era of a launch: as its version says, else the oldest of which it holds a sign; None for today's.

    Args:
        framework: The framework.
        settings: What is set.
        version: Its version as `named_version` has it, or `<VERSION` for those before one; empty where nobody says.
        name: What it was called: a package of its own may count its versions by itself.
    """
    if name and (packaged := [era for era in framework.eras if era.package == name]):
        return packaged[0]
    if version:
        asked, earlier = _release(version), version.startswith("<")
        below = ((_release(era.below), era) for era in framework.eras)
        return next((era for bound, era in below if asked < bound or (earlier and asked == bound)), None)
    said = {normal(setting.key) for setting in settings}
    pairs = {f"{normal(setting.key)}={setting.value}" for setting in settings}
    return next(
        (era for era in framework.eras if any(fnmatchcase(one, sign) for sign in era.signs for one in (*said, *pairs))),
        None,
    )


def _release(version: str) -> tuple[int, ...]:
    """The release of a version, without zeros at its end; one that is not out yet counts as the one that it will be."""
    found = _VERSION.fullmatch(version)
    numbers = [int(part) for part in re.split("[.-]", found[1])] if found else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def matching(framework: Framework, settings: Iterable[Setting]) -> int:
    """How many of the keys that tell a framework are set, by their names of today or as they are written."""
    today = Reading(framework, ()).key
    keys = {key for setting in settings for key in (normal(setting.key), today(setting.key))}
    return sum(any(fnmatchcase(key, normal(sign)) for key in keys) for sign in framework.signs)
