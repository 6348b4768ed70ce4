"""
The loops that `benchmarks.planner_speed` plans. By itself it searches one in a process of its own, so that nothing
that the benchmark has loaded counts as the search's memory.

    python -m benchmarks.planned_loops given|predicted GPUS
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import TYPE_CHECKING

from rlsize.estimates.belief import prior
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.step_prediction import STAGES
from rlsize.estimates.train_prediction import TrainQuestion
from rlsize.facts.figure import Figure
from rlsize.facts.layout import Layout
from rlsize.planner.choices import fleet_options, trainer_options
from rlsize.planner.options import FleetOption, LoopProblem, Offer, TrainerOption, TriedDegrees
from rlsize.planner.outlook import Draws, Outlook
from rlsize.planner.search import search
from rlsize.planner.space import Space
from rlsize.planner.tables import Rejections
from rlsize.readers.profiles import Catalogue

if TYPE_CHECKING:
    from rlsize.estimates.step_assembly import Loop

LOOPS: tuple[Loop, ...] = ("colocated", "synchronous", "one-step-off", "async", "hybrid")
KIB = 1 if sys.platform == "darwin" else 1024  # what ru_maxrss counts in


def said(key: str, value: float) -> Figure:
    """A number that somebody said."""
    return Figure(key=key, value=value)


def given(gpus: float) -> tuple[Outlook, Space]:
    """A loop whose rates per GPU are known; every number of GPUs is tried on both sides."""
    problem = LoopProblem(
        samples=said("samples_per_step", 1.0),
        group_size=said("group_size", 1.0),
        response_tokens=said("response_tokens", 786_432.0),
    )
    fleet = FleetOption(
        name="1 GPU", gpu="", gpus=1.0, layout={}, engines={}, rate=said("instance_tokens_per_second", 2000.0)
    )
    trainer = TrainerOption(
        name="as measured", gpu="", seconds=said("train_seconds", 131.072), measured_gpus=said("trainer_gpus", 1.0)
    )
    space = Space(fleets=(fleet,), trainers=(trainer,), loops=LOOPS, staleness=(1.0, 2.0), gpus=gpus)
    return Outlook(problem=problem, belief=None, seed=0, joint=Draws(0)), space


def predicted(gpus: float) -> tuple[Outlook, Space]:
    """A model whose rates are predicted, in all layouts."""
    catalogue = Catalogue()
    model, gpu = catalogue.get("model", "qwen3-8b"), catalogue.get("gpu", "h100-sxm")
    problem = LoopProblem(
        model=model,
        samples=said("samples_per_step", 1024.0),
        group_size=said("group_size", 16.0),
        prompt_tokens=said("prompt_tokens", 300.0),
        response_tokens=said("response_tokens", 2000.0),
        gpus_per_node=8.0,
    )
    asked = TrainQuestion(model=model, gpu=gpu, gpus=1, sequences=1024.0, tokens=2300.0, micro_batch_tokens=8192.0)
    engine = EngineQuestion(model=model, gpu=gpu, layout=Layout())
    rejected, offer = Rejections(), Offer(gpu=gpu)
    space = Space(
        fleets=tuple(fleet_options(engine, 0.6, offer, TriedDegrees(), rejected)),
        trainers=tuple(trainer_options(asked, offer, TriedDegrees(), rejected)),
        loops=LOOPS,
        staleness=(1.0, 2.0),
        micro_batches=(4096.0, 8192.0, 16384.0, 32768.0),
        gpus=gpus,
    )
    return Outlook(problem=problem, belief=prior(*STAGES), seed=0, joint=Draws(0)), space


def main() -> None:
    """Print candidates, CPU seconds and peak memory of a search."""
    outlook, space = {"given": given, "predicted": predicted}[sys.argv[1]](float(sys.argv[2]))
    setting = outlook.central
    start = time.process_time()
    found = search(setting, space)
    spent = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB
    print(json.dumps({"candidates": found.worked_out, "seconds": spent, "peak_bytes": peak}))


if __name__ == "__main__":
    main()
