"""The widget of a page: which side of a loop waits for the other, for any cluster, split, rates and price."""

from __future__ import annotations

from dataclasses import dataclass, replace
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rlsize.equations import iteration, loop_time, matching, money, rl_step
from rlsize.reports.sliders import Comparison, Formula, Output, Slider, Strip, StripPart, Widget, rounded
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Phases: TypeAlias = Literal["overlapped", "in turn", "colocated"]
"""How the phases of a step follow each other: both at once, one after the other, or so on the same GPUs."""
CONSTANTS = {"one_gpu": 1.0, "no_gpus": 0.0}
"""What formulas need beside sliders and what a plan holds."""
_RANGE = 8.0  # a slider goes from an eighth of its start to eight times as much
_LEAST_TOKENS, _MOST_TOKENS = 128.0, 131072.0
_LEAST_SHARE, _MOST_SHARE = 0.05, 0.95
_MOST_STALENESS = 16.0
_LARGE = 100.0  # a rate whose decimals nobody needs
_NODE = 8.0  # GPUs; clusters grow by nodes where they are made of such nodes
_SIDES = ("rollout", "trainer", "neither, they are balanced")
_POOLS = (
    StripPart("rollout_gpus", "rollout", "rollout", "rollout_idle_gpus"),
    StripPart("trainer_gpus", "trainer", "trainer", "trainer_idle_gpus"),
)
_TURNS = (
    StripPart("rollout_seconds", "generation", "rollout"),
    StripPart("train_seconds", "training", "trainer"),
    StripPart("exposed_seconds", "neither", "waiting"),
)
_STRIPS: dict[Phases, Strip] = {
    "overlapped": Strip(label="GPUs", parts=_POOLS, mark="balanced_rollout_gpus", mark_label="balanced split"),
    "in turn": Strip(label="GPUs", parts=_POOLS),
    "colocated": Strip(label="A step", parts=_TURNS),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """
    What the sliders stand at when the page opens, and what they leave as it is.

    Args:
        loop: How the phases of a step follow each other.
        gpus: GPUs of both pools.
        rollout_gpus: GPUs of the rollout fleet, fewer than all of them; not asked for where the loop is colocated.
        response_tokens: Mean response length.
        rollout_gpu_rate: Response tokens per second that one rollout GPU generates.
        trainer_gpu_rate: Response tokens per second that one trainer GPU consumes.
        prompts_per_step: Prompts of an optimizer step.
        group_size: Samples of one prompt.
        max_staleness: Staleness cap in optimizer steps.
        gpu_hour: Price of a GPU-hour; None where nobody said, and then nothing is said of cost.
        tokens_generated_per_trained_token: What is thrown away; not changed by a slider.
        exposed_seconds: Part of a step that neither phase hides: weight sync, overhead, swaps; not changed by a slider.
    """

    loop: Phases = "overlapped"
    gpus: float
    rollout_gpus: float
    response_tokens: float
    rollout_gpu_rate: float
    trainer_gpu_rate: float
    prompts_per_step: float
    group_size: float
    max_staleness: float = 1.0
    gpu_hour: float | None = None
    tokens_generated_per_trained_token: float = 1.0
    exposed_seconds: float = 0.0

    @property
    def priced(self) -> bool:
        """Whether there is a price to work out costs with."""
        return bool(self.gpu_hour)


def lesson_widget(start: Start) -> Widget:
    """
    The sliders of cluster, split, output length, rates, staleness and price, and what follows from them to first order.

    Args:
        start: What they stand at when the page opens; every rate, length and number of GPUs is above zero.
    """
    cost = " and costs {cost}" if start.priced else ""
    idle = "" if start.loop == "colocated" else " Idle GPUs: {idle}."
    longer = "Bottleneck" if start.loop == "overlapped" else "Longer phase"
    return Widget(
        title="Try other numbers",
        text=_assumed(start),
        sliders=tuple(_sliders(start)),
        constants={
            "prompts_per_step": start.prompts_per_step,
            "group_size": start.group_size,
            "headroom": 1.0,  # rates are those of the loop as it runs
            "tokens_generated_per_trained_token": start.tokens_generated_per_trained_token,
            "exposed_seconds": start.exposed_seconds,
            **CONSTANTS,
        },
        formulas=loop_formulas(start.loop, priced=start.priced),
        outputs=tuple(_outputs(start)),
        summary=f"{longer}: {{bottleneck}}. A step takes {{step}}{cost}.{idle}",
        strip=_STRIPS[start.loop],
    )


def _assumed(start: Start) -> str:
    how = {
        "overlapped": "both sides work at once",
        "in turn": "the two sides work one after the other",
        "colocated": "all GPUs generate, then all of them train",
    }[start.loop]
    held = [f"{show(start.prompts_per_step)} prompts of {show(start.group_size)} samples a step"]
    if start.exposed_seconds:
        held.insert(0, f"{show(start.exposed_seconds, '_seconds')} of each step that neither phase hides")
    if start.tokens_generated_per_trained_token != 1.0:
        held.insert(0, f"{show(start.tokens_generated_per_trained_token)} tokens generated per trained token")
    return (
        f"First order: rates grow linearly with GPUs and do not change with the output length, and {how}. "
        f"Held as in the plan: {', '.join(held)}. The plan also counts how unevenly steps go, so its own "
        "step is longer than that of the sliders where both sides are nearly balanced."
    )


def _sliders(start: Start) -> Iterator[Slider]:
    yield _scale("gpus", "Cluster size", "GPUs", start.gpus, step=_NODE if start.gpus % _NODE == 0 else 1.0, decimals=0)
    if start.loop != "colocated":
        share = start.rollout_gpus / start.gpus
        shares = _around("rollout_fraction", "Rollout share of the GPUs", "%", share, (_LEAST_SHARE, _MOST_SHARE))
        yield replace(shares, step=0.01, factor=100.0)
    range_ = _LEAST_TOKENS, _MOST_TOKENS
    tokens = _around("response_tokens", "Output tokens of a sample, mean", "tokens", start.response_tokens, range_)
    yield replace(tokens, log=True)
    yield _scale("rollout_gpu_rate", "Rollout rate of a GPU", "tok/s", start.rollout_gpu_rate)
    yield _scale("trainer_gpu_rate", "Trainer rate of a GPU", "tok/s", start.trainer_gpu_rate)
    if start.loop == "overlapped":
        yield _around("max_staleness", "Staleness cap", "steps", start.max_staleness, (1.0, _MOST_STALENESS))
    if start.gpu_hour:
        yield _scale("gpu_hour", "Price of a GPU-hour", "USD", start.gpu_hour, decimals=2)


def _around(key: str, label: str, unit: str, start: float, ends: tuple[float, float]) -> Slider:
    """A slider between two ends, or from its start where that lies outside."""
    least, most = min(ends[0], start), max(ends[1], start)
    return Slider(key=key, label=label, unit=unit, least=least, most=most, step=1.0, start=start)


def _scale(key: str, label: str, unit: str, start: float, step: float = 0.0, decimals: int | None = None) -> Slider:
    """A slider of some percent at a time around its start."""
    least, most = start / _RANGE, start * _RANGE
    if decimals is None:
        decimals = 0 if start >= _LARGE else 2
    return Slider(
        key=key,
        label=label,
        unit=unit,
        least=max(round(least / step) * step, step) if step else rounded(least),
        most=most if step else rounded(most),
        step=step,
        start=start,
        log=True,
        decimals=decimals,
    )


def _outputs(start: Start) -> Iterator[Output | Comparison]:
    """What is shown, of what such a loop has."""
    yield Comparison(key="bottleneck", label="Bottleneck", first="rollout_rate", second="trainer_rate", words=_SIDES)
    for pool, label in (("rollout", "Rollout pool"), ("trainer", "Trainer pool"), ("loop", "Loop")):
        yield Output(key=pool, label=label, text="{} tok/s", keys=(f"{pool}_rate",), decimals=0)
    if start.loop != "colocated":
        yield _gpus("pools", "Split", ("rollout_gpus", "trainer_gpus"))
        yield _gpus("idle", "Idle GPUs", ("rollout_idle_gpus", "trainer_idle_gpus"))
    if start.loop == "overlapped":
        yield _gpus("balanced", "Balanced split", ("balanced_rollout_gpus", "balanced_trainer_gpus"))
    yield Output(key="step", label="Step time", text="{} s", keys=("step_seconds",))
    yield Output(key="day", label="Steps in a day", text="{}", keys=("steps_per_day",), decimals=0)
    if start.priced:
        yield Output(key="cost", label="Cost of a step", text="${}", keys=("cost_per_step",))
    if start.loop == "overlapped":
        yield Output(key="queue", label="Samples in flight, at most", text="{}", keys=("in_flight",), decimals=0)


def _gpus(key: str, label: str, keys: tuple[str, str]) -> Output:
    """GPUs of both pools."""
    return Output(key=key, label=label, text="{} rollout + {} trainer", keys=keys, decimals=1)


def _formula(key: str, equation: Callable[..., Any], **renamed: str) -> Formula:
    """A formula whose arguments are called like what goes into them, but for some."""
    inputs = {name: renamed.get(name, name) for name in signature(equation).parameters}
    return Formula(key=key, equation=equation, inputs=inputs)


_STEP = {"iteration_seconds": "step_seconds"}
_IDLE = (  # GPUs of each pool that wait, on average over a step
    _formula("rollout_idle_fraction", loop_time.waiting_fraction, busy_seconds="rollout_seconds", **_STEP),
    _formula("trainer_idle_fraction", loop_time.waiting_fraction, busy_seconds="train_seconds", **_STEP),
    _formula("rollout_idle_gpus", matching.idle_gpus, gpus="rollout_gpus", idle_fraction="rollout_idle_fraction"),
    _formula("trainer_idle_gpus", matching.idle_gpus, gpus="trainer_gpus", idle_fraction="trainer_idle_fraction"),
    _formula("idle_gpus", rl_step.gpus_of_both, rollout_gpus="rollout_idle_gpus", trainer_gpus="trainer_idle_gpus"),
)
_TRAINED_RATE = _formula(  # what one rollout GPU feeds the trainer with
    "rollout_trained_rate", matching.trained_token_supply, gpus="one_gpu", gpu_rate="rollout_gpu_rate"
)
_SWAPPED = {"throughput": "full_rate", "swap_seconds": "exposed_seconds"}
_LOOP_RATE = _formula("loop_rate", matching.throughput_with_swap, **_SWAPPED)
_POOL_SIZES = (
    _formula("rollout_gpus", matching.pool_gpus, fraction="rollout_fraction"),
    _formula("trainer_gpus", matching.remaining_gpus),
)
_STEPS: dict[Phases, tuple[Formula, ...]] = {
    "overlapped": (
        _formula("full_rate", matching.loop_throughput),
        _LOOP_RATE,
        _formula("step_seconds", iteration.overlapped_iteration_time, exposed_sync_seconds="exposed_seconds"),
        *_IDLE,
        _TRAINED_RATE,
        _formula("balanced_rollout_gpus", matching.balanced_rollout_gpus, rollout_gpu_rate="rollout_trained_rate"),
        _formula("balanced_trainer_gpus", matching.remaining_gpus, rollout_gpus="balanced_rollout_gpus"),
        _formula("in_flight", rl_step.allowed_in_flight),
    ),
    "in turn": (
        _formula("step_seconds", iteration.synchronous_iteration_time, exposed_sync_seconds="exposed_seconds"),
        *_IDLE,
        _formula("goodput", money.goodput),
        _formula("loop_rate", matching.pool_rate, gpu_rate="goodput"),
    ),
    "colocated": (
        _TRAINED_RATE,
        _formula("full_rate", matching.colocated_throughput, rollout_gpu_rate="rollout_trained_rate"),
        _LOOP_RATE,
        _formula("step_seconds", iteration.colocated_iteration_time, swap_seconds="exposed_seconds"),
    ),
}


def loop_formulas(loop: Phases, priced: bool) -> tuple[Formula, ...]:
    """
    What follows from a loop's sliders, in the order in which it is worked out.

    Args:
        loop: How its phases follow each other.
        priced: Whether there is a price.
    """
    together = loop == "colocated"
    rollout, trainer = ("gpus", "gpus") if together else ("rollout_gpus", "trainer_gpus")
    paid = {"rollout_gpus": rollout, "trainer_gpus": "no_gpus" if together else trainer}
    prices = {"rollout_gpu_hour": "gpu_hour", "trainer_gpu_hour": "gpu_hour"}
    return (
        *(() if together else _POOL_SIZES),
        _formula("tokens_per_step", matching.tokens_per_step, prompts="prompts_per_step"),
        _formula("samples_per_step", matching.samples_per_step, prompts="prompts_per_step"),
        _formula("rollout_rate", matching.trained_token_supply, gpus=rollout, gpu_rate="rollout_gpu_rate"),
        _formula("trainer_rate", matching.pool_rate, gpus=trainer, gpu_rate="trainer_gpu_rate"),
        _formula("completions_per_second", loop_time.completions_from_tokens, supply="rollout_rate"),
        _formula("rollout_seconds", iteration.rollout_seconds),
        _formula("train_seconds", matching.train_time, consumption="trainer_rate"),
        *_STEPS[loop],
        _formula("steps_per_day", iteration.iterations_per_day, iteration_seconds="step_seconds"),
        *((_formula("cost_per_step", money.cost_per_step, **paid, **prices),) if priced else ()),
    )
