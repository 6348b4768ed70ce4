"""
Times of measured GPU kernels, as the few numbers of fitted curves.

Each family of kernels has one form, with B the memory bandwidth, F the peak of the number type and W the scale-up link
of one GPU in one direction, all as the profile's specification says. Tables are keyed by number type: `bf16`, `fp8`
(one scale per tensor), `fp8_static` (the same without kernels that scale and cast), `fp8_block` (one scale per block),
`fp4` (NVFP4), `mxfp4` and `int4` (weights only). Where an engine's own kernels were measured, the type stands after
the engine: `trtllm/fp8_block`. `pick` finds the entry of a type that was not measured.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from rlsize.facts.fields import Quantity, Says
from rlsize.facts.kinds import RATIO, SECONDS, SECONDS_OR_NONE, TOKENS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlsize.facts.gpu import Gpu

T = TypeVar("T")
Peak = Literal["bf16", "fp8", "fp4"]

_SOURCE, _BORROWED = "kernels", "borrowed-kernels"  # keys of sources that borrowing adds
_OVER = 1.25  # fits of short kernels may put a share slightly above 1, in exchange for another term


@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm:
    """
    A matrix multiplication of m x k by k x n.

    Time = fixed + quantise_passes 3 m k / B + seconds_per_thousand_k k / 1000
    + ((bytes / (B memory_fraction))^p + (flops / (F compute_fraction))^p)^(1/p), p the exponent.
    """

    fixed: Annotated[float, SECONDS.saying("Time of a multiplication without work.")]
    memory_fraction: Annotated[float, Quantity("1", "Share of the memory bandwidth.", most=_OVER)]
    compute_fraction: Annotated[float, Quantity("1", "Share of the peak of the number type.", most=_OVER)]
    quantise_passes: Annotated[
        float, RATIO.saying("Passes over the activations, 3 bytes each, to quantise them; 0 in bf16.")
    ] = 0.0
    seconds_per_thousand_k: Annotated[
        float, SECONDS_OR_NONE.saying("Time for each thousand columns of the inner dimension.")
    ] = 0.0
    exponent: Annotated[float, Quantity("1", "How sharply memory time passes into compute time.", least=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeAttention:
    """
    Attention of one new token per sequence, one layer on one GPU.

    Time = fixed + bytes of keys and values / (B memory_fraction) + seconds_per_sequence_head sequences kv_heads.
    """

    fixed: Annotated[float, SECONDS.saying("Time without a cache; holds a gap of about 2 us between graphs.")]
    memory_fraction: Annotated[float, Quantity("1", "Share of the memory bandwidth.", most=_OVER)]
    seconds_per_sequence_head: Annotated[
        float, SECONDS_OR_NONE.saying("Time for each sequence and each KV head on the GPU.")
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class LatentDecode:
    """
    The attention kernel of MLA for one new token per sequence, one layer on one GPU, without its projections.

    Time = fixed + seconds_per_sequence sequences
    + max(latent bytes / (B memory_fraction), flops / (bf16 peak compute_fraction)).
    """

    fixed: Annotated[float, SECONDS.saying("Time without a cache; holds a gap of about 2 us between graphs.")]
    memory_fraction: Annotated[float, Quantity("1", "Share of the memory bandwidth.", most=_OVER)]
    compute_fraction: Annotated[float, Quantity("1", "Share of the bf16 peak.", most=_OVER)]
    seconds_per_sequence: Annotated[float, SECONDS_OR_NONE.saying("Time for each sequence.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillAttention:
    """
    Causal attention of prompts of s tokens, one layer on one GPU; flops = 2 sequences heads head_dim s^2.

    Time = fixed + flops / (bf16 peak compute_fraction) (1 + half_length / s).
    """

    fixed: Annotated[float, SECONDS.saying("Time of an empty prompt.")]
    compute_fraction: Annotated[float, Quantity("1", "Share of the bf16 peak for long prompts.", most=_OVER)]
    half_length: Annotated[float, TOKENS.saying("Prompt length at which half of that share is reached.")]
    common: Annotated[bool, Says("Whether it is the kernel for all GPUs since Ampere, which trainers run too.")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MoeKernel:
    """
    Routing, both expert multiplications and the combination of one layer on one GPU.

    Time = fixed + seconds_per_expert experts + bytes of the touched experts / (B memory_fraction)
    + flops / (F compute_fraction).
    """

    fixed: Annotated[float, SECONDS.saying("Time without work.")]
    memory_fraction: Annotated[float, Quantity("1", "Share of the memory bandwidth.", most=_OVER)]
    compute_fraction: Annotated[float, Quantity("1", "Share of the peak that `peak` names.", most=_OVER)]
    peak: Annotated[Peak, Says("The number type whose peak the share is of.")]
    seconds_per_expert: Annotated[float, SECONDS_OR_NONE.saying("Time for each expert on the GPU.")] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """
    A collective among the GPUs of one node: time = fixed + factor bytes / (W link_fraction).

    The factor is 2 (n - 1) / n for an all-reduce of n GPUs, (n - 1) / n for other collectives, 1 for the exchange of
    experts, whose bytes are those that one GPU sends.
    """

    fixed: Annotated[float, SECONDS.saying("Time of a small message.")]
    link_fraction: Annotated[float, Quantity("1", "Share of the scale-up link, one direction.", most=_OVER)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearDecode:
    """
    The recurrent update of linear attention for one new token per sequence, one layer on one GPU.

    Time = fixed + bytes of the fp32 state, read and written / (B memory_fraction).
    """

    fixed: Annotated[float, SECONDS.saying("Time without sequences.")]
    memory_fraction: Annotated[float, Quantity("1", "Share of the memory bandwidth.", most=_OVER)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearPrefill:
    """
    The chunked recurrence of linear attention over a prompt, one layer on one GPU.

    Time = flops / (bf16 peak compute_fraction) + seconds_per_token tokens, the walk from chunk to chunk.
    """

    compute_fraction: Annotated[float, Quantity("1", "Share of the bf16 peak.", most=_OVER)]
    seconds_per_token: Annotated[float, SECONDS_OR_NONE.saying("Time for each token of the longest prompt.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseIndex:
    """
    The indexer of sparse attention, one layer on one GPU: scores of all cached keys, and the choice among them.

    Time of a decode step = fixed + index bytes / (B memory_fraction). A prompt of s tokens takes seconds_per_token s
    + s^2 / 2 scores / (fp8 peak compute_fraction) of the GPU, and launch of the host.
    """

    fixed: Annotated[float, SECONDS.saying("Time without a cache.")]
    memory_fraction: Annotated[float, Quantity("1", "Share of the memory bandwidth.", most=_OVER)]
    seconds_per_token: Annotated[float, SECONDS_OR_NONE.saying("Time for each token of a prompt.")]
    compute_fraction: Annotated[float, Quantity("1", "Share of the fp8 peak in a prompt's scores.", most=_OVER)]
    launch: Annotated[float, SECONDS_OR_NONE.saying("Host time of a prompt's layer, outside graphs.")] = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """How long kernels take on one GPU, each measured alone and launched from a graph."""

    source: Annotated[str, Says("The key of `sources` that names the measurements.")]
    verified: Annotated[bool, Says("False where numbers were derived or guessed, not measured.")] = True
    measured_on: Annotated[str, Says("The GPU that was measured; empty: this one.")] = ""
    borrowed: Annotated[tuple[str, ...], Says("Families of kernels that are those of the GPU in `kernels_like`.")] = ()
    gemm: Annotated[dict[str, Gemm], Says("Matrix multiplication, by number type.")] = field(default_factory=dict)
    decode_attention: Annotated[dict[str, DecodeAttention], Says("Decode attention, by type of the cache.")] = field(
        default_factory=dict
    )
    latent_decode: Annotated[dict[str, LatentDecode], Says("Decode attention of MLA, by type of the cache.")] = field(
        default_factory=dict
    )
    prefill_attention: Annotated[dict[str, PrefillAttention], Says("Prefill attention, by type of the cache.")] = field(
        default_factory=dict
    )
    moe: Annotated[dict[str, MoeKernel], Says("Mixture-of-experts layer, by number type.")] = field(
        default_factory=dict
    )
    all_reduce: Annotated[
        dict[str, dict[str, Transfer]], Says("An engine's own all-reduce, by engine and tensor-parallel size.")
    ] = field(default_factory=dict)
    nccl: Annotated[dict[str, dict[str, Transfer]], Says("NCCL, by collective and number of GPUs.")] = field(
        default_factory=dict
    )
    expert_exchange: Annotated[
        dict[str, Transfer], Says("Low-latency all-to-all of experts within a node: dispatch and combine.")
    ] = field(default_factory=dict)
    linear_decode: Annotated[LinearDecode | None, Says("Linear attention in decode.")] = None
    linear_prefill: Annotated[dict[str, LinearPrefill], Says("Linear attention in prefill, by engine.")] = field(
        default_factory=dict
    )
    sparse_index: Annotated[dict[str, SparseIndex], Says("Indexer of sparse attention, by engine.")] = field(
        default_factory=dict
    )
    small_operation: Annotated[float | None, SECONDS.saying("A small elementwise kernel inside a graph.")] = None
    host_launch: Annotated[float | None, SECONDS.saying("A launch by the host, outside graphs.")] = None


FAMILIES: tuple[str, ...] = tuple(
    each.name
    for each in dataclasses.fields(Kernels)
    if each.name not in {"source", "verified", "measured_on", "borrowed"}
)
"""The families of kernels: the fields of `Kernels` that hold times."""

_NEXT: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "fp8_block": ("fp8",),
        "fp8": ("fp8_block",),
        "fp8_static": ("fp8", "fp8_block"),
        "fp4": ("mxfp4",),
        "mxfp4": ("fp4", "int4"),
        "int4": ("mxfp4",),
    }
)


def pick(table: Mapping[str, T], dtype: str, engine: str = "") -> tuple[str, T]:
    """
    The entry of a number type, else of the nearest one that was measured, else bf16; and the name of the type.

    The engine's own entry comes before the one for all engines.

    A GPU without matrix units of a type computes in bf16, so bf16 is the last resort.

    Raises:
        KeyError: There is not even bf16.

    >>> pick({"bf16": 1, "fp8": 2}, "fp8_block")
    ('fp8', 2)
    >>> pick({"fp8": 2, "trtllm/fp8": 3}, "fp8", "trtllm")
    ('fp8', 3)
    """
    for name in (dtype, *_NEXT.get(dtype, ()), "bf16"):
        for key in (f"{engine}/{name}", name):
            if key in table:
                return name, table[key]
    raise KeyError(dtype)


def among(table: Mapping[str, Transfer], gpus: int) -> Transfer:
    """
    The entry of a number of GPUs, else of the next larger one, else of the largest; keys end or begin with the number.

    >>> sizes = {f"tp{n}": Transfer(fixed=n * 1e-6, link_fraction=0.5) for n in (2, 4)}
    >>> among(sizes, 3).fixed, among(sizes, 8).fixed
    (4e-06, 4e-06)
    """
    sizes = sorted((int("".join(filter(str.isdigit, key))), entry) for key, entry in table.items())
    return next((entry for size, entry in sizes if size >= gpus), sizes[-1][1])


def engine_all_reduce(kernels: Kernels, engine: str, gpus: int) -> Transfer:
    """The all-reduce of an engine (vllm, sglang, trtllm) among so many GPUs; vLLM's for an engine that is unknown."""
    tables = kernels.all_reduce
    return among(tables.get(engine) or tables.get("vllm") or next(iter(tables.values())), gpus)


def _amid(tables: Sequence[Mapping[str, Mapping[str, Transfer]]]) -> dict[str, dict[str, Transfer]]:
    """Collectives amid those of several tables: geometric means of their times and shares."""

    def amid(transfers: list[Transfer]) -> Transfer:
        fixed, share = (
            prod(each) ** (1 / len(each)) for each in zip(*map(dataclasses.astuple, transfers), strict=True)
        )
        return Transfer(fixed=fixed, link_fraction=share)

    return {way: {size: amid([one[way][size] for one in tables]) for size in sizes} for way, sizes in tables[0].items()}


def kernels_of(
    gpu: Gpu, like: Callable[[str], Gpu], borrowers: tuple[str, ...] = ()
) -> tuple[Kernels | None, dict[str, str]]:
    """
    The kernels of a GPU, those that were not measured on it taken from the ones that its profile calls alike.

    Args:
        gpu: The profile as it was written.
        like: Gives a profile, as it was written, by name.
        borrowers: GPUs that borrow from this one, so that a circle ends.

    Returns:
        The kernels, which say what is borrowed, or None where neither has any; and the sources that they name.
    """
    if not gpu.kernels_like or gpu.name in borrowers:
        return gpu.kernels, gpu.sources
    lender = like(gpu.kernels_like)
    theirs, their_sources = kernels_of(lender, like, (*borrowers, gpu.name))
    if theirs is None:
        return gpu.kernels, gpu.sources
    said, own = their_sources[theirs.source], gpu.kernels
    if gpu.collectives_like:
        hosts = [found for name in gpu.collectives_like if (found := like(name).kernels)]
        reduces, others = (_amid([getattr(one, name) for one in hosts]) for name in ("all_reduce", "nccl"))
        theirs = dataclasses.replace(theirs, all_reduce=reduces, nccl=others)
        own = own and dataclasses.replace(own, all_reduce={}, nccl={})
        said = f"{said}; collectives between those of {' and '.join(gpu.collectives_like)}"
    if gpu.specification.card:  # a board comes with the hosts of its generation, a card goes into any
        theirs = dataclasses.replace(theirs, host_launch=None)
    if own is None:
        whole = dataclasses.replace(theirs, source=_SOURCE, measured_on=lender.name, borrowed=FAMILIES)
        return whole, {**gpu.sources, _SOURCE: said}
    missing = {name: getattr(theirs, name) for name in FAMILIES if getattr(own, name) in ({}, None)}
    return dataclasses.replace(own, measured_on=gpu.name, borrowed=tuple(missing), **missing), {
        **gpu.sources,
        _BORROWED: said,
    }
