"""What running engines did while they were watched, and a run as it was observed, as a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from rlsize.facts.fields import Quantity, Says
from rlsize.facts.figure import Figure, absent
from rlsize.facts.kinds import AMOUNT_OR_NONE, COUNT, DOLLARS
from rlsize.facts.plan import PlanFigure  # noqa: TC001 (pydantic resolves the annotations at run time)
from rlsize.facts.rates import Rates  # noqa: TC001 (pydantic resolves the annotations at run time)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.counters import LengthFit
    from rlsize.facts.headroom import HeadroomPart


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceObservation:
    """
    What one instance did in the window.

    Args:
        instance: What it is called.
        left_out: Why it does not count; empty where it does.
        seconds: Time between its first and its last page. [s]
        tokens_per_second: Response tokens per second by wall clock. [token/s]
        busy_tokens_per_second: The same while it ran something; None where nobody looked in between. [token/s]
        saturated_fraction: Share of the time with work waiting; None where unknown. [1]
        why: What showed that.
        lower_bound: Whether the rate is only what the instance was asked for.
        straggler: Whether it is far slower than its neighbours.
        stuck: Whether it had work waiting and generated nothing, by a counter that grows with every token.
        preemptions_per_second: Samples thrown out of the batch. [1/s]
        prefix_cache_hit_fraction: Prompt tokens found in the prefix cache. [1]
        mean_response_tokens: Mean response length. [token]
        weight_syncs: Weight syncs. [1]
        weight_sync_seconds: Time in weight syncs. [s]
    """

    instance: str
    left_out: str = ""
    seconds: float = 0.0
    tokens_per_second: float | None = None
    busy_tokens_per_second: float | None = None
    saturated_fraction: float | None = None
    why: str = ""
    lower_bound: bool = True
    straggler: bool = False
    stuck: bool = False
    preemptions_per_second: float | None = None
    prefix_cache_hit_fraction: float | None = None
    mean_response_tokens: float | None = None
    weight_syncs: float | None = None
    weight_sync_seconds: float | None = None

    @property
    def used(self) -> bool:
        """Whether it counts."""
        return not self.left_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """
    What a fleet did in the window.

    Args:
        instances: Every instance, those left out too.
        window_seconds: The longest time that one was watched. [s]
        mean: Mean of the instances' rates by wall clock; None where no instance is left. [token/s]
        spread: Their standard deviation; None for a single one. [token/s]
        busy_mean: Mean of their rates while busy. [token/s]
        saturated_fraction: Of the least saturated instance; None where one is unknown. [1]
        lower_bound: Whether the mean is only what the fleet was asked for.
        why: What showed that.
        includes: The parts of headroom that the mean already holds, each with its reason.
        engine: The inference engine, or engines.
        model: Name of the model, or names.
        mean_response_tokens: Mean response length. [token]
        mean_prompt_tokens: Mean prompt length. [token]
        group_size: Samples of one prompt; None where the engine does not see it. [1]
        prefix_cache_hit_fraction: Prompt tokens found in the prefix cache. [1]
        affine_prefix_cache_hit_fraction: What is expected with each group kept on one instance. [1]
        prefix_caching: Whether all instances cache prefixes; None where no page says.
        preemptions_per_second: Per instance. [1/s]
        weight_syncs: Weight syncs that one instance saw, at most. [1]
        weight_sync_seconds: Time that one instance spent in them, at most. [s]
        kv_cache_tokens: Tokens that one instance's KV cache holds, at least. [token]
        gpus_per_instance: GPUs of an instance, where all pages say the same. [gpu]
        lengths: The distribution of response lengths; None where no buckets grew.
        keys: The metric behind each quantity.
        warnings: What the reader must know before trusting the mean.
    """

    instances: tuple[InstanceObservation, ...]
    window_seconds: float = 0.0
    mean: float | None = None
    spread: float | None = None
    busy_mean: float | None = None
    saturated_fraction: float | None = None
    lower_bound: bool = True
    why: str = ""
    includes: Mapping[HeadroomPart, str]
    engine: str = ""
    model: str = ""
    mean_response_tokens: float | None = None
    mean_prompt_tokens: float | None = None
    group_size: float | None = None
    prefix_cache_hit_fraction: float | None = None
    affine_prefix_cache_hit_fraction: Figure = absent("affine_prefix_cache_hit_fraction", "--group")
    prefix_caching: bool | None = None
    preemptions_per_second: float | None = None
    weight_syncs: float | None = None
    weight_sync_seconds: float | None = None
    kv_cache_tokens: int | None = None
    gpus_per_instance: int | None = None
    lengths: LengthFit | None = None
    keys: Mapping[str, str]
    warnings: tuple[str, ...] = ()

    @property
    def used(self) -> tuple[InstanceObservation, ...]:
        """The instances that count."""
        return tuple(instance for instance in self.instances if instance.used)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedAllocation:
    """The pools as they were."""

    rollout_instances: Annotated[float | None, COUNT.saying("rollout instances")] = None
    gpus_per_instance: Annotated[float | None, Quantity("count", "GPUs of one instance", least=1e-6)] = None
    rollout_gpus: Annotated[float | None, AMOUNT_OR_NONE.saying("GPUs of the rollout fleet")] = None
    trainer_gpus: Annotated[float | None, AMOUNT_OR_NONE.saying("GPUs of the trainer")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPrices:
    """What an hour of a GPU cost."""

    rollout_gpu_hour_usd: Annotated[float | None, DOLLARS.saying("dollars per hour of a rollout GPU")] = None
    trainer_gpu_hour_usd: Annotated[float | None, DOLLARS.saying("dollars per hour of a trainer GPU")] = None
    source: Annotated[str, Says("who says so")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunObservation:
    """A saved observation."""

    observed_at: Annotated[str, Says("when, as an ISO 8601 date and time")]
    rlsize_version: Annotated[str, Says("the rlsize that made it")]
    sources: Annotated[list[str], Says("what was read")]
    framework: Annotated[str, Says("whose training log; empty without one")] = ""
    mode: Annotated[str, Says("how the loop was laid out in time; empty where no log tells")] = ""
    engine: Annotated[str, Says("the inference engine; empty where none was read")] = ""
    allocation: Annotated[ObservedAllocation, Says("the pools as they were: the target of a rollback")] = field(
        default_factory=ObservedAllocation
    )
    prices: Annotated[ObservedPrices, Says("what an hour of a GPU cost")] = field(default_factory=ObservedPrices)
    rates: Annotated[Rates | None, Says("both rates as a rates file has them; null where none was seen")] = None
    results: Annotated[dict[str, PlanFigure], Says("what the run did, by key")] = field(default_factory=dict)
    steps: Annotated[list[int], Says("numbers of the settled optimizer steps")] = field(default_factory=list)
    columns: Annotated[dict[str, list[float]], Says("one value per settled step, by quantity")] = field(
        default_factory=dict
    )
