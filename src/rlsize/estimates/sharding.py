"""How a trainer is spread over its GPUs, and how its states are sharded."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rlsize.equations import memory_fit
from rlsize.estimates.figures import apply
from rlsize.estimates.layout_rules import Degrees
from rlsize.facts.figure import Figure

if TYPE_CHECKING:
    from rlsize.estimates.train_prediction_question import Sharding

WEIGHT_STAGE = 3  # the ZeRO stage from which weights are sharded too
_SHARDINGS: tuple[Sharding, ...] = ("none", "optimizer", "gradients", "full")  # by ZeRO stage
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
    def sharding(self) -> Sharding:
        """What the shards share, by name."""
        return _SHARDINGS[int(self.zero_stage.number)]

    @property
    def degrees(self) -> Degrees:
        """The degrees that model parallelism cuts the model by."""
        return Degrees(
            tensor=int(self.tensor_parallel.number),
            pipeline=int(self.pipeline_parallel.number),
            context=int(self.context_parallel.number),
            expert=int(self.expert_parallel.number),
        )

    @property
    def model_parallel(self) -> int:
        """GPUs that hold one copy of the model between them, before data parallelism."""
        return int(replace(self, data_parallel=one("data_parallel")).gpus.number)

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
