"""`rlsize calibrate LOG SCRIPT` makes a twin of a run, and `rlsize whatif` asks what changes would do to it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from pprint import pformat
from statistics import median
from typing import Any

import pytest
from benchmarks.coverage import expected_coverage
from benchmarks.twins import (
    Told,
    beside,
    coverage,
    of_logs,
    of_tables,
    read_pairs,
    scenario,
    untested_spread,
)
from tests.effort import NIGHTLY, tries

from rlsize.commands.whatif import _chart
from rlsize.estimates.run_memory import PEAKING, own_memory
from rlsize.estimates.run_twin import UNTESTED as UNTESTED_SPREAD
from rlsize.facts.calibration import OwnMemory
from rlsize.facts.figure import Figure
from rlsize.facts.run_log import RunSummary
from rlsize.loop.knobs import KINDS, UNTESTED, Change, kind_of, single_steps
from rlsize.loop.phases import phases_of
from rlsize.loop.resolve import Loop, resolve
from rlsize.quantities.table import QUANTITIES
from rlsize.shell.inputs import Inputs
from rlsize.shell.launches import can_change, in_own_keys
from rlsize.shell.observation import shown_by
from rlsize.verdicts.whatif import Outcome, outcome_in, outcome_of, outcomes, pairs

EXAMPLES = Path(__file__).parents[2] / "examples" / "launch"
LOG, SCRIPT = EXAMPLES / "distil-3b.log", EXAMPLES / "distil-3b.sh"
SECONDS = {"step_seconds": 204.5, "generation_seconds": 91.8, "train_seconds": 112.3}
"""Means of the settled steps of that log, by hand."""
_FEW = frozenset({"rollout_tensor_parallel", "micro_batch_tokens", "group_size", "kv_dtype", "gpu"})


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The twin of the example's run."""
    from typer.testing import CliRunner

    from rlsize.shell.app import app

    file = tmp_path_factory.mktemp("twin") / "twin.yaml"
    line = ["calibrate", str(SCRIPT), str(LOG), "--set", "cluster.gpu=a800-sxm", "--save", str(file)]
    assert CliRunner().invoke(app, line).exit_code == 0
    return file


@pytest.fixture
def said(twin: Path) -> Inputs:
    """The example's script with its twin."""
    return Inputs(str(SCRIPT), texts={"calibration": str(twin)})


@pytest.fixture
def base(said: Inputs) -> Outcome:
    """The run as it is."""
    return outcome_in(said, Change({}))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of the steps that there are, and no pairs: each takes a tenth of a second."""

    def steps(*told: Any) -> Iterator[Change]:
        return (one for one in single_steps(*told) if one.values.keys() <= _FEW)

    monkeypatch.setattr("rlsize.loop.knobs.single_steps", steps)
    monkeypatch.setattr("rlsize.verdicts.whatif.pairs", lambda _found: iter(()))


def change(said: Inputs, base: Outcome, **values: Any) -> Outcome:
    """What a change does."""
    return outcome_of(said, Change(values), base)


@pytest.mark.long
def test_a_twin_tells_its_own_run_as_it_was(rlsize: Any, twin: Path) -> None:
    """Step and phases of another command are those of the log, though the log says what the script does not."""
    ran = rlsize("predict", "step", str(SCRIPT), "--calibration", str(twin), "--json")
    for key, seconds in SECONDS.items():
        assert ran.results[key] == pytest.approx(seconds, rel=0.005), key
    assert ran.document["explain"]["response_tokens"]["provenance"] == "measured"
    assert ran.document["inputs"]["gpu"] == "a800-sxm"


@pytest.mark.long
def test_the_file_keeps_figures_and_digests_and_not_the_log(twin: Path) -> None:
    """Whoever has the file can tell which log it is of, and cannot read the log in it."""
    text = twin.read_text("utf-8")
    assert hashlib.sha256(LOG.read_bytes()).hexdigest() in text
    assert "perf/throughput" not in text
    assert "actor_rollout_ref" not in text


@pytest.mark.long
def test_what_is_beyond_the_model_is_told_and_is_no_efficiency(rlsize: Any) -> None:
    """The teacher of that run is ten times larger than a reference that a script can say."""
    ran = rlsize("calibrate", str(LOG), str(SCRIPT), "--set", "cluster.gpu=a800-sxm", "--json")
    rows = {row["phase"]: row for row in ran.document["rows"]["run"]}
    assert rows["logprob"]["own_seconds"] > 20
    assert rows["logprob"]["scales"].startswith("tokens")
    assert rows["update"]["own_seconds"] < 1
    assert "logprob" in ran.document["headline"]


@pytest.fixture
def telling_log(tmp_path: Path) -> Path:
    """The log of a run that prints its configuration before its steps, as verl does."""
    settings = {
        "actor_rollout_ref": {
            "actor": {"ppo_mini_batch_size": 8, "ulysses_sequence_parallel_size": 4, "use_dynamic_bsz": True},
            "model": {"path": "Qwen/Qwen2.5-3B-Instruct"},
            "rollout": {"name": "vllm", "n": 16, "tensor_model_parallel_size": 4, "gpu_memory_utilization": 0.6},
        },
        "algorithm": {"adv_estimator": "grpo"},
        "data": {"max_prompt_length": 2048, "max_response_length": 8096, "train_batch_size": 32},
        "trainer": {"n_gpus_per_node": 4, "nnodes": 1},
    }
    path = tmp_path / "telling.log"
    path.write_text(f"{pformat(settings)}\n{LOG.read_text('utf-8')}", encoding="utf-8")
    return path


@pytest.mark.long
def test_a_log_that_prints_its_configuration_needs_no_script(rlsize: Any, telling_log: Path, tmp_path: Path) -> None:
    """Several logs are of one run: the one with the most steps counts."""
    short = tmp_path / "short.log"
    short.write_text("".join(LOG.read_text("utf-8").splitlines(keepends=True)[:2]), encoding="utf-8")
    line = ("calibrate", str(short), str(telling_log), "--set", "cluster.gpu=a800-sxm", "--json")
    ran = rlsize(*line)
    assert ran.code == 0, ran.stderr
    assert {row["phase"] for row in ran.document["rows"]["run"]} >= {"generation", "update", "logprob"}
    assert str(telling_log) in {row["source"] for row in ran.document["rows"]["points"]}


@pytest.mark.long
def test_gpus_that_cost_nothing_are_compared_by_their_hours(rlsize: Any) -> None:
    """As without a price."""
    asked = ("whatif", "examples/unmeasured-8b.yaml", "--set", "rollout.kv_dtype=fp8", "--own-only", "--json")
    free, unpriced = (rlsize(*asked, *price).document["rows"]["own"] for price in (("--gpu-hour", "0"), ()))
    assert [row["relative_yield"] for row in free] == [row["relative_yield"] for row in unpriced]


def test_what_only_rates_are_known_of_is_asked_too(rlsize: Any) -> None:
    """Its phases are not told apart; each change of a loop that is predicted has them."""
    line = ("--set", "workload.group_size=4", "--own-only", "--json")
    measured, predicted = (
        rlsize("whatif", str(EXAMPLES.parent / name), *line) for name in ("grpo-32b.yaml", "unmeasured-8b.yaml")
    )
    assert measured.results["step_seconds"] is not None, measured.stderr
    row = predicted.document["rows"]["own"][0]
    assert row["train_seconds"] == pytest.approx(row["update_seconds"] + row["logprob_seconds"], rel=0.01)


@pytest.mark.long
@pytest.mark.parametrize("seconds", [120.0, 204.5, 900.0])
def test_a_log_that_times_steps_alone_makes_a_twin_of_them(rlsize: Any, tmp_path: Path, seconds: float) -> None:
    """However far that is from what is predicted, and without a length in it."""
    log, file = tmp_path / "steps.log", tmp_path / "twin.yaml"
    log.write_text(
        "".join(f"step:{n} - actor/lr:0.0 - timing_s/step:{seconds}\n" for n in range(1, 6)), encoding="utf-8"
    )
    made = rlsize("calibrate", str(log), str(SCRIPT), "--set", "cluster.gpu=a800-sxm", "--save", str(file))
    assert made.code == 0, made.stderr
    ran = rlsize("predict", "step", str(SCRIPT), "--calibration", str(file), "--json")
    assert ran.results["step_seconds"] == pytest.approx(seconds, rel=0.01)


@pytest.mark.long
def test_halves_of_a_log_are_one_run(rlsize: Any, tmp_path: Path) -> None:
    """What one process logs and another does not: the twin is that of the whole log, and says what came from where."""
    halves = {"rollout.log": "", "trainer.log": ""}
    for line in LOG.read_text("utf-8").splitlines():
        head, *pairs = line.split(" - ")
        for name in halves:
            own = [one for one in pairs if ("timing_s/gen" in one or "length" in one) == (name == "rollout.log")]
            halves[name] += " - ".join([head, *own]) + "\n"
    for name, text in halves.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    files = [str(tmp_path / name) for name in halves]
    more = (str(SCRIPT), "--set", "cluster.gpu=a800-sxm", "--json")
    parts, whole = rlsize("calibrate", *files, *more), rlsize("calibrate", str(LOG), *more)
    one, other = (
        {row["phase"]: (row["measured_seconds"], row["own_seconds"]) for row in ran.document["rows"]["run"]}
        for ran in (parts, whole)
    )
    assert one.keys() == other.keys()
    assert all(one[phase] == pytest.approx(other[phase], abs=1e-6) for phase in other)
    assert any("of 2 logs" in text and "logprob_seconds" in text for text in parts.document["warnings"])


def test_the_log_of_engines_alone_is_told_from_a_launch(rlsize: Any, tmp_path: Path) -> None:
    """It times no step."""
    line = (
        "INFO 11-12 10:00:{n} [loggers.py:248] Engine 000: Avg generation throughput: 5.0 tokens/s, Running: 6 reqs, "
    )
    file = tmp_path / "engine.log"
    file.write_text("".join(line.format(n=n) + "Waiting: 0 reqs\n" for n in (10, 20, 30)), encoding="utf-8")
    ran = rlsize("calibrate", str(file), str(LOG), str(SCRIPT))
    assert ran.code == 2
    assert "engines alone" in ran.stderr


@pytest.mark.long
def test_a_run_that_the_model_thinks_too_large_is_believed(rlsize: Any, tmp_path: Path) -> None:
    """Its log shows that it runs, and with its twin every command says so; a change of it is judged again."""
    script = EXAMPLES / "verl-14b.sh"  # dies in the second step, says the model
    file = tmp_path / "twin.yaml"
    alone = ("predict", "step", str(script), "--response-tokens", "1500", "--gpu", "h100-sxm", "--json")
    assert rlsize(*alone).code == 1
    gpu = ("--set", "cluster.gpu=h100-sxm", "--set", "cluster.gpus=8")
    ran = rlsize("calibrate", str(LOG), str(script), *gpu, "--save", str(file))
    assert ran.code == 0, ran.stderr
    assert rlsize("predict", "step", str(script), "--calibration", str(file), "--json").code == 0
    for change, verdict in (("rollout.memory_fraction=0.9", "no"), ("rollout.max_num_seqs=128", "yes")):
        asked = ("whatif", str(script), "--calibration", str(file), "--set", change, "--own-only", "--json")
        assert rlsize(*asked).document["rows"]["own"][0]["verdict"] == verdict


@pytest.mark.long
def test_keys_of_a_log_may_be_said(rlsize: Any, tmp_path: Path) -> None:
    """A log of one's own is a run too, where somebody says what its keys mean."""
    log = tmp_path / "own.log"
    log.write_text("".join(f"it={n} t_all={40 + n % 3} t_roll=25 t_fit=12\n" for n in range(12)), encoding="utf-8")
    keys = ("step_seconds=t_all", "generation_seconds=t_roll", "update_seconds=t_fit")
    more = ("cluster.gpu=a800-sxm", "workload.response_tokens.mean=1000")
    flags = [word for text in keys for word in ("--map", text)] + [word for text in more for word in ("--set", text)]
    ran = rlsize("calibrate", str(log), str(SCRIPT), *flags, "--json")
    assert ran.code == 0, ran.stderr
    rows = {row["phase"]: row["measured_seconds"] for row in ran.document["rows"]["run"]}
    assert (rows["generation"], rows["update"]) == (25.0, 12.0)


@pytest.mark.long
def test_a_log_that_is_not_of_the_run_is_doubted(rlsize: Any) -> None:
    """Its batch is another one."""
    ran = rlsize("calibrate", str(LOG), str(SCRIPT), "--set", "cluster.gpu=a800-sxm", "--set", "workload.group_size=4")
    assert ran.code == 0
    assert "is it the log of this run?" in " ".join(ran.stderr.split())


def test_what_is_thrown_away_is_generated_too() -> None:
    """A log that counts dropped samples says how many more are made than trained, in a place that scenarios have."""
    told = {"samples_per_step": 100.0, "dropped_samples_per_step": 25.0, "prefix_cache_hit_fraction": 1.0}
    log = RunSummary(figures={key: Figure(key=key, value=value) for key, value in told.items()}, mode="async")
    said = Inputs()
    assert set(said.show(shown_by(log), "run.log")) == {
        "samples_per_step", "tokens_generated_per_trained_token", "hit_fraction", "mode",
    }  # fmt: skip
    assert said.ask("tokens_generated_per_trained_token").number == 1.25
    assert said.ask("hit_fraction").number < 1.0
    assert said.ask("samples_per_step").provenance == "measured"


def test_a_log_without_a_script_needs_one_or_a_configuration(rlsize: Any) -> None:
    """It says what is missing."""
    ran = rlsize("calibrate", str(LOG))
    assert ran.code == 2
    assert "model" in ran.stderr


@pytest.mark.long
@pytest.mark.usefixtures("few")
def test_steps_are_in_the_framework_s_own_keys_and_ranked_in_their_class(rlsize: Any, twin: Path) -> None:
    """What a launch has no key for is not offered; the best stands first; the user's own change is told too."""
    line = ("whatif", str(SCRIPT), "--calibration", str(twin), "--set", "rollout.tensor_parallel=2")
    ran = rlsize(*line, "--other-gpu", "h200-sxm", "--json")
    assert ran.code == 0, ran.stderr
    tables = ran.document["rows"]
    assert set(tables) == {"own", "unchanged", "numerics", "changed", "other_gpus"}
    for name in ("unchanged", "changed"):
        ones = [row["relative_yield"] for row in tables[name] if row["verdict"] != "no"]
        assert ones == sorted(ones, reverse=True)
        assert all("=" in row["change"] for row in tables[name])
    changes = [row["change"] for row in tables["unchanged"]]
    assert any("ppo_max_token_len_per_gpu" in text for text in changes)
    assert any("tensor_model_parallel_size" in text for text in changes)
    assert tables["own"][0]["relative_yield"] == pytest.approx(
        next(row["relative_yield"] for row in tables["unchanged"] if "parallel_size=2" in row["change"])
    )
    assert ran.results["step_seconds"] == pytest.approx(SECONDS["step_seconds"], rel=0.005)


@pytest.mark.long
@pytest.mark.usefixtures("few")
def test_without_a_twin_it_asks_the_prior(rlsize: Any) -> None:
    """The same question before any run, with a wider band; a change that cannot run is an answer, and it is no."""
    loop = ("--model", "qwen3-8b", "--gpu", "h100-sxm", "--mode", "colocated", "--gpus", "8", "--prompts", "8")
    work = ("--group", "8", "--response-tokens", "1k")
    ran = rlsize("whatif", *loop, *work, "--set", "cluster.gpus=1", "--other-gpu", "h200-sxm", "--json")
    assert ran.code == 1
    own = ran.document["rows"]["own"][0]
    assert own["verdict"] == "no"
    assert own["reason"]
    ends = ran.document["explain"]["step_seconds"]["band"]
    assert ends[1] > 1.3 * ends[0]


def test_bands_of_changes_share_their_draws(said: Inputs, base: Outcome) -> None:
    """A change of nothing brings exactly nothing, however wide the band of the step; a change brings a narrow ratio."""
    assert base.found is not None
    nothing = change(said, base, rollout_tensor_parallel=4.0)
    assert nothing.gain is not None
    assert nothing.gain.number == pytest.approx(1.0)
    assert nothing.gain.band is None or nothing.gain.band == pytest.approx((1.0, 1.0))
    larger = change(said, base, micro_batch_tokens=81152.0)
    assert larger.gain is not None
    assert larger.gain.band is not None
    low, high = base.found.results["step_seconds"].band or (0.0, 0.0)
    assert larger.gain.band[1] / larger.gain.band[0] < high / low


@pytest.mark.long
def test_what_a_change_brings_lies_within_its_band() -> None:
    """Also where one side waits in nearly all draws, so that hardly one agrees with the central number."""
    sides = [
        "placement.mode=async",
        "placement.rollout_gpus=16",
        "placement.trainer_gpus=16",
        "rollout.max_num_seqs=128",
    ]
    work = ["workload.prompts_per_step=128", "workload.group_size=8", "workload.response_tokens.mean=3000"]
    more = ["model=qwen3-8b", "cluster.gpu=h100-sxm", "workload.response_tokens.max=8192", "placement.max_staleness=2"]
    more += ["trainer.parallelism.fsdp=16", "trainer.micro_batch_tokens=16384", "rollout.tensor_parallel=2"]
    more += ["workload.prompt_tokens=300", "rollout.memory_fraction=0.85"]
    said = Inputs(changes=[*sides, *work, *more])
    base = outcome_in(said, Change({}))
    for values in ({"late_samples": "drop"}, {"group_size": 16.0}, {"prompts_per_step": 64.0}):
        gain = outcome_of(said, Change(values), base).gain
        assert gain is not None
        assert gain.band is not None
        assert gain.band[0] <= gain.number <= gain.band[1]


def test_longer_responses_lengthen_what_grows_with_tokens(said: Inputs, base: Outcome) -> None:
    """Time of the run's own over its tokens goes along, and its band says that nobody knows how all of it grows."""
    assert base.found is not None
    longer = change(said, base, response_tokens=2.0 * 993.7)
    assert longer.found is not None
    before, after = base.found.results, longer.found.results
    assert after["train_seconds"].number > 1.4 * before["train_seconds"].number
    spread = [band[1] / band[0] for one in (after, before) if (band := one["train_seconds"].band)]
    assert spread[0] > spread[1]


def test_other_gpus_shorten_own_passes_in_part(said: Inputs, base: Outcome) -> None:
    """What a pass has of its own goes half as far as the pass itself, within a wide band; a longer one is longer."""
    quicker = change(said, base, gpu="h100-sxm")
    assert quicker.found is not None
    assert base.loop is not None
    assert base.loop.problem.run is not None
    own = next(one for one in base.loop.problem.run.own if one.phase == "logprob")
    seconds = quicker.found.results["logprob_seconds"]
    rest = seconds.inputs["own_seconds"].number
    assert 0.3 * own.seconds < rest < 0.95 * own.seconds
    assert seconds.band is not None
    assert seconds.band[1] > 1.2 * seconds.band[0]


def test_a_run_that_was_measured_fits_and_what_needs_more_is_judged(said: Inputs, base: Outcome) -> None:
    """Nobody doubts the memory of what ran; a change that needs no more of it is not doubted either."""
    assert base.verdict == "fits"
    assert change(said, base, max_num_seqs=128.0).verdict == "fits"


def test_memory_is_told_from_the_peak_of_the_run(said: Inputs, base: Outcome) -> None:
    """The log has 46.25 GiB of tensors at most; that is in the twin, and in what a change of micro-batches holds."""
    assert base.loop is not None
    assert base.loop.problem.run is not None
    memory = base.loop.problem.run.memory
    assert memory is not None
    assert memory.phase == "update"
    assert memory.measured / 2**30 == pytest.approx(46.2525, abs=1e-3)
    held = {}
    for tokens in (40576.0, 81152.0):  # of the four GPUs of a sequence
        phases = change(said, base, micro_batch_tokens=tokens).phases
        assert phases is not None
        update = next(one for one in phases.phases if one.name == "update")
        held[tokens] = update.held.number
        if tokens == 40576.0:
            engine = ("engine_runtime", "contexts", "reserved")
            assert sum(part for name, part in update.parts.items() if name not in engine) == pytest.approx(
                memory.measured
            )
    assert held[40576.0] < 0.9 * held[81152.0]
    alone = phases_of(resolve(said.changed({"algorithm.reference": False})), own=replace(memory, phase="reference"))
    assert alone is not None  # the pass in which the peak stood is gone, and what nobody knows of it is not
    assert next(one for one in alone.phases if one.name == "update").parts["own"] > 0


def test_two_changes_come_from_the_best_of_their_class(said: Inputs, base: Outcome) -> None:
    """Pairs change different things."""
    values = ({"rollout_tensor_parallel": 2.0}, {"micro_batch_tokens": 81152.0}, {"group_size": 32.0})
    single = [Change(one) for one in values]
    both = list(pairs(outcomes(said, base, single)))
    assert [sorted(one.values) for one in both] == [["micro_batch_tokens", "rollout_tensor_parallel"]]


@pytest.mark.long
def test_people_see_the_best_pairs_of_each_class(rlsize: Any) -> None:
    """Two of each stand first, though those of one class alone would fill the table."""
    ran = rlsize("whatif", str(EXAMPLES.parent / "unmeasured-8b.yaml"), "--json")
    found = [row["training"] for row in ran.document["rows"]["pairs"]]
    first = [kind for kind in dict.fromkeys(found) for _ in range(min(2, found.count(kind)))]
    assert len(set(first)) == 3
    assert found[: len(first)] == first


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"rollout_tensor_parallel": 2}, KINDS[0]),
        ({"mode": "colocated"}, KINDS[0]),
        ({"kv_dtype": "fp8", "offload": True}, KINDS[1]),
        ({"mode": "async"}, KINDS[2]),
        ({"group_size": 8, "kv_dtype": "fp8"}, KINDS[2]),
    ],
)
def test_the_class_of_a_change_is_that_of_the_quantity_that_matters_most(values: dict[str, Any], kind: str) -> None:
    """Staleness changes the training; where a model runs does not."""
    assert kind_of(values) == kind


def test_numbers_are_turned_both_ways_and_stay_whole() -> None:
    """One step up and one down, from where the loop stands."""
    said = Inputs(
        changes=(
            *("model=qwen3-8b", "cluster.gpu=h100-sxm", "placement.mode=async", "workload.prompts_per_step=8"),
            *("placement.rollout_gpus=8", "placement.trainer_gpus=8", "workload.group_size=8"),
            *("workload.response_tokens=1k", "rollout.tensor_parallel=2", "placement.max_staleness=1"),
        )
    )
    steps = [one.values for one in single_steps(said, resolve(said), ("h200-sxm",))]
    for values in (
        *(
            {"rollout_tensor_parallel": 1.0},
            {"rollout_tensor_parallel": 4.0},
            {"group_size": 4.0},
            {"group_size": 16.0},
        ),
        *({"rollout_gpus": 16.0}, {"rollout_gpus": 4.0}, {"rollout_gpus": 10.0, "trainer_gpus": 6.0}),
        *({"mode": "colocated"}, {"mode": "sync"}, {"max_staleness": 2.0}, {"gpu": "h200-sxm"}, {"kv_dtype": "fp8"}),
    ):
        assert values in steps
    assert {"max_staleness": 0.5} not in steps
    assert len(steps) == len({str(values) for values in steps})


LAUNCHES = {
    "verl": "export CUDA_VISIBLE_DEVICES=0,1,2,3,4,5,6,7\npython3 -m verl.trainer.main_ppo "
    "actor_rollout_ref.model.path=Qwen/Qwen3-8B data.train_batch_size=64 data.max_response_length=2048 "
    "data.max_prompt_length=512 actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=8 "
    "actor_rollout_ref.rollout.tensor_model_parallel_size=2 actor_rollout_ref.actor.ppo_mini_batch_size=64 "
    "actor_rollout_ref.actor.use_dynamic_bsz=True actor_rollout_ref.actor.ppo_max_token_len_per_gpu=8192 "
    "actor_rollout_ref.rollout.enforce_eager=True trainer.n_gpus_per_node=8 trainer.nnodes=1",
    "swift": "NPROC_PER_NODE=6 swift rlhf --rlhf_type grpo --model Qwen/Qwen2.5-7B-Instruct --tuner_type full "
    "--torch_dtype bfloat16 --deepspeed zero2 --per_device_train_batch_size 2 --gradient_accumulation_steps 2 "
    "--num_generations 8 --max_completion_length 2048 --use_vllm true --vllm_mode server "
    "--vllm_server_host 127.0.0.1\n# CUDA_VISIBLE_DEVICES=6,7 swift rollout --model m --data_parallel_size 2",
    "slime": "python3 train.py --hf-checkpoint Qwen/Qwen3-4B --actor-num-nodes 1 --actor-num-gpus-per-node 8 "
    "--colocate --rollout-num-gpus-per-engine 2 --rollout-batch-size 32 --n-samples-per-prompt 8 "
    "--rollout-max-response-len 8192 --tensor-model-parallel-size 2 --global-batch-size 256 "
    "--use-dynamic-batch-size --max-tokens-per-gpu 9216",
}


@pytest.fixture
def launched(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[Inputs, dict[str, Outcome]]:
    """A launch, and what each single change of it does, by the words in which it is said."""
    path = tmp_path / "run.sh"
    path.write_text(LAUNCHES[request.param], encoding="utf-8")
    said = Inputs(str(path), texts={"gpu": "h100-sxm"})
    base = outcome_in(said, Change({}))
    assert base.loop is not None
    steps = [one for one in single_steps(said, base.loop) if can_change(said, known(one))]
    found = [outcome_of(said, one, base) for one in steps]
    return said, {in_own_keys(said, known(one.change)): one for one in found}


def known(one: Change) -> dict[str, Any]:
    """What of a change is said."""
    return {key: value for key, value in one.values.items() if value is not None}


def these(found: dict[str, Outcome], *texts: str) -> list[Outcome]:
    """The changes whose words have some text."""
    return [one for words, one in found.items() if any(text in words for text in texts)]


@pytest.mark.long
@pytest.mark.parametrize("launched", ["verl"], indirect=True)
def test_a_launch_is_changed_in_all_that_its_framework_has_keys_for(launched: Any) -> None:
    """Devices follow their number; number types and graphs have keys; another mode is another program."""
    _, found = launched
    assert these(
        found, "trainer.n_gpus_per_node=4, env.CUDA_VISIBLE_DEVICES=0,1,2,3", "env.CUDA_VISIBLE_DEVICES=0,1,2,3"
    )
    for key in ("enforce_eager=False", "rollout.quantization=fp8", "engine_kwargs.vllm.kv_cache_dtype=fp8"):
        assert these(found, key), key
    apart = these(found, "placement.mode=async")
    assert [one.runs for one in apart] == [True]
    assert apart[0].loop is not None
    place = apart[0].loop.place
    assert place is not None
    assert f"placement.rollout_gpus={place.rollout_gpus:g}" in next(one for one in found if "mode=async" in one)


@pytest.mark.long
@pytest.mark.parametrize("launched", ["verl"], indirect=True)
def test_a_picture_has_room_beside_long_keys(launched: Any) -> None:
    """A change of many keys stands there by its first."""
    said, found = launched
    chart = _chart(said, list(found.values()))
    labels = [str(label) for series in chart.series for label in series.xs]
    assert labels
    assert max(map(len, labels)) < 60


@pytest.mark.long
@pytest.mark.parametrize("launched", ["swift"], indirect=True)
def test_a_change_of_a_launch_keeps_its_batch_and_its_layout(launched: Any) -> None:
    """Ranks follow the GPUs of a trainer; keys that tell micro-batch and batch at once change together."""
    _, found = launched
    more, fewer = (these(found, f"NPROC_PER_NODE={count}") for count in (12, 3))
    assert [one.runs for one in (*more, *fewer)] == [True, True]
    assert "num_generations=16, gradient_accumulation_steps=4" in found
    assert not these(found, "accumulation_steps=0", "num_generations=16, steps", "0.5")


@pytest.mark.long
@pytest.mark.parametrize("launched", ["slime"], indirect=True)
def test_a_launch_with_a_layout_may_run_on_more_gpus_and_apart(launched: Any) -> None:
    """What Megatron's ranks are told of is no reason against twice the GPUs, half the degree, or two pools."""
    _, found = launched
    for keys in ("actor_num_nodes=2", "tensor_model_parallel_size=1", "tensor_model_parallel_size=4", "train_async.py"):
        assert these(found, keys), keys
        assert [one.refused for one in these(found, keys) if not one.refused.startswith("it dies at")] in ([""], []), (
            keys
        )
    assert not these(found, "expert_model_parallel_size")


@pytest.fixture(scope="module")
def told() -> list[Told]:
    """Published runs told by twins of each other: all pairs in CI, else some."""
    data = read_pairs()
    return list(of_logs(data | {"pairs": data["pairs"][: tries(len(data["pairs"]))]}))


@pytest.mark.long
def test_published_runs_that_differ_by_a_knob_are_told_by_twins_of_each_other(told: list[Told]) -> None:
    """Within what was aimed at, and better than time that stays and, where lengths change, than time as tokens."""
    steps = [one for one in told if one.phase == "step"]
    errors = sorted(one.error(one.predicted) for one in steps)
    assert median(errors) < 0.08
    assert errors[9 * len(errors) // 10] < 0.25
    assert median(one.error(one.predicted) for one in told) < 0.15
    assert median(one.error(one.unchanged) for one in steps) > median(errors)
    longer = [one for one in steps if one.knob == "lengths"]
    assert median(one.error(one.as_tokens) for one in longer) > median(one.error(one.predicted) for one in longer)


@pytest.mark.long
def test_bands_of_twins_hold_what_bands_of_80_percent_hold_of_so_many_sources(told: list[Told]) -> None:
    """Phase by phase, each publication counted once."""
    for phase in dict.fromkeys(one.phase for one in told):
        ones = [one for one in told if one.phase == phase]
        low, high = expected_coverage(len({one.source for one in ones}))
        assert low <= coverage(ones) <= high
        assert sum(one.inside for one in ones) >= len(ones) / 2


@pytest.mark.skipif(not NIGHTLY, reason="needs all pairs, which the nightly run predicts: RLSIZE_NIGHTLY=1")
def test_twins_are_closer_than_what_needs_no_model_in_every_class(told: list[Told]) -> None:
    """Each publication counted once; the same run again is told by anything, which a twin does not spoil."""
    for phase, knob in {(one.phase, one.knob): None for one in told}:
        twin, tokens, unchanged = beside([one for one in told if (one.phase, one.knob) == (phase, knob)])
        assert twin < min(tokens, unchanged) + 0.001, (phase, knob)


@pytest.mark.skipif(not NIGHTLY, reason="needs all pairs, which the nightly run predicts: RLSIZE_NIGHTLY=1")
def test_changes_that_nobody_has_tested_are_as_wide_as_those_that_were_are_off(told: list[Told]) -> None:
    """To a third."""
    assert pytest.approx(untested_spread([*told, *of_tables()]), rel=1 / 3) == UNTESTED_SPREAD


def test_what_no_published_runs_differ_by_is_said_and_has_a_wider_band(said: Inputs, base: Outcome) -> None:
    """Which changes these are is read off the pairs themselves."""
    data = read_pairs()
    runs = {row["id"]: data["setups"][row["setup"]] | row["scenario"] for row in data["runs"]}
    for pair in data["pairs"]:
        one, other = (runs[name] for name in pair["runs"])
        changed = {key for key in one.keys() | other.keys() if one.get(key) != other.get(key)}
        assert not changed & {QUANTITIES[key].scenario for key in UNTESTED}
    tested, untested = (outcome_of(said, Change(values), base) for values in ({"group_size": 8.0}, {"kv_dtype": "fp8"}))
    assert any("no published runs differ by kv_dtype" in doubt for doubt in untested.doubts)
    assert not any("no published runs" in doubt for doubt in tested.doubts)
    wide, narrow = (one.found.results["step_seconds"].band or (1, 1) for one in (untested, base) if one.found)
    assert wide[1] / wide[0] > 1.1 * narrow[1] / narrow[0]


@pytest.mark.long
def test_published_peaks_are_told_by_twins_of_each_other() -> None:
    """Of runs that differ by a knob, far closer than what is predicted without a twin."""
    data = read_pairs()
    runs = {row["id"]: row for row in data["runs"] if "peak_allocated_gib" in row}
    pairs_with = [pair["runs"] for pair in data["pairs"] if runs.keys() >= set(pair["runs"])]
    errors: dict[str, list[float]] = {"twin": [], "alone": [], "unchanged": []}
    for one, other in (order for both in pairs_with for order in permutations(both)):
        peaks = [runs[name]["peak_allocated_gib"] * 2.0**30 for name in (one, other)]
        loops = [resolve(Inputs(changes=scenario(runs[name], data["setups"]))) for name in (one, other)]
        log = RunSummary(figures={"peak_allocated_bytes": Figure(key="peak_allocated_bytes", value=peaks[0])})
        memory = own_memory(held_by(loops[0], None), log)
        told = {
            "alone": fullest(held_by(loops[1], None)),
            "twin": fullest(held_by(loops[1], memory)),
            "unchanged": peaks[0],
        }
        for name, value in told.items():
            errors[name].append(abs(value / peaks[1] - 1.0))
    assert len(errors["twin"]) > 20
    assert median(errors["twin"]) < 0.01
    assert median(errors["twin"]) < 0.5 * median(errors["alone"])


def held_by(loop: Loop, memory: OwnMemory | None) -> dict[str, dict[str, float]]:
    """What a trainer's tensors hold in each phase of a step."""
    phases = phases_of(loop, own=memory)
    assert phases is not None
    beside = {"engine_runtime", "engine_weights", "kv_cache", "contexts", "reserved"}
    return {
        phase.name: {name: part for name, part in phase.parts.items() if name not in beside}
        for phase in phases.phases
        if phase.name in PEAKING
    }


def fullest(held: dict[str, dict[str, float]]) -> float:
    """The most of all phases."""
    return max(sum(parts.values()) for parts in held.values())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("grows: false", "grows: 7"),
        ("  tokens: ", "  tokens: -"),
        ("response_tokens: ", "response_tokens: -"),
        ("gpu: a800-sxm\n  ran", "gpu: nothing\n  ran"),
    ],
)
def test_a_twin_that_was_spoilt_is_refused(rlsize: Any, twin: Path, tmp_path: Path, old: str, new: str) -> None:
    """What is no figure of a run is a fault, and names the file or what it says."""
    spoilt, text = tmp_path / "spoilt.yaml", twin.read_text("utf-8")
    assert old in text
    spoilt.write_text(text.replace(old, new, 1), encoding="utf-8")
    ran = rlsize("predict", "step", str(SCRIPT), "--calibration", str(spoilt))
    assert ran.code == 2
    assert "spoilt.yaml" in ran.stderr or "response_tokens" in ran.stderr


LOOP = (
    "--model", "qwen3-8b", "--gpu", "h100-sxm", "--gpus", "8", "--mode", "colocated",
    "--samples", "256", "--response-tokens", "1k",
)  # fmt: skip


def test_a_flag_says_the_loop_and_set_says_a_change(rlsize: Any) -> None:
    """As other commands take it, also where `whatif` has no flag of its own for it."""
    said = (*LOOP, "--kv-dtype", "fp8", "--routing", "round-robin")
    step = rlsize("predict", "step", *said, "--json").document["results"]["step_seconds"]
    ran = rlsize("whatif", *said, "--own-only", "--set", "rollout.kv_dtype=bf16", "--json").document
    assert ran["results"]["step_seconds"] == pytest.approx(step)
    assert [row["change"] for row in ran["rows"]["own"]] == ["rollout.kv_dtype=bf16"]
    base = ("--base", "rollout.kv_dtype=fp8", "--base=rollout.routing=round-robin", "--own-only", "--json")
    assert rlsize("whatif", *LOOP, *base).document["results"]["step_seconds"] == pytest.approx(step)


def test_a_step_is_told_in_one_unit_beside_its_changes(rlsize: Any) -> None:
    """A step of minutes, and a change that shortens it below five."""
    said = (*LOOP[:-4], "--samples", "2048", "--response-tokens", "1800", "--own-only", "--set", "cluster.gpus=16")
    ran = rlsize("whatif", *said, "--json").document
    assert ran["rows"]["own"][0]["step_seconds"] < 300 < ran["results"]["step_seconds"]
    seen = rlsize("whatif", *said).stdout.partition("Your changes")[2].partition("trained tokens")[0]
    assert " min " in seen
    assert " s " not in seen
