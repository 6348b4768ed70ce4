"""What a prediction of a record needs beside the record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.facts.gpu import Gpu
    from rlsize.facts.model import Model


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles:
    """The profiles that a record names."""

    model: Model
    gpu: Gpu
