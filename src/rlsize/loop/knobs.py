"""What can be changed of a loop, one step at a time, from where it stands; and what that does to the training."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rlsize.equations.batch_drain import uncapped_mean
from rlsize.equations.lengths import capped_mean
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rlsize.loop.resolve import Loop
    from rlsize.loop.said import Said
    from rlsize.planner.options import Placement

Kind: TypeAlias = Literal["training unchanged", "numerics changed", "training changed"]
KINDS: tuple[Kind, ...] = ("training unchanged", "numerics changed", "training changed")
"""What a change does to the training, the least first."""

_NUMERICS = frozenset({
    "kv_dtype", "rollout_dtype", "dtype", "optimizer", "master_dtype", "gradients", "wire_dtype", "frozen_dtype",
})  # fmt: skip
_TRAINING = frozenset({
    "lora_rank", "max_response_tokens", "response_tokens", "prompt_tokens", "prompts_per_step", "group_size",
    "samples_per_step", "mini_batches", "updates", "max_staleness", "sync_every", "model", "algorithm",
    "late_samples",
})  # fmt: skip
_STALE_MODES = frozenset({"async", "overlapped", "one-step-off"})
_LEAST_SHARE = 0.2  # of the memory that an engine is left with
_SHARE_STEP = 0.05
_FACTORS = (2.0, 4.0, 8.0)  # of GPUs and ranks
_SHARES = tuple(0.5**times for times in range(1, 9))  # of a number that is halved again and again
_LORA_RANK = 32.0
_SHORTER = 0.5  # of a cap on lengths
_SWITCHES = ("offload", "reference_offload", "activation_offload", "chunked_loss", "staged_wake_up")
_PARTS = ("params", "gradients", "optimizer")
_BETWEEN = ({"optimizer"}, {"optimizer", "gradients"}, {"optimizer", "params"}, set(_PARTS))  # the mildest first
_DOUBLED = (  # numbers that may as well be twice as large, or half as large
    "micro_batch_samples", "micro_batch_tokens", "logprob_micro_batch_samples", "logprob_micro_batch_tokens",
    "max_num_seqs", "concurrency", "rollout_tensor_parallel", "group_size", "prompts_per_step", "mini_batches",
    "max_staleness", "sync_every",
)  # fmt: skip
_WAYS = ("tensor_parallel", "pipeline_parallel", "context_parallel")
_WORDS: Mapping[str, tuple[str, ...]] = {
    "recompute": ("none", "selective", "full"),
    "kv_dtype": ("bf16", "fp8"),
    "rollout_dtype": ("bf16", "fp8"),
    "transport": ("nccl-broadcast", "rdma", "disk", "delta"),
    "late_samples": ("continue", "wait", "drop"),
}
UNTESTED = frozenset({
    "recompute", "kv_dtype", "transport", "late_samples", "max_staleness", "sync_every", "max_num_seqs", "concurrency",
    "micro_batch_samples", "logprob_micro_batch_samples", "logprob_micro_batch_tokens", "lora_rank", "optimizer",
    "master_dtype", "gradients", "offload", "cuda_graphs",
})  # fmt: skip
"""What no published runs differ by, so that nobody knows how well a twin foretells it."""
_OF_ASYNC = frozenset({"max_staleness", "late_samples"})  # that no other loop has


@dataclass(frozen=True, slots=True)
class Knob:
    """
    Ways to change one thing, the mildest first.

    Args:
        tries: Values by quantity, for each way.
    """

    tries: tuple[dict[str, Any], ...]

    @property
    def kind(self) -> Kind:
        """What that does to the training."""
        return kind_of(self.tries[0])


@dataclass(frozen=True, slots=True)
class Change:
    """
    One step.

    Args:
        values: What is changed, by quantity; None for what is no longer said.
        follows: What comes of it that no key says.
        told: How the user said it; empty where nobody did.
    """

    values: dict[str, Any]
    follows: dict[str, Any] = field(default_factory=dict)
    told: str = ""

    @property
    def kind(self) -> Kind:
        """What that does to the training."""
        return kind_of(self.values)

    @property
    def all(self) -> dict[str, Any]:
        """Both."""
        return self.values | self.follows


def kind_of(values: Mapping[str, Any]) -> Kind:
    """What a change does to the training, by the quantities that it changes."""
    if values.keys() & _TRAINING or values.get("mode") in _STALE_MODES:
        return KINDS[2]
    return KINDS[1] if values.keys() & _NUMERICS else KINDS[0]


def single_steps(said: Said, loop: Loop, kinds: Iterable[str] = ()) -> Iterator[Change]:
    """
    Every single step from where a loop stands, both ways.

    Args:
        said: What was said, and what a loop chose.
        loop: The loop.
        kinds: GPUs that it may run on instead, by name.
    """
    seen: list[dict[str, Any]] = []
    for change in _steps(said, loop, kinds):
        if change.values not in seen:
            seen.append(change.values)
            yield change


def _steps(said: Said, loop: Loop, kinds: Iterable[str]) -> Iterator[Change]:
    asked = said.apart()
    first = (knob.tries[0] for knob in saving(said, loop) if knob.tries)
    yield from (Change(values) for values in first if "max_response_tokens" not in values)
    idle = frozenset() if loop.pools.loop == "async" else _OF_ASYNC
    for key in (key for key in _DOUBLED if key not in idle):
        number = asked.ask(key)
        if number.known:
            yield from (Change({key: number.number * times}) for times in (0.5, 2.0) if number.number * times % 1 == 0)
    for key, words in ((key, words) for key, words in _WORDS.items() if key not in idle):
        now = asked.used[key].value if key in asked.used else asked.choose(key)
        if now in words:
            yield from (Change({key: word}) for word in words if word != now)
    yield from (Change({key: False}) for key in _SWITCHES if said.yes(key))
    yield Change({"cuda_graphs": said.yes("cuda_graphs") is False})
    yield from _narrower(asked)
    yield from _lengths(said, loop)
    yield from _pools(said, loop)
    yield from _modes(loop)
    if loop.fleet.gpu == loop.trainer.gpu:
        yield from (Change({"gpu": name}) for name in kinds if name != loop.fleet.gpu)


def _narrower(asked: Said) -> Iterator[Change]:
    """Half as many GPUs for each micro-batch."""
    for way in _WAYS:
        degree = asked.ask(way)
        if degree.known and degree.number % 2 == 0:
            kept = _budgets(asked) if way == "context_parallel" else {}
            yield Change({way: degree.number / 2, **_ranks(asked, 2.0), **kept})


def _ranks(asked: Said, factor: float) -> dict[str, Any]:
    """Data-parallel ranks as a layout states them, so many times as many."""
    stated = {key: asked.ask(key) for key in ("fsdp", "data_parallel")}
    return {key: figure.number * factor for key, figure in stated.items() if figure.known}


def _lengths(said: Said, loop: Loop) -> Iterator[Change]:
    """A cap on responses twice as large, or half; the mean follows, as more or fewer of them reach it."""
    cap, mean = said.apart().ask("max_response_tokens"), loop.problem.response_tokens
    if not cap.known:
        return
    cv = loop.outlook.central.response_cv
    free = float(uncapped_mean(mean_tokens=mean.number, length_cv=cv, max_tokens=cap.number))
    for times in (_SHORTER, 1 / _SHORTER):
        limit = float(int(cap.number * times))
        follows = float(capped_mean(uncapped_mean=free, length_cv=cv, max_tokens=limit))
        yield Change({"max_response_tokens": limit}, {"response_tokens": follows})


def _pools(said: Said, loop: Loop) -> Iterator[Change]:
    """More and fewer GPUs, and some of them moved from one side to the other."""
    found = () if loop.place is None else _counts(said.apart(), loop.place)
    yield from (Change(values) for values in found if all(value % 1 == 0 and value > 0 for value in values.values()))


def _counts(asked: Said, place: Placement) -> Iterator[dict[str, Any]]:
    """GPUs of each side; ranks of the trainer follow."""

    def trainer(key: str, count: float) -> dict[str, Any]:
        return {key: count, **_ranks(asked, count / place.trainer_gpus)}

    if place.shared:
        yield from (trainer("gpus", place.trainer_gpus * times) for times in (0.5, 2.0))
        return
    size = place.fleet.gpus
    yield from ({"rollout_gpus": size * (place.instances * times // 1)} for times in (2.0, 0.5))
    yield from (trainer("trainer_gpus", place.trainer_gpus * times) for times in (0.5, 2.0))
    moved = max(size, size * (place.instances // 4))
    for rollout in (place.rollout_gpus + moved, place.rollout_gpus - moved):
        yield {"rollout_gpus": rollout, **trainer("trainer_gpus", place.gpus - rollout)}


def _modes(loop: Loop) -> Iterator[Change]:
    """The same GPUs in another mode, split in the quickest way where they were shared."""
    if loop.place is None:
        return
    whole = {"gpus": float(loop.place.gpus), **dict.fromkeys(("rollout_gpus", "trainer_gpus", "fsdp", "data_parallel"))}
    own = loop.place.loop
    for mode, name in (("colocated", "colocated"), ("sync", "synchronous"), ("one-step-off",) * 2, ("async",) * 2):
        if name != own:
            yield Change({"mode": mode}, whole if "colocated" in {name, own} else {})


def saving(said: Said, loop: Loop) -> Iterator[Knob]:
    """What can be turned to save memory, from where it stands."""
    for key in ("micro_batch_samples", "micro_batch_tokens"):
        yield from _halved(said, (key,))
    yield from _halved(said, ("logprob_micro_batch_samples",))
    yield from _halved(said, ("logprob_micro_batch_tokens",))
    yield from _halved(said, ("micro_batch_tokens", "logprob_micro_batch_tokens"))
    yield from _halved(said, ("micro_batch_samples", "logprob_micro_batch_samples"))
    if loop.stages is not None and loop.stages.train.recompute != "full":
        yield Knob(({"recompute": "full"},))
    for key in _SWITCHES:
        if not said.yes(key):
            yield Knob(({key: True},))
    if loop.pools.shared:
        yield from _between(said)
        yield from (Knob(({"engine_sleep": "weights"},)) for _ in range(said.gives("engine_sleep")))
    yield from _shares(said)
    yield from _sharded(said)
    yield from _halved(said, ("max_num_seqs",))
    yield from _wider(said, loop)
    yield from (Knob(({key: "fp8"},)) for key in ("kv_dtype", "rollout_dtype"))
    yield Knob(({"optimizer": "adam-8bit"},))
    yield Knob(({"master_dtype": "bf16"},))
    if said.ask("lora_rank").known:
        yield Knob(({"frozen_dtype": "nf4"},))
    elif not said.gives("lora_rank"):
        yield Knob(({"lora_rank": _LORA_RANK},))
    cap = said.apart().ask("max_response_tokens")
    if cap.known:
        yield Knob(({"max_response_tokens": float(int(cap.number * _SHORTER))},))


def _halved(said: Said, keys: tuple[str, ...]) -> Iterator[Knob]:
    """Numbers halved, again and again, while tokens hold the longest sample; none where nobody says them."""
    asked = said.apart()
    numbers = [asked.ask(key, assume=False) for key in keys]
    if not all(figure.known for figure in numbers):
        return
    least = min(figure.number for figure in numbers)
    most = [asked.ask(key) for key in ("prompt_tokens", "max_response_tokens") if keys[0].endswith("_tokens")]
    one = sum(figure.number for figure in most if figure.known)  # a smaller micro-batch is of one sample all the same
    shares = [share for share in _SHARES if share * least >= max(1.0, one)]
    if shares:
        yield Knob(
            tuple(
                {key: float(int(figure.number * share)) for key, figure in zip(keys, numbers, strict=True)}
                for share in shares
            ),
        )


def _between(said: Said) -> Iterator[Knob]:
    """More of the trainer on the host while engines generate."""
    listed = said.apart().listed("offloaded_between")
    if listed is None:
        return
    moved = [[part for part in _PARTS if part in {*listed, *more}] for more in _BETWEEN]
    tries = [one for index, one in enumerate(moved) if set(one) != set(listed) and one not in moved[:index]]
    if tries:
        yield Knob(tuple({"offloaded_between": one} for one in tries))


def _shares(said: Said) -> Iterator[Knob]:
    """A smaller, and a larger, share of the memory for the engine."""
    share = said.apart().ask("memory_fraction")
    if not share.known:
        return
    below = [round(share.number - _SHARE_STEP * step, 3) for step in range(1, 20)]
    above = [round(share.number + _SHARE_STEP * step, 3) for step in range(1, 8)]
    for side in ([one for one in below if one >= _LEAST_SHARE], [one for one in above if one <= 1.0 - _SHARE_STEP]):
        if side:
            yield Knob(tuple({"memory_fraction": one} for one in side))


def _sharded(said: Said) -> Iterator[Knob]:
    """Higher ZeRO stages than that which is said, of trainers that have all of them."""
    stage = said.apart().ask("zero_stage")
    if stage.known and not str(said.said("trainer.backend")).startswith("megatron"):
        higher = tuple({"zero_stage": float(one)} for one in range(int(stage.number) + 1, 4))
        yield from (Knob(higher) for _ in higher[:1])


def _budgets(said: Said) -> dict[str, Any]:
    """Tokens of micro-batches as they are, which a framework may count for each GPU that shares them."""
    keys = ("micro_batch_tokens", "logprob_micro_batch_tokens") if said.gives("framework") else ()
    return {key: said.apart().ask(key).number for key in keys if said.gives(key)}


def _wider(said: Said, loop: Loop) -> Iterator[Knob]:
    """More GPUs, and more of them for each instance or micro-batch."""
    asked = said.apart()
    tensor = asked.ask("rollout_tensor_parallel")
    if tensor.known:
        yield Knob(tuple({"rollout_tensor_parallel": tensor.number * factor} for factor in _FACTORS))
    ranks = next(iter(_ranks(asked, 1.0).values()), 0.0)  # of which each micro-batch then takes more
    for way in _WAYS if not asked.ask("fsdp").known else ("context_parallel", "tensor_parallel"):
        degree = asked.ask(way)
        if degree.known or asked.ask("fsdp").known:
            base = degree.number if degree.known else 1.0
            kept = _budgets(said) if way == "context_parallel" else {}
            possible = [factor for factor in _FACTORS if ranks % factor == 0]
            yield Knob(tuple({way: base * factor, **_ranks(asked, 1 / factor), **kept} for factor in possible))
    experts = asked.ask("expert_parallel")  # which go over ranks that there are
    if experts.known and loop.stages is not None and loop.stages.train.model.architecture.moe is not None:
        yield Knob(tuple({"expert_parallel": experts.number * factor} for factor in _FACTORS))
    pool = "gpus" if loop.pools.shared else "trainer_gpus"
    count = asked.ask(pool)
    if count.known:
        yield Knob(tuple({pool: count.number * factor, **_ranks(asked, factor)} for factor in _FACTORS))
