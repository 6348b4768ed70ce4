"""What rlsize knows of each framework that runs RL post-training, from the profiles that it reads launches by."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING

from generate.markdown import table
from rlsize import units
from rlsize.frameworks.expressions import names
from rlsize.frameworks.told import QUANTITY
from rlsize.quantities.row import Switch, Text, Word
from rlsize.quantities.table import QUANTITIES
from rlsize.readers.frameworks import frameworks
from rlsize.readers.profiles import Catalogue

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.facts.framework import Abilities, Framework
    from rlsize.quantities.row import Kind

_LATE = {"wait": "none: it waits", "drop": "dropped", "continue": "trained on"}
_UNREAD = "†"


@cache
def _known() -> Mapping[str, Framework]:
    return frameworks(Catalogue())


def framework_index() -> str:
    """All frameworks in one table: modes, trainers, engines, how much is read of each."""
    rows = []
    for name, one in _known().items():
        runs = one.runs
        rows.append(
            [
                f"[{one.title}]({name}.md)",
                one.parent,
                _codes(runs.modes) if runs else "",
                _codes(runs.layouts) if runs else "",
                _codes(runs.engines) if runs else "",
                str(len(_told(one))),
                _codes(era.below for era in one.eras),
                str(len(one.unread)) if one.unread else "",
            ]
        )
    header = ["Framework", "Fork of", "Modes", "Trainers", "Engines", "Quantities", "Other before", "Keys not read"]
    return table(header, rows)


def framework_unread() -> str:
    """The keys of each framework that nobody has read in its source."""
    rows = [[f"[{one.title}](../frameworks/{name}.md)", _codes(one.unread)] for name, one in _known().items()]
    return table(["Framework", "Keys"], [row for row in rows if row[1]])


def framework_page(name: str) -> str:
    """
    The page of a framework, without its head.

    Args:
        name: Its profile.
    """
    one = _known()[name]
    parts = [_about(one), "## Quantities\n", _quantities(one), "## Keys\n", _keys(one)]
    if one.writes:
        rows = [[_code(key), _code(text)] for key, text in one.writes.items()]
        said = "Other keys are written as they are read. An expression that has no value leaves its key out.\n"
        parts += ["## Keys that are worked out when a launch is written\n", said, table(["Key", "From"], rows)]
    if one.variants:
        parts += ["## A new launch\n", _variants(one)]
    if one.runs is not None:
        parts += ["## What it can run\n", _abilities(one.runs)]
    if one.refuses:
        rows = [[_code(mode), *map(str, reason)] for mode, reason in one.refuses.items()]
        parts += ["What it cannot run:\n", table(["Mode", "Why", "Nearest"], rows)]
    if one.notes:
        parts += ["## Notes\n", "\n".join(f"- {_ended(note)}" for note in one.notes) + "\n"]
    return "\n".join(parts)


def _about(one: Framework) -> str:
    """Where its keys were read, and by what a launch of it is known."""
    lines = [f"Read in: {one.source}."]
    if one.parent:
        lines.append(f"A fork of [{_known()[one.parent].title}]({one.parent}.md): what it does not say holds as there.")
    for says, found in (
        ("Launched by", one.programs),
        ("Parts of it", one.parts),
        ("Its engines in processes of their own", one.servers),
        ("Known by the keys", one.signs),
        ("Its configuration file is named by", one.configurations),
        ("Also called", one.aliases),
    ):
        if found:
            lines.append(f"{says}: {_codes(found)}.")
    return "\n\n".join(lines) + "\n"


def _told(one: Framework) -> dict[str, str]:
    """Its quantities that rlsize has, with their expressions; others only serve these."""
    return {name: text for name, text in one.quantities.items() if name in QUANTITIES}


def _quantities(one: Framework) -> str:
    told = _told(one)
    shown = [
        [_code(name), _code(row.scenario) if row.scenario else "", _takes(row.kind), _code(text)]
        for name, text in told.items()
        for row in [QUANTITIES[name]]
    ]
    serving = [[_code(name), _code(text)] for name, text in one.quantities.items() if name not in told]
    parts = [table(["Quantity", "In a scenario", "Takes", "Follows from"], shown)]
    if serving:
        parts += ["These only serve others:\n", table(["Name", "Follows from"], serving)]
    return "\n".join(parts)


def _takes(kind: Kind) -> str:
    if isinstance(kind, Switch):
        return "yes or no"
    if isinstance(kind, Word):
        return "words" if kind.listed else "a word"
    if isinstance(kind, Text):
        return "a name"
    unit = units.DIMENSIONS[kind.unit].base
    return f"a number [{unit}]" if unit not in {"", "1"} else "a number"


def _keys(one: Framework) -> str:
    """Each key that is read, with its default now and before, and what follows from it."""
    follows: dict[str, list[str]] = defaultdict(list)
    for name, text in one.quantities.items():
        for key in dict.fromkeys(names(text)):
            if not key.startswith(QUANTITY):
                follows[key].append(_code(name))
    older: dict[str, list[str]] = defaultdict(list)
    for old, new in one.renamed.items():
        older[new].append(_code(old))
    before: dict[str, list[str]] = defaultdict(list)
    for era in one.eras:
        for key, value in era.defaults.items():
            before[key].append(f"{_code(value)} before {era.below}")
    rows = [
        [
            _code(key) + (f" {_UNREAD}" if key in one.unread else ""),
            _code(one.defaults[key]) if one.defaults.get(key) is not None else "",
            ", ".join(before[key]),
            ", ".join(follows[key]),
            ", ".join(older[key]),
        ]
        for key in sorted({*follows, *one.defaults})
    ]
    return table(["Key", "Default", "Default before", "Quantities", "Older or other names"], rows) + _doubts(one)


def _doubts(one: Framework) -> str:
    """What is known to be unsure of the keys, and what other versions do otherwise."""
    lines = []
    if one.unread:
        lines.append(f"{_UNREAD} Nobody has read these in its source: {_codes(one.unread)}.")
    for era in one.eras:
        if era.quantities:
            changed = "; ".join(f"{_code(name)} from {_code(text)}" for name, text in era.quantities.items())
            lines.append(f"Before {era.below}: {changed}.")
        if era.signs:
            lines.append(f"A launch is taken for one of before {era.below} where it sets {_codes(era.signs)}.")
    if one.silent:
        lines.append(f"Set without effect on a size: {_codes(one.silent)}.")
    lines += [f"Where {_code(text)}: {says[:1].lower()}{says[1:]}." for text, says in one.uncounted.items()]
    return "".join(f"\n{line}\n" for line in lines)


def _variants(one: Framework) -> str:
    """The ways in which a new launch runs, what they set, and what must hold."""
    rows = [
        [name, _codes(way.modes), _code(way.command) if way.command else "", _sets(way.sets)]
        for name, way in one.variants.items()
    ]
    parts = [
        "The first that runs the plan's mode is taken.\n",
        table(["Way", "Modes", "Command", "Sets"], rows),
    ]
    held = [("all", one.demands), *((name, way.demands) for name, way in one.variants.items())]
    asked = [[name, _code(text), says] for name, demands in held for text, says in demands.items()]
    if asked:
        parts += ["What must hold, or it says why not:\n", table(["Way", "Must hold", "Else"], asked)]
    noted = [f"- {name}: {_ended(note)}" for name, way in one.variants.items() for note in way.notes]
    return "\n".join([*parts, *(["\n".join(noted) + "\n"] if noted else [])])


def _sets(keys: Mapping[str, object]) -> str:
    return ", ".join(_code(f"{key}={value}") for key, value in keys.items() if not key.startswith("launcher."))


def _abilities(runs: Abilities) -> str:
    """Modes, layouts, engines, offloads and peaks."""
    modes = [[_code(mode), _LATE.get(late, late)] for mode, late in runs.modes.items()]
    layouts = [[_code(backend), ", ".join(kinds)] for backend, kinds in runs.layouts.items()]
    stages = ", ".join(map(str, runs.zero_stages))
    parts = [
        table(["Mode", "Samples that come too late"], modes),
        table(["Trainer", "Kinds of parallelism"], layouts),
        f"Engines: {_codes(runs.engines)}. ZeRO stages of its trainers: {stages} (3 is FSDP).\n",
    ]
    for head, found in (
        (["Key that moves states", "What it really frees"], runs.offloads),
        (["Phase in which memory peaks", "Why"], runs.peaks),
    ):
        if found:
            parts.append(table(head, [[_code(key), says] for key, says in found.items()]))
    return "\n".join(parts)


def _code(value: object) -> str:
    """A value as code; backticks in it would end the code."""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _codes(values: Iterable[object]) -> str:
    return ", ".join(map(_code, values))


def _ended(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."
