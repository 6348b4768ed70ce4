"""What a GPU holds phase by phase: whose parts are there when, what never makes a phase hold more, and their sum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.estimates.belief import prior
from rlsize.estimates.constants_memory import STAGE
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.figures import numbers
from rlsize.estimates.memory_phases import EVERYTHING, PARTS, PHASES, Phase, PhaseQuestion, TrainerSide, Turns
from rlsize.estimates.memory_phases import memory_phases as phases_of
from rlsize.estimates.memory_shape import memory_shape
from rlsize.estimates.model_size import model_size
from rlsize.estimates.trainer_memory import ModelBeside, TrainerLoad, trainer_memory, unit_bytes
from rlsize.facts.layout import Layout
from rlsize.readers.profiles import Catalogue

CATALOGUE = Catalogue()
VALUES = prior(STAGE).central()
MODEL, GPU = CATALOGUE.get("model", "qwen2.5-7b"), CATALOGUE.get("gpu", "h100-sxm")
SHAPE = memory_shape(MODEL, model_size(MODEL).params)
PARAMS = SHAPE.dense_params.number
LOAD = TrainerLoad(
    shape=SHAPE,
    tokens=8192.0,
    shards=8.0,
    weight_width=4.0,
    gradient_width=4.0,
    optimizer_width=8.0,
    beside=(ModelBeside(name="reference", params=(PARAMS, 0.0)),),
)
SIDE = TrainerSide(load=LOAD, forward=replace(LOAD, backward=False), gpus=8.0, step_width=4.0)
ENGINE = EngineQuestion(model=MODEL, gpu=GPU, layout=Layout(tensor=2), memory_fraction=0.5)
SHARED = PhaseQuestion(engine=ENGINE, trainer=SIDE, synced=LOAD, longest_tokens=4096.0, turns=Turns())
CONTEXT, PROCESS = VALUES["memory_context_bytes"], VALUES["memory_process_bytes"]


def phases(question: PhaseQuestion = SHARED, **turns: Any) -> dict[str, Phase]:
    """The phases at the central constants, by name."""
    asked = replace(question, turns=replace(question.turns, **turns))
    return {phase.name: phase for phase in phases_of(numbers, asked, VALUES)}


def never_more(one: dict[str, Phase], other: dict[str, Phase]) -> bool:
    """Whether no phase of the one holds more than that of the other, where both have it."""
    return all(one[name].held <= other[name].held + 1.0 for name in one.keys() & other.keys())


HABITS = st.fixed_dictionaries(
    {
        "offloaded": st.frozensets(st.sampled_from(sorted(EVERYTHING))),
        "reference_offload": st.sampled_from([None, False, True]),
        "sleep": st.sampled_from(["none", "kv", "weights"]),
        "staged": st.booleans(),
    }
)


@given(habits=HABITS, engine=st.sampled_from(["vllm", "sglang", "tensorrt-llm"]))
def test_the_parts_of_a_phase_are_all_of_it(habits: dict[str, Any], engine: str) -> None:
    """Each part has a name that is known, none is negative, and their sum is what the phase holds."""
    for phase in phases(replace(SHARED, engine=replace(ENGINE, engine=engine)), **habits).values():
        assert set(phase.parts) <= set(PARTS)
        assert min(phase.parts.values()) >= 0
        assert sum(phase.parts.values()) == pytest.approx(phase.held)
        assert phase.first <= phase.held


@given(habits=HABITS, more=st.sampled_from(sorted(EVERYTHING)))
def test_offloading_more_never_raises_a_phase(habits: dict[str, Any], more: str) -> None:
    """Whatever else is done: one part more on the host, the reference too, a deeper sleep, a staged wake-up."""
    before = phases(**habits)
    assert never_more(phases(**habits | {"offloaded": habits["offloaded"] | {more}}), before)
    assert never_more(phases(**habits | {"reference_offload": True}), before)
    assert never_more(phases(**habits | {"staged": True}), before)
    assert never_more(phases(**habits | {"sleep": "weights"}), phases(**habits | {"sleep": "kv"}))
    assert never_more(phases(**habits | {"sleep": "kv"}), phases(**habits | {"sleep": "none"}))


@given(tokens=st.floats(1.0, 1e5), more=st.floats(0.0, 1e5), entropy=st.booleans(), fused=st.booleans())
def test_a_larger_micro_batch_never_holds_less(tokens: float, more: float, *, entropy: bool, fused: bool) -> None:
    """In no phase; nor does an entropy hold less, or a fused loss more."""

    def side(length: float, *, fused: bool = fused, entropy: bool = entropy) -> PhaseQuestion:
        load = replace(LOAD, tokens=length, fused_loss=fused, entropy=entropy)
        own = replace(SIDE, load=load, forward=replace(load, backward=False))
        return replace(SHARED, trainer=own, synced=load)

    assert never_more(phases(side(tokens)), phases(side(tokens + more)))
    assert never_more(phases(side(tokens, entropy=False)), phases(side(tokens, entropy=True)))
    assert never_more(phases(side(tokens, fused=True)), phases(side(tokens, fused=False)))


@given(power=st.integers(0, 2), length=st.floats(1.0, 30000.0))
def test_more_tensor_parallel_ranks_never_hold_more_engine_weights(power: int, length: float) -> None:
    """On each GPU, in each phase that has them."""

    def weights(tensor: int) -> dict[str, float]:
        question = replace(SHARED, engine=replace(ENGINE, layout=Layout(tensor=tensor)), longest_tokens=length)
        return {name: phase.parts.get("engine_weights", 0.0) for name, phase in phases(question).items()}

    few, many = weights(2**power), weights(2 ** (power + 1))
    assert all(many[name] <= few[name] for name in few)


def test_an_update_holds_the_peak_of_the_trainer_and_what_sleeps_beside_it() -> None:
    """The peak that the trainer's own model tells, two contexts, and the libraries and graphs of the engine."""
    update = phases()["update"]
    peak = trainer_memory(numbers, LOAD, VALUES).peak
    asleep = PROCESS + VALUES["memory_graph_bytes"] + VALUES["memory_communicator_bytes"]
    assert update.held == pytest.approx(peak + asleep + 2 * CONTEXT + VALUES["memory_communicator_bytes"])


def test_an_engine_that_profiles_takes_its_share_of_the_whole_gpu() -> None:
    """Whatever the trainer holds then: 0.5 of the memory and a context, beside the trainer's fp32 shards."""
    start, kept = phases()["engine_start"], phases(offloaded=frozenset())["engine_start"]
    engine = sum(start.parts[name] for name in ("engine_weights", "kv_cache", "engine_runtime"))
    assert engine == pytest.approx(0.5 * 80 * 2**30 * VALUES["memory_visible_share"], rel=0.01)
    assert kept.parts["kv_cache"] == start.parts["kv_cache"]
    shard, reference = PARAMS * 4.0 / 8.0, PARAMS * 2.0 / 8.0
    assert kept.held - start.held == pytest.approx((shard + reference) * VALUES["memory_training_overhead"])


def test_an_engine_with_a_static_share_takes_it_of_what_is_free() -> None:
    """SGLang's cache is smaller by its share of what the trainer holds when it starts."""
    sglang = replace(SHARED, engine=replace(ENGINE, engine="sglang"))
    start, kept = phases(sglang)["engine_start"], phases(sglang, offloaded=frozenset())["engine_start"]
    lost = kept.held - kept.parts["kv_cache"] - (start.held - start.parts["kv_cache"])
    assert start.parts["kv_cache"] - kept.parts["kv_cache"] == pytest.approx(0.5 * lost)


def test_a_staged_wake_up_has_no_cache_until_weights_are_synced() -> None:
    """Weights of both sides, and the cache only where all of the engine wakes up at once."""
    staged, whole = phases(), phases(staged=False)
    for name in ("wake_up", "weight_sync"):
        assert {"engine_weights", "trainer_weights"} <= set(staged[name].parts)
        assert "kv_cache" not in staged[name].parts
        assert whole[name].held - staged[name].held == pytest.approx(whole["generation"].parts["kv_cache"])


def test_what_is_not_offloaded_stays_while_engines_generate() -> None:
    """Weights alone on the host leave the optimizer, 8 bytes a parameter; gradients stay only in a buffer."""
    generation = phases(offloaded=frozenset({"params"}))["generation"].parts
    assert generation["optimizer"] == pytest.approx(PARAMS)
    assert not {"trainer_weights", "gradients"} & set(generation)
    buffered = replace(SHARED, trainer=replace(SIDE, gradient_buffer=True))
    assert phases(buffered, offloaded=frozenset())["generation"].parts["gradients"] == pytest.approx(PARAMS / 2)


def test_the_first_step_has_no_optimizer_states_before_its_update() -> None:
    """Unless the backend makes them when it starts."""
    later = phases(offloaded=frozenset())["generation"]
    assert later.held - later.first == pytest.approx(PARAMS * VALUES["memory_training_overhead"])
    early = phases(replace(SHARED, trainer=replace(SIDE, states_at_start=True)), offloaded=frozenset())
    assert early["generation"].first == early["generation"].held
    assert early["load"].parts["optimizer"] == pytest.approx(PARAMS)


def test_the_step_of_the_optimizer_holds_one_more_copy() -> None:
    """Foreach kernels: 4 bytes of each parameter on its rank."""
    assert phases()["optimizer"].parts["gathered"] == pytest.approx(PARAMS * 4.0 / 8.0)


def test_a_sync_gathers_a_unit_in_both_widths_and_loading_in_one() -> None:
    """The largest of layer, embedding and head, in fp32 and in the bf16 of the engine."""
    unit = unit_bytes(numbers, LOAD, 1.0)
    assert phases()["weight_sync"].parts["gathered"] == pytest.approx(6.0 * unit)
    assert phases()["load"].parts["gathered"] == pytest.approx(4.0 * unit)


def test_an_engine_wakes_up_beside_the_copy_of_the_shard_and_what_making_it_gathered() -> None:
    """FSDP's root, embedding and head in one, stays in the allocator's cache until the sync gathers out of it."""
    root = unit_bytes(numbers, LOAD, 4.0, joined=True)
    found = phases(replace(SHARED, trainer=replace(SIDE, sync_copies=1.0)), offloaded=frozenset())
    assert root == pytest.approx(8.0 * unit_bytes(numbers, LOAD, 1.0))
    for name in ("wake_up", "weight_sync"):
        assert found[name].parts["gathered"] == pytest.approx(PARAMS * 4.0 / 8.0 + root)


def test_a_pass_without_backward_keeps_one_layer_and_no_gradients() -> None:
    """It holds the weights, 4 bytes each, as many logits as a training pass, and less of all the rest."""
    logprob, update = phases()["logprob"].parts, phases()["update"].parts
    assert logprob["logits"] == update["logits"]
    assert logprob["activations"] < update["activations"]
    assert "gradients" not in logprob
    assert logprob["trainer_weights"] == pytest.approx(PARAMS / 2)


def test_each_pool_has_the_phases_that_happen_on_it() -> None:
    """Engines of their own start, take weights and generate; a trainer of its own never wakes anybody up."""
    rollout, trainer = replace(SHARED, trainer=None), replace(SHARED, engine=None)
    assert (SHARED.pool, rollout.pool, trainer.pool) == ("shared", "rollout", "trainer")
    assert list(phases(rollout)) == ["engine_start", "weight_sync", "generation"]
    assert list(phases(trainer)) == [name for name in PHASES if name not in {"engine_start", "wake_up", "generation"}]
    assert "reference" not in phases(replace(trainer, trainer=replace(SIDE, forward=replace(SIDE.forward, beside=()))))
    assert "logprob" not in phases(replace(trainer, trainer=replace(SIDE, logprob=False)))
    assert "wake_up" not in phases(sleep="none")
