"""A belief survives its file, and widens for what was not measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import tries

from rlsize.errors import InputError
from rlsize.estimates.all_constants import all_constants, all_stages
from rlsize.estimates.belief import Belief, conditioned, prior
from rlsize.estimates.calibration_belief import believed, differences, kept, objection, widened
from rlsize.facts.calibration import CalibratedConstant, Calibration, CalibrationSetting
from rlsize.readers.saved_files import read_calibration
from rlsize.readers.yaml_documents import parse_document
from rlsize.writers.yaml_file import plain, yaml_text

STAGES = tuple(all_stages()[name] for name in sorted(all_stages()))
NAMES = sorted(name for name, one in all_constants().items() if one.spread > 0)


def calibration(before: Belief, after: Belief, *made_for: CalibrationSetting) -> Calibration:
    """A calibration of invented measurements."""
    constants, directions = kept(before, after)
    return Calibration(
        made_by="0", sources=["test"], made_for=list(made_for), constants=constants, directions=directions
    )


def measured(*rows: tuple[dict[str, float], float]) -> tuple[Belief, Belief]:
    """Beliefs before and after measuring products of powers of constants, each some factor off."""
    before = prior(*STAGES)
    central = before.central()

    def predict(values: Mapping[str, Any]) -> list[Any]:
        return [
            math.prod((values[name] / central[name]) ** power for name, power in powers.items()) for powers, _ in rows
        ]

    return before, conditioned(before, predict, [factor for _, factor in rows], [0.05] * len(rows))


power = st.floats(0.1, 2.0) | st.floats(-2.0, -0.1)
powers = st.dictionaries(st.sampled_from(NAMES), power, min_size=1, max_size=4)
rows = st.lists(st.tuples(powers, st.floats(0.5, 2.0)), min_size=1, max_size=4)


@given(rows)
@settings(max_examples=tries(20))
def test_a_belief_survives_its_file(found: list[tuple[dict[str, float], float]]) -> None:
    """Written and read, mean and covariance are what they were, to the last digits."""
    before, after = measured(*found)
    text = yaml_text("calibration", plain(calibration(before, after)))
    again = believed(read_calibration(parse_document(text, "c.yaml")), *STAGES)
    assert again.names == after.names
    assert again.mean == pytest.approx(after.mean, abs=1e-9)
    assert again.covariance == pytest.approx(after.covariance, abs=1e-7)


def test_a_stage_takes_its_own_constants_from_a_calibration() -> None:
    """The marginal: what it says of other stages is left out."""
    before, after = measured(({"rollout_stack_slowdown": 1.0, "rl_train_slowdown": 1.0}, 1.5))
    whole = calibration(before, after)
    alone = believed(whole, all_stages()["train"])
    place = after.names.index("rl_train_slowdown")
    assert alone.central()["rl_train_slowdown"] == pytest.approx(float(np.exp(after.mean[place])))
    assert alone.spread("rl_train_slowdown") == pytest.approx(after.spread("rl_train_slowdown"))
    assert "rollout_stack_slowdown" not in alone.names


def test_nothing_measured_is_the_prior() -> None:
    """An empty calibration changes nothing."""
    before = prior(*STAGES)
    empty = calibration(before, before)
    assert not empty.constants
    assert not empty.directions
    assert believed(empty, *STAGES).covariance == pytest.approx(before.covariance)


@pytest.fixture
def sample() -> Calibration:
    """A calibration of the rollout's software."""
    setting = CalibrationSetting(model="qwen3-8b", gpu="h100-sxm", engine="vllm", rollout_layout="TP1 PP1 DP1")
    return calibration(*measured(({"rollout_moe_stack_slowdown": 1.0}, 1.2)), setting)


def test_other_constants_are_refused(sample: Calibration, tmp_path: Path) -> None:
    """A calibration holds for the constants that it was made with; what is unknown, changed or spoilt is told."""
    known = all_constants()
    assert objection(sample, known) == ""
    (one,) = sample.constants
    assert "now it is" in objection(replace(sample, constants=[replace(one, prior=2.0)]), known)
    strange = CalibratedConstant(name="nothing", prior=1.0, factor=1.0, spread_before=0.1, spread=0.1)
    assert "nothing" in objection(replace(sample, constants=[one, strange]), known)
    assert "list it" in objection(replace(sample, constants=[]), known)
    spoilt = replace(sample, directions=[replace(sample.directions[0], weights={one.name: 0.5})])
    assert "by hand" in objection(spoilt, known)
    path = tmp_path / "spoilt.yaml"
    path.write_text(yaml_text("calibration", plain(spoilt)), encoding="utf-8")
    with pytest.raises(InputError, match="run `rlsize calibrate` again"):
        read_calibration(str(path))


def test_what_was_not_measured_is_wider(sample: Calibration) -> None:
    """Half of the variance of software comes back for another layout, all of it for another model."""
    rollout = all_stages()["rollout"]
    name = "rollout_moe_stack_slowdown"
    same = believed(sample, rollout)
    layout = widened(same, [rollout], ["rollout_layout"])
    model = widened(same, [rollout], ["model"])
    full = all_constants()[name].spread
    assert same.spread(name) < layout.spread(name) < model.spread(name)
    assert model.spread(name) == pytest.approx(full)
    assert layout.spread(name) ** 2 == pytest.approx(same.spread(name) ** 2 + full**2 / 2)
    assert layout.central() == same.central()


def test_only_what_was_measured_and_planned_can_differ(sample: Calibration) -> None:
    """What neither side says is no difference; any of several measured settings will do."""
    assert differences(sample, CalibrationSetting(model="qwen3-8b")) == {}
    assert differences(sample, CalibrationSetting(trainer_layout="TP8 PP1 CP1 EP1")) == {}
    other = CalibrationSetting(model="qwen3-32b", gpu="h100-sxm", rollout_layout="TP2 PP1 DP1")
    assert set(differences(sample, other)) == {"model", "rollout_layout"}
    both = replace(sample, made_for=[*sample.made_for, CalibrationSetting(model="qwen3-32b")])
    assert set(differences(both, other)) == {"rollout_layout"}
