"""`rlsize plan`: which mode, split and layouts are best, and what stands around the choice."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from rlsize.reports.report import Report
from rlsize.shell.command import Force, option
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import PLANNED, asks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlsize.planner.options import Placement


@asks(PLANNED)
def plan(
    inputs: Inputs,
    save: str | None = option(
        "--save", "Write the plan to a file, for check --baseline, diff and every command.", "Output", "FILE"
    ),
    apply: str | None = option(
        "--apply", "Write a scenario with the plan in it, which every command takes.", "Output", "FILE"
    ),
    write: str | None = option("--write", "Write the launch that was given with the plan in it.", "Output", "FILE"),
    force: Force = False,
) -> Report:
    """
    Which mode, split and layouts are best, at what cost, and what if.

    Example:  rlsize plan --model qwen3-8b --gpu h100-sxm --gpus 32 --prompts 64 --group 16 --response-tokens 2k
    """
    from rlsize.loop.agents import say_bottleneck
    from rlsize.loop.applied import applied
    from rlsize.quantities.table import nested
    from rlsize.reports.plan import plan_report
    from rlsize.shell.launches import in_own_keys, keep_mode, wanted_of, write_back
    from rlsize.shell.planning import assumed_by, kept_within, save_plan, search, with_engines
    from rlsize.writers.files import check_target, write_whole

    files = [path for path in (save, apply, write) if path]
    for path in files:
        check_target(path, force)
    if write is not None:
        keep_mode(inputs)
    inputs = with_engines(inputs)
    found, ranked = search(inputs)
    loop, chosen = found.loop, found.planned.chosen
    inputs.warnings += [f"{path} is not written, as there is no plan" for path in files if chosen is None]
    if chosen is not None and apply is not None:
        from rlsize.writers.yaml_file import applied_text

        values = nested(applied(inputs.said_values(apply), loop, chosen.best.place))
        write_whole(apply, applied_text(values, inputs.command_line("plan", {"--apply": apply})), force=force)
        sys.stderr.write(f"wrote {apply}\n")
    if chosen is not None and write is not None:
        values = applied(inputs.said_values(write), loop, chosen.best.place)
        wanted = wanted_of(inputs, values)
        besides = kept_within(inputs, values, wanted)
        if besides:
            keys = in_own_keys(inputs, besides)
            inputs.did(f"Set besides, as the launch keeps its memory: {keys}. The step above is without it.")
        inputs.did(*write_back(inputs, {**wanted, **besides}, write, force=force))
    if chosen is not None and save is not None:
        lacking = save_plan(save, inputs, "plan", loop, chosen.best.place, chosen.evaluation, force=force)
        sys.stderr.write(f"wrote {save}\n")
        if lacking:
            inputs.did(f"{save} holds no scenario, so only check --baseline and diff take it: {lacking}.")
    say_bottleneck(inputs, loop.outlook, None if chosen is None else chosen.best.place)
    assumed = None if chosen is None else assumed_by(inputs, loop, chosen.best.place)
    report = plan_report(found.planned, inputs.told(), ranked, assumed)
    if chosen is None or inputs.gives("framework"):
        return report
    return replace(report, later=partial(_runners, inputs, chosen.best.place))


def _runners(inputs: Inputs, place: Placement) -> Iterator[str]:
    """Which frameworks could run a plan that was made for none."""
    from rlsize.loop.applied import MODES

    question = place.trainer.question
    if question is None or place.loop not in MODES:
        return
    from rlsize.frameworks.abilities import could_run
    from rlsize.loop.search import layout_of
    from rlsize.readers.frameworks import frameworks

    able = could_run(frameworks(inputs.catalogue).values(), MODES[place.loop], layout_of(question.bare()))
    names = ", ".join(one.title for one in able if not one.parent)
    yield f"Frameworks that can run it: {names or 'none that is known'}. --framework plans for one."
