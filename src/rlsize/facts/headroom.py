"""Headroom: the derating of a rate for what it does not contain yet."""

FULL_HEADROOM = 0.8
"""For a rate that contains nothing of what headroom covers; a starting default of the sizing runbook, not a law."""

PLAIN_HEADROOM = 1.0
"""For questions about rates as they are: the split of the lesson, the backlog at its fastest."""
