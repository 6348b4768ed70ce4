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
_MOMENTS = 128  # at which samples come
_AGES = 24  # by which those are told apart that are met under way
_SLIP, _NEVER = 1e-9, 1e-300


class Endings(NamedTuple):
    """
    Shares that have ended by some tokens, waits told as tokens; tables over `tokens`, in their last axis.

    Args:
        longest: By which all have ended. [token]
        done: Share of samples. [1]
        whole: Share of groups of which nobody runs any more. [1]
        size: Samples of a group. [1]
        running: Share of those that have not ended which have a slot. [1]
    """

    longest: Real
    done: Real
    whole: Real
    size: Real
    running: Real = 1.0

    @property
    def tokens(self) -> NDArray[np.float64]:
        """The points of the tables. [token]"""
        return np.asarray(self.longest)[..., None] * np.linspace(0.0, 1.0, POINTS) ** _CLOSER

    def finished(self, tokens: NDArray[np.float64]) -> Real:
        """Share of samples that have ended by then."""
        return self._at(self.done, tokens)

    def run(self, tokens: NDArray[np.float64]) -> Real:
        """Share of the samples that have not ended by then which have a slot."""
        return self._at(self.running, tokens)

    def complete(self, tokens: NDArray[np.float64]) -> Real:
        """Share of groups that have ended by then."""
        return self._at(self.whole, tokens)

    def longer(self, tokens: NDArray[np.float64]) -> Real:
        """The integral of the share of samples that have not ended, from then on. [token]"""
        table = sums(1.0 - self.done, self.tokens)
        return self._at(table[..., -1:] - table, tokens)

    def let_in(self, leaving: Endings, samples: Real, places: Real, chunk: Real) -> Entered:
        """
        Samples that come as others leave, until the last ones come.

        Args:
            leaving: How they give their places back, which may be before they end.
            samples: Samples in all. [1]
            places: Of which each needs one. [1]
            chunk: Samples that come at once, as soon as there are places for all of them. [1]
        """
        wide = np.broadcast_arrays(self.longest, samples, np.minimum(places, samples), chunk)
        samples, places, chunk = (np.asarray(one, dtype=float)[..., None] for one in wide[1:])
        lacks = samples - places
        if not lacks.any():
            return Entered(lacks[..., 0], samples[..., 0], self)
        stay = np.trapezoid(1.0 - leaving.done, leaving.tokens, axis=-1)[..., None]
        least = np.maximum(places - chunk + 1.0, chunk * stay / leaving.longest_of(chunk[..., 0])[..., None])
        each = samples * stay / least / _MOMENTS
        later, after = (leaving.finished(each * (np.arange(_MOMENTS + 1) + half)) for half in (0.0, 0.5))
        came, gone = (np.zeros(later.shape) for _ in range(2))  # by each moment
        came[..., :1] = np.where(lacks > 0, chunk * np.floor(places / chunk + _SLIP), samples)
        for now in range(1, _MOMENTS + 1):
            fresh = np.diff(came[..., :now], axis=-1)  # in the middle between two moments
            gone[..., now] = came[..., 0] * later[..., now] + (fresh * after[..., now - 1 : 0 : -1]).sum(axis=-1)
            may = chunk * np.floor((places + gone[..., now, None]) / chunk + _SLIP)
            came[..., now, None] = np.maximum(came[..., now - 1, None], np.minimum(samples, may))
        last = np.clip((gone < lacks).sum(axis=-1, keepdims=True), 1, _MOMENTS)
        before, by = (np.take_along_axis(gone, last - one, axis=-1) for one in (1, 0))
        since = np.clip((by - lacks) / np.maximum(by - before, _SLIP), 0.0, 1.0)
        full = np.where(lacks > 0, each * (last - since), 0.0)
        latest = np.where(lacks > 0, np.minimum(chunk, samples), samples)
        edges = full * np.linspace(1.0, 0.0, _AGES) ** 2
        place = np.clip((full - edges) / each, 0.0, _MOMENTS)
        moment = np.minimum(place.astype(int), _MOMENTS - 1)
        fewer, more = (np.take_along_axis(came, moment + one, axis=-1) for one in (0, 1))
        older = np.minimum(fewer + (more - fewer) * (place - moment), samples - latest)
        many = np.concatenate([np.diff(older, axis=-1, prepend=0.0), latest], axis=-1)
        ages = np.concatenate([full, (edges[..., 1:] + edges[..., :-1]) / 2, 0.0 * full], axis=-1)
        return Entered(full[..., 0], *self._met(ages, many))

    def _met(self, ages: NDArray[np.float64], many: NDArray[np.float64]) -> tuple[Real, Endings]:
        """Samples of some ages that have not ended, and how they end."""
        then = ages[..., None] + self.tokens[..., None, :]
        each = many[..., None] * (1.0 - self.finished(then))
        left, run = each.sum(axis=-2), (each * self.run(then)).sum(axis=-2)
        all_ended = (many[..., None] * np.log(np.maximum(self.complete(then), _NEVER))).sum(axis=-2)
        running = np.maximum(left[..., :1], _SLIP)
        runs = run / np.maximum(left, _SLIP)
        return running[..., 0], self._replace(
            done=1.0 - left / running, whole=np.exp(all_ended / running), running=runs
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


class Entered(NamedTuple):
    """
    Samples that came as others left, when the last of them come.

    Args:
        full: Until then, from when the first came. [token]
        running: That are under way then. [1]
        left: What these have left. [1]
    """

    full: Real
    running: Real
    left: Endings


def sums(heights: Real, tokens: NDArray[np.float64]) -> NDArray[np.float64]:
    """Integrals from nothing to each point."""
    parts = np.diff(tokens, axis=-1) * (heights[..., 1:] + heights[..., :-1]) / 2
    return np.concatenate([np.zeros_like(parts[..., :1]), np.cumsum(parts, axis=-1)], axis=-1)
