"""The peak of a training step on a GPU: states, and whichever is larger of activations and gradients."""

from __future__ import annotations

from rlsize.equations._ops import Real, log, maximum, minimum, sqrt


def training_peak_bytes(
    state_bytes: Real,
    activation_bytes: Real,
    logits_bytes: Real,
    gradient_bytes: Real,
    gathered_bytes: Real,
    overhead: Real,
) -> Real:
    """
    Peak memory of one forward and backward pass, as the allocator reserves it.

    P = u (S + max(A + Z, G) + U)

    Args:
        state_bytes: Weights, master copy and optimizer state, and gradients that outlive a pass, S. [B]
        activation_bytes: What the layers keep, and the layer at work, A. [B]
        logits_bytes: Logits and what the loss keeps beside them, Z. [B]
        gradient_bytes: Gradients that grow while activations are freed, G. [B]
        gathered_bytes: Weights and gradients of the layers that are gathered, U. [B]
        overhead: Reserved memory over what is in use, u. [1]

    Returns:
        P. [B]

    Assumes that backward frees activations about as fast as it makes gradients, so the two do not add up.
    Source: own derivation; torchtune's ladder of memory optimisations (pytorch/torchtune@bd2a0fc7c314:README.md).

    >>> training_peak_bytes(state_bytes=18e9, activation_bytes=30e9, logits_bytes=10e9, gradient_bytes=6e9,
    ...                     gathered_bytes=0, overhead=1.0)
    58000000000.0
    """
    return overhead * (state_bytes + maximum(activation_bytes + logits_bytes, gradient_bytes) + gathered_bytes)


def gradients_beyond(gradient_bytes: Real, activation_bytes: Real, logits_bytes: Real) -> Real:
    """
    What gradients that grow in a backward pass add to its peak.

    G' = max(G - A - Z, 0)

    Args:
        gradient_bytes: Gradients that grow while activations are freed, G. [B]
        activation_bytes: What the layers keep, and the layer at work, A. [B]
        logits_bytes: Logits and what the loss keeps beside them, Z. [B]

    Returns:
        G'. [B]

    Assumes that they take the place of activations, as in training_peak_bytes.
    Source: own derivation from training_peak_bytes.

    >>> gradients_beyond(gradient_bytes=50e9, activation_bytes=30e9, logits_bytes=10e9)
    10000000000.0
    """
    return maximum(gradient_bytes - activation_bytes - logits_bytes, 0.0)


def kept_copies(hidden_copies: Real, kept_share: Real) -> Real:
    """
    Hidden-sized tensors of a layer that are kept, where some are fused away or computed again.

    c' = s c

    Args:
        hidden_copies: All that the layer would keep, c. [1]
        kept_share: Share that is kept, s. [1]

    Returns:
        c'. [1]

    Assumes the share does not depend on the layer's shape.
    Source: own definition.

    >>> kept_copies(hidden_copies=28, kept_share=0.5)
    14.0
    """
    return hidden_copies * kept_share


def dense_and_routed(dense: Real, routed: Real) -> Real:
    """
    What a GPU holds of a mixture of experts: what lies outside the experts, and its experts.

    s = a + b

    Args:
        dense: Outside the routed experts, a. [B]
        routed: Routed experts, b; 0 for a dense model. [B]

    Returns:
        s. [B]

    Assumes the two were divided each in its own way before.
    Source: counting.

    >>> dense_and_routed(dense=3e9, routed=4e9)
    7000000000.0
    """
    return dense + routed


def largest_unit_params(layer_params: Real, outer_params: Real, outer_units: Real, tensor_parallel: Real) -> Real:
    """
    Parameters of the largest unit that is gathered at once.

    n = max(n_l, N_o / (u t))

    Args:
        layer_params: Parameters of a layer on a rank, n_l. [param]
        outer_params: Parameters of embedding and output head, N_o. [param]
        outer_units: Units that these form, u: 2, or 1 where they share their weights. [1]
        tensor_parallel: Tensor-parallel ranks that share these, t. [1]

    Returns:
        n. [param]

    Assumes that each layer, the embedding and the output head are units of their own.
    Source: PyTorch FSDP2 documentation, fully_shard per layer.

    >>> largest_unit_params(layer_params=2e8, outer_params=2e9, outer_units=2, tensor_parallel=2)
    500000000.0
    """
    return maximum(layer_params, outer_params / (outer_units * tensor_parallel))


def copies_at_work(hidden_copies: Real, intermediate_size: Real, hidden_size: Real) -> Real:
    """
    Hidden-sized tensors of the layer at work in backward: what it keeps, and the gradients beside that.

    w = c + 1 + 2 f / h

    Args:
        hidden_copies: Hidden-sized tensors that it keeps, c. [1]
        intermediate_size: Inner width of the MLP that works on a token, f. [1]
        hidden_size: Width of the residual stream, h. [1]

    Returns:
        w. [1]

    Assumes the gradients of the gate, of what it gates and of the residual stream are alive at once.
    Source: own count; peaks of prime-rl at 16k and 65k tokens grow by 43 copies a token where f / h is 3.8.

    >>> copies_at_work(hidden_copies=28, intermediate_size=14336, hidden_size=4096)
    36.0
    """
    return hidden_copies + 1.0 + 2.0 * intermediate_size / hidden_size


def share_of_tokens(tokens: Real, share: Real) -> Real:
    """
    Tokens of a micro-batch whose logits are worked out, where those of prompts are not.

    T_r = s T

    Args:
        tokens: Tokens of the micro-batch, T. [token]
        share: Share of responses in them, s. [1]

    Returns:
        T_r. [token]

    Assumes the micro-batch has prompts and responses as samples of the mean, or of the greatest, length have.
    Source: TRL 0.14 to 1.9, trainer/grpo_trainer.py (logits_to_keep).

    >>> share_of_tokens(tokens=8192, share=0.5)
    4096.0
    """
    return tokens * share


def logit_tokens(tokens: Real, chunks: Real, most: Real) -> Real:
    """
    Tokens whose logits a loss on chunks holds at once.

    n = min(T / k, m)

    Args:
        tokens: Tokens of the micro batch on this rank, T. [token]
        chunks: Chunks, where their number is fixed, k. [1]
        most: Tokens of a chunk, where these are, m. [token]

    Returns:
        n. [token]

    Assumes long micro-batches are cut by tokens.
    Source: torchtune cuts into 8 chunks; prime-rl, slime and NeMo-RL count the tokens of one.

    >>> logit_tokens(tokens=4096, chunks=8, most=1024)
    512.0
    """
    return minimum(tokens / chunks, most)


def working_layer_bytes(
    tokens: Real,
    hidden_size: Real,
    bytes_per_activation: Real,
    hidden_copies: Real,
    gathered_copies: Real,
    tensor_parallel: Real,
) -> Real:
    """
    Bytes of the one layer that is at work: its full activations, and inputs gathered from the tensor-parallel ranks.

    w = T h b (c / t + g (1 - 1 / t))

    Args:
        tokens: Tokens of the micro batch on this rank, T. [token]
        hidden_size: Width of the residual stream, h. [1]
        bytes_per_activation: Width of an activation, b; 2 for bf16. [B/token]
        hidden_copies: Hidden-sized tensors of a layer, c. [1]
        gathered_copies: Of these, gathered whole at once under sequence parallelism, g. [1]
        tensor_parallel: Tensor-parallel ranks, t. [1]

    Returns:
        w. [B]

    Assumes sequence parallelism beside tensor parallelism.
    Source: Korthikanti et al. (arXiv:2205.05198), section 4.2.2, for what is gathered; own sum.

    >>> working_layer_bytes(tokens=8192, hidden_size=4096, bytes_per_activation=2, hidden_copies=28, gathered_copies=3,
    ...                     tensor_parallel=1)
    1879048192.0
    """
    whole = gathered_copies * (1.0 - 1.0 / tensor_parallel)
    return tokens * hidden_size * bytes_per_activation * (hidden_copies / tensor_parallel + whole)


def micro_batch_tokens(sequences: Real, sequence_tokens: Real, context_parallel: Real, micro_batches: Real) -> Real:
    """
    Tokens of one pass on each rank.

    T = B s / (c m)

    Args:
        sequences: Sequences of a data-parallel rank, B. [1]
        sequence_tokens: Tokens of a sequence, s. [token]
        context_parallel: Ranks that share a sequence, c. [1]
        micro_batches: Passes into which a pipeline divides them, m; 1 without one. [1]

    Returns:
        T. [token]

    Assumes even parts.
    Source: counting.

    >>> micro_batch_tokens(sequences=32, sequence_tokens=8192, context_parallel=1, micro_batches=8)
    32768.0
    """
    return sequences * sequence_tokens / (context_parallel * micro_batches)


def largest_micro_batch_tokens(spare_bytes: Real, bytes_per_token: Real) -> Real:
    """
    Tokens of the largest micro batch that fits, before rounding down.

    T = M / a

    Args:
        spare_bytes: Memory that states and reserve leave on a GPU, M. [B]
        bytes_per_token: Activations and logits of one token on that GPU, a. [B/token]

    Returns:
        T. [token]

    Assumes activations and logits grow with the tokens alone, as they do with flash attention.
    Source: own derivation.

    >>> largest_micro_batch_tokens(spare_bytes=40e9, bytes_per_token=2.5e6)
    16000.0
    """
    return spare_bytes / bytes_per_token


def whole_micro_batch_tokens(micro_batch_tokens: Real, longest_tokens: Real) -> Real:
    """
    Tokens of a micro batch that holds its longest sequence whole.

    T = max(T_m, l)

    Args:
        micro_batch_tokens: Tokens that a micro batch is packed to, T_m. [token]
        longest_tokens: The longest sequence, l. [token]

    Returns:
        T. [token]

    Assumes that no sequence is cut, and that sequences are packed up to T_m.
    Source: own definition.

    >>> whole_micro_batch_tokens(micro_batch_tokens=16384, longest_tokens=20000)
    20000
    """
    return maximum(micro_batch_tokens, longest_tokens)


def rank_samples(sequences: Real, ranks: Real, optimizer_steps: Real) -> Real:
    """
    Samples that a data-parallel rank has for one optimizer step.

    s = max(S / (d m), 1)

    Args:
        sequences: Sequences of the step, S. [1]
        ranks: Data-parallel ranks, d. [1]
        optimizer_steps: Optimizer steps that share them, m. [1]

    Returns:
        s. [1]

    Assumes even shares.
    Source: counting.

    >>> rank_samples(sequences=5120, ranks=32, optimizer_steps=4)
    40.0
    """
    return maximum(sequences / (ranks * optimizer_steps), 1.0)


def tokens_at_hand(micro_batch_tokens: Real, rank_tokens: Real) -> Real:
    """
    Tokens of a micro batch, which holds no more than there is for an optimizer step.

    T = min(T_m, T_r)

    Args:
        micro_batch_tokens: Tokens that it may hold, T_m. [token]
        rank_tokens: Tokens that a rank has for an optimizer step, T_r. [token]

    Returns:
        T. [token]

    Assumes nothing.
    Source: counting.

    >>> tokens_at_hand(micro_batch_tokens=24000, rank_tokens=13600)
    13600
    """
    return minimum(micro_batch_tokens, rank_tokens)


def padded_tokens(samples: Real, longest_tokens: Real) -> Real:
    """
    Tokens of a micro batch whose samples are padded to the longest.

    T = s l

    Args:
        samples: Samples of the micro batch, s. [1]
        longest_tokens: The longest sequence, l. [token]

    Returns:
        T. [token]

    Assumes that some micro batch holds a sample of that length.
    Source: counting.

    >>> padded_tokens(samples=4, longest_tokens=2048)
    8192
    """
    return samples * longest_tokens


def packed_tokens(samples: Real, mean_tokens: Real, tokens_cv: Real, longest_tokens: Real, sequences: Real) -> Real:
    """
    Tokens of the largest micro batch of a step, whose samples are put end to end without padding.

    T = min(s l, max(s m + m c sqrt(2 s ln(1 + S / s)), l))

    Args:
        samples: Samples of a micro batch, s. [1]
        mean_tokens: Mean tokens of a sequence, m. [token]
        tokens_cv: Standard deviation of that over its mean, c. [1]
        longest_tokens: The longest sequence, l. [token]
        sequences: Sequences of the step, S. [1]

    Returns:
        T. [token]

    Assumes samples are dealt out at random, so that sums of s are about normal; the largest of n such lies
    sqrt(2 ln n) standard deviations above the mean, n + 1 here, so that one alone varies too.
    Source: extreme values of normal variables, Leadbetter, Lindgren and Rootzen (1983), section 1.5; own sum.

    >>> packed_tokens(samples=16, mean_tokens=1000, tokens_cv=0, longest_tokens=4000, sequences=512)
    16000.0
    """
    spread = mean_tokens * tokens_cv * sqrt(2.0 * samples * log(1.0 + sequences / samples))
    return minimum(samples * longest_tokens, maximum(samples * mean_tokens + spread, longest_tokens))


def own_bytes(
    measured_bytes: Real, explained_bytes: Real, working_bytes: Real, measured_working_bytes: Real, exponent: Real
) -> Real:
    """
    What a run's peak has beside what the model knows of it, once the loop is changed.

    X = (M - P) (W / W_0)^g

    Args:
        measured_bytes: The peak as it was measured, M. [B]
        explained_bytes: The same as it is predicted, P. [B]
        working_bytes: Activations, logits and gathered layers at the peak of the loop as it is changed, W. [B]
        measured_working_bytes: The same of the loop that was measured, W_0. [B]
        exponent: How much of it goes with those, g: 0 nothing, 1 all. [1]

    Returns:
        X. [B]

    Assumes that states are known, and what is not known is some of it work on tokens. It is below zero where the run
    took less than is predicted.
    Source: what is left of measured peaks beside their prediction.

    >>> own_bytes(46e9, explained_bytes=38e9, working_bytes=5e9, measured_working_bytes=20e9, exponent=0.5)
    4000000000.0
    """
    return (measured_bytes - explained_bytes) * (working_bytes / measured_working_bytes) ** exponent


def allocator_bytes(peak_bytes: Real, overhead: Real) -> Real:
    """
    What the allocator reserves at the peak beyond what tensors take.

    O = P - P / u

    Args:
        peak_bytes: Peak as the allocator reserves it, P. [B]
        overhead: Reserved memory over what is in use, u. [1]

    Returns:
        O. [B]

    Assumes one share for all that is held.
    Source: own derivation from training_peak_bytes.

    >>> allocator_bytes(peak_bytes=63e9, overhead=1.05)
    3000000000.0
    """
    return peak_bytes - peak_bytes / overhead
