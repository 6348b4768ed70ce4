"""A Deployment of one engine to a pod: a strategic merge patch of its replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.writers.manifests.resize import FIXED_GROUP, Edit, Resize, one_pod_fault

if TYPE_CHECKING:
    from rlsize.errors import Fault
    from rlsize.writers.manifests.resize import Pods, Wanted

PLATFORM = "deployment"
KIND = "Deployment"
API_VERSION = "apps/v1"


def resize(pods: Pods, wanted: Wanted, faults: list[Fault]) -> Resize:
    """The resize of a Deployment."""
    return scaled(KIND, pods, wanted, faults)


def scaled(kind: str, pods: Pods, wanted: Wanted, faults: list[Fault]) -> Resize:
    """The resize of an object of `apps/v1` that counts single pods."""
    faults += one_pod_fault(pods, kind)
    named = f"{kind.lower()} {wanted.name} -n {wanted.namespace}"
    return Resize(
        kind=kind,
        api_version=API_VERSION,
        documents=(
            {
                "apiVersion": API_VERSION,
                "kind": kind,
                "metadata": {"name": wanted.name, "namespace": wanted.namespace},
                "spec": {"replicas": pods.replicas},
            },
        ),
        edits=(Edit(path=("spec", "replicas"), value=pods.replicas),),
        pods=("spec", "template", "spec"),
        apply=f"kubectl patch {named} --type strategic --patch-file {{file}}",
        before=f"kubectl get {named} -o jsonpath='{{.spec.replicas}}'",
        back=f"kubectl scale {named} --replicas=NUMBER-BEFORE",
        warnings=(FIXED_GROUP,),
        notes=("An autoscaler of this object would undo it: pause or remove that first.",),
    )
