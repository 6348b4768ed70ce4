"""Made-up loops whose trouble is known: logs and watched engines, with noise that steps hand on to each other."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from rlsize.estimates.engine_load import engine_load
from rlsize.estimates.observing import observation
from rlsize.estimates.run_summary import run_summary
from rlsize.facts.counters import EngineCounters, Snapshot, Totals
from rlsize.facts.evidence import EngineLoad, Evidence
from rlsize.facts.figure import Figure
from rlsize.facts.observations import Observation
from rlsize.facts.run_log import RunLog, RunMode, StepRecord

SAMPLES, MEAN_LENGTH, PROMPT, GROUP, BLOCK = 512, 1536.0, 400.0, 8, 16
WINDOW, LOOK = 300.0, 10.0
INSTANCE_RATE = 4000.0


def wobble(count: int, *, memory: float = 0.5, size: float = 0.04, seed: int = 1) -> list[float]:
    """Factors around 1 that remember the one before."""
    draws = random.Random(seed)
    found, last = [], 0.0
    for _ in range(count):
        last = memory * last + (1 - memory**2) ** 0.5 * draws.gauss(0.0, 1.0)
        found.append(1.0 + size * last)
    return found


def log(
    train: float = 20.0,
    *,
    wait: float = 0.3,
    sync: float = 0.6,
    other: float = 0.2,
    steps: int = 60,
    mode: RunMode = "async",
    seed: int = 1,
    drift: Callable[[float], float] = lambda _: 1.0,
    **more: Callable[[float], float],
) -> RunLog:
    """
    An asynchronous run.

    Args:
        train: Busy seconds of a step, of which a fifth are log-probs. [s]
        wait: Seconds of waiting, as logged. [s]
        sync: Seconds of weight sync. [s]
        other: Seconds that nothing is booked for. [s]
        steps: Optimizer steps.
        mode: As the log tells.
        seed: Of the noise.
        drift: Factor of the train time at a share of the run.
        more: Further fields, by share of the run.
    """
    rows = []
    for index, factor in enumerate(wobble(steps, seed=seed)):
        place = index / steps
        busy = train * factor * drift(place)
        rows.append(
            StepRecord(
                step=index + 1,
                step_seconds=busy + wait + sync + other,
                wait_seconds=wait,
                sync_seconds=sync,
                logprob_seconds=0.2 * busy,
                update_seconds=0.8 * busy,
                samples=SAMPLES,
                response_tokens=SAMPLES * MEAN_LENGTH,
                prompt_tokens=SAMPLES * PROMPT,
                **{name: of(place) for name, of in more.items()},
            )
        )
    keys = {"wait_seconds": "timing/wait", "step_seconds": "timing/step"}
    return RunLog(source="made up", framework="verl", form="console", mode=mode, steps=tuple(rows), keys=keys)


def engines(
    rates: Sequence[float],
    *,
    running: float = 64.0,
    waiting: float = 12.0,
    hits: float = 0.84,
    preempted: float = 0.0,
    sync_share: float = 0.0,
) -> tuple[Observation, EngineLoad]:
    """
    Engines watched for five minutes.

    Args:
        rates: Response tokens per second of each. [token/s]
        running: Samples in the batch. [1]
        waiting: Samples that wait. [1]
        hits: Share of prompt tokens found in the prefix cache. [1]
        preempted: Samples thrown out per finished one. [1]
        sync_share: Share of the time in weight syncs. [1]
    """

    def page(name: str, rate: float, now: float) -> EngineCounters:
        tokens = rate * now
        done = tokens / MEAN_LENGTH
        prompts = PROMPT * done
        return EngineCounters(
            instance=name,
            engine="vllm",
            generation_tokens=tokens,
            prompt_tokens=prompts,
            prefix_cache_queries=prompts,
            prefix_cache_hits=hits * prompts,
            preemptions=preempted * done,
            finished_requests=done,
            requests_running=running,
            requests_waiting=waiting,
            response_tokens=Totals(sum=MEAN_LENGTH * done, count=done),
            prompt_lengths=Totals(sum=PROMPT * done, count=done),
            block_size=BLOCK,
            weight_syncs=now / 20.0,
            weight_sync_seconds=sync_share * now,
            prefix_caching=True,
        )

    moments = [LOOK * look for look in range(int(WINDOW / LOOK) + 1)]
    histories = {
        f"engine-{index}": [Snapshot(seconds=now, counters=page(f"engine-{index}", rate, now)) for now in moments]
        for index, rate in enumerate(rates)
    }
    seen = observation(histories, {}, WINDOW, group_size=GROUP)
    return seen, engine_load(histories)


def given(key: str, value: float) -> Figure:
    """A figure that the user gave."""
    return Figure(key=key, value=value, source=f"--{key}")


def evidence(run: RunLog | None = None, fleet: tuple[Observation, EngineLoad] | None = None, **said: Any) -> Evidence:
    """Evidence from a log, engines, and figures by field."""
    figures = {name: given(name, value) for name, value in said.items()}
    parts: dict[str, Any] = {"waste": given("tokens_generated_per_trained_token", 1.0), **figures}
    if run is not None:
        parts["run"] = run_summary(run)
    if fleet is not None:
        parts["fleet"], parts["load"] = fleet
    return Evidence(**parts)
