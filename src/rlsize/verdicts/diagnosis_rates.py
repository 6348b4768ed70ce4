"""The rates that a diagnosis stands on: what the trainer uses, what the fleet makes, and who waits for whom."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from rlsize.dataclass import replace
from rlsize.equations import imbalance, loop_time, matching, rollout_batch, train_step
from rlsize.estimates.figures import apply, generator, measured, rounded, with_bands
from rlsize.estimates.headroom import headroom_left
from rlsize.facts.figure import Figure, absent
from rlsize.planner.rounding import rounded_up

if TYPE_CHECKING:
    from rlsize.facts.evidence import Evidence

_SEED = 0  # bounds are the same each time, so that an answer is
FREE = 0.5  # an instance with work waiting for less of the window than this has room to spare
HIDDEN = 0.2  # share of a step, or of a rate, that goes unexplained, from which something is said to be hidden
HALF = 0.5  # of its rate: an instance with a long tail makes less
FEW = 0.25  # share of the samples that are offered which still run in a long tail
FEW_RUNNING = 32.0  # samples at once on an instance: its weights are read for few tokens
NO_WAIT = 0.05  # logged waits under this share of the step say that nobody waits
AGREE = 0.1  # rates within this are one rate
IN_TURN = frozenset({"synchronous", "colocated"})  # modes in which one side stands still while the other works


def consumption_of(evidence: Evidence) -> Figure:
    """Response tokens per second of the busy trainer: as given, else as the log has it."""
    if evidence.consumption.known:
        return evidence.consumption
    return evidence.run.figure("consumption_tokens_per_second", "--consume, or a log with tokens and train times")


def fleet_rate_of(evidence: Evidence) -> Figure:
    """
    Response tokens per second of all instances, by wall clock.

    Where some of them were not named, those that were stand for all; a single one does not, as it may be a router in
    front of the others. Without engines it is that of a log, while it generates.
    """
    fleet, key = evidence.fleet, "fleet_tokens_per_second"
    if fleet is None or fleet.mean is None:
        return evidence.run.figure(key, "the engines' pages")
    if is_sample(evidence):
        return apply(
            key, matching.fleet_supply, instances=evidence.instances, instance_rate=_mean_rate(evidence), headroom=1.0
        )
    if may_be_router(evidence):
        return absent(key, f"the pages of all {evidence.instances.number:.0f} instances")
    total = sum(instance.tokens_per_second or 0.0 for instance in fleet.used)
    source = f"{len(fleet.used)} instances over {fleet.window_seconds:.0f} s"
    return measured(key, total, source)


def _unnamed(evidence: Evidence) -> bool:
    """Whether there should be more instances than were named."""
    fleet, said = evidence.fleet, evidence.instances
    return fleet is not None and said.known and said.number > len(fleet.instances)


def is_sample(evidence: Evidence) -> bool:
    """Whether some instances of several were looked at."""
    return _unnamed(evidence) and evidence.fleet is not None and len(evidence.fleet.used) > 1


def may_be_router(evidence: Evidence) -> bool:
    """Whether one address was looked at where there should be several instances."""
    return _unnamed(evidence) and not is_sample(evidence)


def out_of_step(evidence: Evidence) -> bool:
    """Whether the trainer takes more by its log than the engines make: some are not named, or it is another run's."""
    trained, rate = evidence.run.figure("trained_tokens_per_second"), fleet_rate_of(evidence)
    return evidence.fleet is not None and trained.known and rate.known and rate.number < (1 - HIDDEN) * trained.number


def _mean_rate(evidence: Evidence) -> Figure:
    """Mean rate of the instances that were read, whatever they were asked for."""
    key, fleet = "instance_tokens_per_second", evidence.fleet
    if fleet is None or not fleet.mean:
        return absent(key, "engines that generate tokens")
    source = f"{len(fleet.used)} {'' if fleet.lower_bound else 'saturated '}instances"
    return replace(measured(key, fleet.mean, source, deviation=fleet.spread or 0.0), least=1e-6)


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
    part, whole = run.figure("other_seconds"), run.figure("step_seconds")
    return apply("unexplained_fraction", train_step.time_share, part=part, whole=whole)


def waits_lie(evidence: Evidence) -> bool:
    """Whether logged waits read near zero although much of the step is no work."""
    hidden, logged = hidden_of(evidence), evidence.run.figure("trainer_idle_fraction")
    told = not logged.known or logged.number < NO_WAIT
    return evidence.run.mode not in IN_TURN and told and hidden.known and hidden.number > HIDDEN


def trainer_idle_of(evidence: Evidence) -> Figure:
    """
    Share of the step that the trainer waits: as logged, where that is believed; else what is no work; else by rates.

    By rates it is known only of a fleet that gave all it could: one that was asked for less makes less.
    """
    logged = evidence.run.figure("trainer_idle_fraction", "a training log that times waiting")
    false = contradicted(evidence)
    if "trainer" in false and not evidence.run.figure("wait_seconds").known:
        return false["trainer"]
    if waits_lie(evidence):
        return replace(hidden_of(evidence), key="trainer_idle_fraction")
    if logged.known or evidence.run.mode in IN_TURN:
        return logged
    rate, required = fleet_rate_of(evidence), required_of(evidence)
    if not rate.known or not required.known or not saturated(evidence):
        return logged
    return apply("trainer_idle_fraction", imbalance.trainer_idle_fraction, supply=rate, required_supply=required)


def contradicted(evidence: Evidence) -> dict[str, Figure]:
    """The idle share of each side by its own times, where a framework reports far more than they leave."""
    run, found = evidence.run, {}
    for side, busy in (("trainer", "train_seconds"), ("rollout", "generation_seconds")):
        key, reported = f"{side}_idle_fraction", run.figure(f"reported_{side}_idle_fraction")
        times = {"busy_seconds": run.figure(busy), "iteration_seconds": run.figure("step_seconds")}
        own = apply(key, loop_time.waiting_fraction, **times)
        if own.known and reported.known and reported.number > max(0.0, own.number) + AGREE:
            found[side] = own
    return found


def waits_of(evidence: Evidence) -> tuple[Figure, Figure]:
    """The shares of a step that the trainer waits for a few long samples, and for all that the engines can make."""
    idle, tail = trainer_idle_of(evidence), evidence.tail_of_wait
    if not idle.known or not tail.known:
        return absent("tail_wait_fraction", tail.missing), absent("capacity_wait_fraction", tail.missing)
    long = apply("tail_wait_fraction", imbalance.waiting_part, idle_fraction=idle, share=tail)
    rest = apply("capacity_wait_fraction", rollout_batch.beyond, whole=idle, part=long)
    long, rest = with_bands([long, rest], generator(_SEED))
    return long, rest


def long_tail(evidence: Evidence) -> bool:
    """
    Whether a few long samples hold a batch up: slots stand empty for most of the wait.

    Where nobody sees engines and waits over time: few run, none wait, and instances make half of what they can.
    """
    load, rate = evidence.load, _mean_rate(evidence)
    if evidence.tail_of_wait.known:
        return evidence.tail_of_wait.number > HALF
    if load.running is None or load.waiting is None or load.waiting >= 1.0:
        return False
    if evidence.nameplate.known and rate.known:
        return rate.number < HALF * evidence.nameplate.number and load.running < FEW_RUNNING
    offered = evidence.usual.get("samples_in_flight", absent("samples_in_flight", "a scenario"))
    return offered.known and load.running < FEW * offered.number


def saturated(evidence: Evidence) -> bool:
    """Whether the engines gave all that they could."""
    return evidence.fleet is not None and bool(evidence.fleet.used) and not evidence.fleet.lower_bound


def has_room(evidence: Evidence) -> bool:
    """Whether the fleet could have made more: most of its instances seldom have work waiting, or it stands still."""
    fleet, still = evidence.fleet, evidence.run.figure("reported_rollout_idle_fraction")
    if fleet is not None and fleet.saturated_fraction is not None:
        return median(one.saturated_fraction or 0.0 for one in fleet.used) < FREE
    return still.known and still.number > HIDDEN and "rollout" not in contradicted(evidence)


def keeps_up(evidence: Evidence) -> bool:
    """Whether the fleet made about what the trainer uses, or more."""
    rate, required = fleet_rate_of(evidence), required_of(evidence)
    return rate.known and required.known and rate.number >= (1.0 - AGREE) * required.number


def capacity_of(evidence: Evidence) -> Figure:
    """
    What one instance can do at saturation: as somebody said, else as measured on instances that were saturated.

    The rate of instances that were held back is what they were asked for. A fleet sized from it would be found a little
    too small each time, and grow with every round. One that makes more than was said can do what it makes.
    """
    if outdone(evidence):
        return _mean_rate(evidence)
    if evidence.nameplate.known:
        return evidence.nameplate
    if not saturated(evidence) or may_be_router(evidence):
        return absent("instance_tokens_per_second", "--per-instance, the rate of an instance at saturation")
    return _mean_rate(evidence)


def outdone(evidence: Evidence) -> bool:
    """Whether the engines make more than somebody said that they can."""
    said, seen = evidence.nameplate, _mean_rate(evidence)
    return said.known and seen.known and not may_be_router(evidence) and seen.number > (1.0 + AGREE) * said.number


def headroom_of(evidence: Evidence) -> Figure:
    """Derating: as given; else what a measured rate does not hold yet."""
    said, measured = evidence.headroom, outdone(evidence) or not evidence.nameplate.known
    if said.known and not (measured and said.provenance == "default"):
        return said
    return headroom_left(tuple(evidence.fleet.includes) if measured and evidence.fleet is not None else ())


def matched_of(evidence: Evidence) -> Figure:
    """
    Instances that match, in whole numbers, with bounds where rates were measured.

    Sides that work in turn wait for each other whatever their sizes.
    """
    if evidence.run.mode in IN_TURN:
        return absent("matched_instances", "a loop whose sides work at once")
    key = "matched_instances"
    exact = apply(
        key,
        matching.matched_instances,
        required_supply=required_of(evidence),
        instance_rate=capacity_of(evidence),
        headroom=headroom_of(evidence),
    )
    (exact,) = with_bands([exact], generator(_SEED))
    found = rounded(exact, key, rounded_up)
    low, high = (float(rounded_up(end)) for end in exact.band or (0.0, 0.0))
    return replace(found, band=(low, high) if low < high else None)


def instances_of(evidence: Evidence) -> Figure:
    """Rollout instances there are: as given, else as many as were read or should have been."""
    if evidence.instances.known or evidence.fleet is None:
        return evidence.instances
    if out_of_step(evidence):
        return absent("instances", "--instances")
    return measured("instances", len(evidence.fleet.instances), "the engines that were named")
