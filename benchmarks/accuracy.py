"""
How wrong the predictions are: the tables of docs/accuracy.md.

All published records with the shipped constants; the same with constants fitted anew without the model or source of
the record, and for engines without an engine, a generation of GPUs, a width of weights; calibrated on one record
(weight syncs on two) and predicting another; and every constant with its source.

    python -m benchmarks.accuracy                        # prints the tables, of benchmarks/published
    python -m benchmarks.accuracy --write docs/accuracy.md   # puts them between the marks of that page
    python -m benchmarks.accuracy --folder DIR --class rollout
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.coverage import consistent
from benchmarks.holdout import held_out

from rlsize.estimates.recorded.registry import fold, number_type, predictors
from rlsize.readers.profiles import Catalogue
from rlsize.readers.records.listing import profiles_of, published_files, read_records
from rlsize.verdicts.board import board
from rlsize.verdicts.contests import contests
from rlsize.verdicts.grading import point, score, transfer_grades
from rlsize.verdicts.predictions import predictions
from rlsize.verdicts.transfer import transfer
from rlsize.writers.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rlsize.estimates.recorded.registry import Predictor
    from rlsize.facts.board import BoardCell
    from rlsize.facts.records import Record, RefusedRecord
    from rlsize.verdicts.grading import Score
    from rlsize.verdicts.predictions import PredictedRecord, Predictions, ProfilesOf
    from rlsize.verdicts.transfer import Pair

SEED = 0
BEGIN, END = "<!-- accuracy: begin -->", "<!-- accuracy: end -->"
MOST_PAIRS = 60  # of a family: a step that is calibrated costs seconds
MOVED_BY, BARELY = 1.1, 1e-4  # a constant that is so many times itself bears on a record that moves by more
ON_TWO = frozenset({"sync", "weight_sync"})
"""Classes whose time is affine, so that a calibration needs two records."""


def main() -> None:
    """Print the tables, or write them into a page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").strip().splitlines()[0])
    parser.add_argument("--folder", type=Path, help="records in place of benchmarks/published")
    parser.add_argument("--class", dest="classes", action="append", help="only this class of records; repeatable")
    parser.add_argument("--write", type=Path, help="a page with the marks that the tables go between")
    asked = parser.parse_args()
    files = sorted(asked.folder.glob("*.yaml")) if asked.folder else published_files()
    if not files:
        sys.exit("no records: name a folder of them with --folder")
    text = tables(files, asked.classes)
    if asked.write is None:
        print(text)
        return
    page = asked.write.read_text(encoding="utf-8")
    if BEGIN not in page or END not in page:
        sys.exit(f"{asked.write} has no lines {BEGIN} and {END}")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    write_whole(asked.write, f"{before}{BEGIN}\n{text}\n{END}{after}", force=True)


def tables(files: Sequence[Path], classes: Sequence[str] | None = None) -> str:
    """All tables as Markdown."""
    catalogue = Catalogue()
    known = {name: found for name, found in predictors().items() if not classes or name in classes}
    listing = read_records(files, catalogue)
    look_up = profiles_of(catalogue)
    listed = [entry for entry in listing.records if entry.class_name in known]
    found = predictions(listed, known, look_up, SEED, say)
    refused = [row for row in (*listing.refused, *found.refused) if not classes or row.class_name in known]
    parts = [
        ("Shipped constants, all records", shipped(found)),
        *(
            (f"Constants fitted without the {left} of the record", without(found, known, look_up, by))
            for left, by in ways(look_up).items()
        ),
        ("Calibrated on one record, another of its family predicted", moved(found, known, look_up)),
        ("The faster of two ways to do the same work", winners(found, known)),
        ("Board, shipped constants", cells(board(found.records, known, look_up, SEED))),
        ("Refused records", refusals(refused)),
        ("Constants", constants(known, carried(found, known, look_up))),
    ]
    return "\n\n".join(f"### {title}\n\n{text}" for title, text in parts)


def say(text: str, share: float) -> None:
    """Progress on stderr."""
    sys.stderr.write(f"\r{text} {share:4.0%}\033[K")
    if share >= 1.0:
        sys.stderr.write("\n")


def shipped(found: Predictions) -> str:
    """Every cell of every class, low trust apart."""
    rows = []
    for trusted in (True, False):
        records = [record for record in found.records if record.trusted == trusted]
        rows += [
            [name, cell if trusted else f"{cell} (low trust)", field, str(own.n), str(own.sources), *errors(own, fits)]
            for name, cell, field, own, fits in scores(records)
        ]
    return table(["class", "of these", "field", "n", "sources", *ERRORS], rows)


def ways(look_up: ProfilesOf) -> dict[str, Callable[[Predictor, Record], str]]:
    """What is left out in turn: whatever is new to the next user is new to the constants in one of them."""

    def generation(_: Predictor, record: Record) -> str:
        """By the narrowest matrix units of the GPU."""
        spec = look_up(record).gpu.specification
        return "fp4" if spec.fp4_dense else "fp8" if spec.fp8_dense else "bf16"

    return {
        "model": fold,
        "source": lambda _, record: record.source_id,
        "GPU generation": generation,
        "number type": lambda _, record: number_type(record),
        "engine or framework": lambda _, record: record.stack,
    }


def without(
    found: Predictions, known: dict[str, Predictor], look_up: ProfilesOf, by: Callable[[Predictor, Record], str]
) -> str:
    """Every cell of every class whose constants can be fitted without a part of its records."""
    rows = []
    again = held_out(found.records, known, look_up, SEED, say, by)
    for name in known:
        own = [record for record in again if record.class_name == name]
        lost = sum(record.trusted for record in found.records if record.class_name == name) - len(own)
        rows += [[name, cell, field, str(part.n), *errors(part, fits)] for _, cell, field, part, fits in scores(own)]
        if own and lost:
            rows.append([name, "not predicted", "", str(lost), *[""] * len(ERRORS)])
    return table(["class", "of these", "field", "n", *ERRORS], rows)


def moved(found: Predictions, known: dict[str, Predictor], look_up: ProfilesOf) -> str:
    """Pairs by cell and by how their records differ, beside the guesses."""
    cells = {(record.class_name, record.record.id): record.cell for record in found.records}
    rows = []
    for together in (1, 2):
        records = [record for record in found.records if together == 1 or record.class_name in ON_TWO]
        pairs = transfer(records, known, look_up, SEED, say, together=together, most=MOST_PAIRS).pairs
        on = {1: "", 2: ", on two records"}[together]
        for cell in sorted({cells[pair.class_name, pair.id] for pair in pairs}):
            rows += _pair_rows([p for p in pairs if cells[p.class_name, p.id] == cell], f"{cell}{on}")
    rows.sort(key=lambda row: (row[0], row[1]))
    header = ["class", "of these", "the two have", "pairs", "families", "calibrated", "by family", "in band", "before"]
    return table([*header, "1/GPUs", "unchanged"], rows)


def _pair_rows(pairs: Sequence[Pair], cell: str) -> list[list[str]]:
    return [
        [
            grade.class_name,
            cell,
            grade.relation,
            str(grade.after.n),
            str(grade.after.families),
            both(grade.after),
            both(grade.by_family),
            percent(grade.after.coverage),
            both(grade.before),
            both(grade.as_gpus),
            both(grade.unchanged),
        ]
        for grade in transfer_grades(pairs, SEED)
    ]


def winners(found: Predictions, known: dict[str, Predictor]) -> str:
    """How often the faster of two ways is named, where the gap is clear."""
    rows = []
    pairs = contests(found.records, known)
    for name in sorted({contest.class_name for contest in pairs}):
        own = [contest for contest in pairs if contest.class_name == name]
        clear = [contest for contest in own if contest.clear]
        right = sum(contest.right for contest in clear)
        rows.append([name, str(len(clear)), str(right), str(len(own) - len(clear))])
    return table(["class", "pairs", "right", "too close to call"], rows)


def cells(found: Iterable[BoardCell]) -> str:
    """Cells by GPU, engine or framework, and number type; those of a single record are marked."""
    rows = (
        [
            *(
                own.class_name,
                own.part,
                own.gpu,
                own.stack,
                own.dtype,
                "1, one deep" if own.records == 1 else own.records,
            ),
            *(f"{percent(own.median)} / {percent(own.p90)}", percent(own.coverage), percent(own.guess)),
        ]
        for own in found
    )
    header = ["class", "of these", "GPU", "with", "type", "n", "median / p90 %", "in band %", "guess without a model %"]
    return table(header, rows)


def refusals(refused: Iterable[RefusedRecord]) -> str:
    """Why records are not graded."""
    counted = Counter((row.class_name or "none", row.reason) for row in refused)
    return table(["class", "reason", "n"], ([name, reason, str(n)] for (name, reason), n in sorted(counted.items())))


def carried(found: Predictions, known: dict[str, Predictor], look_up: ProfilesOf) -> dict[str, list[str]]:
    """Sources of the trusted records whose graded field moves with a constant, one for each record, by its name."""
    moved: dict[str, list[str]] = {}
    for one in (record for record in found.records if record.trusted):
        predictor, record = known[one.class_name], one.record
        own = [constant for stage in predictor.STAGES for constant in stage.constants]
        values = {constant.name: np.full(len(own) + 1, constant.value) for constant in own}
        for place, constant in enumerate(own):
            values[constant.name][place + 1] *= MOVED_BY
        told = np.broadcast_to(predictor.predict(record, look_up(record), values)[one.fields[0].name], len(own) + 1)
        for place, constant in enumerate(own):
            if abs(told[place + 1] / told[0] - 1) > BARELY:
                moved.setdefault(constant.name, []).append(record.source_id)
    return moved


def constants(known: dict[str, Predictor], moved: dict[str, list[str]]) -> str:
    """Every constant once, with its stage, and how many trusted records, of how many sources, bear on it."""
    stages = {stage.name: stage for found in known.values() for stage in found.STAGES}
    rows = []
    for stage in stages.values():
        for c in stage.constants:
            sources = moved.get(c.name, [])
            held = f"{len(sources)} of {len(set(sources))}" if sources else "none"
            value = f"{c.value:.4g} {c.unit}"
            rows.append([f"`{c.name}`", stage.name, value, f"{c.spread:.2g}", c.basis, held, c.meaning, c.source])
    rows += [
        ["scatter of one measurement", stage.name, "", f"{stage.noise:.2g}"] + [""] * 4 for stage in stages.values()
    ]
    header = ["constant", "stage", "value", "spread (log)", "basis", "records of sources", "meaning", "source"]
    return table(header, rows)


def scores(records: Sequence[PredictedRecord]) -> list[tuple[str, str, str, Score, bool]]:
    """Class, cell, field, score, whether its bands hold 80 %: the field that counts for each cell, then the others."""
    found = []
    for name, cell in sorted({(record.class_name, record.cell) for record in records}):
        own = [record for record in records if (record.class_name, record.cell) == (name, cell)]
        heads = Counter(record.fields[0].name for record in own)
        fields = [*heads, *sorted({f.name for record in own for f in record.fields} - set(heads))]
        for field in fields:
            points = [
                point(f, record.record.source_id, repr(record.family))
                for record in own
                for f in record.fields
                if f.name == field
            ]
            found.append((name, cell, field, score(points, SEED), consistent(points)))
    return found


NOT_80 = "not 80"
"""What stands beside a share that bands of 80 % do not hold, in 95 of 100 cases, of so many sources."""

ERRORS = ("median / p90 %", "bias %", "in band % (95 % interval)", "band ends")


def errors(own: Score, fits: bool) -> list[str]:
    """The cells of a score, and whether its bands hold as much as bands of 80 % do."""
    low, high = own.coverage_interval or (None, None)
    held = f"{percent(own.coverage)} ({percent(low)} to {percent(high)}, by {own.resampled})" if own.banded else "-"
    held += "" if fits else f"; {NOT_80}"
    return [both(own), f"{100 * math.expm1(own.bias):+.0f}", held, f"x {own.width:.2f}" if own.width else "-"]


def both(own: Score | None) -> str:
    """Median and 90th percentile of the error."""
    return "-" if own is None else f"{percent(own.median)} / {percent(own.p90)}"


def percent(share: float | None) -> str:
    """A share in percent, with tenths below ten."""
    if share is None:
        return "-"
    return f"{100 * share:.1f}" if share < 0.0995 else f"{100 * share:.0f}"  # noqa: PLR2004 (tenths matter below 10 %)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


if __name__ == "__main__":
    main()
