"""
Results of benchmarks: documents of a file, and in them a run, read key by key.

What is wrong is collected, so that all of it is told at once; which key was used for what is kept.
"""

from __future__ import annotations

import json
import math
import re
from collections import deque
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from rlsize.errors import Fault, InputError, refuse
from rlsize.facts.benchmark_result import BenchmarkResult
from rlsize.readers.validation import unique_keys
from rlsize.units import cut, printable

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MOST = 1e15  # tokens, seconds or requests per second that no benchmark reaches
MOST_WORD = 200
MILLISECONDS = 1e-3
WHOLE_RUN = {"holds_ramp": True, "holds_tail": True}  # fields of a result whose rate covers filling and draining
_FIELDS = frozenset(BenchmarkResult.__dataclass_fields__)
_AGREE = 0.02  # share by which two ways to the same rate may differ
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_NONE = frozenset({"nan", "+nan", "-nan", "inf", "+inf", "-inf", "infinity", "+infinity", "-infinity"})
_STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)")
_MISSING = "is it a whole result of this tool? name the format with --format if it is another's"

LARGEST = 64 * 2**20  # a run of 10,000 requests with all its inter-token times has 40 MB
MOST_PARTS = 4_000_000  # lists and objects: each takes far more memory than its two brackets
MOST_RECORDS = 1_000
_LOOKED_AT = 2  # lines that tell whether each is an object: the first may be cut
MOST_FAULTS = 5  # that are told at once
HEAD = 64 * 2**10  # bytes of JSON that are enough to recognise it by
_KEY = re.compile(r'"([A-Za-z_][\w./ -]{0,80})"\s*:')
_AGAIN = "save or copy it again"


class Record:
    """
    One JSON object of a result file.

    Args:
        data: The object.
        where: What to call it in messages.

    Keys are dotted paths; of several the first one that is there counts.
    """

    def __init__(self, data: Mapping[str, Any], where: str) -> None:
        self.data = data
        self.where = where
        self.keys: dict[str, str] = {}
        self.counts: dict[str, str] = {}
        self.warnings: list[str] = []
        self.faults: list[Fault] = []

    def found(self, *names: str) -> tuple[str, Any]:
        """The first of these keys that has a value, and the value; none where all are absent or null."""
        for name in names:
            value: Any = self.data
            for step in name.split("."):
                value = value.get(step) if isinstance(value, dict) else None
            if value is not None:
                return name, value
        return "", None

    def has(self, *names: str) -> bool:
        """Whether one of these keys has a value."""
        return bool(self.found(*names)[0])

    def number(self, field: str, *names: str, scale: float = 1.0) -> float | None:
        """A finite number that is not negative; None where the key is absent. What is no such number is a fault."""
        name, value = self.found(*names)
        if not name:
            return None
        number = _sensible(value)
        if number is None:
            self.fault(f"{brief(value)} is not a number that this can be", name)
            return None
        self.keys[field] = name
        return number * scale

    def needed(self, field: str, *names: str, scale: float = 1.0) -> float:
        """The same of a number without which there is no result: its absence is a fault."""
        number = self.number(field, *names, scale=scale)
        if number is None and not self.has(*names):
            self.fault(f"lacks the key {names[0]}")
        return number or 0.0

    def latency(self, field: str, *names: str, scale: float = 1.0) -> float | None:
        """A number that is only shown: where it is none, it is left out with a warning."""
        name, value = self.found(*names)
        if not name or _sensible(value) is not None:
            return self.number(field, *names, scale=scale)
        self.warnings.append(f"{name} is {brief(value)}, so it is left out")
        return None

    def cv(self, deviation: str, mean: str) -> float | None:
        """The coefficient of variation of response lengths, from these two keys; None where one is no number."""
        first, second = (_sensible(self.found(name)[1]) for name in (deviation, mean))
        if first is None or not second:
            return None
        self.keys["response_cv"] = f"{deviation} / {mean}"
        return first / second

    def limit(self, field: str, *names: str) -> float | None:
        """A number that may be infinite, as a rate at which all is sent at once; None where it is, or is absent."""
        name, value = self.found(*names)
        number = as_number(value) if name else None
        if number is not None and math.isinf(number) and number > 0:
            self.keys[field] = name
            return None
        return self.number(field, *names)

    def text(self, field: str, *names: str) -> str:
        """A word; empty where the key is absent or something else."""
        name, value = self.found(*names)
        if not isinstance(value, str) or not value.strip():
            return ""
        self.keys[field] = name
        return printable(value.strip())[:MOST_WORD]

    def moment(self, *names: str) -> str:
        """A date and time in ISO 8601; empty where there is none."""
        name, value = self.found(*names)
        found = ""
        if isinstance(value, str):
            stamp = _STAMP.fullmatch(value)
            text = "{}-{}-{}T{}:{}:{}".format(*stamp.groups()) if stamp else value
            with suppress(ValueError):
                found = datetime.fromisoformat(text).isoformat(timespec="seconds")
        elif (seconds := as_number(value)) is not None and 0 < seconds < 1e11:  # noqa: PLR2004 (the year 5138)
            found = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
        if found:
            self.keys["measured_at"] = name
        return found

    def numbers(self, field: str, *names: str) -> tuple[float, ...]:
        """A list of numbers; empty where the key is absent. One that is none is a fault."""
        name, value = self.found(*names)
        if not isinstance(value, list):
            return ()
        found = [_sensible(each) for each in value]
        wrong = next((at for at, each in enumerate(found) if each is None), None)
        if wrong is not None:
            self.fault(f"{brief(value[wrong])} is not a number of tokens", f"{name}[{wrong}]")
            return ()
        self.keys[field] = name
        return tuple(each for each in found if each is not None)

    def served(self, total: str) -> dict[str, Any]:
        """
        What vLLM's and SGLang's results of a served load call alike.

        Args:
            total: The key of the rate of prompt and response tokens.
        """
        rate = self.limit("request_rate", "request_rate")
        return self.generated("duration", "completed", total) | {
            "concurrency": self.number("concurrency", "max_concurrency"),
            "request_rate": rate,
            "sent_at_once": rate is None if "request_rate" in self.keys else None,
        }

    def generated(self, duration: str, requests: str, total: str) -> dict[str, Any]:
        """What they call alike of any load, with the keys of what they call otherwise; the run counts as a whole."""
        return WHOLE_RUN | {
            "duration_seconds": self.needed("duration_seconds", duration),
            "requests": self.needed("requests", requests),
            "prompt_tokens": self.number("prompt_tokens", "total_input_tokens"),
            "response_tokens": self.needed("response_tokens", "total_output_tokens"),
            "response_tokens_per_second": self.needed("response_tokens_per_second", "output_throughput"),
            "total_tokens_per_second": self.number("total_tokens_per_second", total),
        }

    def fault(self, what: str, key: str = "", todo: str = _MISSING) -> None:
        """Note what is wrong."""
        self.faults.append(Fault(what, f"{self.where}: {key}" if key else self.where, todo))

    def result(self, tool: str, **fields: Any) -> BenchmarkResult:  # noqa: ANN401 (the fields of the result)
        """
        The result of this record.

        Raises:
            InputError: All that is wrong with it.
        """
        refuse(self.faults)
        made = BenchmarkResult(source=self.where, tool=tool, **fields)
        return replace(
            made,
            keys={field: key for field, key in self.keys.items() if field in _FIELDS},
            counts=self.counts,
            warnings=(*self.warnings, *_disagreements(made)),
        )


def as_number(value: Any) -> float | None:  # noqa: ANN401 (any JSON value)
    """
    A number, written as one or quoted; None for anything else, true and false among it.

    >>> as_number("inf"), as_number(" 2.5"), as_number(True), as_number("2x")
    (inf, 2.5, None, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return math.inf
    if not isinstance(value, str) or len(value) > 40:  # noqa: PLR2004 (no sensible number is longer)
        return None
    word = value.strip()
    return float(word) if _NUMBER.fullmatch(word) or word.lower() in _NONE else None


def _sensible(value: Any) -> float | None:  # noqa: ANN401 (any JSON value)
    """A number as `as_number` reads it; None where no benchmark has such a one."""
    number = as_number(value)
    return number if number is not None and 0 <= number <= MOST else None


def brief(value: Any) -> str:  # noqa: ANN401 (any JSON value)
    """A value as it may stand in a message."""
    if isinstance(value, (dict, list)):
        return "a list" if isinstance(value, list) else "an object"
    try:
        shown = ascii(value)
    except ValueError:  # a whole number of thousands of digits
        shown = "a number of thousands of digits"
    return cut(shown, 40)


def _disagreements(result: BenchmarkResult) -> list[str]:
    """What a file says twice, and differently."""
    found = []
    seconds = result.duration_seconds
    tokens, rate = result.response_tokens, result.response_tokens_per_second
    if tokens is not None and rate and seconds and abs(tokens / seconds - rate) > _AGREE * rate:
        found.append(
            f"says {rate:,.1f} response tokens/s, and {tokens:,.0f} response tokens in {seconds:,.4g} s, "
            f"which are {tokens / seconds:,.1f}"
        )
    if result.requests == 0:
        found.append("no request finished")
    if result.failed_requests:
        found.append(f"{result.failed_requests:,.0f} requests failed")
    if result.cut_short:
        found.append(result.cut_short)
    lengths = result.response_lengths
    if lengths and tokens is not None and abs(sum(lengths) - tokens) > _AGREE * max(tokens, 1.0):
        found.append(f"lists responses of {sum(lengths):,.0f} tokens, and counts {tokens:,.0f}")
    return found


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
    last = deque(_KEY.finditer(text, position), maxlen=1)
    after = f", and all behind the key {last[0][1]}" if last else ""
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
