"""What `measure` was asked for: every flag and scenario field it needs, checked before anything starts."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlsize.cli import measure_flags as limits
from rlsize.cli.measure_model import measured_model
from rlsize.cli.measure_workload import workload
from rlsize.errors import Fault, InputError
from rlsize.facts.measured import STAGES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rlsize.cli.inputs import Inputs
    from rlsize.cli.measure_model import MeasuredModel
    from rlsize.cli.measure_workload import Workload
    from rlsize.facts.measured import Stage
    from rlsize.readers.http_targets import Target

SECONDS, QUICK_SECONDS = 240.0, 45.0
START_SECONDS = 1800.0
TIMEOUT = 10.0
DEVICES = ["auto", "cuda", "cpu"]
TORCH_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp8": "bfloat16"}
KV_DTYPES = {"bf16": "auto", "fp16": "auto", "fp32": "auto", "fp8": "fp8"}
RECOMPUTE = ["none", "selective", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Everything that was asked for; what is None was left to the engine, the trainer or the machine."""

    model: MeasuredModel | None
    work: Workload
    only: tuple[Stage, ...] | None
    quick: bool
    seconds: float
    start_seconds: float
    seed: int
    device: str
    targets: tuple[Target, ...]
    token: str
    authority: str | None
    insecure: bool
    timeout: float
    concurrencies: tuple[int, ...] | None
    most: int | None
    tensor_parallel: int
    pipeline_parallel: int
    says_parallelism: bool
    dtype: str
    kv_dtype: str
    memory_fraction: float | None
    engine_args: Mapping[str, Any]
    engine_python: str
    trainer_python: str
    processes: int | None
    micro_batch_tokens: int | None
    recompute: str
    torchrun: tuple[str, ...]
    buckets: tuple[int, ...] | None
    sender_ranks: int | None
    receiver_ranks: int | None


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
    work = workload(
        inputs, asked["prompts"], asked["group"], asked["prompt_tokens"], asked["response_tokens"],
        asked["response_cv"], asked["max_response_tokens"], asked["temperature"],
    )  # fmt: skip
    model = measured_model(inputs, asked["model"], dummy=asked["dummy_weights"], folder=folder)
    only = _stages(inputs, asked["only"])
    targets, token = _access(inputs, asked)
    seconds = inputs.number(
        "seconds", "--seconds", asked["seconds"], limits.SECONDS,
        default=QUICK_SECONDS if asked["quick"] else SECONDS, why="default",
    )  # fmt: skip
    start = inputs.number("start_seconds", "--start-timeout", asked["start_timeout"], limits.START, default=START_SECONDS)
    patience = inputs.number("timeout_seconds", "--timeout", asked["timeout"], limits.SECONDS, default=TIMEOUT)
    whole = {name: _count(inputs, name, asked) for name in _COUNTS}
    device = inputs.word("device", "--device", asked["device"], DEVICES, default="auto")
    dtype = inputs.word("dtype", "--dtype", asked["dtype"], TORCH_DTYPES, scenario="rollout.dtype", default="bf16")
    kv_dtype = inputs.word("kv_dtype", "--kv-dtype", asked["kv_dtype"], KV_DTYPES, scenario="rollout.kv_dtype", default="bf16")
    recompute = inputs.word("recompute", "--recompute", asked["recompute"], RECOMPUTE, scenario="trainer.recompute", default="full")
    fraction = inputs.number(
        "memory_fraction", "--memory-fraction", asked["memory_fraction"], limits.MEMORY_FRACTION, scenario="rollout.memory_fraction"
    )
    engine_python = asked["engine_python"] or sys.executable
    _check_model(inputs, model, work, whole["tensor_parallel"] or 1, only, targets)
    concurrencies = _counts(inputs, "--concurrency", asked["concurrency"])
    buckets = _sizes(inputs, asked["buckets"])
    engine_args = _engine_args(inputs, asked["engine_arg"])
    torchrun = _words(inputs, asked["torchrun"])
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
        seed=whole["seed"] or 0,
        device=device,
        targets=targets,
        token=token,
        authority=asked["ca"],
        insecure=asked["insecure"],
        timeout=patience.number,
        concurrencies=concurrencies,
        most=whole["max_num_seqs"],
        tensor_parallel=whole["tensor_parallel"] or 1,
        pipeline_parallel=int(inputs.said("rollout.pipeline_parallel") or 1),
        says_parallelism=whole["tensor_parallel"] is not None,
        dtype=dtype,
        kv_dtype=kv_dtype,
        memory_fraction=fraction.number if fraction.known else None,
        engine_args=engine_args,
        engine_python=engine_python,
        trainer_python=asked["trainer_python"] or engine_python,
        processes=whole["trainer_gpus"],
        micro_batch_tokens=whole["micro_batch_tokens"],
        recompute=recompute,
        torchrun=torchrun,
        buckets=buckets,
        sender_ranks=whole["sender_ranks"],
        receiver_ranks=whole["receiver_ranks"],
    )


_COUNTS = {
    "seed": ("--seed", limits.SEED, ""),
    "max_num_seqs": ("--max-num-seqs", limits.CONCURRENCY, ""),
    "tensor_parallel": ("--tensor-parallel", limits.RANKS, "rollout.tensor_parallel"),
    "trainer_gpus": ("--trainer-gpus", limits.RANKS, ""),
    "micro_batch_tokens": ("--micro-batch-tokens", limits.LENGTH, ""),
    "sender_ranks": ("--sender-ranks", limits.RANKS, ""),
    "receiver_ranks": ("--receiver-ranks", limits.RANKS, ""),
}


def _count(inputs: Inputs, name: str, asked: Mapping[str, Any]) -> int | None:
    flag, kind, scenario = _COUNTS[name]
    found = inputs.number(name, flag, asked[name], kind, scenario=scenario)
    return int(found.number) if found.known else None


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


def _access(inputs: Inputs, asked: Mapping[str, Any]) -> tuple[tuple[Target, ...], str]:
    """The servers and the token for them."""
    if not asked["url"]:
        return (), ""
    import os

    from rlsize.readers.http_targets import bearer_token, targets

    found: list[Target] = []
    token = ""
    try:
        found = targets(asked["url"])
        token = bearer_token(os.environ, asked["token_file"])
    except InputError as error:
        inputs.faults.extend(error.faults)
    if token and any(target.exposed for target in found):
        inputs.warnings.append("the token goes over plain http, which anyone on the way can read; https hides it")
    return tuple(found), token


def _check_model(
    inputs: Inputs,
    model: MeasuredModel | None,
    work: Workload | None,
    tensor_parallel: int,
    only: tuple[Stage, ...] | None,
    targets: tuple[Target, ...],
) -> None:
    """What a model cannot do, found out before an engine is started for it."""
    if model is None:
        needless = bool(targets) and only in {None, ("rollout",)}
        if not needless and not inputs.faults:
            inputs.fault("no model is named", "--model", "name a profile, a folder with a config.json or a Hugging Face id")
        return
    shape = model.profile.architecture if model.profile else None
    if shape is None:
        return
    if shape.attention and not targets and shape.attention.heads % tensor_parallel:
        what = f"{shape.attention.heads} heads of {model.name} cannot be shared by {tensor_parallel} GPUs"
        inputs.fault(what, "--tensor-parallel", "choose a divisor of the heads")
    longest = work.prompt_tokens + (work.cap or work.mean) if work else 0
    if longest > shape.max_context:
        what = f"prompt and response of {longest:,.0f} tokens exceed the {shape.max_context:,} that {model.name} takes"
        inputs.fault(what, "--max-response-tokens", "lower the cap, or shorten the prompt")


def _counts(inputs: Inputs, flag: str, text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    found = []
    for part in text.split(","):
        try:
            found.append(int(limits.CONCURRENCY.read(part.strip())))
        except ValueError as error:
            inputs.fault(str(error), flag, "write whole numbers, as 16,64,256")
    return tuple(sorted(set(found)))


def _sizes(inputs: Inputs, text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    found = []
    for part in text.split(","):
        try:
            found.append(int(limits.BYTES.read(part.strip())))
        except ValueError as error:
            inputs.fault(str(error), "--buckets", "write sizes, as 64MB,512MB")
    return tuple(sorted(set(found)))


def _engine_args(inputs: Inputs, entries: list[str] | None) -> dict[str, Any]:
    """Arguments of vLLM's LLM: names of Python, values as in YAML."""
    import yaml

    found: dict[str, Any] = {}
    for entry in entries or []:
        name, equals, value = entry.partition("=")
        name = name.strip().lstrip("-").replace("-", "_")
        if not equals or not name.isidentifier():
            inputs.fault(f"{entry!r} is not NAME=VALUE", "--engine-arg", "write it as enforce_eager=true")
            continue
        try:
            found[name] = yaml.safe_load(value)
        except yaml.YAMLError:
            inputs.fault(f"the value of {entry!r} cannot be read", "--engine-arg", "write true, 32 or text")
    return found


def _words(inputs: Inputs, text: str | None) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(text or ""))
    except ValueError as error:
        inputs.fault(f"cannot be read: {error}", "--torchrun", "close its quotes")
        return ()


