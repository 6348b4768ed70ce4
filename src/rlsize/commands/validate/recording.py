"""A run as a record that may be given away: lengths, phases, layout and sizes; no name, host, user or path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.errors import Fault, InputError
from rlsize.estimates.model_size import model_size
from rlsize.facts.figure import Figure
from rlsize.facts.quantisation import native
from rlsize.loop.resolve import resolve
from rlsize.planner.step_parts import ready_engine
from rlsize.readers.profiles import Catalogue
from rlsize.shell.observation import DECIDED, read_run, shown_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.train_prediction import TrainQuestion
    from rlsize.facts.model import Model
    from rlsize.facts.run_summary import RunSummary
    from rlsize.loop.resolve import Loop
    from rlsize.planner.options import Placement
    from rlsize.shell.inputs import Inputs

_TIMES = {  # of logs, by what records call them
    "step_seconds": "step_time_s",
    "generation_seconds": "generation_time_s",
    "wait_seconds": "generation_exposed_s",
    "logprob_seconds": "logprob_time_s",
    "update_seconds": "train_time_s",
    "sync_seconds": "weight_sync_time_s",
    "reward_seconds": "reward_time_s",
}
_PEAKS = {"peak_allocated_bytes": "peak_mem_allocated_gib", "peak_reserved_bytes": "peak_mem_reserved_gib"}
_GIB = 2.0**30
_BILLION = 1e9


def recorded(inputs: Inputs, log: str) -> dict[str, Any]:
    """
    One run as a row of a list of records.

    Args:
        inputs: What was said of it.
        log: Its training log.

    Raises:
        InputError: The log times no step or phase, or the loop cannot be told.
    """
    run = read_run(inputs, [log], None)
    inputs.show(shown_by(run), run.source, first=DECIDED)
    asked = inputs.apart()
    asked.ran = True
    loop = resolve(asked)
    if loop.place is None or loop.stages is None:
        what = loop.refused or "no model is named"
        raise InputError(Fault(f"cannot be told as a record: {what}", log, "name the launch that it ran with"))
    times = {name: _short(run.figure(key).number) for key, name in _TIMES.items() if run.figure(key).known}
    if not times:
        raise InputError(Fault("times neither steps nor phases", log, "name another log of the run"))
    model, placed = loop.stages.train.model, _placed(loop.place, loop.stages.train)
    row = {
        "id": f"{run.framework or 'run'}-{_size(model)}-{placed['gpus_total']}",
        "source_id": "anonymous",
        "trust": "medium",
        "framework": run.framework or None,
        "model": _named(model),
        "gpu": loop.place.fleet.gpu if loop.place.fleet.gpu in Catalogue().names("gpu") else None,
        **placed,
        **_said(loop),
        "steps_averaged": len(run.steps),
        **times,
        **_peaks(run),
    }
    return {key: value for key, value in row.items() if value is not None}


def _placed(place: Placement, train: TrainQuestion) -> Mapping[str, Any]:
    """Where both sides run and how they are spread."""
    shared = place.shared
    engine = ready_engine(place.fleet, shared=shared).question
    rollout, trainer = int(place.rollout_gpus), int(place.trainer_gpus)
    pools = {"gpus_shared": trainer} if shared else {"gpus_rollout": rollout, "gpus_train": trainer}
    layout = engine.layout
    return {
        "placement": "colocated" if shared else "disaggregated",
        "async_mode": "synchronous" if place.loop == "colocated" else place.loop,
        "staleness_steps": None if shared else place.max_staleness,
        "gpus_total": trainer if shared else rollout + trainer,
        **pools,
        "rollout_engine": engine.engine,
        "rollout_parallel": f"TP{layout.tensor} PP{layout.pipeline} DP{layout.data} EP{layout.expert}",
        "train_parallel": f"TP{train.tensor} PP{train.pipeline} CP{train.context} EP{train.expert} {train.sharding}",
        "precision": f"{(engine.weights or native(engine.model.name)).dense} generation, {train.dtype} training",
        "gpu_memory_utilization": engine.memory_fraction,
        "recompute": train.recompute,
        "offload": "optimizer" if train.offload else None,
        "passes": list(train.passes),
        "ref_model": _named(other) if (other := train.pass_models.get("reference")) is not None else None,
        "updates_per_step": _short(_plain(train.optimizer_steps)),
    }


def _said(loop: Loop) -> Mapping[str, Any]:
    """Batch and lengths."""
    problem = loop.problem
    figures = {
        "samples_per_step": problem.samples,
        "group_size": problem.group_size,
        "prompt_len_mean": problem.prompt_tokens,
        "response_len_mean": problem.response_tokens,
        "response_len_max": problem.max_tokens,
    }
    return {key: _short(figure.number) for key, figure in figures.items() if figure.known}


def _peaks(run: RunSummary) -> Mapping[str, float]:
    return {name: _short(run.figure(key).number / _GIB) for key, name in _PEAKS.items() if run.figure(key).known}


def _named(model: Model) -> str:
    """A model by its public name; one that has none by its kind and its parameters."""
    public = model.name in Catalogue().names("model")
    return model.name if public else f"{'MoE' if model.architecture.moe else 'dense'} {_size(model)}"


def _size(model: Model) -> str:
    size = model_size(model)
    total, active = size.params.number / _BILLION, size.active_params.number / _BILLION
    return f"{total:.3g}B-A{active:.2g}B" if model.architecture.moe else f"{total:.3g}B"


def _plain(value: Real) -> float:
    return float(value.number if isinstance(value, Figure) else value)


def _short(value: float) -> float:
    """Four digits: enough for a measurement, too few to know a run by."""
    short = float(f"{value:.4g}")
    return int(short) if short.is_integer() else short
