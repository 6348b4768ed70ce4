"""`rlsize validate --record`: a log and its launch as one record, without a name, a host, a user or a path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from rlsize.facts.records import StepRecord
from rlsize.readers.profiles import Catalogue
from rlsize.readers.records.listing import read_records

LAUNCH = Path("examples/launch/distil-3b.sh")
LOG = Path("examples/launch/distil-3b.log")
PRIVATE = ("hooli", "/data", "10.20.30.40", "falcon-heavy", "sk-live")


@pytest.fixture
def secret(tmp_path: Path) -> tuple[str, str]:
    """The log and the launch of a run whose model, paths, host and user are nobody's business."""
    model = tmp_path / "hooli-falcon-heavy"
    model.mkdir()
    config = json.loads(Path("examples/my-model/config.json").read_text("utf-8"))
    (model / "config.json").write_text(json.dumps(config | {"hidden_size": 3072, "_name_or_path": "hooli/x"}), "utf-8")
    launch = tmp_path / "hooli.sh"
    text = LAUNCH.read_text("utf-8").replace("Qwen/Qwen2.5-3B-Instruct", str(model))
    more = "  trainer.project_name=hooli trainer.default_local_dir=/data/hooli \\\n  trainer.logger=console"
    launch.write_text(text.replace("  trainer.logger=console", more), "utf-8")
    log = tmp_path / "hooli.log"
    log.write_text(f"(TaskRunner pid=7, ip=10.20.30.40) WANDB_API_KEY=sk-live-1\n{LOG.read_text('utf-8')}", "utf-8")
    return str(log), str(launch)


def test_a_record_says_what_ran_and_is_graded_at_once(rlsize: Any, tmp_path: Path) -> None:
    """Phases and lengths of the log, pools and layout of the launch; it reads back as a record of its class."""
    target = tmp_path / "own.yaml"
    engine = "rollout.engine_version=0.8.5+hooli"
    beside = ("--set", "cluster.gpu=a800-sxm", "--framework", "verl@0.4.1", "--set", engine)
    result = rlsize("validate", "--record", str(target), str(LAUNCH), str(LOG), *beside)
    assert result.code == 0
    assert "sent nothing" in " ".join(result.stdout.split())
    (row,) = yaml.safe_load(target.read_text("utf-8"))
    assert (row["model"], row["gpu"], row["framework"]) == ("qwen2.5-3b", "a800-sxm", "verl 0.4.1")
    assert row["rollout_engine"] == "vllm 0.8.5"
    assert (row["step_time_s"], row["train_time_s"]) == pytest.approx((204.4, 35.03), rel=1e-3)
    (entry,) = read_records([target], Catalogue()).records
    said = entry.record
    assert isinstance(said, StepRecord)
    assert (entry.class_name, said.trainer_gpus, said.samples, said.group_size) == ("rl_step", 4, 512, 16)
    assert (said.version, said.offload) == ("0.4.1", ("optimizer", "params"))
    assert (said.rollout.tensor, said.trainer.context, said.passes) == (4, 4, ("old_logprob", "reference"))


def test_a_record_names_nobody(rlsize: Any, tmp_path: Path, secret: tuple[str, str]) -> None:
    """A private model is its kind and size, a fork its release; no word of paths, hosts, users and keys is there."""
    target = tmp_path / "own.yaml"
    told = ("--set", "cluster.gpu=a800-sxm", "--framework", "verl@0.5.0.dev1+hooli.falcon-heavy")
    rlsize("validate", "--record", str(target), *secret, *told)
    text = target.read_text("utf-8")
    assert not [word for word in (*PRIVATE, str(tmp_path)) if word in text.lower()]
    (row,) = yaml.safe_load(text)
    assert row["model"].startswith("dense ")
    assert row["framework"] == "verl 0.5.0.dev1"


def test_a_gpu_of_ones_own_is_no_record(rlsize: Any, tmp_path: Path) -> None:
    """Nobody else could predict it: told before anything is written."""
    target, profile = tmp_path / "own.yaml", tmp_path / "gpus" / "mine.yaml"
    profile.parent.mkdir()
    profile.write_text(Path("profiles/gpus/a800-sxm.yaml").read_text("utf-8").replace("a800-sxm", "mine"), "utf-8")
    asked = ("--profiles", str(tmp_path), "--set", "cluster.gpu=mine")
    result = rlsize("validate", "--record", str(target), str(LAUNCH), str(LOG), *asked)
    assert (result.code, target.exists()) == (2, False)
    assert "ran on 'mine'" in result.stderr


def test_a_record_is_of_one_log(rlsize: Any, tmp_path: Path) -> None:
    """Two launches, no log, or a change without a record: told, and nothing is written."""
    target = tmp_path / "own.yaml"
    for sources in ([str(LAUNCH)], [str(LOG), str(LOG), str(LAUNCH)]):
        result = rlsize("validate", "--record", str(target), *sources)
        assert (result.code, "takes one log" in result.stderr) == (2, True)
    told = rlsize("validate", "examples/my-runs.yaml", "--set", "cluster.gpu=a800-sxm", "--framework", "verl").stderr
    assert "--set" in told
    assert "--framework" in told
    assert not target.exists()
