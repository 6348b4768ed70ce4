"""`rlsize simulate`: what the loop does over time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from rlsize.errors import Refused
from rlsize.reports.report import Report
from rlsize.shell.command import option
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import AGENTS, PRICES, REFUSED, asks

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.commands.simulate.runs import Job
    from rlsize.commands.simulate.setting import Simulated
    from rlsize.loop.assumed import Assumption

_SHORT_STEPS = 40
_SHORT_SAMPLES = 100_000  # that the kernel plays in a moment
LOOP = (
    "model", "gpu", "mode", "gpus", "rollout_gpus", "trainer_gpus", "instances", "gpus_per_instance", "max_staleness",
    "late_samples", "queue_order", "queue_steps", "oversampling", "kept_fraction", "micro_batches", "redealing",
    "resizes",
)  # fmt: skip
LENGTHS = (
    "prompts_per_step", "group_size", "prompt_tokens", "response_tokens", "response_cv", "max_response_tokens",
    "length_distribution", "lengths_file", "group_correlation", "length_drift",
)  # fmt: skip
ENGINE = (
    "instance_tokens_per_second", "accept_lower_bound", "routing", "concurrency", "step_fixed", "step_sample",
    "step_points", "more_instances", "step_kv_token", "step_prompt_token", "kv_cache_tokens",
)  # fmt: skip
SYNC = ("train_seconds", "overhead_seconds", "sync_seconds", "sync_every", "sync_way", "kv_after_sync", "swap_seconds")
TROUBLE = (
    "straggler_fraction", "straggler_slowdown", "losses_per_hour", "lost_together", "notice_seconds", "restart_seconds",
    "failures_per_hour", "trainer_restart_seconds", "checkpoint_every", "lent_instances", "lend_seconds",
)  # fmt: skip
SWEPT = tuple(
    key
    for key in (*LOOP, *LENGTHS, *ENGINE, *SYNC, *AGENTS, *TROUBLE, *PRICES)
    if key not in {"lengths_file", "accept_lower_bound", "step_points", "resizes", "more_instances"}
)
"""What a grid may vary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """
    How to run.

    Args:
        steps: Optimizer steps of each run; 0 for as many as its loop needs. [1]
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


@asks(
    once=True,
    Loop_and_policies=LOOP,
    Lengths=LENGTHS,
    Engine=ENGINE,
    Training_and_sync=SYNC,
    Tools_and_verifier=AGENTS,
    Trouble=TROUBLE,
    Prices=PRICES,
    Runs=(("simulated_steps", "--steps"), "seeds", "seed", "parallel_runs", "most_samples"),
    Inputs=("calibration",),
    Refused=REFUSED,
)
def simulate(
    inputs: Inputs,
    context: typer.Context,
    sweep: list[str] | None = option(
        "--sweep",
        "Run a grid: max_staleness=0:8, rollout_gpus=16:48:8, mode=sync,async; repeatable.",
        "Runs",
        "KEY=RANGE",
    ),
    backend: str | None = option(
        "--backend", "Where runs work: processes, threads, ray or dask.", "Runs", metavar="NAME"
    ),
    runs: str | None = option(
        "--runs", "Keep finished runs in this file, and take from it what is there.", "Runs", "FILE"
    ),
    trace: str | None = option("--trace", "Write the first run as a Chrome/Perfetto trace.", "Output", metavar="FILE"),
    history: str | None = option(
        "--history", "Write everything that happens in the first run, as JSON Lines.", "Output", metavar="FILE"
    ),
) -> Report:
    """
    What the loop does over time: step time, idle, staleness.

    Example:  rlsize simulate --mode async --max-staleness 4 --instances 13 --per-instance 4000 --concurrency 64
    --prompts 64 --group 8 --response-tokens 1536 --train-seconds 20 --sync-seconds 2 --steps 200
    """
    from rlsize.commands.simulate.runs import MOST_SAMPLES, backend_fault, check_targets

    fault = backend_fault("processes" if backend is None else backend)
    inputs.faults += [] if fault is None else [fault]
    steps, count = inputs.ask("simulated_steps", assume=False), inputs.ask("seeds")
    workers, most = inputs.apart().ask("parallel_runs"), inputs.apart().ask("most_samples")
    seed, _ = inputs.name("seed")
    first = _first_seed(inputs, str(seed or "0"))
    orders = Orders(
        steps=round(steps.number) if steps.known else 0,
        seeds=tuple(range(first, first + round(count.number) if count.known else first + 1)),
        backend=backend or "processes",
        workers=round(workers.number) if workers.known else -1,
        most_samples=most.number if most.known else MOST_SAMPLES,
        runs=runs,
        output=context.obj or {},
        trace=trace,
        history=history,
    )
    check_targets(inputs, orders)
    if sweep:
        from rlsize.commands.simulate.grid import grid_report

        return grid_report(inputs, sweep, orders)
    return _answer(inputs, orders)


def _first_seed(inputs: Inputs, text: str) -> int:
    longest = 18
    if text.isascii() and text.isdecimal() and len(text) <= longest:
        return int(text)
    inputs.fault(f"{text[:20]!r} is not a whole number from 0 on", "--seed", "write 0 or 42")
    inputs.texts.pop("seed", None)  # told once
    return 0


def _answer(inputs: Inputs, orders: Orders) -> Report:
    from rlsize.commands.simulate.report import SimulationAnswer, simulate_report
    from rlsize.commands.simulate.runs import Job, nothing_finished, record, run, settled
    from rlsize.commands.simulate.setting import simulated
    from rlsize.loop.answer import answer_of
    from rlsize.simulator.first_order import first_order, rungs
    from rlsize.simulator.run import stands_still

    found = simulated(inputs)
    results = {} if found.loop is None else answer_of(found.loop).results
    keys = ("train_seconds", "sync_seconds", "sync_exposed_seconds", "overhead_seconds")
    parts = tuple(results[key] for key in keys if key in results and results[key].known)
    orders = settled(orders, inputs, [found.setting])
    ladder = rungs(found.setting)[:-1]  # the last rung is the first run itself
    own = [Job(setting=found.setting, pools=found.pools, steps=orders.steps, seed=seed) for seed in orders.seeds]
    simpler = [replace(own[0], setting=rung) for _, rung in ladder]
    own[0] = replace(own[0], keeps_ledger=orders.draws)
    done, interrupted = run([*own, *simpler], orders)
    over = [done[index] for index in range(len(own)) if index in done]
    outcomes = tuple(result.outcome for result in over if result.outcome is not None)
    if len(outcomes) < len(over):
        raise stands_still(next(result for result in over if result.outcome is None).steps)
    if not outcomes:
        raise nothing_finished()
    simple = [done[len(own) + i].outcome for i in range(len(ladder)) if len(own) + i in done]
    rows = [(name, outcome) for (name, _), outcome in zip(ladder, simple, strict=False) if outcome is not None]
    recorded = None
    if not interrupted:
        try:
            recorded = record(found.setting, orders, over[0])
        except KeyboardInterrupt:
            interrupted = True
    if interrupted:
        inputs.warnings.append(f"interrupted: {len(outcomes)} of {len(own)} runs are in this answer")
    answer = SimulationAnswer(
        setting=found.setting,
        outcomes=outcomes,
        first_order=first_order(found.setting, found.pools),
        parts=parts,
        ladder=tuple(rows) if len(rows) == len(ladder) else (),
        recorded=recorded,
        done=tuple(done.values()),
        assumed=None if interrupted else _assumed(inputs, found, over[0].compiled, own[0]),
    )
    return replace(simulate_report(answer, inputs), interrupted=interrupted)


def _assumed(inputs: Inputs, found: Simulated, compiled: bool, job: Job) -> tuple[Assumption, ...] | None:
    """What nobody said and that moves the step, by short runs where they are quick, else by the closed form."""
    from rlsize.commands.simulate.runs import run_job
    from rlsize.commands.simulate.setting import simulated
    from rlsize.loop.assumed import assumptions
    from rlsize.simulator.first_order import first_order

    steps = min(job.steps, _SHORT_STEPS)
    plays = compiled and job.samples * steps / job.steps < _SHORT_SAMPLES

    def step(said: Any) -> float:
        loop = simulated(said)
        other = replace(job, setting=loop.setting, pools=loop.pools, steps=steps, keeps_ledger=False)
        run = run_job(other, compiled=True) if plays else None
        if run is not None and run.outcome is not None:
            return float(run.outcome.measures["step_seconds"])
        first = first_order(loop.setting, loop.pools)["step_seconds"]
        if first is None:
            raise Refused("no closed form")
        return first

    return assumptions(inputs, found.loop, answer=step)
