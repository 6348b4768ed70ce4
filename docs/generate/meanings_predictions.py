"""What keys of predictions and of their grades mean, where nothing else says it."""

from __future__ import annotations

PREDICTED: dict[str, str] = {}

PREDICTED_COLUMNS: dict[str, str] = {}
