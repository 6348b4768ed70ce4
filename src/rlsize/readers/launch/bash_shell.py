"""What a shell knows while its script is read: variables, arguments, functions; never a process."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from rlsize.facts.launch import Span, Word
from rlsize.readers.launch.bash_arithmetic import Arithmetic, UnknownValueError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rlsize.readers.launch.bash_source import Budget, Source

Array: TypeAlias = dict[Any, Word]
"""Words by number, or by key."""

NOWHERE = Span("", 1)
_UNTOLD = frozenset("$!") | {"RANDOM", "SECONDS", "LINENO", "EPOCHSECONDS", "PPID", "BASHPID"}
_LONGEST_EXPRESSION = 4096
_DEEPEST_EXPRESSION = 12


@dataclass(slots=True)
class Shell:
    """
    One shell; a subshell is a copy.

    Args:
        budget: What the script may ask.
        zero: The script itself, `$0`.
        substitute: What `$(...)` prints, or that nobody can tell.
        variables: Scalars and arrays.
        exported: Names that programs get to see.
        integers: Names declared with -i.
        keyed: Names declared with -A.
        functions: Functions, by name.
        arguments: `$1` and on.
        files: The scripts that are being read, the innermost last.
        outside: Every use of what only the outside could tell; shared by all subshells.
        depth: How deep expansions nest.
        level: How deep functions, files and substitutions nest.
    """

    budget: Budget
    zero: str
    substitute: Callable[[Source, Shell], Word]
    variables: dict[str, Word | Array] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    integers: set[str] = field(default_factory=set)
    keyed: set[str] = field(default_factory=set)
    functions: dict[str, tuple[Source, Any]] = field(default_factory=dict)
    arguments: list[Word] = field(default_factory=list)
    files: tuple[str, ...] = ()
    outside: list[str] = field(default_factory=list)
    depth: int = 0
    level: int = 0

    def copy(self) -> Shell:
        """A subshell."""
        self.budget.spend(20 * len(self.variables))
        variables = {name: dict(value) if isinstance(value, dict) else value for name, value in self.variables.items()}
        return replace(
            self,
            variables=variables,
            exported=set(self.exported),
            integers=set(self.integers),
            keyed=set(self.keyed),
            functions=dict(self.functions),
            arguments=list(self.arguments),
        )

    @property
    def separators(self) -> str:
        """$IFS."""
        said = self.get("IFS")
        return " \t\n" if said is None else said.text

    def get(self, name: str) -> Word | None:
        """The value of `$name`; None where nobody sets it."""
        if name.isdigit() and name != "0":
            at = int(name[:6]) - 1
            return self.arguments[at] if at < len(self.arguments) else None
        if name in self.variables:
            value = self.variables[name]
            return value.get(0, value.get("0")) if isinstance(value, dict) else value
        known = {"0": self.zero, "#": str(len(self.arguments)), "?": "0", "-": "hB", "PWD": "."}
        if name == "#" and not self.arguments:
            self.outside.append("$#")
        if name == "BASH_SOURCE":
            return Word(self.files[-1] if self.files else self.zero, NOWHERE)
        if name in known:
            return Word(known[name], NOWHERE)
        return Word("", NOWHERE, (f"${name}",)) if name in _UNTOLD else None

    def array(self, name: str) -> Array | None:
        """All values of a variable by place or key; None where nobody sets it."""
        value = self.variables.get(name)
        if isinstance(value, dict):
            return dict(sorted(value.items())) if all(isinstance(key, int) for key in value) else value
        scalar = self.get(name)
        return None if scalar is None else {0: scalar}

    def put(self, name: str, word: Word, key: int | str | None = None, *, append: bool = False) -> None:
        """Set a variable, or an element of an array."""
        held = self.variables.get(name)
        self.budget.spend(len(word.text) + 10)
        if key is None and isinstance(held, dict):
            key = 0
        if key is not None and not isinstance(held, dict):
            held = {} if held is None else {0: held}
            self.variables[name] = held
        before = held.get(key) if isinstance(held, dict) else held
        if name in self.integers:
            word = self.calculated(word)
        if append and before is not None:
            if name in self.integers:
                word = self.calculated(Word(f"({before.text})+({word.text})", word.span, before.unknown + word.unknown))
            else:
                self.budget.value(len(before.text) + len(word.text))
                word = Word(before.text + word.text, word.span, before.unknown + word.unknown)
        if isinstance(held, dict):
            held[key] = word
        else:
            self.variables[name] = word

    def calculated(self, word: Word, depth: int = 0) -> Word:
        """What an expression gives, in digits; unknown where it hangs on what nobody told."""
        if word.unknown:
            self.outside += word.unknown
            return Word("", word.span, word.unknown)
        try:
            return Word(str(self._evaluated(word.text, depth)), word.span)
        except UnknownValueError as error:
            self.outside += error.names
            return Word("", word.span, error.names)

    def _evaluated(self, text: str, depth: int) -> int:
        if len(text) > _LONGEST_EXPRESSION or depth > _DEEPEST_EXPRESSION:
            raise UnknownValueError("$((...))")
        self.budget.spend(20 + 4 * len(text))

        def get(name: str, key: int | None) -> int:
            word = self.get(name) if key is None else (self.array(name) or {}).get(key)
            if word is None or word.unknown:
                raise UnknownValueError(*(word.unknown if word else (name,)))
            return self._evaluated(word.text, depth + 1) if word.text.strip() else 0

        def put(name: str, key: int | None, value: int) -> None:
            self.put(name, Word(str(value), NOWHERE), key)

        return Arithmetic(text, get, put).value()
