"""One rollout instance: engine, layout, number types, and its share of the memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.memory_shape import memory_shape
from rlsize.estimates.model_size import model_size
from rlsize.estimates.trainer_layout import divides, heads_objection
from rlsize.facts.figure import Figure
from rlsize.facts.inference_engines import ENGINES, WITHOUT, inference_engine
from rlsize.facts.layout import Layout
from rlsize.facts.quantisation import KV_WIDTHS, WIDTHS, published, uniform
from rlsize.quantities.rollout import SHARED_MEMORY_FRACTION

if TYPE_CHECKING:
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.inference_engines import InferenceEngine
    from rlsize.facts.model import Model
    from rlsize.facts.quantisation import WeightTypes
    from rlsize.loop.said import Said

_LARGEST = 64  # ranks of tensor parallelism that are tried
_LONGEST_WORD = 40
_OWN_MODEL = (
    "The trainer's own model generates, without an engine: predicted as one that launches kernel by kernel, "
    "all samples at once."
)

QUICKEST_SIZE = "the size that makes most of the fleet's GPUs; of those within 2 % the smallest"
"""Why an instance has its size, where its fleet is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """
    One rollout instance.

    Args:
        question: The instance; its tensor parallelism is 1 where nobody says.
        stated: Whether somebody said its tensor parallelism.
    """

    question: EngineQuestion
    stated: bool


def instance(said: Said, model: Model | None, gpu: Gpu | None, *, shared: bool) -> Instance | None:
    """
    One instance as it was asked for; None where a fault was noted.

    Args:
        said: What was said.
        model: The policy.
        gpu: The GPU of the fleet.
        shared: Whether a trainer has the same GPUs, so that it leaves room where nobody says how much.
    """
    own = engine_of(said)
    layout, stated = layout_of(said, model)
    kv_dtype = said.choose("kv_dtype", KV_WIDTHS)
    weights = _weights(said, model)
    fraction = memory_fraction(said, own, shared=shared)
    most, batched, promised = said.ask("max_num_seqs"), said.ask("max_batched_tokens"), said.ask("max_model_len")
    drafts = said.ask("draft_tokens")
    accepted = said.ask("draft_acceptance").number if drafts.known else 0.0
    version, where = said.name("engine_version")
    if version is not None:
        said.keep(Figure(key="engine_version", value=version[:_LONGEST_WORD], source=where))
    if gpu is not None and own.vendor not in {"", gpu.vendor}:
        what = f"{own.name} runs on GPUs of {own.vendor} alone, not on {gpu.title}"
        said.fault(what, said.place("engine"), "take another engine, or other GPUs")
    served, graphs = bool(said.yes("served")), said.yes("cuda_graphs") is not False and not without_engine(said)
    if said.faults or model is None or gpu is None:
        return None
    question = EngineQuestion(
        model=model,
        gpu=gpu,
        layout=layout,
        engine=own.name,
        version=version or "",
        weights=weights,
        kv_dtype=kv_dtype,
        memory_fraction=fraction.if_known,
        max_sequences=most.if_known,
        batched_tokens=batched.if_known,
        promised_tokens=promised.number if promised.known else 0.0,
        served=served,
        graphs=graphs,
        drafts=drafts.number if drafts.known else 0.0,
        draft_acceptance=accepted,
    )
    return Instance(question=question, stated=stated)


def degrees(model: Model) -> tuple[int, ...]:
    """Degrees of tensor parallelism that can deal out a model's heads."""
    shape = memory_shape(model, model_size(model).params)
    powers = (2**power for power in range(_LARGEST.bit_length()))
    return tuple(degree for degree in powers if divides(shape, degree))


def memory_fraction(said: Said, own: InferenceEngine, *, shared: bool) -> Figure:
    """Share of a GPU's memory that the engine takes: as said, else what leaves room for a trainer, else its default."""
    if shared:
        why = "leaves room for the trainer that shares the GPUs: verl's recipes take 0.5 to 0.7"
        return said.ask("memory_fraction", default=SHARED_MEMORY_FRACTION, why=why)
    return said.ask("memory_fraction", default=own.memory_fraction or None, why=own.source)


def memory_fractions(asked: EngineQuestion, *, shared: bool) -> dict[bool, float | None]:
    """
    Share of a GPU's memory that an engine takes on shared GPUs (True) and on its own (False).

    Args:
        asked: The instance as it was asked for.
        shared: Where it was asked for; elsewhere the usual share holds.
    """
    usual = {True: SHARED_MEMORY_FRACTION, False: inference_engine(asked.engine).memory_fraction or None}
    return usual | {shared: asked.memory_fraction}


def without_engine(said: Said) -> bool:
    """Whether the trainer's own model generates."""
    return str(said.name("engine")[0]).lower() == WITHOUT


def engine_of(said: Said) -> InferenceEngine:
    """The engine by how its name reads, version and all; vLLM where nobody says."""
    name, where = said.name("engine")
    if name is None:
        said.keep(Figure(key="engine", value="vllm", provenance="default", source="default of --engine"))
        return ENGINES["vllm"]
    found = inference_engine(str(name))
    if without_engine(said):
        said.keep(Figure(key="engine", value=WITHOUT, source=where))
        said.warnings += [_OWN_MODEL] if _OWN_MODEL not in said.warnings else []
        return found
    if found.name == "vllm" and "vllm" not in str(name).lower():
        said.fault(f"{str(name)[:_LONGEST_WORD]!r} is unknown", where, f"known: {', '.join(ENGINES)}")
    said.keep(Figure(key="engine", value=found.name, source=where))
    return found


def _weights(said: Said, model: Model | None) -> WeightTypes | None:
    """Number types of the weights; None for those in which the model is published."""
    usual = published(model.name, moe=model.architecture.moe is not None) if model else "bf16"
    dtype = said.choose("rollout_dtype", WIDTHS, default=usual, why="as the model is published")
    return None if dtype == usual else uniform(dtype or usual)


def layout_of(said: Said, model: Model | None) -> tuple[Layout, bool]:
    """How an instance is spread, and whether somebody said its tensor parallelism; what cannot be is a fault."""
    tensor = said.ask("rollout_tensor_parallel")
    size = said.ask("gpus_per_instance")
    if size.known and not tensor.known:
        tensor = said.keep(Figure(key="rollout_tensor_parallel", value=round(size.number), source=size.source))
    layout = Layout(
        tensor=int(tensor.number) if tensor.known else 1,
        pipeline=_ranks(said, "rollout_pipeline_parallel"),
        data=_ranks(said, "rollout_data_parallel"),
        expert=_ranks(said, "rollout_expert_parallel"),
    )
    if model is not None and not said.faults:
        _check(said, layout, model, tensor)
    if layout.expert > 1 and tensor.known:
        layout = replace(layout, expert=layout.tensor * layout.data)
    return layout, tensor.known


def _ranks(said: Said, key: str) -> int:
    """Ranks of one kind; one where nobody says, and then not worth showing."""
    found = said.ask(key)
    if found.provenance == "default":
        said.used.pop(key, None)
    return int(found.number) if found.known else 1


def _check(said: Said, layout: Layout, model: Model, tensor: Figure) -> None:
    shape = model.architecture
    size = memory_shape(model, model_size(model).params)
    for one in heads_objection(size, layout.tensor) if tensor.known else ():
        said.fault(one.what, tensor.source, one.todo)
    if layout.pipeline > shape.layers:
        what = f"{layout.pipeline} stages are more than {shape.layers} layers"
        said.fault(what, said.place("rollout_pipeline_parallel"), "use fewer")
    ranks, where = layout.tensor * layout.data, said.place("rollout_expert_parallel")
    if layout.expert > 1 and shape.moe is None:
        said.fault(f"{model.name} has no experts to share out", where, "leave it out")
    elif layout.expert > 1 and tensor.known and ranks % layout.expert:
        what = f"{ranks} tensor x data ranks cannot share experts out over {layout.expert}"
        said.fault(what, where, f"give {ranks}, or leave it out")
    elif layout.expert > 1 and tensor.known and layout.expert != ranks:
        told = f"experts are taken to lie over all {ranks} ranks of an instance, as in vLLM, not over {layout.expert}"
        said.notes += [] if told in said.notes else [told]
