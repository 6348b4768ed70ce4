"""A training log, summed up or followed; an observation as a file: what was seen, the pools, what GPUs cost."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rlsize.errors import Fault, InputError, RlsizeError
from rlsize.facts.figure import absent
from rlsize.facts.observations import ObservedAllocation, ObservedPrices, RunObservation
from rlsize.facts.plan import PlanFigure
from rlsize.facts.run_log import RunSummary
from rlsize.quantities.table import QUANTITIES
from rlsize.shell.command import tell
from rlsize.shell.progress import stop_waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rlsize.facts.figure import Figure
    from rlsize.facts.observations import Observation
    from rlsize.facts.rates import Rates
    from rlsize.facts.run_log import RunLog
    from rlsize.shell.inputs import Inputs
    from rlsize.shell.live_engines import Engines

POOLS = ("instances", "gpus_per_instance", "rollout_gpus", "trainer_gpus")
"""The pools of a run, as flags say them."""

DECIDED = ("response_tokens", "prompt_tokens")
"""What a run decides, whatever a scenario expected."""
_MODES = {"synchronous": "sync"}  # of logs, by what scenarios call them

MOST_STEPS = 1000  # of a saved observation, the newest: enough to tell a change of a percent or two
_COLUMNS = (
    *("step_seconds", "wait_seconds", "generation_seconds", "train_seconds", "sync_seconds"),
    *("response_tokens", "trainer_idle_fraction", "staleness_steps", "mfu"),
)


class ObservedPools(NamedTuple):
    """The pools of a run and what they cost, as flags, scenario and log say."""

    instances: Figure
    gpus_per_instance: Figure
    rollout_gpus: Figure
    trainer_gpus: Figure
    rollout_gpu_hour: Figure
    trainer_gpu_hour: Figure


def pools_of(inputs: Inputs) -> ObservedPools:
    """Ask for the pools of a run; nothing of it is needed."""
    from rlsize.loop.instance_count import instance_gpus, instances, stated_instances
    from rlsize.loop.prices import gpu_hours
    from rlsize.loop.sides import fleet_gpus

    size = instance_gpus(inputs)
    rollout, trainer = inputs.ask("rollout_gpus"), inputs.ask("trainer_gpus")
    prices = gpu_hours(inputs)
    count = stated_instances(inputs)
    if inputs.by_flag("instances") and not inputs.by_flag("rollout_gpus"):  # a scenario's fleet is of another size
        inputs.used.pop("rollout_gpus", None)
        rollout = absent("rollout_gpus", "--rollout-gpus")
    elif not count.known and size.known:
        count = instances(inputs, fleet_gpus(inputs), size)
    return ObservedPools(count, size, rollout, trainer, *prices)


def allocation_of(pools: ObservedPools, run: RunSummary, fleet: Observation | None) -> ObservedAllocation:
    """The pools as they are: as said, else as the log or the engines show."""
    count, size = pools.instances.if_known, pools.gpus_per_instance.if_known
    if count is None and fleet is not None:
        count = float(len(fleet.instances))
    rollout = pools.rollout_gpus.if_known or run.figure("rollout_gpus").if_known
    if rollout is None and count is not None and size is not None:
        rollout = count * size
    return ObservedAllocation(
        rollout_instances=count,
        gpus_per_instance=size,
        rollout_gpus=rollout,
        trainer_gpus=pools.trainer_gpus.if_known or run.figure("trainer_gpus").if_known,
    )


def prices_of(pools: ObservedPools) -> ObservedPrices:
    """What the GPUs cost, with who says so."""
    both = pools.rollout_gpu_hour, pools.trainer_gpu_hour
    source = ", ".join(dict.fromkeys(price.source for price in both if price.known and price.source))
    rollout, trainer = (figure.if_known for figure in both)
    return ObservedPrices(rollout_gpu_hour_usd=rollout, trainer_gpu_hour_usd=trainer, source=source)


def rates_of(run: RunSummary, engines: Engines | None, pools: ObservedPools) -> Rates | None:
    """Both rates, as far as they were seen; None where neither was."""
    from datetime import UTC, datetime

    from rlsize.estimates.measured_rates import with_trainer
    from rlsize.estimates.observing import observed_rates

    ended = None if engines is None else engines.watched.ended
    at = (datetime.now(UTC) if ended is None else datetime.fromtimestamp(ended, UTC)).isoformat(timespec="seconds")
    fleet = None
    if engines is not None and engines.seen.mean:
        fleet = observed_rates(engines.seen, measured_at=at, gpus_per_instance=pools.gpus_per_instance.if_known)
    return with_trainer(fleet, run, measured_at=at, trainer_gpus=pools.trainer_gpus.if_known)


def save_observation(
    path: str,
    logs: list[str],
    results: Iterable[Figure],
    seen: tuple[RunSummary, Engines | None],
    pools: ObservedPools,
    *,
    force: bool,
) -> None:
    """
    Write an observation.

    Args:
        path: Where it goes.
        logs: Training logs that were read.
        results: What the run did.
        seen: What the log and the engines told.
        pools: The pools of the run, and their prices.
        force: Whether a file that exists may be replaced.

    Raises:
        InputError: The file is there and is not to be overwritten, or cannot be written.
    """
    from datetime import UTC, datetime

    from rlsize.version import VERSION
    from rlsize.writers.files import write_whole
    from rlsize.writers.yaml_file import observation_text

    run, engines = seen
    fleet = None if engines is None else engines.seen
    observation = RunObservation(
        observed_at=datetime.now(UTC).isoformat(timespec="seconds"),
        rlsize_version=VERSION,
        sources=[*logs, *(engines.names if engines is not None else ())],
        framework=run.framework,
        mode="" if run.mode == "unknown" else run.mode,
        engine=fleet.engine if fleet is not None else "",
        allocation=allocation_of(pools, run, fleet),
        prices=prices_of(pools),
        rates=rates_of(run, engines, pools),
        results={
            figure.key: PlanFigure(value=figure.value, provenance=figure.provenance, source=figure.source)
            for figure in results
            if figure.known
        },
        steps=list(run.steps[-MOST_STEPS:]),
        columns={name: list(run.columns[name][-MOST_STEPS:]) for name in _COLUMNS if name in run.columns},
    )
    write_whole(path, observation_text(observation), force)


_LONG = 64 * 2**20  # bytes of a log that takes about a second to read


def read_run(
    inputs: Inputs,
    logs: list[str],
    format: str | None,  # noqa: A002 (the flag's name)
    mapped: Sequence[str] = (),
) -> RunSummary:
    """
    The training log, summed up; an empty summary where none is named.

    Args:
        inputs: Takes the faults, and says how many steps do not count.
        logs: The log.
        format: What it is, where the user says it.
        mapped: What its keys mean, as `--map` says it.

    Raises:
        InputError: All faults so far, and those of the log, where one is named.
    """
    if len(logs) > 1:
        inputs.fault(f"{len(logs)} training logs are named", logs[1], "name one; a run has one trainer")
    if mapped and not logs:
        inputs.fault("says what the keys of a training log mean, and none is named", "--map", "name the log")
    if not logs:
        return RunSummary()
    from rlsize.readers.logs.said import said_figures

    try:
        said = said_figures(mapped)
    except InputError as error:
        inputs.faults.extend(error.faults)
    skip = inputs.ask("skipped_steps")
    inputs.settle()

    from rlsize.estimates.run_summary import run_summary
    from rlsize.readers.logs.reading import read_log
    from rlsize.shell.progress import late_progress

    file = Path(logs[0])
    with late_progress("reading") as tell:
        log = read_log(logs[0], format, tell if file.is_file() and file.stat().st_size > _LONG else None, said)
    found = run_summary(log, int(skip.number) if skip.known else None)
    if not found.steps:
        todo = "let it run longer, or leave fewer steps out with --skip"
        raise InputError(Fault("holds no settled step", log.source, todo))
    return found


def shown_by(log: RunSummary) -> dict[str, float | str]:
    """What a log shows of quantities that scripts seldom say."""
    samples, prompts = log.figure("samples_per_step"), log.figure("prompt_tokens_per_step")
    dropped = log.figure("dropped_samples_per_step")
    found: dict[str, float | str] = {}
    means = {
        "response_tokens": "mean_response_tokens",
        "prompt_tokens": "mean_prompt_tokens",
        "hit_fraction": "prefix_cache_hit_fraction",
    }
    found |= {key: log.figure(name).number for key, name in means.items() if log.figure(name).known}
    if "hit_fraction" in found:  # counts of the same tokens may differ by rounding
        found["hit_fraction"] = min(float(found["hit_fraction"]), QUANTITIES["hit_fraction"].quantity.most or 1.0)
    if samples.known and samples.number:
        found["samples_per_step"] = float(round(samples.number))
        if prompts.known and "prompt_tokens" not in found:
            found["prompt_tokens"] = prompts.number / samples.number
        if dropped.known and dropped.number:
            found["tokens_generated_per_trained_token"] = (samples.number + dropped.number) / samples.number
    turns, tools = log.figure("turns"), log.figure("sample_tools_seconds")
    if turns.known and round(turns.number) > 1:
        found["turns"] = float(round(turns.number))
        if tools.known:
            found["tool_seconds"] = tools.number / (turns.number - 1.0)
    pools = {key: round(log.figure(key).number) for key in ("rollout_gpus", "trainer_gpus") if log.figure(key).known}
    if log.mode == "colocated" and pools:
        pools = {"gpus": max(pools.values())}
    found |= pools
    if log.mode != "unknown":
        found["mode"] = _MODES.get(log.mode, log.mode)
    return found


def log_reader(log: str | None, format: str | None, mapped: Sequence[str]) -> Callable[[], RunLog]:  # noqa: A002 (the flag's name)
    """
    What reads a log as it is now.

    Raises:
        InputError: It is nothing that can be read again, or `--map` is wrong.
    """
    from rlsize.readers.logs.reading import read_log
    from rlsize.readers.logs.said import said_figures

    if log is not None and log != "-" and not Path(log).exists():
        raise InputError(Fault("no such file", log, "check the path"))
    if log is None or log == "-":
        todo = "name the log that the trainer writes"
        raise InputError(Fault("is no file that can be read again", log or "LOG", todo))
    path, said = log, said_figures(mapped)
    return lambda: read_log(path, format, None, said)


def followed(
    log: str | None, read: Callable[[], RunLog] | None, every: float, *, always: bool = False
) -> Iterator[RunLog | None]:
    """
    The log, now and whenever it has changed; one that cannot be read for a while is told of once, on stderr.

    Args:
        log: Where it is; None where what is read is no file, which is read at each look.
        read: Reads it; None where there is nothing to read.
        every: Seconds between two looks. [s]
        always: Whether each look yields what was read last, if only nothing.
    """
    stop_waiting()  # what runs until it is told to stop tells of itself
    seen, told, found = "", "", None
    while True:
        now = "" if log is None else _look(log)
        new = read is not None and (log is None or now != seen)
        if new and read is not None:
            try:
                found = read()
            except RlsizeError as error:  # it has no whole step yet, or is being moved
                new = False
                if told != str(error):
                    tell(error)
                told = str(error)
            else:
                seen, told = now, ""
        if new or always:
            yield found
        time.sleep(every)


def _look(log: str) -> str:
    """What changes when a log does: size and time of it, or of what is in a folder."""
    path = Path(log)
    try:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        return repr([(str(one), one.stat().st_size, one.stat().st_mtime_ns) for one in files])
    except OSError as error:
        return repr(error)
