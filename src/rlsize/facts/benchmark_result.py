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
        engine: The inference engine, where the file names it.
        measured_at: When it ran, as an ISO 8601 date and time; empty where the file does not say.
        duration_seconds: Wall clock of the run. [s]
        requests: Requests that finished. [1]
        requests_are_prompts: Whether a request is a prompt of which the run may have made several samples.
        failed_requests: Requests that did not. [1]
        samples_per_request: Samples of one request (n). [1]
        prompt_tokens: Prompt tokens, all together. [token]
        response_tokens: Response tokens, all together. [token]
        response_tokens_per_second: Rate of response tokens. [token/s]
        total_tokens_per_second: Rate of prompt and response tokens. [token/s]
        concurrency: Requests in flight, at most. [1]
        mean_concurrency: Requests in flight, on average. [1]
        request_rate: Requests sent per second; None where they were sent at once. [1/s]
        sent_at_once: Whether nothing but the cap on concurrency held requests back; None where the file does not say.
        gpus: GPUs that served. [1]
        tensor_parallel: GPUs that share each layer. [1]
        response_lengths: Length of every response. [token]
        response_cv: Coefficient of variation of response lengths, where they are not listed. [1]
        seconds_per_token: Mean time between two tokens of a response. [s]
        first_token_seconds: Mean time to the first token. [s]
        batch_seconds: Mean time of one batch from its start to its last sample, where batches are what ran. [s]
        holds_ramp: Whether the rate covers the time in which the batch filled.
        holds_tail: Whether it covers the time in which the batch drained.
        cut_short: Why the run ended before all was sent; empty where it did not.
        trainer_tokens_per_second: Packed tokens (prompt, response, padding) per second of forward and backward, where
            it was the trainer that ran. [token/s]
        trainer_gpus: GPUs of that trainer. [1]
        mfu: Model FLOPs utilisation of that trainer. [1]
        keys: The file's key behind each field.
        counts: What a field counts, where that is not what its name says.
        warnings: What the reader must know before trusting it.
    """

    source: str
    tool: str
    model: str = ""
    engine: str = ""
    measured_at: str = ""
    duration_seconds: float | None = None
    requests: float | None = None
    requests_are_prompts: bool = False
    failed_requests: float | None = None
    samples_per_request: float | None = None
    prompt_tokens: float | None = None
    response_tokens: float | None = None
    response_tokens_per_second: float | None = None
    total_tokens_per_second: float | None = None
    concurrency: float | None = None
    mean_concurrency: float | None = None
    request_rate: float | None = None
    sent_at_once: bool | None = None
    gpus: float | None = None
    tensor_parallel: float | None = None
    response_lengths: tuple[float, ...] = ()
    response_cv: float | None = None
    seconds_per_token: float | None = None
    first_token_seconds: float | None = None
    batch_seconds: float | None = None
    holds_ramp: bool = False
    holds_tail: bool = False
    cut_short: str = ""
    trainer_tokens_per_second: float | None = None
    trainer_gpus: float | None = None
    mfu: float | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def mean_prompt_tokens(self) -> float | None:
        """Prompt tokens of a request. [token]"""
        return self.prompt_tokens / self.requests if self.prompt_tokens is not None and self.requests else None

    @property
    def mean_response_tokens(self) -> float | None:
        """Response tokens of a sample; None where it is open how many samples a request has. [token]"""
        if self.response_tokens is None or not self.requests:
            return None
        if self.samples_per_request is None and self.requests_are_prompts:
            return None
        return self.response_tokens / self.requests / (self.samples_per_request or 1.0)
