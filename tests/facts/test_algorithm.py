"""The optimizers and recomputation policies against the numbers that their sources print."""

from __future__ import annotations

import pytest

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


def test_flash_attention_keeps_no_scores() -> None:
    """What selective recomputation once was for is never stored, and both policies say so."""
    assert all("flash attention" in RECOMPUTATIONS[name].note for name in ("none", "selective"))


def test_every_entry_has_a_source() -> None:
    """An entry is found under its own name and says where its numbers are from."""
    for table in (OPTIMIZERS, RECOMPUTATIONS):
        assert all(entry.name == name and entry.source for name, entry in table.items())
