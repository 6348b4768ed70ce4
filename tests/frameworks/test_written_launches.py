"""What a framework writes for a loop, it reads as that loop again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.facts.launch import Setting, Span
from rlsize.frameworks.expressions import Plain, evaluate
from rlsize.frameworks.told import Reading
from rlsize.readers.frameworks import frameworks
from rlsize.readers.profiles import Catalogue

if TYPE_CHECKING:
    from rlsize.facts.framework import Framework

KNOWN = frameworks(Catalogue())
NODE = 8
NO_KEY: dict[str, set[str]] = {
    "nemo-rl": {"max_num_seqs"},
    "slime": set(),
    "skyrl": {"max_total_tokens"},
    "areal": {"micro_batch_samples", "reference", "max_total_tokens"},
    "prime-rl": {
        "micro_batch_tokens", "micro_batch_samples", "mini_batches", "max_prompt_tokens", "reference", "recompute",
    },
    "roll": {"offload", "reference"},
    "pipeline-rl": {"max_total_tokens", "mini_batches", "max_prompt_tokens", "offload", "reference"},
    "torchforge": {"micro_batch_samples", "mini_batches", "reference", "lora_rank"},
}  # fmt: skip
"""Quantities that a framework has no key for, or that follow from others there."""
ONE_NODE_OR_WHOLE = {"nemo-rl", "prime-rl"}


def powers(most: int) -> st.SearchStrategy[int]:
    """1, 2, 4 and so on."""
    return st.integers(0, most).map(lambda exponent: 2**exponent)


@st.composite
def loops(draw: st.DrawFn, framework: Framework) -> dict[str, Any]:
    """A loop that a framework can run."""
    assert framework.runs is not None
    backend = draw(st.sampled_from(sorted(framework.runs.layouts)))
    kinds = framework.runs.layouts[backend]
    degrees = {kind: draw(powers(2)) if kind in kinds else 1 for kind in ("tensor", "pipeline", "context")}
    data = draw(powers(3))
    trainer = data * degrees["tensor"] * degrees["pipeline"] * degrees["context"]
    mode = draw(st.sampled_from(sorted(framework.runs.modes)))
    engine = draw(powers(min(3, trainer.bit_length() - 1)))
    rollout = trainer if mode == "colocated" else engine * draw(powers(3))
    if framework.name in ONE_NODE_OR_WHOLE and mode != "colocated" and trainer + rollout > NODE:
        trainer, data, rollout = trainer * NODE, data * NODE, rollout * NODE
    mini, samples, tokens = draw(powers(2)), draw(powers(2)), draw(st.sampled_from([None, 8192, 16384]))
    if "micro_batch_tokens" not in framework.quantities:
        tokens = None
    prompts, group = mini * samples * data * draw(powers(2)), 8
    return {
        "mode": mode, "max_staleness": staleness(framework, mode, draw(st.integers(1, 4))),
        "trainer_gpus": trainer, "rollout_gpus": rollout,
        "gpus": trainer if mode == "colocated" else trainer + rollout,
        "prompts_per_step": prompts, "group_size": group, "samples_per_step": prompts * group, "mini_batches": mini,
        "engine": draw(st.sampled_from(framework.runs.engines)), "rollout_tensor_parallel": engine,
        "instances": rollout // engine, "memory_fraction": draw(st.sampled_from([0.5, 0.85])),
        "max_num_seqs": draw(st.sampled_from([64, 512])), "max_model_len": draw(st.sampled_from([8192, 40960])),
        "max_prompt_tokens": 1024, "max_response_tokens": draw(st.sampled_from([2048, 30000])),
        "max_total_tokens": draw(st.sampled_from([8192, 32768])),
        "trainer_backend": backend, "tensor_parallel": degrees["tensor"], "pipeline_parallel": degrees["pipeline"],
        "context_parallel": degrees["context"], "expert_parallel": draw(st.sampled_from([1, data])) if "expert" in kinds
        else 1,
        "micro_batch_tokens": tokens, "micro_batch_samples": None if tokens else samples,
        "recompute": draw(st.sampled_from(["none", "full"])),
        "offload": draw(st.booleans()) and (framework.name, backend) != ("areal", "megatron"),
        "reference": draw(st.booleans()), "lora_rank": draw(st.sampled_from([0, 32])), "model": "Qwen/Qwen3-8B",
    }  # fmt: skip


def staleness(framework: Framework, mode: str, drawn: int) -> int | None:
    """Steps that a sample may lie: free where the framework bounds them, one for a step ahead, none in turn."""
    if mode in {"colocated", "sync"}:
        return 0
    return 1 if mode == "one-step-off" else None if framework.name == "slime" else drawn


def written(framework: Framework, loop: dict[str, Any]) -> Reading:
    """The keys of a loop, read again: those that a quantity is plainly, and those that the profile writes."""
    keys = {
        text: loop[name]
        for name, text in framework.quantities.items()
        if name in loop and re.fullmatch(r"[a-z]\w*(\.\w+)*", text) and not text.startswith("loop.")
    }
    asked = Plain({f"loop.{name}": value for name, value in {**loop, "gpus_per_node": NODE}.items()}.get)
    keys |= {key: evaluate(text, asked) for key, text in framework.writes.items()}
    if framework.name == "pipeline-rl":  # it takes the GPUs that the job has
        keys |= {"cluster.nodes": 1, "cluster.gpus_per_node": loop["gpus"]}
    settings = [Setting(key, value, Span("x", 1)) for key, value in keys.items() if value is not None]
    return Reading(framework, settings)


@pytest.mark.parametrize("name", sorted(NO_KEY))
@given(data=st.data())
def test_what_is_written_reads_as_it_was_meant(name: str, data: st.DataObject) -> None:
    """Every quantity that a framework has a key for comes back, in every mode and layout that it runs."""
    framework = KNOWN[name]
    loop = data.draw(loops(framework))
    told = written(framework, loop).all()
    for key, value in loop.items():
        if key in NO_KEY[name] or key not in framework.quantities:
            continue
        found = told[key].value if key in told else None
        assert found == value or (not found and not value and key != "mode"), (key, found, value)
