"""What `manifest` is asked to write: flags that belong to a platform, checked, all faults at once."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from rlsize.commands import flags
from rlsize.commands.manifest_allocation import WHOLE
from rlsize.errors import suggestion
from rlsize.facts.fields import Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.errors import Fault
    from rlsize.facts.allocation import Allocation
    from rlsize.shell.inputs import Inputs
    from rlsize.writers.manifests.listing import Platform
    from rlsize.writers.manifests.resize import Wanted

_KEDA = ("keda",)
_KUEUE = ("kueue",)
_BOUNDED = ("keda", "raycluster")
OWN: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "--group": ("raycluster", "kueue"), "--group-index": ("raycluster",), "--min": _BOUNDED, "--max": _BOUNDED,
        "--prometheus": _KEDA, "--query": _KEDA, "--selector": _KEDA, "--threshold": _KEDA, "--target": _KEDA,
        "--cohort": _KUEUE, "--borrow": _KUEUE, "--cpu-per-gpu": _KUEUE, "--memory-per-gpu": _KUEUE,
        "--rollout-label": _KUEUE, "--trainer-label": _KUEUE, "--rollout-taint": _KUEUE, "--trainer-taint": _KUEUE,
    }
)  # fmt: skip
"""The platforms that each flag belongs to."""

_COUNT_OR_NONE = Quantity("count", least=0.0, most=1e6, whole=True)
_LONGEST_QUERY = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformFlags:
    """
    What flags say of the object.

    Args:
        platform: Its platform.
        name: Its name.
        namespace: Its namespace.
        gpu_resource: What pods ask GPUs as.
        gpus_per_pod: GPUs of one pod.
        texts: Flags of some platforms that are given once, by flag.
        lists: Those that are given several times.
        base: A manifest that there is.
    """

    platform: str | None
    name: str
    namespace: str
    gpu_resource: str
    gpus_per_pod: str | None
    texts: Mapping[str, str | None]
    lists: Mapping[str, tuple[str, ...]]
    base: str | None


def platform_of(asked: PlatformFlags, inputs: Inputs) -> Platform | None:
    """The platform; None, with a fault, where there is none of that name. Flags of others are faults too."""
    from rlsize.writers.manifests.listing import platforms

    known = platforms()
    if asked.platform is None:
        inputs.fault("for which platform?", "--platform", f"give one of {', '.join(known)}")
        return None
    chosen = asked.platform.lower()
    if chosen not in known:
        inputs.fault(f"{asked.platform[:40]!r} is no platform", "--platform", suggestion(chosen[:40], known))
        return None
    given = [flag for flag, said in (*asked.texts.items(), *asked.lists.items()) if said]
    for flag in given:
        if chosen not in OWN[flag]:
            inputs.fault(f"says nothing about a {chosen}", flag, f"it is for --platform {' or '.join(OWN[flag])}")
    return known[chosen]


def wanted_of(asked: PlatformFlags, found: Allocation, inputs: Inputs) -> Wanted:
    """The object as it was asked for; faults are noted."""
    from rlsize.writers.manifests.keda import TARGETS
    from rlsize.writers.manifests.names import label_of, toleration_of
    from rlsize.writers.manifests.resize import Wanted

    texts = asked.texts
    target = texts["--target"] or "deployment"
    if target not in TARGETS:
        inputs.fault(f"KEDA scales no {target[:40]!r}", "--target", suggestion(target[:40], TARGETS))
        target = "deployment"
    threshold = inputs.number("threshold", "--threshold", texts["--threshold"], flags.POSITIVE)
    _check_names(asked, inputs)
    sides = ("rollout", "trainer")
    return Wanted(
        name=asked.name,
        namespace=asked.namespace,
        group=texts["--group"] or "",
        group_index=_count(asked, inputs, "--group-index") or 0,
        minimum=_count(asked, inputs, "--min"),
        maximum=_count(asked, inputs, "--max"),
        gpu_resource=asked.gpu_resource,
        prometheus=texts["--prometheus"] or "",
        query=texts["--query"] or "",
        selector=_selector(texts["--selector"], inputs),
        threshold=threshold.number if threshold.known else None,
        target=target,
        concurrency=found.concurrency,
        engine=found.engine,
        labels={
            side: {
                key: value
                for text in asked.lists[f"--{side}-label"]
                for key, value in label_of(text, f"--{side}-label", inputs.faults).items()
            }
            for side in sides
        },
        tolerations={
            side: tuple(
                toleration_of(text, f"--{side}-taint", inputs.faults) for text in asked.lists[f"--{side}-taint"]
            )
            for side in sides
        },
        cohort=texts["--cohort"] or "",
        borrow=_count(asked, inputs, "--borrow") or 0,
        per_gpu=_per_gpu(asked, inputs),
    )


def gpus_per_pod(asked: PlatformFlags, inputs: Inputs) -> int | None:
    """GPUs of one pod, where a flag says so."""
    found = inputs.number("gpus_per_pod", "--gpus-per-pod", asked.gpus_per_pod, WHOLE)
    return int(found.number) if found.known else None


def _count(asked: PlatformFlags, inputs: Inputs, flag: str) -> int | None:
    key = {"--min": "min_replicas", "--max": "max_replicas", "--borrow": "borrowed_gpus"}.get(flag, "group_index")
    found = inputs.number(key, flag, asked.texts[flag], _COUNT_OR_NONE)
    return int(found.number) if found.known else None


def _selector(text: str | None, inputs: Inputs) -> str:
    """The matchers of a selector, written anew, so that nothing gets out of their braces."""
    from rlsize.commands.alerts_selector import matchers
    from rlsize.reports.alerts_text import selector_text

    return selector_text(matchers(text, "--selector", inputs.faults)) if text else ""


def _per_gpu(asked: PlatformFlags, inputs: Inputs) -> dict[str, str]:
    from rlsize.writers.manifests.names import is_quantity

    found: dict[str, str] = {}
    for resource in ("cpu", "memory"):
        flag = f"--{resource}-per-gpu"
        text = asked.texts[flag]
        if text is None:
            continue
        if is_quantity(text):
            found[resource] = text
        else:
            inputs.fault(f"{text[:40]!r} is no quantity above zero", flag, "write it as Kubernetes does: 16, 128Gi")
    return found


def _check_names(asked: PlatformFlags, inputs: Inputs) -> None:
    """Note every name that Kubernetes or Prometheus would not take."""
    from rlsize.writers.manifests.names import name_faults, resource_faults, url_faults

    texts = asked.texts
    faults: list[Fault] = [
        *name_faults(
            {
                "--name": asked.name or " ",
                "--namespace": asked.namespace or " ",
                "--group": texts["--group"] or "",
                "--cohort": texts["--cohort"] or "",
            },
            label=frozenset({"--namespace", "--name"} if asked.platform == "kueue" else {"--namespace"}),
        ),
        *resource_faults(asked.gpu_resource, "--gpu-resource"),
    ]
    if texts["--prometheus"] is not None:
        faults += url_faults(texts["--prometheus"], "--prometheus")
    inputs.faults += faults
    query = texts["--query"] or ""
    if len(query) > _LONGEST_QUERY or not query.isprintable():
        inputs.fault("is no query of one line", "--query", "write it in one line, without control characters")
    if texts["--query"] and texts["--selector"]:
        inputs.fault("the query is yours", "--selector", "put the matchers into --query")
    if texts["--borrow"] and not texts["--cohort"]:
        inputs.fault("there is nobody to borrow from", "--borrow", "give --cohort too")
