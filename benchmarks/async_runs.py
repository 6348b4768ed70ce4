"""
Published async runs, predicted from a synchronous run of the same source: lengths and rates are those of the latter.

NeMo-RL's tables give lengths, and the twin of each colocated row tells each async one (`benchmarks.twins`). verl's
runs of `published/twins/async.yaml` give times of phases, to which lengths were fitted; as its trainer takes about half
the time of GPUs when it has them for itself, its async runs stand a second time with the update that they had.

    python -m benchmarks.async_runs            # the tables
    python -m benchmarks.async_runs --rows     # and each pair of NeMo-RL's
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from benchmarks.twins import PUBLISHED, Told, of_tables, predicted, twin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HEAD = ("GPUs", "Staleness threshold", "Measured", "Predicted", "80 % band", "Error", "With its own update", "Error")


def main() -> None:
    """Print both tables."""
    modes = [one for one in of_tables() if one.knob == "mode"]
    rows = {row["id"]: row for row in yaml.safe_load((PUBLISHED / "rl_step.yaml").read_text(encoding="utf-8"))}
    told = [*_by_model("sync to async", [one for one in modes if rows[one.run]["async_mode"] == "async"], rows)]
    told += _by_model("async to sync", [one for one in modes if rows[one.run]["async_mode"] != "async"], rows)
    sys.stdout.write(
        "\n".join(["| From | Model | Pairs | Median | p90 | Median, signed |", _rule(6, 2), *told]) + "\n\n"
    )
    sys.stdout.write("\n".join([f"| {' | '.join(_HEAD)} |", _rule(len(_HEAD), 0), *of_verl()]) + "\n")
    for one in modes if "--rows" in sys.argv else ():
        sys.stdout.write(f"{one.pair} {one.measured:.4g} {one.predicted:.4g}\n")


def _rule(columns: int, words: int) -> str:
    """The line below a head: words to the left, numbers to the right."""
    return "|" + " --- |" * words + " ---: |" * (columns - words)


def _by_model(name: str, pairs: list[Told], rows: Mapping[str, Any]) -> Iterator[str]:
    """A line for all pairs of a direction, and one for each model."""
    for model in ("all", *dict.fromkeys(rows[one.run]["model"] for one in pairs)):
        errors = [one.predicted / one.measured - 1 for one in pairs if model in {"all", rows[one.run]["model"]}]
        sizes = np.abs(errors)
        whole = f"{np.median(sizes):.1%} | {np.quantile(sizes, 0.9):.1%} | {median(errors):+.1%}"
        yield f"| {name} | {model} | {len(errors)} | {whole} |".replace("%", " %")


def of_verl() -> Iterator[str]:
    """A line for each async run of verl: predicted with the update of the synchronous run, and with its own."""
    data = yaml.safe_load((PUBLISHED / "twins" / "async.yaml").read_text(encoding="utf-8"))
    for fleet in data["fleets"]:
        for run in fleet["async"]:
            (step, band), (other, _) = (_cycle(data, fleet, run, own=own) for own in (False, True))
            errors = [f"{seconds / run['step'] - 1:+.0%}".replace("%", " %") for seconds in (step, other)]
            within = f"{band[0]:.0f} to {band[1]:.0f}"
            cells = (fleet["gpus"], run["threshold"], run["step"], f"{step:.0f}", within, errors[0], f"{other:.0f}")
            yield f"| {' | '.join(map(str, cells))} | {errors[1]} |"


def _cycle(
    data: Mapping[str, Any], fleet: Mapping[str, Any], run: Mapping[str, Any], *, own: bool
) -> tuple[float, tuple[float, float]]:
    """Seconds from one sync to the next, and their band."""
    gpus, setups, took = fleet["gpus"], data["setups"], dict(fleet["seconds"])
    if own:  # that update on as many GPUs as the synchronous run has: it has half of them
        took |= {"update": run["update"] / 2, "step": took["step"] + run["update"] / 2 - took["update"]}
    shared = {"cluster.gpus": gpus, **fleet["lengths"]}
    half = {"placement.rollout_gpus": gpus // 2, "placement.trainer_gpus": gpus // 2}
    cap = {"placement.max_staleness": data["steps"] * (1 + run["threshold"]) - 1}
    before = {"id": f"sync-{gpus}", "setup": "verl", "seconds": took, "scenario": shared | setups["synchronous"]}
    after = {"setup": "verl", "scenario": shared | setups["cycle"] | half | cap}
    with tempfile.TemporaryDirectory() as folder:
        path, _ = twin(before, setups, Path(folder))
        step = predicted(after, setups, path)[0]["step_seconds"]
    low, high = step.band or (step.number, step.number)
    return data["steps"] * step.number, (data["steps"] * low, data["steps"] * high)


if __name__ == "__main__":
    main()
