"""
What the name of a key says, whoever wrote it: `timing_s/gen`, `perf/time/generation_sec`, `t_gen_ms`, `Rollout time`.

A name is read by its words: the last part of a path that names a phase decides, a unit scales, a statistic other than
the mean rules it out. What a name cannot tell (what a total covers, whether a counter starts anew each step) is no
field here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from rlsize.readers.logs.figures import Figure, inverse, product

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rlsize.readers.logs.mapping import Values

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+|%")
_JOINED = (
    (re.compile(r"log[_ -]prob"), "logprob"),
    (re.compile(r"([GM])iB\b"), r"\1IB"),
    (re.compile(r"\b(?:E2E|e2e|[Ee]nd[_ -]to[_ -]end)(?![a-z])"), "endtoend"),
)
_SCALES = {"ms": 1e-3, "msec": 1e-3, "millis": 1e-3, "milliseconds": 1e-3, "us": 1e-6, "mins": 60.0, "minutes": 60.0}
_SCALES |= {"hours": 3600.0, "hrs": 3600.0}
_TIME = {"time", "times", "timing", "timings", "timer", "timers", "timeperf", "sec", "secs", "second", "seconds"}
_TIME |= {"duration", "walltime", "wallclock", "took", *_SCALES}
_OF_TOKENS = {"samples", "token", "tokens", "tok", "toks"}
_NO_MEAN = {"min", "std", "stddev", "var", "variance", "median", "p", "slowest", "longest", "shortest", "fastest"}
_NO_PHASE = {"ratio", "fraction", "frac", "percent", "pct", "%", "token", "tokens", "tok", "flops", "tflops", "memory"}
_NO_PHASE |= {"mem", "gb", "gib", "eta", "remaining", "elapsed", "cumulative", "runtime", "since", "timestamp", "epoch"}
_NO_PHASE |= {"uptime", "consumption", "estimated", "count", "num", "limit", "timeout", "interval", "max", "loss", "it"}
_NO_PHASE |= {"latency", "age", "lag"}
_TOOLS = {"tool", "tools", "toolcall", "toolcalls", "env", "environment", "environments", "sandbox", "interaction"}
_MEMORY = {"mem", "memory"}
_PEAK = {"max", "peak", "peaked"}
_NO_PEAK = {"cpu", "host", "ram", "available", "free", "limit", "fraction", "percent", "pct", "%", "ratio", "kv"}
_BYTES = {"b": 1.0, "bytes": 1.0, "mb": 2.0**20, "mib": 2.0**20, "gb": 2.0**30, "gib": 2.0**30}
_WHOLE = {"step", "steps", "iteration", "iter", "update", "batch"}
_STATISTICS = {"wall", "execution", "mean", "avg", "average", "total", "value", "last", "s", "sum", *_TIME}
_WEIGHTS = {"weights", "weight", "params", "param", "parameters", "model"}
_MOVED = {"update", "updates", "transfer", "push", "load", "send", "publish", "pull", "upload", "copy"}
_GENERATION = {"gen", "generate", "generation", "generated", "rollout", "rollouts"}
_PHASES = (
    ("validation_seconds", {"eval", "evaluation", "evaluate", "validation", "validate", "val", "test", "testing"}),
    ("checkpoint_seconds", {"save", "saving", "checkpoint", "checkpointing", "ckpt"}),
    ("wait_seconds", {"wait", "waiting", "waited", "idle", "idling", "exposed"}),
    ("wait_seconds", {"stall", "stalled", "blocked", "starved"}),
    ("sync_seconds", {"sync", "synchronization", "broadcast", "refit"}),
    ("logprob_seconds", {"logprob", "logprobs", "logp", "logps", "old", "ref", "reference", "values"}),
    ("reward_seconds", {"reward", "rewards", "verifier", "verify", "verification", "grading", "score", "scoring"}),
    ("generation_tools_seconds", _TOOLS),
    ("", {"prepare", "preparation", "prep", "preprocess", "postprocess", "processing", "data", "load", "loading"}),
    ("", {"adv", "advantage", "advantages", "kl", "balance", "offload", "onload", "sleep", "wake", "init", "startup"}),
    ("", {"compile", "warmup", "log", "logging", "metrics", "dump", "convert", "pack", "packing", "tokenize"}),
    ("", {"tokenization", "profiling", "overhead", "reshard", "queue"}),
    ("generation_seconds", {*_GENERATION, "generating", "sampling", "decode", "inference"}),
    ("update_seconds", {"train", "training", "update", "backward", "policy", "optim", "optimizer", "learn", "learner"}),
    ("update_seconds", {"learning", "fit", "ppo", "actor", "critic"}),
    ("step_seconds", {"step", "steps", "iteration", "iter", "total", "endtoend", "whole", "overall", "loop", "cycle"}),
)
"""The words of each phase, in the order in which they count; what has none is the trainer's other work."""
_RATE = re.compile(
    r"(?:token|tok)s?(?:/|_per_| per |_)(?:(?:gpu|device)s?[/_ ]|per[_ ])*s(?:ec|econd)?s?(?![a-z])|(?:\b|_)t[pg]s\b"
)
_RESPONSE = {"response", "responses", "completion", "completions", "output", "outputs", *_GENERATION}
_PROMPT = {"prompt", "prompts", "input", "inputs", "prefill"}
_TRAINER = {"train", "trainer", "training", "update", "learner", "policy", "actor"}
_LENGTH = {"length", "lengths", "len", "lens"}
_NO_LENGTH = {"ratio", "penalty", "loss", "reward", "rewards", "limit", "aborted", "terminated", "turns", "round", "by"}
_NO_LENGTH |= {"divisible", "buffer", "target", "cache"}
_RATES = [["per", unit] for unit in ("s", "sec", "second", "min", "minute", "h", "hour")]
_MEAN = {"mean", "avg", "average"}
_SAMPLES = re.compile(
    r"(?:^|[/_ ])(?:n|num|number_of|batch_num)_(?:samples|seqs?|sequences|trajectories|rollouts)$|samples_per_step$"
)
_BATCH = re.compile(r"(?:total_num|batch|step)_tokens(?:$|/mean)|tokens_per_step$")

_PARTS = ("generation_seconds", "wait_seconds", "logprob_seconds", "update_seconds", "sync_seconds", "reward_seconds")
_SUMMED = ("logprob_seconds", "update_seconds")
_SLACK = 1.05  # timers overlap a little, and printed times are rounded
_LONGEST = 1e6
"""Seconds of a step, at most: eleven days; what is more is a moment, no duration."""
_FACTOR = 2.0
"""How far tokens may be from samples times their length."""


class Meaning(NamedTuple):
    """
    What a key says.

    Args:
        field: The field of a step.
        scale: What its number is multiplied by to have the field's unit.
        role: Whose part of a sum it is: ref, critic or the policy.
        rank: How directly its name says so; the least wins.
        inverse: Whether it says how many there are a second.
    """

    field: str
    scale: float = 1.0
    role: str = ""
    rank: tuple[int, int] = (0, 0)
    inverse: bool = False


def words(text: str) -> list[str]:
    """
    The words of a name, in small letters.

    >>> words("timing_s/genTime (ms)")
    ['timing', 's', 'gen', 'time', 'ms']
    """
    for apart, joined in _JOINED:
        text = apart.sub(joined, text)
    return [word.lower() for word in _WORD.findall(text)]


@lru_cache(maxsize=10_000)
def is_time(key: str) -> bool:
    """
    Whether a name says that it is a time.

    >>> [is_time(key) for key in ("timing_s/gen", "t_gen", "Rollout time", "learning_rate", "train_steps_per_second")]
    [True, True, True, False, False]
    """
    found = words(key)
    if not _OF_TOKENS.isdisjoint(found) or found[-2:] in _RATES:
        return False
    last = words(re.split(r"[/.]", key)[-1])
    return not _TIME.isdisjoint(found) or "s" in found[-1:] or (len(last) > 1 and last[0] == "t")


def unit_scale(key: str) -> float:
    """
    Seconds of the unit that the name of a time says.

    >>> unit_scale("t_gen_ms"), unit_scale("rollout_time")
    (0.001, 1.0)
    """
    return next((_SCALES[word] for word in words(key) if word in _SCALES), 1.0)


def memory_scale(key: str) -> float | None:
    """
    Bytes of the unit that the name of a memory says, as allocators count: both GB and GiB are 2^30; None without one.

    >>> memory_scale("perf/max_memory_allocated_gb"), memory_scale("memory/max_reserved(MiB)"), memory_scale("mem")
    (1073741824.0, 1048576.0, None)
    """
    return next((_BYTES[word] for word in reversed(words(key)) if word in _BYTES), None)


@lru_cache(maxsize=10_000)
def meaning(key: str) -> Meaning | None:
    """
    What a key says by its name; None where it says nothing that a step has.

    >>> meaning("t_gen_ms").field, meaning("t_gen_ms").scale, meaning("lr")
    ('generation_seconds', 0.001, None)
    """
    found = set(words(key))
    if found & _NO_MEAN:
        return None
    rules = (_inverse, _time, _memory, _rate, _length, _other)
    return next((says for rule in rules if (says := rule(key, found)) is not None), None)


def _rank(key: str) -> tuple[int, int]:
    return len(re.split(r"[/.]", key)), len(words(key))


def _inverse(key: str, found: set[str]) -> Meaning | None:
    """Steps per second."""
    says = (
        re.search(r"(?:step|iteration|iter)s?(?:_per_|/| per )s(?:ec|econd)?\)?$", key.lower()) and "token" not in found
    )
    return Meaning("step_seconds", rank=(9, len(found)), inverse=True) if says else None


def _time(key: str, found: set[str]) -> Meaning | None:
    """A phase of the step, or all of it."""
    said = words(key)
    after = said[said.index("per") + 1 :] if "per" in said else []
    if not is_time(key) or (after and after[0] not in _WHOLE):
        return None
    meant = {"elapsed"} if after else {"latency"} if "endtoend" in found else set()
    if found & (_NO_PHASE - meant):
        return None
    field = _phase(key)
    scale = unit_scale(key)
    roles = {"ref" for _ in found & {"ref", "reference"}} | {"critic" for _ in found & {"critic", "values"}}
    joint = "all" if len(roles) + bool(found & {"policy", "old", "fwd"}) > 1 else ""
    rank = (8, len(said)) if found <= _STATISTICS else _rank(key)  # "Time" alone says the least
    return Meaning(field, scale, joint or "".join(roles), rank) if field else None


def _phase(key: str) -> str:
    """The phase that the last part of a path names, which names one."""
    for part in reversed(re.split(r"[/.:]", key)):
        found = set(words(part))
        if not found - _STATISTICS and "/" in key and part != key.split("/", 1)[0]:
            continue
        if found & _WEIGHTS and found & _MOVED:
            return "sync_seconds"
        if "inference" in found and set(words(key)) & {"actor", "critic", "trainer", "policy"}:
            return "logprob_seconds"  # a pass of the trainer
        for field, stems in _PHASES:
            if found & stems:
                return field
    return "step_seconds" if set(words(key)) <= _STATISTICS else ""


def _memory(key: str, found: set[str]) -> Meaning | None:
    """The most of a GPU that tensors took, or that their allocator kept."""
    scale = memory_scale(key)
    if scale is None or not found & _MEMORY or not found & _PEAK or found & _NO_PEAK:
        return None
    return Meaning(f"peak_{'reserved' if 'reserved' in found else 'allocated'}_bytes", scale, rank=_rank(key))


def _rate(key: str, found: set[str]) -> Meaning | None:
    """Tokens per second of a side, or of each of its GPUs."""
    if not _RATE.search(key.lower()) or found & (_PROMPT | {"samples", "max"}):
        return None
    each = "_per_gpu" if found & {"gpu", "gpus", "device", "tgs"} else ""
    if found & (_RESPONSE | {"decode", "sampling", "inference"}):
        return Meaning(f"rollout_tokens_per_second{each}", rank=_rank(key))
    if found & _TRAINER:
        return Meaning(f"trainer_tokens_per_second{each}", rank=_rank(key))
    return None


def _length(key: str, found: set[str]) -> Meaning | None:
    """Lengths of samples, and the share of those that a cap cut."""
    side = next((name for name, those in (("prompt", _PROMPT), ("response", _RESPONSE)) if found & those), "")
    if found & {"clip", "clipped", "truncation", "truncated"} and (
        side == "response" or found & {"truncation", "truncated"}
    ):
        return (
            Meaning("clipped_fraction", _share(found), rank=_rank(key))
            if found & {"ratio", "rate", "fraction", "clipped"}
            else None
        )
    is_length = found & _LENGTH or (found & _MEAN and "tokens" in found)
    if not is_length or found & _NO_LENGTH:
        return None
    if "max" in found:
        return Meaning("longest_response_tokens", rank=_rank(key)) if side == "response" and "/" in key else None
    if not side and not found & {"seq", "sequence", "total", "sample"}:
        return None
    return Meaning(f"mean_{side or 'total'}_tokens", rank=_rank(key))


def _other(key: str, found: set[str]) -> Meaning | None:
    """What a step has beside times, rates and lengths."""
    low, rank = key.lower(), _rank(key)
    if "mfu" in found and not found & {"critic", "rollout"}:
        return Meaning("mfu", _share(found), rank=rank)
    if found & {"ratio", "fraction"} and "idle" in found:
        side = "trainer" if found & _TRAINER else "rollout" if found & {"rollout", "rollouter", "generator"} else ""
        return Meaning(f"{side}_idle_fraction", _share(found), rank=rank) if side else None
    if found & {"staleness", "offpolicyness"} and not found & {"ratio", "count", "violation", "limit"}:
        return Meaning("largest_staleness_steps" if "max" in found else "staleness_steps", rank=rank)
    if _SAMPLES.search(low) and "max" not in found:
        return Meaning("samples", rank=rank)
    if _BATCH.search(low) and not found & {"max", *_MEAN}:
        side = "prompt" if found & _PROMPT else "response" if found & _RESPONSE else "total"
        return Meaning(f"{side}_tokens", rank=rank)
    return Meaning("gpus", rank=rank) if re.search(r"(?:^|/)(?:n|num)_gpus$", low) else None


def _share(found: set[str]) -> float:
    return 0.01 if found & {"%", "pct", "percent"} else 1.0


def guessed(values: Values, wanted: Collection[str] | None, taken: Iterable[str], step: float | None) -> list[Figure]:
    """
    The figures that the names of a row's keys say.

    Args:
        values: The row.
        wanted: Fields that are asked for; None for all.
        taken: Keys that say something else.
        step: Seconds of the step, where it is known.
    """
    found: dict[str, list[tuple[Meaning, str]]] = {}
    other = frozenset(taken)
    for key in values:
        says = meaning(key)
        if says is not None and key not in other and (wanted is None or says.field in wanted):
            found.setdefault(says.field, []).append((says, key))
    for candidates in found.values():
        candidates.sort(key=lambda candidate: candidate[0].rank)
    longest = step if step is not None else _step(found, values)
    for field in (*_PARTS, "generation_tools_seconds", "step_seconds"):
        fitting = [one for one in found.pop(field, []) if _value(one, values) <= min(_SLACK * longest, _LONGEST)]
        found |= {field: fitting} if fitting else {}
    _check_tokens(found, values)
    figures = [_figure(field, candidates) for field, candidates in found.items()]
    by_field = {figure.field: figure for figure in figures}
    factors = [by_field[name].of[0] for name in ("samples", "mean_response_tokens") if name in by_field]
    if len(factors) > 1 and "response_tokens" not in by_field:
        figures.append(product("response_tokens", *factors))
    return figures


def _step(found: dict[str, list[tuple[Meaning, str]]], values: Values) -> float:
    """How long the step takes; where only training is timed "by step", and takes as long as all else, that is it."""
    if "step_seconds" not in found:
        parts = sum(_value(found[field][0], values) for field in _PARTS if field in found and field != "update_seconds")
        whole = [one for one in found.get("update_seconds", ()) if {"step", "total"} & {*words(one[1])}]
        longest = max(whole, key=lambda one: _value(one, values), default=None)
        if longest is not None and 0.0 < parts <= _value(longest, values):
            found["update_seconds"].remove(longest)
            found["step_seconds"] = [(longest[0]._replace(field="step_seconds"), longest[1])]
    return _value(found["step_seconds"][0], values) if "step_seconds" in found else _LONGEST


def _value(candidate: tuple[Meaning, str], values: Values) -> float:
    says, key = candidate
    value = values[key]
    return (1.0 / value if value > 0 else 0.0) if says.inverse else value * says.scale


def _check_tokens(found: dict[str, list[tuple[Meaning, str]]], values: Values) -> None:
    """Drop totals of tokens that are not samples times length: they count on, or count something else."""
    samples = next((_value(one, values) for one in found.get("samples", ())), None)
    for side in ("prompt", "response", "total"):
        length = next((_value(one, values) for one in found.get(f"mean_{side}_tokens", ())), None)
        if samples is None or length is None or f"{side}_tokens" not in found:
            continue
        total = _value(found[f"{side}_tokens"][0], values)
        if not samples * length / _FACTOR <= total <= samples * length * _FACTOR:
            del found[f"{side}_tokens"]


def _figure(field: str, candidates: list[tuple[Meaning, str]]) -> Figure:
    """The figure of the best key, or of the sum of the best of each role."""
    best, key = candidates[0]
    if best.inverse:
        return Figure(field=field, of=((key,),), how=inverse, says="1 / {0}")
    roles = {best.role: key}
    if field in _SUMMED and best.role != "all":
        same = (one for one in candidates if one[0].role != "all" and one[0].scale == best.scale)
        for says, other in same:
            roles.setdefault(says.role, other)
    return Figure(field=field, of=tuple((each,) for each in roles.values()), scale=best.scale)
