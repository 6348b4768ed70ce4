"""The shipped profiles, read once."""

from __future__ import annotations

import pytest

from rlsize.readers.profiles import Catalogue


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    """The shipped profiles, without any user folder."""
    return Catalogue()
