"""
The `rlsize` command: which commands there are.

A command is one file or package in `commands/` and one entry here; its module is imported only when it runs, so
`rlsize --help` stays quick.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from typing import Annotated

import typer

from rlsize.shell.command import UNFINISHED, Entry, Group
from rlsize.shell.progress import INTERRUPTED, ended_in_order, saying_if_long

_LIVING = 250_000  # objects from one search for cycles to the next: what an answer loads lives as long as the program

COMMANDS: dict[str, Entry] = {
    "fleet": Entry("Size", "How many rollout instances match this trainer."),
    "split": Entry("Size", "How to split N GPUs between rollout and trainer."),
    "backlog": Entry("Size", "How fast samples pile up, and how stale they get."),
    "sync": Entry("Size", "How long a weight sync takes, by method and link."),
    "memory": Entry("Size", "What each tenant needs in memory, and which GPU count fits."),
    "iteration": Entry("Size", "How long one iteration takes, and how many fit in a day."),
    "cost": Entry("Size", "What an optimizer step, a sample and a run cost."),
    "predict": Entry("Predict", "Rates and times from model, GPUs and workload, each with its band.", function="app"),
    "simulate": Entry("Predict", "What the loop does over time: step time, idle, staleness."),
    "whatif": Entry("Predict", "What each change of a run would do: step, cost, idle and memory."),
    "validate": Entry("Predict", "Grade the predictions against recorded measurements."),
    "init": Entry("Plan", "Write a commented scenario file to start from."),
    "plan": Entry("Plan", "Which mode, split and layouts are best, at what cost, and what if."),
    "check": Entry("Plan", "Check a loop against its budget, and against a baseline."),
    "report": Entry("Plan", "Write a capacity review as one page, with sliders."),
    "diff": Entry("Plan", "What changed between two files, and what that did to every result."),
    "observe": Entry("Operate", "The rates of what runs: from engines, Prometheus, training logs, benchmarks."),
    "diagnose": Entry("Operate", "Which side of a running loop starves, and what to do in which order."),
    "watch": Entry(
        "Operate",
        "Follow a training log, engines, or a Prometheus: the verdict at each step, what changed, what is ahead.",
        "diagnose.watch",
    ),
    "alerts": Entry("Operate", "Write Prometheus rules, their tests and a dashboard for this plan."),
    "export": Entry("Operate", "Serve what a training log and engines tell as counters, for Prometheus."),
    "manifest": Entry("Operate", "Write the resize for Kubernetes, Ray, KEDA or Kueue; nothing is applied."),
    "snippet": Entry("Operate", "Print a framework's keys for the recommended split."),
    "measure": Entry("Measure", "Measure rollouts, train steps and weight syncs on the GPUs at hand."),
    "calibrate": Entry("Measure", "Compare a measurement with the predictions, stage by stage."),
    "profiles": Entry("Facts", "The GPUs, links, models, prices and clusters that rlsize knows.", function="app"),
    "explain": Entry("Facts", "Print the page of an equation."),
    "schema": Entry("Facts", "Print the JSON Schema of a file that rlsize reads."),
}


class Commands(Group):
    """All of them."""

    entries = COMMANDS


app = typer.Typer(
    name="rlsize",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from rlsize.version import VERSION

        typer.echo(f"rlsize {VERSION}")
        raise typer.Exit


@app.callback()
def _main(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """
    Size and plan the rollout fleet and the trainer of an RL post-training run.

    Example:  rlsize fleet --consume 39321 --per-instance 4000
    """


def main() -> None:
    """Run the command line; a terminal that cannot show a character gets a substitute, not a traceback."""
    gc.set_threshold(_LIVING)
    if sys.argv[1:2] != ["measure"]:  # what it starts keeps its threads
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy's spin, and no answer multiplies large matrices
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if sys.stdout is None:  # started with stdout closed: there is nowhere to answer
        raise SystemExit(UNFINISHED)
    command = " ".join(word for word in sys.argv[1:3] if word.isalpha())
    try:
        with ended_in_order(), saying_if_long(f"rlsize {command}: working"):
            app()
    except (KeyboardInterrupt, RuntimeError) as error:  # before a command could hear of it
        raise _interrupted(error) from None
    except OSError as error:
        raise SystemExit(_cannot_print(error)) from None
    except SystemExit as stop:
        try:
            sys.stdout.flush()
        except OSError as error:
            raise SystemExit(_cannot_print(error)) from None
        raise stop from None
    finally:
        # An interrupt that passed through `exec` of a text, as where dataclasses are made, has CPython kill itself by
        # SIGINT at the end, whoever handled it; the next `exec` clears that.
        exec("")  # noqa: S102 (nothing is executed)
        gc.freeze()  # or the last search for cycles takes longer than most answers, and what it frees is the system's


def _interrupted(error: BaseException) -> BaseException:
    """The end of an interrupted command; an interrupt within `__set_name__` has become a RuntimeError."""
    stopped = isinstance(error, KeyboardInterrupt) or isinstance(error.__cause__, KeyboardInterrupt)
    return SystemExit(INTERRUPTED) if stopped else error


def _cannot_print(error: OSError) -> int:
    """Say why the answer could not be written, without a second failure when Python closes stdout; the exit code."""
    if error.errno != errno.EPIPE and sys.stderr is not None:
        sys.stderr.write(f"error: the answer cannot be written: {error.strerror}\n")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return UNFINISHED
