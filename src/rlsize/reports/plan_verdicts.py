"""What a plan means: why the runner-up lost, and whether to stay colocated, to give GPUs back, or not to buy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.equations import planning
from rlsize.units import show

if TYPE_CHECKING:
    from rlsize.planner.choice import Alternative, Choice
    from rlsize.planner.plan import Planned

_SECONDS = {
    "generation_seconds": "generation",
    "train_seconds": "training",
    "sync_exposed_seconds": "the weight sync",
    "overhead_seconds": "switching and handling",
}
_WORTH_A_WORD = 0.005  # of the step: a smaller difference is none
_AS_GOOD = 0.01  # of the step: what fewer GPUs may cost and still do as well


def verdicts(answer: Planned) -> list[str]:
    """Why the runner-up lost, and whether to stay colocated or not to buy."""
    chosen = answer.chosen
    if chosen is None:
        return []
    found = [_lost(chosen)] if chosen.runner_up is not None else []
    found += _fresher(chosen)
    found += _hybrid(chosen)
    found += _colocated(chosen)
    found += _give_back(answer)
    found += _left_over(answer)
    found += _as_written(chosen)
    return [text for text in found if text]


def _lost(chosen: Choice) -> str:
    """Why the runner-up lost."""
    runner = chosen.runner_up
    if runner is None or runner.times is None:
        return ""
    words, times = runner.place.words, runner.times
    why = reasons(runner, chosen.best)
    if runner.equal:
        return f"The runner-up, {words}, does as well."
    if runner.close:
        low, high = times.band or (times.number, times.number)
        return (
            f"The runner-up, {words}, is too close to call: {low:.2f} to {high:.2f} times the best on the same "
            f"draws{f' ({why})' if why else ''}."
        )
    return f"The runner-up, {words}, lost: {times.number:.3g} times the best{f'; {why}' if why else ''}."


def reasons(one: Alternative, best: Alternative) -> str:
    """What of a plan's step is longer or shorter, most important first."""
    step = best.results["step_seconds"]
    told = [(part, seconds) for part, seconds in one.why if abs(seconds) > _WORTH_A_WORD * step][:2]
    texts = [
        f"{_SECONDS[part]} takes {show(abs(seconds), 'step_seconds')} {'longer' if seconds > 0 else 'less'}"
        for part, seconds in told
    ]
    cheaper = one.results.get("cost_per_step_usd", 0.0) - best.results.get("cost_per_step_usd", 0.0)
    texts += [f"it costs {show(cheaper, 'cost_per_step_usd')} more"] if cheaper > 0 and not texts else []
    return ", ".join(texts)


def _fresher(chosen: Choice) -> list[str]:
    """What less staleness would cost."""
    other = chosen.fresher
    if other is None:
        return []
    change = other.step_seconds - chosen.best.family.step_seconds
    if change < _WORTH_A_WORD * chosen.best.family.step_seconds:
        return [f"A staleness of {other.place.staleness:g} does as well: the step is the same but for noise."]
    return [f"With a staleness of {other.place.staleness:g} a step takes {show(change, 'step_seconds')} longer."]


def _hybrid(chosen: Choice) -> list[str]:
    """What hybrid asks for, and what stands in its place."""
    if chosen.best.place.loop != "hybrid":
        return []
    plain = next((one for one in chosen.others if one.place.loop != "hybrid"), None)
    instead = "" if plain is None else f"; without it, {plain.place.words} takes "
    seconds = "" if plain is None else show(plain.results["step_seconds"], "step_seconds")
    return [f"Hybrid needs a framework that lends waiting trainer GPUs to the fleet{instead}{seconds}."]


def _colocated(chosen: Choice) -> list[str]:
    """Whether to stay colocated."""
    if chosen.best.place.shared:
        return ["Stay colocated: no split of these GPUs does better."]
    shared = chosen.best_of("colocated")
    if shared is not None and shared.close:
        return ["Colocated is too close to call: splitting the GPUs is not worth a move by itself."]
    return []


def _give_back(answer: Planned) -> list[str]:
    """Fewer GPUs that do as well, where the shortest step was asked for."""
    chosen = answer.chosen
    if chosen is None or chosen.objective != "time":
        return []
    best = chosen.best.family
    able = [
        family
        for family in (*answer.found.front, *answer.found.best)
        if family.gpus < best.gpus and family.step_seconds <= (1.0 + _AS_GOOD) * best.step_seconds
    ]
    if not able:
        return []
    least = min(able, key=lambda family: (family.gpus, family.step_seconds))
    longer = float(planning.overshoot(value=least.step_seconds, limit=best.step_seconds))
    saved = best.gpus - least.gpus
    return [f"{least.place.words} does as well with {saved:g} GPUs fewer: its step is {longer:.1%} longer."]


def _left_over(answer: Planned) -> list[str]:
    """Whether more GPUs would help at all."""
    chosen, there = answer.chosen, answer.space.gpus
    if chosen is None:
        return []
    found = []
    used = chosen.best.results["gpus"]
    if there is not None and used < there:
        found.append(f"{there - used:g} of {there:g} GPUs are left unused.")
    more = [one for one in answer.neighbours if one.gpus > 0]
    if more and all(one.change["step_seconds"] >= 0 for one in more):
        found.append("Do not buy: more GPUs on either side make no step shorter.")
    elif more and all(one.change.get("cost_per_step_usd", 0.0) > 0 for one in more):
        found.append("Do not buy to save money: the next GPUs on either side make a step shorter, and dearer.")
    return found


def _as_written(chosen: Choice) -> list[str]:
    written = chosen.written
    if written is None or written.times is None:
        return []
    low, high = written.times.band or (written.times.number, written.times.number)
    text = f"As the scenario has it ({written.place.words}), a step takes "
    text += f"{show(written.results['step_seconds'], 'step_seconds')}"
    if low <= 1.0 <= high:
        return [f"{text}: too close to call, so there is no need to change."]
    return [f"{text}, {written.times.number:.3g} times the best by what is searched for."]
