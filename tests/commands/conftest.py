"""Junk on the command line: good lines, spoilt a little, so that most draws get as far as the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import strategies as st
from tests.commands.engine_fleet import Fleet, served
from typer.testing import CliRunner

from rlsize.shell import live_engines
from rlsize.shell.command import Command

Lines = st.SearchStrategy[dict[str, str]]

COUNTS = ("1", "2", "3", "64", "100000")
FRACTIONS = ("0.5", "0.01", "1", "0.5 ± 0.1", "0.9999 ± 0.0001", "0.01 ± 0.5")
AMOUNTS = ("1", "2.5", "1e6", "1e-3", "20 ± 2", "5 ± 500", "1e-3 ± 1e3")
EDGES = ("0", "-1", "-0", "0 ± 1", "1e-13", "1e-300", "1e308", "1e-6", "0.9999 ± 0.0001", "5 ± 500")
WORDS = ("nan", "", "٣", "10 %", "50 GB/s", "1 kB/s ± 900 %", "4000 tok/s", "70B", "bf16", "disk", "rates.yaml", "/")


def _values(example: str) -> st.SearchStrategy[str]:
    """Values such as the example's (words of its list, numbers of its kind and unit); sometimes edges, or junk."""
    number = re.fullmatch(r"([0-9.]+)(.*)", example)
    if number is None:
        usual, unit = st.sampled_from(example.split("|")), ""
    else:
        unit = number[2]
        kind: tuple[str, ...] = AMOUNTS if "." in number[1] else COUNTS
        kind = FRACTIONS if float(number[1]) < 1 else kind
        usual = st.sampled_from([value + unit for value in kind])
    edge = st.sampled_from([value + unit for value in EDGES])
    junk = st.one_of(st.sampled_from(WORDS), st.text(max_size=12), st.floats().map(str), st.integers().map(str))
    # one_of gives every branch the same share, however often it is named
    return st.integers(0, 9).flatmap(lambda share: usual if share < 7 else edge if share < 9 else junk)


@pytest.fixture
def spoilt(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Lines]:
    """
    Strategy: one of a few good command lines, of which one to three flags say something else.

    Flags come with an example of what they take: `9.5 GB/s`, `0.5` for a share, `32` for a count, `disk|rdma` for
    words. A flag takes the place of those that exclude it. The test runs in a folder of its own, as a flag that names a
    file to write may say anything: `--save -0` writes a plan.
    """
    monkeypatch.chdir(tmp_path)

    def lines(good: Sequence[Mapping[str, str]], flags: Mapping[str, str], *exclusive: set[str]) -> Lines:
        def spoil(drawn: tuple[Mapping[str, str], list[tuple[str, str]]]) -> dict[str, str]:
            line, said = drawn[0], dict(drawn[1])
            dropped = {flag for group in exclusive if group & said.keys() for flag in group}
            return {flag: text for flag, text in line.items() if flag not in dropped} | said

        one = st.sampled_from(sorted(flags)).flatmap(lambda flag: st.tuples(st.just(flag), _values(flags[flag])))
        some = st.lists(one, min_size=1, max_size=3, unique_by=lambda drawn: drawn[0])
        return st.tuples(st.sampled_from(good), some).map(spoil)

    return lines


@pytest.fixture
def checked() -> Callable[[Any, str, str], None]:
    """Checks that a command line was answered or refused as promised; its JSON has neither NaN nor infinity."""

    def no_constant(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    def check(ran: Any, command: str, form: str) -> None:
        assert ran.code in {0, 1, 2}
        if ran.code == 2:
            assert ran.stdout == ""
            assert ran.stderr
        elif form == "--json":
            assert json.loads(ran.stdout, parse_constant=no_constant)["command"] == command
        else:
            assert ran.stdout

    return check


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Callable[..., Any]]:
    """Makes a runner of one command by itself, in this process, at 80 columns; what is no exit is raised."""
    for name, value in (("COLUMNS", "80"), ("NO_COLOR", "1"), ("TERM", "dumb")):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("RLSIZE_PROFILES", raising=False)

    def runner(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        app = typer.Typer(add_completion=False)
        app.command(name, cls=Command)(function)

        def run(*args: str) -> Any:
            result = CliRunner().invoke(app, list(args))
            if result.exception is not None and not isinstance(result.exception, SystemExit):
                raise result.exception
            return result

        return run

    return runner


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    """A fleet of no engines yet; what looks at engines lives in its time."""
    with served() as found:
        monkeypatch.setattr(live_engines, "TIME", live_engines.Time(lambda: found.now, found.sleep))
        yield found
