"""What to say about a predicted rollout: rates with bands, where a step's time goes, what to measure first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.estimates.rollout_prediction import borrows
from rlsize.facts.engine_traits import engine_traits
from rlsize.facts.figure import Figure, absent
from rlsize.facts.quantisation import native, uniform
from rlsize.reports.report import Cell, Column, Report, Table
from rlsize.reports.rollout_chart import PARTS, rollout_chart
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.estimates.rollout_outlook import RolloutOutlook
    from rlsize.estimates.rollout_question import RolloutQuestion
    from rlsize.estimates.rollout_sweep import Level

_LIMITS = {
    "offered": "as many as are offered",
    "cache": "as many as its KV cache holds",
    "engine": "as many as the engine's limit lets through",
}
_WIDE = 1.5  # high end of a band over its low end from which a measurement is worth its while
_MOST_TOLD = 2
_QUIET = frozenset({"prefill_seconds", "longest_response_tokens"})


def predict_rollout_report(
    outlook: RolloutOutlook, inputs: Sequence[Figure], warnings: Sequence[str] = (), notes: Sequence[str] = ()
) -> Report:
    """
    The report of `rlsize predict rollout`.

    Args:
        outlook: What to expect.
        inputs: What it was worked out from.
        warnings: What the reader must know first.
        notes: Why an input is what it is.
    """
    return Report(
        command="predict rollout",
        headline=_headline(outlook),
        results=outlook.results,
        inputs=tuple(inputs),
        tables={"levels": _levels(outlook), "parts": _parts(outlook)},
        warnings=(*warnings, *_warnings(outlook)),
        notes=(*notes, *_notes(outlook), _advice(outlook)),
        chart=rollout_chart(outlook),
        quiet=_QUIET,
    )


def does_not_fit_report(
    question: RolloutQuestion,
    reason: str,
    degree: int | None,
    inputs: Sequence[Figure],
    warnings: Sequence[str] = (),
    *,
    narrower: bool = False,
) -> Report:
    """
    The report about an engine that does not fit.

    Args:
        question: What was asked.
        reason: Why it does not, in a line.
        degree: The smallest degree of tensor parallelism at which it would; None where there is none.
        inputs: What it was worked out from.
        warnings: What the reader must know first.
        narrower: Whether it would fit as laid out with 8-bit weights.
    """
    layout = question.engine.layout
    ways = [f"--tensor-parallel {degree}"] if degree is not None and degree != layout.tensor else []
    ways += ["--dtype fp8"] if narrower else []
    others = f"It would fit with {' or with '.join(ways)}." if ways else "No tensor parallelism holds it on this GPU."
    key = "rollout_first_fit_gpus"
    first = absent(key, "--gpu")
    if degree is not None:
        first = Figure(key=key, value=degree * layout.pipeline * layout.data, provenance="predicted", source=others)
    return Report(
        command="predict rollout",
        headline=f"{reason[0].upper()}{reason[1:]}. {others}",
        results=(Figure(key="rollout_fits", value=False, provenance="predicted", source=reason), first),
        inputs=tuple(inputs),
        warnings=tuple(warnings),
        no=True,
    )


def _headline(outlook: RolloutOutlook) -> str:
    engine = outlook.question.engine
    gpus = engine.layout.tensor * engine.layout.pipeline * engine.layout.data
    rate = outlook.figure("rollout_gpu_tokens_per_second")
    batch = outlook.sweep.asked.concurrency
    samples = f"{show(batch)} samples" if batch > 1 else "one sample"
    low, high = (show(end, rate.key) for end in rate.band or (rate.number, rate.number))
    where = f"{gpus} {engine.gpu.name}" if gpus > 1 else f"one {engine.gpu.name}"
    text = (
        f"{engine.model.name} on {where} generates {show(rate.value, rate.key)} per GPU ({low} to {high}) with "
        f"{samples} at once, {_LIMITS[outlook.limited_by]}."
    )
    step = next((figure for figure in outlook.results if figure.key == "generation_seconds" and figure.known), None)
    if step is None:
        return text
    ends = [show(end, step.key) for end in step.band or (step.number, step.number)]
    return f"{text} The samples of a step take {show(step.value, step.key)} ({ends[0]} to {ends[1]})."


def _levels(outlook: RolloutOutlook) -> Table:
    return Table(
        title="Rates against concurrency",
        columns=(
            Column("concurrency", "samples"),
            Column("rollout_gpu_tokens_per_second", "per GPU"),
            Column("low_tokens_per_second", "low"),
            Column("high_tokens_per_second", "high"),
            Column("engine_step_seconds", "step"),
            Column("ttft_seconds", "TTFT"),
        ),
        rows=tuple(_level(level) for level in outlook.sweep.levels),
        marked=outlook.sweep.here,
        note="samples at once; low and high: an 80 % band of the rate per GPU; TTFT: time to first token",
    )


def _level(level: Level) -> Mapping[str, Cell]:
    rate = level.gpu_tokens_per_second
    low, high = rate.band or (rate.number, rate.number)
    return {
        "concurrency": level.concurrency,
        "rollout_gpu_tokens_per_second": rate.number,
        "low_tokens_per_second": low,
        "high_tokens_per_second": high,
        "instance_tokens_per_second": level.tokens_per_second.number,
        "engine_step_seconds": level.step_seconds,
        "ttft_seconds": level.ttft_seconds,
        "tpot_seconds": level.tpot_seconds,
        **{f"{name}_part_seconds": seconds for name, seconds in level.parts.items()},
    }


def _parts(outlook: RolloutOutlook) -> Table:
    level = outlook.sweep.asked
    whole = sum(level.parts.values())
    ranked = sorted(((seconds, name) for name, seconds in level.parts.items() if seconds > 0), reverse=True)
    rows: tuple[Mapping[str, Cell], ...] = tuple(
        {"part": PARTS[name], "name": name, "seconds": seconds, "share_fraction": seconds / whole}
        for seconds, name in ranked
    )
    return Table(
        title=f"Where a step's time goes with {show(level.concurrency)} samples at once",
        columns=(Column("part", "part", "left"), Column("seconds", "time"), Column("share_fraction", "share")),
        rows=rows,
        note="prompts: prefill of new samples, spread over the steps",
    )


def _warnings(outlook: RolloutOutlook) -> list[str]:
    question, found = outlook.question, []
    layout, gpu = question.engine.layout, question.engine.gpu
    node = gpu.specification.gpus_per_node.value
    if layout.tensor > node:
        found.append(
            f"{layout.tensor} tensor-parallel ranks span nodes of {node:g} GPUs: links between nodes are slower"
        )
    tokens = outlook.figure("kv_cache_tokens").number
    longest = question.prompt_tokens.number + question.max_response_tokens.number
    if question.max_response_tokens.provenance == "given" and tokens < longest:
        found.append(
            f"the cache holds {tokens:,.0f} tokens, and the longest sample has {longest:,.0f}: an engine refuses that"
        )
    return found


def _notes(outlook: RolloutOutlook) -> list[str]:
    engine, notes = outlook.question.engine, []
    if engine.weights is None and native(engine.model.name) != uniform("bf16"):
        types = native(engine.model.name)
        notes.append(f"Weights as published: attention {types.attention}, experts {types.experts}.")
    if not engine.version:
        notes.append(f"A recent version of {engine.engine} is assumed (--engine-version says which).")
    if borrows(engine.gpu):
        notes.append(
            f"Kernel times are those of the {engine.gpu.kernels_like}, scaled by peak and bandwidth: the band is wider."
        )
    reserving = engine_traits(engine.engine).admission == "reserving"
    if reserving and outlook.question.max_response_tokens.provenance != "given":
        notes.append(f"{engine.engine} keeps room for the longest response: give --max-response-tokens.")
    if not outlook.question.whole_step:
        notes.append("The time of a step's samples needs the fleet and the batch: --instances, --samples.")
    cap = outlook.question.max_response_tokens
    if outlook.question.whole_step and outlook.question.ending == "barrier" and cap.provenance != "given":
        notes.append(
            f"Nobody said a cap (--max-response-tokens): the tail is that of lengths up to {cap.number:,.0f} tokens."
        )
    told = outlook.doubts[:_MOST_TOLD]
    if told:
        words = "; ".join(f"{doubt.meaning} ({doubt.share:.0%})" for doubt in told)
        notes.append(f"The band of the rate comes from: {words}.")
    return notes


def _advice(outlook: RolloutOutlook) -> str:
    rate = outlook.figure("instance_tokens_per_second")
    low, high = rate.band or (rate.number, rate.number)
    batch = show(outlook.sweep.asked.concurrency)
    if high > _WIDE * low:
        return (
            f"The band is wide. Measure the rate at {batch} samples first (rlsize measure --only rollout), then at an "
            "eighth of them: two points tell fixed times from those that grow with the batch."
        )
    return f"A rate measured at {batch} samples replaces this one (rlsize measure); rlsize calibrate carries it over."
