"""What is asked about memory: the models of a run, how they are trained, and how they are spread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlsize.equations import kv_cache
from rlsize.estimates.constants_memory import constant_figures
from rlsize.estimates.figures import apply
from rlsize.estimates.memory_shape import MemoryShape, shapeless
from rlsize.facts.algorithm import RECOMPUTATIONS
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.estimates.engine_memory import CapacityQuestion
    from rlsize.estimates.trainer_layout import TrainerLayout
    from rlsize.facts.algorithm import Optimizer, Recomputation
    from rlsize.facts.rl_algorithm import RlAlgorithm

_BF16 = Figure(key="bytes_per_gradient", value=2, provenance="default", source="bf16 gradients")
_ONE_INSTANCE = Figure(key="instances", value=1, provenance="default", source="one instance")
_NO_PIPELINE = Figure(key="rollout_pipeline_parallel", value=1, provenance="default", source="no pipeline")
_UNEVEN = Figure(key="response_cv", value=1, provenance="default", source="lengths as uneven as an exponential's")
_ROLLOUT_DTYPE = Figure(key="rollout_dtype", value="bf16", provenance="default", source="default of --rollout-dtype")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryQuestion:
    """
    What is known about the models of a run and how it is spread.

    Args:
        algorithm: Which models it keeps by itself.
        critic: Whether a critic is trained.
        reference: Whether a frozen reference model is kept as a copy of its own.
        reward: Whether a reward model is kept.
        params: Parameters of the policy. [param]
        optimizer: What it keeps for each parameter.
        critic_params: Parameters of the critic; those of the policy where absent. [param]
        reference_params: Parameters of the reference; those of the policy where absent. [param]
        reward_params: Parameters of the reward model; those of the policy where absent. [param]
        known_shape: The policy's layers and caches, where known.
        bytes_per_gradient: Width of a gradient. [B/param]
        lora_rank: Rank of the adapters; absent for full training. [1]
        rollout_dtype: Number format of the rollout weights.
        instances: Rollout instances. [instance]
        concurrency: Samples at the same time on one instance. [sample/instance]
        context_tokens: Tokens of a sample in flight; absent where prompt and response say it. [token]
        prompt_tokens: Mean prompt length. [token]
        response_tokens: Mean response length. [token]
        response_cv: Coefficient of variation of response lengths. [1]
        layout: How the trainer is spread; None where nobody says.
        rollout_tensor_parallel: GPUs that share each layer of an instance; absent where nobody says. [1]
        rollout_pipeline_parallel: Pipeline stages of an instance. [1]
        micro_batch_tokens: Tokens of one forward and backward pass of a data-parallel rank. [token]
        capped: Whether somebody said the cap, so that a micro-batch is known to hold the longest sequence.
        longest_tokens: The longest sequence, which a micro batch and a cache must hold whole; absent where nobody says
            how long samples are. [token]
        recompute: What activations are recomputed.
        engine: One rollout instance on its GPU; None where model or GPU is not named.
        constants: The constants of memory by name.
    """

    algorithm: RlAlgorithm
    critic: bool
    reference: bool
    reward: bool
    params: Figure
    optimizer: Optimizer
    critic_params: Figure = absent("critic_params", "--critic-params")
    reference_params: Figure = absent("reference_params", "--reference-params")
    reward_params: Figure = absent("reward_params", "--reward-params")
    known_shape: MemoryShape | None = None
    bytes_per_gradient: Figure = _BF16
    lora_rank: Figure = absent("lora_rank", "--lora-rank")
    rollout_dtype: Figure = _ROLLOUT_DTYPE
    instances: Figure = _ONE_INSTANCE
    concurrency: Figure = absent("concurrency", "--concurrency")
    context_tokens: Figure = absent("context_tokens", "--context")
    prompt_tokens: Figure = absent("prompt_tokens", "--context")
    response_tokens: Figure = absent("response_tokens", "--context")
    response_cv: Figure = _UNEVEN
    layout: TrainerLayout | None = None
    rollout_tensor_parallel: Figure = absent("rollout_tensor_parallel", "--rollout-tensor-parallel")
    rollout_pipeline_parallel: Figure = _NO_PIPELINE
    micro_batch_tokens: Figure = absent("micro_batch_tokens", "--micro-batch-tokens")
    longest_tokens: Figure = absent("longest_tokens", "--response-tokens")
    capped: bool = True
    recompute: Recomputation = RECOMPUTATIONS["full"]
    engine: CapacityQuestion | None = None
    constants: Mapping[str, Figure] = field(default_factory=constant_figures)

    @property
    def shape(self) -> MemoryShape:
        """The policy as memory sees it."""
        return self.known_shape or shapeless(self.params)

    @property
    def context(self) -> Figure:
        """Tokens of a sample in flight: said, or the prompt and the mean live length of a response."""
        if self.context_tokens.known:
            return self.context_tokens
        return apply(
            "context_tokens",
            kv_cache.mean_live_tokens,
            prompt_tokens=self.prompt_tokens,
            response_tokens=self.response_tokens,
            response_cv=self.response_cv,
        )

    @property
    def pool_params(self) -> tuple[Figure, Figure]:
        """The policy's parameters outside and inside routed experts."""
        return self.shape.dense_params, self.shape.routed_params
