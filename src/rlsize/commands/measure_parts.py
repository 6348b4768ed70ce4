"""The parts of what `measure` was asked for: servers to reach, an engine to start, a trainer to run."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlsize.commands import measure_flags as limits
from rlsize.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.facts.fields import Quantity
    from rlsize.readers.http_targets import Target
    from rlsize.shell.inputs import Inputs

TIMEOUT = 10.0
TORCH_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp8": "bfloat16"}
KV_DTYPES = {"bf16": "auto", "fp16": "auto", "fp32": "auto", "fp8": "fp8"}
RECOMPUTE = ["none", "selective", "full"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """Servers that run already, and how to ask them; without targets, an engine is started."""

    targets: tuple[Target, ...]
    token: str
    authority: str | None
    insecure: bool
    timeout: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A rollout engine; what is None was left to its own defaults."""

    python: str
    concurrencies: tuple[int, ...] | None
    most: int | None
    tensor_parallel: int | None
    pipeline_parallel: int
    dtype: str
    kv_dtype: str
    memory_fraction: float | None
    arguments: Mapping[str, Any]

    @property
    def gpus(self) -> int:
        """GPUs of an instance, one where nobody says."""
        return (self.tensor_parallel or 1) * self.pipeline_parallel


@dataclass(frozen=True, slots=True, kw_only=True)
class Trainer:
    """A trainer, and the ranks of a weight sync; what is None follows from the machine."""

    python: str
    processes: int | None
    micro_batch_tokens: int | None
    recompute: str
    torchrun: tuple[str, ...]
    buckets: tuple[int, ...] | None
    sender_ranks: int | None
    receiver_ranks: int | None
    engine_update: bool


def servers(inputs: Inputs, asked: Mapping[str, Any]) -> Servers:
    """The servers that --url names; what is wrong is noted."""
    timeout = inputs.number("timeout_seconds", "--timeout", asked["timeout"], limits.SECONDS, default=TIMEOUT)
    targets, token = _access(inputs, asked)
    _check_authority(inputs, asked["ca"])
    return Servers(
        targets=targets,
        token=token,
        authority=asked["ca"],
        insecure=asked["insecure"],
        timeout=timeout.number if timeout.known else TIMEOUT,
    )


def engine(inputs: Inputs, asked: Mapping[str, Any]) -> Engine:
    """The engine that is asked for; what is wrong is noted."""
    share = inputs.number(
        "memory_fraction",
        "--memory-fraction",
        asked["memory_fraction"],
        limits.MEMORY_FRACTION,
        scenario="rollout.memory_fraction",
    )
    return Engine(
        python=asked["engine_python"] or sys.executable,
        concurrencies=_list(inputs, "--concurrency", asked["concurrency"], limits.CONCURRENCY, "16,64,256"),
        most=_count(inputs, "max_num_seqs", "--max-num-seqs", asked, limits.CONCURRENCY),
        tensor_parallel=_count(
            inputs, "tensor_parallel", "--tensor-parallel", asked, limits.RANKS, "rollout.tensor_parallel"
        ),
        pipeline_parallel=int(inputs.said("rollout.pipeline_parallel") or 1),
        dtype=inputs.word("dtype", "--dtype", asked["dtype"], TORCH_DTYPES, scenario="rollout.dtype", default="bf16"),
        kv_dtype=inputs.word(
            "kv_dtype", "--kv-dtype", asked["kv_dtype"], KV_DTYPES, scenario="rollout.kv_dtype", default="bf16"
        ),
        memory_fraction=share.number if share.known else None,
        arguments=_engine_args(inputs, asked["engine_arg"]),
    )


def trainer(inputs: Inputs, asked: Mapping[str, Any]) -> Trainer:
    """The trainer and the ranks of a weight sync that are asked for; what is wrong is noted."""
    recompute = inputs.word(
        "recompute", "--recompute", asked["recompute"], RECOMPUTE, scenario="trainer.recompute", default="full"
    )
    return Trainer(
        python=asked["trainer_python"] or asked["engine_python"] or sys.executable,
        processes=_count(inputs, "trainer_gpus", "--trainer-gpus", asked, limits.RANKS),
        micro_batch_tokens=_count(inputs, "micro_batch_tokens", "--micro-batch-tokens", asked, limits.LENGTH),
        recompute=recompute,
        torchrun=_words(inputs, asked["torchrun"]),
        buckets=_list(inputs, "--buckets", asked["buckets"], limits.BYTES, "64MB,512MB"),
        sender_ranks=_count(inputs, "sender_ranks", "--sender-ranks", asked, limits.RANKS),
        receiver_ranks=_count(inputs, "receiver_ranks", "--receiver-ranks", asked, limits.RANKS),
        engine_update=asked["engine_update"],
    )


def _count(
    inputs: Inputs, key: str, flag: str, asked: Mapping[str, Any], kind: Quantity, scenario: str = ""
) -> int | None:
    found = inputs.number(key, flag, asked[key], kind, scenario=scenario)
    return int(found.number) if found.known else None


def _list(inputs: Inputs, flag: str, text: str | None, kind: Quantity, example: str) -> tuple[int, ...] | None:
    """Quantities with commas in between, in their order of size."""
    if text is None:
        return None
    found = set()
    for part in text.split(","):
        try:
            found.add(int(kind.read(part.strip())))
        except ValueError as error:
            inputs.fault(str(error), flag, f"write it as {example}")
    return tuple(sorted(found))


def _check_authority(inputs: Inputs, path: str | None) -> None:
    import ssl

    try:
        ssl.create_default_context(cafile=path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        inputs.fault(f"{path} cannot be read as certificates: {reason}", "--ca", "give a PEM file")


def _access(inputs: Inputs, asked: Mapping[str, Any]) -> tuple[tuple[Target, ...], str]:
    """The servers and the token for them."""
    if not asked["url"]:
        return (), ""
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
