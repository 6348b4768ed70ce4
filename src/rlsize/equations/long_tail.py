"""The long tail: how long the last sample of a batch keeps an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.equations._ops import maximum, minimum
from rlsize.equations.lengths import lognormal_sigma, normal_share

if TYPE_CHECKING:
    from rlsize.equations._ops import Real

_POINTS = 400  # of the integrals; they agree with 4,000 to 1e-4


def longest_of(samples: Real, mean_tokens: Real, length_cv: Real, max_tokens: Real) -> Real:
    """
    Expected longest of some responses.

    E[max] = integral from 0 to m of (1 - F(x)^n) dx

    Args:
        samples: Responses, n. [1]
        mean_tokens: Mean length without the cap. [token]
        length_cv: Coefficient of variation without the cap. [1]
        max_tokens: The cap, m. [token]

    Returns:
        E[max]. [token]

    Assumes lognormal lengths that are independent; correlation within a group lowers it.
    Source: mean of the largest order statistic (David, Nagaraja, Order statistics, section 3.1).

    >>> round(float(longest_of(samples=128, mean_tokens=1000, length_cv=1.0, max_tokens=8000)), -1)
    6010.0
    """
    fresh, _, lengths = _distribution(mean_tokens, length_cv, max_tokens)
    return _integral(1.0 - fresh ** _last(samples), lengths)


def largest_deviate(samples: Real) -> Real:
    """
    Expected largest of some standard normal values.

    z = integral from 0 to infinity of (1 - Phi(x)^n - (1 - Phi(x))^n) dx

    Args:
        samples: Values, n. [1]

    Returns:
        z. [1]

    Assumes independent values.
    Source: mean of the largest order statistic (David, Nagaraja, Order statistics, section 3.1).

    >>> round(float(largest_deviate(samples=10.0)), 2)
    1.54
    """
    import numpy as np

    deviates = np.linspace(0.0, 6.0, _POINTS)
    below = np.asarray(normal_share(deviates))
    return _integral(1.0 - below ** _last(samples) - (1.0 - below) ** _last(samples), deviates)


def mean_remaining_tokens(mean_tokens: Real, length_cv: Real, max_tokens: Real) -> Real:
    """
    Mean of what is left of a sample in flight, and of what it has: half its length-weighted mean.

    l_r = E[X^2] / (2 E[X])

    Args:
        mean_tokens: Mean length without the cap. [token]
        length_cv: Coefficient of variation without the cap. [1]
        max_tokens: The cap. [token]

    Returns:
        l_r. [token]

    Assumes lognormal lengths and samples of all ages.
    Source: renewal theory (Cox, Renewal theory, section 5.2).

    >>> round(float(mean_remaining_tokens(mean_tokens=1000, length_cv=0.5, max_tokens=100000)), 0)
    625.0
    """
    _, remaining, lengths = _distribution(mean_tokens, length_cv, max_tokens)
    return _integral(1.0 - remaining, lengths)


def context_of(prompt_tokens: Real, response_tokens: Real) -> Real:
    """
    Context of a sample.

    s = p + l

    Args:
        prompt_tokens: Its prompt, p. [token]
        response_tokens: Its response so far, l. [token]

    Returns:
        s. [token]

    Assumes one turn.
    Source: definition.

    >>> context_of(prompt_tokens=100, response_tokens=900)
    1000
    """
    return prompt_tokens + response_tokens


def assumed_cap(max_context: Real, prompt_tokens: Real, mean_tokens: Real, mean_lengths: Real) -> Real:
    """
    Cap on response lengths where nobody says one: the model's longest context, or so long that no sample gets there.

    m = min(C - p, k l)

    Args:
        max_context: Longest context of the model, C. [token]
        prompt_tokens: Mean prompt length, p. [token]
        mean_tokens: Mean response length, l. [token]
        mean_lengths: Mean lengths beyond which hardly a sample goes, k. [1]

    Returns:
        m. [token]

    Assumes prompts of similar length.
    Source: definition.

    >>> assumed_cap(max_context=40960, prompt_tokens=1000, mean_tokens=1000, mean_lengths=32)
    32000
    """
    return minimum(max_context - prompt_tokens, mean_lengths * mean_tokens)


def assumed_mean(
    max_tokens: Real, max_context: Real, usual_cap: Real, usual_mean: Real, exponent: Real, fullest: Real
) -> Real:
    """
    Mean response length where only its cap is said: long caps are less full than short ones.

    l = min(a (min(m, C) / r)^x, f m)

    Args:
        max_tokens: Cap on a response, m. [token]
        max_context: Longest context of the model, C. [token]
        usual_cap: A usual cap, r. [token]
        usual_mean: Mean response under it, a. [token]
        exponent: How the mean grows with the cap, x. [1]
        fullest: Share of a short cap that a mean takes at most, f. [1]

    Returns:
        l. [token]

    Assumes a task that the model was made for.
    Source: own derivation; means and caps of published RL steps.

    >>> assumed_mean(max_tokens=1e6, max_context=10000, usual_cap=100, usual_mean=50, exponent=0.5, fullest=0.8)
    500.0
    """
    return minimum(usual_mean * (minimum(max_tokens, max_context) / usual_cap) ** exponent, fullest * max_tokens)


def _last(values: Real) -> Any:  # noqa: ANN401 (a float, or an array with one more axis)
    """The same values, with a last axis for the points of an integral."""
    import numpy as np

    return np.asarray(values, dtype=float)[..., None]


def _integral(heights: Any, lengths: Any) -> Real:  # noqa: ANN401 (arrays of any shape)
    import numpy as np

    found = np.trapezoid(heights, lengths, axis=-1)
    return found if np.ndim(found) else float(found)


def _distribution(mean_tokens: Real, length_cv: Real, max_tokens: Real) -> tuple[Any, Any, Any]:
    """F and F_e of capped lognormal lengths, and the lengths at which they are taken: even in the normal variable."""
    import numpy as np

    sigma = maximum(lognormal_sigma(length_cv), 1e-3)
    centre = np.log(mean_tokens) - sigma**2 / 2
    highest = minimum(8.5, maximum((np.log(max_tokens) - centre) / sigma, -8.5))
    steps = np.linspace(0.0, 1.0, _POINTS)
    normal = -8.5 + (_last(highest) + 8.5) * steps
    lengths = np.exp(_last(centre) + _last(sigma) * normal)
    lengths[..., 0] = 0.0
    lengths = np.minimum(lengths, _last(max_tokens))
    fresh = normal_share(normal)
    widths = np.diff(lengths, axis=-1)
    alive = 1.0 - fresh
    areas = np.cumsum(widths * (alive[..., 1:] + alive[..., :-1]) / 2, axis=-1)
    areas = np.concatenate([np.zeros_like(areas[..., :1]), areas], axis=-1)
    return fresh, areas / areas[..., -1:], lengths
