"""What each framework logs and what rlsize makes of it, from the readers' own tables."""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import TYPE_CHECKING

from generate.markdown import table
from rlsize.facts.run_log import StepRecord
from rlsize.readers.logs.forms import forms
from rlsize.readers.logs.frameworks import frameworks
from rlsize.reports.wording import words

if TYPE_CHECKING:
    from rlsize.readers.logs.figures import Figure
    from rlsize.readers.logs.mapping import Framework

_OVERVIEW = ("step_seconds", "generation_seconds", "wait_seconds", "logprob_seconds", "update_seconds", "sync_seconds",
             "response_tokens", "staleness_steps", "mfu")  # fmt: skip
_FOLDER = "rlsize.readers.logs.frameworks"


def log_tables() -> str:
    """The whole page, without its head."""
    parts = ["## At a glance\n", _overview(), "## Forms\n", _forms()]
    for framework in _known():
        parts += [f"## {framework.name}\n", f"{_source(framework)}\n", _keys(framework)]
    return "\n".join(parts)


def _known() -> list[Framework]:
    """The frameworks with a table."""
    return [framework for framework in frameworks().values() if not framework.by_name]


def _overview() -> str:
    """Which figures each framework's log has."""
    rows = []
    for framework in _known():
        has = {figure.field for figure in framework.figures} | set(framework.follows)
        rows.append([f"[{framework.name}](#{framework.name})", *("yes" if key in has else "" for key in _OVERVIEW)])
    return table(["Framework", *(words(key) for key in _OVERVIEW)], rows)


def _forms() -> str:
    """How logs may be written."""
    rows = [[f"`{form.name}`", form.framework or "several"] for form in forms()]
    return table(["Form", "Of"], rows)


def _source(framework: Framework) -> str:
    """What its file says of it, and of where the keys were read."""
    module = sys.modules[f"{_FOLDER}.{framework.name.replace('-', '_')}"]
    text = (module.__doc__ or "").strip()
    return "\n".join(line.strip() for line in text.splitlines())


def _keys(framework: Framework) -> str:
    """Each field with the keys behind it, in the order of a step's fields."""
    order = {entry.name: place for place, entry in enumerate(fields(StepRecord))}
    rows = [
        (order[figure.field], [words(figure.field), _said(figure), figure.counts])
        for figure in dict.fromkeys(framework.figures)
    ]
    rows += [(order[name], [words(name), how, ""]) for name, how in framework.follows.items()]
    ordered = [row for _, row in sorted(rows, key=lambda row: row[0])]
    return table(["What rlsize makes of it", "Keys", "Counts"], ordered)


def _said(figure: Figure) -> str:
    """The keys of a figure, as they are put together; older names behind newer ones."""
    terms = [" or ".join(f"`{name}`" for name in term) for term in figure.of]
    if figure.says:
        return figure.says.format(*terms)
    text = " + ".join(terms)
    return text if figure.scale == 1.0 else f"{text} x {figure.scale:.10g}"
