"""How long one iteration takes, laid out in time as sync, overlapped or colocated; who waits, and what it takes."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rlsize.equations import iteration
from rlsize.estimates.figures import apply, rounded, total, with_bands
from rlsize.estimates.flow import Flow
from rlsize.facts.figure import Figure, absent
from rlsize.frozen import dataclass
from rlsize.planner.rounding import rounded_up
from rlsize.rules.phases import COLOCATED, OVERLAPPED, SYNC, laid_out, rollout

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from rlsize.estimates.figures import Draw

Source: TypeAlias = Literal["said", "groups", "rate"]

HOW: Mapping[str, str] = MappingProxyType(
    {
        SYNC: "rollout, training and weight sync, one after the other",
        OVERLAPPED: "the longer of rollout and training, then the weight sync",
        COLOCATED: "rollout and training in turn on all GPUs, and two change-overs",
    }
)
"""How each mode adds its phases up."""

NOTHING_THROWN_AWAY = Figure(
    key="tokens_generated_per_trained_token", value=1.0, provenance="default", source="nothing is thrown away"
)
_POOLS = ("rollout_gpus", "trainer_gpus")
_NO_POOLS = "pools of their own (colocated phases share the GPUs)"
_TOLD = (
    "completions_per_second", "rollout_seconds", "iteration_seconds", "iterations_per_day", "rollout_fraction",
    "rollout_idle_fraction", "trainer_idle_fraction", "speedup_from_doubling_rollout", "speedup_from_doubling_trainer",
)  # fmt: skip
_OF_A_ROW = ("iteration_seconds", "iterations_per_day", "rollout_idle_fraction", "trainer_idle_fraction")


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationQuestion:
    """
    What is known about the phases of an iteration.

    Args:
        mode: One of `HOW`.
        source: Whether the rollout time was said, follows from groups, or from a token rate.
        known: By key: `train_seconds`, `sync_seconds` (what of it nothing hides) and `samples_per_step`; of a rollout
            time that was said `rollout_seconds`, of groups `instances`, `group_size` and `group_seconds`, of a rate
            `instances`, `instance_tokens_per_second`, `headroom` and `response_tokens`; as far as they are known
            `tokens_generated_per_trained_token`, `swap_seconds` (both ways), `verify_seconds` (of one worker and
            sample), `rollout_gpus` and `trainer_gpus`.
    """

    mode: str
    source: Source
    known: Mapping[str, Figure]

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Nameplate, and expected where headroom derates a token rate."""
        return ("", "expected_") if self.source == "rate" else ("",)

    def flow(self, prefix: str = "", mode: str = "") -> Flow:
        """
        What follows in a mode; in that of the question unless another one is named.

        Where the pools' sizes are known, the times are the pools' own, and a colocated loop runs both phases on all
        GPUs. Where they are not, they are those of the mode that was asked for, and tell nothing about the other kind.
        """
        mode = mode or self.mode
        generation = rollout(self.source, prefix)
        flow, keys = Flow(generation, self.known), (f"{prefix}rollout_seconds", "train_seconds")
        phases, pools = [flow[key] for key in keys], [flow[pool] for pool in _POOLS]
        lacking = [pool.missing for pool in pools if not pool.known]
        if lacking and (mode == COLOCATED) != (self.mode == COLOCATED):
            phases = [absent(key, ", ".join(lacking)) for key in ("rollout_seconds", "train_seconds")]
        elif mode == COLOCATED and not lacking:
            gpus = total("gpus", pools)
            phases = [
                apply(key, iteration.phase_time_on, phase_seconds=seconds, pool_gpus=pool, gpus=gpus)
                for key, seconds, pool in zip(keys, phases, pools, strict=True)
            ]
        on_its_gpus = dict(zip(("rollout_phase_seconds", "train_phase_seconds"), phases, strict=True))
        return Flow((*generation, *laid_out(mode, prefix)), {**self.known, **on_its_gpus})


def plan_iteration(question: IterationQuestion, random: Random | tuple[Draw, ...] | None = None) -> tuple[Figure, ...]:
    """
    How long one iteration takes, what doubling a pool would bring, and how many verifiers keep up with it.

    Args:
        question: What is known.
        random: Generator for the bands of uncertain inputs; None for central values only.
    """
    return with_bands(_results(question), random)


def _results(question: IterationQuestion) -> list[Figure]:
    flows = {prefix: question.flow(prefix) for prefix in question.prefixes}
    shared = question.mode == COLOCATED
    figures = [
        absent(f"{prefix}{key}", _NO_POOLS) if shared and "doubling" in key else flow[f"{prefix}{key}"]
        for prefix, flow in flows.items()
        for key in _TOLD
    ]
    figures.append(break_even_swap(question))
    if flows[""]["verify_seconds"].known:
        for prefix, flow in flows.items():
            exact = flow[f"{prefix}verifier_workers"]
            figures.append(rounded(exact, exact.key, rounded_up))
    return figures


def break_even_swap(question: IterationQuestion) -> Figure:
    """The change-over time, both ways together, below which colocation beats the overlapped loop on as many GPUs."""
    prefix = question.prefixes[-1]
    shared = question.flow(prefix, COLOCATED)
    return apply(
        "break_even_swap_seconds",
        iteration.break_even_swap_time,
        overlapped_seconds=question.flow(prefix, OVERLAPPED)[f"{prefix}iteration_seconds"],
        rollout_seconds=shared["rollout_phase_seconds"],
        train_seconds=shared["train_phase_seconds"],
    )


def mode_rows(question: IterationQuestion) -> tuple[dict[str, Any], ...]:
    """One row for each mode: seconds, iterations per day, who waits; and what a row lacks."""
    rows = []
    for mode, rule in HOW.items():
        row: dict[str, Any] = {"mode": mode}
        for prefix in question.prefixes:
            flow = question.flow(prefix, mode)
            row |= {key: flow[key] for key in (f"{prefix}{one}" for one in _OF_A_ROW)}
            row[f"{prefix}rollout_seconds"] = flow["rollout_phase_seconds"]
            row[f"{prefix}train_seconds"] = flow["train_phase_seconds"]
        rows.append(row | {"rule": rule, "needs": row["iteration_seconds"].missing})
    return tuple(rows)
