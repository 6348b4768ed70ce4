"""`rlsize diagnose`: which side of a running loop starves, and what to do in which order."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypeAlias

from rlsize.errors import suggestion
from rlsize.facts.evidence import EngineLoad, Evidence
from rlsize.facts.figure import Figure, absent
from rlsize.reports.report import Report
from rlsize.shell.access import blamed
from rlsize.shell.answer import check_files
from rlsize.shell.command import Force, argument, option
from rlsize.shell.inputs import Inputs
from rlsize.shell.live_engines import WATCH, WatchFlags, check_watch, watched_engines
from rlsize.shell.named_inputs import NamedInputs, named_inputs, printed_launch
from rlsize.shell.observation import (
    DECIDED,
    POOLS,
    ObservedPools,
    allocation_of,
    pools_of,
    prices_of,
    read_run,
    save_observation,
    shown_by,
)
from rlsize.shell.quantity_flags import PRICES, Changes, Unassumed, asks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from rlsize.facts.evidence import Diagnosis
    from rlsize.facts.figure import Value
    from rlsize.facts.observations import RunObservation
    from rlsize.facts.run_log import RunSummary
    from rlsize.loop.assumed import Assumption
    from rlsize.loop.usual import Usual
    from rlsize.verdicts.before_after import Compared

    Baseline: TypeAlias = tuple[str, RunObservation] | None

FAILING = {
    "any": "",
    "worse": "",
    "regressed": "trainer regressed",
    "sync": "sync stall",
    "slow": "slow phase",
    "most": "one phase takes most",
    "starving": "starving trainer",
    "backlog": "growing backlog",
    "oversized": "oversized and held back",
    "limbo": "neither side at its limit",
    "unclear": "unclear",
}
"""What `--fail-on` takes: the verdict of each word."""
_LOADS = ("running", "waiting")
_SEED = 0  # the draws of a bootstrap are the same each time, so that an answer is
_RATES = (
    "consumption_tokens_per_second", "instance_tokens_per_second", "accept_lower_bound", "headroom",
    "tokens_generated_per_trained_token", "train_seconds",
)  # fmt: skip


@asks(
    beside_files=True,
    Inputs=(*_RATES, *WATCH, *POOLS),
    Limits=("idle_target_fraction", "sync_target_fraction", Unassumed("max_staleness")),
    Prices=PRICES,
)
def diagnose(
    inputs: Inputs,
    watch: WatchFlags,
    sources: list[str] | None = argument(
        "SOURCE...",
        "Engines (http://HOST:PORT), a training log (or - for stdin), and a scenario or launch, in any order.",
    ),
    before: str | None = option("--before", "A recorded observation to compare with, from --record.", metavar="FILE"),
    fail_on: str | None = option(
        "--fail-on",
        "Exit with 1 on any of these: worse, any, or verdicts such as starving, with commas.",
        "Output",
        "WORDS",
    ),
    changes: Changes = None,
    record: str | None = option(
        "--record", "Write what was seen with pools and prices: a baseline for --before, a way back.", "Output", "FILE"
    ),
    force: Force = False,
) -> Report:
    """
    Which side of a running loop starves, and what to do in which order.

    Example:  rlsize diagnose examples/operate/starving.jsonl --instances 8 --per-instance 4000
    """
    found = named_inputs(inputs, sources or [], watch.format, mapped=bool(watch.map))
    if len(found.scenarios) > 1:
        inputs.fault("two scenarios are named", found.scenarios[1], "name one")
    named = found.scenarios[0] if found.scenarios else printed_launch(inputs, found.logs)
    with blamed(inputs, named or "--set"):
        inputs.read(named, changes or [])
    inputs.load_rates()
    for key in ("skipped_steps", "group_size", "max_num_seqs"):
        inputs.ask(key)
    pools = pools_of(inputs)
    asked = limits_and_rates(inputs)
    check_files(inputs, record, force=force)
    if before is not None and record == before:
        inputs.fault("is the baseline, the way back", "--record", "write what is now to a file of its own")
    words = failing_words(inputs, fail_on, FAILING, compared=before is not None)
    engines = check_watch(inputs, found, watch)
    _check_kinds(inputs, found, engines=engines)
    baseline: Baseline = None
    if before is not None:
        from rlsize.readers.saved_files import read_observation

        with blamed(inputs, before):
            baseline = before, read_observation(before)
    run = read_run(inputs, found.logs, watch.format, watch.map or ())
    if not engines:
        inputs.settle()
    seen = watched_engines(inputs, found, watch, recorded=True, trainer=not found.logs) if engines else None
    run = run if seen is None or found.logs else seen.run
    evidence, loop = evidence_of(inputs, run, pools, asked)
    if seen:
        evidence = replace(evidence, fleet=seen.seen, load=seen.load, tail_of_wait=seen.tail)
        inputs.warnings[:0] = seen.doubts
    report = _answer(inputs, evidence, pools, loop, baseline, words)
    if record is not None:
        save_observation(record, found.logs, report.results, (evidence.run, seen), pools, force=force)
        note = f"Recorded {record}; compare later with --before {record}."
        report = replace(report, notes=(*report.notes, note))
    return replace(report, interrupted=seen is not None and seen.watched.interrupted)


def evidence_of(
    inputs: Inputs, run: RunSummary, pools: ObservedPools, asked: Mapping[str, Any]
) -> tuple[Evidence, Inputs]:
    """What a log, and what was said of its loop, speak for; and what says the loop."""
    run, usual, loop = _of_loop(inputs, run)
    logged = {name: fmean(run.columns[f"requests_{name}"]) for name in _LOADS if f"requests_{name}" in run.columns}
    evidence = Evidence(
        run=run,
        load=EngineLoad(**logged),  # what the engines had to do by the training log, where nobody looked at them
        usual=usual.results,
        lacking=usual.todo,
        said=usual.said,
        instances=pools.instances,
        gpus_per_instance=pools.gpus_per_instance,
        trainer_gpus=pools.trainer_gpus,
        **asked,
    )
    return evidence, loop


def limits_and_rates(inputs: Inputs) -> dict[str, Figure]:
    """What is accepted, and what is given of both rates; nothing of it is needed."""
    from rlsize.loop.rates import consumed, instance_rate, waste
    from rlsize.loop.workload import batch_tokens

    limits = {
        "idle_target": inputs.ask("idle_target_fraction"),
        "sync_target": inputs.ask("sync_target_fraction"),
        "max_staleness": inputs.ask("max_staleness", assume=False),
    }
    batch, train = batch_tokens(inputs), inputs.ask("train_seconds")
    rate, derate = absent("instance_tokens_per_second", "--per-instance"), absent("headroom", "--headroom")
    if inputs.gives("instance_tokens_per_second") and not inputs.rates_failed:
        rate, derate = instance_rate(inputs)
    elif inputs.by_flag("headroom"):
        derate = inputs.ask("headroom")
    consumption = absent("consumption_tokens_per_second", "--consume")
    if inputs.gives("consumption_tokens_per_second") or (batch.known and train.known):
        consumption = consumed(inputs, batch, train)
    return {
        "consumption": consumption,
        "waste": waste(inputs),
        "nameplate": rate,
        "headroom": derate,
        "expected_train_seconds": replace(train, key="expected_train_seconds") if train.known else train,
        **limits,
    }


def failing_words(inputs: Inputs, text: str | None, known: Collection[str], *, compared: bool) -> list[str]:
    """
    The words of `--fail-on`.

    Args:
        inputs: Takes the faults.
        text: As it was typed; None without the flag.
        known: The words that there are.
        compared: Whether there is a baseline.
    """
    found = [word.strip() for word in (text or "").split(",") if word.strip()]
    for word in found:
        if word not in known:
            inputs.fault(f"{word[:40]!r} is unknown", "--fail-on", suggestion(word, known))
    if text is not None and not found:
        inputs.fault("names nothing to fail on", "--fail-on", f"known: {', '.join(known)}")
    if "worse" in found and not compared:
        inputs.fault("worse than what is not said", "--fail-on", "give the baseline, as in --before before.yaml")
    return found


def fails(words: Collection[str], found: Diagnosis, compared: Iterable[Compared]) -> bool:
    """Whether the exit code is to be 1."""
    worse = any(one.outcome == "worse" for one in compared)
    bad = {"worse": worse, "any": worse or bool(found.steps)}
    return found.verdict in {FAILING.get(word) for word in words} or any(bad.get(word) for word in words)


def _check_kinds(inputs: Inputs, found: NamedInputs, *, engines: bool) -> None:
    for name in found.results:
        todo = "save its rate with `rlsize observe FILE --save rates.yaml`, and give it as --per-instance rates.yaml"
        inputs.fault("is a benchmark's result, not a running loop", name, todo)
    for name in found.observations:
        inputs.fault("is a saved observation", name, "compare with it: --before FILE")
    if not (engines or found.logs or inputs.faults):
        todo = "name engines, as in `rlsize diagnose http://engine-0:8000 --consume 39321`, or a training log"
        inputs.fault("nothing that runs is named", "SOURCE", todo)


def _answer(
    inputs: Inputs, evidence: Evidence, pools: ObservedPools, loop: Inputs, before: Baseline, words: list[str]
) -> Report:
    """The diagnosis, and the comparison where a baseline is given."""
    import numpy as np

    from rlsize.commands.diagnose.report import diagnose_report, outcome_words, rollback_words
    from rlsize.shell.launches import can_change, in_own_keys
    from rlsize.verdicts.before_after import Side, compared
    from rlsize.verdicts.diagnosis import diagnosis, step_costs

    random, run = np.random.default_rng(_SEED), evidence.run
    found = diagnosis(evidence, random)
    judged: tuple[Compared, ...] = ()
    back: list[str] = []  # what became of it, and how to go back
    if before is not None:
        path, then = before
        now = Side(run.columns, allocation_of(pools, run, evidence.fleet), prices_of(pools))
        judged = compared(Side(then.columns, then.allocation, then.prices), now, random)
        keys = ("prefix_cache_hit_fraction", "sync_pause_fraction")  # shares that may have got better since
        shares = {key: one.figures[key] for one in found.findings for key in keys if key in one.figures}
        shares |= {key: run.figures[key] for key in keys if key in run.figures}
        back = [outcome_words(judged, path), *rollback_words(then, path, shares)]

    def own_keys(change: Mapping[str, Value]) -> str:  # as the launch says it
        said = {key: value for key, value in change.items() if value is not None or inputs.gives(key)}
        return in_own_keys(inputs, said) if said and inputs.file is not None and can_change(inputs, said) else ""

    report = diagnose_report(
        evidence,
        found,
        inputs,
        (judged, back),
        changes=[own_keys(cause.change) for cause in found.causes],
        assumed=_assumed(inputs, evidence, found, loop),
        costs=step_costs(found, evidence, _paid(inputs, pools, shared=run.mode == "colocated")),
    )
    return replace(report, no=fails(words, found, judged))


def _assumed(inputs: Inputs, evidence: Evidence, found: Diagnosis, loop: Inputs) -> tuple[Assumption, ...] | None:
    """What nobody said and that moves the fleet that matches, or what is usual for the loop; None without either."""
    from rlsize.loop.assumed import assumptions
    from rlsize.loop.resolve import resolve
    from rlsize.verdicts.diagnosis_rates import matched_of

    def matched(said: Any) -> float:
        asked: dict[str, Any] = limits_and_rates(said)
        return matched_of(replace(evidence, **asked)).number

    of_fleet = assumptions(inputs, answer=matched) if found.matched.known else None
    if not evidence.usual:
        return of_fleet
    loop.ran = True
    return (*(of_fleet or ()), *(assumptions(loop, resolve(loop)) or ()))


def _paid(inputs: Inputs, pools: ObservedPools, *, shared: bool) -> dict[str, Figure]:
    """The GPUs of both sides and what they cost; those that are shared count once."""
    sides = (pools.rollout_gpus, pools.trainer_gpus, pools.rollout_gpu_hour, pools.trainer_gpu_hour)
    if shared:
        none = Figure(key="rollout_gpus", value=0, source="both sides share their GPUs")
        whole = pools.trainer_gpus if pools.trainer_gpus.known else inputs.apart().ask("gpus")
        sides = (none, whole, none, pools.trainer_gpu_hour)
    return dict(zip(("rollout_gpus", "trainer_gpus", "rollout_gpu_hour", "trainer_gpu_hour"), sides, strict=True))


def _of_loop(inputs: Inputs, run: RunSummary) -> tuple[RunSummary, Usual, Inputs]:
    """The run in the mode that is said where its log tells none, what is usual for its loop, and what says the loop."""
    from rlsize.loop.pools import LOOPS
    from rlsize.loop.usual import usual_of

    mode = LOOPS.get(str(inputs.said("placement.mode")))
    if run.mode == "unknown" and mode is not None:
        run = replace(run, mode=mode if mode in {"colocated", "synchronous"} else "async")
    said = inputs.apart()
    said.show(shown_by(run), run.source, first=DECIDED)
    found = usual_of(said)
    if found.why_not:
        inputs.ignore(f"What is usual for this loop is not known: {found.why_not}.")
    return run, found, said
