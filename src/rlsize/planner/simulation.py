"""A plan as the simulator takes it, so that the best few can be ranked by what happens over time."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from math import ceil, inf
from typing import TYPE_CHECKING, Any

from rlsize.equations import decode_step, rl_step, rollout_batch
from rlsize.errors import Fault, InputError
from rlsize.estimates.generation import StepBatch
from rlsize.estimates.simulated_engine import constant_line, predicted_line, scaled_line
from rlsize.estimates.step_assembly import REFILLING, assembled
from rlsize.frozen import dataclass
from rlsize.planner.predicted_parts import hits
from rlsize.planner.step_parts import lent_instances, loop_parts, trainer_parts
from rlsize.simulator.first_order import Pools
from rlsize.simulator.outcome import outcome_of, spread_over
from rlsize.simulator.run import WORTH, simulate
from rlsize.simulator.setting import (
    EngineSetting,
    Latency,
    LengthSetting,
    RuleSetting,
    Setting,
    SyncSetting,
    TrainerSetting,
    TroubleSetting,
    WorkSetting,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rlsize.estimates.generation import Late
    from rlsize.estimates.simulated_engine import StepLine
    from rlsize.estimates.step_assembly import Loop
    from rlsize.facts.algorithm import Agents
    from rlsize.planner.choice import Alternative
    from rlsize.planner.options import LoopProblem, Placement
    from rlsize.planner.outlook import Terms
    from rlsize.simulator.outcome import Outcome
    from rlsize.simulator.setting import Mode, Order, Unfinished

    Over = Callable[[Callable[[Any], Any], Sequence[Any]], Sequence[Any]]
    """A function over many things, as `map` does it, or side by side."""

MODES: dict[Loop, Mode] = {
    "colocated": "colocated",
    "synchronous": "sync",
    "one-step-off": "one-step-off",
    "async": "async",
    "hybrid": "async",
}
"""What the simulator calls them."""

USUAL_SLOTS = 256
"""Samples that an engine runs at most of which nothing else is known."""

_STEPS, _SEEDS = 60, 4  # of each plan that is ranked
_MOST_SAMPLES = 4e6  # of all of them: some 40 s on one core


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """
    A plan as the simulator sees it.

    Args:
        one: The plan.
        step_seconds: Its mean simulated step. [s]
        low: Low end of its 95 % interval over seeds. [s]
        high: High end. [s]
        refused: Why it could not be simulated; empty where it could.
    """

    one: Alternative
    step_seconds: float = 0.0
    low: float = 0.0
    high: float = 0.0
    refused: str = ""


def ranked(
    plans: Sequence[Alternative], settings: Sequence[tuple[Setting, Pools] | str], over: Over
) -> tuple[Ranked, ...]:
    """
    Plans with what the simulator says of them.

    Args:
        plans: The plans.
        settings: Of each, what is played, with its GPUs and prices; why it cannot be where it cannot.
        over: Runs the simulations.

    Raises:
        InputError: They are too large to simulate.
    """
    refused = {place: found for place, found in enumerate(settings) if isinstance(found, str)}
    able = [(place, *found) for place, found in enumerate(settings) if not isinstance(found, str)]
    runs = [(*each, seed) for each in able for seed in range(_SEEDS)]
    runs.sort(key=lambda run: run[-1])  # plans share what was drawn for a seed
    samples = sum(_STEPS * setting.work.samples for _, setting, _, _ in runs)
    play = partial(_simulated, compiled=samples >= WORTH)
    if samples > _MOST_SAMPLES:
        what = f"{len(runs)} simulations generate {samples:,.0f} samples, more than {_MOST_SAMPLES:,.0f}"
        raise InputError(Fault(what, "--simulate", "rank fewer plans, or simulate the one that is chosen"))
    outcomes: dict[int, list[Outcome | None]] = {}
    for (place, *_), outcome in zip(runs, over(play, runs), strict=True):
        outcomes.setdefault(place, []).append(outcome)
    found = []
    for place, one in enumerate(plans):
        whole = [outcome for outcome in outcomes.get(place, []) if outcome is not None]
        if place in refused or len(whole) < _SEEDS:
            found.append(Ranked(one=one, refused=refused.get(place, "the loop stands still")))
        else:
            spread = spread_over(whole, "step_seconds")
            found.append(Ranked(one=one, step_seconds=spread.mean, low=spread.low, high=spread.high))
    return tuple(found)


def _simulated(run: tuple[int, Setting, Pools, int], *, compiled: bool) -> Outcome | None:
    """What a run came to; None where the loop stood still."""
    _, setting, pools, seed = run
    ledger = simulate(setting, _STEPS, seed, compiled=compiled, partly=True)
    return outcome_of(ledger, setting, pools, seed) if len(ledger) == _STEPS else None


def simulation_of(terms: Terms, place: Placement, concurrency: float | None = None) -> tuple[Setting, Pools]:
    """
    The loop of a plan, as the simulator takes it, with its GPUs and prices.

    Args:
        terms: In central numbers.
        place: The plan.
        concurrency: Samples that an instance is given; as many as fit where None. [1]

    Raises:
        Refused: The loop cannot run so.
    """
    parts = loop_parts(terms, place)
    step = assembled(terms.work, parts)
    trained = trainer_parts(terms, place.trainer, place.trainer_gpus)[place.shared]  # samples of mean length
    problem, group = terms.problem, max(1, round(terms.problem.group_size.number))
    shared, late = place.shared, problem.late_rule(place.loop)
    started = 1.0 if place.loop in REFILLING or late == "wait" else problem.oversampling
    dropped = started if late == "drop" else 1.0  # the simulator throws these away itself
    # neither side works in the part of the sync that nothing hides, nor where shared GPUs change over
    swap = terms.value(problem.swap_seconds) or 0.0 if shared and problem.model is None else 0.0
    exposed = step.sync_seconds if problem.rolling and not shared else step.sync_exposed_seconds
    pause = float(decode_step.both_times(first=exposed, second=swap))
    simulated = Setting(
        engine=engine_setting(_line(terms, place, concurrency), round(place.instances)),
        work=WorkSetting(
            groups=max(1, round(problem.samples.number / group)),
            group_size=group,
            lengths=_lengths(terms),
            prompt_tokens=round(terms.value(problem.prompt_tokens) or 0),
            acceptance=float(rollout_batch.share_of(part=dropped, whole=problem.waste.number)),
            **agents_work(problem.agents),
        ),
        trainer=TrainerSetting(
            seconds=float(rl_step.trainer_phase(*trained)),
            overhead_seconds=float(rollout_batch.beyond(whole=step.overhead_seconds, part=swap)),
        ),
        sync=SyncSetting(swap_seconds=float(rollout_batch.half(pause))) if shared else SyncSetting(seconds=pause),
        rules=rules_of(place.loop, late, started, place.max_staleness),
        trouble=TroubleSetting(
            lent_instances=round(lent_instances(place)) if place.loop == "hybrid" else 0,
            lend_seconds=float(rollout_batch.half(parts.swap_seconds)),
        ),
    )
    pools = Pools(
        rollout_gpus=0.0 if shared else float(place.rollout_gpus),
        trainer_gpus=float(place.trainer_gpus),
        rollout_gpu_hour=terms.value(place.fleet.gpu_hour),
        trainer_gpu_hour=terms.value(place.trainer.gpu_hour),
    )
    return simulated, pools


def agents_work(agents: Agents | None) -> dict[str, Any]:
    """What samples wait for outside the GPUs, as fields of what a step is made of."""
    if agents is None:
        return {}
    own = asdict(agents)
    for name in ("tool_seconds", "tool_cv", "verify_seconds", "verify_cv"):
        del own[name]
    return {
        **own,
        "tool": Latency(seconds=agents.tool_seconds, cv=agents.tool_cv),
        "verify": Latency(seconds=agents.verify_seconds, cv=agents.verify_cv),
    }


def rules_of(loop: Loop, late: Late, started: float, max_staleness: float) -> RuleSetting:
    """
    The rules that follow from what becomes of late samples.

    Args:
        loop: How the loop is laid out.
        late: What becomes of them.
        started: Samples started for each that a batch with a barrier needs. [1]
        max_staleness: Staleness cap of a loop that refills. [1]
    """
    if loop not in REFILLING:
        kept: Unfinished = "keep" if late == "continue" else "drop"
        return RuleSetting(mode=MODES[loop], oversampling=max(1.0, started), unfinished=kept)
    order: Order = "admission" if late == "wait" else "completion"
    return RuleSetting(mode="async", max_staleness=max_staleness, drops_over_stale=late == "drop", order=order)


def _lengths(terms: Terms) -> LengthSetting:
    problem = terms.problem
    cap = problem.max_tokens.number if problem.max_tokens.known else inf
    return LengthSetting(mean=problem.response_tokens.number, cv=float(terms.response_cv), cap=cap)


def engine_setting(line: StepLine, instances: int) -> EngineSetting:
    """
    Engines with a step time.

    Args:
        line: Of one of them.
        instances: How many there are. [1]
    """
    return EngineSetting(
        instances=instances,
        slots=max(1, line.slots),
        fixed_seconds=line.fixed,
        sample_seconds=line.sample,
        kv_seconds=line.kv_token,
        prefill_seconds=line.prompt_token,
        kv_tokens=inf if line.kv_tokens is None else float(int(line.kv_tokens)),
        points=line.points,
    )


def _load(problem: LoopProblem, place: Placement) -> float:
    """Samples that an instance has at once at most, where its engine takes them."""
    many = problem.samples.number * problem.oversampling
    if place.loop in REFILLING:
        many = rl_step.allowed_in_flight(problem.samples.number, place.max_staleness)
    if problem.agents is not None:
        many *= 1.0 + problem.agents.redundant_samples / problem.group_size.number
    return max(1.0, float(rollout_batch.per_instance(amount=many, instances=place.instances)))


def _line(terms: Terms, place: Placement, concurrency: float | None) -> StepLine:
    """The fleet's engine: as predicted, made as fast as a known rate says."""
    engine, rate = place.fleet.ready(shared=place.shared), place.fleet.rate
    if engine is None:
        share = min(USUAL_SLOTS, ceil(terms.problem.samples.number / place.instances))
        return constant_line(share if concurrency is None else max(1, round(concurrency)), rate.number)
    problem, lengths = terms.problem, _lengths(terms)
    batch = StepBatch(
        samples=1.0,
        instances=1.0,
        prompt_tokens=problem.prompt_tokens.number,
        response_tokens=lengths.mean,
        response_cv=lengths.cv,
        max_tokens=lengths.cap if problem.max_tokens.known else None,
        hit_ratio=float(hits(terms, engine.question.engine, place.instances)),
        group_size=problem.group_size.number,
        agents=problem.agents,
    )
    line = predicted_line(engine.question, batch, terms.values, concurrency, _load(problem, place))
    return scaled_line(line, rate.number) if rate.known else line
