"""`rlsize sync`: how long a weight sync takes, by method and link."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.equations import matching, rollout_batch, sync_pause
from rlsize.errors import suggestion
from rlsize.estimates.figures import apply
from rlsize.estimates.sync import DEFAULT_METHOD, METHODS, SyncQuestion
from rlsize.facts.figure import Figure
from rlsize.facts.quantisation import BYTES_PER_PARAM
from rlsize.loop.resolve import described, resolve
from rlsize.loop.seed import random_for, seed_of
from rlsize.loop.sync import wire_dtype
from rlsize.planner.sync_cadence import plan_sync
from rlsize.reports.chart import Chart, Series
from rlsize.reports.report import Column, Report, Table, tables_of, without_reasons
from rlsize.reports.wording import interval
from rlsize.shell.command import switch
from rlsize.shell.inputs import Inputs
from rlsize.shell.links import all_links, paths
from rlsize.shell.models import model_params
from rlsize.shell.quantity_flags import asks, short
from rlsize.units import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rlsize.estimates.sync import LinkFigures
    from rlsize.loop.resolve import Loop
    from rlsize.planner.sync_cadence import SyncAnswer

_LIKE = {  # classes of transport of which predictions are made, by the method that sends as they do
    "nccl-per-tensor": "nccl-broadcast",
    "nccl-reshard": "rdma",
    "checkpoint-engine": "nccl-broadcast",
    "checkpoint-engine-p2p": "rdma",
    "colocated-per-tensor": "colocated",
    "store": "disk",
}

_SAID_OF_SYNC = ("sync_seconds", "bandwidth_bytes_per_second", "link", "hidden_seconds")
_SLOW_PATH = 0.3  # less of the link than this is what one send per tensor reaches, not a bucketed one
_LOG_RANGE = 30.0  # beyond it the short bars of a linear scale are lines


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
    compare_links: bool = switch("--compare-links", "The same sync over every link profile.", "Inputs"),
) -> Report:
    """
    How long a weight sync takes, by method and link.

    Example:  rlsize sync --params 70e9 --bandwidth "50 GB/s"
    """
    seed_of(inputs)
    loop = None
    if described(inputs) and not any(map(inputs.by_flag, ("params", "cluster"))):
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
    share = ways.between.achievable_fraction if ways.between.basis == "given" else None
    links = all_links(inputs, share) if compare_links and question.params.known else ()
    answer = plan_sync(question, links, random_for(inputs, question))
    return sync_report(answer, inputs, _of_the_loop(inputs, loop))


def _of_the_loop(inputs: Inputs, loop: Loop | None) -> tuple[Figure, ...]:
    """What a sync of the loop takes with all that a framework does around the transfer; nothing where that was said."""
    if loop is None or loop.place is None or any(map(inputs.gives, _SAID_OF_SYNC)):
        return ()
    from rlsize.loop.answer import answer_of

    found = answer_of(loop).results
    return tuple(found[key] for key in ("sync_seconds", "sync_exposed_seconds", "sync_fraction"))


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
    ranks = {"tensor_parallel": tensor, "pipeline_parallel": stages}
    return apply("gpus_per_instance", matching.instance_gpus, **ranks, data_parallel=1)


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


def sync_report(answer: SyncAnswer, inputs: Inputs, of_the_loop: tuple[Figure, ...] = ()) -> Report:
    """
    The report of `rlsize sync`.

    Args:
        answer: What a sync costs, and the alternatives.
        inputs: What it was worked out from, with its warnings and notes.
        of_the_loop: What a sync of the loop takes that is described: in all, of a step, and its share of one.
    """
    found = {figure.key: figure for figure in (*answer.results, *of_the_loop)}
    return Report(
        headline=_headline(answer.question, found),
        results=(*of_the_loop, *answer.results),
        tables=tables_of(methods=_methods_table(answer), links=_links_table(answer) if answer.links else None),
        chart=_chart(answer),
        quiet=frozenset({"break_even_changed_fraction"} if answer.question.method != "delta" else ()),
        **inputs.told(
            first=_link_notes(answer.question),
            warnings=_doubtful(answer.question, found),
            notes=_pause_notes(answer.question, found),
        ),
    )


def _headline(question: SyncQuestion, found: Mapping[str, Figure]) -> str:
    sent, plain, expected = found["transfer_bytes"], found["transfer_seconds"], found["expected_transfer_seconds"]
    if not sent.known:
        return _pause(found) if expected.known else f"How much a {question.method} sync sends needs {sent.missing}."
    what, measured = show(sent.value, sent.key), question.measured_seconds.known and expected.known
    if plain.known:
        text = f"{what} take {show(plain.value, plain.key)} by {question.method} over {_path_name(question)}"
        if expected.known:
            text += f", {show(expected.value, expected.key)} {'measured' if measured else 'expected'}"
    elif measured:
        text = f"{what} take {show(expected.value, expected.key)} by {question.method}, measured"
    else:
        return f"{what} to send by {question.method}; how long it takes needs {plain.missing}."
    return f"{text}. {_in_the_loop(found) or _pause(found)}".rstrip()


def _in_the_loop(found: Mapping[str, Figure]) -> str:
    """What of a sync is no transfer, where a loop says it."""
    if "sync_fraction" not in found:
        return ""
    whole, share = found["sync_seconds"], found["sync_fraction"]
    took = f"{show(whole.value, whole.key)} ({interval(whole)})" if whole.band else show(whole.value, whole.key)
    part = f"{show(share.value, share.key)} of a step"
    return f"Gathered, handed over and loaded it takes {took}, {part}: `predict sync`."


def _pause(found: Mapping[str, Figure]) -> str:
    key = "expected_sync_pause_fraction" if found["expected_sync_pause_fraction"].known else "sync_pause_fraction"
    pause, cadence = found[key], found[key.replace("sync_pause_fraction", "sync_every_steps")]
    if not pause.known:
        return ""
    text = f"It pauses {show(pause.value, pause.key)} of the wall clock"
    if cadence.known and cadence.number > 1:
        text += f"; a sync every {show(cadence.value, cadence.key)} keeps that under the target"
    return f"{text}."


def _doubtful(question: SyncQuestion, found: Mapping[str, Figure]) -> list[str]:
    fraction = found.get("achieved_link_fraction")
    if fraction is None or not fraction.known:
        return []
    seconds, sent = show(question.measured_seconds.value, "_seconds"), show(found["transfer_bytes"].value, "_bytes")
    said = f"{seconds} for {sent} is {show(fraction.value, fraction.key)} of {_path_name(question)}"
    if fraction.number > 1.0:
        return [f"{said}, which no transfer reaches: check the measured time, the bytes and the link"]
    if fraction.number < _SLOW_PATH:
        return [f"{said}: one send per tensor looks like that; send in buckets, or time the parts of the sync"]
    return []


def _link_notes(question: SyncQuestion) -> Iterator[str]:
    link = _chosen_link(question)
    if link.both_directions:
        both, one = show(link.both_directions, "_bytes_per_second"), show(link.bandwidth.value, "_bytes_per_second")
        yield f"{link.title} is advertised with {both}: the sum of both directions. An update goes one way, at {one}."
    share = show(link.achievable_fraction.value, "_fraction")
    if link.basis == "assumed":
        assumed = "assumed for bucketed transfers: nobody measured it"
        yield f"Expected takes {share} of the link, {assumed}. --efficiency replaces it."
    elif link.basis == "measured":
        yield f"Expected takes {share} of the link, {link.achievable_fraction.source}."


def _pause_notes(question: SyncQuestion, found: Mapping[str, Figure]) -> tuple[str, ...]:
    cadence, expected = found["sync_every_steps"], found["expected_sync_every_steps"]
    if not cadence.known or max(cadence.number, expected.number if expected.known else 0.0) <= 1.0:
        return ()
    target = show(question.target_fraction.value, "_fraction")
    rule = f"Sync every: the fewest steps between syncs that pause at most {target} of the wall clock."
    return (f"{rule} Each step more may add a step of staleness.",)


def _methods_table(answer: SyncAnswer) -> Table:
    rows = tuple(
        without_reasons(row) | {"how": row["rule"] if not row["needs"] else f"needs {row['needs']}"}
        for row in answer.methods
    )
    known = {key for row in rows for key, cell in row.items() if cell is not None}
    pause = "expected_sync_pause_fraction" if "expected_sync_pause_fraction" in known else "sync_pause_fraction"
    columns = (
        Column("method", "method", "left"),
        Column("transfer_bytes", "bytes"),
        Column("transfer_seconds", "nameplate"),
        *([Column("expected_transfer_seconds", "expected")] if "expected_transfer_seconds" in known else []),
        *([Column(pause, "paused")] if pause in known else []),
        Column("how", "what decides", "left", wide=True),
    )
    marked = [row["method"] for row in rows].index(answer.question.method)
    return Table(title="Other methods", columns=columns, rows=rows, marked=marked)


def _links_table(answer: SyncAnswer) -> Table:
    rows = tuple(
        {**row, **{key: cell.value for key, cell in row.items() if isinstance(cell, Figure)}, "efficiency": _trust(row)}
        for row in answer.links
    )  # bare values, as one column says for the whole row what nobody has verified
    columns = (
        Column("link", "link", "left"),
        Column("scope", "joins", "left"),
        Column("bandwidth_bytes_per_second", "one way"),
        Column("transfer_seconds", "nameplate"),
        Column("expected_transfer_seconds", "expected"),
        Column("efficiency", "expected takes", "left", wide=True),
    )
    marked = next((index for index, row in enumerate(rows) if row["link"] == _chosen_link(answer.question).name), None)
    note = (
        "joins: the GPUs of a node, nodes over a network, a GPU and its host; bandwidth per GPU\n"
        "unverified: recalled, or carried over from another link"
    )
    title = f"{answer.question.method} over other links"
    return Table(title=title, columns=columns, rows=rows, marked=marked, note=note)


def _trust(row: Mapping[str, Any]) -> str:
    share, bandwidth = row["achievable_fraction"], row["bandwidth_bytes_per_second"]
    trust = row["basis"] if share.verified and bandwidth.verified else "unverified"
    return f"{show(share.value, share.key)} {trust}" if share.known else "nobody knows"


def _chosen_link(question: SyncQuestion) -> LinkFigures:
    """The link that an update takes by the chosen method."""
    return question.handover if question.method == "colocated" else question.path


def _path_name(question: SyncQuestion) -> str:
    """That link's name and bandwidth."""
    link = _chosen_link(question)
    bandwidth = show(link.bandwidth.value, "_bytes_per_second")
    return f"{link.name} ({bandwidth} one way)" if link.name else bandwidth


def _chart(answer: SyncAnswer) -> Chart | None:
    """A bar for each method, in powers of ten where the range needs it; None where no time is known."""
    sent = next(figure for figure in answer.results if figure.key == "transfer_bytes")
    found = {str(row["method"]): row["transfer_seconds"] for row in answer.methods}
    seconds = {method: figure.number for method, figure in found.items() if figure.known}
    if not seconds or not sent.known:
        return None
    method, quickest = answer.question.method, next(iter(seconds))
    best = show(seconds[quickest], "_seconds")
    title = f"{quickest} is the quickest of these: {best}"
    if method in seconds and quickest != method:
        title = f"{quickest} takes {best} where {method} takes {show(seconds[method], '_seconds')}"
    heights = [height for height in seconds.values() if height > 0]
    return Chart(
        title=title,
        y_label="seconds per sync, nameplate",
        series=(Series.of("methods", seconds.items()),),
        kind="bars",
        log_y=bool(heights) and max(heights) > _LOG_RANGE * min(heights),
        subtitle=f"{show(sent.value, sent.key)}: methods over {_path_name(answer.question)}",
    )
