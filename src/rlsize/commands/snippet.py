"""`rlsize snippet`: the configuration keys of a framework that set the recommended split."""

from __future__ import annotations

import typer

from rlsize.commands import flags
from rlsize.commands import manifest_flags as of
from rlsize.commands import snippet_flags as own
from rlsize.commands.manifest_allocation import AllocationFlags, Said, allocation_of
from rlsize.commands.snippet_split import chosen, split_of
from rlsize.commands.snippet_writing import told
from rlsize.reports.report import Report
from rlsize.shell.text_output import delivered


def snippet(
    context: typer.Context,
    source: of.Source = None,
    framework: own.Framework = None,
    variant: own.Variant = None,
    mode: own.Mode = None,
    instances: of.Instances = None,
    gpus_per_instance: of.GpusPerInstance = None,
    rollout_tensor_parallel: own.RolloutTensor = None,
    rollout_gpus: of.RolloutGpus = None,
    trainer_gpus: of.TrainerGpus = None,
    gpus_per_node: of.GpusPerNode = None,
    engine: of.Engine = None,
    max_staleness: own.MaxStaleness = None,
    sync_every: own.SyncEvery = None,
    prompts: flags.Prompts = None,
    group: flags.Group = None,
    mini_batches: own.MiniBatches = None,
    output: of.Output = None,
    force: of.Force = False,
    profiles: flags.Profiles = None,
) -> Report:
    """
    Print a framework's keys for the recommended split.

    Example:  rlsize snippet examples/baseline.yaml --framework verl
    """
    asked = AllocationFlags(
        mode=mode,
        instances=instances,
        gpus_per_instance=gpus_per_instance,
        rollout_gpus=rollout_gpus,
        trainer_gpus=trainer_gpus,
        gpus_per_node=gpus_per_node,
        engine=engine,
        tensor=rollout_tensor_parallel,
        max_staleness=max_staleness,
        sync_every=sync_every,
        prompts=prompts,
        group=group,
        mini_batches=mini_batches,
    )
    if output is not None:
        from rlsize.writers.files import check_target

        check_target(output, force)
    said = Said(source, profiles)
    found = allocation_of(said, asked, source or "flags")
    module, way = chosen(said.inputs, framework, variant, found.mode)
    split = split_of(said.inputs, found, way)
    report, text = told(said.inputs, module, split, found.source, output)
    return delivered(report, text, context.obj or {}, output, force=force)
