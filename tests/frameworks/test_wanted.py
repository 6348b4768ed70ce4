"""Quantities that are wanted lead to keys: plainly, through `writes`, or through sums; what cannot be had is named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.facts.framework import Framework
from rlsize.facts.launch import Setting, Span
from rlsize.frameworks.demands import unmet
from rlsize.frameworks.told import Reading
from rlsize.frameworks.wanted import changes, values

SPAN = Span("train.sh", 1)
QUANTITIES = {
    "group_size": "first(old.n, n)",
    "backend": "'megatron' if strategy == 'megatron' else 'fsdp'",
    "tensor_parallel": "megatron.tp if loop.backend == 'megatron' else 1",
    "recompute": "'full' if checkpointing else 'none'",
    "micro_batch_tokens": "max_tokens if dynamic else None",
    "trainer_gpus": "nodes * per_node",
    "gpus": "loop.trainer_gpus",
    "updates": "max(1, prompts // mini)",
    "prompts_per_step": "prompts",
    "reference": "kl_loss or kl_reward",
    "mode": "'async' if matches(launcher.program, 'async') else 'colocated'",
}
DEFAULTS = {
    "n": 1, "strategy": "fsdp", "megatron.tp": 1, "checkpointing": True, "dynamic": False, "max_tokens": 8192,
    "nodes": 1, "per_node": 8, "prompts": 64, "mini": 64,
}  # fmt: skip
WRITES = {"mini": "loop.prompts_per_step // loop.updates"}
IT = Framework(name="it", title="It", source="here", defaults=DEFAULTS, quantities=QUANTITIES, writes=WRITES)


def launch(**said: Any) -> Reading:
    """A launch that sets some keys; two underscores stand for a dot."""
    return Reading(IT, [Setting(key.replace("__", "."), value, SPAN) for key, value in said.items()])


@pytest.mark.parametrize(
    ("said", "wanted", "keys"),
    [
        ({}, {"group_size": 8}, {"n": 8}),
        ({"old__n": 4}, {"group_size": 8}, {"old.n": 8}),
        ({"n": 8}, {"group_size": 8}, {}),
        ({}, {"recompute": "none"}, {"checkpointing": False}),
        ({}, {"tensor_parallel": 4}, {"strategy": "megatron", "megatron.tp": 4}),
        ({}, {"tensor_parallel": 1}, {}),
        ({}, {"micro_batch_tokens": 4096}, {"dynamic": True, "max_tokens": 4096}),
        ({"dynamic": True}, {"micro_batch_tokens": None}, {"dynamic": False}),
        ({}, {"gpus": 32}, {"nodes": 4}),
        ({}, {"updates": 4}, {"mini": 16}),
        ({}, {"prompts_per_step": 128, "updates": 2}, {"prompts": 128}),
        ({}, {"reference": True}, {"kl_loss": True}),
        ({"kl_loss": True, "kl_reward": True}, {"reference": False}, {"kl_loss": False, "kl_reward": False}),
    ],
)
def test_only_keys_whose_values_change_are_named(
    said: dict[str, Any], wanted: dict[str, Any], keys: dict[str, Any]
) -> None:
    """And they lead to what is wanted."""
    found = changes(launch(**said), wanted)
    assert (dict(found.keys), found.refused) == (keys, ())


def test_what_follows_is_named_with_before_and_after() -> None:
    """A quantity that nobody asked for and that changes with one that somebody did."""
    assert changes(launch(), {"gpus": 32}).follows == {"trainer_gpus": (8, 32)}


def test_what_cannot_be_had_is_refused_by_name() -> None:
    """A program decides; a product has no such whole part; a quantity is not known."""
    found = changes(launch(), {"mode": "async", "gpus": 12, "lora_rank": 8, "offload": False})
    assert [fault.where for fault in found.refused] == ["mode", "gpus", "lora_rank"]
    assert "mode = async: its keys say colocated" in found.refused[0].what


def test_what_stands_around_the_program_follows_only_where_it_was_in_step() -> None:
    """Nodes of a batch system, devices of the program; what said something else is named."""
    one = Framework(name="it", title="It", source="here", defaults=DEFAULTS, quantities={"nodes": "nodes"})
    around = {"nodes": 2, "batch.nodes": 2, "launcher.nnodes": 3}
    found = changes(Reading(one, [Setting(key, value, SPAN) for key, value in around.items()]), {"nodes": 4})
    assert found.keys == {"nodes": 4, "batch.nodes": 4}
    assert len(found.notes) == 1
    assert "launcher.nnodes is 3" in found.notes[0]


def test_headers_that_ask_for_too_few_nodes_are_named() -> None:
    """Nodes that only the headers say, once more GPUs are used than they hold."""
    quantities = {"nodes": "batch.nodes", "gpus_per_node": "8", "gpus": "engines * 2"}
    one = Framework(name="it", title="It", source="here", defaults=DEFAULTS, quantities=quantities)
    there = Reading(one, [Setting(key, value, SPAN) for key, value in {"batch.nodes": 4, "engines": 8}.items()])
    assert not changes(there, {"gpus": 32}).notes
    assert "nodes of 32 GPUs" in changes(there, {"gpus": 40}).notes[0]


@given(
    wanted=st.fixed_dictionaries(
        {},
        optional={
            "group_size": st.integers(1, 64),
            "tensor_parallel": st.sampled_from([1, 2, 8]),
            "recompute": st.sampled_from(["none", "full"]),
            "micro_batch_tokens": st.one_of(st.none(), st.integers(1, 10**6)),
            "gpus": st.integers(1, 64),
            "reference": st.booleans(),
        },
    )
)
def test_changes_lead_to_what_is_wanted_or_are_refused(wanted: dict[str, Any]) -> None:
    """Whatever is wanted of a launch."""
    found = changes(launch(), wanted)
    told = values(launch().changed(found.keys))
    refused = {fault.where for fault in found.refused}
    for name, value in wanted.items():
        assert name in refused or (told.get(name) or None) == (value or None)
    assert refused <= ({"gpus"} if wanted.get("gpus", 8) % 8 else set())


def test_a_demand_that_does_not_hold_names_what_would() -> None:
    """Multiples of what divides, divisors of what is divided, and limits; what nobody knows is passed by."""
    demands = {
        "loop.gpus <= loop.node or loop.gpus % loop.node == 0": "{gpus} do not fill {node}",
        "min(loop.node, 6) % loop.size == 0": "{size}",
        "loop.every == 1": "{every}",
        "loop.unknown == 1": "never",
    }
    found = [*unmet(demands, {"gpus": 12, "node": 8, "size": 4, "every": 2})]
    assert [(one.what, one.quantity, one.nearest) for one in found] == [
        ("12 do not fill 8", "gpus", (8, 16)),
        ("4", "size", (2, 3)),
        ("2", "every", (1,)),
    ]
