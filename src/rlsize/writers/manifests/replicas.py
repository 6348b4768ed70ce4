"""Objects that count their replicas in one place: a patch of `spec.replicas`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rlsize.writers.manifests.resize import FIXED_GROUP, Edit, Expected, Resize, named_object, one_pod_fault

if TYPE_CHECKING:
    from rlsize.errors import Fault
    from rlsize.writers.manifests.resize import Pods, Wanted


def of_single_pods(kind: str, pods: Pods, wanted: Wanted, faults: list[Fault]) -> Resize:
    """The resize of a Deployment or a StatefulSet of one engine to a pod."""
    faults += one_pod_fault(pods, kind)
    return replace(
        _patched(kind, "apps/v1", "strategic", pods, wanted),
        pods=("spec", "template", "spec"),
        notes=("An autoscaler of this object would undo it: pause or remove that first.",),
    )


def leaderworkerset(pods: Pods, wanted: Wanted, _: list[Fault]) -> Resize:
    """The resize of a LeaderWorkerSet, a group of pods to an engine; how many of them is not changed, only checked."""
    size = pods.pods_per_engine
    return replace(
        _patched("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", "merge", pods, wanted),
        expected=(
            Expected(
                path=("spec", "leaderWorkerTemplate", "size"),
                value=size,
                absent=1,
                why=f"an engine takes {size} pods of {pods.gpus_per_pod} GPUs: change the template first",
            ),
        ),
        pods=("spec", "leaderWorkerTemplate", "workerTemplate", "spec"),
        notes=(f"It takes groups of {size} pods with {pods.gpus_per_pod} GPUs each for granted.",),
    )


def _patched(kind: str, version: str, patch: str, pods: Pods, wanted: Wanted) -> Resize:
    named = f"{kind.lower()} {wanted.name} -n {wanted.namespace}"
    return Resize(
        kind=kind,
        api_version=version,
        documents=(named_object(version, kind, wanted, {"replicas": pods.replicas}),),
        edits=(Edit(path=("spec", "replicas"), value=pods.replicas),),
        apply=f"kubectl patch {named} --type {patch} --patch-file {{file}}",
        before=f"kubectl get {named} -o jsonpath='{{.spec.replicas}}'",
        back=f"kubectl scale {named} --replicas=NUMBER-BEFORE",
        warnings=(FIXED_GROUP,),
    )
