"""What the arguments of a command name: engines, training logs, result files, scenarios; told by content."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError, suggestion

if TYPE_CHECKING:
    from rlsize.shell.inputs import Inputs

STDIN = "-"
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
        scenarios: Scenario files, and saved plans.
        observations: Saved observations.
    """

    urls: list[str] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    engine_logs: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    scenarios: list[str] = field(default_factory=list)
    observations: list[str] = field(default_factory=list)


def named_inputs(inputs: Inputs, named: list[str], format: str | None) -> NamedInputs:  # noqa: A002 (the flag's name)
    """
    The sources by what they are; a fault for each that is nothing that rlsize reads.

    Args:
        inputs: Takes the faults.
        named: Paths, `-` for stdin, and addresses.
        format: The format of the files, where the user says it.
    """
    found = NamedInputs()
    logs, results = _stated(inputs, format)
    if not all(name.strip() for name in named):
        inputs.fault("an empty name", "SOURCE", "is a variable of the shell not set?")
    for name in filter(str.strip, named):
        if name != STDIN and not Path(name).exists() and _is_address(name):
            found.urls.append(name)
        elif results:
            found.results.append(name)
        elif logs or name == STDIN:
            found.logs.append(name)
        else:
            try:
                getattr(found, _kind(name)).append(name)
            except InputError as error:
                inputs.blame(error, name)
    _check_stdin(inputs, named)
    return found


def _check_stdin(inputs: Inputs, named: list[str]) -> None:
    """Note where stdin is asked for more than once, or has nothing to give: nobody types a log."""
    if named.count(STDIN) > 1:
        inputs.fault("stdin can be read only once", STDIN, "name it once")
    if STDIN in named and sys.stdin is None:
        inputs.fault("stdin is closed", STDIN, "pipe a log into it, or name a file")
    elif STDIN in named and sys.stdin.isatty():
        inputs.fault("stdin is a terminal", STDIN, "pipe a log into it, or name a file")


def _stated(inputs: Inputs, format: str | None) -> tuple[bool, bool]:  # noqa: A002 (the flag's name)
    """Whether a stated format is one of training logs, or of result files."""
    if format is None:
        return False, False
    from rlsize.readers.bench.documents import FORMATS as RESULTS
    from rlsize.readers.logs.reading import FORMATS as LOGS

    if format not in {*LOGS, *RESULTS}:
        inputs.fault(f"{format[:60]!r} is no format", "--format", suggestion(format, [*LOGS, *RESULTS]))
        return True, False
    return format in LOGS, format in RESULTS


def _is_address(name: str) -> bool:
    """Whether a name that is no file looks like an engine's address: a scheme, or host and port."""
    if "://" in name:
        return True
    host, _, rest = name.partition(":")
    return bool(host) and rest.partition("/")[0].isdigit() and "/" not in host


def _kind(name: str) -> str:
    """
    The list of `NamedInputs` that a file belongs to.

    Raises:
        InputError: It cannot be read, or is nothing that rlsize reads.
    """
    from rlsize.readers.bench.documents import recognised as recognised_result
    from rlsize.readers.logs.recognising import recognised as recognised_log
    from rlsize.readers.logs.source import unpacked_head
    from rlsize.readers.metrics.engine_logs import is_engine_log
    from rlsize.readers.yaml_documents import read_bytes

    path = Path(name)
    if path.is_dir():
        return "logs"
    try:
        if path.is_file():
            with path.open("rb") as stream:
                head = stream.read(_HEAD)
        else:
            head = read_bytes(path)[:_HEAD]  # says what is wrong with what is no file
    except OSError as error:
        raise InputError(Fault(f"cannot be read: {error.strerror}", name, "check its permissions")) from None
    plain = unpacked_head(head)
    if plain.lstrip(b"\xef\xbb\xbf \r\n").startswith((_HEADER, b"# ")) and _HEADER in plain[:4096]:
        return _own(name)
    if recognised_result(plain) is not None:
        return "results"
    if recognised_log(plain) is not None:
        return "logs"
    if is_engine_log(plain):
        return "engine_logs"
    raise InputError(*_unknown(name, plain))


def _own(name: str) -> str:
    """A file that rlsize wrote, or that is written for it: by the kind in its header."""
    from rlsize.readers.yaml_documents import read_document

    kind = read_document(name).kind
    kinds = {"scenario": "scenarios", "plan": "scenarios", "observation": "observations"}
    if isinstance(kind, str) and kind in kinds:
        return kinds[kind]
    what = f"is a {kind} file, which says nothing of a running loop" if kind else "has no kind in its header"
    raise InputError(Fault(what, name, "name a metrics URL, a training log, a benchmark's result or a scenario"))


def _unknown(name: str, head: bytes) -> list[Fault]:
    from rlsize.readers.logs.reading import FORMATS

    if b"# TYPE " in head or b"# HELP " in head:
        what = "is one metrics page; a rate needs two, and the time between them"
        return [Fault(what, name, "give both, as in --pages FIRST SECOND --seconds 60")]
    if not head.strip():
        return [Fault("is empty", name, "is the run writing its log elsewhere?")]
    todo = f"name its format with --format; training logs are {', '.join(FORMATS)}"
    return [Fault("is nothing that rlsize recognises", name, todo)]
