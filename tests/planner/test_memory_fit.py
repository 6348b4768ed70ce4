"""What fits, the largest micro batch, and what binds."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.estimates.belief import prior
from rlsize.estimates.constants_memory import STAGE
from rlsize.estimates.engine_memory import kv_capacity
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.figures import numbers
from rlsize.estimates.memory import GpuMemory, MemoryQuestion, gpu_memory
from rlsize.estimates.model_size import model_size
from rlsize.estimates.trainer_layout import TrainerLayout, divides
from rlsize.facts.algorithm import ALGORITHMS, OPTIMIZERS
from rlsize.facts.figure import Figure, absent
from rlsize.facts.layout import Layout as EngineLayout
from rlsize.planner.memory_fit import fit_memory
from rlsize.readers.profiles import Catalogue

FRACTION = Figure(key="memory_fraction", value=0.9)


def hardware(name: str = "h100-sxm") -> GpuMemory:
    """A shipped GPU, nine tenths of it planned with."""
    return gpu_memory(Catalogue().get("gpu", name), FRACTION, FRACTION, Figure(key="gpus_per_node", value=8))


def bare(memory: float, node: int = 8) -> GpuMemory:
    """A GPU all of which is planned with."""
    whole = Figure(key="memory_fraction", value=1.0)
    return GpuMemory(
        name="bare",
        memory=Figure(key="gpu_memory_bytes", value=memory),
        trainer_fraction=whole,
        rollout_fraction=whole,
        gpus_per_node=Figure(key="gpus_per_node", value=node),
    )


def question(params: float = 70e9, name: str = "grpo") -> MemoryQuestion:
    """A policy of which only the size is known."""
    algorithm = ALGORITHMS[name]
    return MemoryQuestion(
        algorithm=algorithm,
        beside={name: absent(name, "its size") for name in ("critic", "reference") if getattr(algorithm, name)},
        params=Figure(key="params", value=params),
        optimizer=OPTIMIZERS["adamw"],
    )


def about(model: str) -> MemoryQuestion:
    """A shipped model."""
    profile = Catalogue().get("model", model)
    return replace(question(), params=model_size(profile).params, model=profile)


def spread(**degrees: int) -> TrainerLayout:
    """A layout of the given degrees."""
    return TrainerLayout(**{key: Figure(key=key, value=value) for key, value in degrees.items()})


def test_a_70b_trainer_first_fits_three_nodes() -> None:
    """18N and a twentieth for the allocator are 1,323 GB; 0.9 x 80 GB of an H100 may be used: 18.4 GPUs."""
    fit = fit_memory(question(), hardware())
    assert fit.first_trainer is not None
    assert fit.first_trainer.gpus == 24
    exact = next(figure for figure in fit.results if figure.key == "trainer_gpus_exact")
    assert exact.number == pytest.approx(1.05 * 1260e9 / (0.9 * 80e9))


def test_a_node_is_halved_before_it_is_exceeded() -> None:
    """A small trainer is offered 1, 2, 4 and 8 GPUs, then whole nodes."""
    gpus = [
        fit_memory(question(params, "sft"), bare(80e9)).first_trainer for params in (4e9, 9e9, 18e9, 30e9, 41e9, 90e9)
    ]
    assert [row.gpus for row in gpus if row] == [1, 2, 4, 8, 16, 24]


@given(st.floats(1e8, 1e13), st.sampled_from([1, 2, 4, 6, 8, 72]), st.floats(10e9, 300e9))
def test_the_first_fit_is_the_smallest(params: float, node: int, memory: float) -> None:
    """Every count that is offered before it does not fit, and it does."""
    fit = fit_memory(question(params, "sft"), bare(memory, node))
    first = fit.first_trainer
    assert first is not None
    held = 1.05 * 16 * params
    assert held / first.gpus <= memory * (1 + 1e-9)
    assert all(not row.fits for row in fit.trainer if row.gpus < first.gpus)
    previous = first.gpus - node if first.gpus > node else first.gpus // 2
    assert previous < 1 or held / previous > memory * (1 - 1e-9)


def test_what_no_data_parallelism_shards_fits_on_no_count() -> None:
    """ZeRO-0 keeps 16N on every GPU, so a 70B model fits nowhere, however many there are."""
    layout = spread(data_parallel=8, shards=8, zero_stage=0)
    fit = fit_memory(replace(question(name="sft"), layout=layout), hardware())
    assert fit.first_trainer is None
    assert [row.pool for row in fit.misfits] == ["trainer"]
    first = next(figure for figure in fit.results if figure.key == "trainer_first_fit_gpus")
    assert first.value is None
    assert "model parallelism" in first.missing


def test_model_parallelism_stays_as_stated() -> None:
    """TP 8 x PP 2 is offered in multiples of 16 GPUs."""
    fit = fit_memory(replace(question(), layout=spread(tensor_parallel=8, pipeline_parallel=2)), hardware())
    assert all(row.gpus % 16 == 0 for row in fit.trainer)
    assert fit.stated_trainer is not None
    assert not fit.stated_trainer.fits
    assert fit.first_trainer is not None
    assert fit.first_trainer.gpus == 32


def test_a_stated_layout_is_judged_and_shown() -> None:
    """16 H100 do not hold a 70B trainer; 32 do; both stand in the table."""
    for ranks, fits in ((16, False), (32, True)):
        fit = fit_memory(replace(question(), layout=spread(data_parallel=ranks, shards=ranks)), hardware())
        assert fit.stated_trainer is not None
        assert fit.stated_trainer.fits is fits
        assert bool(fit.misfits) is not fits
        assert ranks in [row.gpus for row in fit.trainer]


def test_activations_push_the_first_fit_up() -> None:
    """What every GPU holds besides the states leaves less for them."""
    plain = fit_memory(about("llama3.1-70b"), hardware()).first_trainer
    tokens = Figure(key="micro_batch_tokens", value=16384)
    loaded = fit_memory(replace(about("llama3.1-70b"), micro_batch_tokens=tokens), hardware()).first_trainer
    assert plain is not None
    assert loaded is not None
    assert plain.gpus < loaded.gpus


def served(model: str, tokens: float) -> MemoryQuestion:
    """A shipped model on engines of H100s, with samples of so many tokens."""
    profile, gpu = Catalogue().get("model", model), Catalogue().get("gpu", "h100-sxm")
    engine = EngineQuestion(model=profile, gpu=gpu, memory_fraction=0.9)
    return replace(about(model), engine=engine, context_tokens=Figure(key="context_tokens", value=tokens))


def test_an_instance_has_the_cache_of_predictions() -> None:
    """Llama-3.1-70B on H100s: samples of 3000 tokens as the engine's own capacity says; none on one or two GPUs."""
    asked = served("llama3.1-70b", 3000)
    fit = fit_memory(asked, hardware())
    assert fit.first_rollout is not None
    assert fit.first_rollout.gpus == 4
    assert asked.engine is not None
    expected = []
    for tensor in (1, 2, 4, 8):
        engine = EngineQuestion(
            model=asked.engine.model, gpu=asked.engine.gpu, layout=EngineLayout(tensor=tensor), memory_fraction=0.9
        )
        held = kv_capacity(numbers, engine, prior(STAGE).central(), 3000.0)
        expected.append(int(held.kv_bytes / held.sequence_bytes))
    assert [row.max_concurrency.value for row in fit.rollout] == expected
    wanted = replace(asked, concurrency=Figure(key="concurrency", value=expected[2] + 1))
    larger = fit_memory(wanted, hardware()).first_rollout
    assert larger is not None
    assert larger.gpus == 8


def test_a_cache_must_hold_the_longest_sample() -> None:
    """Many samples of 1,000 tokens fit beside Qwen3-32B on one H100, but not one of 30,000."""
    asked = served("qwen3-32b", 1000)
    short, long = (
        fit_memory(replace(asked, longest_tokens=Figure(key="longest_tokens", value=tokens)), hardware()).first_rollout
        for tokens in (2000, 30_000)
    )
    assert short is not None
    assert long is not None
    assert (short.gpus, long.gpus) == (1, 2)


def test_a_whole_number_of_samples_keeps_the_quotient() -> None:
    """The samples that can run are whole; the figure has the quotient too."""
    first = fit_memory(served("llama3.1-70b", 3000), hardware()).first_rollout
    assert first is not None
    left, sample = (figure.number for figure in first.max_concurrency.inputs.values())
    assert first.max_concurrency.value == left // sample
    assert f"{left / sample:.6g}" in first.max_concurrency.source


def test_a_stated_instance_is_judged() -> None:
    """One H100 does not hold a 70B copy, and the answer says which count does."""
    one = Figure(key="rollout_tensor_parallel", value=1)
    fit = fit_memory(replace(about("llama3.1-70b"), rollout_tensor_parallel=one), hardware())
    assert [row.pool for row in fit.misfits] == ["rollout"]
    found = {figure.key: figure.value for figure in fit.results}
    assert found["rollout_fits"] is False
    assert found["rollout_first_fit_gpus"] == 2


@pytest.mark.parametrize(("model", "degrees"), [("qwen2.5-7b", [1, 2, 4]), ("llama3.1-8b", [1, 2, 4, 8, 16, 32])])
def test_tensor_parallelism_divides_the_heads(model: str, degrees: list[int]) -> None:
    """28 heads with 4 KV heads go over 1, 2 or 4 GPUs; 32 heads with 8 over up to 32, KV heads repeated."""
    shape = about(model).shape
    assert [degree for degree in (1, 2, 3, 4, 8, 16, 32, 64) if divides(shape, degree)] == degrees


def test_supervised_fine_tuning_has_no_instance() -> None:
    """Nothing is rolled out, so nothing is judged."""
    fit = fit_memory(question(name="sft"), hardware())
    assert fit.rollout == ()
    assert fit.first_rollout is None
    assert all(not figure.key.startswith("rollout") for figure in fit.results)


def test_a_number_of_a_profile_names_it_and_the_field() -> None:
    """What the data sheet says is given."""
    gpu = hardware()
    assert (gpu.memory.provenance, gpu.gpus_per_node.provenance) == ("given", "given")
    assert gpu.memory.source.startswith("profile h100-sxm: memory;")


def test_unverified_memory_is_passed_on() -> None:
    """A fit on a GPU whose memory nobody has verified says so."""
    fit = fit_memory(replace(question(), layout=spread(data_parallel=32, shards=32)), hardware("rtx-5090"))
    assert fit.stated_trainer is not None
    assert not fit.stated_trainer.left.verified


@pytest.mark.parametrize("name", Catalogue().names("gpu"))
def test_every_shipped_gpu_has_what_a_fit_needs(name: str) -> None:
    """A 1B model fits on a node of each."""
    first = fit_memory(question(1e9), hardware(name)).first_trainer
    assert first is not None
    assert first.gpus <= 8


Run = Callable[..., Any]


ASK = ("memory", "--model", "llama3.1-8b", "--gpu", "h100", "--fsdp", "8", "--no-reference")


def test_the_largest_micro_batch_just_fits(rlsize: Run) -> None:
    """A micro batch of that many tokens fits, and one a per cent larger does not."""
    most = rlsize(*ASK, "--json").results["max_micro_batch_tokens"]
    assert most > 1000
    fits, over = (rlsize(*ASK, "--micro-batch-tokens", str(int(most * factor)), "--json") for factor in (1.0, 1.01))
    assert fits.results["trainer_fits"]
    assert not over.results["trainer_fits"]


def test_it_does_not_depend_on_the_asked_micro_batch(rlsize: Run) -> None:
    """Counted activations are given back before the room is measured."""
    asked, unasked = (
        rlsize(*ASK, *more, "--json").results["max_micro_batch_tokens"] for more in ((), ("--micro-batch-tokens", "8k"))
    )
    assert asked == pytest.approx(unasked, rel=1e-3)


def test_recomputation_makes_room(rlsize: Run) -> None:
    """Full recomputation leaves room for more tokens than none."""
    full, none = (
        rlsize(*ASK, "--micro-batch-tokens", "1k", "--recompute", name, "--json").results["max_micro_batch_tokens"]
        for name in ("full", "none")
    )
    assert full > 1.3 * none


def test_a_70b_trainer_does_not_fit_on_eight_gpus(rlsize: Run) -> None:
    """141 GB of states on each of 8, activations apart; the answer says what binds and what would fit."""
    ran = rlsize("memory", "--model", "llama3.1-70b", "--gpu", "h100", "--trainer-gpus", "8", "--no-reference")
    said = " ".join(ran.stdout.split())
    assert ran.code == 1
    assert "The trainer does not fit on h100-sxm: each of its 8 GPUs holds" in said
    assert "most of it the training state; first fits: 96 GPUs as FSDP96" in said
    assert "What binds: the trainer by the training state" in said


def test_an_engine_at_start_up_is_predicted_with_a_band(rlsize: Run) -> None:
    """Tokens of the KV cache that vLLM would log, beside the bill."""
    ran = rlsize("memory", "--model", "qwen3-32b", "--gpu", "h200", "--rollout-tensor-parallel", "2", "--json")
    document = json.loads(ran.stdout)
    tokens = document["results"]["engine_kv_cache_tokens"]
    low, high = document["explain"]["engine_kv_cache_tokens"]["band"]
    assert low < tokens < high
    assert 0.6e6 < tokens < 0.8e6


def test_an_engine_without_room_is_told(rlsize: Run) -> None:
    """70B in bf16 on two GPUs of 80 GB leaves nothing once the engine has profiled its largest step."""
    ran = rlsize("memory", "--model", "llama3.1-70b", "--gpu", "h100", "--rollout-tensor-parallel", "2", "--full")
    assert "not expected to find room for its KV cache" in " ".join(ran.stdout.split())


def test_the_answer_is_no_where_no_number_of_gpus_holds_a_side() -> None:
    """A side of which nobody stated a placement is judged by the smallest that fits."""
    assert not fit_memory(question(), hardware()).refused
    assert fit_memory(question(), bare(1e6)).refused
