"""Result files of benchmarks, whichever tool wrote them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlsize.dataclass import replace
from rlsize.errors import Fault, InputError, noting, suggestion
from rlsize.readers.bench.aiperf import aiperf
from rlsize.readers.bench.guidellm import guidellm
from rlsize.readers.bench.inference_perf import inference_perf
from rlsize.readers.bench.prime_rl import prime_rl
from rlsize.readers.bench.record import (
    FORMATS,
    LARGEST,
    MOST_FAULTS,
    SECOND_COPY,
    format_of,
    json_parts,
    recognised,
    result_text,
)
from rlsize.readers.bench.sglang import sglang_offline, sglang_serving
from rlsize.readers.bench.trtllm import trtllm_printed
from rlsize.readers.bench.vllm import inferencex, vllm_latency, vllm_serve, vllm_throughput, vllm_throughput_printed
from rlsize.readers.byte_sources import opened_bytes, shown_source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlsize.facts.benchmark_result import BenchmarkResult

    FromObject = Callable[[Mapping[str, Any], str], BenchmarkResult | list[BenchmarkResult]]
    FromText = Callable[[str, str], BenchmarkResult | list[BenchmarkResult]]

_OBJECTS: Mapping[str, FromObject] = {
    "guidellm": guidellm,
    "aiperf": aiperf,
    "inference-perf": inference_perf,
    "prime-rl-bench": prime_rl,
    "inferencex": inferencex,
    "vllm-bench-throughput": vllm_throughput,
    "vllm-bench-latency": vllm_latency,
    "vllm-bench-serve": vllm_serve,
    "sglang-bench-offline": sglang_offline,
    "sglang-bench-serving": sglang_serving,
}
_PRINTED: Mapping[str, FromText] = {
    "vllm-bench-throughput": vllm_throughput_printed,
    "trtllm-bench": trtllm_printed,
}
_INSTEAD = "known: " + ", ".join(FORMATS)
_TOLD = 3  # unused records that are told one by one


def read_benchmark(path: str, format: str | None = None) -> list[BenchmarkResult]:  # noqa: A002 (the flag's name)
    """
    The runs in a result file.

    Args:
        path: The file, or `-` for stdin; it may be gzip or zstd.
        format: One of `FORMATS`, where its content does not tell.

    Returns:
        One result for each run that could be read whole; the first one's warnings tell of those that could not.

    Raises:
        InputError: It cannot be read, is no benchmark's result, was cut, or holds no whole run.
    """
    if format is not None and format not in FORMATS:
        raise InputError(Fault(f"{format[:60]!r} is no benchmark's format", "--format", suggestion(format, FORMATS)))
    return benchmark_results(opened_bytes(path, LARGEST), shown_source(path), format)


def benchmark_results(content: bytes, name: str, format: str | None = None) -> list[BenchmarkResult]:  # noqa: A002 (the flag's name)
    """
    The runs in the content of a result file; as `read_benchmark`.

    Raises:
        InputError: As `read_benchmark`.
    """
    if len(content) > LARGEST:
        raise InputError(Fault(f"is larger than {LARGEST // 2**20} MiB", name, "is it the file you meant?"))
    text = result_text(content, name)
    form = format or recognised(content)
    if form == SECOND_COPY:
        what = "is the .pytorch.json beside a result: it holds the same run once more"
        raise InputError(Fault(what, name, "name the result itself, whose name ends in .json alone"))
    if text.lstrip().startswith("{") and form != "trtllm-bench":
        return _from_objects(text, name, format)
    printed = _PRINTED.get(form or "")
    if printed is None:
        raise InputError(Fault("is no benchmark's result that is known", name, _INSTEAD))
    return _listed(printed(text, name))


def _from_objects(text: str, name: str, form: str | None) -> list[BenchmarkResult]:
    parts = json_parts(text, name)
    kinds = [form or format_of(_keys(part.data)) for part in parts.whole]
    if not any(kind in _OBJECTS for kind in kinds):
        raise InputError(*parts.faults[:5], Fault("is no benchmark's result that is known", name, _INSTEAD))
    found: list[BenchmarkResult] = []
    faults = list(parts.faults)
    for part, kind in zip(parts.whole, kinds, strict=True):
        reader = _OBJECTS.get(kind or "")
        with noting(faults):
            if reader is None:
                raise InputError(Fault("is no benchmark's result that is known", part.where, _INSTEAD))
            found += _listed(reader(part.data, part.where))
    if not found:
        raise InputError(*faults[:MOST_FAULTS])
    if faults:
        found[0] = replace(found[0], warnings=(*found[0].warnings, _unused(faults)))
    return found


def _listed(found: BenchmarkResult | list[BenchmarkResult]) -> list[BenchmarkResult]:
    return found if isinstance(found, list) else [found]


def _keys(data: Mapping[str, Any]) -> list[str]:
    """The keys of an object and of the objects in it, which is as deep as tools are told apart."""
    return [*data, *(inner for value in data.values() if isinstance(value, dict) for inner in value)]


def _unused(faults: Sequence[Fault]) -> str:
    """How many records were not used, and the first ones with their reason."""
    records = {fault.where.partition(": ")[0]: fault for fault in reversed(faults)}
    told = "; ".join(f"{where}: {fault.what}" for where, fault in [*reversed(records.items())][:_TOLD])
    one = len(records) == 1
    return (
        f"{len(records)} record{' was' if one else 's were'} not used: {told}{'' if len(records) <= _TOLD else '; ...'}"
    )
