"""What a user says that keys mean: `generation_seconds=t_gen_ms * 0.001`, or a file of such lines."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import TYPE_CHECKING

from rlsize.errors import Fault, InputError, noting, suggestion
from rlsize.facts.run_log import KeyMapping, StepRecord
from rlsize.readers.logs.figures import Figure, inverse, product
from rlsize.readers.logs.names import memory_scale, unit_scale
from rlsize.readers.validation import opened, validated
from rlsize.readers.yaml_documents import read_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

QUANTITIES = tuple(each.name for each in fields(StepRecord) if each.name not in {"step", "updates"})
"""What a key may be said to mean."""
_SCALED = re.compile(r"(.+) \* ([0-9.eE+-]+)")
_FORM = "write QUANTITY=KEY, as in --map generation_seconds=t_gen, or a file from --learn"


def said_figures(texts: Iterable[str]) -> list[Figure]:
    """
    What `--map` says, flag by flag, or in files.

    Args:
        texts: `QUANTITY=KEY`, or the names of files.

    Raises:
        InputError: All that is wrong with them.
    """
    found: list[Figure] = []
    faults: list[Fault] = []
    for text in texts:
        pairs: list[tuple[str, str, str]] = []
        with noting(faults):
            pairs += [_pair(text)] if "=" in text else _file(text)
        for quantity, key, where in pairs:
            figure = _figure(quantity, key.strip())
            found += [figure] if figure else []
            if quantity not in QUANTITIES:
                faults.append(
                    Fault(f"{quantity[:60]!r} is no quantity of a step", where, suggestion(quantity, QUANTITIES))
                )
            elif figure is None:
                faults.append(Fault(f"{key[:60]!r} is no key, or not scaled by a number above 0", where, _FORM))
    if faults:
        raise InputError(*faults)
    return found


def _pair(text: str) -> tuple[str, str, str]:
    quantity, _, key = text.partition("=")
    return quantity.strip(), key, "--map"


def _file(name: str) -> Iterator[tuple[str, str, str]]:
    document = opened(read_document(name), "mapping")
    for quantity, key in validated(KeyMapping, document).quantities.items():
        yield quantity, key, document.where(("quantities", quantity))


def _figure(quantity: str, text: str) -> Figure | None:
    """The figure that a text says; None if it says none."""
    scaled = _SCALED.fullmatch(text)
    try:
        scale = float(scaled[2]) if scaled else None
    except ValueError:
        return None
    inverted = text.startswith("1 / ")
    multiplied = " x " in text
    keys = (scaled[1] if scaled else text.removeprefix("1 / ")).split(" x " if multiplied else " + ")
    if not all(map(str.strip, keys)) or (scale is not None and not 0 < scale < float("inf")):
        return None
    terms = tuple((key.strip(),) for key in keys)
    if inverted:
        return Figure(field=quantity, of=terms[:1], how=inverse, says="1 / {0}")
    if multiplied:
        return product(quantity, *terms[:2])
    units = {"seconds": unit_scale, "bytes": memory_scale}
    usual = units.get(quantity.rpartition("_")[2], lambda _: 1.0)(keys[0]) or 1.0
    return Figure(field=quantity, of=terms, scale=usual if scale is None else scale)
