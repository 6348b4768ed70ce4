"""An accuracy board: how wrong predictions are, cell by cell; what a later release is held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from rlsize.facts.fields import Quantity, Says
from rlsize.facts.kinds import RATIO, SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardCell:
    """Records of one class, on one kind of GPU, with one engine or framework, in one number type."""

    class_name: Annotated[str, Says("Class of the records, such as rollout.")]
    part: Annotated[str, Says("Part of the class, such as dense or MoE.")]
    gpu: Annotated[str, Says("The GPU profile.")]
    stack: Annotated[str, Says("Engine or framework.")]
    dtype: Annotated[str, Says("The narrowest number type of the weights that work on each token, or travel.")]
    records: Annotated[int, Quantity("count", "Trusted records.", least=1, whole=True)]
    sources: Annotated[int, Quantity("count", "Publications that they come from.", least=1, whole=True)]
    median: Annotated[float, RATIO.saying("Median of |predicted / measured - 1|.")]
    p90: Annotated[float, RATIO.saying("Its 90th percentile.")]
    noise: Annotated[float, RATIO.saying("How far the median may move by the choice of records alone.")]
    coverage: Annotated[float | None, SHARE.saying("Share of measurements inside the 80 % band.")] = None
    guess: Annotated[
        float | None, RATIO.saying("Median error of the guess without a model; null where there is none.")
    ] = None

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from others."""
        return self.class_name, self.part, self.gpu, self.stack, self.dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A saved accuracy board."""

    rlsize_version: Annotated[str, Says("The rlsize that made it.")]
    cells: Annotated[list[BoardCell], Says("One entry per class, part, GPU, engine or framework, and number type.")]
