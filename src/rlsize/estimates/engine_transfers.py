"""What moves the residual stream of an engine: all-reduces and exchanges among GPUs, and small kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlsize.equations import kernel_time, step_overheads

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.engine_work import EngineWork, ExplainedWork

    Work = Callable[..., Any]
    Numbers = EngineWork | ExplainedWork

_ACTIVATION = 2.0  # bytes of an activation


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """
    What transfers cost before they move a byte; nothing in a prefill, whose launches are counted apart.

    Args:
        prefix: Of the names of the results.
        all_reduce: Time of a small all-reduce. [s]
        exchange: Time of an exchange without load. [s]
        operations: Small kernels of a layer that have a start. [1]
    """

    prefix: str
    all_reduce: Any = 0.0
    exchange: Any = 0.0
    operations: Any = 0.0


def achieved(work: Work, rate: Any, slowdown: Real) -> Any:  # noqa: ANN401 (as `work` makes them)
    """A kernel's rate inside an engine."""
    return work("achieved_rate", kernel_time.achieved_rate, peak=rate, fraction=1.0, slowdown=slowdown)


def slowed(work: Work, seconds: Any, slowdown: Real) -> Any:  # noqa: ANN401 (as `work` makes them)
    """A kernel's fixed time inside an engine."""
    return work("start_seconds", kernel_time.slowed, seconds=seconds, slowdown=slowdown)


def transfers(work: Work, n: Numbers, tokens: Any, starts: Starts, values: Mapping[str, Real]) -> dict[str, Any]:  # noqa: ANN401 (as `work` makes them)
    """
    Seconds of all-reduces, exchange and small kernels for the tokens of one data-parallel rank.

    Args:
        work: `figures.apply` or `figures.numbers`.
        n: The replica; figures where `work` explains.
        tokens: Tokens that the rank works on.
        starts: Fixed times.
        values: The constants of `constants_rollout.STAGE` by name.
    """
    named = starts.prefix
    stream = work(
        f"{named}stream_bytes",
        step_overheads.stream_bytes,
        tokens=tokens,
        hidden_size=n.hidden_size,
        width=_ACTIVATION,
    )
    return {
        "all_reduce": work(
            f"{named}all_reduce_seconds",
            step_overheads.all_reduce_time,
            messages=n.all_reduces,
            latency=starts.all_reduce,
            message_bytes=stream,
            ranks=n.tensor,
            bandwidth=achieved(work, n.all_reduce_rate, values["rollout_all_reduce_slowdown"]),
        ),
        "exchange": work(
            f"{named}exchange_seconds",
            step_overheads.expert_exchange_time,
            layers=n.exchange_layers,
            latency=starts.exchange,
            sent_bytes=work("sent_bytes", step_overheads.sent_bytes, tokens=tokens, bytes_per_token=n.exchange_bytes),
            bandwidth=achieved(work, n.exchange_rate, values["rollout_exchange_slowdown"]),
        ),
        "small_operations": work(
            f"{named}small_operations_seconds",
            step_overheads.small_operations_time,
            layers=n.layers,
            operations=starts.operations,
            operation_seconds=n.operation_seconds,
            passes=values["rollout_stream_passes"],
            activation_bytes=stream,
            bandwidth=n.bandwidth,
        ),
    }
