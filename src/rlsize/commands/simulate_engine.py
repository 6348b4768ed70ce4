"""The engine that is simulated: a step time that was said, fitted or predicted, or a rate that stands for one."""

from __future__ import annotations

from math import ceil, inf
from typing import TYPE_CHECKING, Any

from rlsize.commands import asking, predicted
from rlsize.estimates.simulated_engine import StepLine, constant_line, scaled_line
from rlsize.facts.figure import Figure, Provenance
from rlsize.facts.headroom import FULL_HEADROOM
from rlsize.simulator.setting import EngineSetting

if TYPE_CHECKING:
    from rlsize.commands.simulate_asking import Asked
    from rlsize.shell.inputs import Inputs

_USUAL_SLOTS = 256  # of an engine of which nothing else is known
_PARTS = ("step_fixed", "step_sample", "step_kv_token", "step_prompt_token")


def engine_setting(asked: Asked, instances: int, samples: int) -> EngineSetting | None:
    """
    The fleet's engines; None where a fault was noted.

    Args:
        asked: What was asked.
        instances: Rollout instances. [1]
        samples: Samples of an optimizer step. [1]
    """
    inputs = asked.inputs
    concurrency = asked.optional("concurrency")
    origin: Provenance
    origin, why = "given", "the step time that was said"
    line = _said(asked, concurrency, instances, samples)
    if line is None:
        origin, why = "measured", inputs.rates_name
        line = _fitted(inputs, concurrency)
    if line is None:
        origin, why = "predicted", "the predicted engine, or the rate over the slots"
        line = _from_rate(asked, concurrency, instances, samples)
    if line is None:
        return None
    for part in _PARTS:
        inputs.used.pop(part, None)  # told once, as the line that they make
    cache = asked.optional("kv_cache_tokens")
    held = line.kv_tokens if cache is None else cache
    routing: Any = asked.word("routing")
    if not line.fixed + line.sample:
        inputs.fault("an engine step takes no time", "--step-fixed", "give a time above 0")
        return None
    stated = concurrency is not None
    inputs.keep(Figure(key="slots", value=line.slots, provenance="given" if stated else "default"))
    for key, value in (
        ("fixed_step_seconds", line.fixed),
        ("sample_step_seconds", line.sample),
        ("kv_token_step_seconds", line.kv_token),
    ):
        inputs.keep(Figure(key=key, value=value, provenance=origin, source=why))
    return EngineSetting(
        instances=instances,
        slots=line.slots,
        fixed_seconds=line.fixed,
        sample_seconds=line.sample,
        kv_seconds=line.kv_token,
        prefill_seconds=line.prompt_token,
        kv_tokens=inf if held is None else float(int(held)),
        routing=routing,
    )


def _slots(concurrency: float | None, instances: int, samples: int) -> int:
    """Samples that an instance runs: as said, else its share of a batch, within a usual limit."""
    return round(concurrency) if concurrency is not None else min(_USUAL_SLOTS, ceil(samples / instances))


def _said(asked: Asked, concurrency: float | None, instances: int, samples: int) -> StepLine | None:
    """A step time that flags say, or the scenario where no flag says how fast an instance is."""
    flagged, rated = (
        any(asked.said.get(part) is not None for part in _PARTS),
        asked.said.get("per_instance") is not None,
    )
    if flagged and rated:
        asked.inputs.fault("both say how fast an instance is", "--step-fixed --per-instance", "keep one")
    if not flagged and (rated or not any(asked.stated(part) for part in _PARTS)):
        return None
    parts = [asked.number(part) for part in _PARTS]
    slots = _slots(concurrency, instances, samples)
    return StepLine(
        fixed=parts[0],
        sample=parts[1],
        kv_token=parts[2],
        prompt_token=parts[3],
        slots=slots,
        kv_tokens=None,
        batch=float(slots),
    )


def _fitted(inputs: Inputs, concurrency: float | None) -> StepLine | None:
    """The step time that `measure` fitted, from the rates file."""
    measured = inputs.rates.rollout if inputs.rates is not None else None
    if measured is None or measured.step_time is None:
        return None
    fit = measured.step_time
    slots = round(concurrency) if concurrency is not None else measured.at_concurrency
    if slots > 2 * fit.largest_batch:
        inputs.warnings.append(
            f"{inputs.rates_name}: the step time was fitted up to a batch of {fit.largest_batch:.0f}, and {slots} "
            "samples run at once"
        )
    inputs.notes.append(f"The engine step is the one that {inputs.rates_name} fitted over measured steps.")
    cache = measured.kv_cache_tokens
    return StepLine(
        fixed=fit.t0_seconds,
        sample=fit.t1_seconds,
        kv_token=fit.t2_seconds,
        prompt_token=fit.t3_seconds,
        slots=slots,
        kv_tokens=None if cache is None else float(cache),
        batch=float(slots),
    )


def _from_rate(asked: Asked, concurrency: float | None, instances: int, samples: int) -> StepLine | None:
    """A step time from an instance rate: shaped as predicted where that can be, else the same at every batch."""
    inputs = asked.inputs
    text = asked.said.get("per_instance")
    stated = text is not None or inputs.rates is not None or inputs.said("rates.instance_tokens_per_second") is not None
    line = _predicted(asked, concurrency)
    if not stated and line is not None:
        inputs.notes.append("The engine step is predicted: `rlsize predict rollout` builds it up, `measure` fits it.")
        return line
    faults = len(inputs.faults)
    rate, _ = asking.instance_rate(inputs, text, None, default_headroom=FULL_HEADROOM)
    inputs.used.pop("headroom", None)  # what it stands for is simulated
    if not rate.known:
        if len(inputs.faults) == faults:
            inputs.fault("nothing says how fast an instance is", "--per-instance", "give a rate, or --step-fixed")
        return None
    if line is not None:
        return scaled_line(line, rate.number)
    line = constant_line(_slots(concurrency, instances, samples), rate.number)
    inputs.notes.append(
        f"An engine step takes {line.fixed * 1e3:.3g} ms at every batch, as nobody says how it grows with it: "
        "a rates file of `rlsize measure`, --step-fixed and --step-sample, or a model and a GPU do."
    )
    return line


def _predicted(asked: Asked, concurrency: float | None) -> StepLine | None:
    """The predicted engine, where model, GPU and lengths are known; the reason is noted where it cannot be."""
    inputs, said = asked.inputs, asked.said
    if not predicted.wanted(inputs):
        return None
    from rlsize.commands.plans import Said, rollout_plan, rollout_setting
    from rlsize.errors import InputError
    from rlsize.estimates import planned
    from rlsize.estimates.constants_step import STAGE as STEP
    from rlsize.estimates.simulated_engine import predicted_line
    from rlsize.facts.records.record import Refused
    from rlsize.shell.beliefs import belief_of

    names = ("prompt_tokens", "response_tokens", "response_cv", "max_response_tokens", "gpus_per_instance")
    numbers = {name: said.get(name) for name in names}
    apart = inputs.apart()
    try:
        plan = rollout_plan(apart, Said(model=said.get("model"), gpu=said.get("gpu"), numbers=numbers))
        stages = (*planned.ROLLOUT_STAGES, STEP)
        belief = belief_of(inputs, said.get("calibration"), *stages, planned=rollout_setting(plan))
        return predicted_line(plan, belief.central(), concurrency)
    except (InputError, Refused) as error:
        inputs.unpredicted["instance_tokens_per_second"] = str(error).splitlines()[0]
        return None
