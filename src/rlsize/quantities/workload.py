"""What one optimizer step is made of."""

from __future__ import annotations

from rlsize.facts.fields import Quantity
from rlsize.facts.kinds import COUNT, CV, POSITIVE, SHARE, TOKENS, TOKENS_OR_NONE
from rlsize.quantities.row import Row, Text, Word

MOST_MEAN_LENGTHS = 32.0
"""Mean lengths beyond which hardly a sample goes, where nobody says a cap."""

KEPT_MEAN_LENGTHS = 4.0
"""
Mean lengths of a cap that nobody says, under an engine that keeps room for it from the start: the middle of published
caps of 2,048 to 16,384 tokens (`UNDER_CAP`). Nobody runs such an engine with room for what hardly a sample needs.
"""

UNDER_CAP = {"usual_cap": 4096.0, "usual_mean": 1470.0, "exponent": 0.6, "fullest": 0.8}
"""
Mean response where only its cap is said. From 16 settings in 9 publications with caps of 512 to 131,072 tokens, whose
means lie `UNDER_CAP_SPREAD` around it on the scale of logarithms; a cap that most samples reached would be raised.
"""
UNDER_CAP_SPREAD = 0.8

USUAL_RESPONSE, USUAL_RESPONSE_SPREAD = 1024.0, 1.0
"""Mean response where nobody says its cap either: the middle of published RL runs, and how they lie around it."""

USUAL_SAMPLES, USUAL_SAMPLES_SPREAD = 1024.0, 1.4
"""Samples of a step where nobody says: published RL runs have 64 to 8,192."""

RESPONSE_CV = 0.6
"""
Spread of response lengths where nobody says: the middle of published RL runs, whose lengths are cut at a cap
(NeMo-RL's step times, from which the constant `step_length_cv` is fitted).
"""

ROWS = (
    Row("prompts_per_step", POSITIVE, "Prompts per optimizer step.", "workload.", "--prompts"),
    Row("group_size", Quantity("count", least=1.0), "Samples of one prompt, G.", "workload.", "--group|--group-size"),
    Row("samples_per_step", POSITIVE, "Samples per optimizer step, for prompts x group.", "workload.", "--samples"),
    Row("batch_tokens", TOKENS, "Response tokens per optimizer step.", "workload.", "--"),
    Row("prompt_tokens", TOKENS_OR_NONE, "Mean prompt length in tokens.", "workload.", "--", 1024.0, "a usual prompt"),
    Row(
        "max_prompt_tokens",
        TOKENS,
        "Cap on the prompt length, which the longest sample has; the mean counts when not given.",
        "workload.",
    ),
    Row("response_tokens", TOKENS, "Mean response length in tokens.", "workload.response_tokens.mean", "--"),
    Row(
        "response_cv",
        CV,
        "Coefficient of variation of response lengths: standard deviation over mean.",
        "workload.response_tokens.cv",
        "--",
        RESPONSE_CV,
        "the middle of published RL runs",
    ),
    Row("max_response_tokens", TOKENS, "Cap on the response length.", "workload.response_tokens.max", "--"),
    Row(
        "length_distribution",
        Word(("lognormal", "gamma", "constant", "empirical")),
        "Family of the lengths: lognormal, gamma, constant, or empirical with a file.",
        "workload.response_tokens.distribution",
        "--",
        "lognormal",
    ),
    Row(
        "lengths_file",
        Text("FILE"),
        "A file of lengths: one a line, or length and count; `simulate` draws from it.",
        "workload.response_tokens.file",
        "--lengths",
    ),
    Row(
        "group_correlation",
        SHARE,
        "How alike the lengths of a group are, 0 to 1.",
        "workload.response_tokens.",
        "--",
        0.0,
        "lengths are independent",
    ),
    Row(
        "length_drift",
        Quantity("1", least=-0.99, most=100.0),
        "Relative growth of the mean over 1,000 optimizer steps.",
        "workload.response_tokens.drift",
        "--",
        0.0,
        "lengths do not grow",
    ),
    Row(
        "updates",
        COUNT,
        "Times that a step's tokens are trained on (PPO epochs).",
        "workload.",
        "--",
        1,
        "each token is trained on once",
    ),
    Row(
        "mini_batches",
        COUNT,
        "Optimizer updates for that each time.",
        "workload.",
        "--",
        1,
        "one update of the weights",
    ),
    Row("steps", POSITIVE, "Optimizer steps of the run.", "workload.", "--"),
)
