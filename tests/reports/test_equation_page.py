"""The page of an equation: found by its name, read from its docstring."""

from __future__ import annotations

import pytest

from rlsize.equations.weight_sync import weight_sync_time
from rlsize.errors import InputError
from rlsize.reports import equation_page
from rlsize.reports.equation_page import Argument, EquationPage, equation, equation_names, page, parsed


def test_the_whole_page() -> None:
    """Every part of the docstring has its field."""
    assert page("weight_sync.weight_sync_time") == EquationPage(
        name="weight_sync.weight_sync_time",
        summary="Time for one weight update to reach the rollout fleet.",
        formula="t_sync = b N / B",
        arguments=(
            Argument(name="params", text="Weights to send, N.", unit="param"),
            Argument(name="bytes_per_param", text="Width on the wire, b; 2 for bf16.", unit="B/param"),
            Argument(name="bandwidth", text="Slowest link on the path, one direction, B.", unit="B/s"),
        ),
        symbol="t_sync",
        unit="s",
        assumes="one pipelined pass over the slowest link, so the number of receivers does not matter; "
        "no overlap with rollout.",
        source="Designing an RL post-training system, section 3.",
        example=">>> weight_sync_time(params=70e9, bytes_per_param=2, bandwidth=50e9)\n2.8",
        code="rlsize.equations.weight_sync.weight_sync_time",
    )


def test_the_file_may_be_left_out() -> None:
    """A function's name is enough where one file has it."""
    assert page("weight_sync_time") == page("weight_sync.weight_sync_time")
    assert equation("weight_sync_time") is equation("weight_sync.weight_sync_time") is weight_sync_time


def test_names_are_the_public_functions() -> None:
    """Neither private modules, nor private functions, nor what a module imports count as equations."""
    names = equation_names()
    assert "weight_sync.weight_sync_time" in names
    assert len(set(names)) == len(names)
    assert not [
        name for name in names if "._" in name or name.startswith("_") or name.endswith((".minimum", ".maximum"))
    ]


def test_what_runs_over_a_line_is_joined() -> None:
    """Arguments, assumptions and sources that run over several lines read as one."""
    entry = page("broadcast_time")
    assert not [
        text for text in (entry.assumes, entry.source, *(argument.text for argument in entry.arguments)) if "\n" in text
    ]
    assert len(entry.arguments) == 5


def test_a_full_name_loads_its_own_file_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that explains a few results does not walk all equations."""
    monkeypatch.setattr(equation_page, "_equations", pytest.fail)
    assert page("money.cost_per_step").unit == "usd/step"


@pytest.mark.parametrize("look_up", [page, equation])
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("weight_sync_tme", "did you mean weight_sync_time"),
        ("weight_sync.weight_sync_tme", "did you mean weight_sync.weight_sync_time"),
        ("sync.weight_sync_time", "weight_sync.weight_sync_time"),
        ("xyzzy", "`rlsize explain` lists all"),
        ("the sync of it", "sync or "),
        ("", "no equation is called"),
        ("_ops.minimum", "no equation is called '_ops.minimum'"),
        ("os.getcwd", "no equation is called 'os.getcwd'"),
        ("..x", "no equation is called '..x'"),
        ("a" * 5000, "no equation is called 'aaaa"),
    ],
)
def test_an_unknown_name_is_told(look_up: object, name: str, told: str) -> None:
    """A name that no equation has is an input error with the nearest names, short whatever was typed."""
    assert callable(look_up)
    with pytest.raises(InputError) as caught:
        look_up(name)
    assert told in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_name_in_two_files_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare name that several files have is not guessed."""
    monkeypatch.setattr(equation_page, "_equations", lambda: {"a.f": min, "b.f": max})
    with pytest.raises(InputError, match=r"write one of a\.f, b\.f"):
        equation("f")


DOCSTRING = """Sum.

s = a + b

Args:
    a: One, a. {first}

Returns:
    {returns}

Assumes nothing.
Source: none.

>>> 1
1"""


def test_a_formula_may_take_two_lines() -> None:
    """The lines of a formula stay lines."""
    docstring = DOCSTRING.format(first="[1]", returns="s. [1]").replace("s = a + b", "s = a + b\nb = 2 a")
    assert parsed("x.sum", docstring).formula == "s = a + b\nb = 2 a"


@pytest.mark.parametrize(
    ("first", "returns", "told"),
    [("", "s. [1]", "'a: One, a.' is not"), ("[1]", "s [1]", "Returns needs"), ("[1]", "s.", "Returns needs")],
)
def test_a_unit_is_demanded(first: str, returns: str, told: str) -> None:
    """Arguments and results without a unit are refused with the equation's name."""
    with pytest.raises(ValueError, match=r"x\.sum: ") as caught:
        parsed("x.sum", DOCSTRING.format(first=first, returns=returns))
    assert told in str(caught.value)
