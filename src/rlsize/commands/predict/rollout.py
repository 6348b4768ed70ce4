"""`rlsize predict rollout`: how quickly an engine generates, before it has been measured."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError, Refused
from rlsize.estimates.figures import ends
from rlsize.facts.figure import Figure, absent
from rlsize.facts.inference_engines import inference_engine
from rlsize.facts.quantisation import native, uniform
from rlsize.reports.chart import Chart, Mark, Series
from rlsize.reports.report import Column, Report, Table, Unseen
from rlsize.reports.wording import interval
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import ANSWER, BATCH, INSTANCE, LENGTHS, asks, short
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.rollout_outlook import RolloutOutlook
    from rlsize.estimates.rollout_prediction import Replica
    from rlsize.estimates.rollout_question import RolloutQuestion
    from rlsize.loop.resolve import Loop, Stages

_WIDE = 1.5  # high end of a band over its low end from which a measurement is worth its while
_PARTS = {
    "matmul": "matrix products",
    "experts": "experts",
    "attention": "reading the KV cache",
    "recurrence": "recurrent states",
    "all_reduce": "tensor parallelism",
    "exchange": "expert exchange",
    "prefill": "prompts",
    "host": "waiting for the host",
    "small_operations": "small operations",
    "head": "output head",
    "sampling": "sampling",
    "drafting": "drafting tokens",
}
"""Parts of a step, in the order in which a picture stacks them, and what they are called."""

_SMALL = 0.04  # share of the step below which a part is drawn with the others
_MILLISECONDS = 1e3
_INSIDE = 0.92  # of the picture's width; a mark further right would have no room for its label


@asks(
    Inputs=("model", "gpu", *ANSWER),
    Engine=(*short(*INSTANCE), "served"),
    Workload=(*LENGTHS, *BATCH, "samples_per_step", "routing", "block_tokens", "hit_fraction"),
    Fleet=("concurrency", "instances", "rollout_gpus", "refill"),
)
def predict_rollout(inputs: Inputs) -> Report:
    """
    How quickly an engine generates, at which concurrency, and how long an optimizer step's samples take.

    Example:  rlsize predict rollout --model qwen3-32b --gpu h100-sxm --tensor-parallel 2 --prompt-tokens 1024
    --response-tokens 4096 --concurrency 144
    """
    from rlsize.loop.resolve import described, resolve

    if described(inputs) and not any(map(inputs.by_flag, ("refill", "served"))):
        loop = resolve(inputs)
        if loop.stages is not None:
            return _in_a_loop(inputs, loop, loop.stages)
    return _alone(inputs)


def _in_a_loop(inputs: Inputs, loop: Loop, stages: Stages) -> Report:
    """The instance of a loop, with the samples that the loop has in flight on it."""
    from rlsize.estimates.rollout_outlook import rollout_outlook
    from rlsize.estimates.rollout_question import fits_narrower
    from rlsize.loop.answer import agreed, answer_of
    from rlsize.loop.lengths import hits

    ready = stages.engines[loop.pools.shared]
    if isinstance(ready, str):
        narrower = fits_narrower(stages.rollout, stages.belief.central())
        return _does_not_fit(inputs, stages.rollout, loop.refused or ready, stages.fits, narrower=narrower)
    found = answer_of(loop)
    fleet = inputs.used.get("instances", absent("instances", "--rollout-gpus"))
    in_flight = found.results.get("samples_in_flight", absent("concurrency", "--concurrency"))
    at_once = max(1.0, in_flight.number) if in_flight.known else in_flight.value  # fewer on average: one now and then
    question = replace(
        stages.rollout,
        engine=ready.question,
        concurrency=Figure(key="concurrency", value=at_once, provenance="predicted", source=in_flight.source),
        instances=fleet,
        hit_fraction=hits(inputs, ready.question.engine, loop.problem.prompt_tokens, fleet),
        ending="refill" if loop.pools.loop == "async" else "barrier",
    )
    inputs.settle()
    outlook = rollout_outlook(question, ready, stages.belief, loop.outlook.seed)
    outlook = replace(outlook, results=_known(inputs, loop, agreed(outlook.results, found), ready))
    return _report(inputs, outlook, loop.bound)


def _known(inputs: Inputs, loop: Loop, results: tuple[Figure, ...], ready: Replica) -> tuple[Figure, ...]:
    """The results, where the rate of an instance is known and need not be predicted."""
    from rlsize.equations import matching
    from rlsize.estimates.figures import apply

    rate = loop.known.rate
    if not rate.known:
        return results
    inputs.notes.append("The rate of an instance is known; the tables are the prediction.")
    each, fleet = "rollout_gpu_tokens_per_second", "fleet_tokens_per_second"
    known = {rate.key: rate, each: apply(each, matching.rate_per_gpu, rate=rate, gpus=ready.gpus)}
    if "instances" in inputs.used:
        many = inputs.used["instances"]
        known[fleet] = apply(fleet, matching.fleet_supply, instances=many, instance_rate=rate, headroom=1.0)
    return tuple(known.get(figure.key, figure) for figure in results)


def _alone(inputs: Inputs) -> Report:
    """An engine by itself, at the load that is offered to it."""
    from rlsize.estimates.engine_memory import check_room
    from rlsize.estimates.rollout_outlook import STAGES, rollout_outlook
    from rlsize.estimates.rollout_question import first_fit, fits_narrower, why_not
    from rlsize.loop.instance import degrees, instance
    from rlsize.loop.lengths import lengths
    from rlsize.loop.models import model_and_gpu
    from rlsize.loop.pools import LOOPS
    from rlsize.loop.seed import seed_of
    from rlsize.loop.sides import sized
    from rlsize.loop.workload import samples

    seed, (model, gpu) = seed_of(inputs), model_and_gpu(inputs, "rollout")
    mode = LOOPS.get(str(inputs.said("placement.mode")))
    one = instance(inputs, model, gpu, shared=mode == "colocated")
    length, many = lengths(inputs, model), samples(inputs)
    asked = inputs.settled(one).question
    ready = _ready(inputs, asked)
    belief = inputs.belief(*STAGES)
    central = belief.central()
    pool = inputs.ask("rollout_gpus")
    if not pool.known and mode == "colocated":
        pool = inputs.ask("gpus")
    refill = inputs.yes("refill")
    if refill is None and mode is not None:
        refill = bool(inputs.keep(Figure(key="refill", value=mode == "async", source=inputs.place("mode"))).value)
    from rlsize.estimates.rollout_question import RolloutQuestion

    question = RolloutQuestion(
        engine=asked,
        prompt_tokens=length.prompt,
        response_tokens=length.response,
        response_cv=length.cv,
        max_response_tokens=length.cap,
        hit_fraction=Figure(key="hit_fraction", value=0.0),
        concurrency=inputs.ask("concurrency"),
        instances=absent("instances", inputs.flag("instances")),
        samples_per_step=many,
        ending="refill" if refill else "barrier",
    )
    if not inputs.gives("rollout_tensor_parallel") and not inputs.gives("gpus_per_instance"):
        ready = _ready(inputs, sized(inputs, question, central, pool))
    question = _with_fleet(inputs, replace(question, engine=ready.question), pool)
    reason = why_not(question, central)
    if reason:
        fits, narrower = first_fit(question, degrees(asked.model), central), fits_narrower(question, central)
        return _does_not_fit(inputs, question, reason, fits, narrower=narrower)
    if length.stated_cap:
        try:
            check_room(ready.question, length.prompt.number + length.cap.number, central)
        except Refused as refusal:  # the mean sample has room, and the longest none
            inputs.warnings.append(f"{refusal}: engines refuse to start so")
    return _report(inputs, rollout_outlook(question, ready, belief, seed))


def _ready(inputs: Inputs, asked: EngineQuestion) -> Replica:
    """
    The engine, ready to be asked.

    Raises:
        InputError: The GPU lacks the number type, or its kernels are not known.
    """
    from rlsize.estimates.rollout_prediction import engine

    try:
        return engine(asked)
    except Refused as refusal:
        what, _, todo = str(refusal).partition("; ")
        raise InputError(Fault(what, inputs.place("rollout_dtype" if todo else "gpu"), todo)) from None


def _with_fleet(inputs: Inputs, question: RolloutQuestion, pool: Figure) -> RolloutQuestion:
    """The question with the instances of the fleet, and what groups that are spread over them find in the cache."""
    from rlsize.loop.instance_count import instances
    from rlsize.loop.lengths import hits

    ranks = _gpus(question.engine)
    size = Figure(key="gpus_per_instance", value=ranks, provenance="predicted", source="tensor x pipeline x data")
    fleet = instances(inputs, pool, size)
    if pool.known and fleet.known and fleet.number != pool.number // ranks:
        what = f"{fleet.number:g} instances of {ranks:g} are not the {pool.number:g} rollout GPUs"
        inputs.fault(what, fleet.source, "leave one of them out")
    found = hits(inputs, question.engine.engine, question.prompt_tokens, fleet)
    inputs.settle()
    return replace(question, instances=fleet, hit_fraction=found)


def _gpus(engine: EngineQuestion) -> int:
    """GPUs of an instance."""
    return engine.layout.tensor * engine.layout.pipeline * engine.layout.data


def _report(inputs: Inputs, outlook: RolloutOutlook, bound: str = "") -> Report:
    """What there is to say: rates with bands, where a step's time goes, what to measure first."""
    return Report(
        headline=_headline(outlook, bound),
        results=outlook.results,
        tables={"levels": _levels(outlook), "parts": _parts(outlook)},
        chart=_chart(outlook),
        quiet=frozenset({"prefill_seconds", "longest_response_tokens"}),
        **inputs.told(warnings=_warnings(outlook), notes=(*_notes(outlook), _advice(outlook))),
    )


def _does_not_fit(
    inputs: Inputs, question: RolloutQuestion, reason: str, degree: int | None, *, narrower: bool
) -> Report:
    """
    The report about an engine that does not fit.

    Args:
        inputs: What was said.
        question: What was asked.
        reason: Why it does not, in a line.
        degree: The smallest degree of tensor parallelism at which it would; None where there is none.
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
        headline=f"{reason[0].upper()}{reason[1:]}. {others}",
        results=(Figure(key="rollout_fits", value=False, provenance="predicted", source=reason), first),
        inputs=inputs.shown(),
        warnings=tuple(inputs.warnings),
        no=True,
    )


def _headline(outlook: RolloutOutlook, bound: str) -> str:
    from rlsize.loop.answer import LIMITS

    engine = outlook.question.engine
    gpus = _gpus(engine)
    rate = outlook.figure("rollout_gpu_tokens_per_second")
    batch = outlook.sweep.asked.concurrency
    samples = f"{show(batch)} samples" if batch > 1 else "one sample"
    where = f"{gpus} {engine.gpu.name}" if gpus > 1 else f"one {engine.gpu.name}"
    text = (
        f"{engine.model.name} on {where} generates {show(rate.value, rate.key)} per GPU ({interval(rate)}) with "
        f"{samples} at once, {LIMITS[str(outlook.figure('limited_by').value)]}."
    )
    step = next((figure for figure in outlook.results if figure.key == "generation_seconds" and figure.known), None)
    if step is None:
        return text
    least, lacking = ("at least ", f": {bound}") if bound else ("", "")
    return f"{text} The samples of a step take {least}{show(step.value, step.key)} ({interval(step)}){lacking}."


def _levels(outlook: RolloutOutlook) -> Table:
    sweep, rate = outlook.sweep, "rollout_gpu_tokens_per_second"

    def part(name: str) -> Unseen:
        return Unseen(f"{name}_part_seconds", lambda level: level.parts[name])

    cells: tuple[Column | Unseen, ...] = (
        Column("concurrency", "samples"),
        Column(rate, "per GPU", of=lambda level: level.gpu_tokens_per_second.number),
        Column("low_tokens_per_second", "low", of=lambda level: ends(level.gpu_tokens_per_second)[0]),
        Column("high_tokens_per_second", "high", of=lambda level: ends(level.gpu_tokens_per_second)[1]),
        Unseen("instance_tokens_per_second", lambda level: level.tokens_per_second.number),
        Column("engine_step_seconds", "step", of=lambda level: level.step_seconds),
        Column("ttft_seconds", "TTFT"),
        Unseen("tpot_seconds"),
        *map(part, sweep.asked.parts),
    )
    note = "samples at once; low and high: an 80 % band of the rate per GPU; TTFT: time to first token"
    return Table.of("Rates against concurrency", sweep.levels, cells, marked=sweep.here, note=note)


def _parts(outlook: RolloutOutlook) -> Table:
    parts = outlook.sweep.asked.parts
    ranked = sorted((name for name in parts if parts[name] > 0), key=parts.__getitem__, reverse=True)
    cells = (
        Column("part", "part", "left", of=_PARTS.__getitem__),
        Unseen("name", str),
        Column("seconds", "time", of=parts.__getitem__),
        Column("share_fraction", "share", of=lambda name: parts[name] / sum(parts.values())),
    )
    title = f"Where a step's time goes with {show(outlook.sweep.asked.concurrency)} samples at once"
    return Table.of(title, ranked, cells, note="prompts: prefill of new samples, spread over the steps")


def _warnings(outlook: RolloutOutlook) -> Iterator[str]:
    question = outlook.question
    layout, gpu = question.engine.layout, question.engine.gpu
    node = gpu.specification.gpus_per_node.value
    if layout.tensor > node:
        yield f"{layout.tensor} tensor-parallel ranks span nodes of {node:g} GPUs: links between nodes are slower"
    tokens = outlook.figure("kv_cache_tokens").number
    longest = question.prompt_tokens.number + question.max_response_tokens.number
    if question.max_response_tokens.provenance == "given" and tokens < longest:
        yield f"the cache holds {tokens:,.0f} tokens, and the longest sample has {longest:,.0f}: an engine refuses that"


def _notes(outlook: RolloutOutlook) -> Iterator[str]:
    from rlsize.estimates.rollout_prediction import borrows

    engine = outlook.question.engine
    if engine.weights is None and native(engine.model.name) != uniform("bf16"):
        types = native(engine.model.name)
        yield f"Weights as published: attention {types.attention}, experts {types.experts}."
    if not engine.version:
        yield f"A recent version of {engine.engine} is assumed (--engine-version says which)."
    if borrows(engine.gpu):
        other = f"{engine.gpu.kernels_like}, scaled by peak and bandwidth"
        yield f"Kernel times are those of the {other}: the band is wider."
    reserving = inference_engine(engine.engine).admission == "reserving"
    if reserving and outlook.question.max_response_tokens.provenance != "given":
        kept = f"{outlook.question.max_response_tokens.number:,.0f} tokens"
        yield f"{engine.engine} keeps room for the longest response, here {kept}: give --max-response-tokens."
    if not outlook.question.whole_step:
        yield "The time of a step's samples needs the fleet and the batch: --instances, --samples."
    cap = outlook.question.max_response_tokens
    if outlook.question.whole_step and outlook.question.ending == "barrier" and cap.provenance != "given":
        yield f"Nobody said a cap (--max-response-tokens): the tail is that of lengths up to {cap.number:,.0f} tokens."
    told = outlook.doubts[:2]
    if told:
        words = "; ".join(f"{doubt.meaning} ({show(doubt.share, '_fraction')})" for doubt in told)
        yield f"The band of the rate comes from: {words}."


def _advice(outlook: RolloutOutlook) -> str:
    rate = outlook.figure("instance_tokens_per_second")
    low, high = ends(rate)
    batch = show(outlook.sweep.asked.concurrency)
    if high > _WIDE * low:
        return (
            f"The band is wide. Measure the rate at {batch} samples first (rlsize measure --only rollout), then at an "
            "eighth of them: two points tell fixed times from those that grow with the batch."
        )
    return f"A rate measured at {batch} samples replaces this one (rlsize measure); rlsize calibrate carries it over."


def _chart(outlook: RolloutOutlook) -> Chart:
    """Areas of milliseconds by part, a line for the rate, marks at the knee and at the load that was asked about."""
    curve, engine = outlook.sweep.curve, outlook.question.engine
    areas = _areas(curve.parts)
    rate = Series(name="tok/s (right)", xs=curve.concurrency, ys=curve.tokens_per_second, role="limit", right=True)
    level = outlook.sweep.asked
    largest = max(level.parts, key=lambda name: level.parts[name])
    share = level.parts[largest] / sum(level.parts.values())
    label, knee = _PARTS[largest], outlook.sweep.knee.number
    verb = "take" if label.endswith("s") else "takes"
    lengths = [show(figure.value) for figure in (outlook.question.prompt_tokens, outlook.question.response_tokens)]
    where = f"{_gpus(engine)} {engine.gpu.name}, {engine.engine}"
    at = f"{show(share, '_fraction')} of a step at {show(level.concurrency)} samples"
    return Chart(
        title=f"{label[0].upper()}{label[1:]} {verb} {at}",
        subtitle=f"{engine.model.title} on {where}; {' + '.join(lengths)} tokens",
        x_label="samples at once",
        y_label="milliseconds of a step",
        right_label="response tokens per second",
        series=(*(Series(name=name, xs=curve.concurrency, ys=ys) for name, ys in areas), rate),
        kind="areas",
        marks=(Mark(at=knee, label="knee"),) if knee < _INSIDE * curve.concurrency[-1] else (),
    )


def _areas(parts: Mapping[str, Sequence[float]]) -> list[tuple[str, tuple[float, ...]]]:
    """Parts in milliseconds, in their order; those that are small everywhere as one."""
    wholes = [sum(at) for at in zip(*parts.values(), strict=True)]
    large, small = [], []
    for name, title in _PARTS.items():
        heights = tuple(_MILLISECONDS * seconds for seconds in parts.get(name, ()))
        told = any(height > _SMALL * _MILLISECONDS * whole for height, whole in zip(heights, wholes, strict=False))
        if told:
            large.append((title, heights))
        elif any(heights):
            small.append(heights)
    rest = [("the rest", tuple(sum(at) for at in zip(*small, strict=True)))] if small else []
    return [*large, *rest]
