"""What keys of `rlsize plan` and `rlsize report` mean, where nothing else says it."""

from __future__ import annotations

PLANNED: dict[str, str] = {
    "bottleneck": "The side that takes longer for a step, or late samples, where the cap on staleness makes both wait.",
    "page": "File that the page was written to.",
    "plan_exists": "Whether any plan keeps all limits.",
    "rollout_layout": "How an instance is built: its GPU and degrees of parallelism.",
    "trainer_layout": "How the trainer is spread: sharding and degrees of parallelism.",
}

PLANNED_COLUMNS: dict[str, str] = {
    "basis": "Where the two ends of an input come from.",
    "better_plan": "Mode and split of a plan that is better when the input is at an end.",
    "constraint": "What left candidates out: a limit's quantity, or a reason such as memory.",
    "cost_change_usd": "Change of the cost of a step against the plan.",
    "gpus_change": "GPUs more than in the plan; negative for fewer.",
    "high_factor": "High end of an input over its central value.",
    "input": "The input that is moved.",
    "left_out": "Candidates that a constraint left out.",
    "low_factor": "Low end of an input over its central value.",
    "nearest": "The candidate that a constraint left out most narrowly.",
    "plan": "Mode and split of a plan.",
    "predicted_rank": "Place of a plan by the prediction, from 1.",
    "predicted_step_seconds": "Step of a plan by the prediction.",
    "short_fraction": "By how much the nearest miss failed: of memory the share that is lacking, of a limit the share "
    "beyond it.",
    "side": "Side whose GPUs change: rollout, trainer, or both.",
    "simulated_high_seconds": "High end of the 95 % confidence interval of the simulated step.",
    "simulated_low_seconds": "Low end of the 95 % confidence interval of the simulated step.",
    "simulated_step_seconds": "Mean simulated step.",
    "split": "GPUs of both sides; one number where they are shared.",
    "step_change_per_gpu_seconds": "The change of the step for each GPU.",
    "step_change_seconds": "Change of the step against the plan.",
    "times_best": "The objective over that of the best plan: median over common draws.",
    "times_best_high": "High end of its 80 % interval.",
    "times_best_low": "Low end of its 80 % interval.",
    "verdict": "best, too close to call, or how many times the best.",
}
