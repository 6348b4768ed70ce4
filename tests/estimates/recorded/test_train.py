"""Predictions of published training throughput: how far off they are, how rows relate, what is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from rlsize.errors import Refused
from rlsize.estimates.belief import conditioned, prior
from rlsize.estimates.constants_train import STAGE
from rlsize.estimates.recorded.registry import Profiles
from rlsize.estimates.recorded.train import STAGES, family, graded, noise, predict, relation
from rlsize.facts.records import TrainRecord
from rlsize.readers.profiles import Catalogue
from rlsize.readers.records import train
from rlsize.readers.records.listing import profiles_of, published_files, read_records

CATALOGUE = Catalogue()
FILES = [path for path in published_files() if path.stem == "train"]
pytestmark = pytest.mark.skipif(not FILES, reason="only the package is installed, without its records")


def published() -> list[tuple[TrainRecord, Profiles]]:
    """The published records with their profiles."""
    listing = read_records(FILES, CATALOGUE, {train.CLASS: train})
    assert listing.refused == ()
    records = [entry.record for entry in listing.records if isinstance(entry.record, TrainRecord)]
    return [(record, profiles_of(CATALOGUE)(record)) for record in records]


def test_published_throughput_is_met() -> None:
    """All rows are predicted; half of them to 5 %, nine of ten to 20 %, and without a bias."""
    values = prior(*STAGES).central()
    errors = []
    for record, profiles in published():
        key = graded(record)
        errors.append(predict(record, profiles, values)[key] / record.measured[key] - 1)
    assert len(errors) == 234
    assert np.median(np.abs(errors)) < 0.05
    assert np.quantile(np.abs(errors), 0.9) < 0.2
    assert abs(np.median(errors)) < 0.02


def test_one_row_tells_of_the_same_setup_on_other_gpu_counts() -> None:
    """A calibrated belief is nearer to the other counts than the prior is."""
    rows = {record.id: (record, profiles) for record, profiles in published()}
    (other, profiles), (one, _) = rows["llm_foundry-010"], rows["llm_foundry-012"]
    key = graded(one)
    belief = conditioned(
        prior(STAGE), lambda values: [predict(one, profiles, values)[key]], [one.measured[key]], [noise(one)]
    )
    assert predict(other, profiles, belief.central())[key] == pytest.approx(other.measured[key], rel=0.05)
    assert relation(one, other) == "other GPU count"
    assert family(one) == family(other)


def test_rows_of_a_family_differ_in_ways_that_have_names() -> None:
    """Each way of differing is there among the published rows."""
    rows = [record for record, _ in published()]
    found = Counter(relation(one, other) for one in rows for other in rows if family(one) == family(other))
    assert set(found) == {
        "same layout", "other length", "other GPU count", "other layout", "other number type",
        "other recomputation or kernels",
    }  # fmt: skip


def test_only_mfu_is_predicted_where_only_mfu_is_measured() -> None:
    """Publications define MFU in several ways, so rates go first."""
    record, profiles = published()[0]
    values = prior(STAGE).central()
    assert set(predict(record, profiles, values)) == {"tokens_per_s_per_gpu"}
    share = replace(record, measured={"mfu_pct": 41.0, "model_tflops_per_gpu": 408.0})
    assert graded(share) == "mfu_pct"
    found = predict(share, profiles, values)
    assert found["model_tflops_per_gpu"] == pytest.approx(found["mfu_pct"] * 9.89)
    timed = replace(record, measured={"step_time_s": 16.0, "tokens_per_s": 5e5})
    answer = predict(timed, profiles, values)
    assert answer["step_time_s"] * answer["tokens_per_s"] == pytest.approx(record.sequences * record.tokens)


def test_fp8_on_an_a100_is_refused() -> None:
    """With the names of both."""
    record, profiles = published()[0]
    older = replace(profiles, gpu=CATALOGUE.get("gpu", "a100-80-sxm"))
    with pytest.raises(Refused, match="a100-80-sxm has no fp8"):
        predict(replace(record, dtype="fp8"), older, prior(STAGE).central())
