"""
How commands end: each signal at each moment; what was finished is shown and kept, and no process and no pipe is left.

One case of each kind runs by default, all of them where RLSIZE_NIGHTLY is set.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.effort import NIGHTLY

from rlsize.measure.guard import MARK, marked
from rlsize.readers.saved_files import read_rates

PATIENCE = 120.0  # seconds; no test waits for it
ROOT = Path(__file__).parents[2]
LOG = ROOT / "examples" / "operate" / "starving.jsonl"
MOMENTS = ("begun", "under way", "late")
RUNS = 42  # of the simulation: 40 seeds, and what stands beside them
SIMULATE = (
    "simulate", "--mode", "async", "--max-staleness", "1", "--instances", "2", "--per-instance", "4000",
    "--concurrency", "16", "--prompts", "32", "--group", "4", "--response-tokens", "500", "--train-seconds", "2",
    "--steps", "16", "--jobs", "2", "--turns", "2",
)  # fmt: skip  # the kernel knows no turns, so it takes processes
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 128, "intermediate_size": 256,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 1024,
    "max_position_embeddings": 4096, "tie_word_embeddings": False,
}  # fmt: skip
KINDS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux's /proc")


class Case(NamedTuple):
    """A running command: its process, its folder, and the mark that all that it starts inherits."""

    process: subprocess.Popen[str]
    folder: Path
    mark: str
    heard: list[str]
    held: list[socket.socket]

    def hears(self) -> None:
        """Wait until it takes a request to end as one."""
        status = Path(f"/proc/{self.process.pid}/status")
        caught = sum(1 << (number - 1) for number in KINDS)
        self.until(lambda: int(status.read_text().split("SigCgt:")[1].split()[0], 16) & caught == caught)

    def said(self, *words: str) -> str:
        """Wait for a line on stderr with one of these words."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.heard.append(line)
            if any(word in line for word in words):
                return line
        pytest.fail(f"never said {words}: {self.heard}")

    def shown(self) -> str:
        """Wait for a line on stdout."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def left(self) -> list[int]:
        """What runs of it, by its environment or its command line."""
        found = marked(self.mark)
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if self.mark.partition("=")[2] in (place / "cmdline").read_text():
                    found.append(int(place.name))
        return found

    def children(self, word: str) -> list[int]:
        """What it has started, by a word of the command lines."""
        found = []
        for pid in self.left():
            with suppress(OSError):
                if word in Path(f"/proc/{pid}/cmdline").read_text() and pid != self.process.pid:
                    found.append(pid)
        return found

    @staticmethod
    def until(true: Callable[[], Any]) -> Any:
        """Wait until something is."""
        end = time.monotonic() + PATIENCE
        while not (found := true()):
            assert time.monotonic() < end
            threading.Event().wait(0.01)
        return found


class Ran(NamedTuple):
    """A command that has ended: its exit code and what it said."""

    code: int
    out: str
    err: str


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Case]]:
    """Starts a command with a mark in its environment; whatever is left at the end is a failure."""
    mark = f"RLSIZE_CASE={secrets.token_hex(8)}"
    name, _, value = mark.partition("=")
    made: list[Case] = []
    (tmp_path / "run.jsonl").touch()
    (tmp_path / "tmp").mkdir()
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(CONFIG))
    fake = ROOT / "tests" / "measure" / "fake_python.py"
    (tmp_path / "python").write_text(f'#!/bin/sh\nexec {sys.executable} {fake} "$@"\n')
    (tmp_path / "python").chmod(0o755)
    deaf = socket.create_server(("127.0.0.1", 0))
    (tmp_path / "hook").write_text(f"http://127.0.0.1:{deaf.getsockname()[1]}/\n")

    def starting(*args: str, ignores: int | None = None, **environment: str) -> Case:
        own = {key: text for key, text in os.environ.items() if key != MARK}

        def heard() -> None:
            for number in KINDS:
                signal.signal(number, signal.SIG_IGN if number == ignores else signal.SIG_DFL)

        process = subprocess.Popen(
            [sys.executable, "-m", "rlsize", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**own, "NO_COLOR": "1", "TMPDIR": str(tmp_path / "tmp"), name: value, **environment},
            cwd=tmp_path, start_new_session=True,
            preexec_fn=heard,  # noqa: PLW1509 (no thread of a test holds a lock that this would need)
        )  # fmt: skip
        made.append(Case(process, tmp_path, mark, [], [deaf]))
        return made[-1]

    yield starting
    for case in made:
        case.process.kill()
        case.process.communicate()
        for one in case.held:
            one.close()
        for pid in case.left():
            os.kill(pid, signal.SIGKILL)


def ended(case: Case, sent: int, pid: int | None = None) -> Ran:
    """Send it, and wait until the pipes are closed and no process is left; exit code, stdout, stderr."""
    os.kill(pid or case.process.pid, sent)
    out, err = case.process.communicate(timeout=PATIENCE)  # which returns when nobody holds the pipes any more
    case.until(lambda: not case.left())
    assert "Traceback" not in err
    return Ran(case.process.returncode, out, err)


def simulating(start: Callable[..., Case], moment: str) -> Case:
    """Forty runs on two processes."""
    case = start(*SIMULATE, "--seeds", "40", "--runs", "runs.jsonl", "--json")
    case.said({"begun": "0 of", "under way": "5 of", "late": "34 of"}[moment])
    return case


def simulated(case: Case, moment: str, ran: Ran) -> None:
    """Whole runs in the file, and an answer made of them."""
    path = case.folder / "runs.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    whole = [json.loads(line) for line in lines if line.endswith("}}")]
    assert len(whole) >= {"begun": 0, "under way": 5, "late": 34}[moment]
    if ran.code == 130 and whole:
        assert any("interrupted" in warning for warning in json.loads(ran.out)["warnings"])
    if ran.code == 0:
        assert len(whole) == RUNS


def planning(start: Callable[..., Case], moment: str) -> Case:
    """A plan that is saved."""
    case = start(
        "plan", "--model", "qwen3-8b", "--gpu", "h100-sxm", "--gpus", "32", "--prompts", "64", "--group", "16",
        "--response-tokens", "2k", "--save", "plan.yaml",
    )  # fmt: skip
    case.hears()
    if moment != "begun":
        case.said("working" if moment == "under way" else "wrote")
    return case


def planned(case: Case, moment: str, ran: Ran) -> None:
    """No half of a file, and no answer without one."""
    assert moment == "late" or not ran.out
    assert (case.folder / "plan.yaml").exists() == (moment == "late")
    assert not [path for path in case.folder.iterdir() if path.name.startswith(".")]


def watching(start: Callable[..., Case], moment: str) -> Case:
    """A log without a step yet, one that is followed, one whose verdict goes to a server that never answers."""
    hook = ("--webhook", "hook", "--fail-on", "starving") if moment == "late" else ()
    case = start("watch", "run.jsonl" if moment == "begun" else str(LOG), "--every", "0.5", *hook)
    if moment == "begun":
        case.said("is empty")
    else:
        assert case.shown().startswith("step 60: starving")
    if moment == "late":
        case.shown()  # what is sent
    return case


def watched(_case: Case, _moment: str, ran: Ran) -> None:
    """Nothing is half said."""
    assert not ran.out or ran.out.endswith("\n")


def exporting(start: Callable[..., Case], moment: str) -> Case:
    """A log without a step yet, one whose counts are kept, one that somebody asks for."""
    log = "run.jsonl" if moment == "begun" else str(LOG)
    case = start("export", log, "--listen", "127.0.0.1:0", "--every", "0.5", "--state", "state.json")
    host, _, port = case.said("serving").split("//")[1].split("/")[0].partition(":")
    if moment != "begun":
        case.until((case.folder / "state.json").exists)
    if moment == "late":
        case.held.append(socket.create_connection((host, int(port)), PATIENCE))  # who asks, and says no more
    return case


def exported(case: Case, moment: str, ran: Ran) -> None:
    """The counts, whole, as they were served last."""
    assert not ran.out
    state = case.folder / "state.json"
    assert state.exists() == (moment != "begun")
    if state.exists():
        assert json.loads(state.read_text())["totals"]


def measuring(start: Callable[..., Case], moment: str, *more: str, **environment: str) -> Case:
    """An engine that loads; one whose first level is over; a trainer after the whole rollout."""
    case = start(
        "measure", "--model", "model", "--only", "rollout,train", "--device", "cpu", "--concurrency", "16,64",
        "--seconds", "4", "--prompts", "2", "--group", "4", "--prompt-tokens", "16", "--response-tokens", "20",
        "--response-cv", "0", "--engine-python", "./python", "--save", "rates.yaml", *more,
        **({"STUB_LOADS": "1"} if moment == "begun" else {}), **environment,
    )  # fmt: skip
    case.said({"begun": "the engine loads", "under way": "16 in flight: filling", "late": "trainer"}[moment])
    if moment != "under way":
        case.until(lambda: case.children("SIG_IGN"))
    return case


def measured(case: Case, moment: str, ran: Ran) -> None:
    """Rates as far as they go, and a journal of what is whole; under KILL the journal alone."""
    journal, rates = case.folder / "rates.yaml.journal", case.folder / "rates.yaml"
    kept = [json.loads(line) for line in journal.read_text().splitlines()][1:] if journal.exists() else []
    levels, stages = [entry.get("level") for entry in kept], [entry.get("stage") for entry in kept]
    assert levels == {"begun": [], "under way": [64], "late": [64, 16, None]}[moment]
    assert ("rollout" in stages) == (moment == "late")
    assert rates.exists() == (moment != "begun" and ran.code != -signal.SIGKILL)
    if rates.exists():
        found = read_rates(str(rates))
        assert found.partial
        assert found.rollout is not None
        assert found.rollout.levels[-1].concurrency == 64
    assert not list(Path(case.folder / "tmp").iterdir())


COMMANDS: dict[str, tuple[Callable[[Callable[..., Case], str], Case], Callable[..., None]]] = {
    "simulate": (simulating, simulated),
    "plan": (planning, planned),
    "watch": (watching, watched),
    "export": (exporting, exported),
    "measure": (measuring, measured),
}
USUAL = {  # one case of each kind
    ("simulate", signal.SIGTERM, "under way"),
    ("plan", signal.SIGHUP, "begun"),
    ("watch", signal.SIGINT, "late"),
    ("export", signal.SIGKILL, "under way"),
    ("measure", signal.SIGHUP, "under way"),
    ("measure", signal.SIGKILL, "late"),
}
CASES = [
    case
    for case in product(COMMANDS, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL), MOMENTS)
    if NIGHTLY or case in USUAL
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "sent", "moment"), CASES)
def test_a_signal_ends_a_command_in_order(
    name: str, sent: signal.Signals, moment: str, start: Callable[..., Case]
) -> None:
    """130 for INT, TERM and HUP; nothing lost, nothing left; what KILL leaves is what was on disk."""
    begin, check = COMMANDS[name]
    case = begin(start, moment)
    ran = ended(case, sent)
    finished = {0} if (name, moment) == ("plan", "late") else set()  # it had only to print
    assert ran.code in {-sent if sent == signal.SIGKILL else 130, *finished}
    check(case, moment, ran)


CHILDREN = {
    ("simulate", "under way"): ("loky", signal.SIGKILL, 0),
    ("measure", "begun"): ("rollout_offline", signal.SIGKILL, 3),
    ("measure", "under way"): ("engine_stub", signal.SIGKILL, 3),
    ("measure", "late"): (
        "torch.distributed.run",
        signal.SIGABRT,
        3,
    ),  # KILL is taken for want of memory
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "moment"), [case for case in CHILDREN if NIGHTLY or case == ("simulate", "under way")]
)
def test_a_child_that_is_killed_is_told_or_replaced(name: str, moment: str, start: Callable[..., Case]) -> None:
    """Runs of a simulation are made again; a measurement keeps what it has, and what the child started ends too."""
    begin, check = COMMANDS[name]
    word, sent, code = CHILDREN[name, moment]
    case = begin(start, moment)
    pid = min(case.until(lambda: [pid for pid in case.children(word) if "tracker" not in _line(pid)]))
    ran = ended(case, sent, pid)
    assert ran.code == code
    assert "killed" in ran.err
    check(case, moment, ran)


def _line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


@pytest.mark.long
def test_a_measurement_goes_on_where_it_was_killed(start: Callable[..., Case]) -> None:
    """Nothing that its journal has is measured again; the journal of another question is refused."""
    case = measuring(start, "under way")
    ended(case, signal.SIGKILL)
    other = start("measure", "--model", "model", "--engine-python", "./python", "--resume", "rates.yaml.journal")
    _, err = other.process.communicate(timeout=PATIENCE)
    assert other.process.returncode == 2
    assert "another measurement" in err
    again = measuring(start, "late", "--resume", "rates.yaml.journal")
    code, _, err = ended(again, signal.SIGTERM)
    assert code == 130, err
    rates = read_rates(str(case.folder / "rates.yaml"))
    assert rates.rollout is not None
    assert [level.concurrency for level in rates.rollout.levels] == [16, 64]
    assert "64 in flight" not in "".join(again.heard)


@pytest.mark.long
def test_a_hangup_that_was_ignored_at_the_start_stays_ignored(start: Callable[..., Case]) -> None:
    """As under nohup: the terminal closes, and the work goes on."""
    case = start("watch", "run.jsonl", "--every", "0.5", ignores=signal.SIGHUP)
    case.said("is empty")
    os.kill(case.process.pid, signal.SIGHUP)
    (case.folder / "run.jsonl").write_text(LOG.read_text())
    assert case.shown().startswith("step")
    assert ended(case, signal.SIGTERM).code == 130


@pytest.mark.long
def test_a_second_signal_hastens_the_end(start: Callable[..., Case]) -> None:
    """A child that hears no polite request is not waited for; the first signal twice at once is one."""
    case = measuring(start, "late")
    os.kill(case.process.pid, signal.SIGTERM)
    os.kill(case.process.pid, signal.SIGTERM)
    case.until(lambda: not case.children("torch.distributed.run"))  # it is asked, and its rank hears nothing
    ran = ended(case, signal.SIGTERM)
    assert ran.code == 130
    measured(case, "late", ran)
