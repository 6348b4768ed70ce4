"""
From which values on somebody is told: thresholds that follow from a plan by stated rules, and windows to measure over.

A budget's line goes before the rule of its quantity. What a plan does not say has no threshold, and says why.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from rlsize.commands.alerts.signals import SIGNALS
from rlsize.equations import budget, imbalance, loop_time, matching, rl_step
from rlsize.errors import DoesNotFitError, Fault, InputError, a_file, refuse
from rlsize.estimates.figures import apply, measured
from rlsize.estimates.prefix_cache import SPREADS, routed_hits
from rlsize.facts.figure import Figure, absent
from rlsize.shell.inputs import SMALLEST
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rlsize.facts.figure import Value
    from rlsize.readers.saved_files import BudgetFile
    from rlsize.readers.yaml_documents import Document
    from rlsize.shell.inputs import Inputs

LEAST_WINDOW = 300.0  # s: several scrapes of any usual interval
WINDOW_STEPS = 10.0  # a counter that jumps once a step is off by at most a tenth of its rate
HOLD_STEPS = 3.0
LOST_SECONDS = 300.0  # an instance that is gone is gone, whatever the step
LONGEST_STEP = 86400.0  # s
IDLE_POINTS = 0.05
TOLERATED = 0.2  # share of the plan by which rates and ratios may be worse
SYNC_TIMES = 1.0  # added to the plan's share: twice as much
LEAST_SYNC = 0.02
WAITING_PER_RUNNING = 1.0
PREEMPTIONS_PER_REQUEST = 0.05
STRAGGLER_FRACTION = 0.7
BUDGETED = "the budget's limit"
_ALL = 0.999  # of the time: nothing can be more
_ALL_ALLOWED = "the budget allows all of the time"

_BUDGETED = {"trainer_idle_fraction": "max", "sync_fraction": "max", "staleness_steps": "max"}
_BUDGETED |= {"loop_tokens_per_gpu_second": "min"}
_LARGEST = 1e15  # above it, nothing that is counted in a loop is meant
_LEAST = {
    **dict.fromkeys(("trainer_idle_fraction", "sync_fraction", "staleness_steps"), 0.0),
    **dict.fromkeys(("samples_per_step", "prompts_per_step", "group_size", "prompt_tokens", "batch_tokens"), 1.0),
    **dict.fromkeys(("gpus", "instances"), 1.0),
    **dict.fromkeys(("train_seconds", "consumption_tokens_per_second", "tokens_generated_per_trained_token"), SMALLEST),
    **dict.fromkeys(("loop_tokens_per_second", "loop_tokens_per_gpu_second"), SMALLEST),
}
"""The least that a loop has of what alerts take."""

_SEEN = {  # what an observation calls otherwise than a plan
    "sync_pause_fraction": "sync_fraction",
    "largest_staleness_steps": "staleness_steps",
    "trained_tokens_per_second": "loop_tokens_per_second",
    "mean_prompt_tokens": "prompt_tokens",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLoop:
    """
    A loop as it was planned, from a saved plan or from a scenario.

    Args:
        name: The file.
        origin: Who worked it out, in a phrase.
        figures: Its placement, results and inputs, by key.
        routing: How samples reach instances, as scenarios say it; empty where nobody says.
        block_tokens: Tokens of a KV block. [token]
        budget: Limits of a budget by quantity, where there is one; the source is file, line and key.
        scenario: The scenario, as commands take it; empty for a saved plan.
    """

    name: str
    origin: str
    figures: Mapping[str, Figure]
    routing: str = ""
    block_tokens: float = 16.0
    budget: Mapping[str, Figure] = field(default_factory=dict)
    scenario: str = ""

    def figure(self, key: str) -> Figure:
        """A number of it; absent where it has none."""
        found = self.figures.get(key)
        if found is None or isinstance(found.value, (bool, str)):
            return absent(key, key)
        return found

    def word(self, key: str) -> str:
        """A word of it; empty where it has none."""
        found = self.figures.get(key)
        return found.value if found is not None and isinstance(found.value, str) else ""


class AlertLimit(NamedTuple):
    """
    What a signal should be, and from where on somebody is told.

    Args:
        key: What its value is called; the ending says the unit.
        expected: What the plan says it is; absent where a plan says nothing of it.
        limit: The threshold.
        rule: How the threshold follows, in a phrase.
        above: Whether too much of it is bad; else too little.
    """

    key: str
    expected: Figure
    limit: Figure
    rule: str
    above: bool = True

    @property
    def side(self) -> str:
        """Where the bad values lie."""
        return "above" if self.above else "below"

    def shown(self) -> tuple[str, str]:
        """What is expected and the threshold, with units."""
        return show(self.expected.value, self.key), show(self.limit.value, self.key)


class AlertPlan(NamedTuple):
    """
    All that alerts take from a plan.

    Args:
        loop: The plan.
        step_seconds: The planned step. [s]
        window_seconds: Window of what is compared with the trainer, whose counters jump once a step. [s]
        hold_seconds: Window of what is compared between instances, and how long a signal is bad before somebody is
            told. [s]
        limits: The limit of each signal that there is one for.
        left_out: Why the others have none, by signal.
        warnings: What the reader must know: limits that the plan itself breaks.
        consumption: Response tokens that the trainer takes per second of its own time; absent where unknown. [token/s]
    """

    loop: PlannedLoop
    step_seconds: Figure
    window_seconds: float
    hold_seconds: float
    limits: Mapping[str, AlertLimit]
    left_out: Mapping[str, str]
    warnings: tuple[str, ...]
    consumption: Figure


def alert_plan(loop: PlannedLoop) -> AlertPlan:
    """
    Thresholds and windows of a planned loop: so many steps, and never less than a few scrapes.

    Args:
        loop: The plan; its step must be known.
    """
    found = {signal: RULES[signal](loop) for signal in SIGNALS}
    limits = {signal: one for signal, one in found.items() if isinstance(one, AlertLimit)}
    step, consumption = loop.figure("step_seconds"), loop.figure("consumption_tokens_per_second")
    window, hold = (
        max(LEAST_WINDOW, apply("window_seconds", loop_time.run_time, step_seconds=step, steps=steps).number)
        for steps in (WINDOW_STEPS, HOLD_STEPS)
    )
    if not consumption.known:
        batch, train = loop.figure("batch_tokens"), loop.figure("train_seconds")
        consumption = apply(consumption.key, matching.consumption, tokens_per_step=batch, train_seconds=train)
    return AlertPlan(
        loop=loop,
        step_seconds=step,
        window_seconds=window,
        hold_seconds=hold,
        limits=limits,
        left_out={signal: why for signal, why in found.items() if isinstance(why, str)},
        warnings=(*_broken(limits), *_unsure(limits)),
        consumption=consumption,
    )


def _broken(limits: Mapping[str, AlertLimit]) -> Iterator[str]:
    """Limits that the plan itself does not keep, so that their alert fires from the start."""
    for one in limits.values():
        if not one.expected.known:
            continue
        if one.expected.number > one.limit.number if one.above else one.expected.number < one.limit.number:
            planned, limit = one.shown()
            past = f"the plan's own {one.key} of {planned} is {one.side} the limit of {limit} ({one.limit.source})"
            yield f"{past}: this alert fires from the start"


def _unsure(limits: Mapping[str, AlertLimit]) -> Iterator[str]:
    """Limits within the plan's own band: a loop that runs as was thought possible may be past them."""
    found = []
    for one in limits.values():
        if one.expected.band is None or one.rule == BUDGETED:
            continue
        low, high = one.expected.band
        if high > one.limit.number if one.above else low < one.limit.number:
            found.append(one.key)
    if found:
        yield (
            f"the plan's own 80 % bands reach past the limits of {', '.join(found)}: their alerts may fire on a loop "
            "that runs as predicted; a plan from measured rates, or a budget, settles it"
        )


def _raised(key: str, value: Figure, share: float) -> Figure:
    """A value and a share of it on top."""
    change = apply("change", budget.allowed_change, baseline=value, change_fraction=share)
    return apply(key, budget.highest_after_change, baseline=value, change=change)


def _lowered(key: str, value: Figure) -> Figure:
    """A value less the share of it that is tolerated."""
    change = apply("change", budget.allowed_change, baseline=value, change_fraction=TOLERATED)
    return apply(key, budget.lowest_after_change, baseline=value, change=change)


def _ruled(key: str, value: float, rule: str) -> Figure:
    """A number that a rule of thumb says."""
    return Figure(key=key, value=value, provenance="default", source=rule)


def _limit(expected: Figure, limit: Figure, rule: str, *, above: bool = True, key: str = "") -> AlertLimit:
    return AlertLimit(key or limit.key, expected, replace(limit, source=limit.source or rule), rule, above)


def _waited(loop: PlannedLoop) -> Figure:
    """Of the trainer's idle time what it waits for samples, which is what logs tell: no sync and no overhead."""
    idle, step = loop.figure("trainer_idle_fraction"), loop.figure("step_seconds")
    parts = [loop.figure(key) for key in ("train_seconds", "sync_exposed_seconds", "overhead_seconds")]
    if not idle.known or not all(part.known for part in parts):
        return idle
    train, sync, overhead = parts
    busy = apply("busy_seconds", rl_step.whole_step, phases_seconds=train, sync_seconds=sync, overhead_seconds=overhead)
    found = apply(idle.key, loop_time.waiting_fraction, busy_seconds=busy, iteration_seconds=step)
    band = idle.band
    if band is not None:  # the rest is as sure as the whole
        low, high = (max(0.0, end - idle.number + found.number) for end in band)
        band = (low, high)
    return replace(found, value=max(0.0, found.number), band=band)


def _idle(loop: PlannedLoop) -> AlertLimit | str:
    if loop.word("mode") == "colocated":
        return "engines run on the trainer's GPUs, so neither side waits for the other"
    planned, said = _waited(loop), loop.budget.get("trainer_idle_fraction")
    if said is not None:
        return _ALL_ALLOWED if said.number >= _ALL else _limit(planned, said, BUDGETED)
    if not planned.known:
        return "the plan does not say how long the trainer idles"
    limit = apply("trainer_idle_fraction", budget.highest_after_change, baseline=planned, change=IDLE_POINTS)
    if limit.number >= _ALL:
        return "the plan's trainer idles all the time"
    return _limit(planned, limit, "the plan's wait, and 5 points")


def _sync(loop: PlannedLoop) -> AlertLimit | str:
    planned, said = loop.figure("sync_fraction"), loop.budget.get("sync_fraction")
    if said is not None:
        return _ALL_ALLOWED if said.number >= _ALL else _limit(planned, said, BUDGETED)
    if not planned.known:
        return "the plan does not say how long weight syncs hold the loop up"
    doubled = _raised("sync_fraction", planned, SYNC_TIMES)
    if doubled.number >= _ALL:
        return "the plan's weight syncs take half of the time or more"
    if doubled.number < LEAST_SYNC:
        return _limit(planned, _ruled("sync_fraction", LEAST_SYNC, "2 %"), "2 %, as twice the plan's is less")
    return _limit(planned, doubled, "twice the plan's")


def _cap(loop: PlannedLoop) -> Figure:
    return loop.budget.get("staleness_steps", loop.figure("staleness_steps"))


def _queue(loop: PlannedLoop) -> AlertLimit | str:
    cap, samples = _cap(loop), loop.figure("samples_per_step")
    if not samples.known:
        prompts, group = loop.figure("prompts_per_step"), loop.figure("group_size")
        samples = apply("samples_per_step", matching.samples_per_step, prompts=prompts, group_size=group)
    if not cap.known:
        return "the plan says no staleness cap"
    if not samples.known:
        return "the plan does not say how many samples a step takes"
    under_way = samples if cap.number > 0 else 0.0
    batch = {"samples_per_step": samples, "in_flight": under_way}
    limit = apply("queue_samples", imbalance.queue_allowed, max_staleness=cap, **batch)
    if limit.number <= 0:
        return "a staleness cap below one step lets nothing wait"
    batches = f"{cap.number:g} batches" if cap.number > 1 else "one batch"
    rule = f"the staleness cap in samples: {batches} of {samples.number:g}"
    return _limit(absent("queue_samples", "a plan"), limit, rule)


def _age(loop: PlannedLoop) -> AlertLimit | str:
    cap = _cap(loop)
    if not cap.known:
        return "the plan says no staleness cap"
    rule = BUDGETED if "staleness_steps" in loop.budget else "the staleness cap"
    return _limit(loop.figure("staleness_steps"), cap, rule, key="oldest_sample_age_steps")


def _waste(loop: PlannedLoop) -> AlertLimit | str:
    planned = loop.figure("tokens_generated_per_trained_token")
    if not planned.known:
        return "the plan does not say how many tokens are generated for a trained one"
    return _limit(planned, _raised(planned.key, planned, TOLERATED), "1.2 times the plan's")


def _goodput(loop: PlannedLoop) -> AlertLimit | str:
    key, shown = "loop_tokens_per_gpu_second", "goodput_tokens_per_gpu_second"
    planned, said = loop.figure(key), loop.budget.get(key)
    if not loop.figure("gpus").known:
        return "the plan does not say how many GPUs there are"
    if said is not None:
        return _limit(planned, said, BUDGETED, above=False, key=shown)
    if not planned.known:
        return "the plan does not say how many tokens are trained"
    return _limit(planned, _lowered(key, planned), "0.8 times the plan's", above=False, key=shown)


def _rollout(loop: PlannedLoop) -> AlertLimit | str:
    trained, waste = loop.figure("loop_tokens_per_second"), loop.figure("tokens_generated_per_trained_token")
    key = "rollout_output_tokens_per_second"
    planned = apply(key, matching.required_supply, consumption=trained, tokens_generated_per_trained_token=waste)
    if not planned.known:
        return "the plan does not say how many tokens the fleet makes"
    return _limit(planned, _lowered(key, planned), "0.8 times what the plan needs", above=False)


def _cache(loop: PlannedLoop) -> AlertLimit | str:
    group, prompt, instances = (loop.figure(key) for key in ("group_size", "prompt_tokens", "instances"))
    if not group.known or not prompt.known:
        return "the plan does not say how large a group and how long a prompt is"
    if loop.routing in SPREADS and not instances.known:
        return f"with {loop.routing} routing it depends on the instances, which the plan does not say"
    block = _ruled("block_tokens", loop.block_tokens, "blocks of the engine")
    planned: Figure = routed_hits(
        loop.routing, group_size=group, instances=instances, prompt_tokens=prompt, block_tokens=block
    )
    if planned.number <= 0:
        return "no prompt is expected in a cache"
    rule = f"0.8 times what groups of {group.number:g} find, {loop.routing or 'affine'} routing"
    return _limit(planned, _lowered("prefix_cache_hit_fraction", planned), rule, above=False)


def _waiting(_: PlannedLoop) -> AlertLimit | str:
    key, rule = "waiting_per_running", "as many wait as run (a rule of thumb)"
    return _limit(absent(key, "a plan"), _ruled(key, WAITING_PER_RUNNING, rule), rule)


def _preemptions(_: PlannedLoop) -> AlertLimit | str:
    key, rule = "preemptions_per_request", "one request in twenty (a rule of thumb)"
    planned = _ruled(key, 0.0, "a plan leaves room for the cache")
    return _limit(planned, _ruled(key, PREEMPTIONS_PER_REQUEST, rule), rule)


def _straggler(loop: PlannedLoop) -> AlertLimit | str:
    instances = loop.figure("instances")
    if instances.known and instances.number <= 1:  # it has no median beside it
        return "the plan has one instance"
    key, rule = "instance_rate_fraction", "share of the median instance's rate (a rule of thumb)"
    return _limit(_ruled(key, 1.0, "instances are alike"), _ruled(key, STRAGGLER_FRACTION, rule), rule, above=False)


def _up(loop: PlannedLoop) -> AlertLimit | str:
    planned = loop.figure("instances")
    if not planned.known:
        return "the plan does not say how many instances there are"
    return _limit(planned, planned, "the plan's", above=False, key="instances")


RULES: Mapping[str, Callable[[PlannedLoop], AlertLimit | str]] = {
    "idle": _idle, "sync": _sync, "queue": _queue, "age": _age, "waste": _waste, "goodput": _goodput,
    "rollout": _rollout, "cache": _cache, "waiting": _waiting, "preemptions": _preemptions,
    "straggler": _straggler, "up": _up,
}  # fmt: skip
"""The rule of each signal: its limit, or why it has none."""


def planned_loop(inputs: Inputs, source: str | None, budget: str | None, changes: Sequence[str] = ()) -> PlannedLoop:
    """
    The loop of a file.

    Args:
        inputs: What is said beside it; then even a saved plan is worked out anew.
        source: A saved plan, an observation or a scenario.
        budget: A budget file.
        changes: What `--set` says.

    Raises:
        InputError: Everything that is wrong with the files.
        DoesNotFitError: The loop of a scenario cannot run.
    """
    from rlsize.readers.saved_files import read_budget
    from rlsize.readers.yaml_documents import read_document

    if source is None:
        todo = "name a saved plan (`rlsize plan ... --save plan.yaml`), a scenario or an observation"
        raise InputError(Fault("there is no plan to take thresholds from", "PLAN|SCENARIO", todo))
    lines = read_budget(budget) if budget is not None else None
    document = read_document(source)
    kind = document.kind
    beside = [inputs.flag(key) for key in inputs.texts if key != "engine"] + ["--set"] * bool(changes)
    if kind == "scenario" or (kind == "plan" and beside):
        loop = _worked_out(inputs, source, lines, changes)
    elif kind == "plan":
        loop = _of_plan(document, lines)
    elif kind == "observation":
        if beside:
            todo = "leave it out, or give the observation as --per-instance beside a scenario"
            raise InputError(Fault("an observation is taken as it was seen", beside[0], todo))
        loop = _of_observation(document, lines)
    else:
        what = f"is {a_file(kind)}" if isinstance(kind, str) else "does not say what it is"
        todo = "name a saved plan or a scenario: their first line says `rlsize: {kind: plan, version: 1}` or scenario"
        raise InputError(Fault(f"{what[:60]}, neither plan nor scenario", source, todo))
    step = loop.figure("step_seconds")
    if not step.known:
        raise InputError(Fault("does not say how long a step takes", loop.name, "save the plan again"))
    if not 0 < step.number <= LONGEST_STEP:
        what = f"a step of {step.number:g} s is no step that alerts can watch"
        raise InputError(Fault(what, loop.name, f"it should be above 0 and at most {LONGEST_STEP:,.0f} s"))
    refuse(
        Fault(f"{key} is {figure.number:g}", loop.name, "no loop has that; save the plan again")
        for key, least in _LEAST.items()
        if (figure := loop.figure(key)).known and not least <= figure.number <= _LARGEST
    )
    return loop


def _of_plan(document: Document, lines: BudgetFile | None) -> PlannedLoop:
    from rlsize.readers.saved_files import read_plan

    plan = read_plan(document)
    parts = (plan.inputs, plan.placement, plan.results)
    figures = {key: one.figure(key) for part in parts for key, one in part.items()}
    routing = figures["routing"].value if "routing" in figures else ""
    return PlannedLoop(
        name=document.name,
        origin=f"saved by `{plan.command[:200]}` of rlsize {plan.rlsize_version[:40]}",
        figures=figures,
        routing=routing if isinstance(routing, str) else "",
        budget=_budget(lines),
    )


def _of_observation(document: Document, lines: BudgetFile | None) -> PlannedLoop:
    """A loop that ran well: what was seen of it is what it should be."""
    from rlsize.readers.saved_files import read_observation

    seen = read_observation(document)
    pools = seen.allocation
    told: dict[str, Value] = {"instances": pools.rollout_instances, "rollout_gpus": pools.rollout_gpus}
    told |= {"trainer_gpus": pools.trainer_gpus, "mode": seen.mode or None, "engine": seen.engine or None}
    figures = {key: measured(key, value, document.name) for key, value in told.items() if value is not None}
    figures |= {
        _SEEN.get(key, key): one.figure(_SEEN.get(key, key))
        for key, one in seen.results.items()
        if key != "staleness_steps"  # a mean, and no cap
    }
    if pools.rollout_gpus is not None and pools.trainer_gpus is not None:
        both = {key: figures[key] for key in ("rollout_gpus", "trainer_gpus")}
        figures["gpus"] = apply("gpus", rl_step.gpus_of_both, **both)
        if "loop_tokens_per_second" in figures:
            key, trained = "loop_tokens_per_gpu_second", figures["loop_tokens_per_second"]
            figures[key] = apply(key, matching.rate_per_gpu, rate=trained, gpus=figures["gpus"])
    return PlannedLoop(
        name=document.name, origin=f"observed {seen.observed_at[:40]}", figures=figures, budget=_budget(lines)
    )


def _worked_out(inputs: Inputs, source: str, lines: BudgetFile | None, changes: Sequence[str]) -> PlannedLoop:
    from rlsize.loop.answer import answer_of
    from rlsize.loop.resolve import resolve
    from rlsize.readers.saved_files import budget_in
    from rlsize.version import VERSION

    inputs.read(source, changes)
    loop = resolve(inputs)
    if loop.lacking:
        what = f"no threshold follows from a step with {loop.bound}"
        raise InputError(Fault(what, source, "`rlsize simulate` models it; write rules from an observation instead"))
    if loop.refused:
        what = f"the loop cannot run: {loop.refused}"
        raise DoesNotFitError(Fault(what, source, "`rlsize plan` finds one that can"))
    found = answer_of(loop)
    figures = {key: one for part in (inputs.used, found.placement, found.results) for key, one in part.items()}
    block = inputs.ask("block_tokens")
    return PlannedLoop(
        name=source,
        origin=f"worked out by rlsize {VERSION}",
        figures={key: one for key, one in figures.items() if one.known},
        routing=inputs.choose("routing"),
        block_tokens=block.number if block.known else 16.0,
        budget={**_budget(budget_in(inputs.file) if inputs.file is not None else None), **_budget(lines)},
        scenario=source,
    )


def _budget(file: BudgetFile | None) -> dict[str, Figure]:
    """The lines of a budget that a threshold follows from."""
    if file is None:
        return {}
    limits = {key: getattr(file.budget.limits.get(key), side, None) for key, side in _BUDGETED.items()}
    return {
        key: Figure(key=key, value=value, source=file.where(key, _BUDGETED[key]))
        for key, value in limits.items()
        if value is not None
    }
