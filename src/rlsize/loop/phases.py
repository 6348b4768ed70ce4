"""The memory of a loop phase by phase: what each GPU holds in each, which phase dies first, and whether all fit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from rlsize.equations import rl_step, rollout_batch
from rlsize.errors import Refused
from rlsize.estimates.belief import interval, scattered
from rlsize.estimates.constants_memory import STAGE, TRAINING_NOISE
from rlsize.estimates.engine_memory import kv_capacity, memory_share, step_sequences, visible_memory
from rlsize.estimates.figures import numbers
from rlsize.estimates.loop_memory import beside, micro_batch_of, trainer_load
from rlsize.estimates.memory_phases import EVERYTHING, PASSES, PhaseQuestion, TrainerSide, Turns, memory_phases
from rlsize.estimates.run_memory import PEAKING, beyond_model
from rlsize.estimates.step_assembly import REFILLING
from rlsize.facts.figure import Figure
from rlsize.facts.inference_engines import inference_engine
from rlsize.frozen import dataclass
from rlsize.planner.evaluation import bare_asked, fitting_step, longest_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.engine_memory import KvCapacity
    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.memory_phases import Phase
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.facts.calibration import OwnMemory
    from rlsize.loop.resolve import Loop
    from rlsize.loop.said import Said
    from rlsize.planner.options import Placement

Verdict: TypeAlias = Literal["fits", "not sure", "dies"]

PHASE_KEYS = (
    "trainer_backend", "master_dtype", "offloaded_between", "param_offload", "reference_offload", "engine_sleep",
    "shares_weights", "staged_wake_up", "logprob_micro_batch_tokens", "logprob_micro_batch_samples",
)  # fmt: skip
"""What says how a loop keeps its memory."""

_GIB = 2.0**30
_OF_ENGINES = ("engine_weights", "kv_cache", "engine_runtime")


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseMemory:
    """
    A phase with its band.

    Args:
        name: load, engine_start, wake_up, weight_sync, generation, logprob, reference, update, optimizer or checkpoint.
        pool: Whose GPUs: shared, trainer or rollout.
        parts: What each GPU holds, by name. [B]
        held: All of it, with its band. [B]
        first: All of it in the first step. [B]
        memory: Memory of the GPU that processes see. [B]
        starved: Whether that is an engine's share of it instead, which has no room for a sample beside the weights.
    """

    name: str
    pool: str
    parts: Mapping[str, float]
    held: Figure
    first: float
    memory: float
    starved: bool = False

    @property
    def high(self) -> float:
        """The high end of its band. [B]"""
        return self.held.band[1] if self.held.band else self.held.number

    @property
    def fill(self) -> float:
        """Share of the GPU that the high end of its band takes. [1]"""
        return self.high / self.memory

    @property
    def later(self) -> bool:
        """Whether the first step does not show yet that it does not fit, as the optimizer has no states then."""
        return self.first <= self.memory < self.held.number

    @property
    def verdict(self) -> Verdict:
        """Whether it fits even at the high end of its band, only at its centre, or not."""
        if self.high <= self.memory:
            return "fits"
        return "not sure" if self.held.number <= self.memory else "dies"


@dataclass(frozen=True, slots=True, kw_only=True)
class Phases:
    """
    The phases of a loop.

    Args:
        phases: All of them, in the order in which a run comes to them.
        unsaid: Quantities that nobody says, with which it may not fit.
    """

    phases: tuple[PhaseMemory, ...]
    unsaid: tuple[str, ...] = ()

    @property
    def worst(self) -> PhaseMemory:
        """The one that fills the GPU most, at the high end of its band; of those within a hundredth the first."""
        return max(self.phases, key=lambda phase: round(phase.fill, 2))

    @property
    def dying(self) -> PhaseMemory | None:
        """The first that does not fit, in the first step or later; None where all do."""
        dead = [phase for phase in self.phases if phase.verdict == "dies"]
        return min(dead, key=lambda phase: phase.later, default=None)

    @property
    def verdict(self) -> Verdict:
        """Whether all fit."""
        found = {phase.verdict for phase in self.phases}
        return "dies" if "dies" in found else "not sure" if "not sure" in found else "fits"


def dies_at(phase: PhaseMemory) -> str:
    """The words for a phase that does not fit."""
    when = " from the second step on" if phase.later else ""
    needs = (phase.held.number if phase.later else phase.first) / _GIB
    whose = ", which is the engine's share" if phase.starved else ""
    return f"it dies at {phase.name}{when}: needs {needs:.1f} of {phase.memory / _GIB:.1f} GiB{whose}"


def turns_of(said: Said, *, shared: bool) -> Turns:
    """
    What both sides do with their memory while the other one runs.

    Args:
        said: What was said.
        shared: Whether they have the same GPUs; a trainer on its own moves nothing unless somebody says so.
    """
    listed = said.listed("offloaded_between")
    tokens, samples = said.ask("logprob_micro_batch_tokens"), said.ask("logprob_micro_batch_samples")
    staged = said.yes("staged_wake_up") if shared else None
    turns = Turns(
        offloaded=frozenset(listed) if listed is not None else EVERYTHING if shared else frozenset(),
        reference_offload=said.yes("reference_offload"),
        staged=True if staged is None else staged,
        forward_tokens=tokens.if_known,
        forward_samples=samples.if_known,
        shared_weights=shared and bool(said.yes("shares_weights")),
    )
    return replace(turns, sleep=said.choose("engine_sleep")) if shared and said.gives("engine_sleep") else turns


def why_not(loop: Loop, place: Placement) -> str:
    """
    Why a placed loop cannot run: what was not measured on it does not fit; empty where it can.

    Args:
        loop: The loop.
        place: Where it would run: as it was said, or another way.
    """
    central = loop.outlook.central
    try:
        fitting_step(central, place, longest_tokens(central))
    except Refused as refusal:
        return str(refusal)
    found = judged(loop, place, bands=loop.problem.run is not None)  # centres alone say what dies
    return "" if found is None or found.dying is None else dies_at(found.dying)


def judged(loop: Loop, place: Placement, *, bands: bool = True) -> Phases | None:
    """The memory of a placed loop that says whether it can run; None where a measurement or a run has shown it."""
    if loop.known.rate.known or loop.known.train_seconds.known:
        return None
    found, run = phases_of(loop, place=place, bands=bands), loop.problem.run
    return None if found is None or (run is not None and run.holds(found.worst.fill)) else found


def phases_of(
    loop: Loop, seed: int = 0, own: OwnMemory | None = None, place: Placement | None = None, *, bands: bool = True
) -> Phases | None:
    """
    What each GPU of a loop holds, phase by phase.

    Args:
        loop: The loop, whether it can run or not.
        seed: Of the draws behind the bands.
        own: The trainer's peak as a log has it; that of the run that a calibration holds when None.
        place: Where it would run; as it was said when None.
        bands: Whether draws are made, of which bands come.

    Returns:
        The phases; None where models or GPUs are not known.
    """
    if loop.stages is None:
        return None
    belief = loop.stages.belief
    central, drawn = belief.central(), belief.drawn(seed) if bands else None
    found = []
    own = own or (loop.problem.run.memory if loop.problem.run is not None else None)
    place = place or loop.tried
    shared = loop.pools.shared if place is None else place.shared
    placed = loop if place is None else place
    replica = placed.fleet.engines[shared]
    asked = bare_asked(placed.trainer)
    if asked is None:
        return None
    asked = asked if place is None else replace(asked, gpus=place.trainer_gpus)
    engine = _offered(loop, place, loop.stages.rollout.engine if isinstance(replica, str) else replica.question)
    for question in _questions(loop, loop.stages.turns[shared], engine, asked, shared=shared):
        gpu = (asked if question.engine is None else question.engine).gpu
        memory = float(visible_memory(numbers, gpu, central))
        each = memory_phases(numbers, question, central)
        spreads = [None] * len(each) if drawn is None else memory_phases(numbers, question, drawn)
        if own is not None and question.trainer is not None and own.phase not in question.phases:
            own = replace(own, phase="update")  # a pass that the loop has no more: what is not known may stand here too
        made = [_banded(phase, spread, memory, seed, own) for phase, spread in zip(each, spreads, strict=True)]
        if question.engine is not None and isinstance(replica, str):
            made = [_starved(one, question, central, drawn) if one.name == "engine_start" else one for one in made]
        found += made
    return Phases(phases=tuple(found))


def _starved(
    phase: PhaseMemory, question: PhaseQuestion, central: Mapping[str, Real], drawn: Mapping[str, Real] | None
) -> PhaseMemory:
    """The start of an engine whose share has no room for a sample beside its weights: what it needs of that share."""
    engine = question.engine
    if engine is None:
        return phase

    def needs(values: Mapping[str, Real]) -> KvCapacity:
        return kv_capacity(numbers, engine, values, question.longest_tokens)

    def total(found: KvCapacity) -> Real:
        return found.weight_bytes + found.activation_bytes + found.other_bytes + found.sequence_bytes

    one = needs(central)
    held = float(total(one))
    return replace(
        phase,
        parts={
            "engine_weights": float(one.weight_bytes),
            "engine_runtime": float(one.activation_bytes + one.other_bytes),
            "kv_cache": float(one.sequence_bytes),
        },
        held=replace(
            phase.held,
            value=held,
            band=None if drawn is None else interval(total(needs(drawn))),
            source="what it needs of its share",
        ),
        first=held,
        memory=float(memory_share(numbers, engine, phase.memory)) * phase.memory,
        starved=True,
    )


def _questions(
    loop: Loop, turns: Turns, engine: EngineQuestion, asked: TrainQuestion, *, shared: bool
) -> Iterator[PhaseQuestion]:
    """The pools of a loop."""
    longest = longest_tokens(loop.outlook.central)
    side = _trainer_side(asked, turns, longest)
    both = PhaseQuestion(engine=engine, trainer=side, synced=side.load, longest_tokens=longest, turns=turns)
    yield from (both,) if shared else (replace(both, trainer=None), replace(both, engine=None))


def _offered(loop: Loop, place: Placement | None, engine: EngineQuestion) -> EngineQuestion:
    """An engine with no more samples than the loop has for it, where it does not run its largest step to begin with."""
    if place is None or inference_engine(engine.engine).budget != "static":
        return engine
    within = place.max_staleness if place.loop in REFILLING else 0.0
    offered = rl_step.allowed_in_flight(samples_per_step=loop.problem.samples.number, max_staleness=within)
    each = float(rollout_batch.per_instance(amount=offered, instances=place.instances))
    return replace(engine, max_sequences=min(float(step_sequences(engine)), each))


def _trainer_side(asked: TrainQuestion, turns: Turns, longest: Real) -> TrainerSide:
    """The trainer in its passes with and without backward."""
    load = trainer_load(asked, longest)
    tokens = load.tokens
    if turns.forward_tokens is not None or turns.forward_samples is not None:
        samples = turns.forward_samples if turns.forward_tokens is None else None
        one = replace(asked, optimizer_steps=1.0)  # log-probabilities are worked out for the step as a whole
        tokens, _ = micro_batch_of(one, longest, turns.forward_tokens or asked.micro_batch_tokens, samples)
    backend = asked.keeps.facts
    width = asked.keeps.master_width
    return TrainerSide(
        load=load,
        forward=replace(load, backward=False, gradients_held=True, tokens=tokens, beside=tuple(beside(asked))),
        gpus=asked.gpus,
        step_width=0.0 if asked.offload else backend.step_copies * width,
        sync_copies=0.0 if asked.lora_rank is not None or "params" in turns.offloaded else backend.sync_copies,
        states_at_start=backend.states_at_start,
        gradient_buffer=backend.gradient_buffer,
        logprob=not {"old_logprob", "proximal"}.isdisjoint(asked.passes),
    )


def _banded(phase: Phase, spread: Phase | None, memory: float, seed: int, run: OwnMemory | None) -> PhaseMemory:
    """A phase with the interval of its draws, where there are some, and of the scatter of one run."""
    own, band = 0.0, None
    if spread is not None:
        engine = sum(spread.parts[name] for name in _OF_ENGINES if name in spread.parts)
        noise = TRAINING_NOISE if phase.name in PASSES else STAGE.noise
        if run is not None and phase.name in PEAKING:
            own, beyond, changed = beyond_model(run, phase, spread, seed)
            spread = replace(spread, held=spread.held + beyond)
            noise *= changed if own else 1.0
        band = interval(engine + scattered(spread.held - engine, noise, seed, f"{phase.pool}/{phase.name}"))
    source = f"what each GPU of the {phase.pool} pool holds in this phase"
    return PhaseMemory(
        name=phase.name,
        pool=phase.pool,
        parts={name: float(part) for name, part in phase.parts.items()} | ({"own": own} if own else {}),
        held=Figure(
            key="held_bytes",
            value=float(phase.held) + own,
            provenance="predicted",
            source=source,
            band=band,
        ),
        first=float(phase.first) + own,
        memory=memory,
    )
