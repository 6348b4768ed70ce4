"""
Time of a training step on given GPUs: forward and backward, the optimizer, and the extra passes that RL needs.

Kernels measured alone, the bytes that a step moves and the power of the board say what is possible; the constants of
`constants_train` say what of it trainers reach.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from rlsize.equations import kernel_time, matching, memory
from rlsize.equations import train_step as equations
from rlsize.equations._ops import each, minimum, where
from rlsize.errors import Refused
from rlsize.estimates.constants_memory import ATTENTION_COPIES
from rlsize.estimates.constants_train import SEEN
from rlsize.estimates.figures import added, apply, bare, entries, figures_in, total
from rlsize.estimates.flow import Flow
from rlsize.estimates.memory_shape import memory_shape
from rlsize.estimates.model_size import attending_layers, model_parts, model_size, stated, working_width
from rlsize.estimates.remembered import remembered
from rlsize.estimates.train_rules import ATTENDING, BESIDE, PASS, RULES
from rlsize.estimates.trainer_keeping import Keeping
from rlsize.estimates.trainer_layout import Degrees, larger, model_objections, rank_objections
from rlsize.estimates.trainer_memory import lora_params
from rlsize.facts.figure import Figure
from rlsize.facts.kernels import among, pick
from rlsize.facts.quantisation import WIDTHS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.figures import Work
    from rlsize.estimates.trainer_layout import Sharding
    from rlsize.facts.fields import Sourced
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.kernels import Transfer
    from rlsize.facts.model import Model

Workload = Literal["pretraining", "rl"]

DTYPES = ("bf16", "fp8", "fp4")
BF16_BYTES = 2.0
_QUANTISING: Mapping[str, str] = MappingProxyType(
    {"tensor": "train_quantising", "block": "train_block_quantising", "row": "train_row_quantising"}
)
_SLOWDOWNS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"pretraining": ("train_stack", "train_stack_moe"), "rl": ("rl_train_slowdown", "rl_train_moe_slowdown")}
)
_OF_POLICY = frozenset({"old_logprob", "proximal"})
_FROZEN_MODELS = frozenset({"reference", "reward"})
_NO_POWER_LIMIT = 1e9  # W; for a profile that names no power
_ONCE = ("optimizer", "none")  # shardings whose collectives run once a step
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
        linear_passes: Of linear layers. [1]
        attention_passes: Of attention scores; backward costs two and a half. [1]
        streamed_passes: Of element-wise work, backward counted as two. [1]
        reductions: All-reduces of a layer for tensor parallelism, and all-to-all exchanges of one with experts. [1]
        head_passes: Of the output head. [1]
        logit_passes: Of the loss; forward alone moves half of it. [1]
        rounds: Times that keys and values go round for context parallelism. [1]
        collectives: Gathers and scatters of sharded weights for each micro-batch, by sharding. [1]
    """

    linear_passes: float
    attention_passes: float
    streamed_passes: float
    reductions: float
    head_passes: float = 3
    logit_passes: float = 1
    rounds: float = 3
    collectives: Mapping[Sharding, float] = field(default_factory=lambda: _BOTH)


TRAINING: Mapping[str, PassCost] = MappingProxyType(
    {
        "none": PassCost(linear_passes=3, attention_passes=3.5, streamed_passes=3, reductions=4),
        # attention is computed again
        "selective": PassCost(linear_passes=3, attention_passes=4.5, streamed_passes=3.25, reductions=4, rounds=4),
        # every other product is computed again, and what it gathers gathered
        "alternate": PassCost(linear_passes=3.5, attention_passes=3.5, streamed_passes=3.5, reductions=5),
        "full": PassCost(linear_passes=4, attention_passes=4.5, streamed_passes=4, reductions=6, rounds=4),
    }
)
"""Forward and backward, by what backward computes again."""

FORWARD = PassCost(
    linear_passes=1,
    attention_passes=1,
    streamed_passes=1,
    reductions=2,
    head_passes=1,
    logit_passes=0.5,
    rounds=1,
    collectives=_FORWARD,
)
"""Forward alone."""

_FROZEN: Mapping[Sharding, float] = MappingProxyType({"full": 2, "gradients": 0, "optimizer": 0, "none": 0})


def _adapted(cost: PassCost) -> PassCost:
    """The cost where adapters alone are trained: frozen weights have no gradient to compute, nor to scatter."""
    if cost is FORWARD:
        return cost
    return replace(cost, linear_passes=cost.linear_passes - 1, head_passes=cost.head_passes - 1, collectives=_FROZEN)


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
        dtype: Number type of linear layers: bf16, fp8 or fp4.
        scaling: What has a scale of its own in fp8: a tensor, a block (MXFP8) or a row; blocks in fp4 (NVFP4).
        recompute: What backward computes again: none, selective (attention), alternate (every other product) or full.
        sequences: Sequences of the step. [1]
        tokens: Mean tokens of a sequence, prompt and response. [token]
        tokens_cv: Standard deviation of that over its mean. [1]
        micro_batch_tokens: Tokens of a micro-batch of one replica. [token]
        forward_micro_batch_tokens: The same of passes without backward; None: as of training. [token]
        longest_tokens: The longest sequence that was said; None where nobody did. Padded ones are as long, and so is
            what a single controller hands to its workers. [token]
        updates: Times that the step's tokens are trained on. [1]
        optimizer_steps: Optimizer updates for that each time: mini-batches. [1]
        passes: Extra passes, of `EXTRA_PASSES`.
        pass_models: Models of those passes that are not as large as the policy.
        pass_params: Their parameters, where only these are known: memory goes by them. [param]
        state_bytes: Bytes per parameter of the optimizer's copy and moments. [B/param]
        gradient_bytes: Bytes per parameter of a gradient. [B/param]
        offload: Whether these states live on the host.
        returning: Whether they come from the host for the update, and go back, as engines have the GPUs in between.
        weights_returning: Whether weights come from the host for each pass of the policy, and go back after it.
        lora_rank: Rank of the adapters that alone are trained; None for full training.
        adapting: Whether these work in a pass; a reference is the frozen model without them.
        fused: Whether element-wise work is compiled or fused.
        overlapped: Whether tensor-parallel transfers overlap with matrix products.
        native_attention: Whether attention kernels are made for this generation of GPU: FlashAttention-3 or cuDNN on
            Hopper, where FlashAttention-2 is the rule.
        early_attention: Whether they are those of the records of 2023, before FlashAttention-2.
        dropping: Whether experts drop tokens beyond a capacity, so that one product serves all of a rank.
        capped: Whether somebody said how long a sequence gets, so that a micro-batch is known to hold the longest; a
            trainer whose longest sequence nobody knows is run with micro-batches that hold it.
        workload: pretraining, or rl with its ragged sequences and small micro-batches.
        keeps: How it keeps what its memory holds.
    """

    model: Model
    gpu: Gpu
    gpus: Real
    sequences: Real
    tokens: Real
    micro_batch_tokens: Real
    forward_micro_batch_tokens: Real | None = None
    longest_tokens: Real | None = None
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    shards: int | None = None
    sharding: Sharding = "full"
    virtual_stages: int = 1
    dtype: str = "bf16"
    scaling: str = "tensor"
    recompute: str = "full"
    tokens_cv: Real = 0.0
    updates: Real = 1
    optimizer_steps: Real = 1
    passes: tuple[str, ...] = ()
    pass_models: Mapping[str, Model] = field(default_factory=dict)
    pass_params: Mapping[str, float] = field(default_factory=dict)
    state_bytes: Real = 12.0
    gradient_bytes: Real = 4.0
    offload: bool = False
    returning: bool = False
    weights_returning: bool = False
    lora_rank: int | None = None
    adapting: bool = True
    fused: bool = False
    overlapped: bool = False
    native_attention: bool = False
    early_attention: bool = False
    dropping: bool = False
    capped: bool = True
    workload: Workload = "rl"
    keeps: Keeping = field(default_factory=Keeping)

    @property
    def replica(self) -> int:
        """GPUs of one model replica."""
        return self.tensor * self.pipeline * self.context

    @property
    def padded(self) -> bool:
        """Whether sequences are worked at the length of the longest."""
        return self.keeps.padded and self.longest_tokens is not None

    @property
    def fused_layers(self) -> bool:
        """Whether element-wise work is fused: it was said, or is so in the backend's own layers."""
        return self.fused or self.keeps.facts.fused

    @property
    def own_attention(self) -> bool:
        """Whether attention kernels are made for the GPU: it was said, or those of the backend's own layers are."""
        return self.native_attention or self.keeps.facts.fused

    @property
    def experts_apart(self) -> bool:
        """
        Whether narrow experts are launched one by one, as Transformer Engine does.

        Trainers that shard weights or gradients are others where nobody says: torchao has one product for all experts
        of a GPU, as what drops tokens has.
        """
        own = self.keeps.backend == "megatron" or (not self.keeps.backend and self.sharding in _ONCE)
        return self.dtype != "bf16" and self.model.architecture.moe is not None and own and not self.dropping

    @property
    def degrees(self) -> Degrees:
        """The degrees that model parallelism cuts the model by."""
        return Degrees(self.tensor, self.pipeline, self.context, self.expert)

    @property
    def figures(self) -> dict[str, Figure]:
        """Its fields that are figures."""
        return figures_in(self)

    def bare(self, draws: Mapping[str, Real] | None = None) -> TrainQuestion:
        """
        The same with bare numbers in place of its figures.

        Args:
            draws: Arrays for the fields that are uncertain.
        """
        found: dict[str, Any] = {name: figure.number for name, figure in self.figures.items()}
        return replace(self, **{**found, **(draws or {})})


def objections(question: TrainQuestion, gpus: Real | None = None) -> Iterator[str]:
    """
    What makes a question one that has no answer, each in a line.

    Args:
        question: What is asked; arrays of layouts, and of numbers of GPUs, are those that had none one by one.
        gpus: GPUs of the trainer, where the question's are figures or an array; None where they are a number.
    """
    gpu = question.gpu
    units = {"fp8": gpu.specification.fp8_dense, "fp4": gpu.specification.fp4_dense}
    if question.dtype in units and units[question.dtype] is None:
        yield f"{gpu.name} has no {question.dtype} matrix units, so it cannot train in {question.dtype}; bf16 works"
    elif question.dtype not in DTYPES:
        yield f"{gpu.name} trains in {', '.join(DTYPES[:-1])} or {DTYPES[-1]}; {question.dtype} is not predicted"
    if gpu.kernels is None:
        yield f"the profile of {gpu.name} says nothing about its kernels"
    count = question.gpus if gpus is None else gpus
    shape = memory_shape(question.model, model_size(question.model).params)
    found = list(rank_objections(count, question.degrees)) if isinstance(count, (int, float)) else []
    if isinstance(question.tensor, int):
        found += model_objections(shape, question.degrees)
    yield from (one.what for one in found)
    unknown = [name for name in question.passes if name not in EXTRA_PASSES]
    if unknown:
        yield f"there is no pass {unknown[0]!r}; there are {', '.join(EXTRA_PASSES)}"


def branches(question: TrainQuestion) -> tuple[float, ...]:
    """
    What of a layout, and of what memory keeps, decides which way the time of a step is worked out.

    Degrees of questions that agree in it, and in all else, may be arrays of one question. A single rank of tensors or
    of contexts sends nothing by the equations themselves.
    """
    keeps, domain = question.keeps, question.gpu.specification.joined_gpus.value
    kept = keeps.padded, keeps.param_offload, keeps.activation_offload, keeps.weight_width
    staged = question.pipeline > 1 and question.sharding not in _ONCE
    return (staged, question.expert > 1, question.expert > domain, *kept)


@remembered
def _bare(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Figures by key, with their bare numbers in their place."""
    return {key: bare(value) for key, value in facts.items()}


@remembered
def _adapters(model: Model, rank: int) -> dict[str, Figure]:
    """Parameters of adapters, and what goes into and comes out of the matrices that carry them, by key."""
    ranks = {"lora_params": float(rank), "adapted_values": 1.0}
    return {
        key: replace(
            lora_params(model.architecture, Figure(key="lora_rank", value=value, source="the question")), key=key
        )
        for key, value in ranks.items()
    }


@remembered
def train_shape(model: Model) -> dict[str, Any]:
    """What a model brings to a training step by key, as figures; each way in which layers attend before a slash."""
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
    found: dict[str, Any] = {
        "linear_params": total("linear_params", linear),
        "head_params": replace(head, key="head_params"),
        "expert_active_params": parts["moe"].active_params if routed else none,
        "expert_params": parts["moe"].params if routed else none,
        "dense_params": total("dense_params", dense),
        "layers": says.figure("layers", shape.layers),
        "hidden_size": says.figure("hidden_size", shape.hidden_size),
        "vocab_size": says.figure("vocab_size", shape.vocab_size),
        "attention_width": says.figure("attention_width", heads) if kinds else none,
        "dense_layers": says.figure("dense_layers", feeder.layers if feeder else 0),
        "dense_width": says.figure("dense_width", feeder.intermediate_size if feeder else 0),
        "mlp_width": width if routed else says.figure("mlp_width", feeder.intermediate_size if feeder else 0),
        "expert_layers": says.figure("expert_layers", routed.layers if routed else 0),
        "experts": says.figure("experts", routed.experts if routed else 0),
        "expert_width": width,
        "experts_per_token": says.figure("experts_per_token", routed.experts_per_token if routed else 0),
        "mlp_copies": says.figure("mlp_copies", mlp.matrices if mlp else 0),
        "kv_bytes_per_token": total("kv_bytes_per_token", [size.kv_bytes_per_token, size.sliding_bytes_per_token]),
    }
    for kind in kinds:
        found |= {
            f"{kind.name}/layers": says.figure("attending_layers", kind.layers),
            f"{kind.name}/heads": says.figure("heads", kind.heads),
            f"{kind.name}/query_key_dim": says.figure("query_key_dim", kind.query_key_dim),
            f"{kind.name}/value_dim": says.figure("value_dim", kind.value_dim),
            f"{kind.name}/window": kind.window or "length_seen",
        }
    return found


@remembered
def train_gpu(gpu: Gpu, dtype: str, ranks: int, tensor: Real, expert: Real) -> dict[str, Figure]:
    """
    What a GPU brings to a training step by key, as figures.

    Args:
        gpu: Its profile, with kernels.
        dtype: Number type of linear layers: bf16, fp8 or fp4.
        ranks: Ranks over which weights are sharded.
        tensor: Tensor-parallel ranks.
        expert: Expert-parallel ranks.
    """
    spec, kernels = gpu.specification, gpu.kernels
    if kernels is None:
        raise ValueError(f"the profile of {gpu.name} has no kernels")
    says = _Profile(gpu)
    domain = int(spec.joined_gpus.value)
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
    return {
        "matmul_peak": says.fact("peak_flops", peaks.get(name[:3], spec.bf16_dense)),
        "matmul_fraction": says.kernel("gemm_compute_fraction", gemm.compute_fraction),
        "bf16_peak": says.fact("peak_flops", spec.bf16_dense),
        "bf16_fraction": says.kernel("gemm_compute_fraction", kernels.gemm["bf16"].compute_fraction),
        "expert_peak": says.fact("peak_flops", peaks[expert_kernel.peak]),
        # trainers scale fp8 by tensor, which costs less than the blocks that were timed
        "expert_fraction": says.kernel(
            "moe_compute_fraction", max(expert_kernel.compute_fraction, wide_kernel.compute_fraction)
        ),
        "attention_fraction": says.kernel("attention_compute_fraction", attention.compute_fraction),
        "half_length": says.kernel("half_length", attention.half_length),
        "memory_bandwidth": says.fact("memory_bandwidth_bytes_per_second", spec.memory_bandwidth),
        "power": says.fact("power_watts", spec.power, _NO_POWER_LIMIT),
        "scale_up": says.fact("scale_up_bytes_per_second", link),
        "nic": says.fact("nic_bytes_per_second", spec.adapter or link),
        "pcie": says.fact("pcie_bytes_per_second", spec.pcie or spec.nic or link),
        "domain_gpus": says.fact("domain_gpus", spec.joined_gpus),
        "gather_fraction": says.kernel("gather_link_fraction", among(gathers, min(ranks, domain)).link_fraction),
        "tensor_fraction": says.kernel("tensor_link_fraction", _link_fraction(gathers, tensor, domain)),
        "exchange_fraction": says.kernel("exchange_link_fraction", _link_fraction(exchanges, expert, domain)),
    }


def _link_fraction(table: Mapping[str, Transfer], ranks: Real, domain: int) -> Real:
    """The share of the link that a collective reaches among so many ranks, at most those of a domain."""
    return each(ranks, lambda count: among(table, min(int(count), domain)).link_fraction)


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


def train_step(work: Work, question: TrainQuestion, values: Mapping[str, Real]) -> TrainStep:
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
    flow = _flow(work, question, values, TRAINING[question.recompute])
    passes: dict[tuple[int, bool], Flow] = {}  # of a model: those of the policy and of its reference are alike
    forwards = {name: _extra(work, question, values, name, passes) for name in question.passes}
    seconds = work(
        "train_seconds",
        equations.trainer_busy_time,
        update=flow["update_seconds"],
        updates=question.updates,
        forwards=added(work, "forward_seconds", list(forwards.values()) or [0.0]),
    )
    rate = work(
        "tokens_per_second_per_gpu",
        matching.consumption,
        tokens_per_step=flow["tokens_per_gpu"],
        train_seconds=seconds,
    )
    parts = {name: flow[key] for name, key in {**PASS, **BESIDE}.items()}
    return TrainStep(
        train_seconds=seconds,
        update_seconds=flow["update_seconds"],
        forward_seconds=forwards,
        parts={
            name: value for name, value in parts.items() if name == "matmul" or not isinstance(value, float) or value
        },
        tokens_per_second=work("tokens_per_second", matching.pool_rate, gpus=question.gpus, gpu_rate=rate),
        tokens_per_second_per_gpu=rate,
        mfu=flow["mfu"],
    )


def _extra(
    work: Work, question: TrainQuestion, values: Mapping[str, Real], name: str, passes: dict[tuple[int, bool], Flow]
) -> Real:
    """Seconds of an extra pass; of the critic, its values and its own update."""
    model = question.pass_models.get(name, question.model)
    key, asked = f"{name}_seconds", replace(question, model=model, adapting=name not in _FROZEN_MODELS)
    if asked.forward_micro_batch_tokens is not None:
        asked = replace(asked, micro_batch_tokens=asked.forward_micro_batch_tokens)
    alike = id(model), asked.adapting or asked.lora_rank is None
    if alike not in passes:
        passes[alike] = _flow(work, asked, values, FORWARD)
    flow = passes[alike]
    seconds = work(key, equations.pass_time, **{part: flow[of_part] for part, of_part in PASS.items()})
    if asked.workload == "rl":
        slowdown = values["rl_forward_moe_slowdown" if asked.model.architecture.moe else "rl_forward_slowdown"]
        lost = work("loss_seconds", equations.slowdown_loss, seconds=seconds, slowdown=slowdown)
        seconds = added(work, key, [seconds, lost])
        if asked.gpu.generation not in SEEN:
            seconds = work(key, kernel_time.slowed, seconds=seconds, slowdown=values["train_unseen_slowdown"])
    if asked.workload == "rl" and asked.longest_tokens is not None:
        seconds = added(work, key, [seconds, flow["handling_seconds"]])
    if asked.weights_returning and name in _OF_POLICY:
        held = {"params": flow["held_params"], "training_bytes_per_param": asked.keeps.weight_width}
        moved = work("offloaded_bytes", memory.trainer_state_bytes, **held)
        rate = values["train_host_copy"]
        moving = work("offload_seconds", memory.optimizer_offload_time, offloaded_bytes=moved, bandwidth=rate)
        seconds = added(work, key, [seconds, moving])
    if model is not question.model:
        seconds = work(key, kernel_time.slowed, seconds=seconds, slowdown=values["rl_other_model"])
    if name != "critic":
        return seconds
    trained = _flow(work, replace(question, model=model), values, TRAINING[asked.recompute])["update_seconds"]
    return work(key, equations.trainer_busy_time, update=trained, updates=asked.updates, forwards=seconds)


def _flow(work: Work, question: TrainQuestion, values: Mapping[str, Real], cost: PassCost) -> Flow:
    """All that follows for one pass over the tokens, and for the update around it."""
    domain = int(question.gpu.specification.joined_gpus.value)
    if question.lora_rank is not None:
        cost = _adapted(cost)
    if (share := question.keeps.logit_share) < 1:
        cost = replace(cost, head_passes=cost.head_passes * share, logit_passes=cost.logit_passes * share)
    shape = train_shape(question.model)
    gpu = train_gpu(question.gpu, question.dtype, question.shards or domain, question.tensor, question.expert)
    facts = {**shape, **gpu} if work is apply else {**_bare(shape), **_bare(gpu)}
    if question.lora_rank is not None:
        adapters = _adapters(question.model, question.lora_rank)
        facts |= adapters if work is apply else _bare(adapters)
    known = {**facts, **values, **entries(cost), **_asked(question, domain), **_decided(question)}
    known |= _sent(question, cost, domain)
    kinds = [kind for kind in ATTENDING if f"{kind}/layers" in shape]
    known["attention_seconds"] = tuple(f"{kind}/attention_seconds" for kind in kinds) or ("no_attention",)
    known["model_flops_per_token"] = (
        "model/flops_per_token",
        *(f"model/{kind}_attention_flops_per_token" for kind in kinds),
    )
    return Flow(RULES, known, work)


def _asked(question: TrainQuestion, domain: int) -> dict[str, Any]:
    """The question in the names of the rules."""
    dense = question.tensor * question.pipeline
    return {
        "gpus": question.gpus,
        "sequences": question.sequences,
        "length": question.tokens,
        "length_cv": question.tokens_cv,
        "longest_tokens": question.longest_tokens,
        "length_seen": question.longest_tokens if question.padded else None,
        "micro_batch_tokens": question.micro_batch_tokens,
        "optimizer_steps": question.optimizer_steps,
        "state_bytes": question.state_bytes,
        "gradient_bytes": question.gradient_bytes,
        "bytes_per_param": BF16_BYTES,
        "attention_copies": ATTENTION_COPIES.value,
        "bytes_per_value": BF16_BYTES,
        "tensor_parallel": question.tensor,
        "pipeline_parallel": question.pipeline,
        "context_parallel": question.context,
        "expert_parallel": question.expert,
        "virtual_stages": question.virtual_stages,
        "replica_gpus": question.replica,
        "shards": question.shards,
        "dense_ranks": dense,
        "expert_ranks": question.expert * question.pipeline if larger(question.expert) else dense,
        "near_ranks": minimum(question.expert, domain),
        "domain": domain,
    }


def _decided(question: TrainQuestion) -> dict[str, Any]:
    """What depends on layout, number type and model: a number, the quantity that counts, or what a sum adds up."""
    asked, spec = question, question.gpu.specification
    frozen = asked.keeps.frozen_dtype if asked.lora_rank is not None else ""
    narrow, experts = asked.dtype != "bf16", asked.model.architecture.moe is not None
    scaling = "block" if asked.dtype == "fp4" else asked.scaling
    held = "params_between_shards" if asked.sharding == "none" else "params_updated"
    moved = {
        "state_offload_seconds": asked.offload,
        "once/offload_seconds": asked.returning and not asked.offload,
        "weight_offload_seconds": asked.keeps.param_offload,
        "activation_offload_seconds": asked.keeps.activation_offload,
    }
    wide = "new/joules_per_flop" if spec.fp4_dense is not None else "train_joules_per_flop"
    return {
        "tokens": "padded/tokens_per_gpu" if asked.padded else "tokens_per_gpu",
        "bandwidth": "memory_bandwidth",
        "memory_fraction": "train_memory_fraction",
        "no_attention": 0.0,
        "wide_joules": wide,
        "narrow_energy": f"train_{asked.dtype}_energy{'' if spec.fp4_dense is None else '_new'}",
        "narrow_joules": "narrow/joules_per_flop" if narrow else wide,
        "linear_rate": "narrow/matmul_flops" if narrow else "wide/matmul_flops",
        **_attention(asked),
        "launch_seconds": "train_launch_fused" if asked.fused_layers else "train_launch",
        "layer_launch_seconds": (
            "launch_seconds",
            *(("experts_launch_seconds",) if asked.experts_apart else ()),
        ),
        "expert_launch_seconds": "train_expert_launch" if scaling == "block" else "tensor/expert_launch_seconds",
        "layer_bytes_per_token": "elementwise_bytes_per_token" if asked.fused_layers else "eager_bytes_per_token",
        "quantising_bytes_per_value": _QUANTISING[scaling],
        "own_slowdown": _SLOWDOWNS[asked.workload][experts],
        "train_slowdown": "own_slowdown" if asked.gpu.generation in SEEN else "unseen/train_slowdown",
        "held_params": held,
        "own_params": held if asked.lora_rank is None else "lora_params",
        "offload_seconds": tuple(key for key, there in moved.items() if there) or 0.0,
        "moved_copies": 1.0 if asked.recompute == "full" else "hidden_copies",
        "matmul_params": ("linear_params", "head_params", "expert_active_params"),
        "matmul_seconds": (
            "linear_seconds",
            "head_seconds",
            *(("expert_seconds", "experts_read_seconds") if experts else ()),
        ),
        "dequantised_bytes": WIDTHS[frozen] + BF16_BYTES if frozen else None,  # read, and written for the product
        "adapter_bytes": "train_adapter_fused" if asked.fused_layers else "train_adapter_eager",
        "elementwise_seconds": (
            "norm_seconds",
            "logits/loss_seconds",
            *(("quantising_seconds",) if narrow else ()),
            *(("dequantising_seconds",) if frozen else ()),
            *(("adapter_seconds",) if asked.lora_rank is not None and asked.adapting else ()),
        ),
        "compute_seconds": ("matmul_seconds", "attention_seconds", "elementwise_seconds"),
        "running_seconds": ("compute_seconds", "host_wait_seconds"),
        "stage_seconds": ("running_seconds", "exchanged_seconds"),
    }


def _attention(asked: TrainQuestion) -> dict[str, str]:
    """What attention reaches of the rate of prefill: as in the records of 2023, since then, or of native kernels."""
    gpu, kernels = asked.gpu, asked.gpu.kernels
    common = kernels is not None and kernels.prefill_attention["bf16"].common
    recorded = "train_attention" if common else "train_attention_recent"
    # NVIDIA's kernels of another generation run no quicker on its newest GPUs than on those that they are made for
    newest = gpu.specification.fp4_dense is not None and gpu.vendor == "nvidia" and not common
    second = "older/attention_scale" if newest else "second/attention_scale"
    native = asked.own_attention and not common  # there the common kernels are those made for the GPU
    scale = recorded if asked.early_attention else "train_attention_native" if native else second
    return {"recorded_attention": recorded, "attention_scale": scale}


def _sent(asked: TrainQuestion, cost: PassCost, domain: int) -> dict[str, Any]:
    """What of that is about transfers between GPUs."""
    kind = "card/" if asked.gpu.specification.card else "train_"
    return {
        "gather_link": f"{kind}gather_link",
        "tensor_link": f"{kind}tensor_link",
        "collectives": cost.collectives[asked.sharding],
        "sharding_ranks": "data_parallel" if asked.sharding == "none" else "shards",
        "gathering_rounds": 1.0 if asked.sharding in _ONCE or larger(asked.pipeline) else "micro_batches",
        "tensor_exposed": "train_tensor_overlap" if asked.overlapped else 1.0,
        "tensor_parallel_seconds": None if larger(asked.tensor) else 0.0,
        "exposed_context_seconds": None if larger(asked.context) else 0.0,
        # the group shares nothing between its ranks: beyond the domain each is on its own adapter
        "context_stride": where(asked.context * asked.tensor <= domain, asked.tensor, domain),
        "expert_parallel_seconds": None if larger(asked.expert) else 0.0,
        # who drops tokens has a buffer for each expert, which only a plain all-to-all exchanges
        **{key: f"{'each' if asked.dropping else 'once'}/{key}" for key in ("copies_inside", "copies_beyond")},
        "expert_bytes_seconds": (
            "inside/expert_bytes_seconds",
            *(("beyond/expert_bytes_seconds",) if larger(asked.expert, domain) else ()),
        ),
    }
