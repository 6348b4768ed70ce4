"""The few operations that equations need: plain Python for floats, numpy for arrays; numpy loads only for arrays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

Real: TypeAlias = Any
"""A float, or a numpy array of floats; where arrays come in, an array of their broadcast shape comes out."""


def _array(a: Real, b: Real = None, c: Real = None) -> bool:
    return hasattr(a, "__array_ufunc__") or hasattr(b, "__array_ufunc__") or hasattr(c, "__array_ufunc__")


def minimum(a: Real, b: Real) -> Real:
    """The smaller of two, element by element."""
    if _array(a, b):
        import numpy as np

        return np.minimum(a, b)
    return min(a, b)


def maximum(a: Real, b: Real) -> Real:
    """The larger of two, element by element."""
    if _array(a, b):
        import numpy as np

        return np.maximum(a, b)
    return max(a, b)


def where(condition: Real, a: Real, b: Real) -> Real:
    """`a` where the condition holds, else `b`, element by element; both are computed."""
    if _array(condition, a, b):
        import numpy as np

        return np.where(condition, a, b)
    return a if condition else b


def floor(a: Real) -> Real:
    """The largest whole number that is not larger, element by element."""
    if _array(a):
        import numpy as np

        return np.floor(a)
    return float(math.floor(a))


def ceil(a: Real) -> Real:
    """The smallest whole number that is not smaller, element by element."""
    if _array(a):
        import numpy as np

        return np.ceil(a)
    return float(math.ceil(a))


def exp(a: Real) -> Real:
    """E to the power of a, element by element."""
    if _array(a):
        import numpy as np

        return np.exp(a)
    return math.exp(a)


def log(a: Real) -> Real:
    """The natural logarithm, element by element."""
    if _array(a):
        import numpy as np

        return np.log(a)
    return math.log(a)


def erf(a: Real) -> Real:
    """The error function, element by element."""
    if _array(a):
        import numpy as np

        return np.fromiter(map(math.erf, a.ravel().tolist()), float, a.size).reshape(a.shape)
    return math.erf(a)


def each(a: Real, of: Callable[[float], float]) -> Real:
    """A function of one number, element by element."""
    if _array(a):
        import numpy as np

        found = {one: of(one) for one in set(a.ravel().tolist())}
        return np.array([found[one] for one in a.ravel().tolist()]).reshape(a.shape)
    return of(a)


def sqrt(a: Real) -> Real:
    """The square root, element by element."""
    if _array(a):
        import numpy as np

        return np.sqrt(a)
    return math.sqrt(a)
