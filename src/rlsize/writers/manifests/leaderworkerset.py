"""A LeaderWorkerSet, a group of pods to an engine: a merge patch of its replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.writers.manifests.resize import FIXED_GROUP, Edit, Expected, Resize

if TYPE_CHECKING:
    from rlsize.errors import Fault
    from rlsize.writers.manifests.resize import Pods, Wanted

PLATFORM = "leaderworkerset"
KIND = "LeaderWorkerSet"
API_VERSION = "leaderworkerset.x-k8s.io/v1"


def resize(pods: Pods, wanted: Wanted, _: list[Fault]) -> Resize:
    """The resize of a LeaderWorkerSet; how many pods serve an engine is not changed, only checked."""
    named = f"{PLATFORM} {wanted.name} -n {wanted.namespace}"
    size = pods.pods_per_engine
    return Resize(
        kind=KIND,
        api_version=API_VERSION,
        documents=(
            {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "metadata": {"name": wanted.name, "namespace": wanted.namespace},
                "spec": {"replicas": pods.replicas},
            },
        ),
        edits=(Edit(path=("spec", "replicas"), value=pods.replicas),),
        expected=(
            Expected(
                path=("spec", "leaderWorkerTemplate", "size"),
                value=size,
                absent=1,
                why=f"an engine takes {size} pods of {pods.gpus_per_pod} GPUs: change the template first",
            ),
        ),
        pods=("spec", "leaderWorkerTemplate", "workerTemplate", "spec"),
        apply=f"kubectl patch {named} --type merge --patch-file {{file}}",
        before=f"kubectl get {named} -o jsonpath='{{.spec.replicas}}'",
        back=f"kubectl scale {named} --replicas=NUMBER-BEFORE",
        warnings=(FIXED_GROUP,),
        notes=(f"It takes groups of {size} pods with {pods.gpus_per_pod} GPUs each for granted.",),
    )
