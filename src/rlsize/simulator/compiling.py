"""The one place that knows numba: it compiles functions over flat arrays, which are left as they are without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

try:
    import numba
except ImportError:
    numba = None

if TYPE_CHECKING:
    from collections.abc import Callable

_Function = TypeVar("_Function", bound="Callable[..., object]")
_HOW: dict[str, Any] = {"error_model": "numpy", "_nrt": False}  # nothing is divided by zero, no array is made
_PLACES = "UserProvidedCacheLocator,UserWideCacheLocator,InTreeCacheLocator"  # where what is compiled is kept


def compiled(function: _Function) -> _Function:
    """A function that is compiled with whoever calls it, and called by nobody else."""
    return _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def entrance(function: _Function) -> _Function:
    """A function that Python calls, kept in the user's cache folder for the next process if that can be written to."""
    if numba is None:
        return function
    config = numba.config
    before, config.CACHE_LOCATOR_CLASSES = config.CACHE_LOCATOR_CLASSES, _PLACES
    try:
        return _compiled(function, cache=True)
    except RuntimeError:
        return _compiled(function)
    finally:
        config.CACHE_LOCATOR_CLASSES = before


def _compiled(function: _Function, **how: object) -> _Function:
    if numba is None:
        return function
    found: _Function = numba.njit(**_HOW, **how)(function)
    return found


def inlined(function: _Function) -> _Function:
    """As `compiled`, within each of its callers."""
    return _compiled(function, inline="always")
