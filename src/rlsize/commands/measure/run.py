"""One run of `measure`: the stages that the machine can do, one after the other, and what becomes of their results."""

from __future__ import annotations

import shlex
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlsize.commands.measure.asked import measurement
from rlsize.commands.measure.stages import StageResults, Workbench, gpus_of, run_stage, stages_of
from rlsize.errors import Fault, InputError, RlsizeError
from rlsize.shell.progress import progress

if TYPE_CHECKING:
    from rlsize.commands.measure.asked import Measurement
    from rlsize.facts.rates import Rates
    from rlsize.shell.inputs import Inputs


@dataclass(slots=True)
class MeasurementOutcome:
    """What a run gave: rates as far as they were measured, and what went wrong."""

    rates: Rates | None = None
    notes: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    interrupted: bool = False


def run(inputs: Inputs, asked: dict[str, Any]) -> MeasurementOutcome:
    """
    Measure what was asked for, or what the machine can.

    Args:
        inputs: Flags, scenario and profiles.
        asked: The flags by their names.

    Raises:
        InputError: All that is wrong with what was asked; nothing is started before.
    """
    outcome, results = MeasurementOutcome(), StageResults()
    with tempfile.TemporaryDirectory(prefix="rlsize-", ignore_cleanup_errors=True) as name, _ended_in_order():
        folder = Path(name)
        chosen = measurement(inputs, asked, folder)
        gpus = gpus_of(chosen)
        stages = stages_of(chosen, gpus, outcome.notes)
        if stages != ["sync"]:
            _warn_of_defaults(inputs)
        logs: list[Path] = []
        try:
            with progress() as say:
                bench = Workbench(asked=chosen, inputs=inputs, gpus=gpus, folder=folder, say=say, log=logs.append)
                for stage in stages:
                    run_stage(stage, bench, results)
        except KeyboardInterrupt:
            outcome.interrupted = True
            results.partial.append("interrupted")
        except RlsizeError as error:
            if isinstance(error, InputError) and not results.some:
                raise
            outcome.faults += error.faults
            results.partial += [f"{fault.where}: {fault.what}" for fault in error.faults]
        finally:
            outcome.notes += _keep_logs(asked["log"], logs, force=asked["force"])
        outcome.interrupted = outcome.interrupted or "interrupted" in results.partial
        if results.some:
            outcome.rates = _rates(chosen, inputs, gpus, results)
    return outcome


def _warn_of_defaults(inputs: Inputs) -> None:
    """Say what of the workload was nobody's choice, where it decides the rates."""
    asked = ("group_size", "prompt_tokens", "response_tokens")
    missing = [key.replace("_", " ") for key in asked if inputs.used[key].provenance == "default"]
    if missing:
        inputs.warnings.append(
            f"taken for want of your recipe's: {', '.join(missing)}; a rate at the wrong lengths sizes the wrong fleet "
            "(give a scenario, or flags)"
        )


@contextmanager
def _ended_in_order() -> Iterator[None]:
    """Treat the polite request to end as Ctrl-C: batch systems send it, and engines must not outlive it."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _rates(chosen: Measurement, inputs: Inputs, gpus: list[str], results: StageResults) -> Rates:
    from datetime import UTC, datetime

    from rlsize.estimates.measured_rates import measured_rates
    from rlsize.facts.rates import RateConditions

    rollout = results.rollout
    conditions = (
        rollout.conditions
        if rollout
        else RateConditions(
            model=chosen.model.name if chosen.model else None,
            mean_response_tokens=chosen.work.mean,
            mean_prompt_tokens=float(chosen.work.prompt_tokens),
            group_size=float(chosen.work.group_size),
            response_cv=chosen.work.cv,
            max_response_tokens=chosen.work.cap,
        )
    )
    return measured_rates(
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        conditions=conditions,
        machine=_machine(gpus, results, remote=bool(chosen.servers.targets)),
        rollout=rollout.measured if rollout else None,
        instances=rollout.instances if rollout else (),
        engine=rollout.engine if rollout else None,
        gpus_per_instance=rollout.gpus_per_instance if rollout else None,
        train=results.train.measured if results.train else None,
        sync=results.sync.measured if results.sync else None,
        doubts=[*inputs.warnings, *dict.fromkeys(results.doubts)],
        partial="; ".join(dict.fromkeys(results.partial)),
        asked_concurrency=rollout.asked_concurrency if rollout else None,
    )


def _machine(gpus: list[str], results: StageResults, *, remote: bool) -> Any:
    """On what, with what and by which command; what a server runs on is not known here."""
    from rlsize.facts.measured import Machine
    from rlsize.measure.cpu_state import cpu_state
    from rlsize.measure.gpu_state import gpu_states
    from rlsize.version import VERSION

    parts = [part for part in (results.rollout, results.train, results.sync) if part is not None]
    libraries = {name: version for part in parts for name, version in part.versions.items() if version}
    states = gpu_states() if gpus else []
    here = results.train is not None or results.sync is not None or not remote
    cpu = cpu_state() if here else None
    return Machine(
        gpus=next((list(part.gpus) for part in parts if part.gpus), []),
        driver=states[0].driver if states else "",
        cpu=cpu.name if cpu else "",
        cpu_cores=cpu.cores if cpu else None,
        libraries={**libraries, "python": sys.version.split()[0], "rlsize": VERSION},
        command=shlex.join(["rlsize", *without_secrets(sys.argv[1:])]),
    )


def without_secrets(words: list[str]) -> list[str]:
    """The command line as it may be written into a file: a URL loses user, password and query."""
    from rlsize.readers.http_targets import masked

    return [masked(word) if "@" in word or "?" in word else word for word in words]


def _keep_logs(target: str | None, logs: list[Path], *, force: bool) -> list[str]:
    """Write what engines and trainers printed into one file; says so, or why not, as nothing measured may go for it."""
    if target is None:
        return []
    from rlsize.writers.files import write_whole

    parts = [b"==> %s <==\n%s\n" % (str(place.parent.name).encode(), place.read_bytes()) for place in logs]
    try:
        write_whole(target, b"".join(parts), force)
    except InputError as error:
        return [f"The logs are lost: {target} {error.faults[0].what}."]
    return [f"Wrote {target}."]
