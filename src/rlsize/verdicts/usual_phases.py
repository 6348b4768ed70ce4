"""
Is this normal: each phase of a step beside what the loop's model needs on its GPUs.

A phase is not normal where it takes more than `FAR` times what is predicted, and longer than 95 of 100 runs elsewhere
would. How far those lie from their predictions was measured on published runs that no constant was fitted to
(`benchmarks/normal.py`): the spread of a source is the root mean square of the logarithms of measured over predicted,
and that of a phase the median of its sources over the median of a half-normal distribution, so that one odd source does
not decide it. Times of small models hang on the host, which nobody says, so that they have a spread of their own. A
band is never narrower than the prediction's own.
"""

from __future__ import annotations

from math import exp, log
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from rlsize.equations import budget, rl_step, train_step
from rlsize.estimates.figures import apply, known
from rlsize.facts.evidence import Cause, Finding, JudgedPhase
from rlsize.facts.figure import Figure, absent
from rlsize.verdicts.diagnosis_checks import PREEMPTED, prefix_cache
from rlsize.verdicts.diagnosis_rates import FEW_RUNNING, long_tail

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlsize.facts.evidence import Evidence, Sign, Status

    Phases: TypeAlias = Sequence[JudgedPhase]
    Told: TypeAlias = tuple[Sign, Sequence[Figure], Mapping[str, float | str | bool | None]] | None
    Rule: TypeAlias = Callable[[Evidence, Phases], Told]


FEW_TOKENS = 8192.0  # of a micro-batch: fewer leave a GPU waiting for the host
PACKED = 16384.0  # tokens of one that fills a GPU
FEW_SAMPLES = 3.0  # of a micro-batch, where samples are counted
TAIL = 0.25  # share of a generation from which the longest responses, or tools, hold it up
LONG = 4.0  # times the mean that the longest response has, from which some hold up the others
MANY_RUNNING = 256.0  # samples at once that engines let through where nobody says
_LIMITS = ("concurrency", "max_num_seqs")
LARGE = 0.8  # share of a GPU's memory that an engine may have beside a trainer that moves out
FEW_GPUS = 0.25  # share of the GPUs that generate, from which they are few
_SIGNS = ("seen", "said", "possible")
_POSSIBLE: Told = ("possible", (), {})

FAR = 1.5  # a phase that takes less than so many times what is predicted is usual
MOST = 0.5  # a phase that takes more than this share of a step is told of first where nothing is predicted ...
NEARLY_ALL = 0.85  # ... and one that takes more than this is mended first; generation takes the most of good loops too
PASSES = 2.0  # that only read the weights, at most, of a loop that nobody describes: the policy's and a reference's
NOTHING = 0.005  # share of a step that is not worth a word
WHOLE = 0.97  # a timer of generation that covers this share of a step in turn times the step
_Z95, _Z80 = 1.96, 1.2816
SMALL = 1.2e9  # parameters up to which a model keeps GPUs waiting for the host
SPREADS: Mapping[bool, Mapping[str, float]] = MappingProxyType({
    False: {"generation": 0.48, "update": 0.29, "logprob": 0.29, "sync": 0.81, "other": 0.81, "step": 0.23},
    True: {"generation": 0.64, "update": 1.74, "logprob": 1.83, "sync": 0.81, "other": 0.81, "step": 0.80},
})  # fmt: skip
"""
Spread of the logarithm of measured over predicted, by phase, of large models and of small ones: from 40 runs of three
sources and 4 of two; other from sync, of which one source tells, as it was before constants knew of it. Log-probs of
large ones from updates: theirs is 0.13, and what they take beside their kernels was found on the same runs.
"""
_TIMED = ("step", "generation", "update", "logprob", "sync", "reward", "tools", "validation", "checkpoint", "other")
_PREDICTED = {"other": "overhead_seconds"}
_UNKNOWN = absent("usual_seconds", "a scenario")


def causes_of(evidence: Evidence, phases: Phases) -> tuple[Cause, ...]:
    """
    What may make a phase slow, the likeliest first.

    Args:
        evidence: Everything that is known.
        phases: As they were judged; the first one is asked about. Where only the step is timed, what settings say of
            any phase.
    """
    if hides_update(evidence):
        timer = evidence.run.figure("generation_seconds")
        return (Cause(phase="update", kind="timer", sign="seen", figures=(timer,)),)
    timed = [one for one in phases if one.phase != "step"]
    suspects = bool(timed) and timed[0].normal is not True
    found = [
        Cause(phase=phase, kind=kind, sign=told[0], figures=tuple(told[1]), change=told[2])
        for phase in ([timed[0].phase] if timed else _RULES)
        for kind, rule in _RULES[phase].items()
        if (told := rule(evidence, phases)) is not None and (suspects or told[0] != "possible")
    ]
    return tuple(sorted(found, key=lambda one: _SIGNS.index(one.sign)))


def _said(evidence: Evidence, *keys: str) -> list[Figure]:
    return [evidence.said[key] for key in keys if key in evidence.said]


def _small(prefix: str) -> Rule:
    """Micro-batches of few tokens, or of a sample or two."""
    by_tokens, by_samples = f"{prefix}micro_batch_tokens", f"{prefix}micro_batch_samples"

    def told(evidence: Evidence, _: Phases) -> Told:
        change = {by_tokens: PACKED, by_samples: None}
        said = _said(evidence, by_tokens, by_samples)[:1]
        if not said:
            return "possible", (), change
        limit = FEW_TOKENS if said[0].key == by_tokens else FEW_SAMPLES
        return ("said", said, change) if said[0].number < limit else None

    return told


def _switched(*keys: str) -> Rule:
    """Something that costs time, where it is switched on; ruled out where all of it is said to be off."""

    def told(evidence: Evidence, _: Phases) -> Told:
        said = _said(evidence, *keys)
        on = [figure for figure in said if figure.value not in (False, "none")]
        off = {figure.key: False if figure.value is True else "none" for figure in on}
        return ("said", on, off) if on else None if said else _POSSIBLE

    return told


def _unbalanced(evidence: Evidence, _: Phases) -> Told:
    """Ranks whose sequences differ in length: all wait for the one with the most tokens."""
    return "possible", _lengths(evidence), {}


def _lengths(evidence: Evidence) -> list[Figure]:
    run = evidence.run
    both = [run.figure("mean_response_tokens"), run.figure("longest_response_tokens")]
    return both if all(figure.known for figure in both) else []


def _other_reference(_: Evidence, phases: Phases) -> Told:
    """Another, larger model as the reference: the update is as usual, and passes of the same tokens are not."""
    far = {one.phase: one.ratio.number > FAR for one in phases if one.ratio.known}
    if far.get("update") is False and far.get("logprob"):
        return "seen", [one.ratio for one in phases if one.phase == "logprob"], {}
    return _POSSIBLE


def _few_running(evidence: Evidence, _: Phases) -> Told:
    """Few samples at once on an instance."""
    running, samples = evidence.load.running, _said(evidence, "samples_per_step")
    if running is not None and running >= FEW_RUNNING:
        return None
    count = evidence.instances.number if evidence.instances.known else 1.0
    each = [Figure(key="samples_in_flight", value=figure.number / count) for figure in samples]
    offered = [*_said(evidence, *_LIMITS), *each]
    few = [figure for figure in offered if figure.number < FEW_RUNNING]
    change = dict.fromkeys((figure.key for figure in few if figure.key in _LIMITS), MANY_RUNNING)
    return ("said", few, change) if few else None if offered else _POSSIBLE


def _tail(evidence: Evidence, _: Phases) -> Told:
    """The longest responses of a batch: few run, none wait."""
    if long_tail(evidence):
        return "seen", [Figure(key="running_samples", value=evidence.load.running)], {}
    lengths = _lengths(evidence)
    if lengths and lengths[1].number > LONG * lengths[0].number:
        return "said", lengths, {}
    times = [evidence.usual[f"{key}_seconds"] for key in ("tail", "generation") if f"{key}_seconds" in evidence.usual]
    long = len(times) > 1 and times[0].known and times[0].number > TAIL * times[1].number
    return ("said", times, {}) if long else _POSSIBLE


def _small_cache(evidence: Evidence, _: Phases) -> Told:
    """A KV cache that holds fewer samples than are offered, so that some are thrown out or wait."""
    lost, limit = evidence.load.preemptions_per_sample, evidence.usual.get("limited_by")
    change = {"memory_fraction": LARGE}
    if lost is not None:
        return ("seen", [Figure(key="preemptions_per_sample", value=lost)], change) if lost > PREEMPTED else None
    if limit is not None:
        return ("said", [evidence.usual["cache_concurrency"]], change) if limit.value == "cache" else None
    return _POSSIBLE


def _cold(evidence: Evidence, _: Phases) -> Told:
    """A prefix cache in which samples of a group do not find their prompt."""
    found = prefix_cache(evidence)
    return ("seen", list(found.figures.values()), {}) if found.status == "fault" else None


def _few_gpus(evidence: Evidence, _: Phases) -> Told:
    """Few of the GPUs generate."""
    pools = _said(evidence, "rollout_gpus", "trainer_gpus")
    few = len(pools) > 1 and pools[0].number < FEW_GPUS * (pools[0].number + pools[1].number)
    return ("said", pools, {"rollout_gpus": 2 * pools[0].number}) if few else None


def _tools(evidence: Evidence, _: Phases) -> Told:
    """Calls of tools between the turns of a sample; where they are timed, those that hold the generation up."""
    tools, generation = (evidence.run.figure(key) for key in ("generation_tools_seconds", "generation_seconds"))
    if tools.known and generation.known:
        return ("seen", [tools], {}) if tools.number > TAIL * generation.number else None
    found = [figure for figure in _said(evidence, "tool_seconds", "turns") if figure.number > 1]
    return ("said", found, {}) if found else None


def _always(_: Evidence, __: Phases) -> Told:
    return _POSSIBLE


_RULES: Mapping[str, Mapping[str, Rule]] = MappingProxyType({
    "update": {
        "micro_batch": _small(""),
        "unbalanced": _unbalanced,
        "padding": _switched("padded"),
        "recompute": _switched("recompute"),
        "offload": _switched("param_offload", "offload", "activation_offload"),
        "host": _always,
    },
    "logprob": {
        "reference": _other_reference,
        "micro_batch": _small("logprob_"),
        "reference_offload": _switched("reference_offload", "param_offload"),
        "unbalanced": _unbalanced,
    },
    "generation": {
        "few_running": _few_running,
        "few_gpus": _few_gpus,
        "tail": _tail,
        "cache": _small_cache,
        "cold": _cold,
        "tools": _tools,
        "engine": _always,
    },
    "sync": {"buckets": _always, "link": _always},
    "reward": {"verifier": _always},
    "tools": {"sandbox": _always},
    "validation": {"often": _always},
    "checkpoint": {"often": _always},
    "other": {"untimed": _always},
})  # fmt: skip


def judged_phases(evidence: Evidence, spread: Mapping[str, float] | None = None) -> tuple[JudgedPhase, ...]:
    """
    The phases that a log times; the one to look at first before the others, and the step itself last.

    Args:
        evidence: Everything that is known.
        spread: Spread of the logarithm of measured over predicted, by phase; that of `SPREADS` when None.
    """
    wide = SPREADS[is_small(evidence)] if spread is None else spread
    step = evidence.run.figure("step_seconds")
    least = NOTHING * step.number if step.known else 0.0
    timed = [phase for phase in _TIMED if phase != "generation" or not hides_update(evidence)]
    found = [
        _judged(phase, took, evidence, wide.get(phase, 0.0))
        for phase in timed
        if (took := evidence.run.figure(f"{phase}_seconds")).known and took.number > least
    ]
    return tuple(sorted(found, key=_rank))


def is_small(evidence: Evidence) -> bool:
    """Whether the loop's model is small."""
    return "params" in evidence.said and evidence.said["params"].number <= SMALL


def _rank(one: JudgedPhase) -> tuple[bool, bool, float, float]:
    """Those that are not normal, then those far beyond what is usual, by what they lose; the longest; then the step."""
    lost = one.excess if one.ratio.known and one.ratio.number > FAR else 0.0
    return one.phase == "step", one.normal is not False, -lost, -one.took.number


def first_look(evidence: Evidence, phases: Sequence[JudgedPhase]) -> Finding:
    """
    What the phases of a step say: that one is not normal, or takes most of a step of which nothing is predicted.

    Args:
        evidence: Everything that is known.
        phases: As they were judged.
    """
    far = [one for one in phases if one.normal is False]
    most = [one for one in phases if one.phase != "step" and one.normal is None and _takes_most(one, evidence)]
    for kind, found in (("slow", far), ("most", most)):
        if found:
            one = found[0]
            beyond = apply("lost_seconds", budget.change_from_baseline, value=one.took, baseline=one.usual)
            lost = apply("gain_fraction", train_step.time_share, part=beyond, whole=evidence.run.figure("step_seconds"))
            figures = known(took=one.took, usual=one.usual, times_usual=one.ratio, step_fraction=one.share)
            status: Status = "fault" if kind == "slow" or one.share.number > NEARLY_ALL else "note"
            return Finding(check="phases", status=status, kind=kind, names=(one.phase,), figures=figures, gain=lost)
    judged = any(one.normal is not None for one in phases)
    return Finding(check="phases", status="fine" if judged else "unknown")


def _takes_most(one: JudgedPhase, evidence: Evidence) -> bool:
    """Whether a phase beside which nothing else runs takes most of the step."""
    limit = NEARLY_ALL if one.phase == "generation" else MOST
    return evidence.run.mode != "async" and one.share.known and one.share.number > limit


def _judged(phase: str, took: Figure, evidence: Evidence, spread: float) -> JudgedPhase:
    needed = evidence.usual.get(_PREDICTED.get(phase, took.key), _UNKNOWN)
    needed = needed if needed.known and needed.number > 0 else _by_update(phase, took, evidence, spread)
    ratio = apply("times_usual", rl_step.times_longer, step_seconds=took, least_seconds=needed)
    share = apply("step_fraction", train_step.time_share, part=took, whole=evidence.run.figure("step_seconds"))
    band = band95(needed, spread) if needed.known else None
    normal = None if band is None else ratio.number <= FAR or took.number <= band[1]
    return JudgedPhase(phase=phase, took=took, usual=needed, ratio=ratio, share=share, band=band, normal=normal)


def _by_update(phase: str, took: Figure, evidence: Evidence, spread: float) -> Figure:
    """
    What log-probabilities of the same model take by what its update takes, where they take far longer.

    It holds of any model and GPU, but says too little to call a phase usual; of other phases nothing tells it.
    """
    if phase != "logprob":
        return _UNKNOWN
    update = evidence.run.figure("update_seconds")
    most = apply("usual_seconds", train_step.forward_share_time, update=update, passes=PASSES)
    return most if most.known and took.number > max(FAR * most.number, band95(most, spread)[1]) else _UNKNOWN


def band95(predicted: Figure, spread: float) -> tuple[float, float]:
    """
    The interval in which 95 % of runs elsewhere lie, and never narrower than the prediction's own.

    Args:
        predicted: With its 80 % interval.
        spread: Spread of the logarithm of measured over predicted.
    """
    value = predicted.number
    low, high = predicted.band or (value, value)
    shorter = max(spread, log(value / low) / _Z80 if low > 0 else 0.0)
    longer = max(spread, log(high / value) / _Z80)
    return value * exp(-_Z95 * shorter), value * exp(_Z95 * longer)


def hides_update(evidence: Evidence) -> bool:
    """Whether a log times no update, and its timer of generation covers whole steps of sides that work in turn."""
    run = evidence.run
    generation, step = run.figure("generation_seconds"), run.figure("step_seconds")
    covers = generation.known and step.known and generation.number >= WHOLE * step.number
    return covers and run.mode in {"colocated", "synchronous"} and not run.figure("update_seconds").known
