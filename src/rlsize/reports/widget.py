"""The widget of a page: which side of a loop waits for the other, for any cluster, split, rates and price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.reports.sliders import Comparison, Output, Part, Slider, Strip, Widget, rounded
from rlsize.reports.widget_formulas import CONSTANTS, loop_formulas
from rlsize.units import show

if TYPE_CHECKING:
    from rlsize.reports.widget_formulas import Loop

_RANGE = 8.0  # a slider goes from an eighth of its start to eight times as much
_LEAST_TOKENS, _MOST_TOKENS = 128.0, 131072.0
_LEAST_SHARE, _MOST_SHARE = 0.05, 0.95
_MOST_STALENESS = 16.0
_LARGE = 100.0  # a rate whose decimals nobody needs
_NODE = 8.0  # GPUs; clusters grow by nodes where they are made of such nodes
_SIDES = ("rollout", "trainer", "neither, they are balanced")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """
    What the sliders stand at when the page opens, and what they leave as it is.

    Args:
        loop: How the phases of a step follow each other.
        gpus: GPUs of both pools.
        rollout_gpus: GPUs of the rollout fleet, fewer than all of them; not asked for where the loop is colocated.
        response_tokens: Mean response length.
        rollout_gpu_rate: Response tokens per second that one rollout GPU generates, before headroom.
        trainer_gpu_rate: Response tokens per second that one trainer GPU consumes.
        prompts_per_step: Prompts of an optimizer step.
        group_size: Samples of one prompt.
        max_staleness: Staleness cap in optimizer steps.
        gpu_hour: Price of a GPU-hour; None where nobody said, and then nothing is said of cost.
        headroom: Derating of the rollout rate; not changed by a slider.
        tokens_generated_per_trained_token: What is thrown away; not changed by a slider.
        exposed_seconds: Part of a step that neither phase hides: weight sync, overhead, swaps; not changed by a slider.
    """

    loop: Loop = "overlapped"
    gpus: float
    rollout_gpus: float
    response_tokens: float
    rollout_gpu_rate: float
    trainer_gpu_rate: float
    prompts_per_step: float
    group_size: float
    max_staleness: float = 1.0
    gpu_hour: float | None = None
    headroom: float = 1.0
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
    return Widget(
        title="Try other numbers",
        text=_assumed(start),
        sliders=_sliders(start),
        constants={
            "prompts_per_step": start.prompts_per_step,
            "group_size": start.group_size,
            "headroom": start.headroom,
            "tokens_generated_per_trained_token": start.tokens_generated_per_trained_token,
            "exposed_seconds": start.exposed_seconds,
            **CONSTANTS,
        },
        formulas=loop_formulas(start.loop, priced=start.priced),
        outputs=_outputs(start),
        summary=_summary(start),
        strip=_strip(start),
    )


def _assumed(start: Start) -> str:
    how = {
        "overlapped": "both sides work at once",
        "in turn": "the two sides work one after the other",
        "colocated": "all GPUs generate, then all of them train",
    }[start.loop]
    held = [
        f"rollout headroom {show(start.headroom)}" if start.headroom != 1.0 else "",
        f"{show(start.tokens_generated_per_trained_token)} tokens generated per trained token"
        if start.tokens_generated_per_trained_token != 1.0
        else "",
        f"{show(start.exposed_seconds, '_seconds')} of each step that neither phase hides"
        if start.exposed_seconds
        else "",
        f"{show(start.prompts_per_step)} prompts of {show(start.group_size)} samples a step",
    ]
    return (
        f"First order: rates grow linearly with GPUs and do not change with the output length, and {how}. "
        f"Held as in the plan: {', '.join(filter(None, held))}. The plan also counts how unevenly steps go, so its own "
        "step is longer than that of the sliders where both sides are nearly balanced."
    )


def _sliders(start: Start) -> tuple[Slider, ...]:
    node = _NODE if start.gpus % _NODE == 0 else 1.0
    share = start.rollout_gpus / start.gpus
    found = [
        _scale("gpus", "Cluster size", "GPUs", start.gpus, step=node, decimals=0),
        Slider(
            key="rollout_fraction",
            label="Rollout share of the GPUs",
            unit="%",
            least=min(_LEAST_SHARE, share),
            most=max(_MOST_SHARE, share),
            step=0.01,
            start=share,
            factor=100.0,
        ),
        Slider(
            key="response_tokens",
            label="Output tokens of a sample, mean",
            unit="tokens",
            least=min(_LEAST_TOKENS, start.response_tokens),
            most=max(_MOST_TOKENS, start.response_tokens),
            step=1.0,
            start=start.response_tokens,
            log=True,
        ),
        _scale("rollout_gpu_rate", "Rollout rate of a GPU", "tok/s", start.rollout_gpu_rate),
        _scale("trainer_gpu_rate", "Trainer rate of a GPU", "tok/s", start.trainer_gpu_rate),
        Slider(
            key="max_staleness",
            label="Staleness cap",
            unit="steps",
            least=min(1.0, start.max_staleness),
            most=max(_MOST_STALENESS, start.max_staleness),
            step=1.0,
            start=start.max_staleness,
        ),
    ]
    if start.gpu_hour:
        found.append(_scale("gpu_hour", "Price of a GPU-hour", "USD", start.gpu_hour, decimals=2))
    needless = {"overlapped": (), "in turn": ("max_staleness",), "colocated": ("max_staleness", "rollout_fraction")}
    return tuple(slider for slider in found if slider.key not in needless[start.loop])


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


def _outputs(start: Start) -> tuple[Output | Comparison, ...]:
    """What is shown, of what such a loop has."""
    overlapped, priced = start.loop == "overlapped", start.priced
    found: list[Output | Comparison] = [
        Comparison(key="bottleneck", label="Bottleneck", first="rollout_rate", second="trainer_rate", words=_SIDES),
        _rate("rollout", "Rollout pool", "rollout_rate"),
        _rate("trainer", "Trainer pool", "trainer_rate"),
        _rate("loop", "Loop", "loop_rate"),
    ]
    if start.loop != "colocated":
        found += [_gpus("pools", "Split", ""), _gpus("idle", "Idle GPUs", "_idle")]
    if overlapped:
        found.append(_gpus("balanced", "Balanced split", "balanced_"))
    found += [
        Output(key="step", label="Step time", text="{} s", keys=("step_seconds",)),
        Output(key="day", label="Steps in a day", text="{}", keys=("steps_per_day",), decimals=0),
    ]
    if priced:
        found.append(Output(key="cost", label="Cost of a step", text="${}", keys=("cost_per_step",)))
    if overlapped:
        found.append(
            Output(key="queue", label="Samples in flight, at most", text="{}", keys=("in_flight",), decimals=0)
        )
    return tuple(found)


def _rate(key: str, label: str, rate: str) -> Output:
    return Output(key=key, label=label, text="{} tok/s", keys=(rate,), decimals=0)


def _gpus(key: str, label: str, which: str) -> Output:
    """GPUs of both pools: all, those that wait, or those of the balanced split."""
    keys = tuple(
        f"{which}{side}_gpus" if which.endswith("_") else f"{side}{which}_gpus" for side in ("rollout", "trainer")
    )
    return Output(key=key, label=label, text="{} rollout + {} trainer", keys=keys, decimals=1)


def _summary(start: Start) -> str:
    cost = " and costs {cost}" if start.priced else ""
    idle = "" if start.loop == "colocated" else " Idle GPUs: {idle}."
    longer = "Bottleneck" if start.loop == "overlapped" else "Longer phase"
    return f"{longer}: {{bottleneck}}. A step takes {{step}}{cost}.{idle}"


def _strip(start: Start) -> Strip:
    if start.loop == "colocated":
        parts = (
            Part("rollout_seconds", "generation", "rollout"),
            Part("train_seconds", "training", "trainer"),
            Part("exposed_seconds", "neither", "waiting"),
        )
        return Strip(label="A step", parts=parts)
    pools = (
        Part("rollout_gpus", "rollout", "rollout", "rollout_idle_gpus"),
        Part("trainer_gpus", "trainer", "trainer", "trainer_idle_gpus"),
    )
    if start.loop == "in turn":
        return Strip(label="GPUs", parts=pools)
    return Strip(label="GPUs", parts=pools, mark="balanced_rollout_gpus", mark_label="balanced split")
