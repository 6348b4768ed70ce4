"""
Published runs that differ by a knob: a twin made of the one, the other predicted from it, and how wrong that is.

Pairs of logs come from `published/twins/pairs.yaml`, as scenarios, phase by phase. Pairs of tables come from
`published/rl_step.yaml`, of which only steps are known; as the constants of a step were fitted to that publication,
they stand here as they were before (`fitting.untuned`).

    python -m benchmarks.twins            # the table
    python -m benchmarks.twins --rows     # and every prediction
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

import numpy as np
import yaml
from benchmarks.coverage import expected_coverage
from benchmarks.fitting import untuned
from benchmarks.normal import HALF_NORMAL

from rlsize.commands.calibrate import calibration_of
from rlsize.commands.calibrate.points import Gathered
from rlsize.commands.calibrate.run import Run
from rlsize.errors import InputError, Refused
from rlsize.estimates.belief import interval, scattered
from rlsize.estimates.calibrating import EDGE, Measurable, Point, calibrated
from rlsize.estimates.recorded import rl_step
from rlsize.estimates.run_twin import AGAIN, REPEATED, left_of_step
from rlsize.estimates.step_prediction import predicted_step
from rlsize.facts.figure import Figure
from rlsize.facts.records import StepRecord
from rlsize.facts.run_log import RunSummary
from rlsize.loop.answer import answer_of
from rlsize.loop.resolve import resolve
from rlsize.readers.profiles import Catalogue
from rlsize.readers.records.listing import profiles_of, read_records
from rlsize.shell.inputs import Inputs
from rlsize.writers.yaml_file import plain, yaml_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rlsize.equations._ops import Real
    from rlsize.estimates.step_prediction import StepQuestion

PUBLISHED = Path(__file__).parent / "published"
_KEYS = {phase: f"{phase}_seconds" for phase in ("step", "generation", "logprob", "update")}
_GUESSES = {"Twin": "predicted", "As tokens": "as_tokens", "Unchanged": "unchanged"}
_STAGES = (untuned(rl_step.STAGES[0]), *rl_step.STAGES[1:])


@dataclass(frozen=True)
class Told:
    """
    A phase of a run, predicted from the twin of another.

    Args:
        pair: The pair.
        source: The publication.
        knob: The kind of knob by which the two differ.
        run: The run.
        phase: The phase.
        measured: As it was published. [s]
        predicted: As it is predicted. [s]
        band: The 80 % band of that. [s]
        as_tokens: As it would be if time went as tokens. [s]
        unchanged: As it was in the other run. [s]
    """

    pair: str
    source: str
    knob: str
    run: str
    phase: str
    measured: float
    predicted: float
    band: tuple[float, float]
    as_tokens: float
    unchanged: float

    @property
    def inside(self) -> bool:
        """Whether the band holds what was published."""
        return self.band[0] <= self.measured <= self.band[1]

    def error(self, guess: float) -> float:
        """How far a guess is off."""
        return abs(guess / self.measured - 1.0)


def read_pairs() -> dict[str, Any]:
    """Runs, pairs of them, and the pairs that no scenario can say, with the reason."""
    found: dict[str, Any] = yaml.safe_load((PUBLISHED / "twins" / "pairs.yaml").read_text(encoding="utf-8"))
    return found


def scenario(row: Mapping[str, Any], setups: Mapping[str, Any]) -> list[str]:
    """The run as `--set` says it."""
    said = {**setups[row["setup"]], **row["scenario"]}
    return [f"{key}={yaml.safe_dump(value, default_flow_style=True).splitlines()[0]}" for key, value in said.items()]


def log_of(row: Mapping[str, Any]) -> RunSummary:
    """What the log of a run comes to."""
    seconds = row["seconds"]
    rest = seconds["step"] - sum(value for phase, value in seconds.items() if phase != "step")
    told = {_KEYS[phase]: value for phase, value in seconds.items()} | {"other_seconds": max(0.0, rest)}
    figures = {key: Figure(key=key, value=value, provenance="measured") for key, value in told.items()}
    return RunSummary(source=row["id"], steps=(1,), figures=figures)


def twin(row: Mapping[str, Any], setups: Mapping[str, Any], folder: Path) -> tuple[Path, float]:
    """The calibration file of a run, and its tokens of a step."""
    run, found = Run(Inputs(changes=scenario(row, setups)), log_of(row)), Gathered()
    path = folder / f"{row['id']}.yaml"
    if not path.exists():
        run.gather(found)
        kept = run.kept(calibration_of(found, [row["id"]])[0])
        path.write_text(yaml_text("calibration", plain(kept)), encoding="utf-8")
    return path, run.loop.terms.problem.step_tokens


def predicted(row: Mapping[str, Any], setups: Mapping[str, Any], path: Path) -> tuple[Mapping[str, Figure], float]:
    """What a run takes by the twin of another, and its tokens of a step."""
    loop = resolve(Inputs(changes=scenario(row, setups), texts={"calibration": str(path)}))
    return answer_of(loop).results, loop.problem.step_tokens


def of_logs(data: Mapping[str, Any]) -> Iterator[Told]:
    """Every pair of logs, both ways."""
    runs = {row["id"]: row for row in data["runs"]}
    setups = data["setups"]
    with tempfile.TemporaryDirectory() as folder:
        for pair in data["pairs"]:
            for one, other in permutations(pair["runs"]):
                seen, wanted = runs[one], runs[other]
                path, tokens = twin(seen, setups, Path(folder))
                found, then = predicted(wanted, setups, path)
                filtered = seen.get("trained_fewer", False) or wanted.get("trained_fewer", False)
                for phase, before in seen["seconds"].items():
                    if phase in wanted["seconds"] and not (filtered and phase == "update"):
                        figure = found[_KEYS[phase]]
                        yield Told(
                            pair=pair["id"],
                            source=wanted["source"].partition("@")[0],
                            knob=pair["class"],
                            run=other,
                            phase=phase,
                            measured=wanted["seconds"][phase],
                            predicted=figure.number,
                            band=figure.band or (figure.number, figure.number),
                            as_tokens=before * then / tokens,
                            unchanged=before,
                        )


def of_tables() -> Iterator[Told]:
    """Every pair of rows of one table that are of one model on one kind of GPU, both ways."""
    catalogue = Catalogue()
    look_up = profiles_of(catalogue)
    listed = [entry.record for entry in read_records([str(PUBLISHED / "rl_step.yaml")], catalogue).records]
    steps = [record for record in listed if isinstance(record, StepRecord)]
    odd = rl_step.contradictions(steps)  # longer on more GPUs: left out, as `rlsize validate` leaves them out
    families: dict[Any, list[tuple[StepRecord, StepQuestion]]] = {}
    for place, record in enumerate(steps):
        if place not in odd and record.trust == "high" and "step_time_s" in record.measured:
            try:
                question = rl_step.question(record, look_up(record))
                predicted_step(question, calibrated([], *_STAGES).before.central())
            except (InputError, Refused):
                continue
            families.setdefault(rl_step.family(record), []).append((record, question))
    for members in families.values():
        for (one, asked), (other, wanted) in permutations(members, 2):
            yield _of_table((one, asked), (other, wanted))


def _of_table(seen: tuple[StepRecord, StepQuestion], wanted: tuple[StepRecord, StepQuestion]) -> Told:
    """A step predicted from that of another row."""
    (one, asked), (other, question) = seen, wanted

    def step(question: StepQuestion) -> Any:  # noqa: ANN401 (a prediction from values of constants)
        def predict(values: Mapping[str, Real]) -> Real:
            return predicted_step(question, values).seconds

        return predict

    what = Measurable(what=one.id, predict=step(asked), stages=_STAGES, noise=REPEATED)
    measured = one.measured["step_time_s"]
    after = calibrated([Point(of=what, source=one.id, measured=measured, limit=EDGE)]).after
    own = predicted_step(asked, after.central())
    rest = left_of_step(measured, float(own.seconds), float(own.overhead_seconds))
    tokens, then = (each.samples * (each.prompt_tokens + each.response_tokens) for each in (one, other))

    def with_rest(values: Mapping[str, Any]) -> Any:  # noqa: ANN401 (a number or draws)
        found = predicted_step(question, values)
        waits = rest.seconds * (then / tokens) ** values["step_wait_growth"]
        return found.seconds + (rest.factor - 1.0) * found.overhead_seconds + waits

    draws = scattered(np.asarray(with_rest(after.drawn(0))), AGAIN, 0, other.id)
    return Told(
        pair=f"{one.id} {other.id}",
        source=other.source_id,
        knob=_knob(one, other),
        run=other.id,
        phase="step",
        measured=other.measured["step_time_s"],
        predicted=float(with_rest(after.central())),
        band=interval(np.asarray(draws)),
        as_tokens=measured * then / tokens,
        unchanged=measured,
    )


def _knob(one: StepRecord, other: StepRecord) -> str:
    """By what two rows differ most."""
    if rl_step.relation(one, other) != "same mode and GPUs":
        return "mode" if rl_step.relation(one, other) == "other mode" else "GPUs"
    if (one.rollout_dtype, one.train_dtype) != (other.rollout_dtype, other.train_dtype):
        return "number types"
    return "layout and lengths" if one.samples == other.samples else "samples"


def by_source(told: Sequence[Told], share: Callable[[Sequence[Told]], float]) -> list[float]:
    """A share of each publication: predictions of one err together, so that sources are what counts."""
    names = dict.fromkeys(one.source for one in told)
    return [share([one for one in told if one.source == name]) for name in names]


def coverage(told: Sequence[Told]) -> float:
    """Share of measurements in their bands, each source counted once."""
    return mean(by_source(told, lambda ones: mean(one.inside for one in ones)))


def untested_spread(told: Sequence[Told]) -> float:
    """Spread of a step after a change, as the sources have it in the median: for changes that none of them tells of."""
    steps = [one for one in told if one.phase == "step" and one.knob not in {"lengths", "nothing"}]
    return median(by_source(steps, lambda ones: median(one.error(one.predicted) for one in ones))) / HALF_NORMAL


def lines(told: Sequence[Told]) -> list[str]:
    """The table: each phase, and each knob of it, beside what needs no model."""
    head = ("Phase", "Knob", "Pairs", "Sources", "Median", "p90", "In 80 % band", "Right at", "Width")
    found = [f"| {' | '.join((*head, *_GUESSES))} |", "| --- | --- |" + " ---: |" * (len(head) + 1)]
    for phase in _KEYS:
        whole = [one for one in told if one.phase == phase]
        for knob in ("all", *dict.fromkeys(one.knob for one in whole)):
            found += [_line(phase, knob, [one for one in whole if knob in {"all", one.knob}])]
    return found


def beside(ones: Sequence[Told]) -> tuple[float, ...]:
    """How far twins are off, and each guess that needs no model: medians of a publication, all publications alike."""

    def off(name: str) -> float:
        return mean(by_source(ones, lambda some: median(one.error(getattr(one, name)) for one in some)))

    return tuple(map(off, _GUESSES.values()))


def _line(phase: str, knob: str, ones: Sequence[Told]) -> str:
    errors = [one.error(one.predicted) for one in ones]
    sources = len({one.source for one in ones})
    low, high = expected_coverage(sources)
    shares = [
        f"{100 * x:.1f} %" for x in (median(errors), float(np.quantile(errors, 0.9)), coverage(ones), *beside(ones))
    ]
    width = median(one.band[1] / one.band[0] for one in ones)
    counts = (phase, knob, str(len(ones)), str(sources))
    cells = (*counts, *shares[:3], f"{100 * low:.0f} to {100 * high:.0f} %", f"x {width:.2f}", *shares[3:])
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table, the pairs that cannot be said, and each prediction where they are asked for."""
    data = read_pairs()
    told = [*of_logs(data), *of_tables()]
    sys.stdout.write("\n".join(lines(told)) + "\n")
    sys.stdout.write(f"spread of a step after a change that nobody has tested: {untested_spread(told):.2f}\n")
    for row in data["unsaid"]:
        sys.stdout.write(f"not said: {row['id']}: {row['why']}\n")
    if "--rows" in sys.argv:
        for one in told:
            figures = f"{one.measured:.4g} {one.predicted:.4g} ({one.band[0]:.4g} to {one.band[1]:.4g})"
            sys.stdout.write(f"{one.knob}: {one.pair} {one.run} {one.phase} {figures}\n")


if __name__ == "__main__":
    main()
