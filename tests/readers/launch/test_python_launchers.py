"""Commands that a Python script starts: followed through its names, functions and conditions, and never run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rlsize.readers.frameworks import frameworks
from rlsize.readers.launch.launch import Launch, read_launch
from rlsize.readers.profiles import Catalogue

if TYPE_CHECKING:
    from pathlib import Path

KNOWN = frameworks(Catalogue())


def _launch(folder: Path, text: str) -> Launch:
    (folder / "go.py").write_text(text, encoding="utf-8")
    return read_launch(str(folder / "go.py"), KNOWN)


_LAUNCHER = """import argparse, os, shlex, subprocess, sys
SIZES = {"small": dict(model="Qwen/Qwen3-4B", tp=1), "large": {"model": "Qwen/Qwen3-14B", "tp": 2}}
def run(cmd, dry=False):
    print(shlex.join(cmd))
    subprocess.run(cmd, check=True)
def build(args, n=8):
    size = SIZES[args.size]
    cmd = [sys.executable, "-m", "verl.trainer.main_ppo", f"actor_rollout_ref.model.path={size['model']}",
           f"actor_rollout_ref.rollout.tensor_model_parallel_size={size['tp'] * 2}", f"actor_rollout_ref.rollout.n={n}"]
    cmd += ["trainer.n_gpus_per_node=" + str(args.gpus), f"trainer.nnodes={int(os.environ.get('NODES', '3'))}"]
    if args.offload:
        cmd += ["actor_rollout_ref.actor.fsdp_config.param_offload=True"]
    if args.gpus > 4 and not args.offload:
        cmd.append("data.train_batch_size=512")
    else:
        cmd.append("data.train_batch_size=64")
    if os.environ.get("DEBUG"):
        cmd.append("data.train_batch_size=1")
    cmd.append(f"data.max_prompt_length={pick()}")
    return cmd
if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", default="large")
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--offload", action="store_true")
    run(build(parser.parse_args(), n=16))
"""


def test_a_python_launcher_is_followed_through_its_functions_and_conditions(tmp_path: Path) -> None:
    """Defaults of its options, switches that are off, tables, what functions give back and are given."""
    launch = _launch(tmp_path, _LAUNCHER)
    keys = ("model", "rollout_tensor_parallel", "group_size", "gpus", "nodes", "prompts_per_step", "offload_params")
    told = [launch.reading.value(f"loop.{key}") for key in keys]
    assert told == ["Qwen/Qwen3-14B", 4, 16, 24, 3, 512, False]
    prompts = launch.reading.settings["data.max_prompt_length"]
    assert (prompts.value, prompts.unknown) == (None, "pick")


def test_a_condition_that_only_a_run_would_tell_is_read_as_if_it_held(tmp_path: Path) -> None:
    """With a note that says where; a call in a branch that is not taken starts nothing."""
    text = """import subprocess
cmd = "python3 -m verl.trainer.main_ppo trainer.nnodes=2"
if there():
    cmd += " actor_rollout_ref.rollout.n=8"
if False:
    subprocess.run("python3 -m verl.trainer.main_ppo trainer.nnodes=4", shell=True)
subprocess.run(cmd.split() + [], check=True) if 0 else subprocess.run(cmd, shell=True)
"""
    launch = _launch(tmp_path, text)
    assert [launch.reading.value(f"loop.{key}") for key in ("nodes", "group_size")] == [2, 8]
    notes = launch.notes
    assert any(
        note.endswith("go.py:3: a condition hangs on what only a run would tell: read as if it holds") for note in notes
    )


def test_a_text_keeps_what_is_known_of_it_where_a_part_is_not(tmp_path: Path) -> None:
    """One number of a long command that only a run would tell does not cost the rest."""
    text = """import os, textwrap
nodes = len(hosts())
os.system(textwrap.dedent(f'''
    python3 -m verl.trainer.main_ppo
      trainer.nnodes={nodes} actor_rollout_ref.rollout.n={8 if {"a": 4}["a"] > 2 else 16}
''').replace("\\n", " "))
"""
    launch = _launch(tmp_path, text)
    assert launch.reading.value("loop.group_size") == 8
    assert launch.reading.settings["trainer.nnodes"].unknown == "len_hosts"


@pytest.mark.parametrize(
    ("test", "group"),
    [
        ("N > 4", 8), ("1 < N < 4", 1), ("N == 8 and not ON", 8), ("N != 8 or ON", 1), ("ON is None", 1),
        ("MODE in {'a'}", 8), ("MODE > 'a'", 8), ("None > None", 8), ("there() or N == 8", 8), ("there() and N < 8", 1),
    ],
)  # fmt: skip
def test_conditions_over_what_is_known_are_followed(tmp_path: Path, test: str, group: int) -> None:
    """Those over anything else are read as if they held."""
    text = f"""import subprocess
N = 8
ON = False
MODE = "b"
cmd = ["python3", "-m", "verl.trainer.main_ppo", "trainer.nnodes=2"]
cmd += ["actor_rollout_ref.rollout.n=8"] if {test} else []
subprocess.run(cmd)
"""
    assert _launch(tmp_path, text).reading.value("loop.group_size") == group


def test_a_launcher_that_calls_itself_ends(tmp_path: Path) -> None:
    """Functions and names that go in circles are unknown, and cost no more than that."""
    text = """import subprocess
def f(x): return g(x + x)
def g(x): return f(x) if x else g(x)
y = y + y if y else f(1)
cmd = ["python3", "-m", "verl.trainer.main_ppo", "trainer.nnodes=2", f"data.train_batch_size={f(1)}", f"a={y}"]
subprocess.run(cmd)
"""
    launch = _launch(tmp_path, text)
    assert launch.reading.value("loop.nodes") == 2
    assert launch.reading.settings["data.train_batch_size"].value is None
