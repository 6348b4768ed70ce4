"""
JSON objects of a result file (one, one a line, or one after the other), and which benchmark wrote it, by its content.

Only whole objects are used. What cannot be read whole is counted, with where it stands.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.errors import Fault, InputError, refuse
from rlsize.readers.validation import unique_keys

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

LARGEST = 64 * 2**20  # a run of 10,000 requests with all its inter-token times has 40 MB
MOST_PARTS = 4_000_000  # lists and objects: each takes far more memory than its two brackets
MOST_RECORDS = 1_000
_LOOKED_AT = 2  # lines that tell whether each is an object: the first may be cut
MOST_FAULTS = 5  # that are told at once
HEAD = 64 * 2**10  # bytes of JSON that are enough to recognise it by
_KEY = re.compile(r'"([A-Za-z_][\w./ -]{0,80})"\s*:')
_AGAIN = "save or copy it again"


class JsonObject(NamedTuple):
    """
    One JSON object of a file.

    Args:
        where: The file, and which line of it where it has several objects.
        data: The object.
    """

    where: str
    data: Mapping[str, Any]


class JsonObjects(NamedTuple):
    """
    The JSON objects of a file.

    Args:
        whole: Those that could be read.
        faults: What is wrong with the others, one entry for each.
    """

    whole: tuple[JsonObject, ...]
    faults: tuple[Fault, ...] = ()


def result_text(content: bytes, name: str) -> str:
    """
    The text of a result file; a byte that is no UTF-8 is replaced, as it can only stand in generated text.

    Raises:
        InputError: It is empty or no text.
    """
    text = content.decode("utf-8-sig", errors="replace")
    if "\0" in text:
        raise InputError(Fault("holds NUL characters, so it is not UTF-8 text", name, "is it a binary file?"))
    if not text.strip():
        raise InputError(Fault("is empty", name, "did the benchmark finish?"))
    return text


def json_parts(text: str, name: str) -> JsonObjects:
    """
    The JSON objects of a text.

    Raises:
        InputError: None of them is whole, or there is too much.
    """
    if text.count("[") + text.count("{") > MOST_PARTS:
        what = f"holds more than {MOST_PARTS:,} lists and objects"
        raise InputError(Fault(what, name, "save it without details of each request"))
    parts = _by_line(text, name) or _one_after_the_other(text, name)
    refuse(() if parts.whole else parts.faults[:MOST_FAULTS])
    return parts


def keys_of(head: str) -> frozenset[str]:
    """The names of all keys in a text that begins as JSON, at whatever depth."""
    return frozenset(match[1] for match in _KEY.finditer(head))


def _by_line(text: str, name: str) -> JsonObjects | None:
    """Every line for itself; None where the first two lines are no objects, as in a file with indentation."""
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]
    several = len(lines) > 1
    tried = (_tried(line, f"{name}:{number}" if several else name) for number, line in lines)
    found = [*islice(tried, _LOOKED_AT)]
    if not any(isinstance(each, JsonObject) for each in found):
        return None
    if len(lines) > MOST_RECORDS:
        raise _too_many(name)
    found += tried
    return JsonObjects(
        tuple(each for each in found if isinstance(each, JsonObject)),
        tuple(each for each in found if isinstance(each, Fault)),
    )


def _tried(line: str, where: str) -> JsonObject | Fault:
    try:
        value, end = _read(line, 0, where)
    except InputError as error:
        return error.faults[0]
    return Fault("has something else behind its JSON object", where, _AGAIN) if line[end:] else JsonObject(where, value)


def _too_many(name: str) -> InputError:
    return InputError(Fault(f"holds more than {MOST_RECORDS:,} runs", name, "is it a benchmark's result?"))


def _one_after_the_other(text: str, name: str) -> JsonObjects:
    whole: list[JsonObject] = []
    position = counted = _next(text, 0)
    line = text.count("\n", 0, counted) + 1
    while position < len(text):
        line += text.count("\n", counted, position)
        counted = position
        where = f"{name}:{line}" if whole else name
        try:
            value, end = _read(text, position, where)
        except InputError as error:
            return JsonObjects(tuple(whole), error.faults)
        whole.append(JsonObject(f"{name}:{line}", value))
        position = _next(text, end)
        if len(whole) > MOST_RECORDS:
            raise _too_many(name)
    if len(whole) == 1:
        whole = [JsonObject(name, whole[0].data)]
    return JsonObjects(tuple(whole))


def _next(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _read(text: str, position: int, where: str) -> tuple[Mapping[str, Any], int]:
    try:
        value, end = _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as error:
        raise InputError(_broken(text, position, error, where)) from None
    except RecursionError:
        raise InputError(Fault("is nested too deeply", where, "is it a benchmark's result?")) from None
    except ValueError as error:  # a key that stands twice, and whole numbers of thousands of digits
        raise InputError(Fault(str(error).partition(";")[0], where, "keep one of them, or mend the file")) from None
    if not isinstance(value, dict):
        raise InputError(Fault("is not a JSON object", where, "is it a benchmark's result?"))
    return value, end


def _broken(text: str, position: int, error: json.JSONDecodeError, where: str) -> Fault:
    """What is wrong with an object; where the text just ends, the last key before that tells how far it came."""
    if text.rstrip().endswith("}") and error.pos < len(text.rstrip()):
        return Fault(f"is not valid JSON: {error.msg} at character {error.pos - position + 1}", where, _AGAIN)
    last = None
    for last in _KEY.finditer(text, position):  # noqa: B007 (the last one is wanted)
        pass
    after = f", and all behind the key {last[1]}" if last else ""
    return Fault(f"was cut: its closing brace is missing{after}", where, _AGAIN)


_DECODER = json.JSONDecoder(object_pairs_hook=unique_keys)


_BY_KEYS = (
    ("vllm-bench-pytorch", ({"benchmark", "metric", "benchmark_values"},)),
    ("guidellm", ({"benchmarks", "guidellm_version"}, {"benchmarks", "metadata"}, {"benchmarks", "args"})),
    ("aiperf", ({"aiperf_version"}, {"output_token_throughput", "unit"}, {"request_throughput", "unit", "avg"})),
    ("inference-perf", ({"load_summary", "successes"},)),
    ("prime-rl-bench", ({"config", "metrics", "mfu", "throughput"},)),
    ("inferencex", ({"model_id", "num_prompts", "median_ttft"}, {"model_id", "num_prompts", "median_tpot"})),
    ("vllm-bench-throughput", ({"elapsed_time", "num_requests", "tokens_per_second"},)),
    ("vllm-bench-latency", ({"avg_latency", "latencies"}, {"avg_latency", "percentiles"})),
    ("vllm-bench-serve", ({"model_id", "num_prompts", "request_rate"}, {"endpoint_type", "num_prompts"})),
    ("sglang-bench-offline", ({"successful_requests", "total_latency"},)),
    (
        "sglang-bench-serving",
        ({"backend", "dataset_name", "request_rate"}, {"backend", "total_output_tokens_retokenized"}),
    ),
)
"""Sets of keys that tell the tools apart, the surest first: a file is of the first that has all keys of a set."""

_PRINTED = (
    ("vllm-bench-throughput", re.compile(r"Throughput: +[\d.]+ requests/s, +[\d.]+ total tokens/s")),
    ("trtllm-bench", re.compile(r"(?:Token|Output) Throughput \(tokens/sec\):")),
)

SECOND_COPY = "vllm-bench-pytorch"
"""What is recognised so that it can be refused: the same run once more, for PyTorch's dashboard."""

FORMATS = (*(name for name, _ in _BY_KEYS if name != SECOND_COPY), "trtllm-bench")
"""The names of the formats, as `--format` takes them."""


def recognised(head: bytes) -> str | None:
    """
    The format of a file, by its first bytes, uncompressed; None where no benchmark wrote it.

    Args:
        head: The first `HEAD` bytes, or more: what a benchmark prints may stand behind the engine's own log.

    >>> recognised(b'{"model_id": "m", "avg_latency": 3.1, "latencies": [')
    'vllm-bench-latency'
    >>> recognised(b"step:3 - perf/throughput:1.0") is None
    True
    """
    start = head[:HEAD].decode("utf-8-sig", errors="replace").lstrip()
    if start.startswith(("{", "[")):
        return format_of(keys_of(start))
    text = head.decode("utf-8-sig", errors="replace")
    return next((name for name, pattern in _PRINTED if pattern.search(text)), None)


def format_of(keys: Collection[str]) -> str | None:
    """The format of an object that has these keys, at whatever depth."""
    have = set(keys)
    return next((name for name, sets in _BY_KEYS if any(each <= have for each in sets)), None)
