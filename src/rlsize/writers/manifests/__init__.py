"""A resize as a manifest, for each platform; nothing is applied."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.errors import Fault
    from rlsize.writers.manifests.resize import Pods, Resize, Wanted

    Platform = Callable[[Pods, Wanted, list[Fault]], Resize]


def platforms() -> Mapping[str, Platform]:
    """The resize of each platform by its name; what is missing or cannot be is noted among the faults."""
    from rlsize.writers.manifests import keda, kueue, raycluster, resize

    return {
        "deployment": partial(resize.of_single_pods, "Deployment"),
        "keda": keda.resize,
        "kueue": kueue.resize,
        "leaderworkerset": resize.leaderworkerset,
        "raycluster": raycluster.resize,
        "statefulset": partial(resize.of_single_pods, "StatefulSet"),
    }
