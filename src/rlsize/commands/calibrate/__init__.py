"""`rlsize calibrate`: what measurements say about the constants of the predictions."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rlsize.commands.calibrate.points import PHASES, Gathered, other_mode, phase_of, rate_of, sync_of, train_of
from rlsize.errors import Fault, InputError, Refused, a_file
from rlsize.estimates.calibrating import Calibrated, Measurable, calibrated, contradiction, outlooks
from rlsize.estimates.calibration_belief import kept
from rlsize.facts.calibration import Calibration, CalibrationPoint, CalibrationSetting
from rlsize.facts.figure import Figure, absent
from rlsize.quantities.table import QUANTITIES
from rlsize.reports.report import Report
from rlsize.shell.command import Force, Profiles, argument, option
from rlsize.shell.inputs import Inputs
from rlsize.shell.live_engines import Map
from rlsize.shell.quantity_flags import Changes
from rlsize.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from rlsize.commands.calibrate.run import Run
    from rlsize.estimates.calibrating import Outlook
    from rlsize.facts.rates import Rates

    Heart: TypeAlias = tuple[Sequence[tuple[float, Figure]], Mapping[str, Figure]]

HEART = "Known by heart (of the scenario's run)"
TIMES = {phase: f"{phase}_seconds" for phase in ("step", "generation", "train", "sync")}
"""Keys of what may be known by heart, by phase."""


_CONCURRENCIES = (1.0, 16.0, 64.0, 256.0)


def _meant(key: str) -> str:
    return QUANTITIES[key].meaning


@dataclass(slots=True)
class _Files:
    """The arguments by what they are."""

    logs: list[str] = field(default_factory=list)
    rates: list[tuple[str, Rates]] = field(default_factory=list)
    records: list[str] = field(default_factory=list)
    scenario: str | None = None


def calibrate(
    sources: list[str] | None = argument(
        "SOURCE... [SCENARIO]",
        "Training logs, rates files, YAML lists of records of runs, and the scenario or launch that says what ran.",
    ),
    step_seconds: str | None = option("--step-seconds", _meant("step_seconds"), HEART),
    generation_seconds: str | None = option("--generation-seconds", _meant("generation_seconds"), HEART),
    train_seconds: str | None = option("--train-seconds", _meant("train_seconds"), HEART),
    sync_seconds: str | None = option("--sync-seconds", _meant("sync_seconds"), HEART),
    rate: list[str] | None = option(
        "--rate",
        "Response tokens per second of one instance with so many samples in flight; repeatable.",
        HEART,
        "CONCURRENCY=TOKENS_PER_SECOND",
    ),
    bandwidth: str | None = option("--bandwidth", "Slowest link of the sync in a rates file, one direction."),
    link: str | None = option("--link", "A link profile, such as infiniband-400g.", metavar="NAME"),
    save: str | None = option("--save", "Write a calibration file.", "Output", "FILE"),
    force: Force = False,
    mapped: Map = None,
    changes: Changes = None,
    profiles: Profiles = None,
) -> Report:
    """
    Compare a measurement with the predictions, stage by stage.

    Example:  rlsize calibrate examples/launch/distil-3b.log examples/launch/distil-3b.sh --set cluster.gpu=a800-sxm
    --save twin.yaml
    """
    from rlsize.commands.calibrate.report import calibrate_report
    from rlsize.shell.answer import check_files

    files = _sorted_out(sources or [])
    texts = dict(zip(TIMES.values(), (step_seconds, generation_seconds, train_seconds, sync_seconds), strict=True))
    said_by_heart = {key: text for key, text in texts.items() if text is not None}
    inputs = _what_ran(files, changes, lambda path: Inputs(path, profiles, texts=said_by_heart, changes=changes or ()))
    check_files(inputs, save, force=force)
    heart = {
        phase: inputs.ask(key) if inputs.by_flag(key) else absent(key, inputs.flag(key)) for phase, key in TIMES.items()
    }
    said = [pair for text in rate or [] if (pair := _rate(inputs, text)) is not None]
    way = _bandwidth(inputs, bandwidth, link)
    inputs.settle()
    sources = [*(figure.source for figure in heart.values() if figure.known), *(["--rate"] if said else [])]
    sources = [*files.logs, *(name for name, _ in files.rates), *files.records, *sources]
    if not sources:
        todo = "name a log, a rates file or a file of records, or give --rate, --train-seconds, ... with a scenario"
        raise InputError(Fault("nothing was measured", "SOURCE", todo))
    planned = inputs.instead(**dict.fromkeys(TIMES.values()))  # what was measured does not say what is predicted
    run = None
    if files.logs:
        from rlsize.commands.calibrate.run import Run, read_runs

        run = Run(planned, read_runs(planned, files.logs, mapped or ()), changes or (), files.logs)
    gathered = all_points(planned, files.rates, files.records, (said, heart), way, run)
    inputs.warnings += planned.warnings
    fact, found = calibration_of(gathered, sources)
    if run is not None:
        fact = run.kept(fact)
        inputs.warnings += run.warnings
    if save is not None:
        from rlsize.writers.files import write_whole
        from rlsize.writers.yaml_file import plain, yaml_text

        write_whole(save, yaml_text("calibration", plain(fact)), force)
        inputs.did(f"Wrote {save}: give it to any command that predicts, as --calibration {save}.")
    inputs.warnings += [f"{name} is partial: {one.partial}" for name, one in files.rates if one.partial]
    return calibrate_report(fact, found, outlook(gathered), gathered.unused, inputs)


def _what_ran(files: _Files, changes: Sequence[str] | None, read: Callable[[str | None], Inputs]) -> Inputs:
    """
    What says what ran: the scenario or launch that was named, else a configuration that a log prints, else `--set`.

    Raises:
        InputError: Nothing says it.
    """
    for log in [] if files.scenario is not None else files.logs:
        with suppress(InputError):
            return read(log)
    if files.scenario is None and files.logs and not changes:
        todo = f"name the launch or the scenario beside it, as in `rlsize calibrate {files.logs[0]} train.sh`"
        raise InputError(Fault("does not say what ran: model, GPUs, batch", files.logs[0], todo))
    return read(files.scenario)


def _sorted_out(paths: Sequence[str]) -> _Files:
    """
    The arguments by what their files say that they are.

    Raises:
        InputError: A file cannot be read, is something else, or there are two scenarios.
    """
    from rlsize.readers.saved_files import read_rates
    from rlsize.readers.yaml_documents import read_document
    from rlsize.shell.named_inputs import sort_of

    found = _Files()
    for path in paths:
        sort = sort_of(path)
        if sort == "log":
            found.logs.append(path)
            continue
        if sort == "engines":
            todo = "name the trainer's log; `rlsize observe` makes rates of this one, which may stand beside it"
            raise InputError(Fault("has the lines of engines alone, and times no step", path, todo))
        data = read_document(path) if sort == "own" else None
        kind = "scenario" if data is None else str(data.kind or "")
        if data is not None and isinstance(data.data, list):
            found.records.append(path)
        elif data is not None and kind == "rates":
            found.rates.append((path, read_rates(data)))
        elif kind in {"scenario", "plan"} and found.scenario is None:
            found.scenario = path
        elif kind in {"scenario", "plan"}:
            what = f"is a second scenario, after {found.scenario}, which is no log that can be read"
            raise InputError(Fault(what, path, "calibrate each run by itself, or write them as records"))
        else:
            what = f"is {a_file(str(kind))}" if kind else "does not say what it is"
            todo = "name a training log, a rates file, a YAML list of records, a scenario or a launch"
            raise InputError(Fault(what, path, todo))
    return found


def _rate(inputs: Inputs, text: str) -> tuple[float, Figure] | None:
    """A concurrency and its rate from `64=2100`."""
    left, equals, right = text.partition("=")
    if not equals:
        inputs.fault(f"{text[:40]!r} is no rate at a concurrency", "--rate", "write 64=2100")
        return None
    keys = ("concurrency", "instance_tokens_per_second")
    point = Inputs(
        texts=dict(zip(keys, (left.strip(), right.strip()), strict=True)), flags=dict.fromkeys(keys, "--rate")
    )
    concurrency, rate = map(point.ask, keys)
    inputs.faults += point.faults
    if not point.faults and not rate.known:
        inputs.fault(f"{right.strip()[:40]!r} is no rate", "--rate", "write 64=2100")
    return (concurrency.number, rate) if concurrency.known and rate.known else None


def _bandwidth(inputs: Inputs, bandwidth: str | None, link: str | None) -> Figure:
    """Of the link that a measured weight sync went over."""
    if bandwidth is None and link is None:
        return absent("bandwidth_bytes_per_second", "--link or --bandwidth")
    from rlsize.shell.links import paths

    named = inputs.instead(bandwidth_bytes_per_second=bandwidth, link=link, gpu=None, cluster=None)
    found = paths(named, absent("trainer_gpus", "--trainer-gpus")).between.bandwidth
    for fault in named.faults:
        inputs.fault(fault.what, fault.where, fault.todo)
    inputs.warnings += named.warnings
    return inputs.keep(found)


def all_points(
    inputs: Inputs, rates: Sequence[tuple[str, Rates]], paths: Sequence[str], heart: Heart, way: Figure, run: Run | None
) -> Gathered:
    """
    The points of all sources.

    Args:
        inputs: Scenario and profiles.
        rates: Rates files by name.
        paths: Files of records.
        heart: What flags say: rates by concurrency, and times by stage.
        way: Of the link that measured syncs went over.
        run: The run whose logs were named.

    Raises:
        InputError: A point contradicts its neighbours, or nothing can be used.
    """
    found = Gathered()
    if inputs.file is not None:
        found.plan(inputs)
    if run is not None:
        run.gather(found)
    if rates:
        from rlsize.commands.calibrate.records import of_rates

        for name, one in rates:
            of_rates(inputs, found, name, one, way)
    if paths:
        from rlsize.commands.calibrate.records import of_records

        for path in paths:
            of_records(inputs, found, path)
    found.add_flags(inputs, *heart)
    if not found.points and run is None:
        reasons = [Fault(reason, what) for what, reason in dict.fromkeys(found.unused)]
        raise InputError(Fault("nothing that was measured can be predicted", "SOURCE"), *reasons)
    against = contradiction(found.points)
    if against is not None:
        point, reason = against
        raise InputError(Fault(f"{point.of.what}: {reason}", point.source, "measure it again, or leave it out"))
    return found


def calibration_of(gathered: Gathered, sources: list[str]) -> tuple[Calibration, Calibrated]:
    """
    What the points say, as a file keeps it, and as what is believed.

    Raises:
        InputError: They contradict each other beyond what constants can explain.
    """
    try:
        made = calibrated(gathered.points)
    except Refused as refusal:
        raise InputError(Fault(str(refusal), "SOURCE", "leave out what was measured on something else")) from None
    constants, directions = kept(made.before, made.after)
    settings = dict.fromkeys(point.of.setting for point in gathered.points)
    fact = Calibration(
        made_by=VERSION,
        sources=sources,
        made_for=[one for one in settings if one != CalibrationSetting()],
        points=[
            CalibrationPoint(
                what=one.point.of.what,
                source=one.point.source,
                unit=one.point.of.unit,
                measured=one.point.measured,
                before=one.before,
                after=one.after,
                noise=one.point.spread,
            )
            for one in made.compared
        ],
        constants=constants,
        directions=directions,
    )
    return fact, made


def outlook(gathered: Gathered) -> tuple[str, list[Outlook]]:
    """What is to be known, and what each further measurement would do to its band; nothing where nothing is planned."""
    candidates = [*_of_step(gathered), *_of_rollout(gathered)]
    if gathered.train is not None:
        candidates.append(replace(train_of(gathered.train), what="train step by itself"))
    if gathered.sync is not None and gathered.step is None:
        candidates.append(replace(sync_of(gathered.sync), what="weight sync"))
    if not candidates:
        return "", []
    made = calibrated(gathered.points, *(stage for one in candidates for stage in one.stages))
    seen = gathered.seen | {point.of.what for point in gathered.points}
    return candidates[0].what, outlooks(made.after, candidates[0], [one for one in candidates if one.what not in seen])


def _of_step(gathered: Gathered) -> list[Measurable]:
    """The step of the scenario's loop, its phases, and the same in another mode."""
    if gathered.step is None:
        return []
    found = [phase_of(gathered.step, phase) for phase in PHASES]
    other = phase_of(other_mode(gathered.step), "step")
    silent = Gathered()  # that mode may not run on these GPUs
    return [*found, other] if silent.tried(other.what, lambda: other.central) is not None else found


def _of_rollout(gathered: Gathered) -> list[Measurable]:
    """Rates of an instance at some concurrencies, the planned one first."""
    one = gathered.rollout
    if one is None:
        return []
    try:
        return [rate_of(one, level) for level in dict.fromkeys((gathered.concurrency, *_CONCURRENCIES))]
    except Refused:
        return []
