"""Questions that several commands ask in the same way: consumption, instance rate, prices, model and GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlsize.cli import flags
from rlsize.equations import matching
from rlsize.estimates.working import apply
from rlsize.facts.figure import Figure, absent

if TYPE_CHECKING:
    from random import Random

    from rlsize.cli.inputs import Inputs
    from rlsize.facts.gpu import Gpu

DEFAULT_HEADROOM = 0.8
_LONGEST_SEED = 18
_AGREEMENT = 0.01  # a rate and the batch and time behind it may differ by rounding, not by more


def random_for(question: object, seed: str) -> Random | None:
    """
    A seeded generator for the bands, if any input of the question is uncertain.

    Raises:
        InputError: The seed is not a whole number.
    """
    from rlsize.errors import Fault, InputError
    from rlsize.estimates.working import uncertain_inputs

    if not seed.removeprefix("-").isascii() or not seed.removeprefix("-").isdecimal() or len(seed) > _LONGEST_SEED:
        raise InputError(Fault(f"{seed[:20]!r} is not a whole number", "--seed", "write 0 or 42"))
    if not uncertain_inputs(question):
        return None
    from random import Random

    return Random(seed)  # noqa: S311 (draws for a band, not for a secret)


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
    if said.known:
        return said
    product = apply(
        "batch_tokens",
        matching.tokens_per_step,
        prompts=prompts_figure,
        group_size=group_figure,
        response_tokens=response_figure,
    )
    return inputs.keep(product) if product.known else absent("batch_tokens", "--batch-tokens")


def train_seconds(inputs: Inputs, text: str | None) -> Figure:
    """Busy trainer seconds per optimizer step."""
    return inputs.number("train_seconds", "--train-seconds", text, flags.SECONDS, scenario="rates.train_seconds")


def consumption(inputs: Inputs, consume: str | None, batch: Figure, train: Figure) -> Figure:
    """Response tokens trained per second: said, or batch over train seconds; where both are given, they must agree."""
    said = inputs.number(
        "consumption_tokens_per_second",
        "--consume",
        consume,
        flags.TOKEN_RATE,
        scenario="rates.consumption_tokens_per_second",
    )
    derived = apply("consumption_tokens_per_second", matching.consumption, tokens_per_step=batch, train_seconds=train)
    if not said.known:
        if not derived.known and not inputs.faults:
            inputs.fault(
                "the trainer's consumption is missing",
                "--consume",
                "give --consume, or --batch-tokens with --train-seconds",
            )
        return inputs.keep(derived) if derived.known else said
    if derived.known and abs(derived.number / said.number - 1.0) > _AGREEMENT and consume is not None:
        inputs.fault(
            f"{said.number:g} tok/s disagrees with batch over train seconds, {derived.number:g} tok/s",
            said.source,
            "leave one of them out",
        )
    return said


def gpus_per_instance(inputs: Inputs, text: str | None) -> Figure:
    """GPUs of one rollout instance: said, or tensor x pipeline parallel of the scenario."""
    said = inputs.number("gpus_per_instance", "--gpus-per-instance", text, flags.GPUS_PER_INSTANCE)
    tensor, pipeline = inputs.said("rollout.tensor_parallel"), inputs.said("rollout.pipeline_parallel")
    if said.known or tensor is None:
        return said
    return inputs.keep(
        Figure(key="gpus_per_instance", value=tensor * (pipeline or 1), source=inputs.where("rollout.tensor_parallel"))
    )


def waste(inputs: Inputs, text: str | None) -> Figure:
    """Response tokens generated for each one that is trained; 1 when nobody says."""
    return inputs.number(
        "tokens_generated_per_trained_token",
        "--tokens-per-trained-token",
        text,
        flags.WASTE,
        scenario="algorithm.tokens_generated_per_trained_token",
        default=1.0,
        why="nothing is thrown away",
    )


def gpu_hours(
    inputs: Inputs, both: str | None, rollout: str | None, trainer: str | None, profile: str | None
) -> tuple[Figure, Figure]:
    """Dollars per GPU-hour of the rollout fleet and of the trainer; no price is ever assumed."""
    common = inputs.number("gpu_hour_usd", "--gpu-hour", both, flags.DOLLARS, scenario="prices.gpu_hour")
    name = profile or inputs.said("prices.profile")
    if name and not common.known:
        common = inputs.keep(_profile_price(inputs, str(name)))
    return (
        _or_common(
            inputs.number(
                "rollout_gpu_hour_usd", "--rollout-gpu-hour", rollout, flags.DOLLARS, scenario="prices.rollout_gpu_hour"
            ),
            common,
        ),
        _or_common(
            inputs.number(
                "trainer_gpu_hour_usd", "--trainer-gpu-hour", trainer, flags.DOLLARS, scenario="prices.trainer_gpu_hour"
            ),
            common,
        ),
    )


def _or_common(figure: Figure, common: Figure) -> Figure:
    return figure if figure.known else common


def _profile_price(inputs: Inputs, name: str) -> Figure:
    from rlsize.errors import InputError

    try:
        price = inputs.catalogue.get("price", name)
    except InputError as error:
        inputs.blame(error, "--price")
        return absent("gpu_hour_usd", "--gpu-hour")
    source = f"price profile {price.name}: {price.cloud}, {price.region}, as of {price.as_of}"
    return Figure(
        key="gpu_hour_usd", value=price.usd_per_gpu_hour.value, source=source, verified=price.usd_per_gpu_hour.verified
    )


def gpu(inputs: Inputs, name: str | None) -> Gpu | None:
    """The GPU's profile, if one is named by the flag or the scenario."""
    from rlsize.errors import InputError

    chosen = name or inputs.said("cluster.gpu")
    if not chosen:
        return None
    where = "--gpu" if name else inputs.where("cluster.gpu")
    try:
        found: Gpu = inputs.catalogue.get("gpu", str(chosen))
    except InputError as error:
        inputs.blame(error, where)
        return None
    inputs.keep(Figure(key="gpu", value=found.name, source=where))
    return found


def active_params(inputs: Inputs, model: str | None, params: str | None) -> Figure:
    """Parameters that work on each token, from a model profile, a config.json or a bare number."""
    from rlsize.cli.models import model_params

    return model_params(inputs, model, params)[1]


def check_mfu(
    inputs: Inputs, rate: Figure, flops_per_token: Figure, gpus: Figure, gpu_profile: Gpu | None, what: str
) -> str | None:
    """Refuse a rate that implies more than 100 % of the GPUs' peak; a warning where it implies over 70 %."""
    from rlsize.estimates.plausibility import implied_mfu_verdict

    if gpu_profile is None or not (rate.known and flops_per_token.known and gpus.known):
        return None
    verdict = implied_mfu_verdict(rate, flops_per_token, gpus, gpu_profile, what)
    if verdict.fault is not None:
        inputs.faults.append(verdict.fault)
    return verdict.warning


def instance_rate(
    inputs: Inputs,
    text: str | None,
    headroom: str | None,
    *,
    accept_lower_bound: bool,
    default_headroom: float = DEFAULT_HEADROOM,
) -> tuple[Figure, Figure]:
    """
    Response tokens per second of one instance, and the headroom that goes with it.

    A typed number keeps the default headroom; a rates file lists what its rate holds already.
    """
    said = inputs.said("rates.instance_tokens_per_second")
    file = text if text is not None and text.endswith((".yaml", ".yml")) else None
    if text is None and isinstance(said, str) and inputs.file is not None:
        file = str(inputs.file.folder / said)
    if file is not None:
        from rlsize.cli.rates import rate_from_file

        return rate_from_file(inputs, file, headroom, accept_lower_bound=accept_lower_bound)
    rate = inputs.number(
        "instance_tokens_per_second",
        "--per-instance",
        text,
        flags.TOKEN_RATE,
        scenario="rates.instance_tokens_per_second",
    )
    inputs.need(rate, "give --per-instance: a number, or a rates file from `rlsize observe --save`")
    derate = inputs.number(
        "headroom",
        "--headroom",
        headroom,
        flags.FRACTION,
        scenario="rates.headroom",
        default=default_headroom,
        why="default for a typed rate",
    )
    return rate, derate
