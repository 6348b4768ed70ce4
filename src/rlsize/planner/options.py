"""What is planned, and what a plan may choose: fleets, trainers, and how both are laid out in time."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log2
from typing import TYPE_CHECKING, Any

from rlsize.equations import rl_step
from rlsize.equations.matching import tokens_per_step
from rlsize.equations.train_step import trained_sequence_tokens
from rlsize.estimates.step_assembly import REFILLING, USUAL_LATE
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from rlsize.estimates.figures import Worked
    from rlsize.estimates.generation import Late
    from rlsize.estimates.rollout_prediction import Replica
    from rlsize.estimates.step_assembly import Loop
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.facts.algorithm import Agents
    from rlsize.facts.calibration import CalibratedRun
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model

    Said = Callable[[Figure], Any]
    """The value of an input: itself to explain an answer, its central number, or joint draws."""

SHARING = frozenset({"colocated", "hybrid"})
"""Loops in which engines run on the trainer's GPUs too."""
RECOMPUTES = ("none", "selective", "full")
"""What backward may compute again, the least first."""
_ONE = Figure(key="headroom", value=1.0, provenance="default", source="nothing to derate")
_NOTHING_LOST = Figure(
    key="tokens_generated_per_trained_token", value=1.0, provenance="default", source="nothing is thrown away"
)
_NO_SWAP = Figure(key="swap_seconds", value=0.0, provenance="default", source="not counted")


KIND = 1000.0
"""Of the burden of a layout: one kind of parallelism that is more than one."""
_DOUBLING, _UNUSUAL, _LENT, _SAVED = 10.0, 5.0, 100_000.0, (200.0, 0.1)
_FULLER = 1.0  # more memory for engines than is usual


def _burden(degrees: Iterable[int]) -> float:
    """Kinds of parallelism that are more than one, and how often they are doubled."""
    return sum(KIND + _DOUBLING * log2(degree) for degree in degrees if degree > 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOption:
    """
    One way to build rollout instances.

    Args:
        name: In a few words: the GPU, and its parallelism.
        gpu: Name of the GPU; empty where none is named.
        gpus: GPUs of one instance. [1]
        layout: Its degrees of parallelism, by name.
        engines: The instance on GPUs of its own (False) and on shared ones (True), or why there is none; empty where
            its rate is known, and without one of its own for what is tried on shared GPUs alone.
        rate: Response tokens per second of one instance, where known. [token/s]
        gpu_hour: Price of a GPU-hour; absent where nobody says. [usd]
        most: GPUs of this kind that there are; None for as many as the cluster has.
    """

    name: str
    gpu: str
    gpus: float
    layout: Mapping[str, int]
    engines: Mapping[bool, Replica | str]
    rate: Figure = absent("instance_tokens_per_second", "--per-instance")
    gpu_hour: Figure = absent("rollout_gpu_hour_usd", "--gpu-hour")
    most: float | None = None

    @property
    def burden(self) -> float:
        """How far its layout is from simple; stages, and tensors over several nodes, are rare, and count twice."""
        if not self.layout:
            return 0.0
        degrees = [self.layout[kind] for kind in ("tensor", "pipeline", "data")]
        fuller = _FULLER if self.shared_only else 0.0
        return _burden(degrees) + KIND * ((degrees[1] > 1) + (degrees[0] > self._node)) + fuller

    @property
    def shared_only(self) -> bool:
        """Whether it is another way to build an instance on shared GPUs alone: with more of their memory."""
        return True in self.engines and False not in self.engines

    def memory_fraction(self, *, shared: bool) -> float | None:
        """Share of a GPU's memory that its engine takes, where somebody says; None where the engine decides. [1]"""
        ready = self.ready(shared=shared)
        return None if ready is None else ready.question.memory_fraction

    @property
    def _node(self) -> float:
        engine = next((one for one in self.engines.values() if not isinstance(one, str)), None)
        return 8.0 if engine is None else engine.question.gpu.specification.gpus_per_node.value

    @property
    def within_node(self) -> bool:
        """Whether it is what engines are told to be where a node holds the model: ranks of tensors or data in one."""
        return bool(self.layout) and self.layout["pipeline"] == 1 and self.gpus <= self._node

    @property
    def rare(self) -> bool:
        """
        Whether few run it where a node holds the model without: stages, or tensors over several nodes.

        A sample passes all stages one after the other, and each hop between nodes is waited for, so guides of engines
        keep stages for models that no node holds, and for GPUs without a fast link (vLLM, Parallelism and Scaling).
        """
        if not self.layout or (self.layout["pipeline"] == 1 and self.layout["tensor"] <= self._node):
            return False
        known = [one.question.gpu.specification for one in self.engines.values() if not isinstance(one, str)]
        return self.gpus > self._node or not known or not known[0].card

    def ready(self, *, shared: bool) -> Replica | None:
        """The instance on shared GPUs, or on its own; None where there is none, or none is known."""
        found = self.engines.get(shared)
        return None if isinstance(found, str) else found


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerOption:
    """
    One way to spread the trainer.

    Args:
        name: In a few words: the GPU, and its parallelism.
        gpu: Name of the GPU; empty where none is named.
        question: The trainer and its work; None where its time is known.
        seconds: Busy seconds of a step on `measured_gpus`, where known. [s]
        measured_gpus: GPUs that these were measured on. [1]
        gpu_hour: Price of a GPU-hour; absent where nobody says. [usd]
        most: GPUs of this kind that there are; None for as many as the cluster has.
    """

    name: str
    gpu: str
    question: TrainQuestion | None = None
    seconds: Figure = absent("train_seconds", "--train-seconds")
    measured_gpus: Figure = absent("trainer_gpus", "--trainer-gpus")
    gpu_hour: Figure = absent("trainer_gpu_hour_usd", "--gpu-hour")
    most: float | None = None

    @property
    def replica(self) -> int:
        """GPUs of one model replica."""
        return 1 if self.question is None else self.question.replica

    @property
    def burden(self) -> float:
        """How far it is from simple: kinds of parallelism, their degrees, unusual sharding, offloading."""
        asked = self.question
        if asked is None:
            return 0.0
        usual = asked.sharding == "full" or asked.tensor * asked.pipeline * asked.expert > 1
        saved = sum(times * by for times, by in zip(self.savings[1:], _SAVED, strict=True))
        return _burden(asked.degrees) + (0.0 if usual else _UNUSUAL) + KIND * self.rare + saved

    @property
    def rare(self) -> bool:
        """Whether few run it where the model is trained without: stages beside ranks that share a sequence."""
        return self.question is not None and self.question.pipeline > 1 and self.question.context > 1

    @property
    def savings(self) -> tuple[int, int, int]:
        """What it does to save memory, none of which makes a step shorter: recomputing, offloading, chunking."""
        asked = self.question
        return (
            (0, 0, 0)
            if asked is None
            else (
                RECOMPUTES.index(asked.recompute) if asked.recompute in RECOMPUTES else 1,
                int(asked.offload),
                int(asked.keeps.chunked_loss),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopProblem:
    """
    A loop that is planned: its work, and what no plan changes.

    Args:
        samples: Samples that a step trains on. [1]
        group_size: Samples of one prompt. [1]
        prompt_tokens: Mean prompt length; may be absent where rates are known. [token]
        response_tokens: Mean response length. [token]
        response_cv: Coefficient of variation of response lengths; absent for the usual one. [1]
        max_prompt_tokens: Longest prompt; absent where the mean stands for it. [token]
        max_tokens: Longest response; absent for no cap. [token]
        waste: Response tokens generated for each one that is trained. [1]
        headroom: Derating of a known instance rate. [1]
        available: Share of the time that an instance is there. [1]
        sync_seconds: Pause of a weight sync, where known. [s]
        overhead_seconds: What of a step belongs to no phase, where known. [s]
        swap_seconds: Time that a colocated step spends changing over, both ways, where it is given. [s]
        oversampling: Samples started for each that a batch with a barrier needs. [1]
        late: What becomes of samples that are not finished when a batch is due, by how the loop is laid out.
        steps: Optimizer steps of the run; absent where nobody says. [step]
        sync_every: Optimizer steps from one sync to the next. [1]
        rolling: Whether each instance takes new weights by itself while the trainer goes on.
        parts: Of a batch, each of which an asynchronous trainer takes as soon as it is there. [1]
        wire_dtype: Number type of weights on the wire.
        in_place: Whether engines on the trainer's GPUs read its weights where they are, so that none are sent.
        hit_fraction: Share of prompt tokens found in the prefix cache, where it is known. [1]
        routing: How the samples of a group reach instances, where it is not.
        block_tokens: Tokens of a block of the cache; absent for the engine's own. [token]
        concurrency: Samples that an instance is offered at once; absent for as many as there are. [1]
        model: The policy; None where only rates are known.
        agents: What samples wait for outside the GPUs; None where they do not.
        run: What a run has that was measured, beside what constants say; None where none was.
        gpus_per_node: GPUs of a node; None where nodes do not matter. [1]
    """

    samples: Figure
    group_size: Figure
    response_tokens: Figure
    prompt_tokens: Figure = absent("prompt_tokens", "--prompt-tokens")
    max_prompt_tokens: Figure = absent("max_prompt_tokens", "workload.max_prompt_tokens")
    response_cv: Figure = absent("response_cv", "--response-cv")
    max_tokens: Figure = absent("max_response_tokens", "--max-response-tokens")
    waste: Figure = _NOTHING_LOST
    headroom: Figure = _ONE
    available: Figure = _ONE
    sync_seconds: Figure = absent("sync_seconds", "--sync-seconds")
    overhead_seconds: Figure = absent("overhead_seconds", "--overhead-seconds")
    swap_seconds: Figure = _NO_SWAP
    oversampling: float = 1.0
    late: Mapping[Loop, Late] = field(default_factory=lambda: USUAL_LATE)
    steps: Figure = absent("steps", "--steps")
    sync_every: float = 1.0
    rolling: bool = False
    parts: int = 1
    wire_dtype: str = "bf16"
    in_place: bool = False
    hit_fraction: Figure = absent("hit_fraction", "--hit-ratio")
    routing: str = "affine"
    block_tokens: Figure = absent("block_tokens", "--block-size")
    concurrency: Figure = absent("concurrency", "--concurrency")
    model: Model | None = None
    agents: Agents | None = None
    run: CalibratedRun | None = None
    gpus_per_node: float | None = None

    @property
    def step_tokens(self) -> float:
        """Prompt and response tokens of a step; 0 where they are not known."""
        if not (self.samples.known and self.prompt_tokens.known and self.response_tokens.known):
            return 0.0
        sample = trained_sequence_tokens(self.prompt_tokens.number, self.response_tokens.number)
        return float(tokens_per_step(prompts=self.samples.number, group_size=1.0, response_tokens=sample))

    @property
    def predicted(self) -> bool:
        """Whether what nobody measured can be predicted."""
        return self.model is not None

    def late_rule(self, loop: Loop) -> Late:
        """What becomes of late samples; a batch with a barrier that starts no more than it needs waits for all."""
        return "wait" if loop not in REFILLING and self.oversampling <= 1.0 else self.late[loop]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """
    A loop as it would run.

    Args:
        loop: How fleet and trainer follow each other.
        fleet: How instances are built.
        instances: How many there are; numbers, or an array of candidates. [1]
        trainer: How the trainer is spread.
        trainer_gpus: Over how many GPUs; all of them where both sides share; likewise. [1]
        max_staleness: Staleness cap of a loop that refills. [1]
        transport: Class of the weight sync.
    """

    loop: Loop
    fleet: FleetOption
    instances: Any
    trainer: TrainerOption
    trainer_gpus: Any
    max_staleness: float = 1.0
    transport: str = "nccl-broadcast"

    @property
    def shared(self) -> bool:
        """Whether both sides take turns on the same GPUs."""
        return self.loop == "colocated"

    @property
    def burden(self) -> float:
        """How far its fleet and mode are from simple: lending, layout, then staleness."""
        return (_LENT if self.loop == "hybrid" else 0.0) + self.fleet.burden + min(self.staleness, 64.0) / 64.0

    @property
    def scatter(self) -> str:
        """What tells its own scatter from those of others."""
        return f"{self.loop} {self.rollout_gpus:g} {self.trainer_gpus:g} {self.fleet.name} {self.trainer.name}"

    @property
    def split(self) -> str:
        """The GPUs of both sides, or those that they share."""
        return f"{self.trainer_gpus:g}" if self.shared else f"{self.rollout_gpus:g} + {self.trainer_gpus:g}"

    @property
    def words(self) -> str:
        """Mode and split in a few words."""
        if self.shared:
            return f"colocated on {self.trainer_gpus:g}"
        kinds = self.fleet.gpu, self.trainer.gpu
        rollout, trainer = (f" {kind}" if kinds[0] != kinds[1] else "" for kind in kinds)
        return f"{self.loop} {self.rollout_gpus:g}{rollout} + {self.trainer_gpus:g}{trainer}"

    @property
    def rollout_gpus(self) -> Worked:
        """GPUs of the fleet."""
        return self.instances * self.fleet.gpus

    @property
    def gpus(self) -> Worked:
        """GPUs of both sides."""
        if self.shared:
            return self.trainer_gpus
        return rl_step.gpus_of_both(rollout_gpus=self.rollout_gpus, trainer_gpus=self.trainer_gpus)

    @property
    def staleness(self) -> float:
        """Most optimizer steps that a sample may be behind."""
        if self.loop in {"async", "hybrid"}:
            return self.max_staleness
        return 1.0 if self.loop == "one-step-off" else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedDegrees:
    """
    Degrees of parallelism that are tried; empty for what is usual.

    Args:
        rollout_tensor: Of instances. [1]
        rollout_data: Attention ranks of instances, over which experts lie. [1]
        rollout_pipeline: Stages of instances. [1]
        tensor: Of the trainer. [1]
        pipeline: Its stages. [1]
        context: Its context-parallel ranks. [1]
        expert: Its expert-parallel ranks. [1]
        recompute: What backward may compute again.
        offload: Whether optimizer states may live on the host; as the trainer has it where empty.
        chunked_loss: Whether the loss may work on chunks of the logits; likewise.
    """

    rollout_tensor: tuple[int, ...] = ()
    rollout_data: tuple[int, ...] = ()
    rollout_pipeline: tuple[int, ...] = ()
    tensor: tuple[int, ...] = ()
    pipeline: tuple[int, ...] = ()
    context: tuple[int, ...] = ()
    expert: tuple[int, ...] = ()
    recompute: tuple[str, ...] = ()
    offload: tuple[bool, ...] = ()
    chunked_loss: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """
    GPUs of one kind that a pool may take.

    Args:
        gpu: The GPU.
        gpu_hour: Its price; absent where nobody says. [usd]
        most: How many there are; None for as many as the cluster has. [1]
    """

    gpu: Gpu
    gpu_hour: Figure = absent("gpu_hour_usd", "--gpu-hour")
    most: float | None = None
