"""What a training framework keeps in memory, from the words of a published peak."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rlsize.facts.quantisation import WIDTHS
from rlsize.facts.records.record import Layout, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

_TITAN_TOKENS = 8192.0
_FP32_MASTER = (4.0, 4.0, 8.0, 2.0)  # torchtitan: fp32 weights sharded, gathered in bf16
_MIXED = (2.0, 2.0, 12.0, 2.0)  # bf16 weights and gradients, fp32 master copy and moments
_MEGATRON = (2.0, 4.0, 12.0, 2.0)  # fp32 gradients
_BF16_STATES = (2.0, 2.0, 4.0, 2.0)  # torchtune: everything in bf16
_BF16_8BIT = (2.0, 2.0, 2.0, 2.0)
_FROZEN = (2.0, 0.0, 0.0, 2.0)
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
    tokens = row.get("seq_len", row.get("seq_len_of_config"))
    if not isinstance(tokens, (int, float)) or isinstance(tokens, bool) or tokens <= 0:
        if "torchtitan" not in engine:
            raise Refused("states no sequence length, which decides the activations")
        tokens = _TITAN_TOKENS
        assumed.append(f"sequences of {_TITAN_TOKENS:g} tokens, as torchtitan ships its configurations")
    batch = row.get("micro_batch")
    if not isinstance(batch, (int, float)) or isinstance(batch, bool) or batch <= 0:
        batch = 1
        assumed.append("micro batch not stated, taken for 1")
    if "torchtune" in engine:
        found = _torchtune(row, words, assumed)
    elif "torchtitan" in engine:
        found = _torchtitan(row, layout, words, assumed)
    else:
        found = _other(row, words, assumed)
    return {
        "kind": "training",
        "stack": (re.findall(r"[a-z]+", engine) or [""])[0],
        "sequences": float(batch),
        "trained_tokens": float(tokens),
        **found,
    }


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
    traits = {
        trait
        for trait, name in (
            ("compiled", "compile"),
            ("chunked_loss", "chunked"),
            ("activations_offloaded", "activation offloading"),
        )
        if name in done
    }
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
