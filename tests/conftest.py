"""Fixtures that many tests share."""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.effort import CI, tries
from typer.testing import CliRunner

from rlsize.frozen import dataclass

# Every worker of a run has a core to itself: threads of its own for small matrices would only wait for each other's.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile(
    "rlsize", deadline=None, max_examples=tries(60), derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("rlsize")


ROOT = Path(__file__).resolve().parents[1]
_STATUS = pytest.StashKey[str]()


def checkout_status(root: Path) -> str:
    """What git says of the files below a checkout's root, untracked ones too; empty where there is no checkout."""
    if shutil.which("git") is None or not (root / ".git").exists():
        return ""
    asked = ["git", "-C", str(root), "status", "--porcelain", "--untracked-files=all"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stdout


def pytest_sessionstart(session: pytest.Session) -> None:
    """Note how the checkout is; workers of xdist leave that to the process that started them."""
    if not hasattr(session.config, "workerinput"):
        session.config.stash[_STATUS] = checkout_status(ROOT)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail where tests leave the checkout other than it was: what they write belongs into `tmp_path`."""
    if hasattr(session.config, "workerinput"):
        return
    before, after = session.config.stash[_STATUS], checkout_status(ROOT)
    new = sorted(set(after.splitlines()) ^ set(before.splitlines()))
    if new:
        sys.stderr.write("\nThe checkout is not as it was before the tests; who wrote, or edited meanwhile, this?\n")
        sys.stderr.write("".join(f"  {line}\n" for line in new))
        session.exitstatus = exitstatus or pytest.ExitCode.TESTS_FAILED


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave what is long to CI, but for as many cases as its mark says and for what is asked for by name."""
    if CI or any("::" in argument for argument in config.args):
        return
    seen: Counter[object] = Counter()
    left: list[pytest.Item] = []
    for item in items:
        mark = item.get_closest_marker("long")
        test = item.nodeid.partition("[")[0]
        seen[test] += 1
        if mark is not None and seen[test] > mark.kwargs.get("by_day", 0):
            left.append(item)
    config.hook.pytest_deselected(items=left)
    gone = {*map(id, left)}
    items[:] = [item for item in items if id(item) not in gone]


def pytest_collection_finish() -> None:
    """Let the collector of cycles leave alone what stays until the end, and look through the rest less often."""
    gc.freeze()
    gc.set_threshold(50_000)


@dataclass(frozen=True)
class Ran:
    """What a command printed, and how it ended."""

    stdout: str
    stderr: str
    code: int

    @property
    def document(self) -> dict[str, Any]:
        """Its stdout as JSON."""
        loaded: dict[str, Any] = json.loads(self.stdout)
        return loaded

    @property
    def results(self) -> dict[str, Any]:
        """The results of its JSON."""
        results: dict[str, Any] = self.document["results"]
        return results


@pytest.fixture
def rlsize(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs the command line in this process: `rlsize("fleet", "--consume", "1")`."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.delenv("RLSIZE_PROFILES", raising=False)

    def run(*args: str) -> Ran:
        from rlsize.shell.app import app

        result = CliRunner().invoke(app, list(args))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(result.stdout, result.stderr, result.exit_code)

    return run


@pytest.fixture(scope="session", autouse=True)
def _the_shipped_facts_have_one_digest() -> None:
    """A command reads all of them for it; in a process of many commands, which change none of them, one does."""
    from rlsize.shell import answer

    digest = answer.facts_digest
    shipped = cache(lambda: digest([]))
    answer.facts_digest = lambda folders: digest(folders) if folders or "RLSIZE_PROFILES" in os.environ else shipped()


@pytest.fixture(scope="session", autouse=True)
def _a_shipped_file_is_read_once() -> Iterator[None]:
    """A command reads all that it needs; in a process of many commands, which change none of them, the first does."""
    from rlsize.readers import profiles
    from rlsize.readers.yaml_documents import read_document

    folder, documents = profiles.shipped_folder(), cache(read_document)

    def of_file(path: Path) -> Any:
        return (documents if folder in path.parents else read_document)(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(profiles, "read_document", of_file)
        yield


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of the checkout; tests that need it are skipped where only the package is at hand."""
    root = Path(__file__).parents[1]
    if not (root / "README.md").is_file() or not (root / "src").is_dir():
        pytest.skip("needs the checkout, and only the installed package is here")
    return root


@pytest.fixture
def made_up() -> Any:
    """
    A class of records that no module has, as reader and predictor in one.

    A run takes `slowness work / gpus + start` seconds; rows say `run_time_s`, and some of them `work_per_s_total`.
    """
    from rlsize.errors import Refused
    from rlsize.estimates.constants import Constant, Stage
    from rlsize.facts.layout import Layout
    from rlsize.facts.records import Record

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Run(Record):
        work: float
        layout: Layout

    def constant(name: str, value: float, spread: float) -> Constant:
        return Constant(name=name, value=value, spread=spread, unit="s", meaning="", basis="assumed", source="")

    def record(row: Any, _: Any) -> Run:
        if "work" not in row:
            raise Refused("says no work")
        said = {key: row[key] for key in ("run_time_s", "work_per_s_total") if key in row}
        return Run(
            id=row["id"], source_id=row.get("source_id", "s"), trust=row.get("trust", "high"),
            model=row.get("model", "qwen3-8b"), gpu=row.get("gpu", "h100-sxm"), gpus=row.get("gpus", 1), stack="x",
            measured=said, work=row["work"], layout=Layout(tensor=row.get("tp", 1)),
            assumed=("one node",) if "tp" not in row else (),
        )  # fmt: skip

    def predict(run: Run, _: Any, values: Any) -> Any:
        if run.work < 0:
            raise Refused("does less than nothing")
        seconds = values["slowness"] * run.work / run.gpus + values["start"]
        return {"run_time_s": seconds, "work_per_s_total": run.work / seconds}

    return SimpleNamespace(
        CLASS="made_up",
        STAGES=(
            Stage(name="run", constants=(constant("slowness", 2.0, 0.5), constant("start", 1.0, 0.1)), noise=0.05),
        ),
        matches=lambda row: "run_time_s" in row,
        record=record,
        predict=predict,
        graded=lambda _: "run_time_s",
        family=lambda run: (run.source_id, run.model, run.gpu),
        noise=lambda _: 0.05,
        cell=lambda run, _: "large" if run.work > 20 else "small",
    )


def _hears_ctrl_c() -> None:
    """Undo an ignored SIGINT, which children of a job in the background inherit."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def start_rlsize() -> Callable[..., subprocess.Popen[str]]:
    """Starts the command line as a process of its own, in a session of its own, which a signal can interrupt."""

    def start(*args: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "rlsize", *args],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
            start_new_session=True,
            preexec_fn=_hears_ctrl_c,  # noqa: PLW1509 (no thread of a test holds a lock that this would need)
        )

    return start
