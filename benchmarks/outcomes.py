"""Published outcomes: loops that ran or ran out of GPU memory, and what rlsize says of each, as a table."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rlsize.errors import InputError
from rlsize.estimates.memory_phases import PHASES
from rlsize.loop.phases import Phases
from rlsize.loop.resolve import resolve
from rlsize.loop.unsaid import doubted
from rlsize.shell.inputs import Inputs

FILE = Path(__file__).parent / "published" / "outcomes" / "memory.yaml"
_GIB = 2.0**30
_DEGREES = ("rollout.tensor_parallel", "trainer.parallelism.context")


@dataclass(frozen=True)
class Judged:
    """
    An outcome and what is said of it.

    Args:
        row: The published outcome.
        phases: Its memory phase by phase; None where it cannot be told.
        refused: Why it cannot be told.
    """

    row: dict[str, Any]
    phases: Phases | None
    refused: str = ""

    @property
    def verdict(self) -> str:
        """Fits, not sure or dies; unknown where it cannot be told."""
        return self.phases.verdict if self.phases else "unknown"

    @property
    def right(self) -> bool:
        """Whether one that ran is not said to die, or one that died is."""
        return self.verdict in ({"dies"} if self.row["result"] == "died" else {"fits", "not sure"})


def read_outcomes() -> list[dict[str, Any]]:
    """The published outcomes that say enough for a scenario."""
    found: list[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))["outcomes"]
    return found


def asked(scenario: dict[str, Any]) -> Inputs:
    """A scenario as somebody says it."""
    told = {key: yaml.safe_dump(value, default_flow_style=True).splitlines()[0] for key, value in scenario.items()}
    return Inputs(changes=[f"{key}={value}" for key, value in told.items()])


def with_gpus(scenario: dict[str, Any], gpus: int) -> dict[str, Any]:
    """A colocated scenario on other GPUs, sharded over all of them."""
    each = {"cluster.gpus": gpus, "cluster.gpus_per_node": min(gpus, 8)}
    most = {key: min(scenario[key], gpus) for key in _DEGREES if key in scenario}
    ranks = max(1, gpus // most.get("trainer.parallelism.context", 1))
    return scenario | each | most | {"trainer.parallelism.fsdp": ranks}


def fewest_gpus(row: dict[str, Any]) -> int:
    """The fewest GPUs, halved again and again from those of an outcome, on which it does not die."""
    gpus: int = row["scenario"]["cluster.gpus"]
    fewer = gpus
    while fewer % 2 == 0 and judged(row | {"scenario": with_gpus(row["scenario"], fewer // 2)}).verdict != "dies":
        fewer //= 2
    return fewer


def judged(row: dict[str, Any]) -> Judged:
    """
    What is said of an outcome.

    Args:
        row: The outcome.
    """
    said = asked(row["scenario"])
    try:
        found = doubted(said, resolve(said), row.get("unsaid", {}))
    except InputError as error:
        return Judged(row, None, "; ".join(fault.what for fault in error.faults))
    about = row.get("about", PHASES)  # a source that tells of one side says nothing of the other
    return Judged(row, found and Phases(phases=tuple(one for one in found.phases if one.name in about)))


def lines(found: list[Judged]) -> list[str]:
    """The table: who ran, what is said, and what the fullest or dying phase holds."""
    told = ["| Outcome | Published | rlsize | Phase | GiB | of |", "| --- | --- | --- | --- | --- | --- |"]
    for one in found:
        row, phases = one.row, one.phases
        said = f"{row['result']} ({row['phase']})" if "phase" in row else row["result"]
        if phases is None:
            told.append(f"| {row['id']} | {said} | unknown: {one.refused} | - | - | - |")
            continue
        phase = phases.dying or phases.worst
        held = f"{phase.held.number / _GIB:.1f} | {phase.memory / _GIB:.1f}"
        told.append(f"| {row['id']} | {said} | {one.verdict} | {phase.name} | {held} |")
    return told


def main() -> None:
    """Print the table and how many are right."""
    found = [judged(row) for row in read_outcomes()]
    sys.stdout.write("\n".join(lines(found)) + "\n")
    for result in ("ran", "died"):
        ones = [one for one in found if one.row["result"] == result]
        sys.stdout.write(f"{result}: {sum(one.right for one in ones)} of {len(ones)} right\n")


if __name__ == "__main__":
    main()
