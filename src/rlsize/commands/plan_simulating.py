"""`rlsize plan --simulate N`: the best plans once more, as the simulator sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.commands import flags
from rlsize.facts.records.record import Refused

if TYPE_CHECKING:
    from rlsize.commands.plan_problem import Posed
    from rlsize.commands.simulate.runs import Job
    from rlsize.planner.choice import Alternative
    from rlsize.planner.plan import Planned
    from rlsize.reports.plan_ranks import Ranked
    from rlsize.shell.inputs import Inputs

_STEPS, _SEEDS = 60, 4  # of each simulation
_MOST_SAMPLES = 4e6  # under way at once, as rlsize simulate has it


def asked_count(inputs: Inputs, text: str | None) -> int:
    """How many plans are simulated; 0 where it was not asked."""
    if text is None:
        return 0
    figure = inputs.number("simulated_plans", "--simulate", text, flags.COUNT)
    return int(figure.number) if figure.known else 0


def ranked_by_simulation(inputs: Inputs, problem: Posed, answer: Planned, count: int) -> tuple[Ranked, ...]:
    """
    The best plans with what the simulator says of them; none where it was not asked, or there is no plan.

    Raises:
        InputError: They are too large to simulate.
    """
    from rlsize.reports.plan_ranks import Ranked

    if not count or answer.chosen is None:
        return ()
    chosen = [answer.chosen.best, *answer.chosen.others][:count]
    jobs: list[tuple[Alternative, Job]] = []
    found: list[Ranked] = []
    for one in chosen:
        try:
            jobs += [(one, job) for job in _jobs(problem, one)]
        except Refused as refusal:
            found.append(Ranked(one=one, refused=str(refusal)))
    found += _simulated(jobs)
    _tell(inputs, answer, found)
    return tuple(found)


def _jobs(problem: Posed, one: Alternative) -> list[Job]:
    from rlsize.commands.simulate.runs import Job
    from rlsize.planner.simulation import simulation_of

    setting, pools = simulation_of(problem.outlook.central, one.place)
    return [Job(setting=setting, pools=pools, steps=_STEPS, seed=seed) for seed in range(_SEEDS)]


def _simulated(jobs: list[tuple[Alternative, Job]]) -> list[Ranked]:
    """What each plan comes to, over its seeds."""
    from rlsize.commands.simulate.runs import check_bounds, run_all
    from rlsize.reports.plan_ranks import Ranked
    from rlsize.shell.progress import progress
    from rlsize.simulator.outcome import spread_over

    check_bounds([job for _, job in jobs], _MOST_SAMPLES)
    with progress() as say:
        done = run_all([job for _, job in jobs], say, backend="processes", workers=-1, kept=None)
    found: list[Ranked] = []
    for one in dict.fromkeys(id(one) for one, _ in jobs):
        mine = [index for index, (other, _) in enumerate(jobs) if id(other) == one]
        outcomes = [done[index].outcome for index in mine if index in done]
        whole = [outcome for outcome in outcomes if outcome is not None]
        alternative = jobs[mine[0]][0]
        if len(whole) < len(mine):
            found.append(Ranked(one=alternative, refused="the loop stands still, or was interrupted"))
            continue
        spread = spread_over(whole, "step_seconds")
        found.append(Ranked(one=alternative, step_seconds=spread.mean, low=spread.low, high=spread.high))
    return found


def _tell(inputs: Inputs, answer: Planned, ranked: list[Ranked]) -> None:
    """Say whether the order changes."""
    from rlsize.planner.tornado import plan_words

    able = [entry for entry in ranked if not entry.refused]
    if answer.chosen is None or not able:
        return
    quickest = min(able, key=lambda entry: entry.step_seconds)
    ordered = [entry.step_seconds for entry in able]
    if ordered == sorted(ordered):
        inputs.notes.append(f"The simulator keeps the order of the best {len(able)}.")
    elif quickest.one is answer.chosen.best:
        inputs.notes.append("The simulator changes the order behind the best plan.")
    else:
        words = plan_words(quickest.one)
        inputs.warnings.append(f"the simulator changes the order: {words} has the shortest step there")
