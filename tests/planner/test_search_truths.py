"""What must hold of every search: more room, a better side or fewer limits never make the best plan worse."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.planner.small_problems import (
    Posed,
    fleets_of,
    measured_problems,
    predicted,
    predicted_problems,
    trainers_of,
)

from rlsize.planner.evaluation import worked
from rlsize.planner.families import Objective
from rlsize.planner.options import Placement, TriedDegrees
from rlsize.planner.search import search
from rlsize.planner.space import Limit

objectives: st.SearchStrategy[Objective] = st.sampled_from(("time", "cost", "gpus"))
limited = st.sampled_from(
    ("step_seconds", "gpus", "gpu_hours_per_step", "trainer_idle_fraction", "rollout_idle_fraction", "staleness_steps")
)
SAME = 1 + 1e-8
SLOWER = 1.002  # with a full cache
FEW = settings(max_examples=12)


def best(posed: Posed, objective: Objective = "time") -> float:
    """What a search makes small; infinite where there is no plan."""
    found = search(posed.outlook.central, posed.space, objective)
    return found.best[0].score(objective)[0] if found.best else inf


@given(measured_problems(), objectives, limited, st.floats(0.01, 100.0), st.floats(1.0, 3.0))
def test_a_looser_limit_never_makes_a_worse_plan(
    posed: Posed, objective: Objective, key: str, value: float, looser: float
) -> None:
    """Whatever is limited, whatever is made small."""
    tight, loose = (posed.but(limits=(Limit(key=key, value=limit),)) for limit in (value, value * looser))
    assert best(posed, objective) <= best(loose, objective) * SAME
    assert best(loose, objective) <= best(tight, objective) * SAME


@given(measured_problems(), objectives, st.sampled_from(["rollout", "trainer"]), st.floats(1.0, 10.0))
def test_a_faster_side_at_the_same_price_never_makes_a_worse_plan(
    posed: Posed, objective: Objective, side: str, times: float
) -> None:
    """Neither slower, nor dearer, nor of more GPUs."""
    fleets, trainers = posed.space.fleets, posed.space.trainers
    if side == "rollout":
        fleets = tuple(replace(one, rate=replace(one.rate, value=one.rate.number * times)) for one in fleets)
    else:
        trainers = tuple(
            replace(one, seconds=replace(one.seconds, value=one.seconds.number / times)) for one in trainers
        )
    assert best(posed.but(fleets=fleets, trainers=trainers), objective) <= best(posed, objective) * SAME


@given(measured_problems(), objectives, st.integers(1, 6))
def test_more_gpus_never_make_a_worse_plan(posed: Posed, objective: Objective, more: int) -> None:
    """In the cluster, or in the stock of a kind; nodes, sizes of instances and other rules as they are."""
    space = posed.space
    if space.gpus is not None:
        wider = posed.but(gpus=space.gpus + more)
    else:
        wider = posed.but(fleets=tuple(replace(one, most=(one.most or 0.0) + more) for one in space.fleets))
    assert best(wider, objective) <= best(posed, objective) * SAME


@given(measured_problems(), objectives, st.data())
def test_a_narrower_space_never_has_a_better_plan(posed: Posed, objective: Objective, data: st.DataObject) -> None:
    """Fewer modes, fewer ways to build either side, or fewer numbers of GPUs."""
    space = posed.space
    narrower = posed.but(
        loops=data.draw(st.sampled_from([space.loops[:1], space.loops[1:], space.loops])),
        fleets=data.draw(st.sampled_from([space.fleets[:1], space.fleets])),
        trainers=data.draw(st.sampled_from([space.trainers[:1], space.trainers])),
        staleness=space.staleness[:1],
        rollout_gpus=space.rollout_gpus or data.draw(st.sampled_from([(), (2.0, 4.0)])),
    )
    if narrower.space.priced == space.priced:  # else dollars would be compared with GPU-hours
        assert best(posed, objective) <= best(narrower, objective) * SAME


@given(predicted_problems(), objectives, st.floats(0.0, 0.3))
@FEW
def test_less_margin_never_makes_a_worse_plan(posed: Posed, objective: Objective, less: float) -> None:
    """What fits with more memory to spare fits with less."""
    looser = posed.but(margin=max(posed.space.margin - less, 0.0))
    assert best(looser, objective) <= best(posed, objective) * SAME


@given(predicted_problems(), objectives)
@FEW
def test_more_nodes_never_make_a_worse_predicted_plan(posed: Posed, objective: Objective) -> None:
    """A node more leaves every smaller plan as it is."""
    if posed.space.gpus is None:
        return
    node = posed.outlook.problem.gpus_per_node or 1.0
    assert best(posed.but(gpus=posed.space.gpus + node), objective) <= best(posed, objective) * SAME


@pytest.mark.parametrize("loop", ["async", "hybrid"])
@pytest.mark.parametrize("samples", [16.0, 64.0, 512.0])
@pytest.mark.parametrize(("instances", "trainer_gpus"), [(1.0, 1.0), (4.0, 2.0), (7.0, 1.0), (2.0, 8.0)])
def test_a_looser_staleness_cap_never_lowers_throughput(
    loop: str, samples: float, instances: float, trainer_gpus: float
) -> None:
    """More samples may be in flight, so each instance is fuller, but for what one with a full cache computes anew."""
    model, gpu = "qwen3-1.7b", "h100-sxm"
    posed = predicted(
        model,
        fleets_of(model, gpu, (1,)),
        trainers_of(
            model, gpu, samples, 2300.0, TriedDegrees(tensor=(1,), pipeline=(1,), context=(1,), recompute=("full",))
        ),
        samples,
    )
    rates = []
    for cap in (1.0, 2.0, 3.0, 4.0, 8.0, 16.0):
        place = Placement(
            loop=loop,  # type: ignore[arg-type]  # one of the parameters
            fleet=posed.space.fleets[0],
            instances=instances,
            trainer=posed.space.trainers[0],
            trainer_gpus=trainer_gpus,
            max_staleness=cap,
        )
        rates.append(float(worked(posed.outlook.central, place)["loop_tokens_per_second"]))
    assert all(later >= earlier / SLOWER for earlier, later in pairwise(rates))
