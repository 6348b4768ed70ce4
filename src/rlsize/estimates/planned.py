"""What a plan predicts: rates, train step and weight sync as functions of the constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlsize.equations import kv_cache
from rlsize.equations.long_tail import context_of
from rlsize.equations.prefill import group_prefill_tokens
from rlsize.estimates.belief import prior
from rlsize.estimates.constants_memory import STAGE as MEMORY
from rlsize.estimates.constants_rollout import STAGE as ROLLOUT
from rlsize.estimates.constants_sync import STAGE as SYNC
from rlsize.estimates.constants_train import STAGE as TRAIN
from rlsize.estimates.rollout_prediction import Lengths, check_fits, engine, steady
from rlsize.estimates.sync_prediction import sync_time
from rlsize.estimates.train_prediction import train_step
from rlsize.estimates.working import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rlsize.equations._ops import Real
    from rlsize.estimates.calibrating import Predict
    from rlsize.estimates.engine_work import EngineQuestion
    from rlsize.estimates.rollout_prediction import Engine
    from rlsize.estimates.sync_prediction import SyncTimeQuestion
    from rlsize.estimates.train_prediction import TrainQuestion

ROLLOUT_STAGES = (ROLLOUT, MEMORY)
TRAIN_STAGES = (TRAIN,)
SYNC_STAGES = (SYNC,)
ALL_THAT_FIT = 1e9  # samples in flight that no engine can hold


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan:
    """
    One instance and its load.

    Args:
        question: The instance.
        prompt: Mean prompt length. [token]
        response: Mean response length. [token]
        response_cv: Standard deviation of response lengths over their mean. [1]
        longest: Longest response. [token]
        hits: Share of prompt tokens found in the prefix cache. [1]
    """

    question: EngineQuestion
    prompt: float
    response: float
    response_cv: float
    longest: float
    hits: float = 0.0

    def rate(self, concurrency: float = ALL_THAT_FIT) -> Predict:
        """
        Response tokens per second of the instance in its steady state.

        Raises:
            Refused: It does not fit, or cannot run so.
        """
        asked: Engine = engine(self.question)
        live = kv_cache.mean_live_tokens(
            prompt_tokens=self.prompt, response_tokens=self.response, response_cv=self.response_cv
        )
        lengths = Lengths(
            prompt=self.prompt,
            response=self.response,
            live=live,
            longest=numbers("longest_context", context_of, prompt_tokens=self.prompt, response_tokens=self.longest),
            computed=numbers("computed", group_prefill_tokens, prompt_tokens=self.prompt, hit_ratio=self.hits),
        )
        check_fits(asked, lengths, prior(*ROLLOUT_STAGES).central())

        def predict(values: Mapping[str, Real]) -> Any:  # noqa: ANN401 (a number or an array, as the values are)
            return steady(numbers, asked, concurrency, lengths, values).rate

        return predict


def train_seconds(question: TrainQuestion) -> Predict:
    """Busy trainer seconds of a step, from a question in bare numbers."""

    def predict(values: Mapping[str, Real]) -> Any:  # noqa: ANN401 (as above)
        return train_step(numbers, question, values).train_seconds

    return predict


def sync_seconds(question: SyncTimeQuestion) -> Predict:
    """Seconds of a weight sync."""

    def predict(values: Mapping[str, Real]) -> Any:  # noqa: ANN401 (as above)
        return sync_time(numbers, question, values)

    return predict
