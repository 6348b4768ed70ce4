"""
Published speedups of ways to run the RL loop beside what the simulator makes of them: the table of that page.

Settings are those of `benchmarks/published_loops.yaml`, fixed before any of them was simulated. Both sides of an entry
meet the same samples (common random numbers), once for each seed.

    python -m benchmarks.published_loops                                      # prints the table
    python -m benchmarks.published_loops --only april --seeds 5
    python -m benchmarks.published_loops --write docs/published-loops.md      # and puts it into that page, minutes
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import inf, isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.accuracy import say, table
from benchmarks.loop_entries import SIDES, WEIGHTS, Entry, Run, read_entries, read_reasons

from rlsize.simulator.draws import shared_lengths
from rlsize.simulator.run import simulate
from rlsize.writers.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rlsize.simulator.setting import Setting

SEEDS = 3
_DRAWN = 4096  # groups, of which a bound takes the lengths
BEGIN, END = "<!-- published loops: begin -->", "<!-- published loops: end -->"
NEAR, FAR = 1.10, 1.25
"""Factors from the published figure up to which a simulated ratio counts as near it; fixed before simulating."""
HEADER = ("entry", "published", "read", "bound", "simulated", "simulated / published", "verdict", "weight", "not given")
_LESS_IS_BETTER = frozenset({"step_seconds", "max_staleness"})
_UNITS = {
    "step_seconds": "s per step",
    "tokens_per_second": "tok/s trained",
    "generated_tokens_per_second": "tok/s generated",
    "max_staleness": "steps of largest staleness",
}
_PARTS = ("training", "waiting", "sync", "failure")
_SEEN = 0.005  # a smaller share is written as 0 %
_EXPONENT = 1000.0  # from here on, four digits would be written with one


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """
    An entry and what was simulated for it.

    Args:
        entry: What is published.
        ratios: Simulated, one for each seed.
        sides: Means over the seeds of each side: every metric, and shares of the trainer's time.
    """

    entry: Entry
    ratios: tuple[float, ...]
    sides: Mapping[str, Mapping[str, float]]

    @property
    def mean(self) -> float:
        """Simulated ratio, mean over the seeds."""
        return sum(self.ratios) / len(self.ratios)

    @property
    def verdict(self) -> str:
        """Where the simulated ratio lies, seen from the published figure."""
        published, found = self.entry.speedup, self.mean
        if (found - 1.0) * (published - 1.0) <= 0.0:
            return "miss: the other side wins"
        off = max(published / found, found / published)
        if off <= NEAR:
            return "within 10 %"
        if off <= FAR:
            return "within 25 %"
        return f"miss: too {'high' if found > published else 'low'}"

    @property
    def bound(self) -> float:
        """
        The ratio that no rule of the loop can pass with the inputs of the entry; infinite where lags are compared.

        The simulated baseline over an improved side whose engines are always full and whose trainer never waits: the
        longer of generation and training, or both where the two share GPUs or follow each other.
        """
        if self.entry.metric == "max_staleness":
            return inf
        setting, before = self.entry.improved.setting, self.sides["baseline"][self.entry.metric]
        generation, training = full_generation(setting), setting.trainer.seconds
        if self.entry.metric == "generated_tokens_per_second":
            return setting.work.tokens / setting.work.acceptance / generation / before
        overlapping = setting.rules.mode in {"async", "one-step-off"}
        step = max(generation, training) if overlapping else generation + training + 2.0 * setting.sync.swap_seconds
        gain = before * self.entry.repeats if self.entry.metric in _LESS_IS_BETTER else setting.work.tokens / before
        return gain / step


def full_generation(setting: Setting) -> float:
    """
    Seconds in which a fleet that is always full generates the samples of a step, prompts and tools left out.

    Args:
        setting: The loop.
    """
    engine, work = setting.engine, setting.work
    lengths = shared_lengths(work.lengths, _DRAWN, work.group_size, 0, 0).astype(float)
    own = float((lengths**2).mean()) / 2.0 + work.prompt_tokens * float(lengths.mean())  # live tokens over all steps
    batch = max(1.0, min(float(engine.slots), engine.kv_tokens * float(lengths.mean()) / own))
    each = float(lengths.mean()) * engine.batch_seconds(batch) / batch + engine.kv_seconds * own
    return work.samples / work.acceptance * each / engine.instances


def main() -> None:
    """Print the table, or write it into a page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--only", action="append", help="only this entry; repeatable")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="runs of each side")
    parser.add_argument("--write", type=Path, help="a page with the marks that the tables go between")
    asked = parser.parse_args()
    entries = read_entries()
    unknown = set(asked.only or ()) - {entry.name for entry in entries}
    if unknown or asked.seeds < 1:
        sys.exit(f"no entry {sorted(unknown)}" if unknown else "--seeds is at least 1")
    if asked.write and asked.only:
        sys.exit("the page has all entries: --write goes without --only")
    chosen = [entry for entry in entries if not asked.only or entry.name in asked.only]
    before, after = page_around(asked.write) if asked.write else ("", "")
    found = compared(chosen, range(asked.seeds))
    print(summary(found))
    if asked.write:
        text = f"{before}{BEGIN}\n{page(found, read_reasons(), asked.seeds)}\n{END}{after}"
        write_whole(asked.write, text, force=True)


def page_around(path: Path) -> tuple[str, str]:
    """What stands before and after the marks of a page."""
    text = path.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        sys.exit(f"{path} has no lines {BEGIN} and {END}")
    return text.partition(BEGIN)[0], text.partition(END)[2]


def compared(entries: Sequence[Entry], seeds: Iterable[int]) -> list[Comparison]:
    """
    Both sides of entries, simulated; what two entries share is simulated once.

    Args:
        entries: What is published.
        seeds: Of the runs; each is used for both sides.
    """
    tried = list(seeds)
    asked = [(run, seed) for entry in entries for run in (entry.baseline, entry.improved) for seed in tried]
    jobs = sorted(dict.fromkeys(asked), key=lambda job: -job[0].steps * job[0].setting.work.tokens)
    results: dict[tuple[Run, int], dict[str, float]] = {}
    with ProcessPoolExecutor() as pool:
        for job, result in zip(jobs, pool.map(measured, jobs), strict=True):
            results[job] = result
            say("simulating", len(results) / len(jobs))
    return [_comparison(entry, results, tried) for entry in entries]


def measured(job: tuple[Run, int]) -> dict[str, float]:
    """
    The metrics of a run after its warm-up, and what the trainer's time consists of.

    Args:
        job: The run and its seed.
    """
    run, seed = job
    ledger = simulate(run.setting, run.steps, seed)
    rows = {name: np.frombuffer(column, dtype=float) for name, column in ledger.columns.items()}
    cut = run.warmup
    seconds = _grown(rows["end_seconds"], cut)
    shares = {name: rows[f"{_column(name)}_seconds"][cut:].sum() / seconds for name in _PARTS}
    return {
        "step_seconds": seconds / (run.steps - cut),
        "tokens_per_second": float(rows["trained_tokens"][cut:].sum()) / seconds,
        "generated_tokens_per_second": _grown(rows["generated_tokens"], cut) / seconds,
        "max_staleness": float(rows["most_stale"][cut:].max()),
        **{name: float(share) for name, share in shares.items()},
    }


def _column(part: str) -> str:
    return "train" if part == "training" else part


def _grown(column: Any, cut: int) -> float:  # noqa: ANN401 (an array)
    """By how much a running total grew after the cut."""
    return float(column[-1]) - (float(column[cut - 1]) if cut else 0.0)


def _comparison(
    entry: Entry, results: Mapping[tuple[Run, int], Mapping[str, float]], seeds: Sequence[int]
) -> Comparison:
    runs = {side: [results[run, seed] for seed in seeds] for side, run in zip(SIDES, _runs(entry), strict=True)}
    ratios = []
    for baseline, improved in zip(*runs.values(), strict=True):
        worse, better = baseline[entry.metric] * entry.repeats, improved[entry.metric]
        ratios.append(worse / better if entry.metric in _LESS_IS_BETTER else better / worse)
    means = {
        side: {name: float(np.mean([one[name] for one in ones])) for name in ones[0]} for side, ones in runs.items()
    }
    return Comparison(entry=entry, ratios=tuple(ratios), sides=means)


def _runs(entry: Entry) -> tuple[Run, Run]:
    return entry.baseline, entry.improved


def summary(found: Sequence[Comparison]) -> str:
    """One row for each entry, and how many are near."""
    rows = [
        [
            one.entry.name,
            _published(one.entry),
            one.entry.marks,
            "-" if isinf(one.bound) else f"{one.bound:.2f}",
            f"{one.mean:.2f} ({min(one.ratios):.2f} to {max(one.ratios):.2f})",
            f"{one.mean / one.entry.speedup:.2f}",
            one.verdict,
            one.entry.weight,
            ", ".join(one.entry.facts["not_given"]),
        ]
        for one in found
    ]
    return table(HEADER, rows) + "\n\n" + counts(found)


def counts(found: Sequence[Comparison]) -> str:
    """Verdicts by weight."""
    counted = Counter((one.entry.weight, one.verdict.partition(":")[0]) for one in found)
    verdicts = ("within 10 %", "within 25 %", "miss")
    rows = [[weight, *(str(counted[weight, verdict]) for verdict in verdicts)] for weight in WEIGHTS]
    return table(["weight", *verdicts], rows)


def _published(entry: Entry) -> str:
    if entry.low == entry.high:
        return f"{entry.speedup:g}"
    return f"{entry.speedup:g} ({entry.low:g} to {entry.high:g})"


def page(found: Sequence[Comparison], reasons: Mapping[str, str], seeds: int) -> str:
    """The table and a part for each entry, as Markdown."""
    lacking = [one.entry.name for one in found if one.entry.name not in reasons]
    if lacking:
        sys.exit(f"no reasons for {lacking}")
    parts = [f"Seeds 0 to {seeds - 1}.", summary(found)]
    parts += [_part(one, reasons[one.entry.name]) for one in found]
    return "\n\n".join(parts)


def _part(one: Comparison, reason: str) -> str:
    """What is known of an entry, and why the simulation differs."""
    entry, facts = one.entry, one.entry.facts
    source, claim = facts["source"], facts["claim"]
    origins = Counter(given["from"] for given in facts["inputs"])
    given = ", ".join(f"{origins[origin]} {origin}" for origin in ("given", "derived", "assumed") if origins[origin])
    absolute = (
        f"; baseline {claim['baseline']:,}, improved {claim['improved']:,} {claim['unit']}" if "unit" in claim else ""
    )
    surpassed = one.bound < entry.speedup
    wrong = "; the claim exceeds it, so the inputs of this entry are what is wrong, not a rule" if surpassed else ""
    lines = [
        f"Compares {facts['compares']}.",
        f"Source: {source['work']}, {source['id']}, {source['loci']}. Read: {source['read']}.",
        f"Published: {_published(entry)}{absolute}.",
        f"Simulated: {one.mean:.2f}; {_sides(one)}. Scale: {facts['scaled']}.",
        *(
            []
            if isinf(one.bound)
            else [f"Bound: {one.bound:.2f}, by full engines and a trainer that never waits{wrong}."]
        ),
        f"Inputs: {given}.",
        f"Not given: {'; '.join(facts['not_given'])}.",
        f"Cannot be said in a setting: {'; '.join(facts['not_expressible']) or 'nothing that is known'}.",
        f"{one.verdict[:1].upper()}{one.verdict[1:]}. {reason}",
    ]
    noted = [f"Note with the entry: {' '.join(facts['note'].split())}"] if "note" in facts else []
    shown = (" ".join(line.split()).replace("..", ".") for line in [*lines, *noted])
    return f"### {entry.name}\n\n" + "\n".join(f"- {line}" for line in shown)


def _sides(one: Comparison) -> str:
    """What was simulated on each side, in the units of the metric, and what the trainer did in the meantime."""
    told = []
    for side in SIDES:
        means = one.sides[side]
        repeats = f" x {one.entry.repeats:g}" if side == "baseline" and one.entry.repeats != 1.0 else ""
        shares = ", ".join(f"{name} {100 * means[name]:.0f} %" for name in _PARTS if means[name] >= _SEEN)
        told.append(f"{side} {_rounded(means[one.entry.metric])}{repeats} {_UNITS[one.entry.metric]} ({shares})")
    return "; ".join(told)


def _rounded(value: float) -> str:
    """Four digits, and no exponent."""
    return f"{round(value, 4 - len(str(int(value)))):,.0f}" if value >= _EXPONENT else f"{value:.4g}"


if __name__ == "__main__":
    main()
