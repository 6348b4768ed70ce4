"""`measure` asked wrongly: everything that is wrong is told at once, and nothing is started for it."""

from __future__ import annotations

import errno
import http.server
import json
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlsize.commands import measure
from rlsize.commands.measure.asked import _engines, measurement
from rlsize.commands.measure.rollout import engine_shares
from rlsize.commands.measure.run import Journal, StageResults, Workbench, run_stage
from rlsize.errors import InputError, UnfinishedError
from rlsize.facts.counters import PhaseRun, Snapshot
from rlsize.facts.rates import InstanceRate, Rates, RateSource
from rlsize.measure.rollout import Turn
from rlsize.quantities.table import QUANTITIES
from rlsize.readers.metrics.pages import saved_page
from rlsize.readers.saved_files import read_rates
from rlsize.shell.inputs import Inputs

ROOT = Path(__file__).parents[2]
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": 128, "intermediate_size": 256,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "vocab_size": 1024,
    "max_position_embeddings": 4096, "tie_word_embeddings": False,
}  # fmt: skip


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder with a configuration and no weights."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    return folder


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python without torch and vLLM, whatever the one that runs the tests has."""
    monkeypatch.setattr("rlsize.measure.jobs.libraries", lambda *_: frozenset())


def test_all_faults_are_told_at_once(rlsize: Any, model: Path) -> None:
    """Each with its flag."""
    asked = rlsize(
        "measure", "--model", str(model), "--only", "foo", "--seconds", "x", "--concurrency", "0,a", "--buckets", "5",
        "--tensor-parallel", "3", "--dtype", "int3", "--engine-arg", "novalue", "--torchrun", "'open",
    )  # fmt: skip
    assert asked.code == 2
    flags = (
        "--only",
        "--seconds",
        "--concurrency",
        "--buckets",
        "--tensor-parallel",
        "--dtype",
        "--engine-arg",
        "--torchrun",
    )
    assert not [flag for flag in flags if f"error: {flag}:" not in asked.stderr]
    assert "4 heads of model cannot be shared by 3 GPUs" in asked.stderr


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ((), "no model is named"),
        (("--model", ""), "--model: names no model"),
        (("--model", "qwen3-9b"), "did you mean qwen3.5-9b or qwen3-8b"),
        (("--model", "{folder}"), "holds no config.json"),
        (("--model", "{model}", "--max-response-tokens", "5000"), "exceed the 4,096"),
        (("--model", "{model}", "--response-tokens", "900", "--max-response-tokens", "100"), "no room below the cap"),
        (("--model", "{model}", "--engine-python", "/no/python"), "/no/python cannot be run"),
        (("--model", "{model}", "--save", "{folder}"), "is a directory"),
        (("--model", "{model}", "--save", "{folder}/none/r.yaml"), "does not exist"),
        (("--url", "ftp://engine"), "only http and https"),
        (("--url", "e:1", "--url", "e:1"), "named twice"),
        (("--show", "{folder}/none.yaml"), "no such file"),
        (("--only", "train", "--trainer-log", "{folder}/none"), "none: cannot be read"),
        (("--model", "{model}", "--replay", "{folder}/text", "--only", "sync"), "a sync has none"),
        (("--model", "{model}", "--trainer-log", ""), "--trainer-log: names no log"),
        (("--model", "{model}", "--replay", "{folder}/none"), "none: no such file"),
        (("--model", "{model}", "--replay", "{folder}/ids"), "has token 5,000, and the model has 1,024"),
        (("--model", "{model}", "--replay", "{folder}/long"), "of 9,000 tokens exceed the 4,096"),
        (("--url", "e:1", "--only", "rollout", "--replay", "{folder}/text"), "texts, which need a tokenizer"),
        (("--only", "rollout", "--trainer-log", "log"), "stands for the train step"),
    ],
)
def test_a_question_that_cannot_be_answered_says_why(
    rlsize: Any, model: Path, tmp_path: Path, flags: tuple[str, ...], told: str
) -> None:
    """With the value and the way out; exit code 2."""
    (tmp_path / "ids").write_text('{"prompt_token_ids": [9, 5000], "response_tokens": 4}')
    (tmp_path / "long").write_text('{"prompt_tokens": 8000, "response_tokens": 1000}')
    (tmp_path / "text").write_text('{"prompt": "hello"}')
    asked = rlsize("measure", *(flag.format(folder=tmp_path, model=model) for flag in flags))
    assert asked.code == 2
    assert told in " ".join(asked.stderr.split())


@pytest.mark.usefixtures("bare")
def test_without_the_extra_it_says_what_to_install(rlsize: Any, model: Path) -> None:
    """For each kind of measurement that lacks something."""
    asked = rlsize("measure", "--model", str(model))
    assert asked.code == 2
    told = " ".join(asked.stderr.split())
    assert "pip install 'rlsize[measure]'" in told
    assert "has no vllm" in told
    assert "has no torch and no transformers" in told


def test_a_configuration_without_needed_keys_names_them(rlsize: Any, model: Path) -> None:
    """And where they are missing."""
    (model / "config.json").write_text('{"model_type": "qwen3"}', encoding="utf-8")
    asked = rlsize("measure", "--model", str(model))
    assert asked.code == 2
    assert "hidden_size" in asked.stderr
    assert "config.json" in asked.stderr


def test_a_gpu_that_is_not_there_is_asked_for_in_vain(
    rlsize: Any, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the machine has one, --device cuda is refused before anything starts."""
    monkeypatch.setattr("rlsize.measure.machine_state.gpu_states", lambda *_: [])
    asked = rlsize("measure", "--model", str(model), "--device", "cuda")
    assert asked.code == 2
    assert "no GPU was found" in asked.stderr


def test_servers_need_an_extra_which_is_named_where_it_is_lacking(rlsize: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is asked of them."""
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    refused = rlsize("measure", "--url", "127.0.0.1:9", "--only", "rollout", "--timeout", "2")
    assert refused.code == 2
    assert "pip install 'rlsize[servers]'" in refused.stderr


@pytest.mark.long
def test_a_server_that_is_not_there_is_unfinished_not_wrong(rlsize: Any) -> None:
    """Exit code 3, with its address."""
    asked = rlsize("measure", "--url", "127.0.0.1:9", "--only", "rollout", "--timeout", "2")
    assert asked.code == 3
    assert "127.0.0.1:9" in asked.stderr


@pytest.mark.long
def test_one_file_has_the_rollout_and_the_user_s_own_trainer(rlsize: Any, model: Path, tmp_path: Path) -> None:
    """The trainer's seconds and tokens are those that `observe` reads of its log; lengths that differ are a doubt."""
    fake, python = ROOT / "tests" / "measure" / "fake_python.py", tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {fake} "$@"\n')
    python.chmod(0o755)
    log, saved, alone = str(ROOT / "examples/operate/starving.jsonl"), tmp_path / "rates.yaml", tmp_path / "alone.yaml"
    known = rlsize("observe", log, "--json").document["results"]
    ran = rlsize(
        "measure", "--model", str(model), "--only", "rollout,train", "--trainer-log", log, "--device", "cpu",
        "--concurrency", "16", "--seconds", "1", "--prompts", "2", "--group", "4", "--prompt-tokens", "16",
        "--response-tokens", "20", "--engine-python", str(python), "--save", str(saved), "--json",
    )  # fmt: skip
    assert ran.code == 0, ran.stderr
    both = read_rates(str(saved))
    assert (both.rollout is None, both.train) == (False, None)
    assert both.train_seconds == pytest.approx(known["train_seconds"])
    assert ran.document["results"]["consumption_tokens_per_second"] == both.consumption_tokens_per_second
    assert any("responses of 1,539 tokens" in doubt for doubt in both.doubts)
    ran = rlsize("measure", "--only", "train", "--trainer-log", log, "--trainer-gpus", "16", "--save", str(alone))
    assert (ran.code, read_rates(str(alone)).trainer_gpus) == (0, 16)


def test_prompts_of_a_file_are_the_workload(bench: Callable[..., Workbench], tmp_path: Path) -> None:
    """Their number and lengths are the step's unless a flag says it; what a line leaves open is drawn by the flags."""
    path = tmp_path / "prompts.jsonl"
    path.write_text(
        '{"prompt_token_ids": [5, 6], "response_tokens": 30}\n'
        '{"turns": [{"prompt_tokens": 3, "response_tokens": 40}, {"prompt_tokens": 1, "response_tokens": 30}]}\n'
    )
    work = bench(replay=str(path), prompts_per_step="8").asked.work
    assert (work.prompts, work.prompt_tokens, work.mean, work.cap) == (8, 3, 50.0, 70.0)
    path.write_text('{"prompt_tokens": 3}')
    work = bench(replay=str(path), response_tokens="25", response_cv="0").asked.work
    assert (work.prompts, work.traces) == (1, ((Turn(3, 25),),))


def rates() -> Rates:
    """The least that can be saved."""
    return Rates(
        measured_at="2026-11-20T12:00:00+00:00",
        source=RateSource(method="measure"),
        instance_tokens_per_second=InstanceRate(mean=1.0),
    )


def full_disk(*_: Any) -> None:
    """What writing to a full disk does."""
    raise InputError(f"cannot be written: {errno.errorcode[errno.ENOSPC]}")


def test_a_full_disk_loses_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What was measured goes beside the temporary files, and the message says where."""
    monkeypatch.setattr("rlsize.writers.files.write_whole", full_disk)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(UnfinishedError) as told:
        measure._save("rates.yaml", rates(), force=False)
    kept = Path(told.value.faults[0].todo.removeprefix("what was measured is in "))
    assert kept.parent == tmp_path
    assert "mean: 1.0" in kept.read_text(encoding="utf-8")


def test_no_disk_at_all_prints_it(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """As a last resort the file goes to stderr."""
    monkeypatch.setattr("rlsize.writers.files.write_whole", full_disk)
    monkeypatch.setattr(
        "tempfile.NamedTemporaryFile", lambda *_, **__: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full"))
    )
    with pytest.raises(UnfinishedError):
        measure._save("rates.yaml", rates(), force=False)
    assert "mean: 1.0" in capsys.readouterr().err


def test_secrets_of_a_url_stay_out_of_the_command_that_is_kept() -> None:
    """User, password and query are masked."""
    from rlsize.commands.measure.run import without_secrets

    kept = " ".join(without_secrets(["measure", "--url", "http://me:secret@engine:8000", "--url", "e/m?token=abc"]))
    assert "secret" not in kept
    assert "abc" not in kept
    assert "engine:8000" in kept


@pytest.fixture
def bench(tmp_path: Path, model: Path) -> Callable[..., Workbench]:
    """A bench without GPUs, for flags by their quantities."""

    def made(url: list[str] | None = None, replay: str | None = None, **texts: str) -> Workbench:
        inputs = Inputs(changes=["placement.trainer_gpus=512"], texts={"model": str(model), **texts})
        switches = dict.fromkeys(("dummy_weights", "quick", "insecure", "engine_update"), False)
        names = ("only", "ca", "concurrency", "buckets", "torchrun", "token_file", "engine_python", "engine_arg")
        flags = dict.fromkeys((*names, "trainer_python", "trainer_log", "engines"))
        asked = measurement(inputs, {**flags, **switches, "url": url, "replay": replay}, tmp_path)
        return Workbench(asked=asked, inputs=inputs, gpus=[], folder=tmp_path, say=lambda *_: None)

    return made


def test_a_journal_gives_back_pages_whose_keys_are_read_only(bench: Callable[..., Workbench], tmp_path: Path) -> None:
    """What an engine's page was read from is shared, and cannot be copied."""
    page = "tests/readers/data/vllm_metrics/engine_first.prom"
    seen = Snapshot(seconds=1.0, counters=saved_page(page)[0])
    run = PhaseRun(instance="e", concurrency=4, begun=0.0, full=1.0, ended=2.0, snapshots=(seen,))
    asked, rates = bench().asked, tmp_path / "rates.yaml"
    Journal(asked, None, str(rates), force=False).keep_level(4, [run])
    assert Journal(asked, f"{rates}.journal", None, force=False).levels == {4: [run]}


def test_a_trainer_is_given_the_workload_and_the_machine_s_ranks(
    bench: Callable[..., Workbench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prompts times group samples, a group of one length; the plan's trainer GPUs are not this machine's."""
    jobs: list[Any] = []
    monkeypatch.setattr("rlsize.measure.train.measure_train", lambda job, *_, **__: stopped(jobs, job))
    asked = bench(prompts_per_step="3", group_size="2", prompt_tokens="10", response_tokens="20", recompute="none")
    with pytest.raises(UnfinishedError, match="stopped"):
        run_stage("train", asked, StageResults())
    (job,) = jobs
    assert [prompt for prompt, _ in job.lengths] == [10] * 6
    assert job.lengths[::2] == job.lengths[1::2]
    assert (job.processes, job.recompute, job.device, job.group_size) == (1, "none", "cpu", 2)
    assert job.micro_batch_tokens == 4096


def test_a_login_of_the_environment_is_for_the_servers(
    bench: Callable[..., Workbench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the help of --token-file says it; over plain http it can be read on its way, which is told."""
    monkeypatch.setenv("RLSIZE_BASIC_AUTH", "me:secret")
    made = bench(url=["engine:8000"])
    (target,) = made.asked.targets
    assert made.asked.access.login_of(target) == ("me", "secret")
    assert any("password goes over plain http" in warning for warning in made.inputs.warnings)


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [({}, (1, 1)), ({"sender_ranks": "3"}, (3, 1)), ({"receiver_ranks": "4"}, (1, 4))],
    ids=str,
)
def test_ranks_that_nobody_says_are_those_that_the_other_side_leaves(
    bench: Callable[..., Workbench], monkeypatch: pytest.MonkeyPatch, ranks: dict[str, str], expected: tuple[int, int]
) -> None:
    """One rank of each side at least."""
    jobs: list[Any] = []
    monkeypatch.setattr("rlsize.measure.weight_sync.measure_sync", lambda job, *_, **__: stopped(jobs, job))
    with pytest.raises(UnfinishedError, match="stopped"):
        run_stage("sync", bench(**ranks), StageResults())
    assert (jobs[0].trainer_ranks, jobs[0].receiver_ranks) == expected


def stopped(jobs: list[Any], job: Any) -> None:
    """Keep the job that would have been run, and stop there."""
    jobs.append(job)
    raise UnfinishedError("stopped")


def test_what_nobody_said_of_the_workload_is_as_in_a_loop(bench: Callable[..., Workbench]) -> None:
    """Prompts and the spread of lengths are those that predictions assume; a short context shortens the rest."""
    plain, said = bench().asked.work, bench(response_tokens="100").asked.work
    assert (plain.prompts, plain.group_size, plain.prompt_tokens, plain.mean, plain.cap) == (32, 8, 512, 896.0, 3584.0)
    assert plain.cv == said.cv == QUANTITIES["response_cv"].default
    assert said.cap is None


@pytest.mark.parametrize(
    ("said", "gpus", "visible", "shares"),
    [
        (None, 8, None, [None]),
        ("all", 5, None, ["0,1", "2,3"]),
        ("2", 4, "GPU-a,GPU-b,3,4", ["GPU-a,GPU-b", "3,4"]),
        ("3", 0, None, [None, None, None]),
        ("3", 5, None, "3 engines of 2 GPUs need 6, and 5 can be seen"),
    ],
)
def test_each_engine_has_visible_gpus_of_its_own(
    said: str | None, gpus: int, visible: str | None, shares: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the words of CUDA_VISIBLE_DEVICES, so that UUIDs stay; more than there are is refused."""
    monkeypatch.setattr("rlsize.measure.machine_state.gpu_states", lambda: [None] * gpus)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    engines = _engines(Inputs(), {"engines": said, "url": None})
    engine: Any = SimpleNamespace(engines=engines, gpus=2)
    if isinstance(shares, str):
        with pytest.raises(InputError, match=shares):
            engine_shares(engine, on_gpus=True)
        return
    assert [one.get("CUDA_VISIBLE_DEVICES") for one in engine_shares(engine, on_gpus=True)] == shares


class Alive(http.server.BaseHTTPRequestHandler):
    """A server that takes a request, and keeps its stream alive for ever without a token."""

    def do_GET(self) -> None:
        """List a model, or show a page."""
        text = (
            '{"data": [{"id": "m"}]}' if self.path == "/v1/models" else 'vllm:generation_tokens_total{engine="0"} 5\n'
        )
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_POST(self) -> None:
        """Begin a stream."""
        self.send_response(200)
        self.end_headers()
        with suppress(OSError):
            while not self.server.ended.wait(0.05):  # type: ignore[attr-defined]  # the test's
                self.wfile.write(b': keep-alive\n\ndata: {"choices": []}\n\n')

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


@pytest.mark.long
def test_a_server_that_only_keeps_alive_is_not_waited_for(rlsize: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens count, not pages and comments: it ends in bounded time, with exit code 3 and a line that says so."""
    monkeypatch.setattr("rlsize.measure.instances.TOKENLESS_SECONDS", 1.0)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Alive) as server:
        server.daemon_threads = True
        server.ended = threading.Event()  # type: ignore[attr-defined]  # its own
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ran = rlsize(
            "measure", "--url", f"127.0.0.1:{server.server_port}", "--only", "rollout", "--response-tokens", "9"
        )
        server.ended.set()  # type: ignore[attr-defined]  # likewise
        server.shutdown()
    assert ran.code == 3
    assert "made no token for 1 s (its pages still come)" in ran.stderr
