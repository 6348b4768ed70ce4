"""`rlsize predict step`: how long an optimizer step takes, where it goes, and which mode is the quickest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError
from rlsize.facts.records.record import Refused
from rlsize.reports.report import Report
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import ALGORITHM, ANSWER, INSTANCE, LOOP, TRAINER, WORKLOAD, asks

if TYPE_CHECKING:
    from rlsize.estimates.step_loops import LoopPlan, Way
    from rlsize.loop.resolve import Loop


@asks(
    Loop=LOOP,
    Workload=WORKLOAD,
    Rollout_instances=INSTANCE,
    Trainer=TRAINER,
    Passes=ALGORITHM,
    Inputs=ANSWER,
)
def predict_step(inputs: Inputs) -> Report:
    """
    How long an optimizer step of an RL loop takes, where it goes, and which mode is the quickest.

    Example:  rlsize predict step --model qwen3-8b --gpu h100-sxm --mode async --rollout-gpus 8 --trainer-gpus 8
    --prompts 64 --group 16 --response-tokens 2k
    """
    from rlsize.estimates.step_assumptions import assumptions
    from rlsize.estimates.step_outlook import step_outlook
    from rlsize.loop.resolve import resolve
    from rlsize.planner.step_ways import other_ways
    from rlsize.reports.predict_step import predict_step_report, step_does_not_fit_report

    loop = resolve(inputs)
    if loop.stages is None:
        raise InputError(*inputs.faults or [Fault("the model is missing", "--model", "name a profile")])
    plan, belief = loop.stages.plan, loop.stages.belief
    values = belief.central()
    if loop.place is None:
        return step_does_not_fit_report(plan, loop.refused, _way_out(loop), inputs.shown(), inputs.warnings)
    plan = replace(plan, way=_way(loop))
    try:
        others = other_ways(plan, loop.pools.gpus.number, values, split=loop.pools.split)
        outlook = step_outlook(plan, others, belief, loop.outlook.seed)
        assumed = assumptions(plan, values, _assumed(inputs))
    except Refused as refusal:
        raise InputError(Fault(str(refusal), "--gpus", "change GPUs or layout")) from None
    return predict_step_report(outlook, assumed, inputs.shown(), inputs.warnings, inputs.notes)


def _way(loop: Loop) -> Way:
    """How the loop is run."""
    from rlsize.estimates.step_loops import Way

    place = loop.place
    if place is None:
        raise TypeError("a loop that cannot run has no way")
    return Way(loop=place.loop, rollout_gpus=float(place.rollout_gpus), trainer_gpus=float(place.trainer_gpus))


def _way_out(loop: Loop) -> str:
    """What would make the loop possible."""
    stages = loop.stages
    if stages is None:
        return ""
    plan: LoopPlan = stages.plan
    if isinstance(plan.engines[loop.pools.shared], str):
        fits = stages.fits
        return f"It would fit with --rollout-tensor-parallel {fits}." if fits else "No tensor parallelism holds it."
    from rlsize.planner.step_ways import fitting_trainer

    gpus = fitting_trainer(plan, stages.belief.central())
    if gpus is None:
        return "More trainer GPUs alone do not help: shard it further, or offload the optimizer (--offload)."
    return f"Its states fit on {gpus:g} trainer GPUs, or with --offload on fewer; rlsize memory bills all of it."


def _assumed(inputs: Inputs) -> frozenset[str]:
    """Keys of inputs that matter and that nobody gave."""
    asked = ("memory_fraction", "rollout_tensor_parallel", "kv_dtype", "response_cv", "max_staleness", "mode")
    keys = {key for key in asked if key in inputs.used and inputs.used[key].provenance == "default"}
    keys |= set() if inputs.gives("max_response_tokens") else {"max_response_tokens"}
    keys |= set() if any(map(inputs.gives, ("old_logprob", "reference", "logprob_passes"))) else {"logprob_passes"}
    keys |= set() if inputs.gives("offload") else {"offload"}
    keys |= set() if any(map(inputs.gives, ("compiled", "native_attention"))) else {"compiled"}
    return frozenset(keys)
