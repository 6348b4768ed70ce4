"""A StatefulSet of one engine to a pod: a strategic merge patch of its replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.writers.manifests.deployment import scaled

if TYPE_CHECKING:
    from rlsize.errors import Fault
    from rlsize.writers.manifests.resize import Pods, Resize, Wanted

PLATFORM = "statefulset"
KIND = "StatefulSet"
API_VERSION = "apps/v1"


def resize(pods: Pods, wanted: Wanted, faults: list[Fault]) -> Resize:
    """The resize of a StatefulSet."""
    return scaled(KIND, pods, wanted, faults)
