"""All rates of a loop that somebody measured or said; what is missing of them is predicted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.equations import matching
from rlsize.estimates.figures import apply
from rlsize.facts.figure import Figure, absent
from rlsize.facts.headroom import FULL_HEADROOM, PLAIN_HEADROOM
from rlsize.loop.instance_count import instance_gpus
from rlsize.loop.rates import busy_seconds, consumption, instance_rate, measured_on
from rlsize.loop.workload import batch_tokens

if TYPE_CHECKING:
    from rlsize.loop.said import Said


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


def known_rates(said: Said) -> KnownRates:
    """The rates that are known; faults are noted."""
    said.load_rates()
    batch = batch_tokens(said)
    rate, size, headroom = _rollout(said)
    seconds, measured = _trainer(said, batch)
    return KnownRates(
        batch=batch,
        rate=rate,
        size=size,
        headroom=headroom,
        train_seconds=seconds,
        measured_gpus=measured,
        sync_seconds=said.ask("sync_seconds"),
    )


def _rollout(said: Said) -> tuple[Figure, Figure, Figure]:
    """Rate and size of an instance, and the headroom that goes with it."""
    per_gpu = said.ask("rollout_gpu_tokens_per_second")
    rate, headroom = instance_rate(said, full=PLAIN_HEADROOM if per_gpu.known else FULL_HEADROOM)
    if not rate.known and not per_gpu.known:
        said.used.pop("headroom", None)
        plain = Figure(key="headroom", value=1.0, provenance="default", source="a prediction is of the loop as it runs")
        return rate, absent("gpus_per_instance", "--gpus-per-instance"), plain
    size = instance_gpus(said)
    if not size.known:
        size = said.measured("gpus_per_instance", size)
    if rate.known:
        said.need(size, "a plan counts GPUs, so it must know how many one instance takes")
        return rate, size, headroom
    if not size.known:
        size = said.keep(Figure(key="gpus_per_instance", value=1, provenance="default", source="rates are per GPU"))
    whole = apply("instance_tokens_per_second", matching.pool_rate, gpus=size, gpu_rate=per_gpu)
    return said.keep(whole), size, headroom


def _trainer(said: Said, batch: Figure) -> tuple[Figure, Figure]:
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
