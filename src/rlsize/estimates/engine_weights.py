"""The weights on each GPU of an engine, with what tensor parallelism copies and what quantisation leaves wide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import engine_memory
from rlsize.estimates.engine_shape import Plain
from rlsize.facts.quantisation import WIDTHS, native

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.engine_memory import CapacityQuestion
    from rlsize.estimates.engine_shape import EngineShape

    Work = Callable[..., Real]

_WIDE = 2.0  # bytes of what no checkpoint quantises


def weight_bytes(work: Work, question: CapacityQuestion, shape: EngineShape, values: Mapping[str, Real]) -> Real:
    """Weights on each GPU."""
    say, layout, types = Plain(work), question.layout, question.weights or native(question.model.name)
    tensor = float(layout.tensor)
    copies = engine_memory.params_with_copies
    mixers = work(
        "mixer_params",
        copies,
        params=say(shape.mixers),
        head_params=say(shape.kv_projections),
        kv_heads=say(shape.kv_heads),
        whole_params=say(shape.latents),
        tensor_parallel=tensor,
    )
    wide = work(
        "wide_params",
        copies,
        params=work("wide_params", engine_memory.both, one=say(shape.wide), other=say(shape.routers)),
        head_params=0.0,
        kv_heads=1.0,
        whole_params=say(shape.routers),
        tensor_parallel=tensor,
    )
    return work(
        "engine_weight_bytes",
        engine_memory.engine_weight_bytes,
        attention_params=mixers,
        attention_width=WIDTHS[types.attention],
        dense_params=say(shape.dense),
        dense_width=WIDTHS[types.dense],
        wide_params=wide,
        wide_width=_WIDE,
        routed_params=say(shape.routed),
        routed_width=WIDTHS[types.experts],
        tensor_parallel=tensor,
        data_parallel=attention_ranks(work, question),
        pipeline_parallel=float(layout.pipeline),
        overhead=values["memory_weight_overhead"],
    )


def attention_ranks(work: Work, question: CapacityQuestion) -> Real:
    """Ranks with a cache of their own: data-parallel attention, said or implied by expert parallelism."""
    layout = question.layout
    return work(
        "attention_ranks",
        engine_memory.attention_ranks,
        tensor_parallel=float(layout.tensor),
        data_parallel=float(layout.data),
        expert_parallel=float(layout.expert) if question.model.architecture.moe else 1.0,
    )
