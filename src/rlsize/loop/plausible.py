"""Whether GPUs can do at all what is claimed of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.dataclass import replace
from rlsize.equations import matching
from rlsize.errors import Fault
from rlsize.estimates.figures import apply
from rlsize.facts.figure import Figure, absent
from rlsize.units import show

if TYPE_CHECKING:
    from rlsize.loop.said import Said

_SUSPICIOUS = 0.70  # MFU; the best published pre-training runs stay below 60 %, and RL reaches less
_WORK = {"trainer": matching.training_flops_per_token, "rollout": matching.generation_flops_per_token}


def judge(said: Said, side: str, rate: Figure, gpus: Figure, what: str) -> None:
    """
    Note a warning about a rate that only just fits its GPUs, and a fault for one that no GPU can do.

    Args:
        said: What was said; without a GPU nothing can be judged.
        side: Whose rate it is: `trainer` or `rollout`.
        rate: Tokens per second; a prediction is not judged. [token/s]
        gpus: GPUs that reach it together. [1]
        what: What to call it.
    """
    profile = said.gpu(side)
    if profile is None:
        return
    work = _WORK[side]
    flops = apply(work.__name__, work, active_params=active_params(said))
    if not (rate.known and flops.known):
        return
    if not gpus.known:
        said.notes.append(f"Not checked against the {profile.name}'s peak: {what} needs {gpus.missing}.")
        return
    peak = profile.specification.bf16_dense
    mfu = apply(
        "implied_mfu_fraction",
        matching.implied_mfu,
        tokens_per_second=rate,
        flops_per_token=flops,
        gpus=gpus,
        peak_flops=Figure(
            key="peak_flops",
            value=peak.value,
            source=f"profile {profile.name}: bf16_dense",
            verified=peak.verified,
        ),
    )
    claimed = f"{what}, {show(rate.value, '_tokens_per_second')},"
    text = f"{claimed} implies {show(mfu.value, mfu.key)} MFU on {gpus.value:g} x {profile.name}"
    fault = Fault(text, rate.source, "no GPU does more than 100 %: check the rate, the GPU count and the model")
    warning = f"{text}; over 70 % is rarely seen, check the rate and the GPU count"
    if mfu.number > 1.0:
        said.faults += [fault] if fault not in said.faults else []
    elif mfu.number > _SUSPICIOUS:
        said.warnings += [warning] if warning not in said.warnings else []


def active_params(said: Said) -> Figure:
    """Parameters that work on each token: said, or counted from the model's layers; absent where nobody names one."""
    if said.by_flag("params") and said.by_flag("model"):
        said.fault("--model and --params both name a model", said.flag("params"), "leave one of them out")
    model = said.model()
    if model is not None:
        from rlsize.estimates.model_size import model_size

        text = f"the dimensions of {model.name} are unverified"
        if not model.architecture.verified and text not in said.warnings:
            said.warnings.append(text)
        source = f"model profile {model.name}: counted from its layers; {model.sources[model.architecture.source]}"
        return replace(model_size(model).active_params, source=source)
    whole = said.ask("params")
    active = absent("active_params", "--model") if said.by_flag("params") else said.ask("active_params")
    if active.known and whole.known and active.number > whole.number:
        said.fault(f"{active.number:g} active parameters are more than {whole.number:g}", active.source)
    return active if active.known else replace(whole, key="active_params")
