"""What a serving benchmark's result file says, in one form for all tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkResult:
    """
    One run of a benchmark against one instance or one address; None where the file does not say.

    Args:
        source: The file, and which run of it.
        tool: Which benchmark wrote it, such as `vllm bench serve`.
        model: Name of the model.
        duration_seconds: Wall clock of the run. [s]
        requests: Requests that finished. [1]
        failed_requests: Requests that did not. [1]
        samples_per_request: Samples of one request (n). [1]
        prompt_tokens: Prompt tokens, all together. [token]
        response_tokens: Response tokens, all together. [token]
        response_tokens_per_second: Rate of response tokens. [token/s]
        total_tokens_per_second: Rate of prompt and response tokens. [token/s]
        concurrency: Requests in flight, at most. [1]
        request_rate: Requests sent per second; None where they were sent at once. [1/s]
        gpus: GPUs that served. [1]
        tensor_parallel: GPUs that share each layer. [1]
        response_lengths: Length of every response. [token]
        seconds_per_token: Mean time between two tokens of a response. [s]
        first_token_seconds: Mean time to the first token. [s]
        keys: The file's key behind each field.
        warnings: What the reader must know before trusting it.
    """

    source: str
    tool: str
    model: str = ""
    duration_seconds: float | None = None
    requests: float | None = None
    failed_requests: float | None = None
    samples_per_request: float | None = None
    prompt_tokens: float | None = None
    response_tokens: float | None = None
    response_tokens_per_second: float | None = None
    total_tokens_per_second: float | None = None
    concurrency: float | None = None
    request_rate: float | None = None
    gpus: float | None = None
    tensor_parallel: float | None = None
    response_lengths: tuple[float, ...] = ()
    seconds_per_token: float | None = None
    first_token_seconds: float | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
