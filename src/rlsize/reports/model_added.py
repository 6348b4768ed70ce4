"""What a new model profile holds: its size, and the bill part by part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.reports.report import Column, Report, Table

if TYPE_CHECKING:
    from rlsize.estimates.model_size import ModelSize
    from rlsize.facts.figure import Figure
    from rlsize.facts.model import Model
    from rlsize.reports.report import Cell

SHADOWED = "{name} is the name of a shipped profile, which this one replaces wherever its folder is named."
_COLUMNS = (Column("part", "part", "left"), Column("params", "parameters"), Column("active_params", "active"))
_CACHES = (
    "kv_bytes_per_token",
    "index_bytes_per_token",
    "sliding_cap_bytes",
    "recurrent_state_bytes",
    "convolution_state_bytes",
)


def model_added_report(model: Model, size: ModelSize, saved: Figure, *, folder: str, shadowed: bool) -> Report:
    """
    The report on a profile that was written.

    Args:
        model: The profile.
        size: What its architecture comes to.
        saved: The file, under the key `profile`.
        folder: The folder of profiles that it stands in.
        shadowed: Whether it has the name of a shipped profile.
    """
    params, active = size.params.number / 1e9, size.active_params.number / 1e9
    caches = [getattr(size, name) for name in _CACHES]
    rows: tuple[dict[str, Cell], ...] = tuple(
        {"part": part.name.replace("_", " "), "params": part.params.value, "active_params": part.active_params.value}
        for part in size.parts
    )
    return Report(
        command="profiles add-model",
        headline=f"{model.name}: {params:.4g}B parameters, {active:.4g}B work on each token; wrote {saved.value}",
        results=(saved, size.params, size.active_params, *(cache for cache in caches if cache.value)),
        quiet=frozenset({"profile"}),
        tables={"parts": Table(title="Parameters", columns=_COLUMNS, rows=rows)},
        warnings=(*model.notes, *([SHADOWED.format(name=model.name)] if shadowed else [])),
        notes=(
            "Caches in bf16, recurrent states in fp32; add the published counts to the file to have them compared.",
            f"Use it: rlsize profiles show {model.name} --profiles {folder}",
        ),
    )
