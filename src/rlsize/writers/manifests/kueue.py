"""Kueue quota: rollouts on preemptible nodes, the trainer's gang on nodes and quota that nobody else can take."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault
from rlsize.writers.manifests.resize import Resize

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.writers.manifests.resize import Pods, Wanted

KIND = "ClusterQueue"
API_VERSION = "kueue.x-k8s.io/v1beta2"
TRAINER = "trainer"
_PRIORITIES = {
    "rollout": {"value": 100, "description": "Losing a rollout costs a part of a batch."},
    TRAINER: {"value": 1000, "description": "Losing the gang costs a restart."},
}
_NEVER = {"reclaimWithinCohort": "Never", "withinClusterQueue": "Never"}
_PROTECTED = (
    "The trainer's queue lends, borrows and preempts nothing and belongs to no cohort, so no quota of it is ever "
    "reclaimed. Against the scheduler's own preemption its pods need a PriorityClass too."
)
_QUANTITY = re.compile(r"([0-9.]+)([A-Za-z]*)")


def resize(pods: Pods, wanted: Wanted, faults: list[Fault]) -> Resize:
    """Flavours, queues and priorities of both sides."""
    return Resize(
        kind=KIND,
        api_version=API_VERSION,
        documents=_documents(pods, wanted, faults),
        apply="kubectl apply -f {file}",
        before="kubectl get -f {file}",
        back="kubectl delete -f {file}; where they were there before, apply those again",
        warnings=_warnings(wanted),
        notes=(
            f"Rollouts carry the label kueue.x-k8s.io/queue-name: {wanted.name}, the trainer's gang {TRAINER}.",
            _PROTECTED,
        ),
    )


def _warnings(wanted: Wanted) -> tuple[str, ...]:
    if {"cpu", "memory"} <= wanted.per_gpu.keys():
        return ()
    text = (
        f"quota is set for {', '.join([wanted.gpu_resource, *wanted.per_gpu])} only: Kueue admits no pod that asks for "
        "other resources beyond their quota, or for one that the queue does not cover; give --cpu-per-gpu and "
        "--memory-per-gpu, or leave those out in Kueue's configuration"
    )
    return (text,)


def _documents(pods: Pods, wanted: Wanted, faults: list[Fault]) -> tuple[dict[str, Any], ...]:
    if pods.trainer_gpus is None:
        faults.append(Fault("trainer_gpus is missing", "--trainer-gpus", "give the GPUs of the trainer's gang"))
    if wanted.name == TRAINER:
        faults.append(Fault(f"{TRAINER!r} is the trainer's queue", "--name", "choose another name for the rollouts'"))
    for side, words in (("rollout", "preemptible"), (TRAINER, "protected")):
        if not wanted.labels.get(side):
            todo = "give a label of these nodes, KEY=VALUE, such as karpenter.sh/capacity-type=spot"
            faults.append(Fault(f"which nodes are {words}?", f"--{side}-label", todo))
    sides = (("rollout", wanted.name, pods.rollout_gpus), (TRAINER, TRAINER, pods.trainer_gpus or 0))
    flavours = [_flavour(name, side, wanted) for side, name, _ in sides]
    queues = [_queue(name, side, gpus, wanted) for side, name, gpus in sides]
    local = [_named("LocalQueue", name, {"spec": {"clusterQueue": name}}, wanted.namespace) for _, name, _ in sides]
    priorities = [_named("WorkloadPriorityClass", name, _PRIORITIES[side]) for side, name, _ in sides]
    return (*flavours, *queues, *local, *priorities)


def _named(kind: str, name: str, content: Mapping[str, Any], namespace: str = "") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, **content}


def _flavour(name: str, side: str, wanted: Wanted) -> dict[str, Any]:
    spec: dict[str, Any] = {"nodeLabels": dict(wanted.labels.get(side, {}))}
    tolerations = [dict(toleration) for toleration in wanted.tolerations.get(side, ())]
    return _named("ResourceFlavor", name, {"spec": spec | ({"tolerations": tolerations} if tolerations else {})})


def _queue(name: str, side: str, gpus: int, wanted: Wanted) -> dict[str, Any]:
    borrows = side == "rollout" and bool(wanted.cohort)
    resource: dict[str, Any] = {"name": wanted.gpu_resource, "nominalQuota": gpus}
    if borrows:
        resource["borrowingLimit"] = wanted.borrow
    others = [
        {"name": other, "nominalQuota": multiplied(amount, gpus)}
        | ({"borrowingLimit": multiplied(amount, wanted.borrow)} if borrows else {})
        for other, amount in wanted.per_gpu.items()
    ]
    spec: dict[str, Any] = {"cohortName": wanted.cohort} if borrows else {}
    spec |= {
        "namespaceSelector": {},
        "queueingStrategy": "BestEffortFIFO" if side == "rollout" else "StrictFIFO",
        "preemption": dict(_NEVER),
        "resourceGroups": [
            {
                "coveredResources": [wanted.gpu_resource, *wanted.per_gpu],
                "flavors": [{"name": name, "resources": [resource, *others]}],
            }
        ],
    }
    return _named(KIND, name, {"spec": spec})


def multiplied(quantity: str, times: int) -> str:
    """
    A Kubernetes quantity times a whole number, in its own unit.

    >>> multiplied("128Gi", 16), multiplied("1.5", 3)
    ('2048Gi', '4.5')
    """
    matched = _QUANTITY.fullmatch(quantity)
    if matched is None:
        return quantity  # told as a fault where it was given
    product = format(Decimal(matched[1]) * times, "f")
    return (product.rstrip("0").rstrip(".") if "." in product else product) + matched[2]
