"""`rlsize predict sync`: how long a weight sync will take, before one has been measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from rlsize.commands import asking, flags
from rlsize.estimates.sync_prediction import TRANSPORTS
from rlsize.facts.fields import Quantity
from rlsize.facts.figure import Figure
from rlsize.facts.quantisation import WIDTHS
from rlsize.reports.report import Report
from rlsize.shell.beliefs import CalibrationFile
from rlsize.shell.command import quantity
from rlsize.shell.inputs import Inputs
from rlsize.shell.models import model_profile

if TYPE_CHECKING:
    from rlsize.estimates.belief import Belief
    from rlsize.estimates.sync_prediction import SyncTimeQuestion

DEFAULT_TRANSPORT = "nccl-broadcast"
USUAL_GPUS = 8
USUAL_BUCKET = 1e9
_BUCKET = Quantity("B", least=1e3)
_LONGEST_SEED = 18
_METHODS = {  # of `rlsize sync`, by the class that is like it
    "nccl-broadcast": "nccl-broadcast",
    "fp8": "nccl-broadcast",
    "rdma": "nccl-reshard",
    "disk": "store",
    "object-store": "store",
    "colocated": "colocated",
}


def predict_sync(
    scenario: flags.ScenarioFile = None,
    model: Annotated[
        str | None, quantity("--model", "A model profile or the path of a config.json.", metavar="NAME|FILE")
    ] = None,
    gpu: Annotated[str | None, quantity("--gpu", "A GPU profile, such as h100-sxm.", metavar="NAME")] = None,
    transport: Annotated[
        str | None, quantity("--transport", f"One of {', '.join(TRANSPORTS)}.", metavar="NAME")
    ] = None,
    dtype: Annotated[
        str | None, quantity("--dtype", "Width of the weights on the wire: bf16, fp8, ...", metavar="NAME")
    ] = None,
    trainer_gpus: flags.TrainerGpus = None,
    rollout_gpus: flags.RolloutGpus = None,
    gpus_per_instance: flags.GpusPerInstance = None,
    bucket: Annotated[str | None, quantity("--bucket", "Bytes sent at once: '1 GB'.")] = None,
    calibration: CalibrationFile = None,
    seed: flags.Seed = "0",
    profiles: flags.Profiles = None,
) -> Report:
    """
    How long a weight sync will take, by class of transport, with a band.

    Example:  rlsize predict sync --model qwen3-8b --gpu h100-sxm --transport colocated --trainer-gpus 8
    """
    from rlsize.estimates.sync_outlook import sync_outlook
    from rlsize.reports.predict_sync import predict_sync_report

    inputs = Inputs(scenario, profiles)
    made = _question(inputs, model, gpu, (transport, dtype), (trainer_gpus, rollout_gpus, gpus_per_instance), bucket)
    draws = _seed(inputs, seed)
    question = inputs.settled(made)
    outlook = sync_outlook(question, beliefs(inputs, calibration), draws)
    return predict_sync_report(outlook, inputs.shown(), inputs.warnings, inputs.notes)


def beliefs(inputs: Inputs, calibration: str | None) -> Belief:
    """What is believed about the constants of a sync: the prior, or what a calibration file says."""
    from rlsize.estimates.constants_sync import STAGE
    from rlsize.shell.beliefs import belief_of

    return belief_of(inputs, calibration, STAGE)


def _seed(inputs: Inputs, text: str) -> int:
    """The seed of the draws."""
    if text.isascii() and text.isdecimal() and len(text) <= _LONGEST_SEED:
        return int(text)
    inputs.fault(f"{text[:20]!r} is not a whole number", "--seed", "write 0 or 42")
    return 0


def _question(
    inputs: Inputs,
    model: str | None,
    gpu: str | None,
    said: tuple[str | None, str | None],
    counts: tuple[str | None, str | None, str | None],
    bucket: str | None,
) -> SyncTimeQuestion | None:
    """All that was said; None where a fault was noted."""
    from rlsize.estimates.sync_prediction import SyncTimeQuestion

    policy = model_profile(inputs, model)
    hardware = asking.gpu(inputs, gpu)
    for key, found, flag in (("model", policy, "--model"), ("gpu", hardware, "--gpu")):
        if found is None and not inputs.faults:
            inputs.fault(f"{key} is missing", flag, f"give {flag}, a profile's name")
    name = transport_class(inputs, said[0])
    width = wire_dtype(inputs, said[1])
    trainer, rollout, instance = _gpus(inputs, counts, shared=TRANSPORTS[name].colocated)
    size = inputs.number("bucket_bytes", "--bucket", bucket, _BUCKET, default=USUAL_BUCKET, why="a usual size")
    if inputs.faults or policy is None or hardware is None:
        return None
    return SyncTimeQuestion(
        model=policy,
        gpu=hardware,
        transport=name,
        dtype=width,
        trainer_gpus=trainer.number,
        rollout_gpus=rollout.number,
        instance_gpus=min(instance.number, rollout.number),
        bucket_bytes=size.number,
    )


def transport_class(inputs: Inputs, text: str | None) -> str:
    """The class: of the flag, else the one that is like the scenario's method, else by placement."""
    key = "transport"
    shared = inputs.said("placement.mode") == "colocated"
    usual = "colocated" if shared else DEFAULT_TRANSPORT
    method = inputs.said("weight_sync.transport") if text is None else None
    if method is None:
        return inputs.word(key, "--transport", text, TRANSPORTS, default=usual) or usual
    where = inputs.where("weight_sync.transport")
    like = _METHODS.get(str(method))
    if like is None:
        inputs.fault(f"{method} sends what has changed only: no class of transport predicts it", where, "--transport")
        return usual
    inputs.keep(Figure(key=key, value=like, source=where))
    return like


def wire_dtype(inputs: Inputs, text: str | None) -> str:
    """The type on the wire: of the sync, else of the rollout weights, else bf16."""
    said = "weight_sync.dtype" if inputs.said("weight_sync.dtype") is not None else "rollout.dtype"
    quantised = inputs.said("weight_sync.transport") == "fp8" and inputs.said("weight_sync.dtype") is None
    usual = "fp8" if quantised else "bf16"
    return inputs.word("dtype", "--dtype", text, WIDTHS, scenario="" if quantised else said, default=usual) or usual


def _gpus(
    inputs: Inputs, counts: tuple[str | None, str | None, str | None], *, shared: bool
) -> tuple[Figure, Figure, Figure]:
    """GPUs of trainer, fleet and one instance."""
    trainer = inputs.number(
        "trainer_gpus",
        "--trainer-gpus",
        counts[0],
        flags.COUNT,
        scenario="placement.trainer_gpus",
        default=USUAL_GPUS,
        why="a node",
    )
    instance = asking.gpus_per_instance(inputs, counts[2])
    if not instance.known:
        instance = inputs.keep(Figure(key="gpus_per_instance", value=1, provenance="default", source="one GPU each"))
    if shared and counts[1] is None:
        return trainer, Figure(key="rollout_gpus", value=trainer.value, source="the trainer's own"), instance
    rollout = inputs.number(
        "rollout_gpus",
        "--rollout-gpus",
        counts[1],
        flags.COUNT,
        scenario="placement.rollout_gpus",
        default=round(trainer.number) if trainer.known else USUAL_GPUS,
        why="as many as the trainer",
    )
    return trainer, rollout, instance
