"""
One evaluator: what a quantity is, from what is known of others and the rules that lead from these to it.

A rule says "result <- equation(argument=quantity, ...)"; rules of one result are rivals, in order. A quantity is what
was said or measured, else what the first rule gives whose quantities are known, else a default, else a figure that
names what is missing. The same rules work on figures that explain themselves, on bare numbers, and on joint draws.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from rlsize.estimates.figures import apply
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Work = Callable[..., Any]
    Known = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Rule:
    """
    How a quantity follows from others.

    Args:
        result: Its key.
        equation: A function of `rlsize.equations`.
        takes: The quantity of each argument, by key; a number where it is fixed.
    """

    result: str
    equation: Callable[..., Any]
    takes: Mapping[str, str | float]


def rule(result: str, equation: Callable[..., Any], /, **takes: str | float) -> Rule:
    """A rule: the key of its result, its equation, and the quantity of each argument."""
    return Rule(result, equation, takes)


class Flow:
    """
    Quantities by key, each worked out once, when it is asked for.

    Args:
        rules: How they follow from each other; rivals of one result in order.
        known: What was said or measured of a quantity; None, or a figure without a value, where nothing was.
        default: What holds where no rule leads to it; the same.
        work: `apply` for figures, `numbers` for numbers and arrays; what is missing is None there.
    """

    def __init__(
        self, rules: Iterable[Rule], known: Known, *, default: Known = lambda _: None, work: Work = apply
    ) -> None:
        self.rules: dict[str, list[Rule]] = {}
        for one in rules:
            self.rules.setdefault(one.result, []).append(one)
        self.known, self.default, self.work = known, default, work
        self.found: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 (as `work` makes them)
        """A quantity; what is missing for it where it cannot be known."""
        if key not in self.found:
            self.found[key] = self._resolved(key)
        return self.found[key]

    def _resolved(self, key: str) -> Any:  # noqa: ANN401 (as `work` makes them)
        said = self.known(key)
        if _is_there(said):
            return said
        rivals = [self._applied(one) for one in self.rules.get(key, ())]
        usual = next((one for one in rivals if _is_there(one)), None)
        usual = self.default(key) if usual is None else usual
        if _is_there(usual) or self.work is not apply:
            return usual
        nothing = said if said is not None else absent(key, key)
        return rivals[0] if rivals else nothing

    def _applied(self, one: Rule) -> Any:  # noqa: ANN401 (as `work` makes them)
        takes = {name: self[taken] if isinstance(taken, str) else taken for name, taken in one.takes.items()}
        if self.work is not apply and any(value is None for value in takes.values()):
            return None
        return self.work(one.result, one.equation, **takes)


def _is_there(value: Any) -> bool:  # noqa: ANN401 (a figure, a number, an array or nothing)
    return value.known if isinstance(value, Figure) else value is not None


_NAMES = {
    "consumption": "consumption_tokens_per_second",
    "instance_rate": "instance_tokens_per_second",
    "rollout_gpu_rate": "rollout_gpu_tokens_per_second",
    "trainer_gpu_rate": "trainer_gpu_tokens_per_second",
    "rollout_gpu_hour": "rollout_gpu_hour_usd",
    "trainer_gpu_hour": "trainer_gpu_hour_usd",
    "preemptible_gpu_hour": "preemptible_gpu_hour_usd",
    "rollout_idle": "rollout_idle_fraction",
    "trainer_idle": "trainer_idle_fraction",
    "samples": "samples_per_step",
}
"""Fields of questions whose quantities have longer names."""


def flow_of(question: object, rules: Iterable[Rule], **fixed: Figure) -> Flow:
    """
    What follows from the figures of a question.

    Args:
        question: A dataclass whose fields hold figures, each named for its quantity.
        rules: How quantities follow from each other.
        fixed: Quantities that the caller decides, by key.
    """
    held = {entry.name: getattr(question, entry.name) for entry in fields(question)}  # type: ignore[arg-type]  # a dataclass
    known = {_NAMES.get(name, name): value for name, value in held.items() if isinstance(value, Figure)} | fixed
    return Flow(rules, known.get)
