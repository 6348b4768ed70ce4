"""
Attention over packed sequences: each sees itself alone, and no mask over the whole micro-batch is ever built.

The function is registered with transformers under a name of its own. transformers builds no mask for a name that it has
no mask function for, and hands extra arguments of the model's forward on to attention; `packing` is one.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.checkpoint import checkpoint
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "rlsize_packed"
LARGEST_VARLEN_HEAD = 256  # widest head that the flash kernels take
FEATURES = {"s_aux": "attention sinks", "softcap": "a cap on attention scores"}
fell_back: set[str] = set()  # how attention ran on a GPU where no packed kernel took it
left_out: set[str] = set()  # what a model asked for and does not get, by name; it does not change the speed by much


@dataclass(frozen=True)
class Packing:
    """
    Sequences that lie one after the other in a micro-batch.

    Args:
        lengths: Tokens of each.
        offsets: Where each begins, and the end, as int32 on the device.
        recompute: Whether backward computes attention again instead of keeping what it put out.
    """

    lengths: tuple[int, ...]
    offsets: torch.Tensor
    recompute: bool = False

    @property
    def longest(self) -> int:
        """Tokens of the longest sequence."""
        return max(self.lengths)


def register() -> str:
    """Make packed attention known to transformers; returns the name to ask for it."""
    ALL_ATTENTION_FUNCTIONS.register(NAME, packed_attention)
    return NAME


def packed_attention(
    module: torch.nn.Module,  # noqa: ARG001 (transformers passes it)
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    *,
    packing: Packing,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    """
    Causal attention within each sequence of the pack, with the signature that transformers calls.

    Args:
        module: The layer; unused.
        query: Of shape (1, heads, tokens, width).
        key: Of shape (1, KV heads, tokens, width); KV heads may be fewer than heads.
        value: Of shape (1, KV heads, tokens, width of values).
        attention_mask: None; a mask over all tokens would cost more than the attention.
        packing: Where sequences begin and end.
        scaling: Factor on scores; one over the root of the width if None.
        sliding_window: Tokens that each sees, itself included; all before it if None.
        others: What else models hand over.

    Returns:
        Output of shape (1, tokens, heads, width of values), and no weights.
    """
    if attention_mask is not None:
        raise RuntimeError("this transformers builds an attention mask over the whole micro-batch; use 4.53 or newer")
    left_out.update(told for name, told in FEATURES.items() if others.get(name) is not None)
    attend = _varlen if _fits_varlen(query, value, sliding_window) else _one_by_one
    if attend is _one_by_one and query.device.type == "cuda":
        dtype = str(query.dtype).removeprefix("torch.")
        fell_back.add(f"one sequence after the other, in {dtype}, heads {query.shape[-1]} wide")
    arguments = (query[0], key[0], value[0], packing, scaling, sliding_window)
    if packing.recompute and torch.is_grad_enabled():
        return checkpoint(attend, *arguments, use_reentrant=False)[None], None
    return attend(*arguments)[None], None


def kernel(device: torch.device) -> str:
    """What computes attention on a device, in words."""
    return "varlen_attn (flash)" if device.type == "cuda" and _varlen_attn() else "scaled_dot_product_attention"


def _one_by_one(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    packing: Packing,
    scaling: float | None,
    window: int | None,
) -> torch.Tensor:
    """Attention of one sequence after the other, on (heads, tokens, width)."""
    shared = query.shape[0] // key.shape[0]
    alike = query.shape[-1] == value.shape[-1] and not window
    if shared > 1 and not alike:  # fast kernels share keys and values only in the plain case
        key, value = (part.repeat_interleave(shared, dim=0) for part in (key, value))
    options = {"enable_gqa": True} if shared > 1 and alike else {}
    outputs = []
    for one in zip(*(whole.split(packing.lengths, dim=1) for whole in (query, key, value)), strict=True):
        length = one[0].shape[1]
        mask = _window_mask(length, window, query.device) if window and length > window else None
        heads = [part[None] for part in one]  # kernels want four dimensions
        done = scaled_dot_product_attention(*heads, attn_mask=mask, is_causal=mask is None, scale=scaling, **options)
        outputs.append(done[0])
    return torch.cat(outputs, dim=1).transpose(0, 1)


def _window_mask(length: int, window: int, device: torch.device) -> torch.Tensor:
    place = torch.arange(length, device=device)
    behind = place[:, None] - place[None, :]
    return (behind >= 0) & (behind < window)


def _varlen(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    packing: Packing,
    scaling: float | None,
    window: int | None,
) -> torch.Tensor:
    """Attention of all sequences in one kernel, on (heads, tokens, width)."""
    attend, known = _varlen_attn() or (None, frozenset())
    assert attend is not None  # noqa: S101 (for the type checker: `_fits_varlen` has asked)
    options: dict[str, Any] = {"scale": scaling} if "scale" in known else {}
    if "window_size" in known:
        options["window_size"] = (window - 1 if window else -1, 0)  # tokens to the left and to the right
    else:
        options["is_causal"] = True
    if "enable_gqa" in known:
        options["enable_gqa"] = True
    elif query.shape[0] != key.shape[0]:
        key, value = (part.repeat_interleave(query.shape[0] // key.shape[0], dim=0) for part in (key, value))
    rows = (part.transpose(0, 1) for part in (query, key, value))
    found: torch.Tensor = attend(*rows, packing.offsets, packing.offsets, packing.longest, packing.longest, **options)
    return found


def _fits_varlen(query: torch.Tensor, value: torch.Tensor, window: int | None) -> bool:
    found = _varlen_attn()
    if found is None or query.device.type != "cuda":
        return False
    half = query.dtype in {torch.float16, torch.bfloat16}
    return (
        half
        and query.shape[-1] == value.shape[-1] <= LARGEST_VARLEN_HEAD
        and (window is None or "window_size" in found[1])
    )


@cache
def _varlen_attn() -> tuple[Callable[..., torch.Tensor], frozenset[str]] | None:
    """The kernel that torch has for packed sequences, and its arguments, which differ by version; None without one."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    return varlen_attn, frozenset(inspect.signature(varlen_attn).parameters)
