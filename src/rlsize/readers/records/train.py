"""Published training throughput: tokens per second and GPU, MFU or step time, with how the work was spread."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from rlsize.errors import Refused
from rlsize.facts.layout import Layout
from rlsize.facts.records import TrainRecord
from rlsize.readers.records.parsing import common, dtypes, layout, number, positive, says_dtype, text, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.readers.profiles import Catalogue

CLASS = "train"

# What may be measured, the best first.
FIELDS = ("tokens_per_s_per_gpu", "tokens_per_s", "step_time_s", "model_tflops_per_gpu", "mfu_pct")
_MARKS = ("micro_batch", "global_batch", "recompute", "fsdp", "workload", "seq_len", "zero")
_OTHERS = ("placement", "async_mode", "concurrency", "metric", "ttft_ms", "tpot_ms", "sync_time_s", "what", "payload")
_DEGREES = {"tensor": "tp", "pipeline": "pp", "expert": "ep", "context": "cp"}
_FIRST = re.compile(r"^\s*(\d{1,6})\s*\(\d{1,6}\)\s*$")  # and in parentheses that of another number type
_USUAL_LENGTH = {"torchtitan": 8192.0}
_LENGTH = 4096.0
_FUSED = frozenset({"megatron", "nemo", "maxtext"})
_EARLY = frozenset({"llm-foundry", "torchtitan"})  # their published tables are of 2023 and 2024
_LORA = re.compile(r"\bq?lora\b(?:\s*\(?\s*r\s*=\s*(\d{1,4}))?")
_LORA_RANK = 16
_ROUNDED = 0.02
_RL = frozenset({
    "verl", "nemo-rl", "openrlhf", "areal", "slime", "trl", "roll", "skyrl", "prime-rl", "pipelinerl", "dschat",
})  # fmt: skip
_WORDS = ("stack", "precision", "fsdp", "other_parallel", "parallel", "notes", "recompute", "workload", "zero")
_VIRTUAL = re.compile(r"(?:\bvpp?|virtual[^\d]{0,30})[=: ]{0,3}(\d{1,2})")
_INTERLEAVED = 2
_NATIVE = re.compile(r"\bfa[-_ ]?[34]\b|flash[-_ ]?att(?:n|ention)[-_ ]?[34]|cudnn|transformer[-_ ]?engine|\bte\b")
_SHARDINGS = (
    (re.compile(r"shard_grad_op|zero[-_ ]?(?:stage)?[-_ ]?2"), "gradients"),
    (re.compile(r"zero[-_ ]?(?:stage)?[-_ ]?1|distributed optimi[sz]er|no_shard.{0,20}optim"), "optimizer"),
    (re.compile(r"full_shard|hybrid_shard|zero[-_ ]?(?:stage)?[-_ ]?3|fsdp|hsdp"), "full"),
    (re.compile(r"no_shard|\bddp\b|zero[-_ ]?(?:stage)?[-_ ]?0"), "none"),
)
_RECOMPUTES = (
    (re.compile(r"per[-_ ]?op|every (?:other|second)"), "alternate"),
    (re.compile(r"select|partial|core"), "selective"),
    (re.compile(r"none|no\b|false|off\b|\b0\b"), "none"),
    (re.compile(r"full|true|on\b|yes|block|uniform|layer|checkpoint|offload|recompute"), "full"),
)


def matches(row: Mapping[str, Any]) -> bool:
    """Whether a row says how fast a training setup was."""
    if any(key in row for key in _OTHERS) or not any(key in row for key in _MARKS):
        return False
    return any(key in row for key in (*FIELDS, "hfu_pct"))


def record(row: Mapping[str, Any], catalogue: Catalogue) -> TrainRecord:
    """
    A row as a record.

    Raises:
        Refused: It lacks what a prediction needs.
    """
    shared = common(row, catalogue)
    measured = positive(row, *FIELDS)
    if not measured:
        raise Refused("states no tokens per second, step time or MFU")
    if not shared["gpu"]:
        raise Refused("names no GPU")
    words = " ".join(text(row, key) for key in _WORDS).lower()
    assumed = list(shared.pop("assumed"))
    said = layout(text(row, "parallel") or text(row, "other_parallel") or "none", shared["gpus"])
    spread = Layout(**{name: _degree(row, key) or getattr(said, name) for name, key in _DEGREES.items()})
    return TrainRecord(
        **shared,
        measured=measured,
        layout=spread,
        **_sharding(row, words, shared["stack"], spread.context),
        **_work(row, words, shared, spread, assumed),
        virtual_stages=(_degree(row, "vp") or _virtual(words)) if spread.pipeline > 1 else 1,
        fused=_fused(words, shared["stack"], spread, row),
        overlapped=_overlapped(words, shared["stack"], spread, assumed),
        native_attention=shared["stack"] in _FUSED or bool(_NATIVE.search(words)),
        early_attention=shared["stack"] in _EARLY,
        dropping="tokendrop" in text(row, "model").lower(),
        **_kept(row, words, shared["stack"], assumed),
        workload=_workload(words, shared["stack"], full=_full(row)),
        assumed=tuple(assumed),
    )


def _degree(row: Mapping[str, Any], key: str) -> int:
    found = _FIRST.match(text(row, key))
    return int(found.group(1)) if found else whole(row, key)


def _sharding(row: Mapping[str, Any], words: str, stack: str, context: int) -> dict[str, Any]:
    """What is sharded, and over how many ranks where the row says so."""
    count = context * (_degree(row, "fsdp") or whole(row, "shards"))
    said = "fsdp" if count else text(row, "fsdp").lower()
    stage = number(row, "zero")
    if stage is not None:
        said = f"zero-{stage:g}"
    for text_ in (said, words):
        for pattern, name in _SHARDINGS:
            if pattern.search(text_):
                return {"sharding": name, "shards": count}
    return {"sharding": "optimizer" if stack in {"megatron", "nemo", "deepspeed"} else "full", "shards": count}


def _work(
    row: Mapping[str, Any], words: str, shared: Mapping[str, Any], spread: Layout, assumed: list[str]
) -> dict[str, Any]:
    """Number type, recomputation, and the batch."""
    stack = shared["stack"]
    precision = text(row, "precision") or text(row, "dtype")
    if not says_dtype(precision):
        assumed.append("linear layers in bf16")
    dtype = dtypes(precision)[0]
    if dtype == "fp16":
        dtype = "bf16"
    tokens = number(row, "seq_len") or number(row, "seq_len_mean")
    if not tokens or tokens <= 0:
        tokens = _USUAL_LENGTH.get(stack, _LENGTH)
        assumed.append(f"sequences of {tokens:g} tokens")
    ranks = max(1, shared["gpus"] // (spread.tensor * spread.pipeline * spread.context))
    batch = positive(row, "micro_batch", "global_batch")
    micro, sequences = batch.get("micro_batch"), batch.get("global_batch")
    if not micro:
        micro = 1.0
        assumed.append("a micro-batch of one sequence")
    if not sequences:
        sequences = micro * ranks
        assumed.append("one micro-batch a step")
    if spread.pipeline > 1 and stack == "torchtitan":
        micro = max(1.0, micro / spread.pipeline)  # its local batch is cut into as many micro-batches as stages
    return {
        "dtype": dtype,
        "scaling": _scaling(precision, words),
        "recompute": _recompute(row, stack, assumed),
        "sequences": sequences,
        "tokens": tokens,
        "micro_batch_tokens": micro * tokens,
    }


def _scaling(precision: str, words: str) -> str:
    """What has a scale of its own in a narrow type: the first that is named, as tables put a second in parentheses."""
    if re.search(r"row[-_ ]?wise|per[-_ ]?row", words):
        return "row"
    return "block" if re.search(r"mx|nvfp4|block", precision.split("(", maxsplit=1)[0].lower()) else "tensor"


def _kept(row: Mapping[str, Any], words: str, stack: str, assumed: list[str]) -> dict[str, Any]:
    """What is trained, and what of it lives on the host."""
    adapters = _LORA.search(words)
    if adapters and not adapters.group(1):
        assumed.append(f"adapters of rank {_LORA_RANK}")
    offload = row.get("optimizer_offload") is True
    if stack == "prime-rl" and not adapters and re.search(r"\brl\b", text(row, "workload").lower()):
        assumed.append("optimizer states on the host, as prime-rl's RL trainer has them")
        offload = True
    return {
        "lora_rank": int(adapters.group(1) or _LORA_RANK) if adapters else 0,
        "offload": offload,
        "activation_offload": text(row, "recompute").lower() == "offload" or "act cpu offload true" in words,
    }


def _recompute(row: Mapping[str, Any], stack: str, assumed: list[str]) -> str:
    said = str(row.get("recompute", ""))[:200].lower() if row.get("recompute") is not None else ""
    for pattern, name in _RECOMPUTES:
        if said and pattern.search(said):
            return "alternate" if name == "selective" and stack == "torchtitan" else name
    usual = "alternate" if stack == "torchtitan" else "none" if stack in _FUSED else "full"
    assumed.append(f"{usual} recomputation")
    return usual


def _overlapped(words: str, stack: str, spread: Layout, assumed: list[str]) -> bool:
    """Whether tensor-parallel transfers overlap with products; Megatron's performance recipes let them."""
    if re.search(r"async[-_ ]?tp|asynctp|tp[-_ ](?:comm[-_ ])?overlap", words):
        return True
    if spread.tensor > 1 and stack in _FUSED:
        assumed.append("tensor-parallel transfers overlapped")
        return True
    return False


def _virtual(words: str) -> int:
    found = _VIRTUAL.search(words)
    if found:
        return max(1, int(found.group(1)))
    return _INTERLEAVED if "interleav" in words else 1


def _fused(words: str, stack: str, spread: Layout, row: Mapping[str, Any]) -> bool:
    """Compiled where it says so; torchtitan's fp8 and tensor-parallel figures are compiled."""
    if re.search(r"no[-_ ]compile|without compile|eager", words):
        return False
    own = stack == "torchtitan" and (spread.tensor > 1 or dtypes(text(row, "precision"))[0] == "fp8")
    return own or stack in _FUSED or "compile" in words or "liger" in words


def _full(row: Mapping[str, Any]) -> bool:
    """Whether every GPU has one full micro-batch a step, as a benchmark has and no step of RL."""
    needed = ("micro_batch", "seq_len", "step_time_s", "tokens_per_s_per_gpu")
    said = positive(row, *needed)
    if len(said) < len(needed):
        return False
    tokens = said["tokens_per_s_per_gpu"] * said["step_time_s"]
    return abs(tokens / (said["micro_batch"] * said["seq_len"]) - 1.0) < _ROUNDED


def _workload(words: str, stack: str, *, full: bool) -> Literal["pretraining", "rl"]:
    if re.search(r"pre-?train|\bsft\b|fine-?tun", words) or full:
        return "pretraining"
    return "rl" if stack in _RL or re.search(r"\b(?:rl|grpo|ppo|dapo|rlhf)\b", words) else "pretraining"
