"""One quantity, one name: arguments of equations, results, inputs and the fields of files."""

from __future__ import annotations

import re
from collections import defaultdict

import typer

from generate.every_flag import ENGINE_INPUTS, MEASURE_INPUTS, answers, keys
from generate.flag_reference import walked
from generate.markdown import table
from generate.meanings import COLUMN_UNITS
from generate.meanings import COLUMNS as OTHER_COLUMNS
from generate.meanings import MEANINGS as OTHERS
from generate.meanings_check import CHECKED, CHECKED_COLUMNS
from generate.meanings_diff import DIFFED, DIFFED_COLUMNS
from generate.meanings_operate import OPERATED, OPERATED_COLUMNS
from generate.meanings_plan import PLANNED, PLANNED_COLUMNS
from generate.meanings_predictions import PREDICTED, PREDICTED_COLUMNS
from generate.meanings_simulation import SIMULATED, SIMULATED_COLUMNS
from generate.scenario_fields import Field, rates_fields, scenario_fields
from rlsize import units
from rlsize.quantities.table import QUANTITIES
from rlsize.reports.equation_page import equation_names, page
from rlsize.shell.app import app

MEANINGS = OPERATED | SIMULATED | OTHERS | PREDICTED | CHECKED | PLANNED | DIFFED
COLUMNS = (
    OPERATED_COLUMNS
    | SIMULATED_COLUMNS
    | OTHER_COLUMNS
    | PREDICTED_COLUMNS
    | CHECKED_COLUMNS
    | PLANNED_COLUMNS
    | DIFFED_COLUMNS
)
GROUPED = {"profiles list", "profiles show"}  # whose tables are one for each kind, or part of a profile
_ANOTHER_LOOP = {
    "best_split_": "at the best split",
    "best_": "of the best plan",
    "judged_": "of the fleet that is judged beside the match",
}
"""Prefixes of results about another loop than the one that was stated."""
_SYMBOL = re.compile(r", (?:[A-Za-z](?:_\w+)?'?\*?|t_\w+|idle)(?=[.;:,]|$)")


def nomenclature() -> str:
    """The whole page."""
    return "\n".join(
        [
            "## Arguments of equations\n",
            table(["Name", "Unit", "Meaning", "In"], arguments()),
            "## Results\n",
            table(["Key", "Unit", "Meaning", "Equation"], result_keys()),
            "## Inputs\n",
            table(["Key", "Unit", "Meaning"], input_keys()),
            "## Columns of rows\n",
            table(["Key", "Unit", "Meaning", "In"], row_keys()),
            "## Fields of a scenario\n",
            _fields(scenario_fields()),
            "## Fields of a rates file\n",
            _fields(rates_fields()),
        ]
    )


def arguments() -> list[list[str]]:
    """Every argument name of every equation: units, meanings, and the files that use it."""
    said: dict[str, dict[str, None]] = defaultdict(dict)
    unit: dict[str, dict[str, None]] = defaultdict(dict)
    files: dict[str, dict[str, None]] = defaultdict(dict)
    for name in equation_names():
        for argument in page(name).arguments:
            said[argument.name][_SYMBOL.sub("", argument.text).rstrip(".")] = None
            unit[argument.name][f"[{argument.unit}]"] = None
            files[argument.name][name.partition(".")[0]] = None
    return [
        [f"`{name}`", " ".join(unit[name]), "; ".join(said[name]) + ".", ", ".join(files[name])]
        for name in sorted(said)
    ]


def result_keys() -> list[list[str]]:
    """Every key of `results` that a command can print: unit, meaning, equations."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for document in answers():
        for key in document["results"]:
            found[key] |= dict.fromkeys(filter(None, [document["explain"].get(key, {}).get("equation")]))
    return [
        [f"`{key}`", _unit(key), _meaning(key, *by), ", ".join(f"[{name}]({_anchor(name)})" for name in by)]
        for key, by in sorted(found.items())
    ]


def _anchor(equation: str) -> str:
    return f"equations.md#{equation.partition('.')[2]}"


def input_keys() -> list[list[str]]:
    """Every key of `inputs` that a command can print: unit and meaning."""
    told = _flag_helps() | {field.key: field.meaning for field in scenario_fields()}
    found = dict.fromkeys((*ENGINE_INPUTS, *MEASURE_INPUTS.values()), "")
    for document in answers():
        for key in document["inputs"]:
            explained = document["explain"].get(key, {})
            said = told.get(_said_by(explained.get("source", "")), "")
            if not said and explained.get("equation"):
                said = page(explained["equation"]).summary
            found[key] = found.get(key) or said
    return [
        [f"`{key}`", _unit(key), _row(key) or MEANINGS.get(key) or text or _meaning(key)]
        for key, text in sorted(found.items())
    ]


def row_keys() -> list[list[str]]:
    """Every column that the tables of an answer can have: unit, meaning, and where it occurs."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    known = {key.strip("`"): meaning for key, _, meaning, *_ in [*input_keys(), *result_keys()]}
    for document in answers():
        for name, rows in document["rows"].items():
            for key in keys({"rows": {name: rows}}, "rows"):
                found[key][document["command"] if document["command"] in GROUPED else name] = None
    return [
        [
            f"`{key}`",
            COLUMN_UNITS.get(key) or _unit(key),
            COLUMNS.get(key) or known.get(key) or _meaning(key),
            ", ".join(sorted(tables)),
        ]
        for key, tables in sorted(found.items())
    ]


def _said_by(source: str) -> str:
    """The flag or the scenario key that a source names."""
    return source.removeprefix("default of ").rpartition(": ")[2]


def _flag_helps() -> dict[str, str]:
    return {
        name: parameter.help or ""
        for _, command in walked(typer.main.get_command(app))
        for parameter in command.params
        for name in parameter.opts
    }


def _unit(key: str) -> str:
    if key.endswith("_bytes_per_gpu"):
        return "B/gpu"
    unit = units.unit_of(key)
    return {"%": "fraction", "$": "usd", "/s": "1/s", "/day": "1/day"}.get(unit, unit)


def _row(key: str) -> str:
    """What the quantity's row says; empty where it is no quantity that can be said."""
    return QUANTITIES[key].meaning if key in QUANTITIES else ""


def _meaning(key: str, *equations: str) -> str:
    """What a result means: where a quantity can be said too, its row speaks to those who say it."""
    for prefix, about in _ANOTHER_LOOP.items():
        if key.startswith(prefix) and key not in MEANINGS:
            return f"{_meaning(key.removeprefix(prefix), *equations).rstrip('.')}: {about}."
    bare = key.removeprefix("expected_").removeprefix("nameplate_")
    told = MEANINGS.get(key) or MEANINGS.get(bare) or _row(key)
    if told:
        return told
    if equations:
        return page(equations[0]).summary
    said = {name.strip("`"): meaning for name, _, meaning, _ in arguments()}
    said |= {field.key.rpartition(".")[2]: field.meaning for field in scenario_fields()}
    if key not in said:
        raise RuntimeError(f"docs/generate/meanings.py lacks {key}, which nothing else explains")
    return said[key]


def _fields(found: list[Field]) -> str:
    return table(
        ["Key", "Unit", "Meaning"],
        [[f"`{field.key}`", f"[{field.unit}]" if field.unit else "", field.meaning] for field in found],
    )
