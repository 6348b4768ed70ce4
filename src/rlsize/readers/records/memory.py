"""
Memory readings as publications report them: an engine's log at start-up, or the peak of a training pass.

What a training framework keeps in memory is taken from the words beside the peak.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.errors import Refused
from rlsize.facts.inference_engines import ENGINES, inference_engine
from rlsize.facts.layout import Layout
from rlsize.facts.quantisation import (
    FP4_EXPERTS,
    KV_WIDTHS,
    MXFP4_EXPERTS,
    WIDE_ATTENTION_FP8,
    WIDTHS,
    WeightTypes,
    uniform,
)
from rlsize.facts.records import MemoryRecord
from rlsize.readers.records import parsing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.readers.profiles import Catalogue

CLASS = "memory"
ENGINE_FIELDS = (
    "weights_gib_per_gpu",
    "kv_cache_gib_per_gpu",
    "kv_cache_tokens",
    "activation_peak_gib",
    "non_torch_gib",
)
_SETTINGS = ("gpu_memory_utilization", "memory_fraction", "max_num_batched_tokens", "max_num_seqs", "max_model_len")
_PEAK = "peak_gib_per_gpu"
_CACHE = "kv_cache_gib_per_gpu"
_LEAST_CACHE = 0.02  # of the weights: a smaller cache is the rest of a subtraction, and says nothing
_ANY_GPU = "h100-sxm"
_NO_GRAPHS = (0, 19)  # vLLM counts CUDA graphs from about this version; read in 0.32
_KEEPS_WINDOWS = (0, 9)  # and frees what has left a window from this one
_SMALL_SAMPLER = (0, 8)  # and profiles 256 sequences on every GPU before this one
_TITAN_TOKENS = 8192.0
_FP32_MASTER = (4.0, 4.0, 8.0, 2.0)  # torchtitan, prime-rl: fp32 weights sharded, gathered in bf16
_MIXED = (2.0, 2.0, 12.0, 2.0)  # bf16 weights and gradients, fp32 master copy and moments
_MEGATRON = (2.0, 4.0, 12.0, 2.0)  # fp32 gradients
_BF16_STATES = (2.0, 2.0, 4.0, 2.0)  # torchtune: everything in bf16
_BF16_8BIT = (2.0, 2.0, 2.0, 2.0)
_FROZEN = (2.0, 0.0, 0.0, 2.0)
_FROZEN_FP32 = (4.0, 0.0, 0.0, 2.0)
_FROZEN_4BIT = (WIDTHS["nf4"], 0.0, 0.0, WIDTHS["nf4"])
_LADDER = (  # torchtune's optimisations, each row with all before it
    "packed",
    "compile",
    "chunked",
    "activation checkpointing",
    "optimizer step in backward",
    "activation offloading",
    "8-bit",
)
_TRAITS = {
    "compile": "compiled",
    "chunked": "chunked_loss",
    "activation offloading": "activations_offloaded",
}  # of those, what a prediction asks about
_FLAGS = {
    "compiled": "compile",
    "optimizer_offload": "cpu offload",
    "offload": "offload",
}  # fields that say it in a word
_SMALL_GPU = ("4090", "4080", "3090", "4060", "5090", "l4", "t4")  # where paged optimizer states move to the host


def training(row: Mapping[str, Any], layout: Layout, assumed: list[str]) -> dict[str, Any]:
    """
    The fields of a record that say how a pass was run.

    Raises:
        Refused: The row does not say how long its sequences are, or nothing of how it trains.
    """
    words = " ".join(str(row.get(key, "")) for key in ("what", "parallel", "engine", "notes", "recompute")).lower()
    words += "".join(f" {said}" for field, said in _FLAGS.items() if row.get(field) is True)
    engine = str(row.get("engine", "")).lower()
    stated = parsing.positive(row, "micro_batch", "seq_len", "seq_len_of_config")
    tokens = stated.get("seq_len") or stated.get("seq_len_of_config")
    if not tokens:
        if "torchtitan" not in engine:
            raise Refused("states no sequence length, which decides the activations")
        tokens = _TITAN_TOKENS
        assumed.append(f"sequences of {_TITAN_TOKENS:g} tokens, as torchtitan ships its configurations")
    if "micro_batch" not in stated:
        assumed.append("micro batch not stated, taken for 1")
    if "torchtune" in engine:
        found = _torchtune(row, words, assumed)
    elif "torchtitan" in engine:
        found = _torchtitan(row, layout, words, assumed)
    elif "prime-rl" in engine:
        found = _prime_rl(words, assumed)
    else:
        found = _other(row, words, assumed)
    return {
        "kind": "training",
        "stack": (re.findall(r"[a-z]+", engine) or [""])[0],
        "sequences": stated.get("micro_batch", 1.0),
        "trained_tokens": tokens,
        **found,
    }


def _spread(said: Layout, gpus: int) -> Layout:
    """The layout with the data-parallel ranks that the other degrees leave of the GPUs, where the row has none."""
    rest = gpus // max(1, said.tensor * said.pipeline * said.context)
    return replace(said, data=rest) if said.data == 1 and rest > 1 else said


def _prime_rl(words: str, assumed: list[str]) -> dict[str, Any]:
    """prime-rl: its RL trainer works the loss out in chunks, its SFT trainer does not; weights are in fp32."""
    assumed.append("fp32 weights and AdamW" + ("" if "sft" in words else ", loss in chunks"))
    traits = set() if "sft" in words else {"chunked_loss"}
    if "recompute=offload" in words:
        traits.add("activations_offloaded")
    widths = _FROZEN_FP32 if "lora" in words else _FP32_MASTER
    return {"recompute": "full", "widths": widths, "traits": frozenset(traits)}


def _recompute(row: Mapping[str, Any], usual: str, assumed: list[str]) -> str:
    said = re.search(r"recompute\s*[=:]\s*(selective|full|none)", str(row.get("parallel", "")).lower())
    for text in (str(row.get("recompute", "")).lower(), said.group(1) if said else ""):
        for name in ("selective", "full", "none"):
            if name in text:
                return name
    assumed.append(f"recomputation not stated, taken for {usual}")
    return usual


def _torchtitan(row: Mapping[str, Any], layout: Layout, words: str, assumed: list[str]) -> dict[str, Any]:
    traits = {"compiled"} if "compile" in words or "float8" in words else set()
    if layout.pipeline > 1:
        traits |= {"gradients_held", "gathered_whole"}
    return {
        "recompute": _recompute(row, "selective", assumed),
        "widths": _FP32_MASTER,
        "traits": frozenset(traits),
    }


def _torchtune(row: Mapping[str, Any], words: str, assumed: list[str]) -> dict[str, Any]:
    what = str(row.get("what", "")).lower()
    rung = next((place for place, name in enumerate(_LADDER) if name in what), None)
    adapters = "lora" in what
    if "baseline" in what:
        raise Refused("unpacked data: the mean length of its sequences is not stated")
    if rung is not None or "peak active" in what:
        return _ladder(len(_LADDER) - 1 if rung is None else rung, adapters, "qlora" in what)
    assumed.append("torchtune's recipe: layers recomputed, loss in chunks, optimizer step in backward")
    traits = {"compiled", "chunked_loss"}
    widths = _FROZEN_4BIT if "qlora" in what else _FROZEN if adapters else _BF16_8BIT
    if not adapters and "cpu offload" in words:
        traits.add("state_offloaded")
    elif not adapters and any(name in str(row.get("gpu", "")).lower() for name in _SMALL_GPU):
        assumed.append("optimizer states paged to the host")
        widths = (2.0, 2.0, 0.0, 2.0)
    return {"recompute": "full", "widths": _in_backward(widths), "traits": frozenset(traits)}


def _ladder(rung: int, adapters: bool, quantised: bool) -> dict[str, Any]:
    done = set(_LADDER[: rung + 1])
    traits = {trait for name, trait in _TRAITS.items() if name in done}
    widths = _BF16_8BIT if "8-bit" in done else _BF16_STATES
    if adapters:
        widths = _FROZEN_4BIT if quantised else _FROZEN
    elif "optimizer step in backward" in done:
        widths = _in_backward(widths)
    recompute = "full" if "activation checkpointing" in done else "none"
    return {"recompute": recompute, "widths": widths, "traits": frozenset(traits)}


def _in_backward(widths: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    """Each gradient is used and freed as soon as it is there."""
    weight, _, optimizer, gathered = widths
    return weight, 0.0, optimizer, gathered


def _other(row: Mapping[str, Any], words: str, assumed: list[str]) -> dict[str, Any]:
    if "offload" in words:
        raise Refused("offloads, and does not say what")
    megatron = "megatron" in words or "nemo" in words
    assumed.append("AdamW with " + ("fp32 gradients" if megatron else "bf16 gradients and an fp32 master copy"))
    traits = {"gradients_held"} | ({"compiled"} if "compile" in words else set())
    frozen = "lora" in words
    widths = (_FROZEN_4BIT if "qlora" in words else _FROZEN) if frozen else (_MEGATRON if megatron else _MIXED)
    return {"recompute": _recompute(row, "full", assumed), "widths": widths, "traits": frozenset(traits)}


def matches(row: Mapping[str, Any]) -> bool:
    """Whether a row holds sizes of an engine at start-up, or a training peak."""
    return any(name in row for name in (*ENGINE_FIELDS, _PEAK)) and "ttft_ms" not in row


def record(row: Mapping[str, Any], catalogue: Catalogue) -> MemoryRecord:
    """
    A row as a record.

    Raises:
        Refused: It lacks what a prediction needs.
    """
    shared = parsing.common(row, catalogue)
    assumed = list(shared.pop("assumed"))
    if any(name in row for name in ENGINE_FIELDS):
        shared["layout"] = parsing.layout(row.get("parallel"), shared["gpus"])
        found = _engine(row, shared["model"], assumed)
    else:
        peak = {_PEAK: parsing.needed(row, _PEAK)}
        words = parsing.text(row, "parallel")
        shared["layout"] = _spread(parsing.layout(words), shared["gpus"]) if words else Layout(data=shared["gpus"])
        found = training(row, shared["layout"], assumed) | {"measured": peak}
        shared["gpu"] = shared["gpu"] or _ANY_GPU  # the peak does not depend on it
    return MemoryRecord(**{**shared, **found}, assumed=tuple(assumed))


def _engine(row: Mapping[str, Any], model: str, assumed: list[str]) -> dict[str, Any]:
    measured = parsing.positive(row, *ENGINE_FIELDS)
    if 0 < measured.get(_CACHE, 0.0) < _LEAST_CACHE * measured.get("weights_gib_per_gpu", 0.0):
        del measured[_CACHE]  # the difference of large sizes: its relative error means nothing
    if not measured:
        raise Refused("no size that is positive")
    stated = parsing.positive(row, *_SETTINGS)
    words = parsing.text(row, "engine").lower() or "vllm"
    stack = inference_engine(words).name
    cached = (parsing.text(row, "kv_dtype") or parsing.text(row, "kv_cache_dtype")).lower()
    numbers = re.search(r"(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?", words)
    version = tuple(int(part) for part in numbers.groups() if part) if numbers else ()
    if not any(name in words for name in (*ENGINES, "sgl", "trt")):
        assumed.append("engine not known, taken for vllm")
    if not version and stack == "vllm":
        assumed.append("version not stated: CUDA graphs not counted")
    return {
        "kind": "engine",
        "stack": stack,
        "version": ".".join(map(str, version)),
        "measured": measured,
        "weights": _weights(row, model, assumed),
        "kv_dtype": next((dtype for dtype in sorted(KV_WIDTHS, key=len, reverse=True) if dtype in cached), "bf16"),
        "memory_fraction": min(stated.get("gpu_memory_utilization") or stated.get("memory_fraction", 0.0), 1.0),
        "batched_tokens": stated.get("max_num_batched_tokens", 0.0),
        "max_sequences": stated.get("max_num_seqs")
        or (256.0 if stack == "vllm" and () < version < _SMALL_SAMPLER else 0.0),
        "sequence_tokens": stated.get("max_model_len", 0.0),
        "graphs_counted": version >= _NO_GRAPHS,
        "windows_whole": () < version < _KEEPS_WINDOWS,
    }


def _weights(row: Mapping[str, Any], model: str, assumed: list[str]) -> WeightTypes | None:
    """Number types of the weights: of the precision, else of the checkpoint's name, else as published."""
    name = parsing.text(row, "model").lower()
    said = (parsing.text(row, "precision") or parsing.text(row, "dtype")).lower()
    if model.startswith("gpt-oss") and "bf16" not in said:
        return MXFP4_EXPERTS
    dtype = _dtype(said) or _dtype(name)
    if not dtype and re.search(r"quanti[sz]ed", name):
        assumed.append("quantisation not stated, taken for int4")
        dtype = "int4"
    if dtype == "fp8" and re.fullmatch(r"(meta-llama/)?(meta-)?llama-3\.1-405b(-instruct)?-fp8", name):
        assumed.append("Meta's checkpoint, whose attention stays in bf16")
        return WIDE_ATTENTION_FP8
    if dtype == "nvfp4" and re.search(r"-a\d+b|deepseek|kimi", name):
        return FP4_EXPERTS
    return uniform(dtype) if dtype else None


def _dtype(text: str) -> str:
    """The number type that a text names; empty where it names none."""
    found = next((dtype for dtype in sorted(WIDTHS, key=len, reverse=True) if dtype in text), "")
    for pattern, dtype in ((r"awq|gptq|w4a16|4.?bit", "int4"), (r"w8a8|8.?bit", "int8")):
        if not found and re.search(pattern, text):
            return dtype
    return found
