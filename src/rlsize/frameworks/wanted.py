"""From quantities back to settings: which keys must have which values so that a launch tells what is wanted."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault
from rlsize.facts.launch import Setting
from rlsize.frameworks.expressions import Plain, evaluate, items, names, parsed
from rlsize.frameworks.told import NOWHERE, QUANTITY, Reading, normal, taken_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlsize.facts.framework import Framework

_ROUNDS = 6  # a key that is written may make another one count
_NOTHING = (None, "none")
_NEUTRAL = (None, False, 0, 1, "none", ())
"""What a quantity may be wanted to be of which a framework knows nothing: off, not spread, every time."""
_AROUND = {
    "batch.nodes": "nodes", "batch.gpus_per_node": "gpus_per_node", "batch.gres": "gpus_per_node",
    "batch.gpus": "gpus", "launcher.nnodes": "nodes", "launcher.num_machines": "nodes",
    "launcher.nproc_per_node": "gpus_per_node", "launcher.num_processes": "trainer_gpus", "env.NNODES": "nodes",
    "env.NPROC_PER_NODE": "gpus_per_node", "env.CUDA_VISIBLE_DEVICES": "gpus_per_node", "cluster.nodes": "nodes",
    "cluster.gpus_per_node": "gpus_per_node", "accelerate.num_machines": "nodes",
    "accelerate.num_processes": "trainer_gpus",
    "deepspeed.train_micro_batch_size_per_gpu": "micro_batch_samples",
    "deepspeed.zero_optimization.stage": "zero_stage", "accelerate.deepspeed_config.zero_stage": "zero_stage",
}  # fmt: skip
"""What stands around a program and repeats one of its quantities."""


@dataclass(frozen=True, slots=True)
class Changes:
    """
    What must be set so that a launch tells what is wanted.

    Args:
        keys: The keys, as the framework has them today, and their values; None: no longer set.
        follows: Quantities that nobody asked for and that change with it: before and after.
        refused: What cannot be had, and what the framework says instead.
        notes: What stands around the program and was not in step with it before, so that it is left alone.
        beside: Keys that go with others though no quantity hangs on them.
    """

    keys: Mapping[str, Any]
    follows: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    refused: tuple[Fault, ...] = ()
    notes: tuple[str, ...] = ()
    beside: frozenset[str] = frozenset()


def _as_wanted(reading: Reading, goals: Mapping[str, Any]) -> Plain:
    """What expressions of `writes` ask: quantities as they are wanted, all else as it is told."""
    wanted = {QUANTITY + name: value for name, value in goals.items()}
    return Plain(lambda key: wanted[key] if key in wanted else reading.value(key))


def same(one: object, other: object) -> bool:
    """
    Whether two values of a configuration mean the same.

    >>> same(8, 8.0), same(None, False), same(True, 1), same((1, 2), [1, 2]), same("8", 8)
    (True, True, False, True, True)
    >>> same(None, "none"), same(None, 0), same((8, 8), "8 8")
    (True, False, True)
    """
    one, other = (" ".join(map(str, said)) if isinstance(said, (list, tuple)) else said for said in (one, other))
    if isinstance(one, bool) or isinstance(other, bool):
        return (one or False) is (other or False)
    return one == other or str(one) == str(other) or (one in _NOTHING and other in _NOTHING)


def changes(reading: Reading, wanted: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> Changes:
    """
    The keys to change in a launch.

    Args:
        reading: The launch as it is.
        wanted: Values of quantities; None for one that should not hold, such as samples where tokens count.
        given: What keys may be worked out from, and need not come out: the GPUs of a whole node.

    Returns:
        Only keys whose values change. Those are told apart that repeat a quantity around the program.
    """
    wanted = {name: _whole(value) for name, value in wanted.items()}
    keys, after = _reached(reading, wanted, given or {}, every=False)
    told, now = values(reading), values(after)
    around, notes = _around(reading, told, now)
    found = {**around, **keys, **dict(_alike(reading, after))}
    keys = {key: value for key, value in found.items() if not _holds(reading, key, value)}
    return Changes(
        keys,
        {
            name: (told.get(name), now.get(name))
            for name in reading.framework.quantities
            if not name.startswith("_") and name not in wanted and not same(told.get(name), now.get(name))
        },
        tuple(_refused(reading.framework, wanted, now)),
        tuple(notes),
        frozenset(_beside(reading, keys)),
    )


def whole(
    framework: Framework, fixed: Mapping[str, Any], wanted: Mapping[str, Any], given: Mapping[str, Any]
) -> tuple[Changes, dict[str, Any]]:
    """
    All keys of a new launch, those that have the framework's defaults among them.

    Args:
        framework: The framework.
        fixed: Keys that make it run so.
        wanted: Values of quantities.
        given: What keys may be worked out from, and need not come out.

    Returns:
        The keys, and all quantities that they tell.
    """
    begun = Reading(framework, [Setting(key, value, NOWHERE) for key, value in fixed.items()])
    keys, after = _reached(begun, wanted, given, every=True)
    now = values(after)
    return Changes({**fixed, **keys}, refused=tuple(_refused(framework, wanted, now))), now


def _alike(reading: Reading, after: Reading) -> Iterator[tuple[str, object]]:
    """Keys that no quantity hangs on and that agree with the loop, such as those of a critic: they go on to agree."""
    for key in reading.settings:
        if key not in reading.keys.asked and reading.as_it_writes(key) and (value := after.written(key)) is not None:
            yield key, value


def _whole(value: object) -> object:
    """A count as configurations write it: 4, not 4.0."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _holds(reading: Reading, key: str, value: object) -> bool:
    """Whether a key has a value already, or is not set where it is not to be."""
    return key not in reading.settings if value is None else same(reading.value(key), value)


def spelled(reading: Reading, key: str) -> str:
    """
    How a key is written that is not set yet.

    As the framework spells it, if that is not as it is named (`+actor.x`, `num-gpus`); by its older name in a launch
    that has such names, or in a version that has no other.
    """
    framework = reading.framework
    if key in framework.lacks:
        return next(iter(taken_names(framework, key)), key)
    names = {normal(one.key): other for other, one in reading.settings.items() if one.span.file}
    if framework.older_names or any(own != other for own, other in names.items()):
        for old, new in framework.renamed.items():
            if new == key and old not in framework.lacks:
                return old
            if len(new) > 1 and new.endswith("*") and key.startswith(new[:-1]):
                today, older = ([own for own in names if own.startswith(one[:-1])] for one in (new, old))
                if older or not today:
                    return old[:-1] + key[len(new) - 1 :]
    return next((written for written in framework.writes if reading.key(written) == key), key)


def values(reading: Reading) -> dict[str, Any]:
    """All quantities that are told; what cannot be worked out is not."""
    found = {}
    for name in reading.framework.quantities:
        try:
            told = reading.quantity(name)
        except ValueError:
            continue
        if told is not None:
            found[name] = told.value
    return found


def _reached(
    reading: Reading, wanted: Mapping[str, Any], given: Mapping[str, Any], *, every: bool
) -> tuple[dict[str, Any], Reading]:
    """Keys that bring a launch to what is wanted, and the launch that has them."""
    goals, keys, current = dict(wanted), dict[str, Any](), reading
    for turn in range(_ROUNDS):
        told = values(current)
        wrong = {
            name: value
            for name, value in {**given, **goals}.items()
            if (every and not turn and value is not None and (name in goals or value != 1))
            or (name in goals and not same(told.get(name), value))
        }
        found, more = _proposed(current, wrong, {**given, **goals}, given, every=every)
        if not every:
            found = {key: value for key, value in found.items() if not _holds(current, key, value)}
        if keys | found == keys and more.keys() <= goals.keys():
            break
        goals, keys = more | goals, keys | found
        current = reading.changed(keys)
    return _needed(reading, keys, goals, given, every=every)


def _proposed(
    current: Reading, wrong: Mapping[str, Any], goals: Mapping[str, Any], given: Mapping[str, Any], *, every: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keys, and other quantities, that what is wrong so far asks for; what need not come out asks for keys alone."""
    found, more = dict[str, Any](), dict[str, Any]()
    for name, value in wrong.items():
        for way, to in _settled(current, name, value, goals, every=every).items():
            if way.startswith(QUANTITY):
                more |= {} if {name, own := way.removeprefix(QUANTITY)} & given.keys() else {own: to}
            elif current.framework.lacks and not taken_names(current.framework, way):
                continue
            elif way in current.settings or not way.startswith("values."):  # keys of a job file, where it is one
                found.setdefault(current.key(way), to)
    return found, more


def _needed(
    reading: Reading, keys: dict[str, Any], goals: Mapping[str, Any], given: Mapping[str, Any], *, every: bool
) -> tuple[dict[str, Any], Reading]:
    """What is left of keys without those that have no effect: when others came, or beside what a launch has."""
    current = reading.changed(keys)
    told = values(current)
    asked, _ = _proposed(current, {**given, **goals}, {**given, **goals}, given, every=True)
    said = asked if every else {key: keys.get(key) for key in reading.settings}
    carried = {reading.key(key): _carried(parsed(text)) for key, text in reading.framework.writes.items()}
    known = {QUANTITY + name for name in (*goals, *given)}
    kept = {
        key
        for key, value in said.items()
        if value is not None and (not every or carried.get(key, known) <= known)  # else it is told by a default alone
    }
    if not every:
        together = {normal(key) for key in reading.framework.together}
        kept |= _beside(reading, keys) | {key for key in together & keys.keys() if keys[key] is not None}
    for key in [key for key in keys if key not in kept]:
        fewer = {other: value for other, value in keys.items() if other != key}
        without = reading.changed(fewer)
        left = values(without)
        if all(same(left.get(name), told.get(name)) for name in goals):
            keys, current = fewer, without
    return keys, current


def _beside(reading: Reading, keys: Mapping[str, Any]) -> set[str]:
    """Keys that go, and that say something beside a quantity that goes: how to recompute, where nothing is."""
    written = ((reading.key(key), text) for key, text in reading.framework.writes.items())
    return {key for key, text in written if keys.get(key, key) is None and not _carried(parsed(text))}


def _settled(current: Reading, name: str, value: object, goals: Mapping[str, Any], *, every: bool) -> dict[str, Any]:
    """Keys, and other quantities, that give a quantity its value: plainly, as the framework writes it, as a sum."""
    text = current.framework.quantities.get(name)
    if every and text is not None and text.startswith("listed("):
        text = None  # a new launch moves out what its mode does
    plain = _ways_of(text, value, current, sums=False)
    bare = text is not None and isinstance(parsed(text), (ast.Attribute, ast.Name)) and not text.startswith(QUANTITY)
    written = {} if bare and not every else _written(current, name, goals)
    bears = any(to is not None or key in current.settings for key, to in written.items())
    if not every and (plain or bears):  # a profile knows better than arithmetic backwards what hangs on what
        reached = current.changed(written).value(QUANTITY + name) if written else None
        return written if written and (not plain or same(reached, value)) else plain
    written = {**plain, **written}
    kept = {key: to for key, to in written.items() if to is not None or key in current.settings}
    return kept or _ways_of(text, value, current, sums=True)


def _written(current: Reading, name: str, goals: Mapping[str, Any]) -> dict[str, Any]:
    """Keys that the framework writes by expressions over a quantity; None: it is not set so."""
    found = {}
    for key, text in current.framework.writes.items():
        if QUANTITY + name in _asked(text):
            try:
                value = evaluate(text, _as_wanted(current, goals))
            except ValueError:
                continue
            if value is not None or _known(text, current, goals):
                found[current.key(key)] = value
    return found


@cache
def _asked(text: str) -> frozenset[str]:
    """The quantities of an expression."""
    return frozenset(name for name in names(text) if name.startswith(QUANTITY))


@cache
def _carried(node: ast.AST) -> frozenset[str]:
    """The quantities whose values an expression carries, those that only decide between values aside."""
    if isinstance(node, ast.IfExp):
        return _carried(node.body) | _carried(node.orelse)
    return _asked(ast.unparse(node))


def _known(text: str, current: Reading, goals: Mapping[str, Any]) -> bool:
    """Whether all quantities of an expression are told or wanted, so that no value means that a key is not set."""
    return all(name.removeprefix(QUANTITY) in goals or current.value(name) is not None for name in _asked(text))


def _ways_of(text: str | None, value: object, current: Reading, *, sums: bool) -> dict[str, Any]:
    """Keys, and other quantities, whose values give an expression a value."""
    try:
        return dict(_Inverse(current, sums=sums).ways(parsed(text), value)) if text is not None else {}
    except (ValueError, TypeError):
        return {}


class _Inverse:
    """
    What the names of an expression must be so that it has a value; nothing where that is not plain.

    Args:
        current: The launch, whose values decide which side of a choice counts.
        sums: Whether the left side of a product or a sum may be changed.
    """

    def __init__(self, current: Reading, *, sums: bool) -> None:
        self.current, self.sums = current, sums

    def ways(self, node: ast.AST, value: object) -> Iterator[tuple[str, object]]:
        """Names and values."""
        way = getattr(self, f"_{type(node).__name__.lower()}", None)
        if way is not None:
            yield from way(node, value)

    def _now(self, node: ast.AST) -> object:
        return evaluate(ast.unparse(node), self.current)

    def _name(self, node: ast.Name, value: object) -> Iterator[tuple[str, object]]:
        yield ast.unparse(node), value

    def _attribute(self, node: ast.Attribute, value: object) -> Iterator[tuple[str, object]]:
        yield ast.unparse(node), value

    def _unaryop(self, node: ast.UnaryOp, value: object) -> Iterator[tuple[str, object]]:
        if isinstance(node.op, ast.Not):
            yield from self.ways(node.operand, not value)

    def _boolop(self, node: ast.BoolOp, value: object) -> Iterator[tuple[str, object]]:
        alike = bool(value) == isinstance(node.op, ast.And)  # all parts have it, else one is enough
        for part in node.values if alike else node.values[:1]:
            yield from self.ways(part, value)

    def _call(self, node: ast.Call, value: object) -> Iterator[tuple[str, object]]:
        """`first(a, b)`: the one that counts; `listed("a", x, "b", y)`: whether each is in the list."""
        if isinstance(node.func, ast.Name) and node.func.id == "listed" and isinstance(value, (list, tuple)):
            for name, holds in zip(node.args[::2], node.args[1::2], strict=True):
                if isinstance(holds, (ast.Attribute, ast.Name)) and "offload" in ast.unparse(holds):
                    yield from self.ways(holds, ast.literal_eval(name) in value)  # else the mode decides
            return
        parts = [part for part in node.args if not isinstance(part, ast.Constant)]
        if isinstance(node.func, ast.Name) and node.func.id in {"first", "base", "lower", "number", "int"} and parts:
            counts = next((part for part in parts if self._now(part) is not None), parts[0])
            yield from self.ways(counts, value)

    def _ifexp(self, node: ast.IfExp, value: object) -> Iterator[tuple[str, object]]:
        """`a if test else b`: the side that counts; the other one where this is a constant and no such value."""
        holds = bool(self._now(node.test))
        counts, other = (node.body, node.orelse) if holds else (node.orelse, node.body)
        if value is None and isinstance(other, ast.Constant) and other.value is None:
            yield from self.ways(node.test, not holds)
        elif not isinstance(counts, ast.Constant):
            yield from self.ways(counts, value)
        elif not same(counts.value, value) and (not isinstance(other, ast.Constant) or same(other.value, value)):
            yield from self.ways(node.test, not holds)
            yield from self.ways(other, value)
        elif isinstance(other, ast.Constant) and isinstance(node.test, (ast.Attribute, ast.Name)):
            yield from self.ways(node.test, holds)

    def _compare(self, node: ast.Compare, value: object) -> Iterator[tuple[str, object]]:
        """`key == x` that should hold, `key != x` that should not, `key > 0` that should not."""
        side, test = self._now(node.comparators[0]), node.ops[0]
        if isinstance(test, ast.Eq if value else (ast.NotEq, ast.Gt)):
            yield from self.ways(node.left, side)
        elif isinstance(side, bool):
            yield from self.ways(node.left, not side)

    def _binop(self, node: ast.BinOp, value: object) -> Iterator[tuple[str, object]]:
        """The left side of a product, a quotient, a sum; whole numbers stay whole."""
        right = self._now(node.right)
        if not self.sums or not isinstance(value, (int, float)) or not isinstance(right, (int, float)):
            return
        if isinstance(node.op, ast.Mult):
            if right and value % right == 0:
                yield from self.ways(node.left, value // right)
        elif isinstance(node.op, (ast.Div, ast.FloorDiv)):
            yield from self.ways(node.left, value * right)
        elif isinstance(node.op, (ast.Add, ast.Sub)):
            yield from self.ways(node.left, value - right if isinstance(node.op, ast.Add) else value + right)


def _around(reading: Reading, told: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Values of what stands around the program and repeats a quantity that changes; what was not in step is named."""
    found, notes = dict[str, Any](), list[str]()
    for key, name in _AROUND.items():
        setting, old, new = reading.settings.get(key), told.get(name), now.get(name)
        if setting is None or same(old, new) or new is None:
            continue
        text = str(setting.value)
        devices = key.endswith("VISIBLE_DEVICES")
        tail = re.search(r"\d+$", text)
        said = len(items(text)) if devices else int(tail[0]) if tail else None
        if said == old:
            found[key] = (
                ",".join(map(str, range(new))) if devices else new if said == setting.value else _ended(text, new)
            )
        elif said != new:
            notes.append(
                f"{setting.span}: {setting.key} is {text[:40]}, and {name} changes from {old} to {new}: look at it."
            )
    notes += _devices_of_two(reading, told, now)
    setting, gpus = reading.settings.get("batch.nodes"), now.get("gpus") or 0
    held = (now.get("nodes") or gpus) * (now.get("gpus_per_node") or 1)
    if setting is not None and "batch.nodes" not in found and held < gpus != told.get("gpus"):
        # headers alone say how many nodes there are
        notes.append(f"{setting.span}: nodes of {held} GPUs in all are asked for, and {gpus} are used: look at it.")
    return found, notes


def _devices_of_two(reading: Reading, told: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """What is said of devices, where a server has its own: which of them go to whom nobody else can say."""
    pair = {"rollout_gpus": "server.env.CUDA_VISIBLE_DEVICES", "trainer_gpus": "env.CUDA_VISIBLE_DEVICES"}
    found = {name: reading.settings[key] for name, key in pair.items() if key in reading.settings}
    if len({str(one.value) for one in found.values()}) < len(pair):  # one for both, or exported to both
        return
    for name, setting in found.items():
        old, new = told.get(name), now.get(name)
        if not same(old, new) and len(items(str(setting.value))) != new:
            where = f"{setting.span}: CUDA_VISIBLE_DEVICES is {str(setting.value)[:40]}"
            yield f"{where}, and {name} changes from {old} to {new}: look at it."


def _ended(text: str, number: int) -> str:
    """A text that ends in a number, with another one: `gpu:h100:8`."""
    return re.sub(r"\d+$", str(number), text)


def _refused(framework: Framework, wanted: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Fault]:
    """A fault for each quantity that does not come out as it is wanted."""
    for name, value in wanted.items():
        if name not in framework.quantities:
            if value not in _NEUTRAL:
                yield Fault(f"{framework.title} has no key for {name} = {value}", name, "leave it out")
        elif not same(now.get(name), value):
            said = "nothing" if now.get(name) is None else now[name]
            what = f"{framework.title} cannot be set to {name} = {value}: its keys say {said}"
            yield Fault(what, name, "change what it follows from by hand")
