"""What may make a phase slow: what the run shows, what its settings say, and the usual suspects, in this order."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

from rlsize.facts.evidence import Cause
from rlsize.facts.figure import Figure
from rlsize.verdicts.diagnosis_checks import PREEMPTED, prefix_cache
from rlsize.verdicts.diagnosis_rates import FEW_RUNNING, long_tail
from rlsize.verdicts.usual_phases import FAR, hides_update

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlsize.facts.evidence import Evidence, JudgedPhase, Sign

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
