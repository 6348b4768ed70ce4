"""What an answer had to assume, and how much longer it would be if that were otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.equations import rl_step
from rlsize.errors import InputError, Refused
from rlsize.loop.resolve import resolve
from rlsize.planner.evaluation import worked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rlsize.facts.figure import Figure, Value
    from rlsize.loop.resolve import Loop
    from rlsize.loop.said import Said

MATTERS = 1.05
"""Times longer or shorter from which an assumption belongs into the answer."""
_ELSE: Mapping[str, Callable[[float], float]] = {  # what a number could be as well as the one that was taken
    "response_tokens": lambda taken: taken / 2,
    "samples_per_step": lambda taken: taken / 4,
    "response_cv": lambda taken: 0.3 if taken > 0.65 else 1.0,  # noqa: PLR2004 (the middle of both)
    "prompt_tokens": lambda taken: 2 * taken,
    "memory_fraction": lambda taken: 0.9 if taken < 0.75 else 0.5,  # noqa: PLR2004 (the ends of what is usual)
    "rollout_tensor_parallel": lambda taken: 2 * taken,
    "max_staleness": lambda taken: 4 * taken,
    "micro_batch_tokens": lambda taken: taken / 2,
    "tokens_generated_per_trained_token": lambda _: 1.2,
    "updates": lambda taken: 2 * taken,
    "sync_every": lambda taken: 2 * taken,
    "draft_acceptance": lambda taken: taken / 2,
    "headroom": lambda taken: 0.6 if taken > 0.75 else 0.9,  # noqa: PLR2004 (likewise)
}
_WORDS: Mapping[str, Mapping[str, str]] = {
    "mode": {"async": "one-step-off", "one-step-off": "async"},
    "engine": {"vllm": "sglang", "sglang": "vllm"},
    "kv_dtype": {"bf16": "fp8"},
    "routing": {"affine": "round-robin"},
    "rollout_dtype": {"bf16": "fp8"},
    "recompute": {"full": "selective", "selective": "full"},
    "transport": {"nccl-broadcast": "disk"},
}
_SIZE = "rollout_tensor_parallel"
_CAP = 4.0  # mean lengths: a tight cap
_SIDES = ("rollout_gpus", "trainer_gpus", "instances")
_PASSES = "logprob_passes"
_BOTH_PASSES = ("old_logprob", "reference")


class Assumption(NamedTuple):
    """
    An input that nobody gave.

    Args:
        key: The input.
        flag: How it is said.
        taken: What was taken.
        instead: What it could be as well.
        times: How many times longer the step would be. [1]
    """

    key: str
    flag: str
    taken: str
    instead: str
    times: float

    @property
    def effect(self) -> float:
        """How many times longer or shorter."""
        return max(self.times, 1 / self.times) if self.times > 0 else float("inf")

    @property
    def told(self) -> str:
        """It in a few words."""
        return f"{self.flag} {self.taken} ({self.instead}: x {self.times:.2f})"


def step_of(said: Said) -> float:
    """
    Seconds of a step of the loop that is said, in central numbers.

    Raises:
        Refused: It cannot run.
    """
    loop = resolve(said)
    if loop.place is None:
        raise Refused(loop.refused)
    return float(worked(loop.outlook.central, loop.place)["step_seconds"])


def assumptions(
    said: Said,
    loop: Loop | None = None,
    *,
    least: float = MATTERS,
    answer: Callable[[Said], float] = step_of,
) -> tuple[Assumption, ...] | None:
    """
    The inputs that nobody gave and that move an answer, those that move it most first.

    Args:
        said: What was said and used.
        loop: The loop that was made of it; None where there is none, and inputs without a default are left out.
        least: Times longer or shorter from which one is told.
        answer: The answer, a positive number; seconds of a step where nothing else is said.

    Returns:
        None where there is no such answer.
    """
    chosen = said.used.get(_SIZE)  # by a rule, which would choose anew: all else is as it was taken
    pinned: dict[str, Value] = {} if chosen is None or said.gives(_SIZE) else {_SIZE: chosen.value}
    try:
        usual = answer(said.instead(**pinned))
    except (InputError, Refused):
        return None
    found = []
    for key, taken, instead, values in (*_defaults(said, loop), *(() if loop is None else _unsaid(said, loop))):
        try:
            other = answer(said.instead(**{**pinned, **values}))
        except (InputError, Refused):
            continue
        times = float(rl_step.times_longer(step_seconds=other, least_seconds=usual))
        found.append(
            Assumption(key, said.way(*(_BOTH_PASSES[:1] if key == _PASSES else ()), key), taken, instead, times)
        )
    return tuple(sorted((one for one in found if one.effect >= least), key=lambda one: one.effect, reverse=True))


def _defaults(said: Said, loop: Loop | None) -> Iterator[tuple[str, str, str, dict[str, Value]]]:
    """Defaults that were used: key, what was taken, what it could be as well, and how that is said."""
    for key in (key for key in (*_ELSE, *_WORDS) if _assumed(said, key)):
        value = said.used[key].value
        instead: Any = _ELSE[key](said.used[key].number) if key in _ELSE else _WORDS[key].get(str(value))
        if instead is None or (instead == "fp8" and not _has_fp8(loop)):
            continue
        yield key, _plain(said.used[key].number) if key in _ELSE else str(value), _plain(instead), {key: instead}


def _assumed(said: Said, key: str) -> bool:
    """Whether a quantity was used that nobody said."""
    figure: Figure | None = said.used.get(key)
    return figure is not None and figure.provenance == "default" and not said.gives(key)


def _has_fp8(loop: Loop | None) -> bool:
    """Whether the GPUs of the fleet compute in 8 bits."""
    if loop is None or loop.stages is None:
        return False
    engine = loop.stages.engines[loop.pools.shared]
    return not isinstance(engine, str) and engine.question.gpu.specification.fp8_dense is not None


def _plain(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:,.6g}"


def _unsaid(said: Said, loop: Loop) -> Iterator[tuple[str, str, str, dict[str, Value]]]:
    """What nobody said and what has no default among the inputs: a cap on lengths, and how the trainer works."""
    cap = _CAP * loop.problem.response_tokens.number
    if not said.gives("max_response_tokens"):
        yield "max_response_tokens", "none", f"{cap:,.0f}", {"max_response_tokens": cap}
    place = loop.place
    asked = None if place is None else place.trainer.question
    if place is None or asked is None:
        return
    if not place.shared and not any(map(said.gives, _SIDES)):
        moved = place.fleet.gpus * max(1.0, place.instances // 4)
        rollout, trainer = place.rollout_gpus - moved, place.trainer_gpus + moved
        if rollout > 0:
            split = f"{place.rollout_gpus:g} of {place.gpus:g}"
            yield "rollout_gpus", split, f"{rollout:g}", {"rollout_gpus": rollout, "trainer_gpus": trainer}
    if not any(map(said.gives, (*_BOTH_PASSES, _PASSES))):
        taken = " and ".join(name.replace("_", " ") for name in asked.passes) or "none"
        other = "none" if asked.passes else "old and reference"
        yield _PASSES, taken, other, dict.fromkeys(_BOTH_PASSES, not asked.passes)
    if not asked.offload and not said.gives("offload"):
        yield "offload", "no", "yes", {"offload": True}
    if not (asked.fused_layers or asked.own_attention or said.gives("compiled") or said.gives("native_attention")):
        yield "compiled", "no", "yes", {"compiled": True, "native_attention": True}
