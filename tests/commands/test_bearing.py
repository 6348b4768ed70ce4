"""What is typed and moves no figure is named; what moves one never is."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import tries

from rlsize.facts.fields import Quantity
from rlsize.quantities.row import Row, Switch, Word
from rlsize.quantities.table import PLACES

Run = Callable[..., Any]
HEAD = "rlsize: {kind: scenario, version: 1}\n"
WORK = "workload: {prompts_per_step: 64, group_size: 8, prompt_tokens: 300, response_tokens: {mean: 2000, max: 8000}}\n"
LOOPS = {
    "async": "model: qwen3-8b\ncluster: {gpu: h100-sxm}\n"
    "placement: {mode: async, rollout_gpus: 16, trainer_gpus: 16, max_staleness: 2}\n",
    "colocated": "model: qwen3-8b\ncluster: {gpu: h100-sxm, gpus: 16}\nplacement: {mode: colocated}\n",
    "rates": "cluster: {gpus: 16}\nrollout: {gpus_per_instance: 1}\n"
    "placement: {mode: async, rollout_gpus: 8, trainer_gpus: 8, max_staleness: 2}\n"
    "rates: {instance_tokens_per_second: 4000, train_seconds: 30, sync_seconds: 3}\n",
}
COMMANDS = ("cost", "memory", "fleet", "backlog", "sync", "predict train", "predict rollout", "predict sync")
SAID = re.compile(r"No figure here depends on: (.*)")
VALUES = {  # where what is usual lies far from 1
    "B/s": (1e10, 1e11),
    "token": (100.0, 20_000.0),
    "s": (1.0, 300.0),
}


def named(ran: Any) -> list[str]:
    """What a command names as without bearing."""
    found = [SAID.fullmatch(note) for note in ran.document["notes"]]
    return [name for one in found if one for name in one[1].split(", ")]


def answer(ran: Any) -> tuple[Any, ...]:
    """All that an answer tells but its inputs."""
    document = ran.document
    bands = {key: entry.get("band") for key, entry in document["explain"].items() if key in document["results"]}
    return document["headline"], document["results"], document["rows"], document["warnings"], bands


@st.composite
def values(draw: st.DrawFn, row: Row) -> str:
    """A value of a quantity."""
    if isinstance(row.kind, Word):
        if row.kind.listed:
            return f"[{', '.join(draw(st.lists(st.sampled_from(row.kind.known), unique=True)))}]"
        return draw(st.sampled_from(row.kind.known))
    if isinstance(row.kind, Switch):
        return draw(st.sampled_from(("yes", "no")))
    assert isinstance(row.kind, Quantity)
    low, high = VALUES.get(row.kind.unit, (0.01, 0.9) if row.kind.most is not None else (1.0, 64.0))
    number = low * (high / low) ** draw(st.floats(0, 1))
    return str(round(max(1.0, number))) if row.kind.whole else f"{number:.3g}"


CHANGED = [row for row in PLACES.values() if isinstance(row.kind, (Quantity, Word, Switch))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the loops."""
    found = tmp_path_factory.mktemp("loops")
    for name, text in LOOPS.items():
        (found / f"{name}.yaml").write_text(HEAD + text + WORK + "prices: {gpu_hour: 2.5}\n", "utf-8")
    return found


@settings(
    max_examples=tries(400), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much]
)
@given(data=st.data())
def test_what_moves_an_answer_is_never_named(rlsize: Run, folder: Path, data: st.DataObject) -> None:
    """Where a key is named, another value of it leaves all that is told as it is, or is none that can be said."""
    command = data.draw(st.sampled_from(COMMANDS))
    file = str(folder / f"{data.draw(st.sampled_from([*LOOPS]))}.yaml")
    row = data.draw(st.sampled_from(CHANGED))
    one, other = data.draw(values(row)), data.draw(values(row))
    ran = rlsize(*command.split(), file, "--set", f"{row.scenario}={one}", "--json")
    if ran.code == 2 or row.scenario not in named(ran):
        return
    again = rlsize(*command.split(), file, "--set", f"{row.scenario}={other}", "--json")
    assert again.code == 2 or answer(again) == answer(ran)


def test_what_is_typed_and_moves_nothing_is_named(rlsize: Run, folder: Path) -> None:
    """Settings of one phase where another is told, and what only other loops have; what moves a figure is not."""
    file = str(folder / "async.yaml")
    changes = ("trainer.optimizer=adam-8bit", "agents.tool_seconds=5", "rollout.tensor_parallel=2")
    sets = [word for change in changes for word in ("--set", change)]
    assert named(rlsize("predict", "sync", file, *sets, "--json")) == ["trainer.optimizer", "agents.tool_seconds"]
    assert named(rlsize("cost", file, *sets, "--json")) == ["agents.tool_seconds"]
    told = rlsize("predict", "step", file, "--set", "agents.tool_seconds=5").stdout
    assert "No figure here depends on: agents.tool_seconds" in " ".join(told.split())


def test_a_plain_no_names_nothing(rlsize: Run) -> None:
    """Where no plan is possible there is no figure that anything could move, and no second look for one."""
    told = rlsize("plan", "--model", "qwen3-32b", "--gpu", "h100-sxm", "--gpus", "1", "--prompts", "8", "--group", "8",
                  "--prompt-tokens", "300", "--response-tokens", "1000", "--objective", "gpus")  # fmt: skip
    assert told.code == 1
    assert "No plan is possible" in told.stdout
    assert "No figure here depends on" not in told.stdout


def test_a_flag_is_named_as_it_was_typed(rlsize: Run, folder: Path) -> None:
    """By the name that this command has for it; what stands in the file is not typed."""
    ran = rlsize("predict", "sync", str(folder / "async.yaml"), "--mode", "async", "--json")
    assert all(name.startswith("--") for name in named(ran))


def test_a_check_names_what_moves_nothing_and_leaves_one_verdict(rlsize: Run, folder: Path, tmp_path: Path) -> None:
    """Its scenario and changes are read again, and no verdict leaves for CI, and no plan is saved, but the one."""
    budget, junit, plan = (tmp_path / name for name in ("budget.yaml", "checked.xml", "plan.yaml"))
    budget.write_text("rlsize: {kind: budget, version: 1}\nstep_seconds: {max: 500}\n", "utf-8")
    sets = ("--set", "agents.tool_seconds=5", "--set", "workload.prompts_per_step=65")
    told = ("--junit", str(junit), "--github", "--save", str(plan))
    ran = rlsize("check", str(folder / "async.yaml"), *sets, "--budget", str(budget), *told, "--json")
    assert named(ran) == ["agents.tool_seconds"]
    assert ran.stderr.count("GITHUB_STEP_SUMMARY") == 1
    assert "step_seconds" in junit.read_text("utf-8")
    assert "prompts_per_step: 65" in plan.read_text("utf-8")


@pytest.mark.long
def test_asking_again_writes_nothing(rlsize: Run, folder: Path, tmp_path: Path) -> None:
    """What `--save` names is written once, as was said."""
    plan = tmp_path / "plan.yaml"
    ran = rlsize("plan", str(folder / "async.yaml"), "--save", str(plan), "--set", "agents.tool_seconds=5", "--json")
    assert ran.stderr.count(f"wrote {plan}") == 1
    assert "tool_seconds: 5" in plan.read_text("utf-8")
