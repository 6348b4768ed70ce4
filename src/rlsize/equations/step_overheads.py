"""Times of an engine step beside products and attention: collectives, small kernels, sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlsize.equations._ops import Real


def all_reduce_time(messages: Real, latency: Real, message_bytes: Real, ranks: Real, bandwidth: Real) -> Real:
    """
    Time of the all-reduces of a step among tensor-parallel ranks.

    t = n (a + 2 (r - 1) / r M / B)

    Args:
        messages: All-reduces in the step, n. [1]
        latency: Time of a small one, a. [s]
        message_bytes: Bytes that each rank holds of one message, M. [B]
        ranks: Ranks, r. [1]
        bandwidth: What the link reaches, one direction per GPU, B. [B/s]

    Returns:
        t. [s]

    Assumes the ranks share one fast network; steps between algorithms are smoothed.
    Source: ring all-reduce; fits to measured kernels, ai-dynamo/aiconfigurator@095f58a5, systems data.

    >>> all_reduce_time(messages=128, latency=5e-6, message_bytes=4e6, ranks=2, bandwidth=2e11)
    0.0032
    """
    return messages * (latency + 2 * (ranks - 1) / ranks * message_bytes / bandwidth)


def expert_exchange_time(layers: Real, latency: Real, sent_bytes: Real, bandwidth: Real) -> Real:
    """
    Time to send tokens to their experts and back, over all mixture-of-experts layers.

    t = L (a + S / B)

    Args:
        layers: Mixture-of-experts layers, L. [1]
        latency: Dispatch and combine without load, a. [s]
        sent_bytes: Bytes that one GPU sends in one layer, both ways, S. [B]
        bandwidth: What the exchange reaches, one direction per GPU, B. [B/s]

    Returns:
        t. [s]

    Assumes experts on GPUs of one fast network; routing is even.
    Source: counts of InferSim (alibaba/InferSim, comm.py); fits to measured kernels, ai-dynamo/aiconfigurator@095f58a5.

    >>> expert_exchange_time(layers=58, latency=3e-5, sent_bytes=1e7, bandwidth=2e11)
    0.00464
    """
    return layers * (latency + sent_bytes / bandwidth)


def small_operations_time(
    layers: Real, operations: Real, operation_seconds: Real, passes: Real, activation_bytes: Real, bandwidth: Real
) -> Real:
    """
    Time of norms, rotary embedding, activation functions and residual sums.

    t = L (n t_0 + c A / B)

    Args:
        layers: Layers, L. [1]
        operations: Small kernels in a layer, n. [1]
        operation_seconds: Time of one without load, t_0. [s]
        passes: Times that a layer reads or writes its activations in them, c. [1]
        activation_bytes: Residual stream of all tokens on this GPU, A. [B]
        bandwidth: Peak memory bandwidth, B. [B/s]

    Returns:
        t. [s]

    Assumes they are bound by memory and not divided by tensor parallelism.
    Source: count of kernels in a transformer layer; fixed time from measured quantisation kernels,
    ai-dynamo/aiconfigurator@095f58a5, systems data.

    >>> small_operations_time(layers=64, operations=6, operation_seconds=2e-6, passes=20, activation_bytes=1e6,
    ...                       bandwidth=3.2e12)
    0.001168
    """
    return layers * (operations * operation_seconds + passes * activation_bytes / bandwidth)


def sampling_time(sequences: Real, vocab_size: Real, bytes_per_logit: Real, passes: Real, bandwidth: Real) -> Real:
    """
    Time to turn logits into tokens: passes over one row of the vocabulary for each sequence.

    t = c b V w / B

    Args:
        sequences: Sequences whose logits one GPU holds, b. [1]
        vocab_size: Columns of the logits, V. [1]
        bytes_per_logit: Width of a logit, w. [B]
        passes: Times that the logits are read or written, c. [1]
        bandwidth: Peak memory bandwidth, B. [B/s]

    Returns:
        t. [s]

    Assumes logits are gathered on every rank, so tensor parallelism does not divide them.
    Source: count of passes: copy to fp32, penalties, softmax, sampling.

    >>> sampling_time(sequences=100, vocab_size=150000, bytes_per_logit=4, passes=5, bandwidth=3e12)
    0.0001
    """
    return passes * sequences * vocab_size * bytes_per_logit / bandwidth


def stream_bytes(tokens: Real, hidden_size: Real, width: Real) -> Real:
    """
    Bytes of the residual stream of some tokens.

    A = n h w

    Args:
        tokens: Tokens, n. [token]
        hidden_size: Width of the stream, h. [1]
        width: Bytes of an activation of one token, w. [B/token]

    Returns:
        A. [B]

    Assumes one copy.
    Source: definition.

    >>> stream_bytes(tokens=100, hidden_size=4096, width=2)
    819200
    """
    return tokens * hidden_size * width


def sent_bytes(tokens: Real, bytes_per_token: Real) -> Real:
    """
    Bytes that tokens send.

    S = n s

    Args:
        tokens: Tokens, n. [token]
        bytes_per_token: What one sends, s. [B/token]

    Returns:
        S. [B]

    Assumes all tokens send the same.
    Source: definition.

    >>> sent_bytes(tokens=100, bytes_per_token=50000)
    5000000
    """
    return tokens * bytes_per_token
