"""What the keys of a training log mean, as a user says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from rlsize.facts.fields import Says


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyMapping:
    """Keys of a log by the quantity that they say."""

    quantities: Annotated[
        dict[str, str],
        Says(
            "The key of each quantity; or `KEY * 0.001`, `KEY + KEY`, `KEY x KEY`, `1 / KEY`, blanks around the sign."
        ),
    ]
