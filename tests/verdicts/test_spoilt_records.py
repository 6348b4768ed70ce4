"""Published records with fields left out, mixed up or replaced: each is predicted, or refused for a reason."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.effort import tries

from rlsize.estimates.recorded.registry import predictors
from rlsize.readers.profiles import Catalogue
from rlsize.readers.records.listing import _rows, classes, listed, profiles_of, published_files
from rlsize.verdicts.predictions import predictions

ROWS = tries(300)
ODD: tuple[Any, ...] = (
    "", "unset", "TP2", "TP16 PP2", "TP8 DP8 EP64", None, True, 0, -1, 7, 3.5, 1e9, float("nan"), "x" * 50, [], {},
    "B200", "A100-80GB", "MI300X", "H100 PCIe 80GB", "Qwen/Qwen2.5-7B", "deepseek-ai/DeepSeek-V3", "fp8", "FP4",
    "int4", "vllm 0.11", "lmdeploy",
)  # fmt: skip


def spoilt(rows: list[dict[str, Any]], number: random.Random) -> dict[str, Any]:
    """A row of which one to three fields are gone, odd, or another row's."""
    row = dict(number.choice(rows))
    for _ in range(number.randint(1, 3)):
        key = number.choice(sorted(row))
        way = number.random()
        if way < 0.3:
            row.pop(key)
        elif way < 0.65:
            row[key] = number.choice(ODD)
        else:
            row |= {name: value for name, value in number.choice(rows).items() if name == key}
        if not row:
            break
    return row


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("seed", range(3))
def test_a_spoilt_record_is_predicted_or_refused(checkout: Any, silent: Any, seed: int) -> None:
    """No class stumbles over one: where a field is missing or senseless, the reason says so."""
    files = published_files()
    assert all(checkout in file.parents for file in files)
    if not files:
        pytest.skip("needs the published records of the checkout")
    rows = [row for file in files for _, row in _rows(file)]
    number = random.Random(seed)
    made = [(f"row {place}", {**spoilt(rows, number), "id": str(place)}) for place in range(ROWS)]
    catalogue = Catalogue()
    listing = listed(made, catalogue, classes())
    found = predictions(listing.records, predictors(), profiles_of(catalogue), 0, silent)
    refused = [*listing.refused, *found.refused]
    assert len(found.records) + len(refused) == ROWS
    assert len(found.records) > ROWS / 3
    stumbled = [row for row in refused if row.reason.startswith(("cannot be read", "cannot be predicted"))]
    assert not [(row.reason, made[row.place][1]) for row in stumbled]
    assert all(field.predicted > 0 for record in found.records for field in record.fields)
