"""Rates files: written and read back, converted where they count prompts too, refused with line numbers where wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import InputError
from rlsize.facts.headroom import HEADROOM_PARTS, HeadroomPart
from rlsize.facts.rates import (
    InstanceRate,
    MeasuredInstance,
    RateConditions,
    Rates,
    RateSource,
)
from rlsize.readers.saved_files import read_rates
from rlsize.readers.yaml_documents import parse_document
from rlsize.writers.yaml_file import rates_text

if TYPE_CHECKING:
    from pathlib import Path

SMALL = """\
rlsize: {kind: rates, version: 1}
measured_at: 2026-01-02T03:04:05+00:00
source: {method: measure}
instance_tokens_per_second: {mean: 4 ktok/s, spread: 100, instances: 3}
"""


def faults(text: str) -> list[str]:
    """What is wrong with a file."""
    with pytest.raises(InputError) as caught:
        read_rates(parse_document(text, "rates.yaml"))
    return [f"{fault.where}: {fault.what}" for fault in caught.value.faults]


def test_a_short_file_by_hand_is_enough() -> None:
    """Units are read, and what is left out has its default: no lower bound, nothing included, response tokens."""
    rates = read_rates(parse_document(SMALL, "rates.yaml"))
    assert rates.instance_tokens_per_second == InstanceRate(mean=4000.0, spread=100.0, instances=3)
    assert (rates.counts, rates.includes, rates.gpus_per_instance) == ("response", [], None)


def test_a_rate_of_all_tokens_is_converted() -> None:
    """With the prompt share known, a rate that counts prompts too becomes one of response tokens, and says so."""
    total = SMALL + "counts: total\nprompt_share: 0.25\ninstances: [{instance: a, tokens_per_second: 4000}]\n"
    rates = read_rates(parse_document(total, "rates.yaml"))
    rate = rates.instance_tokens_per_second
    assert rate is not None
    assert (rates.counts, rate.mean, rate.spread, rates.instances[0].tokens_per_second) == (
        "response",
        3000.0,
        75.0,
        3000.0,
    )
    assert "converted from total tokens" in rate.why


@pytest.mark.parametrize(
    ("addition", "message"),
    [
        ("counts: total\n", "rates.yaml:5: counts: counts prompt and response tokens"),
        ("counts: total\nprompt_share: 1\n", "rates.yaml:5: counts: counts prompt and response tokens"),
        ("includes: [ramp, ramp]\n", "rates.yaml:5: includes: names a part twice"),
        ("includes: [rampp]\n", "rates.yaml:5"),
        ("includs: [ramp]\n", "rates.yaml:5: includs: the key includs is unknown"),
        ("window_seconds: -1\n", "rates.yaml:5: window_seconds: -1 must be more than 0"),
        ("window_seconds: .nan\n", "rates.yaml:5"),
        ("counts: total\ncounts: response\n", "stands twice"),
    ],
)
def test_a_fault_names_its_line(addition: str, message: str) -> None:
    """Unknown keys, unknown parts, senseless numbers and doubled keys are told with file and line."""
    assert any(message in fault for fault in faults(SMALL + addition))


def test_faults_between_fields_are_told_together() -> None:
    """A file without any rate and without a date has two faults."""
    text = "rlsize: {kind: rates, version: 1}\nmeasured_at: yesterday\nsource: {method: x}\n"
    assert faults(text) == ["rates.yaml:2: measured_at: 'yesterday' is no date", "rates.yaml: holds no rate"]


def test_another_kind_of_file_is_refused() -> None:
    """A scenario is no rates file."""
    assert "is a scenario file, not a rates file" in faults("rlsize: {kind: scenario, version: 1}\n")[0]


def test_a_saved_file_is_read_back(tmp_path: Path) -> None:
    """What is written is what is read."""
    rates = example("Qwen/Qwen3-8B: 'x' # y", 4000.0, None)
    (tmp_path / "rates.yaml").write_text(rates_text(rates), encoding="utf-8")
    assert read_rates(str(tmp_path / "rates.yaml")) == rates


def example(word: str, rate: float, spread: float | None) -> Rates:
    """A rates file's content."""
    return Rates(
        measured_at="2026-01-02T03:04:05+00:00",
        source=RateSource(method="observe", engine="vllm", keys={"generation_tokens": "vllm:generation_tokens_total"}),
        instance_tokens_per_second=InstanceRate(
            mean=rate, spread=spread, lower_bound=True, saturated_fraction=0.5, why=word
        ),
        includes=["sync_pauses", "ramp"],
        conditions=RateConditions(model=word, group_size=8.0),
        instances=[MeasuredInstance(instance=word, tokens_per_second=rate)] * 2,
    )


@given(
    st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["C"]), max_size=40),
    st.floats(1e-6, 1e12),
    st.none() | st.floats(0, 1e12),
)
def test_any_content_survives_the_file(word: str, rate: float, spread: float | None) -> None:
    """Names that look like numbers, dates or YAML come back as they went."""
    rates = example(word, rate, spread)
    assert read_rates(parse_document(rates_text(rates), "rates.yaml")) == rates


def test_the_parts_of_headroom_are_declared_once() -> None:
    """The list of parts and the type that files are checked against name the same parts."""
    assert get_args(HeadroomPart) == HEADROOM_PARTS
