"""Optimizer steps of RL loops, as frameworks publish them."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.equations.long_tail import assumed_mean
from rlsize.errors import Refused
from rlsize.estimates.scaled_model import SCALED_SPREAD
from rlsize.facts.records import StepRecord
from rlsize.quantities.workload import (
    UNDER_CAP,
    USUAL_RESPONSE,
    USUAL_RESPONSE_SPREAD,
    USUAL_SAMPLES,
    USUAL_SAMPLES_SPREAD,
)
from rlsize.readers.names import model_named
from rlsize.readers.records.parsing import common, dtypes, layout, number, positive, text, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.layout import Layout
    from rlsize.facts.records import Loop, Placement
    from rlsize.readers.profiles import Catalogue

CLASS = "rl_step"
TIMES = (
    "step_time_s",
    "generation_time_s",
    "train_time_s",
    "logprob_time_s",
    "weight_sync_time_s",
    "generation_exposed_s",
)
_RATES = ("tokens_per_s_per_gpu", "rollout_tokens_per_s_per_gpu")
_PROMPT = 120.0
_RECOMPUTED = ("none", "selective", "full")
_PASSES = ("old_logprob", "reference", "reward", "critic")
_BRACKETED, _SIZED = re.compile(r"\(([^()]{1,80})\)"), re.compile(r"\b\d{1,4}(?:\.\d)?[bB]\b")
_MOST = 1e9  # samples of a step, or tokens of one
_CONSISTENT = 0.05  # how far tokens / s x step x GPUs may be from samples x length
_ENGINES = ("sglang", "vllm", "tensorrt-llm")
_SHARDED = ("fsdp", "dtensor", "deepspeed", "transformers")  # backends that shard weights too
_MEGATRON = ("megatron", "mcore", "nemo-rl", "slime", "roll", "miles")  # trainers, and stacks that have them by default
_OWN_MODULES = ("hf generate", "transformers", "hybrid engine")  # the trainer's model generates
_TOKENS, _COUNTED = re.compile(r"(\d{2,7}) tokens"), re.compile(r"(\d{1,5}) per (?:gpu|device)")  # micro-batches
_FORWARD = re.compile(r"(\d{2,7})(?:/\d{2,7})? \(log")
_ULYSSES = re.compile(r"ulysses (?:sp)?\W?(\d{1,3})")
_MEAN_UNSURE = 0.6  # where a cap stands for the mean: the step moves less than it, as its longest sample does not move
_RECIPE = "dapo", 512.0, 16.0, 0.7  # algorithm that is a recipe too (arXiv:2503.14476), its prompts, group, how sure


def matches(row: Mapping[str, Any]) -> bool:
    """Whether a row is an RL step."""
    return "placement" in row or bool({"step_time_s", "generation_exposed_s"} & set(row))


def record(row: Mapping[str, Any], catalogue: Catalogue) -> StepRecord:
    """
    A row as a record.

    Raises:
        Refused: It lacks what a prediction needs, or contradicts itself.
    """
    measured = positive(row, *TIMES, *_RATES)
    if not set(measured) & {"step_time_s", "generation_time_s", "train_time_s", "generation_exposed_s"}:
        raise Refused("states no time of a step or of a phase")
    fields = common({**row, "gpus": row.get("gpus_total")}, catalogue)
    if not fields["gpu"]:
        raise Refused("names no GPU")
    assumed = list(fields.pop("assumed"))
    unsure = list[float]()
    samples, group = _samples(row, assumed, unsure)
    context = catalogue.get("model", fields["model"]).architecture.max_context
    prompt, response = _lengths(row, context, assumed, unsure)
    sized = not unsure
    unsure += [SCALED_SPREAD] if "@" in fields["model"] else []
    placement, loop = _mode(row)
    rollout_gpus, trainer_gpus = _gpus(row, placement)
    framework, engine = text(row, "framework").lower(), text(row, "rollout_engine").lower()
    sides, own = _sides(row), any(word in f"{framework} {engine}" for word in _OWN_MODULES)
    updates = number(row, "updates_per_step")
    return StepRecord(
        **{
            **fields,
            "measured": measured,
            "gpus": rollout_gpus if placement == "colocated" else rollout_gpus + trainer_gpus,
            **sides,
            **_micro_batches(row, prompt + response, sides["trainer"].context),
        },
        placement=placement,
        loop=loop,
        rollout_gpus=rollout_gpus,
        trainer_gpus=trainer_gpus,
        samples=samples,
        group_size=group,
        prompt_tokens=prompt,
        response_tokens=response,
        max_tokens=number(row, "seq_len_max") or number(row, "response_len_max"),
        train_batch=number(row, "train_batch_samples") or (max(1.0, samples / updates) if updates else None),
        trained_samples=number(row, "trained_samples_per_step"),
        max_staleness=number(row, "staleness_steps") or 0.0,
        memory_fraction=number(row, "gpu_memory_utilization"),
        passes=_passes(row, assumed),
        reference=_reference(row, catalogue, assumed),
        recompute=said if (said := text(row, "recompute")) in _RECOMPUTED else "full",
        offload=_offload(row),
        megatron=_megatron(f"{framework} {text(row, 'train_backend').lower()}"),
        engine=next((name for name in _ENGINES if name in f"{framework} {engine}"), "vllm"),
        graphs="eager" not in engine and not own,
        lora=text(row, "lora").lower() not in {"", "no", "off", "0"},
        synced=not own,
        unsure=math.hypot(*unsure),
        sized=sized,
        assumed=tuple(assumed),
    )


def _megatron(said: str) -> bool:
    """Whether Megatron trains: where it is named, or a stack whose default it is and no other backend."""
    return any(word in said for word in _MEGATRON) and not any(word in said for word in _SHARDED)


def _samples(row: Mapping[str, Any], assumed: list[str], unsure: list[float]) -> tuple[float, float]:
    prompts, group, samples = (number(row, key) for key in ("prompts_per_step", "group_size", "samples_per_step"))
    if samples is None and prompts:
        samples = prompts * (group or 1.0)
    recipe, recipe_prompts, recipe_group, recipe_unsure = _RECIPE
    if samples is None and recipe in text(row, "algorithm").lower():
        samples, group = recipe_prompts * recipe_group, group or recipe_group
        unsure.append(recipe_unsure)
        assumed.append(f"{samples:.0f} samples a step, as in the recipe of {recipe.upper()}")
    if samples is None:
        samples = USUAL_SAMPLES
        unsure.append(USUAL_SAMPLES_SPREAD)
        assumed.append(f"{samples:.0f} samples a step")
    if not 0 < samples <= _MOST:
        raise Refused("states no samples of a step")
    if group is None or not 0 < group <= samples:
        group = max(1.0, samples / prompts) if prompts else 1.0
        assumed.append(f"groups of {group:g}")
    return samples, group


def _lengths(row: Mapping[str, Any], context: float, assumed: list[str], unsure: list[float]) -> tuple[float, float]:
    """Mean prompt and response; where a rate is given, the prompt is what tokens / s hold beyond responses."""
    prompt = number(row, "prompt_len_mean") or number(row, "prompt_tokens_mean")
    response = number(row, "response_len_mean") or number(row, "seq_len_mean")
    if response is None:
        longest = number(row, "response_len_max") or number(row, "seq_len_max")
        response = assumed_mean(longest, context, **UNDER_CAP) if longest else USUAL_RESPONSE
        unsure.append(_MEAN_UNSURE if longest else USUAL_RESPONSE_SPREAD)
        assumed.append(f"responses of {response:.0f} tokens{' by the longest' if longest else ''}")
    if not 0 < response <= _MOST or (prompt is not None and not 0 < prompt <= _MOST):
        raise Refused("states no mean length")
    ratio = number(row, "consistency_ratio")
    if prompt is None and ratio is not None and "response_len_mean" not in row:
        likely = 1 + _PROMPT / response
        if row.get("consistent") is False or abs(ratio / likely - 1) > _CONSISTENT:
            raise Refused(
                f"contradicts itself: tokens / s x step time x GPUs is {ratio:g} times its samples x mean length, "
                f"where prompts of about {_PROMPT:.0f} tokens make {likely:.2f}"
            )
        prompt = max(1.0, (ratio - 1) * response)
    elif prompt is None:
        prompt = _PROMPT
        assumed.append(f"prompts of {_PROMPT:.0f} tokens")
    return prompt, response


def _mode(row: Mapping[str, Any]) -> tuple[Placement, Loop]:
    words = f"{text(row, 'async_mode')} {text(row, 'mode')}".lower()
    placement: Placement = "colocated" if text(row, "placement").lower().startswith("coloc") else "disaggregated"
    if placement == "colocated":
        return placement, "synchronous"
    if "one" in words and "off" in words:
        return placement, "one-step-off"
    return placement, "async" if "async" in words else "synchronous"


def _gpus(row: Mapping[str, Any], placement: Placement) -> tuple[int, int]:
    total, shared = whole(row, "gpus_total"), whole(row, "gpus_shared")
    if placement == "colocated":
        found = shared or total
        if not found:
            raise Refused("states no number of GPUs")
        return found, found
    rollout, trainer = whole(row, "gpus_rollout"), whole(row, "gpus_train")
    if not rollout or not trainer:
        raise Refused("does not say how its GPUs are split")
    return rollout, trainer


def _sides(row: Mapping[str, Any]) -> dict[str, Any]:
    """Layouts and number types of both sides."""
    rollout_dtype, train_dtype = (dtypes(row.get("precision"), part)[0] for part in ("generation", "training"))
    return {
        "rollout": layout(row.get("rollout_parallel")),
        "trainer": _spread(row),
        "rollout_dtype": rollout_dtype,
        "train_dtype": train_dtype if train_dtype in {"bf16", "fp8"} else "bf16",
    }


def _spread(row: Mapping[str, Any]) -> Layout:
    """The trainer's layout; ranks of Ulysses share a sequence."""
    found, ranks = layout(row.get("train_parallel")), _ULYSSES.search(text(row, "train_parallel").lower())
    return replace(found, context=max(1, int(ranks[1]))) if ranks else found


def _micro_batches(row: Mapping[str, Any], tokens: float, context: int) -> dict[str, float | None]:
    """Tokens of micro-batches of a replica, as they are said for each GPU: tokens, or samples."""
    said = text(row, "micro_batch").lower().replace(",", "")
    packed, counted, forward = _TOKENS.search(said), _COUNTED.search(said), _FORWARD.search(said)
    own = float(packed[1]) * context if packed else float(counted[1]) * tokens if counted else None
    return {
        "micro_batch_tokens": own or None,
        "forward_micro_batch_tokens": float(forward[1]) * context if forward else None,
    }


def _offload(row: Mapping[str, Any]) -> tuple[str, ...]:
    """What moves to the host; what is said of the reference alone is not the policy's."""
    said = text(row, "offload").lower()
    if not said or said.startswith(("off", "none", "no ")):
        return ()
    return ("optimizer", "params") if "param" in said or "weight" in said else ("optimizer",)


def _passes(row: Mapping[str, Any], assumed: list[str]) -> tuple[str, ...]:
    """As said; else GRPO and its kin need old log-probabilities and, unless told otherwise, those of a reference."""
    said = row.get("passes")
    if isinstance(said, list):
        return tuple(name for name in _PASSES if name in said)
    words = text(row, "algorithm").lower()
    if "ppo" in words and "dapo" not in words:
        return _PASSES
    if "verl" in text(row, "framework").lower() and "fully async" in text(row, "async_mode").lower():
        assumed.append("log-probabilities of the engines, as verl's fully asynchronous loop takes them")
        return ()
    alone = "ref_model" in row and "logprob_time_s" in row and number(row, "ref_logprob_time_s") is None
    if alone or "dapo" in words:
        assumed.append("log-probabilities of the policy each step, none of a reference")
        return ("old_logprob",)
    assumed.append("log-probabilities of policy and reference each step")
    return ("old_logprob", "reference")


def _reference(row: Mapping[str, Any], catalogue: Catalogue, assumed: list[str]) -> str:
    """The profile of a reference model that is another than the policy; empty where there is none that is known."""
    said = text(row, "ref_model")
    for words in (said, *_BRACKETED.findall(said), *_SIZED.findall(said)):
        with suppress(Refused):
            found, noted = model_named(words, catalogue)
            assumed += [noted] if noted else []
            return found
    return ""
