"""Lines of known keys: what the pattern catches and what it leaves is the same as what a slow reading gives."""

from __future__ import annotations

from rlsize.readers.logs.layouts import Layouts

KEYS = ("a/b", "c", "d/mean")
LINE = "a/b:1.5 - c:np.float64(-2e-3) - d/mean:7"


def test_caught_and_left_keys_give_their_numbers() -> None:
    """A key that nobody asked for beforehand has its number all the same."""
    layouts = Layouts({"a/b"})
    assert layouts.row(LINE, 3.0, "line 1") is None
    layouts.learn(KEYS)
    row = layouts.row(LINE, 3.0, "line 1")
    assert row is not None
    assert dict(row.values) == {"a/b": 1.5, "c": -0.002, "d/mean": 7.0}
    assert row.layout == KEYS


def test_a_line_that_differs_is_not_taken() -> None:
    """Another order, a missing key, more text or a value that is no number: not this layout."""
    layouts = Layouts(set(KEYS))
    layouts.learn(KEYS)
    for text in (
        "c:1 - a/b:1 - d/mean:1",
        "a/b:1 - c:1",
        LINE + " x",
        "a/b:1.2.3 - c:1 - d/mean:1",
        "a/b:1 - c:nan - d/mean:1",
    ):
        assert layouts.row(text, 1.0, "line 1") is None


def test_the_latest_order_is_tried_first_and_their_number_is_bounded() -> None:
    """Many orders of keys cost patterns only up to a bound."""
    layouts = Layouts(set())
    for number in range(100):
        layouts.learn((f"k{number}",))
    assert len(layouts._known) == 32
    row = layouts.row("k30:1", 1.0, "line 1")
    assert row is not None
    assert layouts._known[0].keys == ("k30",)
