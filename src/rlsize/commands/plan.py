"""`rlsize plan`: which mode, split and layouts are best, and what stands around the choice."""

from __future__ import annotations

import sys
from typing import Annotated

from rlsize.reports.report import Report
from rlsize.shell.command import Force, option
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import PLANNED, asks

Save = Annotated[
    str | None,
    option("--save", "Write the plan to a file, for check --baseline, diff and every command.", "Output", "FILE"),
]
Apply = Annotated[
    str | None,
    option("--apply", "Write a scenario with the plan in it, which every command takes.", "Output", "FILE"),
]


@asks(**PLANNED)
def plan(inputs: Inputs, save: Save = None, apply: Apply = None, force: Force = False) -> Report:
    """
    Which mode, split and layouts are best, at what cost, and what if.

    Example:  rlsize plan --model qwen3-8b --gpu h100-sxm --gpus 32 --prompts 64 --group 16 --response-tokens 2k
    """
    from rlsize.loop.applied import applied, nested
    from rlsize.reports.plan import plan_report
    from rlsize.shell.planning import save_plan, search
    from rlsize.writers.files import check_target, write_whole
    from rlsize.writers.yaml_file import applied_text

    for path in filter(None, (save, apply)):
        check_target(path, force)
    found, ranked = search(inputs)
    loop, chosen = found.loop, found.planned.chosen
    if chosen is not None and apply is not None:
        values = nested(applied(inputs.said_values(apply), loop, chosen.best.place))
        write_whole(apply, applied_text(values, inputs.command_line("plan", {"--apply": apply})), force=force)
        sys.stderr.write(f"wrote {apply}\n")
    if chosen is not None and save is not None:
        lacking = save_plan(save, inputs, "plan", loop, chosen.best.place, chosen.evaluation, force=force)
        sys.stderr.write(f"wrote {save}\n")
        if lacking:
            inputs.notes.append(f"{save} holds no scenario, so only check --baseline and diff take it: {lacking}.")
    return plan_report(found.planned, inputs.shown(), inputs.warnings, inputs.notes, ranked)
