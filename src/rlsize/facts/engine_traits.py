"""What sets inference engines apart in time: how their host works, which kernels they take, how they admit samples."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from rlsize.facts.engine_defaults import engine_defaults

if TYPE_CHECKING:
    from collections.abc import Mapping

Admission = Literal["optimistic", "reserving"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineTraits:
    """
    One engine.

    Args:
        name: The key of its constants and of its all-reduce in a GPU's kernels.
        admission: optimistic (starts samples while their present tokens fit, and preempts) or reserving (starts one
            only if its longest response would fit).
        static_scales: Whether its low-precision checkpoints hold activation scales, so nothing is quantised in between.
        tuned_fp8_cache: Whether attention reads an fp8 cache at the share of bandwidth of a bf16 one.
        tuned_fp8_moe: Whether fp8 experts reach more of the peak than the measured block-scaled kernels.
        weight_only_moe: Whether 4-bit experts on GPUs without such units go through kernels for few tokens.
        overlaps_since: First version that schedules the next step while the GPU works; empty: all versions.
        front_end: Whether its server's own limit has been seen in published measurements.
        source: Who says so.
    """

    name: str
    admission: Admission
    static_scales: bool = False
    tuned_fp8_cache: bool = False
    tuned_fp8_moe: bool = False
    weight_only_moe: bool = False
    overlaps_since: tuple[int, ...] = ()
    front_end: bool = False
    source: str


_TRAITS: Mapping[str, EngineTraits] = MappingProxyType(
    {
        "vllm": EngineTraits(
            name="vllm",
            admission="optimistic",
            overlaps_since=(0, 14),
            source="vLLM release notes (asynchronous scheduling by default), recalled; scheduler preempts when full",
        ),
        "sglang": EngineTraits(
            name="sglang",
            admission="optimistic",
            source="SGLang: overlapped scheduler by default since 0.4; new-token ratio in its admission",
        ),
        "tensorrt-llm": EngineTraits(
            name="trtllm",
            admission="reserving",
            static_scales=True,
            tuned_fp8_cache=True,
            tuned_fp8_moe=True,
            weight_only_moe=True,
            front_end=True,
            source="TensorRT-LLM: guaranteed-no-evict scheduler, static scales of ModelOpt checkpoints",
        ),
    }
)


def engine_traits(name: str) -> EngineTraits:
    """The traits of an engine by how its name reads; those of vLLM where it is none that is known."""
    return _TRAITS[engine_defaults(name).name]


def overlaps(traits: EngineTraits, version: str) -> bool:
    """
    Whether an engine of that version hides host work behind the GPU; an unknown version counts as a recent one.

    >>> overlaps(engine_traits("vllm"), "0.12.0"), overlaps(engine_traits("vllm"), ""), overlaps(
    ...     engine_traits("vllm"), "0.18.0"
    ... )
    (False, True, True)
    """
    numbers = []
    for part in version.lstrip("vV").split(".")[:2]:
        digits = "".join(character for character in part if character.isdigit())
        if not digits:
            break
        numbers.append(int(digits[:6]))
    return not numbers or tuple(numbers) >= traits.overlaps_since
