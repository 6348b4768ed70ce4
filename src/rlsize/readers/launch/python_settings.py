"""
Settings in Python scripts: arguments of `GRPOConfig(...)`, `LLM(...)`, trainers and the like, and the commands that
`subprocess` or `os.system` starts, by the syntax tree.

Nothing is imported or run. A name has the value of its last assignment above, in its function or in the module; a
parameter has what its function is called with; a call of a function of the script's is what its only `return` gives.
Variables of the environment are not set. What only a run would tell is left out; in a command it stays unknown.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError
from rlsize.facts.launch import GAP, Span, Word
from rlsize.frameworks.expressions import Plain, UnreadableError, arithmetic, evaluate
from rlsize.readers.launch.nodes import DEEPEST, Count, Node, Places, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlsize.readers.launch.nodes import Held

_LARGEST = 2**19
_LONGEST = 10_000
_CALLED = re.compile(r"\w*(?:Config|Trainer|Arguments|Args|Params|LLM|Engine)")
_FIRST = {"LLM": "model", "from_pretrained": "pretrained_model_name_or_path"}
_STARTS = {"run", "Popen", "call", "check_call", "check_output", "system"}
_HANDED_ON = ("entrypoint", "command", "run")
"""What jobs call the command that they run: of Ray, Azure and SkyPilot."""
_SAME = {"join", "split", "dedent", "strip", "replace", "quote"}
"""Methods that give a text, or its words, much as they are: `replace` where it puts other blanks."""
_MAKES: dict[str, Callable[..., Any]] = {"int": int, "float": float, "str": str}
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_GET = {"os.environ.get", "environ.get", "os.getenv", "getenv"}
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(slots=True)
class _Scope:
    """
    A function or the module.

    Args:
        outer: The scope around it; None for the module.
        bound: Line and expression of each assignment by name, in order; None for what no expression gives.
        given: What a call gives to parameters, by name, and where that stands.
    """

    outer: _Scope | None = None
    bound: dict[str, list[tuple[int, ast.expr | None]]] = field(default_factory=dict)
    given: dict[str, tuple[ast.expr, _Scope]] = field(default_factory=dict)


def python_settings(text: str, name: str, notes: list[str]) -> tuple[Node, tuple[tuple[Word, ...], ...]]:
    """
    The settings of a Python script, and the commands that it starts.

    Args:
        text: Its text.
        name: Its name.
        notes: Takes arguments that only a run would tell.

    Raises:
        InputError: It is not Python, or too large.
    """
    if len(text) > _LARGEST:
        raise InputError(Fault("is larger than 512 KiB", name, "is it the script you meant?"))
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        where = f"{name}:{error.lineno}" if error.lineno else name
        raise InputError(Fault(f"is not valid Python: {error.msg}", where, "mend the line")) from None
    except (ValueError, RecursionError, MemoryError):
        raise InputError(Fault("is nested too deeply, or no text", name, "is it the script you meant?")) from None
    reader = _Reader(text, name, notes)
    reader.read(tree)
    return Node(reader.found, Places("", name).span(0, 0)), tuple(reader.scripts)


def _set_later(node: ast.AST) -> Iterator[tuple[ast.Name | None, str, ast.expr]]:
    """What a statement sets: of the environment (`os.environ["X"] = "1"`: None), of an object (`args.x = 1`)."""
    if not isinstance(node, ast.Assign):
        return
    for target in node.targets:
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
            yield target.value, target.attr, node.value
        elif isinstance(target, ast.Subscript) and ast.unparse(target.value) in {"os.environ", "environ"}:
            yield None, ast.unparse(target.slice).strip("'\""), node.value


class _Reader:
    def __init__(self, text: str, name: str, notes: list[str]) -> None:
        self._name = name
        self._notes = notes
        self._count = Count(name)
        self._defaults: dict[str, ast.expr] = {}
        self._functions: dict[str, tuple[ast.FunctionDef, _Scope]] = {}
        # Lines as the parser counts them, whose columns are bytes already.
        self._starts = [0]
        for line in re.split(rb"(?<=\n)|(?<=\r)(?!\n)", text.encode("utf-8", "replace")):
            self._starts.append(self._starts[-1] + len(line))
        self.found: dict[str, Node] = {}
        self.scripts: list[tuple[Word, ...]] = []

    def read(self, tree: ast.Module) -> None:
        """Find all calls that set something."""
        module = _Scope()
        scopes = [module]
        calls: list[tuple[ast.Call, _Scope, ast.expr | None]] = []
        later: list[tuple[ast.Name | None, str, ast.expr, _Scope]] = []
        stack: list[tuple[ast.AST, _Scope, ast.For | None, ast.expr | None]] = [(tree, module, None, None)]
        while stack:
            node, scope, loop, test = stack.pop()
            if isinstance(node, _SCOPES):
                scope, loop, test = _Scope(scope), None, None
                scopes.append(scope)
                if isinstance(node, ast.FunctionDef):
                    self._functions[node.name] = node, scope
                if not isinstance(node, ast.ClassDef):
                    parameters = (part for part in ast.walk(node.args) if isinstance(part, ast.arg))
                    scope.bound |= {part.arg: [(node.lineno, None)] for part in parameters}
            elif isinstance(node, ast.Call):
                calls.append((node, scope, test))
                _extended(node, scope, loop, test)
            else:
                later += [(*one, scope) for one in _set_later(node)]
                _bind(node, scope, loop, test)
            loop = node if isinstance(node, ast.For) else loop
            stack += [(child, scope, loop, _also(test, node, child)) for child in ast.iter_child_nodes(node)]
        for assigned in chain.from_iterable(one.bound.values() for one in scopes):
            assigned.sort(key=lambda one: one[0])
        calls.sort(key=lambda call: (call[0].lineno, call[0].col_offset))
        self._argparse([call for call, _, _ in calls])
        self._give([(call, scope) for call, scope, _ in calls])
        for call, scope, test in calls:
            if test is None or not _tells(call) or self._truth(test, scope, 0) is not False:
                self._call(call, scope)
        self._later(later)

    def _give(self, calls: list[tuple[ast.Call, _Scope]]) -> None:
        """What the parameters of functions have that are called at one place of the script."""
        sites: dict[str, list[tuple[ast.Call, _Scope]]] = {}
        for call, scope in calls:
            sites.setdefault(getattr(call.func, "id", ""), []).append((call, scope))
        for name, (function, inner) in self._functions.items():
            if len(sites.get(name, ())) == 1:
                inner.given = _arguments(function, inner, *sites[name][0])

    def _later(self, later: list[tuple[ast.Name | None, str, ast.expr, _Scope]]) -> None:
        """What is set beside calls: variables of the environment, and attributes of what a call made."""
        for owner, name, value, scope in sorted(later, key=lambda one: one[2].lineno):
            bound = None if owner is None else self._bound(owner, scope)[0]
            group = "env" if owner is None else _called(bound) if isinstance(bound, ast.Call) else None
            try:
                if group is not None:
                    self._set(group, name, Node(self._held(value, scope), self._span(value)))
            except UnreadableError:
                self._notes.append(f"{self._span(value)}: {group}: {shown(name)} is left out")

    def _span(self, node: ast.expr) -> Span:
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or node.col_offset)
        return Span(self._name, node.lineno, start, end)

    def _argparse(self, calls: list[ast.Call]) -> None:
        """The defaults of options of the script's own."""
        for call in calls:
            if not (isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"):
                continue
            flags = [str(flag.value) for flag in call.args if isinstance(flag, ast.Constant)]
            flag = next((flag for flag in flags if flag.startswith("--")), flags[0] if flags else "").lstrip("-")
            given = {keyword.arg: keyword.value for keyword in call.keywords}
            action = str(getattr(given.get("action"), "value", ""))
            switch = ast.copy_location(ast.Constant(action == "store_false"), call)
            default = given.get("default", switch if action.startswith("store_") else None)
            if flag and default is not None:
                self._defaults[flag.replace("-", "_")] = default
                try:
                    self._set("argparse", flag, Node(self._held(default, _Scope()), self._span(default)))
                except UnreadableError:
                    self._notes.append(f"{self._span(default)}: the default of --{shown(flag)} is left out")

    def _call(self, call: ast.Call, scope: _Scope) -> None:
        """The settings of one call, if it is one that sets something, or the command that it starts."""
        self._started(call, scope)
        owner = _called(call)
        if owner is None:
            return
        first = _FIRST.get(getattr(call.func, "attr", owner), "model" if owner.endswith("Trainer") else "")
        if first and call.args and isinstance(call.args[0], ast.Constant | ast.Name | ast.JoinedStr):
            self._argument(owner, first, call.args[0], scope, [])
        missed: list[str] = []
        for keyword in call.keywords:
            if keyword.arg is not None:
                self._argument(owner, keyword.arg, keyword.value, scope, missed)
                continue
            try:
                items = self._held(keyword.value, scope)
            except UnreadableError:
                missed.append("**")
                continue
            for key, node in items.items() if isinstance(items, dict) else ():
                self._set(owner, key, node)
        if missed:
            names = ", ".join(shown(name) for name in missed)
            self._notes.append(f"{self._span(call)}: {owner}: {names}: left out, as only a run would tell")

    def _started(self, call: ast.Call, scope: _Scope) -> None:
        """The command of `subprocess.run(...)` and its kin, and that of slime's `execute_train(train_args=...)`."""
        func = call.func
        module = getattr(func.value, "id", "") if isinstance(func, ast.Attribute) else ""
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        given = {word.arg: word.value for word in call.keywords}
        if "hyperparameters" in given:  # SageMaker hands them to its program as options
            with suppress(UnreadableError):
                held = self._held(given["hyperparameters"], scope)
                self.found |= held if isinstance(held, dict) else {}
        if name == "execute_train" and "train_args" in given:
            program = self._text(given["train_script"], scope) if "train_script" in given else "train.py"
            text = f"python3 {program} {self._text(given['train_args'], scope)}"
            self.scripts.append((Word(text, self._span(given["train_args"])),))
            return
        first = next((given[key] for key in _HANDED_ON if key in given), None)
        if module in {"subprocess", "sp", "os"} and name in _STARTS and call.args:
            first = call.args[0]
        if first is None:
            return
        command, around = self._followed(first, scope)
        if words := [] if _begins_as_text(command) else self._words(command, around, 0):
            before = self._environment(given["env"], scope) if "env" in given else ()
            self.scripts.append((*before, *words))
        elif re.search(r"\w\s+\S", text := self._text(command, around)):
            self.scripts.append((Word(text, self._span(command)),))

    def _text(self, node: ast.expr, scope: _Scope, depth: int = 0) -> str:
        """A text that is shell, with a variable of the shell for each part that only a run would tell."""
        node, scope = self._followed(node, scope, depth)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in _MAKES and node.args:
            node = node.args[0]  # its name says more than that of a conversion
        try:
            held = self._held(node, scope, depth)
        except UnreadableError:
            held = None
        parts: list[ast.expr] = list(node.values) if isinstance(node, ast.JoinedStr) else []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            parts = [node.left, node.right]
        if held is None and parts and depth <= DEEPEST:
            inner = (part.value if isinstance(part, ast.FormattedValue) else part for part in parts)
            return "".join(self._text(part, scope, depth + 1) for part in inner)[:_LONGEST]
        if isinstance(node, ast.ListComp | ast.GeneratorExp):  # joined
            words = self._words(node, scope, depth)
            return " ".join("".join((one.text, *(f"${{{name}}}" for name in one.unknown))) for one in words)[:_LONGEST]
        return f"${{{_name_of(node)}}}" if held is None or isinstance(held, dict | list) else str(held)

    def _environment(self, node: ast.expr, scope: _Scope) -> Iterator[Word]:
        """What stands before a command for the variables that it is given: `env A=1`."""
        entries = self._entries(node, scope, 0)
        if entries:
            yield Word("env", self._span(node))
        for key, value in entries.values():
            name = key.value if isinstance(key, ast.Constant) else None
            for word in self._word(value, scope, 0) if isinstance(name, str) and name.isidentifier() else ():
                yield replace(word, text=f"{name!s}={word.text}")

    def _followed(self, node: ast.expr, scope: _Scope, depth: int = 0) -> tuple[ast.expr, _Scope]:
        """What a name, a call or a choice stands for, and where that stands; any other expression itself."""
        for _ in range(DEEPEST):
            followed, around = None, scope
            if isinstance(node, ast.Name):
                followed, around = self._bound(node, scope)
            elif isinstance(node, ast.IfExp):
                followed = node.body if self._holds(node.test, scope, depth) else node.orelse
            elif isinstance(node, ast.Call):
                followed, around = self._given_back(node, scope)
            if followed is None:
                break
            node, scope = followed, around
        return node, scope

    def _given_back(self, call: ast.Call, scope: _Scope) -> tuple[ast.expr | None, _Scope]:
        """What a call gives whose function stands in the script, or which changes the form of a text alone."""
        first = next(iter(call.args), None)
        if isinstance(call.func, ast.Attribute) and call.func.attr in _SAME:
            name, owner = call.func.attr, call.func.value
            if name == "join" or getattr(owner, "id", None) in {"shlex", "textwrap"}:
                return first, scope
            same = name != "replace" or not str(getattr(first, "value", name)).strip(" \\\n")
            return (owner if same else None), scope
        if ast.unparse(call.func) in _GET:
            return next(iter(call.args[1:]), ast.copy_location(ast.Constant(None), call)), scope
        function, inner = self._functions.get(getattr(call.func, "id", ""), (None, scope))
        gives = [one.value for one in ast.walk(function) if isinstance(one, ast.Return)] if function else []
        if function is None or len(gives) != 1:
            return None, scope
        return gives[0], _Scope(inner.outer, inner.bound, _arguments(function, inner, call, scope))

    def _holds(self, test: ast.expr, scope: _Scope, depth: int) -> bool:
        """Whether a condition holds; one that only a run would tell is read as if it did, with a note."""
        truth = self._truth(test, scope, depth)
        if truth is None:
            note = f"{self._span(test)}: a condition hangs on what only a run would tell: read as if it holds"
            self._notes += [] if note in self._notes else [note]
        return truth is not False

    def _truth(self, test: ast.expr, scope: _Scope, depth: int) -> bool | None:
        """Whether a condition holds; None where only a run would tell."""
        if isinstance(test, ast.BoolOp):
            parts = {self._truth(one, scope, depth) for one in test.values}
            decides = isinstance(test.op, ast.Or)
            return decides if decides in parts else None if None in parts else not decides
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            truth = self._truth(test.operand, scope, depth)
            return None if truth is None else not truth
        try:
            if isinstance(test, ast.Compare):
                return self._compared(test, scope, depth + 1)
            return bool(self._held(test, scope, depth + 1))
        except UnreadableError:
            return None

    def _compared(self, test: ast.Compare, scope: _Scope, depth: int) -> bool | None:
        """Whether a comparison holds; None where it is of no numbers, or of values of which only a run would tell."""
        sides = [self._held(side, scope, depth) for side in (test.left, *test.comparators)]
        if isinstance(test.ops[0], ast.Eq | ast.NotEq | ast.Is | ast.IsNot) and not test.ops[1:]:
            return (sides[0] == sides[1]) == isinstance(test.ops[0], ast.Eq | ast.Is)
        numbers = [ast.Constant(side) for side in sides if isinstance(side, int | float)]
        if len(numbers) < len(sides) or not all(isinstance(one, _ORDERS) for one in test.ops):
            return None
        return bool(evaluate(ast.Compare(numbers[0], test.ops, [*numbers[1:]]), Plain(str)))

    def _words(self, node: ast.expr, scope: _Scope, depth: int) -> list[Word]:
        """The words of a list, of several that are joined, or of one that a comprehension makes of a mapping."""
        self._count.one(0, self._span(node))
        node, scope = self._followed(node, scope, depth)
        if depth > DEEPEST:
            return []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return [word for side in (node.left, node.right) for word in self._words(side, scope, depth + 1)]
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            turns = self._turns(node, scope)
            made = [word for turn in turns for word in self._word(node.elt, turn, depth)]
            return [replace(word, span=replace(word.span, end=word.span.start)) for word in made]
        if isinstance(node, ast.List | ast.Tuple):
            return [word for item in node.elts for word in self._word(item, scope, depth)]
        if isinstance(node, ast.Call) and depth:  # a part of a command
            self._notes.append(f"{self._span(node)}: {shown(ast.unparse(node))} {GAP}")
        return []

    def _word(self, node: ast.expr, scope: _Scope, depth: int) -> list[Word]:
        """The word that one item of a list is, or those that a starred one is."""
        if isinstance(node, ast.Starred):
            return self._words(node.value, scope, depth + 1)
        if isinstance(node, ast.Attribute) and node.attr == "executable":
            return [Word("python3", self._span(node))]
        try:
            held = self._held(node, scope, depth)
        except UnreadableError:
            first, *others = re.split(r"\$\{(\w+)\}", self._text(node, scope, depth))
            return [Word(first + "".join(others[1::2]), self._span(node), tuple(others[::2]))]
        return [] if isinstance(held, dict | list) else [Word(str(held), self._span(node))]

    def _turns(self, node: ast.ListComp | ast.GeneratorExp, scope: _Scope) -> Iterator[_Scope]:
        """The scope of each turn of a comprehension over the items of a mapping, or over a list."""
        first, *others = node.generators
        over, items = first.iter, False
        if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) and over.func.attr == "items":
            over, items = over.func.value, True
        held, _ = self._followed(over, scope)
        targets = first.target.elts if isinstance(first.target, ast.Tuple) else [first.target]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        pairs: list[tuple[ast.expr, ...]] = []
        if (items or _pairs(held) is not None) and not (others or first.ifs):
            pairs = [each if items else each[:1] for each in self._entries(held, scope, 0).values()]
        elif isinstance(held, ast.List | ast.Tuple) and not (items or others or first.ifs):
            pairs = [tuple(one.elts) if isinstance(one, ast.Tuple) else (one,) for one in held.elts]
        for pair in pairs:
            bound = dict(zip(names, pair, strict=False))
            yield _Scope(scope, {name: [(0, value)] for name, value in bound.items()})

    def _entries(self, node: ast.expr, scope: _Scope, depth: int) -> dict[str, tuple[ast.expr, ast.expr]]:
        """Keys and values of a mapping by key, those of others that it takes in among them."""
        self._count.one(0, self._span(node))
        node, scope = self._followed(node, scope, depth)
        found: dict[str, tuple[ast.expr, ast.expr]] = {}
        pairs = _pairs(node) if depth <= DEEPEST else None
        for key, value in pairs or ():
            found |= {ast.unparse(key): (key, value)} if key else self._entries(value, scope, depth + 1)
        if pairs is None:
            self._notes.append(f"{self._span(node)}: {shown(ast.unparse(node))} {GAP}")
        return found

    def _argument(self, owner: str, key: str, value: ast.expr, scope: _Scope, missed: list[str]) -> None:
        if isinstance(value, ast.Call) and _called(value) is not None:
            return
        try:
            held = self._held(value, scope)
        except UnreadableError:
            bound = self._bound(value, scope)[0] if isinstance(value, ast.Name) else None
            if not (isinstance(bound, ast.Call) and _called(bound) is not None):
                missed.append(key)
            return
        self._set(owner, key, Node(held, self._span(value)))

    def _set(self, owner: str, key: str, node: Node) -> None:
        group = self.found.setdefault(owner, Node({}, node.span)).value
        if not isinstance(group, dict):
            return
        if key in group and group[key].plain != node.plain:
            self._notes.append(f"{node.span}: {owner}.{shown(key)} is set more than once: the last one counts")
        group[key] = node

    def _held(self, node: ast.expr, scope: _Scope, depth: int = 0) -> Held:  # noqa: PLR0911 (one for each kind)
        """
        What an expression gives.

        Raises:
            UnreadableError: Only a run would tell.
        """
        self._count.one(0, self._span(node))
        if depth > DEEPEST:
            raise UnreadableError("it is nested too deeply")
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float | None):
            return node.value
        if isinstance(node, ast.List | ast.Tuple):
            return [Node(self._held(item, scope, depth + 1), self._span(item)) for item in node.elts]
        if isinstance(node, ast.Dict):
            return self._items(list(zip(node.keys, node.values, strict=True)), scope, depth)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args:
            pairs: list[tuple[ast.expr | None, ast.expr]] = [
                (ast.Constant(word.arg) if word.arg else None, word.value) for word in node.keywords
            ]
            return self._items(pairs, scope, depth)
        if isinstance(node, ast.JoinedStr):
            return self._joined(node, scope, depth)
        if isinstance(node, ast.Name | ast.Attribute):
            return self._named(node, scope, depth)
        followed, around = self._followed(node, scope, depth)
        if followed is not node:
            return self._held(followed, around, depth + 1)
        return self._worked_out(node, scope, depth)

    def _worked_out(self, node: ast.expr, scope: _Scope, depth: int) -> Held:
        """
        What an expression gives that joins, converts, picks out or calculates.

        Raises:
            UnreadableError: Only a run would tell.
        """
        if isinstance(node, ast.Subscript):
            held, key = self._held(node.value, scope, depth + 1), self._held(node.slice, scope, depth + 1)
            if isinstance(held, dict) and str(key) in held:
                return held[str(key)].value
        elif isinstance(node, ast.BinOp):
            left, right = (self._held(side, scope, depth + 1) for side in (node.left, node.right))
            if isinstance(node.op, ast.Add) and isinstance(left, str) and isinstance(right, str):
                return (left + right)[:_LONGEST]
            if isinstance(left, int | float) and isinstance(right, int | float):
                return arithmetic(ast.BinOp(ast.Constant(left), node.op, ast.Constant(right)))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in _MAKES and len(node.args) == 1:
            return _made(ast.unparse(node.func), self._held(node.args[0], scope, depth + 1))
        return arithmetic(node, lambda name: self._operand(name, node, scope, depth))

    def _operand(self, name: str, node: ast.expr, scope: _Scope, depth: int) -> Held:
        """The value of a name in an expression."""
        named = ast.increment_lineno(ast.parse(name, mode="eval").body, node.lineno - 1)
        held = self._held(named, scope, depth + 1)
        if not isinstance(held, int | float | None):
            raise UnreadableError("it is no arithmetic")
        return held

    def _items(self, pairs: list[tuple[ast.expr | None, ast.expr]], scope: _Scope, depth: int) -> dict[str, Node]:
        held: dict[str, Node] = {}
        for key, value in pairs:
            if key is None:
                inner = self._held(value, scope, depth + 1)
                held |= inner if isinstance(inner, dict) else {}
            elif isinstance(key, ast.Constant):
                held[str(key.value)] = Node(self._held(value, scope, depth + 1), self._span(value))
            else:
                raise UnreadableError("its keys are worked out")
        return held

    def _joined(self, node: ast.JoinedStr, scope: _Scope, depth: int) -> str:
        text = ""
        for part in node.values:
            inner = part.value if isinstance(part, ast.FormattedValue) else part
            if isinstance(part, ast.FormattedValue) and part.format_spec is not None:
                raise UnreadableError("it is formatted")
            value = self._held(inner, scope, depth + 1)
            if isinstance(value, dict | list) or len(text) > _LONGEST:
                raise UnreadableError("it is no short text")
            text += str(value)
        return text

    def _named(self, node: ast.Name | ast.Attribute, scope: _Scope, depth: int) -> Held:
        """What a name stands for; `torch.bfloat16` is itself, `args.x` the default of the option."""
        if isinstance(node, ast.Name):
            value, around = self._bound(node, scope)
            if value is None:
                raise UnreadableError("it is worked out")
            return self._held(value, around, depth + 1)
        if isinstance(node.value, ast.Name) and node.value.id == "torch":
            return f"torch.{node.attr}"
        if isinstance(node.value, ast.Name) and node.attr in self._defaults:
            parsed, _ = self._followed(node.value, scope, depth)
            if isinstance(parsed, ast.Call) and getattr(parsed.func, "attr", "") == "parse_args":
                return self._held(self._defaults[node.attr], _Scope(), depth + 1)
        raise UnreadableError("it is worked out")

    @staticmethod
    def _bound(node: ast.expr, scope: _Scope) -> tuple[ast.expr | None, _Scope]:
        """The expression of the last assignment above to a name, in the nearest scope that has one, and its scope."""
        around: _Scope | None = scope
        if isinstance(node, ast.Name) and node.id == "__name__":
            return ast.copy_location(ast.Constant("__main__"), node), scope
        while around is not None and isinstance(node, ast.Name):
            if (bound := around.bound.get(node.id)) is not None:
                above = bisect_left(bound, node.lineno, key=lambda one: one[0])
                if above or around is not scope:
                    value = bound[above - 1][1]  # the last one, where all stand below in a scope around
                    return around.given.get(node.id, (None, scope)) if value is None else (value, scope)
            around = around.outer
        return None, scope


def _tells(call: ast.Call) -> bool:
    """Whether a call sets something, or starts a command."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in _STARTS or name == "execute_train" or _called(call) is not None


def _called(call: ast.Call) -> str | None:
    """The class of a call that sets something; None for any other."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name in {"from_pretrained", "get_peft_model"} and isinstance(call.func, ast.Attribute):
        return str(getattr(call.func.value, "id", getattr(call.func.value, "attr", name)))
    return str(name) if _CALLED.fullmatch(name) else None


def _arguments(
    function: ast.FunctionDef, inner: _Scope, call: ast.Call, scope: _Scope
) -> dict[str, tuple[ast.expr, _Scope]]:
    """What a call gives to the parameters of a function, by name, and where that stands."""
    names = [parameter.arg for parameter in function.args.args]
    own, defaults = inner.outer or inner, function.args.defaults
    given = {name: (value, own) for name, value in zip(names[::-1], defaults[::-1], strict=False)}
    given |= {name: (value, scope) for name, value in zip(names, call.args, strict=False)}
    return given | {word.arg: (word.value, scope) for word in call.keywords if word.arg is not None}


def _made(kind: str, held: Held) -> Held:
    """
    What `int`, `float` or `str` makes of a value.

    Raises:
        UnreadableError: Nothing.
    """
    try:
        made: int | float | str = _MAKES[kind](held)
    except (TypeError, ValueError, OverflowError):
        raise UnreadableError(f"it is no {kind}") from None
    return made


def _pairs(node: ast.expr) -> list[tuple[ast.expr | None, ast.expr]] | None:
    """Keys and values of a mapping, None for the key of another that it takes in; None where it is no mapping."""
    if isinstance(node, ast.Dict):
        return [*zip(node.keys, node.values, strict=True)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [(None, node.left), (None, node.right)]
    if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "dict"):
        return None
    named = ((one.arg and ast.copy_location(ast.Constant(one.arg), one.value), one.value) for one in node.keywords)
    return [*((None, one) for one in node.args), *((key or None, value) for key, value in named)]


def _begins_as_text(node: ast.expr) -> bool:
    """Whether a sum is one of texts: `"python -m x " + ...`."""
    while isinstance(node, ast.BinOp):
        node = node.left
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            return True
    return False


def _name_of(node: ast.expr) -> str:
    """An expression as a name that a shell's variable may have."""
    return "_".join(re.findall(r"[A-Za-z_]\w*", ast.unparse(node)))[:40] or "it"


def _also(test: ast.expr | None, node: ast.AST, child: ast.AST) -> ast.expr | None:
    """What holds where a part of a statement is reached: what holds around it, and in a branch its condition."""
    if not isinstance(node, ast.If) or child is node.test:
        return test
    own = ast.copy_location(ast.UnaryOp(ast.Not(), node.test), node.test) if child in node.orelse else node.test
    return own if test is None else ast.copy_location(ast.BoolOp(ast.And(), [test, own]), own)


def _extended(call: ast.Call, scope: _Scope, loop: ast.For | None, test: ast.expr | None) -> None:
    """Note what `words.append(x)`, `words.extend(y)` and `mapping.update(z)` make of a list or a mapping."""
    func = call.func
    if not (isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and len(call.args) == 1):
        return
    more = call.args[0]
    if func.attr == "update":
        made: ast.expr = ast.Dict([None, None], [func.value, more])
    elif func.attr in {"append", "extend"}:
        more = more if func.attr == "extend" else ast.copy_location(ast.List([more]), more)
        made = ast.BinOp(func.value, ast.Add(), _in_turn(more, loop))
    else:
        return
    made = _under(test, ast.copy_location(made, call), func.value)
    scope.bound.setdefault(func.value.id, []).append((call.lineno, made))


def _in_turn(words: ast.expr, loop: ast.For | None) -> ast.expr:
    """What a list adds to another one: in each turn of a loop, where it stands in one."""
    if loop is None:
        return words
    each = ast.copy_location(ast.Starred(words, ast.Load()), words)
    return ast.copy_location(ast.ListComp(each, [ast.comprehension(loop.target, loop.iter, [], 0)]), words)


def _under(test: ast.expr | None, value: ast.expr, before: ast.Name) -> ast.expr:
    """What a name is where its new value hangs on a condition."""
    if test is None:
        return value
    old = ast.copy_location(ast.Name(before.id), value)
    return ast.copy_location(ast.IfExp(test, value, old), value)


def _bind(node: ast.AST, scope: _Scope, loop: ast.For | None, test: ast.expr | None) -> None:
    """Note what a statement assigns to names; what no single expression gives is unknown."""
    for target, value in _assigned(node, loop):
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and value is not None:
            made = ast.copy_location(ast.Dict([None, target.slice], [target.value, value]), target)
            scope.bound.setdefault(target.value.id, []).append((target.lineno, _under(test, made, target.value)))
        for name in ast.walk(target):
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                found = None if value is None or name is not target else _under(test, value, name)
                scope.bound.setdefault(name.id, []).append((name.lineno, found))


def _assigned(node: ast.AST, loop: ast.For | None) -> Iterator[tuple[ast.AST, ast.expr | None]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            sides = [getattr(side, "elts", ()) for side in (target, node.value)]
            each = len(sides[0]) == len(sides[1]) > 0  # A, B = 1, 2
            yield from zip(*sides, strict=True) if each else ((target, node.value),)
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        yield node.target, node.value
    elif isinstance(node, ast.AugAssign) and (loop is None or isinstance(node.value, ast.List | ast.ListComp)):
        before = ast.copy_location(ast.Name(getattr(node.target, "id", ""), ast.Load()), node)
        yield node.target, ast.copy_location(ast.BinOp(before, node.op, _in_turn(node.value, loop)), node)
    elif isinstance(node, ast.AugAssign | ast.For | ast.AsyncFor | ast.comprehension):
        yield node.target, None
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, None
