"""
Time of a training step on given GPUs: forward and backward, the optimizer, and the extra passes that RL needs.

Kernels measured alone, the bytes that a step moves and the power of the board say what is possible; the constants of
`constants_train` say what of it trainers reach.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlsize.equations import matching, memory, train_step_traffic
from rlsize.equations import train_step as equations
from rlsize.estimates.figures import added, apply
from rlsize.estimates.train_prediction_gpu import bare_train_gpu, train_gpu
from rlsize.estimates.train_prediction_pass import attention_flops, pass_parts
from rlsize.estimates.train_prediction_question import FORWARD, TRAINING, TrainQuestion, check
from rlsize.estimates.train_prediction_setting import Setting
from rlsize.estimates.train_prediction_shape import bare_train_shape, train_shape

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlsize.equations._ops import Real
    from rlsize.facts.model import Model

__all__ = ["TrainQuestion", "TrainStep", "train_step"]

BF16_BYTES = 2.0
_FULLY = 3  # forward passes that forward and backward are worth in model FLOPs


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainStep:
    """
    How long the trainer works on a step; numbers, arrays or figures, as the question was.

    Args:
        train_seconds: All of it: every update, and the extra passes. [s]
        update_seconds: One update over all tokens: forward, backward, optimizer. [s]
        forward_seconds: Each extra pass, by name; the critic's is its own training too. [s]
        parts: Where the time of one update goes, by name; they add up to it. [s]
        tokens_per_second: Tokens of the step, prompts too, over `train_seconds`. [token/s]
        tokens_per_second_per_gpu: The same for each GPU. [token/s]
        mfu: Model FLOPs of forward and backward, causal attention and nothing recomputed, over the bf16 peak for the
            time of an update. [1]
    """

    train_seconds: Real
    update_seconds: Real
    forward_seconds: Mapping[str, Real] = field(default_factory=dict)
    parts: Mapping[str, Real] = field(default_factory=dict)
    tokens_per_second: Real
    tokens_per_second_per_gpu: Real
    mfu: Real


def train_step(work: Callable[..., Real], question: TrainQuestion, values: Mapping[str, Real]) -> TrainStep:
    """
    The time of a training step.

    Args:
        work: `estimates.figures.apply` for figures that explain themselves, `numbers` for numbers and arrays.
        question: What is asked.
        values: The constants of `constants_train`, by name: figures, numbers, or arrays of draws.

    Returns:
        The time and where it goes.

    Raises:
        Refused: The question has no answer: a number type that the GPU lacks, or degrees that do not divide.
    """
    check(question)
    setting = _setting(work, question, values)
    parts = _update_parts(setting)
    update = _update(setting, parts)
    forwards = {name: _extra(setting, name) for name in question.passes}
    total = work(
        "train_seconds",
        equations.trainer_busy_time,
        update=update,
        updates=question.updates,
        forwards=added(work, "forward_seconds", list(forwards.values()) or [0.0]),
    )
    rate = _rate(setting, "tokens_per_second_per_gpu", total)
    return TrainStep(
        train_seconds=total,
        update_seconds=update,
        forward_seconds=forwards,
        parts=parts,
        tokens_per_second=work("tokens_per_second", matching.pool_rate, gpus=question.gpus, gpu_rate=rate),
        tokens_per_second_per_gpu=rate,
        mfu=_mfu(setting, _rate(setting, "update_tokens_per_second_per_gpu", update)),
    )


def _setting(work: Callable[..., Real], question: TrainQuestion, values: Mapping[str, Real]) -> Setting:
    """What the parts have in common; model and GPU as bare numbers unless figures are wanted."""
    domain = int(question.gpu.specification.scale_up.domain_gpus.value)
    ranks = question.shards or domain
    asked = (question.gpu, question.dtype, ranks, question.tensor, question.expert)
    gpu = train_gpu(*asked) if work is apply else bare_train_gpu(*asked)
    shape = train_shape(question.model) if work is apply else bare_train_shape(question.model)
    return Setting(work=work, question=question, shape=shape, gpu=gpu, values=values, domain=domain)


def _update_parts(setting: Setting) -> dict[str, Real]:
    """Where the time of one update goes."""
    work, asked, values = setting.work, setting.question, setting.values
    parts = pass_parts(setting, TRAINING[asked.recompute])
    passed = work("pass_seconds", equations.pass_time, **parts)
    own = "rl_train_moe_slowdown" if setting.shape.has_experts else "rl_train_slowdown"
    slowdown = values[own if asked.workload == "rl" else "train_stack"]
    parts["loss"] = work("loss_seconds", equations.slowdown_loss, seconds=passed, slowdown=slowdown)
    domain = setting.gpu.domain_gpus
    parts["straggling"] = work(
        "straggling_seconds",
        equations.straggling_time,
        busy=passed,
        nodes=work("nodes", equations.model_replicas, gpus=asked.gpus, gpus_per_replica=domain),
        fraction_per_doubling=values["train_straggling"],
    )
    parts["optimizer"] = _optimizer(setting)
    parts["offload"] = _offload(setting) if asked.offload else 0.0
    parts["fixed"] = _repeated(setting, "fixed_seconds", values["train_fixed_seconds"])
    return {name: value for name, value in parts.items() if name == "matmul" or not isinstance(value, float) or value}


def _update(setting: Setting, parts: Mapping[str, Real]) -> Real:
    passed = ("matmul", "attention", "elementwise", "exchanged", "host_wait", "gathering", "bubble")
    work = setting.work
    return work(
        "update_seconds",
        equations.update_time,
        pass_seconds=work("pass_seconds", equations.pass_time, **{name: parts.get(name, 0.0) for name in passed}),
        **{name: parts.get(name, 0.0) for name in ("loss", "straggling", "optimizer", "offload", "fixed")},
    )


def _repeated(setting: Setting, key: str, seconds: Real) -> Real:
    """What happens in each optimizer update of the step."""
    given = {"seconds": seconds, "times": setting.question.optimizer_steps}
    return setting.work(key, train_step_traffic.repeated_time, **given)


def _own_params(setting: Setting) -> Real:
    """Parameters that each GPU updates."""
    held = setting.params_between_shards()
    if setting.question.sharding == "none":
        return held
    return setting.work("params_updated", train_step_traffic.share_of_params, params=held, ranks=setting.shards())


def _optimizer(setting: Setting) -> Real:
    work, asked = setting.work, setting.question
    moved = work(
        "update_bytes_per_param",
        equations.update_bytes_per_param,
        bytes_per_gradient=asked.gradient_bytes,
        bytes_per_weight=BF16_BYTES,
        bytes_per_state=asked.state_bytes,
    )
    once = work(
        "optimizer_update_seconds",
        equations.optimizer_update_time,
        params=_own_params(setting),
        bytes_per_param=moved,
        bandwidth=setting.gpu.memory_bandwidth,
        memory_fraction=setting.values["train_memory_fraction"],
    )
    return _repeated(setting, "optimizer_seconds", once)


def _offload(setting: Setting) -> Real:
    """Seconds to bring the optimizer's states in and out, once for the step."""
    work = setting.work
    states = work(
        "offloaded_bytes",
        memory.trainer_state_bytes,
        params=_own_params(setting),
        training_bytes_per_param=setting.question.state_bytes,
    )
    return work("offload_seconds", memory.optimizer_offload_time, offloaded_bytes=states, bandwidth=setting.gpu.pcie)


def _extra(setting: Setting, name: str) -> Real:
    """Seconds of an extra pass; of the critic, its values and its own update."""
    work, asked = setting.work, setting.question
    model = asked.pass_models.get(name)
    if model is not None:
        setting = _for_model(setting, model)
    parts = pass_parts(setting, FORWARD)
    seconds = work(f"{name}_seconds", equations.pass_time, **parts)
    if asked.workload == "rl":
        slowdown = setting.values["rl_forward_moe_slowdown" if setting.shape.has_experts else "rl_forward_slowdown"]
        lost = work("loss_seconds", equations.slowdown_loss, seconds=seconds, slowdown=slowdown)
        seconds = added(work, f"{name}_seconds", [seconds, lost])
    if name != "critic":
        return seconds
    trained = _update(setting, _update_parts(setting))
    return work("critic_seconds", equations.trainer_busy_time, update=trained, updates=asked.updates, forwards=seconds)


def _for_model(setting: Setting, model: Model) -> Setting:
    shape = train_shape(model) if setting.work is apply else bare_train_shape(model)
    return Setting(
        work=setting.work,
        question=setting.question,
        shape=shape,
        gpu=setting.gpu,
        values=setting.values,
        domain=setting.domain,
    )


def _rate(setting: Setting, key: str, seconds: Real) -> Real:
    return setting.work(key, matching.consumption, tokens_per_step=setting.tokens(), train_seconds=seconds)


def _mfu(setting: Setting, rate: Real) -> Real:
    work, shape = setting.work, setting.shape
    params = added(work, "matmul_params", [shape.linear_params, shape.head_params, shape.expert_active_params])
    linear = work("flops_per_token", matching.training_flops_per_token, active_params=params)
    flops = added(work, "model_flops_per_token", [linear, *attention_flops(setting, _FULLY)])
    return work(
        "mfu",
        matching.implied_mfu,
        tokens_per_second=rate,
        flops_per_token=flops,
        gpus=1,
        peak_flops=setting.gpu.bf16_peak,
    )
