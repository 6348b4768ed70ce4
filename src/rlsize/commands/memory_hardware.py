"""The GPU of a memory bill, and what an engine would find for its KV cache on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.commands import asking, flags
from rlsize.errors import InputError
from rlsize.estimates.gpu_memory import GpuMemory, gpu_memory
from rlsize.facts.figure import Figure, absent
from rlsize.shell.models import model_profile

if TYPE_CHECKING:
    from rlsize.estimates.memory_question import MemoryQuestion
    from rlsize.facts.gpu import Gpu
    from rlsize.planner.memory_fit import FitAnswer
    from rlsize.shell.inputs import Inputs

DEFAULT_FRACTION = 0.9
_PEAKS = {"fp8": "fp8_dense", "fp4": "fp4_dense"}


def engine_at_start(
    inputs: Inputs,
    question: MemoryQuestion,
    model: str | None,
    judged: tuple[Gpu | None, FitAnswer | None],
    said: tuple[str, str | None],
) -> tuple[Figure, ...]:
    """
    Weights and KV cache that the judged rollout instance would log at start-up; nothing where no profile says enough.

    Args:
        inputs: Flags, scenario and profiles.
        question: What was asked.
        model: What `--model` says.
        judged: The GPU, and what fits on it.
        said: What `--seed` and `--calibration` say.
    """
    gpu, fit = judged
    instance = (fit.stated_rollout or fit.first_rollout) if fit else None
    if gpu is None or fit is None or instance is None or question.known_shape is None:
        return ()
    profile = model_profile(inputs, model)
    if profile is None:
        return ()
    from rlsize.estimates.constants_memory import STAGE
    from rlsize.estimates.engine_memory import CapacityQuestion
    from rlsize.estimates.engine_start import engine_start
    from rlsize.facts.quantisation import uniform
    from rlsize.facts.records.record import Layout
    from rlsize.shell.beliefs import belief_of

    pipeline = max(1, round(question.rollout_pipeline_parallel.number))
    cache = inputs.used.get("kv_dtype")
    asked = CapacityQuestion(
        model=profile,
        gpu=gpu,
        layout=Layout(tensor=instance.tensor_parallel, pipeline=pipeline),
        weights=uniform(str(question.rollout_dtype.value)),
        kv_dtype=str(cache.value) if cache else "bf16",
        memory_fraction=fit.gpu.rollout_fraction.number,
    )
    seed, calibration = said
    return engine_start(asked, belief_of(inputs, calibration, STAGE), abs(int(seed)))


def memory_hardware(
    inputs: Inputs, question: MemoryQuestion, name: str | None, text: str | None
) -> tuple[Gpu | None, GpuMemory | None]:
    """
    The GPU, if one is named, and the shares of its memory that the two sides may plan with.

    Args:
        inputs: Flags, scenario and profiles; faults are noted there.
        question: What was asked.
        name: What `--gpu` says.
        text: What `--memory-fraction` says.
    """
    profile = asking.gpu(inputs, name)
    if profile is None:
        if text is not None:
            inputs.number("memory_fraction", "--memory-fraction", text, flags.FRACTION)
        return None, None
    rollout = inputs.number(
        "memory_fraction",
        "--memory-fraction",
        text,
        flags.FRACTION,
        scenario="rollout.memory_fraction",
        default=DEFAULT_FRACTION,
        why="a tenth is left for fragmentation",
    )
    trainer = rollout
    if text is None and rollout.provenance == "given":
        trainer = Figure(
            key="trainer_memory_fraction",
            value=DEFAULT_FRACTION,
            provenance="default",
            source="a tenth is left for fragmentation",
        )
    _warn_about(inputs, question, profile)
    return profile, gpu_memory(profile, trainer, rollout, _node(inputs, profile))


def _node(inputs: Inputs, gpu: Gpu) -> Figure:
    """GPUs of a node: the scenario's, or those of its cluster profile where that has the same GPU; else absent."""
    key = "gpus_per_node"
    said = inputs.said("cluster.gpus_per_node")
    if said is not None:
        return Figure(key=key, value=said, source=inputs.where("cluster.gpus_per_node"))
    name = inputs.said("cluster.profile")
    if name is not None:
        try:
            cluster = inputs.catalogue.get("cluster", str(name))
        except InputError as error:
            inputs.blame(error, inputs.where("cluster.profile"))
            return absent(key, "--gpu")
        fact = cluster.gpus_per_node
        if cluster.gpu == gpu.name:
            source = f"cluster profile {cluster.name}: {key}; {cluster.sources[fact.source]}"
            return Figure(key=key, value=fact.value, source=source, verified=fact.verified)
    return absent(key, "--gpu")


def _warn_about(inputs: Inputs, question: MemoryQuestion, profile: Gpu) -> None:
    memory_fact = profile.specification.memory_usable or profile.specification.memory
    if not memory_fact.verified:
        inputs.warnings.append(f"the memory of {profile.name} is unverified")
    dtype = str(question.rollout_dtype.value)
    if dtype in _PEAKS and getattr(profile.specification, _PEAKS[dtype]) is None:
        inputs.warnings.append(
            f"{profile.name} has no {dtype} matrix units: weights take that little room, but run at bf16 speed at best"
        )
