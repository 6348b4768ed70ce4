"""A budget: limits that a loop must keep, on what it is and on how far it moved from a baseline."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

from rlsize import units
from rlsize.facts.fields import Quantity, Says
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Better = Literal["less", "more"]
Bound = Literal["max", "min", "max_increase", "max_decrease"]
BOUNDS: tuple[Bound, ...] = get_args(Bound)
_LARGEST_SHARE = 100.0  # a change of 10,000 % is a slip


class Change(NamedTuple):
    """
    How far a quantity may move from its baseline.

    Args:
        value: A share of the baseline, or an amount in the quantity's base unit.
        relative: Whether it is a share.
    """

    value: float
    relative: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The limits of one quantity; at least one of them stands."""

    max: Annotated[float | None, Says("The most that is allowed.")] = None
    min: Annotated[float | None, Says("The least that is allowed.")] = None
    max_increase: Annotated[
        Change | None, Says("The most by which it may exceed the baseline: `5%` of it, or an amount with its unit.")
    ] = None
    max_decrease: Annotated[
        Change | None, Says("The most by which it may fall short of the baseline: `5%` of it, or an amount.")
    ] = None


@dataclass(frozen=True, slots=True)
class Limited(Quantity):
    """
    A quantity with limits, written as a bare one or as a mapping of them.

    Args:
        better: Whether less of it is better, so that a bare limit is the most allowed, or more.
    """

    better: Better = "less"

    @property
    def bare(self) -> Bound:
        """What a limit is that stands alone."""
        return "max" if self.better == "less" else "min"

    @property
    def _example(self) -> str:
        return units.DIMENSIONS[self.unit].example

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:  # noqa: ANN401 (pydantic's protocol)
        return {
            "type": "function-before",
            "function": {"type": "no-info", "function": self._spelled_out},
            "schema": {
                "type": "function-after",
                "function": {"type": "no-info", "function": self._consistent},
                "schema": {
                    "type": "dataclass",
                    "cls": Limit,
                    "fields": list(BOUNDS),
                    "slots": True,
                    "schema": {
                        "type": "dataclass-args",
                        "dataclass_name": "Limit",
                        "extra_behavior": "forbid",
                        "fields": [self._field(bound) for bound in BOUNDS],
                    },
                },
            },
        }

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:  # noqa: ANN401 (pydantic's protocol)
        amount = {"anyOf": [{"type": "number"}, {"type": "string"}]}
        texts = {name: said.text for name, (_, said) in _declared(Limit).items()}
        bounds = {bound: {**amount, "description": texts[bound]} for bound in BOUNDS}
        mapping = {"type": "object", "properties": bounds, "additionalProperties": False, "minProperties": 1}
        return {
            "anyOf": [*amount["anyOf"], mapping],
            "description": f"{self.text} [{units.DIMENSIONS[self.unit].base}] A bare limit is the {self.bare}.",
            "examples": [self._example, {self.bare: self._example, "max_increase": "5%"}],
        }

    def _field(self, bound: Bound) -> dict[str, Any]:
        read = self._amount if bound in {"max", "min"} else self._change
        value = {"type": "function-plain", "function": {"type": "no-info", "function": read}}
        schema = {"type": "default", "default": None, "schema": value}
        return {"type": "dataclass-field", "name": bound, "kw_only": True, "schema": schema}

    def _spelled_out(self, value: object) -> object:
        """A bare limit as the mapping that it stands for."""
        if isinstance(value, (Limit, dict)) and value != {}:
            return value
        if value is None or value == {}:
            raise ValueError(f"sets no limit; write one such as {self._example}, or leave the key out")
        return {self.bare: self.read(value)}

    def _amount(self, value: object) -> float:
        if value is None:
            raise ValueError(f"sets no limit; write one such as {self._example}, or leave the key out")
        return self.read(value)

    def _change(self, value: object) -> Change:
        amount, relative = units.change(value, self.unit)
        if amount < 0 or (relative and amount > _LARGEST_SHARE):
            raise ValueError(f"{value} is not a change that a limit can allow; write 5%, or 0 for none")
        return Change(amount, relative)

    def _consistent(self, limit: Limit) -> Limit:
        if limit.max is not None and limit.min is not None and limit.min > limit.max:
            unit = "" if self.unit == "share" else f" {units.DIMENSIONS[self.unit].base}"
            what = f"the min {limit.min:g}{unit} is above the max {limit.max:g}{unit}"
            raise ValueError(f"{what}: nothing can keep both")
        return limit


def _share(text: str, better: Better = "less") -> Limited:
    return Limited("share", text, least=0.0, most=1.0, better=better)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits by quantity; what has none is not judged."""

    cost_per_step_usd: Annotated[Limit | None, Limited("usd", "Dollars per optimizer step.")] = None
    cost_per_run_usd: Annotated[Limit | None, Limited("usd", "Dollars of the whole run.")] = None
    trainer_idle_fraction: Annotated[Limit | None, _share("Share of a step that the trainer waits.")] = None
    rollout_idle_fraction: Annotated[Limit | None, _share("Share of a step that the rollout fleet waits.")] = None
    sync_fraction: Annotated[Limit | None, _share("Share of a step in weight syncs that nothing hides.")] = None
    staleness_steps: Annotated[
        Limit | None, Limited("step", "Staleness of trained samples, in optimizer steps.", least=0.0)
    ] = None
    rollout_memory_headroom_fraction: Annotated[
        Limit | None, _share("Share of a rollout GPU's memory that stays free.", "more")
    ] = None
    trainer_memory_headroom_fraction: Annotated[
        Limit | None, _share("Share of a trainer GPU's memory that stays free.", "more")
    ] = None
    step_seconds: Annotated[Limit | None, Limited("s", "Wall clock of an optimizer step.")] = None
    generation_seconds: Annotated[Limit | None, Limited("s", "Time to generate the samples of a step.")] = None
    train_seconds: Annotated[Limit | None, Limited("s", "Busy trainer seconds per step.")] = None
    sync_seconds: Annotated[Limit | None, Limited("s", "Time of a weight sync.", least=0.0)] = None
    sync_exposed_seconds: Annotated[
        Limit | None, Limited("s", "The part of a weight sync that nothing hides.", least=0.0)
    ] = None
    run_seconds: Annotated[Limit | None, Limited("s", "Wall clock of the whole run.")] = None
    steps_per_day: Annotated[Limit | None, Limited("step/day", "Optimizer steps in a day.", better="more")] = None
    loop_tokens_per_second: Annotated[
        Limit | None, Limited("token/s", "Trained response tokens per second.", better="more")
    ] = None
    loop_tokens_per_gpu_second: Annotated[
        Limit | None, Limited("token/s", "The same per GPU of both sides.", better="more")
    ] = None
    gpus: Annotated[Limit | None, Limited("gpu", "GPUs of both sides.")] = None
    rollout_gpus: Annotated[Limit | None, Limited("gpu", "GPUs of the rollout fleet.")] = None
    trainer_gpus: Annotated[Limit | None, Limited("gpu", "GPUs of the trainer.")] = None
    gpu_hours_per_step: Annotated[Limit | None, Limited("gpu*hour", "GPU-hours of both sides per step.")] = None

    @property
    def limits(self) -> Mapping[str, Limit]:
        """The quantities that have limits, with them."""
        found = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: limit for name, limit in found.items() if limit is not None}

    def over(self, other: Budget) -> Budget:
        """This budget, with the lines of another where it has none."""
        return replace(other, **self.limits)


def _declared(kind: type) -> dict[str, tuple[Any, Any]]:
    """The fields of a dataclass: type, and what is said of each."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: get_args(hint)[:2] for name, hint in hints.items()}


def quantities() -> Mapping[str, Limited]:
    """Every quantity that a budget may limit, with its unit and which way is better."""
    return {name: said for name, (_, said) in _declared(Budget).items()}


def set_limits(budget: Budget) -> Iterator[tuple[str, Bound]]:
    """Every limit that stands: its quantity, and which kind it is."""
    for quantity, limit in budget.limits.items():
        yield from ((quantity, bound) for bound in BOUNDS if getattr(limit, bound) is not None)
