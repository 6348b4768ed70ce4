"""
What cog writes into the pages: outputs of real commands, and the reference pages made from the program itself.

Run by `make docs-write`, checked by `make docs`. Nothing here is shipped.
"""

from __future__ import annotations

from generate.accuracy import aims, carried, missed, out_of_order
from generate.commands import excerpt, results, run, session
from generate.derivation import derived
from generate.desk import Desk
from generate.equation_reference import equations
from generate.files import shown_file
from generate.flag_reference import cli
from generate.frameworks import framework_index, framework_page, framework_unread
from generate.log_tables import log_tables
from generate.nomenclature import nomenclature
from generate.profile_tables import profiles, unreadable
from generate.scenario_fields import budget, rates, scenario
from generate.worked import answers, worked

__all__ = [
    "Desk",
    "aims",
    "answers",
    "budget",
    "carried",
    "cli",
    "derived",
    "equations",
    "excerpt",
    "framework_index",
    "framework_page",
    "framework_unread",
    "log_tables",
    "missed",
    "nomenclature",
    "out_of_order",
    "profiles",
    "rates",
    "results",
    "run",
    "scenario",
    "session",
    "shown_file",
    "unreadable",
    "worked",
]
