"""The most that fits beside what is held: tokens of a micro batch, and which part of the memory binds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.equations import training_peak
from rlsize.estimates.figures import apply, rounded, total
from rlsize.estimates.memory import on_trainer, reserved
from rlsize.facts.figure import Figure, absent
from rlsize.planner.rounding import rounded_down

if TYPE_CHECKING:
    from rlsize.estimates.memory import MemoryQuestion
    from rlsize.planner.memory_fit import Candidate, FitAnswer

_GROWING = ("activation_bytes_per_gpu", "logits_bytes_per_gpu")
_ONE_TOKEN = Figure(key="micro_batch_tokens", value=1, provenance="default", source="one token")


def most_that_fits(question: MemoryQuestion, fit: FitAnswer) -> tuple[Figure, ...]:
    """
    The largest micro batch, and what binds on each side.

    Args:
        question: What was asked.
        fit: What fits; the stated placement is judged, else the first that fits.
    """
    trainer = fit.stated_trainer or fit.first_trainer
    rollout = fit.stated_rollout or fit.first_rollout
    found = []
    if trainer is not None:
        found += [_micro_batch(question, trainer), _binding("trainer_binding_part", trainer)]
    if rollout is not None:
        found.append(_binding("rollout_binding_part", rollout))
    return tuple(found)


def _micro_batch(question: MemoryQuestion, trainer: Candidate) -> Figure:
    """Tokens of one pass of a data-parallel rank that what is left has room for, by the asked recomputation."""
    key = "max_micro_batch_tokens"
    if trainer.layout is None or question.known_shape is None:
        return absent(key, "--model")
    shortest = replace(question, micro_batch_tokens=_ONE_TOKEN, longest_tokens=_ONE_TOKEN)
    one = on_trainer(shortest, trainer.layout)
    growing = [part for part in trainer.parts if part.key in _GROWING]
    spare = total("spare_bytes", [trainer.left, reserved(question, "growing_bytes", growing)])
    if spare.number <= 0:
        return Figure(key=key, value=0, provenance="predicted", source="the states leave no room")
    exact = apply(
        key,
        training_peak.largest_micro_batch_tokens,
        spare_bytes=spare,
        bytes_per_token=reserved(question, "bytes_per_token", [one.activations, one.logits]),
    )
    return rounded(exact, key, rounded_down(exact.number))


def _binding(key: str, candidate: Candidate) -> Figure:
    """The largest part of what a GPU holds; for an instance the KV cache, where that is larger."""
    parts = list(candidate.parts)
    if candidate.pool == "rollout" and candidate.left.number > 0:
        parts.append(replace(candidate.left, key="kv_cache_bytes_per_gpu"))
    largest = max(parts, key=lambda part: part.number)
    name = largest.key.removesuffix("_per_gpu")
    return Figure(key=key, value=name, provenance="predicted", source="the largest part of what a GPU holds")
