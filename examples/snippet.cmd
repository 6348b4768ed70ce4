# A framework's keys for a saved plan.
rlsize snippet examples/baseline.yaml --framework nemo-rl
