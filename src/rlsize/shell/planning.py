"""The search behind `plan` and `report`, and plans as files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.errors import DoesNotFitError, Fault, InputError, Refused
from rlsize.shell.access import blamed
from rlsize.shell.launches import as_told, can_change, launch_of, untold, wanted_of
from rlsize.shell.rates import lengths_of_file

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlsize.loop.assumed import Assumption
    from rlsize.loop.resolve import Loop
    from rlsize.loop.search import Searched
    from rlsize.planner.choice import Alternative
    from rlsize.planner.evaluation import Evaluation
    from rlsize.planner.options import Placement
    from rlsize.planner.outlook import Terms
    from rlsize.planner.simulation import Ranked
    from rlsize.shell.inputs import Inputs
    from rlsize.simulator.first_order import Pools
    from rlsize.simulator.setting import Setting

_NOT_SEARCHED = ("logprob_passes", "max_staleness")  # what a plan as a scenario says nevertheless


def with_engines(inputs: Inputs) -> Inputs:
    """What was said, with engines in place of the trainer's own model, as plans have them."""
    from rlsize.loop.instance import without_engine

    if not without_engine(inputs):
        return inputs
    found = inputs.changed({"rollout.engine": "vllm", "rollout.shares_weights": None})
    found.warnings.append("The trainer's own model generates, without an engine: plans, and yours, have vLLM.")
    return found


def search(inputs: Inputs) -> tuple[Searched, tuple[Ranked, ...]]:
    """
    The loop that was said, the best plan for its work, and the best few as the simulator ranks them.

    Raises:
        InputError: All that is missing or wrong.
    """
    from rlsize.loop.search import searched
    from rlsize.shell.progress import late_progress

    count = inputs.ask("simulated_plans")
    values = lengths_of_file(inputs) if count.known else ()
    file, _ = inputs.name("budget_file")
    budget = inputs.said("budget"), "the scenario's budget"
    if file is not None:
        from rlsize.readers.saved_files import read_budget

        with blamed(inputs, file):
            budget = read_budget(file).budget, file
    limits = inputs.file.leaves() if inputs.file is not None and file is None else ()
    kept = [leaf for leaf in limits if leaf.startswith("budget.")]
    if kept:
        inputs.notes.append(f"Limits that a plan keeps: {', '.join(kept)}")
    with late_progress("searching") as tell:
        found = searched(inputs, budget, tell, _launchable(inputs))
    chosen = found.planned.chosen
    if not count.known or chosen is None:
        return found, ()
    plans = [chosen.best, *chosen.others][: int(count.number)]
    return found, _ranked(inputs, found.planned.outlook.central, plans, values)


def _ranked(
    inputs: Inputs, terms: Terms, plans: Sequence[Alternative], values: tuple[float, ...]
) -> tuple[Ranked, ...]:
    """
    Plans as the simulator ranks them, under all that was said.

    Raises:
        InputError: What was said contradicts itself, or the plans are too large to simulate.
    """
    from rlsize.loop.played import played
    from rlsize.planner.simulation import ranked

    settings: list[tuple[Setting, Pools] | str] = []
    for one in plans:
        asked = inputs.instead()
        try:
            found: tuple[Setting, Pools] | str = played(asked, terms, one.place, values)
        except Refused as refusal:
            found = str(refusal)
        if one is plans[0]:
            _tell(inputs, asked)
        elif asked.faults:  # what does not suit its mode
            found = asked.faults[0].what
        settings.append(found)
    inputs.settle()
    return ranked(plans, settings, side_by_side)


def _tell(inputs: Inputs, asked: Inputs) -> None:
    """What was asked for the best plan explains the answer."""
    from rlsize.quantities.table import QUANTITIES

    for fault in asked.faults:
        inputs.fault(*fault)
    inputs.notes += [note for note in asked.notes if note not in inputs.notes]
    for key, figure in asked.used.items():
        if key in QUANTITIES and inputs.gives(key) and key not in inputs.used:
            inputs.keep(figure)


def assumed_by(inputs: Inputs, loop: Loop, place: Placement) -> tuple[Assumption, ...] | None:
    """
    What nobody said and that moves the step of a plan; None where a scenario cannot say it.

    Args:
        inputs: What was said.
        loop: The loop that was said.
        place: Where the plan runs it.
    """
    from rlsize.loop.applied import applied
    from rlsize.loop.assumed import assumptions
    from rlsize.loop.resolve import resolve
    from rlsize.quantities.table import QUANTITIES

    try:
        values = applied(inputs.said_values(""), loop, place)
        left = _NOT_SEARCHED if place.shared else ("memory_fraction", *_NOT_SEARCHED)
        for row in (QUANTITIES[key] for key in left if not inputs.gives(key)):
            values.pop(row.scenario, None)
        planned = inputs.changed({**dict.fromkeys(inputs.file.leaves() if inputs.file is not None else ()), **values})
        planned.ran = True  # what fits and what does not was judged by the search
        return assumptions(planned, resolve(planned))
    except InputError:
        return None


def _launchable(inputs: Inputs) -> Callable[[Loop, Placement], str] | None:
    """Why the framework that is named cannot be launched on a placement; None where nobody names one."""
    framework, launch = inputs.apart().framework(), launch_of(inputs)
    if framework is None or not (framework.variants or launch):
        return None
    from rlsize.loop.applied import MODES, applied
    from rlsize.shell.new_launches import prepared

    named, said = str(inputs.name("framework")[0]), inputs.said_values("")
    before = inputs.file.leaves() if inputs.file is not None else {}
    open_to_all = {inputs.flag(key) for key in ("sync_every", "prompts_per_step", "group_size")}

    def why_not(loop: Loop, place: Placement) -> str:
        if place.loop not in MODES:
            return ""
        values = applied(said, loop, place)
        own = launch is not None and MODES[place.loop] == before.get("placement.mode")
        if not own and not framework.variants:
            return ""
        try:
            if own:
                wanted = wanted_of(inputs, values)
                why = untold(inputs, wanted)
                if not why:
                    kept_within(inputs, values, wanted)
                return why
            prepared(inputs.changed({**dict.fromkeys(before), **values}), "the plan", named)
        except (InputError, DoesNotFitError) as error:
            others = [fault for fault in error.faults if fault.where not in open_to_all]
            if others:
                return others[0].what
            warning = f"{error.faults[0].what}: no plan changes that, and none can be launched on it so"
            inputs.warnings += [] if warning in inputs.warnings else [warning]
        return ""

    return why_not


def kept_within(inputs: Inputs, values: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """
    What must change besides so that a plan fits with what the launch says of its memory, such as what it moves out.

    Args:
        inputs: What was said; by a launch.
        values: All values of the scenario with the plan in it, by dotted place.
        wanted: What differs, by quantity, as the launch can say it.

    Raises:
        DoesNotFitError: No single change that leaves the plan and the training as they are makes it fit.
    """
    from rlsize.loop.knobs import KINDS, kind_of
    from rlsize.loop.resolve import resolve
    from rlsize.loop.savers import savers

    def can(values: Mapping[str, Any]) -> bool:
        """Whether a change leaves plan and training as they are, and the launch can be told it."""
        return kind_of(values) == KINDS[0] and not any(map(_laid_out, values)) and can_change(inputs, values)

    if launch_of(inputs) is None:
        return {}
    planned = as_told(inputs, values, wanted)
    loop = resolve(planned)
    if not loop.refused:
        return {}
    best = next(iter(savers(planned, loop, can, lambda _share: None)), None)
    if best is None:
        todo = "see `rlsize memory` for what each phase holds, or leave --write out"
        raise DoesNotFitError(Fault(f"with what the launch says of its memory, {loop.refused}", "--write", todo))
    return best.values


def _laid_out(key: str) -> bool:
    """Whether a quantity is one of those that make it another plan."""
    return key.endswith(("_parallel", "gpus")) or key in {"fsdp", "instances"}


def save_plan(
    path: str, inputs: Inputs, command: str, loop: Loop, place: Placement, found: Evaluation, *, force: bool
) -> str:
    """
    Write a plan, with the scenario that resolves to it.

    Args:
        path: The file.
        inputs: What was said and used.
        command: Name of the command that made it.
        loop: The loop that was said.
        place: Where it runs.
        found: What that gives.
        force: Whether a file that exists is replaced.

    Returns:
        Why a scenario cannot say the plan, so that it holds none; empty where it can.

    Raises:
        InputError: It cannot be written.
    """
    from rlsize.facts.plan import Plan, kept
    from rlsize.loop.applied import applied
    from rlsize.quantities.table import nested
    from rlsize.shell.answer import facts_digest
    from rlsize.version import VERSION
    from rlsize.writers.files import write_whole
    from rlsize.writers.yaml_file import plan_text

    scenario, lacking = None, ""
    try:
        scenario = nested(applied(inputs.said_values(path), loop, place))
    except InputError as error:
        lacking = error.faults[0].what
    plan = Plan(
        command=inputs.command_line(command),
        rlsize_version=VERSION,
        facts_digest=facts_digest(inputs.folders),
        placement=kept(found.placement.values()),
        results=kept(found.results.values()),
        inputs=kept(inputs.shown()),
        scenario=scenario,
        prices_as_of=str(inputs.said("prices.as_of") or ""),
        prices_region=str(inputs.said("prices.region") or ""),
    )
    write_whole(path, plan_text(plan), force=force)
    return lacking


def side_by_side(work: Callable[[Any], Any], things: Sequence[Any]) -> list[Any]:
    """What a function makes of each, in order; in processes where there are several."""
    if len(things) <= 1:
        return [work(thing) for thing in things]
    import joblib

    return list(joblib.Parallel(n_jobs=-1)(joblib.delayed(work)(thing) for thing in things))
