"""What every record of a published measurement says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """
    How one replica is spread over GPUs.

    Args:
        tensor: Tensor-parallel ranks. [1]
        pipeline: Pipeline stages. [1]
        expert: Expert-parallel ranks. [1]
        data: Data-parallel ranks: of attention within one engine, or of a trainer. [1]
        context: Context-parallel ranks. [1]
    """

    tensor: int = 1
    pipeline: int = 1
    expert: int = 1
    data: int = 1
    context: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """
    One published measurement.

    Args:
        id: Its name.
        source_id: The publication; records of one are not independent of each other.
        trust: high, medium or low.
        model: Name of the model profile.
        gpu: Name of the GPU profile; empty where the record names none.
        gpus: GPUs that were measured together. [1]
        stack: Engine or framework, lower case, without its version.
        version: Its version; empty where unknown.
        measured: What was measured, under the record's own field names and in its own units.
        assumed: What the record does not say and the reader filled in, in words, for the report.
    """

    id: str
    source_id: str
    trust: str
    model: str
    gpu: str
    gpus: int
    stack: str
    version: str = ""
    measured: Mapping[str, float] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()


class Refused(Exception):  # noqa: N818 (a record that is not graded is no error of the program)
    """A record that cannot be predicted; its text says why, in one line."""
