"""Every command has a place in the guide and help that can be pasted."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest
import typer
from tests.effort import CI

from rlsize.shell.app import app

if TYPE_CHECKING:
    from pathlib import Path


def _commands(group: Any, prefix: str) -> dict[str, Any]:
    context = typer.Context(group)
    found: dict[str, Any] = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        full = f"{prefix} {name}"
        found |= _commands(command, full) if hasattr(command, "list_commands") else {full: command}
    return found


COMMANDS = _commands(typer.main.get_command(app), "rlsize")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_named_where_people_look(name: str, root: Path) -> None:
    """The tutorial or a how-to page shows how the command is used."""
    guides = [root / "docs" / "tutorial.md", *sorted((root / "docs" / "how-to").glob("*.md"))]
    assert any(name in page.read_text(encoding="utf-8") for page in guides), f"name {name} in a page of docs/how-to"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_help_ends_in_an_example(name: str) -> None:
    """The help of each command has a sentence and a command to paste that begins with its own name."""
    sentence, _, example = (COMMANDS[name].help or "").partition("Example:")
    assert sentence.strip().endswith((".", "?")), f"{name} has no sentence of help"
    assert example.strip().startswith(name), f"the example of {name} does not run it"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_flag_says_what_it_is(name: str) -> None:
    """No flag and no argument is without help."""
    silent = [parameter.name for parameter in COMMANDS[name].params if not getattr(parameter, "help", None)]
    assert not silent, f"{name} says nothing of {silent}"


@pytest.mark.parametrize("name", COMMANDS)
def test_no_flag_takes_another_for_its_value(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--record --json` is refused, and writes no file called --json; all that can be said so are flags with values."""
    command = COMMANDS[name]
    valued = [one for one in command.params if one.param_type_name == "option" and not one.is_flag]
    for flag in (name for one in valued for name in one.opts if (name, one.name) != ("--plot", "plot")):
        with pytest.raises(typer.Exit) as ended:
            command.parse_args(typer.Context(command), [flag, "--json"])
        assert ended.value.exit_code == 2
        assert f"{flag}: has no value before --json" in capsys.readouterr().err


LONG = {"rlsize whatif", "rlsize validate", "rlsize report", "rlsize calibrate"}
"""Whose examples take seconds: each of them is parsed, and run where tests take their time."""


@pytest.mark.long(by_day=1)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_example_runs_as_printed_in_an_empty_folder(
    name: str, rlsize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that it names come with rlsize."""
    monkeypatch.chdir(tmp_path)
    words = shlex.split((COMMANDS[name].help or "").partition("Example:")[2].partition(">")[0])
    own = words[len(name.split()) :]
    with COMMANDS[name].make_context(name, [*own], resilient_parsing=False):
        pass
    if name in LONG and not CI:
        return
    ran = rlsize(*words[1:])
    assert ran.code in {0, 1}, ran.stderr  # answered: a budget may be broken by tomorrow's predictions
    assert ran.stdout


def test_the_examples_of_groups_run_too(rlsize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program's own, and those of `predict` and `profiles`."""
    monkeypatch.chdir(tmp_path)
    program = typer.main.get_command(app)
    groups = [program, *(program.get_command(None, name) for name in ("predict", "profiles"))]  # type: ignore[attr-defined]  # a group has it
    for group in groups:
        example = shlex.split((group.help or "").partition("Example:")[2])
        assert rlsize(*example[1:]).code == 0, example


def test_a_folder_of_the_users_own_goes_before_the_shipped_examples(
    rlsize: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is not in it is missing; without such a folder the shipped one is taken, which is said."""
    monkeypatch.chdir(tmp_path)
    shipped = rlsize("diagnose", "examples/operate/starving.jsonl")
    assert "note: examples/operate/starving.jsonl: one that rlsize comes with" in shipped.stderr
    (tmp_path / "examples").mkdir()
    assert rlsize("diagnose", "examples/operate/starving.jsonl").code == 2


@pytest.mark.long
def test_a_short_help_has_the_flags_of_the_question_and_full_has_all(rlsize: Any) -> None:
    """Ten to fifteen quantities; the others work all the same."""
    for line in (("plan",), ("predict", "step"), ("simulate",), ("memory",), ("fleet",)):
        name = " ".join(("rlsize", *line))
        quantities = [one for one in COMMANDS[name].params if one.name.startswith("quantity_") and not one.hidden]
        short, whole = rlsize(*line, "--help").stdout, rlsize(*line, "--help", "--full").stdout
        shown = [one for one in quantities if f"│ {one.opts[0]} " in short]
        assert 10 <= len(shown) <= 15, name
        assert all(one.opts[0][:22] in whole for one in quantities), name  # 80 columns cut the longest off
        assert f"{len(quantities) - len(shown)} more flags" in short
        assert "more flags" not in whole


_MORE = {"rlsize measure": 22, "rlsize init": 25}  # stages that have flags of their own; what init writes


@pytest.mark.long
def test_no_short_help_has_more_flags_than_a_screen(rlsize: Any) -> None:
    """Fifteen beside `--set`, those of output apart."""
    for name in (name for name in COMMANDS if name != "rlsize"):
        text = rlsize(*name.split()[1:], "--help").stdout
        panels = re.split(r"^\u256d\u2500 (\w[\w ]*\w)", text, flags=re.MULTILINE)[1:]
        asked = dict(zip(panels[::2], panels[1::2], strict=True))
        shown = sum(
            len(re.findall(r"^\u2502 --", asked[one], re.MULTILINE)) for one in asked.keys() - {"Output", "Options"}
        )
        assert shown <= _MORE.get(name, 16), name


def test_the_shell_completes_keys_of_a_scenario() -> None:
    """After `--set`."""
    found = next(one for one in COMMANDS["rlsize plan"].params if one.name == "changes")
    context = typer.Context(COMMANDS["rlsize plan"])
    told = [one.value for one in found.shell_complete(context, "trainer.para")]
    assert "trainer.parallelism.fsdp=" in told
    assert all(one.startswith("trainer.para") for one in told)
