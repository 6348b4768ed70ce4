"""The tables of a memory bill: tenants, parts of the training state, what fits."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.reports.report import Column, Table
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.estimates.memory import MemoryAnswer, MemoryQuestion, Tenant
    from rlsize.estimates.trainer_layout import TrainerLayout
    from rlsize.facts.figure import Figure
    from rlsize.planner.memory_fit import Candidate, FitAnswer
    from rlsize.reports.report import Cell

NAMES: Mapping[str, str] = MappingProxyType(
    {
        "trainer": "trainer",
        "critic": "critic",
        "reference": "reference",
        "reward": "reward model",
        "rollout_weights": "rollout weights",
        "kv_cache": "KV cache",
        "kv_cache_bytes": "KV cache",
        "rollout_weights_bytes": "rollout weights",
        "trainer_bytes": "training state",
        "critic_bytes": "critic",
        "reference_bytes": "reference",
        "reward_bytes": "reward model",
        "gathered_layer_bytes": "gathered layers",
        "activation_bytes": "activations",
        "logits_bytes": "logits",
        "allocator_bytes": "allocator's reserve",
        "engine_activation_bytes": "engine's largest step",
        "engine_other_bytes": "libraries and NCCL",
    }
)
"""What tenants and parts of a GPU's memory are called."""


def tenants_table(question: MemoryQuestion, answer: MemoryAnswer) -> Table:
    """Who holds what, by which rule, and how much of it stands on each GPU."""
    rows: list[dict[str, Cell]] = [
        {
            "tenant": NAMES[tenant.name],
            "bytes": tenant.held if tenant.held.known else None,
            "gpu_bytes": tenant.per_gpu if tenant.per_gpu is not None and tenant.per_gpu.known else None,
            "rule": _rule(question, tenant),
        }
        for tenant in answer.tenants
    ]
    for part in answer.overheads:
        name = part.key.removesuffix("_per_gpu")
        if part.known and part.number:
            rows.append(
                {"tenant": NAMES[name], "bytes": None, "gpu_bytes": part, "rule": _overhead_rule(question, name)}
            )
    rows.append({"tenant": "total", "bytes": answer.results[0], "gpu_bytes": None, "rule": _total_rule(answer)})
    sharded = any(row["gpu_bytes"] is not None for row in rows)
    columns = [Column("tenant", "tenant", "left"), Column("bytes", "bytes")]
    columns += [Column("gpu_bytes", "per GPU")] if sharded else []
    columns.append(Column("rule", "rule", "left", wide=True))
    return Table(title="Who holds what", columns=tuple(columns), rows=tuple(rows), note=_placement(question, answer))


def _placement(question: MemoryQuestion, answer: MemoryAnswer) -> str:
    said = []
    if question.layout is not None:
        held = next(figure for figure in answer.results if figure.key == "trainer_pool_bytes_per_gpu")
        gpus = show(question.layout.gpus.value)
        said.append(f"trainer: {layout_label(question.layout)} on {gpus} GPUs, {show(held.value, '_bytes')} on each")
    if question.rollout_tensor_parallel.known and question.algorithm.rollout:
        label = _instance_label(question, round(question.rollout_tensor_parallel.number))
        said.append(f"rollout instance: {label}")
    return "; ".join(said)


def _instance_label(question: MemoryQuestion, tensor_parallel: int) -> str:
    stages = round(question.rollout_pipeline_parallel.number)
    return f"TP{tensor_parallel}" + (f" PP{stages}" if stages > 1 else "")


def _rule(question: MemoryQuestion, tenant: Tenant) -> str:
    rules = {"rollout_weights": _rollout_rule, "kv_cache": _cache_rule}
    if tenant.name in rules:
        return rules[tenant.name](question, tenant.held)
    if not tenant.held.known:
        return f"needs {tenant.held.missing}"
    held = tenant.held.inputs
    if "lora_params" in held:
        adapters = f"{show(held['training_bytes_per_param'].value)} per adapter parameter"
        return f"2 N frozen + {adapters}, {show(held['lora_params'].value, '_params')} of them"
    own = "" if held["params"].key == "params" else f", N = {show(held['params'].value, '_params')}"
    if "training_bytes_per_param" in held:
        return f"{show(held['training_bytes_per_param'].value)} N{own}"
    return f"{show(held['bytes_per_param'].value)} N, frozen{own}"


def _rollout_rule(question: MemoryQuestion, held: Figure) -> str:
    each = held.inputs["instance_weight_bytes"].inputs
    wide = ", embeddings and norms in bf16" if each["unquantised_params"].number else ""
    count = question.instances.number
    times = "one instance" if count == 1 else f"on each of {show(count)} instances"
    return f"{show(each['bytes_per_param'].value)} N, {times}{wide}"


def _cache_rule(question: MemoryQuestion, held: Figure) -> str:
    if not held.known:
        return f"needs {held.missing}"
    sample = held.inputs["sample_kv_bytes"]
    samples = f"{show(sample.value, '_bytes')} x {show(question.concurrency.value)} samples"
    return samples if question.instances.number == 1 else f"{samples} x {show(question.instances.value)} instances"


def _overhead_rule(question: MemoryQuestion, name: str) -> str:
    tokens = show(question.micro_batch_tokens.value)
    return {
        "gathered_layer_bytes": "largest layer, embedding or head: two in bf16, gradients of one",
        "activation_bytes": f"{tokens} tokens, recompute {question.recompute.name}, flash attention",
        "logits_bytes": f"{tokens} tokens x vocabulary, not fused",
        "allocator_bytes": "reserved beyond what tensors take",
    }[name]


def _total_rule(answer: MemoryAnswer) -> str:
    unknown = [NAMES[tenant.name] for tenant in answer.tenants if not tenant.held.known]
    return f"without {', '.join(unknown)}" if unknown else ""


def parts_table(answer: MemoryAnswer) -> Table:
    """What the training state is made of."""
    return Table(
        title="The trainer's state",
        columns=(Column("part", "part", "left"), Column("bytes_per_param", "B/param"), Column("bytes", "bytes")),
        rows=tuple(
            {"part": name, "bytes_per_param": width, "bytes": held} for name, width, held in answer.trainer_parts
        ),
    )


def fit_table(question: MemoryQuestion, fit: FitAnswer) -> Table:
    """GPU counts against what each GPU holds."""
    candidates = [*fit.trainer, *fit.rollout]
    rows = tuple(_fit_row(question, candidate, fit) for candidate in candidates)
    columns = [
        Column("pool", "pool", "left"),
        Column("gpus", "GPUs"),
        Column("spread", "spread", "left"),
        Column("held_bytes", "held/GPU"),
        Column("left_bytes", "left/GPU"),
    ]
    if any(candidate.max_concurrency.known for candidate in fit.rollout):
        columns.append(Column("max_concurrency", "samples"))
    columns.append(Column("verdict", "fits", "left"))
    memory = show(fit.gpu.memory.value, "_bytes") + ("" if fit.gpu.memory.verified else ", unverified")
    instance = ".\nWhat a rollout instance has left goes to its KV cache" if fit.rollout else ""
    return Table(
        title=f"What fits on {fit.gpu.name} ({memory})",
        columns=tuple(columns),
        rows=rows,
        note=f"{_share(fit)} of the memory may be used{instance}",
    )


def _share(fit: FitAnswer) -> str:
    trainer = show(fit.gpu.trainer_fraction.value, "_fraction")
    if not fit.rollout or not fit.gpu.rollout_fraction.known:
        return trainer
    rollout = show(fit.gpu.rollout_fraction.value, "_fraction")
    return trainer if trainer == rollout else f"{trainer} (trainer) and {rollout} (rollout)"


def _fit_row(question: MemoryQuestion, candidate: Candidate, fit: FitAnswer) -> dict[str, Cell]:
    first = candidate.gpus == _gpus(fit.first_trainer if candidate.pool == "trainer" else fit.first_rollout)
    stated = candidate.gpus == _gpus(fit.stated_trainer if candidate.pool == "trainer" else fit.stated_rollout)
    verdict = ("first" if first else "yes") if candidate.fits else "no"
    instance = _instance_label(question, candidate.tensor_parallel)
    return {
        "pool": candidate.pool,
        "gpus": candidate.gpus,
        "spread": instance if candidate.layout is None else layout_label(candidate.layout),
        "held_bytes": candidate.held.value,
        "left_bytes": candidate.left.value,
        "max_concurrency": candidate.max_concurrency.value,
        "fits": candidate.fits,
        "verdict": f"{verdict} (stated)" if stated else verdict,
    }


def _gpus(candidate: Candidate | None) -> int:
    return candidate.gpus if candidate else 0


def layout_label(layout: TrainerLayout) -> str:
    """
    A layout in the field's shorthand.

    >>> from rlsize.estimates.trainer_layout import TrainerLayout
    >>> layout_label(TrainerLayout().spread_over(16))
    'FSDP16'
    """
    data, shards = layout.data_parallel.number, layout.shards.number
    if layout.zero_stage.number == 3:  # noqa: PLR2004 (ZeRO-3 is FSDP)
        said = [f"FSDP{show(shards)}" + (f" x {show(data / shards)}" if shards < data else "")]
    else:
        said = [f"DP{show(data)} ZeRO-{show(layout.zero_stage.value)}"]
    degrees = (
        ("TP", layout.tensor_parallel),
        ("PP", layout.pipeline_parallel),
        ("CP", layout.context_parallel),
        ("EP", layout.expert_parallel),
    )
    said += [f"{name}{show(degree.value)}" for name, degree in degrees if degree.number > 1]
    return " ".join(said)
