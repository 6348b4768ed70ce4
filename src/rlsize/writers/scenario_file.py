"""The commented scenario that `rlsize init` writes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from rlsize.facts.fields import Quantity
from rlsize.quantities.scenario import Scenario
from rlsize.quantities.scenario_keys import fields_of, meaning, section
from rlsize.writers.scalars import scalar
from rlsize.writers.scenario_notes import NOTES, Note

Answers = Mapping[str, Any]
"""Values of a scenario by dotted key; None, as a missing key, where nobody answered."""

STARTER: Answers = MappingProxyType(
    {
        "model": "qwen3-32b",
        "cluster.gpu": "h100-sxm",
        "cluster.gpus": 64,
        "cluster.gpus_per_node": 8,
        "cluster.interconnect": "infiniband-400g",
        "algorithm.name": "grpo",
        "algorithm.reference": True,
        "algorithm.tokens_generated_per_trained_token": 1.0,
        "workload.prompts_per_step": 64,
        "workload.group_size": 8,
        "workload.prompt_tokens": 300,
        "workload.response_tokens.mean": 1536,
        "workload.response_tokens.cv": 0.8,
        "workload.response_tokens.max": 8000,
        "placement.mode": "async",
        "placement.max_staleness": 2,
        "placement.trainer_gpus": 16,
        "rollout.engine": "vllm",
        "rollout.tensor_parallel": 2,
        "rollout.memory_fraction": 0.9,
        "rollout.routing": "affine",
        "trainer.parallelism.fsdp": 16,
        "trainer.optimizer": "adamw",
        "trainer.gradients": "bf16",
        "trainer.recompute": "full",
        "weight_sync.transport": "nccl-broadcast",
        "weight_sync.every": 1,
        "weight_sync.link": "infiniband-400g",
        "rates.instance_tokens_per_second": 4000,
        "rates.train_seconds": 20,
    }
)
"""A scenario that works as it stands, for those who rather change than answer."""

_HEADER = """\
# yaml-language-server: $schema=./{schema}
# What is planned. Every field is optional; a command says which one it lacks. A line that begins with # is off.
# Quantities carry units: 80 GB, 400 Gb/s, 16k, 20 s. Rates and times may carry a spread: 20 ± 2.
rlsize: {{kind: scenario, version: 1}}"""
_COMMENTS_FROM = 38  # the column of comments, where lines leave it free
_INDENT = 2


class _Line(NamedTuple):
    """A key with its value or with lines below it; `said` where it, or one of them, was answered."""

    key: str
    value: str
    note: str
    said: bool
    below: tuple[_Line, ...] = ()


def scenario_text(answers: Answers, schema_name: str) -> str:
    """
    A commented scenario with these answers; lines that nobody answered are left out, or stand behind a `#`.

    Args:
        answers: Values by dotted key, in base units; in `budget`, limits that stand alone.
        schema_name: Name of the JSON Schema file beside it.

    Raises:
        KeyError: A scenario has no such key.
    """
    said = {key: value for key, value in answers.items() if value is not None}
    blocks = [
        _HEADER.format(schema=schema_name),
        *("\n".join(_shown(line, 0, None)) for line in _lines(Scenario, said)),
    ]
    if said:
        raise KeyError(f"a scenario has no {', '.join(sorted(said))}")
    return "\n\n".join(blocks) + "\n"


def _lines(kind: type, said: dict[str, Any], above: str = "") -> tuple[_Line, ...]:
    """The lines of a dataclass, in the order of its fields; what was answered is taken from `said`."""
    found = (_line(f"{above}{name}", hint, said) for name, hint in fields_of(kind).items())
    return tuple(line for line in found if line is not None)


def _line(path: str, hint: Any, said: dict[str, Any]) -> _Line | None:  # noqa: ANN401 (a type hint)
    key, about = path.rpartition(".")[2], meaning(hint)
    note = NOTES.get(path, Note(""))
    if path in said:
        value = scalar(said.pop(path), about if isinstance(about, Quantity) else None)
        return _Line(key, value, note.text if path in NOTES else _remark(about.text), said=True)
    below = section(hint)
    if below is not None and (not note.example or any(other.startswith(f"{path}.") for other in said)):
        lines = _lines(below, said, f"{path}.")
        return _Line(key, "", note.text, any(line.said for line in lines), lines) if lines else None
    return _Line(key, note.example, note.text, said=False) if note.example else None


def _remark(sentence: str) -> str:
    """The sentence of a field as a comment."""
    start = sentence[:1] if sentence[1:2].isupper() else sentence[:1].lower()
    return start + sentence[1:].removesuffix(".")


def _shown(line: _Line, indent: int, silent_from: int | None) -> list[str]:
    """
    A line and those below it.

    Args:
        line: The line.
        indent: Its column.
        silent_from: Where the `#` of a line above stands that nobody answered.
    """
    if silent_from is None and not line.said:
        silent_from = indent
    margin = " " * indent if silent_from is None else " " * silent_from + "# " + " " * (indent - silent_from)
    text = f"{margin}{line.key}: {line.value}".rstrip()
    remarked = f"{f'{text}  '.ljust(_COMMENTS_FROM)}# {line.note}" if line.note else text
    return [remarked, *(shown for below in line.below for shown in _shown(below, indent + _INDENT, silent_from))]
