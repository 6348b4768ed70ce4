"""What `measure` was asked for: every flag and scenario field it needs, checked before anything starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlsize.commands import measure_flags as limits
from rlsize.commands import measure_parts as parts
from rlsize.commands.measure_model import measured_model
from rlsize.commands.measure_workload import workload
from rlsize.errors import Fault, InputError
from rlsize.facts.measured import STAGES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlsize.commands.measure_model import MeasuredModel
    from rlsize.commands.measure_workload import Workload
    from rlsize.facts.measured import Stage
    from rlsize.shell.inputs import Inputs

SECONDS, QUICK_SECONDS = 240.0, 45.0
START_SECONDS = 1800.0
NO_MODEL, NAME_ONE = "no model is named", "name a profile, a folder with a config.json or a Hugging Face id"
DEVICES = ["auto", "cuda", "cpu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """
    Everything that was asked for.

    Args:
        model: What to run; None for servers that say it themselves.
        work: One optimizer step's samples.
        only: The stages to measure; None for what the machine can.
        quick: Whether a first look is enough.
        seconds: Time for each stage, starting apart. [s]
        start_seconds: Most that an engine or trainer may take to start. [s]
        seed: Of lengths, prompts and weights.
        device: cuda, cpu, or auto.
        servers: Servers to reach.
        engine: An engine to start.
        trainer: A trainer to run, and the ranks of a weight sync.
    """

    model: MeasuredModel | None
    work: Workload
    only: tuple[Stage, ...] | None
    quick: bool
    seconds: float
    start_seconds: float
    seed: int
    device: str
    servers: parts.Servers
    engine: parts.Engine
    trainer: parts.Trainer

    @property
    def named_model(self) -> MeasuredModel:
        """
        The model, for a stage that cannot do without.

        Raises:
            InputError: None is named.
        """
        if self.model is None:
            raise InputError(
                Fault(
                    "no model is named", "--model", "name a profile, a folder with a config.json or a Hugging Face id"
                )
            )
        return self.model


def setting(inputs: Inputs, asked: Mapping[str, Any], folder: Path) -> Setting:
    """
    All that was asked for.

    Args:
        inputs: Flags, scenario and profiles; faults are noted there and told at once.
        asked: The flags by their names.
        folder: Where a config.json may be written for a profile.

    Raises:
        InputError: All that is wrong with it.
    """
    model = measured_model(inputs, asked["model"], dummy=asked["dummy_weights"], folder=folder)
    work = workload(
        inputs,
        asked["prompts"],
        asked["group"],
        asked["prompt_tokens"],
        asked["response_tokens"],
        asked["response_cv"],
        asked["max_response_tokens"],
        asked["temperature"],
        model.profile.architecture.max_context if model and model.profile else None,
    )
    only = _stages(inputs, asked["only"])
    servers, engine, trainer = parts.servers(inputs, asked), parts.engine(inputs, asked), parts.trainer(inputs, asked)
    usual = QUICK_SECONDS if asked["quick"] else SECONDS
    seconds = inputs.number("seconds", "--seconds", asked["seconds"], limits.SECONDS, default=usual)
    start = inputs.number(
        "start_seconds", "--start-timeout", asked["start_timeout"], limits.START, default=START_SECONDS
    )
    seed = inputs.number("seed", "--seed", asked["seed"], limits.SEED, default=0)
    device = inputs.word("device", "--device", asked["device"], DEVICES, default="auto")
    _check_named(inputs, model, only, servers)
    _check_model(inputs, model, work, engine, servers)
    inputs.settle()
    if work is None:  # settle has told why
        raise InputError(Fault("the workload cannot be run"))
    return Setting(
        model=model,
        work=work,
        only=only,
        quick=asked["quick"],
        seconds=seconds.number,
        start_seconds=start.number,
        seed=int(seed.number),
        device=device,
        servers=servers,
        engine=engine,
        trainer=trainer,
    )


def _stages(inputs: Inputs, text: str | None) -> tuple[Stage, ...] | None:
    """The stages that --only names, in the order in which they run; None where it names none."""
    if text is None:
        return None
    named = [part.strip() for part in text.split(",") if part.strip()]
    for name in named:
        if name not in STAGES:
            inputs.fault(f"{name!r} cannot be measured", "--only", f"known: {', '.join(STAGES)}")
    if not named:
        inputs.fault("names nothing", "--only", f"known: {', '.join(STAGES)}")
    return tuple(stage for stage in STAGES if stage in named)


def _check_named(
    inputs: Inputs, model: MeasuredModel | None, only: tuple[Stage, ...] | None, servers: parts.Servers
) -> None:
    """A model is needed by all but a rollout on servers, which say what they serve."""
    needless = bool(servers.targets) and only in {None, ("rollout",)}
    if model is None and not needless and not inputs.faults:
        inputs.fault(NO_MODEL, "--model", NAME_ONE)


def _check_model(
    inputs: Inputs, model: MeasuredModel | None, work: Workload | None, engine: parts.Engine, servers: parts.Servers
) -> None:
    """What a model cannot do, found out before an engine is started for it."""
    shape = model.profile.architecture if model and model.profile else None
    if shape is None or model is None:
        return
    shared = engine.tensor_parallel or 1
    if shape.attention and not servers.targets and shape.attention.heads % shared:
        what = f"{shape.attention.heads} heads of {model.name} cannot be shared by {shared} GPUs"
        inputs.fault(what, "--tensor-parallel", "choose a divisor of the heads")
    longest = work.prompt_tokens + (work.cap or work.mean) if work else 0
    if longest > shape.max_context:
        what = f"prompt and response of {longest:,.0f} tokens exceed the {shape.max_context:,} that {model.name} takes"
        inputs.fault(what, "--max-response-tokens", "lower the cap, or shorten the prompt")
