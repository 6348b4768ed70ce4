"""What of a trained or frozen model ends up on each GPU of the trainer, by how it is sharded."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rlsize.equations import memory, memory_fit
from rlsize.estimates.working import apply, total
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from rlsize.estimates.memory_shape import MemoryShape

OPTIMIZER_STAGE, GRADIENT_STAGE, WEIGHT_STAGE = 1, 2, 3  # the ZeRO stage from which each of them is sharded


FULLY_SHARDED = Figure(key="zero_stage", value=3, provenance="default", source="FSDP: all states sharded")


def one(key: str) -> Figure:
    """A degree of parallelism that nobody asked for."""
    return Figure(key=key, value=1, provenance="default", source="not parallel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """
    How the trainer is spread over its GPUs.

    Args:
        data_parallel: Data-parallel ranks. [1]
        shards: Data-parallel ranks that share one copy of the training state; fewer than all with HSDP. [1]
        zero_stage: What they share: nothing (0), optimizer (1), gradients (2), weights as well (3, FSDP).
        tensor_parallel: Tensor-parallel ranks. [1]
        pipeline_parallel: Pipeline stages. [1]
        context_parallel: Context-parallel ranks. [1]
        expert_parallel: Expert-parallel ranks. [1]
    """

    data_parallel: Figure = field(default_factory=lambda: one("data_parallel"))
    shards: Figure = field(default_factory=lambda: one("shards"))
    zero_stage: Figure = FULLY_SHARDED
    tensor_parallel: Figure = field(default_factory=lambda: one("tensor_parallel"))
    pipeline_parallel: Figure = field(default_factory=lambda: one("pipeline_parallel"))
    context_parallel: Figure = field(default_factory=lambda: one("context_parallel"))
    expert_parallel: Figure = field(default_factory=lambda: one("expert_parallel"))

    @property
    def gpus(self) -> Figure:
        """GPUs of the trainer."""
        return apply(
            "trainer_gpus",
            memory_fit.trainer_gpus,
            data_parallel=self.data_parallel,
            tensor_parallel=self.tensor_parallel,
            pipeline_parallel=self.pipeline_parallel,
            context_parallel=self.context_parallel,
        )

    @property
    def model_parallel(self) -> int:
        """GPUs that hold one copy of the model between them, before data parallelism."""
        return int(replace(self, data_parallel=one("data_parallel")).gpus.number)

    @property
    def expert_tensor_parallel(self) -> float:
        """Ways in which tensor parallelism slices an expert: not at all once experts are parallel themselves."""
        return self.tensor_parallel.number if self.expert_parallel.number == 1 else 1.0

    def spread_over(self, gpus: int) -> Layout:
        """The same model parallelism on so many GPUs, the state shared by all data-parallel ranks."""
        ranks = self.data_ranks(Figure(key="trainer_gpus", value=gpus, provenance="predicted", source="tried"))
        return replace(self, data_parallel=ranks, shards=replace(ranks, key="shards"))

    def data_ranks(self, gpus: Figure) -> Figure:
        """Data-parallel ranks that so many GPUs leave room for."""
        return apply(
            "data_parallel",
            memory_fit.data_parallel_ranks,
            gpus=gpus,
            tensor_parallel=self.tensor_parallel,
            pipeline_parallel=self.pipeline_parallel,
            context_parallel=self.context_parallel,
        )

    def ranks(self, *, experts: bool) -> Figure:
        """Ranks that hold the same slice of the weights, and can share its training state."""
        return apply(
            "expert_slice_ranks" if experts else "slice_ranks",
            memory_fit.ranks_with_same_slice,
            data_parallel=self.shards,
            context_parallel=self.context_parallel,
            tensor_parallel=self.tensor_parallel,
            expert_parallel=self.expert_parallel if experts else 1,
            expert_tensor_parallel=self.expert_tensor_parallel if experts else self.tensor_parallel,
        )

    def slice_of(self, params: Figure, *, experts: bool) -> Figure:
        """Parameters that model parallelism leaves on a GPU."""
        none = Figure(key="params", value=0, provenance="default", source="counted apart")
        return apply(
            "params_per_gpu",
            memory.params_per_gpu,
            dense_params=none if experts else params,
            routed_params=params if experts else none,
            tensor_parallel=self.tensor_parallel,
            pipeline_parallel=self.pipeline_parallel,
            expert_parallel=self.expert_parallel,
            expert_tensor_parallel=self.expert_tensor_parallel,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Widths:
    """
    Bytes per parameter of the parts of a training state; zero for parts that a frozen model lacks.

    Args:
        weight: Weights. [B/param]
        gradient: Gradients. [B/param]
        optimizer: Master copy and optimizer state together. [B/param]
    """

    weight: Figure
    gradient: Figure
    optimizer: Figure


def state_per_gpu(key: str, dense: Figure, routed: Figure, widths: Widths, layout: Layout) -> Figure:
    """
    Bytes of a model's state on each GPU of the trainer.

    Args:
        key: The result's name.
        dense: Parameters outside routed experts. [param]
        routed: Parameters of routed experts. [param]
        widths: Bytes per parameter.
        layout: How they are sharded.
    """
    kinds = [(dense, False)] if not routed.known or routed.number == 0 else [(dense, False), (routed, True)]
    parts = [_slice_bytes(f"{key}_{params.key}", params, widths, layout, experts=experts) for params, experts in kinds]
    if len(parts) == 1:
        return replace(parts[0], key=key)
    return total(key, parts)


def _slice_bytes(key: str, params: Figure, widths: Widths, layout: Layout, *, experts: bool) -> Figure:
    ranks, stage = layout.ranks(experts=experts), layout.zero_stage.number
    alone = Figure(key="shards", value=1, provenance="predicted", source=f"ZeRO-{stage:g} does not shard it")
    return apply(
        key,
        memory.sharded_state_bytes,
        params=layout.slice_of(params, experts=experts),
        bytes_per_param=widths.weight,
        bytes_per_gradient=widths.gradient,
        bytes_per_optimizer=widths.optimizer,
        weight_shards=ranks if stage >= WEIGHT_STAGE else alone,
        gradient_shards=ranks if stage >= GRADIENT_STAGE else alone,
        optimizer_shards=ranks if stage >= OPTIMIZER_STAGE else alone,
    )


def gathered_layer(shape: MemoryShape, widths: Widths, layout: Layout) -> Figure:
    """Bytes of the layers that FSDP gathers while one runs; nothing where weights are not sharded."""
    key = "gathered_layer_bytes_per_gpu"
    if layout.zero_stage.number < WEIGHT_STAGE or layout.ranks(experts=False).number == 1:
        return Figure(
            key=key, value=0.0, provenance="predicted", source="no weights are sharded over data-parallel ranks"
        )
    whole = replace(layout, pipeline_parallel=one("pipeline_parallel"))  # a stage has fewer layers, not thinner ones
    found = []
    for params, outer, experts in ((shape.dense_params, shape.outer_params, False), (shape.routed_params, 0, True)):
        layer = apply(
            "layer_params", memory_fit.mean_layer_params, params=params, outer_params=outer, layers=shape.layers
        )
        found.append(whole.slice_of(layer, experts=experts))
    if not all(part.known for part in found):
        return absent(key, found[0].missing)
    return apply(
        key,
        memory.unsharded_layer_bytes,
        layer_params=total(
            "layer_params", [replace(part, key=name) for part, name in zip(found, ("dense", "routed"), strict=True)]
        ),
        bytes_per_param=widths.weight,
        bytes_per_gradient=widths.gradient,
        prefetched_layers=Figure(
            key="prefetched_layers", value=1, provenance="default", source="FSDP gathers one layer ahead"
        ),
    )
