"""The one place that tells a user what went wrong."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rlsize.errors import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import typer

    from rlsize.errors import RlsizeError

_MOST = 25


def tell(error: RlsizeError) -> None:
    """Print every fault of an error on stderr: what, where, what to do."""
    from rich.console import Console
    from rich.text import Text

    from rlsize.units import printable

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for fault in error.faults[:_MOST]:
        told = f"{fault.where}: {fault.what}" if fault.where else fault.what
        console.print(Text.assemble(("error: ", "bold red"), printable(told)))
        if fault.todo:
            console.print(Text(f"       {printable(fault.todo)}", style="dim"))
    if len(error.faults) > _MOST:
        console.print(f"... and {len(error.faults) - _MOST} more")
    sys.stderr.flush()


def in_own_words(faults: Sequence[Fault], context: typer.Context, file: str) -> Iterator[Fault]:
    """
    Faults as a command tells them: what it has no flag for stands in the file.

    Args:
        faults: What is wrong.
        context: Of the command.
        file: What it was given.
    """
    known = {name for parameter in context.command.params for name in parameter.opts}
    for fault in faults:
        if fault.where.startswith("-") and not known.intersection(fault.where.split()):
            yield Fault(fault.what, file, f"say it in the file; other commands have {fault.where} for it")
        else:
            yield fault
