"""Whether the trainer itself became slower: over the run, or against what it should take."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rlsize.equations import budget, loop_time, train_step
from rlsize.estimates.block_bootstrap import mean_change
from rlsize.estimates.figures import apply, known, measured
from rlsize.facts.evidence import Finding
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.facts.evidence import Evidence

    Columns = Mapping[str, Sequence[float]]

REGRESSED = 0.1  # a trainer this much slower per token than at first, or than it should be, is looked at first


def trainer_health(evidence: Evidence, random: np.random.Generator) -> Finding:
    """
    Whether the trainer itself became slower.

    Responses that grow cost more per token by themselves, as attention does: a rise that they explain is noted only.
    """
    run = evidence.run
    drift, longer = _drift(evidence, random), _longer(run.columns)
    against = _against(evidence)
    expected = evidence.expected_train_seconds
    figures = known(run.figure("train_seconds"), run.figure("mfu"), expected, drift, longer, against)
    risen = drift.known and drift.number > REGRESSED
    explained = not longer.known or longer.number >= (drift.number if risen else 0.0)
    if risen and not explained:
        lost = apply("gain_fraction", loop_time.waiting_fraction, busy_seconds=1.0, iteration_seconds=1 + drift.number)
        return Finding(check="trainer_health", status="fault", kind="drift", figures=figures, gain=lost)
    if against.known and against.number > REGRESSED:
        return Finding(check="trainer_health", status="fault", kind="expected", figures=figures, gain=_saved(evidence))
    if risen:
        return Finding(check="trainer_health", status="note", kind="lengths", figures=figures)
    told = drift.known or against.known
    kind = "" if told else "short" if run.figure("train_seconds").known else "no log"
    return Finding(check="trainer_health", status="fine" if told else "unknown", kind=kind, figures=figures)


def _against(evidence: Evidence) -> Figure:
    """
    Change of the train time against what it should be.

    Per token where both say how many tokens a step has, as longer responses take longer; else per step.
    """
    expected, given = evidence.expected_train_seconds, evidence.consumption
    if not expected.known:
        return absent("train_time_change_fraction", "--train-seconds")
    seen = evidence.run.figure("consumption_tokens_per_second")
    key, change = "train_time_change_fraction", budget.relative_change
    if given.known and seen.known:
        return apply(key, change, value=given, baseline=seen)
    return apply(key, change, value=evidence.run.figure("train_seconds"), baseline=expected)


def _saved(evidence: Evidence) -> Figure:
    """What the expected train time would save, as a share of the step."""
    run, expected = evidence.run, evidence.expected_train_seconds
    more = apply("lost_seconds", budget.change_from_baseline, value=run.figure("train_seconds"), baseline=expected)
    if not more.known or more.number <= 0:
        return absent("gain_fraction", "a measurement after the change")
    return apply("gain_fraction", train_step.time_share, part=more, whole=run.figure("step_seconds"))


def _drift(evidence: Evidence, random: np.random.Generator) -> Figure:
    """Change of train time per token from the first half of the run to the second; 0 where none can be told."""
    key, columns = "train_time_drift_fraction", evidence.run.columns
    seconds = columns.get("train_seconds")
    if seconds is None:
        return absent(key, "a log with train times")
    tokens = _tokens(columns)
    series = seconds if tokens is None else [time / some for time, some in zip(seconds, tokens, strict=True)]
    half = len(series) // 2
    change = mean_change(series[:half], series[half:], random)
    if change is None:
        return absent(key, "more settled steps")
    source = f"second half of {len(series)} steps against the first, per {'step' if tokens is None else 'token'}"
    found = measured(key, change.fraction if change.told else 0.0, source)
    return replace(found, band=(change.low, change.high))


def _tokens(columns: Columns) -> Sequence[float] | None:
    """The tokens that each step trains on, or what is in proportion to them; None where nothing tells."""
    responses, prompts = columns.get("response_tokens"), columns.get("prompt_tokens")
    found: Sequence[float] | None = None
    if responses and prompts:
        found = [response + prompt for response, prompt in zip(responses, prompts, strict=True)]
    for name in ("total_tokens", "response_tokens", "mean_response_tokens"):
        found = found or columns.get(name)
    return found if found and all(found) else None


def _longer(columns: Columns) -> Figure:
    """Growth of the mean length of a sample from the first half of the run to the second."""
    key, tokens, samples = "length_growth_fraction", _tokens(columns), columns.get("samples")
    if samples and tokens and all(samples):
        lengths = [some / count for some, count in zip(tokens, samples, strict=True)]
    else:
        lengths = list(columns.get("mean_response_tokens", ()))
    half = len(lengths) // 2
    if not half or not all(lengths):
        return absent(key, "a log that tells lengths")
    first, second = (
        measured("mean_tokens", float(np.mean(part)), f"{name} half")
        for name, part in (("first", lengths[:half]), ("second", lengths[half:]))
    )
    return apply(key, budget.relative_change, value=second, baseline=first)
