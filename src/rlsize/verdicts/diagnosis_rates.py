"""The rates that a diagnosis stands on: what the trainer uses, what the fleet makes, and who waits for whom."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.equations import imbalance, matching, rollout_batch, train_step
from rlsize.estimates.headroom import headroom_left
from rlsize.estimates.working import apply, rounded
from rlsize.facts.figure import Figure, absent
from rlsize.planner.rounding import rounded_up

if TYPE_CHECKING:
    from rlsize.facts.evidence import Evidence

FREE = 0.5  # an instance with work waiting for less of the window than this has room to spare
HIDDEN = 0.2  # share of a step that is neither logged as waiting nor as work, from which waits are said to lie
NO_WAIT = 0.05  # logged waits under this share of the step say that nobody waits
AGREE = 0.1  # rates within this are one rate


def consumption_of(evidence: Evidence) -> Figure:
    """Response tokens per second of the busy trainer: as given, else as the log has it."""
    if evidence.consumption.known:
        return evidence.consumption
    return evidence.run.figure("consumption_tokens_per_second", "--consume, or a training log")


def fleet_rate_of(evidence: Evidence) -> Figure:
    """Response tokens per second of all instances, by wall clock; of a log where no engine was read."""
    fleet = evidence.fleet
    if fleet is not None and fleet.mean is not None:
        total = sum(instance.tokens_per_second or 0.0 for instance in fleet.used)
        source = f"{len(fleet.used)} instances over {fleet.window_seconds:.0f} s"
        return Figure(key="fleet_tokens_per_second", value=total, provenance="measured", source=source)
    return evidence.run.figure("fleet_tokens_per_second", "the engines' pages")


def required_of(evidence: Evidence) -> Figure:
    """Response tokens per second that the fleet must make for a trainer that never waits."""
    return apply(
        "required_tokens_per_second",
        matching.required_supply,
        consumption=consumption_of(evidence),
        tokens_generated_per_trained_token=evidence.waste,
    )


def hidden_of(evidence: Evidence) -> Figure:
    """Share of a step that the log books neither as work, sync nor waiting."""
    run = evidence.run
    return apply(
        "unexplained_fraction",
        train_step.time_share,
        part=run.figure("other_seconds"),
        whole=run.figure("step_seconds"),
    )


def waits_lie(evidence: Evidence) -> bool:
    """Whether logged waits read near zero although much of the step is no work."""
    hidden, logged = hidden_of(evidence), evidence.run.figure("trainer_idle_fraction")
    told = not logged.known or logged.number < NO_WAIT
    return evidence.run.mode != "colocated" and told and hidden.known and hidden.number > HIDDEN


def trainer_idle_of(evidence: Evidence) -> Figure:
    """
    Share of the step that the trainer waits: as logged, where that is believed; else what is no work; else by rates.

    By rates it is known only of a fleet that gave all it could: one that was asked for less makes less.
    """
    logged = evidence.run.figure("trainer_idle_fraction", "a training log")
    if waits_lie(evidence):
        return replace(hidden_of(evidence), key="trainer_idle_fraction")
    if logged.known:
        return logged
    rate, required = fleet_rate_of(evidence), required_of(evidence)
    if not rate.known or not required.known or not saturated(evidence):
        return logged
    return apply("trainer_idle_fraction", imbalance.trainer_idle_fraction, supply=rate, required_supply=required)


def saturated(evidence: Evidence) -> bool:
    """Whether the engines gave all that they could."""
    return evidence.fleet is not None and bool(evidence.fleet.used) and not evidence.fleet.lower_bound


def has_room(evidence: Evidence) -> bool:
    """Whether the fleet could have made more: seldom work waiting, or said to stand still."""
    fleet, still = evidence.fleet, evidence.run.figure("reported_rollout_idle_fraction")
    if fleet is not None and fleet.saturated_fraction is not None:
        return fleet.saturated_fraction < FREE
    return still.known and still.number > HIDDEN


def keeps_up(evidence: Evidence) -> bool:
    """Whether the fleet made about what the trainer uses, or more."""
    rate, required = fleet_rate_of(evidence), required_of(evidence)
    return rate.known and required.known and rate.number >= (1.0 - AGREE) * required.number


def capacity_of(evidence: Evidence) -> Figure:
    """
    What one instance can do at saturation: as somebody said, else as measured on instances that were saturated.

    The rate of instances that were held back is what they were asked for. A fleet sized from it would be found a little
    too small each time, and grow with every round.
    """
    if evidence.nameplate.known:
        return evidence.nameplate
    fleet = evidence.fleet
    if fleet is None or fleet.mean is None or not saturated(evidence):
        return absent("instance_tokens_per_second", "--per-instance, the rate of an instance at saturation")
    source = f"{len(fleet.used)} saturated instances"
    deviation = fleet.spread or 0.0
    return Figure(
        key="instance_tokens_per_second",
        value=fleet.mean,
        provenance="measured",
        source=source,
        deviation=deviation,
        least=1e-6,
    )


def headroom_of(evidence: Evidence) -> Figure:
    """Derating: as given; else what a measured rate does not hold yet."""
    if evidence.headroom.known or evidence.nameplate.known or evidence.fleet is None:
        return evidence.headroom if evidence.headroom.known else headroom_left(())
    return headroom_left(tuple(evidence.fleet.includes))


def matched_of(evidence: Evidence) -> Figure:
    """Instances that match, in whole numbers."""
    exact = apply(
        "matched_instances",
        matching.matched_instances,
        required_supply=required_of(evidence),
        instance_rate=capacity_of(evidence),
        headroom=headroom_of(evidence),
    )
    return rounded(exact, "matched_instances", rounded_up(exact.number) if exact.known else 0)


def instances_of(evidence: Evidence) -> Figure:
    """Rollout instances there are: as given, else as many as were read or should have been."""
    if evidence.instances.known or evidence.fleet is None:
        return evidence.instances
    count = len(evidence.fleet.instances)
    return Figure(key="instances", value=count, provenance="measured", source="the engines that were named")


def slower_by(rates: list[float], typical: float) -> Figure:
    """Share of the fleet's rate that slow instances lack against the median one."""
    whole = sum(rates)
    lost = sum(max(0.0, typical - rate) for rate in rates)
    part = Figure(key="lost_tokens_per_second", value=lost, provenance="measured", source="median less their own rate")
    total = Figure(key="fleet_tokens_per_second", value=whole, provenance="measured", source="sum of the instances")
    return apply("gain_fraction", rollout_batch.share_of, part=part, whole=total)
