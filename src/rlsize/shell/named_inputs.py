"""What the arguments of a command name: engines, training logs, result files, scenarios; told by content."""

from __future__ import annotations

import sys
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rlsize.dataclass import dataclass
from rlsize.errors import Fault, InputError, a_file, suggestion
from rlsize.readers.byte_sources import STDIN, shown_source
from rlsize.shell.access import blamed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.shell.inputs import Inputs

_HEAD = 2**20  # bytes by which a file is recognised
_HEADER = b"rlsize:"  # how the files open that rlsize writes itself


@dataclass(slots=True)
class NamedInputs:
    """
    What was named, by what it is.

    Args:
        urls: Engines.
        logs: Training logs.
        engine_logs: Logs of engines.
        results: Result files of benchmarks.
        scenarios: Scenario files, saved plans, and launches of frameworks.
        observations: Saved observations.
    """

    urls: list[str] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    engine_logs: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    scenarios: list[str] = field(default_factory=list)
    observations: list[str] = field(default_factory=list)


def named_inputs(
    inputs: Inputs,
    named: list[str],
    format: str | None,  # noqa: A002 (the flag's name)
    *,
    mapped: bool = False,
) -> NamedInputs:
    """
    The sources by what they are; a fault for each that is nothing that rlsize reads.

    Args:
        inputs: Takes the faults.
        named: Paths, `-` for stdin, and addresses.
        format: The format of the files, where the user says it.
        mapped: Whether the user says what keys of a log mean, so that any text may be one.
    """
    found = NamedInputs()
    logs, results = _stated(inputs, format)
    piped = _check_stdin(inputs, named)
    if not all(name.strip() for name in named):
        inputs.fault("an empty name", "SOURCE", "is a variable of the shell not set?")
    for name in filter(str.strip, named):
        if is_address(name):
            found.urls.append(name)
        elif results:
            found.results.append(name)
        elif logs or (name == STDIN and not piped):
            found.logs.append(name)
        else:
            with blamed(inputs, name):
                told = _log_kinds if name == STDIN else partial(_kinds_or_launch, inputs)
                kinds = told(name, mapped=mapped) or ["logs"]
                for kind in kinds:
                    getattr(found, kind).append(name)
                if len(kinds) > 1:
                    what = shown_source(name)
                    inputs.notes.append(f"{what} has the trainer's records and its engines' lines: both are used.")
    return found


def _check_stdin(inputs: Inputs, named: list[str]) -> bool:
    """Whether stdin gives a log; a fault where it is asked for twice or has nothing to give, as nobody types a log."""
    before = len(inputs.faults)
    if named.count(STDIN) > 1:
        inputs.fault("stdin can be read only once", STDIN, "name it once")
    if STDIN in named and sys.stdin is None:
        inputs.fault("stdin is closed", STDIN, "pipe a log into it, or name a file")
    elif STDIN in named and sys.stdin.isatty():
        inputs.fault("stdin is a terminal", STDIN, "pipe a log into it, or name a file")
    return len(inputs.faults) == before


def _stated(inputs: Inputs, format: str | None) -> tuple[bool, bool]:  # noqa: A002 (the flag's name)
    """Whether a stated format is one of training logs, or of result files."""
    if format is None:
        return False, False
    from rlsize.readers.bench.record import FORMATS as RESULTS
    from rlsize.readers.logs.reading import FORMATS as LOGS

    if format not in {*LOGS, *RESULTS}:
        inputs.fault(f"{format[:60]!r} is no format", "--format", suggestion(format, [*LOGS, *RESULTS]))
        return True, False
    return format in LOGS, format in RESULTS


def sort_of(name: str) -> str:
    """
    What a file is to a calibration: a `log`, one of rlsize's `own` files or a list of records, else a `launch`.

    Raises:
        InputError: It cannot be read.
    """
    from rlsize.readers.logs.recognising import is_log
    from rlsize.readers.logs.source import unpacked_head
    from rlsize.readers.scenarios import read_scenario

    if Path(name).is_dir():
        return "log"
    head = unpacked_head(_head(name))
    lines = [line for line in head.splitlines() if line.strip() and not line.startswith((b"#", b"---"))]
    if lines and lines[0].startswith((_HEADER, b"- ")):
        return "own"
    if is_log(name, loosely=False):
        return "log"
    try:
        read_scenario(name)
    except InputError:
        return "log" if is_log(name) else "launch"
    return "launch"


def is_address(name: str) -> bool:
    """Whether a name that is no file looks like an engine's address: a scheme, or host and port."""
    if name == STDIN or Path(name).exists():
        return False
    if "://" in name:
        return True
    host, _, rest = name.partition(":")
    return bool(host) and rest.partition("/")[0].isdigit() and "/" not in host


def _kinds_or_launch(inputs: Inputs, name: str, *, mapped: bool) -> list[str]:
    """
    The lists of `NamedInputs` that a file belongs to; a launch, which may look like a log of any keys, is a scenario.

    Raises:
        InputError: It cannot be read, or is nothing that rlsize reads.
    """
    from rlsize.readers.logs.recognising import is_log

    try:
        found = _kinds(name, mapped=mapped)
    except InputError:
        if _is_launch(inputs, name):
            return ["scenarios"]
        raise
    guessed = found == ["logs"] and Path(name).is_file() and not (mapped or is_log(name, loosely=False))
    return ["scenarios"] if guessed and _is_launch(inputs, name) else found


def _kinds(name: str, *, mapped: bool) -> list[str]:
    """
    The lists of `NamedInputs` that a file belongs to: a driver's log has a trainer and engines in it.

    Raises:
        InputError: It cannot be read, or is nothing that rlsize reads.
    """
    from rlsize.readers.bench.record import recognised as recognised_result
    from rlsize.readers.logs.source import unpacked_head

    if Path(name).is_dir():
        return ["logs"]
    plain = unpacked_head(_head(name))
    if plain.lstrip(b"\xef\xbb\xbf \r\n").startswith((_HEADER, b"# ")) and _HEADER in plain[:4096]:
        return [_own(name)]
    if recognised_result(plain) is not None:
        return ["results"]
    if kinds := _log_kinds(name, mapped=mapped):
        return kinds
    raise InputError(*_unknown(name, plain))


def _head(name: str) -> bytes:
    """
    The bytes by which a file is recognised.

    Raises:
        InputError: It cannot be read.
    """
    from rlsize.readers.yaml_documents import read_bytes

    path = Path(name)
    try:
        if path.is_file():
            with path.open("rb") as stream:
                return stream.read(_HEAD)
        return read_bytes(path)[:_HEAD]  # says what is wrong with what is no file
    except OSError as error:
        raise InputError(Fault(f"cannot be read: {error.strerror}", name, "check its permissions")) from None


def _log_kinds(name: str, *, mapped: bool) -> list[str]:
    """
    The lists of `NamedInputs` that a log belongs to; none for what is no log.

    Raises:
        InputError: It cannot be read.
    """
    from rlsize.readers.logs.recognising import is_log
    from rlsize.readers.metrics.engine_logs import engine_lines

    lines = engine_lines(name)
    if not mapped and not is_log(name):
        return ["engine_logs"] if lines else []
    return ["logs", "engine_logs"] if lines > 1 else ["logs"]


def _is_launch(inputs: Inputs, name: str) -> bool:
    """Whether a file is a launch script or a configuration of a framework."""
    from rlsize.readers.frameworks import frameworks
    from rlsize.readers.launch.launch import read_launch
    from rlsize.readers.scenarios import text_of

    said = str(inputs.texts.get("framework") or "")
    try:
        read_launch(name, frameworks(inputs.catalogue), framework=said, text=text_of(name))
    except InputError:
        return False
    return True


def printed_launch(inputs: Inputs, logs: Iterable[str]) -> str | None:
    """The first log that prints the configuration of its run, which says as much as a launch; None where none does."""
    return next((log for log in logs if log != STDIN and Path(log).is_file() and _is_launch(inputs, log)), None)


def _own(name: str) -> str:
    """A file that rlsize wrote, or that is written for it: by the kind in its header."""
    from rlsize.readers.yaml_documents import read_document

    kind = read_document(name).kind
    kinds = {"scenario": "scenarios", "plan": "scenarios", "observation": "observations"}
    if isinstance(kind, str) and kind in kinds:
        return kinds[kind]
    what = f"is {a_file(str(kind))}, which says nothing of a running loop" if kind else "has no kind in its header"
    raise InputError(Fault(what, name, "name a metrics URL, a training log, a benchmark's result or a scenario"))


def _unknown(name: str, head: bytes) -> list[Fault]:
    from rlsize.readers.logs.reading import FORMATS
    from rlsize.readers.logs.recognising import hints

    if b"# TYPE " in head or b"# HELP " in head:
        what = "is one metrics page; a rate needs two, and the time between them"
        return [Fault(what, name, "give both, as in --pages FIRST SECOND --seconds 60")]
    if not head.strip():
        return [Fault("is empty", name, "is the run writing its log elsewhere?")]
    todo = f"name its format with --format; training logs are {', '.join(FORMATS)}"
    return [Fault(f"is nothing that rlsize recognises{hints(head)}", name, todo)]
