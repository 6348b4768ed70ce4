"""
Questions that several commands ask in the same way: consumption, instance rate, prices, model and GPU.

A quantity can be said in more ways than one (a consumption, or a batch and a time). What flags say, in whatever way,
goes before what the scenario says; what a rates file says comes last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.commands import flags, predicted
from rlsize.equations import imbalance, matching
from rlsize.errors import Fault, InputError
from rlsize.estimates.working import apply, rounded, uncertain_inputs
from rlsize.facts.figure import Figure, absent
from rlsize.facts.headroom import FULL_HEADROOM
from rlsize.planner.rounding import rounded_down

if TYPE_CHECKING:
    from random import Random

    from rlsize.facts.gpu import Gpu
    from rlsize.facts.price import Price
    from rlsize.shell.inputs import Inputs

_LONGEST_SEED = 18
_AGREEMENT = 0.01  # a rate and the batch and time behind it may differ by rounding, not by more


def random_for(question: object, seed: str) -> Random | None:
    """
    A seeded generator for the bands, if any input of the question is uncertain.

    Raises:
        InputError: The seed is not a whole number.
    """
    digits = seed.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(seed) <= _LONGEST_SEED):
        raise InputError(Fault(f"{seed[:20]!r} is not a whole number", "--seed", "write 0 or 42"))
    if not uncertain_inputs(question):
        return None
    from random import Random

    return Random(seed)  # noqa: S311 (draws for a band, not for a secret)


def by_flag(figure: Figure) -> bool:
    """Whether a flag said it, or said any of what it was worked out from."""
    return figure.source.startswith("--") or any(by_flag(entry) for entry in figure.inputs.values())


def batch_tokens(
    inputs: Inputs, batch: str | None, prompts: str | None, group: str | None, response: str | None
) -> Figure:
    """Response tokens per optimizer step: said, or prompts x group x mean response length."""
    said = inputs.number("batch_tokens", "--batch-tokens", batch, flags.TOKENS)
    prompts_figure = inputs.number(
        "prompts_per_step", "--prompts", prompts, flags.POSITIVE, scenario="workload.prompts_per_step"
    )
    group_figure = inputs.number("group_size", "--group", group, flags.POSITIVE, scenario="workload.group_size")
    response_figure = inputs.number(
        "response_tokens", "--response-tokens", response, flags.TOKENS, scenario="workload.response_tokens.mean"
    )
    product = apply(
        "batch_tokens",
        matching.tokens_per_step,
        prompts=prompts_figure,
        group_size=group_figure,
        response_tokens=response_figure,
    )
    if said.known:
        if product.known and all(by_flag(f) for f in (prompts_figure, group_figure, response_figure)):
            _agree(inputs, said, product, "tokens", "prompts x group x response tokens")
        return said
    return inputs.keep(product) if product.known else absent("batch_tokens", "--batch-tokens")


def samples(inputs: Inputs, text: str | None) -> Figure:
    """Samples per optimizer step: said, or prompts x group where those were asked before."""
    said = inputs.number("samples_per_step", "--samples", text, flags.POSITIVE)
    prompts, group = inputs.used.get("prompts_per_step"), inputs.used.get("group_size")
    if prompts is None or group is None:
        return said
    product = apply("samples_per_step", matching.samples_per_step, prompts=prompts, group_size=group)
    if said.known and by_flag(prompts) and by_flag(group):
        _agree(inputs, said, product, "samples", "prompts x group")
    return said if said.known else inputs.keep(product)


def train_seconds(inputs: Inputs, text: str | None) -> Figure:
    """Busy trainer seconds per optimizer step: flag, scenario, or the rates file."""
    said = inputs.number("train_seconds", "--train-seconds", text, flags.SECONDS, scenario="rates.train_seconds")
    return said if said.known else inputs.measured("train_seconds", said)


def consumption(inputs: Inputs, consume: str | None, batch: Figure, train: Figure) -> Figure:
    """
    Response tokens trained per second: said, or batch over train seconds.

    Where flags, or the scenario alone, say both, they must agree.
    """
    key = "consumption_tokens_per_second"
    said = inputs.number(key, "--consume", consume, flags.TOKEN_RATE, scenario=f"rates.{key}")
    derived = apply(key, matching.consumption, tokens_per_step=batch, train_seconds=train)
    if not said.known:
        said = inputs.measured(key, said)
    if not derived.known and not said.known:
        derived = predicted.consumption(inputs, batch, train)
    if not derived.known:
        if not said.known and not inputs.faults:
            todo = f"give --consume, or --batch-tokens with --train-seconds{predicted.why_not(inputs, train.key)}"
            inputs.fault("the trainer's consumption is missing", "--consume", todo)
        return said
    same_rank = by_flag(batch) and by_flag(train) if by_flag(said) else not by_flag(derived)
    if said.known and same_rank:
        _agree(inputs, said, derived, "tok/s", "batch over train seconds")
    chosen = said if said.known and (by_flag(said) or not by_flag(derived)) else derived
    return inputs.keep(chosen)


def _agree(inputs: Inputs, said: Figure, derived: Figure, unit: str, how: str) -> None:
    if abs(derived.number / said.number - 1.0) > _AGREEMENT:
        what = f"{said.number:g} {unit} disagrees with {how}, {derived.number:g} {unit}"
        inputs.fault(what, said.source, "leave one of them out")


def instances(inputs: Inputs, text: str | None, size: Figure) -> Figure:
    """
    Rollout instances: said, or the GPUs that the scenario gives to rollout, over the size of an instance.

    Args:
        inputs: What the user said.
        text: The flag's text.
        size: GPUs of one instance.
    """
    said = inputs.number("instances", "--instances", text, flags.COUNT, scenario="placement.instances")
    if said.known or not size.known:
        return said
    pool = inputs.number("rollout_gpus", "--instances", None, flags.COUNT, scenario="placement.rollout_gpus")
    if not pool.known:
        total = inputs.number("gpus", "--instances", None, flags.COUNT, scenario="cluster.gpus")
        trainer = inputs.number("trainer_gpus", "--instances", None, flags.COUNT, scenario="placement.trainer_gpus")
        pool = apply("rollout_gpus", matching.remaining_gpus, gpus=total, rollout_gpus=trainer)
    exact = apply("instances", matching.instances_of, gpus=pool, gpus_per_instance=size)
    if not exact.known or exact.number < 1:
        return said
    return inputs.keep(rounded(exact, "instances", rounded_down(exact.number)))


def gpus_per_instance(inputs: Inputs, text: str | None) -> Figure:
    """GPUs of one rollout instance: said, tensor x pipeline parallel of the scenario, or the rates file's."""
    said = inputs.number("gpus_per_instance", "--gpus-per-instance", text, flags.GPUS_PER_INSTANCE)
    tensor = inputs.number(
        "tensor_parallel", "--gpus-per-instance", None, flags.COUNT, scenario="rollout.tensor_parallel"
    )
    if said.known or not tensor.known:
        return said if said.known else inputs.measured("gpus_per_instance", said)
    pipeline = inputs.number(
        "pipeline_parallel", "--gpus-per-instance", None, flags.COUNT, scenario="rollout.pipeline_parallel", default=1
    )
    return inputs.keep(
        apply("gpus_per_instance", matching.instance_gpus, tensor_parallel=tensor, pipeline_parallel=pipeline)
    )


def waste(
    inputs: Inputs,
    text: str | None,
    oversampling: str | None = None,
    kept: str | None = None,
    dropped: str | None = None,
) -> Figure:
    """Response tokens generated for each one that is trained: said, or worked out of its causes; 1 when nobody says."""
    key = "tokens_generated_per_trained_token"
    if oversampling is None and kept is None and dropped is None:
        return inputs.number(
            key,
            "--tokens-per-trained-token",
            text,
            flags.WASTE,
            scenario=f"algorithm.{key}",
            default=1.0,
            why="nothing is thrown away",
        )
    if text is not None:
        both = "--tokens-per-trained-token, --oversampling, --kept-fraction, --dropped-fraction"
        inputs.fault("the waste and its causes both say it", both, "leave one of them out")
    why = "nothing is lost there"
    causes = {
        "oversampling": inputs.number(
            "oversampling", "--oversampling", oversampling, flags.OVERSAMPLING, default=1.0, why=why
        ),
        "kept_fraction": inputs.number("kept_fraction", "--kept-fraction", kept, flags.KEPT, default=1.0, why=why),
        "dropped_fraction": inputs.number(
            "dropped_fraction", "--dropped-fraction", dropped, flags.DROPPED, default=0.0, why=why
        ),
    }
    return inputs.keep(apply(key, imbalance.tokens_generated_per_trained_token, **causes))


def gpu_hours(
    inputs: Inputs, both: str | None, rollout: str | None, trainer: str | None, profile: str | None
) -> tuple[Figure, Figure]:
    """Dollars per GPU-hour of the rollout fleet and of the trainer; no price is ever assumed."""
    if both is not None and profile is not None:
        inputs.fault("a price and a price profile both say it", "--gpu-hour, --price", "leave one of them out")
    common = inputs.number("gpu_hour_usd", "--gpu-hour", both, flags.DOLLARS, scenario="prices.gpu_hour")
    if profile is not None and both is None:
        common = inputs.keep(_profile_price(inputs, profile, "--price"))
    elif not common.known and inputs.said("prices.profile"):
        common = inputs.keep(_profile_price(inputs, str(inputs.said("prices.profile")), inputs.where("prices.profile")))
    sides = (
        ("rollout_gpu_hour_usd", "--rollout-gpu-hour", rollout, "prices.rollout_gpu_hour"),
        ("trainer_gpu_hour_usd", "--trainer-gpu-hour", trainer, "prices.trainer_gpu_hour"),
    )
    rollout_price, trainer_price = (
        _or_common(inputs.number(key, flag, text, flags.DOLLARS, scenario=scenario), common)
        for key, flag, text, scenario in sides
    )
    return rollout_price, trainer_price


def _or_common(figure: Figure, common: Figure) -> Figure:
    """A pool's own price, unless only the scenario says it and a flag sets the common one."""
    overridden = by_flag(common) and not by_flag(figure)
    return figure if figure.known and not overridden else common


def _profile_price(inputs: Inputs, name: str, where: str) -> Figure:
    try:
        price = inputs.catalogue.get("price", name)
    except InputError as error:
        inputs.blame(error, where)
        return absent("gpu_hour_usd", "--gpu-hour")
    rate = price.usd_per_gpu_hour
    return Figure(key="gpu_hour_usd", value=rate.value, source=price_text(price), verified=rate.verified)


def price_text(price: Price) -> str:
    """Who asks this price, where and when; it holds for nothing else."""
    return f"price profile {price.name}: {price.cloud}, {price.region}, as of {price.as_of}"


def gpu(inputs: Inputs, name: str | None) -> Gpu | None:
    """The GPU's profile, if the flag, the scenario or the scenario's cluster profile names one."""
    chosen, where = (name, "--gpu") if name is not None else (inputs.said("cluster.gpu"), inputs.where("cluster.gpu"))
    if chosen is None and inputs.said("cluster.profile"):
        where = inputs.where("cluster.profile")
        try:
            chosen = inputs.catalogue.get("cluster", str(inputs.said("cluster.profile"))).gpu
        except InputError as error:
            inputs.blame(error, where)
    if chosen is None:
        return None
    try:
        found: Gpu = inputs.catalogue.get("gpu", str(chosen))
    except InputError as error:
        inputs.blame(error, where)
        return None
    inputs.keep(Figure(key="gpu", value=found.name, source=where))
    return found


def active_params(inputs: Inputs, model: str | None, params: str | None) -> Figure:
    """Parameters that work on each token, from a model profile, a config.json or a bare number."""
    if model is None and params is None and inputs.said("model") is None:
        return absent("active_params", "--model")
    from rlsize.shell.models import model_params

    return model_params(inputs, model, params)[1]


def implausible(
    inputs: Inputs,
    profile: Gpu | None,
    active: Figure,
    trainer: tuple[Figure, Figure, str],
    rollout: tuple[Figure, Figure, str],
) -> list[str]:
    """
    Warnings about rates that only just fit the GPUs; faults for those that no GPU can do.

    Args:
        inputs: Takes the faults.
        profile: The GPU; without one nothing can be judged.
        active: Parameters that work on each token.
        trainer: Trained tokens per second, the GPUs that reach it, and what to call it.
        rollout: The same for generated tokens.
    """
    if profile is None:
        return []
    from rlsize.estimates.plausibility import implied_mfu_verdict

    works = (matching.training_flops_per_token, matching.generation_flops_per_token)
    warnings = []
    for (rate, gpus, what), work in zip((trainer, rollout), works, strict=True):
        flops = apply(work.__name__, work, active_params=active)
        if not (rate.known and flops.known and gpus.known):
            if rate.known and flops.known:
                inputs.notes.append(f"Not checked against the {profile.name}'s peak: {what} needs {gpus.missing}.")
            continue
        verdict = implied_mfu_verdict(rate, flops, gpus, profile, what)
        inputs.faults += [verdict.fault] if verdict.fault else []
        warnings += [verdict.warning] if verdict.warning else []
    return warnings


def instance_rate(
    inputs: Inputs, text: str | None, headroom: str | None, *, default_headroom: float = FULL_HEADROOM
) -> tuple[Figure, Figure]:
    """
    Response tokens per second of one instance, and the headroom that goes with it.

    A typed number keeps the default headroom; a rates file lists what its rate holds already.
    """
    if inputs.rates is not None:
        from rlsize.shell.rates import measured_rate

        return measured_rate(inputs, headroom, default_headroom)
    rate = inputs.number(
        "instance_tokens_per_second",
        "--per-instance",
        text,
        flags.TOKEN_RATE,
        scenario="rates.instance_tokens_per_second",
    )
    if not inputs.rates_failed:
        rate, why = predicted.instance_rate(inputs, rate), predicted.why_not(inputs, rate.key)
        inputs.need(rate, f"give --per-instance: a number, or a rates file from `rlsize observe --save`{why}")
    derate = inputs.number(
        "headroom",
        "--headroom",
        headroom,
        flags.HEADROOM,
        scenario="rates.headroom",
        default=default_headroom,
        why="default for a typed rate",
    )
    return rate, derate
