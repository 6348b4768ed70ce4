"""How much long tests try: some of it wherever tests run, all of it where `RLSIZE_THOROUGH` is set, as in CI."""

from __future__ import annotations

import os

THOROUGH = bool(os.environ.get("RLSIZE_THOROUGH"))


def tries(all_of_it: int) -> int:
    """How many random examples a test tries out of those that it tries in CI."""
    return all_of_it if THOROUGH else -(-all_of_it // 4)
