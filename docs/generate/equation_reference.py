"""Every equation as a page."""

from __future__ import annotations

import importlib
from itertools import groupby

from generate.files import fenced
from generate.markdown import table
from rlsize.reports.equation_page import EquationPage, equation_names, page


def equations() -> str:
    """The whole page: a list of what there is, then one section for each file and each equation."""
    files = _files()
    overview = table(
        ["File", "Equations"],
        [
            [f"[{file}](#{file})", ", ".join(f"[{_short(entry)}](#{_short(entry)})" for entry in entries)]
            for file, entries in files.items()
        ],
    )
    return "\n".join([overview, *(_of_file(file, entries) for file, entries in files.items())])


def equation_pages() -> dict[str, str]:
    """A page for each file and for each equation, by name, for a site; no name stands twice."""
    pages = {}
    for file, entries in _files().items():
        listed = "\n".join(f"- [{_short(entry)}]({_short(entry)}.md): {entry.summary}" for entry in entries)
        pages[file] = f"{_of_file(file, [])}\n{listed}\n"[1:]
        pages |= {_short(entry): _of_equation(entry)[2:] for entry in entries}
    return pages


def _files() -> dict[str, list[EquationPage]]:
    return {file: [page(name) for name in names] for file, names in groupby(equation_names(), _file)}


def _file(name: str) -> str:
    return name.partition(".")[0]


def _short(entry: EquationPage) -> str:
    return entry.name.partition(".")[2]


def _of_file(file: str, entries: list[EquationPage]) -> str:
    said = importlib.import_module(f"rlsize.equations.{file}").__doc__ or ""
    return "\n".join([f"## {file}\n", f"{' '.join(said.split())}\n", *(_of_equation(entry) for entry in entries)])


def _of_equation(entry: EquationPage) -> str:
    rows = [[f"`{argument.name}`", f"[{argument.unit}]", argument.text] for argument in entry.arguments]
    return "\n".join(
        [
            f"### {_short(entry)}\n",
            f"{entry.summary}\n",
            fenced(entry.formula, "text"),
            table(["Argument", "Unit", "Meaning"], rows),
            f"Returns `{entry.symbol}` [{entry.unit}]. Assumes {entry.assumes}\n",
            f"Source: {entry.source}\n",
            fenced(entry.example, "python"),
        ]
    )
