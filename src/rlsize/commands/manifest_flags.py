"""The flags of `rlsize manifest`, and those of an allocation, which `rlsize snippet` has too."""

from __future__ import annotations

from typing import Annotated

import typer

from rlsize.shell.command import quantity

OBJECT, KEDA, KUEUE = "Object", "KEDA", "Kueue"

Source = Annotated[
    str | None,
    typer.Argument(
        metavar="PLAN|SCENARIO",
        help="A saved plan, a scenario with placement, or an observation; flags override it.",
        show_default=False,
    ),
]
Instances = Annotated[str | None, quantity("--instances", "Rollout instances.")]
GpusPerInstance = Annotated[str | None, quantity("--gpus-per-instance", "GPUs of one instance (TP x PP x DP).")]
RolloutGpus = Annotated[str | None, quantity("--rollout-gpus", "GPUs of the rollout fleet.")]
TrainerGpus = Annotated[str | None, quantity("--trainer-gpus", "GPUs of the trainer.")]
GpusPerNode = Annotated[str | None, quantity("--gpus-per-node", "GPUs of a node; the GPU's usual one if not given.")]
Engine = Annotated[str | None, quantity("--engine", "vllm, sglang or tensorrt-llm.", metavar="NAME")]
Concurrency = Annotated[str | None, quantity("--concurrency", "Samples generated at the same time on one instance.")]
Rollback = Annotated[
    str | None,
    quantity("--rollback", "Go back to the allocation of an observation or plan.", metavar="FILE"),
]

Platform = Annotated[
    str | None,
    quantity(
        "--platform", "deployment, statefulset, raycluster, leaderworkerset, keda or kueue.", OBJECT, metavar="NAME"
    ),
]
Name = Annotated[str, quantity("--name", "Name of the object; rollout when not given.", OBJECT, "NAME")]
Namespace = Annotated[str, quantity("--namespace|-n", "Its namespace; default when not given.", OBJECT, "NAME")]
Group = Annotated[
    str | None, quantity("--group", "RayCluster: the worker group. Kueue with --base: the flavour.", OBJECT, "NAME")
]
GroupIndex = Annotated[
    str | None, quantity("--group-index", "RayCluster: where the group stands in the list, from 0.", OBJECT)
]
Minimum = Annotated[str | None, quantity("--min", "Fewest replicas; the matched count when not given.", OBJECT)]
Maximum = Annotated[str | None, quantity("--max", "Most replicas; the matched count when not given.", OBJECT)]
GpuResource = Annotated[
    str, quantity("--gpu-resource", "What pods ask GPUs as; nvidia.com/gpu when not given.", OBJECT, "NAME")
]
GpusPerPod = Annotated[
    str | None, quantity("--gpus-per-pod", "GPUs of one pod; those of an instance when not given.", OBJECT)
]
Base = Annotated[
    str | None,
    quantity("--base", "A manifest that there is: all of it is written, with the resize in it.", OBJECT, "FILE"),
]

Prometheus = Annotated[str | None, quantity("--prometheus", "Address of the Prometheus that KEDA asks.", KEDA, "URL")]
Query = Annotated[str | None, quantity("--query", "What KEDA asks; samples in flight when not given.", KEDA, "PROMQL")]
Selector = Annotated[
    str | None, quantity("--selector", """Matchers of that query: 'job="rollout"'.""", KEDA, "MATCHERS")
]
Threshold = Annotated[
    str | None, quantity("--threshold", "What one replica serves; its concurrency when not given.", KEDA)
]
Target = Annotated[
    str | None, quantity("--target", "What KEDA scales: deployment, statefulset, leaderworkerset.", KEDA, "NAME")
]

RolloutLabel = Annotated[
    list[str] | None, quantity("--rollout-label", "Label of the preemptible nodes; repeatable.", KUEUE, "KEY=VALUE")
]
TrainerLabel = Annotated[
    list[str] | None, quantity("--trainer-label", "Label of the protected nodes; repeatable.", KUEUE, "KEY=VALUE")
]
RolloutTaint = Annotated[
    list[str] | None,
    quantity("--rollout-taint", "Taint that rollouts tolerate, KEY[=VALUE]:EFFECT; repeatable.", KUEUE, "TAINT"),
]
TrainerTaint = Annotated[
    list[str] | None,
    quantity("--trainer-taint", "Taint that the trainer tolerates; repeatable.", KUEUE, "TAINT"),
]
Cohort = Annotated[
    str | None, quantity("--cohort", "Cohort that rollouts borrow from; none when not given.", KUEUE, "NAME")
]
Borrow = Annotated[str | None, quantity("--borrow", "GPUs that rollouts may borrow; 0 when not given.", KUEUE)]
CpuPerGpu = Annotated[str | None, quantity("--cpu-per-gpu", "CPUs of a pod for each GPU: 16.", KUEUE, "QUANTITY")]
MemoryPerGpu = Annotated[
    str | None, quantity("--memory-per-gpu", "Memory of a pod for each GPU: 128Gi.", KUEUE, "QUANTITY")
]

Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write it there, and say what it is.", rich_help_panel="Output",
        show_default=False,
    ),
]  # fmt: skip
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.", rich_help_panel="Output")]
