"""Expressions over keys: what they work out, what they leave unknown, and that nothing else can be said in them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize.frameworks.expressions import Plain, UnreadableError, arithmetic, degree, evaluate, items, names

NUMBERS = st.integers(-(10**6), 10**6)


@given(NUMBERS, NUMBERS, st.sampled_from("+-*"))
def test_arithmetic_over_keys_is_pythons(one: int, two: int, sign: str) -> None:
    """Keys have dots, and hold numbers."""
    expected = {"+": one + two, "-": one - two, "*": one * two}[sign]
    assert evaluate(f"a.b {sign} c", Plain({"a.b": one, "c": two}.get)) == expected


@given(NUMBERS, st.sampled_from(["a + {}", "{} * a", "a / {}", "-a", "min(a, {})", "a if a > 3 else None"]))
def test_what_is_not_known_makes_the_result_unknown(number: int, text: str) -> None:
    """A sum with an unknown part is unknown, and so is a choice that rests on it."""
    assert evaluate(text.format(number), Plain(lambda _: None)) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("first(a, b, 3)", 2),
        ("'full' if c == 'on' else 'none'", "full"),
        ("count(listed('x', b > 1, 'y', b > 2))", 1),
        ("8192*3//2", 12288),
        ("number('16 * 2')", 32),
        ("common('range(0, 8)', 'range(4, 12)')", 4),
        ("union('range(0, 8)', 'range(4, 12)')", 12),
        ("total('8 8')", 16),
        ("matches(c, 'O')", True),
        ("b in (1, 2)", True),
        ("not said(a)", True),
        ("b / 2", 1),
    ],
)
def test_what_expressions_say(text: str, expected: object) -> None:
    """Each function, a choice, and a quotient that is whole."""
    assert evaluate(text, Plain({"b": 2, "c": "on"}.get)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch CANARY')",
        "open('x')",
        "(lambda: 1)()",
        "[x for x in a]",
        "a[0]",
        "a.__class__()",
        "first(*a)",
        "2 ** 999999999",
        "f'{a}'",
        "a := 3",
        "1 +",
        "(" * 500 + "1" + ")" * 500,
        "1" * 3000,
        "min(a, key=b)",
        "1 / 0",
        "'x' < 3 < b",
        "int('x')",
    ],
)
def test_nothing_but_expressions_can_be_said(text: str) -> None:
    """Attributes of values, calls of anything else, powers, subscripts, comprehensions: none is worked out."""
    with pytest.raises(UnreadableError):
        evaluate(text, Plain({"a": 1, "b": 2}.get))


@pytest.mark.parametrize(
    "text",
    ["matches('a', '(a+)+$')", "text(1)", "said(a)", "first(1, 2)", "'8' * 2", "9**64**64", "2**63", "1 == 1", "a"],
)
def test_a_launch_calls_functions_of_numbers_alone(text: str) -> None:
    """Whoever writes a value cannot have a pattern searched, a text made or a number without end worked out."""
    with pytest.raises(UnreadableError):
        arithmetic(text)
    assert evaluate("number(a)", Plain({"a": text}.get)) is None


def test_arithmetic_of_a_launch_has_powers_and_choices() -> None:
    """As Python scripts have them."""
    assert arithmetic("2**20 // 3 if 4 > 3 else 1") == 349525
    assert arithmetic("+round(7 / 2) - -float(1)") == 5


@given(st.text(max_size=60))
def test_any_text_is_an_expression_or_a_fault(text: str) -> None:
    """And never anything else."""
    with suppress(UnreadableError):
        evaluate(text, Plain({"a": 1}.get))


def test_names_are_the_keys_that_are_asked() -> None:
    """Functions are none."""
    assert set(names("first(a.b, loop.c) if said(d) else e")) == {"a.b", "loop.c", "d", "e"}


@given(st.lists(st.integers(0, 99), min_size=1, max_size=8))
def test_a_list_is_read_however_it_is_written(numbers: list[int]) -> None:
    """As a list, with brackets, commas or spaces."""
    texts = [str(number) for number in numbers]
    assert items(numbers) == items(str(numbers)) == items(" ".join(texts)) == items(",".join(texts)) == texts


@pytest.mark.parametrize(
    ("text", "side", "expected"),
    [
        ("sglang:d4p1t2+fsdp:d8p1t1", "rollout", (4, 1, 2)),
        ("sglang:d4p1t2+fsdp:d8p1t1", "trainer", (8, 1, 1)),
        ("sglang.d4p1t1+d2p2t2", "trainer", (2, 2, 2)),
        ("megatron:(attn:d4p4t2|ffn:d2p4e4)", "trainer", (4, 4, 2)),
        ("vllm:d6", "rollout", (6, 1, 1)),
        ("fsdp:d6", "rollout", (0, 0, 0)),
    ],
)
def test_an_allocation_says_the_degrees_of_each_side(text: str, side: str, expected: tuple[int, ...]) -> None:
    """Data, pipeline and tensor parallelism; 1 where one is not said, 0 where the side is not."""
    assert tuple(degree(text, side, letter) for letter in "dpt") == expected
