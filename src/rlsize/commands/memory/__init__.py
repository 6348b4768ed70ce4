"""`rlsize memory`: what each tenant needs in memory, and which GPU count fits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from rlsize.facts.figure import Figure
from rlsize.reports.report import Report
from rlsize.shell.command import Force, option
from rlsize.shell.inputs import Inputs
from rlsize.shell.launches import launch_of
from rlsize.shell.quantity_flags import ALGORITHM, ANSWER, BATCH, LAYOUT, LENGTHS, LOOP, asks

if TYPE_CHECKING:
    from rlsize.estimates.belief import Belief
    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.memory import GpuMemory, MemoryQuestion
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model
    from rlsize.loop.models import Tenants

Write = Annotated[
    str | None, option("--write", "Write the launch with the change in it that makes it fit.", "Output", "FILE")
]
_PEAKS = {"fp8": "fp8_dense", "fp4": "fp4_dense"}


@asks(
    Models=("model", "params", *ALGORITHM, "critic_params", "reference_params", "reward_params"),
    Trainer=("optimizer", "gradients", "lora_rank", "offload", *LAYOUT, "micro_batch_tokens", "recompute"),
    Rollout_instances=(
        "instances", "rollout_tensor_parallel", "rollout_pipeline_parallel", "rollout_dtype", "kv_dtype",
        "memory_fraction", "concurrency", "context_tokens",
    ),
    Workload=(*BATCH, *LENGTHS),
    Loop=tuple(key for key in LOOP if key not in {"model", "max_staleness", "transport"}),
    Inputs=ANSWER,
)  # fmt: skip
def memory(inputs: Inputs, write: Write = None, force: Force = False) -> Report:
    """
    What each tenant needs in memory, and which GPU count fits.

    Example:  rlsize memory --params 70e9 --algorithm grpo --reward-model
    """
    from rlsize.commands.memory.report import headline, memory_report
    from rlsize.estimates.constants_memory import STAGE, constant_figures
    from rlsize.estimates.memory import bill_memory, engine_layout
    from rlsize.loop.resolve import lacked, resolve
    from rlsize.loop.seed import random_for, seed_of
    from rlsize.planner.memory_fit import fit_memory

    lacks = lacked(inputs)
    loop = None if lacks else resolve(inputs)
    if write is not None and lacks:
        todo = f"give what the launch does not tell: {', '.join(lacks)}"
        inputs.fault("only of a whole loop is it known what makes it fit", "--write", todo)
    elif lacks and launch_of(inputs) is not None:
        what = f"Whether it fits, phase by phase, needs what nobody says: give {', '.join(lacks)}."
        inputs.warnings.append(what)
    profile = inputs.model()
    shared = str(inputs.name("mode")[0]) == "colocated" if loop is None else loop.pools.shared
    question = _question(inputs, profile, shared=shared)
    gpu = inputs.gpu()
    hardware = None if gpu is None else _hardware(inputs, question, gpu, shared=shared)
    engine = None if profile is None else _engine(inputs, profile, gpu, shared=shared)
    seed = seed_of(inputs)
    inputs.settle()
    told = profile is not None or inputs.gives("calibration")
    belief = inputs.belief(STAGE) if told else None  # numbers of a model that is not named need no numpy
    values = {one.name: one.value for one in STAGE.constants} if belief is None else belief.central()
    question = replace(question, constants=constant_figures(values), engine=engine)
    answer = bill_memory(question, random_for(inputs, question))
    fit = fit_memory(question, hardware) if hardware else None
    judged = (fit.stated_rollout or fit.first_rollout) if fit else None
    start: tuple[Figure, ...] = ()
    if judged is not None and question.engine is not None and belief is not None:
        layout = engine_layout(question, judged.tensor_parallel)
        start = _engine_start(replace(question.engine, layout=layout), belief, seed)
    report = memory_report(question, answer, fit, inputs, start)
    if loop is None:
        if lacks == (inputs.flag("gpu"),):
            from rlsize.commands.memory.phases import on_gpus

            report = on_gpus(report, inputs)
        return report
    from rlsize.commands.memory.phases import with_phases
    from rlsize.commands.memory.saving import with_savers
    from rlsize.loop.unsaid import phases_as_said

    measured = loop.known.rate.known or loop.known.train_seconds.known
    if report.no and measured and not loop.refused:
        shown = "what was measured of the loop has shown that it runs: this bill is too high for it"
        report = replace(report, no=False, warnings=(*report.warnings, shown))
    if not measured:  # what fits is for the phases to say
        report = replace(report, headline=headline(answer, None), no=bool(loop.refused))
    judged_report = with_phases(report, phases_as_said(inputs, loop, seed), measured=measured)
    return with_savers(judged_report, inputs, loop, write, force=force)


def _engine(inputs: Inputs, profile: Model, gpu: Gpu | None, *, shared: bool) -> EngineQuestion | None:
    """One rollout instance as it is said, with its faults; None where its GPU is not."""
    from rlsize.loop.instance import instance, layout_of

    if gpu is None:
        layout_of(inputs, profile)
        return None
    found = instance(inputs, profile, gpu, shared=shared)
    return None if found is None else found.question


def _engine_start(question: EngineQuestion, belief: Belief, seed: int) -> tuple[Figure, ...]:
    """What an engine will log when it starts, with bands: weights per GPU, and tokens of its KV cache."""
    from rlsize.estimates.belief import interval, scattered
    from rlsize.estimates.constants_memory import STAGE, constant_figures
    from rlsize.estimates.engine_memory import kv_capacity
    from rlsize.estimates.figures import apply, numbers

    found = kv_capacity(apply, question, constant_figures(belief.central()))
    drawn = kv_capacity(numbers, question, belief.drawn(seed))
    told = {
        "engine_weight_bytes_per_gpu": (found.weight_bytes, drawn.weight_bytes),
        "engine_kv_cache_tokens": (found.kv_tokens, drawn.kv_tokens),
    }
    return tuple(
        replace(figure, key=key, band=interval(scattered(draws, STAGE.noise, seed, key)))
        for key, (figure, draws) in told.items()
    )


def _question(inputs: Inputs, profile: Model | None, *, shared: bool) -> MemoryQuestion:
    """All that was said, as figures; faults are noted, not raised."""
    from rlsize.estimates.memory import MemoryQuestion
    from rlsize.estimates.memory_shape import memory_shape, shapeless
    from rlsize.facts.algorithm import OPTIMIZERS, RECOMPUTATIONS
    from rlsize.facts.quantisation import WIDTHS, published
    from rlsize.loop.models import tenants
    from rlsize.loop.trainer import trainer_layout
    from rlsize.shell.models import model_params

    params = inputs.keep(model_params(inputs))
    if not inputs.faults:  # a model that is named and cannot be read is a fault already
        inputs.need(params, "give --model or --params")
    kept = tenants(inputs)
    kv_dtype = inputs.choose("kv_dtype") if profile is not None or inputs.gives("kv_dtype") else "bf16"
    shape = memory_shape(profile, params) if profile else shapeless(params) if params.known else None
    rank = inputs.ask("lora_rank")
    if rank.known and profile is None and params.known:
        inputs.fault("the size of adapters depends on the model's layers", rank.source, "name --model, not --params")
    optimizer, width = inputs.choose("optimizer"), _gradient_bytes(inputs)
    tokens = inputs.ask("micro_batch_tokens", assume=profile is not None)
    recompute = inputs.choose("recompute") if tokens.known or inputs.gives("recompute") else "full"
    beside = _beside(inputs, kept, adapters=rank.known)
    if shared:
        inputs.notes.append("Colocated: the bill judges each side alone, as if the other were offloaded while it runs.")
    context = inputs.ask("context_tokens")
    lengths = {} if context.known else _lengths(inputs)
    tensor = inputs.ask("rollout_tensor_parallel")
    usual = "bf16" if profile is None else published(profile.name, moe=profile.architecture.moe is not None)
    dtype = inputs.choose("rollout_dtype", WIDTHS, default=usual, why="as the model is published")
    question = MemoryQuestion(
        algorithm=kept.algorithm,
        beside=beside,
        params=params,
        model=profile,
        kv_dtype=kv_dtype,
        optimizer=OPTIMIZERS[optimizer],
        bytes_per_gradient=width,
        lora_rank=rank,
        micro_batch_tokens=tokens,
        recompute=RECOMPUTATIONS[recompute],
        offload=bool(inputs.yes("offload")),
        layout=trainer_layout(inputs, _trainer_gpus(inputs, shared=shared), shape),
        instances=inputs.ask("instances", default=None if "instances" in inputs.used else 1, why="one instance"),
        rollout_dtype=inputs.used.get("rollout_dtype", Figure(key="rollout_dtype", value=dtype)),
        rollout_tensor_parallel=tensor,
        rollout_pipeline_parallel=inputs.ask("rollout_pipeline_parallel"),
        concurrency=inputs.ask("concurrency"),
        shares_weights=bool(inputs.yes("shares_weights")),
        context_tokens=context,
        **lengths,
    )
    live, longest = question.context, profile.architecture.max_context if profile else 0
    if profile is not None and live.known and live.number > longest:
        inputs.warnings.append(f"{live.number:,.0f} tokens of a sample are more than the model's {longest:,}")
    return _with_micro_batch(inputs, question)


def _beside(inputs: Inputs, kept: Tenants, *, adapters: bool) -> dict[str, Figure]:
    """The models that are kept beside the policy, with their sizes; with its adapters off it is its own reference."""
    from rlsize.loop.trainer import passes_of

    passes, _, rl = passes_of(inputs, kept)
    reference = "reference" in passes if rl else bool(kept.reference)
    if reference and adapters and not kept.reference_params.known:
        what = "The reference is the policy with its adapters off: no copy (--reference-params counts one)."
        inputs.notes.append(what)
        reference = False
    there = {"critic": kept.critic, "reference": reference, "reward": kept.reward}
    return {name: getattr(kept, f"{name}_params") for name, held in there.items() if held}


def _with_micro_batch(inputs: Inputs, question: MemoryQuestion) -> MemoryQuestion:
    """With the samples that there are for a micro-batch, where it is known how the trainer takes them."""
    from rlsize.loop.trainer import keeping
    from rlsize.loop.workload import samples

    keeps = keeping(inputs)
    if keeps.backend or keeps.samples is not None:
        question = replace(question, sequences=samples(inputs), mini_batches=inputs.ask("mini_batches"))
    return replace(question, keeps=keeps)


def _trainer_gpus(inputs: Inputs, *, shared: bool) -> Figure:
    """The trainer's GPUs; all where both sides share them."""
    own = inputs.ask("trainer_gpus")
    return replace(inputs.ask("gpus"), key="trainer_gpus") if shared and not own.known else own


def _gradient_bytes(inputs: Inputs) -> Figure:
    """Bytes of a gradient, of the number type that was chosen."""
    from rlsize.facts.algorithm import BYTES_PER_GRADIENT

    value = BYTES_PER_GRADIENT[inputs.choose("gradients")]
    width = inputs.used["gradients"]
    source = f"{width.value} gradients: {width.source}"
    return Figure(key="bytes_per_gradient", value=value, provenance=width.provenance, source=source)


def _lengths(inputs: Inputs) -> dict[str, Any]:
    """Prompt, response, spread, and the longest sequence of a step: what says how long a sample in flight is."""
    response = inputs.ask("response_tokens")
    if not response.known:
        return {}
    from rlsize.estimates.generation import StepBatch, longest_sequence
    from rlsize.loop.lengths import prompt_length

    prompt, cv, cap = prompt_length(inputs), inputs.ask("response_cv"), inputs.ask("max_response_tokens")
    most = inputs.ask("max_prompt_tokens")
    prompts, group = inputs.ask("prompts_per_step"), inputs.ask("group_size")
    capped = cap.known and cap.provenance == "given"
    batch = StepBatch(
        samples=(prompts.number if prompts.known else 1.0) * (group.number if group.known else 1.0),
        instances=1.0,
        prompt_tokens=most.number if most.known else prompt.number,
        response_tokens=response.number,
        response_cv=cv.number,
        max_tokens=cap.if_known,
    )
    source = f"a prompt, and {'the cap' if capped else 'the longest that is expected of a step'}"
    tokens = longest_sequence(batch, capped=capped)
    longest = Figure(key="longest_tokens", value=tokens, provenance="predicted", source=source)
    told = {"prompt_tokens": prompt, "response_tokens": response, "response_cv": cv}
    return {**told, "capped": capped, "longest_tokens": longest}


def _hardware(inputs: Inputs, question: MemoryQuestion, gpu: Gpu, *, shared: bool) -> GpuMemory:
    """The shares of a GPU's memory that the two sides may plan with."""
    from rlsize.estimates.memory import gpu_memory
    from rlsize.facts.headroom import MEMORY_MARGIN
    from rlsize.facts.inference_engines import inference_engine
    from rlsize.loop.instance import memory_fraction
    from rlsize.loop.pools import node_gpus

    engine = inference_engine(str(inputs.name("engine")[0] or "vllm"))
    rollout = memory_fraction(inputs, engine, shared=shared)
    why = "what its peak must leave free for runtime, communication and scatter"
    trainer = Figure(key="trainer_memory_fraction", value=1.0 - MEMORY_MARGIN, provenance="default", source=why)
    if not gpu.specification.memory.verified:
        inputs.warnings.append(f"the memory of {gpu.name} is unverified")
    dtype = str(question.rollout_dtype.value)
    if dtype in _PEAKS and getattr(gpu.specification, _PEAKS[dtype]) is None:
        slow = "weights take that little room, but run at bf16 speed at best"
        inputs.warnings.append(f"{gpu.name} has no {dtype} matrix units: {slow}")
    return gpu_memory(gpu, trainer, rollout, node_gpus(inputs, gpu))
