"""The constants of the predicted RL step: what belongs to neither generation, nor training, nor weight sync."""

from __future__ import annotations

from rlsize.estimates.constants import Constant, Stage

_NEMO = "rl_step rows of NeMo-RL, high trust"

STAGE = Stage(
    name="step",
    noise=0.12,
    constants=(
        Constant("step_fixed", 2.08, 0.35, "s", "fitted",
                 "step of any loop, beside its phases", _NEMO, (3.0, 0.7)),
        Constant("step_sample", 0.00166, 0.4, "s", "fitted",
                 "handling of each sample: detokenising, reward, padding, moving", _NEMO, (4e-3, 0.8)),
        Constant("step_variation", 0.15, 0.3, "1", "assumed",
                 "how strongly phases that overlap vary from step to step, where no cap on staleness tells it",
                 "0.15 makes equal phases 11 % longer; no record of a one-step-off loop is trusted enough to tell"),
        Constant("step_sync_exposed", 0.8, 0.3, "1", "assumed",
                 "share of a weight sync that an asynchronous loop does not hide",
                 "in-flight updates hide part of it; no published share was found"),
        Constant("step_length_cv", 0.6, 0.25, "1", "assumed",
                 "coefficient of variation of response lengths where nobody says",
                 "0.3 to 1 in published runs (physics of the tail: mean 1.4 times the median of the longest in a "
                 "group)"),
        Constant("step_wait_growth", 0.5, 0.5, "1", "assumed",
                 "how much of the waits that a run alone knows grows with its tokens",
                 "between waits of each step (0) and of each token (1)"),
        Constant("step_own_growth", 0.7, 0.4, "1", "assumed",
                 "how much of what a run's passes have of their own grows with its tokens",
                 "between what each micro-batch or move of states takes (0) and work on each token (1)"),
        Constant("step_own_quickening", 0.5, 0.5, "1", "assumed",
                 "how far what a run's passes have of their own goes with what makes these passes quicker",
                 "between work of no GPU (0) and of the trainer's (1), such as a model that nobody named"),
        Constant("step_generation_growth", 1.0, 0.05, "1", "assumed",
                 "how a run's generation grows with its tokens, over what is predicted",
                 "published runs whose responses grew: 0 to 13 % off where tokens went two- to threefold"),
        Constant("step_generation_again", 1.0, 0.05, "1", "assumed",
                 "generation of a run alike, over that of the run: its longest samples are others",
                 "published runs of one configuration: 1 to 10 % apart in generation, to 2 % in passes"),
        Constant("step_pass_growth", 1.0, 0.08, "1", "assumed",
                 "how the passes of a run's trainer grow with its tokens, over what is predicted",
                 "published runs whose responses grew: 0 to 5 % off where tokens went two- to threefold"),
        Constant("step_rollout_slowdown", 1.32, 0.15, "1", "fitted",
                 "generation inside a loop, over the engine's own benchmark", _NEMO, (1.1, 0.2)),
        Constant("step_rollout_moe_slowdown", 1.18, 0.25, "1", "fitted",
                 "the same again for a mixture of experts", _NEMO, (1.1, 0.3)),
        Constant("step_train", 1.02, 0.15, "1", "fitted",
                 "trainer within a loop, over the prediction of its step", _NEMO, (1.0, 0.2)),
        Constant("step_sync_colocated", 0.204, 0.3, "1", "fitted",
                 "how much of a larger trainer's parallelism helps a weight sync on shared GPUs",
                 f"{_NEMO}; untuned: hardly, as refits of 8B and 70B on 8 and 64 GPUs have it", (0.15, 0.6)),
        Constant("step_sync_split", 0.49, 0.25, "1", "fitted",
                 "how much of a larger trainer's parallelism helps a weight sync to other GPUs",
                 f"{_NEMO}; untuned: between nothing (0) and each rank's own share (1)", (0.5, 0.5)),
    ),
)  # fmt: skip
