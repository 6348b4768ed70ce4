"""Whether a rate is possible on the GPUs that are said to reach it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlsize.equations import matching
from rlsize.errors import Fault
from rlsize.estimates.figures import apply
from rlsize.facts.figure import Figure
from rlsize.units import show

if TYPE_CHECKING:
    from rlsize.facts.gpu import Gpu

SUSPICIOUS = 0.70  # the best published pre-training runs stay below 60 % MFU; RL reaches less


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an implied MFU says: a fault over 100 %, a warning over 70 %, else nothing."""

    mfu: Figure
    fault: Fault | None = None
    warning: str | None = None


def implied_mfu_verdict(rate: Figure, flops_per_token: Figure, gpus: Figure, gpu: Gpu, what: str) -> Verdict:
    """
    Judge a claimed token rate by the share of the GPUs' bf16 peak that it implies.

    Args:
        rate: Tokens per second.
        flops_per_token: Work per token.
        gpus: GPUs that reach the rate together.
        gpu: Their profile.
        what: What the rate is, for the message.
    """
    peak = gpu.specification.bf16_dense
    limit = Figure(key="peak_flops", value=peak.value, source=f"profile {gpu.name}: bf16_dense", verified=peak.verified)
    mfu = apply(
        "implied_mfu_fraction",
        matching.implied_mfu,
        tokens_per_second=rate,
        flops_per_token=flops_per_token,
        gpus=gpus,
        peak_flops=limit,
    )
    claimed = f"{what}, {show(rate.value, '_tokens_per_second')},"
    text = f"{claimed} implies {show(mfu.value, mfu.key)} MFU on {gpus.value:g} x {gpu.name}"
    if mfu.number > 1.0:
        return Verdict(
            mfu,
            fault=Fault(text, rate.source, "no GPU does more than 100 %: check the rate, the GPU count and the model"),
        )
    if mfu.number > SUSPICIOUS:
        return Verdict(mfu, warning=f"{text}; over 70 % is rarely seen, check the rate and the GPU count")
    return Verdict(mfu)
