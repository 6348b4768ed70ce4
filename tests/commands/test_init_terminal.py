"""`rlsize init` on a real pseudo-terminal, answered as a person does: each prompt is awaited before a line is typed."""

from __future__ import annotations

import os
import re
import select
import shlex
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rlsize.facts.fields import Uncertain
from rlsize.readers.scenarios import read_scenario

pty = pytest.importorskip("pty", reason="needs pseudo-terminals")
fcntl = pytest.importorskip("fcntl", reason="needs pseudo-terminals")
termios = pytest.importorskip("termios", reason="needs pseudo-terminals")

CTRL_C = "\x03"
CTRL_D = "\x04"
_PATIENCE = 60.0  # seconds until a session that says nothing is given up; no test waits for it
_CHILD = """
import fcntl, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = ["rlsize", *{arguments!r}]
from rlsize.shell.app import main
main()
"""


class Session:
    """The command on a terminal of 80 columns."""

    def __init__(self, folder: Path, arguments: tuple[str, ...], terminal: str) -> None:
        self._main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
        kept = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "NO_COLOR", "FORCE_COLOR"}}
        kept.pop("RLSIZE_PROFILES", None)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CHILD.format(arguments=arguments)],
            stdin=side, stdout=side, stderr=side, cwd=folder, start_new_session=True, env=kept | {"TERM": terminal},
        )  # fmt: skip
        os.close(side)
        self._seen = b""
        self._read_to = 0

    @property
    def text(self) -> str:
        """All that was shown so far, what was typed included."""
        return self._seen.decode("utf-8", "replace").replace("\r\n", "\n")

    def until(self, words: str) -> str:
        """Wait for words that have not been waited for yet; what was shown up to them."""
        while (found := self._seen.find(words.encode(), self._read_to)) < 0:
            assert self._more(), f"ended before it said {words!r}:\n{self.text}"
        start, self._read_to = self._read_to, found + len(words.encode())
        return self._seen[start : self._read_to].decode("utf-8", "replace").replace("\r\n", "\n")

    def answer(self, prompt: str, *lines: str) -> str:
        """Wait for a prompt and type a line, as often as there are lines; what was shown before the last prompt."""
        shown = ""
        for line in lines or ("",):
            shown = self.until(prompt)
            self.until("]: ")
            self.press(f"{line}\n")
        return shown

    def press(self, keys: str) -> None:
        """Type."""
        os.write(self._main, keys.encode())

    def press_bytes(self, keys: bytes) -> None:
        """Type what need not be text."""
        os.write(self._main, keys)

    def end(self) -> int:
        """Read on to the end; the exit code."""
        while self._more():
            continue
        return self._process.wait(_PATIENCE)

    def interrupt(self) -> int:
        """Press Ctrl-C at a prompt, and again where nothing comes of it, as a person does; the exit code."""
        self.until("]: ")
        self.press(CTRL_C)
        tries = 0
        while tries < _PATIENCE and self._process.poll() is None:
            if not select.select([self._main], [], [], 1.0)[0]:  # it came after the prompt and before the reading
                self.press(CTRL_C)
                tries += 1
            elif not self._more():
                break
        return self.end()

    def close(self) -> None:
        """Leave nothing running."""
        self._process.kill()
        self._process.wait(_PATIENCE)
        os.close(self._main)

    def _more(self) -> bool:
        ready, _, _ = select.select([self._main], [], [], _PATIENCE)
        assert ready, f"says nothing more:\n{self.text}"
        try:
            read = os.read(self._main, 65536)
        except OSError:  # the other side has closed
            return False
        self._seen += read
        return bool(read)


Start = Callable[..., Session]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts `rlsize init` in an empty folder, which is the test's own too."""
    monkeypatch.chdir(tmp_path)
    sessions: list[Session] = []

    def begin(*arguments: str, terminal: str = "dumb") -> Session:
        sessions.append(Session(tmp_path, ("init", *arguments), terminal))
        return sessions[-1]

    yield begin
    for session in sessions:
        session.close()


def _here() -> list[str]:
    return sorted(path.name for path in Path().iterdir())


@pytest.mark.long
def test_enter_all_the_way_makes_a_file_that_loads(start: Start) -> None:
    """The usual answers, and nothing measured or priced; what was written and what to run next is said."""
    session = start()
    for prompt in (
        "Model", "GPU", "GPUs", "Algorithm", "Prompts per optimizer step", "Samples of one prompt", "Prompt tokens",
        "Response tokens", "Longest response", "Mode", "Response tok/s", "Busy trainer seconds", "Dollars per GPU-hour",
        "Limit",
    ):  # fmt: skip
        session.answer(prompt)
    assert session.end() == 0
    assert "wrote scenario.yaml and scenario.schema.json beside it" in session.text
    assert "next: rlsize " in session.text
    found = read_scenario("scenario.yaml")
    assert (found.value("model"), found.value("cluster.gpu"), found.value("cluster.gpus")) == (
        "qwen3-32b",
        "h100-sxm",
        64,
    )
    assert (found.value("placement.mode"), found.value("prices.gpu_hour"), found.value("rates.train_seconds")) == (
        None,
    ) * 3


@pytest.mark.long
def test_a_person_who_errs_is_told_at_once_and_asked_again(start: Start, rlsize: Callable[..., object]) -> None:
    """Names, units, words, contradictions and limits, each wrong first and right then; `fleet` takes the file."""
    session = start("own.yaml")
    assert "there is no model profile 'qwen3-23b'" in session.answer("Model:", "qwen3-23b", "qwen3-8b")
    assert "did you mean h100-sxm" in session.answer("GPU:", "h100-sxn", "h100-sxm")
    assert "must be a whole number" in session.answer("GPUs,", "4.5", "32")
    assert "did you mean grpo" in session.answer("Algorithm", "gprpo", "GRPO")
    assert "'lots' is not a count" in session.answer("Prompts per", "lots", "128")
    session.answer("Samples of one prompt", "4")
    assert "has a ±, which is not taken here" in session.answer("Prompt tokens", "300 ± 20", "1k")
    assert "tokens are more than qwen3-8b's own 40,960" in session.answer("Response tokens", "64k", "3.2k")
    assert "a mean of 3200 tokens lies above the cap of 2000" in session.answer("Longest", "2k", "16k")
    assert "did you mean" in session.answer("Mode", "asinc", "async")
    assert "-1 is too small" in session.answer("Staleness cap", "-1", "1")
    assert "32 of 32 GPUs leave none" in session.answer("Trainer GPUs", "32", "16")
    assert "no.yaml: no such file" in session.answer("Response tok/s", "no.yaml", "4 ± 0.2 ktok/s")
    assert "must be a whole number" in session.answer("GPUs of that instance", "1.5", "1")
    assert "GB/s" in session.answer("Busy trainer seconds", "20 GB/s", "20 ± 10 %")
    session.answer("Dollars per GPU-hour", "$2.50")
    assert "'yesterday' is no date" in session.answer("Day of that price", "yesterday", "2026-11-20")
    session.answer("Region", "eu # west: 1")
    session.answer("Limit", "cost_per_stp_usd 2", "cost_per_step_usd 2.5")
    assert "the budget allows 8" in session.answer("Another limit", "trainer_gpus 8", "trainer_idle_fraction=5%")
    session.answer("Another limit")
    assert session.end() == 0
    found = read_scenario("own.yaml")
    expected = {
        "model": "qwen3-8b", "cluster.gpus": 32, "algorithm.name": "grpo", "workload.prompts_per_step": 128.0,
        "workload.group_size": 4.0, "workload.prompt_tokens": 1000.0, "workload.response_tokens.mean": 3200.0,
        "workload.response_tokens.max": 16000.0, "placement.mode": "async", "placement.max_staleness": 1.0,
        "placement.trainer_gpus": 16, "rates.train_seconds": Uncertain(value=20.0, deviation=2.0),
        "rates.instance_tokens_per_second": Uncertain(value=4000.0, deviation=200.0),
        "prices.gpu_hour": Uncertain(value=2.5), "prices.as_of": "2026-11-20", "prices.region": "eu # west: 1",
    }  # fmt: skip
    assert {key: found.value(key) for key in expected} == expected
    assert sorted(found.scenario.budget.limits) == ["cost_per_step_usd", "trainer_idle_fraction"]
    assert "rlsize fleet own.yaml" in session.text
    assert getattr(rlsize("fleet", "own.yaml"), "code", None) == 0


@pytest.mark.long
def test_a_question_mark_says_more(start: Start) -> None:
    """Families where there are many names, names where they are few, words where it is about words."""
    session = start()
    assert "deepseek, ernie, falcon" in session.answer("Model:", "?", "")
    assert "h200-sxm" in session.answer("GPU:", "?", "200?", "")
    assert "a100" not in session.text.rpartition("200?")[2]
    session.answer("GPUs,")
    assert "reinforce++" in session.answer("Algorithm", "?", "")
    for prompt in ("Prompts", "Samples", "Prompt tokens", "Response tokens", "Longest"):
        session.answer(prompt)
    assert "take turns on the same GPUs" in session.answer("Mode", "?", "").replace("\n  ", " ")
    for prompt in ("Response tok/s", "Busy", "Dollars"):
        session.answer(prompt)
    assert "steps_per_day" in session.answer("Limit", "?", "")
    assert session.end() == 0


@pytest.mark.long
def test_what_flags_say_is_not_asked(start: Start) -> None:
    """Only the rest is; the GPUs of a node are asked where the profile does not know them."""
    session = start(
        "--model", "qwen3-8b", "--gpu", "rtx-4090", "--gpus", "16", "--prompts", "64", "--group", "8",
        "--prompt-tokens", "300", "--response-tokens", "1k", "--max-response-tokens", "4k", "--mode", "colocated",
        "--per-instance", "none", "--train-seconds", "none", "--gpu-hour", "none", "--budget", "gpus=16",
    )  # fmt: skip
    session.answer("GPUs in a node", "4")
    session.answer("Algorithm", "ppo")
    assert session.end() == 0
    assert session.text.count("]: ") == 2
    found = read_scenario("scenario.yaml")
    assert (found.value("cluster.gpus_per_node"), found.value("algorithm.name")) == (4, "ppo")


@pytest.mark.long
def test_an_answer_that_contradicts_a_flag_is_told(start: Start) -> None:
    """A cap was asked for, so only async will do."""
    session = start("--max-staleness", "2")
    for prompt in ("Model", "GPU", "GPUs", "Algorithm", "Prompts", "Samples", "Prompt tokens", "Response", "Longest"):
        session.answer(prompt)
    assert "a staleness cap of 2 with mode colocated" in session.answer("Mode", "colocated", "async")
    for prompt in ("Trainer GPUs", "Response tok/s", "Busy", "Dollars", "Limit"):
        session.answer(prompt)
    assert session.end() == 0
    assert read_scenario("scenario.yaml").value("placement.max_staleness") == 2


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("after", [0, 3])
def test_ctrl_c_writes_nothing(start: Start, after: int) -> None:
    """At the first question and at a later one: exit code 130, no traceback, an empty folder."""
    session = start()
    for prompt in ("Model", "GPU", "GPUs")[:after]:
        session.answer(prompt)
    assert session.interrupt() == 130
    assert "stopped, nothing is written" in session.text
    assert "Traceback" not in session.text
    assert _here() == []


def test_the_end_of_the_input_writes_nothing(start: Start) -> None:
    """Ctrl-D: exit code 2, and what to do instead."""
    session = start()
    session.answer("Model")
    session.until("]: ")
    session.press(CTRL_D)
    assert session.end() == 2
    assert "the input ended before the last question" in session.text
    assert "--yes" in session.text
    assert _here() == []


def test_a_file_that_exists_is_refused_before_anything_is_asked(start: Start) -> None:
    """Nobody answers questions in vain."""
    Path("scenario.yaml").write_text("kept\n", encoding="utf-8")
    session = start()
    assert session.end() == 2
    assert "--force replaces it" in session.text
    assert "]: " not in session.text
    assert Path("scenario.yaml").read_text(encoding="utf-8") == "kept\n"


def test_a_folder_that_takes_no_files_is_refused_before_anything_is_asked(start: Start) -> None:
    """As above; for whoever may write everywhere, a folder of no disk."""
    Path("closed").mkdir(mode=0o500)
    folder = "/proc" if os.access("closed", os.W_OK) else "closed"
    if not Path(folder).is_dir():
        pytest.skip("may write everywhere, and has no /proc")
    session = start(f"{folder}/a.yaml")
    assert session.end() == 2
    assert "cannot be written" in session.text
    assert "]: " not in session.text


@pytest.mark.long
def test_a_wrong_flag_is_told_before_anything_is_asked(start: Start) -> None:
    """All of them."""
    session = start("--gpus", "nine", "--model", "qwen3-23b")
    assert session.end() == 2
    assert session.text.count("error:") == 2
    assert "]: " not in session.text


@pytest.mark.long
def test_with_yes_nothing_is_asked(start: Start) -> None:
    """Flags and usual answers decide, on a terminal too."""
    session = start("--yes", "--gpus", "8")
    assert session.end() == 0
    assert "]: " not in session.text
    assert read_scenario("scenario.yaml").value("cluster.gpus") == 8


@pytest.mark.long
def test_bytes_that_are_no_text_are_told(start: Start) -> None:
    """A broken character is a wrong answer, not a traceback."""
    session = start()
    session.until("]: ")
    session.press_bytes(b"\xff\xfe\n")
    assert "is not text" in session.answer("Model", "")
    assert session.interrupt() == 130
    assert "Traceback" not in session.text


def test_what_is_typed_cannot_drive_the_terminal(start: Start) -> None:
    """A name with an escape sequence comes back without it, on a terminal with colours too."""
    session = start(terminal="xterm-256color")
    session.until("]: ")
    session.press("\x1b[31mred\n")
    shown = session.until("there is no model profile")
    assert "\x1b]" not in shown
    named = session.until("?")
    assert "\x1b[31mred" not in named
    assert session.interrupt() == 130


@pytest.mark.long
def test_no_line_is_longer_than_the_terminal(start: Start) -> None:
    """Prompts and explanations fit 80 columns."""
    session = start()
    for prompt in ("Model", "GPU", "GPUs", "Algorithm", "Prompts", "Samples", "Prompt tokens", "Response", "Longest"):
        session.answer(prompt, "?", "")
    session.answer("Mode", "?", "async")
    for prompt in ("Staleness", "Trainer", "Response tok/s", "Busy"):
        session.answer(prompt, "?", "")
    session.answer("Dollars", "?", "2")
    for prompt in ("Day", "Region", "Limit"):
        session.answer(prompt, "?", "")
    assert session.end() == 0
    assert max(map(len, session.text.splitlines())) <= 80


@pytest.mark.long
def test_the_session_in_the_guide_is_what_happens(start: Start, checkout: Path) -> None:
    """The page shows a session; typing what it types shows the same again."""
    page = (checkout / "docs" / "how-to" / "write-a-scenario.md").read_text(encoding="utf-8")
    shown = re.search(r"```console\n(\$ rlsize init .*?)```", page, re.DOTALL)
    assert shown is not None
    command, *lines, rest = shown[1].strip().splitlines()
    session = start(*shlex.split(command)[3:])
    for line in lines:
        if "]: " in f"{line} ":
            session.until("]: ")
            session.press(f"{f'{line} '.partition(']: ')[2].strip()}\n")
    assert session.end() == 0
    found = [line.rstrip() for line in session.text.strip().splitlines()]
    assert (found[: len(lines)], rest) == (lines, "...")
