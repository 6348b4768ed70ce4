"""
What all classes of record share: numbers and words of a row, layouts, number types, and the fields of every record.

Rows are foreign: any field may be missing, of another type, or spelt in another way. A function here gives what it
found, or says in a refusal what it missed; it never fails in another way.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from rlsize.errors import Refused
from rlsize.facts.layout import Layout
from rlsize.readers.names import gpu_named, model_named
from rlsize.units import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.readers.profiles import Catalogue

LONGEST_TEXT = 2_000
_MOST_RANKS = 1_000_000
_TRUST = ("high", "medium", "low")

# One axis with its size: TP8, tp=8, MoE-EP4, tensor_parallel_size 8, DEP8, TP2xDP8; and 8-way TP.
_AXIS = re.compile(
    r"(?:(?<![a-z])|(?<=\dx))(?:(moe)[-_ ]?)?"
    r"(tensor|pipeline|expert|data|context|dep|tep|adp|fsdp|ddp|dp|tp|pp|ep|cp)"
    r"(?:[-_ ]?(?:model[-_ ]?)?parallel(?:ism)?)?(?:[-_ ]?size)?\s{0,3}[=:]?\s{0,3}(\d{1,6})"
)
_WAYS = re.compile(r"(\d{1,6})[- ]way (tensor|pipeline|expert|data|context|tp|pp|ep|dp|cp)")
_LIST = re.compile(r"\[([a-z, ]{1,60})\]\s{0,3}=\s{0,3}\[([\d, na/-]{1,60})\]")
_INSTANCES = re.compile(r"(\d{1,6})\s{0,3}(?:instance|replica)")
_AXES = {
    "tensor": "tensor", "tp": "tensor", "pipeline": "pipeline", "pp": "pipeline", "expert": "expert", "ep": "expert",
    "data": "data", "dp": "data", "fsdp": "data", "ddp": "data", "adp": "data", "context": "context", "cp": "context",
}  # fmt: skip

# The first that a text holds is the type, from left to right.
_TYPES = re.compile(
    r"nvfp4|mxfp4|fp4|w4afp8|w4a16|w4a8|int4|awq|gptq|mxfp8|float8|fp8|w8a8|int8|bfloat16|bf16|amp_bf16|float16|fp16|half"
    r"|float32|fp32|tf32"
)
_TYPE_OF = {
    "nvfp4": "fp4", "mxfp4": "fp4", "fp4": "fp4", "w4afp8": "int4", "w4a16": "int4", "w4a8": "int4", "int4": "int4",
    "awq": "int4", "gptq": "int4", "mxfp8": "fp8", "float8": "fp8", "fp8": "fp8", "w8a8": "int8", "int8": "int8",
    "bfloat16": "bf16", "bf16": "bf16", "amp_bf16": "bf16", "float16": "fp16", "fp16": "fp16", "half": "fp16",
    "float32": "fp32", "fp32": "fp32", "tf32": "fp32",
}  # fmt: skip
_CACHE = re.compile(r"(?:kv|cache)[-_ ]?(?:cache)?[-_ ]?(?:dtype)?\s{0,3}[=:]?\s{0,3}([a-z]{2,8}\d{1,2})")
_CACHE_AFTER = re.compile(r"([a-z]{2,8}\d{1,2})\s{0,3}kv")

# Words by which a stack is known, with the name that it has here. The one that stands first in the text is meant.
_STACKS = {
    "tensorrt-llm": "trtllm", "tensorrt_llm": "trtllm", "trtllm": "trtllm", "trt-llm": "trtllm", "vllm": "vllm",
    "sglang": "sglang", "nemo-rl": "nemo-rl", "nemo_rl": "nemo-rl", "nemo rl": "nemo-rl", "openrlhf": "openrlhf",
    "dschat": "dschat", "deepspeed": "deepspeed", "areal": "areal", "verl": "verl", "slime": "slime", "miles": "miles",
    "torchtitan": "torchtitan", "torchtune": "torchtune", "llm-foundry": "llm-foundry", "llm_foundry": "llm-foundry",
    "megatron": "megatron", "nemo": "nemo", "trl": "trl", "checkpoint-engine": "checkpoint-engine", "roll": "roll",
    "checkpoint_engine": "checkpoint-engine", "prime-rl": "prime-rl", "pipelinerl": "pipelinerl", "skyrl": "skyrl",
    "lmdeploy": "lmdeploy", "tgi": "tgi", "maxtext": "maxtext", "jetstream": "jetstream", "hugging": "transformers",
    "transformers": "transformers", "axolotl": "axolotl", "unsloth": "unsloth", "fsdp": "fsdp",
}  # fmt: skip
_VERSION = re.compile(r"(?<![\w.])v?(\d{1,4}\.\d{1,4}(?:\.\d{1,4})?(?:\.?(?:rc|post|dev|alpha|beta)\d{0,8})?)(?![\w.])")
_STACK_KEYS = ("engine", "framework", "stack", "method", "source_id", "source")
_PARTS = ("gpus_rollout", "gpus_train")


def number(row: Mapping[str, Any], key: str) -> float | None:
    """
    The number under a key; None where it is missing, no number or not finite.

    >>> number({"step_time_s": "1,024.5"}, "step_time_s")
    1024.5
    """
    value = row.get(key)
    if isinstance(value, str) and len(value) <= LONGEST_TEXT:
        try:
            value = float(value.strip().replace(",", "").replace("_", ""))
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def positive(row: Mapping[str, Any], *keys: str) -> dict[str, float]:
    """Those of some keys whose number is positive, in their order."""
    return {key: found for key in keys if (found := number(row, key)) is not None and found > 0}


LARGEST = 1e12
"""Of any quantity in a record: beyond it products of several overflow."""


def needed(row: Mapping[str, Any], key: str) -> float:
    """
    The positive number under a key.

    Raises:
        Refused: There is none.
    """
    found = positive(row, key).get(key)
    if found is None:
        raise Refused(f"states no {key}")
    if found > LARGEST:
        raise Refused(f"{key} of {found:g} is beyond anything that is run")
    return found


def whole(row: Mapping[str, Any], key: str, default: int = 0) -> int:
    """The number under a key, rounded; the default where it is missing, negative or beyond any cluster."""
    found = number(row, key)
    return default if found is None or not 0 <= found <= _MOST_RANKS else round(found)


def text(row: Mapping[str, Any], key: str) -> str:
    """The words under a key, on one line; empty where there are none."""
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    return printable(" ".join(str(value)[:LONGEST_TEXT].split()))


def layout(said: object, gpus: int = 1) -> Layout:
    """
    How a replica is spread, from the words of a publication; axes that they do not name have one rank.

    `DEPn` is attention in data parallel over n ranks and experts over the same n; `MoE-EPn` spreads the experts alone.

    Args:
        said: The words.
        gpus: GPUs of the replica: its tensor-parallel ranks where there are no words.

    >>> layout("TP4 PP1 ADP1 MoE-TP1 MoE-EP4")
    Layout(tensor=4, pipeline=1, expert=4, data=1, context=1)
    """
    words = said[:LONGEST_TEXT].lower() if isinstance(said, str) else ""
    listed = _LIST.search(words)
    if listed:
        return Layout(**_listed(listed.group(1), listed.group(2)))
    ranks: dict[str, int] = {}
    for moe, axis, count in [*_AXIS.findall(words), *(("", axis, count) for count, axis in _WAYS.findall(words))]:
        size = max(1, int(count))
        if axis in {"dep", "tep"}:
            ranks |= {"expert": size, "data" if axis == "dep" else "tensor": size}
        elif axis in _AXES and not (moe and _AXES[axis] != "expert"):
            name = _AXES[axis]
            ranks[name] = max(size, ranks.get(name, 1))
    return Layout(**ranks) if ranks else Layout(tensor=1 if words else max(1, gpus))


def instances(said: object) -> int:
    """
    How many replicas the words of a publication name; 1 where they name none.

    >>> instances("vLLM TP16, 16 instance(s)")
    16
    """
    found = _INSTANCES.search(said[:LONGEST_TEXT].lower()) if isinstance(said, str) else None
    return max(1, int(found.group(1))) if found else 1


def _listed(names: str, values: str) -> dict[str, int]:
    """
    Ranks of `[TP,CP,EP,PP,VPP]=[1,1,8,2,n/a]`.

    Some tables have more values than names. Names are then matched from the left up to EP, and from the right after it.
    """
    axes = [name.strip() for name in names.split(",")]
    sizes = [value.strip() for value in values.split(",")]
    extra = max(0, len(sizes) - len(axes))
    left = axes.index("ep") + 1 if extra and "ep" in axes else len(axes)
    places = [*range(left), *range(left + extra, len(axes) + extra)]
    stated = {axis: sizes[place] for axis, place in zip(axes, places, strict=True) if place < len(sizes)}
    return {_AXES[axis]: max(1, int(size)) for axis, size in stated.items() if axis in _AXES and size.isdecimal()}


def dtypes(said: object, part: str = "") -> tuple[str, str | None]:
    """
    The number types of weights and of the KV cache, from the words of a publication.

    Args:
        said: The words; where they name no type, bf16 (`says_dtype` tells).
        part: A word such as `training`: the type that stands last before it, where the text names several.

    Returns:
        A key of `rlsize.facts.quantisation.BYTES_PER_PARAM`, and the type of the cache or None where it is not said.

    >>> dtypes("FP8 generation and BF16 training", "training")
    ('bf16', None)
    """
    words = said[:LONGEST_TEXT].lower() if isinstance(said, str) else ""
    cached = _CACHE.search(words) or _CACHE_AFTER.search(words)
    cache = _TYPE_OF.get(cached.group(1)) if cached else None
    if cached and cache:
        words = words.replace(cached.group(0), " ", 1)
    end = words.find(part) if part else -1
    found = [*_TYPES.finditer(words)]
    before = [each for each in found if each.start() < end]
    chosen = before[-1] if before else next(iter(found), None)
    return _TYPE_OF[chosen.group(0)] if chosen else "bf16", cache


def says_dtype(said: object) -> bool:
    """Whether the words of a publication name a number type."""
    return isinstance(said, str) and _TYPES.search(said[:LONGEST_TEXT].lower()) is not None


def stack_of(said: str) -> tuple[str, str]:
    """
    The engine or framework that words name, in lower case, and its version; empty where they name none that is known.

    >>> stack_of("NeMo-RL v0.5 (Megatron-Core train, vLLM rollout)")
    ('nemo-rl', '0.5')
    """
    words = said[:LONGEST_TEXT].lower()
    found = sorted((words.find(word), -len(word), word) for word in _STACKS if word in words)
    version = _VERSION.search(words)
    return (_STACKS[found[0][2]] if found else ""), (version.group(1) if version else "")


def _stack(row: Mapping[str, Any]) -> tuple[str, str]:
    """The stack that a row names in any of its fields, else the first word of them; and the version beside it."""
    said = [words for key in _STACK_KEYS if (words := text(row, key))]
    for words in said:
        name, version = stack_of(words)
        if name:
            return name, version
    return next(iter(" ".join(said).lower().split()), ""), ""


def common(row: Mapping[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    """
    The fields that every record has, for `XRecord(**common(row, catalogue), ...)`; `measured` is left to the class.

    `gpus` is 1 where the row does not say how many; `gpu` is empty where it names none.

    Raises:
        Refused: No profile has the name of the model, or of the GPU that the row names.
    """
    model, noted = model_named(row.get("model"), catalogue)
    gpu, also = gpu_named(row.get("gpu"), catalogue) if text(row, "gpu") else ("", "")
    assumed = [note for note in (noted, also) if note]
    stated = (whole(row, key) for key in ("gpus", "gpus_total", "gpus_shared"))
    gpus = next((count for count in stated if count), sum(whole(row, key) for key in _PARTS))
    if not gpus:
        assumed.append("one GPU, as the record does not say how many")
    trust = text(row, "trust").lower()
    if trust not in _TRUST:
        trust = "medium"
        assumed.append("medium trust, as the record does not say")
    stack, version = _stack(row)
    return {
        "id": text(row, "id") or "unnamed",
        "source_id": text(row, "source_id") or text(row, "source") or text(row, "id") or "unnamed",
        "trust": trust,
        "model": model,
        "gpu": gpu,
        "gpus": gpus or 1,
        "stack": stack,
        "version": version or stack_of(text(row, "version"))[1],
        "assumed": tuple(assumed),
    }
