"""Predictions of recorded engine rates: the domain, the order of things, and rows that contradict each other."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from rlsize.errors import Refused
from rlsize.estimates.belief import prior
from rlsize.estimates.constants_rollout import SEEN
from rlsize.estimates.constants_train import SEEN as TRAINED_ON
from rlsize.estimates.figures import numbers
from rlsize.estimates.recorded import engine, engine_latency, rollout
from rlsize.estimates.recorded.registry import KNOWN_FROM, Profiles, kinds
from rlsize.estimates.rollout_prediction import _flow, fixed_lengths
from rlsize.facts.layout import Layout
from rlsize.facts.quantisation import uniform
from rlsize.facts.records import EngineRecord, Record
from rlsize.readers.profiles import Catalogue
from rlsize.readers.records.listing import published_files, read_records

CATALOGUE = Catalogue()
KNOWN = {"engine_latency": engine_latency, "rollout": rollout}
BELIEF = prior(*engine_latency.STAGES)
RECORD = EngineRecord(
    id="one",
    source_id="somebody",
    trust="high",
    model="qwen3-32b",
    gpu="h100-sxm",
    gpus=4,
    stack="vllm",
    measured={"output_tok_s_total": 1000.0, "ttft_ms": 100.0, "tpot_ms": 10.0},
    layout=Layout(tensor=4),
    prompt_tokens=1024,
    response_tokens=512,
    concurrency=32,
    served=True,
)


def profiles(record: Record) -> Profiles:
    """A part of the tests below."""
    return Profiles(model=CATALOGUE.get("model", record.model), gpu=CATALOGUE.get("gpu", record.gpu))


def predicted(record: EngineRecord) -> dict[str, float]:
    """A part of the tests below."""
    found = engine_latency.predict(record, profiles(record), BELIEF.central())
    return {key: float(value) for key, value in found.items()}


def test_throughput_and_its_two_times_agree() -> None:
    """Rate: c out / (TTFT + out TPOT) is the rate itself."""
    found = predicted(RECORD)
    cycle = (found["ttft_ms"] + 512 * found["tpot_ms"]) / 1e3
    assert 32 * 512 / cycle == pytest.approx(found["output_tok_s_total"], rel=1e-9)


def test_more_concurrency_means_more_throughput_and_slower_tokens() -> None:
    """Up to the engine's limit."""
    rates = [predicted(replace(RECORD, concurrency=float(c))) for c in (1, 4, 16, 64, 128)]
    assert np.all(np.diff([rate["output_tok_s_total"] for rate in rates]) > 0)
    assert np.all(np.diff([rate["tpot_ms"] for rate in rates]) > 0)


def test_a_longer_prompt_costs_throughput() -> None:
    """Prefill takes engine time from decoding, and contexts are longer."""
    rates = [predicted(replace(RECORD, prompt_tokens=float(p)))["output_tok_s_total"] for p in (128, 1024, 8192)]
    assert np.all(np.diff(rates) < 0)


def test_arrays_of_constants_give_what_each_set_gives_alone() -> None:
    """Draws run through the same equations as the central values."""
    drawn = BELIEF.drawn(seed=2, draws=5)
    together = engine_latency.predict(RECORD, profiles(RECORD), drawn)["output_tok_s_total"]
    for index in range(5):
        one = {name: float(values[index]) for name, values in drawn.items()}
        alone = engine_latency.predict(RECORD, profiles(RECORD), one)["output_tok_s_total"]
        assert together[index] == pytest.approx(alone, rel=1e-9)


def test_weights_that_do_not_fit_are_refused_with_the_bytes() -> None:
    """405B in bf16 on four GPUs of 80 GB."""
    record = replace(RECORD, model="llama3.1-405b")
    with pytest.raises(Refused, match=r"does not fit on 4 x h100-sxm: weights take \d+"):
        predicted(record)


@pytest.mark.parametrize(("gpu", "dtype"), [("a100-80-sxm", "fp8"), ("h100-sxm", "nvfp4")])
def test_a_dtype_that_the_gpu_lacks_is_refused(gpu: str, dtype: str) -> None:
    """The message names GPU and dtype."""
    with pytest.raises(Refused, match=f"no {dtype[-3:]} matrix units"):
        predicted(replace(RECORD, gpu=gpu, weights=uniform(dtype)))


def test_an_offline_run_takes_the_concurrency_that_its_cache_allows() -> None:
    """More requests than fit change the rate little; the record's own field names come back."""
    record = replace(RECORD, concurrency=None, served=False, requests=2000.0, measured={"output_tok_s_per_gpu": 1.0})
    few = rollout.predict(record, profiles(record), BELIEF.central())
    many = rollout.predict(replace(record, requests=4000.0), profiles(record), BELIEF.central())
    assert list(few) == ["output_tok_s_per_gpu"]
    assert 1.0 <= many["output_tok_s_per_gpu"] / few["output_tok_s_per_gpu"] < 1.2


def test_tokens_that_come_faster_under_more_load_are_out_of_order() -> None:
    """The fewest rows are set apart; a repeated concurrency is no contradiction."""

    def row(concurrency: float, tpot: float) -> EngineRecord:
        return replace(RECORD, concurrency=concurrency, measured={"tpot_ms": tpot})

    rows = [row(4, 5.0), row(8, 6.2), row(16, 8.2), row(32, 10.9), row(64, 14.8), row(64, 14.9), row(512, 5.6)]
    assert set(engine_latency.contradictions(rows)) == {6}
    spike = [row(4, 4.0), row(8, 4.7), row(16, 5.8), row(32, 15.9), row(64, 9.7)]
    assert set(engine_latency.contradictions(spike)) == {3}


def test_a_kind_that_nobody_measured_has_a_wider_band() -> None:
    """And the same centre; whether anybody did is counted in the records, unless a caller says so."""
    spread, centre = {}, {}
    for unseen in (True, False, None):
        told = replace(RECORD, unseen=unseen)
        drawn = engine_latency.predict(told, profiles(told), BELIEF.drawn(0))["output_tok_s_total"]
        spread[unseen], centre[unseen] = float(np.std(np.log(drawn))), predicted(told)["output_tok_s_total"]
    assert spread[True] > 1.5 * spread[False] == 1.5 * spread[None]
    assert len(set(centre.values())) == 1


@pytest.mark.long
def test_the_kinds_that_count_as_seen_have_ten_records() -> None:
    """All and no others, so that a file that grows or shrinks says so; nodes without a layout stand behind nothing."""
    listed = [one for one in read_records(published_files(), CATALOGUE).records if one.class_name in KNOWN]
    known = [one for one in listed if one.record.trust != "low" and getattr(one.record, "laid_out", True)]
    trusted = [(one.class_name, one.record, profiles(one.record)) for one in known]
    counted = kinds(KNOWN, trusted)
    assert {kind for kind, records in counted.items() if records >= KNOWN_FROM} == SEEN


@pytest.mark.long
def test_the_generations_that_trainers_were_seen_on_have_ten_records() -> None:
    """All and no others."""
    listed = [one.record for one in read_records(published_files(), CATALOGUE).records if one.class_name == "train"]
    counted = Counter(CATALOGUE.get("gpu", record.gpu).generation for record in listed if record.trust != "low")
    assert {generation for generation, records in counted.items() if records >= KNOWN_FROM} == TRAINED_ON


def test_a_prompt_reads_the_experts_that_decode_does_not() -> None:
    """The larger the batch, the less is left to read; where prompts have steps of their own, all is."""
    values = BELIEF.central()
    seconds = {}
    for stack in ("vllm", "sglang"):
        for batch in (1.0, 512.0):
            record = replace(RECORD, model="qwen3-235b-a22b", gpu="h200-sxm", stack=stack, layout=Layout(tensor=8))
            flow = _flow(numbers, engine.replica(record, profiles(record)), batch, fixed_lengths(1024, 512), values)
            seconds[stack, batch] = float(flow["prompt_experts_read_seconds"] / flow["prefill_steps"])
    assert seconds["vllm", 512.0] < seconds["vllm", 1.0] / 10
    assert seconds["sglang", 512.0] == pytest.approx(seconds["sglang", 1.0])
