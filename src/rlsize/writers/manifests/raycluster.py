"""A worker group of a RayCluster: a JSON patch that tests which group it is; a merge would replace the whole list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault
from rlsize.writers.manifests.resize import FIXED_GROUP, Resize, bounds_of

if TYPE_CHECKING:
    from rlsize.writers.manifests.resize import Pods, Wanted

KIND = "RayCluster"
API_VERSION = "ray.io/v1"
_KEYS = ("replicas", "minReplicas", "maxReplicas")
_GUARDED = "The patch fails, and changes nothing, unless group {index} of the list is {group} (--group-index)."


def resize(pods: Pods, wanted: Wanted, faults: list[Fault]) -> Resize:
    """
    The resize of a worker group.

    KubeRay keeps replicas between minReplicas and maxReplicas, so these are set along with them.
    """
    if not wanted.group:
        faults.append(Fault("which worker group is resized?", "--group", "give its groupName"))
    low, high = bounds_of(pods, wanted)
    named = f"raycluster {wanted.name} -n {wanted.namespace}"
    held = f".spec.workerGroupSpecs[{wanted.group_index}]"
    entry = f"/spec/workerGroupSpecs/{wanted.group_index}"
    tested: dict[str, Any] = {"groupName": wanted.group}
    if pods.pods_per_engine > 1:  # one is what KubeRay takes it for
        tested["numOfHosts"] = pods.pods_per_engine
    counts = dict(zip(_KEYS, (pods.replicas, low, high), strict=True))
    patch = [
        {"op": operation, "path": f"{entry}/{key}", "value": value}
        for operation, values in (("test", tested), ("add", counts))
        for key, value in values.items()
    ]
    restored = ", ".join(f'{{"op": "add", "path": "{entry}/{key}", "value": {key.upper()}-BEFORE}}' for key in _KEYS)
    return Resize(
        kind=KIND,
        api_version=API_VERSION,
        documents=(patch,),
        apply=f"kubectl patch {named} --type json --patch-file {{file}}",
        before=f"kubectl get {named} -o jsonpath='{' '.join(f'{{{held}.{key}}}' for key in _KEYS)}'",
        back=f"kubectl patch {named} --type json -p '[{restored}]'",
        warnings=(FIXED_GROUP,),
        notes=(_GUARDED.format(index=wanted.group_index, group=wanted.group),),
    )
