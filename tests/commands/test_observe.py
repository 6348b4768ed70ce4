"""`rlsize observe`, from saved pages and from local servers, with virtual time: nothing here waits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.commands.engine_fleet import CAPABLE, Engine, Fleet
from tests.effort import tries
from typer.testing import CliRunner

from rlsize.readers.saved_files import read_rates
from rlsize.shell import live_engines
from rlsize.shell.app import app

if TYPE_CHECKING:
    from typer.testing import Result

PAGES = Path(__file__).parents[1] / "readers" / "data" / "vllm_metrics"
FIRST, SECOND = str(PAGES / "engine_first.prom"), str(PAGES / "engine_second.prom")
SECRET = "s3cr3t-t0ken"  # noqa: S105 (a test's own)
CONSUMED = 39321.6
ROUNDS = tries(8)


def run(*arguments: str, **environment: str) -> Result:
    """A command's outcome."""
    return CliRunner().invoke(app, list(arguments), env={"COLUMNS": "80", "RLSIZE_BEARER_TOKEN": "", **environment})


def results(*arguments: str, exit_code: int = 0) -> dict[str, Any]:
    """What a command prints as JSON."""
    outcome = run(*arguments, "--json")
    assert outcome.exit_code == exit_code, outcome.stderr
    found: dict[str, Any] = json.loads(outcome.stdout)
    return found


def test_two_saved_pages_give_the_rate() -> None:
    """400,000 tokens in 100 s are 4,000 tok/s; waiting at both ends and full steps show that it is no lower bound."""
    found = results("observe", "--pages", FIRST, SECOND, "--seconds", "100")
    answer = found["results"]
    assert answer["instance_tokens_per_second"] == 4000.0
    assert answer["lower_bound"] is False
    assert answer["saturated_fraction"] == 1.0
    assert (answer["group_size"], answer["mean_response_tokens"], answer["weight_syncs"]) == (8, 1250, 2)
    assert answer["prefix_cache_hit_fraction"] == 0.8125
    assert answer["affine_prefix_cache_hit_fraction"] == pytest.approx(0.84)
    assert answer["headroom"] == pytest.approx(0.8**0.8)
    assert answer["spread_tokens_per_second"] is None
    assert found["explain"]["spread_tokens_per_second"]["reason"] == "needs two instances"
    assert [row["instance"] for row in found["rows"]["instances"]] == ["engine_first.prom"]


def lengths_page(samples: int, seconds: float) -> str:
    """A page of an engine whose responses are half of 800 and half of 1,600 tokens, one of 2,000 at its cap."""
    labels = 'model_name="policy"'
    counts = {"1000.0": samples // 2, "1500.0": samples // 2, "2000.0": samples, "+Inf": samples}
    return "".join(
        f"{line}\n"
        for line in (
            *(f'sglang:generation_tokens_histogram_bucket{{le="{le}",{labels}}} {n}' for le, n in counts.items()),
            f"sglang:generation_tokens_histogram_sum{{{labels}}} {samples * 1200}",
            f"sglang:generation_tokens_histogram_count{{{labels}}} {samples}",
            f"sglang:generation_tokens_total{{{labels}}} {samples * 1200}",
            f"sglang:num_requests_total{{{labels}}} {samples}",
            f'sglang:num_running_reqs{{tp_rank="0",{labels}}} {10 + seconds:.0f}',
        )
    )


def test_saved_pages_of_many_servers_are_one_fleet(tmp_path: Path) -> None:
    """
    Each server has its own two pages and its own name, whatever its engine; the lengths are those of the whole fleet.

    A server that counts tokens when samples finish is doubted; the line for a scenario fits on one line to be pasted.
    """
    pages = [tmp_path / name for name in ("t0.prom", "t1.prom")]
    for index, page in enumerate(pages):
        page.write_text(lengths_page(40 + 200 * index, 2.0 * index), encoding="utf-8")
    pairs = ("--pages", FIRST, SECOND, f"--pages={pages[0]}", str(pages[1]))
    saved = tmp_path / "rates.yaml"
    found = results("observe", *pairs, "--seconds", "100", "--save", str(saved))
    assert [row["instance"] for row in found["rows"]["instances"]] == ["engine_first.prom", "t0.prom"]
    assert [row["tokens_per_second"] for row in found["rows"]["instances"]] == [4000.0, 2400.0]
    assert any("sglang counts tokens only when their sample finishes" in warning for warning in found["warnings"])
    assert any("different engines (sglang, vllm)" in warning for warning in found["warnings"])
    assert found["results"]["response_samples"] == 200 + 320
    cv = found["results"]["response_cv"]
    assert read_rates(str(saved)).conditions.response_cv == pytest.approx(cv)
    told = run("observe", *pairs, "--seconds", "100", "--full").stdout
    mean = (200 * 1200 + 320 * 1250) / 520
    assert f"\n`response_tokens: {{mean: {mean:.0f}, cv: {cv:.2f}}}`" in told
    assert max(len(line) for line in told.splitlines()) <= 80


def test_every_page_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """One whole pair does not save the others: exit code 2, with each fault."""
    (tmp_path / "empty.prom").write_text("")
    pairs = ("--pages", FIRST, SECOND, "--pages", str(tmp_path / "none.prom"), str(tmp_path / "empty.prom"))
    outcome = run("observe", *pairs, "--seconds", "100", "--pages", FIRST)
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    for message in ("none.prom: no such file", "empty.prom: is empty", "has no second page", "is named twice"):
        assert message in outcome.stderr


def test_a_window_may_be_written_as_prometheus_does(fleet: Fleet) -> None:
    """A minute and a half are 90 s."""
    fleet.engines = [Engine()]
    assert results("observe", *fleet.urls(), "--window", "1m30s")["results"]["window_seconds"] == 90.0


def test_the_saved_rates_size_a_fleet(tmp_path: Path) -> None:
    """What `--save` writes is what `fleet --per-instance` takes, with the headroom that the rate does not hold yet."""
    rates = tmp_path / "rates.yaml"
    outcome = run(
        "observe", "--pages", FIRST, SECOND, "--seconds", "100", "--save", str(rates), "--gpus-per-instance", "2"
    )
    assert outcome.exit_code == 0
    assert read_rates(str(rates)).gpus_per_instance == 2
    sized = results("fleet", "--consume", "39321.6", "--per-instance", str(rates))
    assert sized["results"]["matched_instances"] == 12
    assert sized["inputs"]["headroom"] == pytest.approx(0.8**0.8)


def test_the_answer_fits_eighty_columns() -> None:
    """The table of people is at most 80 columns wide."""
    outcome = run("observe", "--pages", FIRST, SECOND, "--seconds", "100")
    assert max(len(line) for line in outcome.stdout.splitlines()) <= 80
    assert "4,000 tok/s per instance" in outcome.stdout


def test_a_fleet_is_watched_over_its_window(fleet: Fleet) -> None:
    """Each engine's rate, mean and spread are those of the servers; the window is the one asked for."""
    fleet.engines = [Engine(3900.0), Engine(4100.0), Engine(4000.0)]
    found = results("observe", *fleet.urls(), "--window", "60", "--every", "10")
    answer = found["results"]
    assert answer["instance_tokens_per_second"] == pytest.approx(4000.0)
    assert answer["spread_tokens_per_second"] == pytest.approx(100.0)
    assert answer["fleet_tokens_per_second"] == pytest.approx(12000.0)
    assert answer["window_seconds"] == 60.0
    assert answer["lower_bound"] is False
    assert fleet.now == 1060.0


@pytest.mark.long
def test_backpressured_engines_do_not_ratchet_the_fleet_up(fleet: Fleet, tmp_path: Path) -> None:
    """
    Rounds of observe and fleet on 13 engines held back to 3,025 of their 4,000 tok/s leave the count at 13.

    Each round says that the rate is a lower bound, and `fleet` refuses to size from it.
    """
    count, counts = 13, []
    for round_ in range(ROUNDS):
        fleet.engines = [Engine(min(CAPABLE, CONSUMED / count), waiting=0) for _ in range(count)]
        rates = str(tmp_path / f"round-{round_}.yaml")
        seen = results("observe", *fleet.urls(), "--window", "60", "--every", "15", "--save", rates)
        assert seen["results"]["instance_tokens_per_second"] == pytest.approx(CONSUMED / count)
        assert seen["results"]["lower_bound"] is True
        outcome = run("fleet", "--consume", str(CONSUMED), "--per-instance", rates, "--json")
        assert outcome.exit_code == 2
        assert "lower bound" in outcome.stderr
        if outcome.exit_code == 0:
            count = json.loads(outcome.stdout)["results"]["matched_instances"]
        counts.append(count)
    assert counts == [13] * ROUNDS


@pytest.mark.long
def test_a_held_back_fleet_does_not_ratchet_even_where_its_bound_is_accepted(fleet: Fleet, tmp_path: Path) -> None:
    """Thirteen held-back engines that meet the demand stay thirteen, though each round accepts the lower bound."""
    count, counts = 13, []
    for round_ in range(ROUNDS):
        fleet.engines = [Engine(min(CAPABLE, CONSUMED / count), waiting=0) for _ in range(count)]
        rates = str(tmp_path / f"accepted-{round_}.yaml")
        assert run("observe", *fleet.urls(), "--window", "60", "--every", "15", "--save", rates).exit_code == 0
        outcome = run("fleet", "--consume", str(CONSUMED), "--per-instance", rates, "--accept-lower-bound", "--json")
        assert outcome.exit_code == 0
        count = json.loads(outcome.stdout)["results"]["matched_instances"]
        counts.append(count)
    assert counts == [13] * ROUNDS


def test_a_fleet_that_is_too_small_grows_once(fleet: Fleet, tmp_path: Path) -> None:
    """Eight saturated engines show their 4,000 tok/s; sized from that the fleet is held back, refused, and stays."""
    count, counts = 8, []
    for round_ in range(ROUNDS):
        held_back = count * CAPABLE > CONSUMED
        fleet.engines = [Engine(min(CAPABLE, CONSUMED / count), waiting=0 if held_back else 9) for _ in range(count)]
        rates = str(tmp_path / f"round-{round_}.yaml")
        assert run("observe", *fleet.urls(), "--window", "60", "--every", "15", "--save", rates).exit_code == 0
        outcome = run("fleet", "--consume", str(CONSUMED), "--per-instance", rates, "--json")
        assert (outcome.exit_code == 2) == held_back
        if outcome.exit_code == 0:
            count = json.loads(outcome.stdout)["results"]["matched_instances"]
        counts.append(count)
    assert counts == [12] * ROUNDS


def test_a_broken_instance_is_listed_and_left_out(fleet: Fleet) -> None:
    """One that restarts, one that refuses and one that serves junk are warned about; the rest is the answer."""
    fleet.engines = [Engine(), Engine(restarts_at=1030.0), Engine(status=503), Engine(page="<html>"), Engine()]
    outcome = run("observe", *fleet.urls(), "--window", "60", "--json")
    assert outcome.exit_code == 0
    found = json.loads(outcome.stdout)
    assert found["results"]["instance_tokens_per_second"] == pytest.approx(CAPABLE)
    assert (found["results"]["instances_used"], found["results"]["instances_left_out"]) == (2, 3)
    reasons = {row["instance"].rpartition("/")[2]: row["left_out"] for row in found["rows"]["instances"]}
    assert "went back" in reasons["1"]
    assert reasons["2"] == "answers 503 instead of a page"
    assert reasons["3"] == "is an HTML page, not a metrics page"
    assert sum("is left out" in warning for warning in found["warnings"]) == 3


def test_no_instance_left_could_not_finish(fleet: Fleet) -> None:
    """With every instance broken the exit code is 3 at once, each with its reason, and nothing is saved."""
    fleet.engines = [Engine(status=500), Engine(page="sglang:gen_throughput 1\n")]
    outcome = run("observe", *fleet.urls(), "--window", "10", "--save", "never.yaml")
    assert outcome.exit_code == 3
    assert "answers 500" in outcome.stderr
    assert "of SGLang it holds only sglang:gen_throughput" in outcome.stderr
    assert "look at the engine's log" in outcome.stderr
    assert not Path("never.yaml").exists()
    assert fleet.now == 1000.0


def test_ctrl_c_keeps_what_was_seen(fleet: Fleet, tmp_path: Path) -> None:
    """Interrupted after 40 of 300 s, the command prints and saves those and exits with 130."""
    fleet.engines, fleet.interrupt_at = [Engine()], 1040.0
    rates = tmp_path / "rates.yaml"
    found = results("observe", *fleet.urls(), "--save", str(rates), exit_code=130)
    assert found["results"]["instance_tokens_per_second"] == pytest.approx(CAPABLE)
    assert found["results"]["window_seconds"] == 35.0
    assert any("interrupted after 40 s" in warning for warning in found["warnings"])
    assert read_rates(str(rates)).window_seconds == 35.0


def test_ctrl_c_before_the_second_look_has_nothing_to_say(fleet: Fleet) -> None:
    """Interrupted at once there is no rate, and the exit code is still 130."""
    fleet.engines, fleet.interrupt_at = [Engine()], 1001.0
    outcome = run("observe", *fleet.urls())
    assert outcome.exit_code == 130
    assert "interrupted before any engine could be read twice" in outcome.stderr


def test_an_idle_fleet_is_answered_but_not_saved(fleet: Fleet, tmp_path: Path) -> None:
    """Engines that generated nothing have a rate of 0, which no fleet can be sized from."""
    fleet.engines = [Engine(rate=0.0, waiting=0)]
    outcome = run("observe", *fleet.urls(), "--window", "10", "--save", str(tmp_path / "rates.yaml"))
    assert outcome.exit_code == 3
    assert "no instance generated a token" in outcome.stderr
    assert "At least 0 tok/s" in outcome.stdout
    assert not (tmp_path / "rates.yaml").exists()


def test_the_token_is_sent_and_never_printed(fleet: Fleet) -> None:
    """The bearer token of the environment reaches the engines and no output, not even when they refuse it."""
    fleet.engines = [Engine(), Engine(status=401)]
    outcome = run("observe", *fleet.urls(), "--window", "10", RLSIZE_BEARER_TOKEN=SECRET)
    assert outcome.exit_code == 0
    assert set(fleet.tokens) == {f"Bearer {SECRET}"}
    assert "answers 401" in outcome.stderr
    assert SECRET not in outcome.stdout + outcome.stderr


def test_nothing_is_overwritten_and_that_is_known_before_the_window(fleet: Fleet, tmp_path: Path) -> None:
    """A rates file that exists stops the command before it asks a single engine; --force lets it go on."""
    fleet.engines = [Engine()]
    rates = tmp_path / "rates.yaml"
    rates.write_text("mine")
    refused = run("observe", *fleet.urls(), "--window", "10", "--save", str(rates))
    assert (refused.exit_code, fleet.tokens, rates.read_text()) == (2, [], "mine")
    assert "exists already" in refused.stderr
    assert run("observe", *fleet.urls(), "--window", "10", "--save", str(rates), "--force").exit_code == 0
    assert read_rates(str(rates)).instance_tokens_per_second is not None


@pytest.mark.parametrize(
    ("arguments", "messages"),
    [
        ([], ["nothing to observe is named"]),
        (["file:///etc/passwd"], ["has the scheme file; only http and https are read"]),
        (["ftp://a", "a:1", "http://a:1/metrics"], ["has the scheme ftp", "is named twice"]),
        (["a:1", "--pages", FIRST, SECOND], ["do not mix"]),
        (["--pages", FIRST, SECOND], ["--seconds: the time between the two pages is missing"]),
        (["--pages", FIRST, SECOND, "--seconds", "0"], ["0 is too small; it must be at least 1"]),
        (["--pages", FIRST, SECOND, "--seconds", "nan"], ["not a finite number"]),
        (["--pages", FIRST, SECOND, "--seconds", "60", "--window", "9"], ["--window: is for running engines"]),
        (["--pages", FIRST, str(PAGES), "--seconds", "60"], ["is a directory"]),
        (["a:1", "--prometheus", "p:9090"], ["--prometheus do not mix"]),
        (["a:1", "--selector", 'job="x"', "--at", "0"], ["--selector: is for engines that a Prom", "--at: is for eng"]),
        (["--prometheus", "ftp://p", "--timeout", "x"], ["ftp://p: has the scheme ftp", "--timeout: "]),
        (["--prometheus", "p", "--every", "5"], ["--every: is for engines that are"]),
        (
            ["--prometheus", "p", "--selector", "a=b", "--at", "noon"],
            ["--selector: 'a=b' is no matcher", "'noon' is no"],
        ),
        (["--prometheus", "p", "--window", "5x", "--timeout", "x"], ["--window", "--timeout"]),
        (["a:1", "--window", "1e30"], ["1e30"]),
        (["a:1", "--window", "5 GB", "--every", "x"], ["--window", "--every"]),
        (["a:1", "--save", "missing/rates.yaml"], ["does not exist"]),
        (["a:1", "--token-file", "missing"], ["missing: no such file"]),
        (["https://a:1", "--ca", "missing"], ["missing: cannot be read as certificates"]),
    ],
)
def test_bad_input_is_told_with_its_way_out(arguments: list[str], messages: list[str]) -> None:
    """Each senseless question ends in a message and exit code 2, all faults at once, nothing on stdout."""
    outcome = run("observe", *arguments)
    assert outcome.exit_code == 2
    assert outcome.stdout == ""
    for message in messages:
        assert message in outcome.stderr


def test_counters_that_went_back_between_saved_pages_leave_nothing() -> None:
    """The pages in the wrong order look like a restart: exit 3 with the counter that went back."""
    outcome = run("observe", "--pages", SECOND, FIRST, "--seconds", "100")
    assert outcome.exit_code == 3
    assert "went back from 1400000 to 1000000" in outcome.stderr


def test_a_watch_that_would_keep_too_much_is_refused_at_its_first_look(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three engines at 13 moments are 39 snapshots, and 38 may be kept: exit 2, with the pace that would do."""
    monkeypatch.setattr(live_engines, "MOST_SNAPSHOTS", 38)
    fleet.engines = [Engine() for _ in range(3)]
    outcome = run("observe", *fleet.urls(), "--window", "60")
    assert (outcome.exit_code, outcome.stdout) == (2, "")
    assert "--every: 3 engines looked at 13 times" in outcome.stderr
    assert "look every 6 s" in outcome.stderr
    assert run("observe", *fleet.urls(), "--window", "60", "--every", "6").exit_code == 0


def test_a_watch_that_grows_too_large_ends_early(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks that join a page while it is watched cannot fill the memory: what was seen until then is the answer."""
    monkeypatch.setattr(live_engines, "MOST_SNAPSHOTS", 40)
    fleet.engines = [Engine(), Engine()]

    def joined(_: Engine, now: float) -> str:
        ranks = 1 if now < 1030.0 else 9
        return "".join(
            f'vllm:generation_tokens_total{{engine="{rank}"}} {4000.0 * now!r}\n'
            f'vllm:num_requests_running{{engine="{rank}"}} 64\nvllm:num_requests_waiting{{engine="{rank}"}} 5\n'
            for rank in range(ranks)
        )

    monkeypatch.setattr(Engine, "text", joined)
    found = results("observe", *fleet.urls(), "--window", "60")
    assert found["results"]["window_seconds"] == 35.0
    assert any("the watch ended after 35 s" in warning for warning in found["warnings"])


FLAGS = {"--seconds": "100.0", "--group": "8", "--max-num-seqs": "100", "--gpus-per-instance": "2"}
GOOD = ({"--seconds": "100"}, {"--seconds": "100", "--group": "8", "--max-num-seqs": "100"})
VALUES = ("0", "1e18", "1e19", "-1", "NaN", "1e-300", "7", "999999", "x", "")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=tries(50))
@given(data=st.data(), form=st.sampled_from(["", "--json", "--csv", "--markdown", "--explain", "--plot"]))
def test_junk_in_saved_pages_ends_in_an_answer_or_in_an_exit_code(
    rlsize: Any, spoilt: Any, checked: Any, tmp_path: Path, data: st.DataObject, form: str
) -> None:
    """Whatever stands on pages and flags, there is no traceback; 3 where no instance is left."""
    pages = []
    for name in (FIRST, SECOND):
        lines = Path(name).read_text(encoding="utf-8").splitlines()
        numbered = [index for index, line in enumerate(lines) if not line.startswith("#")]
        for index in data.draw(st.lists(st.sampled_from(numbered), max_size=2)):
            lines[index] = f"{lines[index].rpartition(' ')[0]} {data.draw(st.sampled_from(VALUES))}"
        cut = data.draw(st.sampled_from([None, None, None, 5, 60]))
        pages.append(tmp_path / Path(name).name)
        pages[-1].write_text("\n".join(lines[:cut]) + "\n", encoding="utf-8")
    line = data.draw(spoilt(GOOD, FLAGS))
    flags = [f"{flag}={value}" for flag, value in line.items()]
    ran = rlsize("observe", "--pages", *map(str, pages), *flags, *([form] if form else []))
    if ran.code == 3:
        assert (ran.stdout, bool(ran.stderr)) == ("", True)
    else:
        checked(ran, "observe", form)
