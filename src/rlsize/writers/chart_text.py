"""The words of a chart, made harmless: names of models and files come from anywhere."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from rlsize.writers.html_parts import harmless

if TYPE_CHECKING:
    from rlsize.reports.chart import Picture

_NO_WORDS = frozenset({"kind", "role", "axis"})


def plain_text(picture: Picture) -> Picture:
    r"""
    The picture with words that matplotlib draws as they are: a price has a dollar sign, and no formula behind it.

    >>> from rlsize.reports.chart import Chart
    >>> plain_text(Chart(title="$2 or\x1b $3", x_label="", y_label="", series=())).title
    '\\$2 or \\$3'
    """
    found: Picture = _changed(picture)
    return found


def _changed(thing: Any) -> Any:  # noqa: ANN401 (whatever charts are made of)
    if isinstance(thing, str):
        return harmless(thing).replace("$", r"\$")
    if isinstance(thing, tuple):
        return tuple(map(_changed, thing))
    if is_dataclass(thing) and not isinstance(thing, type):
        parts = {field.name: getattr(thing, field.name) for field in fields(thing) if field.name not in _NO_WORDS}
        return replace(thing, **{name: _changed(part) for name, part in parts.items()})
    return thing
