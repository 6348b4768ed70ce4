"""
Fits the constants that say so to the published records: `python -m benchmarks.tuning rollout`.

Prints what `src/rlsize/estimates/constants_*.py` should say; nothing is written.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from benchmarks.fitting import fitted

from rlsize.errors import Refused
from rlsize.estimates.recorded.registry import contradictions, predictors, table
from rlsize.readers.profiles import Catalogue
from rlsize.readers.records.listing import profiles_of, published_files, read_records

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from rlsize.estimates.recorded.registry import Predictor, Profiles

KEPT_SPREAD = 0.5
"""Share of the untuned spread that bands keep: rows of a few models cannot say what another model will do."""


def residual(predictor: Predictor, record: Any, profiles: Profiles, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 (each class has a record of its own)
    """Logarithm of predicted over measured, of the quantity that counts."""
    key = predictor.graded(record)
    return np.log(predictor.predict(record, profiles, values)[key] / record.measured[key])


def main() -> None:
    """Print the constants of a stage as its file should have them."""
    wanted = sys.argv[1] if len(sys.argv) > 1 else "rollout"
    catalogue, known = Catalogue(), predictors()
    look_up = profiles_of(catalogue)
    residuals: list[Callable[[Mapping[str, Any]], Any]] = []
    tables: list[Hashable] = []
    chosen: list[tuple[Predictor, Any]] = []
    serving = {name: found for name, found in known.items() if found.STAGES[0].name == wanted}
    stages = next(iter(serving.values())).STAGES
    central = {constant.name: constant.value for stage in stages for constant in stage.constants}
    listed = read_records(published_files(), catalogue).records
    for name, predictor in serving.items():
        own = [entry.record for entry in listed if entry.class_name == name]
        odd = contradictions(predictor, own)
        chosen += [(predictor, record) for place, record in enumerate(own) if place not in odd]
    for predictor, record in chosen:
        if record.trust == "low":
            continue
        try:
            one = partial(residual, predictor, record, look_up(record))
            one(central)
        except Refused:
            continue
        residuals.append(one)
        tables.append(table(predictor, record))
    values = fitted(residuals, tables, stages)
    for constant in (constant for constant in stages[0].constants if constant.untuned):
        before, spread = constant.untuned or (0.0, 0.0)
        said = f"{values[constant.name]:.3g}, spread {KEPT_SPREAD * spread:.3g}, untuned ({before:.3g}, {spread:.3g})"
        print(f"{constant.name:40s} {said}")


if __name__ == "__main__":
    main()
