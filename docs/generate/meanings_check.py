"""What keys of `rlsize check` mean, where nothing else says it."""

from __future__ import annotations

CHECKED: dict[str, str] = {
    "broken_limits": "Limits that the central value breaks.",
    "doubtful_limits": "Limits that only the 80 % band breaks.",
    "limits": "Limits that were judged.",
    "sharding": "What the trainer's data-parallel ranks share: none, optimizer, gradients or all states (full).",
}

CHECKED_COLUMNS: dict[str, str] = {
    "baseline": "The quantity in the baseline.",
    "bound": "Kind of limit: max, min, max_increase or max_decrease.",
    "change": "Change from the baseline.",
    "change_fraction": "The same as a share of the baseline.",
    "file": "File in which the limit stands.",
    "limit": "The amount that the quantity must keep.",
    "line": "Line of the limit in that file.",
    "margin": "Room to the limit; negative where it is broken.",
    "margin_fraction": "The same as a share of the limit.",
    "provenance": "Where the quantity comes from: given, measured, predicted or default.",
    "quantity": "Key of the quantity; its ending says the unit of the row's numbers.",
    "status": "fail where the central value breaks the limit, warn where only the 80 % band does, else pass.",
}
