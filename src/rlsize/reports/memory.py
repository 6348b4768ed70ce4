"""What to say about a memory bill: who holds what, what fits, and the picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.estimates.memory import TRAINER_POOL
from rlsize.planner.memory_fit import most_that_fits
from rlsize.reports.chart import Chart, Series
from rlsize.reports.memory_tables import NAMES, fit_table, layout_label, parts_table, tenants_table
from rlsize.reports.report import Report
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.estimates.memory import MemoryAnswer, MemoryQuestion, Tenant
    from rlsize.facts.figure import Figure
    from rlsize.planner.memory_fit import Candidate, FitAnswer

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


def memory_report(
    question: MemoryQuestion,
    answer: MemoryAnswer,
    fit: FitAnswer | None,
    inputs: Sequence[Figure],
    warnings: Sequence[str] = (),
    notes: Sequence[str] = (),
    start: Sequence[Figure] = (),
) -> Report:
    """
    The report of `rlsize memory`.

    Args:
        question: What was asked.
        answer: The bill.
        fit: What fits on the GPU; None where none is named.
        inputs: What it was worked out from.
        warnings: What the reader must know first.
        notes: Why an input is what it is.
        start: What the rollout engine would find at start-up, predicted.
    """
    most = most_that_fits(question, fit) if fit else ()
    results = (*answer.results, *(fit.results if fit else ()), *most, *start)
    tables = {"tenants": tenants_table(question, answer), "trainer_parts": parts_table(answer)}
    if fit:
        tables["fit"] = fit_table(question, fit)
    return Report(
        command="memory",
        headline=_headline(answer, fit),
        results=results,
        inputs=tuple(inputs),
        tables=tables,
        warnings=tuple(warnings),
        notes=(*notes, *_notes(question, answer, fit), *_binding(most), *_at_start(start)),
        chart=_chart(question, answer),
        no=bool(fit and fit.refused),
        quiet=frozenset(figure.key for figure in results if not _told(figure)),
    )


def _told(figure: Figure) -> bool:
    """Whether people see it beside the tables; the cache of a model without a shape is in the bill's rule already."""
    if figure.key == "total_bytes":  # the table has it, but no table has a band
        return figure.band is not None
    return figure.key in _TOLD and (figure.known or figure.key not in _ONE_SAMPLE)


def _headline(answer: MemoryAnswer, fit: FitAnswer | None) -> str:
    bill = _bill(answer.tenants, answer.results[0])
    if fit is None:
        return bill
    refusals = [_refusal(candidate, fit) for candidate in fit.misfits]
    return " ".join([*refusals, bill, *([] if refusals else [_acceptance(fit)])])


def _bill(tenants: Sequence[Tenant], total: Figure) -> str:
    known = [f"{NAMES[tenant.name]} {show(tenant.held.value, '_bytes')}" for tenant in tenants if tenant.held.known]
    without = " without KV cache" if any(not tenant.held.known for tenant in tenants) else ""
    return f"{show(total.value, '_bytes')} in all{without}: {', '.join(known)}."


def _refusal(candidate: Candidate, fit: FitAnswer) -> str:
    """Why a stated placement does not fit, which tenant binds, and what would do."""
    first = fit.first_trainer if candidate.pool == "trainer" else fit.first_rollout
    if candidate.pool == "trainer":
        binding = max(candidate.parts, key=lambda part: part.number)
        held = f"each of its {candidate.gpus} GPUs holds {show(candidate.held.value, '_bytes')}"
        reason = f"{held}, most of it the {NAMES[binding.key.removesuffix('_per_gpu')]}"
        whose = "The trainer"
    else:
        most = candidate.max_concurrency
        room = f"its cache holds {show(most.value)} samples at once" if most.known else "it has no room for a KV cache"
        reason = f"on {candidate.gpus} GPU{'s' if candidate.gpus > 1 else ''} {room}"
        whose = "A rollout instance"
    way_out = f"first fits: {first.gpus} GPUs{_as_spread(first)}" if first else "no GPU count fits"
    return f"{whose} does not fit on {fit.gpu.name}: {reason}; {way_out}."


def _as_spread(candidate: Candidate) -> str:
    """How the GPUs of a trainer are used; the first count that fits may be spread in another way than was asked."""
    return f" as {layout_label(candidate.layout)}" if candidate.layout is not None else ""


def _acceptance(fit: FitAnswer) -> str:
    said = []
    for stated, first, whose in (
        (fit.stated_trainer, fit.first_trainer, "the trainer"),
        (fit.stated_rollout, fit.first_rollout, "a rollout instance"),
    ):
        if stated is not None:
            said.append(f"{whose} fits as stated")
        elif first is not None:
            said.append(f"{whose} first fits on {first.gpus} GPU{'s' if first.gpus > 1 else ''}{_as_spread(first)}")
        elif whose == "the trainer" or fit.rollout:
            said.append(f"{whose} fits on no number of GPUs")
    return f"On {fit.gpu.name} {', '.join(said)}."


def _notes(question: MemoryQuestion, answer: MemoryAnswer, fit: FitAnswer | None) -> list[str]:
    notes = []
    others = [NAMES[tenant.name] for tenant in answer.tenants if tenant.name in TRAINER_POOL[1:]]
    if others and (question.layout or fit):
        listed = f"{', '.join(others[:-1])} and {others[-1]}" if len(others) > 1 else others[0]
        verb = "share" if len(others) > 1 else "shares"
        notes.append(f"The {listed} {verb} the trainer's GPUs here, sharded as the policy's weights are.")
    if question.micro_batch_tokens.known:
        notes.append(f"recompute {question.recompute.name}: {question.recompute.note}.")
    if question.optimizer.note:
        notes.append(f"{question.optimizer.name}: {question.optimizer.note}.")
    if question.lora_rank.known:
        notes.append("Adapters sit on attention, dense MLPs and shared experts of the policy, not on routed experts.")
    if any(tenant.name == "kv_cache" and tenant.held.known for tenant in answer.tenants):
        notes.append("No sample shares its prompt's blocks here; prefix caching stores the prompt of a group once.")
    if question.layout or fit:
        notes.append(_left_out(question, answer))
    return [note for note in notes if note]


def _binding(most: Sequence[Figure]) -> list[str]:
    """What each side's GPUs hold most of."""
    named = {figure.key: NAMES.get(str(figure.value), str(figure.value)) for figure in most}
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


def _left_out(question: MemoryQuestion, answer: MemoryAnswer) -> str:
    """What each trainer GPU holds beside the states that was not counted, and which flag would count it."""
    missing = [figure.missing for figure in answer.overheads if not figure.known]
    lacking = []
    if question.known_shape is None or missing:
        lacking.append("gathered layers (--model)")
    if not question.micro_batch_tokens.known:
        lacking.append("activations and logits (--micro-batch-tokens)")
    return f"Not counted on the trainer's GPUs: {', '.join(lacking)}." if lacking else ""


def _chart(question: MemoryQuestion, answer: MemoryAnswer) -> Chart | None:
    """The bills of the algorithms, side by side; None where the trainer's own is unknown."""
    bills = {_bar(question, name): tenants for name, tenants in answer.alternatives}
    if not all(tenants[0].held.known for tenants in bills.values()):
        return None
    names = list(dict.fromkeys(tenant.name for tenants in bills.values() for tenant in tenants))
    ordered = [name for name in NAMES if name in names]
    return Chart(
        title=_takeaway(question, answer),
        x_label="algorithm",
        y_label="bytes, one copy of each state",
        subtitle=_subtitle(question, answer),
        kind="stacked",
        series=tuple(
            Series(name=NAMES[name], xs=tuple(bills), ys=tuple(_height(tenants, name) for tenants in bills.values()))
            for name in ordered
            if any(_height(tenants, name) for tenants in bills.values())
        ),
    )


def _subtitle(question: MemoryQuestion, answer: MemoryAnswer) -> str:
    missing = any(not tenant.held.known for tenant in answer.tenants)
    said = [f"{show(question.params.value, '_params')} parameters", question.optimizer.name]
    said += [f"adapters of rank {show(question.lora_rank.value)}"] if question.lora_rank.known else []
    return ", ".join([*said, "without KV cache"] if missing else said)


def _bar(question: MemoryQuestion, name: str) -> str:
    return f"{name} (asked)" if name == question.algorithm.name else name


def _height(tenants: Sequence[Tenant], name: str) -> float:
    return sum(tenant.held.number for tenant in tenants if tenant.name == name and tenant.held.known)


def _takeaway(question: MemoryQuestion, answer: MemoryAnswer) -> str:
    bills = dict(answer.alternatives)
    grpo, ppo = (sum(_height(bills[name], tenant.name) for tenant in bills[name]) for name in ("grpo", "ppo"))
    asked = sum(_height(answer.tenants, tenant.name) for tenant in answer.tenants)
    said = f"{question.algorithm.name.upper()} holds {show(asked, '_bytes')}"
    critic = _height(bills["ppo"], "critic")
    if question.algorithm.name == "grpo" and ppo > grpo:
        return f"{said}: without a critic it saves {show(critic, '_bytes')}"
    if question.algorithm.name == "ppo" and ppo > grpo:
        return f"{said}: its critic takes {show(critic, '_bytes')}"
    return said
