"""The engine that is played: a step time that was said or fitted, else the loop's, else a rate that stands for one."""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import TYPE_CHECKING

from rlsize.estimates.simulated_engine import StepLine, constant_line
from rlsize.facts.figure import Figure, Provenance
from rlsize.loop.rates import instance_rate
from rlsize.planner.simulation import USUAL_SLOTS, engine_setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.shell.inputs import Inputs
    from rlsize.simulator.setting import EngineSetting

_PARTS = ("step_fixed", "step_sample", "step_kv_token", "step_prompt_token")


def engine_of(inputs: Inputs, base: EngineSetting | None, count: int, samples: int) -> EngineSetting | None:
    """
    The fleet's engines; None where a fault was noted.

    Args:
        inputs: What was said.
        base: The engines of the loop; None where fleet and trainer were said apart.
        count: Rollout instances. [1]
        samples: Samples of an optimizer step. [1]
    """
    stated = inputs.ask("concurrency")
    slots = round(stated.number) if stated.known else min(USUAL_SLOTS, ceil(samples / count))
    origin: Provenance
    line, origin, why = _said(inputs, slots), "given", "the step time that was said"
    if line is None:
        line, origin, why = _fitted(inputs, slots if stated.known else None), "measured", inputs.rates_name
    routing, cache = inputs.choose("routing"), inputs.ask("kv_cache_tokens")
    found = base
    if line is not None:
        found = engine_setting(line, count)
    else:
        origin, why = "predicted", "the predicted engine, or the rate over the slots"
        if base is None:
            line = _from_rate(inputs, slots)
            found = None if line is None else engine_setting(line, count)
        elif not inputs.gives("instance_tokens_per_second"):
            inputs.notes.append(
                "The engine step is predicted: `rlsize predict rollout` builds it up, `measure` fits it."
            )
    if found is None:
        return None
    for part in _PARTS:
        inputs.used.pop(part, None)  # told once, as the line that they make
    if not found.fixed_seconds + found.sample_seconds:
        inputs.fault("an engine step takes no time", "--step-fixed", "give a time above 0")
        return None
    inputs.keep(Figure(key="slots", value=found.slots, provenance="given" if stated.known else "default"))
    for key, value in (
        ("step_fixed", found.fixed_seconds),
        ("step_sample", found.sample_seconds),
        ("step_kv_token", found.kv_seconds),
    ):
        inputs.keep(Figure(key=key, value=value, provenance=origin, source=why))
    held = float(int(cache.number)) if cache.known else found.kv_tokens
    return replace(found, routing=routing, kv_tokens=held)  # type: ignore[arg-type]  # one of the rows' words


def _said(inputs: Inputs, slots: int) -> StepLine | None:
    """A step time that flags say, or the scenario where no flag says how fast an instance is."""
    flagged, rated = any(map(inputs.by_flag, _PARTS)), inputs.by_flag("instance_tokens_per_second")
    if flagged and rated:
        inputs.fault("both say how fast an instance is", "--step-fixed --per-instance", "keep one")
    if not flagged and (rated or not any(map(inputs.gives, _PARTS))):
        return None
    said = {part: inputs.ask(part) for part in _PARTS}
    return _line({part: figure.number if figure.known else 0.0 for part, figure in said.items()}, slots)


def _line(parts: Mapping[str, float], slots: int, cache: float | None = None) -> StepLine:
    """An engine of whose step the parts are known."""
    seconds = {part.removeprefix("step_"): value for part, value in parts.items()}
    return StepLine(**seconds, slots=slots, kv_tokens=cache, batch=float(slots))


def _fitted(inputs: Inputs, stated: int | None) -> StepLine | None:
    """The step time that `measure` fitted, from the rates file."""
    measured = inputs.rates.rollout if inputs.rates is not None else None
    if measured is None or measured.step_time is None:
        return None
    fit, slots = measured.step_time, measured.at_concurrency if stated is None else stated
    if slots > 2 * fit.largest_batch:
        inputs.warnings.append(
            f"{inputs.rates_name}: the step time was fitted up to a batch of {fit.largest_batch:.0f}, and {slots} "
            "samples run at once"
        )
    inputs.notes.append(f"The engine step is the one that {inputs.rates_name} fitted over measured steps.")
    cache = measured.kv_cache_tokens
    parts = zip(_PARTS, (fit.t0_seconds, fit.t1_seconds, fit.t2_seconds, fit.t3_seconds), strict=True)
    return _line(dict(parts), slots, None if cache is None else float(cache))


def _from_rate(inputs: Inputs, slots: int) -> StepLine | None:
    """A step time that is the same at every batch, from an instance rate."""
    faults = len(inputs.faults)
    rate, _ = instance_rate(inputs)
    inputs.used.pop("headroom", None)  # what it stands for is simulated
    if not rate.known:
        if len(inputs.faults) == faults:
            inputs.fault("nothing says how fast an instance is", "--per-instance", "give a rate, or --step-fixed")
        return None
    line = constant_line(slots, rate.number)
    inputs.notes.append(
        f"An engine step takes {line.fixed * 1e3:.3g} ms at every batch, as nobody says how it grows with it: "
        "a rates file of `rlsize measure`, --step-fixed and --step-sample, or a whole loop with model and GPUs do."
    )
    return line
