"""What is watched: who must be scraped for it, what its panel is called, and what whoever is called reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlsize.facts.published import AGE, QUEUED, STEP, SYNC, TRAINED, WAIT
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

_PERCENT, _LARGE = "{{ $value | humanizePercentage }}", "{{ $value | humanize }}"
_NUMBER, _WHOLE = '{{ printf "%.4g" $value }}', '{{ printf "%.0f" $value }}'
_INSTANCE = "{{ $labels.instance }}"

_VERL = "rl_insight_monitor_"
_VERL_STEP = f"avg_over_time({_VERL}timing_s_step{{$T}}[$W])"
_VERL_TRAINED = (
    f"sum(avg_over_time({_VERL}perf_total_num_tokens{{$T}}[$W]) / {_VERL_STEP}\n"
    f"  * avg_over_time({_VERL}response_length_mean{{$T}}[$W])\n"
    f"  / (avg_over_time({_VERL}response_length_mean{{$T}}[$W])"
    f" + avg_over_time({_VERL}prompt_length_mean{{$T}}[$W])))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertWords:
    """
    An alert in words.

    Args:
        alert: Its name.
        summary: What is wrong, with the value; a Go template.
        first: What to do first.
        planned: What should be, where no number of the plan says it.
        threshold: From where on it fires, where no number says it.
    """

    alert: str
    summary: str
    first: str
    planned: str = ""
    threshold: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal(AlertWords):
    """
    What is watched, with its alert.

    Args:
        title: What its panel is called.
        unit: Its unit, as Grafana names it.
        of_trainer: Whether the trainer must be scraped for it, alone or with the engines.
        series: The recorded series that it is judged by, where that has another name.
    """

    title: str
    unit: str = "none"
    of_trainer: bool = False
    series: str = ""


SIGNALS: Mapping[str, Signal] = {
    "idle": Signal(
        title="Trainer idle", unit="percentunit", of_trainer=True, alert="RlsizeTrainerIdle",
        summary=f"the trainer waits {_PERCENT} of the time for samples",
        first=(
            "Rule out a sick trainer and long weight syncs, then recover free throughput (prefix cache, "
            "preemptions, stragglers); add instances up to the matched count only after that."
        ),
    ),
    "sync": Signal(
        title="Weight sync, share of time", unit="percentunit", of_trainer=True, alert="RlsizeSyncPause",
        summary=f"weight syncs hold the loop up {_PERCENT} of the time",
        first="Look at transport and cadence of the weight sync; more instances do not help.",
    ),
    "queue": Signal(
        title="Samples that wait to be trained", of_trainer=True, alert="RlsizeQueueDeep",
        summary=f"{_LARGE} finished samples wait to be trained",
        first="See whether the trainer got slower; if not, cap the queue, then shrink the rollout fleet.",
        planned="within the staleness cap",
    ),
    "age": Signal(
        title="Oldest waiting sample, steps", of_trainer=True, alert="RlsizeSamplesStale",
        summary=f"the oldest waiting sample is {_NUMBER} optimizer steps old",
        first="Cap the queue in optimizer steps before anything else: what is too old is thrown away or harms.",
    ),
    "waste": Signal(
        title="Tokens generated per trained token", of_trainer=True, alert="RlsizeTokensWasted",
        summary=f"{_NUMBER} response tokens are generated for each that is trained",
        first="Find what throws them away: a growing queue, dropped stale samples, filters, aborts at syncs.",
    ),
    "goodput": Signal(
        title="Goodput: trained tokens per GPU-second", of_trainer=True, alert="RlsizeGoodputLow",
        summary=f"{_NUMBER} tokens are trained per GPU-second of both pools; 0 means that no step ends",
        first="Ask which side starves; this is the roll-up of all other alerts, so look at those that fire too.",
    ),
    "rollout": Signal(
        title="Rollout fleet, tokens per second", series="fleet", alert="RlsizeRolloutSlow",
        summary=f"the rollout fleet makes {_LARGE} tokens per second",
        first="Count instances and look for stragglers, then at lengths and sampling parameters that changed.",
    ),
    "cache": Signal(
        title="Prefix-cache hit ratio", unit="percentunit", alert="RlsizePrefixCacheCold",
        summary=f"{_INSTANCE} finds {_PERCENT} of its prompt tokens in the prefix cache",
        first="See whether prefix caching is on and whether groups stay together: configuration, not capacity.",
    ),
    "waiting": Signal(
        title="Requests waiting per running", alert="RlsizeRequestsWaiting",
        summary=f"{_NUMBER} requests wait on {_INSTANCE} for each that runs",
        first="Look at the KV cache and the limit of running requests; spread requests before adding instances.",
        planned="fewer than run",
    ),
    "preemptions": Signal(
        title="Preemptions per finished request", alert="RlsizePreemptions",
        summary=f"{_INSTANCE} preempts {_PERCENT} as many requests as it finishes",
        first="The KV cache is too small for the running batch: lower the limit of running requests, free memory.",
    ),
    "straggler": Signal(
        title="Instances, tokens per second", series="instance", alert="RlsizeInstanceSlow",
        summary=f"{_INSTANCE} makes {_LARGE} tokens per second, far less than the median instance",
        first="Look at its GPUs (clocks, errors), its neighbours and its share of requests; replace it if need be.",
        planned="as fast as the others",
    ),
    "up": Signal(
        title="Rollout instances that answer", alert="RlsizeInstancesMissing",
        summary=f"{_WHOLE} rollout instances answer",
        first="See which are gone (preempted, out of memory, not scheduled); nothing is to be resized before.",
    ),
}  # fmt: skip
"""Every signal, in the order in which its alert stands."""

DOWN = AlertWords(
    alert="RlsizeInstanceDown",
    summary=f"{_INSTANCE} does not answer",
    first="Look at its log and restart it; what it was generating is lost, and no more than that.",
    planned="every instance answers",
    threshold="it is known to Prometheus, and `up` is 0",
)
"""A target that is known and does not answer."""

MISSING = AlertWords(
    alert="RlsizeSignalMissing",
    summary="a signal is not there, so its alerts cannot fire",
    first="See whether its target is scraped and publishes it; the head of the rule file says what is needed.",
)
"""A signal that nobody tells."""


def _phase(name: str) -> str:
    """The share of its time that SkyRL's trainer is in a phase."""
    return f'sum(avg_over_time({{__name__=~"(ray_)?skyrl_training_phase",phase="{name}",$T}}[$W]))'


class TrainerExpression(NamedTuple):
    """
    Where a signal of the trainer comes from.

    Args:
        ours: The expression over the series that `rlsize export` publishes.
        aggregate: How several series of an expression of the user's own become one.
        theirs: Expressions over what frameworks export, taken where ours has no value; $F is a factor of the plan.
        factor: The figures of the plan whose product is $F; without them they are left out.
    """

    ours: str
    aggregate: str
    theirs: tuple[str, ...] = ()
    factor: tuple[str, ...] = ()


EXPRESSIONS: Mapping[str, TrainerExpression] = {
    "idle": TrainerExpression(
        f"sum(rate({WAIT}{{$T}}[$W]))\n  / sum(rate({STEP}{{$T}}[$W]))",
        "avg",
        (
            f"avg(avg_over_time({_VERL}timing_s_gen{{$T}}[$W])\n  / {_VERL_STEP})",
            _phase("wait_for_generation_buffer"),
        ),
    ),
    "sync": TrainerExpression(
        f"sum(rate({SYNC}{{$T}}[$W]))\n  / sum(rate({STEP}{{$T}}[$W]))",
        "avg",
        (f"avg(avg_over_time({_VERL}timing_s_update_weights{{$T}}[$W])\n  / {_VERL_STEP})", _phase("sync_weights")),
    ),
    "queue": TrainerExpression(
        f"sum({QUEUED}{{$T}})",
        "sum",
        ('sum({__name__=~"(ray_)?skyrl_gen_buffer_qsize",$T}) * $F',),
        factor=("group_size",),
    ),
    "age": TrainerExpression(
        f"max({AGE}{{$T}})", "max", (f"max({_VERL}training_off_policy_trajectory_staleness_worst_max{{$T}})",)
    ),
    "trained": TrainerExpression(
        f"sum(rate({TRAINED}{{$T}}[$W]))",
        "sum",
        (_VERL_TRAINED, "max(deriv(trainer_step{$T}[$W])) * $F"),
        factor=("loop_tokens_per_second", "step_seconds"),
    ),
}
"""What is told by the trainer, and what `--metric` may replace."""
