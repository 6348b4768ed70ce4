"""
How much tests try: what takes less than a second wherever they run, all tests in CI (`RLSIZE_CI`), and all that
long ones can try in the nightly run (`RLSIZE_NIGHTLY`).

A test of a second or more is marked `long`; the mark says how many of its cases run by day too.
"""

from __future__ import annotations

import os

import pytest

NIGHTLY = bool(os.environ.get("RLSIZE_NIGHTLY"))
CI = NIGHTLY or bool(os.environ.get("RLSIZE_CI"))

BY_NIGHT = pytest.mark.skipif(not NIGHTLY, reason="takes a minute, and the nightly run has it: RLSIZE_NIGHTLY=1")


def tries(all_of_it: int) -> int:
    """How many random examples a test tries out of those that it tries at night."""
    return all_of_it if NIGHTLY else -(-all_of_it // (2 if CI else 8))
