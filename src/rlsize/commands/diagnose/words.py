"""What the findings of a diagnosis are called: what to do, why, and how to see afterwards that it helped."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from rlsize.reports.report import Column, Table, Unseen
from rlsize.reports.wording import interval, words
from rlsize.units import show, some_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlsize.facts.evidence import Cause, Diagnosis, Finding, JudgedPhase
    from rlsize.facts.figure import Figure

CHECKS = {
    "phases": "phases",
    "trainer_health": "trainer health",
    "weight_sync": "weight sync",
    "idle_ratio": "logged waits",
    "missing_instances": "instances",
    "stragglers": "stragglers",
    "prefix_cache": "prefix cache",
    "routing": "routing",
    "preemptions": "preemptions",
    "lost_in_turn": "overlap",
    "fleet_size": "fleet size",
}
_SEVERAL = 3
_RATES = ("instance", "said")

PHASES = {
    "step": "whole step",
    "update": "update",
    "logprob": "log-prob pass",
    "sync": "weight sync",
    "tools": "tool calls",
    "other": "between phases",
}
"""What phases are called that are not called by their name."""
_VERDICTS = {None: "not judged", True: "usual", False: "not normal"}
_USUAL = (
    "usual: what the model needs on these GPUs, with micro-batches packed and engines filled, or two passes of "
    "log-probs by what the update takes; up to: the end of the interval in which 95 of 100 runs elsewhere lie; "
    "not normal: beyond it, and over 1.5 times usual"
)
_SHOWN = 4  # causes that are shown
_CAUSES = {
    "micro_batch": "micro-batches too small to fill a GPU: pack more tokens into a micro-batch",
    "unbalanced": "ranks that wait for the one with the most tokens: deal samples out by their tokens",
    "padding": "padded micro-batches: pack samples end to end",
    "recompute": "activations that are recomputed: recompute less, if memory allows",
    "offload": "states that go to the host and back: keep them on the GPU, if memory allows",
    "host": "a host that keeps the GPU waiting: profile one micro-batch; look for gaps and stray passes",
    "reference": "another, larger model as the reference: give it GPUs of its own, or do without",
    "reference_offload": "a reference that comes in from the host: keep it on the GPU, if memory allows",
    "few_running": "few samples at once on an instance: offer all prompts at once, on fewer instances",
    "few_gpus": "few GPUs that generate: give generation more of them, or let both sides share all",
    "tail": "a long tail (few run, none wait): partial rollouts, refill, or a shorter cap; not more GPUs",
    "cache": "a KV cache that is too small: give the engine more memory, or let fewer run at once",
    "cold": "a cold prefix cache: turn it on, and keep each group on one instance",
    "tools": "samples that wait for tools: time the calls; run more of them at once",
    "engine": "the engine itself: compare with a benchmark of it; no CUDA graphs, detokenizing",
    "buckets": "weights that go one tensor at a time: send them in large buckets",
    "link": "a slow link between the two sides: check which network the weights take",
    "verifier": "a slow verifier or reward model: run it beside generation, with a limit on time",
    "sandbox": "a slow sandbox or service behind the tools: time single calls; give it more workers",
    "often": "work between steps that comes often: do it less often, or beside generation",
    "untimed": "rewards, data, checkpoints or evaluation: time them one by one",
    "timer": "a timer of generation that times the whole step: time the update apart",
}


def said(figures: Mapping[str, Figure], key: str, name: str = "") -> str:
    """A figure of the evidence for people; a dash where it is not there."""
    figure = figures.get(key)
    return "-" if figure is None or not figure.known else show(figure.value, name or figure.key)


def action(found: Finding) -> str:
    """What to do."""
    return _FIXED_ACTIONS.get(found.check) or _ACTIONS[found.check](found)


def because(found: Finding) -> str:
    """The evidence."""
    return _EVIDENCE[found.check](found)


def verification(found: Finding) -> str:
    """How to see that it helped."""
    if found.check == "fleet_size" and found.kind not in {"grow", "tail"}:
        return "trainer idle stays at its target, and queue and staleness stop growing"
    return _VERIFY[found.check]


_VERIFY = {
    "phases": "the phase takes what is usual",
    "trainer_health": "train time per token and MFU are back where they were",
    "weight_sync": "the sync's share of the step is under its limit",
    "missing_instances": "every instance answers, and the fleet's rate rises by its share",
    "stragglers": "the slow instance comes up to the median",
    "prefix_cache": "the hit ratio comes up to what groups should find; then size the fleet anew",
    "routing": "the hit ratio comes up to what groups should find; then size the fleet anew",
    "preemptions": "preemptions stay under 5 % of finished samples, and the rate rises",
    "fleet_size": "trainer idle is under its target over several hundred steps",
}


def _phase_evidence(found: Finding) -> str:
    if not found.names:
        return "needs a log and a scenario or launch" if found.status == "unknown" else "as this model needs them"
    took, share = said(found.figures, "took"), said(found.figures, "step_fraction")
    whole = "" if share == "-" else f", {share} of the step"
    if found.kind == "most":
        return f"the {phase_words(found.names[0])} takes {took}{whole}"
    usual, times = said(found.figures, "usual"), said(found.figures, "times_usual")
    return f"the {phase_words(found.names[0])} takes {took}{whole}: {times} times the usual {usual}"


def _trainer_evidence(found: Finding) -> str:
    if found.status == "unknown":
        short = "too few settled steps to tell a trend, their memory counted"
        return short if found.kind == "short" else "needs a training log with train times"
    if found.kind == "expected":
        more = said(found.figures, "train_time_change_fraction", "x_fraction")
        return f"a step takes {said(found.figures, 'train_seconds')} of work, {more} more than it should take"
    drift = said(found.figures, "train_time_drift_fraction", "x_fraction")
    if found.kind == "drift":
        return f"train time per token rose by {drift} from the first half of the steps to the second"
    if found.kind == "lengths":
        longer = said(found.figures, "length_growth_fraction", "x_fraction")
        why = "the log tells no lengths" if longer == "-" else f"samples grew by {longer}, which may be all"
        return f"train time rose by {drift} from the first half of the steps to the second; {why}"
    return f"no trend; {said(found.figures, 'train_seconds')} of work in a step"


def _sync_evidence(found: Finding) -> str:
    if found.status == "unknown":
        return "needs a log that times syncs, or engines that do"
    logged = said(found.figures, "logged_fraction")
    more = "" if logged == "-" else f" by the engines, {logged} by the log"
    return f"{said(found.figures, 'sync_pause_fraction')} of the time goes into weight syncs{more}"


def _idle_evidence(found: Finding) -> str:
    if found.status == "unknown":
        return "needs a log with step and train times"
    hidden = said(found.figures, "unexplained_fraction", "x_fraction")
    if "reported" in found.figures:
        told, own = said(found.figures, "reported", "x_fraction"), said(found.figures, "own", "x_fraction")
        who = "the trainer" if found.kind == "trainer" else "engines"
        return f"the log says that {who} stand still for {told}; their own times leave {own}: do not trust it"
    if found.kind == "untimed" and found.status == "note":
        return f"{hidden} of the step is not timed: rewards, data, checkpoints or evaluation"
    if found.status == "note":
        return f"logged waits read near zero, yet {hidden} of the step is no work: do not trust the idle ratio"
    return f"{hidden} of the step is neither work, sync nor waiting"


def _missing(found: Finding) -> str:
    if found.kind == "unnamed":
        return f"Name all {said(found.figures, 'instances')} instances, or the Prometheus that scrapes them"
    return f"{'Restart' if found.kind == 'stuck' else 'Bring back'} {some_of(found.names, _SEVERAL)}"


def _missing_evidence(found: Finding) -> str:
    if found.status == "unknown":
        return "needs the engines' pages"
    if found.kind == "unnamed":
        return f"there should be {said(found.figures, 'instances')}; those read stand for all, unless one is a router"
    if found.kind == "out of step":
        made, taken = (said(found.figures, f"{whose}_tokens_per_second") for whose in ("fleet", "trained"))
        return f"they make {made}, the log trains {taken}: some are not named, or it is another run's"
    if found.kind == "stuck":
        return "work waits, and no token comes"
    if found.status == "fault":
        return f"{len(found.names)} could not be read"
    return "all were read"


def _straggling_evidence(found: Finding) -> str:
    if found.status == "unknown":
        return "needs the pages of three instances or more"
    slow, middle = (said(found.figures, f"{which}_tokens_per_second") for which in ("slowest", "median"))
    return f"slowest {slow}, median {middle}"


def _cache(found: Finding) -> str:
    if found.kind in {"cold", "off"}:
        return "Turn prefix caching on, and keep each group on one instance; see what flushes the cache"
    return "Find out why prompts of a group miss the cache: eviction, flushes, other prompts between"


def _cache_evidence(found: Finding) -> str:
    seen = said(found.figures, "prefix_cache_hit_fraction")
    if found.kind == "group":
        return f"{seen} of prompt tokens hit; needs --group to judge"
    if found.kind == "page":
        return f"{seen} of prompt tokens hit; needs pages with prompt lengths and block size to judge"
    if found.status == "unknown":
        return "needs a warm prefix cache" if found.kind in {"cold", "off"} else "needs the engines' pages"
    if found.kind == "off":
        return "the engines' pages say that it is off"
    affine = said(found.figures, "affine_hits", "x_fraction")
    chance = said(found.figures, "random_hits", "x_fraction")
    text = f"{seen} of prompt tokens hit; {affine} with a group on one instance"
    return f"{text}, {chance} at random" if chance not in ("-", affine) else text


def _preempted_evidence(found: Finding) -> str:
    if found.status == "unknown":
        return "needs pages that count them"
    return f"{said(found.figures, 'preemptions_per_sample')} preemptions per finished sample"


def _turn_evidence(found: Finding) -> str:
    if found.kind == "synchronous":
        idle = said(found.figures, "trainer_idle_fraction")
        return f"in turn: the trainer stands still for {idle} of the step, by design; see one-step-off or async"
    if found.kind == "colocated":
        return "both sides share their GPUs: a split of its own may be quicker; see `rlsize plan`"
    return "needs a training log" if found.status == "unknown" else "both sides work at once"


def _resize(found: Finding) -> str:
    matched, there = said(found.figures, "matched_instances"), said(found.figures, "instances")
    if found.kind == "grow":
        if matched == "-":
            required = "" if "required_tokens_per_second" in found.figures else "the trainer's consumption and "
            return (
                f"Add rollout instances{_at_most(found)}; how many needs {required}--per-instance, a rate at saturation"
            )
        return _grown(found, matched, there)
    if found.kind == "backlog":
        if matched != "-" and there != "-" and not _less(found):
            return f"Cap the queue by the staleness budget; {there} instances are no more than match ({matched})"
        size = f"shrink the fleet to {matched} instances" if _less(found) else "shrink the fleet"
        return f"Cap the queue by the staleness budget, and {size}, or raise what the trainer consumes"
    if found.kind == "tail":
        return "Shorten the tail: partial rollouts, refill, or a shorter cap on responses; more GPUs would wait too"
    size = f"give instances back, down to {matched}" if _less(found) else "measure an instance at saturation"
    return f"Add nothing: the fleet is held back. To save GPUs, {size}"


def _at_most(found: Finding) -> str:
    """How many instances match where those there do all they can; else the trainer waits for something else."""
    there, idle = (found.figures.get(key) for key in ("instances", "trainer_idle_fraction"))
    if there is None or idle is None or not 0 < idle.number < 1:
        return ""
    match = ceil(there.number / (1.0 - idle.number))
    return f", {match - there.number:.0f} at most, to {match}"


def _grown(found: Finding, matched: str, there: str) -> str:
    """How far to grow; where the count would do already, the rate or the waits are not what they seem."""
    figures = found.figures
    if "instances" not in figures:
        return f"Resize the fleet to {matched} instances"
    more = figures["matched_instances"].number - figures["instances"].number
    if more <= 0:
        return f"Do not add instances: {there} should do ({matched} match). Measure an instance under the real recipe"
    return f"Add {more:.0f} rollout instance{'s' if more > 1 else ''}, to {matched}"


def _less(found: Finding) -> bool:
    """Whether fewer instances than there are would match."""
    figures = found.figures
    known = "matched_instances" in figures and "instances" in figures
    return known and figures["matched_instances"].number < figures["instances"].number


def _size_evidence(found: Finding) -> str:
    if found.kind == "in_turn":
        return "sides that work in turn wait for each other at any size"
    rate, required = (said(found.figures, f"{which}_tokens_per_second") for which in ("fleet", "required"))
    idle, backlog = said(found.figures, "trainer_idle_fraction"), found.figures.get("backlog")
    parts = [f"the trainer waits {idle} of the step{_parted(found)}" if idle != "-" else ""]
    parts.append(f"the fleet makes {rate} of {required} needed" if "-" not in (rate, required) else "")
    if backlog is not None and backlog.known and (backlog.key != _GROWTH or backlog.number > 0):
        parts.append(_BACKLOG[backlog.key].format(show(backlog.value, backlog.key)))
    if found.kind == "held_back":
        parts.append("its engines have room")
    if found.kind == "tail" and "tail_wait_fraction" not in found.figures:
        parts.append("few samples run, none wait, and instances make less than half of what they can")
    if found.kind == "limbo":
        parts.append("its engines have room: samples are held up between the two, or wait for a long tail")
    if "said_tokens_per_second" in found.figures:
        made, most = (said(found.figures, f"{who}_tokens_per_second", "x_tokens_per_second") for who in _RATES)
        parts.append(f"an instance makes {made}, more than the {most} that were said")
    matched = found.figures.get("matched_instances")
    if matched is not None and matched.band is not None and found.kind in {"grow", "backlog", "held_back"}:
        low, high = matched.band
        parts.append(f"{low:.0f} to {high:.0f} instances match")
    told = "; ".join(part for part in parts if part)
    return told or "needs --consume, or a training log"


def _parted(found: Finding) -> str:
    """What a trainer waits for, with bounds."""
    told = []
    for key, why in (("tail_wait_fraction", "beside empty slots"), ("capacity_wait_fraction", "beside full engines")):
        one = found.figures.get(key)
        if one is not None:
            around = f" ({interval(one)})" if one.band else ""
            told.append(f"{show(one.value, key)}{around} {why}")
    return f", {' and '.join(told)}" if told else ""


_GROWTH = "backlog_growth_tokens_per_second"
_BACKLOG = {
    _GROWTH: "{} pile up",
    "dropped_samples_per_step": "{} samples are dropped in each step as too stale",
    "largest_staleness_steps": "the stalest sample is {} steps old",
    "queued_samples_growth_fraction": "the queue grew by {} over the run",
    "staleness_steps_growth_fraction": "staleness grew by {} over the run",
}
_FIXED_ACTIONS = {
    "phases": "Look into the first phase",
    "trainer_health": "Mend the trainer before resizing: rule out a hanging collective, a bad node, throttling",
    "weight_sync": "Shorten the weight sync or sync less often: larger buckets, a faster link, in-flight updates",
    "routing": "Send all samples of a group to one instance: route by prompt, or send n samples as one request",
    "preemptions": "Give the KV cache room: fewer samples at once (max_num_seqs), more memory, or more GPUs each",
}
_ACTIONS: Mapping[str, Callable[[Finding], str]] = {
    "missing_instances": _missing,
    "stragglers": lambda found: f"Drain or replace {some_of(found.names, _SEVERAL)}",
    "prefix_cache": _cache,
    "fleet_size": _resize,
}
_EVIDENCE: Mapping[str, Callable[[Finding], str]] = {
    "phases": _phase_evidence,
    "trainer_health": _trainer_evidence,
    "weight_sync": _sync_evidence,
    "idle_ratio": _idle_evidence,
    "missing_instances": _missing_evidence,
    "stragglers": _straggling_evidence,
    "prefix_cache": _cache_evidence,
    "routing": _cache_evidence,
    "preemptions": _preempted_evidence,
    "lost_in_turn": _turn_evidence,
    "fleet_size": _size_evidence,
}


_GOES_INTO = PHASES | {"update": "the update", "logprob": "log-probs", "other": "what nobody times"}
_TELLS = "which tells what each phase should take"
_NAME_LOOP = f"name the run's launch or scenario beside it, {_TELLS}"
_NEXT = dict.fromkeys(("in turn", "unclear", "one phase takes most", "matched"), _NAME_LOOP) | {
    "neither side at its limit": "see what holds samples up between the two: caps of queues, tools, verifiers"
}
"""What to do first where nothing is to be mended, by verdict."""


def _longest(found: Diagnosis) -> str:
    """The end of a sentence that names what takes most of a step, where nothing is predicted of its phases."""
    one = found.phases[0] if found.phases else None
    if one is None or one.normal is not None or not one.share.known:
        return "."
    return f": {show(one.share.value, one.share.key)} of the step goes into {_GOES_INTO.get(one.phase, one.phase)}."


def headline(found: Diagnosis, lacking: str = "") -> str:
    """
    The verdict in a sentence, and what to do first.

    Args:
        found: The verdict.
        lacking: What to say of the loop so that what each phase should take is known; empty where it is.
    """
    idle = f"{show(found.trainer_idle.value, 'x_fraction')} of the step" if found.trainer_idle.known else "its share"
    phases = next(one for one in found.findings if one.check == "phases")
    look = _phase_evidence(phases)
    sentence = {
        "slow phase": f"Not normal: {look}.",
        "one phase takes most": f"{look[:1].upper()}{look[1:]}.",
        "trainer regressed": "The trainer became slower; the fleet is not the cause.",
        "sync stall": "Weight syncs hold the loop up.",
        "starving trainer": f"The trainer starves: it waits {idle} for samples.",
        "growing backlog": "Samples pile up: the fleet makes more than the trainer uses.",
        "oversized and held back": "The fleet is larger than the trainer needs, and held back.",
        "neither side at its limit": f"The trainer waits {idle}, yet the engines have room.",
        "in turn": "Both sides work in turn, as this mode has it"
        + (", and each phase takes what is usual" if phases.status == "fine" else "")
        + (f": the trainer stands still for {idle}." if found.trainer_idle.known else _longest(found)),
        "matched": "Both sides match.",
        "unclear": "What there is does not say which side starves.",
    }[found.verdict]
    if found.verdict == "matched" and not found.steps:
        return f"{sentence} Nothing to do."
    if found.causes and (not found.steps or found.steps[0] is phases):
        lead = "To be quicker, look for" if phases.status == "fine" else "First look for"
        return f"{sentence} {lead} {cause_words(found.causes[0])}."
    usual = "compare other modes and splits of its GPUs: `rlsize plan`"
    if found.steps:
        return f"{sentence} First: {action(found.steps[0])}."
    unknown = _NEXT[found.verdict]
    if lacking and unknown == _NAME_LOOP:
        unknown = f"{lacking}, {_TELLS}"
    return f"{sentence} First: {usual if phases.status == 'fine' else unknown}."


def phase_words(phase: str) -> str:
    """What a phase is called."""
    return PHASES.get(phase, phase)


def cause_words(cause: Cause) -> str:
    """What is likely, and what to do about it."""
    return _CAUSES[cause.kind]


def phases_table(phases: Sequence[JudgedPhase]) -> Table:
    """Each phase beside what is usual, where that is known of any."""
    judged = any(one.usual.known for one in phases)

    def beside(column: Column) -> Column | Unseen:
        return column if judged else Unseen(column.key, column.of)

    cells = (
        Unseen("phase"),
        Column("_phase", "phase", "left", of=lambda one: phase_words(one.phase)),
        Column("took_seconds", "took", of=lambda one: one.took.value),
        beside(Column("usual_seconds", "usual", of=lambda one: one.usual.value)),
        Unseen("usual_from_seconds", lambda one: one.band[0] if one.band else None),
        beside(Column("usual_to_seconds", "up to", of=lambda one: one.band[1] if one.band else None)),
        beside(Column("times_usual", "ratio", of=lambda one: one.ratio.value)),
        Column("step_fraction", "share", of=lambda one: one.share.value),
        beside(Column("verdict", "", "left", of=lambda one: _VERDICTS[one.normal])),
    )
    title = "Is this normal" if judged else "Where the step goes"
    return Table.of(title, phases, cells, note=_USUAL if judged else "")


def causes_table(found: Diagnosis, changes: Sequence[str]) -> Table:
    """
    What may make the first phase slow.

    Args:
        found: The diagnosis.
        changes: What to set for each cause, in the keys of the framework or scenario; empty where nothing is to be set.
    """
    said = dict(enumerate(changes))

    def evidence(cause: Cause) -> str:
        told = ", ".join(f"{words(figure.key)} {show(figure.value, figure.key)}" for figure in cause.figures)
        return f"{cause.sign}: {told}" if told else "usual suspect"

    cells: tuple[Column | Unseen, ...] = (
        Unseen("phase"),
        Column("_phase", "of", "left", of=lambda one: phase_words(one.phase)),
        *map(Unseen, ("kind", "sign")),
        Column("cause", "likely", "left", wide=True, of=cause_words),
        Column("evidence", "evidence", "left", wide=True, of=evidence),
        Column("change", "set", "left", wide=True, of=lambda one: said.get(found.causes.index(one), "")),
    )
    return Table.of("Likely causes", found.causes[:_SHOWN], cells)
