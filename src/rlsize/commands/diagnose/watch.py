"""`rlsize watch`: the verdict of `diagnose` at each step of a log that grows, or look at engines; what is foreseen."""

from __future__ import annotations

import sys
import time
from collections import deque
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from rlsize.commands.diagnose import FAILING, evidence_of, failing_words, fails, limits_and_rates
from rlsize.commands.diagnose.words import headline
from rlsize.equations import imbalance
from rlsize.errors import Fault, UnfinishedError
from rlsize.estimates.figures import apply, numbers
from rlsize.facts.figure import Figure, absent
from rlsize.shell.access import blamed
from rlsize.shell.command import argument, option, switch, tell
from rlsize.shell.inputs import Inputs
from rlsize.shell.live_engines import (
    WatchFlags,
    check_selectors,
    engines_of,
    from_prometheus,
    live_looks,
    watched_engines,
)
from rlsize.shell.named_inputs import NamedInputs, is_address, printed_launch, sort_of
from rlsize.shell.observation import POOLS, pools_of
from rlsize.shell.quantity_flags import Changes, Unassumed, asks
from rlsize.units import printable, show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rlsize.estimates.forecast import Forecast
    from rlsize.facts.evidence import Diagnosis
    from rlsize.facts.run_log import RunLog, RunSummary
    from rlsize.shell.live_engines import Engines, Watched
    from rlsize.shell.observation import ObservedPools
    from rlsize.shell.webhook import Webhook

_JUDGED = 60  # newest steps that the verdict is of
_TRENDS = 240  # newest steps that trends are of
_AT_ONCE = 20  # new steps that are judged one by one
_SILENT = 20  # steps without it after which a forecast is told again
_FORECAST = "forecast"
_WORDS = [word for word in FAILING if word != "worse"]
_SEED = 0  # the draws of a bootstrap are the same each time, so that an answer is
_MOVED = 0.1  # share by which a figure has moved that is told when the verdict changes
_SHOWN = {
    "step_seconds": "step", "trainer_idle_fraction": "trainer idle", "sync_pause_fraction": "sync",
    "queued_samples": "queued", "staleness_steps": "staleness", "mean_response_tokens": "response",
    "tokens_per_second": "an engine", "requests_running": "running", "requests_waiting": "waiting",
}  # fmt: skip
_FORESEEN = {
    "longest_response_tokens": "the longest sample no longer fits",
    "peak_reserved_bytes": "the trainer's GPUs are full",
    "queued_samples": "the queue is full",
    "largest_staleness_steps": "samples are as stale as they may be",
}


class Seen(NamedTuple):
    """
    A step, or a look at engines without a trainer.

    Args:
        at: Which.
        told: Figures that are told of it, by key.
        found: What it means.
        ahead: What is foreseen.
    """

    at: str
    told: dict[str, float]
    found: Diagnosis
    ahead: tuple[Forecast, ...] = ()

    @property
    def line(self) -> str:
        """It in a line."""
        told = [f"{_SHOWN[key]} {show(value, key)}" for key, value in self.told.items()]
        return f"{self.at}: {'; '.join(filter(None, (self.found.verdict, ', '.join(told))))}"


class _Watch(NamedTuple):
    """
    What a log is judged by.

    Args:
        inputs: What was said.
        pools: The pools of the run.
        asked: What is accepted, and what is given of both rates.
        limits: Limits of columns.
        skip: Rows at the start that do not count; None to find them.
        said: Where engines are looked at, beside the log.
        told: What went wrong there.
        last: The engines as they were last, where a Prometheus has them and the trainer.
        live: What looks at engines by themselves; None where none are named.
        patient: Whether engines that cannot be read are waited for.
    """

    inputs: Inputs
    pools: ObservedPools
    asked: Mapping[str, Figure]
    limits: Mapping[str, Figure]
    skip: int | None
    said: WatchFlags
    told: list[str]
    last: list[Engines]
    live: Callable[[], Watched] | None
    patient: bool

    def log(self) -> RunLog:
        """
        The trainer as the Prometheus has it now.

        Raises:
            InputError: It is asked for what it has not.
            UnfinishedError: It does not answer, or has no trainer.
        """
        if self.live is not None:
            url = str(self.said.prometheus)
            watched = from_prometheus(self.inputs.apart(), url, self.said, recorded=True, trainer=True, engines=False)
        else:
            self.last[:] = [watched_engines(self.inputs.apart(), NamedInputs(), self.said, recorded=True, trainer=True)]
            watched = self.last[0].watched
        if watched.trainer is None or not watched.trainer.ends:
            todo = "does it scrape `rlsize export`? --trainer-selector and --window choose; or name the log"
            raise UnfinishedError(Fault("has no steps of a trainer in the window", "--prometheus", todo))
        return watched.trainer.log

    def seen(self, log: RunLog, count: int, engines: Engines | None) -> Seen | None:
        """The state after so many rows; None where none of them is settled."""
        from rlsize.estimates.forecast import forecast

        run, trends = (self._summed(log, count, most) for most in (_JUDGED, _TRENDS))
        if not run.steps:
            return None
        limits = [(key, one.number) for key, one in self._limits(run).items() if key in trends.columns and one.known]
        ahead = [one for key, limit in limits if (one := forecast(key, trends.columns[key], limit)) is not None]
        now = self.judged(f"step {log.steps[count - 1].step}", run, engines)
        return now._replace(ahead=tuple(sorted(ahead, key=lambda one: one.steps)))

    def judged(self, at: str, run: RunSummary, engines: Engines | None) -> Seen:
        """What a trainer and engines speak for, as far as there are any."""
        import numpy as np

        from rlsize.verdicts.diagnosis import diagnosis

        evidence, _ = evidence_of(self.inputs.apart(), run, self.pools, self.asked)
        told = {key: evidence.run.figure(key).value for key in _SHOWN}
        if engines is not None:
            evidence = replace(evidence, fleet=engines.seen, load=engines.load, tail_of_wait=engines.tail)
            rate, load = engines.seen.mean, engines.load
            told |= {"tokens_per_second": rate, "requests_running": load.running, "requests_waiting": load.waiting}
        known = {key: value for key, value in told.items() if isinstance(value, int | float)}
        return Seen(at, known, diagnosis(evidence, np.random.default_rng(_SEED)))

    def engines(self) -> Engines | None:
        """
        The engines as they are now; None where none answers, which is told of once.

        Raises:
            InputError: They are asked for what they have not.
            UnfinishedError: None answers, and they are not waited for.
        """
        if self.last or not (self.live or self.said.prometheus):
            return self.last[0] if self.last else None
        try:
            if self.live is not None:
                found = engines_of(self.inputs.apart(), self.live())
            else:
                found = watched_engines(self.inputs.apart(), NamedInputs(), self.said, recorded=True)
        except UnfinishedError as error:
            if self.live and not self.patient:
                raise
            if self.told != [str(error)]:
                tell(error)
            self.told[:] = [str(error)]
            return None
        if found.watched.interrupted:
            raise KeyboardInterrupt
        self.told.clear()
        return found

    def _summed(self, log: RunLog, count: int, most: int) -> RunSummary:
        from rlsize.estimates.run_summary import run_summary

        first = max(self.skip or 0, count - most)
        warm_up = None if self.skip is None and first == 0 else 0
        return run_summary(replace(log, steps=log.steps[first:count]), warm_up)

    def _limits(self, run: RunSummary) -> dict[str, Figure]:
        """What was said, else what follows from a staleness cap and the samples of a step."""
        cap, samples = self.asked["max_staleness"], run.figure("samples_per_step")
        queue = self.limits["queued_samples"]
        if not queue.known and cap.known and cap.number > 0:
            queue = apply(
                "queue_limit_samples",
                imbalance.queue_allowed,
                max_staleness=cap,
                samples_per_step=samples,
                in_flight=samples,
            )
        prompt, held = run.figure("mean_prompt_tokens"), self.limits["longest_response_tokens"]
        if held.known and prompt.known:
            held = replace(held, value=max(0.0, held.number - prompt.number))
        return {
            **self.limits,
            "queued_samples": queue,
            "largest_staleness_steps": cap,
            "longest_response_tokens": held,
        }


@asks(
    beside_files=True,
    Inputs=(
        "consumption_tokens_per_second", "instance_tokens_per_second", "accept_lower_bound", "headroom",
        "tokens_generated_per_trained_token", "train_seconds", *POOLS, "skipped_steps", "every_seconds",
        "timeout_seconds",
    ),
    Limits=(
        "idle_target_fraction", "sync_target_fraction", Unassumed("max_staleness"), "queue_limit_samples",
        "kv_cache_tokens", "gpu",
    ),
)  # fmt: skip
def watch(
    inputs: Inputs,
    said: WatchFlags,
    sources: list[str] | None = argument(
        "SOURCE...",
        "A training log that grows, engines (http://HOST:PORT), and last the run's scenario or launch; with "
        "--prometheus the log may be left out.",
    ),
    fail_on: str | None = option(
        "--fail-on",
        "End with 1 on any of these: any, forecast, or verdicts such as starving, with commas.",
        "Output",
        "WORDS",
    ),
    webhook: str | None = option(
        "--webhook", "A file with the address of a webhook; without it, RLSIZE_WEBHOOK has one.", "Output", "FILE"
    ),
    once: bool = switch("--once", "Say it of the log as it is, and end."),
    changes: Changes = None,
) -> None:
    """
    Follow a training log, engines, or a Prometheus: the verdict at each step, what changed, what is ahead.

    Example:  rlsize watch examples/operate/starving.jsonl --max-staleness 4 --kv-cache-tokens 400000 --once
    """
    from rlsize.readers.http_pages import masked
    from rlsize.shell.webhook import read_webhook

    urls = [name for name in sources or [] if is_address(name)]
    files = [name for name in sources or [] if name not in urls]
    log, scenario = _files(inputs, files, alone=not (urls or said.prometheus))
    with blamed(inputs, scenario or "--set"):
        inputs.read(scenario, changes or [])
    inputs.load_rates()
    skip, every, pools = inputs.ask("skipped_steps"), inputs.ask("every_seconds"), pools_of(inputs)
    rows = int(skip.number) if skip.known else None
    judge = _Watch(
        inputs, pools, limits_and_rates(inputs), _said_limits(inputs), rows, said, [], [], None, patient=not once
    )
    words = failing_words(inputs, fail_on, [*_WORDS, _FORECAST], compared=True)
    hook: Webhook | None = None
    with blamed(inputs, "--webhook"):
        hook = read_webhook(webhook)
    read = _reader(judge, log, engines=bool(urls))
    if said.pages:
        inputs.fault("is for engines that nobody follows", "--pages", "name them as they run: http://HOST:PORT")
    if urls:
        judge = judge._replace(live=live_looks(inputs, urls, said, moving=not once))
    inputs.settle()
    sys.stderr.write("".join(f"warning: {text}\n" for text in inputs.warnings))
    if said.prometheus:
        with suppress(UnfinishedError):  # what is wrong with how it is asked is told before anything is watched
            judge.log() if urls else judge.engines()
    read = read or (judge.log if said.prometheus else None)
    name = " ".join([log] if log else [*map(masked, [*urls, *([said.prometheus] if said.prometheus else [])])])
    failed = False
    with _screen(name) as show_:
        for now, news in _news(_states(log, read, None if once else every.number, judge)):
            show_(now, news)
            if hook is not None and news:
                hook.send("\n".join((f"{name}, {now.line}", *news)))
            failed = fails(words, now.found, ()) or (_FORECAST in words and bool(now.ahead))
            if failed:
                break
        if hook is not None:
            hook.finish()
    if failed:
        raise typer.Exit(1)


def _files(inputs: Inputs, named: list[str], *, alone: bool) -> tuple[str | None, str | None]:
    """
    The log, and the scenario or launch after it; a single file beside engines may be either, told by content.

    Args:
        inputs: Takes the faults.
        named: The files.
        alone: Whether nothing else is followed.
    """
    for name in named[2:]:
        inputs.fault("is a third file", name, "name a log and a scenario")
    if not all(name.strip() for name in named):
        inputs.fault("an empty name", "SOURCE", "is a variable of the shell not set?")
        return None, None
    if len(named) == 1 and not alone and Path(named[0]).exists():
        with blamed(inputs, named[0]):
            sort = sort_of(named[0])
            if sort == "own" or (sort == "launch" and printed_launch(inputs, named)):
                return None, named[0]
    log, scenario, *_ = (*named, None, None)
    return log, scenario


def _reader(judge: _Watch, log: str | None, *, engines: bool) -> Callable[[], RunLog] | None:
    """What reads the steps of a log; None where none is named."""
    from rlsize.shell.observation import log_reader

    inputs, said = judge.inputs, judge.said
    lone = log is None and said.prometheus is not None
    if said.trainer_selector is not None and not lone:
        inputs.fault("is for a Prometheus without a log", "--trainer-selector", "leave it out, or the log")
    if engines and log is not None and said.prometheus:
        inputs.fault("is named beside a log and engines, which say all", "--prometheus", "leave it out, or the URLs")
    check_selectors(inputs, said)
    read: Callable[[], RunLog] | None = None
    if log is not None:
        with blamed(inputs, log):
            read = log_reader(log, said.format, said.map or ())
    for flag in [flag for flag, value in (("--format", said.format), ("--map", said.map)) if value and log is None]:
        inputs.fault("is for a training log, and none is named", flag, "name it, or leave this out")
    if log is None and not (lone or engines):
        todo = "name a training log, engines as in `rlsize watch http://engine-0:8000`, or a --prometheus"
        inputs.fault("nothing to follow is named", "SOURCE", todo)
    return read


def _said_limits(inputs: Inputs) -> dict[str, Figure]:
    """Limits of columns, as far as they were said."""
    from rlsize.estimates.constants_memory import STAGE
    from rlsize.estimates.engine_memory import visible_memory

    gpu = inputs.gpu("trainer")
    memory = absent("gpu_memory_bytes", "--gpu")
    if gpu is not None:
        held = visible_memory(numbers, gpu, {one.name: one.value for one in STAGE.constants})
        memory = Figure(key="gpu_memory_bytes", value=float(held), source=gpu.name)
    return {
        "longest_response_tokens": inputs.ask("kv_cache_tokens"),
        "peak_reserved_bytes": memory,
        "queued_samples": inputs.ask("queue_limit_samples"),
    }


def _states(log: str | None, read: Callable[[], RunLog] | None, every: float | None, judge: _Watch) -> Iterator[Seen]:
    """The state after the last step that is there, and after each that comes, looked for every so many seconds."""
    from rlsize.facts.run_log import RunSummary
    from rlsize.shell.observation import followed

    before, last, begun = 0, -1, time.monotonic()
    looks: Iterable[RunLog | None] = [None]
    if every is not None:
        looks = followed(log, read, every, always=judge.live is not None)
    elif read is not None:
        looks = [read()]
    for found in looks:
        engines = judge.engines()
        if read is None and engines is not None:
            yield judge.judged(f"after {time.monotonic() - begun:.0f} s", RunSummary(), engines)
        if found is None:
            continue
        count = len(found.steps)
        if log is None:  # rows of a window that moves
            before = sum(1 for one in found.steps if one.step <= last)
        first = count if last < 0 or count < before else max(before + 1, count - _AT_ONCE)
        for upto in range(first, count + 1):
            if (now := judge.seen(found, upto, engines)) is not None:
                yield now
        before, last = count, found.steps[-1].step if found.steps else last


def _news(states: Iterator[Seen]) -> Iterator[tuple[Seen, list[str]]]:
    """Each state, with what is new in it."""
    before: Seen | None = None
    told: dict[str, int] = {}  # what was foreseen, and when last; a log's own numbers may go back
    for place, now in enumerate(states):
        news = []
        if before is None or before.found.verdict != now.found.verdict:
            moved = [] if before is None else _moved(before.told, now.told)
            was = f" (was {before.found.verdict})" if before is not None else ""
            news.append(f"{headline(now.found)}{was}{'; ' if moved else ''}{', '.join(moved)}")
            before = now
        for one in now.ahead:
            if place - told.get(one.key, -_SILENT) >= _SILENT:
                news.append(_foreseen_words(one))
            told[one.key] = place
        yield now, news


def _moved(then: Mapping[str, float], now: Mapping[str, float]) -> list[str]:
    """The figures that are others than when the verdict was last told."""
    return [
        f"{_SHOWN[key]} {show(old, key)} -> {show(now[key], key)}"
        for key, old in then.items()
        if key in now and abs(now[key] - old) > _MOVED * abs(old)
    ]


def _foreseen_words(one: Forecast) -> str:
    """What is foreseen, in a sentence."""
    what = f"{_FORESEEN[one.key]}: {show(one.now, one.key)}, and {show(one.limit, one.key)} is the limit"
    if one.steps <= 0:
        return f"now {what}"
    until = f"{one.latest:.0f}" if one.latest > 0 else "never"
    return f"in {one.steps:.0f} steps ({max(0.0, one.soonest):.0f} to {until}) {what}"


@contextmanager
def _screen(log: str) -> Iterator[Callable[[Seen, Sequence[str]], None]]:
    """One screen on a terminal, lines in a pipe."""
    if not sys.stdout.isatty():

        def lines(now: Seen, news: Sequence[str]) -> None:
            sys.stdout.write("".join(f"{text}\n" for text in (now.line, *(f"  {one}" for one in news))))
            sys.stdout.flush()

        yield lines
        return
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    events: deque[str] = deque(maxlen=8)  # events on the screen
    with Live(Text(f"{printable(log)}: waiting"), auto_refresh=False) as live:

        def redraw(now: Seen, news: Sequence[str]) -> None:
            events.extend(f"{now.at}: {text}" for text in news)
            head = Text(f"{printable(log)}, {now.line}", style="bold")
            ahead = [Text(_foreseen_words(one), style="yellow") for one in now.ahead]
            live.update(Group(head, Text(headline(now.found)), *ahead, Text(""), *map(Text, events)), refresh=True)

        yield redraw
