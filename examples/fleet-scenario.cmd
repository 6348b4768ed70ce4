# The scenario that make demo sizes.
rlsize fleet examples/grpo-32b.yaml
