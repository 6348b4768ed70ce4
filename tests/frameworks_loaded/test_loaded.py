"""Written configurations are taken by frameworks' own code, which holds each key to be what was written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pytest
import yaml
from tests.effort import NIGHTLY
from tests.frameworks_loaded.install import NEWEST, RELEASES

from rlsize.facts.framework import Framework
from rlsize.frameworks.told import normal
from rlsize.readers.frameworks import frameworks
from rlsize.readers.profiles import Catalogue

Run = Callable[..., Any]
Launched = Callable[[str], list[list[str]]]
Loaded = Callable[..., list[dict[str, Any]]]

SCENARIO: dict[str, Any] = {
    "rlsize": {"kind": "scenario", "version": 1},
    "model": "qwen3-8b",
    "cluster": {"gpu": "h100-sxm", "gpus": 16},
    "algorithm": {"reference": False},
    "workload": {
        "prompts_per_step": 64, "group_size": 8, "prompt_tokens": 512,
        "response_tokens": {"mean": 2000, "cv": 0.8, "max": 8192},
    },
    "placement": {"max_staleness": 2, "rollout_gpus": 8, "trainer_gpus": 8},
    "rollout": {"engine": "vllm", "tensor_parallel": 1, "memory_fraction": 0.7},
    "trainer": {},
}  # fmt: skip
PLANS: dict[str, dict[str, Any]] = {
    "plain": {},
    "one node": {"cluster.gpus": 8, "placement.rollout_gpus": 4, "placement.trainer_gpus": 4},
    "one engine": {
        "cluster.gpus": 8,
        "placement.rollout_gpus": 4,
        "placement.trainer_gpus": 4,
        "rollout.tensor_parallel": 4,
    },
    "tensor": {"rollout.tensor_parallel": 2, "trainer.parallelism": {"tensor": 2}},
    "layout": {"trainer.parallelism": {"tensor": 2, "pipeline": 2, "context": 2}},
    "context": {"trainer.parallelism": {"context": 2}},
    "batch": {"workload.mini_batches": 4, "algorithm.reference": True, "placement.max_staleness": 1},
    "engine": {"rollout.max_num_seqs": 128, "rollout.engine": "sglang", "rollout.memory_fraction": 0.55},
    "micro": {"trainer.micro_batch_tokens": 16384, "trainer.recompute": "full", "rollout.max_num_seqs": 64},
}
"""What differs, by place."""
MODES = {"colocated": "colocated", "sync": "synchronous", "one-step-off": "one-step-off", "async": "async"}
"""As scenarios have them, and as variants."""
REQUIRED: dict[str, tuple[str, ...]] = {
    "verl": (),
    "openrlhf": ("--reward.remote_url", "rewards.py"),
    "trl": ("--dataset_name", "data", "--output_dir", "out"),
    "areal": ("+experiment_name=e", "+trial_name=t", "+train_dataset.path=data", "+train_dataset.type=rl"),
    "skyrl": ("trainer.logger=console",),
}
"""What each asks for that no plan knows."""
UNKNOWN: dict[str, str] = {
    "verl": "actor_rollout_ref.actor.no_such_key=1",
    "openrlhf": "--no.such_key=1",
    "trl": "--no_such_key=1",
    "areal": "actor.no_such_key=1",
    "skyrl": "trainer.no_such_key=1",
}
"""A key that none has."""
SERVER = "vllm-serve"
"""A program of TRL that has classes of its own; vLLM's server has none that load without an engine."""
WRITTEN: dict[str, dict[str, str]] = {}
"""Snippets, by framework: two releases are given the same."""
CASES = [
    pytest.param(name, release, marks=pytest.mark.xdist_group(name))  # its snippets are made once
    for name in REQUIRED
    for release in (RELEASES[name], *((NEWEST,) if NIGHTLY else ()))
]


@cache
def known() -> dict[str, Framework]:
    """The frameworks that ship."""
    return frameworks(Catalogue())


def scenario(mode: str, plan: Mapping[str, Any]) -> str:
    """A scenario of a mode and a plan."""
    made: dict[str, Any] = {key: dict(value) if isinstance(value, dict) else value for key, value in SCENARIO.items()}
    made["placement"] = {"mode": mode, **made["placement"]}
    for place, value in plan.items():
        section, key = place.split(".")
        made[section][key] = value
    return yaml.safe_dump(made, sort_keys=False)


def snippets(rlsize: Run, folder: Any, framework: Framework) -> dict[str, str]:
    """
    The snippets of plans that a framework runs, by trainer, mode and plan; they are made once.

    By night each plan in each mode; by day the plain one in each, and the others in two each.
    """
    found = WRITTEN.setdefault(framework.name, {})
    if found:
        return found
    path = folder / "scenario.yaml"
    for turn, (plan, changes) in enumerate(PLANS.items()):
        for place, (mode, named) in enumerate(MODES.items()):
            if not NIGHTLY and plan != "plain" and (turn + place) % 2 == 0:
                continue
            path.write_text(scenario(mode, changes), encoding="utf-8")
            for way in sorted(framework.variants):
                variant = framework.variants[way]
                if named in variant.modes:
                    ran = rlsize("snippet", str(path), "-f", framework.name, "--variant", way)
                    assert ran.code in {0, 1}, ran.stderr
                    if ran.code == 0:
                        found[f"{way}, {mode}, {plan}"] = ran.stdout
    return found


def cases_of(name: str, text: str, form: str, launched: Launched) -> list[dict[str, Any]]:
    """What is to be loaded of a configuration."""
    if form == "yaml":
        return [{"name": name, "text": text, "words": list(REQUIRED[name])}]
    found = []
    for words in launched(text):
        if words[0] == "vllm":
            continue
        program, given = _program(words)
        required = () if program == SERVER else REQUIRED[name]
        processes = re.search(r"--num_processes (\d+)", " ".join(words))
        world = processes[1] if processes else "1"
        found.append({"name": name, "program": program, "words": [*given, *required], "text": world})
    return found


def _program(words: list[str]) -> tuple[str, list[str]]:
    """The program that a launcher runs, and the words that are its own."""
    if words[1] == SERVER:
        return words[1], words[2:]
    if words[0].startswith("python") and words[1] == "-m":
        return words[2], words[3:]
    script = next(place for place, word in enumerate(words) if word.endswith(".py"))
    return words[script], words[script + 1 :]


def given(case: Mapping[str, Any]) -> dict[str, Any]:
    """Keys as they were written, with their values."""
    found: dict[str, Any] = {}
    words = list(case["words"])
    while words:
        word = words.pop(0)
        if word.startswith("--"):
            found[normal(word[2:])] = words.pop(0) if words and not words[0].startswith("--") else "true"
        else:
            key, _, value = word.partition("=")
            found[normal(key.lstrip("+"))] = value
    if "\n" in case["text"]:
        found |= _leaves(yaml.safe_load(case["text"]))
    return found


def _leaves(tree: Any, key: str = "") -> dict[str, Any]:
    if not isinstance(tree, dict):
        return {key: tree}
    return {
        one: value for name, inner in tree.items() for one, value in _leaves(inner, f"{key}.{name}".lstrip(".")).items()
    }


def differing(case: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Keys that are held to be something else than was written."""
    held = {normal(key): value for key, value in values.items()}
    return {
        key: (value, held.get(key))
        for key, value in given(case).items()
        if key not in {"model_engine", "reward.remote_url"} and _plain(value) != _plain(held.get(key))
    }


def _plain(value: Any) -> Any:
    return yaml.safe_load(str(value).lower())


@pytest.mark.parametrize(("name", "release"), CASES)
def test_snippets_load(name: str, release: str, rlsize: Run, tmp_path: Any, launched: Launched, loaded: Loaded) -> None:
    """Of each trainer, several plans; no key is unknown, none has another value, and the framework's checks pass."""
    framework = known()[name]
    texts = snippets(rlsize, tmp_path, framework)
    assert {text.partition(",")[0] for text in texts} == set(framework.variants)
    cases = {
        what: cases_of(name, text, framework.variants[what.partition(",")[0]].form, launched)
        for what, text in texts.items()
    }
    flat = [(what, case) for what, some in cases.items() for case in some]
    wrong: dict[str, Any] = {}
    for (what, case), result in zip(flat, loaded(name, release, [case for _, case in flat]), strict=True):
        found = result.get("error") or differing(case, result["values"])
        if found:
            wrong[what] = found
    assert not wrong, "\n".join(f"{what}: {found}" for what, found in wrong.items())


@pytest.mark.parametrize(("name", "release"), CASES)
def test_a_key_that_is_unknown_is_found(
    name: str, release: str, rlsize: Run, tmp_path: Any, launched: Launched, loaded: Loaded
) -> None:
    """By the framework, or as it holds no such key."""
    framework = known()[name]
    what, text = next(iter(snippets(rlsize, tmp_path, framework).items()))
    (case, *_) = cases_of(name, text, framework.variants[what.partition(",")[0]].form, launched)
    case["words"] = [*case["words"], UNKNOWN[name]]
    (result,) = loaded(name, release, [case])
    assert result.get("error") or differing(case, result["values"])
