"""A KEDA ScaledObject: replicas by samples in flight, within bounds; pinned to the matched count by default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault
from rlsize.facts.published import RECORDED
from rlsize.writers.manifests.resize import FIXED_GROUP, Resize, bounds_of, named_object, one_pod_fault

if TYPE_CHECKING:
    from rlsize.writers.manifests.resize import Pods, Wanted

KIND = "ScaledObject"
API_VERSION = "keda.sh/v1alpha1"
TARGETS = {
    "deployment": ("apps/v1", "Deployment"),
    "statefulset": ("apps/v1", "StatefulSet"),
    "leaderworkerset": ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
}
POLLING_SECONDS = 30
STEADY_SECONDS = 600  # before it shrinks: the tail of a batch looks like too large a fleet, and the next batch does not


def resize(pods: Pods, wanted: Wanted, faults: list[Fault]) -> Resize:
    """The bounds of a ScaledObject, and the whole object where there is none yet."""
    version, kind = TARGETS[wanted.target]
    if wanted.target != "leaderworkerset":
        faults += one_pod_fault(pods, kind)
    low, high = bounds_of(pods, wanted)
    pinned = low == high
    spec = {  # holds the matched count where Prometheus does not answer, and shrinks slowly
        "scaleTargetRef": {"apiVersion": version, "kind": kind, "name": wanted.name},
        "minReplicaCount": low,
        "maxReplicaCount": high,
        "pollingInterval": POLLING_SECONDS,
        "fallback": {"failureThreshold": 3, "replicas": pods.replicas},
        "advanced": {
            "horizontalPodAutoscalerConfig": {"behavior": {"scaleDown": {"stabilizationWindowSeconds": STEADY_SECONDS}}}
        },
        "triggers": [_trigger(pods, wanted, faults)],
    }
    named = f"scaledobject {wanted.name} -n {wanted.namespace}"
    return Resize(
        kind=KIND,
        api_version=API_VERSION,
        documents=(named_object(API_VERSION, KIND, wanted, spec),),
        apply="kubectl apply -f {file}",
        before=f"kubectl get {named} -o jsonpath='{{.spec.minReplicaCount}} {{.spec.maxReplicaCount}}'",
        back=f"kubectl delete {named}; where there was one, apply that again",
        warnings=(FIXED_GROUP if pinned else f"replicas change while the run goes on: {FIXED_GROUP}",),
        notes=(
            "Pinned to the matched count: --min and --max give it room."
            if pinned
            else f"Between {low} and {high} replicas; {pods.replicas} where Prometheus does not answer.",
            *(["Prometheus must evaluate the rules of `rlsize alerts`, which record the query."] * (not wanted.query)),
        ),
    )


def _trigger(pods: Pods, wanted: Wanted, faults: list[Fault]) -> dict[str, Any]:
    """
    Samples in flight, as the rules of `rlsize alerts` record them, over those of one replica: as many as they fill.

    A series that is missing is an error, not a fleet without work: KEDA then falls back to the matched count.
    """
    if not wanted.prometheus:
        faults.append(Fault("which Prometheus does KEDA ask?", "--prometheus", "give its address"))
    matchers = f"{{{wanted.selector}}}" if wanted.selector else ""
    counted = (RECORDED[name] for name in ("requests_running", "requests_waiting"))
    metadata = {
        "serverAddress": wanted.prometheus,
        "query": wanted.query or " + ".join(f"sum({name}{matchers})" for name in counted),
        "threshold": _threshold(pods, wanted, faults),
        "ignoreNullValues": "false",
    }
    return {"type": "prometheus", "metricType": "AverageValue", "metadata": metadata}


def _threshold(pods: Pods, wanted: Wanted, faults: list[Fault]) -> str:
    if wanted.threshold is not None:
        return f"{wanted.threshold:.12g}"
    if wanted.query:
        todo = "give --threshold, the value of the query that one replica serves"
        faults.append(Fault("what does one replica serve?", "--threshold", todo))
    elif wanted.concurrency is None:
        todo = "give --concurrency, samples in flight at which an instance makes its planned rate"
        faults.append(Fault("how many samples does an instance hold?", "--concurrency", todo))
    else:
        return f"{wanted.concurrency * pods.engines_per_pod:.12g}"
    return ""
