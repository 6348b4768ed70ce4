"""Hit ratios against a prefix cache that is played through token by token, and against a real engine's counters."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.equations import redundancy

BLOCK = 32


@dataclass
class Engine:
    """One engine's prefix cache: whole blocks, known by the tokens up to their end; the last token is computed."""

    block: int = BLOCK
    known: set[tuple[int, ...]] = field(default_factory=set)
    queries: int = 0
    hits: int = 0

    def prefill(self, prompt: tuple[int, ...]) -> None:
        """Look the prompt up, count what is found, and keep its whole blocks."""
        ends = range(self.block, len(prompt) + 1, self.block)
        self.queries += len(prompt)
        for end in ends:
            if end > len(prompt) - 1 or prompt[:end] not in self.known:
                break
            self.hits += self.block
        self.known |= {prompt[:end] for end in ends}


def prompts(count: int, length: int, shared: int) -> list[tuple[int, ...]]:
    """Prompts that open with the same tokens and go on with tokens of their own."""
    return [tuple([-1] * shared + [1000 * number] * (length - shared)) for number in range(1, count + 1)]


def expected(group: int, length: int, shared: int, block: int, spread: float) -> float:
    """What the equations say."""
    later = redundancy.cacheable_prompt_tokens(length, block)
    first = redundancy.cacheable_shared_tokens(shared, length, block)
    return float(redundancy.prefix_cache_hit_ratio(group, length, later, first, spread))


def test_a_real_engines_counters() -> None:
    """
    Four prompts of 256 tokens with n = 8 gave a running vLLM (blocks of 32) 6464 hits in 8192 queried tokens.

    Later samples hit 7 of 8 blocks each: 4 x 7 x 224 = 6272. The other 192 are 3 x 64: prompts with two blocks in
    common give them, because all but the very first one find those.
    """
    engine = Engine()
    for prompt in prompts(4, 256, shared=64):
        for _ in range(8):
            engine.prefill(prompt)
    assert (engine.hits, engine.queries) == (6464, 8192)
    per_group = redundancy.cacheable_prompt_tokens(256, BLOCK) * 7 / 2048
    assert expected(8, 256, 0, BLOCK, 1) == per_group == 6272 / 8192
    cold_start = 64 / 8192  # the very first prompt finds nothing, which the steady-state formula does not know
    assert expected(8, 256, 64, BLOCK, 1) - cold_start == 6464 / 8192


@given(
    group=st.integers(1, 16),
    length=st.integers(1, 300),
    shared=st.integers(0, 100),
    block=st.sampled_from([1, 16, 32]),
    engines=st.integers(1, 4),
)
def test_kept_together_and_dealt_out(group: int, length: int, shared: int, block: int, engines: int) -> None:
    """In a warm fleet the counters give the formula exactly, for groups on one engine and dealt out in turn."""
    shared = min(shared, length)
    for spread in (1, min(group, engines)):
        fleet = [Engine(block) for _ in range(spread)]
        warm_up, prompt = prompts(2, length, shared)
        for engine in fleet:
            engine.prefill(warm_up)
            engine.queries = engine.hits = 0
        for sample in range(group):
            fleet[sample % spread].prefill(prompt)
        ratio = sum(engine.hits for engine in fleet) / sum(engine.queries for engine in fleet)
        assert ratio == pytest.approx(expected(group, length, shared, block, spread), abs=1e-12)


@pytest.mark.parametrize(("group", "engines"), [(1, 3), (2, 2), (3, 4), (5, 3), (6, 2)])
def test_spread_at_random(group: int, engines: int) -> None:
    """Averaged over every possible routing of a group, the counters give the formula exactly."""
    (prompt,) = prompts(1, 100, shared=0)
    hits = queries = 0
    for routing in product(range(engines), repeat=group):
        fleet = [Engine() for _ in range(engines)]
        for place in routing:
            fleet[place].prefill(prompt)
        hits += sum(engine.hits for engine in fleet)
        queries += sum(engine.queries for engine in fleet)
    spread = redundancy.instances_per_group_random(group, engines)
    assert hits / queries == pytest.approx(expected(group, 100, 0, BLOCK, spread), abs=1e-12)
