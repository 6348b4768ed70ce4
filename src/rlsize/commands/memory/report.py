"""What to say about a memory bill: who holds what, what fits, and the picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.estimates.memory import FROZEN, TRAINER_POOL
from rlsize.estimates.trainer_layout import WEIGHT_STAGE
from rlsize.facts.quantisation import WIDTHS
from rlsize.planner.memory_fit import most_that_fits
from rlsize.reports.chart import Chart, Series
from rlsize.reports.report import Column, Report, Table, Unseen, tables_of
from rlsize.reports.wording import numbered
from rlsize.units import listed, show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.estimates.memory import MemoryAnswer, MemoryQuestion, Tenant
    from rlsize.estimates.trainer_layout import TrainerLayout
    from rlsize.facts.figure import Figure, Value
    from rlsize.planner.memory_fit import Candidate, FitAnswer
    from rlsize.reports.report import Cell
    from rlsize.shell.inputs import Inputs

_BF16 = WIDTHS["bf16"]
_TOLD = frozenset(
    {
        "kv_bytes_per_token", "context_tokens", "sample_kv_cache_bytes", "gpu_memory_bytes",
        "trainer_fits", "rollout_fits", "trainer_first_fit_gpus", "rollout_first_fit_gpus", "max_concurrency",
        "max_micro_batch_tokens", "engine_kv_cache_tokens",
    }
)  # fmt: skip
_ONE_SAMPLE = frozenset(
    {"kv_bytes_per_token", "context_tokens", "sample_kv_cache_bytes", "max_concurrency", "max_micro_batch_tokens"}
)

_NAMES: Mapping[str, str] = {
    "trainer": "trainer",
    "critic": "critic",
    "reference": "reference",
    "reward": "reward model",
    "rollout_weights": "rollout weights",
    "kv_cache": "KV cache",
    "trainer_bytes": "training state",
    "gathered_layer_bytes": "gathered layers",
    "activation_bytes": "activations",
    "logits_bytes": "logits",
    "allocator_bytes": "allocator's reserve",
    "engine_activation_bytes": "engine's largest step",
    "engine_other_bytes": "libraries and NCCL",
}
"""What tenants, and parts of a GPU's memory that are no tenant's, are called."""


def memory_report(
    question: MemoryQuestion, answer: MemoryAnswer, fit: FitAnswer | None, inputs: Inputs, start: Sequence[Figure] = ()
) -> Report:
    """
    The report of `rlsize memory`.

    Args:
        question: What was asked.
        answer: The bill.
        fit: What fits on the GPU; None where none is named.
        inputs: What it was worked out from, with its warnings and notes.
        start: What the rollout engine would find at start-up, predicted.
    """
    most = most_that_fits(question, fit) if fit else ()
    results = (*(fit.results if fit else ()), *most, *start, *answer.results)
    cells = (
        Column("part", "part", "left", of=lambda part: part[0]),
        Column("bytes_per_param", "B/param", of=lambda part: part[1]),
        Column("bytes", "bytes", of=lambda part: part[2]),
    )
    parts = Table.of("The trainer's state", answer.trainer_parts, cells)
    fitting = _fit_table(question, fit) if fit else None
    return Report(
        command="memory",
        headline=headline(answer, fit),
        results=results,
        tables=tables_of(tenants=_tenants_table(question, answer), trainer_parts=parts, fit=fitting),
        chart=_chart(question, answer),
        no=bool(fit and fit.refused),
        quiet=frozenset(figure.key for figure in results if not _told(figure)),
        **inputs.told(notes=(*_notes(question, answer, fit), *_binding(most), *_at_start(start))),
    )


def _called(part: str) -> str:
    """What a part of a GPU's memory is called, which may be a tenant."""
    return _NAMES.get(part) or _NAMES.get(part.removesuffix("_bytes"), part)


def _told(figure: Figure) -> bool:
    """Whether people see it beside the tables; the cache of a model without a shape is in the bill's rule already."""
    if figure.key == "total_bytes":  # the table has it, but no table has a band
        return figure.band is not None
    return figure.key in _TOLD and (figure.known or figure.key not in _ONE_SAMPLE)


def headline(answer: MemoryAnswer, fit: FitAnswer | None) -> str:
    """The bill, and what fits where that is asked."""
    known = [tenant for tenant in answer.tenants if tenant.held.known]
    listed = ", ".join(f"{_NAMES[tenant.name]} {show(tenant.held.value, '_bytes')}" for tenant in known)
    without = " without KV cache" if len(known) < len(answer.tenants) else ""
    bill = f"{show(answer.results[0].value, '_bytes')} in all{without}: {listed}."
    if fit is None:
        return bill
    if fit.misfits:
        return " ".join([*(_refusal(candidate, fit) for candidate in fit.misfits), bill])
    return f"{bill} {_acceptance(fit)}"


def _refusal(candidate: Candidate, fit: FitAnswer) -> str:
    """Why a stated placement does not fit, which tenant binds, and what would do."""
    first = fit.first_rollout
    if candidate.pool == "trainer":
        first = fit.first_trainer
        binding = max(candidate.parts, key=lambda part: part.number)
        held = f"each of its {candidate.gpus} GPUs holds {show(candidate.held.value, '_bytes')}"
        reason = f"{held}, most of it the {_called(binding.key.removesuffix('_per_gpu'))}"
        whose = "The trainer"
    else:
        most = candidate.max_concurrency
        room = f"its cache holds {show(most.value)} samples at once" if most.known else "it has no room for a KV cache"
        reason = f"on {numbered(candidate.gpus, 'GPU')} {room}"
        whose = "A rollout instance"
    way_out = f"first fits: {first.gpus} GPUs{_as_spread(first)}" if first else "no GPU count fits"
    return f"{whose} does not fit on {fit.gpu.name}: {reason}; {way_out}."


def _as_spread(candidate: Candidate) -> str:
    """How the GPUs of a trainer are used; the first count that fits may be spread in another way than was asked."""
    return f" as {_layout_label(candidate.layout)}" if candidate.layout is not None else ""


def _acceptance(fit: FitAnswer) -> str:
    said = []
    lacking = {figure.key: figure.missing for figure in fit.results}
    for stated, first, whose, key in (
        (fit.stated_trainer, fit.first_trainer, "the trainer", "trainer_first_fit_gpus"),
        (fit.stated_rollout, fit.first_rollout, "a rollout instance", "rollout_first_fit_gpus"),
    ):
        if stated is not None:
            said.append(f"{whose} fits as stated")
        elif first is not None:
            said.append(f"{whose} first fits on {numbered(first.gpus, 'GPU')}{_as_spread(first)}")
        elif whose == "the trainer" or fit.rollout:
            said.append(f"{whose} fits on no number of GPUs (it needs {lacking[key]})")
    return f"On {fit.gpu.name} {', '.join(said)}."


def _notes(question: MemoryQuestion, answer: MemoryAnswer, fit: FitAnswer | None) -> list[str]:
    notes = []
    others = [_NAMES[tenant.name] for tenant in answer.tenants if tenant.name in TRAINER_POOL[1:]]
    if others and (question.layout or fit):
        verb = "share" if len(others) > 1 else "shares"
        notes.append(f"The {listed(others)} {verb} the trainer's GPUs here, sharded as the policy's weights are.")
    recompute, optimizer = question.recompute, question.optimizer
    told = {
        f"recompute {recompute.name}: {recompute.note}.": question.micro_batch_tokens.known,
        "Optimizer state and master weights are on the host: GPUs hold none of them.": question.offload,
        f"{optimizer.name}: {optimizer.note}.": bool(optimizer.note),
        "Adapters sit on attention, dense MLPs and shared experts of the policy, not on routed experts.": (
            question.lora_rank.known
        ),
    }
    notes += [note for note, so in told.items() if so]
    if any(tenant.name == "kv_cache" and tenant.held.known for tenant in answer.tenants):
        notes.append("No sample shares its prompt's blocks here; prefix caching stores the prompt of a group once.")
    lacking = []
    if question.model is None or not all(figure.known for figure in answer.overheads):
        lacking.append("gathered layers (--model)")
    if not question.micro_batch_tokens.known:
        lacking.append("activations and logits (--micro-batch-tokens)")
    if lacking and (question.layout or fit):
        notes.append(f"Not counted on the trainer's GPUs: {', '.join(lacking)}.")
    return notes


def _binding(most: Sequence[Figure]) -> list[str]:
    """What each side's GPUs hold most of."""
    named = {figure.key: _called(str(figure.value)) for figure in most}
    said = [
        f"{whose} by the {named[key]}"
        for key, whose in (("trainer_binding_part", "the trainer"), ("rollout_binding_part", "a rollout instance"))
        if key in named
    ]
    return [f"What binds: {' and '.join(said)}."] if said else []


def _at_start(start: Sequence[Figure]) -> list[str]:
    """What the predicted cache stands for."""
    cache = next((figure for figure in start if figure.key == "engine_kv_cache_tokens"), None)
    if cache is None:
        return []
    if not cache.number:
        return ["An engine is not expected to find room for its KV cache there: it profiles its largest step first."]
    return ["Engine KV cache tokens: what vLLM is expected to log at start-up, with an 80 % band."]


def _chart(question: MemoryQuestion, answer: MemoryAnswer) -> Chart | None:
    """The bills of the algorithms, side by side; None where the trainer's own is unknown."""
    own = question.algorithm.name
    bills = {f"{name} (asked)" if name == own else name: tenants for name, tenants in answer.alternatives}
    if not all(tenants[0].held.known for tenants in bills.values()):
        return None
    heights = {name: tuple(_height(tenants, name) for tenants in bills.values()) for name in _NAMES}
    said = [f"{show(question.params.value, '_params')} parameters", question.optimizer.name]
    said += [f"adapters of rank {show(question.lora_rank.value)}"] if question.lora_rank.known else []
    said += [] if all(tenant.held.known for tenant in answer.tenants) else ["without KV cache"]
    return Chart(
        title=_takeaway(question, answer),
        x_label="algorithm",
        y_label="bytes in all; of the trainer one copy",
        subtitle=", ".join(said),
        kind="stacked",
        series=tuple(Series(name=_NAMES[name], xs=tuple(bills), ys=ys) for name, ys in heights.items() if any(ys)),
    )


def _height(tenants: Sequence[Tenant], name: str) -> float:
    return sum(tenant.held.number for tenant in tenants if tenant.name == name and tenant.held.known)


def _takeaway(question: MemoryQuestion, answer: MemoryAnswer) -> str:
    own, bills = question.algorithm.name, dict(answer.alternatives)
    grpo, ppo, asked = (
        sum(tenant.held.number for tenant in tenants if tenant.held.known)
        for tenants in (bills["grpo"], bills["ppo"], answer.tenants)
    )
    said = f"{own.upper()} holds {show(asked, '_bytes')}"
    critic = show(_height(bills["ppo"], "critic"), "_bytes")
    told = {"grpo": f"{said}: without a critic it saves {critic}", "ppo": f"{said}: its critic takes {critic}"}
    return told.get(own, said) if ppo > grpo else said


def _tenants_table(question: MemoryQuestion, answer: MemoryAnswer) -> Table:
    """Who holds what, by which rule, and how much of it stands on each GPU."""
    rows: list[dict[str, Cell]] = [
        {
            "tenant": _NAMES[tenant.name],
            "bytes": tenant.held if tenant.held.known else None,
            "gpu_bytes": tenant.per_gpu if tenant.per_gpu is not None and tenant.per_gpu.known else None,
            "rule": _rule(question, answer, tenant),
        }
        for tenant in answer.tenants
    ]
    tokens = show(question.micro_batch_tokens.value)
    rules = {
        "gathered_layer_bytes": "largest layer, embedding or head: two in bf16, gradients of one",
        "activation_bytes": f"{tokens} tokens, recompute {question.recompute.name}, flash attention",
        "logits_bytes": f"{tokens} tokens x vocabulary, {'' if question.keeps.fused_loss else 'not '}fused",
        "allocator_bytes": "reserved beyond what tensors take",
    }
    for part in answer.overheads:
        name = part.key.removesuffix("_per_gpu")
        if part.known and part.number:
            rows.append({"tenant": _NAMES[name], "bytes": None, "gpu_bytes": part, "rule": rules[name]})
    unknown = [_NAMES[tenant.name] for tenant in answer.tenants if not tenant.held.known]
    without = f"without {', '.join(unknown)}" if unknown else ""
    rows.append({"tenant": "total", "bytes": answer.results[0], "gpu_bytes": None, "rule": without})
    sharded = any(row["gpu_bytes"] is not None for row in rows)
    columns = [Column("tenant", "tenant", "left"), Column("bytes", "bytes")]
    columns += [Column("gpu_bytes", "per GPU")] if sharded else []
    columns.append(Column("rule", "rule", "left", wide=True))
    return Table(title="Who holds what", columns=tuple(columns), rows=tuple(rows), note=_placement(question, answer))


def _placement(question: MemoryQuestion, answer: MemoryAnswer) -> str:
    said = []
    if question.layout is not None:
        held = next(figure for figure in answer.results if figure.key == "trainer_pool_bytes_per_gpu")
        gpus = question.layout.gpus.number
        on = f"{show(gpus)} GPU{'s' * (gpus != 1)}, {show(held.value, '_bytes')} on each"
        said.append(f"trainer: {_layout_label(question.layout)} on {on}")
    if question.rollout_tensor_parallel.known and question.algorithm.rollout:
        label = _instance_label(question, round(question.rollout_tensor_parallel.number))
        said.append(f"rollout instance: {label}")
    return "; ".join(said)


def _instance_label(question: MemoryQuestion, tensor_parallel: int) -> str:
    stages = round(question.rollout_pipeline_parallel.number)
    return f"TP{tensor_parallel}" + (f" PP{stages}" if stages > 1 else "")


def _rule(question: MemoryQuestion, answer: MemoryAnswer, tenant: Tenant) -> str:
    """How the bytes of a tenant follow from its parameters, N, or from its tokens."""
    if not tenant.held.known:
        return f"needs {tenant.held.missing}"
    held, instances = tenant.held.inputs, show(question.instances.value)
    several = question.instances.number != 1
    if tenant.name == "rollout_weights":
        width = WIDTHS[str(question.rollout_dtype.value)]
        wide = ", embeddings and norms in bf16" if question.model is not None and width < _BF16 else ""
        return f"{show(width)} N, {f'on each of {instances} instances' if several else 'one instance'}{wide}"
    if tenant.name == "kv_cache":
        sample = show(held["sample_kv_bytes"].value, "_bytes")
        samples = f"{sample} x {show(question.concurrency.value)} samples"
        return f"{samples} x {instances} instances" if several else samples
    states = show(sum(width.number for name, width, _ in answer.trainer_parts if name != FROZEN))
    if tenant.name == "trainer" and question.lora_rank.known:
        frozen, many = show(answer.trainer_parts[0][1].value), show(question.adapter_params.value, "_params")
        return f"{frozen} N frozen + {states} per adapter parameter, {many} of them"
    size = question.beside.get(tenant.name, question.params)
    own = f", N = {show(size.value, '_params')}" if size.known and tenant.name != "trainer" else ""
    return f"{states} N{own}" if tenant.name in {"trainer", "critic"} else f"{show(_BF16)} N, frozen{own}"


def _fit_table(question: MemoryQuestion, fit: FitAnswer) -> Table:
    """GPU counts against what each GPU holds."""
    counted = any(candidate.max_concurrency.known for candidate in fit.rollout)
    cells: tuple[Column | Unseen, ...] = (
        Column("pool", "pool", "left"),
        Column("gpus", "GPUs"),
        Column("spread", "spread", "left", of=lambda one: _spread(question, one)),
        Column("held_bytes", "held/GPU", of=lambda one: one.held.value),
        Column("left_bytes", "left/GPU", of=lambda one: one.left.value),
        (Column("max_concurrency", "samples", of=_samples) if counted else Unseen("max_concurrency", _samples)),
        Unseen("fits"),
        Column("verdict", "fits", "left", of=lambda one: _verdict(fit, one)),
    )
    memory = show(fit.gpu.memory.value, "_bytes") + ("" if fit.gpu.memory.verified else ", unverified")
    instance = ".\nWhat a rollout instance has left goes to its KV cache" if fit.rollout else ""
    share = trainer = show(fit.gpu.trainer_fraction.value, "_fraction")
    if fit.rollout and fit.gpu.rollout_fraction.known:
        rollout = show(fit.gpu.rollout_fraction.value, "_fraction")
        share = trainer if trainer == rollout else f"{trainer} (trainer) and {rollout} (rollout)"
    note = f"{share} of the memory may be used{instance}"
    return Table.of(f"What fits on {fit.gpu.name} ({memory})", (*fit.trainer, *fit.rollout), cells, note=note)


def _samples(candidate: Candidate) -> Value:
    return candidate.max_concurrency.value


def _spread(question: MemoryQuestion, one: Candidate) -> str:
    return _instance_label(question, one.tensor_parallel) if one.layout is None else _layout_label(one.layout)


def _verdict(fit: FitAnswer, one: Candidate) -> str:
    """Whether a number of GPUs fits, is the first that does, and is the one that was stated."""
    trainer = one.pool == "trainer"
    first, stated = (fit.first_trainer, fit.stated_trainer) if trainer else (fit.first_rollout, fit.stated_rollout)
    fits = "first" if first is not None and one.gpus == first.gpus else "yes"
    verdict = fits if one.fits else "no"
    return f"{verdict} (stated)" if stated is not None and one.gpus == stated.gpus else verdict


def _layout_label(layout: TrainerLayout) -> str:
    """
    A layout in the field's shorthand.

    >>> from rlsize.estimates.trainer_layout import TrainerLayout
    >>> _layout_label(TrainerLayout().spread_over(16))
    'FSDP16'
    """
    data, shards = layout.data_parallel.number, layout.shards.number
    if layout.zero_stage.number == WEIGHT_STAGE:  # ZeRO-3 is FSDP
        said = [f"FSDP{show(shards)}" + (f" x {show(data / shards)}" if shards < data else "")]
    else:
        said = [f"DP{show(data)} ZeRO-{show(layout.zero_stage.value)}"]
    degrees = layout.tensor_parallel, layout.pipeline_parallel, layout.context_parallel, layout.expert_parallel
    named = zip(("TP", "PP", "CP", "EP"), degrees, strict=True)
    return " ".join([*said, *(f"{name}{show(degree.value)}" for name, degree in named if degree.number > 1)])
