"""A saved observation as text: what `diagnose --before` and `manifest --rollback` take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.writers.yaml_file import plain, yaml_text

if TYPE_CHECKING:
    from rlsize.facts.observation_file import RunObservation


def observation_text(observation: RunObservation) -> str:
    """The YAML of an observation; what is unknown is left out, and each column is one line."""
    content = plain(observation)
    steps, columns = content.pop("steps"), content.pop("columns")
    lines = [f"steps: [{', '.join(map(str, steps))}]\n", "columns:\n" if columns else "columns: {}\n"]
    lines += [f"  {name}: [{', '.join(f'{value:.9g}' for value in values)}]\n" for name, values in columns.items()]
    return yaml_text("observation", content) + "".join(lines)
