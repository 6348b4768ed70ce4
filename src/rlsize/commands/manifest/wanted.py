"""The object that `manifest` is asked to write: flags that belong to a platform, checked, all faults at once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated

from rlsize.errors import suggestion
from rlsize.shell.command import Force, option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.allocation import Allocation
    from rlsize.shell.inputs import Inputs
    from rlsize.writers.manifests import Platform
    from rlsize.writers.manifests.resize import Pods, Wanted

OBJECT, KEDA, KUEUE = "Object", "KEDA", "Kueue"

_BOUNDED = ("keda", "raycluster")
OWN: Mapping[str, tuple[str, ...]] = {
    "--group": ("raycluster", "kueue"), "--group-index": ("raycluster",), "--min": _BOUNDED, "--max": _BOUNDED,
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
    group: str | None = option(
        "--group", "RayCluster: the worker group. Kueue with --base: the flavour.", OBJECT, "NAME"
    )
    gpu_resource: Annotated[
        str, option("--gpu-resource", "What pods ask GPUs as; nvidia.com/gpu when not given.", OBJECT, "NAME")
    ] = "nvidia.com/gpu"
    base: str | None = option(
        "--base", "A manifest that there is: all of it is written, with the resize in it.", OBJECT, "FILE"
    )
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


def wanted_of(inputs: Inputs, said: ObjectFlags, found: Allocation) -> Wanted:
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
            own.update(label_of(text, f"--{side}-label", inputs.faults))
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
        threshold=threshold.number if threshold.known else None,
        target=target,
        concurrency=found.concurrency,
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
