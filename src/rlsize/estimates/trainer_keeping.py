"""What a trainer's backend and options change about what its GPUs hold; nothing of it is said in most scenarios."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rlsize.equations import activations, training_peak
from rlsize.estimates.figures import alike, bare
from rlsize.facts.inference_engines import TRAINER_BACKENDS, UNSAID
from rlsize.facts.quantisation import BYTES_PER_PARAM
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from rlsize.estimates.figures import Work, Worked
    from rlsize.estimates.trainer_memory import TrainerLoad
    from rlsize.facts.inference_engines import TrainerBackend

_FP32 = BYTES_PER_PARAM["fp32"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """
    How a trainer keeps things.

    Args:
        backend: fsdp, fsdp2, ddp, deepspeed or megatron; empty where nobody says.
        master_dtype: Number type of the parameters that the optimizer works on; the backend's habit where empty.
        samples: Samples of a micro-batch; None where its tokens are what counts. [1]
        padded: Whether micro-batches are padded to the longest sample, or to their tokens where these count.
        param_offload: Whether weights and all states live on the host.
        reference_offload: Whether the reference is on the host but in its own pass.
        chunked_loss: Whether logits exist for a chunk only.
        fused_loss: Whether one kernel works the loss out in place.
        entropy: Whether a graph of the entropy of the logits is kept.
        activation_offload: Whether what the layers keep goes to the host.
        frozen_dtype: Number type of frozen linear layers beside adapters; the weights' own where empty.
        logit_share: Share of the tokens whose logits are worked out: less than all where those of prompts are not. [1]
    """

    backend: str = ""
    master_dtype: str = ""
    samples: float | None = None
    padded: bool = False
    param_offload: bool = False
    reference_offload: bool = False
    chunked_loss: bool = False
    fused_loss: bool = False
    entropy: bool = False
    activation_offload: bool = False
    frozen_dtype: str = ""
    logit_share: float = 1.0

    @property
    def facts(self) -> TrainerBackend:
        """What is known of the backend."""
        return TRAINER_BACKENDS.get(self.backend, UNSAID)

    @property
    def weight_width(self) -> float:
        """Bytes of a parameter as it is kept between passes."""
        return self.master_width if self.facts.own_master else BYTES_PER_PARAM["bf16"]

    @property
    def one_copy(self) -> bool:
        """Whether the parameters that work are the ones that the optimizer works on."""
        return self.facts.own_master or self.master_dtype == "bf16"

    @property
    def master_width(self) -> float:
        """Bytes of a parameter that the optimizer works on."""
        return BYTES_PER_PARAM[self.master_dtype or "fp32"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankStep:
    """
    What a data-parallel rank works on; numbers, arrays or figures.

    Args:
        mean_tokens: Mean tokens of a sequence. [token]
        tokens_cv: Standard deviation of that over its mean. [1]
        longest_tokens: The longest sequence. [token]
        sequences: Sequences of all ranks, for all optimizer steps. [1]
        ranks: Data-parallel ranks. [1]
        optimizer_steps: Optimizer steps that share the sequences. [1]
        context: Context-parallel ranks. [1]
    """

    mean_tokens: Worked
    tokens_cv: Worked
    longest_tokens: Worked
    sequences: Worked
    ranks: Worked
    optimizer_steps: Worked
    context: Worked


def as_kept(load: TrainerLoad, keeps: Keeping, *, whole: bool = False) -> TrainerLoad:
    """
    The load of a trainer that keeps things so.

    Args:
        load: What it holds where nobody says.
        keeps: How it keeps things.
        whole: Whether a micro-batch holds all that a rank has for an optimizer step, so that gradients do not outlive
            a pass unless they have a buffer of their own.
    """
    widths: dict[str, Any] = {}
    width, said = keeps.master_width, load.optimizer_width
    states = float(bare(said))
    if keeps.one_copy:
        moments = max(states - _FP32, 0.0) * width / _FP32
        widths = {"weight_width": width, "gradient_width": width, "optimizer_width": moments}
    return replace(
        load,
        **widths,
        beside=tuple(one for one in load.beside if not (keeps.reference_offload and one.name == "reference")),
        state_offloaded=keeps.param_offload,
        gradients_held=keeps.facts.gradient_buffer or not whole,
        activations_offloaded=keeps.activation_offload,
        **alike(keeps, type(load)),
    )


def micro_batch(
    work: Work, keeps: Keeping, step: RankStep, packed: Worked, samples: Worked | None
) -> tuple[Worked, bool]:
    """
    Tokens of the largest micro-batch on each GPU, and whether it holds all that a rank has for an optimizer step.

    Where tokens count and micro-batches are padded to them, or nobody names the backend, they are as large as tokens
    say, whether or not there are so many.

    Args:
        work: `figures.apply` or `figures.numbers`.
        keeps: How the trainer keeps things.
        step: What a rank works on.
        packed: Tokens that micro-batches are packed to, on each GPU. [token]
        samples: Samples of a micro-batch, where these are what is counted. [1]
    """
    if samples is None and (keeps.padded or not keeps.backend):
        return packed, False
    own = work(
        "rank_samples",
        training_peak.rank_samples,
        sequences=step.sequences,
        ranks=step.ranks,
        optimizer_steps=step.optimizer_steps,
    )
    at_hand = _sample_tokens(work, keeps, step, own)
    asked = packed if samples is None else _sample_tokens(work, keeps, step, samples)
    found = work("rank_tokens", training_peak.tokens_at_hand, micro_batch_tokens=asked, rank_tokens=at_hand)
    whole = bare(at_hand) <= bare(asked)
    return found, bool(whole.all() if hasattr(whole, "all") else whole)


def _sample_tokens(work: Work, keeps: Keeping, step: RankStep, samples: Worked) -> Worked:
    """Tokens on each GPU of the largest micro-batch of so many samples."""
    key, longest = "micro_batch_tokens", step.longest_tokens
    if keeps.padded:
        found = work(key, training_peak.padded_tokens, samples=samples, longest_tokens=longest)
    else:
        found = work(
            key,
            training_peak.packed_tokens,
            samples=samples,
            mean_tokens=step.mean_tokens,
            tokens_cv=step.tokens_cv,
            longest_tokens=longest,
            sequences=step.sequences,
        )
    return work(
        "rank_tokens", activations.tokens_per_context_rank, micro_batch_tokens=found, context_parallel=step.context
    )
