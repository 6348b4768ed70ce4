"""A rates file as text: what `fleet --per-instance` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.writers.yaml_file import plain, yaml_text

if TYPE_CHECKING:
    from rlsize.facts.rates import Rates


def rates_text(rates: Rates) -> str:
    """The YAML of a rates file; what is unknown is left out, except where its absence is worth seeing."""
    return yaml_text("rates", {**plain(rates), "gpus_per_instance": rates.gpus_per_instance})
