"""The commented scenario that `rlsize init` writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rlsize.facts.budget import quantities
from rlsize.facts.fields import Quantity
from rlsize.quantities.scenario import SECTIONS
from rlsize.quantities.table import PLACES
from rlsize.writers.yaml_file import scalar

Answers = Mapping[str, Any]
"""Values of a scenario by dotted key; None, as a missing key, where nobody answered."""

STARTER: Answers = {
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
    "placement.trainer_gpus": 32,
    "rollout.engine": "vllm",
    "rollout.tensor_parallel": 2,
    "rollout.memory_fraction": 0.9,
    "rollout.routing": "affine",
    "trainer.parallelism.fsdp": 32,
    "trainer.optimizer": "adamw",
    "trainer.gradients": "bf16",
    "trainer.recompute": "full",
    "weight_sync.transport": "nccl-broadcast",
    "weight_sync.every": 1,
    "weight_sync.link": "infiniband-400g",
    "rates.instance_tokens_per_second": 4000,
    "rates.train_seconds": 20,
}
"""A scenario that works as it stands, for those who rather change than answer."""

OFFERED: Answers = {
    "placement.rollout_gpus": 32,
    "prices.gpu_hour": 2.5,
    "prices.as_of": "2026-11-01",
    "prices.region": "any",
    "budget.cost_per_step_usd": 2.5,
    "budget.trainer_idle_fraction": 0.05,
    "budget.staleness_steps": 2,
    "budget.steps_per_day": 1800,
}
"""What stands behind a `#` where nobody answered, as do lines of the starter."""

REMARKS: Mapping[str, str] = {
    "model": "a profile, the path of a config.json, or {params: 70B}",
    "cluster.gpu": "a profile; `rlsize profiles list gpu` names them",
    "cluster.gpus": "of both sides",
    "cluster.gpus_per_node": "what the GPU's profile says, when not given",
    "cluster.interconnect": "the link between nodes; `rlsize profiles list link`",
    "algorithm.name": "ppo adds a critic",
    "algorithm.tokens_generated_per_trained_token": "over 1 with over-sampling, filtered groups or dropped samples",
    "placement": "`rlsize plan` chooses what is not said",
    "placement.mode": "colocated, sync, one-step-off, async, ...",
    "rollout.memory_fraction": "of a GPU; 0.5 to 0.6 is usual where colocated",
    "rollout.routing": "a group stays on one instance, so its prompt is prefilled once",
    "trainer.recompute": "activations: none, selective or full",
    "weight_sync.link": "the slowest on the way",
    "rates": "measured; `rlsize observe` and `rlsize measure` write rates files",
    "prices": "no price is ever assumed",
    "budget": "limits that `rlsize check` judges; `rlsize schema budget` has all",
}
"""What lines say beside their values in place of the sentence of their row; sections without one say nothing."""

_HEADER = """\
# yaml-language-server: $schema=./{schema}
# What is planned. Every field is optional; a command says which one it lacks. A line that begins with # is off.
# Quantities carry units: 80 GB, 400 Gb/s, 16k, 20 s. Rates and times may carry a spread: 20 ± 2.
rlsize: {{kind: scenario, version: 1}}"""
_COMMENTS_FROM = 38  # the column of comments, where lines leave it free
_TOPS = ("framework", "model", *(section for section in SECTIONS if "." not in section), "budget")


def scenario_text(answers: Answers, schema_name: str, *, places: Mapping[str, str] | None = None) -> str:
    """
    A commented scenario with these answers; lines that nobody answered are left out, or stand behind a `#`.

    Args:
        answers: Values by dotted key, in base units; in `budget`, limits that stand alone.
        schema_name: Name of the JSON Schema file beside it.
        places: Where values were said, by key: their comments; nothing but what was said is shown then.

    Raises:
        KeyError: A scenario has no such key.
    """
    said = {key: value for key, value in answers.items() if value is not None}
    known = [*PLACES, *(f"budget.{name}" for name in quantities())]
    if not said.keys() <= set(known):
        raise KeyError(f"a scenario has no {', '.join(sorted(said.keys() - set(known)))}")
    values = {**STARTER, **OFFERED, **said} if places is None else said
    if any(key.startswith("model.") for key in said):
        values.pop("model")
    shown = sorted((key for key in known if key in values), key=lambda key: _TOPS.index(key.partition(".")[0]))
    blocks = [_HEADER.format(schema=schema_name)]
    for top in dict.fromkeys(key.partition(".")[0] for key in shown):
        own = {key: values[key] for key in shown if key.partition(".")[0] == top}
        blocks.append("\n".join(_lines(own, said, 0, None, places or {})))
    return "\n\n".join(blocks) + "\n"


def _lines(values: Answers, said: Answers, depth: int, off: int | None, places: Mapping[str, str]) -> Iterator[str]:
    """
    The lines of some keys, and of those below them.

    Args:
        values: What stands in them, by dotted key.
        said: What was answered.
        depth: How many sections they lie in.
        off: Where the `#` of a section stands that nobody answered.
        places: Where values were said, by key.
    """
    sections: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        sections.setdefault(".".join(key.split(".")[: depth + 1]), {})[key] = value
    for name, own in sections.items():
        column = depth * 2
        start = column if off is None and not any(key in said for key in own) else off
        margin = " " * column if start is None else " " * start + "# " + " " * (column - start)
        value = f" {_value(name, own[name])}" if name in own else ""
        shown = f"{margin}{name.rpartition('.')[2]}:{value}"
        remark = places.get(name) or _remark(name)
        yield f"{f'{shown}  '.ljust(_COMMENTS_FROM)}# {remark}" if remark else shown
        if name not in own:
            yield from _lines(own, said, depth + 1, start, places)


def _value(key: str, value: Any) -> str:  # noqa: ANN401 (any value of a scenario)
    """The value as YAML."""
    kind = PLACES[key].kind if key in PLACES else quantities()[key.removeprefix("budget.")]
    return scalar(value, kind if isinstance(kind, Quantity) else None)


def _remark(key: str) -> str:
    """What a line says beside its value: how a limit is meant, else the sentence of its row."""
    if key in REMARKS:
        return REMARKS[key]
    if key.startswith("budget."):
        return "at most" if quantities()[key.removeprefix("budget.")].bare == "max" else "at least"
    sentence = PLACES[key].meaning.removesuffix(".") if key in PLACES else ""
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]
