"""The one place that knows numba: functions over flat arrays are compiled where it is installed, and left as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_Function = TypeVar("_Function", bound="Callable[..., object]")


def compiled(function: _Function) -> _Function:
    """A function that is compiled when it is first called, for whoever calls it from compiled code."""
    try:
        from numba import njit
    except ImportError:
        return function
    found: _Function = njit(function)
    return found


def kept(function: _Function) -> _Function:
    """As `compiled`, and kept in the user's cache folder for the next process, if any folder can be written to."""
    try:
        from numba import config, njit
    except ImportError:
        return function
    config.CACHE_LOCATOR_CLASSES = "_UserProvidedCacheLocator,_UserWideCacheLocator,_InTreeCacheLocator"
    try:
        found: _Function = njit(cache=True)(function)
    except RuntimeError:  # no such folder
        return compiled(function)
    return found
