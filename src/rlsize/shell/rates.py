"""A file of rates, or of response lengths, as the input of a size: rates, their doubts, the match asked of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.errors import InputError
from rlsize.estimates.figures import measured
from rlsize.facts.figure import Figure
from rlsize.loop.plausible import judge
from rlsize.loop.prices import gpu_hours
from rlsize.loop.rates import waste
from rlsize.loop.sides import instance_size
from rlsize.shell.inputs import RATES_FILES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.facts.rates import Rates
    from rlsize.loop.sides import Sides
    from rlsize.planner.fleet import FleetQuestion
    from rlsize.shell.inputs import Inputs

MOST_DOUBTS = 3  # of a rates file, repeated where it is used
OTHER_WORK = 0.25  # relative difference of a length or a group size from which a rate holds for other work


def load(inputs: Inputs) -> None:
    """
    Read the rates file that --per-instance or the scenario names, if either does, before anything else is asked.

    A lower bound is a fault unless it is accepted: a rate that was asked for, not reached, sizes an ever larger fleet.
    """
    text, said = inputs.texts.get("instance_tokens_per_second"), inputs.said("rates.instance_tokens_per_second")
    if text is not None and str(text).endswith(RATES_FILES):
        file = str(text)
    elif text is None and isinstance(said, str) and inputs.file is not None:
        file = str(inputs.file.folder / said)
    else:
        return
    from rlsize.readers.saved_files import read_rates

    try:
        inputs.rates, inputs.rates_name = read_rates(file), file
        inputs.asked.add("instance_tokens_per_second")
    except InputError as error:
        inputs.blame(error, file)
        inputs.rates_failed = True
        return
    inputs.warnings += _doubts(inputs, inputs.rates, file)
    rate = inputs.rates.instance_tokens_per_second
    if rate is not None and rate.lower_bound:
        what = f"{rate.mean:,.1f} tok/s is a lower bound: {rate.why or 'the engines were not saturated'}"
        if inputs.texts.get("accept_lower_bound"):
            inputs.warnings.append(f"{file}: {what}; the true match is this many instances or fewer")
        else:
            measure = "measure under load (lift the backpressure for the window), or give --accept-lower-bound"
            inputs.fault(what, file, f"sizing from demand ratchets the fleet upwards: {measure}")


def _doubts(inputs: Inputs, rates: Rates, file: str) -> Iterator[str]:
    """What casts doubt on a rates file for this question: what its measurement said, and what it was measured at."""
    if rates.partial:
        yield f"{file} is partial: {rates.partial}"
    for doubt in rates.doubts[:MOST_DOUBTS]:
        yield f"{file}: {doubt}"
    if len(rates.doubts) > MOST_DOUBTS:
        yield f"{file}: {len(rates.doubts) - MOST_DOUBTS} more doubts; `rlsize measure --show {file}` lists them"
    for what, place, seen in (
        ("response tokens", "workload.response_tokens.mean", rates.conditions.mean_response_tokens),
        ("prompt tokens", "workload.prompt_tokens", rates.conditions.mean_prompt_tokens),
        ("samples of a prompt", "workload.group_size", rates.conditions.group_size),
    ):
        planned = inputs.said(place)
        if planned and seen and abs(seen / planned - 1.0) > OTHER_WORK:
            yield f"{file} was measured with {seen:,.0f} {what}, and the scenario plans {planned:,.0f}"


def trainer_gpus(inputs: Inputs) -> Figure:
    """
    GPUs of the trainer; a fault where a rates file measured its train step on another number.

    Other numbers of GPUs train at another rate, and not in proportion; that is for a prediction to say.

    Args:
        inputs: What was asked and used so far; consumption is asked before.
    """
    pool = inputs.ask("trainer_gpus")
    measured = inputs.rates.trainer_gpus if inputs.rates is not None else None
    rate = inputs.used.get("consumption_tokens_per_second") or inputs.used.get("train_seconds")
    behind = [] if rate is None else [rate, *rate.inputs.values()]
    from_file = any(figure.provenance == "measured" for figure in behind)
    if measured is not None and from_file and pool.known and pool.number != measured:
        gpus = "1 GPU" if measured == 1 else f"{measured} GPUs"
        what = f"the train step was measured on {gpus}, and the trainer has {pool.number:.0f}"
        inputs.fault(what, inputs.rates_name, "measure on as many GPUs, or give --consume or --train-seconds")
    return pool


def fleet_question(inputs: Inputs, both: Sides) -> FleetQuestion:
    """
    What is asked about the fleet that matches a trainer; faults are noted.

    Args:
        inputs: What was asked and used so far.
        both: What both sides of the loop do.
    """
    from rlsize.planner.fleet import FleetQuestion

    prices = gpu_hours(inputs)
    count = inputs.ask("instances")
    question = FleetQuestion(
        consumption=both.consumption,
        instance_rate=both.rate,
        headroom=both.headroom,
        tokens_generated_per_trained_token=waste(inputs),
        instances=count if count.known else None,
        observed_instances=_observed_instances(inputs),
        batch_tokens=both.batch,
        gpus_per_instance=instance_size(inputs, both),
        trainer_gpus=both.trainer_gpus or trainer_gpus(inputs),
        rollout_gpu_hour=prices[0],
        trainer_gpu_hour=prices[1],
    )
    if both.loop is None:
        judge(inputs, "trainer", question.consumption, question.trainer_gpus, "the trainer's consumption")
        judge(inputs, "rollout", question.instance_rate, question.gpus_per_instance, "an instance's rate")
    return question


def _observed_instances(inputs: Inputs) -> Figure | None:
    """
    Instances of an observed fleet whose rate is only a lower bound; None where the rate is what they can do.

    A fleet that was held back and met the demand all the same is large enough, whatever its instances could do.
    """
    rate = inputs.rates.instance_tokens_per_second if inputs.rates is not None else None
    if rate is None or not rate.lower_bound:
        return None
    return inputs.keep(measured("observed_instances", rate.instances, inputs.rates_name))


def lengths_of_file(inputs: Inputs) -> tuple[float, ...]:
    """
    Lengths of a file, if one is named; their mean is the loop's where nobody says another.

    Args:
        inputs: What was said; takes faults and notes.
    """
    named, _ = inputs.name("lengths_file")
    if named is None:
        return ()
    from rlsize.readers.lengths import read_lengths

    path = named if inputs.by_flag("lengths_file") or not inputs.file else str(inputs.file.folder / named)
    if inputs.by_flag("response_tokens"):
        inputs.fault("--lengths says the mean already", "--response-tokens", "leave one of them out")
    try:
        values = read_lengths(path)
    except InputError as error:
        inputs.blame(error, path)
        inputs.texts.setdefault("response_tokens", "1")  # so that no second fault is told
        return ()
    mean = sum(values) / len(values)
    if not inputs.gives("response_tokens"):
        inputs.texts["response_tokens"] = f"{mean:.17g}"
    elif not inputs.by_flag("response_tokens"):
        inputs.notes.append(f"The lengths of {path} are drawn from: their mean is {mean:,.0f} tokens.")
    return values
