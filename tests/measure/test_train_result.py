"""From what a trainer said to figures: scaled to a whole step, per GPU, and doubted where there is reason to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rlsize.facts.model import Architecture, Attention, FeedForward, Mamba, Model
from rlsize.measure.jobs import WorkerEvents
from rlsize.measure.train import TrainJob, train_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.facts.measured import TrainMeasured
    from rlsize.measure.jobs import StageResult

SHAPE = Architecture(
    source="config",
    layers=4,
    hidden_size=8,
    vocab_size=100,
    tied_embeddings=False,
    max_context=64,
    attention=Attention(layers=4, heads=4, kv_heads=2, head_dim=2),
    feed_forward=FeedForward(layers=4, intermediate_size=16),
)
PROFILE = Model(name="m", title="M", family="llama", architecture=SHAPE, sources={"config": "a test"})
MATRICES = 6 * (4 * (192 + 384) + 800)
JOB = TrainJob(model="m", lengths=((10, 30), (10, 50)), group_size=2, micro_batch_tokens=100, profile=PROFILE)
PHASES = {"logprob": 1.0, "forward": 2.0, "backward": 4.0, "optimizer": 3.0}


def heard(
    factors: Sequence[float] = (1.0, 1.0, 1.0), *, gpus: bool = True, timed: int = 2, **events: dict[str, Any]
) -> WorkerEvents:
    """A trainer on two ranks with two micro-batches a step, whose steps take so many times the usual."""
    found = WorkerEvents("train step", repeated="step")
    ready = {"versions": {"torch": "2"}, "gpus": ["H100"] * 2 * gpus, "world": 2, "params": 123}
    found.take({"event": "ready", "attention": "flash", **ready})
    found.take({"event": "plan", "micro_batches": 2, "micro_batches_timed": timed, "tokens_timed": 50 * timed})
    for place, factor in enumerate((9.0, *factors)):
        phases = {name: factor * seconds for name, seconds in PHASES.items()}
        step = {"warm_up": place == 0, "loss": -0.1 * place, "seconds": 1.01 * sum(phases.values()), "phases": phases}
        found.take({"event": "step", **step})
    for kind, fields in events.items():
        found.take({"event": kind, **fields})
    return found


def result(said: WorkerEvents, **changed: Any) -> StageResult[TrainMeasured]:
    """The figures, of a job some of whose fields are changed."""
    fields = {"model": "m", "lengths": JOB.lengths, "group_size": 2, "micro_batch_tokens": 100, "profile": PROFILE}
    return train_result(TrainJob(**{**fields, **changed}), said)


def test_rates_are_per_gpu() -> None:
    """100 tokens, 80 of them responses, in 10 s on two GPUs; the update leaves the second of log-probs out."""
    measured = result(heard()).measured
    assert (measured.step_total_tokens, measured.step_response_tokens, measured.step_samples) == (100, 80, 2)
    assert measured.train_seconds == pytest.approx(10.0)
    assert measured.gpu_total_tokens_per_second == pytest.approx(5.0)
    assert measured.gpu_response_tokens_per_second == pytest.approx(4.0)
    assert measured.update_total_tokens_per_second == pytest.approx(100 / 9 / 2)
    assert measured.losses == pytest.approx([0.0, -0.1, -0.2, -0.3])


def test_phases_add_up_to_the_step() -> None:
    """Micro-batches share a phase's seconds; the optimizer runs once."""
    phases = {phase.name: phase for phase in result(heard()).measured.phases}
    assert sum(phase.seconds for phase in phases.values()) == pytest.approx(10.0)
    assert phases["backward"].seconds_each == pytest.approx(2.0)
    assert phases["optimizer"].seconds_each == pytest.approx(3.0)


def test_a_part_of_a_step_is_scaled_by_tokens() -> None:
    """Half of the tokens were run: all but the optimizer counts twice, and a doubt says so."""
    found = result(heard(timed=1))
    assert found.measured.train_seconds == pytest.approx(2 * 7.0 + 3.0)
    assert found.measured.scatter is not None
    assert found.measured.scatter.p50 == pytest.approx(17.0)
    assert "1 of 2 micro-batches" in " ".join(found.doubts)


def test_mfu_is_the_update_s() -> None:
    """FLOPs of the tokens over 9 s and two peaks; attention comes on top."""
    found = result(heard(), peak_flops=1e6).measured
    assert found.flops_per_token == MATRICES
    assert found.mfu == pytest.approx(100 * MATRICES / (9.0 * 2 * 1e6))
    assert found.attention_flops_per_token is not None
    assert found.mfu_with_attention == pytest.approx(
        100 * (MATRICES + found.attention_flops_per_token) / (9.0 * 2 * 1e6)
    )


@pytest.mark.parametrize("changed", [{"peak_flops": None}, {"profile": None, "peak_flops": 1e6}])
def test_no_mfu_without_peak_or_profile(changed: dict[str, Any]) -> None:
    """What is not known is null, not zero."""
    assert result(heard(), **changed).measured.mfu is None


def test_no_mfu_off_gpus() -> None:
    """A GPU's peak says nothing about a CPU."""
    assert result(heard(gpus=False), peak_flops=1e6).measured.mfu_with_attention is None


def test_a_quiet_run_is_not_doubted() -> None:
    """Steady steps, a falling loss, everything timed."""
    assert result(heard((1.0, 1.02, 0.99, 1.0))).doubts == []


@pytest.mark.parametrize(
    ("factors", "words"),
    [
        ((1.0, 1.0), "only 2 steps"),
        ((1.0, 1.5, 1.0), "scatter by"),
        ((1.0, 1.0, 1.2, 1.2), "slower"),
        ((1.2, 1.2, 1.0, 1.0), "faster"),
    ],
)
def test_unsteady_steps_are_doubted(factors: tuple[float, ...], words: str) -> None:
    """Too few, too wide, or with a trend."""
    assert words in " ".join(result(heard(factors)).doubts)


def test_a_loss_that_does_not_fall_is_doubted() -> None:
    """On one batch it must."""
    said = heard()
    for step in said.results:
        step["loss"] = 0.5
    assert "did not fall" in " ".join(result(said).doubts)


def test_time_between_phases_is_doubted() -> None:
    """Phases that leave a fifth of the step out are not the step."""
    said = heard()
    for step in said.results:
        step["seconds"] *= 1.25
    assert "between its phases" in " ".join(result(said).doubts)


def test_what_the_trainer_left_out_is_told() -> None:
    """A model with attention sinks was trained without."""
    assert "attention sinks" in " ".join(result(heard(done={"left_out": ["attention sinks"]})).doubts)


def test_recurrent_layers_are_doubted() -> None:
    """Their state is carried on within a pack, and fast kernels may be missing."""
    mamba = Mamba(layers=4, heads=4, head_dim=4, state_size=8, groups=1, conv_kernel=4)
    profile = replace(PROFILE, architecture=replace(SHAPE, attention=None, mamba=mamba))
    assert "recurrent state" in " ".join(result(heard(), profile=profile).doubts)


def test_of_faults_the_first_counts() -> None:
    """Ranks that lose their neighbour fail too, and later."""
    said = heard(failed={"rank": 1, "text": "the cause"})
    said.take({"event": "failed", "rank": 0, "text": "connection closed by peer"})
    assert said.others["failed"]["text"] == "the cause"
