"""Rates that somebody measured or said; what is missing of them is predicted."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.equations import imbalance, matching
from rlsize.equations.headroom import standard_error
from rlsize.estimates.figures import apply, measured
from rlsize.estimates.headroom import headroom_left
from rlsize.facts.figure import Figure, absent
from rlsize.facts.headroom import FULL_HEADROOM, HEADROOM_PARTS, PLAIN_HEADROOM
from rlsize.frozen import dataclass
from rlsize.loop.instance_count import instance_gpus
from rlsize.loop.late import late_samples
from rlsize.loop.step_table import rate_of_points
from rlsize.loop.workload import agree, batch_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.facts.rates import InstanceRate
    from rlsize.loop.said import Said


def busy_seconds(said: Said) -> Figure:
    """Busy trainer seconds of a step: said, or those of the rates file."""
    stated = said.ask("train_seconds")
    return stated if stated.known else said.measured("train_seconds", stated)


def consumption(said: Said) -> Figure:
    """Response tokens trained per second: said, or those of the rates file."""
    stated = said.ask("consumption_tokens_per_second")
    return stated if stated.known else said.measured("consumption_tokens_per_second", stated)


def consumed(said: Said, batch: Figure, train: Figure) -> Figure:
    """
    Response tokens trained per second: said, measured, or a step's batch over its busy seconds.

    Args:
        said: What was said; what flags say, or the scenario alone, must agree.
        batch: Response tokens of a step. [token]
        train: Busy seconds of a step. [s]
    """
    key = "consumption_tokens_per_second"
    stated = consumption(said)
    derived = apply(key, matching.consumption, tokens_per_step=batch, train_seconds=train)
    if not derived.known:
        return stated
    of_the_batch = ("batch_tokens", "prompts_per_step", "group_size", "samples_per_step", "response_tokens")
    flagged = said.by_flag("train_seconds"), any(map(said.by_flag, of_the_batch))
    if stated.known:
        if all(flagged) if said.by_flag(key) else not any(flagged):
            agree(said, stated, derived, "tok/s", "batch over train seconds")
        if said.by_flag(key) or not any(flagged):
            return stated
    if train.band is not None and not batch.band:  # the one is the other turned over, so their bands are
        low, high = train.band
        ends = matching.consumption(batch.number, high), matching.consumption(batch.number, low)
        derived = replace(derived, band=ends)
    return said.keep(derived)


def instance_rate(said: Said, *, full: float = FULL_HEADROOM) -> tuple[Figure, Figure]:
    """
    Response tokens per second of one instance, and the headroom that goes with it; absent where nobody says.

    A typed number keeps the whole headroom; a rates file lists what its rate holds already.

    Args:
        said: What was said.
        full: The headroom of a rate that holds nothing of it.
    """
    said.load_rates()
    rates = said.rates
    if rates is not None:
        rate = rates.instance_tokens_per_second
        if rate is None:
            todo = "save one with `rlsize observe URL... --save rates.yaml`"
            said.fault("holds no instance_tokens_per_second", said.rates_name, todo)
            return absent("instance_tokens_per_second", "--per-instance"), absent("headroom", "--headroom")
        source = f"{said.rates_name}: {rates.source.method}, {rates.measured_at}"
        spread = 0.0 if rate.lower_bound else _deviation(rate)  # what a bound leaves open has no two-sided spread
        figure = measured("instance_tokens_per_second", rate.mean, source, deviation=spread)
        return said.keep(replace(figure, least=0.0)), _headroom_left(said, rates.includes, full)
    why = "default for a typed rate" if full < 1 else "rates are taken as they are"
    stated = said.ask("instance_tokens_per_second")
    plain = stated if stated.known else rate_of_points(said)
    return plain, said.ask("headroom", default=full, why=why)


def _deviation(rate: InstanceRate) -> float:
    """Standard error of the mean: over the instances, or of a single one over time, where that was measured."""
    if rate.spread is None or rate.instances < 2:  # noqa: PLR2004 (a spread needs two)
        return rate.standard_error or 0.0
    return float(standard_error(rate.spread, rate.instances))


def _headroom_left(said: Said, includes: Sequence[str], full: float) -> Figure:
    stated = said.ask("headroom")
    if stated.known:
        return stated
    held = [part for part in HEADROOM_PARTS if part in includes]
    rest = [part for part in HEADROOM_PARTS if part not in includes]
    left = headroom_left(includes, full)
    why = _why(said.rates_name, left.number, full, held, rest)
    if not math.isclose(full, 1.0) and why not in said.notes:
        said.notes.append(why)
    return said.keep(left)


def _why(file: str, left: float, full: float, held: Sequence[str], rest: Sequence[str]) -> str:
    if not held:
        return f"Headroom {left:.3g}: {file} says of nothing that its rate includes it."
    named = ", ".join(part.replace("_", " ") for part in held)
    if not rest:
        return f"Headroom 1: the rate in {file} already includes {named}."
    missing = ", ".join(part.replace("_", " ") for part in rest)
    held_already = f"the rate in {file} already includes {named}"
    return f"Headroom {left:.3g}, not {full:g}: {held_already}; what is left is for {missing}."


_NONE_LOST = Figure(key="oversampling", value=1.0, provenance="default", source="what is carried over is not lost")
_BUSY = ("train_seconds", "consumption_tokens_per_second")


def measured_on(said: Said) -> Figure:
    """GPUs behind the train seconds: said, those of the rates file, or the trainer's own."""
    pool = said.ask("measured_trainer_gpus")
    if not pool.known and said.rates is not None and said.rates.trainer_gpus:
        pool = said.keep(measured("measured_trainer_gpus", said.rates.trainer_gpus, said.rates_name))
    if not pool.known:
        shared = said.said("placement.mode") == "colocated" and not said.gives("trainer_gpus")
        own = said.used.get("trainer_gpus") or said.ask(
            "gpus" if shared else "trainer_gpus"
        )  # all of them, where both sides share them
        pool = said.keep(Figure(key="measured_trainer_gpus", value=own.value, source=own.source, missing=own.missing))
    if not pool.known:  # the one number that a plan is asked for
        text, source = said.name("searched_trainer_gpus")
        one = said.instead(measured_trainer_gpus=str(text)) if text and "," not in str(text) else None
        pool = pool if one is None else said.keep(replace(one.ask("measured_trainer_gpus"), source=source))
    if not pool.known:
        where = next((figure.source for key in _BUSY if (figure := said.used.get(key)) and figure.source), pool.missing)
        what = "busy time holds for a number of GPUs, and nobody says which"
        said.fault(what, where, "give rates.measured_trainer_gpus (--measured-trainer-gpus), or the trainer's GPUs")
    return pool


def _typed(said: Said, key: str) -> bool:
    """Whether a flag or `--set` says a quantity, and no file."""
    return said.place(key).startswith("--")


def waste(said: Said) -> Figure:
    """Response tokens generated for each one that is trained: said, worked out of its causes, or 1."""
    key, causes = "tokens_generated_per_trained_token", ("oversampling", "kept_fraction", "dropped_fraction")
    told = [one for one in causes if said.gives(one)]
    if told and said.gives(key) and _typed(said, key) and not any(_typed(said, one) for one in told):
        for one in told:  # of a file, and what is typed goes before that
            said.drop(one)
        told = []
    if not told:
        return said.ask(key)
    if said.gives(key):
        both = ", ".join(said.place(one) for one in (key, *told))
        said.fault("the waste and its causes both say it", both, "leave one of them out")
    parts = {one: said.ask(one) for one in causes}
    if said.gives("oversampling") and late_samples(said.apart(), "synchronous")["synchronous"] == "continue":
        parts["oversampling"] = _NONE_LOST
    return said.keep(apply(key, imbalance.tokens_generated_per_trained_token, **parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRates:
    """
    Rates that somebody measured or said; absent where they are to be predicted.

    Args:
        batch: Response tokens per optimizer step. [token]
        rate: Response tokens per second of one instance. [token/s]
        size: GPUs of one instance. [1]
        headroom: Derating of that rate. [1]
        train_seconds: Busy trainer seconds of a step. [s]
        measured_gpus: GPUs that they were measured on. [1]
        sync_seconds: Pause of a weight sync. [s]
        overhead_seconds: What of a step belongs to no phase. [s]
    """

    batch: Figure
    rate: Figure
    size: Figure
    headroom: Figure
    train_seconds: Figure
    measured_gpus: Figure
    sync_seconds: Figure
    overhead_seconds: Figure

    @property
    def both(self) -> bool:
        """Whether both sides are known, so that nothing needs to be predicted."""
        return self.rate.known and self.train_seconds.known


def known_rates(said: Said) -> KnownRates:
    """The rates that are known; faults are noted."""
    said.load_rates()
    batch = batch_tokens(said)
    rate, size, headroom = _fleets_rate(said)
    seconds, pool = _trainers_seconds(said, batch)
    return KnownRates(
        batch=batch,
        rate=rate,
        size=size,
        headroom=headroom,
        train_seconds=seconds,
        measured_gpus=pool,
        sync_seconds=said.ask("sync_seconds"),
        overhead_seconds=said.ask("overhead_seconds"),
    )


def _fleets_rate(said: Said) -> tuple[Figure, Figure, Figure]:
    """Rate and size of an instance, and the headroom that goes with it."""
    per_gpu = said.ask("rollout_gpu_tokens_per_second")
    rate, headroom = instance_rate(said, full=PLAIN_HEADROOM if per_gpu.known else FULL_HEADROOM)
    if not rate.known and not per_gpu.known:
        said.drop("headroom")
        plain = Figure(key="headroom", value=1.0, provenance="default", source="a prediction is of the loop as it runs")
        return rate, absent("gpus_per_instance", "--gpus-per-instance"), plain
    size = instance_gpus(said)
    if rate.known:
        said.need(size, "a plan counts GPUs, so it must know how many one instance takes")
        return rate, size, headroom
    if not size.known:
        size = said.keep(Figure(key="gpus_per_instance", value=1, provenance="default", source="rates are per GPU"))
    whole = apply("instance_tokens_per_second", matching.pool_rate, gpus=size, gpu_rate=per_gpu)
    return said.keep(whole), size, headroom


def _trainers_seconds(said: Said, batch: Figure) -> tuple[Figure, Figure]:
    """Busy seconds of a step, and the GPUs that they were measured on."""
    key, per_gpu, seconds = "train_seconds", said.ask("trainer_gpu_tokens_per_second"), busy_seconds(said)
    rate = consumption(said)
    if not seconds.known and rate.known:
        seconds = said.keep(apply(key, matching.train_time, tokens_per_step=batch, consumption=rate))
    if seconds.known:
        return seconds, measured_on(said)
    one = Figure(key="measured_trainer_gpus", value=1.0, provenance="given", source="a rate per GPU")
    if per_gpu.known and batch.known:
        return said.keep(apply(key, matching.train_time, tokens_per_step=batch, consumption=per_gpu)), one
    if per_gpu.known:
        said.need(batch, "give --batch-tokens, or prompts, group and response tokens")
    return absent(key, "--train-seconds"), one
