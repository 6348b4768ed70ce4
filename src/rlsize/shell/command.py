"""
What every command shares: how an answer leaves (table, JSON, CSV, Markdown, picture) and how a fault is told.

A command is a function that returns a `Report`; this class adds the output flags to it, shows the report and sets the
exit code.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import ParameterInfo

from rlsize.errors import Fault, InputError, RlsizeError
from rlsize.shell.progress import INTERRUPTED, ended_in_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


UsageError: Any = typer.BadParameter.__mro__[1]  # typer does not name it
OUTPUT_PANEL = "Output"
CI_PANEL = "CI"
BASE = "--base"
"""What says a key of a scenario where `--set` says a change of it."""
TERMINAL = "-"
FULL = "--full"
EXAMPLES = "examples/"
UNFINISHED = 3
_PAIR = 2
_FLAG = re.compile("--[a-z][a-z-]*")
_EXTRA = re.compile(r"Got unexpected extra argument\(s\) \((.*)\)", re.DOTALL)
_MOST_TOLD = 25


def option(flag: str, help: str, panel: str | None = "Inputs", metavar: str = "NUMBER") -> Any:  # noqa: A002 (typer's word)
    """An option that takes text, as all faults are told at once, each with what it lacks; names parted by `|`."""
    return typer.Option(*flag.split("|"), help=help, rich_help_panel=panel, metavar=metavar, show_default=False)


def switch(flag: str, help: str, panel: str | None = OUTPUT_PANEL) -> Any:  # noqa: A002 (typer's word)
    """An option that is given or not."""
    return typer.Option(*flag.split("|"), help=help, rich_help_panel=panel)


def argument(metavar: str, help: str) -> Any:  # noqa: A002 (typer's word)
    """An argument that takes text."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


def declared(parameter: inspect.Parameter) -> inspect.Parameter:
    """A parameter as typer takes it, where what declares its flag stands as its default: left out, it says nothing."""
    if not isinstance(parameter.default, ParameterInfo):
        return parameter
    takes: Any = parameter.annotation
    return parameter.replace(annotation=Annotated[takes, parameter.default], default=False if takes is bool else None)


Force = Annotated[bool, switch("--force", "Overwrite files that exist.")]
Profiles = Annotated[
    list[str] | None,
    option("--profiles", "A folder of your own profiles, on top of the shipped ones; repeatable.", OUTPUT_PANEL, "DIR"),
]


def _output_flags(
    json: Annotated[bool, switch("--json", "Print one JSON object in base units.")] = False,
    csv: Annotated[bool, switch("--csv", "Print the main table as CSV.")] = False,
    markdown: Annotated[bool, switch("--markdown", "Print the answer as Markdown.")] = False,
    plot: Annotated[
        str | None, option("--plot", "Draw it: in the terminal, or to FILE.png, .svg or .pdf.", OUTPUT_PANEL, "[FILE]")
    ] = None,
    full: Annotated[bool, switch(FULL, "Print all figures, tables and inputs; with --help, all flags.")] = False,
    explain: Annotated[bool, switch("--explain", "Print formula, numbers and source of each result.")] = False,
    force: Force = False,
    profiles: Profiles = None,
) -> None:
    """Declare the flags that every command takes, so that typer builds them."""


def _output_parameters() -> list[Any]:
    app = typer.Typer(add_completion=False)
    app.command()(_output_flags)
    return [parameter for parameter in typer.main.get_command(app).params if parameter.name in _OUTPUT_NAMES]


_OUTPUT_NAMES = tuple(inspect.signature(_output_flags).parameters)


class Plain(TyperCommand):
    """A command that prints what it has to say itself; faults become messages and exit codes."""

    whole_help = False

    def get_params(self, ctx: typer.Context) -> list[Any]:  # type: ignore[override]  # typer's context is the one it makes
        """The parameters, their text taken as it was typed."""
        return as_typed(super().get_params(ctx))

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # typer's context is the one it makes
        """Note whether help is to show all flags: it is written before any flag is known."""
        self.whole_help = FULL in args
        if any(EXAMPLES in text for text in args):
            from rlsize.readers.shipped import with_examples

            args, taken = with_examples(args)
            sys.stderr.write("".join(f"note: {name}: one that rlsize comes with\n" for name in taken))
        _check_values(args, self.params)
        try:
            return super().parse_args(ctx, _with_changes(args, self.params))
        except UsageError as error:
            raise _refused(ctx, error) from None

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]  # typer's context is the one it makes
        """
        Show the flags of the question, all of them with `--full`, each by its first name.

        The other names stand in its text, where 80 columns do not cut them off.
        """
        options: list[Any] = [option for option in self.params if len(option.opts) > 1]
        several = [(option, option.opts, option.help) for option in options]
        for option, names, text in several:
            option.opts, option.help = names[:1], f"{text} Also {', '.join(names[1:])}."
        rest: list[Any] = [one for one in self.params if one.name in self.rarer and not self.whole_help]
        for one in rest:
            one.hidden = True
        try:
            super().format_help(ctx, formatter)
        finally:
            for option, names, text in several:
                option.opts, option.help = names, text
            for one in rest:
                one.hidden = False
        if rest:
            typer.echo(f" {len(rest)} more flags: {ctx.command_path} --help {FULL}")
            typer.echo(" --set KEY=VALUE says any key of a scenario: rlsize schema scenario\n")

    @property
    def rarer(self) -> frozenset[str]:
        """Names of the parameters that help shows only where it shows all."""
        found: frozenset[str] = getattr(self.callback, "rarer", frozenset())
        return found

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]  # typer's context is the one it makes
        """Run the command's function, and turn faults into messages and exit codes."""
        try:
            with ended_in_order():
                return self.answer(ctx)
        except KeyboardInterrupt:
            sys.stderr.write("interrupted\n")
            raise typer.Exit(INTERRUPTED) from None
        except RlsizeError as error:
            tell(error)
            raise typer.Exit(error.exit_code) from None
        except BrokenPipeError:  # the reader has gone: what was left to say is not said
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(UNFINISHED) from None

    def answer(self, ctx: typer.Context) -> Any:
        """Run the command's function."""
        return super().invoke(ctx)


class Command(Plain):
    """A command whose function returns a report."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = {parameter.name for parameter in self.params}
        self.params += [parameter for parameter in _output_parameters() if parameter.name not in own]

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # typer's context is the one it makes
        """Let `--plot` stand alone, drawing in the terminal, and options that are named for two values take two."""
        return super().parse_args(ctx, _with_pairs(args, self.params))

    def answer(self, ctx: typer.Context) -> Any:
        """Run the command's function and show its report as the flags ask for; exit code 1 where the answer is no."""
        own = set(self.callback.__annotations__) if self.callback else set()
        output = {name: ctx.params[name] for name in _OUTPUT_NAMES if name in ctx.params}
        output["command"] = ctx.command_path.removeprefix(ctx.find_root().info_name or "").strip()
        ctx.obj = output
        for name in _OUTPUT_NAMES:
            if name not in own:
                ctx.params.pop(name, None)
        report = super().answer(ctx)
        from rlsize.shell.answer import deliver

        deliver(report, output)
        if report.interrupted or report.no:
            raise typer.Exit(INTERRUPTED if report.interrupted else 1)
        return report


class Entry(NamedTuple):
    """One command: its panel in `--help`, its sentence there; its module and function there, if not of its name."""

    panel: str
    sentence: str
    module: str = ""
    function: str = ""


class Group(TyperGroup):
    """A group that imports a command only when it is asked for."""

    entries: Mapping[str, Entry] = MappingProxyType({})
    helping = False

    def get_params(self, ctx: typer.Context) -> list[Any]:  # type: ignore[override]  # typer's context is the one it makes
        """The parameters, their text taken as it was typed."""
        return as_typed(super().get_params(ctx))

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]  # typer's context is the one it makes
        """Tell what is wrong as commands do; where nothing is typed, typer shows the help."""
        typed = bool(args)
        try:
            return super().parse_args(ctx, args)
        except UsageError as error:
            raise (_refused(ctx, error) if typed else error) from None

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # noqa: ARG002 (typer's signature)
        """The names, in the order in which help shows them."""
        return list(self.entries)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]  # noqa: ARG002 (typer's signature)
        """The command of that name; while help is being written, only its sentence."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        if self.helping:
            return TyperCommand(cmd_name, help=entry.sentence, rich_help_panel=entry.panel)
        return loaded(cmd_name, entry)

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]  # typer's context is the one it makes
        """Offer the nearest command where there is none of that name."""
        self.commands = dict.fromkeys(self.entries)  # type: ignore[assignment]  # only the names are read, for the suggestion
        try:
            return super().resolve_command(ctx, args)
        except UsageError as error:
            raise _refused(ctx, error) from None

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]  # typer's context is the one it makes
        """Write the help page without importing a single command."""
        self.helping = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self.helping = False


@cache
def loaded(name: str, entry: Entry) -> Any:
    """The command, built from its function, or the group, built from its Typer app."""
    found = getattr(import_module(f"rlsize.commands.{entry.module or name}"), entry.function or name)
    if isinstance(found, typer.Typer):
        group = typer.main.get_command(found)
        group.name = name
        return group
    single = typer.Typer(add_completion=False, rich_markup_mode="rich")
    answers = found.__annotations__.get("return") == "Report"
    signature = inspect.signature(found, eval_str=True)
    parameters = {name: declared(one) for name, one in signature.parameters.items()}
    found.__signature__ = signature.replace(parameters=[*parameters.values()])
    found.__annotations__ |= {name: one.annotation for name, one in parameters.items()}
    single.command(name, cls=Command if answers else Plain)(found)
    return typer.main.get_command(single)


def as_typed(parameters: list[Any]) -> list[Any]:
    """The same parameters, without typer's coercion."""
    for parameter in parameters:
        parameter.get_runtime_param = _AsTyped  # a typer that never asks for it coerces text to text
    return parameters


class _AsTyped:
    """
    Takes a flag's text as it was typed.

    Typer 0.29 and later would build a pydantic validator for each parameter, which costs more than the whole answer;
    every parameter here is text, a list of texts or a flag, and `Inputs` checks them, all at once and with units.
    """

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ARG002 (typer's signature)
        """The value itself."""
        return value


def _with_pairs(args: list[str], parameters: list[Any]) -> list[str]:
    """
    Give each value a flag of its own, where a repeatable option takes two at a time: its metavar is two words.

    A `--plot` before no name of a file draws in the terminal.
    """
    flags = {
        name
        for parameter in parameters
        if getattr(parameter, "multiple", False) and " " in (parameter.metavar or "")
        for name in parameter.opts
    }
    result: list[str] = []
    left = list(args)
    while left and left[0] != "--":
        arg = left.pop(0)
        if arg == "--plot" and not (left and _names_a_file(left[0])):
            arg = f"--plot={TERMINAL}"
        name, equals, value = arg.partition("=")
        values = [value] if equals else []
        while name in flags and left and len(values) < _PAIR and not left[0].startswith("-"):
            values.append(left.pop(0))
        result += [f"{name}={value}" for value in values] if name in flags and values else [arg]
    return result + left


def _with_changes(args: list[str], parameters: list[Any]) -> list[str]:
    """Say by `--set` what this command has no flag of its own for and a scenario has a key for."""
    own = {name for parameter in parameters for name in (*parameter.opts, *parameter.secondary_opts)}
    by = BASE if BASE in own else "--set"
    if by not in own or all(arg.partition("=")[0] in own for arg in args if arg.startswith("--")):
        return args
    from rlsize.quantities.row import Switch
    from rlsize.quantities.table import QUANTITIES

    rows = {flag: row for row in QUANTITIES.values() if row.scenario for flag in row.flags if flag not in own}
    result: list[str] = []
    left = list(args)
    while left and left[0] != "--":
        arg = left.pop(0)
        name, equals, value = arg.partition("=")
        row = rows.get(name)
        if row is not None and isinstance(row.kind, Switch):
            arg = f"{by}={row.scenario}=yes"
        elif row is not None and (equals or (left and not left[0].startswith("--"))):
            arg = f"{by}={row.scenario}={value if equals else left.pop(0)}"
        result.append(arg)
    return result + left


def _check_values(args: Sequence[str], parameters: Sequence[Any]) -> None:
    """
    Refuse a flag where the value of another one belongs: it would be taken for that, or become a file's name.

    Raises:
        Exit: There is one; what is wrong is told.
    """
    valued = {name for one in parameters if not getattr(one, "is_flag", True) for name in one.opts}
    left = iter(args)
    for arg in left:
        following = next(left, "") if arg in valued else ""
        if _FLAG.fullmatch(following.partition("=")[0]):
            todo = f"give it one; {arg}={following} if that is its value"
            tell(InputError(Fault(f"has no value before {following.partition('=')[0]}", arg, todo)))
            raise typer.Exit(InputError.exit_code)
        if arg == "--":
            return


def _names_a_file(text: str) -> bool:
    """Whether what follows --plot is its file: a name with an ending, but neither a scenario nor a flag."""
    name = text.rpartition("/")[2]
    return "." in name[1:] and not text.startswith("-") and not text.lower().endswith((".yaml", ".yml"))


def _refused(ctx: typer.Context, error: Any) -> typer.Exit:
    """A command line that cannot be read, told as all else that is wrong; what has no flag here may be a key."""
    fault = Fault(error.format_message().removesuffix("."), "", f"`{ctx.command_path} --help` tells what there is")
    if hasattr(error, "possibilities"):  # a flag that there is not
        nearest = error.possibilities
        todo = f"did you mean {' or '.join(nearest)}?" if nearest else fault.todo
        fault = Fault("there is no such flag here", error.option_name, todo)
    extra = _EXTRA.fullmatch(fault.what)
    if extra and any("--calibration" in one.opts for one in ctx.command.params):
        todo = "for a run's log, `rlsize calibrate LOG LAUNCH --save twin.yaml`; then give --calibration twin.yaml here"
        fault = Fault("takes one scenario, plan or launch, and is given more", extra[1], todo)
    tell(InputError(fault))
    return typer.Exit(InputError.exit_code)


def tell(error: RlsizeError) -> None:
    """Print every fault of an error on stderr: what, where, what to do."""
    from rich.console import Console
    from rich.text import Text

    from rlsize.units import printable

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for fault in error.faults[:_MOST_TOLD]:
        told = f"{fault.where}: {fault.what}" if fault.where else fault.what
        console.print(Text.assemble(("error: ", "bold red"), printable(told)))
        if fault.todo:
            console.print(Text(f"       {printable(fault.todo)}", style="dim"))
    if len(error.faults) > _MOST_TOLD:
        console.print(f"... and {len(error.faults) - _MOST_TOLD} more")
    sys.stderr.flush()


def in_own_words(faults: Sequence[Fault], context: typer.Context, file: str) -> Iterator[Fault]:
    """
    Faults as a command tells them: what it has no flag for stands in the file.

    Args:
        faults: What is wrong.
        context: Of the command.
        file: What it was given.
    """
    from rlsize.quantities.table import QUANTITIES

    known = {name for parameter in context.command.params for name in parameter.opts}
    keys = {flag: row.scenario for row in QUANTITIES.values() for flag in row.flags if row.scenario}
    for fault in faults:
        if fault.where.startswith("-") and not known.intersection(fault.where.split()):
            by = next((one for one in (BASE, "--set") if one in known), "")
            key = keys.get(fault.where.split()[0], "") if by else ""
            given = f"give {by} {key}=..., or " if key else ""
            yield Fault(fault.what, file, f"{given}say it in the file; other commands have {fault.where} for it")
        else:
            yield fault
