# What two changes of a loop would do before any run of it, each alone and both: trained tokens for what they cost.
rlsize whatif examples/unmeasured-8b.yaml --set rollout.kv_dtype=fp8 --set rollout.tensor_parallel=2 --own-only
