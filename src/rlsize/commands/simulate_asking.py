"""Quantities and words that only `simulate` asks: their scenario keys, limits and defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.commands import flags
from rlsize.facts.fields import Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.shell.inputs import Inputs


class Number(NamedTuple):
    """A quantity: its dotted key in a scenario, unit and limits, default, and why it is that."""

    scenario: str
    kind: Quantity
    default: float | None
    why: str = "nothing said"


class Word(NamedTuple):
    """A word: its dotted key in a scenario, the words that there are, the first being the default."""

    scenario: str
    known: tuple[str, ...]


_SHARE = Quantity("1", least=0.0, most=1.0)
_CV = Quantity("1", least=0.0, most=20.0)
_WHOLE = Quantity("count", whole=True)
_WHOLE_OR_NONE = Quantity("count", least=0.0, whole=True)
_RATE = Quantity("count", least=0.0, most=3600.0)
_OFF = (0.0, 1.0)  # defaults that leave something out
_STEP_PART = Quantity("s", least=0.0)

NUMBERS: dict[str, Number] = {
    "response_cv": Number("workload.response_tokens.cv", _CV, 1.0, "lengths as uneven as an exponential's"),
    "max_response_tokens": Number("workload.response_tokens.max", Quantity("token", least=1.0), None),
    "group_correlation": Number("workload.response_tokens.group_correlation", _SHARE, 0.0, "lengths are independent"),
    "length_drift": Number(
        "workload.response_tokens.drift", Quantity("1", least=-0.99, most=100.0), 0.0, "lengths do not grow"
    ),
    "prompt_tokens": Number("workload.prompt_tokens", Quantity("token", least=0.0), 0.0, "prompts cost nothing"),
    "max_staleness": Number("placement.max_staleness", flags.STALENESS, None),
    "queue_steps": Number("policies.queue_steps", flags.POSITIVE, None),
    "oversampling": Number("policies.oversampling", Quantity("1", least=1.0, most=100.0), 1.0, "no over-sampling"),
    "kept_fraction": Number("policies.kept_fraction", Quantity("1", least=0.01, most=1.0), 1.0, "no group is filtered"),
    "micro_batches": Number("policies.micro_batches", _WHOLE, 1.0, "the batch is trained as a whole"),
    "concurrency": Number("rollout.concurrency", _WHOLE, None),
    "step_fixed": Number("rollout.step_time.fixed", _STEP_PART, None),
    "step_sample": Number("rollout.step_time.sample", _STEP_PART, 0.0, "samples add nothing"),
    "step_kv_token": Number("rollout.step_time.kv_token", _STEP_PART, 0.0, "the cache adds nothing"),
    "step_prompt_token": Number("rollout.step_time.prompt_token", _STEP_PART, 0.0, "prompts add nothing"),
    "kv_cache_tokens": Number("rollout.kv_cache_tokens", Quantity("token"), None),
    "sync_every": Number("weight_sync.every", _WHOLE, 1.0, "after each step"),
    "swap_seconds": Number("weight_sync.swap_seconds", flags.SECONDS_OR_NONE, 0.0, "changing over takes no time"),
    "turns": Number("agents.turns", _WHOLE, 1.0, "one turn"),
    "tool_seconds": Number("agents.tool_seconds", flags.SECONDS_OR_NONE, 0.0, "no tools"),
    "tool_cv": Number("agents.tool_cv", _CV, 0.0, "always as long"),
    "tool_tokens": Number("agents.tool_tokens", Quantity("token", least=0.0, whole=True), 0.0, "no tools"),
    "verify_seconds": Number("agents.verify_seconds", flags.SECONDS_OR_NONE, 0.0, "scoring takes no time"),
    "verify_cv": Number("agents.verify_cv", _CV, 0.0, "always as long"),
    "verify_workers": Number("agents.verify_workers", _WHOLE, None),
    "straggler_fraction": Number("trouble.straggler_fraction", _SHARE, 0.0, "no stragglers"),
    "straggler_slowdown": Number(
        "trouble.straggler_slowdown", Quantity("1", least=1.0, most=1000.0), 1.0, "no stragglers"
    ),
    "losses_per_hour": Number("trouble.losses_per_hour", _RATE, 0.0, "no instance is lost"),
    "notice_seconds": Number("trouble.notice_seconds", flags.SECONDS_OR_NONE, 0.0, "no notice"),
    "restart_seconds": Number("trouble.restart_seconds", flags.SECONDS_OR_NONE, 0.0, "back at once"),
    "failures_per_hour": Number("trouble.failures_per_hour", _RATE, 0.0, "the trainer does not fail"),
    "trainer_restart_seconds": Number("trouble.trainer_restart_seconds", flags.SECONDS_OR_NONE, 0.0, "back at once"),
    "checkpoint_every": Number("trouble.checkpoint_every", _WHOLE, 1.0, "after each step"),
    "lent_instances": Number("trouble.lent_instances", _WHOLE_OR_NONE, 0.0, "the trainer lends nothing"),
    "lend_seconds": Number("trouble.lend_seconds", flags.SECONDS_OR_NONE, 0.0, "changing over takes no time"),
}

WORDS: dict[str, Word] = {
    "length_distribution": Word(
        "workload.response_tokens.distribution", ("lognormal", "gamma", "constant", "empirical")
    ),
    "routing": Word("rollout.routing", ("affine", "random", "round-robin", "queue")),
    "over_stale": Word("policies.over_stale", ("keep", "drop")),
    "queue_order": Word("policies.queue_order", ("completion", "admission", "freshest")),
    "unfinished": Word("policies.unfinished", ("drop", "keep")),
    "sync_way": Word("weight_sync.way", ("in-flight", "drain", "abort")),
    "kv_after_sync": Word("weight_sync.kv", ("recomputed", "kept")),
}


_SHOWN = frozenset({"routing", "sync_way"})  # words whose default is worth telling


class Asked:
    """
    Asks for quantities and words by name.

    Args:
        inputs: Scenario, and what was asked so far.
        said: What the flags say, by name.
    """

    def __init__(self, inputs: Inputs, said: Mapping[str, Any]) -> None:
        self.inputs, self.said = inputs, said

    def number(self, name: str) -> float:
        """A quantity that has a default."""
        return self.optional(name) or 0.0

    def optional(self, name: str) -> float | None:
        """A quantity; None where nobody says it and it has no default."""
        entry = NUMBERS[name]
        figure = self.inputs.number(
            name,
            f"--{name.replace('_', '-')}",
            self.said.get(name),
            entry.kind,
            scenario=entry.scenario,
            default=entry.default,
            why=entry.why,
        )
        if figure.provenance == "default" and entry.default in _OFF and name != "response_cv":
            self.inputs.used.pop(name, None)  # what is left out is no input
        return figure.number if figure.known else entry.default

    def whole(self, name: str) -> int:
        """A whole number that has a default."""
        return round(self.number(name))

    def whole_or_none(self, name: str) -> int | None:
        """A whole number, if somebody says it."""
        found = self.optional(name)
        return None if found is None else round(found)

    def stated(self, name: str) -> bool:
        """Whether somebody says a quantity."""
        return self.said.get(name) is not None or self.inputs.said(NUMBERS[name].scenario) is not None

    def word(self, name: str) -> str:
        """One of a few words; the first where nobody says."""
        entry = WORDS[name]
        found = (
            self.inputs.word(
                name,
                f"--{name.replace('_', '-')}",
                self.said.get(name),
                list(entry.known),
                scenario=entry.scenario,
                default=entry.known[0],
            )
            or entry.known[0]
        )
        if name not in _SHOWN and not self.said.get(name) and self.inputs.said(entry.scenario) is None:
            self.inputs.used.pop(name, None)
        return found
