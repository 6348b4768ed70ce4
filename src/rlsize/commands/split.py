"""`rlsize split`: how to split N GPUs between rollout and trainer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.equations import matching
from rlsize.estimates.figures import apply
from rlsize.facts.figure import Figure
from rlsize.facts.headroom import PLAIN_HEADROOM
from rlsize.loop.plausible import judge
from rlsize.loop.pools import two_pools
from rlsize.loop.rates import measured_on, waste
from rlsize.loop.sides import instance_size, sides
from rlsize.planner.split import AT_SPLIT, SplitQuestion, balanced, most_instances, split_gpus
from rlsize.reports.chart import Chart, Mark, Series
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.running_loop import bounded
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import ANSWER, CHECKS, MATCH, REFUSED, WASTE, asks
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.loop.sides import Sides
    from rlsize.planner.evaluation import Evaluation
    from rlsize.planner.split import SplitAnswer

_WAITS = {"rollout": "the trainer waits", "trainer": "the rollout fleet waits"}


@asks(
    Inputs=(
        "gpus",
        ("rollout_gpu_tokens_per_second", "--rollout-tokens-per-second|--rollout-tps"),
        ("trainer_gpu_tokens_per_second", "--trainer-tokens-per-second|--trainer-tps|--learn-tps"),
        *MATCH, "rollout_gpus", "trainer_gpus", "measured_trainer_gpus", "gpus_per_instance", "swap_seconds", *ANSWER,
    ),
    Waste=WASTE,
    Model_and_GPU=CHECKS,
    Refused=REFUSED,
)  # fmt: skip
def split(inputs: Inputs) -> Report:
    """
    How to split N GPUs between rollout and trainer.

    Example:  rlsize split --gpus 64 --rollout-tps 2000 --trainer-tps 6000
    """
    both = sides(inputs, full=PLAIN_HEADROOM, needed=False)
    size = instance_size(inputs, both)
    if not size.known and not inputs.faults:
        source = "default of --gpus-per-instance"
        size = inputs.keep(Figure(key="gpus_per_instance", value=1, provenance="default", source=source))
    total = both.found.results["gpus"] if both.found is not None else two_pools(inputs)[0]
    question = SplitQuestion(
        gpus=inputs.keep(total) if both.found is None and total.known else total,
        rollout_gpu_rate=_rollout_rate(inputs, both, size),
        trainer_gpu_rate=_trainer_rate(inputs, both),
        gpus_per_instance=size,
        headroom=both.headroom,
        tokens_generated_per_trained_token=waste(inputs),
        batch_tokens=both.batch,
        swap_seconds=inputs.ask("swap_seconds"),
        instances=_stated(inputs, both, size),
    )
    for figure, why in ((question.rollout_gpu_rate, "rate"), (question.trainer_gpu_rate, "train")):
        inputs.need(figure, "a split needs both rates per GPU" + both.reasons[why])
    one = Figure(key="gpus", value=1, provenance="default", source="one GPU")
    judge(inputs, "trainer", question.trainer_gpu_rate, one, "a trainer GPU's rate")
    judge(inputs, "rollout", question.rollout_gpu_rate, one, "a rollout GPU's rate")
    inputs.settle()
    if not question.gpus.known:
        share = balanced(question, both.draws(inputs, question))
        part = f"Give {show(share.value, share.key)} of the GPUs to rollout"
        headline = f"{part}, and the rest to the trainer; --gpus makes it whole GPUs."
        return Report(headline=headline, results=(share,), **inputs.told())
    if both.found is not None and question.instances is None and most_instances(question) < 1:
        return bounded(_unsplit(inputs, question, both.found), both.bound)  # its GPUs are shared
    answer = split_gpus(question, both.draws(inputs, question))
    if both.found is not None:
        told = _of_the_loop(answer.results, both.found, stated=question.instances is not None)
        answer = replace(answer, results=told)
    return bounded(_report(inputs, answer), both.bound)


def _of_the_loop(results: Sequence[Figure], found: Evaluation, *, stated: bool) -> tuple[Figure, ...]:
    """
    Results where a loop is described: what it gives under its own keys, and the best split under others.

    What doubling a pool brings is for `rlsize iteration` to say, which knows how the phases follow each other.
    """
    if not stated:  # its GPUs are shared, so that every split is another loop
        results = [replace(one, key=f"best_split_{one.key}") if one.key in AT_SPLIT else one for one in results]
    from rlsize.loop.answer import agreed

    return agreed([one for one in results if "speedup" not in one.key], found)


def _unsplit(inputs: Inputs, question: SplitQuestion, found: Evaluation) -> Report:
    """The answer to a loop on shared GPUs that leave no trainer beside one instance of its size."""
    gpus, size = show(question.gpus.value), show(question.gpus_per_instance.value)
    rate = found.results["loop_tokens_per_second"]
    return Report(
        headline=f"No split: beside an instance of {size} none of the {gpus} GPUs is left for a trainer. Shared, they "
        f"run at {show(rate.value, rate.key)}; smaller instances (--rollout-tensor-parallel) could be split.",
        results=tuple(found.results[key] for key in ("loop_tokens_per_second", "step_seconds")),
        **inputs.told(),
    )


def _stated(inputs: Inputs, both: Sides, size: Figure) -> Figure | None:
    """Instances of a split that was said; None where nobody says one."""
    if both.loop is not None and both.loop.place is not None:
        if both.loop.pools.shared:
            return None
        return Figure(key="instances", value=both.loop.place.instances, source="the loop's")
    pools = inputs.ask("rollout_gpus"), inputs.ask("trainer_gpus")
    if not (pools[0].known and pools[1].known and size.known):
        return None
    return apply("instances", matching.instances_of, gpus=pools[0], gpus_per_instance=size)


def _rollout_rate(inputs: Inputs, both: Sides, size: Figure) -> Figure:
    """The rate of one rollout GPU: said, or that of an instance over its GPUs."""
    key, whole = "rollout_gpu_tokens_per_second", "instance_tokens_per_second"
    said = inputs.ask(key)
    if inputs.by_flag(key) and inputs.by_flag(whole):
        inputs.fault("two rates of the rollout side", f"{inputs.flag(key)}, {inputs.flag(whole)}", "keep one")
    if said.known and (inputs.by_flag(key) or not inputs.gives(whole)):
        return said
    own = "rollout_gpu_in_loop_tokens_per_second" if both.rate.key != whole else key  # as the rate of an instance
    found = apply(own, matching.rate_per_gpu, rate=both.rate, gpus=size)
    return inputs.keep(found) if found.known else said


def _trainer_rate(inputs: Inputs, both: Sides) -> Figure:
    """The rate of one trainer GPU: said, or the consumption over the GPUs that it was measured on."""
    key, others = "trainer_gpu_tokens_per_second", ("consumption_tokens_per_second", "train_seconds")
    said, flagged = inputs.ask(key), any(map(inputs.by_flag, others))
    if inputs.by_flag(key) and flagged:
        inputs.fault("two rates of the trainer", f"{inputs.flag(key)}, --consume", "keep one")
    if said.known and (inputs.by_flag(key) or not flagged):
        return said
    if not both.consumption.known:
        return said
    if both.loop is not None and both.loop.place is not None and both.train_seconds.provenance == "predicted":
        pool = Figure(key="trainer_gpus", value=both.loop.place.trainer_gpus, source="the loop's")
    else:
        pool = measured_on(inputs) if both.loop is None else both.loop.known.measured_gpus
    found = apply(key, matching.rate_per_gpu, rate=both.consumption, gpus=pool)
    return inputs.keep(found) if found.known else said


def _report(inputs: Inputs, answer: SplitAnswer) -> Report:
    found = {figure.key: figure for figure in answer.results}
    best = found | {key.removeprefix("best_split_"): one for key, one in found.items() if key.startswith("best_split_")}
    return Report(
        headline=_headline(best, inputs.shown()) + _compared(answer, found),
        results=answer.results,
        tables={"neighbours": _neighbours(answer)},
        chart=_chart(answer, best),
        **inputs.told(notes=(_colocated_note(best),)),
    )


def _compared(answer: SplitAnswer, found: dict[str, Figure]) -> str:
    """What a split that was said does beside the best one."""
    key, stated, best = "loop_tokens_per_second", found.get("instances"), found.get("best_split_instances")
    if stated is None or best is None or stated.value == best.value:
        return ""
    row = next(row for row in answer.neighbours if row["instances"].value == stated.value)
    pools = f"{show(row['rollout_gpus'].value)} + {show(row['trainer_gpus'].value)}"
    return f" At these rates {pools} run at {show(row[key].value, key)}."


def _headline(found: dict[str, Figure], inputs: Sequence[Figure]) -> str:
    headroom = next(figure for figure in inputs if figure.key == "headroom")
    rate = show(found["loop_tokens_per_second"].value, "_tokens_per_second")
    side, idle = found["bottleneck"].value, show(found["idle_fraction"].value, "idle_fraction")
    balance = "neither side waits" if side == "balanced" else f"{_WAITS[str(side)]} {idle}"
    gpus = f"{show(found['rollout_gpus'].value)} rollout GPUs and {show(found['trainer_gpus'].value)} trainer GPUs"
    return f"{gpus} run at {rate}; {balance} (headroom {show(headroom.value)})."


def _neighbours(answer: SplitAnswer) -> Table:
    counts = [row["rollout_gpus"].number for row in answer.neighbours]
    return Table(
        title="One instance more, one fewer",
        columns=(
            Column("rollout_gpus", "rollout"),
            Column("trainer_gpus", "trainer"),
            Column("rollout_tokens_per_second", "R (rollout)"),
            Column("trainer_tokens_per_second", "T (trainer)"),
            Column("bottleneck", "bottleneck", "left"),
            Column("idle_fraction", "idle"),
        ),
        rows=answer.neighbours,
        marked=counts.index(answer.rollout_gpus),
        note="R and T count trained tokens; the loop runs at the smaller, the other side idles 1 - min/max",
    )


def _colocated_note(found: dict[str, Figure]) -> str:
    plain, whole = (found[f"colocated_{part}tokens_per_second"] for part in ("before_swap_", ""))
    text = f"Colocated on the same GPUs: {show(plain.value, '_tokens_per_second')} before any swap cost"
    if not whole.known:
        decides = "a perfect split only equals it, so swap cost and whole instances decide"
        return f"{text}; {decides} (give --swap-seconds and --batch-tokens)."
    winner = "colocated is faster" if whole.number > found["loop_tokens_per_second"].number else "the split is faster"
    text = f"{text}, {show(whole.value, '_tokens_per_second')} with it: {winner}"
    return f"{text}. Colocated training sees samples of the newest weights only."


def _chart(answer: SplitAnswer, best: dict[str, Figure]) -> Chart:
    rollout, trainer = ([(point[0], point[side]) for point in answer.sweep] for side in (1, 2))
    gpus = best["rollout_gpus"].number
    total = gpus + best["trainer_gpus"].number
    return Chart(
        title=f"The loop runs at the lower line: balance at {show(gpus)} of {show(total)} GPUs on rollout",
        x_label="share of GPUs on the rollout side",
        y_label="trained tokens per second",
        x_percent=True,
        series=(Series.of("rollout supplies", rollout, "rollout"), Series.of("trainer consumes", trainer, "trainer")),
        marks=(Mark(at=gpus / total, label=f"{show(gpus)} rollout, {show(total - gpus)} trainer"),),
    )
