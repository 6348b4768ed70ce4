"""The engine model: which way it moves, what it refuses, and a case that others have predicted too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.errors import Refused
from rlsize.estimates.belief import prior
from rlsize.estimates.constants_memory import STAGE as MEMORY
from rlsize.estimates.constants_rollout import STAGE as ROLLOUT
from rlsize.estimates.engine_memory import check_room, kv_capacity
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.figures import apply, numbers
from rlsize.estimates.generation import StepBatch, generation
from rlsize.estimates.rollout_prediction import at_batch, engine, first_and_later, fixed_lengths, steady
from rlsize.facts.kernels import Kernels
from rlsize.facts.layout import Layout
from rlsize.facts.quantisation import uniform
from rlsize.readers.profiles import Catalogue

CATALOGUE = Catalogue()
BELIEF = prior(ROLLOUT, MEMORY)
VALUES = BELIEF.central()
MODELS = ("qwen3-8b", "qwen3-32b", "qwen3-30b-a3b", "gpt-oss-120b")
GPUS = ("h100-sxm", "h200-sxm", "a100-80-sxm", "b200-sxm", "mi300x")
TINY = 1e-9  # of a quantity: float noise

models, gpus = st.sampled_from(MODELS), st.sampled_from(GPUS)
batches = st.floats(1.0, 2000.0)
prompts, responses = st.floats(16.0, 8000.0), st.floats(1.0, 16000.0)


def question(model: str = "qwen3-32b", gpu: str = "h200-sxm", tensor: int = 4, **said: Any) -> EngineQuestion:
    """An engine of that model on that GPU."""
    found, hardware = CATALOGUE.get("model", model), CATALOGUE.get("gpu", gpu)
    return EngineQuestion(model=found, gpu=hardware, layout=Layout(tensor=tensor), **said)


@given(st.sampled_from([2, 4]), st.sampled_from(["qwen3-32b", "qwen3-30b-a3b", "deepseek-v3"]), st.floats(1.0, 200.0))
def test_stages_work_on_micro_batches_in_turn(stages: int, model: str, batch: float) -> None:
    """So that a step of all takes as long as one of each through a replica without stages: weights are read anew."""
    lengths = fixed_lengths(1000.0, 1000.0)
    plain, staged = (engine(replace(question(model), layout=Layout(tensor=8, pipeline=p))) for p in (1, stages))
    times = [at_batch(numbers, one, b, lengths, VALUES)[1] for one, b in ((plain, batch), (staged, batch * stages))]
    assert times[1] == pytest.approx(times[0], rel=1e-9)
    assert staged.gpus == stages * plain.gpus


def with_more(asked: EngineQuestion, name: str, factor: float) -> EngineQuestion:
    """The same engine on a GPU that has more of one thing, kernels and links as they are."""
    said = asked.gpu.specification
    fact = getattr(said, name)
    more = replace(said, **{name: replace(fact, value=factor * fact.value)})
    if name == "memory" and said.memory_usable is not None:
        more = replace(more, memory_usable=replace(said.memory_usable, value=factor * said.memory_usable.value))
    return replace(asked, gpu=replace(asked.gpu, specification=more))


def kernels_of_all() -> dict[str, Kernels | None]:
    """The kernels of every GPU that there is."""
    return {name: CATALOGUE.get("gpu", name).kernels for name in CATALOGUE.names("gpu")}


def at(asked: EngineQuestion, concurrency: Any, prompt: float, response: float) -> Any:
    """The engine at a load, with central constants."""
    return steady(numbers, engine(asked), concurrency, fixed_lengths(prompt, response), VALUES)


@given(model=models, gpu=gpus, batch=batches, prompt=prompts, response=responses, factor=st.floats(1.0, 4.0))
@pytest.mark.parametrize("name", ["memory_bandwidth", "bf16_dense"])
def test_a_faster_gpu_is_never_slower(
    name: str, model: str, gpu: str, batch: float, prompt: float, response: float, factor: float
) -> None:
    """More bandwidth or more FLOP/s shorten the step and the prompt, and raise the rate."""
    asked = question(model, gpu)
    now, more = at(asked, batch, prompt, response), at(with_more(asked, name, factor), batch, prompt, response)
    assert more.step_seconds <= now.step_seconds * (1 + TINY)
    assert more.prefill_seconds <= now.prefill_seconds * (1 + TINY)
    assert more.rate >= now.rate * (1 - TINY)


@given(model=models, gpu=gpus, batch=batches, prompt=prompts, response=responses, factor=st.floats(1.0, 4.0))
def test_more_memory_never_holds_or_generates_less(
    model: str, gpu: str, batch: float, prompt: float, response: float, factor: float
) -> None:
    """A larger memory at the same bandwidth leaves capacity and rate at least where they were."""
    asked = replace(question(model, gpu), max_sequences=4096.0)
    now, more = at(asked, batch, prompt, response), at(with_more(asked, "memory", factor), batch, prompt, response)
    assert more.capacity >= now.capacity * (1 - TINY)
    assert more.rate >= now.rate * (1 - TINY)


@given(model=models, gpu=gpus, batch=batches, prompt=prompts, response=responses, factor=st.floats(1.0, 4.0))
def test_a_larger_batch_takes_a_longer_step_and_generates_more(
    model: str, gpu: str, batch: float, prompt: float, response: float, factor: float
) -> None:
    """Up to what the cache holds, as beyond it samples only wait."""
    asked = question(model, gpu)
    few, many = at(asked, batch, prompt, response), at(asked, factor * batch, prompt, response)
    assert many.step_seconds >= few.step_seconds * (1 - TINY)
    assert many.rate >= few.rate * (1 - TINY)


@given(model=models, gpu=gpus, batch=st.floats(1.0, 64.0), prompt=prompts, response=responses, more=responses)
def test_a_longer_context_takes_a_longer_step(
    model: str, gpu: str, batch: float, prompt: float, response: float, more: float
) -> None:
    """At the same batch; a memory that is larger than any keeps it the same."""
    asked = with_more(question(model, gpu), "memory", 50.0)
    short, long = at(asked, batch, prompt, response), at(asked, batch, prompt, response + more)
    assert long.step_seconds >= short.step_seconds * (1 - TINY)


@given(
    model=models, samples=st.integers(1, 2000), instances=st.integers(1, 16), more=st.integers(1, 16),
    ending=st.sampled_from(["barrier", "refill"]),
)  # fmt: skip
def test_more_instances_never_generate_a_step_later(
    model: str, samples: int, instances: int, more: int, ending: Any
) -> None:
    """Replicas share the samples out; each fleet throughput is at least that of the smaller fleet."""
    asked = engine(question(model))
    said: dict[str, Any] = {
        "prompt_tokens": 500.0, "response_tokens": 2000.0, "response_cv": 0.8, "max_tokens": 8000.0,
    }  # fmt: skip
    fleet, larger = (
        generation(numbers, asked, StepBatch(samples=samples, instances=count, ending=ending, **said), VALUES)
        for count in (instances, instances + more)
    )
    assert larger.seconds <= fleet.seconds * (1 + 1e-3)  # the drain is an integral over a few dozen points


@given(model=models, gpu=gpus, batch=st.floats(1.0, 512.0), prompt=prompts, response=responses)
def test_latencies_and_throughput_say_the_same(
    model: str, gpu: str, batch: float, prompt: float, response: float
) -> None:
    """Little's law: samples x tokens / (time to first token + tokens x time per token) is the rate."""
    asked, lengths = engine(question(model, gpu)), fixed_lengths(prompt, response)
    found = steady(numbers, asked, batch, lengths, VALUES)
    first, later = first_and_later(numbers, found, batch, lengths, VALUES)
    assert batch * response / (first + response * later) == pytest.approx(found.rate, rel=1e-9)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("response", [1.0, 2.0])
def test_one_token_is_an_answer(model: str, response: float) -> None:
    """A response of one token is prompt work alone, more or less; nothing divides by zero."""
    found = at(question(model), 64.0, 1000.0, response)
    assert 0 < found.rate < 64 * response / found.prefill_seconds
    assert found.step_seconds > 0


@pytest.mark.parametrize("model", MODELS)
def test_the_longest_context_is_an_answer(model: str) -> None:
    """Samples of the model's longest context run, fewer at a time than short ones."""
    asked = question(model)
    longest = float(asked.model.architecture.max_context)
    found, short = at(asked, 4096.0, 1000.0, longest - 1000.0), at(asked, 4096.0, 100.0, 100.0)
    assert found.batch < short.batch
    assert 0 < found.rate < short.rate


def test_arrays_are_their_elements() -> None:
    """A sweep over concurrency gives what its points give one by one."""
    asked, grid = question(), np.array([1.0, 16.0, 300.0])
    whole = at(asked, grid, 1000.0, 2000.0)
    assert whole.rate.tolist() == pytest.approx([at(asked, point, 1000.0, 2000.0).rate for point in grid])


def test_explained_and_bare_numbers_agree() -> None:
    """The figures of an answer are the numbers of its draws, worked out by the same equations."""
    asked, lengths = engine(question("qwen3-30b-a3b")), fixed_lengths(1000.0, 2000.0)
    figure = steady(apply, asked, 64.0, lengths, VALUES).rate
    assert figure.number == pytest.approx(steady(numbers, asked, 64.0, lengths, VALUES).rate)
    assert figure.equation == "rollout_batch.steady_rate"


def test_fp8_on_a_gpu_without_it_is_refused() -> None:
    """The message names the GPU and what would do."""
    with pytest.raises(Refused, match=r"A100 .* has no fp8 matrix units; take bf16 weights"):
        engine(question("qwen3-8b", "a100-80-sxm", weights=uniform("fp8")))
    with pytest.raises(Refused, match=r"H100 .* has no fp4 matrix units; take fp8 or bf16 weights"):
        engine(question("qwen3-8b", "h100-sxm", weights=uniform("nvfp4")))


def test_weights_that_leave_no_room_are_refused() -> None:
    """70B in bf16 on one 80 GB GPU; the message has the bytes that are there and those that are needed."""
    with pytest.raises(Refused, match=r"does not fit on 1 x h100-sxm: weights take 13\d"):
        check_room(question("llama3.1-70b", "h100-sxm", 1), fixed_lengths(1000.0, 1000.0).live, VALUES)


def test_low_precision_is_quicker_where_the_gpu_has_it() -> None:
    """fp8 weights are half the bytes, so a small batch's step shrinks; an fp8 cache is half the reading."""
    bf16, fp8 = (at(question(weights=uniform(dtype)), 8.0, 1000.0, 2000.0) for dtype in ("bf16", "fp8"))
    assert 0.4 < fp8.step_seconds / bf16.step_seconds < 0.9
    wide, narrow = (at(question(kv_dtype=dtype), 200.0, 4000.0, 4000.0) for dtype in ("bf16", "fp8"))
    assert narrow.step_seconds < wide.step_seconds


def test_borrowed_kernels_widen_the_band() -> None:
    """A GPU whose kernels are those of another one: the same constants, and one more that is drawn."""

    def spread(gpu: str) -> float:
        draws = steady(numbers, engine(question(gpu=gpu)), 64.0, fixed_lengths(1000.0, 1000.0), BELIEF.drawn(0)).rate
        return float(np.std(np.log(draws)))

    borrowed = {name: kernels.borrowed if kernels else () for name, kernels in kernels_of_all().items()}
    own = next(name for name in GPUS if not borrowed[name])
    whole = [name for name, families in borrowed.items() if "gemm" in families]
    assert whole
    assert spread(whole[0]) > 1.2 * spread(own)


@pytest.mark.parametrize("tensor", [2, 4, 8])
def test_ranks_that_pcie_joins_reduce_as_was_measured_over_it(tensor: int) -> None:
    """No network lies between those of a node, and large messages are no quicker than NCCL's; beyond it, one does."""
    asked = question("llama3.1-70b", "l40s", tensor)
    kernels, found = asked.gpu.kernels, engine(asked).numbers
    assert kernels is not None
    own, ring = kernels.all_reduce["vllm"][f"tp{tensor}"], kernels.nccl["all_reduce"][f"{tensor}_gpus"]
    assert found["all_reduce_seconds"] == own.fixed
    link = asked.gpu.specification.scale_up.bandwidth_one_direction.value
    assert found["all_reduce_rate"] == pytest.approx(link * max(own.link_fraction, ring.link_fraction))
    beyond = engine(replace(asked, layout=Layout(tensor=16))).numbers
    assert beyond["all_reduce_seconds"] > found["all_reduce_seconds"] + 3e-5


@pytest.mark.parametrize("gpu", ["rtx-pro-6000-server", "l40s", "h100-sxm"])
def test_a_quicker_adapter_makes_no_prompt_slower(gpu: str) -> None:
    """Where experts lie on several nodes, whichever of both links is the slower one decides."""
    asked = replace(question("qwen3-30b-a3b", gpu), layout=Layout(tensor=2, data=8, expert=8))
    spec = asked.gpu.specification
    assert spec.nic is not None
    quick = replace(spec, nic=replace(spec.nic, value=4 * spec.nic.value), pcie=None)
    other = replace(asked, gpu=replace(asked.gpu, specification=quick))
    slower, quicker = (at(one, 64.0, 1024.0, 128.0).rate for one in (asked, other))
    assert quicker >= slower


def test_no_network_reduces_for_cards() -> None:
    """A large all-reduce takes what it takes alone, in a band of what hosts differ by; NVLink's switches add up."""

    def stretched(gpu: str, name: str) -> float:
        more = VALUES | {name: 4 * VALUES[name]}
        asked = engine(question("llama3.1-70b", gpu, 8))
        seconds = [
            steady(numbers, asked, 256.0, fixed_lengths(500.0, 500.0), each).step_seconds for each in (VALUES, more)
        ]
        return float(seconds[1] / seconds[0])

    assert stretched("l40s", "rollout_card_reduce") > 1.5
    assert stretched("l40s", "rollout_all_reduce_slowdown") == 1.0
    assert stretched("h100-sxm", "rollout_card_reduce") == 1.0
    assert VALUES["rollout_card_reduce"] >= 1.0 > VALUES["rollout_all_reduce_slowdown"]


@pytest.mark.parametrize(
    ("gpu", "name", "ranks", "copies"),
    [
        ("h200-sxm", "trtllm", 8, 7.0),  # a node gathers
        ("gb200", "trtllm", 4, 3 * (1 - 0.75**8)),  # a rack-wide network, for which this engine has a way of its own
        ("gb200", "vllm", 4, 3.0),
        ("gb200", "vllm", 8, 7 * (1 - 0.875**8)),  # over nodes: kernels that send
        ("h100-sxm", "vllm", 16, 8 / 2),  # over the network alone: one for each expert on the other node
    ],
)
def test_tokens_go_to_all_ranks_of_a_node_and_beyond_it_to_those_with_an_expert(
    gpu: str, name: str, ranks: int, copies: float
) -> None:
    """8 of 128 experts work on a token; what leaves its rank is fp8 on its way there, and 16 bits on its way back."""
    asked = replace(question("qwen3-30b-a3b", gpu, engine=name), layout=Layout(expert=ranks, data=ranks))
    width = asked.model.architecture.hidden_size
    assert engine(asked).numbers["exchange_bytes"] == pytest.approx(copies * width * 3.0)


@given(nodes=st.integers(2, 32), name=st.sampled_from(["qwen3-30b-a3b", "deepseek-v3", "kimi-k2"]), batch=batches)
def test_a_prompt_sends_a_token_once_to_each_node_and_a_step_once_to_each_expert(
    nodes: int, name: str, batch: float
) -> None:
    """So that prompts never send more than steps; and what leaves a node takes at least its time on the adapter."""
    asked = replace(question(name, "h100-sxm"), layout=Layout(data=8 * nodes, expert=8 * nodes))
    found = engine(asked).numbers
    assert found["prompt_exchange_bytes"] <= found["exchange_bytes"] * (1 + TINY)
    nic = asked.gpu.specification.nic
    assert nic is not None
    step = at_batch(numbers, engine(asked), batch * 8 * nodes, fixed_lengths(1000.0, 1000.0), VALUES)[0]
    copies = found["experts_per_token"] * (1 - 1 / nodes)
    sent = copies * found["moe_layers"] * found["hidden_size"] * 3.0 * batch
    assert float(step["exchange"]) >= sent / nic.value


@given(gpu=st.sampled_from(["h200-sxm", "b200-sxm", "mi355x"]), prompt=st.floats(256.0, 2e5))
def test_an_indexer_scores_all_that_stands_before_each_token(gpu: str, prompt: float) -> None:
    """Sparse attention reads few tokens of a prompt, yet what chooses them grows with its square, at no peak passed."""
    asked = question("glm-5", gpu, 8, weights=uniform("fp8"))
    once, twice = (
        at_batch(numbers, engine(asked), 1.0, fixed_lengths(p, 1.0), VALUES)[2] for p in (prompt, 2 * prompt)
    )
    shape, said = asked.model.architecture.latent_attention, asked.gpu.specification
    assert shape is not None
    assert said.fp8_dense is not None
    scores = 2.0 * shape.layers * shape.index_heads * shape.index_head_dim * prompt**2 / 2
    assert once > scores / said.fp8_dense.value
    assert twice - once > 3 * scores / said.fp8_dense.value


@given(models, gpus, st.floats(1.0, 2000.0))
def test_without_cuda_graphs_a_step_takes_longer_by_what_the_host_launches_after_the_gpu(
    model: str, gpu: str, concurrency: float
) -> None:
    """The GPU waits for the launches of all layers, as far as its kernels do not take that long themselves."""
    graphs, launched = (at(question(model, gpu, graphs=own), concurrency, 500.0, 1000.0) for own in (True, False))
    asked = engine(question(model, gpu))
    launches = asked.numbers["layers"] * VALUES["rollout_launch_step_layer"] * asked.numbers["host_slowdown"]
    kernels = sum(seconds for name, seconds in graphs.parts.items() if name != "host")
    assert launched.parts["host"] - graphs.parts["host"] == pytest.approx(max(0.0, launches - kernels))
    assert launched.rate <= graphs.rate * (1 + TINY)


@given(models, gpus, st.floats(1.0, 2000.0), st.integers(1, 8), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_drafts_pay_by_what_is_accepted_and_never_more_than_that(
    model: str, gpu: str, concurrency: float, drafts: int, one: float, two: float
) -> None:
    """Each accepted token saves a step; a step that checks drafts, and the drafts, take longer than a plain one."""
    less, more = sorted((one, two))
    ways: list[dict[str, Any]] = [{}, *({"drafts": float(drafts), "draft_acceptance": a} for a in (less, more))]
    plain, worse, better = (
        at_batch(numbers, engine(question(model, gpu, **own)), concurrency, fixed_lengths(500.0, 1000.0), VALUES)[1]
        for own in ways
    )
    assert better <= worse * (1 + TINY)
    assert worse * (1 + drafts * less) > plain


def test_a_single_draft_of_deepseek_v3_is_worth_what_its_report_says() -> None:
    """1.8 times the tokens of a second where 85 to 90 % of the drafts are accepted (arXiv:2412.19437, 5.4.3)."""
    asked = question("deepseek-v3", tensor=8)
    drafting = replace(asked, drafts=1.0, draft_acceptance=0.875)
    assert at(drafting, 1.0, 500.0, 1000.0).rate / at(asked, 1.0, 500.0, 1000.0).rate == pytest.approx(1.8, rel=0.06)


def test_a_drafter_takes_the_memory_of_one_layer() -> None:
    """Of weights, and of each sample's cache."""
    asked = question()
    plain, drafting = (
        kv_capacity(numbers, one, VALUES, 1000.0) for one in (asked, replace(asked, drafts=2.0, draft_acceptance=0.6))
    )
    layer = 1 + 1 / asked.model.architecture.layers
    assert drafting.weight_bytes == pytest.approx(plain.weight_bytes * layer)
    assert drafting.sequence_bytes == pytest.approx(plain.sequence_bytes * layer)
