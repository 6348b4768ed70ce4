"""`rlsize manifest`: the resize as a file for Kubernetes, Ray, KEDA or Kueue; nothing is applied."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated

import typer

from rlsize.errors import Fault, InputError, suggestion
from rlsize.facts.figure import Figure
from rlsize.reports.report import Column, Report, Table
from rlsize.reports.wording import numbered
from rlsize.shell.allocation import ALLOCATION, Source, allocation_of, read_pools
from rlsize.shell.answer import delivered
from rlsize.shell.command import Force, option
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import Changes, asks
from rlsize.version import VERSION
from rlsize.writers.files import check_target
from rlsize.writers.manifests.resize import commented, pasted, pods_of, yaml_documents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.writers.manifests import Platform
    from rlsize.writers.manifests.resize import Pods, Resize, Wanted

_SOURCES: Mapping[str, str] = {
    "apply_command": "to paste; nothing is applied by rlsize",
    "before_command": "to paste first: how it is now",
    "back_command": "the way back",
}

OBJECT, KEDA, KUEUE = "Object", "KEDA", "Kueue"

_BOUNDED = ("keda", "raycluster")
OWN: Mapping[str, tuple[str, ...]] = {
    "--group": ("raycluster",), "--group-index": ("raycluster",), "--min": _BOUNDED, "--max": _BOUNDED,
    **dict.fromkeys(("--prometheus", "--query", "--selector", "--threshold", "--target"), ("keda",)),
    **dict.fromkeys(("--cohort", "--borrow", "--cpu-per-gpu", "--memory-per-gpu"), ("kueue",)),
    **dict.fromkeys(("--rollout-label", "--trainer-label", "--rollout-taint", "--trainer-taint"), ("kueue",)),
}  # fmt: skip
"""The platforms that each flag belongs to."""

_COUNTS = ("group_index", "min_replicas", "max_replicas", "borrowed_gpus")
_LONGEST_QUERY = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFlags:
    """What flags say of the object."""

    platform: str | None = option(
        "--platform", "deployment, statefulset, raycluster, leaderworkerset, keda or kueue.", OBJECT, "NAME"
    )
    name: Annotated[str, option("--name", "Name of the object; rollout when not given.", OBJECT, "NAME")] = "rollout"
    namespace: Annotated[str, option("--namespace|-n", "Its namespace; default when not given.", OBJECT, "NAME")] = (
        "default"
    )
    group: str | None = option("--group", "RayCluster: the worker group.", OBJECT, "NAME")
    gpu_resource: Annotated[
        str, option("--gpu-resource", "What pods ask GPUs as; nvidia.com/gpu when not given.", OBJECT, "NAME")
    ] = "nvidia.com/gpu"
    prometheus: str | None = option("--prometheus", "Address of the Prometheus that KEDA asks.", KEDA, "URL")
    query: str | None = option("--query", "What KEDA asks; samples in flight when not given.", KEDA, "PROMQL")
    selector: str | None = option("--selector", """Matchers of that query: 'job="rollout"'.""", KEDA, "MATCHERS")
    target: str | None = option("--target", "What KEDA scales: deployment, statefulset, leaderworkerset.", KEDA, "NAME")
    rollout_label: list[str] | None = option(
        "--rollout-label", "Label of the preemptible nodes; repeatable.", KUEUE, "KEY=VALUE"
    )
    trainer_label: list[str] | None = option(
        "--trainer-label", "Label of the protected nodes; repeatable.", KUEUE, "KEY=VALUE"
    )
    rollout_taint: list[str] | None = option(
        "--rollout-taint", "Taint that rollouts tolerate, KEY[=VALUE]:EFFECT; repeatable.", KUEUE, "TAINT"
    )
    trainer_taint: list[str] | None = option(
        "--trainer-taint", "Taint that the trainer tolerates; repeatable.", KUEUE, "TAINT"
    )
    cohort: str | None = option("--cohort", "Cohort that rollouts borrow from; none when not given.", KUEUE, "NAME")
    cpu_per_gpu: str | None = option("--cpu-per-gpu", "CPUs of a pod for each GPU: 16.", KUEUE, "QUANTITY")
    memory_per_gpu: str | None = option("--memory-per-gpu", "Memory of a pod for each GPU: 128Gi.", KUEUE, "QUANTITY")
    rollback: str | None = option("--rollback", "Go back to the allocation of an observation or plan.", metavar="FILE")
    output: str | None = option("--output|-o", "Write it there, and say what it is.", "Output", "FILE")
    force: Force = False


@asks(
    beside_files=True,
    Inputs=(*ALLOCATION, "concurrency"),
    Object=("group_index", "min_replicas", "max_replicas", "gpus_per_pod"),
    KEDA=("threshold",),
    Kueue=("borrowed_gpus",),
)
def manifest(
    inputs: Inputs, context: typer.Context, said: ObjectFlags, source: Source = None, changes: Changes = None
) -> Report:
    """
    Write the resize for Kubernetes, Ray, KEDA or Kueue; nothing is applied.

    Example:  rlsize manifest examples/baseline.yaml --platform deployment
    """
    rollback, output = said.rollback, said.output
    if output is not None:
        check_target(output, said.force)
    named = rollback or source
    read_pools(inputs, named, changes)
    found = allocation_of(inputs, named or "flags")
    resized = platform_of(inputs, said)
    wanted = wanted_of(inputs, said)
    per_pod = inputs.ask("gpus_per_pod")
    pods = pods_of(found, int(per_pod.number) if per_pod.known else None, inputs.faults)
    if resized is None or pods is None:
        inputs.settle()
        raise InputError(Fault("nothing says how large the fleet is", "--instances", "give a plan, or --instances"))
    check_bounds(inputs, wanted, pods)
    resize = resized(pods, wanted, inputs.faults)
    inputs.settle()
    file = shlex.quote(output or "resize.yaml")
    commands = {key: getattr(resize, key).replace("{file}", file) for key in ("before", "apply", "back")}
    back_from = _left(source) if rollback is not None else None
    head = _head(resize, pods, wanted, found.source, back_from)
    text = _text(resize, head, commands)
    counts = ("instances", "replicas", "gpus_per_pod", "pods_per_engine", "rollout_gpus", "trainer_gpus")
    figures = {
        "manifest": text,
        "file": output,
        "platform": (said.platform or "").lower(),
        "kind": resize.kind,
        "api_version": resize.api_version,
        **{key: getattr(pods, key) for key in counts},
        **{f"{name}_command": command for name, command in commands.items()},
    }
    lent = "Trainer GPUs that generate while they wait are the trainer's: only the fleet of its own is resized."
    notes = (lent,) if found.mode == "hybrid" else ()
    report = Report(
        headline=_headline(resize, pods, wanted.name, output, rollback),
        results=tuple(
            Figure(key=key, value=value, provenance="predicted", source=_SOURCES.get(key, "the resize"))
            for key, value in figures.items()
            if value is not None
        ),
        tables={"commands": _to_paste(commands)},
        quiet=frozenset({"manifest", "file", "platform", "kind", "api_version", *_SOURCES}),
        **inputs.told(warnings=resize.warnings, notes=(*notes, *resize.notes)),
    )
    return delivered(report, text, context.obj or {}, output, force=said.force)


def _headline(resize: Resize, pods: Pods, name: str, output: str | None, rollback: str | None) -> str:
    where = f"Wrote {output}. " if output else ""
    queue = resize.kind == "ClusterQueue"
    counted = numbered(pods.rollout_gpus, "GPU") if queue else numbered(pods.replicas, "replica")
    what = f"{'Resize' if rollback is None else 'Rollback'}: {resize.kind} {name} with {counted}"
    return f"{where}{what} for {numbered(pods.instances, 'instance')}. Nothing is applied."


def _to_paste(commands: Mapping[str, str]) -> Table:
    """What to paste, and when."""
    command = Column("command", "command", "left", wide=True, of=commands.__getitem__)
    return Table.of("To paste; rlsize applies nothing", commands, (Column("when", "when", "left", of=str), command))


def _left(source: str | None) -> str:
    """How many instances there are before a rollback, where the plan that is left says so."""
    if source is None:
        return ""
    inputs = Inputs()
    read_pools(inputs, source)
    found = allocation_of(inputs, source)
    inputs.settle()
    return f", back from {found.instances}" if found.instances else ""


def _head(resize: Resize, pods: Pods, wanted: Wanted, source: str, back_from: str | None) -> list[str]:
    """
    What the file is, in a few lines.

    Args:
        resize: The resize.
        pods: The fleet as pods.
        wanted: The object.
        source: Where its allocation comes from.
        back_from: How many instances are left by a rollback, in words; None where it is none.
    """
    trainer = "" if pods.trainer_gpus is None else f"; the trainer keeps its {numbered(pods.trainer_gpus, 'GPU')}"
    quota = resize.kind == "ClusterQueue"
    counted = f"{numbered(pods.rollout_gpus, 'GPU')} of quota" if quota else numbered(pods.replicas, "replica")
    fleet = f"{numbered(pods.instances, 'instance')} of {numbered(pods.rollout_gpus // pods.instances, 'GPU')}"
    what = "Resize" if back_from is None else "Rollback"
    return [
        f"Written by rlsize {VERSION} from {source}. Nothing is applied.",
        f"{what}: {fleet} ({numbered(pods.rollout_gpus, 'rollout GPU')}){back_from or ''}{trainer}.",
        f"{resize.kind} {wanted.name} ({resize.api_version}): {counted}.",
    ]


def _text(resize: Resize, head: list[str], commands: Mapping[str, str]) -> str:
    """The file."""
    said = commented(head) + pasted(f"{when.capitalize()}: {command}" for when, command in commands.items())
    notes = [f"Note: {note}" for note in resize.notes]
    cautions = [f"Caution: {warning}" for warning in resize.warnings]
    return said + commented([*notes, *cautions]) + yaml_documents(resize.documents)


def platform_of(inputs: Inputs, said: ObjectFlags) -> Platform | None:
    """The platform; None, with a fault, where there is none of that name. Flags of others are faults too."""
    from rlsize.writers.manifests import platforms

    known = platforms()
    if said.platform is None:
        inputs.fault("for which platform?", "--platform", f"give one of {', '.join(known)}")
        return None
    chosen = said.platform.lower()
    if chosen not in known:
        inputs.fault(f"{said.platform[:40]!r} is no platform", "--platform", suggestion(chosen[:40], known))
        return None
    flags = {f"--{each.name.replace('_', '-')}": getattr(said, each.name) for each in fields(said)}
    flags |= {inputs.flag(key): inputs.texts.get(key) for key in (*_COUNTS, "threshold")}
    for flag, platforms_of in OWN.items():
        if flags[flag] and chosen not in platforms_of:
            inputs.fault(f"says nothing about a {chosen}", flag, f"it is for --platform {' or '.join(platforms_of)}")
    return known[chosen]


def wanted_of(inputs: Inputs, said: ObjectFlags) -> Wanted:
    """The object as it was asked for; faults are noted."""
    from rlsize.shell.selectors import matchers, selector_text
    from rlsize.writers.manifests.keda import TARGETS
    from rlsize.writers.manifests.names import is_quantity, label_of, toleration_of
    from rlsize.writers.manifests.resize import Wanted

    target = said.target or "deployment"
    if target not in TARGETS:
        inputs.fault(f"KEDA scales no {target[:40]!r}", "--target", suggestion(target[:40], TARGETS))
        target = "deployment"
    threshold = inputs.ask("threshold")
    asked = {key: inputs.ask(key) for key in _COUNTS}
    counts = {key: int(figure.number) if figure.known else None for key, figure in asked.items()}
    _check_names(inputs, said)
    per_gpu = {"cpu": said.cpu_per_gpu, "memory": said.memory_per_gpu}
    for resource, text in per_gpu.items():
        if text is not None and not is_quantity(text):
            where = f"--{resource}-per-gpu"
            inputs.fault(f"{text[:40]!r} is no quantity above zero", where, "write it as Kubernetes does: 16, 128Gi")
    labels: dict[str, dict[str, str]] = {"rollout": {}, "trainer": {}}
    taints = {}
    for side, own in labels.items():
        for text in getattr(said, f"{side}_label") or ():
            own.update(label_of(text, f"--{side}-label", inputs.faults, "karpenter.sh/capacity-type=spot"))
        tainted = getattr(said, f"{side}_taint") or ()
        taints[side] = tuple(toleration_of(text, f"--{side}-taint", inputs.faults) for text in tainted)
    told = {key: getattr(said, key) or "" for key in ("name", "namespace", "group", "prometheus", "query", "cohort")}
    return Wanted(
        **told,
        group_index=counts["group_index"] or 0,
        minimum=counts["min_replicas"],
        maximum=counts["max_replicas"],
        gpu_resource=said.gpu_resource,
        # the matchers are written anew, so that nothing gets out of their braces
        selector=selector_text(matchers(said.selector, "--selector", inputs.faults)) if said.selector else "",
        threshold=threshold.if_known,
        target=target,
        concurrency=inputs.ask("concurrency").if_known,
        labels=labels,
        tolerations=taints,
        borrow=counts["borrowed_gpus"] or 0,
        per_gpu={resource: text for resource, text in per_gpu.items() if text is not None},
    )


def check_bounds(inputs: Inputs, wanted: Wanted, pods: Pods) -> None:
    """Bounds must hold the matched count, or the platform would not keep it."""
    low, high = wanted.minimum, wanted.maximum
    if low is not None and low > pods.replicas:
        inputs.fault(f"{low} is more than the {pods.replicas} replicas that match", "--min", "give fewer")
    if high is not None and high < pods.replicas:
        inputs.fault(f"{high} is less than the {pods.replicas} replicas that match", "--max", "give more")


def _check_names(inputs: Inputs, said: ObjectFlags) -> None:
    """Note every name that Kubernetes or Prometheus would not take."""
    from rlsize.writers.manifests.names import name_faults, resource_faults, url_faults

    names = {"--name": said.name or " ", "--namespace": said.namespace or " "}
    names |= {"--group": said.group or "", "--cohort": said.cohort or ""}
    label = frozenset({"--namespace", "--name"} if said.platform == "kueue" else {"--namespace"})
    inputs.faults += [*name_faults(names, label=label), *resource_faults(said.gpu_resource, "--gpu-resource")]
    if said.prometheus is not None:
        inputs.faults += url_faults(said.prometheus, "--prometheus")
    query = said.query or ""
    if len(query) > _LONGEST_QUERY or not query.isprintable():
        inputs.fault("is no query of one line", "--query", "write it in one line, without control characters")
    if query and said.selector:
        inputs.fault("the query is yours", "--selector", "put the matchers into --query")
    if inputs.gives("borrowed_gpus") and not said.cohort:
        inputs.fault("there is nobody to borrow from", "--borrow", "give --cohort too")
