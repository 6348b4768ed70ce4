"""`rlsize whatif`: every change of a run by one step, ranked by what a trained token costs then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.reports.report import Report
from rlsize.shell.command import option, switch
from rlsize.shell.inputs import Inputs
from rlsize.shell.quantity_flags import ALGORITHM, ANSWER, LOOP, PRICES, WORKLOAD, ScenarioFile, asks_beside_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from rlsize.loop.knobs import Change
    from rlsize.verdicts.whatif import Outcome

_KINDS_OF_GPUS = ("a100-80-sxm", "h100-sxm", "h200-sxm", "b200-sxm")
_FEWEST_PAIRED = 2


@asks_beside_files(Loop=LOOP, Workload=WORKLOAD, Passes=ALGORITHM, Prices=PRICES, Inputs=ANSWER)
def whatif(
    inputs: Inputs,
    scenario: ScenarioFile = None,
    changes: list[str] | None = option(
        "--set", "Your own change, such as rollout.kv_dtype=fp8; repeatable.", "Changes", "KEY=VALUE"
    ),
    other_gpus: list[str] | None = option(
        "--other-gpu", "A kind of GPU to run on instead; repeatable.", "Changes", "NAME"
    ),
    own_only: bool = switch("--own-only", "Only what `--set` and `--other-gpu` say, not every step.", "Changes"),
) -> Report:
    """
    What each change of a run would do: step, cost, idle and memory.

    Example:  rlsize whatif examples/unmeasured-8b.yaml --set rollout.tensor_parallel=2
    """
    from rlsize.commands.whatif.report import whatif_report
    from rlsize.loop.knobs import Change, single_steps
    from rlsize.reports.loop_verdicts import refused_report
    from rlsize.shell.launches import can_change
    from rlsize.shell.progress import late_progress
    from rlsize.verdicts.whatif import outcome_in, outcomes, pairs

    inputs.read(scenario)
    base = outcome_in(inputs, Change({}))
    if base.found is None or base.loop is None or base.refused:
        return refused_report(
            "whatif", base.refused, inputs.told(notes=["`rlsize memory` names the changes that make it fit."])
        )
    shown, said = inputs.shown(), tuple(inputs.notes)
    own = list(_own(inputs, changes or (), base))
    every = [] if own_only else single_steps(inputs, base.loop, [] if other_gpus else _KINDS_OF_GPUS)
    steps = [Change({"gpu": name}) for name in other_gpus or ()]
    steps += [one for one in every if can_change(inputs, _said(one.values)) or "gpu" in one.values]
    with late_progress("trying each change") as tell:
        seen: set[str] = set()
        single = outcomes(inputs, base, _distinct(inputs, steps, seen), tell)
        both = outcomes(inputs, base, _distinct(inputs, pairs(single), seen), tell)
    return whatif_report(inputs, base, (own, single, both), shown, said)


def _distinct(inputs: Inputs, changes: Iterable[Change], seen: set[str]) -> Iterator[Change]:
    """Changes that differ where the loop runs: two quantities may be told by one key."""
    from rlsize.shell.launches import in_own_keys

    for change in changes:
        words = in_own_keys(inputs, _said(change.values))
        if words not in seen:
            seen.add(words)
            yield change


def _said(values: Mapping[str, Any]) -> dict[str, Any]:
    """What of a change a launch would say."""
    return {key: value for key, value in values.items() if value is not None}


def _own(inputs: Inputs, texts: Sequence[str], base: Outcome) -> Iterator[Outcome]:
    """The user's own changes, each alone, and all of them together."""
    from rlsize.loop.knobs import Change
    from rlsize.verdicts.whatif import outcome_in

    every = [[text] for text in texts] + ([list(texts)] if len(texts) >= _FEWEST_PAIRED else [])
    for some in every:
        other, values = inputs.with_sets(some)
        yield outcome_in(other, Change(values, told=", ".join(some)), base)
