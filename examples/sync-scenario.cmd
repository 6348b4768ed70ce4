# The sync of the scenario, with the pause and the cadence that keeps it under 5 %.
rlsize sync examples/grpo-32b.yaml
