"""What samples do outside the GPUs."""

from __future__ import annotations

from dataclasses import dataclass


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
