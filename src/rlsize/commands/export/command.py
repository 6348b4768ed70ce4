"""`rlsize export`: the counters that rules ask a trainer for, from its log, for a Prometheus to scrape."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rlsize.errors import Fault, InputError, RlsizeError
from rlsize.shell.access import blamed
from rlsize.shell.command import argument, option, switch, tell
from rlsize.shell.inputs import Inputs
from rlsize.shell.live_engines import Map
from rlsize.shell.quantity_flags import PRICES, asks_beside_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.estimates.run_counts import Counters
    from rlsize.facts.run_log import RunLog

_SERVED = "Serving"


@asks_beside_files(Inputs=("rollout_gpus", "trainer_gpus", "every_seconds"), Prices=PRICES)
def export(
    inputs: Inputs,
    log: str | None = argument("LOG", "A training log, a tracker's folder or database, which may still grow."),
    format: str | None = option("--format", "The format of the log, where its content does not tell.", metavar="NAME"),  # noqa: A002 (the flag's name)
    map: Map = None,  # noqa: A002 (the flag's name)
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Where to serve.", rich_help_panel=_SERVED)
    ] = "127.0.0.1:9477",
    state: str | None = option(
        "--state", "A file that keeps the counts, for logs that are begun anew or moved away.", _SERVED, "FILE"
    ),
    once: bool = switch("--once", "Print the page, and serve nothing.", _SERVED),
) -> None:
    """
    Serve what a training log tells as counters, for Prometheus.

    Example:  rlsize export examples/operate/starving.jsonl --once --gpu-hour 2.40
    """
    from rlsize.commands.export.server import address, serving
    from rlsize.estimates.run_counts import Counters
    from rlsize.shell.following import followed, log_reader
    from rlsize.writers.files import write_whole

    counters, where = Counters({}, {}, ""), ("", 0)
    every, pools = inputs.ask("every_seconds"), _pools(inputs)
    with blamed(inputs, "--state"):
        counters = _read_counters(state)
    with blamed(inputs, "--listen"):
        where = address(listen)
    with blamed(inputs, log or "LOG"):
        read = log_reader(log, format, map or ())
    inputs.settle()
    if once:
        sys.stdout.write(_page(read(), counters, pools))
        return
    with serving(*where) as server:
        sys.stderr.write(f"serving {log} on {server.url}\n")
        for found in followed(str(log), read, every.number):
            text = _page(found, counters, pools)
            try:
                if state is not None:  # first, so that what was scraped is never lost
                    content = {"first": counters.first, "sums": counters.sums, "totals": counters.totals}
                    write_whole(state, json.dumps(content) + "\n", force=True)
            except RlsizeError as error:  # a full disk is no reason to serve nothing
                tell(error)
            server.text = text  # which stays while a log cannot be read


def _read_counters(path: str | None) -> Counters:
    """
    The counters as an earlier process left them; new ones where there is no file.

    Raises:
        InputError: The file is none of ours, or cannot be written.
    """
    from rlsize.estimates.run_counts import Counters
    from rlsize.readers.yaml_documents import read_text
    from rlsize.writers.files import check_target

    if path is None:
        return Counters({}, {}, "")
    check_target(path, force=True)
    if not Path(path).exists():
        return Counters({}, {}, "")
    text = read_text(path)
    try:
        found = json.loads(text)
        totals, sums = ({str(key): float(value) for key, value in found[name].items()} for name in ("totals", "sums"))
        first = str(found["first"])
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        raise InputError(Fault("holds no counts of `rlsize export`", path, "name another --state")) from None
    if not all(math.isfinite(value) and value >= 0 for value in (*totals.values(), *sums.values())):
        raise InputError(Fault("holds counts that are no counts", path, "name another --state"))
    return Counters(totals, sums, first)


def _pools(inputs: Inputs) -> dict[str, float]:
    """GPUs and prices, as far as they are said."""
    from rlsize.loop.prices import gpu_hours

    sizes, prices = (inputs.ask("rollout_gpus"), inputs.ask("trainer_gpus")), gpu_hours(inputs)
    names = ("rollout_gpus", "trainer_gpus", "rollout_gpu_hour", "trainer_gpu_hour")
    return {name: one.number for name, one in zip(names, (*sizes, *prices), strict=True) if one.known}


def _page(found: RunLog, counters: Counters, pools: Mapping[str, float]) -> str:
    from rlsize.estimates.run_counts import counts, first_row, gauges
    from rlsize.writers.metrics_page import metrics_page

    return metrics_page({**counters.read(first_row(found), counts(found, pools)), **gauges(found)})
