"""
What a GPU of a loop holds in each phase of a step, by name: of the engine, of the trainer, or of both where they share.

The trainer's parts are those of `trainer_memory`, the engine's those of `engine_memory`; here is only which of them are
there when.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import engine_cache, memory_fit, training_peak
from rlsize.estimates.engine_memory import kv_capacity
from rlsize.estimates.figures import added
from rlsize.estimates.trainer_memory import step_bytes, trainer_memory, unit_bytes
from rlsize.facts.inference_engines import inference_engine
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.engine_memory import KvCapacity
    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.figures import Work, Worked
    from rlsize.estimates.trainer_memory import TrainerLoad, TrainerMemory

EVERYTHING = frozenset({"params", "gradients", "optimizer"})
"""What a trainer can move to the host between its phases."""

PHASES = (
    "load", "engine_start", "wake_up", "weight_sync", "generation", "logprob", "reference", "update", "optimizer",
    "checkpoint",
)  # fmt: skip
"""The phases, in the order in which a run comes to them."""

PASSES = frozenset({"logprob", "reference", "update"})
"""Those that work on tokens, whose activations scatter as published training peaks do."""

PARTS = (
    "engine_weights", "kv_cache", "engine_runtime", "trainer_weights", "gradients", "optimizer", "adapters",
    "reference", "critic", "reward", "activations", "logits", "gathered", "reserved", "contexts",
    "own",
)  # fmt: skip
"""What a GPU can hold."""

_NARROW = 2.0  # bytes of a weight on its way to an engine
_SEVERAL = 2.0  # GPUs of a trainer that has more than one
_ENGINES = frozenset({"engine_start", "wake_up", "weight_sync", "generation"})  # phases in which an engine has a part
_BEFORE_STATES = frozenset(PHASES) - {"load", "optimizer", "checkpoint"}  # in the first step
_SYNCING = frozenset({"wake_up", "weight_sync"})
_GATHERING = frozenset({"load", "weight_sync", "checkpoint"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """
    What both sides do with their memory while the other one runs.

    Args:
        offloaded: What of the trainer is on the host while engines generate: params, gradients, optimizer.
        reference_offload: Whether the reference is on the host but in its own pass; None where it moves as the policy.
        sleep: What an engine gives up while the trainer works: none, kv or weights (both).
        staged: Whether its cache wakes up only after weights are synced and the trainer has moved out.
        forward_tokens: Tokens of a micro-batch without backward; None for those of training. [token]
        forward_samples: Samples of such a micro-batch, where nobody says its tokens. [1]
        shared_weights: Whether engines read the trainer's weights where they are.
    """

    offloaded: frozenset[str] = EVERYTHING
    reference_offload: bool | None = None
    sleep: str = "weights"
    staged: bool = True
    forward_tokens: float | None = None
    forward_samples: float | None = None
    shared_weights: bool = False

    @property
    def reference_parked(self) -> bool:
        """Whether the reference is on the host while engines generate."""
        return "params" in self.offloaded if self.reference_offload is None else self.reference_offload


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainerSide:
    """
    A trainer in all of its phases.

    Args:
        load: What it holds in a training pass.
        forward: What it holds in a pass without backward.
        gpus: Its GPUs. [1]
        step_width: Bytes for each trained parameter that the optimizer's step holds beside the states. [B/param]
        sync_copies: Copies of the shard that a weight sync makes; none where weights move to the host. [1]
        states_at_start: Whether optimizer states are there before the first step.
        gradient_buffer: Whether gradients outlive the step.
        logprob: Whether log-probabilities are worked out again before the update.
    """

    load: TrainerLoad
    forward: TrainerLoad
    gpus: Real
    step_width: float = 0.0
    sync_copies: float = 0.0
    states_at_start: bool = False
    gradient_buffer: bool = False
    logprob: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseQuestion:
    """
    The GPUs of one pool.

    Args:
        engine: The instance that runs on them; None for a trainer's own.
        trainer: The trainer that runs on them; None for engines' own.
        synced: The trainer whose weights engines get.
        longest_tokens: The longest sequence. [token]
        turns: What both sides do with their memory in turn.
    """

    engine: EngineQuestion | None
    trainer: TrainerSide | None
    synced: TrainerLoad
    longest_tokens: Real
    turns: Turns

    @property
    def pool(self) -> str:
        """Whose GPUs they are."""
        if self.engine is not None and self.trainer is not None:
            return "shared"
        return "trainer" if self.engine is None else "rollout"

    @property
    def phases(self) -> tuple[str, ...]:
        """The phases that there are on these GPUs."""
        absent = set() if self.engine is not None else _ENGINES - {"weight_sync"}
        absent |= set() if self.trainer is not None else set(PHASES) - _ENGINES
        if self.trainer is None or self.turns.sleep == "none":
            absent |= {"wake_up"}
        if self.trainer is not None:
            beside = {one.name for one in self.trainer.forward.beside}
            absent |= ({"reference"} - beside) | (set() if self.trainer.logprob else {"logprob"})
        return tuple(name for name in PHASES if name not in absent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """
    A phase; numbers or arrays.

    Args:
        name: One of `PHASES`.
        pool: shared, trainer or rollout.
        parts: What each GPU holds, by `PARTS`; what it does not hold is left out. [B]
        held: All of it. [B]
        first: All of it in the first step, before the optimizer has made its states. [B]
    """

    name: str
    pool: str
    parts: Mapping[str, Worked]
    held: Worked
    first: Worked


def memory_phases(work: Work, question: PhaseQuestion, values: Mapping[str, Real]) -> tuple[Phase, ...]:
    """
    What each GPU of a pool holds, phase by phase.

    Args:
        work: `figures.numbers`, on bare constants or on draws of them.
        question: The pool.
        values: The constants of `constants_memory.STAGE` by name.
    """
    trainer: dict[str, dict[str, Worked]] = {name: {} for name in question.phases}
    lazy = False
    if question.trainer is not None:
        side, lazy = question.trainer, not question.trainer.states_at_start
        training, forward = (trainer_memory(work, load, values) for load in (side.load, side.forward))
        for name in question.phases:
            found = training if name == "update" else forward
            trainer[name] = _trainer_parts(work, side, question.turns, name, found, values)
    engine: dict[str, dict[str, Worked]] = {}
    if question.engine is not None:
        before = list(_own(question, trainer["engine_start"]).values())
        others = added(work, "held_bytes", before) if before else None
        cache = kv_capacity(work, question.engine, values, question.longest_tokens, others)
        engine = {name: _engine_parts(work, question, name, cache, values) for name in question.phases}
    answer = []
    for name in question.phases:
        both = engine.get(name, {})
        parts = _joined(work, _own(question, trainer[name]) if "engine_weights" in both else trainer[name], both)
        held = added(work, "held_bytes", list(parts.values()))
        first = held
        if lazy and name in _BEFORE_STATES and "optimizer" in parts:
            later = _with_reserve(work, parts["optimizer"], values)
            first = work("first_bytes", memory_fit.budget_left, gpu_memory=held, usable_fraction=1.0, held_bytes=later)
        answer.append(Phase(name=name, pool=question.pool, parts=parts, held=held, first=first))
    return tuple(answer)


def _own(question: PhaseQuestion, parts: dict[str, Worked]) -> dict[str, Worked]:
    """What a trainer holds beside an engine that is awake, which may hold the weights of both."""
    shared = {"trainer_weights"} if question.turns.shared_weights else set()
    return {name: part for name, part in parts.items() if name not in shared}


def _joined(work: Work, one: Mapping[str, Worked], other: Mapping[str, Worked]) -> dict[str, Worked]:
    """The parts of both sides, in the order of `PARTS`."""
    found = {name: [side[name] for side in (one, other) if name in side] for name in PARTS}
    return {name: added(work, name, parts) for name, parts in found.items() if parts}


def _engine_parts(
    work: Work, question: PhaseQuestion, phase: str, found: KvCapacity, values: Mapping[str, Real]
) -> dict[str, Worked]:
    """What an engine holds in a phase, by name; nothing while the trainer is loaded, as it starts after that."""
    asked, turns = question.engine, question.turns
    if asked is None or phase == "load":
        return {}
    waking = phase in _SYNCING
    if phase in {"engine_start", "generation"} or question.trainer is None or turns.sleep == "none":
        parts = _at_work(work, asked, found, values)
    else:
        parts = _asleep(work, asked, found, values)
        if waking or turns.sleep == "kv":
            parts["engine_weights"] = found.weight_bytes
        if waking and not turns.staged:
            parts["kv_cache"] = found.kv_bytes
    if question.trainer is None and phase == "weight_sync":
        moe = None if question.synced.shape.architecture is None else question.synced.shape.architecture.moe
        experts = 1.0 if moe is None else float(moe.experts)  # vLLM's load_weights takes their tensors one by one
        parts["gathered"] = unit_bytes(work, question.synced, _NARROW, experts=experts)
    return parts


def _asleep(
    work: Work, asked: EngineQuestion, found: KvCapacity, values: Mapping[str, Real], *more: Worked
) -> dict[str, Worked]:
    """What an engine holds whatever it does, by name, and what more of it is no weight and no cache."""
    runtime = [found.other_bytes, values["memory_graph_bytes"], *more]
    parts: dict[str, Worked] = {"engine_runtime": added(work, "engine_runtime", runtime)}
    if inference_engine(asked.engine).budget == "profiled":  # the others have it in what is gone before they load
        parts["contexts"] = values["memory_context_bytes"]
    return parts


def _at_work(work: Work, asked: EngineQuestion, found: KvCapacity, values: Mapping[str, Real]) -> dict[str, Worked]:
    """What an engine holds while it generates, by name."""
    parts = _asleep(work, asked, found, values, found.activation_bytes)
    return parts | {"engine_weights": found.weight_bytes, "kv_cache": found.kv_bytes}


def beside_a_trainer(work: Work, asked: EngineQuestion, longest_tokens: Real, values: Mapping[str, Real]) -> Worked:
    """
    What a GPU holds while an engine generates on it and the trainer that shares it has moved all of its states out.

    Args:
        work: `figures.numbers`.
        asked: One instance.
        longest_tokens: The longest sequence. [token]
        values: The constants of `constants_memory.STAGE` by name.
    """
    found = kv_capacity(work, asked, values, longest_tokens)
    held = [*_at_work(work, asked, found, values).values(), _trainer_context(work, _SEVERAL, values)]
    return added(work, "held_bytes", held)


def _trainer_parts(
    work: Work, side: TrainerSide, turns: Turns, phase: str, found: TrainerMemory, values: Mapping[str, Real]
) -> dict[str, Worked]:
    """What a trainer holds in a phase, by name, whose memory in its passes with or without backward is known."""
    load = side.load if phase == "update" else side.forward
    parts = _standing(found, _present(side, turns, phase))
    if phase in PASSES:
        parts |= {"activations": found.activations, "logits": found.logits, "gathered": found.gathered}
        if phase == "update" and not load.gradients_held:
            parts["gradients"] = work(
                "gradients",
                training_peak.gradients_beyond,
                gradient_bytes=found.growing,
                activation_bytes=found.activations,
                logits_bytes=found.logits,
            )
    elif phase in _GATHERING:
        parts["gathered"] = _whole_unit(work, load, phase)
    elif phase == "optimizer":
        parts["gathered"] = step_bytes(work, load, side.step_width)
    if phase in _SYNCING and side.sync_copies:
        parts["gathered"] = _copied(work, side, parts.get("gathered", 0.0))
    if parts:
        parts["reserved"] = _reserve(work, parts, values)
    parts["contexts"] = _trainer_context(work, side.gpus, values)
    return parts


def _trainer_context(work: Work, gpus: Real, values: Mapping[str, Real]) -> Worked:
    """What a trainer's process holds of a GPU whatever it does."""
    return work(
        "trainer_context",
        engine_cache.engine_other_bytes,
        process_bytes=values["memory_context_bytes"],
        communicator_bytes=values["memory_communicator_bytes"],
        gpus=gpus,
    )


def _present(side: TrainerSide, turns: Turns, phase: str) -> frozenset[str]:
    """Which of the trainer's states are on the GPU in a phase."""
    weights = {"weights", "adapters"}
    critic = set() if _in_turns(side.load, turns) else {"critic"}
    beside = {"reward"} | critic | (set() if turns.reference_offload else {"reference"})
    parked = {"gradients"} if side.gradient_buffer and "gradients" not in turns.offloaded else set()
    parked |= set() if "optimizer" in turns.offloaded else {"optimizer"}
    if phase in {"update", "optimizer"}:
        return frozenset(weights | beside | {"gradients", "optimizer"})
    if phase == "reference" and turns.reference_offload and "params" in turns.offloaded:  # the policy is away then
        return frozenset({"reference"} | parked)
    if phase in {"logprob", "reference"}:
        return frozenset(weights | beside | parked | ({"reference"} if phase == "reference" else set()))
    if phase == "checkpoint":
        return frozenset(weights | beside | parked | {"optimizer"})
    if phase == "load":
        return frozenset(weights | beside | ({"optimizer"} if side.states_at_start else set()))
    if "params" not in turns.offloaded:
        parked |= weights | {"critic", "reward"}
    parked |= set() if turns.reference_parked else {"reference"}
    if phase == "engine_start":
        parked -= {"gradients"} if side.states_at_start else {"gradients", "optimizer"}
    return frozenset(parked | (weights if phase in _SYNCING else set()))


def _in_turns(load: TrainerLoad, turns: Turns) -> bool:
    """
    Whether a critic is on the host while the policy works, and the policy while the critic does.

    It holds no more then than the policy in the same pass, as it has no logits; a larger one is counted beside it.
    """
    if not {"params", "optimizer"} <= turns.offloaded or load.adapter_params is not None:
        return False
    own = load.shape.dense_params.number + load.shape.routed_params.number
    return all(sum(map(float, one.params)) <= own for one in load.beside if one.name == "critic")


def _standing(found: TrainerMemory, present: frozenset[str]) -> dict[str, Worked]:
    """The states that are there, by part."""
    states = {
        "weights": found.weights,
        "gradients": found.gradients,
        "optimizer": found.optimizer,
        "adapters": found.adapters,
        **found.beside,
    }
    return {"trainer_weights" if name == "weights" else name: held for name, held in states.items() if name in present}


def _whole_unit(work: Work, load: TrainerLoad, phase: str) -> Worked:
    """A unit of the weights, whole: as it is kept, and narrowed for engines where it is wider than they want it."""
    if not load.gathered and load.tensor == 1 and load.expert == 1:
        return 0.0
    narrowed = phase == "weight_sync" and load.weight_width > _NARROW
    return unit_bytes(work, load, load.weight_width + (_NARROW if narrowed else 0.0))


def _copied(work: Work, side: TrainerSide, gathered: Worked) -> Worked:
    """
    The copy of the shard that a weight sync makes, and the larger of what it gathers and what making the copy did.

    A copy gathers unit by unit, the root whole; that stays in the allocator's cache, which an engine that wakes up
    cannot take from, and what the sync itself gathers comes out of it.
    """
    root = unit_bytes(work, side.load, side.load.weight_width, joined=True)
    beyond = work(
        "gathered", training_peak.gradients_beyond, gradient_bytes=root, activation_bytes=gathered, logits_bytes=0.0
    )
    copies = step_bytes(work, side.load, side.sync_copies * side.load.weight_width)
    return added(work, "gathered", [copies, gathered, beyond])


def _reserve(work: Work, parts: Mapping[str, Worked], values: Mapping[str, Real]) -> Worked:
    """What the allocator reserves beyond these."""
    peak = _with_reserve(work, added(work, "in_use_bytes", list(parts.values())), values)
    overhead = values["memory_training_overhead"]
    return work("reserved", training_peak.allocator_bytes, peak_bytes=peak, overhead=overhead)


def _with_reserve(work: Work, held: Worked, values: Mapping[str, Real]) -> Worked:
    """Tensors of the trainer as its allocator reserves memory for them."""
    return work(
        "trainer_held_bytes",
        training_peak.training_peak_bytes,
        state_bytes=held,
        activation_bytes=0.0,
        logits_bytes=0.0,
        gradient_bytes=0.0,
        gathered_bytes=0.0,
        overhead=values["memory_training_overhead"],
    )
