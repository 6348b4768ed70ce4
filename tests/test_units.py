"""Quantities: text to base units and back."""

from __future__ import annotations

import doctest
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlsize import units


def test_examples_in_docstrings_hold() -> None:
    """What the docstrings show is what happens."""
    assert doctest.testmod(units).failed == 0


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("80 GB", "B", 80e9),
        ("80 GiB", "B", 80 * 2**30),
        ("900 GB/s", "B/s", 900e9),
        ("400 Gb/s", "B/s", 50e9),
        ("400Gbps", "B/s", 50e9),
        ("3.35 TB/s", "B/s", 3.35e12),
        ("989 TFLOP/s", "FLOP/s", 989e12),
        ("16k", "token", 16_000),
        ("70B", "param", 70e9),
        ("39,321.6", "token/s", 39321.6),
        ("4 ktok/s", "token/s", 4000),
        ("86400 tok/day", "token/s", 1.0),
        ("10 min", "s", 600),
        ("250 ms", "s", 0.25),
        ("250 ns", "s", 250e-9),
        ("$2.5", "usd", 2.5),
        ("20 %", "1", 0.2),
        (" .5 ", "1", 0.5),
        (7, "s", 7.0),
    ],
)
def test_a_quantity_with_a_unit_is_read_in_base_units(text: object, unit: str, value: float) -> None:
    """GB is 1e9 bytes, GiB is 2**30, Gb/s are bits."""
    assert units.quantity(text, unit) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "unit", "says"),
    [
        ("80", "B", "no unit"),
        ("50e9", "B/s", "no unit"),
        ("5 furlongs", "s", "not one of its units"),
        ("50 GB", "B/s", "not one of its units"),
        ("nan", "s", "finite"),
        ("-inf", "s", "finite"),
        ("1e999", "s", "finite"),
        ("1e30", "token/s", r"limit 1e\+13 token/s\)"),
        ("1e30", "count", r"limit 1e\+09\)"),
        ("", "1", "not a number"),
        ("1.2.3", "1", "unit"),
        ("--5", "1", "not a number"),
        ("twelve", "count", "not a count"),
        (True, "s", "not a time"),
        (None, "s", "not a time"),
        ([1], "s", "not a time"),
        ("9" * 200, "s", "not a time"),
        ("20 ± 2", "s", "±"),
    ],
)
def test_what_is_no_quantity_is_refused_with_the_reason(text: object, unit: str, says: str) -> None:
    """The message names the value and shows a well-formed one."""
    with pytest.raises(ValueError, match=says):
        units.quantity(text, unit)


@pytest.mark.parametrize(
    ("text", "value", "deviation"),
    [("20 ± 2", 20, 2), ("20 +- 2 s", 20, 2), ("20 s ± 10 %", 20, 2), ("2 min ± 6 s", 120, 6), ("20", 20, 0)],
)
def test_a_spread_is_read_in_the_unit_of_the_value(text: str, value: float, deviation: float) -> None:
    """`±` gives one standard deviation; percent is of the value."""
    read = units.uncertain(text, "s")
    assert read[0] == pytest.approx(value)
    assert read[1] == pytest.approx(deviation)


@given(st.text(max_size=40), st.sampled_from(sorted(units.DIMENSIONS)))
def test_junk_never_escapes_as_another_error(text: str, unit: str) -> None:
    """Any text is either a finite number in range or a ValueError."""
    try:
        value, deviation = units.uncertain(text, unit)
    except ValueError:
        return
    assert math.isfinite(value)
    assert math.isfinite(deviation)
    assert abs(value) <= units.DIMENSIONS[unit].largest


@given(
    st.floats(min_value=1e-3, max_value=1e15),
    st.sampled_from(["sync_bytes", "x_tokens_per_second", "idle_fraction", "cost_usd"]),
)
def test_what_is_shown_is_close_to_what_is_meant(value: float, key: str) -> None:
    """A shown value, read again, is the value to the digits shown."""
    dimension = {"sync_bytes": "B", "x_tokens_per_second": "token/s", "idle_fraction": "1", "cost_usd": "usd"}[key]
    if value > units.DIMENSIONS[dimension].largest:
        return
    shown = units.show(value, key)
    digits = {"idle_fraction": 6e-4, "cost_usd": 6e-3, "x_tokens_per_second": 0.06, "sync_bytes": 0}[key]
    assert units.quantity(shown, dimension) == pytest.approx(value, rel=6e-3, abs=digits)


@pytest.mark.parametrize(
    ("value", "key", "shown"),
    [
        (1120e9, "trainer_bytes", "1,120 GB"),
        (0.0, "sync_seconds", "0 s"),
        (0.1556, "sync_seconds", "0.1556 s"),
        (7300.0, "sync_seconds", "2.028 h"),
        (None, "x", "-"),
        (True, "x", "yes"),
        ("balanced", "bottleneck", "balanced"),
        (0.0004, "cost_per_sample_usd", "$0.0004"),
        (12.5, "cost_per_step_usd", "$12.50"),
        (450e9, "bandwidth_bytes_per_second", "450 GB/s"),
        (0.00041, "idle_fraction", "0.041 %"),
        (1e-9, "idle_fraction", "1e-07 %"),
        (1 - 0.9 - 0.1, "idle_fraction", "0.0 %"),
    ],
)
def test_numbers_are_shown_with_the_unit_their_key_names(value: object, key: str, shown: str) -> None:
    """A key's ending is all that is needed to show its value."""
    assert units.show(value, key) == shown


@pytest.mark.parametrize(
    ("text", "unit", "change"),
    [
        ("5%", "usd", (0.05, True)),
        (" 5 % ", "share", (0.05, True)),
        ("5 pp", "share", (0.05, False)),
        ("$0.10", "usd", (0.10, False)),
        ("2 min", "s", (120.0, False)),
        ("4 GPUs", "gpu", (4.0, False)),
        ("1 step", "step", (1.0, False)),
        ("100 steps/day", "step/day", (100.0, False)),
        ("0.5 GPU-hours", "gpu*hour", (0.5, False)),
        (0, "s", (0.0, False)),
        ("0", "gpu", (0.0, False)),
    ],
)
def test_a_change_is_a_percentage_or_an_amount(text: object, unit: str, change: tuple[float, bool]) -> None:
    """`5%` is of what was, `5 pp` are points of a share, and nothing at all needs no unit."""
    value, relative = units.change(text, unit)
    assert value == pytest.approx(change[0])
    assert relative == change[1]


@pytest.mark.parametrize(("text", "unit"), [(5, "s"), ("5", "usd"), (0.05, "share"), ("5", "gpu"), (5.0, "step/day")])
def test_a_change_without_a_unit_is_refused(text: object, unit: str) -> None:
    """Nobody can know whether percent were meant."""
    with pytest.raises(ValueError, match=rf"{text} has no unit; write {text}% of what it was"):
        units.change(text, unit)


@pytest.mark.parametrize("text", ["", "%", "nan%", "5 furlongs", "20 ± 2", None, True, [5], "1e999%"])
def test_what_is_no_change_is_refused(text: object) -> None:
    """Junk is a ValueError, as everywhere."""
    with pytest.raises(ValueError, match=r"not|±"):
        units.change(text, "s")


@pytest.mark.parametrize("unit", units.DIMENSIONS)
def test_a_fault_reads_as_english(unit: str) -> None:
    """What it is not has its article, whether it is counted or not: tokens and money too."""
    name = units.DIMENSIONS[unit].name
    assert name.split()[0] in {"a", "an"}
    assert name.endswith(("tokens", "parameters", "GPUs", "steps")) == name.startswith("a number of")
    for text, what in (
        ("banana", f"'banana' is not {name}; "),
        ("5 furlongs", f"5 furlongs is not {name}: 'furlongs' "),
    ):
        with pytest.raises(ValueError, match=rf"^{re.escape(what)}.*write "):
            units.quantity(text, unit)
