"""`rlsize measure`: rollouts, train steps and weight syncs on the GPUs at hand."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from rlsize.errors import Fault, InputError, UnfinishedError
from rlsize.reports.report import Report
from rlsize.shell.access import AUTHORITY, INSECURE, TOKEN_FILE
from rlsize.shell.command import Force, option, switch, tell
from rlsize.shell.inputs import Inputs
from rlsize.shell.progress import INTERRUPTED
from rlsize.shell.quantity_flags import BATCH, LENGTHS, asks, short

if TYPE_CHECKING:
    from rlsize.facts.rates import Rates

_ROLLOUT, _TRAINER, _SYNC = "Rollout", "Trainer", "Weight sync"


@asks(
    once=True,
    Inputs=("model", ("measurement_seconds", "--seconds|--measurement-seconds"), "device", "seed"),
    Workload=(*BATCH, *LENGTHS, "temperature"),
    Rollout=(
        "max_num_seqs", *short("rollout_tensor_parallel"), "rollout_pipeline_parallel", *short("rollout_dtype"),
        "kv_dtype", "memory_fraction", "start_seconds",
    ),
    Trainer=("trainer_gpus", "micro_batch_tokens", "recompute", "skipped_steps"),
    Weight_sync=("sender_ranks", "receiver_ranks"),
    Access=("timeout_seconds",),
)  # fmt: skip
def measure(
    inputs: Inputs,
    context: typer.Context,
    only: str | None = option(
        "--only", "What to measure, of rollout, train and sync; by default what the machine can.", metavar="LIST"
    ),
    dummy_weights: bool = switch(
        "--dummy-weights", "Random weights: nothing is downloaded, and speed needs no more.", "Inputs"
    ),
    quick: bool = switch("--quick", "A first look: two levels, 45 s for each kind.", "Inputs"),
    resume: str | None = option(
        "--resume", "The journal of a measurement that broke off: what it has is not measured again.", metavar="FILE"
    ),
    show: str | None = option("--show", "Show what a rates file holds, and measure nothing.", metavar="FILE"),
    url: list[str] | None = option(
        "--url", "A server that runs already, http://HOST:PORT; repeatable for a fleet.", _ROLLOUT, "URL"
    ),
    replay: str | None = option(
        "--replay", "Prompts and traces of turns to play, a JSON object a line.", _ROLLOUT, "FILE"
    ),
    concurrency: str | None = option(
        "--concurrency", "Samples in flight to measure at, as 16,64,256.", _ROLLOUT, "LIST"
    ),
    engines: str | None = option(
        "--engines", "Engines on the visible GPUs, started and loaded together; all for the whole node.", _ROLLOUT, "N"
    ),
    engine_python: str | None = option(
        "--engine-python", "The Python that has vLLM; by default this one.", _ROLLOUT, "PATH"
    ),
    engine_arg: list[str] | None = option(
        "--engine-arg", "An argument of vLLM's LLM, as enforce_eager=true; repeatable.", _ROLLOUT, "NAME=VALUE"
    ),
    trainer_python: str | None = option(
        "--trainer-python", "The Python that has torch; by default that of the engine.", _TRAINER, "PATH"
    ),
    trainer_log: str | None = option(
        "--trainer-log", "The training log of your own trainer, in place of a train step here.", _TRAINER, "FILE"
    ),
    torchrun: str | None = option(
        "--torchrun", "torchrun's flags for several nodes, in place of --standalone.", _TRAINER, "FLAGS"
    ),
    buckets: str | None = option("--buckets", "Bucket sizes, as 64MB,512MB; by default three.", _SYNC, "LIST"),
    engine_update: bool = switch(
        "--engine-update",
        "Also time how a running vLLM loads new weights; writes two checkpoints to a temporary folder.",
        _SYNC,
    ),
    token_file: str | None = TOKEN_FILE,
    ca: str | None = AUTHORITY,
    insecure: bool = INSECURE,
    save: str | None = option("--save", "Write a rates file that `fleet --per-instance` takes.", "Output", "FILE"),
    log: str | None = option("--log", "Keep what engines and trainers print.", "Output", "FILE"),
    force: Force = False,
) -> Report:
    """
    Measure rollouts, train steps and weight syncs on the GPUs at hand.

    Where there are GPUs: rlsize measure SCENARIO --model qwen3-8b --save rates.yaml. Any Hugging Face id is a model.

    Example:  rlsize measure --show examples/measured-cpu.yaml
    """
    asked = {name: value for name, value in locals().items() if name not in {"inputs", "context"}}
    if show is not None:
        from rlsize.commands.measure.report import measure_report
        from rlsize.readers.saved_files import read_rates

        if any(said is not None for said in (save, log, resume, trainer_log)):
            what = "measures nothing, so there is nothing to write"
            raise InputError(Fault(what, "--show", "leave --save, --log, --resume and --trainer-log"))
        return measure_report(read_rates(show))
    from rlsize.shell.answer import check_files

    check_files(inputs, save, log, context.obj.get("plot"), force=force)
    return _measured(context, inputs, asked)


def _measured(context: typer.Context, inputs: Inputs, asked: dict[str, Any]) -> Report:
    """Measure, show, save; in this order, so that nothing is lost to a full disk."""
    from rlsize.commands.measure.report import measure_report
    from rlsize.commands.measure.run import MeasurementOutcome, run
    from rlsize.shell.answer import deliver

    try:
        outcome = run(inputs, asked)
    except KeyboardInterrupt:  # before anything had begun
        outcome = MeasurementOutcome(interrupted=True)
    if outcome.rates is None:
        if outcome.interrupted:
            tell(UnfinishedError(Fault("interrupted before anything was measured", "measure", "let it run longer")))
            raise typer.Exit(INTERRUPTED)
        raise UnfinishedError(*outcome.faults)
    save = asked["save"]
    shown = () if asked["trainer_log"] and not outcome.rates.instances else inputs.shown()  # a log has its own
    report = measure_report(outcome.rates, shown, [*inputs.notes, *outcome.notes])
    if save is None and not (outcome.interrupted or outcome.faults):
        return report
    deliver(report, context.obj)
    if save is not None:
        _save(save, outcome.rates, force=asked["force"])
        sys.stderr.write(f"wrote {save}; size with `rlsize fleet --consume ... --per-instance {save}`\n")
    if outcome.interrupted:
        raise typer.Exit(INTERRUPTED)
    if outcome.faults:
        raise UnfinishedError(*outcome.faults)
    raise typer.Exit(0)


def _save(path: str, rates: Rates, *, force: bool) -> None:
    """
    Write the rates file; where that fails, beside the system's temporary files.

    Raises:
        UnfinishedError: It could not be written where it was asked for; says where it is instead.
    """
    from rlsize.writers.files import write_whole
    from rlsize.writers.yaml_file import rates_text

    text = rates_text(rates)
    try:
        write_whole(path, text, force)
    except InputError as error:
        raise UnfinishedError(Fault(error.faults[0].what, path, _elsewhere(text))) from None


def _elsewhere(text: str) -> str:
    """Keep what was measured somewhere, and say where."""
    import tempfile

    try:
        with tempfile.NamedTemporaryFile("w", suffix=".yaml", prefix="rates-", delete=False, encoding="utf-8") as file:
            file.write(text)
    except OSError:
        sys.stderr.write(text)
        return "the rates file is printed above, as no disk takes it"
    return f"what was measured is in {file.name}"
