"""What keys of simulations mean, where nothing else says it."""

from __future__ import annotations

SIMULATED: dict[str, str] = {
    "compiled_fraction": "Share of the runs that the compiled kernel played; the specification played the rest.",
    "fixed_step_seconds": "Engine step with nothing in it, t_0.",
    "kv_token_step_seconds": "What each live KV token adds to an engine step, t_2.",
    "points": "Points of a grid that were run.",
    "sample_step_seconds": "What each running sample adds to an engine step, t_1.",
    "simulated_backlog_samples": "Finished samples that wait to be trained when an optimizer step ends, in the mean.",
    "simulated_backlog_steps": "The same in batches.",
    "simulated_best_step_seconds": "The shortest mean step time of a grid.",
    "simulated_cost_per_step_usd": "Cost of an optimizer step.",
    "simulated_cost_per_run_usd": "Cost of the run that was simulated, its first steps too, by the instances it had.",
    "simulated_gpu_hours_per_run": "GPU-hours of both pools in the run that was simulated, its first steps too.",
    "simulated_dropped_fraction": "Share of the generated tokens that were dropped: rejected, stale, aborted or lost.",
    "simulated_overhead_fraction": "Share of the trainer's time in what belongs to no phase, such as validation.",
    "simulated_failure_fraction": "Share of the trainer's time in restarts and in doing again what a failure lost.",
    "simulated_goodput_tokens_per_gpu_second": "Trained tokens per GPU-second of both pools.",
    "simulated_oldest_age_max_steps": "The largest age of the oldest sample that waits, in optimizer steps.",
    "simulated_oldest_age_steps": "Age of the oldest sample that waits when an optimizer step ends, in the mean.",
    "simulated_over_cap_fraction": "Share of the trained samples that are staler than the cap.",
    "simulated_preemptions_per_step": "Samples thrown out of a batch for want of KV cache, per optimizer step.",
    "simulated_rollout_idle_fraction": "Share of the instances' time with nothing to run.",
    "simulated_rollout_lost_fraction": "Share of the instances' time in which they are lost.",
    "simulated_rollout_paused_fraction": "Share of the instances' time in which they pause for a weight sync.",
    "simulated_rollout_unused_fraction": "What the fleet generates less than at its full rate, as a share of that.",
    "simulated_slots_busy_fraction": "Share of all slots' time with a running sample.",
    "simulated_staleness_max_steps": "The largest staleness of any trained sample.",
    "simulated_staleness_mean_steps": "Mean staleness of trained samples, by their first token.",
    "simulated_staleness_p95_steps": "95th percentile of the staleness of trained samples.",
    "simulated_step_p50_seconds": "Median time of an optimizer step.",
    "simulated_step_p95_seconds": "95th percentile of the time of an optimizer step.",
    "simulated_step_seconds": "Mean time of an optimizer step.",
    "simulated_steps_per_day": "Optimizer steps in a day.",
    "simulated_sync_fraction": "Share of the trainer's time in weight syncs or change-overs.",
    "simulated_tail_idle_fraction": "Share of the instances' time with nothing to run while others finish a batch.",
    "simulated_token_staleness_mean_steps": "Mean staleness of trained tokens, each by the weights that made it.",
    "simulated_tokens_generated_per_trained_token": "Response tokens generated for each one that is trained.",
    "simulated_trained_tokens_per_second": "Response tokens trained per second.",
    "simulated_trainer_idle_fraction": "Share of the trainer's time in which it does not work.",
    "simulated_waiting_for_samples_fraction": "Share of the trainer's time in which it waits for samples.",
    "simulated_waiting_seconds": "Time of an optimizer step in which the trainer waits for samples.",
    "slots": "Samples that an instance runs at once.",
}

SIMULATED_COLUMNS: dict[str, str] = {
    "cause": "What moves a figure from its first-order answer.",
    "first_order": "The closed form's answer.",
    "measure": "Which figure; its ending says the unit of the row.",
    "refused": "Why there can be no such loop.",
    "samples_fraction": "Share of the trained samples.",
    "staleness_steps": "Optimizer steps that samples lag.",
    "low": "Low end of the 95 % confidence interval over seeds.",
    "high": "High end of it.",
    "steps": "The last optimizer step of a part of the run.",
    "value": "Mean over seeds.",
}

_GRID = (
    "step_seconds", "trainer_idle_fraction", "rollout_unused_fraction", "staleness_mean_steps", "over_cap_fraction",
    "tokens_generated_per_trained_token", "cost_per_step_usd",
)  # fmt: skip
for _name in _GRID:
    SIMULATED_COLUMNS[f"simulated_{_name}_low"] = f"Low end of the 95 % confidence interval of {_name}, simulated."
    SIMULATED_COLUMNS[f"simulated_{_name}_high"] = f"High end of the 95 % confidence interval of {_name}, simulated."
