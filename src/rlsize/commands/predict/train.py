"""`rlsize predict train`: how long the trainer works on an optimizer step, and where the time goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.dataclass import replace
from rlsize.facts.figure import Figure
from rlsize.reports.chart import Chart, Series
from rlsize.reports.report import Column, Report, Table, Unseen
from rlsize.reports.wording import interval
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import ALGORITHM, ANSWER, TRAINER, WORKLOAD, asks
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.estimates.train_outlook import TrainAnswer
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.loop.resolve import Loop

PARTS = {
    "matmul": "matrix products",
    "attention": "attention scores",
    "elementwise": "norms, activations, loss",
    "exchanged": "tensor, context, experts",
    "host_wait": "waiting for the host",
    "gathering": "sharded weights",
    "bubble": "pipeline bubble",
    "loss": "uneven RL batches",
    "straggling": "slowest node",
    "optimizer": "optimizer",
    "offload": "optimizer offload",
    "fixed": "fixed",
    "old_logprob": "old log-probabilities",
    "reference": "reference",
    "proximal": "proximal policy",
    "reward": "reward model",
    "critic": "critic",
    "loop": "within an RL loop",
}
_SMALL = 0.002  # share of the step below which a part is no bar


@asks(
    Inputs=("model", "gpu", *ANSWER),
    Workload=WORKLOAD,
    Loop=("mode", "gpus", "rollout_gpus"),
    Trainer=("trainer_gpus", *TRAINER, "virtual_stages", "fp8_scaling", ("overlapped", "--async-tensor-parallel")),
    Passes=ALGORITHM,
)
def predict_train(inputs: Inputs) -> Report:
    """
    How long the trainer works on an optimizer step, and where the time goes.

    Example:  rlsize predict train --model qwen3-32b --gpu h100-sxm --trainer-gpus 32 --samples 512 --response-tokens 4k
    """
    from rlsize.estimates.constants_train import STAGE
    from rlsize.estimates.train_outlook import predicted_train_step
    from rlsize.loop.resolve import described, resolve
    from rlsize.loop.seed import seed_of
    from rlsize.loop.trainer import trainer_by_itself
    from rlsize.loop.workload import batch_tokens

    loop = resolve(inputs) if described(inputs) else None
    if loop is None or loop.stages is None:
        question, belief, loop = trainer_by_itself(inputs), inputs.belief(STAGE), None
    else:
        question = loop.stages.train
        if loop.place is not None:
            gpus = Figure(key="trainer_gpus", value=loop.place.trainer_gpus, source="GPUs of the trainer")
            question = replace(question, gpus=gpus)
        belief = loop.stages.belief
    answer = predicted_train_step(question, belief, seed_of(inputs), batch_tokens(inputs))
    if loop is not None and not loop.refused:
        answer = _in_a_loop(loop, question, answer)
    return Report(
        headline=_headline(question, answer),
        results=answer.results,
        tables={"parts": _table(answer)},
        chart=_chart(question, answer),
        **inputs.told(first=_notes(question, answer)),
    )


def _in_a_loop(loop: Loop, question: TrainQuestion, alone: TrainAnswer) -> TrainAnswer:
    """The answer as the loop has it: slower beside a fleet, or as it was measured."""
    from rlsize.equations import kernel_time, matching, train_step
    from rlsize.estimates.figures import apply
    from rlsize.estimates.train_outlook import TrainPart
    from rlsize.loop.answer import agreed, answer_of

    found = answer_of(loop)
    own = {figure.key: figure for figure in alone.results}
    told = {figure.key: figure for figure in agreed(alone.results, found)}
    seconds = told["train_seconds"]
    slow = loop.outlook.explained.values["step_train"]
    measured = loop.known.train_seconds.known
    predicted = apply("predicted_train_seconds", kernel_time.slowed, seconds=own["train_seconds"], slowdown=slow)
    longer, why = predicted.number - own["train_seconds"].number, "times longer, or shorter, than by itself"
    lost = Figure(key="loop_seconds", value=longer, provenance="predicted", source=why)
    parts = [
        replace(part, share=apply("share_fraction", train_step.time_share, part=part.seconds, whole=predicted))
        for part in (*alone.parts, TrainPart(name="loop", seconds=lost, share=lost))
    ]
    batch = {"prompts": question.sequences, "group_size": 1, "response_tokens": question.tokens}
    tokens = apply("tokens", matching.tokens_per_step, **batch)
    rate = apply("tokens_per_second", matching.consumption, tokens_per_step=tokens, train_seconds=seconds)
    each = apply("trained_tokens_per_gpu_second", matching.rate_per_gpu, rate=rate, gpus=question.gpus)
    results = [seconds, _slower(rate, seconds), _slower(each, seconds)]
    key = "consumption_tokens_per_second"
    if key in own:
        trained = own[key].inputs["tokens_per_step"]
        used = apply(key, matching.consumption, tokens_per_step=trained, train_seconds=seconds)
        results.append(_slower(used, seconds))
    if measured:
        return replace(alone, results=(*results, predicted), parts=tuple(parts))
    for key in (f"{name}_seconds" for name in question.passes):
        slowed = apply(key, kernel_time.slowed, seconds=own[key], slowdown=slow)
        results.append(_as_long(slowed, found.results["logprob_seconds"]))
    results = [*results[:1], told["update_seconds"], *results[1:], _mfu(own, slow, seconds)]
    return replace(alone, results=tuple(results), parts=tuple(parts))


def _mfu(own: Mapping[str, Figure], slow: Figure, seconds: Figure) -> Figure:
    """Model FLOPs of the update as a loop slows it, over the peak."""
    from rlsize.equations import kernel_time, matching
    from rlsize.estimates.figures import apply

    alone = own["mfu_fraction"].inputs
    update = apply("update_seconds", kernel_time.slowed, seconds=own["update_seconds"], slowdown=slow)
    tokens = alone["tokens_per_second"].inputs["tokens_per_step"]
    rate = apply("update_tokens_per_second_per_gpu", matching.consumption, tokens_per_step=tokens, train_seconds=update)
    return _slower(apply("mfu_fraction", matching.implied_mfu, **{**alone, "tokens_per_second": rate}), seconds)


def _as_long(figure: Figure, whole: Figure) -> Figure:
    """A time with the relative band of the one that it is part of."""
    if whole.band is None or not whole.number:
        return figure
    low, high = (figure.number * end / whole.number for end in whole.band)
    return replace(figure, band=(low, high))


def _slower(rate: Figure, seconds: Figure) -> Figure:
    """A rate with the band of the time that it is over, turned round."""
    if seconds.band is None:
        return rate
    low, high = (rate.number * seconds.number / end for end in reversed(seconds.band))
    return replace(rate, band=(low, high))


def _headline(question: TrainQuestion, answer: TrainAnswer) -> str:
    found = {figure.key: figure for figure in answer.results}
    time, rate = (found[key] for key in ("train_seconds", "trained_tokens_per_gpu_second"))
    where = f"{show(question.gpus.value)} {question.gpu.name}"
    ends = "" if time.band is None else f" ({interval(time)})"
    text = f"A step takes {show(time.value, time.key)}{ends} on {where}: {show(rate.value, rate.key)}"
    if "mfu_fraction" not in found:
        guess = found["predicted_train_seconds"]
        return f"{text}, as was said; predicted, {show(guess.value, guess.key)}."
    mfu = found["mfu_fraction"]
    return f"{text}, {show(mfu.value, mfu.key)} of the bf16 peak in the update."


def _table(answer: TrainAnswer) -> Table:
    cells = (
        Column("part", "part", "left", of=lambda part: PARTS.get(part.name, part.name)),
        Unseen("name"),
        Column("seconds", "time"),
        Column("share_fraction", "share", of=lambda part: part.share),
    )
    return Table.of("Where the time goes", answer.parts, cells)


def _notes(question: TrainQuestion, answer: TrainAnswer) -> list[str]:
    from rlsize.estimates.train_prediction import EXTRA_PASSES

    passes = [EXTRA_PASSES[name] for name in question.passes]
    counted = f"beside the update: {'; '.join(passes)}" if passes else "none beside the update"
    largest = "; ".join(f"{doubt.meaning} ({show(doubt.share, '_fraction')})" for doubt in answer.doubts)
    narrowed = f"The band comes from: {largest}. One measured train time narrows it most (rlsize calibrate)."
    return [
        f"Passes counted {counted}.",
        *([narrowed] if answer.doubts else []),
        "MFU counts forward and backward once, causal attention included, nothing recomputed.",
        "Whether the trainer fits in memory is not asked here: rlsize memory.",
    ]


def _chart(question: TrainQuestion, answer: TrainAnswer) -> Chart:
    shown = [part for part in answer.parts if part.share.number >= _SMALL]
    largest = max(shown, key=lambda part: part.seconds.number)
    label = PARTS.get(largest.name, largest.name)
    bars = Series.of("seconds", ((PARTS.get(part.name, part.name), part.seconds.number) for part in shown), "trainer")
    return Chart(
        title=f"{label[0].upper()}{label[1:]} take {show(largest.share.value, largest.share.key)} of the step",
        y_label="seconds of a step",
        series=(bars,),
        kind="bars",
        subtitle=f"{question.model.title} on {show(question.gpus.value)} {question.gpu.name}, {question.dtype}",
    )
