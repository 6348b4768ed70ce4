# What each neighbour costs, with a price for each pool.
rlsize fleet examples/grpo-32b.yaml --rollout-gpu-hour 1.25 --trainer-gpu-hour 2.95
