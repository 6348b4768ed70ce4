"""
Quantities with units: `"80 GB"` to 8e10 and back. The only place that knows what a unit is worth.

Base units inside the program: bytes, seconds, tokens, FLOP, dollars, GPUs. GB is 1e9 bytes, GiB is 2**30.
"""

from __future__ import annotations

import math
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SECONDS_PER_DAY = 86_400.0
SECONDS_PER_HOUR = 3_600.0

_DECIMAL = MappingProxyType({"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18})
_BINARY = MappingProxyType({"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50})
_COUNT = MappingProxyType({"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "m": 1e6, "B": 1e9, "b": 1e9, "G": 1e9, "T": 1e12})
_BITS_PER_BYTE = 8.0


class Dimension(NamedTuple):
    """
    A kind of quantity.

    Args:
        name: What it is called in messages, with its article.
        base: The unit that the program counts in.
        factors: What one of each accepted unit is worth in the base unit.
        bare: Whether a number without a unit is taken as base units.
        largest: Beyond this the number is taken for a slip, not a cluster.
        example: A well-formed value, for messages.
    """

    name: str
    base: str
    factors: Mapping[str, float]
    bare: bool
    largest: float
    example: str


def _bytes() -> dict[str, float]:
    table = {f"{prefix}B": factor for prefix, factor in (_DECIMAL | _BINARY).items()}
    return table | {"KB": 1e3, "bytes": 1.0, "byte": 1.0}


def _bandwidth() -> dict[str, float]:
    table = {f"{unit}/s": factor for unit, factor in _bytes().items()}
    for prefix, factor in _DECIMAL.items():
        bits = factor / _BITS_PER_BYTE
        table |= {f"{prefix}b/s": bits, f"{prefix}bps": bits, f"{prefix}bit/s": bits, f"{prefix}Bps": factor}
    return table


def _flops() -> dict[str, float]:
    return {f"{p}{unit}": f for p, f in _DECIMAL.items() for unit in ("FLOP/s", "FLOPS", "FLOPs", "flop/s", "flops")}


def _counts(*nouns: str) -> dict[str, float]:
    table = dict(_COUNT)
    for noun in nouns:
        for scale, factor in _COUNT.items():
            table |= {f"{scale}{noun}": factor, f"{scale} {noun}": factor}
    return table


_TIME = {
    "s": 1.0, "sec": 1.0, "seconds": 1.0, "second": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9,
    "min": 60.0, "minute": 60.0, "minutes": 60.0, "h": SECONDS_PER_HOUR, "hour": SECONDS_PER_HOUR,
    "hours": SECONDS_PER_HOUR, "d": SECONDS_PER_DAY, "day": SECONDS_PER_DAY, "days": SECONDS_PER_DAY,
}  # fmt: skip
_RATE = _counts("tok/s", "tokens/s", "token/s", "tps") | {
    f"{scale}{noun}": factor / SECONDS_PER_DAY for scale, factor in _COUNT.items() for noun in ("tok/day", "tokens/day")
}
_POWER = {f"{prefix}W": factor for prefix, factor in _DECIMAL.items()}
_DOLLARS = {"": 1.0, "usd": 1.0, "USD": 1.0, "$": 1.0, "dollars": 1.0, "usd/h": 1.0, "USD/h": 1.0}

DIMENSIONS: Mapping[str, Dimension] = MappingProxyType(
    {
        "B": Dimension("a size", "B", _bytes(), False, 1e19, "80 GB"),
        "B/s": Dimension("a bandwidth", "B/s", _bandwidth(), False, 1e16, "50 GB/s"),
        "FLOP/s": Dimension("a compute rate", "FLOP/s", _flops(), False, 1e20, "989 TFLOP/s"),
        "W": Dimension("an amount of power", "W", _POWER, False, 1e7, "700 W"),
        "s": Dimension("a time", "s", _TIME, True, 1e10, "20 s"),
        "token": Dimension("a number of tokens", "token", _counts("tokens", "token", "tok"), True, 1e15, "16k"),
        "token/s": Dimension("a token rate", "token/s", _RATE, True, 1e13, "4000 tok/s"),
        "param": Dimension("a number of parameters", "param", _counts("params", "parameters"), True, 1e15, "70B"),
        "usd": Dimension("an amount of money", "usd", _DOLLARS, True, 1e12, "2.50"),
        "1": Dimension("a number", "1", {"": 1.0, "%": 0.01, "x": 1.0}, True, 1e12, "0.8"),
        "count": Dimension("a count", "1", _counts(), True, 1e9, "64"),
        # Limits may say their noun, and a change must, so that an amount is not taken for a percentage.
        "share": Dimension("a share", "1", {"": 1.0, "%": 0.01, "pp": 0.01}, True, 1e6, "5%"),
        "gpu": Dimension("a number of GPUs", "gpu", _counts("GPUs", "GPU", "gpus", "gpu"), True, 1e9, "64 GPUs"),
        "gpu*hour": Dimension(
            "an amount of GPU time", "gpu*hour", _counts("GPU-hours", "GPU-hour"), True, 1e12, "2 GPU-hours"
        ),
        "step": Dimension("a number of steps", "step", _counts("steps", "step"), True, 1e9, "2 steps"),
        "step/day": Dimension("a step rate", "step/day", _counts("steps/day", "/day"), True, 1e9, "2000 steps/day"),
    }
)

_NUMBER = re.compile(
    r"(?P<number>[+-]?(?:\d{1,3}(?:,\d{3})+|[\d_]*\d|\d*(?=\.\d))(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*(?P<unit>.*)", re.DOTALL
)
_PLUS_MINUS = re.compile(r"\s*(?:±|\+/-|\+-)\s*")
_LONGEST = 100  # a quantity is a word or two; longer text is not one


def quantity(text: object, unit: str) -> float:
    """
    The value of `text` in base units.

    Args:
        text: A number, or a number with a unit.
        unit: The base unit that names the dimension: one of `DIMENSIONS`.

    Raises:
        ValueError: What is wrong with it, with the value and a well-formed example.

    >>> quantity("80 GB", "B")
    80000000000.0
    >>> quantity("400 Gb/s", "B/s")
    50000000000.0
    >>> quantity("16k", "token")
    16000.0
    """
    value, deviation = uncertain(text, unit)
    if deviation:
        raise ValueError(f"{text} has a ±, which is not taken here; write {DIMENSIONS[unit].example}")
    return value


def uncertain(text: object, unit: str) -> tuple[float, float]:
    """
    The value of `text` in base units and its standard deviation, 0 where none is written.

    Raises:
        ValueError: As `quantity`.

    >>> uncertain("20 ± 2", "s")
    (20.0, 2.0)
    >>> uncertain("4 +- 0.5 ktok/s", "token/s")
    (4000.0, 500.0)
    >>> uncertain("20 s ± 10 %", "s")
    (20.0, 2.0)
    """
    dimension = DIMENSIONS[unit]
    if isinstance(text, bool) or not isinstance(text, (int, float, str)):
        raise ValueError(f"{_short(text)} is not {dimension.name}; write {dimension.example}")  # noqa: TRY004 (one error type for one cause)
    if not isinstance(text, str):
        return _checked(_with_unit(_as_float(text), "", dimension, str(text)), dimension, str(text)), 0.0
    if len(text) > _LONGEST:
        raise ValueError(f"{_short(text)} is not {dimension.name}; write {dimension.example}")
    head, *tail = _PLUS_MINUS.split(text.strip())
    if not tail:
        return _checked(_one(head, dimension, ""), dimension, text), 0.0
    if len(tail) > 1:
        raise ValueError(f"{_short(text)} has more than one ±; write {dimension.example} ± ...")
    tail_unit = _split(tail[0], dimension)[1]
    value = _checked(_one(head, dimension, "" if tail_unit == "%" else tail_unit), dimension, text)
    head_unit = _split(head, dimension)[1]
    if tail_unit == "%" and unit != "1":
        return value, abs(value) * _split(tail[0], dimension)[0] / 100.0
    deviation = _checked(_one(tail[0], dimension, head_unit), dimension, text)
    if deviation < 0:
        raise ValueError(f"{text}: a spread is not negative; write {dimension.example} ± ...")
    return value, deviation


def change(text: object, unit: str) -> tuple[float, bool]:
    """
    How far something may move from what it was, and whether that is a share of what it was.

    Raises:
        ValueError: As `quantity`; or it has no unit, so that a percentage cannot be told from an amount.

    >>> change("5 %", "s"), change("2 min", "s"), change("1 pp", "share")
    ((0.05, True), (120.0, False), (0.01, False))
    """
    if isinstance(text, str) and text.strip().endswith("%"):
        return quantity(text, "1"), True
    value, dimension = quantity(text, unit), DIMENSIONS[unit]
    if value and not (isinstance(text, str) and _split(text, dimension)[1]):
        amount = "5 pp" if unit == "share" else dimension.example
        raise ValueError(f"{text} has no unit; write {text}% of what it was, or an amount such as {amount}")
    return value, False


def _as_float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:36]}...'"  # noqa: PLR2004 (about half a line)


def _split(text: str, dimension: Dimension) -> tuple[float, str]:
    stripped = text.strip()
    dollars = stripped.startswith("$")
    match = _NUMBER.fullmatch(stripped[1:].strip() if dollars else stripped)
    if match is None:
        if stripped.lower().lstrip("+-") in {"nan", "inf", "infinity"}:
            raise ValueError(f"{stripped} is not a finite number; write {dimension.example}")
        raise ValueError(f"{_short(text)} is not {dimension.name}; write {dimension.example}")
    number = float(match["number"].replace(",", "").replace("_", ""))
    return number, "$" if dollars and not match["unit"] else match["unit"].strip()


def _one(text: str, dimension: Dimension, fallback_unit: str) -> float:
    number, unit = _split(text, dimension)
    return _with_unit(number, unit or fallback_unit, dimension, text.strip())


def _with_unit(number: float, unit: str, dimension: Dimension, text: str) -> float:
    if not unit:
        if not dimension.bare and number != 0:
            raise ValueError(f"{text} has no unit; write {dimension.name} such as {dimension.example}")
        return number
    factor = dimension.factors.get(unit) or dimension.factors.get(" ".join(unit.split()))
    if factor is None:
        raise ValueError(
            f"{text} is not {dimension.name}: {_short(unit)} is not one of its units; write {dimension.example}"
        )
    return number * factor


def _checked(value: float, dimension: Dimension, text: str) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a finite number; write {dimension.example}")
    if abs(value) > dimension.largest:
        unit = "" if dimension.base == "1" else f" {dimension.base}"
        raise ValueError(f"{text} is beyond anything built (limit {dimension.largest:g}{unit}); check the unit")
    return value


# How a number is shown. A key says its unit by its ending, so the key is all that is needed.
_ENDINGS = (
    ("_tokens_per_second", "tok/s"),
    ("_tokens_per_gpu_second", "tok/s/GPU"),
    ("_bytes_per_second", "B/s"),
    ("_per_second", "/s"),
    ("_per_day", "/day"),
    ("_seconds", "s"),
    ("_bytes_per_token", "B/token"),
    ("_bytes_per_gpu", "B/GPU"),
    ("_bytes", "B"),
    ("_flops", "FLOP/s"),
    ("_usd", "$"),
    ("_fraction", "%"),
    ("_steps", "steps"),
    ("_params", "params"),
    ("_watts", "W"),
)


def short(value: float) -> str:
    """
    A number with a decimal prefix, for axes and bars.

    >>> short(4000), short(0.3111), short(140e9)
    ('4k', '0.3111', '140G')
    """
    for prefix in ("T", "G", "M", "k"):
        if abs(value) >= _DECIMAL[prefix]:
            return f"{value / _DECIMAL[prefix]:.4g}{prefix}"
    return f"{value:.4g}"


_CONTROL = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)))


def printable(text: str) -> str:
    r"""
    Text without control characters, so that a hostile file name or metrics label cannot drive the terminal.

    >>> printable("\x1b[31mred")
    '[31mred'
    """
    return text.translate(_CONTROL)


def cut(text: str, most: int) -> str:
    """
    Text of so many characters at most, so that a message stays in its lines.

    >>> cut("as it is", 8), cut("too long for it", 9)
    ('as it is', 'too l...')
    """
    return text if len(text) <= most else f"{text[: most - 4]}..."


def listed(names: Sequence[str], last: str = "and") -> str:
    """
    Names in a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b"], "or")
    ('a', 'a, b and c', 'a or b')
    """
    return f"{', '.join(names[:-1])} {last} {names[-1]}" if len(names) > 1 else "".join(names)


def some_of(names: Sequence[str], most: int) -> str:
    """
    So many names at most, and how many more there are.

    >>> some_of(["a", "b"], 2), some_of(["a", "b", "c"], 1)
    ('a, b', 'a and 2 more')
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def unit_of(key: str) -> str:
    """
    The unit that a key's ending names; empty for plain numbers.

    >>> unit_of("trainer_idle_fraction"), unit_of("sync_bytes"), unit_of("headroom")
    ('%', 'B', '')
    """
    return next((unit for ending, unit in _ENDINGS if f"_{key}".endswith(ending)), "")


def show(value: object, key: str = "", like: float | None = None) -> str:
    """
    A value for people: the unit its key names, a prefix that suits its size, four digits.

    Args:
        value: It.
        key: What it is of.
        like: Of a time, another one that stands beside it, whose unit it takes.

    >>> show(140e9, "sync_bytes"), show(0.18620, "trainer_idle_fraction"), show(678.4, "backlog_tokens_per_second")
    ('140 GB', '18.6 %', '678.4 tok/s')
    >>> show(0.15556, "sync_seconds"), show(600.0, "waited_seconds"), show(13, "matched_instances")
    ('0.1556 s', '10 min', '13')
    >>> show(240.0, "step_seconds"), show(240.0, "step_seconds", like=600.0)
    ('240 s', '4 min')
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):
        return printable(str(value))
    unit = unit_of(key)
    if unit == "s":
        factor, name = time_unit(value if like is None else like)
        return f"{_digits(value * factor)} {name}"
    return _SHOWN.get(unit, _show_plain)(float(value), unit)


def _digits(value: float, digits: int = 4) -> str:
    if value == 0:
        return "0"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}" if abs(value) >= 10**digits or value == round(value) else f"{value:,.1f}"
    return f"{value:.{digits}g}" if abs(value) >= 1e-4 else f"{value:.2e}"  # noqa: PLR2004 (below it, powers read better)


def _show_plain(value: float, unit: str) -> str:
    if not math.isfinite(value):
        return str(value)
    whole = f"{value:,.0f}" if value == round(value) and abs(value) < 1e15 else _digits(value)  # noqa: PLR2004 (floats are exact below)
    return f"{whole} {unit}".rstrip() if not unit.startswith("/") else f"{whole}{unit}"


def _show_rate(value: float, unit: str) -> str:
    return f"{value:,.1f} {unit}".replace(".0 ", " ") if abs(value) < 1e5 else f"{value:,.0f} {unit}"  # noqa: PLR2004 (tenths stop mattering)


def _show_bytes(value: float, unit: str) -> str:
    for prefix in ("E", "P", "T", "G", "M", "k"):
        if abs(value) >= _DECIMAL[prefix] and (prefix != "T" or abs(value) >= 1e13):  # noqa: PLR2004 (1,120 GB reads better than 1.12 TB)
            return f"{_digits(value / _DECIMAL[prefix])} {prefix}{unit}"
    return f"{_digits(value)} {unit}"


def _show_flops(value: float, unit: str) -> str:
    return f"{_digits(value / _DECIMAL['T'])} T{unit}"


def _show_params(value: float, _: str) -> str:
    for limit, factor, name in ((1e9, 1e9, "B"), (1e6, 1e6, "M")):
        if abs(value) >= limit:
            return f"{_digits(value / factor)}{name}"
    return _digits(value)


_TIME_STEPS = (
    (1e-6, 1e9, "ns"),
    (1e-3, 1e6, "us"),
    (0.1, 1e3, "ms"),
    (300.0, 1.0, "s"),
    (2 * SECONDS_PER_HOUR, 1 / 60.0, "min"),
    (2 * SECONDS_PER_DAY, 1 / SECONDS_PER_HOUR, "h"),
)


def time_unit(seconds: float) -> tuple[float, str]:
    """
    What a time is shown in.

    Args:
        seconds: The time.

    Returns:
        How many of them a second has, and their name.
    """
    found = ((factor, name) for limit, factor, name in _TIME_STEPS if abs(seconds) < limit)
    return next(found, (1 / SECONDS_PER_DAY, "days")) if seconds else (1.0, "s")


def _show_dollars(value: float, _: str) -> str:
    return f"${value:,.2f}" if abs(value) >= 1 or not value else f"${_digits(value, 3)}"


_ROUNDING = 1e-13  # of a sum of fractions: what is left of one that is nothing
_ROUNDS_UP = 0.05  # percent that are told as 0.1


def _show_fraction(value: float, _: str) -> str:
    percent = 100.0 * value if abs(value) > _ROUNDING else 0.0
    return f"{percent:.1f} %" if abs(percent) >= _ROUNDS_UP or not percent else f"{percent:.2g} %"


_SHOWN = MappingProxyType(
    {
        "tok/s": _show_rate,
        "B": _show_bytes,
        "B/s": _show_bytes,
        "B/token": _show_bytes,
        "B/GPU": _show_bytes,
        "params": _show_params,
        "FLOP/s": _show_flops,
        "$": _show_dollars,
        "%": _show_fraction,
    }
)
