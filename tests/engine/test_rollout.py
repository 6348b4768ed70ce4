"""Rollouts on a real vLLM: what is counted is what was asked for, to the token; and what goes wrong ends in order."""

from __future__ import annotations

import http.server
import json
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.effort import BY_NIGHT

from rlsize.commands.measure.rollout import scrape_as
from rlsize.estimates.counter_growth import grown
from rlsize.estimates.rollout_rate import Interval, finite_batch, intervals, level, step_time_fit
from rlsize.estimates.rollout_summary import crosschecks
from rlsize.facts.measured import StepTimeFit
from rlsize.measure.instances import Instance, Launch, started
from rlsize.measure.jobs import command
from rlsize.measure.machine_state import descendants
from rlsize.measure.rollout import Record, RolloutPlan, Turn, measure_rollout
from rlsize.readers.saved_files import read_rates

BLOCK = 32
PROMPT = 128  # four blocks; the last token of a prompt is always computed, so three of them can be found again
GROUP = 4
SHORT = ("--group", "4", "--prompts", "8", "--prompt-tokens", "128", "--response-tokens", "60")
TINY = (
    "--dtype", "fp16", "--max-num-seqs", "32", "--engine-arg", "enforce_eager=true", "--engine-arg", "block_size=32",
)  # fmt: skip


@pytest.fixture(scope="module")
def engine(engine_python: str, tiny_models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A real engine, offline."""
    job = {
        "engine": {
            "model": str(tiny_models["qwen3"]), "load_format": "dummy", "max_model_len": 1024,
            "max_num_seqs": 32, "enforce_eager": True, "block_size": BLOCK,
        },
        "temperature": 1.0,
        "seed": 0,
    }  # fmt: skip
    folder = tmp_path_factory.mktemp("engines") / "engine"
    folder.mkdir()
    argv = command(engine_python, "rollout_offline", job, folder)
    [instance] = started([Launch("engine", argv, folder, scrape_as("engine"))], 600.0)
    yield instance
    instance.child.end()


def run(engine: Instance, **changes: Any) -> Record:
    """Measure on the engine, with a workload of 8 groups of 4 samples unless something else is asked for."""
    asked: dict[str, Any] = {
        "prompts": 8, "group_size": GROUP, "prompt_tokens": PROMPT, "mean": 60.0, "cv": 0.8, "cap": 400.0,
        "concurrencies": (8, 32), "seconds": 24.0,
    }  # fmt: skip
    return measure_rollout([engine], RolloutPlan(**{**asked, **changes}), lambda *_: None)


@pytest.fixture(scope="module")
def record(engine: Instance) -> Record:
    """One measurement that several tests look at."""
    return run(engine)


def test_the_engine_counts_what_was_asked_for_to_the_token(record: Record) -> None:
    """Tokens, samples and prefix-cache hits agree with the client's count and with the count by hand."""
    counted = {check.what: (check.asked, check.counted) for check in crosschecks(record.batch, record.work)}
    samples = 8 * GROUP
    hits = 8 * (GROUP - 1) * 3 * BLOCK
    tokens = sum(record.work.response_tokens) * GROUP
    assert counted == {
        "generation_tokens": (tokens, tokens),
        "finished_requests": (samples, samples),
        "prompt_tokens": (samples * PROMPT, samples * PROMPT),
        "prefix_cache_hits": (hits, hits),
    }


def test_samples_wait_as_long_as_the_batch_shows(record: Record) -> None:
    """The engine's own time to a first token, the client's to the last; a token takes about a step."""
    batch = finite_batch(record.batch, record.batch_prompts, record.batch_fraction)
    assert batch is not None
    assert batch.latency is not None
    first, token, sample = batch.latency.first_token, batch.latency.token, batch.latency.sample
    assert batch.latency.samples == batch.samples
    assert 0.0 < (first.p50_seconds or 0.0) < (sample.p50_seconds or 0.0)
    assert sample.p99_seconds == pytest.approx(batch.seconds_to_99_percent, rel=0.05)
    steps = level(record.levels[32], record.work)
    assert steps is not None
    assert steps.seconds_per_step is not None
    assert token.p50_seconds == pytest.approx(steps.seconds_per_step, rel=0.8)


def test_turns_find_what_was_made_before_them(engine: Instance) -> None:
    """
    The second turn of a trace finds the whole blocks of the first, its response among them, and nobody else's.

    128 tokens, 32 that are made, of which the last is not in the cache yet: 159, or four blocks of 32. Two turns look
    128 + (128 + 32 + 32) tokens up.
    """
    ids = [[(7 * trace + place) % 1000 + 10 for place in range(PROMPT)] for trace in range(8)]
    traces = tuple((Turn(one, 32), Turn([5] * 32, 16)) for one in ids)
    found = run(engine, group_size=1, concurrencies=(4,), traces=traces)
    [batch] = found.batch
    ends = [(batch.snapshots[0].counters, batch.snapshots[-1].counters)]
    assert [grown(ends, key) for key in ("prefix_cache_hits", "prefix_cache_queries")] == [8 * 128, 8 * (128 + 192)]
    assert grown(ends, "generation_tokens") == batch.asked == 8 * 48
    whole = finite_batch(found.batch, 8, 1.0)
    assert whole is not None
    assert (whole.samples, whole.latency.samples if whole.latency else 0) == (8, 16)
    assert level(found.levels[4], found.work) is not None


def test_a_level_holds_its_concurrency_from_the_start(record: Record) -> None:
    """The mean step of a level runs nearly all the samples in flight, and more in flight means more tokens."""
    levels = [level(runs, record.work) for _, runs in sorted(record.levels.items())]
    assert [entry.concurrency for entry in levels if entry] == [8, 32]
    for entry in levels:
        assert entry is not None
        assert entry.mean_batch == pytest.approx(entry.concurrency, rel=0.1)
    assert levels[0] is not None
    assert levels[1] is not None
    assert levels[1].tokens_per_second > levels[0].tokens_per_second


def test_live_tokens_start_where_a_long_run_would_have_them(record: Record) -> None:
    """A level begins with samples of all ages: live tokens are those of renewal theory, not of an empty engine."""
    entry = level(record.levels[32], record.work)
    assert entry is not None
    assert entry.live_kv_tokens is not None
    lengths = RolloutPlan(prompts=8, group_size=4, prompt_tokens=PROMPT, mean=60, cv=0.8, cap=400).lengths(256)
    mean_age = sum(length**2 for length in lengths) / sum(lengths) / 2
    assert entry.live_kv_tokens / 32 == pytest.approx(PROMPT + mean_age, rel=0.35)  # blocks are rounded up


def test_the_fit_gives_the_recorded_steps_back(record: Record) -> None:
    """
    Over all that was recorded, fitted steps are as long as the recorded ones, and their fixed part is no longer.

    How much a sample adds is not asserted: beside other work, a tiny model's steps tell it from nothing or do not.
    """
    every = [run for runs in record.levels.values() for run in runs] + record.batch
    seen = [entry for run in every for entry in intervals(run.snapshots, record.work)]
    fit = step_time_fit(seen)
    assert fit is not None
    used = [entry for entry in seen if entry.steps and entry.live_tokens is not None]
    assert fit.intervals == len(used)
    ratios = [fitted(fit, entry) / entry.step_seconds for entry in used]
    assert statistics.median(ratios) == pytest.approx(1.0, abs=max(0.1, fit.residual_fraction))
    assert 0 < fit.t0_seconds <= max(entry.step_seconds for entry in used)


def fitted(fit: StepTimeFit, entry: Interval) -> float:
    """A step of the fit."""
    parts = (
        fit.t1_seconds * entry.batch,
        fit.t2_seconds * (entry.live_tokens or 0),
        fit.t3_seconds * entry.prefill_tokens,
    )
    return fit.t0_seconds + sum(parts)


def test_mixed_lengths_finish_later_than_equal_ones_of_the_same_tokens(engine: Instance) -> None:
    """The tail is real: as many tokens take more engine steps, and the last sample comes after the median one."""
    shape = {"prompts": 4, "concurrencies": (), "seconds": 4.0, "mean": 60.0}  # no level: no clock cuts the batch
    mixed = run(engine, **{**shape, "cv": 1.5})
    slow = finite_batch(mixed.batch, 4, 1.0)
    assert slow is not None
    mean = slow.response_tokens / slow.samples  # of what was generated: the batch draws lengths of its own
    equal = run(engine, **{**shape, "cv": 0.0, "mean": float(round(mean)), "seed": 1})
    fast = finite_batch(equal.batch, 4, 1.0)
    assert fast is not None
    assert slow.response_tokens == pytest.approx(fast.response_tokens, rel=0.02)
    assert steps(mixed) == pytest.approx(slow.longest_response_tokens, abs=3)
    assert steps(equal) == pytest.approx(mean, abs=3)
    assert steps(mixed) > 1.2 * steps(equal)  # steps, as seconds depend on who else uses the machine
    assert slow.seconds > slow.seconds_to_50_percent


def steps(record: Record) -> float:
    """Engine steps of the finite batch."""
    first, last = (record.batch[0].snapshots[index].counters for index in (0, -1))
    assert first.step_tokens is not None
    assert last.step_tokens is not None
    assert grown([(first, last)], "generation_tokens")
    return last.step_tokens.count - first.step_tokens.count


def finished(process: subprocess.Popen[str], seconds: float = 600.0) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a process that ends by itself."""
    out, err = process.communicate(timeout=seconds)
    assert "Traceback" not in err + out
    return process.returncode, out, err


def test_the_whole_loop(start_measure: Any, rlsize: Any, tiny_models: dict[str, Path], tmp_path: Path) -> None:
    """`measure --save` writes rates that `fleet --per-instance` sizes with."""
    rates = tmp_path / "rates.yaml"
    asked = ("--only", "rollout", "--quick", "--seconds", "10", "--max-response-tokens", "400", "--json")
    code, out, err = finished(
        start_measure("--model", str(tiny_models["qwen3"]), *asked, *SHORT, *TINY, "--save", str(rates))
    )
    assert code == 0, err
    answer = json.loads(out)
    saved = read_rates(str(rates))
    assert saved.instance_tokens_per_second is not None
    assert saved.instance_tokens_per_second.mean == answer["results"]["instance_tokens_per_second"]
    assert saved.machine is not None
    assert saved.machine.libraries["vllm"]
    assert saved.machine.command.startswith("rlsize measure --model")
    assert saved.conditions.dummy_weights
    assert not saved.partial
    sized = rlsize("fleet", "--consume", "100000", "--per-instance", str(rates), "--json")
    assert sized.results["matched_instances"] >= 1
    assert sized.document["explain"]["nameplate_matched_instances"]


def test_a_server_counts_what_was_asked_for_to_the_token(start_measure: Any, server: Any, tmp_path: Path) -> None:
    """Through a server the same holds; its own counters are the cross-check."""
    rates = tmp_path / "rates.yaml"
    asked = ("--url", server.url, "--only", "rollout", "--quick", "--seconds", "16", "--max-response-tokens", "300")
    code, out, err = finished(start_measure(*asked, *SHORT, "--max-num-seqs", "16", "--save", str(rates), "--json"))
    assert code == 0, err
    checks = {row["counter"]: row for row in json.loads(out)["rows"]["crosschecks"]}
    assert set(checks) == {"generation tokens", "finished requests", "prompt tokens", "prefix cache hits"}
    assert all(row["asked"] == row["counted"] for row in checks.values())
    saved = read_rates(str(rates))
    assert saved.conditions.model == "tiny"
    assert saved.source.engine == "vllm"
    assert saved.rollout is not None
    assert saved.rollout.finite_batch is not None
    waits = saved.rollout.finite_batch.latency
    assert waits is not None
    assert waits.samples == saved.rollout.finite_batch.samples
    assert 0.0 < (waits.first_token.p99_seconds or 0.0) < (waits.sample.p99_seconds or 0.0)


@BY_NIGHT
def test_a_server_killed_in_the_middle_leaves_what_was_measured(start_measure: Any, serve: Any, tmp_path: Path) -> None:
    """Exit code 3, a message that names the server, and a rates file that says that it is partial."""
    rates = tmp_path / "rates.yaml"
    with serve() as doomed:
        asked = ("--url", doomed.url, "--only", "rollout", "--seconds", "30", "--concurrency", "4,16")
        process = start_measure(*asked, *SHORT, "--max-response-tokens", "300", "--save", str(rates))
        told = await_line(process, "rollout, 4 in flight")
        time.sleep(1.0)
        doomed.kill()
        code, out, err = finished(process)
    assert code == 3, told + err
    assert "127.0.0.1" in err
    assert "partial" in err
    saved = read_rates(str(rates))
    assert saved.partial
    assert saved.rollout is not None
    assert saved.rollout.levels[-1].concurrency == 16
    assert out


@BY_NIGHT
def test_ctrl_c_keeps_what_was_measured_and_ends_the_engine(
    start_measure: Any, tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    """Exit code 130, a partial rates file, and no process left behind."""
    rates = tmp_path / "rates.yaml"
    asked = ("--only", "rollout", "--seconds", "30", "--concurrency", "4,16", "--max-response-tokens", "400")
    process = start_measure("--model", str(tiny_models["qwen3"]), *asked, *SHORT, *TINY, "--save", str(rates))
    await_line(process, "rollout, 4 in flight")
    time.sleep(1.0)
    started = set(descendants(process.pid))
    assert len(started) > 1  # the worker and the engine core that it started
    process.send_signal(signal.SIGINT)
    code, _, err = finished(process)
    assert code == 130, err
    saved = read_rates(str(rates))
    assert saved.partial == "interrupted"
    assert saved.rollout is not None
    assert not alive(started)  # the guard beside it too


@BY_NIGHT
def test_texts_and_traces_are_played_through_a_server(
    start_measure: Any, server: Any, tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    """The model's tokenizer reads them, each sample goes on behind what it made, and the prefix cache finds it."""
    file, rates = tmp_path / "traces.jsonl", tmp_path / "rates.yaml"
    words = " ".join(f"w{number}" for number in range(3, 100))
    turns = [{"prompt": words, "response_tokens": 40}, {"prompt": "w20 w21", "response_tokens": 30}]
    lines = ({"turns": turns}, {"prompt": "w9 w9", "response": words})
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    asked = ("--only", "rollout", "--seconds", "16", "--concurrency", "4", "--group", "2", "--prompts", "8")
    model = ("--model", str(tiny_models["qwen3"]), "--max-num-seqs", "16")
    code, _, err = finished(
        start_measure(*model, *asked, "--url", server.url, "--replay", str(file), "--save", str(rates))
    )
    assert code == 0, err
    saved = read_rates(str(rates))
    assert saved.conditions.mean_prompt_tokens == pytest.approx((97 + 2 + 2) / 2, abs=1)
    assert saved.rollout is not None
    assert (saved.rollout.prefix_cache_hit_fraction or 0.0) > 0.0
    batch = saved.rollout.finite_batch
    assert batch is not None
    assert batch.latency is not None
    assert (batch.samples, batch.latency.samples, batch.response_tokens) == (16, 24, 8 * (40 + 30 + 97))


@BY_NIGHT
def test_a_killed_measurement_goes_on_from_its_journal(
    start_measure: Any, tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    """Its engine ends with it, the level that was over is not run again, and its figures are those of before."""
    rates = tmp_path / "rates.yaml"
    journal = Path(f"{rates}.journal")
    asked = ("--only", "rollout", "--seconds", "24", "--concurrency", "4,16", "--max-response-tokens", "300")
    words = ("--model", str(tiny_models["qwen3"]), *asked, *SHORT, *TINY, "--save", str(rates))
    process = start_measure(*words)
    await_line(process, "rollout, 4 in flight")
    started = set(descendants(process.pid))
    assert len(started) > 1
    process.kill()
    process.communicate()
    while alive(started):  # the guard ends them; a test that waits for ever says that it did not
        time.sleep(0.1)
    [kept] = [entry for line in journal.read_text().splitlines() if "level" in (entry := json.loads(line))]
    assert kept["level"] == 16
    code, _, err = finished(start_measure(*words, "--resume", str(journal)))
    assert code == 0, err
    assert "rollout, 16 in flight" not in err
    assert not journal.exists()
    saved = read_rates(str(rates)).rollout
    assert saved is not None
    assert [one.concurrency for one in saved.levels] == [4, 16]
    ends = [(page["seconds"], page["counters"]["generation_tokens"]) for page in kept["runs"][0]["snapshots"]]
    assert saved.levels[1].window_seconds < ends[-1][0] - ends[0][0]
    assert 0.0 < saved.levels[1].tokens_per_second < 2.0 * ends[-1][1] / saved.levels[1].window_seconds


def await_line(process: subprocess.Popen[str], text: str) -> str:
    """Read its stderr up to a line with that text."""
    assert process.stderr is not None
    told = ""
    for line in process.stderr:
        told += line
        if text in line:
            return told
    pytest.fail(f"never said {text!r}: {told}")


def alive(pids: set[int]) -> list[int]:
    """Which of some processes still run."""
    return [pid for pid in pids if Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes()]


class Busy(http.server.BaseHTTPRequestHandler):
    """A server that lists a model and turns every request away."""

    def do_GET(self) -> None:
        """List a model; show no metrics."""
        known = self.path == "/v1/models"
        body = json.dumps({"data": [{"id": "tiny", "max_model_len": 4096}]}).encode() if known else b""
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        """Turn it away."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


def test_a_server_that_answers_503_is_told_apart_from_a_slow_one(start_measure: Any) -> None:
    """It is asked again for a while; then the message says what it answers. Exit code 3."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Busy) as busy:
        threading.Thread(target=busy.serve_forever, daemon=True).start()
        asked = ("--url", f"127.0.0.1:{busy.server_port}", "--only", "rollout", "--quick", "--seconds", "5", *SHORT)
        code, _, err = finished(start_measure(*asked))
        busy.shutdown()
    assert code == 3
    assert "busy or paused" in err


def test_an_engine_that_cannot_start_says_why(start_measure: Any, tiny_models: dict[str, Path]) -> None:
    """An argument that vLLM does not know ends in its own words, not in a traceback. Exit code 3."""
    asked = ("--only", "rollout", "--quick", "--engine-arg", "no_such_argument=1", "--max-response-tokens", "400")
    code, _, err = finished(start_measure("--model", str(tiny_models["qwen3"]), *asked, *SHORT))
    assert code == 3
    assert "no_such_argument" in err
