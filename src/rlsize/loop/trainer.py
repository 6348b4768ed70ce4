"""The trainer: how it is spread, how it works, and which passes it makes over a step's tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.equations import train_step, training_peak
from rlsize.errors import InputError
from rlsize.estimates.figures import apply
from rlsize.estimates.memory_shape import memory_shape
from rlsize.estimates.model_size import model_size
from rlsize.estimates.train_prediction import TrainQuestion, objections
from rlsize.estimates.trainer_keeping import Keeping
from rlsize.estimates.trainer_layout import (
    FULLY_SHARDED,
    WEIGHT_STAGE,
    TrainerLayout,
    model_objections,
    not_parallel,
    rank_objections,
)
from rlsize.facts.algorithm import BYTES_PER_GRADIENT, OPTIMIZERS
from rlsize.facts.figure import Figure
from rlsize.loop.lengths import lengths
from rlsize.loop.models import model_and_gpu, tenants
from rlsize.loop.workload import samples

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.estimates.memory_shape import MemoryShape
    from rlsize.estimates.trainer_layout import Objection
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model
    from rlsize.loop.lengths import Lengths
    from rlsize.loop.models import Tenants
    from rlsize.loop.said import Said

DEGREES = ("tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel")
"""Kinds of parallelism that divide a model, or its experts."""

_KEYS = {  # the quantity to blame, by the degree that an objection is about
    "tensor": "tensor_parallel",
    "pipeline": "pipeline_parallel",
    "expert": "expert_parallel",
    "gpus": "trainer_gpus",
}
_NAMED = {"old": "old_logprob", "reference": "reference", "proximal": "proximal"}
_KEPT = (
    "padded", "chunked_loss", "param_offload", "reference_offload", "fused_loss", "entropy", "activation_offload",
)  # fmt: skip
_ORDER = ("old_logprob", "reference", "proximal", "reward", "critic")


def train_question(
    said: Said, model: Model | None, gpu: Gpu | None, length: Lengths, many: Figure, gpus: Figure
) -> TrainQuestion | None:
    """
    The trainer and its work; None where a fault was noted.

    Args:
        said: What was said.
        model: The policy.
        gpu: The trainer's GPU.
        length: Lengths of samples.
        many: Samples of a step. [1]
        gpus: The trainer's GPUs; absent where only its layout says how many. [1]
    """
    shape = memory_shape(model, model_size(model).params) if model else None
    spread = trainer_layout(said, gpus, shape)
    if spread is None and not said.faults:
        said.fault("the trainer's GPUs are missing", "--trainer-gpus", "give their number, or how they are spread")
    how = _how(said)
    kept = tenants(said)
    passes, extra, rl = passes_of(said, kept)
    sizes = {name: getattr(kept, f"{name}_params") for name in ("critic", "reference", "reward") if name not in extra}
    updates, optimizer_steps = said.ask("updates"), said.ask("mini_batches")
    if said.faults or model is None or gpu is None or spread is None or not (length.response.known and many.known):
        return None
    both = {"prompt_tokens": length.prompt, "response_tokens": length.response}
    tokens = apply("sequence_tokens", train_step.trained_sequence_tokens, **both)
    keeps = keeping(said)
    if keeps.samples is not None:
        how["micro_batch_tokens"] = _counted_tokens(said, "micro_batch_samples", tokens)
    if length.stated_cap:
        longest = said.ask("max_prompt_tokens")
        most = {"prompt_tokens": longest if longest.known else length.prompt, "response_tokens": length.cap}
        how["longest_tokens"] = apply("longest_tokens", train_step.trained_sequence_tokens, **most)
    question = TrainQuestion(
        model=model,
        gpu=gpu,
        gpus=spread.gpus,
        sequences=many,
        tokens=tokens,
        keeps=keeps,
        tokens_cv=apply("sequence_cv", train_step.trained_sequence_cv, response_cv=length.cv, **both),
        updates=updates,
        optimizer_steps=optimizer_steps,
        **spread.degrees._asdict(),
        shards=_shards(spread),
        sharding=spread.sharding,
        **how,
        forward_micro_batch_tokens=_forward_tokens(said, tokens),
        passes=passes,
        pass_models=extra,
        pass_params={name: size.number for name, size in sizes.items() if size.known},
        capped=length.stated_cap,
        workload="rl" if rl else "pretraining",
    )
    for objection in objections(question, spread.gpus.number):
        said.fault(objection, _whose(said, objection), "change one of them")
    return None if said.faults else question


def trainer_by_itself(said: Said, gpus: Figure | None = None) -> TrainQuestion:
    """
    A trainer and its work, whatever loop it is in.

    Args:
        said: What was said.
        gpus: Its GPUs, where they are not those that were said for it. [1]

    Raises:
        InputError: All that is missing or wrong.
    """
    model, gpu = model_and_gpu(said, "trainer")
    length, many = lengths(said, model), samples(said, usual=model is not None)
    said.need(length.response, "give --response-tokens")
    said.need(many, "give --samples, or --prompts and --group")
    found = train_question(said, model, gpu, length, many, said.ask("trainer_gpus") if gpus is None else gpus)
    if found is None or said.faults:
        raise InputError(*dict.fromkeys(said.faults))
    return found


def _whose(said: Said, objection: str) -> str:
    return said.place("dtype" if "fp8" in objection or "bf16" in objection else "trainer_gpus")


def trainer_layout(said: Said, gpus: Figure, shape: MemoryShape | None) -> TrainerLayout | None:
    """
    How the trainer is spread: degrees of parallelism that multiply up to its GPUs; None where nobody says anything.

    Args:
        said: What was said; faults are noted.
        gpus: The trainer's GPUs; absent where nobody says. [1]
        shape: The policy's layers, where known, to check that degrees divide them.
    """
    fsdp, zero, data = said.ask("fsdp"), said.ask("zero_stage"), said.ask("data_parallel")
    found = {key: said.ask(key) for key in DEGREES}
    if said.faults or not any(one.known for one in (fsdp, zero, data, *found.values(), gpus)):
        return None
    layout = TrainerLayout(**{key: figure for key, figure in found.items() if figure.known})
    ranks = _data_ranks(said, layout, data, fsdp, gpus)
    layout = replace(
        layout,
        data_parallel=ranks,
        shards=replace(fsdp if fsdp.known else ranks, key="shards"),
        zero_stage=_stage(said, zero, fsdp, data, gpus),
    )
    _check(said, layout, gpus)
    if shape is not None:
        _blame(said, model_objections(shape, layout.degrees))
    return None if said.faults else layout


def _data_ranks(said: Said, layout: TrainerLayout, data: Figure, fsdp: Figure, gpus: Figure) -> Figure:
    """Data-parallel ranks: said, or what the trainer's GPUs leave, or those that FSDP shards over."""
    if data.known:
        return data
    if not gpus.known:
        return replace(fsdp if fsdp.known else not_parallel("data_parallel"), key="data_parallel")
    if gpus.number % layout.model_parallel:
        first = next(iter(rank_objections(gpus.number, layout.degrees)))
        said.fault(first.what, gpus.source or "--trainer-gpus", first.todo)
        return not_parallel("data_parallel")
    return layout.data_ranks(gpus)


def _stage(said: Said, zero: Figure, fsdp: Figure, data: Figure, gpus: Figure) -> Figure:
    """The ZeRO stage: said; FSDP where it is named or nothing is said; none for plain data parallelism."""
    if zero.known:
        if fsdp.known and zero.number != WEIGHT_STAGE:
            what = f"ZeRO-{zero.number:g} contradicts --fsdp, which is ZeRO-3"
            said.fault(what, zero.source, "give --data-parallel in place of --fsdp")
        if not (fsdp.known or data.known or gpus.known):
            what = "ZeRO shards over data-parallel ranks, and none are given"
            said.fault(what, zero.source, "give --gpus, or --data-parallel")
        return zero
    if data.known and not fsdp.known:
        why = "plain data parallelism; --zero shards it"
        return said.keep(Figure(key="zero_stage", value=0, provenance="default", source=why))
    return FULLY_SHARDED


def _check(said: Said, layout: TrainerLayout, gpus: Figure) -> None:
    """Degrees that contradict each other."""
    data, shards = int(layout.data_parallel.number), int(layout.shards.number)
    if data % shards:
        what = f"FSDP over {shards} does not divide {data} data-parallel ranks"
        said.fault(what, said.place("fsdp"), "make it a divisor")
    if gpus.known and not said.faults and round(layout.gpus.number) != gpus.number:
        what = f"the layout takes {layout.gpus.number:g} GPUs, and the trainer has {gpus.number:g}"
        said.fault(what, gpus.source, "change one of the degrees, or leave --trainer-gpus out")
    if not said.faults:
        shared = replace(layout, data_parallel=layout.shards)  # experts are dealt out to the ranks of one copy
        _blame(said, rank_objections(round(shared.gpus.number), layout.degrees))


def _blame(said: Said, found: Iterable[Objection]) -> None:
    for one in found:
        said.fault(one.what, said.place(_KEYS[one.degree]), one.todo)


def _shards(spread: TrainerLayout) -> int | None:
    """Ranks that share the state, context-parallel ones included; None where all do."""
    if spread.shards.number == spread.data_parallel.number:
        return None
    return int(spread.shards.number) * int(spread.context_parallel.number)


def _how(said: Said) -> dict[str, Any]:
    """How the trainer works: micro-batches, recomputation, number type, optimizer."""
    optimizer, width = OPTIMIZERS[said.choose("optimizer")], said.choose("gradients")
    stages, rank = said.ask("virtual_stages"), said.ask("lora_rank")
    between = said.listed("offloaded_between") or ()
    return {
        "micro_batch_tokens": said.ask("micro_batch_tokens"),
        "recompute": said.choose("recompute"),
        "dtype": said.choose("dtype"),
        "scaling": said.choose("fp8_scaling"),
        "virtual_stages": int(stages.number) if stages.known else 1,
        "state_bytes": optimizer.bytes_per_master + optimizer.bytes_per_optimizer_state,
        "gradient_bytes": BYTES_PER_GRADIENT[width],
        "lora_rank": int(rank.number) if rank.known else None,
        "offload": bool(said.yes("offload")),
        "returning": "optimizer" in between,
        "weights_returning": "params" in between,
        "fused": bool(said.yes("compiled")),
        "overlapped": bool(said.yes("overlapped")),
        "native_attention": bool(said.yes("native_attention")),
    }


def keeping(said: Said) -> Keeping:
    """How the trainer keeps what its memory holds; tokens of a micro-batch go before its samples."""
    samples = said.ask("micro_batch_samples")
    backend, master = said.choose("trainer_backend"), said.choose("master_dtype")
    return Keeping(
        backend=backend,
        master_dtype=master,
        samples=samples.number if samples.known and not said.gives("micro_batch_tokens") else None,
        logit_share=_logit_share(said) if said.yes("response_logits") else 1.0,
        frozen_dtype=said.choose("frozen_dtype") or "" if said.ask("lora_rank").known else "",
        **{key: bool(said.yes(key)) for key in _KEPT},
    )


def _logit_share(said: Said) -> float:
    """Share of responses in the tokens that are trained on: of mean samples, or of the longest where that is more."""
    apart = said.apart()
    pairs = [
        (apart.ask(prompt), apart.ask(response))
        for prompt, response in (("prompt_tokens", "response_tokens"), ("max_prompt_tokens", "max_response_tokens"))
    ]
    known = [(float(one.number), float(other.number)) for one, other in pairs if one.known and other.known]
    return max((response / (prompt + response) for prompt, response in known), default=1.0)


def _forward_tokens(said: Said, tokens: Figure) -> Figure | None:
    """Tokens of a micro-batch of passes without backward; None where nobody says, as they are those of training."""
    own = said.ask("logprob_micro_batch_tokens")
    if own.known:
        return own
    counted = said.ask("logprob_micro_batch_samples").known
    return _counted_tokens(said, "logprob_micro_batch_samples", tokens) if counted else None


def _counted_tokens(said: Said, key: str, tokens: Figure) -> Figure:
    """Tokens of a micro-batch whose samples are counted, from the mean tokens of a sequence."""
    found = apply(
        "micro_batch_tokens",
        training_peak.micro_batch_tokens,
        sequences=said.ask(key),
        sequence_tokens=tokens,
        context_parallel=1.0,
        micro_batches=1.0,
    )
    return said.keep(found)


def _takes_the_engines(said: Said) -> bool:
    """Whether the framework trains on the log-probabilities that its engines return, unless it is told otherwise."""
    framework = said.framework()
    if framework is None:
        return False
    from rlsize.frameworks.told import Reading
    from rlsize.frameworks.wanted import changes

    usual, updates = Reading(framework, ()), said.apart().ask("mini_batches")
    if updates.known:  # which some need old log-probabilities for
        usual = usual.changed(changes(usual, {"mini_batches": updates.number}).keys)
    passes = usual.value("loop.logprob_passes")
    if not isinstance(passes, tuple) or "old" in passes:
        return False
    said.keep(Figure(key="old_logprob", value=False, provenance="default", source=f"as {framework.title} does it"))
    return True


def passes_of(said: Said, kept: Tenants) -> tuple[tuple[str, ...], dict[str, Model], bool]:
    """The extra passes, the models of those that are not the policy's size, and whether this is RL."""
    if not kept.algorithm.rollout:
        return (), {}, False
    listed = said.listed("logprob_passes")
    wanted = {_NAMED[name] for name in listed} if listed is not None else {"old_logprob"}
    old = said.yes("old_logprob")
    if old is None and listed is None and _takes_the_engines(said):
        old = False
    if old is not None:
        wanted = (wanted | {"old_logprob"}) if old else wanted - {"old_logprob"}
    habit = kept.algorithm.reference if listed is None else "reference" in wanted
    wanted -= {"reference"}
    wanted |= {"reference"} if (habit if kept.reference is None else kept.reference) else set()
    wanted |= {"critic"} if kept.critic else set()
    wanted |= {"reward"} if kept.reward else set()
    named = {"reward": kept.reward_model, "reference": kept.reference_model}
    extra = {name: model for name, model in named.items() if model is not None}
    return tuple(name for name in _ORDER if name in wanted), extra, True
