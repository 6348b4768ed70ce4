"""
Time of a training step on given GPUs: forward and backward, the optimizer, and the extra passes that RL needs.

Kernels measured alone, the bytes that a step moves and the power of the board say what is possible; the constants of
`constants_train` say what of it trainers reach.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from rlsize.equations import matching, memory, memory_fit, train_step_kernels, train_step_traffic, training_flops
from rlsize.equations import train_step as equations
from rlsize.estimates.figures import added, apply, total
from rlsize.estimates.memory_shape import memory_shape
from rlsize.estimates.model_size import attending_layers, model_parts, model_size, stated, working_width
from rlsize.estimates.remembered import remembered
from rlsize.estimates.trainer_layout import Degrees, model_objections, rank_objections
from rlsize.facts.figure import Figure
from rlsize.facts.kernels import among, pick
from rlsize.facts.records.record import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.model_size import AttendingLayers
    from rlsize.estimates.trainer_layout import Sharding
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model
    from rlsize.facts.sourced import Sourced

Workload = Literal["pretraining", "rl"]

DTYPES = ("bf16", "fp8")
BF16_BYTES = 2.0
_NO_POWER_LIMIT = 1e9  # W; for a profile that names no power
_ONCE = ("optimizer", "none")  # shardings whose collectives run once a step
_FULLY = 3  # forward passes that forward and backward are worth in model FLOPs
_BOTH: Mapping[Sharding, float] = MappingProxyType({"full": 3, "gradients": 2, "optimizer": 2, "none": 2})
_FORWARD: Mapping[Sharding, float] = MappingProxyType({"full": 1, "gradients": 1, "optimizer": 0, "none": 0})
EXTRA_PASSES: Mapping[str, str] = MappingProxyType(
    {
        "old_logprob": "log-probabilities of the policy before the update",
        "reference": "log-probabilities of the reference model",
        "proximal": "log-probabilities of the proximal policy (decoupled PPO)",
        "reward": "scores of the reward model",
        "critic": "values of the critic, and its own training",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PassCost:
    """
    What one pass over the tokens costs, in forward passes of each kind of work.

    Args:
        linear: Of linear layers. [1]
        attention: Of attention scores; backward costs two and a half. [1]
        streams: Of element-wise work, backward counted as two. [1]
        reductions: All-reduces of a layer for tensor parallelism, and all-to-all exchanges of one with experts. [1]
        head: Of the output head. [1]
        logits: Of the loss; forward alone moves half of it. [1]
        rounds: Times that keys and values go round for context parallelism. [1]
        collectives: Gathers and scatters of sharded weights for each micro-batch, by sharding. [1]
    """

    linear: float
    attention: float
    streams: float
    reductions: float
    head: float = 3
    logits: float = 1
    rounds: float = 3
    collectives: Mapping[Sharding, float] = field(default_factory=lambda: _BOTH)


TRAINING: Mapping[str, PassCost] = MappingProxyType(
    {
        "none": PassCost(linear=3, attention=3.5, streams=3, reductions=4),
        # attention is computed again
        "selective": PassCost(linear=3, attention=4.5, streams=3.25, reductions=4),
        # every other product is computed again, and what it gathers gathered
        "alternate": PassCost(linear=3.5, attention=3.5, streams=3.5, reductions=5),
        "full": PassCost(linear=4, attention=4.5, streams=4, reductions=6),
    }
)
"""Forward and backward, by what backward computes again."""

FORWARD = PassCost(linear=1, attention=1, streams=1, reductions=2, head=1, logits=0.5, rounds=1, collectives=_FORWARD)
"""Forward alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainQuestion:
    """
    A training step that somebody wants to know the time of; numbers, arrays of them, or figures.

    Args:
        model: The policy.
        gpu: The GPU, with kernels.
        gpus: GPUs of the trainer. [1]
        tensor: Tensor-parallel ranks. [1]
        pipeline: Pipeline stages. [1]
        context: Context-parallel ranks. [1]
        expert: Expert-parallel ranks. [1]
        shards: Ranks over which weights or states are sharded; None: data x context ranks. [1]
        sharding: What is sharded: weights too (ZeRO-3, FSDP), gradients (ZeRO-2), states (ZeRO-1), or nothing.
        virtual_stages: Chunks of layers of each pipeline stage; 1 unless interleaved. [1]
        dtype: Number type of linear layers: bf16 or fp8.
        row_scaling: Whether fp8 has a scale for each row in place of one for each tensor.
        recompute: What backward computes again: none, selective (attention), alternate (every other product) or full.
        sequences: Sequences of the step. [1]
        tokens: Mean tokens of a sequence, prompt and response. [token]
        tokens_cv: Standard deviation of that over its mean. [1]
        micro_batch_tokens: Tokens of a micro-batch of one replica. [token]
        updates: Times that the step's tokens are trained on. [1]
        optimizer_steps: Optimizer updates for that each time: mini-batches. [1]
        passes: Extra passes, of `EXTRA_PASSES`.
        pass_models: Models of those passes that are not as large as the policy.
        state_bytes: Bytes per parameter of the optimizer's copy and moments. [B/param]
        gradient_bytes: Bytes per parameter of a gradient. [B/param]
        offload: Whether these states live on the host.
        lora_rank: Rank of the adapters that alone are trained; None for full training. Memory counts them; the time is
            that of full training.
        fused: Whether element-wise work is compiled or fused.
        overlapped: Whether tensor-parallel transfers overlap with matrix products.
        native_attention: Whether attention kernels are made for this generation of GPU: FlashAttention-3 or cuDNN on
            Hopper, where FlashAttention-2 is the rule.
        capped: Whether somebody said how long a sequence gets, so that a micro-batch is known to hold the longest; a
            trainer whose longest sequence nobody knows is run with micro-batches that hold it.
        workload: pretraining, or rl with its ragged sequences and small micro-batches.
    """

    model: Model
    gpu: Gpu
    gpus: Real
    sequences: Real
    tokens: Real
    micro_batch_tokens: Real
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    shards: int | None = None
    sharding: Sharding = "full"
    virtual_stages: int = 1
    dtype: str = "bf16"
    row_scaling: bool = False
    recompute: str = "full"
    tokens_cv: Real = 0.0
    updates: Real = 1
    optimizer_steps: Real = 1
    passes: tuple[str, ...] = ()
    pass_models: Mapping[str, Model] = field(default_factory=dict)
    state_bytes: Real = 12.0
    gradient_bytes: Real = 4.0
    offload: bool = False
    lora_rank: int | None = None
    fused: bool = False
    overlapped: bool = False
    native_attention: bool = False
    capped: bool = True
    workload: Workload = "rl"

    @property
    def replica(self) -> int:
        """GPUs of one model replica."""
        return self.tensor * self.pipeline * self.context

    @property
    def degrees(self) -> Degrees:
        """The degrees that model parallelism cuts the model by."""
        return Degrees(self.tensor, self.pipeline, self.context, self.expert)

    @property
    def figures(self) -> dict[str, Figure]:
        """Its fields that are figures."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Figure)}

    def bare(self, draws: Mapping[str, Real] | None = None) -> TrainQuestion:
        """
        The same with bare numbers in place of its figures.

        Args:
            draws: Arrays for the fields that are uncertain.
        """
        found: dict[str, Any] = {name: figure.number for name, figure in self.figures.items()}
        return replace(self, **{**found, **(draws or {})})


def objections(question: TrainQuestion, gpus: float | None = None) -> Iterator[str]:
    """
    What makes a question one that has no answer, each in a line.

    Args:
        question: What is asked.
        gpus: GPUs of the trainer, where the question's are figures or an array; None where they are a number.
    """
    gpu = question.gpu
    if question.dtype == "fp8" and gpu.specification.fp8_dense is None:
        yield f"{gpu.name} has no fp8 matrix units, so it cannot train in fp8; bf16 works"
    elif question.dtype not in DTYPES:
        yield f"{gpu.name} trains in {' or '.join(DTYPES)}; {question.dtype} is not predicted"
    if gpu.kernels is None:
        yield f"the profile of {gpu.name} says nothing about its kernels"
    count = question.gpus if gpus is None else gpus
    shape = memory_shape(question.model, model_size(question.model).params)
    found = list(rank_objections(count, question.degrees)) if isinstance(count, (int, float)) else []
    yield from (one.what for one in (*found, *model_objections(shape, question.degrees)))
    unknown = [name for name in question.passes if name not in EXTRA_PASSES]
    if unknown:
        yield f"there is no pass {unknown[0]!r}; there are {', '.join(EXTRA_PASSES)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainShape:
    """
    What a model brings to a training step; figures, or bare numbers.

    Args:
        linear_params: Parameters in linear layers that every token uses, the output head left out.
        head_params: Parameters in the output head.
        expert_active_params: Parameters in experts and their routers that work on each token.
        expert_params: Parameters in experts and their routers in total.
        dense_params: All other parameters.
        layers: Layers.
        hidden_size: Width of the residual stream.
        vocab_size: Rows of the output head.
        attention_width: Width of all query heads; 0 without attention.
        dense_layers: Layers with a dense MLP.
        dense_width: Width inside it.
        mlp_width: Width inside the MLP of the usual layer, dense or experts.
        expert_layers: Layers with experts.
        expert_width: Width inside the experts that work on a token.
        experts_per_token: Routed experts that work on a token.
        mlp_copies: Times that the width inside is read or written: 3 with a gate, 2 without.
        kv_bytes_per_token: Keys and values of all layers.
        attending: The ways in which layers attend.
        has_experts: Whether it is a mixture of experts.
    """

    linear_params: Real
    head_params: Real
    expert_active_params: Real
    expert_params: Real
    dense_params: Real
    layers: Real
    hidden_size: Real
    vocab_size: Real
    attention_width: Real
    dense_layers: Real
    dense_width: Real
    mlp_width: Real
    expert_layers: Real
    expert_width: Real
    experts_per_token: Real
    mlp_copies: Real
    kv_bytes_per_token: Real
    attending: tuple[AttendingLayers, ...]
    has_experts: bool


@remembered
def _bare(facts: Any) -> Any:  # noqa: ANN401 (a dataclass of figures in, the same of numbers out)
    """A dataclass of figures with their bare numbers in their place."""
    found = {name: getattr(facts, name) for name in facts.__slots__}
    changed: dict[str, Any] = {name: value.number for name, value in found.items() if isinstance(value, Figure)}
    if "attending" in found:
        changed["attending"] = tuple(_bare(kind) for kind in found["attending"])
    return replace(facts, **changed)


@remembered
def train_shape(model: Model) -> TrainShape:
    """The numbers of a model, as figures."""
    shape, says = model.architecture, stated(model)
    parts, size = {part.name: part for part in model_parts(model)}, model_size(model)
    head = parts["output_head" if "output_head" in parts else "embedding"].params
    linear = [
        part.active_params for name, part in parts.items() if name not in {"embedding", "output_head", "moe", "norms"}
    ]
    dense = [part.params for name, part in parts.items() if name != "moe"]
    none = says.figure("expert_params", 0)
    routed, feeder, kinds = shape.moe, shape.feed_forward, tuple(attending_layers(shape))
    width = working_width(routed, says) if routed else none
    heads = kinds[0].heads * kinds[0].value_dim if kinds else 0
    mlp = routed or feeder
    return TrainShape(
        linear_params=total("linear_params", linear),
        head_params=replace(head, key="head_params"),
        expert_active_params=parts["moe"].active_params if routed else none,
        expert_params=parts["moe"].params if routed else none,
        dense_params=total("dense_params", dense),
        layers=says.figure("layers", shape.layers),
        hidden_size=says.figure("hidden_size", shape.hidden_size),
        vocab_size=says.figure("vocab_size", shape.vocab_size),
        attention_width=says.figure("attention_width", heads) if kinds else none,
        dense_layers=says.figure("dense_layers", feeder.layers if feeder else 0),
        dense_width=says.figure("dense_width", feeder.intermediate_size if feeder else 0),
        mlp_width=width if routed else says.figure("mlp_width", feeder.intermediate_size if feeder else 0),
        expert_layers=says.figure("expert_layers", routed.layers if routed else 0),
        expert_width=width,
        experts_per_token=says.figure("experts_per_token", routed.experts_per_token if routed else 0),
        mlp_copies=says.figure("mlp_copies", mlp.matrices if mlp else 0),
        kv_bytes_per_token=total("kv_bytes_per_token", [size.kv_bytes_per_token, size.sliding_bytes_per_token]),
        attending=tuple(
            replace(
                kind,
                layers=says.figure("attending_layers", kind.layers),
                heads=says.figure("heads", kind.heads),
                query_key_dim=says.figure("query_key_dim", kind.query_key_dim),
                value_dim=says.figure("value_dim", kind.value_dim),
            )
            for kind in kinds
        ),
        has_experts=routed is not None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainGpu:
    """
    What a GPU brings to a training step; figures, or bare numbers.

    Args:
        matmul_peak: Peak rate of the number type of linear layers.
        matmul_fraction: Share of it that large matrix products reach.
        bf16_peak: Peak rate in bf16.
        bf16_fraction: Share of it that large matrix products reach.
        expert_peak: Peak rate of the number type of experts.
        expert_fraction: Share of it that grouped products of experts reach.
        attention_fraction: Share of the bf16 peak that attention of long sequences reaches.
        half_length: Length at which attention reaches half of that.
        memory_bandwidth: Of the device memory.
        power: Board power.
        scale_up: Bandwidth inside the node, one direction.
        nic: Bandwidth of the network adapter, one direction; that of the node where the profile names none.
        pcie: Bandwidth to the host, one direction.
        domain_gpus: GPUs that share the fast network.
        gather_fraction: Share of the fast network that gathers reach.
        tensor_fraction: The same among the tensor-parallel ranks.
        exchange_fraction: Share that all-to-all exchanges reach.
        recent: Whether it has fp8 units: newer than most training kernels of attention.
        newest: Whether it has fp4 units: of a generation that takes less energy for the same work.
    """

    matmul_peak: Real
    matmul_fraction: Real
    bf16_peak: Real
    bf16_fraction: Real
    expert_peak: Real
    expert_fraction: Real
    attention_fraction: Real
    half_length: Real
    memory_bandwidth: Real
    power: Real
    scale_up: Real
    nic: Real
    pcie: Real
    domain_gpus: Real
    gather_fraction: Real
    tensor_fraction: Real
    exchange_fraction: Real
    recent: bool
    newest: bool


@remembered
def train_gpu(gpu: Gpu, dtype: str, ranks: int, tensor: int, expert: int) -> TrainGpu:
    """
    The numbers of a GPU, as figures.

    Args:
        gpu: Its profile, with kernels.
        dtype: Number type of linear layers: bf16 or fp8.
        ranks: Ranks over which weights are sharded.
        tensor: Tensor-parallel ranks.
        expert: Expert-parallel ranks.
    """
    spec, kernels = gpu.specification, gpu.kernels
    if kernels is None:
        raise ValueError(f"the profile of {gpu.name} has no kernels")
    says = _Profile(gpu)
    domain = int(spec.scale_up.domain_gpus.value)
    name, gemm = pick(kernels.gemm, dtype)
    expert_kernel = pick(kernels.moe, dtype)[1]
    wide_kernel = pick(kernels.moe, "bf16")[1]
    attention = kernels.prefill_attention["bf16"]
    gathers, exchanges = kernels.nccl["all_gather"], kernels.nccl["all_to_all"]
    peaks = {
        "bf16": spec.bf16_dense,
        "fp8": spec.fp8_dense or spec.bf16_dense,
        "fp4": spec.fp4_dense or spec.bf16_dense,
    }
    link = spec.scale_up.bandwidth_one_direction
    return TrainGpu(
        matmul_peak=says.fact("peak_flops", peaks["fp8" if name.startswith("fp8") else "bf16"]),
        matmul_fraction=says.kernel("gemm_compute_fraction", gemm.compute_fraction),
        bf16_peak=says.fact("peak_flops", spec.bf16_dense),
        bf16_fraction=says.kernel("gemm_compute_fraction", kernels.gemm["bf16"].compute_fraction),
        expert_peak=says.fact("peak_flops", peaks[expert_kernel.peak]),
        expert_fraction=says.kernel(  # trainers scale fp8 by tensor, which costs less than the blocks that were timed
            "moe_compute_fraction", max(expert_kernel.compute_fraction, wide_kernel.compute_fraction)
        ),
        attention_fraction=says.kernel("attention_compute_fraction", attention.compute_fraction),
        half_length=says.kernel("half_length", attention.half_length),
        memory_bandwidth=says.fact("memory_bandwidth_bytes_per_second", spec.memory_bandwidth),
        power=says.fact("power_watts", spec.power, _NO_POWER_LIMIT),
        scale_up=says.fact("scale_up_bytes_per_second", link),
        nic=says.fact("nic_bytes_per_second", spec.nic or spec.pcie or link),
        pcie=says.fact("pcie_bytes_per_second", spec.pcie or spec.nic or link),
        domain_gpus=says.fact("domain_gpus", spec.scale_up.domain_gpus),
        gather_fraction=says.kernel("gather_link_fraction", among(gathers, min(ranks, domain)).link_fraction),
        tensor_fraction=says.kernel("tensor_link_fraction", among(gathers, min(tensor, domain)).link_fraction),
        exchange_fraction=says.kernel("exchange_link_fraction", among(exchanges, min(expert, domain)).link_fraction),
        recent=spec.fp8_dense is not None,
        newest=spec.fp4_dense is not None,
    )


@dataclass(frozen=True, slots=True)
class _Profile:
    """Quotes a GPU profile."""

    gpu: Gpu

    def fact(self, key: str, said: Sourced | None, otherwise: float = 0.0) -> Figure:
        """A number of the specification."""
        if said is None:
            why = f"GPU profile {self.gpu.name} does not say: no limit"
            return Figure(key=key, value=otherwise, provenance="default", source=why)
        source = f"GPU profile {self.gpu.name}: {self.gpu.sources.get(said.source, said.source)}"
        return Figure(key=key, value=said.value, source=source, verified=said.verified)

    def kernel(self, key: str, value: float) -> Figure:
        """A number of the measured kernels."""
        kernels = self.gpu.kernels
        named = kernels.source if kernels else ""
        source = f"kernels of {self.gpu.name}: {self.gpu.sources.get(named, named)}"
        return Figure(
            key=key, value=value, provenance="measured", source=source, verified=not kernels or kernels.verified
        )


@dataclass(frozen=True, slots=True)
class TrainerAtWork:
    """
    What the parts of a training step's time have in common: who works it out, of what, with which constants.

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

    def scaled(self, key: str, fraction: Real, constant: str) -> Real:
        """What trainers reach of a share that was measured on kernels alone."""
        return self.work(key, train_step_kernels.scaled_fraction, fraction=fraction, scale=self.values[constant])

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
        return self.work(key, equations.model_replicas, gpus=self.question.gpus, gpus_per_replica=size)

    def micro_batches(self) -> Real:
        """Micro-batches of the step on one replica."""
        asked = self.question
        given = {"sequences": asked.sequences, "length": asked.tokens, "gpus": self.replicas()}
        return self.work(
            "micro_batches",
            equations.micro_batches,
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


def gathering(trainer: TrainerAtWork, cost: PassCost, busy: Real) -> Real:
    """
    Seconds of the collectives of sharded weights and gradients that computation does not hide.

    Args:
        trainer: What is asked, and the constants.
        cost: What the pass is worth.
        busy: Seconds of computation, waiting for the host included, that they may hide behind.
    """
    asked, work = trainer.question, trainer.work
    collectives = cost.collectives[asked.sharding]
    rounds = 1.0 if asked.sharding in _ONCE or asked.pipeline > 1 else trainer.micro_batches()
    ranks = trainer.replicas() if asked.sharding == "none" else trainer.shards()
    each = work(
        "sharded_bytes",
        train_step_traffic.sharding_bytes,
        params=trainer.params_between_shards(),
        bytes_per_param=BF16_BYTES,
        collectives=collectives,
        ranks=ranks,
    )
    transfer = work(
        "gathering_seconds",
        train_step_traffic.sharding_time,
        sharded_bytes=each,
        bandwidth=_network(trainer, trainer.gpu.gather_fraction, asked.tensor, ranks, "train_gather_link"),
        layers=trainer.stage_layers(),
        collectives=collectives,
        ranks=ranks,
        hop_seconds=trainer.values["train_hop_seconds"],
    )
    return _exposed(
        trainer,
        "exposed_gathering_seconds",
        work("gathering_seconds", train_step_traffic.repeated_time, seconds=transfer, times=rounds),
        busy,
    )


def exchanged(trainer: TrainerAtWork, cost: PassCost, attention: Real) -> Real:
    """
    Seconds of what tensor, context and expert parallelism exchange inside the layers.

    Args:
        trainer: What is asked, and the constants.
        cost: What the pass is worth.
        attention: Seconds of attention, behind which keys and values go round.
    """
    return trainer.work(
        "exchanged_seconds",
        train_step_traffic.exchange_time,
        tensor=_tensor(trainer, cost),
        context=_context(trainer, cost, attention),
        expert=_experts(trainer, cost),
    )


def _network(trainer: TrainerAtWork, fraction: Real, stride: int, ranks: Real, scale: str) -> Real:
    gpu, values, work = trainer.gpu, trainer.values, trainer.work
    return work(
        "network_bytes_per_second",
        train_step_traffic.network_bandwidth,
        scale_up=gpu.scale_up,
        scale_up_fraction=trainer.scaled("link_fraction", fraction, scale),
        nic=gpu.nic,
        nic_fraction=values["train_nic_fraction"],
        domain_gpus=gpu.domain_gpus,
        stride=stride,
        ranks=ranks,
    )


def _exposed(trainer: TrainerAtWork, key: str, transfer: Real, busy: Real) -> Real:
    return trainer.work(
        key,
        train_step_traffic.exposed_transfer_time,
        transfer=transfer,
        exposed_fraction=trainer.values["train_exposed"],
        compute=busy,
    )


def _sent(trainer: TrainerAtWork, key: str, moved: Real, network: Real, left: Real = 1.0) -> Real:
    """Seconds of bytes on the wire, of which a share is left to wait for."""
    given = {"sent_bytes": moved, "bandwidth": network, "exposed_fraction": left}
    return trainer.work(key, train_step_traffic.exposed_wire_time, **given)


def _tensor(trainer: TrainerAtWork, cost: PassCost) -> Real:
    asked, work = trainer.question, trainer.work
    if asked.tensor == 1:
        return 0.0
    moved = work(
        "tensor_parallel_bytes",
        train_step_traffic.tensor_parallel_bytes,
        tokens=trainer.tokens(),
        hidden_size=trainer.shape.hidden_size,
        layers=trainer.shape.layers,
        reductions=cost.reductions,
        ranks=asked.tensor,
        bytes_per_value=BF16_BYTES,
    )
    network = _network(trainer, trainer.gpu.tensor_fraction, 1, asked.tensor, "train_tensor_link")
    left = trainer.values["train_tensor_overlap"] if asked.overlapped else 1.0
    return _sent(trainer, "tensor_parallel_seconds", moved, network, left)


def _context(trainer: TrainerAtWork, cost: PassCost, attention: Real) -> Real:
    asked, work = trainer.question, trainer.work
    if asked.context == 1:
        return 0.0
    moved = work(
        "context_parallel_bytes",
        train_step_traffic.context_parallel_bytes,
        tokens=trainer.tokens(),
        kv_bytes_per_token=trainer.shape.kv_bytes_per_token,
        passes=cost.rounds,
        ranks=asked.context,
    )
    # the group shares nothing between its ranks: beyond the domain each is on its own adapter
    stride = asked.tensor if asked.context * asked.tensor <= trainer.domain else trainer.domain
    network = _network(trainer, trainer.gpu.gather_fraction, stride, asked.context, "train_gather_link")
    transfer = _sent(trainer, "context_parallel_seconds", moved, network)
    return _exposed(trainer, "exposed_context_seconds", transfer, attention)


def _experts(trainer: TrainerAtWork, cost: PassCost) -> Real:
    """Copies to experts of the same node, then those to other nodes."""
    asked, shape, work = trainer.question, trainer.shape, trainer.work
    if asked.expert == 1:
        return 0.0
    near = min(asked.expert, trainer.domain)
    given = {"experts_per_token": shape.experts_per_token, "ranks": near}
    inside = work("copies_inside", train_step_traffic.copies_inside, **given)
    parts = [_expert_time(trainer, cost, inside, 1)]
    if asked.expert > trainer.domain:
        domains = work("domains", equations.model_replicas, gpus=asked.expert, gpus_per_replica=trainer.domain)
        given = {"experts_per_token": shape.experts_per_token, "domains": domains}
        beyond = work("copies_beyond", train_step_traffic.copies_beyond, **given)
        parts.append(_expert_time(trainer, cost, beyond, trainer.domain))
    exchanged = added(work, "expert_bytes_seconds", parts)
    given = {"seconds": exchanged, "times": trainer.values["train_exchange_excess"]}
    return work("expert_parallel_seconds", train_step_traffic.repeated_time, **given)


def _expert_time(trainer: TrainerAtWork, cost: PassCost, copies: Real, stride: int) -> Real:
    """Seconds of one kind of copies, between GPUs that lie `stride` apart."""
    work, shape = trainer.work, trainer.shape
    moved = work(
        "expert_parallel_bytes",
        train_step_traffic.expert_parallel_bytes,
        tokens=trainer.tokens(),
        hidden_size=shape.hidden_size,
        layers=shape.expert_layers,
        copies=copies,
        exchanges=cost.reductions,
        bytes_per_value=BF16_BYTES,
    )
    ranks = min(trainer.question.expert, trainer.domain) if stride == 1 else trainer.question.expert
    network = _network(trainer, trainer.gpu.exchange_fraction, stride, ranks, "train_gather_link")
    return _sent(trainer, "expert_bytes_seconds", moved, network)


def pass_parts(trainer: TrainerAtWork, cost: PassCost) -> dict[str, Real]:
    """The parts of one pass, in seconds: the arguments of `train_step.pass_time`, less what the layers add up to."""
    work, asked = trainer.work, trainer.question
    parts = {
        "matmul": _matmul(trainer, cost),
        "attention": _attention(trainer, cost),
        "elementwise": _elementwise(trainer, cost),
    }
    busy = added(work, "compute_seconds", list(parts.values()))
    parts["exchanged"] = exchanged(trainer, cost, parts["attention"])
    launches = work(
        "host_seconds",
        equations.kernel_launch_time,
        micro_batches=trainer.micro_batches(),
        layers=trainer.stage_layers(),
        passes=cost.streams,
        seconds_per_layer=trainer.values["train_launch_fused" if asked.fused else "train_launch"],
    )
    parts["host_wait"] = work("host_wait_seconds", equations.host_wait, host=launches, busy=busy)
    running = added(work, "running_seconds", [busy, parts["host_wait"]])
    parts["gathering"] = gathering(trainer, cost, running)
    parts["bubble"] = work(
        "bubble_seconds",
        equations.pipeline_bubble_time,
        busy=added(work, "stage_seconds", [running, parts["exchanged"]]),
        stages=asked.pipeline,
        micro_batches=trainer.micro_batches(),
        virtual_stages=asked.virtual_stages,
    )
    return parts


def _matmul_rate(trainer: TrainerAtWork, peak: Real, fraction: Real, *, fp8: bool) -> Real:
    work, values = trainer.work, trainer.values
    joules = values["train_joules_per_flop"]
    savings = [("train_new_energy", trainer.gpu.newest), ("train_fp8_energy", fp8)]
    for name in (name for name, holds in savings if holds):
        given = {"joules_per_flop": joules, "energy_fraction": values[name]}
        joules = work("joules_per_flop", train_step_kernels.lower_energy, **given)
    return work(
        "matmul_flops",
        train_step_kernels.power_limited_rate,
        peak=peak,
        compute_fraction=trainer.scaled("compute_fraction", fraction, "train_gemm"),
        power=trainer.gpu.power,
        joules_per_flop=joules,
    )


def _matmul(trainer: TrainerAtWork, cost: PassCost) -> Real:
    """Seconds of matrix products: linear layers, the output head, experts and the reading of their weights."""
    work, shape, gpu, fp8 = trainer.work, trainer.shape, trainer.gpu, trainer.question.dtype == "fp8"
    usual = _matmul_rate(trainer, gpu.bf16_peak, gpu.bf16_fraction, fp8=False)
    narrow = _matmul_rate(trainer, gpu.matmul_peak, gpu.matmul_fraction, fp8=True) if fp8 else usual
    kinds = [
        ("linear_seconds", shape.linear_params, cost.linear, narrow),
        ("head_seconds", shape.head_params, cost.head, usual),
    ]
    if shape.has_experts:
        experts = trainer.scaled("expert_fraction", gpu.expert_fraction, "train_experts")
        rate = _matmul_rate(trainer, gpu.expert_peak, experts, fp8=fp8)
        kinds.append(("expert_seconds", shape.expert_active_params, cost.linear, rate))
    parts = [
        work(
            key,
            train_step_kernels.product_time,
            flops_per_token=work("flops_per_token", matching.generation_flops_per_token, active_params=params),
            passes=passes,
            tokens=trainer.tokens(),
            rate=rate,
        )
        for key, params, passes, rate in kinds
    ]
    if shape.has_experts:
        parts.append(_experts_read(trainer, cost))
    return added(work, "matmul_seconds", parts)


def _experts_read(trainer: TrainerAtWork, cost: PassCost) -> Real:
    asked = trainer.question
    ranks = asked.pipeline * (asked.expert if asked.expert > 1 else asked.tensor)
    held = trainer.work(
        "experts_held", train_step_traffic.share_of_params, params=trainer.shape.expert_params, ranks=ranks
    )
    return trainer.work(
        "experts_read_seconds",
        train_step_kernels.weight_reading_time,
        params=held,
        bytes_per_param=BF16_BYTES,
        passes=cost.linear,
        micro_batches=trainer.micro_batches(),
        bandwidth=trainer.gpu.memory_bandwidth,
        memory_fraction=trainer.values["train_memory_fraction"],
    )


def _length_seen(trainer: TrainerAtWork) -> Real:
    asked = trainer.question
    given = {"length": asked.tokens, "length_cv": asked.tokens_cv}
    return trainer.work("length_seen", train_step_kernels.length_seen_by_tokens, **given)


def attention_flops(trainer: TrainerAtWork, passes: float) -> list[Real]:
    """FLOPs of attention scores for a token, for each way in which layers attend; masks and windows save theirs."""
    work, seen = trainer.work, _length_seen(trainer)
    found = []
    for kind in trainer.shape.attending:
        pairs = work("pairs", training_flops.causal_pairs, length=seen, window=kind.window or seen)
        flops = work(
            f"{kind.name}_attention_flops_per_token",
            training_flops.attention_flops_per_token,
            layers=kind.layers,
            heads=kind.heads,
            query_key_dim=kind.query_key_dim,
            value_dim=kind.value_dim,
            keys_per_query=work("keys_per_query", training_flops.keys_per_query, pairs=pairs, tokens=seen),
            passes=passes,
        )
        found.append(flops)
    return found


def _attention(trainer: TrainerAtWork, cost: PassCost) -> Real:
    """Seconds of attention scores, each kind of layer at the length that it sees."""
    work, gpu = trainer.work, trainer.gpu
    older = gpu.recent and not trainer.question.native_attention
    scale = "train_attention_recent" if older else "train_attention"
    rate = work(
        "attention_flops",
        train_step_kernels.saturating_rate,
        peak=gpu.bf16_peak,
        compute_fraction=trainer.scaled("attention_fraction", gpu.attention_fraction, scale),
        length=_length_seen(trainer),
        half_length=gpu.half_length,
    )
    given = {"passes": cost.attention, "tokens": trainer.tokens(), "rate": rate}
    parts = [
        work("attention_seconds", train_step_kernels.product_time, flops_per_token=flops, **given)
        for flops in attention_flops(trainer, 1.0)
    ]
    return added(work, "attention_seconds", parts or [0.0])


def _elementwise(trainer: TrainerAtWork, cost: PassCost) -> Real:
    """Seconds of norms, activation functions and the like, of quantisation to fp8, and of the loss."""
    work, asked, shape, gpu, values = trainer.work, trainer.question, trainer.shape, trainer.gpu, trainer.values
    layers = work(
        "elementwise_bytes_per_token",
        train_step_kernels.elementwise_bytes_per_token,
        hidden_size=shape.hidden_size,
        layers=shape.layers,
        hidden_copies=values["train_hidden_copies"],
        dense_layers=shape.dense_layers,
        dense_width=shape.dense_width,
        expert_layers=shape.expert_layers,
        expert_width=shape.expert_width,
        experts_per_token=shape.experts_per_token,
        mlp_copies=shape.mlp_copies,
        bytes_per_value=BF16_BYTES,
    )
    if not asked.fused:
        given = {"fused": layers, "factor": values["train_eager"]}
        layers = work("eager_bytes_per_token", train_step_kernels.eager_bytes_per_token, **given)
    loss = work(
        "logit_bytes_per_token",
        train_step_kernels.logit_bytes_per_token,
        vocabulary=shape.vocab_size,
        bytes_per_logit=values["train_logit_bytes"],
    )
    kinds = [("norm_seconds", layers, cost.streams), ("loss_seconds", loss, cost.logits)]
    if asked.dtype == "fp8":
        kinds.append(("quantising_seconds", _quantised(trainer), cost.linear))
    parts = [
        work(
            key,
            train_step_kernels.streaming_time,
            bytes_per_token=moved,
            passes=passes,
            tokens=trainer.tokens(),
            bandwidth=gpu.memory_bandwidth,
            memory_fraction=values["train_memory_fraction"],
        )
        for key, moved, passes in kinds
    ]
    return added(work, "elementwise_seconds", parts)


def _quantised(trainer: TrainerAtWork) -> Real:
    asked, shape = trainer.question, trainer.shape
    return trainer.work(
        "quantising_bytes_per_token",
        train_step_kernels.quantising_bytes_per_token,
        layers=shape.layers,
        hidden_size=shape.hidden_size,
        attention_width=shape.attention_width,
        mlp_width=shape.mlp_width,
        tensor_ranks=asked.tensor,
        bytes_per_value=trainer.values["train_row_quantising" if asked.row_scaling else "train_quantising"],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainStep:
    """
    How long the trainer works on a step; numbers, arrays or figures, as the question was.

    Args:
        train_seconds: All of it: every update, and the extra passes. [s]
        update_seconds: One update over all tokens: forward, backward, optimizer. [s]
        forward_seconds: Each extra pass, by name; the critic's is its own training too. [s]
        parts: Where the time of one update goes, by name; they add up to it. [s]
        tokens_per_second: Tokens of the step, prompts too, over `train_seconds`. [token/s]
        tokens_per_second_per_gpu: The same for each GPU. [token/s]
        mfu: Model FLOPs of forward and backward, causal attention and nothing recomputed, over the bf16 peak for the
            time of an update. [1]
    """

    train_seconds: Real
    update_seconds: Real
    forward_seconds: Mapping[str, Real] = field(default_factory=dict)
    parts: Mapping[str, Real] = field(default_factory=dict)
    tokens_per_second: Real
    tokens_per_second_per_gpu: Real
    mfu: Real


def train_step(work: Callable[..., Real], question: TrainQuestion, values: Mapping[str, Real]) -> TrainStep:
    """
    The time of a training step.

    Args:
        work: `estimates.figures.apply` for figures that explain themselves, `numbers` for numbers and arrays.
        question: What is asked.
        values: The constants of `constants_train`, by name: figures, numbers, or arrays of draws.

    Returns:
        The time and where it goes.

    Raises:
        Refused: The question has no answer: a number type that the GPU lacks, or degrees that do not divide.
    """
    for objection in objections(question):
        raise Refused(objection)
    domain = int(question.gpu.specification.scale_up.domain_gpus.value)
    ranks = question.shards or domain
    gpu = train_gpu(question.gpu, question.dtype, ranks, question.tensor, question.expert)
    trainer = TrainerAtWork(
        work=work,
        question=question,
        shape=_shape(work, question.model),
        gpu=gpu if work is apply else _bare(gpu),
        values=values,
        domain=domain,
    )
    update, parts = _update(trainer)
    forwards = {name: _extra(trainer, name) for name in question.passes}
    seconds = work(
        "train_seconds",
        equations.trainer_busy_time,
        update=update,
        updates=question.updates,
        forwards=added(work, "forward_seconds", list(forwards.values()) or [0.0]),
    )
    rate = _rate(trainer, "tokens_per_second_per_gpu", seconds)
    return TrainStep(
        train_seconds=seconds,
        update_seconds=update,
        forward_seconds=forwards,
        parts=parts,
        tokens_per_second=work("tokens_per_second", matching.pool_rate, gpus=question.gpus, gpu_rate=rate),
        tokens_per_second_per_gpu=rate,
        mfu=_mfu(trainer, _rate(trainer, "update_tokens_per_second_per_gpu", update)),
    )


def _update(trainer: TrainerAtWork) -> tuple[Real, dict[str, Real]]:
    """One update over all tokens, and where its time goes."""
    work, asked, values = trainer.work, trainer.question, trainer.values
    parts = pass_parts(trainer, TRAINING[asked.recompute])
    passed = work("pass_seconds", equations.pass_time, **parts)
    own = "rl_train_moe_slowdown" if trainer.shape.has_experts else "rl_train_slowdown"
    slowdown = values[own if asked.workload == "rl" else "train_stack"]
    domain = trainer.gpu.domain_gpus
    beside = {
        "loss": work("loss_seconds", equations.slowdown_loss, seconds=passed, slowdown=slowdown),
        "straggling": work(
            "straggling_seconds",
            equations.straggling_time,
            busy=passed,
            nodes=work("nodes", equations.model_replicas, gpus=asked.gpus, gpus_per_replica=domain),
            fraction_per_doubling=values["train_straggling"],
        ),
        "optimizer": _optimizer(trainer),
        "offload": _offload(trainer) if asked.offload else 0.0,
        "fixed": _repeated(trainer, "fixed_seconds", values["train_fixed_seconds"]),
    }
    update = work("update_seconds", equations.update_time, pass_seconds=passed, **beside)
    told = {**parts, **beside}.items()
    return update, {name: value for name, value in told if name == "matmul" or not isinstance(value, float) or value}


def _repeated(trainer: TrainerAtWork, key: str, seconds: Real) -> Real:
    """What happens in each optimizer update of the step."""
    given = {"seconds": seconds, "times": trainer.question.optimizer_steps}
    return trainer.work(key, train_step_traffic.repeated_time, **given)


def _own_params(trainer: TrainerAtWork) -> Real:
    """Parameters that each GPU updates."""
    held = trainer.params_between_shards()
    if trainer.question.sharding == "none":
        return held
    return trainer.work("params_updated", train_step_traffic.share_of_params, params=held, ranks=trainer.shards())


def _optimizer(trainer: TrainerAtWork) -> Real:
    work, asked = trainer.work, trainer.question
    moved = work(
        "update_bytes_per_param",
        equations.update_bytes_per_param,
        bytes_per_gradient=asked.gradient_bytes,
        bytes_per_weight=BF16_BYTES,
        bytes_per_state=asked.state_bytes,
    )
    once = work(
        "optimizer_update_seconds",
        equations.optimizer_update_time,
        params=_own_params(trainer),
        bytes_per_param=moved,
        bandwidth=trainer.gpu.memory_bandwidth,
        memory_fraction=trainer.values["train_memory_fraction"],
    )
    return _repeated(trainer, "optimizer_seconds", once)


def _offload(trainer: TrainerAtWork) -> Real:
    """Seconds to bring the optimizer's states in and out, once for the step."""
    work = trainer.work
    states = work(
        "offloaded_bytes",
        memory.trainer_state_bytes,
        params=_own_params(trainer),
        training_bytes_per_param=trainer.question.state_bytes,
    )
    return work("offload_seconds", memory.optimizer_offload_time, offloaded_bytes=states, bandwidth=trainer.gpu.pcie)


def _extra(trainer: TrainerAtWork, name: str) -> Real:
    """Seconds of an extra pass; of the critic, its values and its own update."""
    work, asked = trainer.work, trainer.question
    model = asked.pass_models.get(name)
    if model is not None:
        trainer = replace(trainer, shape=_shape(trainer.work, model))
    parts = pass_parts(trainer, FORWARD)
    seconds = work(f"{name}_seconds", equations.pass_time, **parts)
    if asked.workload == "rl":
        slowdown = trainer.values["rl_forward_moe_slowdown" if trainer.shape.has_experts else "rl_forward_slowdown"]
        lost = work("loss_seconds", equations.slowdown_loss, seconds=seconds, slowdown=slowdown)
        seconds = added(work, f"{name}_seconds", [seconds, lost])
    if name != "critic":
        return seconds
    trained, _ = _update(trainer)
    return work("critic_seconds", equations.trainer_busy_time, update=trained, updates=asked.updates, forwards=seconds)


def _shape(work: Callable[..., Real], model: Model) -> TrainShape:
    """The model's numbers, bare unless figures are wanted."""
    found: TrainShape = train_shape(model) if work is apply else _bare(train_shape(model))
    return found


def _rate(trainer: TrainerAtWork, key: str, seconds: Real) -> Real:
    return trainer.work(key, matching.consumption, tokens_per_step=trainer.tokens(), train_seconds=seconds)


def _mfu(trainer: TrainerAtWork, rate: Real) -> Real:
    work, shape = trainer.work, trainer.shape
    params = added(work, "matmul_params", [shape.linear_params, shape.head_params, shape.expert_active_params])
    linear = work("flops_per_token", matching.training_flops_per_token, active_params=params)
    flops = added(work, "model_flops_per_token", [linear, *attention_flops(trainer, _FULLY)])
    return work(
        "mfu",
        matching.implied_mfu,
        tokens_per_second=rate,
        flops_per_token=flops,
        gpus=1,
        peak_flops=trainer.gpu.bf16_peak,
    )
