"""Memory of a placed loop: what is left of it on both sides, and the longest sequence that must fit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rlsize.equations import long_tail
from rlsize.planner.options import SHARING
from rlsize.planner.step_parts import ready_engine

if TYPE_CHECKING:
    from rlsize.estimates.rollout_prediction import Replica
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.planner.options import Placement, TrainerOption
    from rlsize.planner.setting import Setting

MEMORY_KEYS = ("rollout_memory_headroom_fraction", "trainer_memory_headroom_fraction")


def memory_of(setting: Setting, place: Placement) -> dict[str, Any]:
    """Shares of memory that are left on both sides, as far as models and GPUs are known; numbers or arrays."""
    if not place.fleet.engines and place.trainer.question is None:
        return {}
    from rlsize.estimates.loop_memory import bare_trainer_memory, fleet_headroom, headroom_at, headroom_beside

    rollout, trainer = MEMORY_KEYS
    found, longest = {}, longest_tokens(setting)
    engine = known_engine(place, shared=place.shared)
    if engine is not None:
        found[rollout] = fleet_headroom(engine, longest, setting.values)
    question = bare_trainer(place)
    held = None if question is None else bare_trainer_memory(question, longest, setting.values)
    if question is not None and held is not None:
        found[trainer] = headroom_at(question, held.peak)
    lent = known_engine(place, shared=True) if place.loop in SHARING else None
    if lent is not None:
        found[rollout] = np.minimum(found.get(rollout, np.inf), fleet_headroom(lent, longest, setting.values))
        if held is not None:
            found[trainer] = np.minimum(found[trainer], headroom_beside(held.states, lent))
    return found


def known_engine(place: Placement, *, shared: bool) -> Replica | None:
    """
    The instance on shared GPUs, or on its own; None where its rate was measured and nobody says how it is built.

    Raises:
        Refused: It does not fit, and no measured rate says otherwise.
    """
    found = place.fleet.engines.get(shared)
    if place.fleet.rate.known and (found is None or isinstance(found, str)):
        return None
    return ready_engine(place.fleet, shared=shared)


def bare_trainer(place: Placement) -> TrainQuestion | None:
    """The trainer in bare numbers, on its GPUs."""
    asked = bare_asked(place.trainer)
    return None if asked is None else replace(asked, gpus=place.trainer_gpus)


def bare_asked(trainer: TrainerOption) -> TrainQuestion | None:
    """The trainer in bare numbers; None where only its time is known."""
    if trainer.question is None:
        return None

    return trainer.question.bare()


def longest_tokens(setting: Setting) -> float:
    """The longest sequence, prompt and response: up to the cap where one is given, else as long as a step's longest."""
    from rlsize.estimates.generation import StepBatch, longest_sequence

    problem = setting.problem
    prompt = problem.prompt_tokens.number if problem.prompt_tokens.known else 0.0
    cap = problem.max_tokens
    capped = cap.known and cap.provenance == "given"
    if not (capped or problem.predicted):
        return float(long_tail.context_of(prompt_tokens=prompt, response_tokens=problem.response_tokens.number))
    batch = StepBatch(
        samples=problem.samples.number,
        instances=1.0,
        prompt_tokens=prompt,
        response_tokens=problem.response_tokens.number,
        response_cv=problem.response_cv.number if problem.response_cv.known else setting.bare.values["step_length_cv"],
        max_tokens=cap.number if cap.known else None,
    )
    return longest_sequence(batch, capped=capped)
