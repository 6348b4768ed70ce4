"""A resize: which object, what is written for it, and how a fleet of engines becomes replicas of pods."""

from __future__ import annotations

from dataclasses import field, replace
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.errors import Fault
from rlsize.frozen import dataclass
from rlsize.units import printable
from rlsize.writers.yaml_file import dumped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.facts.plan import Allocation

FIXED_GROUP = (
    "the weight-sync group of most frameworks has a fixed size: stop the run or let it end, resize, and start it with "
    "the new split (`rlsize snippet`); only a framework that lets engines join takes a live resize"
)

_COMMENT = TextWrapper(
    80, initial_indent="# ", subsequent_indent="#   ", break_long_words=False, break_on_hyphens=False
)


class Pods(NamedTuple):
    """
    The fleet as pods.

    Args:
        instances: Engines.
        replicas: What the platform counts: pods, or groups of pods that serve one engine.
        gpus_per_pod: GPUs that each pod asks for.
        pods_per_engine: Pods that serve one engine; 1 where an engine fits into a pod.
        rollout_gpus: GPUs of the fleet.
        trainer_gpus: GPUs of the trainer; None where nobody says.
    """

    instances: int
    replicas: int
    gpus_per_pod: int
    pods_per_engine: int
    rollout_gpus: int
    trainer_gpus: int | None = None

    @property
    def engines_per_pod(self) -> int:
        """Engines that share a pod; 1 where an engine has one or more of its own."""
        return max(1, self.instances // self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """
    What was asked for, checked.

    Args:
        name: Name of the object, and of what belongs to it.
        namespace: Its namespace.
        group: A worker group of a RayCluster.
        group_index: Where the worker group stands in the list.
        minimum: Fewest replicas that may be; None for the matched count.
        maximum: Most replicas that may be; None for the matched count.
        gpu_resource: The resource that pods ask GPUs as.
        prometheus: Address of the Prometheus that KEDA asks.
        query: What KEDA asks it; empty for samples in flight as `rlsize alerts` records them.
        selector: Matchers of that query.
        threshold: Value of the query for one replica; None for concurrency.
        target: Kind of object that KEDA scales.
        concurrency: Samples generated at the same time on one instance.
        labels: Node labels of a side's flavour, by side.
        tolerations: Tolerations of a side's flavour, by side.
        cohort: Cohort that the rollouts' queue belongs to; empty for none.
        borrow: GPUs that rollouts may borrow of their cohort.
        per_gpu: Other resources of a pod for each GPU, by name.
    """

    name: str = "rollout"
    namespace: str = "default"
    group: str = ""
    group_index: int = 0
    minimum: int | None = None
    maximum: int | None = None
    gpu_resource: str = "nvidia.com/gpu"
    prometheus: str = ""
    query: str = ""
    selector: str = ""
    threshold: float | None = None
    target: str = "deployment"
    concurrency: float | None = None
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    tolerations: Mapping[str, tuple[Mapping[str, str], ...]] = field(default_factory=dict)
    cohort: str = ""
    borrow: int = 0
    per_gpu: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """
    A resize of one platform.

    Args:
        kind: Kind of the object.
        api_version: Its API version.
        documents: The patch, or objects to apply.
        apply: Command that applies the file, which stands as {file} in it.
        before: Command that records how it is now.
        back: Command that goes back by hand; empty where an object is new.
        warnings: What the reader must know first.
        notes: What explains it.
    """

    kind: str
    api_version: str
    documents: tuple[Any, ...]
    apply: str
    before: str = ""
    back: str = ""
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def named_object(version: str, kind: str, wanted: Wanted, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The object that was asked for, with its content."""
    metadata = {"name": wanted.name, "namespace": wanted.namespace}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def bounds_of(pods: Pods, wanted: Wanted) -> tuple[int, int]:
    """Fewest and most replicas: the matched count where nobody says."""
    low, high = (pods.replicas if said is None else said for said in (wanted.minimum, wanted.maximum))
    return low, high


def pods_of(found: Allocation, gpus_per_pod: int | None, faults: list[Fault]) -> Pods | None:
    """
    The fleet as pods; None, with the reasons noted, where there is none.

    Args:
        found: The allocation.
        gpus_per_pod: GPUs that each pod asks for; None for an engine in a pod, or a node where it needs several.
        faults: Where reasons go.
    """
    if found.shared:
        what = f"the loop is {found.mode}: engines run on the trainer's GPUs, so there is no rollout fleet to resize"
        faults.append(Fault(what, found.source, "plan a split with --mode async, or resize the whole job"))
        return None
    size, instances, pool = found.gpus_per_instance, found.instances, found.rollout_gpus
    for key, value, todo in (
        ("instances", instances, "give it, or a plan or an observation that was saved with it"),
        ("gpus_per_instance", size, "give the GPUs of one instance"),
    ):
        told = any(key in fault.where.replace("-", "_") for fault in faults)
        if value is None and not told:
            faults.append(Fault(f"{key} is missing", f"--{key.replace('_', '-')}", todo))
    if instances is None or size is None or pool is None:
        return None
    if size != int(size):
        what = f"{size:g} GPUs per instance: engines would share a GPU, and Kubernetes hands out whole ones"
        todo = "share GPUs with MPS or time-slicing, and resize by --gpus-per-instance 1 --gpu-resource of that plugin"
        faults.append(Fault(what, "--gpus-per-instance", todo))
        return None
    return _whole_pods(found, instances, int(size), pool, gpus_per_pod, faults)


def _whole_pods(
    found: Allocation, instances: int, size: int, pool: int, asked: int | None, faults: list[Fault]
) -> Pods | None:
    node = found.gpus_per_node
    in_pod = asked or (size if node is None else min(size, node))
    if node is not None and in_pod > node:
        faults.append(Fault(f"a pod of {in_pod} GPUs fits no node of {node}", "--gpus-per-pod", "give a smaller one"))
        return None
    if size % in_pod and in_pod % size:
        what = f"an engine of {size} GPUs neither fills pods of {in_pod} nor fits into one several times"
        faults.append(Fault(what, "--gpus-per-pod", f"give a divisor or a multiple of {size}"))
        return None
    engines = max(1, in_pod // size)
    if instances % engines:
        low = instances - instances % engines
        near = [count for count in (low, low + engines) if count]
        what = f"{instances} instances do not fill pods of {in_pod} GPUs, which hold {engines} each"
        todo = f"nearest: --instances {' or '.join(map(str, near))}"
        faults.append(Fault(what, "--gpus-per-pod", todo))
        return None
    return Pods(
        instances=instances,
        replicas=instances // engines,
        gpus_per_pod=in_pod,
        pods_per_engine=max(1, size // in_pod),
        rollout_gpus=pool,
        trainer_gpus=found.trainer_gpus,
    )


def one_pod_fault(pods: Pods, kind: str) -> list[Fault]:
    """Why a platform that knows only single pods cannot serve engines that span several."""
    if pods.pods_per_engine == 1:
        return []
    what = f"an engine takes {pods.pods_per_engine} pods of {pods.gpus_per_pod} GPUs; a {kind} counts single pods"
    return [Fault(what, "--platform", "use --platform leaderworkerset, or raycluster")]


def of_single_pods(kind: str, pods: Pods, wanted: Wanted, faults: list[Fault]) -> Resize:
    """The resize of a Deployment or a StatefulSet of one engine to a pod."""
    faults += one_pod_fault(pods, kind)
    return replace(
        _patched(kind, "apps/v1", "strategic", pods, wanted),
        notes=("An autoscaler of this object would undo it: pause or remove that first.",),
    )


def leaderworkerset(pods: Pods, wanted: Wanted, _: list[Fault]) -> Resize:
    """The resize of a LeaderWorkerSet, a group of pods to an engine; how many of them is not changed."""
    size = pods.pods_per_engine
    return replace(
        _patched("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", "merge", pods, wanted),
        notes=(f"It takes groups of {size} pods with {pods.gpus_per_pod} GPUs each for granted.",),
    )


def _patched(kind: str, version: str, patch: str, pods: Pods, wanted: Wanted) -> Resize:
    named = f"{kind.lower()} {wanted.name} -n {wanted.namespace}"
    return Resize(
        kind=kind,
        api_version=version,
        documents=(named_object(version, kind, wanted, {"replicas": pods.replicas}),),
        apply=f"kubectl patch {named} --type {patch} --patch-file {{file}}",
        before=f"kubectl get {named} -o jsonpath='{{.spec.replicas}}'",
        back=f"kubectl scale {named} --replicas=NUMBER-BEFORE",
        warnings=(FIXED_GROUP,),
    )


def commented(sentences: Iterable[str]) -> str:
    """Sentences as comments of 80 columns; nothing in them can end a comment."""
    return "".join(f"{line}\n" for text in sentences for line in _COMMENT.wrap(_one_line(text)))


def pasted(commands: Iterable[str]) -> str:
    """Commands as comments, each on one line however long, so that it can be copied."""
    return "".join(f"# {_one_line(command)}\n" for command in commands)


def _one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def yaml_documents(documents: Iterable[Any]) -> str:
    """Documents in the order in which they are given, keys as they stand."""
    return "---\n".join(dumped(document, 10_000) for document in documents)
