"""What the parts of a training step's time have in common: who works it out, of what, with which constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.equations import memory_fit, train_step, train_step_kernels, train_step_traffic

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.train_prediction_gpu import TrainGpu
    from rlsize.estimates.train_prediction_question import TrainQuestion
    from rlsize.estimates.train_prediction_shape import TrainShape


@dataclass(frozen=True, slots=True)
class Setting:
    """
    What the parts of a pass have in common.

    Args:
        work: `apply` or `numbers` of `estimates.figures`.
        question: What is asked.
        shape: The model's numbers.
        gpu: The GPU's numbers.
        values: The constants.
        domain: GPUs that share the fast network. [1]
    """

    work: Callable[..., Real]
    question: TrainQuestion
    shape: TrainShape
    gpu: TrainGpu
    values: Mapping[str, Real]
    domain: int

    def tokens(self) -> Real:
        """Tokens of the step for each GPU."""
        asked = self.question
        given = {"sequences": asked.sequences, "length": asked.tokens, "gpus": asked.gpus}
        return self.work("tokens_per_gpu", train_step_kernels.tokens_per_gpu, **given)

    def replicas(self) -> Real:
        """Data-parallel replicas of the model."""
        return self._replicas("data_parallel", self.question.replica)

    def shards(self) -> Real:
        """Ranks over which weights, or states, are sharded."""
        if self.question.shards is not None:
            return self.question.shards
        return self._replicas("shards", self.question.tensor * self.question.pipeline)

    def _replicas(self, key: str, size: int) -> Real:
        return self.work(key, train_step.model_replicas, gpus=self.question.gpus, gpus_per_replica=size)

    def micro_batches(self) -> Real:
        """Micro-batches of the step on one replica."""
        asked = self.question
        given = {"sequences": asked.sequences, "length": asked.tokens, "gpus": self.replicas()}
        return self.work(
            "micro_batches",
            train_step.micro_batches,
            replica_tokens=self.work("replica_tokens", train_step_kernels.tokens_per_gpu, **given),
            micro_batch_tokens=asked.micro_batch_tokens,
        )

    def stage_layers(self) -> Real:
        """Layers on each GPU."""
        stages = self.question.pipeline
        return self.work(
            "stage_layers", memory_fit.layers_per_stage, layers=self.shape.layers, pipeline_parallel=stages
        )

    def params_between_shards(self) -> Real:
        """Parameters that a group of shards holds together."""
        asked = self.question
        dense = asked.tensor * asked.pipeline
        experts = asked.expert * asked.pipeline if asked.expert > 1 else dense
        return self.work(
            "params_between_shards",
            train_step_traffic.params_between_shards,
            dense=self.shape.dense_params,
            experts=self.shape.expert_params,
            dense_ranks=dense,
            expert_ranks=experts,
        )
