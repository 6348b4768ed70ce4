"""`rlsize manifest`: the resize as a file for Kubernetes, Ray, KEDA or Kueue; nothing is applied."""

from __future__ import annotations

from pathlib import Path

import typer

from rlsize.commands import manifest_flags as of
from rlsize.commands.flags import Profiles
from rlsize.commands.manifest_allocation import AllocationFlags, Said, allocation_of
from rlsize.commands.manifest_wanted import PlatformFlags
from rlsize.commands.manifest_writing import Files, resized
from rlsize.errors import Fault, InputError
from rlsize.reports.manifest import manifest_report
from rlsize.reports.report import Report
from rlsize.shell.text_output import delivered

_SHOWN = frozenset(
    {
        "mode", "instances", "gpus_per_instance", "rollout_gpus", "trainer_gpus", "gpus_per_node", "gpus_per_pod",
        "engine", "concurrency", "threshold", "min_replicas", "max_replicas", "borrowed_gpus", "group_index",
    }
)  # fmt: skip
"""What decides a resize, of all that a plan says."""


def manifest(
    context: typer.Context,
    source: of.Source = None,
    platform: of.Platform = None,
    rollback: of.Rollback = None,
    base: of.Base = None,
    name: of.Name = "rollout",
    namespace: of.Namespace = "default",
    group: of.Group = None,
    group_index: of.GroupIndex = None,
    minimum: of.Minimum = None,
    maximum: of.Maximum = None,
    gpu_resource: of.GpuResource = "nvidia.com/gpu",
    gpus_per_pod: of.GpusPerPod = None,
    instances: of.Instances = None,
    gpus_per_instance: of.GpusPerInstance = None,
    rollout_gpus: of.RolloutGpus = None,
    trainer_gpus: of.TrainerGpus = None,
    gpus_per_node: of.GpusPerNode = None,
    engine: of.Engine = None,
    concurrency: of.Concurrency = None,
    prometheus: of.Prometheus = None,
    query: of.Query = None,
    selector: of.Selector = None,
    threshold: of.Threshold = None,
    target: of.Target = None,
    rollout_label: of.RolloutLabel = None,
    trainer_label: of.TrainerLabel = None,
    rollout_taint: of.RolloutTaint = None,
    trainer_taint: of.TrainerTaint = None,
    cohort: of.Cohort = None,
    borrow: of.Borrow = None,
    cpu_per_gpu: of.CpuPerGpu = None,
    memory_per_gpu: of.MemoryPerGpu = None,
    output: of.Output = None,
    force: of.Force = False,
    profiles: Profiles = None,
) -> Report:
    """
    Write the resize for Kubernetes, Ray, KEDA or Kueue; nothing is applied.

    Example:  rlsize manifest examples/baseline.yaml --platform deployment
    """
    asked = AllocationFlags(
        instances=instances,
        gpus_per_instance=gpus_per_instance,
        rollout_gpus=rollout_gpus,
        trainer_gpus=trainer_gpus,
        gpus_per_node=gpus_per_node,
        engine=engine,
        concurrency=concurrency,
    )
    texts = {
        "--group": group, "--group-index": group_index, "--min": minimum, "--max": maximum,
        "--prometheus": prometheus, "--query": query, "--selector": selector, "--threshold": threshold,
        "--target": target, "--cohort": cohort, "--borrow": borrow, "--cpu-per-gpu": cpu_per_gpu,
        "--memory-per-gpu": memory_per_gpu,
    }  # fmt: skip
    lists = {
        "--rollout-label": rollout_label, "--trainer-label": trainer_label, "--rollout-taint": rollout_taint,
        "--trainer-taint": trainer_taint,
    }  # fmt: skip
    flags = PlatformFlags(
        platform=platform,
        name=name,
        namespace=namespace,
        gpu_resource=gpu_resource,
        gpus_per_pod=gpus_per_pod,
        texts=texts,
        lists={flag: tuple(said or ()) for flag, said in lists.items()},
        base=base,
    )
    if output is not None:
        from rlsize.writers.files import check_target

        written_to = check_target(output, force)
        if base is not None and written_to == Path(base).resolve():
            raise InputError(Fault("is the manifest that is gone back to", "--output", "name another file"))
    said = Said(rollback or source, profiles)
    found = allocation_of(said, asked, rollback or source or "flags")
    written = resized(said, found, flags, Files(source=source, rollback=rollback, output=output))
    shown = [figure for figure in said.inputs.shown() if figure.key in _SHOWN]
    return delivered(manifest_report(written, shown), written.text, context.obj or {}, output, force=force)
