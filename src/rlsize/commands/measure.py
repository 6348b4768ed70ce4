"""`rlsize measure`: rollouts, train steps and weight syncs on the GPUs at hand."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from rlsize.commands import flags
from rlsize.commands import measure_flags as own
from rlsize.errors import Fault, InputError, UnfinishedError
from rlsize.reports.report import Report
from rlsize.shell.command import TERMINAL
from rlsize.shell.inputs import Inputs
from rlsize.shell.live_engines import Authority, Insecure, TokenFile
from rlsize.shell.observation import check_files

if TYPE_CHECKING:
    from rlsize.facts.rates import Rates

INTERRUPTED = 130


def measure(
    context: typer.Context,
    scenario: flags.ScenarioFile = None,
    model: own.Model = None,
    only: own.Only = None,
    dummy_weights: own.DummyWeights = False,
    quick: own.Quick = False,
    seconds: own.Seconds = None,
    device: own.Device = None,
    seed: own.Seed = None,
    show: own.Show = None,
    prompts: own.Prompts = None,
    group: own.Group = None,
    prompt_tokens: own.PromptTokens = None,
    response_tokens: own.ResponseTokens = None,
    response_cv: own.ResponseCv = None,
    max_response_tokens: own.MaxResponseTokens = None,
    temperature: own.Temperature = None,
    url: own.Urls = None,
    concurrency: own.Concurrency = None,
    max_num_seqs: own.MaxNumSeqs = None,
    tensor_parallel: own.TensorParallel = None,
    dtype: own.Dtype = None,
    kv_dtype: own.KvDtype = None,
    memory_fraction: own.MemoryFraction = None,
    engine_python: own.EnginePython = None,
    engine_arg: own.EngineArgs = None,
    start_timeout: own.StartTimeout = None,
    trainer_python: own.TrainerPython = None,
    trainer_gpus: own.Processes = None,
    micro_batch_tokens: own.MicroBatchTokens = None,
    recompute: own.Recompute = None,
    torchrun: own.Torchrun = None,
    buckets: own.Buckets = None,
    sender_ranks: own.SenderRanks = None,
    receiver_ranks: own.ReceiverRanks = None,
    engine_update: own.EngineUpdate = False,
    token_file: TokenFile = None,
    ca: Authority = None,
    insecure: Insecure = False,
    timeout: own.Timeout = None,
    save: own.Save = None,
    log: own.Log = None,
    force: own.Force = False,
    profiles: flags.Profiles = None,
) -> Report:
    """
    Measure rollouts, train steps and weight syncs on the GPUs at hand.

    Example:  rlsize measure examples/grpo-32b.yaml --model qwen3-8b --save rates.yaml
    """
    from rlsize.reports.measure import measure_report

    asked = {name: value for name, value in locals().items() if name not in {"context", "measure_report"}}
    if show is not None:
        from rlsize.readers.rates import read_rates

        if save is not None or log is not None:
            raise InputError(
                Fault("measures nothing, so there is nothing to write", "--show", "leave --save and --log")
            )

        return measure_report(read_rates(show))
    inputs = Inputs(scenario, profiles)
    plot = context.obj.get("plot")
    check_files(inputs, save, log, plot if plot != TERMINAL else None, force=force)
    return _measured(context, inputs, asked)


def _measured(context: typer.Context, inputs: Inputs, asked: dict[str, Any]) -> Report:
    """Measure, show, save; in this order, so that nothing is lost to a full disk."""
    from rlsize.commands.measure_run import Outcome, run
    from rlsize.reports.measure import measure_report
    from rlsize.shell.answer import deliver

    try:
        outcome = run(inputs, asked)
    except KeyboardInterrupt:  # before anything had begun
        outcome = Outcome(interrupted=True)
    if outcome.rates is None:
        if outcome.interrupted:
            from rlsize.shell.failures import tell

            tell(UnfinishedError(Fault("interrupted before anything was measured", "measure", "let it run longer")))
            raise typer.Exit(INTERRUPTED)
        raise UnfinishedError(*outcome.faults)
    save = asked["save"]
    report = measure_report(outcome.rates, inputs.shown(), [*inputs.notes, *outcome.notes])
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
    from rlsize.writers.rates_file import rates_text

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
