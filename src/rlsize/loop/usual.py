"""What a loop that runs should take, and what was said of it: the two sides of the question whether that is normal."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rlsize.errors import InputError, Refused
from rlsize.estimates.model_size import model_size
from rlsize.facts.figure import Figure
from rlsize.loop.answer import answer_of
from rlsize.loop.lengths import response_length
from rlsize.loop.resolve import resolve
from rlsize.loop.workload import samples
from rlsize.quantities.table import QUANTITIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.loop.said import Said

_SLOWING = (  # what a run may do worse than its model needs: micro-batches are packed, engines are filled
    *("micro_batch_tokens", "micro_batch_samples", "logprob_micro_batch_tokens", "logprob_micro_batch_samples"),
    *("padded", "concurrency", "max_num_seqs"),
)
_TELLING = (
    *_SLOWING,
    *("recompute", "offload", "param_offload", "activation_offload", "reference_offload"),
    *("group_size", "memory_fraction", "turns", "tool_seconds", "rollout_gpus", "trainer_gpus"),
)


class Usual(NamedTuple):
    """
    What is known of the loop behind a log.

    Args:
        results: What it is predicted to do, by key.
        said: What was said of it, by quantity.
        why_not: Why nothing is predicted; empty where something is, or where nobody said a loop.
        todo: What to say for that; empty where it would not do.
    """

    results: Mapping[str, Figure]
    said: Mapping[str, Figure]
    why_not: str = ""
    todo: str = ""


def usual_of(said: Said) -> Usual:
    """
    The loop of a run, with its micro-batches packed and its engines filled, and what was said of it.

    Args:
        said: What was said of the loop, and what its log shows.
    """
    stated = {key: said.said(QUANTITIES[key].scenario) for key in _TELLING}
    told = {key: Figure(key=key, value=value) for key, value in stated.items() if isinstance(value, (int, float, str))}
    many = samples(said.apart())
    told |= {"samples_per_step": many} if many.known else {}
    if not said.gives("model"):
        return Usual({}, told)
    model = said.apart().model()
    told |= {"params": model_size(model).params} if model is not None else {}
    filled = said.changed({QUANTITIES[key].scenario: None for key in _SLOWING})
    filled.ran = True
    filled.need(response_length(filled), "give --response-tokens")  # what other runs had is no measure of this one
    filled.need(samples(filled), "give --samples, or --prompts and --group")
    try:
        found = answer_of(resolve(filled))
    except InputError as error:
        todo = "; ".join(fault.todo for fault in error.faults if fault.what.endswith(" is missing"))
        return Usual({}, told, "; ".join(fault.what for fault in error.faults), todo)
    except Refused as error:
        return Usual({}, told, str(error))
    return Usual(found.results, told, found.refused)
