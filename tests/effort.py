"""
How much long tests try: some of it wherever tests run, all of it in the nightly run (`RLSIZE_NIGHTLY`).

CI (`RLSIZE_CI`) adds what nothing else holds: every generated page, and predictions of every published run.
"""

from __future__ import annotations

import os

import pytest

NIGHTLY = bool(os.environ.get("RLSIZE_NIGHTLY"))
CI = NIGHTLY or bool(os.environ.get("RLSIZE_CI"))

BY_NIGHT = pytest.mark.skipif(not NIGHTLY, reason="takes a minute, and the nightly run has it: RLSIZE_NIGHTLY=1")


def tries(all_of_it: int) -> int:
    """How many random examples a test tries out of those that it tries at night."""
    return all_of_it if NIGHTLY else -(-all_of_it // 4)
