"""How the samples of a step end that also wait for something, or stop when others of their group have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rlsize.equations import batch_drain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rlsize.equations._ops import Real

POINTS = 65
_CLOSER = 3  # most end early: the power by which points lie closer there


class Endings(NamedTuple):
    """
    Shares that have ended by some tokens, waits told as tokens; tables over `tokens`, in their last axis.

    Args:
        longest: By which all have ended. [token]
        done: Share of samples. [1]
        whole: Share of groups of which nobody runs any more. [1]
        size: Samples of a group. [1]
    """

    longest: Real
    done: Real
    whole: Real
    size: Real

    @property
    def tokens(self) -> NDArray[np.float64]:
        """The points of the tables. [token]"""
        return np.asarray(self.longest)[..., None] * np.linspace(0.0, 1.0, POINTS) ** _CLOSER

    def finished(self, tokens: NDArray[np.float64]) -> Real:
        """Share of samples that have ended by then."""
        return self._at(self.done, tokens)

    def complete(self, tokens: NDArray[np.float64]) -> Real:
        """Share of groups that have ended by then."""
        return self._at(self.whole, tokens)

    def longer(self, tokens: NDArray[np.float64]) -> Real:
        """The integral of the share of samples that have not ended, from then on. [token]"""
        sums = _sums(1.0 - self.done, self.tokens)
        return self._at(sums[..., -1:] - sums, tokens)

    def of_all_ages(self) -> Endings:
        """The same of samples and groups that are met under way, and of what is left to them."""
        both = (_sums(1.0 - one, self.tokens) for one in (self.done, self.whole))
        return self._replace(
            **{key: one / np.maximum(one[..., -1:], 1e-9) for key, one in zip(("done", "whole"), both, strict=True)}
        )

    def mean_left(self) -> Real:
        """What samples that are met under way have left on average. [token]"""
        running = 1.0 - self.done
        return np.trapezoid(running * self.tokens, self.tokens, axis=-1) / np.trapezoid(running, self.tokens, axis=-1)

    def longest_of(self, samples: Real) -> Real:
        """When the last of so many samples has ended, on average. [token]"""
        some = np.asarray(samples / self.size)[..., None]
        return np.trapezoid(batch_drain.chance_of_any(self.whole, some), self.tokens, axis=-1)

    def _at(self, table: Real, tokens: NDArray[np.float64]) -> Real:
        axes = np.ndim(self.longest)
        more = (1,) * (tokens.ndim - axes)
        ahead = np.clip(tokens / np.reshape(self.longest, np.shape(self.longest) + more), 0.0, 1.0) ** (1 / _CLOSER)
        place = ahead * (POINTS - 1)
        first = np.minimum(place.astype(int), POINTS - 2)
        flat = first.reshape(*first.shape[:axes], -1)
        wide = np.broadcast_to(table, (*flat.shape[:-1], POINTS))
        low, high = (np.take_along_axis(wide, flat + one, axis=-1).reshape(first.shape) for one in (0, 1))
        return low + (high - low) * (place - first)


def _sums(heights: Real, tokens: NDArray[np.float64]) -> NDArray[np.float64]:
    """Integrals from nothing to each point."""
    parts = np.diff(tokens, axis=-1) * (heights[..., 1:] + heights[..., :-1]) / 2
    return np.concatenate([np.zeros_like(parts[..., :1]), np.cumsum(parts, axis=-1)], axis=-1)
