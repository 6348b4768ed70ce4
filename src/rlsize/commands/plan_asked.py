"""What flags say about a loop that is planned, by topic, and the rates that are known of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlsize.commands import asking, flags
from rlsize.commands.predict_rollout_flags import EngineFlags
from rlsize.commands.predict_step_flags import LoopFlags, StepFlags
from rlsize.commands.predict_train_flags import LayoutFlags, Models, Trainer, Work
from rlsize.equations import matching
from rlsize.estimates.working import apply
from rlsize.facts.figure import Figure, absent
from rlsize.facts.headroom import FULL_HEADROOM, PLAIN_HEADROOM
from rlsize.shell.rates import load, measured_rate

if TYPE_CHECKING:
    from rlsize.shell.inputs import Inputs

NOTHING_SAID = StepFlags(
    named=(None, None),
    loop=LoopFlags(),
    engine=EngineFlags(),
    work=Work(),
    cap=None,
    layout=LayoutFlags(),
    trainer=Trainer(),
    models=Models(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RateFlags:
    """What the flags say about rates that are known; None where one was not given."""

    per_instance: str | None = None
    accept_lower_bound: bool = False
    headroom: str | None = None
    gpus_per_instance: str | None = None
    consume: str | None = None
    train_seconds: str | None = None
    measured_trainer_gpus: str | None = None
    rollout_rate: str | None = None
    trainer_rate: str | None = None
    sync_seconds: str | None = None
    batch_tokens: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFlags:
    """What the flags say about prices; None where one was not given."""

    gpu_hour: str | None = None
    rollout_gpu_hour: str | None = None
    trainer_gpu_hour: str | None = None
    price: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFlags:
    """
    What the flags of a plan say, by topic.

    Args:
        step: The loop, as `predict step` asks for it.
        rates: Rates that are known.
        prices: What GPUs cost.
        steps: Optimizer steps of the run.
        calibration: A calibration file.
        seed: Of the draws behind bands.
    """

    step: StepFlags = NOTHING_SAID
    rates: RateFlags = field(default_factory=RateFlags)
    prices: PriceFlags = field(default_factory=PriceFlags)
    steps: str | None = None
    calibration: str | None = None
    seed: str = "0"


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
    """

    batch: Figure
    rate: Figure
    size: Figure
    headroom: Figure
    train_seconds: Figure
    measured_gpus: Figure
    sync_seconds: Figure

    @property
    def both(self) -> bool:
        """Whether both sides are known, so that nothing needs to be predicted."""
        return self.rate.known and self.train_seconds.known


def known_rates(inputs: Inputs, said: PlanFlags) -> KnownRates:
    """The rates that are known; faults are noted."""
    rates, work = said.rates, said.step.work
    load(inputs, rates.per_instance, accept_lower_bound=rates.accept_lower_bound)
    batch = asking.batch_tokens(inputs, rates.batch_tokens, work.prompts, work.group, work.response_tokens)
    rate, size, headroom = _rollout(inputs, rates)
    seconds, measured = _trainer(inputs, rates, batch)
    sync = inputs.number(
        "sync_seconds", "--sync-seconds", rates.sync_seconds, flags.SECONDS_OR_NONE, scenario="rates.sync_seconds"
    )
    return KnownRates(
        batch=batch,
        rate=rate,
        size=size,
        headroom=headroom,
        train_seconds=seconds,
        measured_gpus=measured,
        sync_seconds=sync,
    )


def _rollout(inputs: Inputs, said: RateFlags) -> tuple[Figure, Figure, Figure]:
    """Rate and size of an instance, and the headroom that goes with it."""
    per_gpu = inputs.number(
        "rollout_gpu_tokens_per_second",
        "--rollout-tps",
        said.rollout_rate,
        flags.TOKEN_RATE,
        scenario="rates.rollout_gpu_tokens_per_second",
    )
    usual = PLAIN_HEADROOM if per_gpu.known else FULL_HEADROOM
    if inputs.rates is not None and inputs.rates.instance_tokens_per_second is not None:
        rate, headroom = measured_rate(inputs, said.headroom, FULL_HEADROOM)
        return rate, _size(inputs, said), headroom
    rate = inputs.number(
        "instance_tokens_per_second",
        "--per-instance",
        said.per_instance,
        flags.TOKEN_RATE,
        scenario="rates.instance_tokens_per_second" if inputs.rates is None and not inputs.rates_failed else "",
    )
    if not rate.known and not per_gpu.known:
        return rate, absent("gpus_per_instance", "--gpus-per-instance"), _plain()
    headroom = inputs.number(
        "headroom",
        "--headroom",
        said.headroom,
        flags.HEADROOM,
        scenario="rates.headroom",
        default=usual,
        why="default for a typed rate" if usual < 1 else "rates per GPU are taken as they are",
    )
    if rate.known:
        size = _size(inputs, said)
        inputs.need(size, "a plan counts GPUs, so it must know how many one instance takes")
        return rate, size, headroom
    size = _size(inputs, said)
    if not size.known:
        size = inputs.keep(Figure(key="gpus_per_instance", value=1, provenance="default", source="rates are per GPU"))
    whole = apply("instance_tokens_per_second", matching.pool_rate, gpus=size, gpu_rate=per_gpu)
    return inputs.keep(whole), size, headroom


def _size(inputs: Inputs, said: RateFlags) -> Figure:
    return asking.gpus_per_instance(inputs, said.gpus_per_instance)


def _plain() -> Figure:
    return Figure(key="headroom", value=1.0, provenance="default", source="a prediction is of the loop as it runs")


def _trainer(inputs: Inputs, said: RateFlags, batch: Figure) -> tuple[Figure, Figure]:
    """Busy seconds of a step, and the GPUs that they were measured on."""
    key = "train_seconds"
    per_gpu = inputs.number(
        "trainer_gpu_tokens_per_second",
        "--trainer-tps",
        said.trainer_rate,
        flags.TOKEN_RATE,
        scenario="rates.trainer_gpu_tokens_per_second",
    )
    seconds = asking.train_seconds(inputs, said.train_seconds)
    consumed = inputs.number(
        "consumption_tokens_per_second",
        "--consume",
        said.consume,
        flags.TOKEN_RATE,
        scenario="rates.consumption_tokens_per_second",
    )
    if not consumed.known:
        consumed = inputs.measured("consumption_tokens_per_second", consumed)
    if not seconds.known and consumed.known:
        seconds = inputs.keep(apply(key, matching.train_time, tokens_per_step=batch, consumption=consumed))
    if seconds.known:
        return seconds, _measured_on(inputs, said)
    one = Figure(key="measured_trainer_gpus", value=1.0, provenance="given", source="a rate per GPU")
    if per_gpu.known and batch.known:
        return inputs.keep(apply(key, matching.train_time, tokens_per_step=batch, consumption=per_gpu)), one
    if per_gpu.known:
        inputs.need(batch, "give --batch-tokens, or prompts, group and response tokens")
    return absent(key, "--train-seconds"), one


def _measured_on(inputs: Inputs, said: RateFlags) -> Figure:
    """GPUs behind the train seconds: said, those of the rates file, or the scenario's trainer."""
    pool = inputs.number(
        "measured_trainer_gpus",
        "--measured-trainer-gpus",
        said.measured_trainer_gpus,
        flags.COUNT,
        scenario="" if inputs.rates is not None and inputs.rates.trainer_gpus else "placement.trainer_gpus",
    )
    if not pool.known and inputs.rates is not None and inputs.rates.trainer_gpus:
        source = inputs.rates_name
        pool = Figure(
            key="measured_trainer_gpus", value=inputs.rates.trainer_gpus, provenance="measured", source=source
        )
        inputs.keep(pool)
    inputs.need(pool, "train seconds hold for a number of GPUs: say which")
    return pool
