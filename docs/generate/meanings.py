"""What results and inputs mean that no equation and no flag explains."""

from __future__ import annotations

MEANINGS: dict[str, str] = {}
