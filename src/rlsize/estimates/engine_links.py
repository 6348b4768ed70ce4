"""What the links among an engine's GPUs reach, within the fast network and between nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations.step_overheads import exchanged_copies
from rlsize.facts.kernels import Transfer, engine_all_reduce

if TYPE_CHECKING:
    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.facts.engine_traits import EngineTraits
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.kernels import Kernels

_LEAST_LINK = 0.5  # share of the link that large all-reduces reach where an engine switches to NCCL
_EXCHANGE = Transfer(fixed=14e-6, link_fraction=0.6)  # DeepEP on H100 where a GPU has no figures of its own
_NETWORK_SECONDS = 35e-6  # more for a small collective between nodes: NCCL over InfiniBand, assumed
_NETWORK_SHARE = 0.8  # of the adapters' bandwidth, as in training
_WIDE = 2.0  # bytes of an activation


def links(question: EngineQuestion, kernels: Kernels, traits: EngineTraits) -> dict[str, float]:
    """All-reduces and exchanges of an engine's step: how many, their fixed times, and what large ones reach."""
    shape, layout = question.model.architecture, question.layout
    link = question.gpu.specification.scale_up.bandwidth_one_direction.value
    reduce = engine_all_reduce(kernels, traits.name, layout.tensor)
    large = max(reduce.link_fraction, engine_all_reduce(kernels, "vllm", layout.tensor).link_fraction, _LEAST_LINK)
    across = _across(question.gpu, layout.tensor * layout.data)
    there = kernels.expert_exchange.get("dispatch", _EXCHANGE)
    back = kernels.expert_exchange.get("combine", _EXCHANGE)
    moe = shape.moe
    copies = exchanged_copies(ranks=layout.data, experts_per_token=moe.experts_per_token if moe else 0)
    sent = copies * shape.hidden_size
    times = {"dispatch": 1.0, "combine": _WIDE}
    return {
        "all_reduces": 2.0 * shape.layers + 1.0 if layout.tensor > 1 else 0.0,
        "all_reduce_seconds": reduce.fixed + (_NETWORK_SECONDS if _across(question.gpu, layout.tensor) else 0.0),
        "all_reduce_rate": min(link * large, _network(question.gpu, layout.tensor, shared=True)),
        "exchange_layers": float(moe.layers) if moe and layout.data > 1 else 0.0,
        "exchange_seconds": there.fixed + back.fixed + (_NETWORK_SECONDS if across else 0.0),
        "exchange_rate": min(
            link * min(there.link_fraction, back.link_fraction),
            _network(question.gpu, layout.tensor * layout.data, shared=False),
        ),
        "exchange_bytes": sent * (times["dispatch"] + times["combine"]),
    }


def _across(gpu: Gpu, ranks: int) -> bool:
    """Whether ranks lie on more GPUs than the fast network joins."""
    return ranks > gpu.specification.scale_up.domain_gpus.value


def _network(gpu: Gpu, ranks: int, *, shared: bool) -> float:
    """Bandwidth between nodes, where ranks span several; an all-reduce shares a node's adapters."""
    said = gpu.specification
    if not _across(gpu, ranks):
        return float("inf")
    adapter = said.nic.value if said.nic else said.scale_up.bandwidth_one_direction.value
    return adapter * _NETWORK_SHARE * (said.gpus_per_node.value if shared else 1.0)
