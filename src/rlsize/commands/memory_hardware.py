"""The GPU of a memory bill, and what an engine would find for its KV cache on it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.commands import asking, flags
from rlsize.commands.predict_step_inputs import SHARED_FRACTION
from rlsize.errors import InputError
from rlsize.estimates.gpu_memory import GpuMemory, gpu_memory
from rlsize.facts.engine_defaults import engine_defaults
from rlsize.facts.figure import Figure, absent
from rlsize.facts.memory_margin import MEMORY_MARGIN

if TYPE_CHECKING:
    from rlsize.estimates.belief import Belief
    from rlsize.estimates.engine_memory import CapacityQuestion
    from rlsize.estimates.memory_question import MemoryQuestion
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model
    from rlsize.planner.memory_fit import FitAnswer
    from rlsize.shell.inputs import Inputs

_PEAKS = {"fp8": "fp8_dense", "fp4": "fp4_dense"}


def instance(
    inputs: Inputs, question: MemoryQuestion, policy: Model | None, gpu: tuple[Gpu | None, GpuMemory | None]
) -> CapacityQuestion | None:
    """
    One rollout instance on its GPU, of no layout yet; None where model or GPU is not named.

    Args:
        inputs: Flags, scenario and profiles.
        question: What was asked.
        policy: The model's profile.
        gpu: The GPU's profile, and what may be planned with.
    """
    profile, hardware = gpu
    if profile is None or hardware is None or policy is None or question.known_shape is None:
        return None
    from rlsize.estimates.engine_memory import CapacityQuestion
    from rlsize.facts.quantisation import uniform

    cache = inputs.used.get("kv_dtype")
    fraction = hardware.rollout_fraction
    return CapacityQuestion(
        model=policy,
        gpu=profile,
        engine=str(inputs.said("rollout.engine") or "vllm"),
        weights=uniform(str(question.rollout_dtype.value)),
        kv_dtype=str(cache.value) if cache else "bf16",
        memory_fraction=fraction.number if fraction.known else None,
    )


def engine_at_start(question: MemoryQuestion, fit: FitAnswer | None, belief: Belief, seed: str) -> tuple[Figure, ...]:
    """
    Weights and KV cache that the judged rollout instance would log at start-up; nothing where no profile says enough.

    Args:
        question: What was asked.
        fit: What fits.
        belief: What is believed about the constants of memory.
        seed: What `--seed` says.
    """
    judged = (fit.stated_rollout or fit.first_rollout) if fit else None
    if judged is None or question.engine is None:
        return ()
    from rlsize.estimates.engine_start import engine_start
    from rlsize.facts.records.record import Layout

    pipeline = max(1, round(question.rollout_pipeline_parallel.number))
    layout = Layout(tensor=judged.tensor_parallel, pipeline=pipeline)
    return engine_start(replace(question.engine, layout=layout), belief, abs(int(seed)))


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
    engine = engine_defaults(str(inputs.said("rollout.engine") or "vllm"))
    shared = inputs.said("placement.mode") == "colocated"
    rollout = inputs.number(
        "memory_fraction",
        "--memory-fraction",
        text,
        flags.FRACTION,
        scenario="rollout.memory_fraction",
        default=SHARED_FRACTION if shared else engine.memory_fraction or None,
        why="usual where engines share GPUs with a trainer" if shared else engine.source,
    )
    trainer = rollout
    if text is None:
        why = "what its peak must leave free for runtime, communication and scatter"
        share = 1.0 - MEMORY_MARGIN
        trainer = Figure(key="trainer_memory_fraction", value=share, provenance="default", source=why)
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
    if not profile.specification.memory.verified:
        inputs.warnings.append(f"the memory of {profile.name} is unverified")
    dtype = str(question.rollout_dtype.value)
    if dtype in _PEAKS and getattr(profile.specification, _PEAKS[dtype]) is None:
        inputs.warnings.append(
            f"{profile.name} has no {dtype} matrix units: weights take that little room, but run at bf16 speed at best"
        )
