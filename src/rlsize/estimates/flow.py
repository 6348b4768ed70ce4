"""
One evaluator: what a quantity is, from what is known of others and the rules that lead from these to it.

A rule says "result <- equation(quantities)"; rules of one result are rivals, in order. A quantity is what was said or
measured, else what the first rule gives whose quantities are known, else a figure that names what is missing. The same
rules work on figures that explain themselves, on bare numbers, and on joint draws.

A quantity that stands several times, of several things, names its thing before a slash: `head/flops_per_token` is told
as `flops_per_token`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.estimates.figures import added, apply, figures_in, numbers
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rlsize.estimates.figures import Worked

    Work = Callable[..., Any]
    Rules = Mapping[str, "Sequence[Rule]"]

_ASKED = frozenset((str, tuple, Figure, type(None)))  # may have to be worked out; most is a number or an array

KEYS = {
    "age_seconds": "oldest_sample_age_seconds",
    "backlog": "backlog_tokens",
    "consumption": "consumption_tokens_per_second",
    "cost_per_step": "cost_per_step_usd",
    "growth": "backlog_tokens_per_second",
    "in_flight": "in_flight_samples",
    "instance_rate": "instance_tokens_per_second",
    "queue_samples": "queue_allowed_samples",
    "required_supply": "required_tokens_per_second",
    "rollout_gpu_hour": "rollout_gpu_hour_usd",
    "rollout_gpu_rate": "rollout_gpu_tokens_per_second",
    "rollout_rate": "rollout_tokens_per_second",
    "seconds_per_step": "train_seconds",
    "supply": "supply_tokens_per_second",
    "throughput": "colocated_before_swap_tokens_per_second",
    "tokens_per_step": "batch_tokens",
    "trainer_gpu_hour": "trainer_gpu_hour_usd",
    "trainer_gpu_rate": "trainer_gpu_tokens_per_second",
    "trainer_rate": "trainer_tokens_per_second",
}
"""Quantities that arguments of equations, and fields of questions, have shorter names for; the others are their own."""


class Rule(NamedTuple):
    """
    How a quantity follows from others.

    Args:
        result: Its key.
        told: The key that it is told by.
        equation: A function of `rlsize.equations`.
        takes: The quantity of each argument, by key; a number where it is fixed.
    """

    result: str
    told: str
    equation: Callable[..., Any]
    takes: Mapping[str, str | float]


def rule(result: str, equation: Callable[..., Any], /, **takes: str | float) -> Rule:
    """
    A rule.

    Args:
        result: The key of the quantity.
        equation: What gives it.
        takes: The quantity of an argument, or the number that is fixed, where it is not the one of `KEYS`. They are
            told in the equation's order, or as they stand here where all are said.
    """
    code = equation.__code__
    all_of_them = {name: KEYS.get(name, name) for name in code.co_varnames[: code.co_argcount]} | takes
    return Rule(result, _told(result), equation, takes if len(takes) == len(all_of_them) else all_of_them)


def by_result(rules: Iterable[Rule]) -> Rules:
    """Rules by what they give, rivals in order; for a `Flow` that is made often."""
    found: dict[str, list[Rule]] = {}
    for one in rules:
        found.setdefault(one.result, []).append(one)
    return found


class Flow(dict[str, "Worked"]):
    """
    Quantities by key, each worked out once, when it is asked for; what is missing for it where it cannot be known.

    A dictionary of those that are known by now: most of what a plan spends its time on is asking for these.

    Args:
        rules: How they follow from each other; rivals of one result in order, or as `by_result` has them.
        known: What was said or measured, by key; a figure without a value says what would give it. What the caller
            decided, too: a key where it is that quantity, a tuple of keys where it is the sum of these.
        work: `apply` for figures, `numbers` for numbers and arrays; what is missing is None there.
    """

    def __init__(self, rules: Iterable[Rule] | Rules, known: Mapping[str, Any], work: Work = apply) -> None:
        super().__init__(known)
        self.rules: Rules = rules if isinstance(rules, Mapping) else by_result(rules)
        self.work = work
        asked = [key for key, value in known.items() if type(value) in _ASKED]
        self.asked = {key: self.pop(key) for key in asked if not _is_known(self[key])}

    def __missing__(self, key: str) -> Worked:
        value: Any = self.asked.get(key)
        if isinstance(value, str):
            value = self[value]
        elif isinstance(value, tuple):
            value = added(self.work, _told(key), [self[part] for part in value])
        else:
            value = self._followed(key, value)
        self[key] = value
        return value

    def _followed(self, key: str, said: Worked | None) -> Worked:
        """What the first rule gives whose quantities are known; else what the first of them lacks."""
        first = None
        for one in self.rules.get(key, ()):
            value = self._applied(one)
            if value is not None and (self.work is not apply or value.known):
                return value
            first = first or value
        return None if self.work is not apply else first or said or absent(key, key)

    def _applied(self, one: Rule) -> Worked:
        takes = {}
        for name, taken in one.takes.items():
            value: Any = self[taken] if isinstance(taken, str) else taken
            if value is None:
                return None
            takes[name] = value
        return one.equation(**takes) if self.work is numbers else self.work(one.told, one.equation, **takes)


def _told(key: str) -> str:
    return key.rpartition("/")[2]


def _is_known(value: Worked | None) -> bool:
    """Whether it is a figure with a value, and neither one without nor what says of which others it comes."""
    return isinstance(value, Figure) and value.known


def flow_of(question: object, rules: Iterable[Rule], **fixed: Figure | float) -> Flow:
    """
    What follows from the figures of a question.

    Args:
        question: Figures by key, or a dataclass whose fields hold them, each named for its quantity.
        rules: How quantities follow from each other.
        fixed: Quantities that the caller decides, by key.
    """
    known = {KEYS.get(name, name): value for name, value in figures_in(question).items()}
    return Flow(rules, known | fixed)
