"""The optimizers and recomputation policies against the numbers that their sources print."""

from __future__ import annotations

import pytest

from rlsize.equations.activations import activation_bytes_per_layer
from rlsize.equations.memory import training_bytes_per_param
from rlsize.facts.algorithm import BYTES_PER_GRADIENT, OPTIMIZERS, RECOMPUTATIONS


@pytest.mark.parametrize(
    ("optimizer", "gradients", "expected"),
    [
        ("adamw", "bf16", 16),
        ("adamw", "fp32", 18),
        ("adam-8bit", "bf16", 10),
        ("adamw-bf16-states", "bf16", 12),
        ("sgd-momentum", "bf16", 12),
        ("muon", "fp32", 14),
    ],
)
def test_bytes_per_parameter(optimizer: str, gradients: str, expected: float) -> None:
    """A bf16 weight, its gradient, the fp32 copy and the optimizer's state add up to the field's rule of thumb."""
    entry = OPTIMIZERS[optimizer]
    found = training_bytes_per_param(
        2, BYTES_PER_GRADIENT[gradients], entry.bytes_per_master, entry.bytes_per_optimizer_state
    )
    assert found == expected


@pytest.mark.parametrize(("policy", "sharded", "sbh"), [("none", 12, 34), ("selective", 12, 34), ("full", 0, 2)])
def test_bytes_per_layer(policy: str, sharded: float, sbh: float) -> None:
    """With bf16 and no parallelism a GELU layer keeps 34 s b h bytes, or 2 s b h where everything is recomputed."""
    found = activation_bytes_per_layer(4096, 1024, 2, RECOMPUTATIONS[policy].replicated_copies, 1, sharded, 1)
    assert found == sbh * 4096 * 1024


def test_only_full_recomputation_runs_a_layer_again() -> None:
    """With flash attention none and selective keep the same, and both say why."""
    assert {name for name, entry in RECOMPUTATIONS.items() if entry.recomputed} == {"full"}
    none, selective = RECOMPUTATIONS["none"], RECOMPUTATIONS["selective"]
    assert none.replicated_copies == selective.replicated_copies
    assert none.note == selective.note
    assert "flash attention" in none.note


def test_every_entry_has_a_source() -> None:
    """An entry is found under its own name and says where its numbers are from."""
    for table in (OPTIMIZERS, RECOMPUTATIONS):
        assert all(entry.name == name and entry.source for name, entry in table.items())
