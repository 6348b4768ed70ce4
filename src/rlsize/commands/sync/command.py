"""`rlsize sync`: how long a weight sync takes, by method and link."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from rlsize.commands.sync.report import sync_report
from rlsize.equations import matching, rollout_batch, sync_pause
from rlsize.errors import suggestion
from rlsize.estimates.figures import apply
from rlsize.estimates.sync import DEFAULT_METHOD, METHODS, SyncQuestion
from rlsize.facts.figure import Figure
from rlsize.facts.quantisation import BYTES_PER_PARAM
from rlsize.loop.resolve import described, resolve
from rlsize.loop.seed import random_for, seed_of
from rlsize.loop.sync import predicted_as, wire_dtype
from rlsize.planner.sync_cadence import plan_sync
from rlsize.reports.report import Report
from rlsize.shell.command import switch
from rlsize.shell.inputs import Inputs
from rlsize.shell.links import all_links, paths
from rlsize.shell.models import model_params
from rlsize.shell.quantity_flags import asks, short

if TYPE_CHECKING:
    from rlsize.loop.resolve import Loop

_LIKE = {  # classes of transport of which predictions are made, by the method that sends as they do
    "nccl-per-tensor": "nccl-broadcast",
    "nccl-reshard": "rdma",
    "checkpoint-engine": "nccl-broadcast",
    "checkpoint-engine-p2p": "rdma",
    "colocated-per-tensor": "colocated",
    "store": "disk",
}


@asks(
    Inputs=(
        "model", "params", *short("wire_dtype"), ("transport", "--method|--transport"), "bandwidth_bytes_per_second",
        "link", "gpu", ("cluster", "--cluster"), "achievable_fraction", "instances", *short("rollout_tensor_parallel"),
        "trainer_gpus", "changed_fraction", "seed",
    ),
    Disk_and_object_store=("write_bandwidth_bytes_per_second", "read_bandwidth_bytes_per_second", "reload_seconds"),
    Pause_and_cadence=(
        "sync_seconds", "hidden_seconds", "step_seconds", "step_seconds_without_sync",
        ("sync_every", "--every|--sync-every"), "target_fraction",
    ),
)  # fmt: skip
def sync(
    inputs: Inputs,
    ctx: typer.Context,
    compare_links: bool = switch("--compare-links", "The same sync over every link profile.", "Inputs"),
) -> Report:
    """
    How long a weight sync takes, by method and link.

    Example:  rlsize sync --params 70e9 --bandwidth "50 GB/s"
    """
    seed_of(inputs)
    loop = None
    if described(inputs) and predicted_as(inputs) and not any(map(inputs.by_flag, ("params", "cluster"))):
        loop = resolve(inputs)
    weights, method = _weights(inputs), _method(inputs)
    senders = inputs.used.get("trainer_gpus") or inputs.ask("trainer_gpus")
    ways = paths(inputs, senders)
    question = SyncQuestion(
        method=method,
        params=weights,
        bytes_per_param=_width(inputs, method),
        path=ways.between,
        handover=ways.handover,
        trainer_gpus=senders,
        instances=inputs.used.get("instances") or inputs.ask("instances"),
        tensor_parallel=_shards(inputs, loop),
        changed_fraction=inputs.ask("changed_fraction"),
        write_bandwidth=inputs.ask("write_bandwidth_bytes_per_second"),
        read_bandwidth=inputs.ask("read_bandwidth_bytes_per_second"),
        reload_seconds=_or_nothing(inputs, "reload_seconds"),
        measured_seconds=inputs.ask("sync_seconds"),
        hidden_seconds=_or_nothing(inputs, "hidden_seconds"),
        sync_every=inputs.ask("sync_every"),
        target_fraction=inputs.ask("target_fraction"),
    )
    question = replace(question, step_seconds=_step(inputs, loop, question))
    if question.measured_seconds.known and not question.measured_seconds.number:
        inputs.fault("a sync takes time", inputs.place("sync_seconds"), "leave it out where nobody measured one")
    inputs.settle()
    wanted = question.params.known and (compare_links or bool((ctx.obj or {}).get("plot")))
    share = ways.between.achievable_fraction if ways.between.basis == "given" else None
    links = all_links(inputs, share) if wanted else ()
    answer = plan_sync(question, links, random_for(inputs, question))
    return sync_report(answer, inputs)


def _weights(inputs: Inputs) -> Figure:
    """Parameters to send."""
    weights = model_params(inputs)
    if inputs.said("trainer.lora_rank") is not None and not inputs.by_flag("params"):
        inputs.notes.append("The sync sends merged weights; LoRA adapters alone are far smaller (--params).")
    if not inputs.gives("sync_seconds"):
        inputs.need(weights, "give --params or --model; or --sync-seconds, where a sync has been measured")
    return weights


def _method(inputs: Inputs) -> str:
    """How weights are sent: as said, as the class of transport that was said sends them, else by placement."""
    name, where = inputs.name("transport")
    usual = "colocated" if inputs.said("placement.mode") == "colocated" else DEFAULT_METHOD
    method = usual if name is None else _LIKE.get(name, name)
    if method not in METHODS:
        inputs.fault(f"{method[:40]!r} is unknown", where, suggestion(method[:40], METHODS))
        method = usual
    by_placement = Figure(key="method", value=method, provenance="default", source="by placement")
    inputs.keep(by_placement if name is None else Figure(key="method", value=method, source=where))
    return method


def _width(inputs: Inputs, method: str) -> Figure:
    """Bytes per weight on the wire; where fp8 is but the method, those that the other methods send."""
    name = wire_dtype(inputs)
    origin = inputs.used.get("wire_dtype", Figure(key="wire_dtype", value=name, provenance="default"))
    if method == "fp8" and not inputs.gives("wire_dtype"):
        other = inputs.apart()
        name = other.choose("rollout_dtype", BYTES_PER_PARAM, default="bf16", why="weights before they are quantised")
        origin = other.used["rollout_dtype"]
    source = f"{name}, {origin.source}"
    return Figure(key="bytes_per_param", value=BYTES_PER_PARAM[name], provenance=origin.provenance, source=source)


def _shards(inputs: Inputs, loop: Loop | None) -> Figure:
    """GPUs over which an instance shards its weights; pipeline stages shard them too."""
    if loop is not None and loop.place is not None:
        return Figure(key="gpus_per_instance", value=loop.place.fleet.gpus, source="an instance of the loop")
    tensor = inputs.ask("rollout_tensor_parallel")
    if inputs.by_flag("rollout_tensor_parallel") or not tensor.known or not inputs.gives("rollout_pipeline_parallel"):
        return tensor
    stages = inputs.ask("rollout_pipeline_parallel")
    return apply("gpus_per_instance", matching.instance_gpus, tensor_parallel=tensor, pipeline_parallel=stages)


def _or_nothing(inputs: Inputs, key: str) -> Figure:
    """A time that counts as nothing where nobody says it, and then is not worth a mention."""
    said = inputs.ask(key)
    return said if said.known else Figure(key=key, value=0.0, provenance="default", source="not said")


def _step(inputs: Inputs, loop: Loop | None, question: SyncQuestion) -> Figure:
    """Wall clock of a step without syncs: said, or left of one with them; of the loop; or training."""
    key = "step_seconds_without_sync"
    stated, whole = inputs.ask(key), inputs.ask("step_seconds")
    if stated.known and whole.known:
        flags = " ".join(map(inputs.flag, (key, "step_seconds")))
        inputs.fault("both say how long a step takes", flags, "leave one of them out")
    if stated.known:
        return stated
    if whole.known:
        return _without_sync(inputs, whole, question)
    if loop is not None and loop.place is not None:
        from rlsize.loop.answer import answer_of

        found = answer_of(loop).results
        step, sent = found["step_seconds"], found["sync_exposed_seconds"]
        inputs.notes.append("The step is that of the loop, its sync apart (--step-seconds).")
        return inputs.keep(apply(key, rollout_batch.beyond, whole=step, part=sent))
    train = inputs.ask("train_seconds")
    if not train.known:
        return stated
    never = "as if the trainer never waited (--step-seconds)"
    inputs.notes.append(f"The step is taken to last the scenario's train_seconds, {never}.")
    return inputs.keep(replace(train, key=key))


def _without_sync(inputs: Inputs, whole: Figure, question: SyncQuestion) -> Figure:
    """What is left of a step's wall clock without its part of the syncs that it was measured with."""
    key, measured = "step_seconds_without_sync", question.measured_seconds
    if not measured.known:
        what = "the wall clock of a step has a sync in it, and nobody says how long that takes"
        inputs.fault(what, whole.source, "add --sync-seconds, or give the step without it: --step-without-sync")
        return whole
    times = {"sync_seconds": measured, "hidden_seconds": question.hidden_seconds}
    times = {"exposed_sync_seconds": apply("exposed_sync_seconds", sync_pause.exposed_sync_time, **times)}
    every = question.sync_every
    part = apply("sync_seconds_per_step", sync_pause.sync_seconds_per_step, **times, sync_every=every)
    left = apply(key, rollout_batch.beyond, whole=whole, part=part)
    if part.known and not left.number:
        inputs.fault(f"a step of {whole.number:g} s is no longer than its sync", whole.source, "check both")
    return inputs.keep(left)
