"""What `measure` was asked for: every flag and scenario field it needs, checked before anything starts."""

from __future__ import annotations

import json
import math
import re
import shlex
import ssl
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.errors import Fault, InputError
from rlsize.facts.fields import Quantity
from rlsize.facts.figure import Figure
from rlsize.facts.measured import STAGES
from rlsize.facts.rates import RateConditions
from rlsize.frozen import dataclass
from rlsize.measure.rollout import Turn, Workload, drawn_lengths
from rlsize.quantities.scenario import ModelNumbers
from rlsize.quantities.table import QUANTITIES
from rlsize.shell.access import access_to, blamed

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rlsize.facts.measured import Stage
    from rlsize.facts.model import Model
    from rlsize.readers.http_pages import Access, Target
    from rlsize.readers.prompts import SaidTurn
    from rlsize.shell.inputs import Inputs

NO_MODEL, NAME_ONE = "no model is named", "name a profile, a folder with a config.json or a Hugging Face id"
CONFIG = "config.json"
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_WEIGHTS = ("*.safetensors", "*.bin", "*.pt")
TORCH_DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp8": "bfloat16"}
KV_DTYPES = {"bf16": "auto", "fp16": "auto", "fp32": "auto", "fp8": "fp8"}
QUICK_SECONDS = 45.0
_CONCURRENCY = Quantity("count", most=65_536, whole=True)
_RANKS = Quantity("count", most=1024, whole=True)
_BUCKET = Quantity("B", least=1e3, most=1e12)
_CAP_FACTOR = 4  # the plain workload's cap, in mean lengths
_PROMPT_SHARE = 8  # the plain prompt takes at most one part in so many of a model's context
_MOST = {"prompts_per_step": 1e6, "group_size": 4096, "prompt_tokens": 1e7, "response_tokens": 1e7}


class MeasuredModel(NamedTuple):
    """
    A model to run.

    Args:
        name: What it is called in the answer.
        source: Where an engine finds it: a folder with a config.json, or a Hugging Face id.
        shape: Where a trainer finds its config.json, for which no weights are read; likewise.
        dummy: Whether its weights are random.
        profile: Its shape, where it is known before the run.
    """

    name: str
    source: str
    shape: str
    dummy: bool
    profile: Model | None


def measured_model(inputs: Inputs, *, dummy: bool, folder: Path) -> MeasuredModel | None:
    """
    The model; None where there is none, or something is wrong with it, which is then noted.

    Args:
        inputs: Flags, scenario and profiles.
        dummy: Whether random weights are asked for.
        folder: Where a config.json may be written for a profile.
    """
    chosen, where = inputs.name("model")
    if isinstance(inputs.said("model"), ModelNumbers) and not inputs.by_flag("model"):
        inputs.fault("is only a size; a measurement needs a real model", where, "name one with --model")
        return None
    if chosen is None:
        return None
    if not chosen.strip():
        inputs.fault("names no model", where, NAME_ONE)
        return None
    near = Path() if inputs.by_flag("model") or inputs.file is None else inputs.file.folder
    try:
        found = _local(chosen, near, dummy=dummy) or _named(inputs, chosen, folder, dummy=dummy)
    except InputError as error:
        inputs.blame(error, where)
        return None
    inputs.keep(Figure(key="model", value=found.name, source=where))
    if found.dummy and not dummy:
        random = "random ones are used; speed does not need real ones"
        inputs.notes.append(f"{found.name} has no weights here, so {random}.")
    return found


def _local(chosen: str, near: Path, *, dummy: bool) -> MeasuredModel | None:
    """
    The model in a folder; None where nothing lies there.

    Raises:
        InputError: What lies there is no model.
    """
    try:
        place = (near / chosen).expanduser()
        place = place.parent if place.name == CONFIG and place.is_file() else place
        if not place.exists():
            return None
        if place.is_dir() and not (place / CONFIG).is_file():
            raise InputError(Fault(f"the folder {place} holds no {CONFIG}", "", "name the folder of a model"))
    except (OSError, RuntimeError, ValueError):  # a name that no file can have
        return None
    from rlsize.readers.huggingface import read_model

    profile = read_model(place)
    weights = any(next(place.glob(pattern), None) for pattern in _WEIGHTS)
    here = str(place.resolve())
    return MeasuredModel(name=profile.name, source=here, shape=here, dummy=dummy or not weights, profile=profile)


def _named(inputs: Inputs, chosen: str, folder: Path, *, dummy: bool) -> MeasuredModel:
    """
    The model of a profile or of a Hugging Face id.

    Raises:
        InputError: It is neither.
    """
    try:
        profile: Model | None = inputs.catalogue.get("model", chosen)
    except InputError:
        if not _HUB_ID.fullmatch(chosen) or chosen.startswith("."):
            raise
        profile = None
    if profile is None:
        inputs.notes.append(f"{chosen} is taken for a Hugging Face id; no profile knows its shape.")
        return MeasuredModel(name=chosen, source=chosen, shape=chosen, dummy=dummy, profile=None)
    try:
        # A folder with the config.json of a profile
        from rlsize.writers.model_profile import config_of

        place = folder / "model"
        place.mkdir()
        (place / CONFIG).write_text(json.dumps(config_of(profile), indent=2), encoding="utf-8")
        shape = str(place)
    except InputError:
        if not profile.hf_repo:
            raise
        shape = profile.hf_repo  # its family is not written here, so its configuration comes from where its weights lie
    if profile.hf_repo and not dummy:
        return MeasuredModel(name=profile.name, source=profile.hf_repo, shape=shape, dummy=False, profile=profile)
    return MeasuredModel(name=profile.name, source=shape, shape=shape, dummy=True, profile=profile)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredWork(Workload):
    """
    One optimizer step's samples, as a fleet of instances generates them.

    Args:
        temperature: Sampling temperature. [1]
        instances: Rollout instances that share a step, as planned. [1]
    """

    temperature: float
    instances: int

    @property
    def prompts_per_instance(self) -> int:
        """Prompts that one instance gets in a step."""
        return max(1, -(-self.prompts // self.instances))


class OwnEngine(NamedTuple):
    """Rollout engines to start, 0 for as many as GPUs take; what is None is left to their own defaults."""

    python: str
    engines: int
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


class OwnTrainer(NamedTuple):
    """A trainer to run, and the ranks of a weight sync; what is None follows from the machine."""

    python: str
    processes: int | None
    micro_batch_tokens: int | None
    recompute: str
    torchrun: tuple[str, ...]
    buckets: tuple[int, ...] | None
    sender_ranks: int | None
    receiver_ranks: int | None
    engine_update: bool


class Measurement(NamedTuple):
    """
    Everything that was asked for.

    Args:
        model: What to run; None for servers that say it themselves.
        work: One optimizer step's samples.
        only: The stages to measure; None for what the machine can.
        quick: Whether a first look is enough.
        seconds: Time for each stage, starting apart. [s]
        within: Whether somebody said that time, so that the finite batch keeps to it.
        start_seconds: Most that an engine or trainer may take to start. [s]
        seed: Of lengths, prompts and weights.
        device: cuda, cpu, or auto.
        targets: Servers that run already and are to be reached; without them, an engine is started.
        access: How to ask them.
        engine: An engine to start.
        trainer: A trainer to run, and the ranks of a weight sync.
    """

    model: MeasuredModel | None
    work: MeasuredWork
    only: tuple[Stage, ...] | None
    quick: bool
    seconds: float
    within: bool
    start_seconds: float
    seed: int
    device: str
    targets: tuple[Target, ...]
    access: Access
    engine: OwnEngine
    trainer: OwnTrainer

    @property
    def conditions(self) -> RateConditions:
        """Under which rates are measured, as far as they were asked for."""
        return RateConditions(
            model=self.model.name if self.model else None,
            mean_response_tokens=self.work.mean,
            mean_prompt_tokens=float(self.work.prompt_tokens),
            group_size=float(self.work.group_size),
            response_cv=self.work.cv,
            max_response_tokens=self.work.cap,
        )

    @property
    def named_model(self) -> MeasuredModel:
        """
        The model, for a stage that cannot do without.

        Raises:
            InputError: None is named.
        """
        if self.model is None:
            raise InputError(Fault(NO_MODEL, "--model", NAME_ONE))
        return self.model


def measurement(inputs: Inputs, asked: Mapping[str, Any], folder: Path) -> Measurement:
    """
    All that was asked for.

    Args:
        inputs: Flags, scenario and profiles; faults are noted there and told at once.
        asked: The flags that are no quantities, by their names.
        folder: Where a config.json may be written for a profile.

    Raises:
        InputError: All that is wrong with it.
    """
    from rlsize.loop.seed import seed_of

    model = measured_model(inputs, dummy=asked["dummy_weights"], folder=folder)
    work = _workload(inputs, model.profile.architecture.max_context if model and model.profile else None)
    with blamed(inputs, "--replay"):
        work = _played(inputs, asked, work, model)
    only = _stages(inputs, asked["only"])
    servers, access = _servers(inputs, asked)
    engine, trainer = _engine(inputs, asked), _trainer(inputs, asked)
    quick = QUICK_SECONDS if asked["quick"] else None
    seconds = inputs.ask("measurement_seconds", default=quick, why="a quick look")
    start, device = inputs.ask("start_seconds"), inputs.choose("device")
    if asked["replay"] and only == ("sync",):
        inputs.fault("plays prompts, and a sync has none", "--replay", "leave one of them out")
    nameless = (servers and only in {None, ("rollout",)}) or (asked["trainer_log"] and only == ("train",))
    if asked["trainer_log"] and only is not None and "train" not in only:
        inputs.fault("stands for the train step, which --only leaves out", "--trainer-log", "name train, too")
    if model is None and not nameless and not inputs.faults:
        inputs.fault(NO_MODEL, "--model", NAME_ONE)  # servers alone say what they serve
    _check_model(inputs, model, work, engine, starts=not servers)
    return Measurement(
        model=model,
        work=inputs.settled(work),
        only=only,
        quick=asked["quick"],
        seconds=seconds.number,
        within=asked["quick"] or inputs.gives("measurement_seconds"),
        start_seconds=start.number,
        seed=int(inputs.keep(Figure(key="seed", value=seed_of(inputs), source="--seed")).number),
        device=device,
        targets=servers,
        access=access,
        engine=engine,
        trainer=trainer,
    )


def _workload(inputs: Inputs, context: int | None) -> MeasuredWork | None:
    """
    The scenario's workload, or that of flags, or a plain one that says it is nobody's and stays within the context.

    None where something is wrong with it, which is then noted.
    """
    from rlsize.estimates.lengths import uncapped_mean

    before = len(inputs.faults)
    said = {key: inputs.ask(key, default=default, why="nobody said") for key, default in _plain(context).items()}
    cv, cap, temperature = map(inputs.ask, ("response_cv", "max_response_tokens", "temperature"))
    planned = inputs.ask("instances")
    for key, figure in said.items():
        if figure.known and not 1 <= figure.number <= _MOST[key]:
            inputs.fault(f"{figure.number:,g} cannot be run", inputs.place(key), f"from 1 to {_MOST[key]:,.0f} can")
    if len(inputs.faults) > before:
        return None
    prompt, mean = said["prompt_tokens"].number, said["response_tokens"].number
    longest = cap.if_known
    if longest is None and said["response_tokens"].provenance == "default":
        longest = min(_CAP_FACTOR * mean, (context or math.inf) - prompt)
    try:
        uncapped_mean(mean, cv.number, longest)
    except ValueError as error:
        inputs.fault(str(error), "--max-response-tokens", "raise the cap, or give a shorter mean")
        return None
    return MeasuredWork(
        prompts=round(said["prompts_per_step"].number),
        group_size=round(said["group_size"].number),
        prompt_tokens=round(prompt),
        mean=mean,
        cv=cv.number,
        cap=longest,
        temperature=temperature.number,
        instances=int(planned.number) if planned.known else 1,
    )


def _played(
    inputs: Inputs, asked: Mapping[str, Any], work: MeasuredWork | None, model: MeasuredModel | None
) -> MeasuredWork | None:
    """
    The workload with the prompts of `--replay`: responses that its lines do not tell are drawn, as elsewhere.

    Raises:
        InputError: The file cannot be read, or not as tokens of the model.
    """
    from rlsize.loop.seed import seed_of
    from rlsize.measure.jobs import token_ids
    from rlsize.readers.prompts import read_prompts

    path = asked["replay"]
    if path is None or work is None:
        return work
    lines = read_prompts(path)
    turns = [turn for line in lines for turn in line]
    texts = sorted({text for turn in turns for text in turn if isinstance(text, str)})
    if texts and model is None:
        todo = "name --model, or give prompt_token_ids"
        raise InputError(Fault("holds texts, which need a tokenizer", path, todo))
    python, source = asked["engine_python"] or sys.executable, model.source if model else ""
    known = dict(zip(texts, token_ids(python, "--engine-python", source, path, texts) if texts else (), strict=True))
    drawn = iter(drawn_lengths(len(turns), work.mean, work.cv, work.cap, seed_of(inputs)))

    def played(said: SaidTurn, length: int) -> Turn:
        prompt = known[said.prompt] if isinstance(said.prompt, str) else said.prompt
        response = len(known[said.response]) if isinstance(said.response, str) else said.response
        return Turn(prompt, response or length)

    found = replace(work, traces=tuple(tuple(played(turn, next(drawn)) for turn in line) for line in lines))
    _check_tokens(path, found.traces, model)
    prompts, responses = zip(*found.shapes(len(lines), 0), strict=True)
    told = {"prompt_tokens": fmean(prompts)}
    if all(turn.response for turn in turns):
        told["response_tokens"] = fmean(responses)
    for key, value in told.items():  # which is nobody's default any more
        inputs.keep(Figure(key=key, value=value, source="--replay"))
    return replace(
        found,
        prompts=work.prompts if inputs.gives("prompts_per_step") else len(lines),
        prompt_tokens=round(fmean(prompts)),
        mean=fmean(responses),
        cv=pstdev(responses) / fmean(responses),
        cap=float(max(responses)),
    )


def _check_tokens(path: str, traces: Iterable[Iterable[Turn]], model: MeasuredModel | None) -> None:
    """
    Refuse token ids that the model does not have, at which an engine would break.

    Raises:
        InputError: It has not.
    """
    most = max((max(turn.prompt) for line in traces for turn in line if isinstance(turn.prompt, list)), default=0)
    held = model.profile.architecture.vocab_size if model and model.profile else None
    if held is not None and most >= held:
        raise InputError(Fault(f"has token {most:,}, and the model has {held:,}", path, "are they another model's?"))


def _plain(context: int | None) -> dict[str, float]:
    """What is run where nobody says, within what the model takes."""
    prompt, mean = float(QUANTITIES["prompt_tokens"].default or 0.0), 1024.0
    if context is not None:
        prompt = min(prompt, max(1, context // _PROMPT_SHARE))
        mean = min(mean, max(1, (context - prompt) // _CAP_FACTOR))
    return {"prompts_per_step": 32, "group_size": 8, "prompt_tokens": prompt, "response_tokens": mean}


def _servers(inputs: Inputs, asked: Mapping[str, Any]) -> tuple[tuple[Target, ...], Access]:
    """The servers that --url names, and how to ask them; what is wrong is noted."""
    from rlsize.readers.http_pages import Access, targets

    found: list[Target] = []
    if asked["url"]:
        if find_spec("aiohttp") is None:
            inputs.fault("needs the package aiohttp to stream", "--url", "pip install 'rlsize[servers]'")
        with blamed(inputs, "--url"):
            found = targets(asked["url"])
        access = access_to(found, inputs, asked["token_file"], asked["ca"], insecure=asked["insecure"])
    else:
        inputs.ask("timeout_seconds")
        access = Access(authority=asked["ca"])
    try:
        ssl.create_default_context(cafile=asked["ca"])
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        inputs.fault(f"{asked['ca']} cannot be read as certificates: {reason}", "--ca", "give a PEM file")
    return tuple(found), access


def _engine(inputs: Inputs, asked: Mapping[str, Any]) -> OwnEngine:
    """The engine that is asked for; what is wrong is noted."""
    share = inputs.ask("memory_fraction")
    return OwnEngine(
        python=asked["engine_python"] or sys.executable,
        engines=_engines(inputs, asked),
        concurrencies=_list(inputs, "--concurrency", asked["concurrency"], _CONCURRENCY, "16,64,256"),
        most=_count(inputs, "max_num_seqs"),
        tensor_parallel=_count(inputs, "rollout_tensor_parallel"),
        pipeline_parallel=_count(inputs, "rollout_pipeline_parallel") or 1,
        dtype=inputs.choose("rollout_dtype", TORCH_DTYPES, default="bf16", why="as models are trained"),
        kv_dtype=inputs.choose("kv_dtype", KV_DTYPES),
        memory_fraction=share.if_known,
        arguments=_engine_args(inputs, asked["engine_arg"]),
    )


def _engines(inputs: Inputs, asked: Mapping[str, Any]) -> int:
    """How many engines to start; 0 for all that GPUs take."""
    said = asked["engines"]
    if said is not None and asked["url"]:
        inputs.fault("starts engines, and --url has servers that run", "--engines", "leave one of them out")
    if said in {None, "all"}:
        return 1 if said is None else 0
    [count] = _list(inputs, "--engines", said if "," not in said else "?", _RANKS, "4, or all") or (1,)
    return count


def _trainer(inputs: Inputs, asked: Mapping[str, Any]) -> OwnTrainer:
    """The trainer and the ranks of a weight sync that are asked for; what is wrong is noted."""
    try:
        torchrun = tuple(shlex.split(asked["torchrun"] or ""))
    except ValueError as error:
        inputs.fault(f"cannot be read: {error}", "--torchrun", "close its quotes")
        torchrun = ()
    return OwnTrainer(
        python=asked["trainer_python"] or asked["engine_python"] or sys.executable,
        processes=_count(inputs, "trainer_gpus") if inputs.by_flag("trainer_gpus") else None,  # not the plan's GPUs
        micro_batch_tokens=_count(inputs, "micro_batch_tokens"),
        recompute=inputs.choose("recompute"),
        torchrun=torchrun,
        buckets=_list(inputs, "--buckets", asked["buckets"], _BUCKET, "64MB,512MB"),
        sender_ranks=_count(inputs, "sender_ranks"),
        receiver_ranks=_count(inputs, "receiver_ranks"),
        engine_update=asked["engine_update"],
    )


def _count(inputs: Inputs, key: str) -> int | None:
    """A whole number, where somebody says it: what nobody says follows from the machine."""
    found = inputs.ask(key, assume=False)
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


def _stages(inputs: Inputs, text: str | None) -> tuple[Stage, ...] | None:
    """The stages that --only names, in the order in which they run; None where it names none."""
    if text is None:
        return None
    wanted = [part.strip() for part in text.split(",") if part.strip()]
    wrong = [f"{name!r} cannot be measured" for name in wanted if name not in STAGES]
    for what in wrong if wanted else ["names nothing"]:
        inputs.fault(what, "--only", f"known: {', '.join(STAGES)}")
    return tuple(stage for stage in STAGES if stage in wanted)


def _check_model(
    inputs: Inputs, model: MeasuredModel | None, work: MeasuredWork | None, engine: OwnEngine, *, starts: bool
) -> None:
    """What a model cannot do, found out before an engine is started for it."""
    if model is None or model.profile is None:
        return
    shape, shared = model.profile.architecture, engine.tensor_parallel or 1
    if shape.attention and starts and shape.attention.heads % shared:
        what = f"{shape.attention.heads} heads of {model.name} cannot be shared by {shared} GPUs"
        inputs.fault(what, inputs.place("rollout_tensor_parallel"), "choose a divisor of the heads")
    longest = work.prompt_tokens + (work.cap or work.mean) if work else 0
    if work and work.traces:
        longest = max(map(sum, work.shapes(len(work.traces), 0)))
    if longest > shape.max_context:
        what = f"prompt and response of {longest:,.0f} tokens exceed the {shape.max_context:,} that {model.name} takes"
        inputs.fault(what, "--max-response-tokens", "lower the cap, or shorten the prompt")
