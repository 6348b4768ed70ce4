"""`rlsize sync`: how long a weight sync takes, by method and link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rlsize.commands import asking, flags
from rlsize.commands.link_choice import LEAST_BANDWIDTH, Paths, all_links, paths
from rlsize.commands.unsaid import zero_unless_said
from rlsize.equations import matching
from rlsize.estimates.sync import SyncQuestion
from rlsize.estimates.sync_methods import DEFAULT_METHOD, METHODS
from rlsize.estimates.working import apply
from rlsize.facts.dtype import BYTES_PER_PARAM
from rlsize.facts.fields import Quantity
from rlsize.facts.figure import Figure
from rlsize.planner.sync_cadence import plan_sync
from rlsize.reports.report import Report
from rlsize.reports.sync import sync_report
from rlsize.shell.command import quantity
from rlsize.shell.inputs import Inputs

if TYPE_CHECKING:
    from rlsize.estimates.sync_links import LinkFigures

STORE = "Disk and object store"
PAUSE = "Pause and cadence"
CHANGED = 0.02  # published runs report less than 0.01; an upper estimate at a learning rate of 1e-6 gives 0.015 to 0.04
TARGET = 0.05

_SECONDS = Quantity("s", least=1e-6)
_SHARE = Quantity("1", least=1e-6, most=1.0)


def sync(
    ctx: typer.Context,
    scenario: flags.ScenarioFile = None,
    model: Annotated[
        str | None, quantity("--model", "A model profile or the path of a config.json.", metavar="NAME|FILE")
    ] = None,
    params: Annotated[str | None, quantity("--params", "Weights to send, where there is no profile: 70B.")] = None,
    dtype: Annotated[
        str | None, quantity("--dtype", "Width of the weights on the wire: bf16, fp8, ...", metavar="NAME")
    ] = None,
    method: Annotated[str | None, quantity("--method", f"One of {', '.join(METHODS)}.", metavar="NAME")] = None,
    bandwidth: Annotated[
        str | None, quantity("--bandwidth", "Slowest link on the path, one direction: '50 GB/s'.")
    ] = None,
    link: Annotated[
        str | None, quantity("--link", "A link profile in its place: infiniband-400g.", metavar="NAME")
    ] = None,
    gpu: Annotated[
        str | None, quantity("--gpu", "A GPU profile in its place: the link inside its node.", metavar="NAME")
    ] = None,
    cluster: Annotated[
        str | None, quantity("--cluster", "A cluster profile in its place: the link between nodes.", metavar="NAME")
    ] = None,
    efficiency: Annotated[
        str | None, quantity("--efficiency", "Share of the link that transfers reach, 0 to 1.")
    ] = None,
    instances: Annotated[str | None, quantity("--instances", "Rollout instances.")] = None,
    tensor_parallel: Annotated[
        str | None, quantity("--tensor-parallel", "GPUs that share each layer of an instance.")
    ] = None,
    trainer_gpus: flags.TrainerGpus = None,
    changed_fraction: Annotated[
        str | None, quantity("--changed-fraction", "Share of weights that a step changes (delta).")
    ] = None,
    write_bandwidth: Annotated[
        str | None, quantity("--write-bandwidth", "What the trainer writes to the store.", STORE)
    ] = None,
    read_bandwidth: Annotated[
        str | None, quantity("--read-bandwidth", "What a disk gives all readers together, an object store each.", STORE)
    ] = None,
    reload_seconds: Annotated[
        str | None, quantity("--reload-seconds", "For an engine to load what it has read.", STORE)
    ] = None,
    sync_seconds: Annotated[str | None, quantity("--sync-seconds", "One sync as it was measured.", PAUSE)] = None,
    hidden_seconds: Annotated[
        str | None, quantity("--hidden-seconds", "Part of it that runs beside other work.", PAUSE)
    ] = None,
    step_seconds: Annotated[
        str | None, quantity("--step-seconds", "Wall clock of an optimizer step, waiting too, but no sync.", PAUSE)
    ] = None,
    every: Annotated[str | None, quantity("--every", "Optimizer steps from one sync to the next, m.", PAUSE)] = None,
    target_share: Annotated[
        str | None, quantity("--target-share", "Largest share of the wall clock to pause; 0.05.", PAUSE)
    ] = None,
    compare_links: Annotated[
        bool, typer.Option("--compare-links", help="The same sync over every link profile.", rich_help_panel="Inputs")
    ] = False,
    seed: flags.Seed = "0",
    profiles: flags.Profiles = None,
) -> Report:
    """
    How long a weight sync takes, by method and link.

    Example:  rlsize sync --params 70e9 --bandwidth "50 GB/s"
    """
    inputs = Inputs(scenario, profiles)
    senders = inputs.number(
        "trainer_gpus", "--trainer-gpus", trainer_gpus, flags.COUNT, scenario="placement.trainer_gpus"
    )
    weights = _weights(inputs, model, params, sync_seconds)
    width = _width(inputs, dtype)
    ways = paths(inputs, {"bandwidth": bandwidth, "link": link, "gpu": gpu, "cluster": cluster}, efficiency, senders)
    question = SyncQuestion(
        method=_method(inputs, method),
        params=weights,
        bytes_per_param=width,
        path=ways.between,
        handover=ways.handover,
        trainer_gpus=senders,
        instances=inputs.number("instances", "--instances", instances, flags.COUNT, scenario="placement.instances"),
        tensor_parallel=_shards(inputs, tensor_parallel),
        changed_fraction=_changed(inputs, changed_fraction),
        write_bandwidth=inputs.number(
            "write_bandwidth_bytes_per_second", "--write-bandwidth", write_bandwidth, LEAST_BANDWIDTH
        ),
        read_bandwidth=inputs.number(
            "read_bandwidth_bytes_per_second", "--read-bandwidth", read_bandwidth, LEAST_BANDWIDTH
        ),
        reload_seconds=zero_unless_said(
            inputs, "reload_seconds", "--reload-seconds", reload_seconds, flags.SECONDS_OR_NONE
        ),
        measured_seconds=_measured(inputs, sync_seconds),
        hidden_seconds=zero_unless_said(
            inputs, "hidden_seconds", "--hidden-seconds", hidden_seconds, flags.SECONDS_OR_NONE
        ),
        step_seconds=_step(inputs, step_seconds),
        sync_every=inputs.number(
            "sync_every",
            "--every",
            every,
            flags.COUNT,
            scenario="weight_sync.every",
            default=1,
            why="a sync every step",
        ),
        target_fraction=inputs.number(
            "target_fraction", "--target-share", target_share, _SHARE, default=TARGET, why="default of --target-share"
        ),
    )
    others = _others(inputs, ways, question, wanted=compare_links or bool((ctx.obj or {}).get("plot")))
    inputs.settle()
    answer = plan_sync(question, others, asking.random_for(question, seed))
    return sync_report(answer, inputs.shown(), inputs.warnings, inputs.notes)


def _weights(inputs: Inputs, model: str | None, params: str | None, measured: str | None) -> Figure:
    from rlsize.shell.models import model_params

    weights: Figure = model_params(inputs, model, params)[0]
    if inputs.said("trainer.lora_rank") is not None and params is None:
        inputs.notes.append("The sync sends merged weights; LoRA adapters alone are far smaller (--params).")
    if measured is None and inputs.said("rates.sync_seconds") is None:
        inputs.need(weights, "give --params or --model; or --sync-seconds, where a sync has been measured")
    return weights


def _width(inputs: Inputs, dtype: str | None) -> Figure:
    """Bytes per weight on the wire: of the sync's type, else the type of the rollout weights, else bf16."""
    said = "weight_sync.dtype" if inputs.said("weight_sync.dtype") is not None else "rollout.dtype"
    name = inputs.word("dtype", "--dtype", dtype, BYTES_PER_PARAM, scenario=said, default="bf16") or "bf16"
    origin = inputs.used.get("dtype", Figure(key="dtype", value=name, provenance="default"))
    return Figure(
        key="bytes_per_param",
        value=BYTES_PER_PARAM[name],
        provenance=origin.provenance,
        source=f"{name}, {origin.source}",
    )


def _method(inputs: Inputs, text: str | None) -> str:
    usual = "colocated" if inputs.said("placement.mode") == "colocated" else DEFAULT_METHOD
    return inputs.word("method", "--method", text, METHODS, scenario="weight_sync.transport", default=usual) or usual


def _shards(inputs: Inputs, text: str | None) -> Figure:
    """GPUs over which an instance shards its weights: the scenario's pipeline stages shard them too."""
    tensor = inputs.number(
        "tensor_parallel", "--tensor-parallel", text, flags.COUNT, scenario="rollout.tensor_parallel"
    )
    if text is not None or not tensor.known or inputs.said("rollout.pipeline_parallel") is None:
        return tensor
    stages = inputs.number("pipeline_parallel", "", None, flags.COUNT, scenario="rollout.pipeline_parallel")
    return apply("gpus_per_instance", matching.instance_gpus, tensor_parallel=tensor, pipeline_parallel=stages)


def _changed(inputs: Inputs, text: str | None) -> Figure:
    why = "assumed; published runs report under 1 % (arXiv:2602.03839, arXiv:2605.07330), measure yours"
    return inputs.number("changed_fraction", "--changed-fraction", text, _SHARE, default=CHANGED, why=why)


def _measured(inputs: Inputs, text: str | None) -> Figure:
    return inputs.number("measured_sync_seconds", "--sync-seconds", text, _SECONDS, scenario="rates.sync_seconds")


def _step(inputs: Inputs, text: str | None) -> Figure:
    """Wall clock of a step without syncs; the train seconds of a scenario stand in, as if the trainer never waited."""
    said = inputs.number("step_seconds_without_sync", "--step-seconds", text, _SECONDS)
    if said.known or inputs.said("rates.train_seconds") is None:
        return said
    inputs.notes.append(
        "The step is taken to last the scenario's train_seconds, as if the trainer never waited (--step-seconds)."
    )
    return inputs.number("step_seconds_without_sync", "--step-seconds", None, _SECONDS, scenario="rates.train_seconds")


def _others(inputs: Inputs, ways: Paths, question: SyncQuestion, *, wanted: bool) -> tuple[LinkFigures, ...]:
    """The links to compare: all that there are, where somebody asks to see them."""
    if not wanted or inputs.faults or not question.params.known:
        return ()
    share = ways.between.achievable_fraction if ways.between.basis == "given" else None
    return all_links(inputs, share)
