"""`rlsize plan --save`: the plan as a file, for `check --baseline` and `diff`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rlsize.shell.digest import facts_digest

if TYPE_CHECKING:
    from rlsize.planner.choice import Choice
    from rlsize.shell.inputs import Inputs

COMMAND = "rlsize plan"


def check_save(path: str | None, *, force: bool) -> None:
    """
    Refuse a file that cannot be written, before any work is done for it.

    Raises:
        InputError: It cannot be written there, or exists and may not be replaced.
    """
    if path is not None:
        from rlsize.writers.files import check_target

        check_target(path, force)


def save_plan(path: str, inputs: Inputs, chosen: Choice, *, force: bool) -> None:
    """
    Write a plan.

    Raises:
        InputError: It cannot be written.
    """
    from rlsize.planner.saved_plan import saved_plan
    from rlsize.writers.files import write_whole
    from rlsize.writers.plan_file import plan_text

    name = f" {inputs.file.document.name}" if inputs.file is not None else ""
    plan = saved_plan(
        f"{COMMAND}{name}",
        chosen.evaluation,
        inputs.shown(),
        facts_digest=facts_digest(inputs.folders),
        as_of=str(inputs.said("prices.as_of") or ""),
        region=str(inputs.said("prices.region") or ""),
    )
    write_whole(path, plan_text(plan), force=force)
    sys.stderr.write(f"wrote {path}\n")
