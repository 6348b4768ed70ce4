"""RL algorithms: which models each keeps in memory beside the policy that it trains."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

from rlsize.facts.fields import Says

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


_ALGORITHMS = (
    RlAlgorithm(
        name="grpo",
        critic=False,
        reference=True,
        source="DeepSeekMath (arXiv:2402.03300), section 4.1: group mean for a critic, KL to a reference",
    ),
    RlAlgorithm(
        name="ppo",
        critic=True,
        reference=True,
        source="InstructGPT (arXiv:2203.02155), section 3.5: value function, KL penalty to the supervised model",
    ),
    RlAlgorithm(
        name="rloo",
        critic=False,
        reference=True,
        source="Back to basics (arXiv:2402.14740), section 3: leave-one-out baseline, KL in the reward",
    ),
    RlAlgorithm(
        name="reinforce++",
        critic=False,
        reference=True,
        source="REINFORCE++ (arXiv:2501.03262), section 3: no critic, KL penalty per token",
    ),
    RlAlgorithm(
        name="dapo",
        critic=False,
        reference=False,
        source="DAPO (arXiv:2503.14476), section 2.3: no critic, the KL term removed",
    ),
    RlAlgorithm(
        name="sft", critic=False, reference=False, rollout=False, source="supervised fine-tuning: the policy alone"
    ),
)

ALGORITHMS: Mapping[str, RlAlgorithm] = MappingProxyType({entry.name: entry for entry in _ALGORITHMS})
"""The algorithms by name."""
