"""What a reader must know before trusting what was seen of a fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.estimates.counter_growth import grown, lengths_grown, mean_response_tokens, unfinished_tokens
from rlsize.estimates.length_fit import length_doubts, length_fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rlsize.estimates.counter_growth import Ends
    from rlsize.facts.lengths import LengthFit
    from rlsize.facts.observations import Observation

HITS_EXPECTED = 0.8  # share of the expected prefix-cache hits below which groups seem to be spread


def fitted_lengths(ends: Sequence[Ends]) -> LengthFit | None:
    """The distribution of the response lengths of the window; None where no page tells them."""
    counts = lengths_grown(ends)
    return None if counts is None else length_fit(counts)


def doubts(seen: Observation, ends: Sequence[Ends]) -> list[str]:
    """
    Everything that is doubtful.

    Args:
        seen: What was seen, with its conditions.
        ends: The first and the last counters of each instance that counts.
    """
    return [*_of_instances(seen), *_of_fleet(seen), *_of_counting(ends), *_of_lengths(seen, ends)]


def _of_instances(seen: Observation) -> list[str]:
    found = [
        f"{instance.instance} is left out: it {instance.left_out}" for instance in seen.instances if not instance.used
    ]
    if seen.lower_bound:
        found.append(f"the rate is a lower bound, what the fleet was asked for: {seen.why}")
    for instance in seen.used:
        if instance.straggler:
            cause = ", or was asked for less: it was not saturated" if instance.lower_bound else ""
            found.append(f"{instance.instance} is a straggler: {instance.tokens_per_second or 0.0:,.0f} tok/s{cause}")
    return found


def _of_fleet(seen: Observation) -> list[str]:
    found = []
    if ", " in seen.model:
        found.append(f"the instances serve different models ({seen.model}), so their mean is the rate of none of them")
    if ", " in seen.engine:
        found.append(f"the instances run different engines ({seen.engine}), so their mean is the rate of none of them")
    observed, affine = seen.prefix_cache_hit_fraction, seen.affine_prefix_cache_hit_fraction
    if observed is not None and affine.known and observed < HITS_EXPECTED * affine.number:
        found.append(
            f"the prefix cache hit {100 * observed:.0f} % of prompt tokens where {100 * affine.number:.0f} % "
            "is expected: keep each group on one instance"
        )
    return found


def _of_counting(ends: Sequence[Ends]) -> list[str]:
    late = sorted({last.engine for _, last in ends if last.at_finish})
    if not late:
        return []
    found = f"{', '.join(late)} counts tokens only when their sample finishes"
    unfinished, counted = unfinished_tokens(ends), grown(ends, "generation_tokens")
    if not unfinished or not counted:
        return [f"{found}: watch for several times as long as a sample takes"]
    share = 100 * unfinished / counted
    found += f": samples in flight at either end hold about {unfinished:,.0f} more, {share:.0f} % of those counted; "
    return [found + "whether short ones finished first cannot be told, and a longer window makes both small"]


def _of_lengths(seen: Observation, ends: Sequence[Ends]) -> list[str]:
    doubt = mean_response_tokens(ends)[1]
    counts = lengths_grown(ends)
    fit = length_doubts(counts, seen.lengths) if counts is not None and seen.lengths is not None else []
    return [*([doubt] if doubt else []), *fit]
