"""Files that a command will write: whether it can is found out before the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rlsize.shell.inputs import Inputs


def check_files(inputs: Inputs, files: Iterable[str | None], *, force: bool) -> None:
    """Note a fault for each file that cannot be written, or that two results would share."""
    from rlsize.shell.command import TERMINAL
    from rlsize.writers.files import check_target

    named = [file for file in files if file and file != TERMINAL]
    for twice in sorted({file for file in named if named.count(file) > 1}):
        inputs.fault("is to be written twice", twice, "give each file a name of its own")
    for file in named:
        try:
            check_target(file, force)
        except InputError as error:
            inputs.faults.extend(error.faults)
