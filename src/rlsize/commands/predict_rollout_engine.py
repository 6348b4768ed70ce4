"""The engine of a rollout prediction, from flags, scenario and profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.commands import asking, flags
from rlsize.estimates.engine_work import EngineQuestion
from rlsize.estimates.layout_rules import divides
from rlsize.estimates.memory_shape import memory_shape
from rlsize.estimates.model_size import model_size
from rlsize.facts.engine_defaults import ENGINES, engine_defaults
from rlsize.facts.figure import Figure
from rlsize.facts.quantisation import KV_WIDTHS, WIDTHS, native, uniform
from rlsize.facts.records.record import Layout
from rlsize.shell.models import model_profile

if TYPE_CHECKING:
    from rlsize.commands.predict_rollout_flags import EngineFlags
    from rlsize.facts.engine_defaults import EngineDefaults
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model
    from rlsize.facts.quantisation import WeightTypes
    from rlsize.shell.inputs import Inputs

_LARGEST = 64  # ranks of tensor parallelism that are tried
_LONGEST_WORD = 40


def engine_question(
    inputs: Inputs, model: str | None, gpu: str | None, said: EngineFlags
) -> tuple[EngineQuestion | None, bool]:
    """
    One instance, and whether somebody said its tensor parallelism; None where a fault was noted.

    Args:
        inputs: Flags, scenario and profiles.
        model: What `--model` says.
        gpu: What `--gpu` says.
        said: What the other flags say.
    """
    policy, hardware = _profiles(inputs, model, gpu)
    name = _engine(inputs, said.engine)
    layout, stated = _layout(inputs, said, policy)
    kv_dtype = inputs.word(
        "kv_dtype", "--kv-dtype", said.kv_dtype, KV_WIDTHS, scenario="rollout.kv_dtype", default="bf16"
    )
    weights = _weights(inputs, said.dtype, policy)
    fraction = inputs.number(
        "memory_fraction",
        "--memory-fraction",
        said.memory_fraction,
        flags.FRACTION,
        scenario="rollout.memory_fraction",
        default=name.memory_fraction or None,  # SGLang sets aside what its largest step needs
        why=name.source,
    )
    most = inputs.number("max_num_seqs", "--max-num-seqs", said.max_num_seqs, flags.COUNT)
    if inputs.faults or policy is None or hardware is None:
        return None, stated
    question = EngineQuestion(
        model=policy,
        gpu=hardware,
        layout=layout,
        engine=name.name,
        version=_version(inputs, said.version),
        weights=weights,
        kv_dtype=kv_dtype or "bf16",
        memory_fraction=fraction.number if fraction.known else None,
        max_sequences=most.number if most.known else None,
        served=said.served,
    )
    return question, stated


def degrees(model: Model) -> tuple[int, ...]:
    """Degrees of tensor parallelism that can deal out a model's heads."""
    shape = memory_shape(model, model_size(model).params)
    powers = (2**power for power in range(_LARGEST.bit_length()))
    return tuple(degree for degree in powers if divides(shape, degree))


def _profiles(inputs: Inputs, model: str | None, gpu: str | None) -> tuple[Model | None, Gpu | None]:
    policy = model_profile(inputs, model)
    hardware = asking.gpu(inputs, gpu)
    for key, found, flag in (("model", policy, "--model"), ("gpu", hardware, "--gpu")):
        if found is None and not inputs.faults:
            inputs.fault(f"{key} is missing", flag, f"give {flag}, a profile's name")
    if policy is not None and not policy.architecture.verified:
        inputs.warnings.append(f"the dimensions of {policy.name} are unverified")
    return policy, hardware


def _engine(inputs: Inputs, text: str | None) -> EngineDefaults:
    """The engine by how its name reads, version and all; vLLM where nobody says."""
    key, where = "engine", "--engine"
    said = text
    if said is None:
        said, where = inputs.said("rollout.engine"), inputs.where("rollout.engine")
    if said is None:
        inputs.keep(Figure(key=key, value="vllm", provenance="default", source="default of --engine"))
        return ENGINES["vllm"]
    found = engine_defaults(str(said))
    if found.name == "vllm" and "vllm" not in str(said).lower():
        inputs.fault(f"{str(said)[:_LONGEST_WORD]!r} is unknown", where, f"known: {', '.join(ENGINES)}")
    inputs.keep(Figure(key=key, value=found.name, source=where))
    return found


def _version(inputs: Inputs, text: str | None) -> str:
    if text is not None:
        inputs.keep(Figure(key="engine_version", value=text[:_LONGEST_WORD], source="--engine-version"))
    return text or ""


def _weights(inputs: Inputs, text: str | None, model: Model | None) -> WeightTypes | None:
    """Number types of the weights; None for those in which the model is published."""
    published = native(model.name) if model else uniform("bf16")
    usual = published.experts if model and model.architecture.moe else published.dense
    dtype = inputs.word("rollout_dtype", "--dtype", text, WIDTHS, scenario="rollout.dtype", default=usual)
    return None if dtype == usual else uniform(dtype or usual)


def _layout(inputs: Inputs, said: EngineFlags, model: Model | None) -> tuple[Layout, bool]:
    tensor = inputs.number(
        "tensor_parallel", "--tensor-parallel", said.tensor, flags.COUNT, scenario="rollout.tensor_parallel"
    )
    pipeline = _ranks(inputs, "pipeline_parallel", said.pipeline, "rollout.pipeline_parallel")
    data = _ranks(inputs, "data_parallel", said.data)
    layout = Layout(
        tensor=int(tensor.number) if tensor.known else 1,
        pipeline=pipeline,
        data=data,
        expert=_ranks(inputs, "expert_parallel", said.expert),
    )
    if model is not None and not inputs.faults:
        _check(inputs, layout, model, tensor)
    return layout, tensor.known


def _ranks(inputs: Inputs, key: str, text: str | None, scenario: str = "") -> int:
    """Ranks of one kind; one where nobody says, and then not worth showing."""
    flag = f"--{key.replace('_', '-')}"
    found = inputs.number(key, flag, text, flags.COUNT, scenario=scenario, default=1)
    if found.provenance == "default":
        inputs.used.pop(key, None)
    return int(found.number) if found.known else 1


def _check(inputs: Inputs, layout: Layout, model: Model, tensor: Figure) -> None:
    shape = model.architecture
    size = memory_shape(model, model_size(model).params)
    if tensor.known and not divides(size, layout.tensor):
        what = f"{layout.tensor} ranks cannot share {size.heads} heads ({size.kv_heads} KV heads) evenly"
        inputs.fault(what, tensor.source, "use a divisor of both, or a multiple of the KV heads")
    if layout.pipeline > shape.layers:
        inputs.fault(
            f"{layout.pipeline} stages are more than {shape.layers} layers", "--pipeline-parallel", "use fewer"
        )
    ranks = layout.tensor * layout.data
    if layout.expert > 1 and shape.moe is None:
        inputs.fault(f"{model.name} has no experts to share out", "--expert-parallel", "leave it out")
    elif layout.expert > 1 and tensor.known and layout.expert != ranks:
        what = f"experts lie over tensor x data ranks, {ranks} here, not over {layout.expert}"
        inputs.fault(what, "--expert-parallel", f"give {ranks}, or leave it out")
