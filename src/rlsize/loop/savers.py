"""What makes a loop fit that does not: every single change, what it costs, and whether it changes the training."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rlsize.errors import InputError
from rlsize.facts.records.record import Refused
from rlsize.loop.phases import phases_of
from rlsize.loop.resolve import resolve
from rlsize.planner.evaluation import worked
from rlsize.quantities.table import QUANTITIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rlsize.loop.phases import Phases
    from rlsize.loop.resolve import Loop
    from rlsize.loop.said import Said

Kind: TypeAlias = Literal["training unchanged", "numerics changed", "training changed"]
KINDS: tuple[Kind, ...] = ("training unchanged", "numerics changed", "training changed")
"""What a change does to the training, the least first."""

_LEAST_SHARE = 0.2  # of the memory that an engine is left with
_SHARE_STEP = 0.05
_FACTORS = (2.0, 4.0, 8.0)  # of GPUs and ranks
_SHARES = tuple(0.5**times for times in range(1, 9))  # of a number that is halved again and again
_MOST_PAIRED = 6  # changes of which pairs are tried
_BETTER: Mapping[str, frozenset[str]] = MappingProxyType(
    {"dies": frozenset({"fits", "not sure"}), "not sure": frozenset({"fits"})}
)
"""Verdicts that are better than one."""
_LORA_RANK = 32.0
_SHORTER = 0.5  # of a cap on lengths
_SWITCHES = ("offload", "reference_offload", "activation_offload", "chunked_loss", "staged_wake_up")
_BETWEEN = ("optimizer", "params", "gradients")


@dataclass(frozen=True, slots=True)
class Knob:
    """
    Ways to change one thing, the mildest first.

    Args:
        kind: What that does to the training.
        tries: Values by quantity, for each way.
    """

    kind: Kind
    tries: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Saver:
    """
    A change that helps.

    Args:
        values: What is changed, by quantity.
        kind: What that does to the training.
        phases: The memory of the loop with it.
        gpu_seconds_per_token: What a trained token takes then; None where that is not known. [GPU s/token]
    """

    values: dict[str, Any]
    kind: Kind
    phases: Phases
    gpu_seconds_per_token: float | None = None

    @property
    def rank(self) -> tuple[int, int, float]:
        """The kind first, then whether it surely fits, then what it costs."""
        cost = float("inf") if self.gpu_seconds_per_token is None else self.gpu_seconds_per_token
        return KINDS.index(self.kind), int(self.phases.verdict != "fits"), cost


def savers(
    said: Said, loop: Loop, can: Callable[[Mapping[str, Any]], bool], tell: Callable[[float], None]
) -> tuple[Saver, ...]:
    """
    The changes that make a loop fit, or fit more surely, the best first: single ones, and pairs where none does.

    Args:
        said: What was said.
        loop: The loop that does not fit, or not surely.
        can: Whether values of quantities can be set where the loop runs.
        tell: Hears which share of the work is done. [1]
    """
    before = phases_of(loop)
    if before is None or before.verdict == "fits":
        return ()
    enough = _BETTER[before.verdict]
    possible = (Knob(knob.kind, tuple(filter(can, knob.tries))) for knob in _knobs(said, loop))
    knobs = [knob for knob in possible if knob.tries]
    found, helpful = [], []
    for index, knob in enumerate(knobs):
        tell(index / len(knobs))
        mildest, strongest = _turned(said, knob, enough)
        found += [mildest] if mildest is not None else []
        helpful += [strongest] if mildest is None and strongest is not None else []
    if not any(saver.kind == KINDS[0] for saver in found):
        found += _pairs(said, helpful, enough)
    return tuple(sorted(found, key=lambda saver: saver.rank))


def _turned(said: Said, knob: Knob, enough: frozenset[str]) -> tuple[Saver | None, Saver | None]:
    """The mildest way to turn a knob that is enough, None where none is; and the strongest that can be."""
    made: dict[int, Saver | None] = {}

    def at(index: int) -> Saver | None:
        if index not in made:
            made[index] = _with(said, knob.tries[index], knob.kind)
        return made[index]

    last = len(knob.tries) - 1
    strongest = next((one for index in range(last, -1, -1) if (one := at(index)) is not None), None)
    if strongest is None or strongest.phases.verdict not in enough:
        return None, strongest
    low, high = 0, max(index for index, one in made.items() if one is not None)
    while low < high:  # turned further, it never needs more memory
        middle = (low + high) // 2
        tried = at(middle)
        low, high = (low, middle) if tried is not None and tried.phases.verdict in enough else (middle + 1, high)
    return at(high), strongest


def _pairs(said: Said, helpful: Sequence[Saver], enough: frozenset[str]) -> Iterator[Saver]:
    """Pairs of changes of which none is enough alone, of those that help most."""
    plain = sorted((one for one in helpful if one.kind == KINDS[0]), key=lambda one: one.phases.worst.fill)[
        :_MOST_PAIRED
    ]
    for one, two in combinations(plain, 2):
        if one.values.keys().isdisjoint(two.values):
            made = _with(said, one.values | two.values, KINDS[0])
            if made is not None and made.phases.verdict in enough:
                yield made


def _with(said: Said, values: dict[str, Any], kind: Kind) -> Saver | None:
    """The loop with a change; None where it cannot be, or nobody can say."""
    try:
        other = said.changed({QUANTITIES[key].scenario: value for key, value in values.items()})
        loop = resolve(other)
        phases = phases_of(loop)
    except (InputError, Refused):
        return None
    if phases is None:
        return None
    found = Saver(values, kind, phases)
    if loop.place is None:
        return found
    tokens = loop.problem.samples.number * loop.problem.response_tokens.number
    step = float(worked(loop.outlook.central, loop.place)["step_seconds"])
    return replace(found, gpu_seconds_per_token=step * float(loop.place.gpus) / tokens) if tokens else found


def _knobs(said: Said, loop: Loop) -> Iterator[Knob]:
    """What can be turned, from where it stands."""
    same, numerics, training = KINDS
    for key in ("micro_batch_samples", "micro_batch_tokens"):
        yield from _halved(said, (key,), same)
    yield from _halved(said, ("logprob_micro_batch_samples",), same)
    yield from _halved(said, ("logprob_micro_batch_tokens",), same)
    yield from _halved(said, ("micro_batch_tokens", "logprob_micro_batch_tokens"), same)
    yield from _halved(said, ("micro_batch_samples", "logprob_micro_batch_samples"), same)
    if loop.stages is not None and loop.stages.train.recompute != "full":
        yield Knob(same, ({"recompute": "full"},))
    for key in _SWITCHES:
        if not said.yes(key):
            yield Knob(same, ({key: True},))
    if loop.pools.shared:
        yield from _between(said, same)
        yield from (Knob(same, ({"engine_sleep": "weights"},)) for _ in range(said.gives("engine_sleep")))
    yield from _shares(said, same)
    yield from _halved(said, ("max_num_seqs",), same)
    yield from _wider(said, loop, same)
    yield Knob(numerics, ({"kv_dtype": "fp8"},))
    yield Knob(numerics, ({"optimizer": "adam-8bit"},))
    yield Knob(numerics, ({"master_dtype": "bf16"},))
    if not said.gives("lora_rank"):
        yield Knob(training, ({"lora_rank": _LORA_RANK},))
    cap = said.apart().ask("max_response_tokens")
    if cap.known:
        yield Knob(training, ({"max_response_tokens": float(int(cap.number * _SHORTER))},))


def _halved(said: Said, keys: tuple[str, ...], kind: Kind) -> Iterator[Knob]:
    """Numbers halved, again and again; none where nobody says them."""
    asked = said.apart()
    numbers = [asked.ask(key, assume=False) for key in keys]
    if not all(figure.known for figure in numbers):
        return
    least = min(figure.number for figure in numbers)
    shares = [share for share in _SHARES if share * least >= 1.0]
    if shares:
        yield Knob(
            kind,
            tuple(
                {key: float(int(figure.number * share)) for key, figure in zip(keys, numbers, strict=True)}
                for share in shares
            ),
        )


def _between(said: Said, kind: Kind) -> Iterator[Knob]:
    """More of the trainer on the host while engines generate."""
    listed = said.said("trainer.offloaded_between")
    if listed is None:
        return
    tries: list[dict[str, Any]] = []
    moved = list(listed)
    for part in (part for part in _BETWEEN if part not in listed):
        moved = [*moved, part]
        tries.append({"offloaded_between": list(moved)})
    if tries:
        yield Knob(kind, tuple(tries))


def _shares(said: Said, kind: Kind) -> Iterator[Knob]:
    """A smaller, and a larger, share of the memory for the engine."""
    share = said.apart().ask("memory_fraction")
    if not share.known:
        return
    below = [round(share.number - _SHARE_STEP * step, 3) for step in range(1, 20)]
    above = [round(share.number + _SHARE_STEP * step, 3) for step in range(1, 8)]
    for side in ([one for one in below if one >= _LEAST_SHARE], [one for one in above if one <= 1.0 - _SHARE_STEP]):
        if side:
            yield Knob(kind, tuple({"memory_fraction": one} for one in side))


def _wider(said: Said, loop: Loop, kind: Kind) -> Iterator[Knob]:
    """More GPUs, and more of them for each instance or micro-batch."""
    asked = said.apart()
    tensor, ranks = asked.ask("rollout_tensor_parallel"), asked.ask("fsdp")
    if tensor.known:
        yield Knob(kind, tuple({"rollout_tensor_parallel": tensor.number * factor} for factor in _FACTORS))
    context = asked.ask("context_parallel")
    base = context.number if context.known else 1.0
    yield Knob(
        kind,
        tuple({"context_parallel": base * factor, "fsdp": ranks.number / factor} for factor in _FACTORS)
        if ranks.known
        else (),
    )
    pools = ("gpus",) if loop.pools.shared else ("trainer_gpus",)
    for pool in pools:
        count = asked.ask(pool)
        if count.known:
            spread = {"fsdp": ranks.number} if ranks.known else {}
            yield Knob(
                kind,
                tuple(
                    {pool: count.number * factor, **{key: value * factor for key, value in spread.items()}}
                    for factor in _FACTORS
                ),
            )
