"""Wrong input: a clear message and its exit code, never a traceback."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import tries

Run = Callable[..., Any]
GOOD = {"--consume": "39321", "--per-instance": "4000"}


@pytest.mark.parametrize(
    ("flag", "value", "says"),
    [
        ("--consume", "0", "more than 0"),
        ("--consume", "-5", "more than 0"),
        ("--consume", "nan", "finite"),
        ("--consume", "inf", "finite"),
        ("--consume", "1e30", "limit"),
        ("--consume", "4000 GB", "not one of its units"),
        ("--per-instance", "", "not a token rate"),
        ("--headroom", "0", "at least 0.01"),
        ("--headroom", "1.5", "at most 1"),
        ("--instances", "2.5", "whole number"),
        ("--instances", "-1", "more than 0"),
        ("--tokens-per-trained-token", "0.5", "at least 1"),
        ("--gpu-hour", "-1", "at least 0"),
        ("--seed", "x", "whole number"),
    ],
)
def test_a_number_out_of_bounds_is_named_with_its_flag(rlsize: Run, flag: str, value: str, says: str) -> None:
    """What, where, what to do; exit code 2; nothing on stdout."""
    given_flags = {**GOOD, flag: value}
    ran = rlsize("fleet", *(part for pair in given_flags.items() for part in pair))
    assert ran.code == 2
    assert flag in ran.stderr
    assert says in ran.stderr
    assert ran.stdout == ""


def test_all_faults_are_told_at_once(rlsize: Run) -> None:
    """A user mends everything in one go."""
    ran = rlsize("fleet", "--consume", "-5", "--per-instance", "nan", "--headroom", "3", "--instances", "0")
    assert ran.code == 2
    assert ran.stderr.count("error:") == 4


def test_a_misspelt_flag_and_a_misspelt_command_suggest_the_nearest(rlsize: Run) -> None:
    """The parser's own errors have exit code 2 as well."""
    ran = rlsize("fleet", "--consum", "1")
    assert ran.code == 2
    assert "--consume" in ran.stderr
    ran = rlsize("fleett")
    assert ran.code == 2
    assert "fleet" in ran.stderr


def test_what_is_missing_says_which_flags_would_do(rlsize: Run) -> None:
    """No rate is ever assumed."""
    ran = rlsize("fleet")
    assert ran.code == 2
    assert "--consume" in ran.stderr
    assert "--per-instance" in ran.stderr


def test_rates_that_contradict_each_other_are_refused(rlsize: Run) -> None:
    """A consumption that is not batch over train seconds is a slip in one of the three."""
    ran = rlsize(
        "fleet", "--consume", "50000", "--batch-tokens", "786432", "--train-seconds", "20", "--per-instance", "4000"
    )
    assert ran.code == 2
    assert "disagrees" in ran.stderr


def test_more_than_100_percent_mfu_is_refused_and_70_is_warned(rlsize: Run) -> None:
    """No GPU does more than its peak."""
    flags = ("--per-instance", "4000", "--params", "70B", "--gpu", "h100-sxm", "--trainer-gpus", "8")
    refused = rlsize("fleet", "--consume", "39321", *flags)
    assert refused.code == 2
    assert "MFU" in refused.stderr
    warned = rlsize("fleet", "--consume", "14000", *flags)
    assert warned.code == 0
    assert "over 70 %" in warned.stderr
    fine = rlsize("fleet", "--consume", "5000", *flags)
    assert (fine.code, fine.stderr) == (0, "")


SCENARIO = """\
rlsize: {kind: scenario, version: 1}
model: qwen3-32b
cluster: {gpu: h100-sxm, gpus: 64}
workload: {prompts_per_step: 64, group_size: 8, response_tokens: {mean: 1536}}
placement: {trainer_gpus: 32}
rollout: {tensor_parallel: 2}
rates: {instance_tokens_per_second: 4000, train_seconds: 20}
"""


@pytest.mark.parametrize(
    "line",
    [
        ("fleet", "--per-instance", "400000"),
        ("fleet", "--train-seconds", "0.1"),
        ("backlog", "--per-instance", "400000"),
        ("backlog", "--train-seconds", "0.1"),
        ("iteration", "--per-instance", "400000"),
        ("iteration", "--train-seconds", "0.1"),
        ("cost", "--step-seconds", "0.1"),
        ("split", "--per-instance", "400000"),
    ],
)
def test_every_command_refuses_what_the_scenario_s_gpus_cannot_do(
    rlsize: Run, tmp_path: Path, line: tuple[str, ...]
) -> None:
    """The same impossible rate is refused wherever it is typed, and the scenario as it stands is answered."""
    file = tmp_path / "s.yaml"
    file.write_text(SCENARIO, encoding="utf-8")
    command, *flags = line
    ran = rlsize(command, str(file), *flags)
    assert ran.code == 2
    assert "MFU" in ran.stderr
    plain = ("--step-seconds", "25") if command == "cost" else ()
    assert rlsize(command, str(file), *plain).code == 0


def test_a_split_that_no_gpu_can_do_is_refused(rlsize: Run) -> None:
    """Rates per GPU are checked against one GPU's peak."""
    ran = rlsize(
        "split",
        "--gpus",
        "64",
        "--rollout-tps",
        "2000",
        "--trainer-tps",
        "60000",
        "--params",
        "70B",
        "--gpu",
        "h100-sxm",
    )
    assert ran.code == 2
    assert "MFU" in ran.stderr


def test_an_unknown_profile_suggests_the_nearest(rlsize: Run) -> None:
    """Nearest names, for GPUs and models."""
    ran = rlsize("fleet", "--consume", "1", "--per-instance", "1", "--gpu", "h100-sxn")
    assert ran.code == 2
    assert "h100-sxm" in ran.stderr


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"a: [", b"a: 1\na: 2", b"{}", b"&a [*a]", b"x" * 1000])
def test_a_broken_scenario_file_is_named_with_its_line(rlsize: Run, tmp_path: Path, content: bytes) -> None:
    """Empty, binary, cut, duplicate keys, alias bombs: exit code 2 and the file's name."""
    file = tmp_path / "bad.yaml"
    file.write_bytes(content)
    ran = rlsize("fleet", str(file))
    assert ran.code == 2
    assert "bad.yaml" in ran.stderr.replace("\n", "")


@pytest.mark.parametrize("name", ["", "/", "no-such-file.yaml", "a\0b", "~/x" * 100])
def test_a_path_that_is_no_file_is_refused(rlsize: Run, name: str) -> None:
    """Directories, missing files, impossible names."""
    ran = rlsize("fleet", name, "--consume", "1", "--per-instance", "1")
    assert ran.code == 2
    assert "error" in ran.stderr.lower()


def test_two_forms_of_output_at_once_are_refused(rlsize: Run) -> None:
    """One answer, one form."""
    assert rlsize("fleet", "--consume", "1", "--per-instance", "1", "--json", "--csv").code == 2


@pytest.mark.long
def test_a_picture_is_never_written_over_without_force(rlsize: Run, tmp_path: Path) -> None:
    """Nothing lost, nothing half-written, and no answer beside a failed file."""
    target = tmp_path / "fleet.svg"
    flags = ("fleet", "--consume", "1", "--per-instance", "1", "--plot", str(target))
    assert rlsize(*flags).code == 0
    again = rlsize(*flags)
    assert (again.code, again.stdout) == (2, "")
    assert rlsize(*flags, "--force").code == 0
    assert rlsize("fleet", "--consume", "1", "--per-instance", "1", "--plot", str(tmp_path / "no" / "x.png")).code == 2


words = st.one_of(
    st.text(max_size=12),
    st.floats().map(str),
    st.integers().map(str),
    st.sampled_from(
        [
            "1e308",
            "-0",
            "1e-320",
            "1e-300",
            "1e-13",
            "1e-12",
            "1e13",
            "0 ± 1",
            "20 ± 2",
            "5 ± 500",
            "0.9999 ± 0.0001",
            "1 ± 1e-12",
        ]
    ),
    st.sampled_from(["80 GB", "rates.yaml", "h100-sxm", "%", "٣", "affine", "random"]),
)
GOOD_LINES = {
    "fleet": {
        "--consume": "39321.6",
        "--per-instance": "4000",
        "--instances": "8",
        "--batch-tokens": "786432",
        "--headroom": "0.8",
        "--tokens-per-trained-token": "1.2",
        "--gpus-per-instance": "2",
        "--trainer-gpus": "16",
        "--gpu-hour": "2.5",
        "--prompt-tokens": "300",
        "--group": "8",
        "--response-tokens": "1536",
        "--hit-ratio": "0.1",
        "--prefill-rate": "30k",
        "--routing": "random",
        "--block-size": "16",
    },
    "split": {
        "--gpus": "64",
        "--rollout-tps": "2000",
        "--trainer-tps": "6000",
        "--gpus-per-instance": "4",
        "--headroom": "0.9",
        "--swap-seconds": "2",
        "--batch-tokens": "786432",
        "--tokens-per-trained-token": "1.2",
    },
    "backlog": {
        "--instances": "15",
        "--per-instance": "4000",
        "--consume": "39321.6",
        "--batch-tokens": "786432",
        "--seconds": "600",
        "--max-staleness": "2",
        "--samples": "512",
        "--in-flight": "800",
        "--headroom": "0.9",
    },
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=tries(100))
@given(
    data=st.data(),
    command=st.sampled_from(sorted(GOOD_LINES)),
    form=st.sampled_from(["", "--json", "--csv", "--markdown", "--explain", "--plot"]),
)
def test_junk_in_a_good_line_ends_in_an_answer_or_in_exit_code_2(
    rlsize: Run, data: st.DataObject, command: str, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One to three flags of a good line are replaced by junk: there is no traceback, and JSON is JSON."""
    monkeypatch.chdir(tmp_path)  # junk may name a file
    good = GOOD_LINES[command]
    junk = data.draw(st.dictionaries(st.sampled_from(sorted(good)), words, min_size=1, max_size=3))
    flags = good | junk
    ran = rlsize(command, *(f"{flag}={value}" for flag, value in flags.items()), *([form] if form else []))
    assert ran.code in {0, 1, 2}
    if ran.code == 0 and form == "--json":
        assert ran.document["command"] == command
        assert set(ran.results) <= set(ran.document["explain"])
    if ran.code == 2:
        assert ran.stderr


def test_an_interrupted_pipe_is_no_traceback() -> None:
    """`rlsize explain | head -1` ends quietly."""
    program = f"{sys.executable} -m rlsize explain | head -1"
    done = subprocess.run(["sh", "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "command", [("observe", "odd.yaml"), ("diff", "odd.yaml", "odd.yaml"), ("calibrate", "odd.yaml")]
)
def test_a_header_whose_kind_is_a_list_is_refused(
    rlsize: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """Kinds are words; any other YAML there is a fault of the file, not of the program."""
    monkeypatch.chdir(tmp_path)
    Path("odd.yaml").write_text("rlsize: {kind: [a], version: 1}\n", encoding="utf-8")
    ran = rlsize(*command)
    assert ran.code == 2
    assert "odd.yaml: " in ran.stderr


@pytest.mark.parametrize(
    "typed",
    [
        ("--model", "nonsense"), ("--calibration", "nonsense.yaml"), ("--gpu", "nonsense"), ("--price", "nonsense"),
        ("--routing", "nonsense"), ("--set", "model=nonsense"), ("--set", "cluster.profile=nonsense"),
        ("--set", "weight_sync.link=nonsense"),
    ],
)  # fmt: skip
def test_nonsense_is_refused_where_nothing_asks_for_it(rlsize: Any, typed: tuple[str, str]) -> None:
    """Two rates are all that a fleet needs; whatever else is typed is judged all the same."""
    ran = rlsize("fleet", "--consume", "1000", "--per-instance", "100", *typed)
    assert ran.code == 2
    assert "nonsense" in ran.stderr


def test_what_is_missing_names_the_command_that_gives_it(rlsize: Any) -> None:
    """Rates, times and numbers of GPUs."""
    lacking = rlsize("fleet").stderr
    assert "`rlsize predict train`" in lacking
    assert "`rlsize predict rollout`" in lacking
    assert "`rlsize predict step`" in rlsize("cost").stderr
    assert "`rlsize plan`" in rlsize("cost").stderr


def test_full_says_where_it_changes_nothing(rlsize: Any) -> None:
    """Nothing that is typed is ignored."""
    asked = ("explain", "idle_fraction", "--full")
    assert "--full changes nothing here" in rlsize(*asked).stderr


@pytest.mark.long
def test_a_flag_of_another_command_says_its_key(rlsize: Any) -> None:
    """As `--set` does; a switch says yes, and what lacks its value is no flag here."""
    asked = ("cost", str(Path(__file__).parents[2] / "examples/unmeasured-8b.yaml"), "--json")
    for flag, change in ((("--gpu", "h200-sxm"), "cluster.gpu=h200-sxm"), (("--compiled",), "trainer.compiled=yes")):
        one, other = rlsize(*asked, *flag).document, rlsize(*asked, "--set", change).document
        assert (one["inputs"], one["results"]) == (other["inputs"], other["results"])
    assert rlsize("cost", "--gpu").stderr.startswith("error: --gpu: there is no such flag here")


def test_a_model_and_a_gpu_go_by_the_names_that_people_use(rlsize: Any) -> None:
    """A mere spelling is taken as it is; a stand-in, and a path that is not there, with a warning."""
    asked = ("memory", "--algorithm", "grpo", "--gpu", "NVIDIA H100 80GB HBM3", "--json", "--model")
    plain = rlsize(*asked, "Qwen/Qwen3-8B-Base").document
    assert (plain["inputs"]["model"], plain["inputs"]["gpu"]) == ("qwen3-8b", "h100-sxm")
    for name, told in (
        ("Qwen/Qwen3-VL-8B-Instruct", "is taken for qwen3-8b, without its vision tower"),
        ("/nowhere/Qwen3-8B", "no such file here; taken for qwen3-8b by its name"),
    ):
        other = rlsize(*asked, name).document
        assert other["inputs"]["model"] == "qwen3-8b"
        assert any(told in one for one in other["warnings"])
        assert not any(told in one for one in plain["warnings"])


def test_a_command_line_that_cannot_be_read_is_told_like_all_else(rlsize: Any) -> None:
    """In one style, with the nearest flag or command."""
    for line, what, todo in (
        (("plan", "--gpuss", "3"), "error: --gpuss: there is no such flag here", "did you mean --gpu"),
        (("plam",), "error: No such command 'plam'", "rlsize --help"),
        (("profiles", "shw"), "error: No such command 'shw'", "Did you mean 'show'"),
        (("profiles", "--kind"), "error: --kind: there is no such flag here", "rlsize profiles --help"),
        (("whatif", "train.sh", "run.log"), "error: run.log: takes one scenario, plan", "rlsize calibrate LOG"),
        (("schema", "gpu", "link"), "error: Got unexpected extra argument(s) (link)", "rlsize schema --help"),
        (("plan", "--gpus"), "error: Option '--gpus' requires an argument", "plan --help"),
        (("--nonsense",), "error: --nonsense", "--help"),
    ):
        ran = rlsize(*line)
        assert (ran.code, ran.stdout) == (2, "")
        assert ran.stderr.startswith(what)
        assert todo in ran.stderr
