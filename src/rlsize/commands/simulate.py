"""`rlsize simulate`: what the loop does over time."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from rlsize.commands import flags
from rlsize.commands import simulate_flags as of
from rlsize.errors import Fault, UnfinishedError
from rlsize.facts.fields import Quantity
from rlsize.facts.figure import Figure
from rlsize.reports.report import Report
from rlsize.shell.beliefs import CalibrationFile
from rlsize.shell.inputs import Inputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rlsize.commands.simulate_runs import Done, Job
    from rlsize.commands.simulate_setting import Simulated

INTERRUPTED = 130
_STEPS, _SEEDS = 1000, 5
_LONGEST_SEED = 18
_NOT_SWEPT = frozenset(
    {
        "context", "scenario", "calibration", "profiles", "sweep", "steps", "seeds", "seed", "backend", "jobs", "runs",
        "most_samples", "trace", "history", "accept_lower_bound", "lengths",
    }
)  # fmt: skip


def simulate(
    context: typer.Context,
    scenario: flags.ScenarioFile = None,
    model: flags.ModelName = None,
    gpu: flags.GpuName = None,
    prompts: flags.Prompts = None,
    group: flags.Group = None,
    prompt_tokens: flags.PromptTokens = None,
    response_tokens: flags.ResponseTokens = None,
    response_cv: of.ResponseCv = None,
    max_response_tokens: of.MaxResponseTokens = None,
    length_distribution: of.LengthDistribution = None,
    lengths: of.LengthFile = None,
    group_correlation: of.GroupCorrelation = None,
    length_drift: of.LengthDrift = None,
    mode: of.Mode = None,
    max_staleness: of.MaxStaleness = None,
    over_stale: of.OverStale = None,
    queue_order: of.QueueOrder = None,
    queue_steps: of.QueueSteps = None,
    oversampling: of.Oversampling = None,
    unfinished: of.Unfinished = None,
    kept_fraction: of.KeptFraction = None,
    micro_batches: of.MicroBatches = None,
    instances: flags.Instances = None,
    rollout_gpus: flags.RolloutGpus = None,
    trainer_gpus: flags.TrainerGpus = None,
    gpus_per_instance: flags.GpusPerInstance = None,
    routing: of.Routing = None,
    per_instance: flags.PerInstance = None,
    accept_lower_bound: flags.AcceptLowerBound = False,
    concurrency: of.Concurrency = None,
    step_fixed: of.StepFixed = None,
    step_sample: of.StepSample = None,
    step_kv_token: of.StepKvToken = None,
    step_prompt_token: of.StepPromptToken = None,
    kv_cache_tokens: of.KvCacheTokens = None,
    train_seconds: flags.TrainSeconds = None,
    sync_seconds: of.SyncSeconds = None,
    sync_every: of.SyncEvery = None,
    sync_way: of.SyncWay = None,
    kv_after_sync: of.KvAfterSync = None,
    swap_seconds: of.SwapSeconds = None,
    turns: of.Turns = None,
    tool_seconds: of.ToolSeconds = None,
    tool_cv: of.ToolCv = None,
    tool_tokens: of.ToolTokens = None,
    verify_seconds: of.VerifySeconds = None,
    verify_cv: of.VerifyCv = None,
    verify_workers: of.VerifyWorkers = None,
    straggler_fraction: of.StragglerFraction = None,
    straggler_slowdown: of.StragglerSlowdown = None,
    losses_per_hour: of.LossesPerHour = None,
    notice_seconds: of.NoticeSeconds = None,
    restart_seconds: of.RestartSeconds = None,
    failures_per_hour: of.FailuresPerHour = None,
    trainer_restart_seconds: of.TrainerRestartSeconds = None,
    checkpoint_every: of.CheckpointEvery = None,
    lent_instances: of.LentInstances = None,
    lend_seconds: of.LendSeconds = None,
    gpu_hour: flags.GpuHour = None,
    rollout_gpu_hour: flags.RolloutGpuHour = None,
    trainer_gpu_hour: flags.TrainerGpuHour = None,
    price: flags.Price = None,
    calibration: CalibrationFile = None,
    steps: of.Steps = None,
    seeds: of.Seeds = None,
    seed: of.Seed = "0",
    sweep: of.Sweep = None,
    backend: of.Backend = None,
    jobs: of.Jobs = None,
    runs: of.Runs = None,
    most_samples: of.MostSamples = None,
    trace: of.Trace = None,
    history: of.History = None,
    profiles: flags.Profiles = None,
) -> Report:
    """
    What the loop does over time: step time, idle, staleness.

    Example:  rlsize simulate --mode async --max-staleness 4 --instances 13 --per-instance 4000 --concurrency 64
    --prompts 64 --group 8 --response-tokens 1536 --train-seconds 20 --sync-seconds 2 --steps 200
    """
    said = {name: value for name, value in locals().items() if name not in {"context", "scenario", "profiles"}}
    inputs = Inputs(scenario, profiles)
    orders = _orders(inputs, said, context.obj or {})
    if sweep:
        from rlsize.commands.simulate_grid import grid_report

        return grid_report(inputs, said, orders, [name for name in said if name not in _NOT_SWEPT])
    return _answer(inputs, said, orders)


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """
    How to run.

    Args:
        steps: Optimizer steps of each run. [1]
        seeds: Seeds of the runs.
        backend: Where they work.
        workers: How many at the same time; -1 for as many as there are cores.
        most_samples: That all of them may generate. [1]
        runs: File of finished runs; None for none.
        output: The flags that every command has.
        trace: File for a trace; None for none.
        history: File for everything that happens; None for none.
    """

    steps: int
    seeds: tuple[int, ...]
    backend: str
    workers: int
    most_samples: float
    runs: str | None
    output: Mapping[str, Any]
    trace: str | None
    history: str | None

    @property
    def draws(self) -> bool:
        """Whether a picture is wanted."""
        return bool(self.output.get("plot"))

    @property
    def force(self) -> bool:
        """Whether files may be replaced."""
        return bool(self.output.get("force"))


def _orders(inputs: Inputs, said: Mapping[str, Any], output: Mapping[str, Any]) -> Orders:
    from rlsize.commands.simulate_record import check_targets
    from rlsize.commands.simulate_runs import MOST_SAMPLES, backend_fault

    def number(name: str, most: float, whole: bool = True) -> float | None:
        kind = Quantity("count", whole=whole, least=1.0, most=most)
        figure = inputs.number(name, f"--{name.replace('_', '-')}", said[name], kind)
        return figure.number if figure.known else None

    steps, count = int(number("steps", 1e6) or _STEPS), int(number("seeds", 1000) or _SEEDS)
    for key, value in (("steps", _STEPS), ("seeds", _SEEDS)):
        if key not in inputs.used:
            inputs.keep(Figure(key=key, value=value, provenance="default", source=f"default of --{key}"))
    seed = str(said["seed"])
    counts = seed.isascii() and seed.isdecimal() and len(seed) <= _LONGEST_SEED
    if not counts:
        inputs.fault(f"{seed[:20]!r} is not a whole number from 0 on", "--seed", "write 0 or 42")
    first = int(seed) if counts else 0
    backend = "processes" if said["backend"] is None else said["backend"]
    fault = backend_fault(backend)
    if fault is not None:
        inputs.faults.append(fault)
    workers, most = number("jobs", 4096), number("most_samples", 1e15, whole=False)
    for key in ("jobs", "most_samples"):
        inputs.used.pop(key, None)  # how the work is done says nothing about the answer
    orders = Orders(
        steps=steps,
        seeds=tuple(range(first, first + count)),
        backend=backend,
        workers=-1 if workers is None else int(workers),
        most_samples=MOST_SAMPLES if most is None else most,
        runs=said["runs"],
        output=output,
        trace=said["trace"],
        history=said["history"],
    )
    check_targets(inputs, orders)
    return orders


def _answer(inputs: Inputs, said: Mapping[str, Any], orders: Orders) -> Report:
    from rlsize.commands.simulate_record import record
    from rlsize.commands.simulate_runs import Job
    from rlsize.commands.simulate_setting import simulated
    from rlsize.reports.simulate import Answer, simulate_report
    from rlsize.simulator.causes import rungs
    from rlsize.simulator.first_order import first_order

    found = simulated(inputs, said)
    ladder = rungs(found.setting)[:-1]  # the last rung is the first run itself
    own = [
        Job(simulated=found, steps=orders.steps, seed=seed, keeps_ledger=orders.draws and seed == orders.seeds[0])
        for seed in orders.seeds
    ]
    simpler = [_simpler(found, rung, orders) for _, rung in ladder]
    done, interrupted = run([*own, *simpler], orders)
    over = [done[index] for index in range(len(own)) if index in done]
    outcomes = tuple(result.outcome for result in over if result.outcome is not None)
    if len(outcomes) < len(over):
        raise stands_still(next(result for result in over if result.outcome is None))
    if not outcomes:
        raise nothing_finished()
    simple = [done[len(own) + i].outcome for i in range(len(ladder)) if len(own) + i in done]
    rows = [(name, outcome) for (name, _), outcome in zip(ladder, simple, strict=False) if outcome is not None]
    recorded = None
    if not interrupted:
        try:
            recorded = record(found, orders, over[0])
        except KeyboardInterrupt:
            interrupted = True
    if interrupted:
        inputs.warnings.append(f"interrupted: {len(outcomes)} of {len(own)} runs are in this answer")
    answer = Answer(
        setting=found.setting,
        outcomes=outcomes,
        first_order=first_order(found.setting, found.pools),
        ladder=tuple(rows) if len(rows) == len(ladder) else (),
        recorded=recorded,
    )
    report = simulate_report(answer, inputs.shown(), inputs.warnings, inputs.notes)
    return leave(report, orders) if interrupted else report


def _simpler(found: Simulated, rung: Any, orders: Orders) -> Job:
    from dataclasses import replace

    from rlsize.commands.simulate_runs import Job

    return Job(simulated=replace(found, setting=rung), steps=orders.steps, seed=orders.seeds[0])


def run(jobs: Sequence[Job], orders: Orders) -> tuple[dict[int, Done], bool]:
    """Finished runs by the number of the job, and whether Ctrl-C kept the others from it."""
    from rlsize.commands.simulate_kept import Kept
    from rlsize.commands.simulate_runs import check_bounds, run_all
    from rlsize.shell.progress import progress

    check_bounds(jobs, orders.most_samples)
    kept = Kept(orders.runs) if orders.runs is not None else None
    with progress() as say:
        done = run_all(jobs, say, backend=orders.backend, workers=orders.workers, kept=kept)
    return done, len(done) < len(jobs)


def stands_still(result: Done) -> UnfinishedError:
    """What to say of a loop that makes no more optimizer steps."""
    todo = "loosen the cap, the queue or the cache, or let less go wrong; if they look right, report this"
    return UnfinishedError(Fault(f"{result.stood_still}: what it waits for does not come", "", todo))


def nothing_finished() -> typer.Exit:
    """Say that Ctrl-C came before there was anything to answer with."""
    sys.stderr.write("interrupted: no run was finished\n")
    return typer.Exit(INTERRUPTED)


def leave(report: Report, orders: Orders) -> Report:
    """Say what is finished, and go with the exit code of an interruption."""
    from rlsize.shell.answer import deliver

    deliver(report, {**orders.output, "plot": None})
    sys.stdout.flush()
    raise typer.Exit(INTERRUPTED)
