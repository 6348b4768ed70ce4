"""`rlsize calibrate`: measured over predicted, stage by stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rlsize.cli import flags
from rlsize.cli.command import quantity
from rlsize.cli.inputs import Inputs
from rlsize.facts.figure import absent
from rlsize.reports.report import Report

if TYPE_CHECKING:
    from rlsize.facts.figure import Figure
    from rlsize.facts.measured import Stage
    from rlsize.facts.rates import Rates

RatesFile = Annotated[
    str, typer.Argument(metavar="RATES", help="A rates file from `rlsize measure --save`.", show_default=False)
]
ScenarioFile = Annotated[
    str | None, typer.Argument(metavar="SCENARIO", help="A scenario that names the link.", show_default=False)
]
Bandwidth = Annotated[str | None, quantity("--bandwidth", "Slowest link of the sync, one direction.")]
Link = Annotated[str | None, quantity("--link", "A link profile, such as infiniband-400g.", metavar="NAME")]
Save = Annotated[
    str | None,
    typer.Option(
        "--save", metavar="FILE", help="Write a calibration file.", rich_help_panel="Output", show_default=False
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.", rich_help_panel="Output")]

NOT_PREDICTED = "this version predicts no such time yet"
NO_LINK = "needs --link or --bandwidth"


def calibrate(
    rates: RatesFile,
    scenario: ScenarioFile = None,
    bandwidth: Bandwidth = None,
    link: Link = None,
    save: Save = None,
    force: Force = False,
    profiles: flags.Profiles = None,
) -> Report:
    """
    Compare a measurement with the predictions, stage by stage.

    Example:  rlsize calibrate rates.yaml --link infiniband-400g --save calibration.yaml
    """
    from rlsize.estimates.calibrating import calibration, measured_stages
    from rlsize.readers.rates import read_rates
    from rlsize.reports.calibrate import calibrate_report

    inputs = Inputs(scenario, profiles)
    measured = read_rates(rates)
    sync = _predicted_sync(inputs, measured, bandwidth, link)
    inputs.settle()
    predictions: dict[Stage, Figure] = {"sync": sync} if sync.known else {}
    found = calibration(measured, rates, predictions)
    missing: dict[Stage, str] = {"rollout": NOT_PREDICTED, "train": NOT_PREDICTED, "sync": NO_LINK}
    if save is not None:
        from rlsize.writers.files import write_whole
        from rlsize.writers.yaml_file import plain, yaml_text

        write_whole(save, yaml_text("calibration", plain(found)), force)
        inputs.notes.append(f"Wrote {save}.")
    warnings = [*inputs.warnings, *([f"{rates} is partial: {measured.partial}"] if measured.partial else [])]
    return calibrate_report(found, measured_stages(measured), missing, inputs.shown(), warnings, inputs.notes)


def _predicted_sync(inputs: Inputs, measured: Rates, bandwidth: str | None, link: str | None) -> Figure:
    """Seconds of a weight sync of the measured bytes at the bandwidth of its link, before any efficiency."""
    from rlsize.cli.link_choice import paths
    from rlsize.equations.weight_sync import transfer_time
    from rlsize.estimates.working import apply
    from rlsize.facts.figure import Figure

    said = {"bandwidth": bandwidth, "link": link, "gpu": None, "cluster": None}
    way = paths(inputs, said, None, absent("trainer_gpus", "--trainer-gpus")).between
    if measured.sync is None or not way.bandwidth.known:
        return absent("sync_seconds", "--link")
    size = Figure(key="sync_bytes", value=measured.sync.bytes, provenance="measured", source="the rates file")
    return apply("sync_seconds", transfer_time, sync_bytes=size, bandwidth=way.bandwidth, latency=0.0)
