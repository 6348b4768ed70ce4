"""How a step is made of samples and passes, and what samples do outside the GPUs."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

from rlsize.facts.fields import Says
from rlsize.frozen import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class RlAlgorithm:
    """The models of one algorithm as published; a run may differ, and says so."""

    name: Annotated[str, Says("The name that a scenario uses.")]
    critic: Annotated[bool, Says("Whether a critic is trained beside the policy.")]
    reference: Annotated[bool, Says("Whether a frozen reference model is kept for a KL term.")]
    rollout: Annotated[bool, Says("Whether rollout instances keep a copy of the policy.")] = True
    source: Annotated[str, Says("Who says so.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimizer:
    """What an optimizer keeps for each trained parameter, beside the weight and its gradient."""

    name: Annotated[str, Says("The name that a scenario uses.")]
    bytes_per_master: Annotated[float, Says("Bytes per parameter of its own copy of the weight; 0 without one.")]
    bytes_per_optimizer_state: Annotated[float, Says("Bytes per parameter of its moments.")]
    source: Annotated[str, Says("Who says so.")]
    note: Annotated[str, Says("What one should know before relying on it.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputation:
    """What of a layer's activations is thrown away and computed again in its backward pass."""

    name: Annotated[str, Says("The name that a scenario uses.")]
    source: Annotated[str, Says("Who says so.")]
    note: Annotated[str, Says("What one should know before relying on it.")] = ""


BYTES_PER_GRADIENT: Mapping[str, float] = MappingProxyType({"bf16": 2.0, "fp32": 4.0})
"""Bytes per parameter of a gradient as it is accumulated."""

_OPTIMIZERS = (
    Optimizer(name="adamw", bytes_per_master=4.0, bytes_per_optimizer_state=8.0,
              source="ZeRO (arXiv:1910.02054), section 3.1: fp32 copy, momentum and variance"),
    Optimizer(name="adam-8bit", bytes_per_master=4.0, bytes_per_optimizer_state=2.0,
              source="8-bit optimizers (arXiv:2110.02861): two moments of one byte, block scales left out",
              note="the fp32 copy of the weights stays; recipes that drop it save 4 more"),
    Optimizer(name="adamw-bf16-states", bytes_per_master=4.0, bytes_per_optimizer_state=4.0,
              source="stas00/ml-engineering, training memory: two moments of two bytes"),
    Optimizer(name="sgd-momentum", bytes_per_master=4.0, bytes_per_optimizer_state=4.0,
              source="EleutherAI/cookbook, calc: fp32 copy and one fp32 moment"),
    Optimizer(name="muon", bytes_per_master=4.0, bytes_per_optimizer_state=4.0,
              source="Muon is scalable for LLM training (arXiv:2502.16982): one momentum buffer, fp32 here",
              note="for the weight matrices; embeddings, head and norms usually stay with AdamW, which keeps 4 more"),
)  # fmt: skip

_RECOMPUTATIONS = (
    Recomputation(name="none", source="Korthikanti et al. (arXiv:2205.05198), table 2, attention scores left out",
                  note="flash attention, which every trainer here is taken to use, never stores the attention scores"),
    Recomputation(name="selective",
                  source="torchtitan on 8 and 128 H100 (pytorch/torchtitan@b5bcd76c66d0, tables 1 and 3)",
                  note="operators are computed again, so that a layer keeps about a third of its activations; flash "
                       "attention never stores the attention scores"),
    Recomputation(name="full", source="Korthikanti et al. (arXiv:2205.05198), table 2: 2 s b h",
                  note="one layer at a time holds its full activations again"),
)  # fmt: skip

_ALGORITHMS = (
    RlAlgorithm(name="grpo", critic=False, reference=True,
                source="DeepSeekMath (arXiv:2402.03300), section 4.1: group mean for a critic, KL to a reference"),
    RlAlgorithm(name="ppo", critic=True, reference=True,
                source="InstructGPT (arXiv:2203.02155), section 3.5: value function, KL penalty to the supervised "
                       "model"),
    RlAlgorithm(name="rloo", critic=False, reference=True,
                source="Back to basics (arXiv:2402.14740), section 3: leave-one-out baseline, KL in the reward"),
    RlAlgorithm(name="reinforce++", critic=False, reference=True,
                source="REINFORCE++ (arXiv:2501.03262), section 3: no critic, KL penalty per token"),
    RlAlgorithm(name="dapo", critic=False, reference=False,
                source="DAPO (arXiv:2503.14476), section 2.3: no critic, the KL term removed"),
    RlAlgorithm(name="sft", critic=False, reference=False, rollout=False,
                source="supervised fine-tuning: the policy alone"),
)  # fmt: skip

ALGORITHMS: Mapping[str, RlAlgorithm] = MappingProxyType({entry.name: entry for entry in _ALGORITHMS})
"""The algorithms by name."""

OPTIMIZERS: Mapping[str, Optimizer] = MappingProxyType({entry.name: entry for entry in _OPTIMIZERS})
"""The optimizers by name."""

RECOMPUTATIONS: Mapping[str, Recomputation] = MappingProxyType({entry.name: entry for entry in _RECOMPUTATIONS})
"""The recomputation policies by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agents:
    """
    Turns, tools, environments and verifiers, as the simulator has them.

    Args:
        turns: Turns of a sample at most; a tool answers between them. [1]
        turn_end_fraction: Chance that a turn is a sample's last one, though more were allowed. [1]
        tool_seconds: Mean time of a tool call. [s]
        tool_cv: Its coefficient of variation; lognormal. [1]
        tool_tokens: What a tool's answer adds to the context. [token]
        verify_seconds: Mean time to score a sample. [s]
        verify_cv: Its coefficient of variation; lognormal. [1]
        verify_failed_fraction: Chance that a verifier fails: the sample is scored once more, which takes as long. [1]
        verify_workers: How many samples are scored at once; None for as many as there are. [1]
        environments: Of which each sample needs one until it has finished; None for as many as there are samples. [1]
        environment_seconds: Until an environment has started. [s]
        failed_fraction: Chance that an environment fails in a tool call: it starts again, and the call is repeated. [1]
        redundant_samples: That a group begins with beyond those that it needs: the first to end are taken. [1]
    """

    turns: int = 1
    turn_end_fraction: float = 0.0
    tool_seconds: float = 0.0
    tool_cv: float = 0.0
    tool_tokens: int = 0
    verify_seconds: float = 0.0
    verify_cv: float = 0.0
    verify_failed_fraction: float = 0.0
    verify_workers: int | None = None
    environments: int | None = None
    environment_seconds: float = 0.0
    failed_fraction: float = 0.0
    redundant_samples: int = 0
