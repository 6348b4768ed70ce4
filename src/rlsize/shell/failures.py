"""The one place that tells a user what went wrong."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
