"""What closed-loop and offline rows of an engine have in common."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.errors import Refused
from rlsize.facts.quantisation import FP4_EXPERTS, MXFP4_EXPERTS, WIDTHS, WeightTypes, uniform
from rlsize.readers.records.parsing import common, dtypes, layout, needed, says_dtype, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.layout import Layout
    from rlsize.facts.model import Model
    from rlsize.readers.profiles import Catalogue

_QUANTISED = 1.5  # bytes of a weight: narrower ones are quantised
_MIXED = ("deepseek", "kimi")
_LONGEST = 1e8  # tokens
_BOTH = re.compile(r"MoE-TP(\d{1,3}) MoE-EP\1\b", re.IGNORECASE)


def engine_fields(row: Mapping[str, Any], catalogue: Catalogue) -> dict[str, Any]:
    """
    The fields of an `EngineRecord` that say what ran, not what was measured.

    Raises:
        Refused: The row lacks one that no default can stand for.
    """
    shared = common(row, catalogue)
    if not shared["gpu"]:
        raise Refused("names no GPU")
    assumed = list(shared.pop("assumed"))
    model = catalogue.get("model", shared["model"])
    said = text(row, "dtype") or text(row, "precision")
    dtype, cached = dtypes(row.get("dtype") or row.get("precision"))
    if dtype not in WIDTHS:
        raise Refused(f"weights of type {dtype!r} are not known")
    if not says_dtype(said):
        assumed.append("weights in bf16")
    types = weight_types(model, dtype)
    trt = "trt" in shared["stack"] or "tensorrt" in shared["stack"]
    if cached is None:  # TensorRT-LLM's quantised checkpoints ask for an fp8 cache, and so do those made for fp4 units
        narrow = trt or catalogue.get("gpu", shared["gpu"]).specification.fp4_dense is not None
        cached = "fp8" if narrow and WIDTHS[dtype] < _QUANTISED else "bf16"
        assumed.append(f"KV cache in {cached}")
    laid_out = shared["gpus"] == 1 or bool(text(row, "parallel"))
    if not laid_out:
        assumed.append("as many replicas as have room, as the record states no layout")
    spread = _one_node(layout(row.get("parallel"), shared["gpus"]), text(row, "parallel"))
    return {
        **shared,
        "layout": _spread(spread, model, assumed) if trt and "moe" not in text(row, "parallel").lower() else spread,
        "laid_out": laid_out,
        "weights": types,
        "kv_dtype": cached,
        "experts": model.architecture.moe is not None,
        "prompt_tokens": _length(row, "input_len"),
        "response_tokens": _length(row, "output_len"),
        "assumed": tuple(assumed),
    }


def _length(row: Mapping[str, Any], key: str) -> float:
    """A length in tokens; one beyond any context is a slip."""
    found = needed(row, key)
    if found > _LONGEST:
        raise Refused(f"{key} of {found:g} tokens is longer than any context")
    return found


def weight_types(model: Model, dtype: str) -> WeightTypes:
    """The number types of a checkpoint that is called by one: gpt-oss keeps its mxfp4 experts under any name."""
    if model.name.startswith("gpt-oss"):
        return MXFP4_EXPERTS
    if dtype in {"fp4", "nvfp4"} and model.name.startswith(_MIXED):
        return FP4_EXPERTS
    return uniform("nvfp4" if dtype == "fp4" else dtype)


def _one_node(said: Layout, words: str) -> Layout:
    """
    The layout, where a table multiplies the tensor and the expert ranks of the same GPUs.

    "TP64 ... MoE-TP8 MoE-EP8" stands for runs that the publication itself calls tp8_ep8, on one node of eight.
    """
    found = _BOTH.search(words)
    ranks = int(found.group(1)) if found is not None else 1
    if ranks == 1 or max(said.tensor, said.data) != ranks * ranks:
        return said
    return replace(said, tensor=min(said.tensor, ranks), data=min(said.data, ranks), expert=ranks)


def _spread(said: Layout, model: Model, assumed: list[str]) -> Layout:
    """
    The layout, with attention in data parallel where TensorRT-LLM would have to copy KV heads of a mixture of experts.

    Its published throughput runs of such models name the GPUs as TPn; prefill at their rate is not possible with
    all-reduces among so many ranks.
    """
    attention = model.architecture.attention
    heads = attention.kv_heads if attention else 1
    if model.architecture.moe and said.data == 1 and said.tensor >= max(heads, 2):
        assumed.append(f"attention in data parallel: {said.tensor} ranks share {heads} KV heads")
        return replace(said, tensor=1, data=said.tensor, expert=said.tensor)
    return said
