"""`rlsize plan`: which mode, split and layouts are best, and what stands around the choice."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rlsize.reports.report import Report
from rlsize.shell.command import Force
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import PLANNED, asks


def _file(flag: str, text: str) -> object:
    return typer.Option(flag, metavar="FILE", help=text, rich_help_panel="Output", show_default=False)


Save = Annotated[str | None, _file("--save", "Write the plan to a file, for check --baseline, diff and every command.")]
Apply = Annotated[str | None, _file("--apply", "Write a scenario with the plan in it, which every command takes.")]


@asks(**PLANNED)
def plan(inputs: Inputs, save: Save = None, apply: Apply = None, force: Force = False) -> Report:
    """
    Which mode, split and layouts are best, at what cost, and what if.

    Example:  rlsize plan --model qwen3-8b --gpu h100-sxm --gpus 32 --prompts 64 --group 16 --response-tokens 2k
    """
    from rlsize.reports.plan import plan_report
    from rlsize.shell.planning import apply_plan, save_plan, search
    from rlsize.writers.files import check_target

    for path in filter(None, (save, apply)):
        check_target(path, force)
    found, ranked = search(inputs)
    loop, answer = found.loop, found.planned
    chosen = answer.chosen
    if chosen is not None and apply is not None:
        apply_plan(apply, inputs, loop, chosen.best.place, force=force)
    if chosen is not None and save is not None:
        lacking = save_plan(save, inputs, "plan", loop, chosen.best.place, chosen.evaluation, force=force)
        sys.stderr.write(f"wrote {save}\n")
        inputs.notes += (
            [f"{save} holds no scenario, so only check --baseline and diff take it: {lacking}."] if lacking else []
        )
    return plan_report(answer, inputs.shown(), inputs.warnings, inputs.notes, ranked)
