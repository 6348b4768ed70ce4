"""Facts as YAML files that rlsize reads again, and single values as YAML text."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, get_type_hints

from rlsize.facts.fields import Quantity, Uncertain
from rlsize.units import DIMENSIONS, quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.facts.observations import RunObservation
    from rlsize.facts.plan import Plan
    from rlsize.facts.rates import Rates
    from rlsize.facts.run_log import RunSummary

_NUMBER = re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")

_PLAIN = re.compile(r"[A-Za-z][\w./+-]*(?: [\w./+-]+)*", re.ASCII)  # text that YAML takes for nothing else
# no text to one YAML reader or another
_WORDS = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SHORT = {"token": (("k", 1e3),), "param": (("B", 1e9), ("M", 1e6)), "B/s": ((" GB/s", 1e9), (" MB/s", 1e6))}
_EXACT = 1e15  # whole floats below it are written as they are


def dumped(content: Any, width: int, style: Callable[[str], str | None] = lambda _: None) -> str:  # noqa: ANN401 (any plain data)
    """
    Plain data as YAML: keys as they stand, everything written out, as rlsize reads no aliases.

    Args:
        content: Mappings, lists and scalars.
        width: Columns after which lines are broken.
        style: How a text is quoted, in yaml's sign for it; None where yaml may choose.
    """
    import yaml

    class Plain(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002, ANN401 (yaml's protocol)
            return True

    def represented(dumper: Any, text: str) -> Any:  # noqa: ANN401 (yaml's protocol)
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style(text))

    Plain.add_representer(str, represented)
    text: str = yaml.dump(content, Dumper=Plain, sort_keys=False, allow_unicode=True, width=width)
    return text


def yaml_text(kind: str, content: dict[str, Any]) -> str:
    """A file of a kind, header first."""
    return f"rlsize: {{kind: {kind}, version: 1}}\n{dumped(content, 110, _style)}"


def _style(text: str) -> str | None:
    """Quotes where rlsize reads a number though YAML 1.1 does not (`1e9`, `09`), or a line could break."""
    return "'" if _NUMBER.fullmatch(text) else None if text.isprintable() else '"'


def plain(value: Any) -> Any:  # noqa: ANN401 (any content of a dataclass)
    """A fact as YAML holds it: what is unknown left out, and a unit beside each number that is not read without one."""
    if is_dataclass(value):
        hints = get_type_hints(type(value), include_extras=True)
        held = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: _with_unit(plain(entry), hints[name]) for name, entry in held.items() if entry is not None}
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [plain(entry) for entry in value]
    return value


def _with_unit(value: Any, hint: Any) -> Any:  # noqa: ANN401 (a value and its annotation)
    for said in getattr(hint, "__metadata__", ()):
        if isinstance(said, Quantity) and not DIMENSIONS[said.unit].bare:
            return f"{value:.12g} {said.unit}"
    return value


def rates_text(rates: Rates) -> str:
    """
    The YAML of a rates file, which `fleet --per-instance` takes.

    What is unknown is left out, except where its absence is worth seeing.
    """
    return yaml_text("rates", {**plain(rates), "gpus_per_instance": rates.gpus_per_instance})


def plan_text(plan: Plan) -> str:
    """The YAML of a plan, which `check --baseline` takes; what is unknown is left out."""
    return yaml_text("plan", plain(plan))


def observation_text(observation: RunObservation) -> str:
    """The YAML of an observation, which `diagnose --before` takes, a line for each column; nothing of the unknown."""
    content = plain(observation)
    steps, columns = content.pop("steps"), content.pop("columns")
    lines = [f"steps: [{', '.join(map(str, steps))}]\n", "columns:\n" if columns else "columns: {}\n"]
    lines += [f"  {name}: [{', '.join(f'{value:.9g}' for value in values)}]\n" for name, values in columns.items()]
    return yaml_text("observation", content) + "".join(lines)


def mapping_text(run: RunSummary) -> str:
    """The YAML of what a log's keys were taken to mean by their names, and of those that nobody understood."""
    shown = [key for key in run.unread if key.isprintable()]
    unread = [f"# A key that looks like a time and was not understood: {key}\n" for key in shown]
    return yaml_text("mapping", {"quantities": dict(run.guessed)}) + "".join(unread)


def applied_text(sections: Mapping[str, Any], command: str) -> str:
    """
    The YAML of a scenario, with the command that wrote it in its first line.

    Args:
        sections: What it says, section by section.
        command: The command.
    """
    shown = "".join(character if character.isprintable() else "?" for character in command)
    return f"# {shown}\n{yaml_text('scenario', dict(sections))}"


def scalar(value: Any, kind: Quantity | None = None) -> str:  # noqa: ANN401 (any value of a field)
    """
    A value as YAML.

    Args:
        value: Text, a number, a switch, or a list of those.
        kind: Its unit, where it is a quantity.

    >>> scalar(8000.0, Quantity("token")), scalar(Uncertain(value=20, deviation=2), Quantity("s")), scalar("x: {y")
    ('8k', '20 ± 2', '"x: {y"')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(scalar(entry, kind) for entry in value)}]"
    if isinstance(value, str):
        return text(value)
    unit = kind.unit if kind is not None else "1"
    if not isinstance(value, Uncertain):
        return number(value, unit)
    spread = f" ± {number(value.deviation, unit)}" if value.deviation else ""
    return f"{number(value.value, unit)}{spread}"


def number(value: float, unit: str) -> str:
    """
    A number in base units, as short as it can be written without a change.

    >>> number(1536.0, "token"), number(16000.0, "token"), number(50e9, "B/s"), number(0.1 + 0.2, "1")
    ('1536', '16k', '50 GB/s', '0.30000000000000004')
    """
    for name, factor in _SHORT.get(unit, ()):
        candidate = f"{value / factor:.12g}{name}"
        if value and value % factor == 0 and quantity(candidate, unit) == value:
            return candidate
    plain = str(int(value)) if value == int(value) and abs(value) < _EXACT else repr(float(value))
    return plain if DIMENSIONS[unit].bare else f"{plain} {DIMENSIONS[unit].base}"


def text(value: str) -> str:
    r"""
    Text on one line, quoted where it could be taken for anything else.

    >>> text("qwen3-32b"), text("two words"), text("no"), text("a # b\n")
    ('qwen3-32b', 'two words', '"no"', '"a # b\\n"')
    """
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return f'"{"".join(map(_escaped, value))}"'


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return character if character.isprintable() else f"\\U{ord(character):08x}"
